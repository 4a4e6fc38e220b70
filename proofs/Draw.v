(** The draw: for a word uniform below N, position i is drawn for exactly w_i of the N words.

    [pick]          "the smallest i with u < w_0 + … + w_i" of docs/format.md
    [bisect_right]  Python's bisection, as the release path calls it on running sums
    [choose_record] linear.choose_record
    [shares]        how many words a draw by ⌊v·S/N⌋ gives to each position: records, tails of a kernel, a
                    response whose record is not kept, and what a capped user leaves are drawn in this way *)

From Coq Require Import ZArith List Lia Bool.
From Sottovoce Require Import Sums.
Import ListNotations.
Open Scope Z_scope.

(** The smallest i with u < w_0 + … + w_i. *)
Fixpoint pick (w : list Z) (u : Z) : nat :=
  match w with
  | [] => 0%nat
  | x :: rest => if u <? x then 0%nat else S (pick rest (u - x))
  end.

(** The running sums s, s + w_0, s + w_0 + w_1, …: one more than the weights. *)
Fixpoint sums_from (s : Z) (w : list Z) : list Z :=
  match w with
  | [] => [s]
  | x :: rest => s :: sums_from (s + x) rest
  end.

Definition before (w : list Z) : list Z := sums_from 0 w.

(** Python's bisect_right: `while lo < hi: mid = (lo + hi) // 2; if x < a[mid]: hi = mid; else: lo = mid + 1`. *)
Fixpoint bisect_loop (fuel : nat) (a : list Z) (x : Z) (lo hi : nat) : nat :=
  match fuel with
  | O => lo
  | S fuel' =>
      if (lo <? hi)%nat then
        let mid := Nat.div2 (lo + hi) in
        if x <? at_ a mid then bisect_loop fuel' a x lo mid else bisect_loop fuel' a x (S mid) hi
      else lo
  end.

Definition bisect_right (a : list Z) (x : Z) : nat := bisect_loop (length a) a x 0 (length a).

(** a/b rounded up, as Python writes it: -(-a // b). *)
Definition ceil (a b : Z) : Z := - ((- a) / b).

(** How many of the N words v have ⌊v·S/N⌋ in each of the intervals of widths w that begin at e. *)
Fixpoint shares (N S e : Z) (w : list Z) : list Z :=
  match w with
  | [] => []
  | x :: rest => (ceil ((e + x) * N) S - ceil (e * N) S) :: shares N S (e + x) rest
  end.

(** linear.choose_record: record number ⌊word·K/N⌋ of K, records in the order of their positions. *)
Fixpoint walk_records (weights : list (nat * Z)) (number : Z) : option nat :=
  match weights with
  | [] => None
  | (place, k) :: rest => if number - k <? 0 then Some place else walk_records rest (number - k)
  end.

Definition choose_record (weights : list (nat * Z)) (word N : Z) : option nat :=
  walk_records weights (word * sum (map snd weights) / N).

(* ------------------------------------------------------------------ proofs *)

Lemma before_at w i : (i <= length w)%nat -> at_ (before w) i = sum (firstn i w).
Proof.
  unfold before. enough (forall s, (i <= length w)%nat -> at_ (sums_from s w) i = s + sum (firstn i w)) as H.
  { intros Hi. rewrite H; auto. }
  unfold at_. revert i. induction w as [|x w IH]; intros [|i] s Hi; simpl in *; try lia.
  rewrite IH; lia.
Qed.

Lemma before_length w : length (before w) = S (length w).
Proof. unfold before. generalize 0. induction w; intros s; simpl; auto. Qed.

Lemma firstn_sum_mono w i j : Forall (fun x => 0 <= x) w -> (i <= j)%nat ->
  sum (firstn i w) <= sum (firstn j w).
Proof.
  intros H. revert i j. induction H as [|x w Hx H IH]; intros i j Hij.
  - now rewrite !firstn_nil.
  - destruct i, j; simpl; try lia.
    + assert (0 <= sum (firstn j w)); [|lia]. apply sum_nonneg. 
      clear -H. revert j. induction H; intros [|j]; simpl; auto.
    + specialize (IH i j). lia.
Qed.

(** What [pick] finds: w_0 + … + w_{i−1} ≤ u < w_0 + … + w_i. *)
Theorem pick_spec w u : 0 <= u < sum w ->
  (pick w u < length w)%nat /\ sum (firstn (pick w u) w) <= u < sum (firstn (S (pick w u)) w).
Proof.
  revert u. induction w as [|x w IH]; intros u Hu; cbn [pick].
  - simpl in Hu. lia.
  - cbn [sum] in Hu. destruct (Z.ltb_spec u x) as [H|H].
    + cbn. split; [lia|]. lia.
    + specialize (IH (u - x)). destruct IH as [Hl Hb]; [lia|].
      cbn [length]. split; [lia|]. rewrite (firstn_cons (S _)), (firstn_cons (pick _ _)). cbn [sum]. lia.
Qed.

Lemma pick_unique w u i : Forall (fun x => 0 <= x) w -> 0 <= u < sum w ->
  sum (firstn i w) <= u < sum (firstn (S i) w) -> pick w u = i.
Proof.
  intros Hw Hu Hi. destruct (pick_spec w u Hu) as [_ Hp].
  destruct (Nat.lt_trichotomy (pick w u) i) as [H|[H|H]]; auto; exfalso.
  - assert (sum (firstn (S (pick w u)) w) <= sum (firstn i w)) by (apply firstn_sum_mono; auto). lia.
  - assert (sum (firstn (S i) w) <= sum (firstn (pick w u) w)) by (apply firstn_sum_mono; auto). lia.
Qed.

(** Bisection finds the first entry above x, in any ascending list. *)
Lemma bisect_loop_spec fuel a x lo hi :
  (forall i j, (i <= j < length a)%nat -> at_ a i <= at_ a j) ->
  (hi <= length a)%nat -> (lo <= hi)%nat -> (hi - lo <= fuel)%nat ->
  (forall i, (i < lo)%nat -> at_ a i <= x) ->
  (forall i, (hi <= i < length a)%nat -> x < at_ a i) ->
  let k := bisect_loop fuel a x lo hi in
  (forall i, (i < k)%nat -> at_ a i <= x) /\ (forall i, (k <= i < length a)%nat -> x < at_ a i).
Proof.
  intros Hsorted. revert lo hi. induction fuel as [|fuel IH]; intros lo hi Hhi Hlo Hfuel Hbelow Habove;
    cbn [bisect_loop].
  - assert (lo = hi) by lia. subst. split; auto.
  - destruct (Nat.ltb_spec lo hi) as [H|H]; [|assert (lo = hi) by lia; subst; split; auto].
    assert (lo <= Nat.div2 (lo + hi) < hi)%nat as Hmid.
    { rewrite Nat.div2_div. split; [apply Nat.div_le_lower_bound; lia|apply Nat.div_lt_upper_bound; lia]. }
    set (mid := Nat.div2 (lo + hi)) in *.
    destruct (Z.ltb_spec x (at_ a mid)) as [Hx|Hx].
    + apply IH; try lia; auto. intros i Hi.
      assert (at_ a mid <= at_ a i) by (apply Hsorted; lia). lia.
    + apply IH; try lia; auto. intros i Hi.
      assert (at_ a i <= at_ a mid) by (apply Hsorted; lia). lia.
Qed.

(** What the release path computes is what docs/format.md says: bisect_right(before, u) − 1 = pick. *)
Theorem bisect_is_pick w u : Forall (fun x => 0 <= x) w -> 0 <= u < sum w ->
  bisect_right (before w) u = S (pick w u).
Proof.
  intros Hw Hu. unfold bisect_right.
  destruct (bisect_loop_spec (length (before w)) (before w) u 0 (length (before w))) as [Hb Ha]; try lia.
  { intros i j Hij. rewrite before_length in Hij. rewrite !before_at by lia. apply firstn_sum_mono; auto. lia. }
  set (k := bisect_loop _ _ _ _ _) in *. destruct (pick_spec w u Hu) as [Hl Hp].
  rewrite before_length in Ha.
  destruct (Nat.lt_trichotomy k (S (pick w u))) as [H|[H|H]]; auto; exfalso.
  - specialize (Ha (pick w u)). rewrite before_at in Ha by lia. lia.
  - specialize (Hb (S (pick w u))). rewrite before_at in Hb by lia. lia.
Qed.

(** THE DRAW. Over all words u below Σw, position i is drawn w_i times: for every f (an event is an f of 0 and 1),
    the sum of f over the words is Σ_i w_i·f(i). *)
Theorem draw_law (w : list Z) (f : nat -> Z) : Forall (fun x => 0 <= x) w ->
  total (fun u => f (pick w u)) (words (sum w)) = total (fun i => at_ w i * f i) (seq 0 (length w)).
Proof.
  intros H. revert f. induction H as [|x w Hx H IH]; intros f.
  - reflexivity.
  - cbn [sum length]. assert (0 <= sum w) by now apply sum_nonneg.
    rewrite total_words_split by lia.
    rewrite (total_words_const _ x (f 0%nat)); [|lia|].
    2:{ intros u Hu. cbn [pick]. destruct (Z.ltb_spec u x); [reflexivity|lia]. }
    cbn [seq total]. f_equal.
    rewrite (total_words_ext _ (fun u => f (S (pick w u)))).
    + rewrite (IH (fun i => f (S i))). rewrite (total_seq_shift _ 1). reflexivity.
    + intros u Hu. cbn [pick]. destruct (Z.ltb_spec (x + u) x); [lia|]. do 3 f_equal. lia.
Qed.

(** The same as a count: exactly w_i words give i. *)
Theorem draw_count (w : list Z) (i : nat) : Forall (fun x => 0 <= x) w -> (i < length w)%nat ->
  count (fun u => Nat.eqb (pick w u) i) (words (sum w)) = at_ w i.
Proof.
  intros H Hi. unfold count. rewrite (draw_law w (fun j => one (Nat.eqb j i))) by assumption.
  replace (length w) with (i + S (length w - i - 1))%nat by lia.
  rewrite total_seq_split. cbn [seq total].
  rewrite (total_ext_in _ (fun _ => 0)), total_const.
  2:{ intros j Hj. apply in_seq in Hj. destruct (Nat.eqb_spec j i); [lia|]. simpl. lia. }
  rewrite (total_seq_shift _ 1).
  rewrite (total_ext_in _ (fun _ => 0) (seq 0 (length w - i - 1))), total_const.
  2:{ intros j Hj. destruct (Nat.eqb_spec (i + (1 + j)) i); [lia|]. simpl. lia. }
  rewrite Nat.add_0_r, Nat.eqb_refl. simpl. lia.
Qed.

Lemma pick_repeat c n u : 0 < c -> 0 <= u < c * Z.of_nat n -> pick (repeat c n) u = Z.to_nat (u / c).
Proof.
  intros Hc. revert u. induction n as [|n IH]; intros u Hu; [lia|]. cbn [repeat pick].
  destruct (Z.ltb_spec u c).
  - rewrite Z.div_small by lia. reflexivity.
  - rewrite IH by lia. replace u with ((u - c) + 1 * c) at 2 by lia. rewrite Z.div_add by lia.
    assert (0 <= (u - c) / c) by (apply Z.div_pos; lia). lia.
Qed.

Lemma at_repeat c n i : (i < n)%nat -> at_ (repeat c n) i = c.
Proof. unfold at_. revert i. induction n; intros [|i] H; simpl; auto; try lia. apply IHn. lia. Qed.

Lemma repeat_nonneg c n : 0 <= c -> Forall (fun x => 0 <= x) (repeat c n).
Proof. intros H. induction n; simpl; auto. Qed.

(** THE WORDS. A word is 8 bytes without their lowest bits, ⌊x/d⌋ for x uniform below d·N: each word below N comes
    from exactly d values of x, so that it is uniform. *)
Theorem word_uniform (d N : Z) (f : Z -> Z) : 0 < d -> 0 <= N ->
  total (fun x => f (x / d)) (words (d * N)) = d * total f (words N).
Proof.
  intros Hd HN. pose proof (draw_law (repeat d (Z.to_nat N)) (fun i => f (Z.of_nat i))) as H.
  rewrite sum_repeat, repeat_length, Z2Nat.id in H by assumption.
  rewrite (total_words_ext _ (fun x => f (Z.of_nat (pick (repeat d (Z.to_nat N)) x)))).
  - rewrite H by (apply repeat_nonneg; lia). unfold words. rewrite total_map, <- total_scale.
    apply total_ext_in. intros i Hi. apply in_seq in Hi. rewrite at_repeat by lia. reflexivity.
  - intros x Hx. rewrite pick_repeat by lia. rewrite Z2Nat.id; [reflexivity|]. apply Z.div_pos; lia.
Qed.

(** Rounding up. *)

Lemma ceil_spec a b : 0 < b -> a <= ceil a b * b < a + b.
Proof.
  intros Hb. unfold ceil.
  pose proof (Z.div_mod (- a) b). pose proof (Z.mod_pos_bound (- a) b Hb). lia.
Qed.

Lemma ceil_below a b v : 0 < b -> (v < ceil a b <-> v * b < a).
Proof. intros Hb. pose proof (ceil_spec a b Hb). nia. Qed.

Lemma ceil_mono a a' b : 0 < b -> a <= a' -> ceil a b <= ceil a' b.
Proof. intros Hb H. pose proof (ceil_spec a b Hb). pose proof (ceil_spec a' b Hb). nia. Qed.

Lemma ceil_whole k b : 0 < b -> ceil (k * b) b = k.
Proof. intros Hb. pose proof (ceil_spec (k * b) b Hb). nia. Qed.

Lemma shares_length N S e w : length (shares N S e w) = length w.
Proof. revert e. induction w; intros e; simpl; auto. Qed.

Lemma shares_sum N S e w : 0 < S -> sum (shares N S e w) = ceil ((e + sum w) * N) S - ceil (e * N) S.
Proof.
  intros HS. revert e. induction w as [|x w IH]; intros e; cbn [shares sum].
  - rewrite Z.add_0_r. lia.
  - rewrite IH. rewrite Z.add_assoc. lia.
Qed.

Lemma shares_nonneg N S e w : 0 < S -> 0 <= N -> Forall (fun x => 0 <= x) w ->
  Forall (fun x => 0 <= x) (shares N S e w).
Proof.
  intros HS HN H. revert e. induction H as [|x w Hx H IH]; intros e; cbn [shares]; constructor; auto.
  assert (ceil (e * N) S <= ceil ((e + x) * N) S); [|lia]. apply ceil_mono; nia.
Qed.

Lemma pick_scaled N S e w v : 0 < N -> 0 < S ->
  pick w (v * S / N - e) = pick (shares N S e w) (v - ceil (e * N) S).
Proof.
  intros HN HS. revert e. induction w as [|x w IH]; intros e; cbn [pick shares]; [reflexivity|].
  replace (v * S / N - e <? x) with (v - ceil (e * N) S <? ceil ((e + x) * N) S - ceil (e * N) S).
  - destruct (v - ceil (e * N) S <? _); [reflexivity|]. f_equal.
    replace (v * S / N - e - x) with (v * S / N - (e + x)) by lia.
    rewrite IH. f_equal. lia.
  - apply Bool.eq_true_iff_eq. rewrite !Z.ltb_lt.
    transitivity (v < ceil ((e + x) * N) S); [lia|]. rewrite ceil_below by lia.
    transitivity (v * S / N < e + x); [|lia].
    pose proof (Z.div_mod (v * S) N). pose proof (Z.mod_pos_bound (v * S) N HN). nia.
Qed.

(** THE SCALED DRAW. Drawing by ⌊v·S/N⌋ with S = Σw gives position i for exactly shares_i of the N words. *)
Theorem scaled_draw_law (N : Z) (w : list Z) (f : nat -> Z) :
  0 < N -> 0 < sum w -> Forall (fun x => 0 <= x) w ->
  total (fun v => f (pick w (v * sum w / N))) (words N)
  = total (fun i => at_ (shares N (sum w) 0 w) i * f i) (seq 0 (length w)).
Proof.
  intros HN HS Hw.
  assert (sum (shares N (sum w) 0 w) = N) as HT.
  { rewrite shares_sum by lia. rewrite Z.add_0_l, Z.mul_0_l.
    rewrite (Z.mul_comm (sum w)), ceil_whole by lia.
    pose proof (ceil_whole 0 (sum w) HS) as H0. rewrite Z.mul_0_l in H0. lia. }
  rewrite <- (shares_length N (sum w) 0 w).
  rewrite <- draw_law by (apply shares_nonneg; auto; lia). rewrite HT.
  apply total_ext. intros v. f_equal.
  pose proof (pick_scaled N (sum w) 0 w v HN HS) as H. rewrite Z.mul_0_l in H.
  pose proof (ceil_whole 0 (sum w) HS) as H0. rewrite Z.mul_0_l in H0. rewrite H0, !Z.sub_0_r in H. exact H.
Qed.

(** Each share is within one word of N·w_i/S. *)
Theorem shares_near N S e w i : 0 < S -> (i < length w)%nat ->
  at_ w i * N - S < at_ (shares N S e w) i * S < at_ w i * N + S.
Proof.
  intros HS. unfold at_. revert e i. induction w as [|x w IH]; intros e i Hi; simpl in Hi; [lia|].
  destruct i as [|i]; cbn [shares nth]; [|apply IH; lia].
  pose proof (ceil_spec ((e + x) * N) S HS). pose proof (ceil_spec (e * N) S HS). nia.
Qed.

(** Share i is ⌈E_{i+1}·N/S⌉ − ⌈E_i·N/S⌉, where E_i = w_0 + … + w_{i−1}: the formula of docs/format.md. *)
Theorem shares_at N S w i : (i < length w)%nat ->
  at_ (shares N S 0 w) i = ceil (sum (firstn (Datatypes.S i) w) * N) S - ceil (sum (firstn i w) * N) S.
Proof.
  enough (forall e, (i < length w)%nat -> at_ (shares N S e w) i
    = ceil ((e + sum (firstn (Datatypes.S i) w)) * N) S - ceil ((e + sum (firstn i w)) * N) S) as H.
  { intros Hi. rewrite H by assumption. reflexivity. }
  unfold at_. revert i. induction w as [|x w IH]; intros i e Hi; simpl in Hi; [lia|].
  destruct i as [|i]; cbn [shares nth].
  - simpl. rewrite !Z.add_0_r. reflexivity.
  - rewrite IH by lia. rewrite (firstn_cons (Datatypes.S i)), (firstn_cons i). cbn [sum].
    now rewrite !Z.add_assoc.
Qed.

(** Records. *)

Lemma walk_records_pick weights number : 0 <= number < sum (map snd weights) ->
  walk_records weights number = Some (nth (pick (map snd weights) number) (map fst weights) 0%nat).
Proof.
  revert number. induction weights as [|[place k] rest IH]; intros number H; simpl in *; [lia|].
  destruct (Z.ltb_spec (number - k) 0), (Z.ltb_spec number k); try lia; [reflexivity|].
  rewrite IH by lia. reflexivity.
Qed.

(** THE CHOICE OF A RECORD. It always finds one, and entry i of the user's weights is chosen for exactly
    ⌈(K_i + k_i)·N/K⌉ − ⌈K_i·N/K⌉ words. *)
Theorem choose_record_law (N : Z) (weights : list (nat * Z)) (f : option nat -> Z) :
  0 < N -> 0 < sum (map snd weights) -> Forall (fun x => 0 <= x) (map snd weights) ->
  total (fun word => f (choose_record weights word N)) (words N)
  = total (fun i => at_ (shares N (sum (map snd weights)) 0 (map snd weights)) i
                    * f (Some (nth i (map fst weights) 0%nat))) (seq 0 (length weights)).
Proof.
  intros HN HK Hw.
  rewrite (total_words_ext _ (fun word =>
    (fun i => f (Some (nth i (map fst weights) 0%nat))) (pick (map snd weights) (word * sum (map snd weights) / N)))).
  - rewrite (scaled_draw_law N (map snd weights) (fun i => f (Some (nth i (map fst weights) 0%nat)))) by assumption.
    now rewrite map_length.
  - intros u Hu. unfold choose_record. rewrite walk_records_pick; [reflexivity|].
    split; [apply Z.div_pos; nia|apply Z.div_lt_upper_bound; nia].
Qed.
