(** A whole release from a box: the user's counts, the clip, the walk, the draw.

    [clipped] is BoxEngine._clipped, [walk] is the loop of BoxEngine.position. The tables for more than 256
    categories (spread) and for batches (filter, descent) are not modelled here. *)

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

(** BoxEngine.position, with the units of [clipped]. *)
Fixpoint walk (before low : list Z) (units : list (nat * Z)) (shift u : Z) : nat :=
  match units with
  | [] => Nat.pred (bisect_right before (u - shift))
  | (p, w) :: rest =>
      let start := at_ before p + shift in
      if u <? start then Nat.pred (bisect_right before (u - shift))
      else if u <? start + w then p
      else walk before low rest (shift + (w - at_ low p)) u
  end.

Definition mem (i : nat) (places : list nat) : bool := existsb (Nat.eqb i) places.
Definition others (n : nat) (places : list nat) : list nat := filter (fun i => negb (mem i places)) (seq 0 n).

(** BoxEngine._clipped: the user's counts cut to the box; if everything the user has sits at its cap, the rest
    goes to the other categories in proportion to the prior. *)
Definition clipped (N : Z) (prior low high : list Z) (weights : list (nat * Z)) : option (list (nat * Z)) :=
  let n := length low in
  let places := map fst weights in
  let room := total (fun p => at_ high p - at_ low p) places in
  if N - sum low <=? room then
    match exact_clip (map (fun '(p, k) => (k, at_ low p, at_ high p)) weights)
                     (N - sum low + total (at_ low) places) with
    | Some x => Some (combine places x)
    | None => None
    end
  else
    let rest := others n places in
    match exact_clip (map (fun p => (at_ prior p, at_ low p, at_ high p)) rest) (N - total (at_ high) places) with
    | Some x => Some (map (fun i => (i, match lookup i (combine rest x) with Some w => w | None => at_ high i end))
                          (seq 0 n))
    | None => None
    end.

(** What is released from one word. *)
Definition box_position (N : Z) (prior low high : list Z) (weights : list (nat * Z)) (u : Z) : option nat :=
  match clipped N prior low high weights with
  | Some units => Some (walk (before low) low units 0 u)
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

(** The user's places and the others. *)

Lemma total_perm {A} (f : A -> Z) l m : Permutation l m -> total f l = total f m.
Proof. induction 1; simpl; lia. Qed.

Lemma mem_spec i places : mem i places = true <-> In i places.
Proof.
  unfold mem. rewrite existsb_exists. split.
  - intros (x & Hx & E). apply Nat.eqb_eq in E. now subst.
  - intros H. exists i. now rewrite Nat.eqb_refl.
Qed.

Lemma total_places (f : nat -> Z) n places : NoDup places -> (forall p, In p places -> (p < n)%nat) ->
  total f (seq 0 n) = total f places + total f (others n places).
Proof.
  intros Hnd Hin. rewrite <- total_app. apply total_perm.
  apply NoDup_Permutation.
  - apply seq_NoDup.
  - assert (NoDup (others n places)) as Ho by (apply NoDup_filter, seq_NoDup).
    revert Ho. clear Hin. unfold others. generalize (seq 0 n) as l. intros l Ho.
    assert (forall p, In p places -> ~ In p (filter (fun i => negb (mem i places)) l)) as Hdis.
    { intros p Hp Hf. apply filter_In in Hf. destruct Hf as [_ Hf]. apply mem_spec in Hp. rewrite Hp in Hf.
      discriminate. }
    revert Ho Hdis. generalize (filter (fun i => negb (mem i places)) l) as m. intros m Hm Hdis.
    induction Hnd as [|p places Hp Hnd IH]; simpl; [assumption|]. constructor.
    + rewrite in_app_iff. intros [H|H]; [tauto|]. apply (Hdis p); simpl; auto.
    + apply IH. intros q Hq. apply Hdis. now right.
  - intros i. rewrite in_app_iff, in_seq. unfold others. rewrite filter_In, in_seq. split.
    + intros Hi. destruct (mem i places) eqn:E; [left; now apply mem_spec|right; now split].
    + intros [H|[H _]]; [specialize (Hin i H); lia|assumption].
Qed.

Lemma combine_fst {A B} (l : list A) (m : list B) : length l = length m -> map fst (combine l m) = l.
Proof. revert m. induction l; intros [|y m] H; simpl in *; try discriminate; f_equal; auto. Qed.

Lemma ordered_combine s n weights (x : list Z) : length x = length weights -> ordered s n weights ->
  ordered s n (combine (map fst weights) x).
Proof.
  revert s x. induction weights as [|[p k] rest IH]; intros s [|y x] Hl H; simpl in *; auto; try discriminate.
  destruct H as [H1 H2]. split; [assumption|]. apply IH; auto.
Qed.

Lemma ordered_seq s n m (g : nat -> Z) : (s + m <= n)%nat -> ordered s n (map (fun i => (i, g i)) (seq s m)).
Proof. revert s. induction m as [|m IH]; intros s H; simpl; [auto|]. split; [lia|]. apply IH. lia. Qed.

Lemma Forall2_same {A B} (P : A -> B -> Prop) l m : Forall2 P l m -> length l = length m.
Proof. induction 1; simpl; congruence. Qed.

Lemma lookup_seq i s m (g : nat -> Z) : (s <= i < s + m)%nat ->
  lookup i (map (fun i => (i, g i)) (seq s m)) = Some (g i).
Proof.
  revert s. induction m as [|m IH]; intros s H; [lia|]. simpl.
  destruct (Nat.eqb_spec i s); [subst; reflexivity|]. apply IH. lia.
Qed.

(** THE USER'S LAW. For every user the clip finds units, ascending, whose law lies in the box. *)
Theorem clipped_in_box up down N prior low weights :
  check_box up down N low = true -> length prior = length low -> Forall (fun x => 1 <= x) prior ->
  user (length low) weights ->
  exists units, clipped N prior low (highs up down N low) weights = Some units
    /\ ordered 0 (length low) units /\ in_box N low (highs up down N low) (scatter low units).
Proof.
  intros Hc Hlp Hprior [Ho Hk]. set (high := highs up down N low).
  assert (forall i, (i < length low)%nat -> at_ low i <= at_ high i) as Hlh
    by (intros i Hi; now apply low_le_high).
  pose proof (check_box_true _ _ _ _ Hc) as (_ & _ & _ & HN). fold high in HN.
  set (n := length low) in *. set (places := map fst weights).
  assert (forall p, In p places -> (p < n)%nat) as Hpn
    by (intros p Hp; destruct (ordered_in _ _ _ _ Ho Hp); assumption).
  assert (NoDup places) as Hnd by now apply ordered_nodup with 0%nat n.
  unfold clipped. fold n places. cbv zeta.
  destruct (Z.leb_spec (N - sum low) (total (fun p => at_ high p - at_ low p) places)) as [Hroom|Hroom];
    rewrite total_minus in Hroom.
  - destruct (exact_clip_right (map (fun '(p, k) => (k, at_ low p, at_ high p)) weights)
      (N - sum low + total (at_ low) places)) as (x & Hx & Hw & Hs).
    + apply Forall_map. apply Forall_forall. intros [p k] Hin. rewrite Forall_forall in Hk.
      specialize (Hk (p, k) Hin). simpl in Hk. split; [assumption|]. apply Hlh, Hpn.
      apply (in_map fst) in Hin. exact Hin.
    + rewrite !total_map.
      rewrite (total_ext _ (fun e => at_ low (fst e))) by (intros [p k]; reflexivity).
      rewrite (total_ext (fun e => let '(_, _, hi) := let '(p, k) := e in _ in hi) (fun e => at_ high (fst e)))
        by (intros [p k]; reflexivity).
      rewrite <- !(total_map _ fst). fold places. lia.
    + rewrite Hx. exists (combine places x). split; [reflexivity|].
      assert (length x = length weights) as Hlx by (apply Forall2_same in Hw; rewrite map_length in Hw; lia).
      assert (length places = length x) as Hlpx by (unfold places; rewrite map_length; lia).
      assert (ordered 0 n (combine places x)) as Hord by now apply ordered_combine.
      split; [exact Hord|].
      assert (forall p w, In (p, w) (combine places x) -> at_ low p <= w <= at_ high p) as Hbox.
      { unfold places. clear -Hw. revert x Hw. induction weights as [|[p k] rest IH]; intros x Hw q w Hin;
          inversion Hw; subst; simpl in Hin; [contradiction|].
        destruct Hin as [[= <- <-]|Hin]; [assumption|]. eapply IH; eauto. }
      split; [apply scatter_length|]. split.
      * rewrite scatter_sum by (rewrite combine_fst by assumption; assumption).
        assert (total (fun '(p, w) => w - at_ low p) (combine places x) = sum x - total (at_ low) places); [|lia].
        clear -Hlpx. revert x Hlpx. induction places as [|p places IH]; intros [|y x] H; simpl in *;
          try discriminate; [reflexivity|]. rewrite IH by lia. lia.
      * intros i Hi. rewrite scatter_at by assumption. destruct (lookup i (combine places x)) as [w|] eqn:E.
        -- apply Hbox. now apply lookup_in.
        -- specialize (Hlh i Hi). lia.
  - set (rest := others n places).
    assert (forall p, In p rest -> (p < n)%nat) as Hrn
      by (intros p Hp; unfold rest, others in Hp; apply filter_In in Hp; destruct Hp as [Hp _];
          apply in_seq in Hp; lia).
    pose proof (total_places (at_ low) n places Hnd Hpn) as Hsl. rewrite <- sum_seq in Hsl. fold rest in Hsl.
    pose proof (total_places (at_ high) n places Hnd Hpn) as Hsh. fold rest in Hsh.
    assert (sum high = total (at_ high) (seq 0 n)) as Hshn
      by (rewrite sum_seq; unfold high, highs; now rewrite map_length).
    destruct (exact_clip_right (map (fun p => (at_ prior p, at_ low p, at_ high p)) rest)
      (N - total (at_ high) places)) as (x & Hx & Hw & Hs).
    + apply Forall_map. apply Forall_forall. intros p Hp. split; [|auto].
      rewrite Forall_forall in Hprior. apply Hprior. apply at_in. rewrite Hlp. auto.
    + rewrite !total_map. change (total (fun x => at_ low x) rest <= N - total (at_ high) places
        <= total (fun x => at_ high x) rest).
      change (total (at_ low) rest <= N - total (at_ high) places <= total (at_ high) rest). lia.
    + rewrite Hx. set (g := fun i => match lookup i (combine rest x) with Some w => w | None => at_ high i end).
      exists (map (fun i => (i, g i)) (seq 0 n)). split; [reflexivity|].
      split; [apply ordered_seq; lia|].
      assert (length rest = length x) as Hlx by (apply Forall2_same in Hw; rewrite map_length in Hw; lia).
      assert (forall p w, In (p, w) (combine rest x) -> at_ low p <= w <= at_ high p) as Hbox.
      { clear -Hw. revert x Hw. induction rest as [|p rest IH]; intros x Hw q w Hin;
          inversion Hw; subst; simpl in Hin; [contradiction|].
        destruct Hin as [[= <- <-]|Hin]; [assumption|]. eapply IH; eauto. }
      assert (forall i, (i < n)%nat -> at_ (scatter low (map (fun i => (i, g i)) (seq 0 n))) i = g i) as Hat
        by (intros i Hi; rewrite scatter_at by assumption; rewrite lookup_seq by lia; reflexivity).
      split; [apply scatter_length|]. split.
      * rewrite sum_seq, scatter_length. fold n. rewrite (total_ext_in _ g).
        2:{ intros i Hi. apply in_seq in Hi. apply Hat. lia. }
        rewrite (total_places g n places Hnd Hpn). fold rest.
        rewrite (total_ext_in g (at_ high) places).
        2:{ intros p Hp. unfold g. rewrite lookup_none; [reflexivity|]. rewrite combine_fst by assumption.
            unfold rest, others. rewrite filter_In. intros [_ H]. apply mem_spec in Hp. rewrite Hp in H. discriminate. }
        assert (total g rest = sum x); [|lia].
        assert (NoDup rest) as Hndr by (apply NoDup_filter, seq_NoDup).
        unfold g. clear -Hlx Hndr. revert x Hlx. induction rest as [|p rest IH]; intros [|y x] H; simpl in *;
          try discriminate; [reflexivity|].
        inversion Hndr as [|? ? Hp Hndr']; subst. rewrite Nat.eqb_refl. f_equal. rewrite <- (IH Hndr' x) by lia.
        apply total_ext_in. intros i Hi. destruct (Nat.eqb_spec i p); [subst; contradiction|reflexivity].
      * intros i Hi. rewrite Hat by assumption. unfold g.
        destruct (lookup i (combine rest x)) as [w|] eqn:E; [apply Hbox; now apply lookup_in|].
        specialize (Hlh i Hi). lia.
Qed.

(** Of N words, how many lead a user into S. *)
Definition box_words (N : Z) (prior low high : list Z) (weights : list (nat * Z)) (S : nat -> bool) : Z :=
  count (fun u => match box_position N prior low high weights u with Some i => S i | None => false end) (words N).

Lemma box_position_pick up down N prior low weights :
  check_box up down N low = true -> length prior = length low -> Forall (fun x => 1 <= x) prior ->
  user (length low) weights ->
  exists w, in_box N low (highs up down N low) w
    /\ forall u, 0 <= u < N -> box_position N prior low (highs up down N low) weights u = Some (pick w u).
Proof.
  intros Hc Hlp Hprior Hu. destruct (clipped_in_box _ _ _ _ _ _ Hc Hlp Hprior Hu) as (units & Hcl & Ho & Hin).
  exists (scatter low units). split; [exact Hin|]. intros u Hw. unfold box_position. rewrite Hcl. f_equal.
  apply walk_is_pick; auto.
  - apply check_box_true in Hc. destruct Hc as (_ & _ & H1 & _). apply Forall_forall. intros x Hx.
    destruct (In_nth low x 0 Hx) as (i & Hi & <-). specialize (H1 i Hi). unfold at_ in H1. lia.
  - now apply in_box_nonneg with up down N low.
  - destruct Hin as (_ & -> & _). assumption.
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
  destruct (box_position_pick _ _ _ _ _ _ Hc Hlp Hprior Hu) as (w & Hw & Hpos).
  destruct (box_position_pick _ _ _ _ _ _ Hc Hlp Hprior Hu') as (w' & Hw' & Hpos').
  replace (box_words N prior low (highs up down N low) weights S) with (count (fun u => S (pick w u)) (words N)).
  replace (box_words N prior low (highs up down N low) weights' S) with (count (fun u => S (pick w' u)) (words N)).
  - now apply box_private with up down low.
  - apply total_words_ext. intros u Hr. now rewrite Hpos'.
  - apply total_words_ext. intros u Hr. now rewrite Hpos.
Qed.
