(** Finite sums of whole numbers, the words 0 … N−1, and how many of them have a property.

    Everything that is counted in these proofs is counted with [total] over [words N]. *)

From Coq Require Import ZArith List Lia Bool.
Import ListNotations.
Open Scope Z_scope.

(** Σ of a list. *)
Fixpoint sum (l : list Z) : Z :=
  match l with
  | [] => 0
  | x :: rest => x + sum rest
  end.

(** Σ of f over a list. *)
Fixpoint total {A : Type} (f : A -> Z) (l : list A) : Z :=
  match l with
  | [] => 0
  | x :: rest => f x + total f rest
  end.

(** 1 for true, 0 for false. *)
Definition one (b : bool) : Z := if b then 1 else 0.

(** How many elements of a list have a property. *)
Definition count {A : Type} (p : A -> bool) (l : list A) : Z := total (fun x => one (p x)) l.

(** The words 0, 1, …, N−1: what a uniform word below N can be. *)
Definition words (N : Z) : list Z := map Z.of_nat (seq 0 (Z.to_nat N)).

(** Entry number i of a list, 0 beyond its end. *)
Definition at_ (l : list Z) (i : nat) : Z := nth i l 0.

(* ------------------------------------------------------------------ proofs *)

Section Totals.
Context {A B : Type}.

Lemma total_ext_in (f g : A -> Z) l :
  (forall x, In x l -> f x = g x) -> total f l = total g l.
Proof.
  induction l as [|x l IH]; simpl; intros H; [reflexivity|].
  rewrite (H x), IH; auto.
Qed.

Lemma total_ext (f g : A -> Z) l : (forall x, f x = g x) -> total f l = total g l.
Proof. intros; apply total_ext_in; auto. Qed.

Lemma total_app (f : A -> Z) l m : total f (l ++ m) = total f l + total f m.
Proof. induction l; simpl; lia. Qed.

Lemma total_plus (f g : A -> Z) l : total (fun x => f x + g x) l = total f l + total g l.
Proof. induction l; simpl; lia. Qed.

Lemma total_minus (f g : A -> Z) l : total (fun x => f x - g x) l = total f l - total g l.
Proof. induction l; simpl; lia. Qed.

Lemma total_scale (c : Z) (f : A -> Z) l : total (fun x => c * f x) l = c * total f l.
Proof. induction l; simpl; lia. Qed.

Lemma total_scale_right (c : Z) (f : A -> Z) l : total (fun x => f x * c) l = total f l * c.
Proof. induction l; simpl; lia. Qed.

Lemma total_const (c : Z) (l : list A) : total (fun _ => c) l = c * Z.of_nat (length l).
Proof. induction l; cbn [total length]; lia. Qed.

Lemma total_le_in (f g : A -> Z) l :
  (forall x, In x l -> f x <= g x) -> total f l <= total g l.
Proof.
  induction l as [|x l IH]; simpl; intros H; [lia|].
  specialize (H x (or_introl eq_refl)) as Hx.
  assert (total f l <= total g l) by (apply IH; auto). lia.
Qed.

Lemma total_nonneg_in (f : A -> Z) l : (forall x, In x l -> 0 <= f x) -> 0 <= total f l.
Proof.
  intros H. transitivity (total (fun _ : A => 0) l).
  - rewrite total_const. lia.
  - now apply total_le_in.
Qed.

Lemma total_map (f : B -> Z) (g : A -> B) l : total f (map g l) = total (fun x => f (g x)) l.
Proof. induction l; simpl; congruence. Qed.

End Totals.

Lemma total_swap {A B : Type} (f : A -> B -> Z) l m :
  total (fun x => total (f x) m) l = total (fun y => total (fun x => f x y) l) m.
Proof.
  induction l as [|x l IH]; simpl.
  - rewrite total_const. lia.
  - rewrite IH. symmetry. apply total_plus.
Qed.

Lemma sum_total (l : list Z) : sum l = total (fun x => x) l.
Proof. induction l; simpl; congruence. Qed.

Lemma sum_app l m : sum (l ++ m) = sum l + sum m.
Proof. induction l; simpl; lia. Qed.

Lemma sum_repeat c n : sum (repeat c n) = c * Z.of_nat n.
Proof. induction n; cbn [repeat sum]; lia. Qed.

Lemma sum_nonneg l : Forall (fun x => 0 <= x) l -> 0 <= sum l.
Proof. induction 1; simpl; lia. Qed.

Lemma at_in l i : (i < length l)%nat -> In (at_ l i) l.
Proof. apply nth_In. Qed.

Lemma firstn_succ_sum l i : (i < length l)%nat -> sum (firstn (S i) l) = sum (firstn i l) + at_ l i.
Proof.
  unfold at_. revert i. induction l as [|x l IH]; intros i H; simpl in H; [lia|].
  destruct i as [|i]; cbn [nth]; [simpl; lia|].
  rewrite (firstn_cons (S i)), (firstn_cons i). cbn [sum]. rewrite IH by lia. lia.
Qed.

Lemma at_skipn l i j : at_ (skipn i l) j = at_ l (i + j).
Proof.
  unfold at_. revert i. induction l as [|x l IH]; intros i.
  - rewrite skipn_nil. destruct j, (i)%nat; reflexivity.
  - destruct i as [|i]; simpl; auto.
Qed.

Lemma sum_split i l : sum l = sum (firstn i l) + sum (skipn i l).
Proof. rewrite <- sum_app. now rewrite firstn_skipn. Qed.

(** A sum over positions 0 … n−1 and the positions from a on. *)
Lemma total_seq_shift (f : nat -> Z) a n : total f (seq a n) = total (fun i => f (a + i)%nat) (seq 0 n).
Proof.
  revert a f. induction n as [|n IH]; intros a f; cbn [seq total]; [reflexivity|].
  rewrite (IH (S a)), (IH 1%nat). rewrite Nat.add_0_r. f_equal.
  apply total_ext; intros i. f_equal. lia.
Qed.

Lemma total_seq_split (f : nat -> Z) a b :
  total f (seq 0 (a + b)) = total f (seq 0 a) + total (fun i => f (a + i)%nat) (seq 0 b).
Proof. rewrite seq_app, total_app, (total_seq_shift f (0 + a)). reflexivity. Qed.

(** Words. *)

Lemma in_words N u : In u (words N) -> 0 <= u < N.
Proof.
  unfold words. rewrite in_map_iff. intros (i & <- & H). apply in_seq in H. lia.
Qed.

Lemma length_words N : 0 <= N -> Z.of_nat (length (words N)) = N.
Proof. intros H. unfold words. rewrite map_length, seq_length. lia. Qed.

Lemma words_split a b : 0 <= a -> 0 <= b -> words (a + b) = words a ++ map (fun u => a + u) (words b).
Proof.
  intros Ha Hb. unfold words. rewrite Z2Nat.inj_add, seq_app, map_app by lia. f_equal.
  rewrite map_map. simpl.
  replace (Z.to_nat a) with (Z.to_nat a + 0)%nat at 1 by lia.
  generalize 0%nat as start. induction (Z.to_nat b) as [|n IH]; intros start; simpl; [reflexivity|].
  f_equal; [lia|]. rewrite <- IH. f_equal. f_equal. lia.
Qed.

Lemma total_words_split (f : Z -> Z) a b : 0 <= a -> 0 <= b ->
  total f (words (a + b)) = total f (words a) + total (fun u => f (a + u)) (words b).
Proof. intros Ha Hb. rewrite words_split, total_app, total_map; auto. Qed.

Lemma total_words_const (f : Z -> Z) N c : 0 <= N ->
  (forall u, 0 <= u < N -> f u = c) -> total f (words N) = N * c.
Proof.
  intros HN H. rewrite (total_ext_in f (fun _ => c)).
  - rewrite total_const, length_words; lia.
  - intros u Hu. apply H. now apply in_words.
Qed.

Lemma total_words_ext (f g : Z -> Z) N :
  (forall u, 0 <= u < N -> f u = g u) -> total f (words N) = total g (words N).
Proof. intros H. apply total_ext_in. intros u Hu. apply H. now apply in_words. Qed.
