(** A from below: whole numbers decide that A ≤ e^ε < A + 2^-64.

    [bounds] is the rule of docs/format.md, section "The ratio": the exponential series with every term rounded
    down and rounded up. [check_ratio] compares the ratio of a file with it, as exact.exp_below must. *)

From Coq Require Import ZArith Reals Lra Lia Bool.
From Coq Require Import Psatz.
From Sottovoce Require Import Sums Draw Privacy.
Open Scope Z_scope.

(** One pass over the series of e^(a/b), from term j with s ≤ 2^P·ε^j/j! ≤ t, and the sums S and T up to it. *)
Fixpoint series (fuel : nat) (a b j s t S T : Z) : option (Z * Z) :=
  match fuel with
  | O => None
  | Datatypes.S fuel' =>
      let j := j + 1 in
      let s := s * a / (b * j) in
      let t := ceil (t * a) (b * j) in
      let S := S + s in
      let T := T + t in
      if (2 * a <=? b * (j + 1)) && (t <=? 1) then Some (S, T + 2 * t) else series fuel' a b j s t S T
  end.

(** S and T with S ≤ 2^P·e^(a/b) ≤ T. *)
Definition bounds (fuel : nat) (a b P : Z) : option (Z * Z) :=
  let unit := 2 ^ P in series fuel a b 0 unit unit unit unit.

(** ⌊2^64·e^(a/b)⌋: with P = 256, then twice as many bits as long as the two bounds differ. *)
Fixpoint scaled_exp (tries fuel : nat) (a b P : Z) : option Z :=
  match tries with
  | O => None
  | Datatypes.S tries' =>
      match bounds fuel a b P with
      | None => None
      | Some (lower, upper) =>
          let unit := 2 ^ (P - 64) in
          if lower / unit =? upper / unit then Some (lower / unit) else scaled_exp tries' fuel a b (2 * P)
      end
  end.

Definition TRIES : nat := 8.
Definition TERMS : nat := Z.to_nat 16384.

(** Whether up/down = ⌊2^64·e^(a/b)⌋/2^64, for ε = a/b > 0. *)
Definition check_ratio (a b up down : Z) : bool :=
  (0 <? a) && (0 <? b) && (0 <? down)
  && match scaled_exp TRIES TERMS a b 256 with
     | None => false
     | Some e => up * 2 ^ 64 =? e * down
     end.

(* ------------------------------------------------------------------ proofs *)

Open Scope R_scope.

(** Term number i of the series of e^x. *)
Definition term (x : R) (i : nat) : R := / INR (fact i) * x ^ i.

Lemma term_nonneg x i : 0 <= x -> 0 <= term x i.
Proof.
  intros Hx. apply Rmult_le_pos.
  - left. apply Rinv_0_lt_compat, INR_fact_lt_0.
  - now apply pow_le.
Qed.

Lemma term_succ x i : term x (S i) = term x i * (x / INR (S i)).
Proof.
  unfold term. rewrite fact_simpl, mult_INR. simpl pow. field.
  split; [now apply not_0_INR|apply INR_fact_neq_0].
Qed.

Lemma exp_limit x : Un_cv (fun n => sum_f_R0 (term x) n) (exp x).
Proof. unfold exp. destruct (exist_exp x) as [l Hl]. exact Hl. Qed.

(** Every partial sum is below e^x, for x ≥ 0. *)
Theorem partial_sum_below x n : 0 <= x -> sum_f_R0 (term x) n <= exp x.
Proof.
  intros Hx. apply sum_incr; [apply exp_limit|]. intros i. now apply term_nonneg.
Qed.

(** Once the terms halve, what follows is at most the last one. *)
Lemma tail_bound x j : 0 <= x -> 2 * x <= INR (S j) ->
  forall m, sum_f_R0 (term x) (j + m) + term x (j + m) <= sum_f_R0 (term x) j + term x j.
Proof.
  intros Hx Hj. induction m as [|m IH].
  - rewrite Nat.add_0_r. lra.
  - replace (j + S m)%nat with (S (j + m)) by lia. rewrite tech5.
    assert (2 * term x (S (j + m)) <= term x (j + m)); [|lra].
    rewrite term_succ. pose proof (term_nonneg x (j + m) Hx).
    assert (0 < INR (S (j + m))) by (apply lt_0_INR; lia).
    assert (x / INR (S (j + m)) <= / 2).
    { apply Rmult_le_reg_r with (INR (S (j + m))); [assumption|].
      unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
      assert (INR (S j) <= INR (S (j + m))) by (apply le_INR; lia). lra. }
    nra.
Qed.

Theorem partial_sum_above x j : 0 <= x -> 2 * x <= INR (S j) ->
  exp x <= sum_f_R0 (term x) j + term x j.
Proof.
  intros Hx Hj. set (c := sum_f_R0 (term x) j + term x j).
  assert (forall n, sum_f_R0 (term x) n <= c) as Hall.
  { intros n. destruct (Nat.le_ge_cases n j) as [Hn|Hn].
    - assert (forall k, sum_f_R0 (term x) n <= sum_f_R0 (term x) (n + k)) as Hmono.
      { induction k as [|k IH]; [rewrite Nat.add_0_r; lra|].
        replace (n + S k)%nat with (S (n + k)) by lia. rewrite tech5.
        pose proof (term_nonneg x (S (n + k)) Hx). lra. }
      specialize (Hmono (j - n)%nat). replace (n + (j - n))%nat with j in Hmono by lia.
      pose proof (term_nonneg x j Hx). unfold c. lra.
    - pose proof (tail_bound x j Hx Hj (n - j)) as H. replace (j + (n - j))%nat with n in H by lia.
      pose proof (term_nonneg x n Hx). unfold c. lra. }
  destruct (Rle_lt_dec (exp x) c) as [|Hlt]; [assumption|exfalso].
  destruct (exp_limit x (exp x - c)) as [n Hn]; [lra|].
  specialize (Hn n (Nat.le_refl n)). unfold R_dist in Hn. specialize (Hall n).
  apply Rabs_def2 in Hn. lra.
Qed.

(** Division of whole numbers, as real numbers. *)

Lemma div_below (n d : Z) : (0 < d)%Z -> IZR (n / d) <= IZR n / IZR d.
Proof.
  intros Hd. assert (0 < IZR d) by now apply IZR_lt.
  apply Rmult_le_reg_r with (IZR d); [assumption|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. rewrite Rmult_1_r, <- mult_IZR.
  apply IZR_le. rewrite Z.mul_comm. now apply Z.mul_div_le.
Qed.

Lemma ceil_above (n d : Z) : (0 < d)%Z -> IZR n / IZR d <= IZR (ceil n d).
Proof.
  intros Hd. assert (0 < IZR d) by now apply IZR_lt.
  apply Rmult_le_reg_r with (IZR d); [assumption|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. rewrite Rmult_1_r, <- mult_IZR.
  apply IZR_le. pose proof (ceil_spec n d Hd). lia.
Qed.

Lemma step (a b : Z) (j : nat) (k y : R) : (0 < b)%Z ->
  k * term (IZR a / IZR b) (S j) = k * term (IZR a / IZR b) j * IZR a / IZR (b * (Z.of_nat j + 1)).
Proof.
  intros Hb. rewrite term_succ, S_INR, INR_IZR_INZ, mult_IZR, plus_IZR. field.
  assert (0 < IZR b) by now apply IZR_lt.
  rewrite <- INR_IZR_INZ. pose proof (pos_INR j). lra.
Qed.

Lemma series_sound fuel a b P : (0 <= a)%Z -> (0 < b)%Z -> forall j s t S T S' T',
  IZR s <= IZR (2 ^ P) * term (IZR a / IZR b) j <= IZR t ->
  (0 <= s)%Z ->
  IZR S <= IZR (2 ^ P) * sum_f_R0 (term (IZR a / IZR b)) j <= IZR T ->
  series fuel a b (Z.of_nat j) s t S T = Some (S', T') ->
  IZR S' <= IZR (2 ^ P) * exp (IZR a / IZR b) <= IZR T'.
Proof.
  intros Ha Hb. set (x := IZR a / IZR b). set (K := IZR (2 ^ P)).
  assert (0 <= K) as HK by (unfold K; apply IZR_le, Z.pow_nonneg; lia).
  assert (0 < IZR b) by now apply IZR_lt.
  assert (0 <= IZR a) by now apply IZR_le.
  assert (0 <= x) as Hx by (unfold x, Rdiv; apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
  induction fuel as [|fuel IH]; intros j s t S T S' T' Hterm Hs Hsum Heq; [discriminate|].
  cbn [series] in Heq.
  set (d := (b * (Z.of_nat j + 1))%Z) in *.
  assert (0 < d)%Z as Hd by (unfold d; nia).
  set (s1 := (s * a / d)%Z) in *. set (t1 := ceil (t * a) d) in *.
  assert (0 < IZR d) as HdR by now apply IZR_lt.
  assert (0 < / IZR d) as HdI by now apply Rinv_0_lt_compat.
  assert (K * term x (Datatypes.S j) = K * term x j * IZR a / IZR d) as Hstep by now apply step.
  assert (IZR s1 <= K * term x (Datatypes.S j) <= IZR t1) as Hterm1.
  { rewrite Hstep. unfold s1, t1. split.
    - eapply Rle_trans; [now apply div_below|]. rewrite mult_IZR. unfold Rdiv.
      apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; [assumption|apply Hterm].
    - eapply Rle_trans; [|now apply ceil_above]. rewrite mult_IZR. unfold Rdiv.
      apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; [assumption|apply Hterm]. }
  assert (0 <= s1)%Z as Hs1 by (unfold s1; apply Z.div_pos; nia).
  assert (IZR (S + s1) <= K * sum_f_R0 (term x) (Datatypes.S j) <= IZR (T + t1)) as Hsum1.
  { rewrite tech5, !plus_IZR, Rmult_plus_distr_l. lra. }
  replace (Z.of_nat j + 1)%Z with (Z.of_nat (Datatypes.S j)) in Heq by lia.
  destruct ((2 * a <=? b * (Z.of_nat (Datatypes.S j) + 1))%Z && (t1 <=? 1)%Z) eqn:Hstop.
  - apply andb_true_iff in Hstop. destruct Hstop as [Hhalf _]. apply Z.leb_le in Hhalf.
    assert (S' = S + s1)%Z as -> by congruence. assert (T' = T + t1 + 2 * t1)%Z as -> by congruence.
    assert (2 * x <= INR (Datatypes.S (Datatypes.S j))) as Hjx.
    { rewrite INR_IZR_INZ. unfold x.
      apply Rmult_le_reg_r with (IZR b); [assumption|].
      replace (2 * (IZR a / IZR b) * IZR b) with (2 * IZR a) by (field; lra).
      rewrite <- !mult_IZR. apply IZR_le. lia. }
    pose proof (partial_sum_below x (Datatypes.S j) Hx) as Hlow.
    pose proof (partial_sum_above x (Datatypes.S j) Hx Hjx) as Hup.
    apply Rmult_le_compat_l with (r := K) in Hlow; [|assumption].
    apply Rmult_le_compat_l with (r := K) in Hup; [|assumption].
    rewrite Rmult_plus_distr_l in Hup.
    pose proof (term_nonneg x (Datatypes.S j) Hx) as Ht0.
    assert (0 <= K * term x (Datatypes.S j)) by now apply Rmult_le_pos.
    rewrite (plus_IZR (T + t1)), (mult_IZR 2). split; lra.
  - eapply IH; [exact Hterm1|exact Hs1|exact Hsum1|exact Heq].
Qed.

Theorem bounds_sound fuel a b P S T : (0 <= a)%Z -> (0 < b)%Z -> bounds fuel a b P = Some (S, T) ->
  IZR S <= IZR (2 ^ P) * exp (IZR a / IZR b) <= IZR T.
Proof.
  intros Ha Hb H. unfold bounds in H.
  apply (series_sound fuel a b P Ha Hb 0 (2 ^ P) (2 ^ P) (2 ^ P) (2 ^ P) S T); auto.
  - unfold term. simpl. lra.
  - apply Z.pow_nonneg. lia.
  - unfold term. simpl. lra.
Qed.

(** 2^64·e^ε lies in [e, e + 1): so e is its whole part. *)
Theorem scaled_exp_sound tries fuel a b P e : (0 <= a)%Z -> (0 < b)%Z -> (64 <= P)%Z ->
  scaled_exp tries fuel a b P = Some e ->
  IZR e <= IZR (2 ^ 64) * exp (IZR a / IZR b) < IZR (e + 1).
Proof.
  intros Ha Hb. revert P. induction tries as [|tries IH]; intros P HP H; [discriminate|].
  cbn [scaled_exp] in H. destruct (bounds fuel a b P) as [[S T]|] eqn:HB; [|discriminate].
  destruct (Z.eqb_spec (S / 2 ^ (P - 64)) (T / 2 ^ (P - 64))) as [Heq|_]; [|apply (IH (2 * P)%Z); auto; lia].
  injection H as <-. apply bounds_sound in HB; auto.
  set (unit := (2 ^ (P - 64))%Z) in *. assert (0 < unit)%Z as Hu by (apply Z.pow_pos_nonneg; lia).
  assert (2 ^ P = unit * 2 ^ 64)%Z as HPow by (unfold unit; rewrite <- Z.pow_add_r by lia; f_equal; lia).
  rewrite HPow, mult_IZR in HB. set (y := IZR (2 ^ 64) * exp (IZR a / IZR b)) in *.
  rewrite Rmult_assoc in HB. fold y in HB.
  assert (0 < IZR unit) as HuR by now apply IZR_lt.
  assert (IZR unit * IZR (S / unit) <= IZR S) as H1
    by (rewrite <- mult_IZR; apply IZR_le; now apply Z.mul_div_le).
  assert (IZR T < IZR unit * IZR (S / unit + 1)) as H2.
  { rewrite Heq, <- mult_IZR. apply IZR_lt. pose proof (Z.mul_succ_div_gt T unit Hu). lia. }
  split; apply Rmult_le_reg_l with (IZR unit) || apply Rmult_lt_reg_l with (IZR unit); auto; lra.
Qed.

(** THE RATIO. If the check passes, A = up/down satisfies A ≤ e^ε < A + 2^-64: it is the A that the
    certificates rest on, and the only one. *)
Theorem check_ratio_sound (a b up down : Z) : check_ratio a b up down = true ->
  at_most_exp up down (IZR a / IZR b) /\ exp (IZR a / IZR b) < IZR up / IZR down + / IZR (2 ^ 64).
Proof.
  unfold check_ratio. rewrite !andb_true_iff, !Z.ltb_lt. intros [[[Ha Hb] Hd] H].
  destruct (scaled_exp TRIES TERMS a b 256) as [e|] eqn:HE; [|discriminate].
  apply Z.eqb_eq in H. apply scaled_exp_sound in HE; try lia.
  assert (0 < IZR down) by now apply IZR_lt.
  assert (0 < IZR (2 ^ 64)) as H64 by (apply IZR_lt; reflexivity).
  set (two := IZR (2 ^ 64)) in *.
  assert (IZR up / IZR down = IZR e / two) as HA.
  { apply (f_equal IZR) in H. rewrite !mult_IZR in H. fold two in H.
    apply Rmult_eq_reg_r with (IZR down * two); [|apply Rmult_integral_contrapositive; split; lra].
    replace (IZR up / IZR down * (IZR down * two)) with (IZR up * two) by (field; lra).
    replace (IZR e / two * (IZR down * two)) with (IZR e * IZR down) by (field; lra). exact H. }
  rewrite plus_IZR in HE. unfold at_most_exp. rewrite HA. repeat split; auto.
  - apply Rmult_le_reg_l with two; [assumption|].
    replace (two * (IZR e / two)) with (IZR e) by (field; lra). lra.
  - apply Rmult_lt_reg_l with two; [assumption|].
    replace (two * (IZR e / two + / two)) with (IZR e + 1) by (field; lra). lra.
Qed.
