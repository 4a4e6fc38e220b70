(** Releases and streams together: a user's whole life with the ledger, where steps of streams stand between other
    releases in any order, is private for the budget. A stream is charged once, when it begins.

    An errand is what may be asked of one user: the next question may depend on all answers so far, and on whether one
    was refused. The streams of a user are counted from the newest, which is number 0. Ledger.charge charges a release
    or the beginning of a stream before anything is drawn; a step uses the state of its stream, once, and stores the
    next one (StreamEngine.moved). *)

From Coq Require Import ZArith Reals List Lia Lra Bool.
From Sottovoce Require Import Sums Draw Privacy Exp Stream Checker StreamCheck Compose Together.
Import ListNotations.
Open Scope Z_scope.

Inductive errand :=
  | Home
  | Single (m : mechanism) (next : nat -> errand) (refused : errand)
  | Begin (s : stream) (next refused : errand)
  | Step (life : nat) (next : nat -> errand) (refused : errand).

(** The state of a stream: its file and the two bounds of R. *)
Definition state : Type := stream * Z * Z.

(** A user: records for single releases; for a step the law that the rule picks, from all that was released and
    everything the user has, for this stream and its bounds. *)
Record person := Person { records : data; rule : list nat -> nat -> state -> list Z }.

Definition stream_cost (s : stream) : Z := charge_of (stream_epsilon_up s) (stream_epsilon_down s).

Fixpoint replace {A : Type} (i : nat) (x : A) (l : list A) : list A :=
  match l, i with
  | [], _ => []
  | _ :: rest, O => x :: rest
  | y :: rest, S i' => y :: replace i' x rest
  end.

(** The next state of a stream that releases category i. *)
Definition next_state (public law : list Z) (now : state) (i : nat) : state :=
  let '(s, low, high) := now in
  let (low', high') := moved_coded s low high (at_ public i) (at_ law i) in (s, low', high').

Open Scope R_scope.

(** The probability that all that leaves for a person, in its order, falls into an event. *)
Fixpoint life_chance (public : list nat -> nat -> stream -> list Z) (budget spent : Z) (who : person)
                     (states : list state) (past : list nat) (e : errand) (event : list nat -> bool) : R :=
  match e with
  | Home => if event [] then 1 else 0
  | Single m next refused =>
      if check m && can_pay budget spent m
      then sum_below (Z.to_nat (answers m)) (fun i => law_of m (records who past m) i
             * life_chance public budget (spent + cost m) who states (past ++ [i]) (next i) (fun t => event (i :: t)))
      else life_chance public budget spent who states past refused event
  | Begin s next refused =>
      if check_stream s && (spent + stream_cost s <=? budget)%Z
      then life_chance public budget (spent + stream_cost s) who ((s, stream_start s, stream_start s) :: states) past next event
      else life_chance public budget spent who states past refused event
  | Step life next refused =>
      match nth_error states life with
      | None => life_chance public budget spent who states past refused event
      | Some now =>
          let s := fst (fst now) in
          let law := rule who past life now in
          sum_below (Z.to_nat (stream_size s)) (fun i => probability (at_ law i) (stream_units s)
            * life_chance public budget spent who (replace life (next_state (public past life s) law now i) states)
                (past ++ [i]) (next i) (fun t => event (i :: t)))
      end
  end.

(** A rule that picks its laws in the box of the state: V·Q ≤ w ≤ U·Q. *)
Definition rule_in_box (public : list nat -> nat -> stream -> list Z) (who : person) : Prop :=
  forall past life s low high i, check_stream s = true ->
  (one_of s <= low)%Z -> (low <= high)%Z -> (high <= most_of s)%Z -> (i < Z.to_nat (stream_size s))%nat ->
  let q := at_ (public past life s) i in
  (0 < q /\ least_ratio (one_of s) (unit_of s) low * q <= at_ (rule who past life (s, low, high)) i
            <= most_ratio (most_of s) (unit_of s) high * q)%Z.

(* ------------------------------------------------------------------ proofs *)

(** The bounds of a state are inside and enclose R. *)
Definition encloses (s : stream) (low high : Z) (r : R) : Prop :=
  (one_of s <= low)%Z /\ (high <= most_of s)%Z /\ IZR low <= r <= IZR high.

(** Two persons with the same streams, and how much more likely one may still become than the other. *)
Inductive level_with : list state -> list state -> R -> Prop :=
  | no_streams : level_with [] [] 1
  | one_more s low high low' high' r r' states states' f :
      check_stream s = true -> encloses s low high r -> encloses s low' high' r' -> level_with states states' f ->
      level_with ((s, low, high) :: states) ((s, low', high') :: states')
                 (IZR (most_of s) * r' / (IZR (one_of s) * r) * f).

Lemma checked_reals s : check_stream s = true ->
  0 < IZR (one_of s) /\ 0 < IZR (unit_of s) /\ 0 < IZR (stream_units s)
  /\ IZR (most_of s) / IZR (one_of s) <= exp (stream_epsilon s).
Proof.
  intros Hc. destruct (checked_numbers s Hc) as (Hb & Hu & Ho & Hom & Hd & Hm).
  assert (0 < stream_units s)%Z as HN by (apply Z.pow_pos_nonneg; lia).
  apply IZR_lt in Ho, Hu, HN, Hd. repeat split; try assumption.
  unfold check_stream in Hc. rewrite !andb_true_iff in Hc. destruct Hc as [_ Hr].
  apply check_ratio_sound in Hr. destruct Hr as [[_ HA] _]. fold (stream_epsilon s) in HA.
  eapply Rle_trans; [|exact HA]. apply IZR_le in Hm. rewrite !mult_IZR in Hm.
  apply Rmult_le_reg_r with (IZR (one_of s) * IZR (stream_ratio_down s)); [now apply Rmult_lt_0_compat|].
  replace (IZR (most_of s) / IZR (one_of s) * (IZR (one_of s) * IZR (stream_ratio_down s)))
    with (IZR (most_of s) * IZR (stream_ratio_down s)) by (field; lra).
  replace (IZR (stream_ratio_up s) / IZR (stream_ratio_down s) * (IZR (one_of s) * IZR (stream_ratio_down s)))
    with (IZR (one_of s) * IZR (stream_ratio_up s)) by (field; lra). exact Hm.
Qed.

Lemma encloses_bounds s low high r : encloses s low high r ->
  (low <= high)%Z /\ IZR (one_of s) <= r <= IZR (most_of s).
Proof.
  intros (H1 & H2 & H3). split; [apply le_IZR; lra|]. apply IZR_le in H1, H2. lra.
Qed.

Lemma encloses_next s low high r q w : check_stream s = true -> encloses s low high r -> (0 < q)%Z ->
  (least_ratio (one_of s) (unit_of s) low * q <= w <= most_ratio (most_of s) (unit_of s) high * q)%Z ->
  (0 < w)%Z /\ let (low', high') := moved_coded s low high q w in
    encloses s low' high' (r * IZR w / (IZR (unit_of s) * IZR q)).
Proof.
  intros Hc He Hq Hw. destruct (encloses_bounds _ _ _ _ He) as [Hlh _]. destruct He as (H1 & H2 & H3).
  pose proof (moved_inside s low high q w Hc H1 Hlh H2 Hq Hw) as Hin. rewrite moved_as_coded in Hin |- * by assumption.
  destruct (checked_numbers s Hc) as (_ & Hu & Ho & Hom & _).
  destruct (step_in_range (one_of s) (most_of s) (unit_of s) Hu Ho low high q w Hq H1 ltac:(lia) Hw) as (Hl & Hh & Hp).
  assert (0 < w)%Z as Hw0 by nia. split; [assumption|].
  destruct (moved_encloses (one_of s) (most_of s) (unit_of s) Hu Ho low high q w low 1 Hq Hp ltac:(lia) H1 ltac:(lia) Hl Hh
    ltac:(lia) ltac:(lia)) as [Ha _].
  destruct (moved_encloses (one_of s) (most_of s) (unit_of s) Hu Ho low high q w high 1 Hq Hp ltac:(lia) H1 ltac:(lia) Hl Hh
    ltac:(lia) ltac:(lia)) as [_ Hb].
  destruct (moved (one_of s) (most_of s) (unit_of s) low high q w) as [low' high']. cbn [fst snd] in Ha, Hb.
  rewrite Z.mul_1_l in Ha, Hb. destruct Hin as (I1 & _ & I3). split; [assumption|]. split; [assumption|].
  apply IZR_le in Ha, Hb. rewrite !mult_IZR in Ha, Hb. apply IZR_lt in Hu, Hq, Hw0.
  set (d := IZR (unit_of s) * IZR q) in *. assert (0 < d) as Hd by now apply Rmult_lt_0_compat.
  split; apply Rmult_le_reg_r with d; try assumption;
    replace (r * IZR w / d * d) with (r * IZR w) by (field; lra).
  - apply Rle_trans with (IZR low * IZR w); [assumption|]. apply Rmult_le_compat_r; lra.
  - apply Rle_trans with (IZR high * IZR w); [|assumption]. apply Rmult_le_compat_r; lra.
Qed.

(** A factor is at least 1: nothing that was released can be held against it. *)
Lemma level_at_least_one states states' f : level_with states states' f -> 1 <= f.
Proof.
  induction 1 as [|s low high low' high' r r' states states' f Hc He He' _ IH]; [lra|].
  destruct (encloses_bounds _ _ _ _ He) as [_ Hr]. destruct (encloses_bounds _ _ _ _ He') as [_ Hr'].
  destruct (checked_reals s Hc) as (Ho & _).
  assert (0 < IZR (one_of s) * r) as Hpos by (apply Rmult_lt_0_compat; lra).
  assert (1 <= IZR (most_of s) * r' / (IZR (one_of s) * r)) as H1.
  { apply Rmult_le_reg_r with (IZR (one_of s) * r); [assumption|].
    replace (IZR (most_of s) * r' / (IZR (one_of s) * r) * (IZR (one_of s) * r)) with (IZR (most_of s) * r')
      by (field; lra).
    rewrite Rmult_1_l, (Rmult_comm (IZR (one_of s))). apply Rmult_le_compat; lra. }
  rewrite <- (Rmult_1_l 1). apply Rmult_le_compat; lra.
Qed.

(** One stream among all: what the others contribute, and what a new state of it makes of the factor. *)
Lemma level_at states states' f life : level_with states states' f ->
  match nth_error states life with
  | None => nth_error states' life = None
  | Some (s, low, high) => exists low' high' r r' f0,
      nth_error states' life = Some (s, low', high') /\ check_stream s = true
      /\ encloses s low high r /\ encloses s low' high' r' /\ f = IZR (most_of s) * r' / (IZR (one_of s) * r) * f0
      /\ forall a b a' b' t t', encloses s a b t -> encloses s a' b' t' ->
         level_with (replace life (s, a, b) states) (replace life (s, a', b') states')
                    (IZR (most_of s) * t' / (IZR (one_of s) * t) * f0)
  end.
Proof.
  intros H. revert life.
  induction H as [|s low high low' high' r r' states states' f Hc He He' Hl IH]; intros [|life]; cbn [nth_error replace];
    try reflexivity.
  - exists low', high', r, r', f. repeat (split; [solve [auto]|]). intros. now constructor.
  - specialize (IH life). destruct (nth_error states life) as [[[s0 low0] high0]|]; [|assumption].
    destruct IH as (lo' & hi' & t & t' & f0 & E1 & E2 & E3 & E4 & E5 & E6).
    exists lo', hi', t, t', (IZR (most_of s) * r' / (IZR (one_of s) * r) * f0).
    repeat (split; [solve [auto]|]). split.
    + rewrite E5. ring.
    + intros a b a' b' x x' Hx Hx'. specialize (E6 a b a' b' x x' Hx Hx').
      replace (IZR (most_of s0) * x' / (IZR (one_of s0) * x) * (IZR (most_of s) * r' / (IZR (one_of s) * r) * f0))
        with (IZR (most_of s) * r' / (IZR (one_of s) * r) * (IZR (most_of s0) * x' / (IZR (one_of s0) * x) * f0)) by ring.
      now constructor.
Qed.

Lemma exp_charges budget spent a b : (0 < b)%Z ->
  exp (IZR a / IZR b) * exp (IZR (budget - (spent + charge_of a b)) / IZR MICRO)
  <= exp (IZR (budget - spent) / IZR MICRO).
Proof.
  intros Hb. assert (0 < IZR MICRO) by (apply IZR_lt; reflexivity). pose proof (charge_covers a b Hb) as H0.
  rewrite <- exp_plus. replace (IZR (budget - spent) / IZR MICRO)
    with (IZR (charge_of a b) / IZR MICRO + IZR (budget - (spent + charge_of a b)) / IZR MICRO)
    by (rewrite !minus_IZR, plus_IZR; field; lra).
  destruct H0 as [H0|H0]; [left; apply exp_increasing; lra|rewrite H0; lra].
Qed.

Lemma sum_below_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> sum_below n f = sum_below n g.
Proof. induction n as [|n IH]; intros H; cbn [sum_below]; [reflexivity|]. rewrite IH, H by auto. reflexivity. Qed.

Lemma sum_below_units n law N :
  sum_below n (fun i => probability (at_ law i) N) = probability (total (at_ law) (seq 0 n)) N.
Proof.
  induction n as [|n IH]; cbn [sum_below]; [unfold probability, Rdiv; cbn; ring|].
  rewrite seq_S, total_app, IH. cbn [total Nat.add]. unfold probability. rewrite !plus_IZR. unfold Rdiv. ring.
Qed.

(** There is such a rule: whoever always releases the public law, 2^22·Q, stays in every box. *)
Theorem public_rule_in_box public who :
  (forall past life s, check_stream s = true ->
    length (public past life s) = Z.to_nat (stream_size s) /\ Forall (fun q => (1 <= q)%Z) (public past life s)) ->
  rule_in_box public (Person who (fun past life now => map (Z.mul (unit_of (fst (fst now)))) (public past life (fst (fst now))))).
Proof.
  intros Hpublic past life s low high i Hc H1 H2 H3 Hi. cbn [rule fst snd].
  destruct (Hpublic past life s Hc) as [Hlen Hpos]. destruct (checked_numbers s Hc) as (_ & Hu & Ho & Hom & _).
  assert (1 <= at_ (public past life s) i)%Z as Hq.
  { rewrite Forall_forall in Hpos. apply Hpos, at_in. lia. }
  assert (at_ (map (Z.mul (unit_of s)) (public past life s)) i = unit_of s * at_ (public past life s) i)%Z as ->.
  { unfold at_. rewrite (nth_indep _ 0%Z (unit_of s * 0)%Z) by (rewrite map_length; lia). apply map_nth. }
  pose proof (public_always_fits (one_of s) (most_of s) (unit_of s) Hu Ho low high (at_ (public past life s) i)
    ltac:(lia) H1 ltac:(lia)) as [Hfits _].
  cbv zeta. lia.
Qed.

(** LOST STATE. Whoever loses R at any moment, for any reason, also because of what the user has, and releases from then
    on the public law of the step, has a rule in its boxes: [lives_together] holds. That law depends on all that was
    released; a device whose own memory of it is lost cannot follow this rule, see [losses_private]. *)
Theorem lost_rule_in_box public who (lost : list nat -> nat -> state -> bool) :
  (forall past life s, check_stream s = true ->
    length (public past life s) = Z.to_nat (stream_size s) /\ Forall (fun q => (1 <= q)%Z) (public past life s)) ->
  rule_in_box public who ->
  rule_in_box public (Person (records who) (fun past life now =>
    if lost past life now then map (Z.mul (unit_of (fst (fst now)))) (public past life (fst (fst now)))
    else rule who past life now)).
Proof.
  intros Hpublic Hrule past life s low high i Hc H1 H2 H3 Hi. cbn [rule].
  destruct (lost past life (s, low, high)).
  - exact (public_rule_in_box public (records who) Hpublic past life s low high i Hc H1 H2 H3 Hi).
  - exact (Hrule past life s low high i Hc H1 H2 H3 Hi).
Qed.

Section Two.
Variable public : list nat -> nat -> stream -> list Z.
Variable budget : Z.
Variables user other : person.
Hypothesis user_records : has_data (records user).
Hypothesis other_records : has_data (records other).
Hypothesis user_in_box : rule_in_box public user.
Hypothesis other_in_box : rule_in_box public other.

Lemma life_nonneg e : forall spent states states' f past event, level_with states states' f ->
  0 <= life_chance public budget spent other states' past e event.
Proof.
  induction e as [|m next IH refused IHr|s next IH refused IHr|life next IH refused IHr];
    intros spent states states' f past event Hl; cbn [life_chance].
  - destruct (event []); lra.
  - destruct (check m) eqn:Hc; cbn [andb]; [|now apply (IHr spent states states' f)].
    destruct (can_pay budget spent m); [|now apply (IHr spent states states' f)].
    apply sum_below_nonneg. intros i _. apply Rmult_le_pos; [|now apply (IH i _ states states' f)].
    now apply (checked_release m (records other past m) (records other past m)); auto.
  - destruct (check_stream s) eqn:Hc; cbn [andb]; [|now apply (IHr spent states states' f)].
    destruct (_ <=? budget)%Z; [|now apply (IHr spent states states' f)].
    pose proof (check_stream_start s Hc) as Hstart.
    assert (encloses s (stream_start s) (stream_start s) (IZR (stream_start s))) as He
      by (split; [lia|split; [lia|lra]]).
    eapply IH. exact (one_more s _ _ _ _ _ _ _ _ _ Hc He He Hl).
  - pose proof (level_at states states' f life Hl) as Hat.
    destruct (nth_error states life) as [[[s low] high]|].
    + destruct Hat as (low' & high' & r & r' & f0 & -> & Hc & He & He' & _ & Hnew). cbn [fst snd].
      apply sum_below_nonneg. intros i Hi.
      destruct (encloses_bounds _ _ _ _ He') as [Hlh _]. destruct (encloses_bounds _ _ _ _ He) as [Hlh0 _].
      pose proof He' as (H1 & H2 & _). pose proof He as (H3 & H4 & _).
      destruct (other_in_box past life s low' high' i Hc H1 Hlh H2 Hi) as [Hq Hw].
      destruct (encloses_next s low' high' r' _ _ Hc He' Hq Hw) as [Hw0 Hnext].
      destruct (checked_reals s Hc) as (_ & _ & HN & _).
      apply Rmult_le_pos.
      * unfold probability. apply Rmult_le_pos; [apply IZR_le; lia|left; now apply Rinv_0_lt_compat].
      * unfold next_state. destruct (moved_coded s low' high' _ _) as [a' b'].
        eapply IH. eapply Hnew; [exact He|exact Hnext].
    + rewrite Hat. now apply (IHr spent states states' f).
Qed.

(** What leaves for a person whose laws add up to N is a law: its probabilities add up to 1. *)
Theorem lives_add_up e : (forall past life s low high, check_stream s = true ->
    (one_of s <= low)%Z -> (low <= high)%Z -> (high <= most_of s)%Z ->
    total (at_ (rule other past life (s, low, high))) (seq 0 (Z.to_nat (stream_size s))) = stream_units s) ->
  forall spent states states' f past, level_with states states' f ->
  life_chance public budget spent other states' past e (fun _ => true) = 1.
Proof.
  intros Hsum. induction e as [|m next IH refused IHr|s next IH refused IHr|life next IH refused IHr];
    intros spent states states' f past Hl; cbn [life_chance]; [reflexivity| | |].
  - destruct (check m) eqn:Hc; cbn [andb]; [|now apply (IHr spent states states' f)].
    destruct (can_pay budget spent m); [|now apply (IHr spent states states' f)].
    rewrite <- (law_adds_up m (records other past m) Hc (other_records past m Hc)). apply sum_below_ext. intros i _.
    rewrite (IH i _ states states' f); [lra|assumption].
  - destruct (check_stream s) eqn:Hc; cbn [andb]; [|now apply (IHr spent states states' f)].
    destruct (_ <=? budget)%Z; [|now apply (IHr spent states states' f)].
    pose proof (check_stream_start s Hc) as Hstart.
    assert (encloses s (stream_start s) (stream_start s) (IZR (stream_start s))) as He
      by (split; [lia|split; [lia|lra]]).
    eapply IH. exact (one_more s _ _ _ _ _ _ _ _ _ Hc He He Hl).
  - pose proof (level_at states states' f life Hl) as Hat.
    destruct (nth_error states life) as [[[s low] high]|]; [|rewrite Hat; now apply (IHr spent states states' f)].
    destruct Hat as (low' & high' & r & r' & f0 & -> & Hc & He & He' & _ & Hnew). cbn [fst snd].
    destruct (encloses_bounds _ _ _ _ He') as [Hlh _]. pose proof He' as (H1 & H2 & _).
    destruct (checked_reals s Hc) as (_ & _ & HN & _).
    transitivity (sum_below (Z.to_nat (stream_size s))
      (fun i => probability (at_ (rule other past life (s, low', high')) i) (stream_units s))).
    + apply sum_below_ext. intros i Hi.
      destruct (other_in_box past life s low' high' i Hc H1 Hlh H2 Hi) as [Hq Hw].
      destruct (encloses_next s low' high' r' _ _ Hc He' Hq Hw) as [_ Hnext].
      unfold next_state. destruct (moved_coded s low' high' _ _) as [a' b'].
      erewrite IH; [lra|]. eapply Hnew; [exact He|exact Hnext].
    + rewrite sum_below_units, Hsum by assumption. unfold probability. field. lra.
Qed.

Lemma lives_private e : forall spent states states' f past event, (spent <= budget)%Z -> level_with states states' f ->
  life_chance public budget spent user states past e event
  <= exp (IZR (budget - spent) / IZR MICRO) * f * life_chance public budget spent other states' past e event.
Proof.
  induction e as [|m next IH refused IHr|s next IH refused IHr|life next IH refused IHr];
    intros spent states states' f past event Hs Hl; cbn [life_chance].
  - pose proof (level_at_least_one _ _ _ Hl) as Hf.
    assert (1 <= exp (IZR (budget - spent) / IZR MICRO)) as He.
    { rewrite <- exp_0. assert (0 <= IZR (budget - spent) / IZR MICRO) as H0.
      { apply Rmult_le_pos; [apply IZR_le; lia|]. left. apply Rinv_0_lt_compat. apply IZR_lt. reflexivity. }
      destruct H0 as [H0| <-]; [left; now apply exp_increasing|lra]. }
    destruct (event []); [|lra]. rewrite Rmult_1_r, <- (Rmult_1_l 1). apply Rmult_le_compat; lra.
  - destruct (check m) eqn:Hc; cbn [andb]; [|now apply IHr].
    destruct (can_pay budget spent m) eqn:Hpay; [|now apply IHr].
    unfold can_pay in Hpay. apply Z.leb_le in Hpay.
    rewrite <- sum_below_scale. apply sum_below_le. intros i _.
    specialize (IH i (spent + cost m)%Z states states' f (past ++ [i]) (fun t => event (i :: t)) Hpay Hl).
    pose proof (life_nonneg (next i) (spent + cost m)%Z states states' f (past ++ [i]) (fun t => event (i :: t)) Hl) as Hn.
    destruct (checked_release m (records user past m) (records other past m) Hc (user_records past m Hc)
      (other_records past m Hc) i) as [Hp0 Hp].
    destruct (checked_release m (records other past m) (records other past m) Hc (other_records past m Hc)
      (other_records past m Hc) i) as [Hp0' _].
    pose proof (level_at_least_one _ _ _ Hl) as Hf. apply checked_heading in Hc.
    pose proof (exp_charges budget spent (epsilon_up m) (epsilon_down m) ltac:(lia)) as Hexp. fold (cost m) in Hexp.
    set (X := life_chance _ _ _ user _ _ _ _) in *. set (X' := life_chance _ _ _ other _ _ _ _) in *.
    set (e1 := exp (IZR (epsilon_up m) / IZR (epsilon_down m))) in *.
    set (e2 := exp (IZR (budget - (spent + cost m)) / IZR MICRO)) in *.
    assert (0 < e2) as He2 by apply exp_pos.
    assert (0 <= e2 * f * X') by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|assumption]).
    apply Rle_trans with (law_of m (records user past m) i * (e2 * f * X')); [now apply Rmult_le_compat_l|].
    apply Rle_trans with (e1 * law_of m (records other past m) i * (e2 * f * X')); [now apply Rmult_le_compat_r|].
    replace (e1 * law_of m (records other past m) i * (e2 * f * X'))
      with (e1 * e2 * (f * (law_of m (records other past m) i * X'))) by ring.
    rewrite (Rmult_assoc (exp (IZR (budget - spent) / IZR MICRO)) f). apply Rmult_le_compat_r; [|assumption].
    apply Rmult_le_pos; [lra|]. now apply Rmult_le_pos.
  - destruct (check_stream s) eqn:Hc; cbn [andb]; [|now apply IHr].
    destruct (Z.leb_spec (spent + stream_cost s) budget) as [Hpay|]; [|now apply IHr].
    pose proof (check_stream_start s Hc) as Hstart.
    assert (encloses s (stream_start s) (stream_start s) (IZR (stream_start s))) as He
      by (split; [lia|split; [lia|lra]]).
    pose proof (one_more s _ _ _ _ _ _ _ _ _ Hc He He Hl) as Hmore.
    specialize (IH (spent + stream_cost s)%Z _ _ _ past event Hpay Hmore).
    pose proof (life_nonneg next (spent + stream_cost s)%Z _ _ _ past event Hmore) as Hn.
    pose proof (level_at_least_one _ _ _ Hl) as Hf. destruct (checked_reals s Hc) as (Ho & _ & _ & HA).
    assert (0 < stream_epsilon_down s)%Z as Hd.
    { unfold check_stream, check_heading in Hc. rewrite !andb_true_iff, !Z.ltb_lt in Hc. tauto. }
    pose proof (exp_charges budget spent (stream_epsilon_up s) (stream_epsilon_down s) Hd) as Hexp.
    fold (stream_cost s) in Hexp. fold (stream_epsilon s) in Hexp.
    eapply Rle_trans; [exact IH|]. apply Rmult_le_compat_r; [assumption|].
    destruct (encloses_bounds _ _ _ _ He) as [_ Hr].
    replace (IZR (most_of s) * IZR (stream_start s) / (IZR (one_of s) * IZR (stream_start s)))
      with (IZR (most_of s) / IZR (one_of s)) by (field; lra).
    rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [lra|].
    eapply Rle_trans; [|exact Hexp]. rewrite Rmult_comm. apply Rmult_le_compat_r; [left; apply exp_pos|assumption].
  - pose proof (level_at states states' f life Hl) as Hat.
    destruct (nth_error states life) as [[[s low] high]|]; [|rewrite Hat; now apply IHr].
    destruct Hat as (low' & high' & r & r' & f0 & -> & Hc & He & He' & -> & Hnew). cbn [fst snd].
    rewrite <- sum_below_scale. apply sum_below_le. intros i Hi.
    destruct (encloses_bounds _ _ _ _ He) as [Hlh Hr]. destruct (encloses_bounds _ _ _ _ He') as [Hlh' Hr'].
    pose proof He as (H1 & H2 & _). pose proof He' as (H1' & H2' & _).
    destruct (user_in_box past life s low high i Hc H1 Hlh H2 Hi) as [Hq Hw].
    destruct (other_in_box past life s low' high' i Hc H1' Hlh' H2' Hi) as [_ Hw'].
    destruct (encloses_next s low high r _ _ Hc He Hq Hw) as [Hw0 Hnext].
    destruct (encloses_next s low' high' r' _ _ Hc He' Hq Hw') as [Hw0' Hnext'].
    unfold next_state. set (q := at_ (public past life s) i) in *.
    set (w := at_ (rule user past life (s, low, high)) i) in *.
    set (w' := at_ (rule other past life (s, low', high')) i) in *.
    destruct (moved_coded s low high q w) as [a b]. destruct (moved_coded s low' high' q w') as [a' b'].
    specialize (IH i spent _ _ _ (past ++ [i]) (fun t => event (i :: t)) Hs (Hnew a b a' b' _ _ Hnext Hnext')).
    destruct (checked_reals s Hc) as (Ho & Hu & HN & _). apply IZR_lt in Hq, Hw0, Hw0'.
    set (X := life_chance _ _ _ user _ _ _ _) in *. set (X' := life_chance _ _ _ other _ _ _ _) in *.
    apply Rle_trans with (probability w (stream_units s)
      * (exp (IZR (budget - spent) / IZR MICRO)
         * (IZR (most_of s) * (r' * IZR w' / (IZR (unit_of s) * IZR q))
            / (IZR (one_of s) * (r * IZR w / (IZR (unit_of s) * IZR q))) * f0) * X')).
    + apply Rmult_le_compat_l; [|exact IH]. unfold probability. apply Rmult_le_pos; [lra|].
      left. now apply Rinv_0_lt_compat.
    + right. unfold probability. field. repeat split; lra.
Qed.

(** A WHOLE LIFE. Whatever is asked through the checkers and the ledger, single releases and steps of streams in any
    order, and whatever the data of two users and their rules do: all that leaves together is (budget/10⁶)-private. *)
Theorem lives_together (e : errand) : (0 <= budget)%Z -> forall event,
  life_chance public budget 0 user [] [] e event
  <= exp (IZR budget / IZR MICRO) * life_chance public budget 0 other [] [] e event.
Proof.
  intros Hb event. pose proof (lives_private e 0 [] [] 1 [] event Hb no_streams) as H.
  rewrite Z.sub_0_r, Rmult_1_r in H. exact H.
Qed.

End Two.
