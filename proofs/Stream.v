(** Streams: the transcript of a user is private for one ε, whatever its length, whatever the data do, and whatever
    rule picks the law of a step within its box.

    [least_ratio], [most_ratio] and [moved] are StreamEngine.box and StreamEngine.moved: R is enclosed by two whole
    numbers in units of 1/one, rounded outwards, and cut to [one, most]. A user is a law for every history; the public
    law of a step, in units that add up to the same for everybody, may depend on the history too. *)

From Coq Require Import ZArith Reals List Lia.
From Sottovoce Require Import Sums Draw Privacy.
Import ListNotations.
Open Scope Z_scope.

Section Stream.
Variables one most unit : Z.

(** V and U: the least and the largest ratio of a step, in whole units. *)
Definition least_ratio (low : Z) : Z := ceil (one * unit) low.
Definition most_ratio (high : Z) : Z := most * unit / high.

(** The bounds after the release of a category with the public weight q and the units w. *)
Definition moved (low high q w : Z) : Z * Z :=
  (Z.max (low * (w / q) / unit) one, Z.min (ceil (high * ceil w q) unit) most).

(** What was released at each step: its public weight and its units. Each lies in the box of the state before. *)
Fixpoint fits (low high : Z) (steps : list (Z * Z)) : Prop :=
  match steps with
  | [] => True
  | (q, w) :: rest =>
      0 < q /\ least_ratio low * q <= w <= most_ratio high * q
      /\ fits (fst (moved low high q w)) (snd (moved low high q w)) rest
  end.

(** The probability of a transcript is the product of its units over N to the power of its length. *)
Fixpoint units_of (steps : list (Z * Z)) : Z :=
  match steps with
  | [] => 1
  | (_, w) :: rest => w * units_of rest
  end.

Fixpoint public_of (steps : list (Z * Z)) : Z :=
  match steps with
  | [] => 1
  | (q, _) :: rest => unit * q * public_of rest
  end.

(** The steps of a transcript, for a user whose law, and a public whose law, depend on all that was released. *)
Fixpoint steps_of (public law : list nat -> list Z) (past transcript : list nat) : list (Z * Z) :=
  match transcript with
  | [] => []
  | i :: rest => (at_ (public past) i, at_ (law past) i) :: steps_of public law (past ++ [i]) rest
  end.

(* ------------------------------------------------------------------ proofs *)

Hypothesis unit_positive : 0 < unit.
Hypothesis one_positive : 0 < one.
Hypothesis one_below : one <= most.

Lemma ceil_above a b : 0 < b -> a <= b * ceil a b.
Proof.
  intros Hb. unfold ceil. pose proof (Z.mul_div_le (- a) b Hb). lia.
Qed.

Lemma step_in_range low high q w :
  0 < q -> one <= low -> 0 < high ->
  least_ratio low * q <= w <= most_ratio high * q ->
  one * (unit * q) <= low * w /\ high * w <= most * (unit * q) /\ 0 <= w.
Proof.
  intros Hq Hlow Hhigh [Hl Hu].
  assert (Hv : one * unit <= low * least_ratio low) by (apply ceil_above; lia).
  assert (Hm : high * most_ratio high <= most * unit) by (apply Z.mul_div_le; lia).
  assert (0 <= least_ratio low) by nia.
  repeat split; nia.
Qed.

Lemma moved_encloses low high q w product scale :
  0 < q -> 0 <= w -> 0 < scale -> one <= low -> 0 < high ->
  one * (unit * q) <= low * w -> high * w <= most * (unit * q) ->
  low * scale <= product -> product <= high * scale ->
  fst (moved low high q w) * (scale * (unit * q)) <= product * w
  /\ product * w <= snd (moved low high q w) * (scale * (unit * q)).
Proof.
  intros Hq Hw Hs Hlow Hhigh Hl Hu Hpl Hpu. unfold moved. simpl.
  assert (Hbelow : low * (w / q) / unit * (unit * q) <= low * w).
  { pose proof (Z.mul_div_le (low * (w / q)) unit unit_positive).
    pose proof (Z.mul_div_le w q Hq). nia. }
  assert (Habove : high * w <= ceil (high * ceil w q) unit * (unit * q)).
  { pose proof (ceil_above (high * ceil w q) unit unit_positive).
    pose proof (ceil_above w q Hq). nia. }
  assert (Hlowest : low * w * scale <= product * w) by nia.
  assert (Hhighest : product * w <= high * w * scale) by nia.
  split.
  - destruct (Z.max_spec (low * (w / q) / unit) one) as [[_ ->] | [_ ->]]; nia.
  - destruct (Z.min_spec (ceil (high * ceil w q) unit) most) as [[_ ->] | [_ ->]]; nia.
Qed.

Lemma moved_in_range low high q w :
  0 < q -> one <= low -> 0 < high <= most ->
  least_ratio low * q <= w <= most_ratio high * q ->
  one <= fst (moved low high q w) /\ snd (moved low high q w) <= most /\ 0 < snd (moved low high q w).
Proof.
  intros Hq Hlow [Hhigh Hm] Hw.
  destruct (step_in_range low high q w Hq Hlow ltac:(lia) Hw) as (Hl & Hu & Hp).
  unfold moved. simpl. repeat split; [lia | lia |].
  assert (0 < w) by nia.
  assert (0 < ceil w q) by (pose proof (ceil_above w q Hq); nia).
  assert (0 < ceil (high * ceil w q) unit)
    by (pose proof (ceil_above (high * ceil w q) unit unit_positive); nia).
  lia.
Qed.

(** The state encloses R = product/scale, which stays between one and most. *)
Lemma bounds_hold steps : forall low high product scale,
  0 < scale -> one <= low -> one <= high <= most ->
  low * scale <= product -> product <= high * scale ->
  one * scale <= product -> product <= most * scale ->
  fits low high steps ->
  one * (scale * public_of steps) <= product * units_of steps <= most * (scale * public_of steps).
Proof.
  induction steps as [|[q w] rest IH]; intros low high product scale Hs Hlow Hhigh Hpl Hpu Hone Hmost Hfits.
  - simpl. lia.
  - simpl in Hfits. destruct Hfits as (Hq & Hw & Hrest).
    destruct (step_in_range low high q w Hq Hlow ltac:(lia) Hw) as (Hl & Hu & Hp).
    destruct (moved_encloses low high q w product scale Hq Hp Hs Hlow ltac:(lia) Hl Hu Hpl Hpu) as [Hle Hue].
    destruct (moved_in_range low high q w Hq Hlow ltac:(lia) Hw) as (Hm1 & Hm2 & Hm3).
    assert (Hscale : 0 < scale * (unit * q)) by nia.
    assert (Hone' : one * (scale * (unit * q)) <= product * w) by nia.
    assert (Hmost' : product * w <= most * (scale * (unit * q))) by nia.
    assert (Hhigh' : one <= snd (moved low high q w)).
    { apply Z.mul_le_mono_pos_r with (p := scale * (unit * q)); [assumption|]. lia. }
    specialize (IH _ _ (product * w) (scale * (unit * q)) Hscale Hm1 (conj Hhigh' Hm2) Hle Hue Hone' Hmost' Hrest).
    simpl. replace (scale * (unit * q * public_of rest)) with (scale * (unit * q) * public_of rest) by ring.
    replace (product * (w * units_of rest)) with (product * w * units_of rest) by ring. exact IH.
Qed.

Lemma public_positive low high steps : fits low high steps -> 0 < public_of steps.
Proof.
  revert low high. induction steps as [|[q w] rest IH]; simpl; intros low high H; [lia|].
  destruct H as (Hq & _ & Hrest). specialize (IH _ _ Hrest). nia.
Qed.

Lemma same_public public law law' transcript : forall past,
  public_of (steps_of public law past transcript) = public_of (steps_of public law' past transcript).
Proof.
  induction transcript as [|i rest IH]; intros past; simpl; [reflexivity|]. now rewrite (IH (past ++ [i])).
Qed.

Variables up down start : Z.
Hypothesis ratio_positive : 0 < down.
Hypothesis most_below : most * down <= one * up.
Hypothesis start_in_range : one <= start <= most.

(** ONE TRANSCRIPT: for two users whose laws stay in their boxes, down·w ≤ up·w′. *)
Theorem transcript_private public law law' transcript :
  fits start start (steps_of public law [] transcript) ->
  fits start start (steps_of public law' [] transcript) ->
  down * units_of (steps_of public law [] transcript) <= up * units_of (steps_of public law' [] transcript).
Proof.
  intros H H'.
  assert (Hb := bounds_hold _ start start start 1 ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) H).
  assert (Hb' := bounds_hold _ start start start 1 ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) H').
  rewrite (same_public public law law') in Hb.
  pose proof (public_positive _ _ _ H') as Hp.
  set (w := units_of (steps_of public law [] transcript)) in *.
  set (w' := units_of (steps_of public law' [] transcript)) in *.
  set (P := public_of (steps_of public law' [] transcript)) in *.
  destruct Hb as [_ Hu]. destruct Hb' as [Hl' _].
  assert (Hs : 0 < start) by lia.
  rewrite Z.mul_1_l in Hu, Hl'.
  assert (Hone : 0 <= one * down) by (apply Z.mul_nonneg_nonneg; lia).
  assert (Hup : 0 <= up) by nia.
  assert (A1 : one * down * (start * w) <= one * down * (most * P)) by (apply Z.mul_le_mono_nonneg_l; assumption).
  assert (A2 : one * P * (most * down) <= one * P * (one * up))
    by (apply Z.mul_le_mono_nonneg_l; [apply Z.mul_nonneg_nonneg; lia | assumption]).
  assert (A3 : one * up * (one * P) <= one * up * (start * w'))
    by (apply Z.mul_le_mono_nonneg_l; [apply Z.mul_nonneg_nonneg; lia | assumption]).
  apply Z.mul_le_mono_pos_l with (p := start * one); [apply Z.mul_pos_pos; lia|].
  replace (start * one * (down * w)) with (one * down * (start * w)) by ring.
  replace (start * one * (up * w')) with (one * up * (start * w')) by ring.
  replace (one * down * (most * P)) with (one * P * (most * down)) in A1 by ring.
  replace (one * up * (one * P)) with (one * P * (one * up)) in A3 by ring.
  lia.
Qed.

(** ANY SET OF TRANSCRIPTS, of any lengths: the theorem of docs/streams.md in whole numbers. *)
Theorem stream_private public law law' (event : list (list nat)) :
  (forall transcript, In transcript event ->
    fits start start (steps_of public law [] transcript) /\ fits start start (steps_of public law' [] transcript)) ->
  down * total (fun transcript => units_of (steps_of public law [] transcript)) event
  <= up * total (fun transcript => units_of (steps_of public law' [] transcript)) event.
Proof.
  induction event as [|transcript rest IH]; intros H; simpl; [lia|].
  assert (Hrest : down * total (fun t => units_of (steps_of public law [] t)) rest
                  <= up * total (fun t => units_of (steps_of public law' [] t)) rest).
  { apply IH. intros t Ht. apply H. now right. }
  destruct (H transcript (or_introl eq_refl)) as [H1 H2].
  pose proof (transcript_private public law law' transcript H1 H2). lia.
Qed.

Lemma units_nonneg steps : forall low high,
  one <= low -> 0 < high <= most -> fits low high steps -> 0 <= units_of steps.
Proof.
  induction steps as [|[q w] rest IH]; simpl; intros low high Hlow Hhigh H; [lia|].
  destruct H as (Hq & Hw & Hrest).
  destruct (step_in_range low high q w Hq Hlow ltac:(lia) Hw) as (_ & _ & Hp).
  destruct (moved_in_range low high q w Hq Hlow Hhigh Hw) as (Hm1 & Hm2 & Hm3).
  apply Z.mul_nonneg_nonneg; [assumption|]. apply (IH _ _ Hm1 (conj Hm3 Hm2) Hrest).
Qed.

(** STREAMS: Pr[S] ≤ e^ε·Pr'[S] for every set S of transcripts of T releases, as an inequality between real numbers. *)
Theorem stream_private_exp (epsilon : R) (N : Z) (T : nat) public law law' (event : list (list nat)) :
  0 < N -> at_most_exp up down epsilon ->
  (forall transcript, In transcript event ->
    fits start start (steps_of public law [] transcript) /\ fits start start (steps_of public law' [] transcript)) ->
  (probability (total (fun transcript => units_of (steps_of public law [] transcript)) event) (N ^ Z.of_nat T)
   <= exp epsilon
      * probability (total (fun transcript => units_of (steps_of public law' [] transcript)) event) (N ^ Z.of_nat T))%R.
Proof.
  intros HN HA H. apply counts_to_probabilities with up down; auto.
  - apply Z.pow_pos_nonneg; lia.
  - apply total_nonneg_in. intros t Ht. apply (units_nonneg _ start start); [lia | lia | apply (proj2 (H t Ht))].
  - now apply stream_private.
Qed.

(** LOSSES THAT DO NOT DEPEND ON THE DATA. Chance picks what a device loses, with the same weights for all users. In
    each case everybody has the public law of that case, for instance the prior once the last release is lost. Then the
    bound holds. It needs no such thing where the public law is the same in all cases: [stream_private], whatever the
    laws depend on. Silence is a shorter transcript. *)
Theorem losses_private {L : Type} (losses : list L) (chance : L -> Z) (public law law' : L -> list nat -> list Z)
    (event : L -> list (list nat)) :
  (forall x, In x losses -> 0 <= chance x) ->
  (forall x transcript, In x losses -> In transcript (event x) ->
    fits start start (steps_of (public x) (law x) [] transcript)
    /\ fits start start (steps_of (public x) (law' x) [] transcript)) ->
  down * total (fun x => chance x * total (fun t => units_of (steps_of (public x) (law x) [] t)) (event x)) losses
  <= up * total (fun x => chance x * total (fun t => units_of (steps_of (public x) (law' x) [] t)) (event x)) losses.
Proof.
  intros Hchance Hfits. rewrite <- !total_scale. apply total_le_in. intros x Hx.
  pose proof (stream_private (public x) (law x) (law' x) (event x) (fun t => Hfits x t Hx)) as H.
  pose proof (Hchance x Hx) as H0.
  set (one_law := total (fun t => units_of (steps_of (public x) (law x) [] t)) (event x)) in *.
  set (other_law := total (fun t => units_of (steps_of (public x) (law' x) [] t)) (event x)) in *.
  replace (down * (chance x * one_law)) with (chance x * (down * one_law)) by ring.
  replace (up * (chance x * other_law)) with (chance x * (up * other_law)) by ring.
  now apply Z.mul_le_mono_nonneg_l.
Qed.

(** The public law itself always fits: whoever lost R may release it for ever, and the state stays. With persistence
    it is the law around the last release: whoever lost that too releases another public law ([losses_private]). *)
Theorem public_always_fits low high q :
  0 < q -> one <= low -> one <= high <= most ->
  least_ratio low * q <= unit * q <= most_ratio high * q
  /\ moved low high q (unit * q) = (Z.max low one, Z.min high most).
Proof.
  intros Hq Hlow Hhigh. unfold least_ratio, most_ratio, moved, ceil.
  assert (Hd : unit * q / q = unit) by (apply Z.div_mul; lia).
  assert (Hc : - (- (unit * q) / q) = unit).
  { replace (- (unit * q)) with ((- unit) * q) by ring. rewrite Z.div_mul; lia. }
  assert (Hv : - (- (one * unit) / low) <= unit).
  { assert (- unit <= - (one * unit) / low); [|lia]. apply Z.div_le_lower_bound; nia. }
  assert (Hu : unit <= most * unit / high) by (apply Z.div_le_lower_bound; nia).
  repeat split; [nia | nia |].
  rewrite Hd, Hc. f_equal.
  - now rewrite Z.div_mul by lia.
  - replace (- (high * unit)) with ((- high) * unit) by ring. rewrite Z.div_mul by lia. f_equal. lia.
Qed.

End Stream.
