(** Charges: if the charges in micro-ε, rounded up, stay within the budget, everything that a user releases
    together is private for the budget.

    [charge_of] is charges.charge_of, [budget_of] the rounding of charges.budget_of. A course is what may happen to
    one user: releases one after another, each drawn anew, where what is asked next may depend on all answers so
    far. On every path the ledger refuses what would exceed the budget. *)

From Coq Require Import ZArith Reals List Lia Lra.
From Sottovoce Require Import Draw.
Import ListNotations.
Open Scope Z_scope.

Definition MICRO : Z := 1000000.

(** ⌈ε·10⁶⌉ for ε = a/b, and ⌊amount·10⁶⌋ for amount = a/b. *)
Definition charge_of (a b : Z) : Z := ceil (a * MICRO) b.
Definition budget_of (a b : Z) : Z := a * MICRO / b.

Open Scope R_scope.

(** Σ_{i<n} f(i). *)
Fixpoint sum_below (n : nat) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S n' => sum_below n' f + f n'
  end.

(** A release of one of n categories, at ε = a/b, with the law of a user and the law of another; and what follows,
    which depends on the category that was released. *)
Inductive course :=
  | Done
  | Release (a b : Z) (n : nat) (law other : nat -> R) (next : nat -> course).

(** Each release is private for its own ε: this is what Box, Kernel and Response prove. *)
Fixpoint each_private (c : course) : Prop :=
  match c with
  | Done => True
  | Release a b n law other next =>
      (0 <= a)%Z /\ (0 < b)%Z
      /\ (forall i, (i < n)%nat -> 0 <= law i <= exp (IZR a / IZR b) * other i)
      /\ (forall i, each_private (next i))
  end.

(** The ledger: on every path the sum of the charges is at most so many micro-ε. *)
Fixpoint within_budget (budget : Z) (c : course) : Prop :=
  match c with
  | Done => (0 <= budget)%Z
  | Release a b n _ _ next =>
      (charge_of a b <= budget)%Z /\ forall i, (i < n)%nat -> within_budget (budget - charge_of a b) (next i)
  end.

(** The probability that all answers together, in their order, fall into an event. *)
Fixpoint chance (c : course) (event : list nat -> bool) : R :=
  match c with
  | Done => if event [] then 1 else 0
  | Release _ _ n law _ next =>
      sum_below n (fun i => law i * chance (next i) (fun answers => event (i :: answers)))
  end.

Fixpoint chance_of_other (c : course) (event : list nat -> bool) : R :=
  match c with
  | Done => if event [] then 1 else 0
  | Release _ _ n _ other next =>
      sum_below n (fun i => other i * chance_of_other (next i) (fun answers => event (i :: answers)))
  end.

(* ------------------------------------------------------------------ proofs *)

Lemma sum_below_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> sum_below n f <= sum_below n g.
Proof.
  induction n as [|n IH]; simpl; intros H; [lra|].
  assert (sum_below n f <= sum_below n g) by (apply IH; intros; apply H; lia).
  specialize (H n ltac:(lia)). lra.
Qed.

Lemma sum_below_scale n c f : sum_below n (fun i => c * f i) = c * sum_below n f.
Proof. induction n as [|n IH]; simpl; [lra|]. rewrite IH. lra. Qed.

Lemma sum_below_nonneg n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= sum_below n f.
Proof.
  intros H. induction n as [|n IH]; simpl; [lra|].
  assert (0 <= sum_below n f) by (apply IH; intros; apply H; lia). specialize (H n ltac:(lia)). lra.
Qed.

(** A charge is never below ε. *)
Theorem charge_covers (a b : Z) : (0 < b)%Z -> IZR a / IZR b <= IZR (charge_of a b) / IZR MICRO.
Proof.
  intros Hb. pose proof (ceil_spec (a * MICRO) b Hb) as [H _]. fold (charge_of a b) in H.
  apply IZR_le in H. rewrite !mult_IZR in H.
  assert (0 < IZR b) by now apply IZR_lt. assert (0 < IZR MICRO) by (apply IZR_lt; reflexivity).
  apply Rmult_le_reg_r with (IZR b * IZR MICRO); [now apply Rmult_lt_0_compat|].
  replace (IZR a / IZR b * (IZR b * IZR MICRO)) with (IZR a * IZR MICRO) by (field; lra).
  replace (IZR (charge_of a b) / IZR MICRO * (IZR b * IZR MICRO)) with (IZR (charge_of a b) * IZR b)
    by (field; lra). exact H.
Qed.

(** A stored budget is never above what was said. *)
Theorem budget_is_below (a b : Z) : (0 < b)%Z -> IZR (budget_of a b) / IZR MICRO <= IZR a / IZR b.
Proof.
  intros Hb. unfold budget_of. pose proof (Z.mul_div_le (a * MICRO) b Hb) as H.
  apply IZR_le in H. rewrite !mult_IZR in H.
  assert (0 < IZR b) by now apply IZR_lt. assert (0 < IZR MICRO) by (apply IZR_lt; reflexivity).
  apply Rmult_le_reg_r with (IZR b * IZR MICRO); [now apply Rmult_lt_0_compat|].
  replace (IZR a / IZR b * (IZR b * IZR MICRO)) with (IZR a * IZR MICRO) by (field; lra).
  replace (IZR (a * MICRO / b) / IZR MICRO * (IZR b * IZR MICRO)) with (IZR b * IZR (a * MICRO / b))
    by (field; lra). exact H.
Qed.

Lemma other_nonneg c : each_private c -> forall event, 0 <= chance_of_other c event.
Proof.
  induction c as [|a b n law other next IH]; intros H event; simpl in *.
  - destruct (event []); lra.
  - destruct H as (_ & _ & Hl & Hn). apply sum_below_nonneg. intros i Hi.
    apply Rmult_le_pos; [|apply IH; auto]. specialize (Hl i Hi). pose proof (exp_pos (IZR a / IZR b)).
    apply Rmult_le_reg_l with (exp (IZR a / IZR b)); [assumption|]. lra.
Qed.

(** THE BUDGET. Whatever is asked, in whatever order, and whatever the answers are: all answers of a user together
    are (budget/10⁶)-private. *)
Theorem composition (c : course) : forall (budget : Z), each_private c -> within_budget budget c ->
  forall event, chance c event <= exp (IZR budget / IZR MICRO) * chance_of_other c event.
Proof.
  assert (0 < IZR MICRO) as HM by (apply IZR_lt; reflexivity).
  induction c as [|a b n law other next IH]; intros budget Hp Hb event.
  - simpl in *. assert (1 <= exp (IZR budget / IZR MICRO)).
    { rewrite <- exp_0. destruct (Req_dec (IZR budget / IZR MICRO) 0) as [->|Hne]; [lra|]. left.
      apply exp_increasing. apply IZR_le in Hb.
      assert (0 <= IZR budget / IZR MICRO)
        by (unfold Rdiv; apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]). lra. }
    destruct (event []); lra.
  - cbn [chance chance_of_other each_private within_budget] in *. destruct Hp as (Ha & Hb0 & Hl & Hn).
    destruct Hb as [_ Hb]. rewrite <- sum_below_scale. apply sum_below_le. intros i Hi.
    specialize (IH i (budget - charge_of a b)%Z (Hn i) (Hb i Hi) (fun answers => event (i :: answers))).
    set (later := chance _ _) in *. set (later' := chance_of_other _ _) in *.
    assert (0 <= later') as Hl' by (apply other_nonneg; auto).
    specialize (Hl i Hi).
    set (e1 := exp (IZR a / IZR b)) in *. set (e2 := exp (IZR (budget - charge_of a b) / IZR MICRO)) in *.
    assert (e1 * e2 <= exp (IZR budget / IZR MICRO)) as He.
    { unfold e1, e2. rewrite <- exp_plus. pose proof (charge_covers a b Hb0) as Hcc.
      replace (IZR budget / IZR MICRO)
        with (IZR (charge_of a b) / IZR MICRO + IZR (budget - charge_of a b) / IZR MICRO)
        by (rewrite minus_IZR; field; lra).
      destruct Hcc as [Hcc|Hcc]; [left; apply exp_increasing; lra|rewrite Hcc; lra]. }
    assert (0 < e1) by apply exp_pos. assert (0 < e2) by apply exp_pos.
    assert (0 <= other i) by (apply Rmult_le_reg_l with e1; [assumption|]; lra).
    apply Rle_trans with (law i * (e2 * later')); [apply Rmult_le_compat_l; lra|].
    apply Rle_trans with (e1 * other i * (e2 * later')).
    + apply Rmult_le_compat_r; [|lra]. apply Rmult_le_pos; lra.
    + replace (e1 * other i * (e2 * later')) with (e1 * e2 * (other i * later')) by ring.
      apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|assumption].
Qed.
