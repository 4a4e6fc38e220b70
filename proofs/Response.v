(** Randomized response: if its check passes, every two users are ε-private, for every event.

    [check_response] is exact.check_response; [draw_response] is ResponseEngine.position after the choice of the
    record. A slot is the place of a category among the kept ones; a record that is not kept has none. *)

From Coq Require Import ZArith Reals List Lia Bool.
From Sottovoce Require Import Sums Draw Privacy.
Import ListNotations.
Open Scope Z_scope.

(** own + (k − 1)·other = N, at least one unit each, and within the ratio; with one kept category `other` is unused. *)
Definition check_response (up down N own other : Z) (kept : nat) : bool :=
  let several := (1 <? kept)%nat in
  let least := if several then Z.min own other else own in
  let most := if several then Z.max own other else own in
  (0 <? down) && (0 <? N) && (0 <? kept)%nat && (own + (Z.of_nat kept - 1) * other =? N)
  && (1 <=? least) && (most * down <=? up * least).

Definition draw_response (N own other : Z) (kept : nat) (slot : option nat) (u : Z) : nat :=
  match slot with
  | None => Z.to_nat (u * Z.of_nat kept / N)
  | Some s =>
      if u <? own then s
      else
        let step := Z.to_nat ((u - own) / other) in
        if (s <=? step)%nat then S step else step
  end.

(** The law of one record, over N words. *)
Definition response_weight (N own other : Z) (kept : nat) (slot : option nat) (j : nat) : Z :=
  match slot with
  | None => at_ (shares N (Z.of_nat kept) 0 (repeat 1 kept)) j
  | Some s => if (j =? s)%nat then own else other
  end.

(** How many of the N² tapes lead a user with this choice of a record into S. *)
Definition response_tapes (N own other : Z) (kept : nat) (choice : Z -> option nat) (S : nat -> bool) : Z :=
  total (fun word => count (fun u => S (draw_response N own other kept (choice word) u)) (words N)) (words N).

Definition slot_ok (kept : nat) (slot : option nat) : Prop :=
  match slot with None => True | Some s => (s < kept)%nat end.

(* ------------------------------------------------------------------ proofs *)

Lemma check_response_true up down N own other kept : check_response up down N own other kept = true ->
  0 < down /\ 0 < N /\ (0 < kept)%nat /\ own + (Z.of_nat kept - 1) * other = N /\ 1 <= own
  /\ ((1 < kept)%nat -> 1 <= other)
  /\ exists s L, 1 <= s /\ L * down <= up * s /\ s <= own <= L /\ ((1 < kept)%nat -> s <= other <= L).
Proof.
  unfold check_response. rewrite !andb_true_iff, !Z.ltb_lt, Z.eqb_eq, !Z.leb_le, Nat.ltb_lt.
  intros [[[[[Hd HN] Hk] Hs] H1] HA]. split; [assumption|]. split; [assumption|]. split; [assumption|].
  split; [assumption|].
  destruct (Nat.ltb_spec 1 kept).
  - split; [lia|]. split; [lia|]. exists (Z.min own other), (Z.max own other). lia.
  - split; [lia|]. split; [lia|]. exists own, own. lia.
Qed.

(** THE DRAW OF A RESPONSE: number j of the kept ones is released for exactly [response_weight] of the N words. *)
Theorem response_law up down N own other kept slot (f : nat -> Z) :
  check_response up down N own other kept = true -> slot_ok kept slot ->
  total (fun u => f (draw_response N own other kept slot u)) (words N)
  = total (fun j => response_weight N own other kept slot j * f j) (seq 0 kept).
Proof.
  intros Hcheck Hslot. apply check_response_true in Hcheck.
  destruct Hcheck as (Hd & HN & Hk & Hs & Hown & Hother & _). destruct slot as [s|]; simpl in Hslot.
  - set (rest := (kept - 1 - s)%nat). set (m := (kept - 1)%nat).
    assert (Z.of_nat m = Z.of_nat kept - 1) as Hm1 by (unfold m; lia).
    assert (N = own + other * Z.of_nat m) as HNs by (rewrite Hm1; lia).
    assert (0 <= other * Z.of_nat m) as Hnn.
    { destruct (Nat.ltb_spec 1 kept) as [H|H]; [specialize (Hother H); nia|].
      replace (Z.of_nat m) with 0 by lia. lia. }
    set (F := fun u => f (draw_response N own other kept (Some s) u)).
    transitivity (total F (words (own + other * Z.of_nat m))); [now rewrite <- HNs|].
    rewrite total_words_split by lia. unfold F. clear F.
    rewrite (total_words_const _ own (f s)); [|lia|].
    2:{ intros u Hu. cbn [draw_response]. destruct (Z.ltb_spec u own); [reflexivity|lia]. }
    set (g := fun i => f (if (s <=? i)%nat then S i else i)).
    transitivity (own * f s + total (fun i => other * g i) (seq 0 m)).
    + f_equal. destruct (Nat.eq_dec m 0) as [->|Hm]; [rewrite Z.mul_0_r; reflexivity|].
      assert (1 <= other) as Ho by (apply Hother; unfold m in Hm; lia).
      pose proof (draw_law (repeat other m) g (repeat_nonneg other m ltac:(lia))) as H.
      rewrite sum_repeat, repeat_length in H.
      rewrite (total_ext_in (fun i => other * g i) (fun i => at_ (repeat other m) i * g i)).
      * rewrite <- H. apply total_words_ext. intros u Hu. rewrite pick_repeat by lia. unfold g.
        cbn [draw_response]. destruct (Z.ltb_spec (own + u) own); [lia|].
        replace (own + u - own) with u by lia. reflexivity.
      * intros i Hi. apply in_seq in Hi. rewrite at_repeat by lia. reflexivity.
    + replace m with (s + rest)%nat by (unfold m, rest; lia).
      cbn [response_weight].
      replace (seq 0 kept) with (seq 0 (s + (1 + rest))) by (f_equal; unfold rest; lia).
      rewrite !total_seq_split. cbn [seq total]. rewrite Nat.add_0_r.
      rewrite Nat.eqb_refl.
      rewrite (total_ext_in (fun i => other * g i) (fun j => (if (j =? s)%nat then own else other) * f j)).
      2:{ intros j Hj. apply in_seq in Hj. destruct (Nat.eqb_spec j s); [lia|]. unfold g.
          destruct (Nat.leb_spec s j); [lia|]. reflexivity. }
      rewrite (total_ext_in (fun i => other * g (s + i)%nat)
        (fun i => (if (s + (1 + i) =? s)%nat then own else other) * f (s + (1 + i))%nat)).
      2:{ intros j Hj. destruct (Nat.eqb_spec (s + (1 + j)) s); [lia|]. unfold g.
          destruct (Nat.leb_spec s (s + j)); [|lia]. do 2 f_equal. lia. }
      lia.
  - assert (sum (repeat 1 kept) = Z.of_nat kept) as Hsum by (rewrite sum_repeat; lia).
    pose proof (scaled_draw_law N (repeat 1 kept) f HN ltac:(lia) (repeat_nonneg 1 kept ltac:(lia))) as H.
    rewrite Hsum, repeat_length in H. cbn [response_weight]. rewrite <- H.
    apply total_words_ext. intros u Hu. cbn [draw_response].
    assert (0 <= u * Z.of_nat kept / N < Z.of_nat kept)
      by (split; [apply Z.div_pos; nia|apply Z.div_lt_upper_bound; nia]).
    rewrite pick_repeat by lia. rewrite Z.div_1_r. reflexivity.
Qed.

(** Every two records, kept or not. *)
Theorem responses_private up down N own other kept slot slot' (S : nat -> bool) :
  check_response up down N own other kept = true -> slot_ok kept slot -> slot_ok kept slot' ->
  down * count (fun u => S (draw_response N own other kept slot u)) (words N)
  <= up * count (fun u => S (draw_response N own other kept slot' u)) (words N).
Proof.
  intros Hcheck Hs Hs'. unfold count.
  rewrite (response_law up down N own other kept slot (fun j => one (S j))),
          (response_law up down N own other kept slot' (fun j => one (S j))) by assumption.
  apply check_response_true in Hcheck.
  destruct Hcheck as (Hd & HN & Hk & Hsum & Hown & Hother & s & L & H1 & HA & Ho & Hoth).
  assert (forall t j, slot_ok kept t -> (j < kept)%nat -> s <= response_weight N own other kept t j <= L) as Hw.
  { intros t j Ht Hj. destruct t as [t|]; cbn [response_weight]; simpl in Ht.
    - destruct (Nat.eqb_spec j t); [lia|]. apply Hoth. lia.
    - pose proof (shares_near N (Z.of_nat kept) 0 (repeat 1 kept) j ltac:(lia)
        ltac:(rewrite repeat_length; lia)) as Hnear.
      rewrite at_repeat in Hnear by assumption. set (c := at_ _ j) in *.
      assert (s * Z.of_nat kept <= N <= L * Z.of_nat kept) as Hmean.
      { destruct (Nat.ltb_spec 1 kept) as [H|H]; [specialize (Hoth H); nia|].
        assert (kept = 1%nat) by lia. subst kept. lia. }
      split; nia. }
  rewrite <- !total_scale. apply total_le_in. intros j Hj. apply in_seq in Hj.
  pose proof (Hw slot j Hs ltac:(lia)). pose proof (Hw slot' j Hs' ltac:(lia)).
  assert (0 < up) by nia.
  assert (down * response_weight N own other kept slot j <= up * response_weight N own other kept slot' j)
    by (transitivity (L * down); [nia|]; transitivity (up * s); nia).
  destruct (S j); simpl; lia.
Qed.

(** RANDOMIZED RESPONSE: Pr[S] ≤ e^ε·Pr'[S] for every two users and every event. *)
Theorem response_private up down N (epsilon : R) own other kept (choice choice' : Z -> option nat) (S : nat -> bool) :
  at_most_exp up down epsilon -> check_response up down N own other kept = true ->
  (forall word, 0 <= word < N -> slot_ok kept (choice word)) ->
  (forall word, 0 <= word < N -> slot_ok kept (choice' word)) ->
  (probability (response_tapes N own other kept choice S) (N * N)
   <= exp epsilon * probability (response_tapes N own other kept choice' S) (N * N))%R.
Proof.
  intros HA Hcheck Hc Hc'. pose proof (check_response_true _ _ _ _ _ _ Hcheck) as (_ & HN & _).
  apply counts_to_probabilities with up down; auto.
  - nia.
  - apply total_nonneg_in. intros w _. apply total_nonneg_in. intros u _. unfold one. destruct (S _); lia.
  - apply (mixtures_private N up down (slot_ok kept)
      (fun slot => count (fun u => S (draw_response N own other kept slot u)) (words N))); auto.
    intros slot slot' Hs Hs'. now apply responses_private.
Qed.
