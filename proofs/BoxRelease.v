(** A whole release from a box: the user's counts, the clip, the walk, and what a capped user leaves.

    [clipped], [public] and [box_position] are BoxEngine.clipped, ._public and .position; [walk] is box.walk. The
    filter for batches is not modelled here. *)

From Coq Require Import ZArith Reals List Lia Bool Permutation.
From Sottovoce Require Import Sums Draw Privacy Box Clip.
Import ListNotations.
Open Scope Z_scope.

(** The entry of a position in a list of pairs. *)
Fixpoint lookup (i : nat) (units : list (nat * Z)) : option Z :=
  match units with
  | [] => None
  | (p, w) :: rest => if (i =? p)%nat then Some w else lookup i rest
  end.

(** The law that units mean: the floors, except where there is a unit (BoxEngine.law). *)
Definition scatter (low : list Z) (units : list (nat * Z)) : list Z :=
  map (fun i => match lookup i units with Some w => w | None => at_ low i end) (seq 0 (length low)).

(** Positions ascending, all from start on and below n. *)
Fixpoint ordered (start n : nat) (units : list (nat * Z)) : Prop :=
  match units with
  | [] => True
  | (p, _) :: rest => (start <= p < n)%nat /\ ordered (S p) n rest
  end.

(** box.walk: low are the weights behind the running sums, and units replace some of them. *)
Fixpoint walk (before low : list Z) (units : list (nat * Z)) (shift u : Z) : nat :=
  match units with
  | [] => Nat.pred (bisect_right before (u - shift))
  | (p, w) :: rest =>
      let start := at_ before p + shift in
      if u <? start then Nat.pred (bisect_right before (u - shift))
      else if u <? start + w then p
      else walk before low rest (shift + (w - at_ low p)) u
  end.

(** BoxEngine.clipped: the user's counts cut to the box, as far as the caps allow. *)
Definition clipped (N : Z) (low high : list Z) (weights : list (nat * Z)) : option (list (nat * Z)) :=
  let places := map fst weights in
  match exact_clip (map (fun '(p, k) => (k, at_ low p, at_ high p)) weights)
                   (Z.min (N - sum low + total (at_ low) places) (total (at_ high) places)) with
  | Some x => Some (combine places x)
  | None => None
  end.

(** BoxEngine._public: the clip of the prior. *)
Definition public (N : Z) (prior low high : list Z) : option (list Z) :=
  exact_clip (map (fun i => (at_ prior i, at_ low i, at_ high i)) (seq 0 (length low))) N.

(** What a law has above the floors. *)
Definition minus (t low : list Z) : list Z := map (fun i => at_ t i - at_ low i) (seq 0 (length low)).

(** Nothing at the places of some units. *)
Definition nothing (units : list (nat * Z)) : list (nat * Z) := map (fun '(p, _) => (p, 0)) units.

(** What is released from one word: the user's units and the floors; then what is left, in proportion to what the
    public law has above the floors of the other categories. *)
Definition box_position (N : Z) (prior low high : list Z) (weights : list (nat * Z)) (u : Z) : option nat :=
  match clipped N low high weights with
  | Some units =>
      let filled := sum low + total (fun '(p, w) => w - at_ low p) units in
      if u <? filled then Some (walk (before low) low units 0 u)
      else match public N prior low high with
           | Some t =>
               let above := minus t low in
               let room := sum above - total (at_ above) (map fst units) in
               Some (walk (before above) above (nothing units) 0 ((u - filled) * room / (N - filled)))
           | None => None
           end
  | None => None
  end.

(** A user: positions ascending, each with a count of at least one. *)
Definition user (n : nat) (weights : list (nat * Z)) : Prop :=
  ordered 0 n weights /\ Forall (fun '(_, k) => 1 <= k) weights.

(* ------------------------------------------------------------------ proofs *)

Lemma ordered_weaken s s' n units : (s' <= s)%nat -> ordered s n units -> ordered s' n units.
Proof. destruct units as [|[p w] rest]; simpl; [auto|]. intros H [H1 H2]. split; [lia|assumption]. Qed.

Lemma ordered_in s n units p : ordered s n units -> In p (map fst units) -> (s <= p < n)%nat.
Proof.
  revert s. induction units as [|[q w] rest IH]; simpl; intros s H Hin; [contradiction|].
  destruct H as [H1 H2]. destruct Hin as [->|Hin]; [assumption|]. specialize (IH (S q) H2 Hin). lia.
Qed.

Lemma ordered_nodup s n units : ordered s n units -> NoDup (map fst units).
Proof.
  revert s. induction units as [|[q w] rest IH]; simpl; intros s H; constructor; destruct H as [H1 H2].
  - intros Hin. pose proof (ordered_in _ _ _ _ H2 Hin). lia.
  - now apply IH with (S q).
Qed.

Lemma lookup_none i units : ~ In i (map fst units) -> lookup i units = None.
Proof.
  induction units as [|[p w] rest IH]; simpl; [auto|]. intros H.
  destruct (Nat.eqb_spec i p); [subst; tauto|]. apply IH. tauto.
Qed.

Lemma lookup_in i units w : lookup i units = Some w -> In (i, w) units.
Proof.
  induction units as [|[p x] rest IH]; simpl; [discriminate|].
  destruct (Nat.eqb_spec i p); [intros [= ->]; subst; now left|]. intros H. right. auto.
Qed.

Lemma scatter_length low units : length (scatter low units) = length low.
Proof. unfold scatter. now rewrite map_length, seq_length. Qed.

Lemma scatter_at low units i : (i < length low)%nat ->
  at_ (scatter low units) i = match lookup i units with Some w => w | None => at_ low i end.
Proof.
  intros Hi. unfold scatter, at_ at 1.
  rewrite (nth_indep _ 0 ((fun i => match lookup i units with Some w => w | None => at_ low i end) 0%nat))
    by now rewrite map_length, seq_length.
  rewrite (map_nth (fun i => match lookup i units with Some w => w | None => at_ low i end)).
  rewrite seq_nth by assumption. reflexivity.
Qed.

Lemma sum_seq l : sum l = total (at_ l) (seq 0 (length l)).
Proof.
  induction l as [|x l IH]; [reflexivity|]. cbn [sum length seq total]. unfold at_ at 1. cbn [nth]. f_equal.
  rewrite IH, (total_seq_shift _ 1). apply total_ext. reflexivity.
Qed.

Lemma scatter_sum low units : NoDup (map fst units) -> (forall p, In p (map fst units) -> (p < length low)%nat) ->
  sum (scatter low units) = sum low + total (fun '(p, w) => w - at_ low p) units.
Proof.
  intros Hnd Hin. unfold scatter. rewrite sum_total, total_map, (sum_seq low).
  induction units as [|[p w] rest IH]; cbn [map fst lookup total] in *.
  - rewrite (total_ext _ (at_ low)); [lia|reflexivity].
  - inversion Hnd as [|? ? Hp Hnd']; subst. specialize (IH Hnd' (fun q Hq => Hin q (or_intror Hq))).
    assert (p < length low)%nat as Hpn by (apply Hin; now left).
    replace (length low) with (p + (1 + (length low - p - 1)))%nat in * by lia.
    rewrite !total_seq_split in *. cbn [seq total] in *. rewrite Nat.add_0_r, Nat.eqb_refl in *.
    rewrite (lookup_none p rest Hp) in IH.
    rewrite (total_ext_in (fun i => match (if (i =? p)%nat then Some w else lookup i rest) with Some x => x | None => _ end)
      (fun i => match lookup i rest with Some x => x | None => at_ low i end)).
    2:{ intros i Hi. apply in_seq in Hi. destruct (Nat.eqb_spec i p); [lia|reflexivity]. }
    rewrite (total_ext (fun i => match (if (p + (1 + i) =? p)%nat then Some w else lookup (p + (1 + i)) rest) with Some x => x | None => _ end)
      (fun i => match lookup (p + (1 + i)) rest with Some x => x | None => at_ low (p + (1 + i)) end)).
    2:{ intros i. destruct (Nat.eqb_spec (p + (1 + i)) p); [lia|reflexivity]. }
    lia.
Qed.

(** The walk over the units finds what the running sums of the whole law say. *)
Section Walk.
Variables (low law : list Z) (u : Z).
Hypothesis Hlow : Forall (fun x => 0 <= x) low.
Hypothesis Hlen : length law = length low.
Let C (i : nat) := sum (firstn i law).
Let B (i : nat) := sum (firstn i low).

Lemma between start stop shift : (start <= stop <= length low)%nat -> C start = B start + shift ->
  (forall i, (start <= i < stop)%nat -> at_ law i = at_ low i) ->
  forall i, (start <= i <= stop)%nat -> C i = B i + shift.
Proof.
  intros Hs H0 Heq i [H1 H2]. unfold C, B in *. induction H1 as [|i H1 IH]; [assumption|].
  rewrite !firstn_succ_sum by lia. rewrite IH by lia. rewrite Heq by lia. lia.
Qed.

Lemma gap_found start stop shift : (start <= stop <= length low)%nat -> C start = B start + shift ->
  (forall i, (start <= i < stop)%nat -> at_ law i = at_ low i) -> C start <= u < C stop ->
  let j := Nat.pred (bisect_right (before low) (u - shift)) in C j <= u < C (S j).
Proof.
  intros Hs H0 Heq Hu. pose proof (between start stop shift Hs H0 Heq) as Hb.
  pose proof (Hb stop ltac:(lia)) as Hstop.
  assert (0 <= B start) by (apply (firstn_sum_mono low 0 start Hlow); lia).
  assert (B stop <= sum low).
  { unfold B. rewrite <- (firstn_all low) at 2. apply firstn_sum_mono; [assumption|lia]. }
  rewrite bisect_is_pick by (try assumption; lia). cbn [Nat.pred].
  destruct (pick_spec low (u - shift) ltac:(lia)) as [Hl Hp]. set (j := pick low (u - shift)) in *.
  assert (start <= j)%nat.
  { destruct (Nat.le_gt_cases start j) as [|Hj]; [assumption|exfalso].
    pose proof (firstn_sum_mono low (S j) start Hlow ltac:(lia)). fold (B start) in *. lia. }
  assert (j < stop)%nat.
  { destruct (Nat.lt_ge_cases j stop) as [|Hj]; [assumption|exfalso].
    pose proof (firstn_sum_mono low stop j Hlow ltac:(lia)). fold (B stop) in *. lia. }
  rewrite (Hb j), (Hb (S j)) by lia. unfold B. lia.
Qed.

Lemma walk_found units : forall start shift, ordered start (length low) units -> (start <= length low)%nat ->
  C start = B start + shift -> C start <= u < sum law ->
  (forall i, (start <= i < length low)%nat ->
    at_ law i = match lookup i units with Some w => w | None => at_ low i end) ->
  let j := walk (before low) low units shift u in C j <= u < C (S j).
Proof.
  assert (C (length low) = sum law) as Hall by (unfold C; rewrite <- Hlen, firstn_all; reflexivity).
  induction units as [|[p w] rest IH]; intros start shift Ho Hs H0 Hu Hlaw; cbn [walk].
  - apply gap_found with start (length low); auto; lia.
  - destruct Ho as [Hp Ho].
    assert (forall i, (start <= i < p)%nat -> at_ law i = at_ low i) as Heq.
    { intros i Hi. rewrite Hlaw by lia. rewrite lookup_none; [reflexivity|]. simpl. intros [<-|Hin]; [lia|].
      pose proof (ordered_in _ _ _ _ Ho Hin). lia. }
    pose proof (between start p shift ltac:(lia) H0 Heq p ltac:(lia)) as Hcp.
    rewrite before_at by lia. fold (B p).
    assert (C (S p) = C p + w) as HCp.
    { unfold C. rewrite firstn_succ_sum by lia. f_equal. rewrite Hlaw by lia. simpl. now rewrite Nat.eqb_refl. }
    destruct (Z.ltb_spec u (B p + shift)).
    + apply gap_found with start p; auto; lia.
    + destruct (Z.ltb_spec u (B p + shift + w)); [lia|].
      apply (IH (S p)); auto; try lia.
      * rewrite HCp, Hcp. unfold B. rewrite firstn_succ_sum by lia. lia.
      * intros i Hi. rewrite Hlaw by lia. simpl. destruct (Nat.eqb_spec i p); [lia|reflexivity].
Qed.

End Walk.

Theorem walk_is_pick low units u : Forall (fun x => 0 <= x) low -> Forall (fun x => 0 <= x) (scatter low units) ->
  ordered 0 (length low) units -> 0 <= u < sum (scatter low units) ->
  walk (before low) low units 0 u = pick (scatter low units) u.
Proof.
  intros Hlow Hlaw Ho Hu. symmetry. apply pick_unique; auto.
  apply (walk_found low (scatter low units) u Hlow (scatter_length low units) units 0 0); auto; try (cbn [firstn sum]; lia).
  intros i Hi. apply scatter_at. lia.
Qed.

Lemma combine_fst {A B} (l : list A) (m : list B) : length l = length m -> map fst (combine l m) = l.
Proof. revert m. induction l; intros [|y m] H; simpl in *; try discriminate; f_equal; auto. Qed.

Lemma ordered_combine s n weights (x : list Z) : length x = length weights -> ordered s n weights ->
  ordered s n (combine (map fst weights) x).
Proof.
  revert s x. induction weights as [|[p k] rest IH]; intros s [|y x] Hl H; simpl in *; auto; try discriminate.
  destruct H as [H1 H2]. split; [assumption|]. apply IH; auto.
Qed.

Lemma Forall2_same {A B} (P : A -> B -> Prop) l m : Forall2 P l m -> length l = length m.
Proof. induction 1; simpl; congruence. Qed.

Lemma minus_length t low : length (minus t low) = length low.
Proof. unfold minus. now rewrite map_length, seq_length. Qed.

Lemma minus_at t low i : (i < length low)%nat -> at_ (minus t low) i = at_ t i - at_ low i.
Proof.
  intros Hi. unfold minus, at_ at 1.
  rewrite (nth_indep _ 0 ((fun i => at_ t i - at_ low i) 0%nat)) by now rewrite map_length, seq_length.
  rewrite (map_nth (fun i => at_ t i - at_ low i)), seq_nth by assumption. reflexivity.
Qed.

Lemma minus_sum t low : length t = length low -> sum (minus t low) = sum t - sum low.
Proof.
  intros H. unfold minus. rewrite sum_total, total_map, total_minus, (sum_seq t), (sum_seq low), H. reflexivity.
Qed.

Lemma at_nonneg l : (forall i, (i < length l)%nat -> 0 <= at_ l i) -> Forall (fun x => 0 <= x) l.
Proof. intros H. apply Forall_forall. intros x Hx. destruct (In_nth l x 0 Hx) as (i & Hi & <-). now apply H. Qed.

Lemma nothing_fst units : map fst (nothing units) = map fst units.
Proof. unfold nothing. rewrite map_map. apply map_ext. intros [p w]. reflexivity. Qed.

Lemma nothing_lookup i units : lookup i (nothing units) = match lookup i units with Some _ => Some 0 | None => None end.
Proof. induction units as [|[p w] rest IH]; simpl; [reflexivity|]. now destruct (i =? p)%nat. Qed.

Lemma nothing_ordered s n units : ordered s n units -> ordered s n (nothing units).
Proof. revert s. induction units as [|[p w] rest IH]; simpl; intros s; [auto|]. intros [H1 H2]. auto. Qed.

(** The user's units lie in the box; what they leave, they leave because they are all at their caps. *)
Lemma clipped_right up down N low weights :
  check_box up down N low = true -> user (length low) weights ->
  let high := highs up down N low in
  exists units, clipped N low high weights = Some units /\ map fst units = map fst weights
    /\ ordered 0 (length low) units /\ (forall p w, In (p, w) units -> at_ low p <= w <= at_ high p)
    /\ total (fun '(p, w) => w - at_ low p) units
       = Z.min (N - sum low) (total (at_ high) (map fst units) - total (at_ low) (map fst units)).
Proof.
  intros Hc [Ho Hk] high.
  assert (forall i, (i < length low)%nat -> at_ low i <= at_ high i) as Hlh by (intros i Hi; now apply low_le_high).
  pose proof (check_box_true _ _ _ _ Hc) as (_ & _ & _ & HN). fold high in HN.
  set (places := map fst weights).
  assert (forall p, In p places -> (p < length low)%nat) as Hpn
    by (intros p Hp; destruct (ordered_in _ _ _ _ Ho Hp); assumption).
  assert (total (at_ low) places <= total (at_ high) places) as Hroom by (apply total_le_in; auto).
  unfold clipped. fold places. cbv zeta.
  destruct (exact_clip_right (map (fun '(p, k) => (k, at_ low p, at_ high p)) weights)
    (Z.min (N - sum low + total (at_ low) places) (total (at_ high) places))) as (x & Hx & Hw & Hs).
  - apply Forall_map. apply Forall_forall. intros [p k] Hin. rewrite Forall_forall in Hk.
    specialize (Hk (p, k) Hin). simpl in Hk. split; [assumption|]. apply Hlh, Hpn.
    apply (in_map fst) in Hin. exact Hin.
  - rewrite !total_map.
    rewrite (total_ext _ (fun e => at_ low (fst e))) by (intros [p k]; reflexivity).
    rewrite (total_ext (fun e => let '(_, _, hi) := let '(p, k) := e in _ in hi) (fun e => at_ high (fst e)))
      by (intros [p k]; reflexivity).
    rewrite <- !(total_map _ fst). fold places. lia.
  - rewrite Hx. exists (combine places x).
    assert (length x = length weights) as Hlx by (apply Forall2_same in Hw; rewrite map_length in Hw; lia).
    assert (length places = length x) as Hlpx by (unfold places; rewrite map_length; lia).
    rewrite combine_fst by assumption. split; [reflexivity|]. split; [reflexivity|].
    split; [now apply ordered_combine|]. split.
    + unfold places. clear -Hw. revert x Hw.
      induction weights as [|[q k] rest IH]; intros x Hw p w Hin; inversion Hw; subst; simpl in Hin; [contradiction|].
      destruct Hin as [[= <- <-]|Hin]; [assumption|]. eapply IH; eauto.
    + assert (total (fun '(p, w) => w - at_ low p) (combine places x) = sum x - total (at_ low) places) as ->; [|lia].
      clear -Hlpx. revert x Hlpx. induction places as [|p places IH]; intros [|y x] H; simpl in *;
        try discriminate; [reflexivity|]. rewrite IH by lia. lia.
Qed.

(** The public law lies in the box. *)
Lemma public_right up down N prior low :
  check_box up down N low = true -> length prior = length low -> Forall (fun x => 1 <= x) prior ->
  exists t, public N prior low (highs up down N low) = Some t /\ in_box N low (highs up down N low) t.
Proof.
  intros Hc Hlp Hprior. set (high := highs up down N low).
  pose proof (check_box_true _ _ _ _ Hc) as (_ & _ & _ & HN). fold high in HN.
  assert (length high = length low) as Hlh by (unfold high, highs; now rewrite map_length).
  destruct (exact_clip_right (map (fun i => (at_ prior i, at_ low i, at_ high i)) (seq 0 (length low))) N)
    as (t & Ht & Hw & Hs).
  - apply Forall_map. apply Forall_forall. intros i Hi. apply in_seq in Hi. split; [|now apply low_le_high].
    rewrite Forall_forall in Hprior. apply Hprior, at_in. lia.
  - rewrite !total_map. rewrite (sum_seq low), (sum_seq high), Hlh in HN. exact HN.
  - exists t. split; [exact Ht|].
    assert (length t = length low) as Hl by (apply Forall2_same in Hw; rewrite map_length, seq_length in Hw; lia).
    split; [assumption|]. split; [assumption|]. intros i Hi. clear -Hw Hi.
    enough (forall s m t, Forall2 (fun '(_, lo, hi) y => lo <= y <= hi)
      (map (fun i => (at_ prior i, at_ low i, at_ high i)) (seq s m)) t ->
      forall j, (j < m)%nat -> at_ low (s + j) <= at_ t j <= at_ high (s + j)) as H by exact (H 0%nat _ t Hw i Hi).
    clear. intros s m. revert s. induction m as [|m IH]; intros s t H j Hj; [lia|].
    cbn [seq map] in H. inversion H; subst. destruct j as [|j].
    + rewrite Nat.add_0_r. assumption.
    + replace (s + S j)%nat with (S s + j)%nat by lia. apply (IH (S s) l' ltac:(assumption) j). lia.
Qed.

(** A share of no more words than there are units takes no more than its units. *)
Lemma share_inside N S e x : 0 < S -> 0 <= N <= S -> 0 <= x ->
  0 <= ceil ((e + x) * N) S - ceil (e * N) S <= x.
Proof.
  intros HS HN Hx. pose proof (ceil_spec ((e + x) * N) S HS). pose proof (ceil_spec (e * N) S HS).
  assert (x * N <= x * S) by nia. assert (0 <= x * N) by nia. nia.
Qed.

(** THE USER'S LAW. For every user there is a law in the box, and of the N words exactly its units lead to each
    category: for every f, the sum of f over what the words release is Σ_i w_i·f(i). *)
Theorem box_release_law up down N prior low weights :
  check_box up down N low = true -> length prior = length low -> Forall (fun x => 1 <= x) prior ->
  user (length low) weights ->
  exists w, in_box N low (highs up down N low) w
    /\ forall f : nat -> Z,
       total (fun u => match box_position N prior low (highs up down N low) weights u with Some i => f i | None => 0 end)
         (words N) = total (fun i => at_ w i * f i) (seq 0 (length w)).
Proof.
  intros Hc Hlp Hprior Hu. set (high := highs up down N low).
  pose proof (check_box_true _ _ _ _ Hc) as (_ & _ & Hlow1 & HN). fold high in HN.
  assert (forall i, (i < length low)%nat -> at_ low i <= at_ high i) as Hlh by (intros i Hi; now apply low_le_high).
  assert (Forall (fun x => 0 <= x) low) as Hlow0 by (apply at_nonneg; intros i Hi; specialize (Hlow1 i Hi); lia).
  destruct (clipped_right _ _ _ _ _ Hc Hu) as (units & Hcl & _ & Ho & Hbox & Hover). fold high in Hcl, Hbox, Hover.
  destruct (public_right _ _ _ _ _ Hc Hlp Hprior) as (t & Ht & Htl & Hts & Htb). fold high in Ht, Htb.
  set (over := total (fun '(p, w) => w - at_ low p) units) in *.
  set (filled := sum low + over). set (v := scatter low units).
  assert (forall p, In p (map fst units) -> (p < length low)%nat) as Hpn
    by (intros p Hp; destruct (ordered_in _ _ _ _ Ho Hp); assumption).
  assert (sum v = filled) as Hv by (apply scatter_sum; [now apply ordered_nodup with 0%nat (length low)|assumption]).
  assert (length v = length low) as Hvl by apply scatter_length.
  assert (forall i, (i < length low)%nat -> at_ low i <= at_ v i <= at_ high i) as Hvb.
  { intros i Hi. unfold v. rewrite scatter_at by assumption. destruct (lookup i units) as [w|] eqn:E.
    - apply Hbox. now apply lookup_in.
    - specialize (Hlh i Hi). lia. }
  assert (Forall (fun x => 0 <= x) v) as Hv0.
  { apply at_nonneg. rewrite Hvl. intros i Hi. specialize (Hvb i Hi). specialize (Hlow1 i Hi). lia. }
  assert (0 <= filled <= N) as Hfilled by (rewrite <- Hv; split; [now apply sum_nonneg|unfold filled in Hv; lia]).
  assert (forall u, 0 <= u < filled -> box_position N prior low high weights u = Some (pick v u)) as Hfirst.
  { intros u Hr. unfold box_position. rewrite Hcl. cbv zeta. fold over filled.
    destruct (Z.ltb_spec u filled); [|lia]. f_equal. apply walk_is_pick; auto. fold v. lia. }
  destruct (Z.eq_dec filled N) as [Hfull|Hleft].
  - exists v. split; [split; [assumption|split; [lia|assumption]]|]. intros f.
    rewrite (total_words_ext _ (fun u => f (pick v u))) by (intros u Hr; rewrite Hfirst by lia; reflexivity).
    rewrite <- Hfull, <- Hv. now apply draw_law.
  - set (above := minus t low). set (z := scatter above (nothing units)).
    set (left := N - filled). set (room := sum above - total (at_ above) (map fst units)).
    assert (length above = length low) as Hal by apply minus_length.
    assert (forall i, (i < length low)%nat -> 0 <= at_ above i) as Ha0
      by (intros i Hi; unfold above; rewrite minus_at by assumption; specialize (Htb i Hi); lia).
    assert (length z = length low) as Hzl by (unfold z; rewrite scatter_length; assumption).
    assert (forall i, (i < length low)%nat ->
      at_ z i = match lookup i units with Some _ => 0 | None => at_ above i end) as Hz.
    { intros i Hi. unfold z. rewrite scatter_at, nothing_lookup by lia. now destruct (lookup i units). }
    assert (Forall (fun x => 0 <= x) z) as Hz0.
    { apply at_nonneg. rewrite Hzl. intros i Hi. rewrite Hz by assumption. specialize (Ha0 i Hi).
      destruct (lookup i units); lia. }
    assert (sum z = room) as Hzs.
    { unfold z. rewrite scatter_sum.
      - unfold room, nothing. rewrite total_map, total_map.
        rewrite (total_ext _ (fun e => 0 - at_ above (fst e))) by (intros [p w]; reflexivity).
        rewrite total_minus, total_const. lia.
      - rewrite nothing_fst. now apply ordered_nodup with 0%nat (length low).
      - rewrite nothing_fst, Hal. assumption. }
    assert (0 < left <= room) as Hlr.
    { split; [unfold left; lia|]. unfold room, above. rewrite minus_sum, Hts by assumption.
      rewrite (total_ext_in _ (fun p => at_ t p - at_ low p)) by (intros p Hp; apply minus_at; auto).
      rewrite total_minus.
      assert (total (at_ t) (map fst units) <= total (at_ high) (map fst units))
        by (apply total_le_in; intros p Hp; apply Htb; auto).
      unfold left, filled in *. lia. }
    set (s := shares left room 0 z).
    assert (length s = length low) as Hsl by (unfold s; rewrite shares_length; assumption).
    assert (forall i, (i < length low)%nat -> 0 <= at_ s i <= at_ z i) as Hsb.
    { intros i Hi. unfold s. rewrite shares_at by lia. rewrite firstn_succ_sum by lia. apply share_inside; try lia.
      rewrite Forall_forall in Hz0. apply Hz0, at_in. lia. }
    assert (sum s = left) as Hss.
    { unfold s. rewrite shares_sum, Hzs, Z.add_0_l, Z.mul_0_l, (Z.mul_comm room), ceil_whole by lia.
      pose proof (ceil_whole 0 room ltac:(lia)) as H0. rewrite Z.mul_0_l in H0. lia. }
    set (w := map (fun i => at_ v i + at_ s i) (seq 0 (length low))).
    assert (length w = length low) as Hwl by (unfold w; now rewrite map_length, seq_length).
    assert (forall i, (i < length low)%nat -> at_ w i = at_ v i + at_ s i) as Hw.
    { intros i Hi. unfold w, at_ at 1.
      rewrite (nth_indep _ 0 ((fun i => at_ v i + at_ s i) 0%nat)) by now rewrite map_length, seq_length.
      rewrite (map_nth (fun i => at_ v i + at_ s i)), seq_nth by assumption. reflexivity. }
    exists w. split.
    + split; [assumption|]. split.
      * unfold w. rewrite sum_total, total_map, total_plus.
        pose proof (sum_seq v) as H1. pose proof (sum_seq s) as H2. rewrite Hvl in H1. rewrite Hsl in H2.
        rewrite <- H1, <- H2. unfold left in Hss. lia.
      * intros i Hi. rewrite Hw by assumption. specialize (Hvb i Hi). specialize (Hsb i Hi). rewrite Hz in Hsb by assumption.
        unfold v in *. rewrite scatter_at in * by assumption. destruct (lookup i units) as [x|] eqn:E; [lia|].
        unfold above in Hsb. rewrite minus_at in Hsb by assumption. specialize (Htb i Hi). lia.
    + intros f. replace (words N) with (words (filled + left)) by (f_equal; unfold left; lia).
      rewrite total_words_split by lia.
      rewrite (total_words_ext _ (fun u => f (pick v u)) filled) by (intros u Hr; rewrite Hfirst by lia; reflexivity).
      rewrite (total_words_ext _ (fun r => f (pick z (r * sum z / left))) left).
      2:{ intros r Hr. unfold box_position. rewrite Hcl. cbv zeta. fold over filled.
          destruct (Z.ltb_spec (filled + r) filled); [lia|]. rewrite Ht. fold above room left.
          replace (filled + r - filled) with r by lia. rewrite Hzs. f_equal.
          rewrite walk_is_pick; [reflexivity| | | |].
          - apply at_nonneg. rewrite Hal. assumption.
          - exact Hz0.
          - rewrite Hal. now apply nothing_ordered.
          - fold z. rewrite Hzs. split; [apply Z.div_pos; nia|apply Z.div_lt_upper_bound; nia]. }
      rewrite scaled_draw_law by (try assumption; lia). rewrite <- Hv, draw_law by assumption.
      rewrite Hzs, Hvl, Hzl, Hwl, <- total_plus. apply total_ext_in. intros i Hi. apply in_seq in Hi.
      rewrite Hw by lia. fold s. lia.
Qed.

(** Of N words, how many lead a user into S. *)
Definition box_words (N : Z) (prior low high : list Z) (weights : list (nat * Z)) (S : nat -> bool) : Z :=
  count (fun u => match box_position N prior low high weights u with Some i => S i | None => false end) (words N).

Lemma box_words_units up down N prior low weights :
  check_box up down N low = true -> length prior = length low -> Forall (fun x => 1 <= x) prior ->
  user (length low) weights ->
  exists w, in_box N low (highs up down N low) w
    /\ forall S, box_words N prior low (highs up down N low) weights S = units_in S w.
Proof.
  intros Hc Hlp Hprior Hu. destruct (box_release_law _ _ _ _ _ _ Hc Hlp Hprior Hu) as (w & Hw & Hlaw).
  exists w. split; [exact Hw|]. intros S. unfold box_words, count, units_in. rewrite <- (Hlaw (fun i => one (S i))).
  apply total_ext. intros u. now destruct (box_position _ _ _ _ _ u).
Qed.

(** A RELEASE FROM A BOX always releases something, and Pr[S] ≤ e^ε·Pr'[S] for every two users and every event. *)
Theorem box_release_private up down N (epsilon : R) prior low weights weights' (S : nat -> bool) :
  0 < N -> at_most_exp up down epsilon -> check_box up down N low = true ->
  length prior = length low -> Forall (fun x => 1 <= x) prior ->
  user (length low) weights -> user (length low) weights' ->
  (probability (box_words N prior low (highs up down N low) weights S) N
   <= exp epsilon * probability (box_words N prior low (highs up down N low) weights' S) N)%R.
Proof.
  intros HN HA Hc Hlp Hprior Hu Hu'.
  destruct (box_words_units _ _ _ _ _ _ Hc Hlp Hprior Hu) as (w & Hw & Hn).
  destruct (box_words_units _ _ _ _ _ _ Hc Hlp Hprior Hu') as (w' & Hw' & Hn').
  apply counts_to_probabilities with up down; auto.
  - apply total_nonneg_in. intros u _. unfold one. match goal with |- context [if ?b then _ else _] => destruct b end; lia.
  - rewrite Hn, Hn'. now apply box_private_units with N low.
Qed.
