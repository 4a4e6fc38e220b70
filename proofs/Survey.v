(** Surveys: if its check passes, every two users are ε-private, for every event.

    [draw_survey] is SurveyEngine.position after the choice of the record: a question that does not depend on the
    user, and randomized response on the right answer to it. Only the response is looked at for privacy; that the
    base is a prime makes estimates possible and is checked besides. *)

From Coq Require Import ZArith Reals List Lia Bool.
From Sottovoce Require Import Sums Draw Privacy Response.
Import ListNotations.
Open Scope Z_scope.

(** d, the least number of digits with f^d ≥ n, and σ = 1 + f + … + f^(d−1). *)
Fixpoint digits_from (fuel : nat) (base power n : Z) : nat :=
  match fuel with
  | O => 1%nat
  | S rest => if n <=? power then 1%nat else S (digits_from rest base (power * base) n)
  end.
Definition digits (base n : Z) : nat := digits_from 64 base base n.

Fixpoint questions_of (digits : nat) (base : Z) : Z :=
  match digits with O => 0 | S rest => 1 + base * questions_of rest base end.
Definition questions (base n : Z) : Z := questions_of (digits base n) base.

(** The vector of a question: those with k digits behind their leading 1 begin at `first`, and power = f^k. *)
Fixpoint vector_from (fuel : nat) (base first power question : Z) : Z :=
  match fuel with
  | O => 0
  | S rest =>
      if question <? first + power then power + question - first
      else vector_from rest base (first + power) (power * base) question
  end.
Definition vector (base n question : Z) : Z := vector_from (digits base n) base 0 1 question.

(** The sum of the products of the digits. *)
Fixpoint dot (digits : nat) (base v w : Z) : Z :=
  match digits with
  | O => 0
  | S rest => (v mod base) * (w mod base) + dot rest base (v / base) (w / base)
  end.
Definition right_answer (base n question : Z) (place : nat) : nat :=
  Z.to_nat (dot (digits base n) base (vector base n question) (Z.of_nat place) mod base).

(** The number of the report: the question is chosen by one word, the answer by another. *)
Definition draw_survey (N base n own other : Z) (place : nat) (asked u : Z) : nat :=
  let question := asked * questions base n / N in
  let value := draw_response N own other (Z.to_nat base) (Some (right_answer base n question place)) u in
  Z.to_nat (question * base + Z.of_nat value).

(** How many of the N³ tapes lead a user with this choice of a record into S. *)
Definition survey_tapes (N base n own other : Z) (choice : Z -> nat) (S : nat -> bool) : Z :=
  total (fun word => total (fun asked => count (fun u => S (draw_survey N base n own other (choice word) asked u))
                                               (words N)) (words N)) (words N).

(** A prime below 2^16: no divisor from 2 to 255 below it. *)
Definition is_small_prime (base : Z) : bool :=
  (2 <=? base) && (base <? 65536)
  && forallb (fun k => let f := Z.of_nat k in (base <=? f) || negb (base mod f =? 0)) (seq 2 254).

Definition check_survey (up down N base n own other : Z) : bool :=
  is_small_prime base && (questions base n * base <? 2 ^ 53) && check_response up down N own other (Z.to_nat base).

(* ------------------------------------------------------------------ proofs *)

Lemma check_survey_true up down N base n own other : check_survey up down N base n own other = true ->
  2 <= base /\ check_response up down N own other (Z.to_nat base) = true.
Proof.
  unfold check_survey, is_small_prime. rewrite !andb_true_iff, Z.leb_le. intros [[[[H _] _] _] Hc]. now split.
Qed.

Lemma right_answer_ok base n question place : 2 <= base ->
  slot_ok (Z.to_nat base) (Some (right_answer base n question place)).
Proof.
  intros H. simpl. unfold right_answer.
  pose proof (Z.mod_pos_bound (dot (digits base n) base (vector base n question) (Z.of_nat place)) base ltac:(lia)).
  lia.
Qed.

(** Every two records: for each question the response is private, and the question is the same for both. *)
Theorem surveys_private up down N base n own other place place' (S : nat -> bool) :
  check_survey up down N base n own other = true ->
  down * total (fun asked => count (fun u => S (draw_survey N base n own other place asked u)) (words N)) (words N)
  <= up * total (fun asked => count (fun u => S (draw_survey N base n own other place' asked u)) (words N)) (words N).
Proof.
  intros Hcheck. apply check_survey_true in Hcheck. destruct Hcheck as [Hb Hc].
  rewrite <- !total_scale. apply total_le_in. intros asked _.
  set (question := asked * questions base n / N).
  exact (responses_private up down N own other (Z.to_nat base) (Some (right_answer base n question place))
    (Some (right_answer base n question place')) (fun j => S (Z.to_nat (question * base + Z.of_nat j))) Hc
    (right_answer_ok base n question place Hb) (right_answer_ok base n question place' Hb)).
Qed.

(** SURVEYS: Pr[S] ≤ e^ε·Pr'[S] for every two users and every event. *)
Theorem survey_private up down N (epsilon : R) base n own other (choice choice' : Z -> nat) (S : nat -> bool) :
  at_most_exp up down epsilon -> check_survey up down N base n own other = true ->
  (probability (survey_tapes N base n own other choice S) (N * N * N)
   <= exp epsilon * probability (survey_tapes N base n own other choice' S) (N * N * N))%R.
Proof.
  intros HA Hcheck. pose proof (check_survey_true _ _ _ _ _ _ _ Hcheck) as [_ Hc].
  pose proof (check_response_true _ _ _ _ _ _ Hc) as (_ & HN & _).
  apply counts_to_probabilities with up down; auto.
  - nia.
  - apply total_nonneg_in. intros w _. apply total_nonneg_in. intros a _. apply total_nonneg_in. intros u _.
    unfold one. destruct (S _); lia.
  - apply (mixtures_private N up down (fun _ : nat => True)
      (fun place => total (fun asked => count (fun u => S (draw_survey N base n own other place asked u)) (words N))
                          (words N))); auto.
    intros place place' _ _. now apply surveys_private.
Qed.

Lemma questions_of_nonneg d base : 2 <= base -> 0 <= questions_of d base.
Proof. intros H. induction d as [|d IH]; cbn [questions_of]; nia. Qed.

Lemma digits_pos fuel base power n : exists d, digits_from fuel base power n = S d.
Proof. destruct fuel; cbn [digits_from]; [now exists 0%nat|]. destruct (n <=? power); eexists; reflexivity. Qed.

Lemma questions_pos base n : 2 <= base -> 0 < questions base n.
Proof.
  intros H. unfold questions, digits. destruct (digits_pos 64 base base n) as [d ->]. cbn [questions_of].
  pose proof (questions_of_nonneg d base H). nia.
Qed.

(** A REPORT IS A NUMBER below σ·f, whatever the tape. *)
Theorem survey_releases up down N base n own other place asked u :
  check_survey up down N base n own other = true -> 0 <= asked < N -> 0 <= u < N ->
  (draw_survey N base n own other place asked u < Z.to_nat (questions base n * base))%nat.
Proof.
  intros Hcheck Ha Hu. apply check_survey_true in Hcheck. destruct Hcheck as [Hb Hc]. unfold draw_survey.
  set (question := asked * questions base n / N). set (slot := right_answer base n question place).
  pose proof (right_answer_ok base n question place Hb) as Hslot. fold slot in Hslot. simpl in Hslot.
  pose proof (questions_pos base n Hb) as Hpos.
  assert (0 <= question < questions base n) as Hquestion.
  { unfold question. split; [apply Z.div_pos; nia|apply Z.div_lt_upper_bound; nia]. }
  assert (draw_response N own other (Z.to_nat base) (Some slot) u < Z.to_nat base)%nat as Hv.
  { apply check_response_true in Hc. destruct Hc as (_ & HN & Hk & Hsum & Hown & Hother & _).
    cbn [draw_response]. destruct (Z.ltb_spec u own); [assumption|].
    assert (1 <= other) as Ho by (apply Hother; lia).
    assert (0 <= (u - own) / other < Z.of_nat (Z.to_nat base) - 1) as Hstep
      by (split; [apply Z.div_pos; lia|apply Z.div_lt_upper_bound; nia]).
    destruct (Nat.leb_spec slot (Z.to_nat ((u - own) / other))); lia. }
  apply Z2Nat.inj_lt; nia.
Qed.
