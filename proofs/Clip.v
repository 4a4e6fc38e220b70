(** The exact clip: for every input its answer lies in the box and adds up to the target.

    [exact_clip] is exact.exact_clip: the loop that fixes variables at their bounds, then the rounding of
    exact._round_down. An item that is not active any more carries its answer in [fixed]. *)

From Coq Require Import ZArith List Lia Bool.
From Sottovoce Require Import Sums.
Import ListNotations.
Open Scope Z_scope.

(** One coordinate: its weight k, its bounds, and its answer once it has one. *)
Record item := Item { k : Z; lo : Z; hi : Z; fixed : option Z }.

Definition if_active (it : item) (x : Z) : Z := match fixed it with None => x | Some _ => 0 end.
Definition if_fixed (it : item) : Z := match fixed it with None => 0 | Some x => x end.

(** `share <= low * slope`, and otherwise `share >= high * slope`, with share = left·k. *)
Definition floored (left slope : Z) (it : item) : bool := left * k it <=? lo it * slope.
Definition capped (left slope : Z) (it : item) : bool :=
  negb (floored left slope it) && (hi it * slope <=? left * k it).

Definition excess (left slope : Z) (it : item) : Z :=
  if floored left slope it then lo it * slope - left * k it
  else if capped left slope it then hi it * slope - left * k it else 0.

Definition set_to (x : Z) (it : item) : item := Item (k it) (lo it) (hi it) (Some x).

(** The active items that satisfy p stay at their bound from now on. *)
Definition fix_at (bound : item -> Z) (p : item -> bool) (it : item) : item :=
  match fixed it with
  | Some _ => it
  | None => if p it then set_to (bound it) it else it
  end.

Definition taken (bound : item -> Z) (p : item -> bool) (l : list item) : Z :=
  total (fun it => if_active it (if p it then bound it else 0)) l.

(** _round_down: ⌊left·k/slope⌋ for what is strictly inside, and one unit each to the first fractions. *)
Fixpoint give (left slope spare : Z) (l : list item) : list Z :=
  match l with
  | [] => []
  | it :: rest =>
      match fixed it with
      | Some x => x :: give left slope spare rest
      | None =>
          let q := left * k it / slope in
          if negb (left * k it mod slope =? 0) && (0 <? spare)
          then (q + 1) :: give left slope (spare - 1) rest
          else q :: give left slope spare rest
      end
  end.

Definition round_down (left : Z) (l : list item) : list Z :=
  let slope := total (fun it => if_active it (k it)) l in
  let spare := left - total (fun it => if_active it (left * k it / slope)) l in
  give left slope spare l.

Fixpoint clip_loop (fuel : nat) (left : Z) (l : list item) : option (list Z) :=
  match fuel with
  | O => None
  | S fuel' =>
      if forallb (fun it => match fixed it with None => false | Some _ => true end) l
      then Some (map if_fixed l)
      else
        let slope := total (fun it => if_active it (k it)) l in
        let balance := total (fun it => if_active it (excess left slope it)) l in
        let p := floored left slope in
        let q := capped left slope in
        if 0 <? balance then clip_loop fuel' (left - taken lo p l) (map (fix_at lo p) l)
        else if balance <? 0 then clip_loop fuel' (left - taken hi q l) (map (fix_at hi q) l)
        else Some (round_down (left - taken lo p l - taken hi q l)
                    (map (fun it => fix_at hi q (fix_at lo p it)) l))
  end.

(** The clip of weights between low and high to a target; each round fixes one item at least. *)
Definition exact_clip (items : list (Z * Z * Z)) (target : Z) : option (list Z) :=
  clip_loop (S (length items)) target (map (fun '(k, lo, hi) => Item k lo hi None) items).

(* ------------------------------------------------------------------ proofs *)

Definition right (it : item) : Prop :=
  1 <= k it /\ lo it <= hi it /\ match fixed it with None => True | Some x => lo it <= x <= hi it end.

Definition within (it : item) (x : Z) : Prop := lo it <= x <= hi it.

Definition actives (l : list item) : Z := total (fun it => if_active it 1) l.

Lemma total_positive {A} (f : A -> Z) l : 0 < total f l -> exists x, In x l /\ 0 < f x.
Proof.
  induction l as [|x l IH]; simpl; [lia|]. intros H.
  destruct (Z_lt_dec 0 (f x)) as [Hx|Hx]; [exists x; auto|].
  destruct IH as (y & Hy & Hf); [lia|]. exists y; auto.
Qed.

Lemma total_lt_in {A} (f g : A -> Z) l : (forall x, In x l -> f x <= g x) ->
  (exists x, In x l /\ f x < g x) -> total f l < total g l.
Proof.
  induction l as [|y l IH]; simpl; intros H (x & Hin & Hlt); [contradiction|].
  pose proof (H y (or_introl eq_refl)).
  destruct Hin as [->|Hin].
  - assert (total f l <= total g l) by (apply total_le_in; auto). lia.
  - assert (total f l < total g l) by (apply IH; eauto). lia.
Qed.

Lemma fix_at_same bound p it : k (fix_at bound p it) = k it /\ lo (fix_at bound p it) = lo it
  /\ hi (fix_at bound p it) = hi it.
Proof. unfold fix_at. destruct (fixed it); [auto|]. destruct (p it); auto. Qed.

Lemma within_map (g : item -> item) l x : (forall it, lo (g it) = lo it /\ hi (g it) = hi it) ->
  Forall2 within (map g l) x -> Forall2 within l x.
Proof.
  intros Hg. revert x. induction l as [|it l IH]; intros x H; inversion H; subst; constructor; auto.
  destruct (Hg it) as [Ha Hb]. unfold within in *. rewrite Ha, Hb in *. assumption.
Qed.

Lemma right_fix_at bound p it : (lo it <= bound it <= hi it) -> right it -> right (fix_at bound p it).
Proof.
  unfold right, fix_at. intros Hb (H1 & H2 & H3). destruct (fixed it) eqn:E; [rewrite E; auto|].
  destruct (p it); simpl; [auto|]. rewrite E. auto.
Qed.

Lemma slope_bound l : Forall right l -> actives l <= total (fun it => if_active it (k it)) l.
Proof.
  intros H. apply total_le_in. intros it Hin. rewrite Forall_forall in H. destruct (H it Hin) as (H1 & _).
  unfold if_active. destruct (fixed it); lia.
Qed.

Lemma actives_positive l :
  forallb (fun it => match fixed it with None => false | Some _ => true end) l = false -> 1 <= actives l.
Proof.
  unfold actives. induction l as [|it l IH]; cbn [forallb total]; [discriminate|].
  assert (0 <= total (fun it => if_active it 1) l).
  { apply total_nonneg_in. intros i _. unfold if_active. destruct (fixed i); lia. }
  unfold if_active at 1. destruct (fixed it); cbn [andb]; intros Hf; [specialize (IH Hf)|]; lia.
Qed.

Lemma all_fixed l : forallb (fun it => match fixed it with None => false | Some _ => true end) l = true ->
  forall it, In it l -> exists x, fixed it = Some x.
Proof.
  intros H it Hin. rewrite forallb_forall in H. specialize (H it Hin).
  destruct (fixed it) as [x|]; [now exists x|discriminate].
Qed.

(** The sums after items were fixed. *)

Lemma fixed_after bound p l : total if_fixed (map (fix_at bound p) l) = total if_fixed l + taken bound p l.
Proof.
  rewrite total_map. unfold taken. rewrite <- total_plus. apply total_ext. intros it.
  unfold if_fixed, if_active, fix_at. destruct (fixed it) eqn:E; [rewrite E; lia|].
  destruct (p it); simpl; [lia|]. rewrite E. lia.
Qed.

Lemma bound_after bound p l :
  total (fun it => if_active it (bound it)) (map (fix_at bound p) l) + taken bound p l
  = total (fun it => if_active it (bound it)) l
  \/ exists it, In it l /\ bound (fix_at bound p it) <> bound it.
Proof.
  induction l as [|it l IH]; simpl; [now left|]. destruct IH as [IH|(x & Hin & Hx)].
  - destruct (Z.eq_dec (bound (fix_at bound p it)) (bound it)) as [E|E]; [|right; exists it; auto].
    left. unfold taken in *. cbn [total].
    assert (if_active (fix_at bound p it) (bound (fix_at bound p it)) + if_active it (if p it then bound it else 0)
      = if_active it (bound it)); [|lia].
    rewrite E. unfold if_active, fix_at. destruct (fixed it) eqn:F; [now rewrite F|].
    destruct (p it); simpl; [lia|rewrite F; lia].
  - right. exists x. auto.
Qed.

Lemma lo_after p l : total (fun it => if_active it (lo it)) (map (fix_at lo p) l) + taken lo p l
  = total (fun it => if_active it (lo it)) l.
Proof.
  destruct (bound_after lo p l) as [H|(it & _ & H)]; [exact H|]. exfalso. apply H. apply fix_at_same.
Qed.

Lemma hi_after p l : total (fun it => if_active it (hi it)) (map (fix_at hi p) l) + taken hi p l
  = total (fun it => if_active it (hi it)) l.
Proof.
  destruct (bound_after hi p l) as [H|(it & _ & H)]; [exact H|]. exfalso. apply H. apply fix_at_same.
Qed.

Lemma actives_after bound p l :
  (exists it, In it l /\ fixed it = None /\ p it = true) -> actives (map (fix_at bound p) l) < actives l.
Proof.
  intros (it & Hin & Hf & Hp). unfold actives. rewrite total_map. apply total_lt_in.
  - intros i _. unfold if_active, fix_at. destruct (fixed i) eqn:E; [rewrite E; lia|].
    destruct (p i); simpl; [lia|rewrite E; lia].
  - exists it. split; [assumption|]. unfold if_active, fix_at. rewrite Hf, Hp. simpl. lia.
Qed.

Section Step.
Variables (left : Z) (l : list item).
Hypothesis Hright : Forall right l.
Let slope := total (fun it => if_active it (k it)) l.
Let balance := total (fun it => if_active it (excess left slope it)) l.
Let p := floored left slope.
Let q := capped left slope.

Lemma inside_step it : p it = false -> q it = false -> lo it * slope < left * k it < hi it * slope.
Proof.
  unfold p, q, capped, floored. intros H1 H2. rewrite H1 in H2. simpl in H2.
  apply Z.leb_gt in H1. apply Z.leb_gt in H2. lia.
Qed.

(** If the floors add more than the caps cut off, the floored ones can stay: there is room above for the rest. *)
Lemma room_above :
  slope * (left - taken lo p l) + balance
  <= slope * total (fun it => if_active it (hi it)) (map (fix_at lo p) l).
Proof.
  rewrite total_map.
  replace (slope * (left - taken lo p l) + balance)
    with (left * slope - slope * taken lo p l + balance) by lia.
  unfold slope at 1. rewrite <- total_scale. unfold taken. rewrite <- total_scale, <- total_minus.
  unfold balance. rewrite <- total_plus, <- total_scale. apply total_le_in.
  intros it _. unfold if_active, fix_at, excess. fold p q.
  destruct (fixed it) eqn:E; [rewrite E; lia|].
  change (floored left slope it) with (p it). change (capped left slope it) with (q it).
  destruct (p it) eqn:Hp; simpl; [lia|]. rewrite E.
  destruct (q it) eqn:Hq; [lia|]. pose proof (inside_step it Hp Hq). lia.
Qed.

(** If the caps cut off more, the capped ones can stay. *)
Lemma room_below :
  slope * total (fun it => if_active it (lo it)) (map (fix_at hi q) l)
  <= slope * (left - taken hi q l) + balance.
Proof.
  rewrite total_map.
  replace (slope * (left - taken hi q l) + balance)
    with (left * slope - slope * taken hi q l + balance) by lia.
  unfold slope at 2. rewrite <- total_scale. unfold taken. rewrite <- total_scale, <- total_scale, <- total_minus.
  unfold balance. rewrite <- total_plus. apply total_le_in.
  intros it _. unfold if_active, fix_at, excess.
  destruct (fixed it) eqn:E; [rewrite E; lia|].
  change (floored left slope it) with (p it). change (capped left slope it) with (q it).
  destruct (p it) eqn:Hp; simpl.
  - assert (q it = false) as -> by (unfold q, capped; change (floored left slope it) with (p it); now rewrite Hp).
    rewrite E. lia.
  - destruct (q it) eqn:Hq; simpl; [lia|]. rewrite E. pose proof (inside_step it Hp Hq). lia.
Qed.

(** If both balance, what is left goes to the inside in proportion: left'/slope' = left/slope. *)
Lemma balanced : balance = 0 ->
  let after := map (fun it => fix_at hi q (fix_at lo p it)) l in
  slope * (left - taken lo p l - taken hi q l) = left * total (fun it => if_active it (k it)) after.
Proof.
  intros H0 after. unfold after. rewrite total_map.
  replace (slope * (left - taken lo p l - taken hi q l))
    with (left * slope - slope * taken lo p l - slope * taken hi q l + balance) by lia.
  unfold slope at 1. rewrite <- total_scale. unfold taken. rewrite <- !total_scale, <- !total_minus.
  unfold balance. rewrite <- total_plus. apply total_ext.
  intros it. unfold if_active, fix_at, excess.
  destruct (fixed it) eqn:E; [rewrite E, E; lia|].
  change (floored left slope it) with (p it). change (capped left slope it) with (q it).
  destruct (p it) eqn:Hp; simpl.
  - assert (q it = false) as -> by (unfold q, capped; change (floored left slope it) with (p it); now rewrite Hp).
    lia.
  - rewrite E. destruct (q it) eqn:Hq; simpl; [lia|]. rewrite E. lia.
Qed.

End Step.

(** The rounding. *)

Lemma give_sum left slope l : forall spare,
  0 <= spare <= total (fun it => if_active it (one (negb (left * k it mod slope =? 0)))) l ->
  sum (give left slope spare l)
  = total if_fixed l + total (fun it => if_active it (left * k it / slope)) l + spare.
Proof.
  induction l as [|it l IH]; intros spare H; cbn [give total] in *; [simpl; lia|].
  assert (0 <= total (fun it => if_active it (one (negb (left * k it mod slope =? 0)))) l) as Hrest.
  { apply total_nonneg_in. intros i _. unfold if_active. destruct (fixed i); [lia|]. destruct (left * k i mod slope =? 0); simpl; lia. }
  unfold if_active at 1 in H. unfold if_fixed at 1. unfold if_active at 1. destruct (fixed it).
  - cbn [sum]. rewrite IH by lia. lia.
  - destruct (negb (left * k it mod slope =? 0)); cbn [andb one] in *.
    + destruct (Z.ltb_spec 0 spare); cbn [sum]; rewrite IH by lia; lia.
    + cbn [sum]. rewrite IH by lia. lia.
Qed.

Lemma give_within left slope l : forall spare, Forall right l ->
  (forall it, In it l -> fixed it = None -> lo it <= left * k it / slope < hi it) ->
  Forall2 within l (give left slope spare l).
Proof.
  induction l as [|it l IH]; intros spare Hr Hin; cbn [give]; [constructor|].
  inversion Hr as [|? ? Hit Hr']; subst. destruct Hit as (_ & _ & Hf).
  destruct (fixed it) eqn:E.
  - constructor; [exact Hf|]. apply IH; auto. intros i Hi. apply Hin. now right.
  - pose proof (Hin it (or_introl eq_refl) E).
    destruct (_ && _); (constructor; [unfold within; lia|]); apply IH; auto; intros i Hi; apply Hin; now right.
Qed.

Lemma round_down_sum left l : Forall right l ->
  (actives l = 0 -> left = 0) -> sum (round_down left l) = total if_fixed l + left.
Proof.
  intros Hr H0. unfold round_down. set (slope := total (fun it => if_active it (k it)) l).
  set (floors := total (fun it => if_active it (left * k it / slope)) l).
  rewrite give_sum; [fold floors; lia|].
  assert (0 <= actives l) as Ha
    by (apply total_nonneg_in; intros i _; unfold if_active; destruct (fixed i); lia).
  pose proof (slope_bound l Hr) as Hs. fold slope in Hs.
  destruct (Z.eq_dec (actives l) 0) as [E|E].
  - assert (forall f : item -> Z, total (fun it => if_active it (f it)) l = 0) as Hz.
    { intros f. assert (forall it, In it l -> fixed it <> None) as Hn.
      { intros it Hin Hf.
        assert (total (fun _ : item => 0) l < actives l); [|rewrite total_const in *; lia].
        apply total_lt_in; [intros i _; unfold if_active; destruct (fixed i); lia|].
        exists it. unfold if_active. rewrite Hf. split; [assumption|lia]. }
      rewrite (total_ext_in _ (fun _ => 0)); [rewrite total_const; lia|].
      intros it Hin. unfold if_active. specialize (Hn it Hin). destruct (fixed it); congruence. }
    unfold floors. rewrite Hz, Hz, (H0 E). lia.
  - assert (0 < slope) as Hpos by lia.
    set (fractions := total (fun it => if_active it (one (negb (left * k it mod slope =? 0)))) l).
    assert (slope * (left - floors) = total (fun it => if_active it (left * k it mod slope)) l) as Hrem.
    { replace (slope * (left - floors)) with (left * slope - slope * floors) by lia.
      unfold slope at 1. rewrite <- total_scale. unfold floors. rewrite <- total_scale, <- total_minus.
      apply total_ext. intros it. unfold if_active. destruct (fixed it); [lia|].
      pose proof (Z.div_mod (left * k it) slope ltac:(lia)). lia. }
    assert (0 <= total (fun it => if_active it (left * k it mod slope)) l) as Hnn.
    { apply total_nonneg_in. intros it _. unfold if_active. destruct (fixed it); [lia|].
      pose proof (Z.mod_pos_bound (left * k it) slope Hpos). lia. }
    assert (total (fun it => if_active it (left * k it mod slope)) l <= slope * fractions) as Hup.
    { unfold fractions. rewrite <- total_scale. apply total_le_in. intros it _. unfold if_active.
      destruct (fixed it); [lia|]. pose proof (Z.mod_pos_bound (left * k it) slope Hpos).
      destruct (Z.eqb_spec (left * k it mod slope) 0) as [->|]; simpl; lia. }
    split; nia.
Qed.

(** What holds at the head of every round, and what the loop makes of it. *)
Theorem clip_loop_right : forall fuel left l target,
  Forall right l -> actives l < Z.of_nat fuel ->
  total if_fixed l + left = target ->
  total (fun it => if_active it (lo it)) l <= left <= total (fun it => if_active it (hi it)) l ->
  exists x, clip_loop fuel left l = Some x /\ Forall2 within l x /\ sum x = target.
Proof.
  induction fuel as [|fuel IH]; intros left l target Hr Hfuel Htarget Hroom.
  { assert (0 <= actives l); [|lia].
    apply total_nonneg_in; intros i _; unfold if_active; destruct (fixed i); lia. }
  cbn [clip_loop].
  destruct (forallb _ l) eqn:Hall.
  { pose proof (all_fixed l Hall) as Hf. exists (map if_fixed l). split; [reflexivity|]. split.
    - clear -Hr Hf. induction l as [|it l IH]; simpl; constructor.
      + inversion Hr as [|? ? (_ & _ & H) _]; subst. destruct (Hf it (or_introl eq_refl)) as (x & E).
        unfold within, if_fixed. rewrite E in *. exact H.
      + inversion Hr; subst. apply IH; auto. intros i Hi. apply Hf. now right.
    - rewrite sum_total, total_map. change (total if_fixed l = target).
      assert (forall f : item -> Z, total (fun it => if_active it (f it)) l = 0) as Hz.
      { intros f. rewrite (total_ext_in _ (fun _ => 0)); [rewrite total_const; lia|].
        intros it Hin. destruct (Hf it Hin) as (x & E). unfold if_active. now rewrite E. }
      rewrite !Hz in Hroom. lia. }
  set (slope := total (fun it => if_active it (k it)) l).
  set (balance := total (fun it => if_active it (excess left slope it)) l).
  pose proof (actives_positive l Hall) as Hact. pose proof (slope_bound l Hr) as Hs. fold slope in Hs.
  assert (0 < slope) as Hslope by lia.
  assert (forall p, Forall right (map (fix_at lo p) l)) as Hrlo.
  { intros p. apply Forall_map. eapply Forall_impl; [|exact Hr]. intros it Hit. apply right_fix_at; auto.
    destruct Hit as (_ & H & _). lia. }
  assert (forall p, Forall right (map (fix_at hi p) l)) as Hrhi.
  { intros p. apply Forall_map. eapply Forall_impl; [|exact Hr]. intros it Hit. apply right_fix_at; auto.
    destruct Hit as (_ & H & _). lia. }
  destruct (Z.ltb_spec 0 balance) as [Hb|Hb]; [|destruct (Z.ltb_spec balance 0) as [Hb'|Hb']].
  - (* the floored ones stay *)
    set (p := floored left slope).
    destruct (IH (left - taken lo p l) (map (fix_at lo p) l) target) as (x & Hx & Hw & Hsum); auto.
    + assert (actives (map (fix_at lo p) l) < actives l); [|lia]. apply actives_after.
      destruct (total_positive _ _ Hb) as (it & Hin & Hpos). exists it. split; [assumption|].
      unfold if_active, excess in Hpos. destruct (fixed it); [lia|]. split; [reflexivity|].
      unfold p. destruct (floored left slope it) eqn:E; [reflexivity|].
      destruct (capped left slope it) eqn:E'; [|lia]. unfold capped in E'. rewrite E in E'. simpl in E'.
      apply Z.leb_le in E'. lia.
    + rewrite fixed_after. lia.
    + pose proof (lo_after p l). pose proof (room_above left l). fold slope balance p in H0. split; [lia|].
      nia.
    + exists x. split; [exact Hx|]. split; [|exact Hsum].
      apply within_map with (fix_at lo p); [|exact Hw]. intros it. split; apply fix_at_same.
  - (* the capped ones stay *)
    set (q := capped left slope).
    destruct (IH (left - taken hi q l) (map (fix_at hi q) l) target) as (x & Hx & Hw & Hsum); auto.
    + assert (actives (map (fix_at hi q) l) < actives l); [|lia]. apply actives_after.
      assert (0 < total (fun it => - 1 * if_active it (excess left slope it)) l) as Hneg
        by (rewrite total_scale; fold balance; lia).
      destruct (total_positive _ _ Hneg) as (it & Hin & Hpos). exists it. split; [assumption|].
      unfold if_active, excess in Hpos. destruct (fixed it); [lia|]. split; [reflexivity|].
      unfold q. destruct (floored left slope it) eqn:E.
      * unfold floored in E. apply Z.leb_le in E. lia.
      * destruct (capped left slope it) eqn:E'; [reflexivity|lia].
    + rewrite fixed_after. lia.
    + pose proof (hi_after q l). pose proof (room_below left l). fold slope balance q in H0. split; [|lia].
      nia.
    + exists x. split; [exact Hx|]. split; [|exact Hsum].
      apply within_map with (fix_at hi q); [|exact Hw]. intros it. split; apply fix_at_same.
  - (* balanced: the rest is inside, and rounded *)
    assert (balance = 0) as H0 by lia.
    set (p := floored left slope). set (q := capped left slope).
    set (after := map (fun it => fix_at hi q (fix_at lo p it)) l).
    set (left' := left - taken lo p l - taken hi q l).
    pose proof (balanced left l H0) as Hprop. fold slope p q in Hprop. cbv zeta in Hprop.
    fold left' after in Hprop. set (slope' := total (fun it => if_active it (k it)) after) in *.
    assert (Forall right after) as Hra.
    { unfold after. apply Forall_map. eapply Forall_impl; [|exact Hr]. intros it Hit.
      pose proof Hit as (_ & H & _).
      assert (right (fix_at lo p it)) as Hit' by (apply right_fix_at; auto; lia).
      apply right_fix_at; auto. destruct (fix_at_same lo p it) as (_ & -> & ->). lia. }
    exists (round_down left' after). split; [reflexivity|]. split.
    + apply within_map with (fun it => fix_at hi q (fix_at lo p it)).
      { intros it. destruct (fix_at_same hi q (fix_at lo p it)) as (_ & -> & ->).
        destruct (fix_at_same lo p it) as (_ & -> & ->). auto. }
      fold after. unfold round_down. fold slope'. apply give_within; [exact Hra|].
      intros it Hin Hf. unfold after in Hin. apply in_map_iff in Hin. destruct Hin as (it0 & <- & Hin0).
      assert (fix_at hi q (fix_at lo p it0) = it0 /\ p it0 = false /\ q it0 = false) as (E & Hp & Hq).
      { clear -Hf. unfold fix_at in *. destruct (fixed it0) eqn:E; [rewrite E in *; congruence|].
        destruct (p it0); simpl in *; [discriminate|]. rewrite E in *.
        destruct (q it0); simpl in *; [discriminate|]. auto. }
      rewrite E in *. pose proof (inside_step left l it0 Hp Hq) as Hins. fold slope in Hins.
      assert (1 <= slope') as Hs'.
      { pose proof (slope_bound after Hra) as Hbelow. fold slope' in Hbelow.
        assert (1 <= actives after); [|lia].
        assert (total (fun _ : item => 0) after < actives after); [|rewrite total_const in *; lia].
        apply total_lt_in; [intros i _; unfold if_active; destruct (fixed i); lia|].
        exists it0. split; [unfold after; apply in_map_iff; exists it0; auto|].
        unfold if_active. rewrite Hf. lia. }
      assert (slope * (left' * k it0) = slope' * (left * k it0)) as Hcross
        by (rewrite Z.mul_assoc, Hprop; ring).
      assert (lo it0 * slope' < left' * k it0 < hi it0 * slope') as [H1 H2].
      { split; apply Z.mul_lt_mono_pos_l with slope; try assumption; rewrite Hcross; nia. }
      split; [apply Z.div_le_lower_bound; lia|apply Z.div_lt_upper_bound; lia].
    + rewrite round_down_sum; auto.
      * assert (total if_fixed after = total if_fixed l + taken lo p l + taken hi q l); [|unfold left'; lia].
        unfold after. rewrite total_map. unfold taken. rewrite <- !total_plus. apply total_ext. intros it.
        unfold if_fixed, if_active, fix_at. destruct (fixed it) eqn:E; [rewrite E, E; lia|].
        destruct (p it) eqn:Hp; simpl.
        -- assert (q it = false) as ->; [|lia]. unfold q, capped. change (floored left slope it) with (p it).
           now rewrite Hp.
        -- rewrite E. destruct (q it); simpl; [lia|]. rewrite E. lia.
      * intros Hnone. assert (slope' = 0) as Hz.
        { unfold slope'. rewrite (total_ext_in _ (fun _ => 0)); [rewrite total_const; lia|].
          intros it Hin. unfold if_active. destruct (fixed it) eqn:E; [reflexivity|exfalso].
          assert (total (fun _ : item => 0) after < actives after); [|rewrite total_const in *; lia].
          apply total_lt_in; [intros i _; unfold if_active; destruct (fixed i); lia|].
          exists it. split; [assumption|]. unfold if_active. rewrite E. lia. }
        rewrite Hz in Hprop. nia.
Qed.

(** THE CLIP. For weights k ≥ 1, low ≤ high and Σlow ≤ target ≤ Σhigh, the loop ends (its fuel n + 1 suffices),
    every answer lies between its bounds, and the answers add up to the target. *)
Theorem exact_clip_right (items : list (Z * Z * Z)) (target : Z) :
  Forall (fun '(k, lo, hi) => 1 <= k /\ lo <= hi) items ->
  total (fun '(_, lo, _) => lo) items <= target <= total (fun '(_, _, hi) => hi) items ->
  exists x, exact_clip items target = Some x
    /\ Forall2 (fun '(_, lo, hi) y => lo <= y <= hi) items x /\ sum x = target.
Proof.
  intros Hi Ht. unfold exact_clip.
  set (l := map (fun '(k, lo, hi) => Item k lo hi None) items).
  destruct (clip_loop_right (S (length items)) target l target) as (x & Hx & Hw & Hs).
  - apply Forall_map. eapply Forall_impl; [|exact Hi]. intros [[w a] b] [H1 H2]. unfold right. simpl. auto.
  - assert (actives l = Z.of_nat (length items)); [|lia]. unfold actives, l. rewrite total_map.
    rewrite (total_ext _ (fun _ => 1)); [rewrite total_const; lia|]. intros [[w a] b]. reflexivity.
  - unfold l. rewrite total_map. rewrite (total_ext _ (fun _ => 0)); [rewrite total_const; lia|].
    intros [[w a] b]. reflexivity.
  - unfold l. rewrite !total_map.
    rewrite (total_ext _ (fun '(_, lo, _) => lo)) by (intros [[w a] b]; reflexivity).
    rewrite (total_ext (fun x => if_active _ (hi _)) (fun '(_, _, hi) => hi)) by (intros [[w a] b]; reflexivity).
    exact Ht.
  - exists x. split; [exact Hx|]. split; [|exact Hs].
    clear -Hw. unfold l in Hw. revert x Hw. induction items as [|[[w a] b] items IH]; intros x H;
      inversion H; subst; constructor; auto.
Qed.
