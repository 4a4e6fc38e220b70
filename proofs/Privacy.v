(** From whole numbers to probabilities.

    A release reads d words below N; an event happens for c of the N^d equally likely tapes, so that its
    probability is c/N^d. If down·c ≤ up·c' for two users, and A = up/down ≤ e^ε, then Pr[S] ≤ e^ε·Pr'[S]. *)

From Coq Require Import ZArith Reals Lra Lia List.
From Sottovoce Require Import Sums.
Open Scope R_scope.

(** The probability of what happens for c of N equally likely tapes. *)
Definition probability (c N : Z) : R := IZR c / IZR N.

(** A = up/down is at most e^ε. *)
Definition at_most_exp (up down : Z) (epsilon : R) : Prop := (0 < down)%Z /\ IZR up / IZR down <= exp epsilon.

Theorem counts_to_probabilities (c c' N up down : Z) (epsilon : R) :
  (0 < N)%Z -> (0 <= c')%Z -> at_most_exp up down epsilon -> (down * c <= up * c')%Z ->
  probability c N <= exp epsilon * probability c' N.
Proof.
  intros HN Hc' [Hdown HA] H. unfold probability, Rdiv. rewrite <- Rmult_assoc.
  assert (0 < IZR N) by now apply IZR_lt.
  assert (0 < IZR down) by now apply IZR_lt.
  assert (0 <= IZR c') by now apply IZR_le.
  apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
  apply IZR_le in H. rewrite !mult_IZR in H.
  apply Rle_trans with (IZR up / IZR down * IZR c').
  - apply Rmult_le_reg_l with (IZR down); [assumption|].
    replace (IZR down * (IZR up / IZR down * IZR c')) with (IZR up * IZR c') by (field; lra).
    assumption.
  - now apply Rmult_le_compat_r.
Qed.

(** MIXTURES. A word chooses for each user one of several laws (a record, and its row). If every two laws satisfy
    the inequality, every two mixtures do, whatever the choice. *)
Theorem mixtures_private {A : Type} (N up down : Z) (ok : A -> Prop) (F : A -> Z) (choice choice' : Z -> A) :
  (0 < N)%Z -> (forall a a', ok a -> ok a' -> (down * F a <= up * F a')%Z) ->
  (forall word, (0 <= word < N)%Z -> ok (choice word)) -> (forall word, (0 <= word < N)%Z -> ok (choice' word)) ->
  (down * total (fun word => F (choice word)) (words N) <= up * total (fun word => F (choice' word)) (words N))%Z.
Proof.
  intros HN HF Hc Hc'. apply Z.mul_le_mono_pos_l with N; [assumption|].
  transitivity (total (fun w => total (fun _ : Z => (down * F (choice w))%Z) (words N)) (words N)).
  - rewrite (total_ext (fun w => total (fun _ : Z => (down * F (choice w))%Z) (words N))
                       (fun w => (N * down * F (choice w))%Z)).
    + rewrite total_scale. lia.
    + intros w. rewrite total_const, length_words by lia. lia.
  - transitivity (total (fun _ : Z => total (fun w' => (up * F (choice' w'))%Z) (words N)) (words N)).
    + apply total_le_in. intros w Hw. apply total_le_in. intros w' Hw'.
      apply in_words in Hw, Hw'. apply HF; auto.
    + rewrite total_const, total_scale, length_words by lia. lia.
Qed.
