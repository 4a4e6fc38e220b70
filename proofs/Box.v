(** The box: if its check passes, every two laws in it are ε-private, for every event.

    [check_box] is exact.certified_box with BoxEngine.read's A ≥ 1; [highs] are its caps. *)

From Coq Require Import ZArith List Lia Bool.
From Sottovoce Require Import Sums.
Import ListNotations.
Open Scope Z_scope.

(** high_i = min(⌊A·low_i⌋, N), A = up/down. *)
Definition highs (up down N : Z) (low : list Z) : list Z := map (fun l => Z.min (up * l / down) N) low.

(** A ≥ 1, every low_i ≥ 1, Σlow ≤ N ≤ Σhigh. *)
Definition check_box (up down N : Z) (low : list Z) : bool :=
  (0 <? down) && (down <=? up) && forallb (fun l => 1 <=? l) low
  && (sum low <=? N) && (N <=? sum (highs up down N low)).

(** A law of N units between low and high. *)
Definition in_box (N : Z) (low high w : list Z) : Prop :=
  length w = length low /\ sum w = N
  /\ forall i, (i < length low)%nat -> at_ low i <= at_ w i <= at_ high i.

(** How many units of a law fall into an event. *)
Definition units_in (S : nat -> bool) (w : list Z) : Z :=
  total (fun i => at_ w i * one (S i)) (seq 0 (length w)).

(* ------------------------------------------------------------------ proofs *)

Lemma check_box_true up down N low : check_box up down N low = true ->
  0 < down /\ down <= up /\ (forall i, (i < length low)%nat -> 1 <= at_ low i)
  /\ sum low <= N <= sum (highs up down N low).
Proof.
  unfold check_box. rewrite !andb_true_iff, Z.ltb_lt, !Z.leb_le, forallb_forall.
  intros [[[[Hd Hu] Hl] HN] HN']. repeat split; auto.
  intros i Hi. apply Z.leb_le. apply Hl. now apply at_in.
Qed.

Lemma highs_at up down N low i : (i < length low)%nat ->
  at_ (highs up down N low) i = Z.min (up * at_ low i / down) N.
Proof.
  intros Hi. unfold highs, at_.
  rewrite (nth_indep _ 0 (Z.min (up * 0 / down) N)) by now rewrite map_length.
  apply (map_nth (fun l => Z.min (up * l / down) N)).
Qed.

Lemma highs_ratio up down N low i : 0 < down -> (i < length low)%nat ->
  down * at_ (highs up down N low) i <= up * at_ low i.
Proof.
  intros Hd Hi. rewrite highs_at by assumption.
  pose proof (Z.mul_div_le (up * at_ low i) down Hd). nia.
Qed.

(** A box that passes has room: low ≤ high everywhere. *)
Lemma low_le_high up down N low i : check_box up down N low = true -> (i < length low)%nat ->
  at_ low i <= at_ (highs up down N low) i.
Proof.
  intros H Hi. apply check_box_true in H. destruct H as (Hd & Hu & Hl & HN).
  rewrite highs_at by assumption. specialize (Hl i Hi) as Hli.
  assert (at_ low i <= N).
  { assert (forall l, (forall j, (j < length l)%nat -> 1 <= at_ l j) -> forall j, (j < length l)%nat ->
      at_ l j <= sum l) as Hsum.
    { clear. unfold at_. induction l as [|x l IH]; intros H j Hj; simpl in Hj; [lia|].
      assert (forall j, (j < length l)%nat -> 1 <= nth j l 0) as H' by (intros k Hk; apply (H (S k)); simpl; lia).
      assert (0 <= sum l) by (apply sum_nonneg, Forall_forall; intros y Hy;
        destruct (In_nth l y 0 Hy) as (k & Hk & <-); specialize (H' k Hk); lia).
      specialize (H 0%nat ltac:(simpl; lia)). simpl in H.
      destruct j as [|j]; simpl; [lia|]. specialize (IH H' j ltac:(lia)). lia. }
    specialize (Hsum low Hl i Hi). lia. }
  apply Z.min_glb; [|assumption]. apply Z.div_le_lower_bound; nia.
Qed.

(** THE BOX, in whole numbers: down·w(S) ≤ up·w'(S) for every event S. *)
Theorem box_private_units (up down N : Z) (low w w' : list Z) (S : nat -> bool) :
  check_box up down N low = true ->
  in_box N low (highs up down N low) w -> in_box N low (highs up down N low) w' ->
  down * units_in S w <= up * units_in S w'.
Proof.
  intros Hc (Hl & _ & Hw) (Hl' & _ & Hw'). unfold units_in. rewrite Hl, Hl'.
  apply check_box_true in Hc. destruct Hc as (Hd & Hu & _ & _).
  rewrite <- !total_scale. apply total_le_in. intros i Hi. apply in_seq in Hi.
  specialize (Hw i ltac:(lia)). specialize (Hw' i ltac:(lia)).
  pose proof (highs_ratio up down N low i Hd ltac:(lia)).
  destruct (S i); simpl; nia.
Qed.
