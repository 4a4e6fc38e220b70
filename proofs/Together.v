(** From file to budget: if the checker says yes to every mechanism that is used, and the ledger charges before it
    answers and refuses what exceeds the budget, then everything that leaves for a user is private for the budget.

    A plan is what may be asked of one user: the next question may depend on all answers so far, and on whether one
    was refused. [answered] is the path of a question: load (the checker), Ledger.charge, then the draw. *)

From Coq Require Import ZArith Reals List Lia Lra Bool.
From Sottovoce Require Import Sums Draw Privacy Exp Compose Checker.
Import ListNotations.
Open Scope Z_scope.

Inductive plan :=
  | Stop
  | Ask (m : mechanism) (next : nat -> plan) (refused : plan).

(** The records of a user, which may change with time: after these answers, for the categories of this mechanism. *)
Definition data := list nat -> mechanism -> list (nat * Z).

(** Ledger.charge, in micro-ε: what the release costs, and whether the user can pay for it. *)
Definition cost (m : mechanism) : Z := charge_of (epsilon_up m) (epsilon_down m).
Definition can_pay (budget spent : Z) (m : mechanism) : bool := spent + cost m <=? budget.

(** The probability that a user releases an answer. *)
Definition law_of (m : mechanism) (weights : list (nat * Z)) (i : nat) : R :=
  probability (tapes_into m weights (Nat.eqb i)) (all_tapes m).

(** What leaves, for a user and for another: a file that the checker refuses is not used, what cannot be paid is not
    drawn, and what is drawn has been charged before. *)
Fixpoint answered (budget spent : Z) (user other : data) (past : list nat) (p : plan) : course :=
  match p with
  | Stop => Done
  | Ask m next refused =>
      if check m && can_pay budget spent m
      then Release (epsilon_up m) (epsilon_down m) (Z.to_nat (answers m))
             (law_of m (user past m)) (law_of m (other past m))
             (fun i => answered budget (spent + cost m) user other (past ++ [i]) (next i))
      else answered budget spent user other past refused
  end.

(** A user with records, whatever is asked: without any, the release path takes those of the public. *)
Definition has_data (user : data) : Prop := forall past m, check m = true -> has_records m (user past m).

(* ------------------------------------------------------------------ proofs *)

Lemma tapes_into_nonneg m weights S : 0 <= tapes_into m weights S.
Proof.
  rewrite tapes_into_counts. cbv zeta. destruct (body m); repeat (apply total_nonneg_in; intros);
    unfold one; destruct (match _ with Some i => S i | None => false end); lia.
Qed.

Lemma checked_heading m : check m = true -> 1 <= bits m /\ 0 < epsilon_up m /\ 0 < epsilon_down m.
Proof. unfold check, check_heading. rewrite !andb_true_iff, !Z.ltb_lt, !Z.leb_le. intuition. Qed.

Lemma all_tapes_positive m : check m = true -> 0 < all_tapes m.
Proof.
  intros Hc. apply checked_heading in Hc. assert (0 < units m) by (apply Z.pow_pos_nonneg; lia).
  unfold all_tapes. destruct (body m); nia.
Qed.

(** What is drawn is a law: its probabilities add up to 1. *)
Lemma sum_below_probability m n weights : all_tapes m <> 0 ->
  sum_below n (law_of m weights) = probability (tapes_into m weights (fun i => (i <? n)%nat)) (all_tapes m).
Proof.
  intros HN. assert (IZR (all_tapes m) <> 0%R) by now apply not_0_IZR. rewrite tapes_into_counts. cbv zeta.
  assert (forall A (f : A -> option nat) l k,
    count (fun x => match f x with Some i => (i <? S k)%nat | None => false end) l
    = count (fun x => match f x with Some i => (i <? k)%nat | None => false end) l
      + count (fun x => match f x with Some i => Nat.eqb k i | None => false end) l) as Hcount.
  { intros A f l k. unfold count. rewrite <- total_plus. apply total_ext. intros x. destruct (f x) as [i|]; [|reflexivity].
    destruct (Nat.ltb_spec i (S k)), (Nat.ltb_spec i k), (Nat.eqb_spec k i); unfold one; lia. }
  induction n as [|n IH].
  - cbn [sum_below]. unfold probability.
    match goal with |- _ = (IZR ?c / _)%R => replace c with 0; [unfold Rdiv; ring|] end.
    destruct (body m); symmetry; unfold count.
    + rewrite (total_ext _ (fun _ => 0)), total_const; [lia|]. intros x. now destruct (answer _ _ _ _ _).
    + rewrite (total_ext _ (fun _ => 0)), total_const; [lia|]. intros x.
      rewrite (total_ext _ (fun _ => 0)), total_const; [lia|]. intros y.
      rewrite (total_ext _ (fun _ => 0)), total_const; [lia|]. intros z. now destruct (answer _ _ _ _ _).
    + rewrite (total_ext _ (fun _ => 0)), total_const; [lia|]. intros x.
      rewrite (total_ext _ (fun _ => 0)), total_const; [lia|]. intros y. now destruct (answer _ _ _ _ _).
    + rewrite (total_ext _ (fun _ => 0)), total_const; [lia|]. intros x.
      rewrite (total_ext _ (fun _ => 0)), total_const; [lia|]. intros y.
      rewrite (total_ext _ (fun _ => 0)), total_const; [lia|]. intros z. now destruct (answer _ _ _ _ _).
  - cbn [sum_below]. rewrite IH. unfold law_of, probability. rewrite (tapes_into_counts m weights (Nat.eqb n)). cbv zeta.
    unfold Rdiv. rewrite <- Rmult_plus_distr_r, <- plus_IZR. f_equal. f_equal.
    destruct (body m).
    + now rewrite Hcount.
    + rewrite <- total_plus. apply total_ext. intros x. rewrite <- total_plus. apply total_ext. intros y. now rewrite Hcount.
    + rewrite <- total_plus. apply total_ext. intros x. now rewrite Hcount.
    + rewrite <- total_plus. apply total_ext. intros x. rewrite <- total_plus. apply total_ext. intros y. now rewrite Hcount.
Qed.

Theorem law_adds_up m weights : check m = true -> has_records m weights ->
  sum_below (Z.to_nat (answers m)) (law_of m weights) = 1%R.
Proof.
  intros Hc Hr. pose proof (all_tapes_positive m Hc) as HN. rewrite sum_below_probability by lia.
  rewrite check_releases by assumption. unfold probability, Rdiv. apply Rinv_r. apply not_0_IZR. lia.
Qed.

(** One release of a checked file: every answer is at most e^ε times as likely for one user as for another. *)
Theorem checked_release m weights weights' : check m = true -> has_records m weights -> has_records m weights' ->
  forall i, (0 <= law_of m weights i <= exp (IZR (epsilon_up m) / IZR (epsilon_down m)) * law_of m weights' i)%R.
Proof.
  intros Hc H H' i. split; [|now apply check_sound].
  pose proof (tapes_into_nonneg m weights (Nat.eqb i)) as H1. pose proof (all_tapes_positive m Hc) as H2.
  apply IZR_le in H1. apply IZR_lt in H2. unfold law_of, probability.
  apply Rmult_le_pos; [assumption|]. left. now apply Rinv_0_lt_compat.
Qed.

Lemma answered_private budget user other p : has_data user -> has_data other ->
  forall spent past, each_private (answered budget spent user other past p).
Proof.
  intros Hu Ho. induction p as [|m next IH refused IHr]; intros spent past; cbn [answered]; [exact I|].
  destruct (check m) eqn:Hc; cbn [andb]; [|apply IHr]. destruct (can_pay budget spent m); [|apply IHr].
  pose proof (checked_heading m Hc). cbn [each_private]. split; [lia|]. split; [lia|].
  split; [|intros i; apply IH]. intros i _. apply checked_release; auto.
Qed.

(** The ledger's rule keeps the charges of every path within the budget. *)
Theorem answered_within_budget budget user other p : forall spent past, spent <= budget ->
  within_budget (budget - spent) (answered budget spent user other past p).
Proof.
  induction p as [|m next IH refused IHr]; intros spent past Hs; cbn [answered]; [cbn [within_budget]; lia|].
  destruct (check m) eqn:Hc; cbn [andb]; [|now apply IHr].
  unfold can_pay. destruct (Z.leb_spec (spent + cost m) budget); [|now apply IHr].
  cbn [within_budget]. fold (cost m). split; [lia|]. intros i _.
  replace (budget - spent - cost m) with (budget - (spent + cost m)) by lia. apply IH. lia.
Qed.

(** FROM FILE TO BUDGET. Whatever is asked through the checker and the ledger, in whatever order, and whatever the
    data of two users are: all that leaves together is (budget/10⁶)-private. *)
Theorem everything_together (budget : Z) (user other : data) (p : plan) : 0 <= budget ->
  has_data user -> has_data other -> forall event,
  (chance (answered budget 0 user other [] p) event
   <= exp (IZR budget / IZR MICRO) * chance_of_other (answered budget 0 user other [] p) event)%R.
Proof.
  intros Hb Hu Ho. apply composition; [now apply answered_private|].
  replace budget with (budget - 0) at 1 by lia. now apply answered_within_budget.
Qed.

(** And no more than what was said: a budget of a/b that is stored as ⌊10⁶·a/b⌋ makes all of it (a/b)-private. *)
Theorem together_as_said (a b : Z) (user other : data) (p : plan) : 0 <= a -> 0 < b ->
  has_data user -> has_data other -> forall event,
  (chance (answered (budget_of a b) 0 user other [] p) event
   <= exp (IZR a / IZR b) * chance_of_other (answered (budget_of a b) 0 user other [] p) event)%R.
Proof.
  intros Ha Hb Hu Ho event. eapply Rle_trans.
  - apply everything_together; auto. apply Z.div_pos; [unfold MICRO; lia|assumption].
  - apply Rmult_le_compat_r; [apply other_nonneg, answered_private; auto|].
    destruct (budget_is_below a b Hb) as [H|H]; [left; now apply exp_increasing|rewrite H; lra].
Qed.
