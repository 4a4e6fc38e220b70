(** The checker that is extracted, and what its "yes" means: one theorem for every kind of mechanism.

    [check] is what a client must do with the integers of a mechanism file before it releases (docs/format.md):
    ε and its ratio, the certificate of the kind, the claim about the prior. *)

From Coq Require Import ZArith Reals List Lia Bool Permutation Mergesort Orders.
From Sottovoce Require Import Sums Draw Privacy Exp Box Clip BoxRelease Kernel Response Survey.
Import ListNotations.
Open Scope Z_scope.

(** The integers of a mechanism, as its file has them. *)
Inductive kind :=
  | BoxKind (prior low : list Z)
  | KernelKind (order prior low own : list Z)
  | ResponseKind (kept : list Z) (own other : Z) (prior : list Z)
  | SurveyKind (base own other : Z).

Record mechanism := Mechanism {
  bits : Z;  (* N = 2^bits; a file has 62 *)
  size : Z;  (* how many categories *)
  epsilon_up : Z; epsilon_down : Z;
  ratio_up : Z; ratio_down : Z;
  keeps_prior : bool;
  body : kind }.

Definition units (m : mechanism) : Z := 2 ^ bits m.

Module ZOrder <: TotalLeBool.
  Definition t := Z.
  Definition leb := Z.leb.
  Lemma leb_total : forall x y, leb x y = true \/ leb y x = true.
  Proof. intros x y. unfold leb. rewrite !Z.leb_le. lia. Qed.
End ZOrder.
Module ZSort := Sort ZOrder.

(** start, start + 1, …: whether a list is just that. *)
Fixpoint counts_up (start : Z) (l : list Z) : bool :=
  match l with
  | [] => true
  | x :: rest => if x =? start then counts_up (start + 1) rest else false
  end.

(** Each above the one before it, the first above `least`. *)
Fixpoint strictly_above (least : Z) (l : list Z) : bool :=
  match l with
  | [] => true
  | x :: rest => if least <? x then strictly_above x rest else false
  end.

Definition has_size (n : Z) (l : list Z) : bool := Z.of_nat (length l) =? n.
Definition wholes (N : Z) (l : list Z) : bool := forallb (fun x => (0 <=? x) && (x <=? N)) l.

(** The weights of the prior: one for each category, at least 1 each, N in all. *)
Definition check_prior (N n : Z) (prior : list Z) : bool :=
  has_size n prior && forallb (fun x => 1 <=? x) prior && (sum prior =? N).

Fixpoint columns (prior low own : list Z) : list column :=
  match prior, low, own with
  | q :: prior', a :: low', o :: own' => Column q a o :: columns prior' low' own'
  | _, _, _ => []
  end.

Fixpoint all_between (low w high : list Z) : bool :=
  match low, w, high with
  | a :: low', x :: w', b :: high' => if (a <=? x) && (x <=? b) then all_between low' w' high' else false
  | [], [], [] => true
  | _, _, _ => false
  end.

(** max − min ≤ 1. *)
Definition level (l : list Z) : bool :=
  match l with
  | [] => false
  | x :: rest => fold_right Z.max x rest - fold_right Z.min x rest <=? 1
  end.

Definition check_kind (N n up down : Z) (keeps : bool) (b : kind) : bool :=
  match b with
  | BoxKind prior low =>
      has_size n low && wholes N low && check_box up down N low && check_prior N n prior
      && Bool.eqb keeps (all_between low prior (highs up down N low))
  | KernelKind order prior low own =>
      has_size n order && counts_up 0 (ZSort.sort order)
      && has_size n prior && has_size n low && has_size n own && wholes N low && wholes N own
      && check_kernel up down N (columns prior low own) && keeps
  | ResponseKind kept own other prior =>
      let sorted := ZSort.sort kept in
      strictly_above (-1) sorted && forallb (fun x => x <? n) kept
      && wholes N [own; other]
      && check_response up down N own other (length kept) && check_prior N n prior
      && Bool.eqb keeps (has_size n kept && level prior)
  | SurveyKind base own other =>
      wholes N [own; other] && check_survey up down N base n own other && negb keeps
  end.

(** What every file has: fractions in lowest terms, and 0 < ε ≤ 100. *)
Definition check_heading (bits size a b up down : Z) : bool :=
  (1 <=? bits) && (bits <=? 62) && (1 <=? size)
  && (0 <? a) && (0 <? b) && (a <=? 100 * b) && (0 <? up) && (0 <? down)
  && (Z.gcd a b =? 1) && (Z.gcd up down =? 1).

(** The heading, the certificate of the kind, and A = ⌊2^64·e^ε⌋/2^64. *)
Definition check (m : mechanism) : bool :=
  check_heading (bits m) (size m) (epsilon_up m) (epsilon_down m) (ratio_up m) (ratio_down m)
  && check_kind (units m) (size m) (ratio_up m) (ratio_down m) (keeps_prior m) (body m)
  && check_ratio (epsilon_up m) (epsilon_down m) (ratio_up m) (ratio_down m).

(** ε as a real number. *)
Definition epsilon (m : mechanism) : R := (IZR (epsilon_up m) / IZR (epsilon_down m))%R.

(** Where a place stands in a list of places; the list's length where it does not stand. *)
Fixpoint index_of (place : nat) (l : list Z) : nat :=
  match l with
  | [] => 0%nat
  | x :: rest => if x =? Z.of_nat place then 0%nat else S (index_of place rest)
  end.

(** The place that a rank or a slot means. *)
Definition place_at (l : list Z) (i : nat) : nat := Z.to_nat (at_ l i).

(** The record that a word chooses. *)
Definition record (N : Z) (weights : list (nat * Z)) (word : Z) : nat :=
  match choose_record weights word N with Some place => place | None => 0%nat end.

Definition slot_of (kept : list Z) (place : nat) : option nat :=
  let i := index_of place kept in if (i <? length kept)%nat then Some i else None.

(** What a mechanism releases for a user: the place, from the words in the order in which they are read. A box
    looks at the first word only, a response at two. *)
Definition answer (m : mechanism) (weights : list (nat * Z)) (word u v : Z) : option nat :=
  let N := units m in
  match body m with
  | BoxKind prior low => box_position N prior low (highs (ratio_up m) (ratio_down m) N low) weights word
  | KernelKind order prior low own =>
      Some (place_at order (draw_row N (columns prior low own) (index_of (record N weights word) order) u v))
  | ResponseKind kept own other prior =>
      Some (place_at kept (draw_response N own other (length kept) (slot_of kept (record N weights word)) u))
  | SurveyKind base own other => Some (draw_survey N base (size m) own other (record N weights word) u v)
  end.

(** How many different answers there are: the categories or, of a survey, its reports. *)
Definition answers (m : mechanism) : Z :=
  match body m with SurveyKind base _ _ => questions base (size m) * base | _ => size m end.

(** How many tapes there are, and how many of them lead a user into an event S of places. *)
Definition all_tapes (m : mechanism) : Z :=
  let N := units m in
  match body m with
  | BoxKind _ _ => N
  | KernelKind _ _ _ _ | SurveyKind _ _ _ => N * N * N
  | ResponseKind _ _ _ _ => N * N
  end.

Definition tapes_into (m : mechanism) (weights : list (nat * Z)) (S : nat -> bool) : Z :=
  let N := units m in
  match body m with
  | BoxKind prior low => box_words N prior low (highs (ratio_up m) (ratio_down m) N low) weights S
  | KernelKind order prior low own =>
      tapes N (columns prior low own) (fun word => index_of (record N weights word) order)
            (fun rank => S (place_at order rank))
  | ResponseKind kept own other prior =>
      response_tapes N own other (length kept) (fun word => slot_of kept (record N weights word))
                     (fun slot => S (place_at kept slot))
  | SurveyKind base own other => survey_tapes N base (size m) own other (record N weights) S
  end.

(** A user with at least one record. *)
Definition has_records (m : mechanism) (weights : list (nat * Z)) : Prop :=
  user (Z.to_nat (size m)) weights /\ weights <> [].

(* ------------------------------------------------------------------ proofs *)

Lemma has_size_length n l : has_size n l = true -> Z.of_nat (length l) = n.
Proof. unfold has_size. now rewrite Z.eqb_eq. Qed.

Lemma columns_length prior low own : length low = length prior -> length own = length prior ->
  length (columns prior low own) = length prior.
Proof.
  revert low own. induction prior as [|q prior IH]; intros [|a low] [|o own] H1 H2; simpl in *; try discriminate;
    auto.
Qed.

Lemma counts_up_in start l i : counts_up start l = true -> start <= i < start + Z.of_nat (length l) -> In i l.
Proof.
  revert start. induction l as [|x l IH]; intros start H Hi; cbn [length counts_up] in *; [lia|].
  destruct (Z.eqb_spec x start) as [->|]; [|discriminate].
  destruct (Z.eq_dec i start) as [->|]; [now left|]. right. apply (IH (start + 1)); [assumption|lia].
Qed.

Lemma order_has order place : counts_up 0 (ZSort.sort order) = true -> (place < length order)%nat ->
  In (Z.of_nat place) order.
Proof.
  intros H Hp. pose proof (ZSort.Permuted_sort order) as HP.
  apply Permutation_in with (ZSort.sort order); [now apply Permutation_sym|].
  apply counts_up_in with 0; [assumption|]. rewrite <- (Permutation_length HP). lia.
Qed.

Lemma counts_up_below start l x : counts_up start l = true -> In x l -> x < start + Z.of_nat (length l).
Proof.
  revert start. induction l as [|y l IH]; intros start H Hin; cbn [length counts_up In] in *; [contradiction|].
  destruct (Z.eqb_spec y start) as [->|]; [|discriminate]. destruct Hin as [->|Hin]; [lia|].
  specialize (IH (start + 1) H Hin). lia.
Qed.

Lemma order_below order x : counts_up 0 (ZSort.sort order) = true -> In x order -> x < Z.of_nat (length order).
Proof.
  intros H Hin. pose proof (ZSort.Permuted_sort order) as HP. rewrite (Permutation_length HP).
  apply (counts_up_below 0); [assumption|]. now apply Permutation_in with order.
Qed.

Lemma index_of_in place l : In (Z.of_nat place) l -> (index_of place l < length l)%nat.
Proof.
  induction l as [|x l IH]; simpl; [contradiction|]. intros H.
  destruct (Z.eqb_spec x (Z.of_nat place)); [lia|]. destruct H as [H|H]; [congruence|]. specialize (IH H). lia.
Qed.

Lemma slot_of_ok kept place : slot_ok (length kept) (slot_of kept place).
Proof. unfold slot_of. destruct (Nat.ltb_spec (index_of place kept) (length kept)); simpl; auto. Qed.

(** The chosen record is one of the user's, so it is a category. *)
Lemma record_is_one N n weights word : 0 < N -> user n weights -> weights <> [] -> 0 <= word < N ->
  In (record N weights word) (map fst weights) /\ (record N weights word < n)%nat.
Proof.
  intros HN [Ho Hk] Hne Hw.
  assert (0 < sum (map snd weights)) as HK.
  { destruct weights as [|[p k] rest]; [congruence|]. inversion Hk as [|? ? H1 Hk']; subst. cbn [map snd sum].
    assert (0 <= sum (map snd rest)); [|lia]. apply sum_nonneg, Forall_map.
    eapply Forall_impl; [|exact Hk']. intros [q w]. simpl. lia. }
  assert (0 <= word * sum (map snd weights) / N < sum (map snd weights)) as Hnum
    by (split; [apply Z.div_pos; nia|apply Z.div_lt_upper_bound; nia]).
  assert (In (record N weights word) (map fst weights)) as Hin.
  { unfold record, choose_record. rewrite walk_records_pick by assumption. apply nth_In.
    rewrite map_length, <- (map_length snd). now apply pick_spec. }
  split; [assumption|]. now destruct (ordered_in _ _ _ _ Ho Hin).
Qed.

(** What [tapes_into] counts is what [answer] releases, over all words. *)
Theorem tapes_into_counts (m : mechanism) weights (S : nat -> bool) :
  let into := fun released : option nat => match released with Some i => S i | None => false end in
  let N := units m in
  tapes_into m weights S = match body m with
    | BoxKind _ _ => count (fun word => into (answer m weights word 0 0)) (words N)
    | KernelKind _ _ _ _ | SurveyKind _ _ _ => total (fun word => total (fun u =>
        count (fun v => into (answer m weights word u v)) (words N)) (words N)) (words N)
    | ResponseKind _ _ _ _ => total (fun word => count (fun u => into (answer m weights word u 0)) (words N)) (words N)
    end.
Proof. unfold tapes_into, answer. destruct (body m); reflexivity. Qed.

(** THE CHECKER. If it says yes, then for every two users with records, whatever they are, and every event S:
    Pr[release ∈ S] ≤ e^ε·Pr'[release ∈ S]. *)
Theorem check_sound (m : mechanism) : check m = true ->
  forall weights weights', has_records m weights -> has_records m weights' -> forall S : nat -> bool,
  (probability (tapes_into m weights S) (all_tapes m)
   <= exp (epsilon m) * probability (tapes_into m weights' S) (all_tapes m))%R.
Proof.
  unfold check, check_heading. rewrite !andb_true_iff, !Z.ltb_lt, !Z.leb_le.
  intros [[[[[[[[[[[Hb1 Hb2] Hn] _] _] _] _] _] _] _] Hkind] Hratio] weights weights' [Hu Hne] [Hu' Hne'] S.
  apply check_ratio_sound in Hratio. destruct Hratio as [HA _]. fold (epsilon m) in HA.
  assert (0 < units m) as HN by (apply Z.pow_pos_nonneg; lia).
  unfold tapes_into, all_tapes. unfold check_kind in Hkind. destruct (body m) as [prior low|order prior low own|kept own other prior|base own other].
  - rewrite !andb_true_iff in Hkind. destruct Hkind as [[[[Hs _] Hc] Hp] _].
    apply has_size_length in Hs. unfold check_prior in Hp. rewrite !andb_true_iff in Hp.
    destruct Hp as [[Hps Hp1] _]. apply has_size_length in Hps.
    assert (length low = Z.to_nat (size m)) as Hl by lia.
    apply box_release_private; auto.
    + lia.
    + apply Forall_forall. intros x Hx. rewrite forallb_forall in Hp1. apply Z.leb_le. auto.
    + now rewrite Hl.
    + now rewrite Hl.
  - rewrite !andb_true_iff in Hkind. destruct Hkind as [[[[[[[[Hos Ho] Hps] Hls] Hws] _] _] Hc] _].
    apply has_size_length in Hos, Hps, Hls, Hws.
    assert (length (columns prior low own) = length order) as Hlen by (rewrite columns_length; lia).
    assert (forall ws, user (Z.to_nat (size m)) ws -> ws <> [] -> forall word, 0 <= word < units m ->
      (index_of (record (units m) ws word) order < length (columns prior low own))%nat) as Hrank.
    { intros ws Hws' Hnews word Hword. rewrite Hlen. apply index_of_in, order_has; [assumption|].
      destruct (record_is_one (units m) (Z.to_nat (size m)) ws word HN Hws' Hnews Hword) as [_ H]. lia. }
    apply kernel_private with (ratio_up m) (ratio_down m); auto.
  - rewrite !andb_true_iff in Hkind. destruct Hkind as [[[[[_ _] _] Hc] _] _].
    apply response_private with (ratio_up m) (ratio_down m); auto; intros; apply slot_of_ok.
  - rewrite !andb_true_iff in Hkind. destruct Hkind as [[_ Hc] _].
    now apply survey_private with (ratio_up m) (ratio_down m).
Qed.

(** SOMETHING IS RELEASED. For every tape, and always one of the categories or, of a survey, of its reports. *)
Theorem check_releases (m : mechanism) : check m = true -> forall weights, has_records m weights ->
  tapes_into m weights (fun place => (place <? Z.to_nat (answers m))%nat) = all_tapes m.
Proof.
  unfold check, check_heading. rewrite !andb_true_iff, !Z.leb_le.
  intros [[[[[[[[[[[Hb1 Hb2] Hn] _] _] _] _] _] _] _] Hkind] _] weights [Hu Hne].
  assert (0 < units m) as HN by (apply Z.pow_pos_nonneg; lia).
  unfold tapes_into, all_tapes, answers. unfold check_kind in Hkind.
  destruct (body m) as [prior low|order prior low own|kept own other prior|base own other].
  - rewrite !andb_true_iff in Hkind. destruct Hkind as [[[[Hs _] Hc] Hp] _].
    apply has_size_length in Hs. unfold check_prior in Hp. rewrite !andb_true_iff in Hp.
    destruct Hp as [[Hps Hp1] _]. apply has_size_length in Hps.
    destruct (box_words_units (ratio_up m) (ratio_down m) (units m) prior low weights) as (w & Hw & Hwords); auto.
    + lia.
    + apply Forall_forall. intros x Hx. rewrite forallb_forall in Hp1. apply Z.leb_le. auto.
    + now replace (length low) with (Z.to_nat (size m)) by lia.
    + rewrite Hwords. destruct Hw as (Hl & Hsum & _). transitivity (sum w); [|assumption]. unfold units_in. rewrite sum_seq.
      apply total_ext_in. intros i Hi. apply in_seq in Hi.
      destruct (Nat.ltb_spec i (Z.to_nat (size m))); [simpl; lia|lia].
  - rewrite !andb_true_iff in Hkind. destruct Hkind as [[[[[[[[Hos Ho] Hps] Hls] Hws] _] _] Hc] _].
    apply has_size_length in Hos, Hps, Hls, Hws.
    set (k := columns prior low own) in *.
    assert (length k = length order) as Hlen by (unfold k; rewrite columns_length; lia).
    unfold tapes. rewrite (total_words_const _ (units m) (units m * units m)); [lia|lia|].
    intros word Hword. set (r := index_of _ order).
    assert (r < length k)%nat as Hr.
    { rewrite Hlen. apply index_of_in, order_has; [assumption|].
      destruct (record_is_one (units m) (Z.to_nat (size m)) weights word HN Hu Hne Hword) as [_ H]. lia. }
    transitivity (total (fun u => total (fun v => (fun _ : nat => 1) (draw_row (units m) k r u v)) (words (units m)))
      (words (units m))).
    + unfold count. rewrite (row_law _ _ (units m) k r (fun j => one (place_at order j <? Z.to_nat (size m))%nat) Hc Hr).
      rewrite (row_law _ _ (units m) k r (fun _ => 1) Hc Hr). apply total_ext_in. intros j Hj. apply in_seq in Hj.
      assert (place_at order j < Z.to_nat (size m))%nat as Hplace.
      { unfold place_at. assert (at_ order j < Z.of_nat (length order)) as Hb; [|lia].
        apply (order_below order); [assumption|]. apply at_in. lia. }
      destruct (Nat.ltb_spec (place_at order j) (Z.to_nat (size m))); [reflexivity|lia].
    + apply total_words_const; [lia|]. intros u Hu'. rewrite total_const, length_words; lia.
  - rewrite !andb_true_iff in Hkind. destruct Hkind as [[[[[_ Hkept] _] Hc] _] _].
    unfold response_tapes. rewrite (total_words_const _ (units m) (units m)); [lia|lia|].
    intros word Hword. set (slot := slot_of kept _).
    assert (slot_ok (length kept) slot) as Hslot by apply slot_of_ok.
    transitivity (total (fun u => (fun _ : nat => 1) (draw_response (units m) own other (length kept) slot u))
      (words (units m))).
    + unfold count. rewrite (response_law _ _ (units m) own other (length kept) slot
        (fun j => one (place_at kept j <? Z.to_nat (size m))%nat) Hc Hslot).
      rewrite (response_law _ _ (units m) own other (length kept) slot (fun _ => 1) Hc Hslot).
      apply total_ext_in. intros j Hj. apply in_seq in Hj.
      assert (place_at kept j < Z.to_nat (size m))%nat as Hplace.
      { unfold place_at. rewrite forallb_forall in Hkept.
        specialize (Hkept (at_ kept j) (at_in kept j ltac:(lia))). apply Z.ltb_lt in Hkept. lia. }
      destruct (Nat.ltb_spec (place_at kept j) (Z.to_nat (size m))); [reflexivity|lia].
    + rewrite total_const, length_words; lia.
  - rewrite !andb_true_iff in Hkind. destruct Hkind as [[_ Hc] _].
    unfold survey_tapes. rewrite (total_words_const _ (units m) (units m * units m)); [lia|lia|].
    intros word Hword. apply total_words_const; [lia|]. intros asked Hasked. unfold count.
    rewrite (total_words_const _ (units m) 1); [lia|lia|]. intros u Hu'.
    pose proof (survey_releases _ _ _ _ _ _ _ (record (units m) weights word) asked u Hc Hasked Hu').
    destruct (Nat.ltb_spec (draw_survey (units m) base (size m) own other (record (units m) weights word) asked u)
      (Z.to_nat (questions base (size m) * base))); [reflexivity|lia].
Qed.

(** And A is the one that the format prescribes: A ≤ e^ε < A + 2^-64. *)
Theorem check_ratio_exact (m : mechanism) : check m = true ->
  (IZR (ratio_up m) / IZR (ratio_down m) <= exp (epsilon m)
   < IZR (ratio_up m) / IZR (ratio_down m) + / IZR (2 ^ 64))%R.
Proof.
  unfold check. rewrite !andb_true_iff. intros [_ Hratio].
  apply check_ratio_sound in Hratio. destruct Hratio as [[_ H] H']. split; assumption.
Qed.
