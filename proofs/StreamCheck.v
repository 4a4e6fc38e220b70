(** The checker of streams, and what its "yes" means: the start is inside, every state that the update reaches stays
    inside, and whatever rule picks the laws in their boxes, the whole transcript is private for one ε.

    [check_stream] is what a client must do with the integers of a file of the kind stream (docs/format.md) before it
    releases: StreamEngine.check. A file of the kind nearest-stream has the same certificate; its geometry picks a law
    in the box and is no part of it. *)

From Coq Require Import ZArith Reals List Lia Bool.
From Sottovoce Require Import Sums Draw Privacy Exp Stream Checker.
Import ListNotations.
Open Scope Z_scope.

(** The integers of a stream, as its file has them. *)
Record stream := StreamFile {
  stream_bits : Z;
  stream_size : Z;
  stream_epsilon_up : Z; stream_epsilon_down : Z;
  stream_ratio_up : Z; stream_ratio_down : Z;
  stream_keeps_prior : bool;
  stream_prior : list Z;
  stream_start : Z;
  stream_pace : list Z;
  stream_persistence : Z }.

(** StreamEngine.ratio_bits, .total, .prior_total: a law has N units, the prior N/unit. *)
Definition ratio_bits (s : stream) : Z := 22 * stream_bits s / 62.
Definition unit_of (s : stream) : Z := 2 ^ ratio_bits s.
Definition stream_units (s : stream) : Z := 2 ^ stream_bits s.
Definition prior_total (s : stream) : Z := 2 ^ (stream_bits s - ratio_bits s).

(** int.bit_length, for what is not negative. *)
Fixpoint positive_digits (p : positive) : Z :=
  match p with xH => 1 | xO q | xI q => positive_digits q + 1 end.
Definition binary_digits (x : Z) : Z := match x with Zpos p => positive_digits p | _ => 0 end.

(** StreamEngine.one and .most: 1 and A in the units of R. *)
Definition whole_ratio (s : stream) : Z := stream_ratio_up s / stream_ratio_down s.
Definition one_of (s : stream) : Z := 2 ^ (62 - binary_digits (whole_ratio s)).
Definition most_of (s : stream) : Z := stream_ratio_up s * one_of s / stream_ratio_down s.

Definition between (low x high : Z) : bool := (low <=? x) && (x <=? high).

(** StreamEngine.check and .keeps_prior. *)
Definition check_steps (s : stream) : bool :=
  check_prior (prior_total s) (stream_size s) (stream_prior s)
  && (binary_digits (whole_ratio s) <=? 40)
  && between (one_of s) (stream_start s) (most_of s)
  && between 1 (Z.of_nat (length (stream_pace s))) 4096 && forallb (fun x => between 0 x 256) (stream_pace s)
  && between 0 (stream_persistence s) 1023
  && Bool.eqb (stream_keeps_prior s) (stream_persistence s =? 0).

Definition check_stream (s : stream) : bool :=
  check_heading (stream_bits s) (stream_size s) (stream_epsilon_up s) (stream_epsilon_down s)
                (stream_ratio_up s) (stream_ratio_down s)
  && check_steps s
  && check_ratio (stream_epsilon_up s) (stream_epsilon_down s) (stream_ratio_up s) (stream_ratio_down s).

Definition stream_epsilon (s : stream) : R := (IZR (stream_epsilon_up s) / IZR (stream_epsilon_down s))%R.

(** StreamEngine.moved as it is coded, with shifts. *)
Definition moved_coded (s : stream) (low high q w : Z) : Z * Z :=
  let least := w / q in
  let most := - (- w / q) in
  (Z.max (Z.shiftr (low * least) (ratio_bits s)) (one_of s),
   Z.min (- Z.shiftr (- high * most) (ratio_bits s)) (most_of s)).

(** The state after the releases of (public weight, units), one after another. *)
Fixpoint state_after (s : stream) (low high : Z) (steps : list (Z * Z)) : Z * Z :=
  match steps with
  | [] => (low, high)
  | (q, w) :: rest => let (low', high') := moved_coded s low high q w in state_after s low' high' rest
  end.

(** The state of a user who released these categories. *)
Definition state_of (s : stream) (public law : list nat -> list Z) (past : list nat) : Z * Z :=
  state_after s (stream_start s) (stream_start s) (steps_of public law [] past).

(** A history of categories. *)
Definition history (s : stream) (past : list nat) : Prop := Forall (fun i => (i < Z.to_nat (stream_size s))%nat) past.

(** A rule whose laws lie in the box of their state, V·Q ≤ w ≤ U·Q, after every history. Where U is smaller, by the
    pace or by N, the box is smaller, and this holds all the same. *)
Definition in_box (s : stream) (public law : list nat -> list Z) : Prop :=
  forall past i, history s past -> (i < Z.to_nat (stream_size s))%nat ->
  let (low, high) := state_of s public law past in
  let q := at_ (public past) i in
  0 < q /\ least_ratio (one_of s) (unit_of s) low * q <= at_ (law past) i <= most_ratio (most_of s) (unit_of s) high * q.

(** All transcripts of T releases of n categories. *)
Fixpoint transcripts (n T : nat) : list (list nat) :=
  match T with
  | O => [[]]
  | S T' => flat_map (fun i => map (cons i) (transcripts n T')) (seq 0 n)
  end.

(** The units, of N^T, of the transcripts of T releases that are in an event. *)
Definition units_into (s : stream) (public law : list nat -> list Z) (T : nat) (S : list nat -> bool) : Z :=
  total (fun t => units_of (steps_of public law [] t)) (filter S (transcripts (Z.to_nat (stream_size s)) T)).

(** The prior of a step: StreamEngine._before_again and what step_law adds for the last release. *)
Definition persisted (h : Z) (l : list Z) : list Z := map (fun q => Z.max (q * (1024 - h) / 1024) 1) l.
Fixpoint add_at (i : nat) (x : Z) (l : list Z) : list Z :=
  match l, i with
  | [], _ => []
  | y :: rest, O => y + x :: rest
  | y :: rest, S i' => y :: add_at i' x rest
  end.
Definition public_law (s : stream) (past : list nat) : list Z :=
  match rev past with
  | [] => stream_prior s
  | last :: _ =>
      if stream_persistence s =? 0 then stream_prior s
      else let again := persisted (stream_persistence s) (stream_prior s) in add_at last (prior_total s - sum again) again
  end.

(* ------------------------------------------------------------------ proofs *)

(** d binary digits: 2^(d−1) ≤ x < 2^d. *)
Lemma binary_digits_spec x : 0 < x -> 2 ^ (binary_digits x - 1) <= x < 2 ^ binary_digits x.
Proof.
  destruct x as [|p|p]; intros Hx; try lia. cbn [binary_digits]. clear Hx.
  assert (forall p, 1 <= positive_digits p) as Hd by (intros q; induction q; cbn [positive_digits]; lia).
  induction p as [p IH|p IH|]; cbn [positive_digits]; [| |cbn; lia].
  all: specialize (Hd p); replace (positive_digits p + 1 - 1) with (Z.succ (positive_digits p - 1)) by lia;
    rewrite Z.pow_succ_r, Z.pow_add_r by lia; lia.
Qed.

(** What the numbers of a checked file satisfy: the hypotheses of Stream.v. *)
Lemma checked_numbers (s : stream) : check_stream s = true ->
  1 <= stream_bits s /\ 0 < unit_of s /\ 0 < one_of s /\ one_of s <= most_of s /\ 0 < stream_ratio_down s
  /\ most_of s * stream_ratio_down s <= one_of s * stream_ratio_up s.
Proof.
  unfold check_stream, check_heading, check_steps, between. rewrite !andb_true_iff, !Z.ltb_lt, !Z.leb_le.
  intros H. assert (1 <= stream_bits s) as Hb by tauto. assert (0 < stream_ratio_down s) as Hd by tauto.
  assert (binary_digits (whole_ratio s) <= 40) by tauto.
  assert (one_of s <= stream_start s) by tauto. assert (stream_start s <= most_of s) by tauto. clear H.
  assert (0 <= ratio_bits s) by (apply Z.div_pos; lia).
  pose proof (Z.mul_div_le (stream_ratio_up s * one_of s) (stream_ratio_down s) Hd). fold (most_of s) in *.
  repeat split; try lia; apply Z.pow_pos_nonneg; lia.
Qed.

(** THE START of a checked file is inside. *)
Theorem check_stream_start (s : stream) : check_stream s = true -> one_of s <= stream_start s <= most_of s.
Proof.
  unfold check_stream, check_steps, between. rewrite !andb_true_iff, !Z.leb_le. intuition.
Qed.

(** THE UPDATE as it is coded is the one that the theorem of streams is about. *)
Theorem moved_as_coded (s : stream) low high q w : check_stream s = true ->
  moved_coded s low high q w = moved (one_of s) (most_of s) (unit_of s) low high q w.
Proof.
  intros Hc. apply checked_numbers in Hc. unfold moved_coded, moved, ceil, unit_of.
  assert (0 <= ratio_bits s) by (apply Z.div_pos; lia).
  rewrite !Z.shiftr_div_pow2 by assumption. repeat f_equal. ring.
Qed.

(** A state that is inside stays inside, and its two bounds in their order, after every release from its box. *)
Theorem moved_inside (s : stream) low high q w : check_stream s = true ->
  one_of s <= low -> low <= high -> high <= most_of s -> 0 < q ->
  least_ratio (one_of s) (unit_of s) low * q <= w <= most_ratio (most_of s) (unit_of s) high * q ->
  let (low', high') := moved_coded s low high q w in one_of s <= low' /\ low' <= high' /\ high' <= most_of s.
Proof.
  intros Hc H1 H2 H3 Hq Hw. rewrite moved_as_coded by assumption. apply checked_numbers in Hc.
  destruct Hc as (_ & Hu & Ho & Hom & _).
  destruct (step_in_range (one_of s) (most_of s) (unit_of s) Hu Ho low high q w Hq H1 ltac:(lia) Hw) as (Hl & Hh & Hp).
  set (one := one_of s) in *. set (most := most_of s) in *. set (unit := unit_of s) in *.
  unfold moved.
  pose proof (Z.mul_div_le w q Hq) as Hf. pose proof (ceil_above w q Hq) as Hg.
  pose proof (Z.mul_div_le (low * (w / q)) unit Hu) as Hd. pose proof (ceil_above (high * ceil w q) unit Hu) as He.
  assert (0 <= w / q) by (apply Z.div_pos; lia).
  assert (low * (w / q) / unit <= most) as A1.
  { apply Z.div_le_upper_bound; [assumption|]. apply Z.mul_le_mono_pos_r with q; [assumption|]. nia. }
  assert (one <= ceil (high * ceil w q) unit) as A2.
  { apply Z.mul_le_mono_pos_r with (unit * q); [nia|].
    assert (high * w <= high * (q * ceil w q)) by (apply Z.mul_le_mono_nonneg_l; lia). nia. }
  assert (low * (w / q) / unit <= ceil (high * ceil w q) unit) as A3.
  { assert (w / q <= ceil w q) by (apply Z.mul_le_mono_pos_l with q; lia).
    apply Z.mul_le_mono_pos_l with unit; [assumption|].
    assert (low * (w / q) <= high * ceil w q) by (apply Z.mul_le_mono_nonneg; lia). lia. }
  lia.
Qed.

Lemma state_after_inside (s : stream) steps : check_stream s = true -> forall low high,
  one_of s <= low -> low <= high -> high <= most_of s -> fits (one_of s) (most_of s) (unit_of s) low high steps ->
  let (low', high') := state_after s low high steps in one_of s <= low' /\ low' <= high' /\ high' <= most_of s.
Proof.
  intros Hc. induction steps as [|[q w] rest IH]; intros low high H1 H2 H3 Hf; cbn [state_after fits] in *; [lia|].
  destruct Hf as (Hq & Hw & Hrest). pose proof (moved_inside s low high q w Hc H1 H2 H3 Hq Hw) as Hm.
  rewrite <- moved_as_coded in Hrest by assumption. destruct (moved_coded s low high q w) as [low' high'].
  destruct Hm as (M1 & M2 & M3). now apply IH.
Qed.

Lemma steps_of_app public law t1 : forall past t2,
  steps_of public law past (t1 ++ t2) = steps_of public law past t1 ++ steps_of public law (past ++ t1) t2.
Proof.
  induction t1 as [|i t1 IH]; intros past t2; cbn [app steps_of]; [now rewrite app_nil_r|].
  rewrite IH, <- app_assoc. reflexivity.
Qed.

Lemma state_after_app s a : forall low high b,
  state_after s low high (a ++ b) = let (low', high') := state_after s low high a in state_after s low' high' b.
Proof.
  induction a as [|[q w] a IH]; intros low high b; cbn [app state_after]; [reflexivity|].
  destruct (moved_coded s low high q w). apply IH.
Qed.

(** A rule in its boxes takes only steps that fit. *)
Lemma in_box_fits (s : stream) public law : check_stream s = true -> in_box s public law ->
  forall transcript past, history s past -> history s transcript ->
  fits (one_of s) (most_of s) (unit_of s) (fst (state_of s public law past)) (snd (state_of s public law past))
       (steps_of public law past transcript).
Proof.
  intros Hc Hbox. induction transcript as [|i rest IH]; intros past Hp Ht; cbn [steps_of fits]; [exact I|].
  inversion Ht as [|? ? Hi Hrest]; subst. pose proof (Hbox past i Hp Hi) as H.
  assert (history s (past ++ [i])) as Hpast by (apply Forall_app; split; [assumption|now constructor]).
  specialize (IH (past ++ [i]) Hpast Hrest). unfold state_of in IH |- *. unfold state_of in H.
  rewrite steps_of_app, state_after_app in IH.
  destruct (state_after s (stream_start s) (stream_start s) (steps_of public law [] past)) as [low high].
  cbn [app steps_of state_after fst snd] in IH |- *.
  rewrite moved_as_coded in IH by assumption.
  destruct (moved (one_of s) (most_of s) (unit_of s) low high (at_ (public past) i) (at_ (law past) i)) as [low' high'].
  destruct H as (H1 & H2). split; [assumption|]. split; assumption.
Qed.

(** EVERY STATE of a user of a checked file is inside, whatever was released. *)
Theorem check_stream_inside (s : stream) : check_stream s = true -> forall public law, in_box s public law ->
  forall past, history s past ->
  let (low, high) := state_of s public law past in one_of s <= low /\ low <= high /\ high <= most_of s.
Proof.
  intros Hc public law Hbox past Hp. pose proof (check_stream_start s Hc) as Hs.
  apply state_after_inside; [assumption|lia|lia|lia|].
  apply (in_box_fits s public law Hc Hbox past []); [constructor|assumption].
Qed.

Lemma transcripts_are (n T : nat) t : In t (transcripts n T) -> Forall (fun i => (i < n)%nat) t.
Proof.
  revert t. induction T as [|T IH]; intros t H; cbn [transcripts] in H.
  - destruct H as [<-|[]]. constructor.
  - apply in_flat_map in H. destruct H as (i & Hi & H). apply in_map_iff in H. destruct H as (t' & <- & H).
    apply in_seq in Hi. constructor; [lia|]. now apply IH.
Qed.

(** STREAMS. If the checker says yes, then for every two users, whatever rule picks their laws in the boxes of their
    states, whatever the public laws depend on, every number T of releases and every event S of transcripts:
    Pr[S] ≤ e^ε·Pr'[S]. *)
Theorem check_stream_sound (s : stream) : check_stream s = true ->
  forall public law law', in_box s public law -> in_box s public law' -> forall (T : nat) (S : list nat -> bool),
  (probability (units_into s public law T S) (stream_units s ^ Z.of_nat T)
   <= exp (stream_epsilon s) * probability (units_into s public law' T S) (stream_units s ^ Z.of_nat T))%R.
Proof.
  intros Hc public law law' Hbox Hbox' T S.
  destruct (checked_numbers s Hc) as (Hb & Hu & Ho & Hom & Hd & Hm). pose proof (check_stream_start s Hc) as Hs.
  pose proof Hc as Hr. unfold check_stream in Hr. rewrite !andb_true_iff in Hr. destruct Hr as [_ Hr].
  apply check_ratio_sound in Hr. destruct Hr as [HA _]. fold (stream_epsilon s) in HA. unfold units_into.
  apply (stream_private_exp (one_of s) (most_of s) (unit_of s)) with
    (up := stream_ratio_up s) (down := stream_ratio_down s) (start := stream_start s); auto.
  - apply Z.pow_pos_nonneg; lia.
  - intros t Ht. apply filter_In in Ht. destruct Ht as [Ht _]. apply transcripts_are in Ht.
    split; apply (in_box_fits s public) with (past := []); auto; constructor.
Qed.

Lemma total_flat_map {A B : Type} (f : B -> Z) (g : A -> list B) l :
  total f (flat_map g l) = total (fun x => total f (g x)) l.
Proof. induction l as [|x l IH]; cbn [flat_map total]; [reflexivity|]. now rewrite total_app, IH. Qed.

(** SOMETHING IS RELEASED. Where every law adds up to N, the transcripts of T releases have N^T units in all. *)
Theorem transcripts_add_up (s : stream) public law :
  (forall past, history s past -> total (at_ (law past)) (seq 0 (Z.to_nat (stream_size s))) = stream_units s) ->
  forall T, units_into s public law T (fun _ => true) = stream_units s ^ Z.of_nat T.
Proof.
  intros Hsum T. unfold units_into. set (n := Z.to_nat (stream_size s)) in *.
  assert (forall A (l : list A), filter (fun _ => true) l = l) as Hall
    by (intros A l; induction l; cbn [filter]; congruence).
  rewrite Hall. enough (forall past, history s past ->
    total (fun t => units_of (steps_of public law past t)) (transcripts n T) = stream_units s ^ Z.of_nat T)
    as H by (apply H; constructor).
  induction T as [|T IH]; intros past Hp; cbn [transcripts]; [reflexivity|].
  rewrite total_flat_map. rewrite (total_ext_in _ (fun i => at_ (law past) i * stream_units s ^ Z.of_nat T)).
  - rewrite total_scale_right, Hsum by assumption. rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia. reflexivity.
  - intros i Hi. apply in_seq in Hi. rewrite total_map. cbn [steps_of units_of]. rewrite total_scale, IH; [reflexivity|].
    apply Forall_app. split; [assumption|]. constructor; [unfold n in *; lia|constructor].
Qed.

Lemma add_at_sum i x l : (i < length l)%nat -> sum (add_at i x l) = sum l + x.
Proof.
  revert i. induction l as [|y l IH]; intros [|i] H; cbn [length add_at sum] in *; try lia. rewrite IH; lia.
Qed.

Lemma add_at_above i x l : 0 <= x -> Forall (fun y => 1 <= y) l -> Forall (fun y => 1 <= y) (add_at i x l).
Proof.
  intros Hx. revert i. induction l as [|y l IH]; intros [|i] H; cbn [add_at]; auto;
    inversion H; subst; constructor; auto; lia.
Qed.

Lemma persisted_below h l : 0 <= h < 1024 -> Forall (fun y => 1 <= y) l -> sum (persisted h l) <= sum l.
Proof.
  intros Hh H. induction H as [|y l Hy Hl IH]; cbn [persisted map sum]; [lia|]. fold (persisted h l).
  assert (y * (1024 - h) / 1024 <= y) by (apply Z.div_le_upper_bound; nia). lia.
Qed.

(** THE PRIOR OF A STEP of a checked file, with persistence or without, is a prior again: at least 1 for every
    category, and as many units in all. *)
Theorem public_law_right (s : stream) : check_stream s = true -> forall past, history s past ->
  Forall (fun q => 1 <= q) (public_law s past) /\ sum (public_law s past) = prior_total s.
Proof.
  unfold check_stream, check_steps, check_prior, between. rewrite !andb_true_iff, !Z.leb_le, Z.eqb_eq.
  intros H past Hp. assert (has_size (stream_size s) (stream_prior s) = true) as Hn by tauto.
  assert (forallb (fun x => 1 <=? x) (stream_prior s) = true) as Hq by tauto.
  assert (sum (stream_prior s) = prior_total s) as Hsum by tauto.
  assert (0 <= stream_persistence s <= 1023) as Hh by tauto. clear H. apply has_size_length in Hn.
  assert (Forall (fun q => 1 <= q) (stream_prior s)) as H1.
  { apply Forall_forall. intros x Hx. rewrite forallb_forall in Hq. apply Z.leb_le. auto. }
  unfold public_law. destruct (rev past) as [|last before] eqn:Hr; [now split|].
  destruct (stream_persistence s =? 0); [now split|].
  assert (last < length (stream_prior s))%nat as Hlast.
  { assert (In last past) as Hin by (apply in_rev; rewrite Hr; now left).
    unfold history in Hp. rewrite Forall_forall in Hp. specialize (Hp last Hin). cbv beta in Hp. lia. }
  pose proof (persisted_below (stream_persistence s) (stream_prior s) ltac:(lia) H1) as Hb. split.
  - apply add_at_above; [lia|]. apply Forall_forall. intros x Hx. apply in_map_iff in Hx. destruct Hx as (q & <- & _). lia.
  - rewrite add_at_sum; [lia|]. unfold persisted. now rewrite map_length.
Qed.
