(** The kernel: if the O(n) certificate passes, the drawn laws of every two users are ε-private, for every event.

    [check_kernel] is exact.check_kernel; [draw_row] is KernelEngine.position after the choice of the record.
    A row is drawn with two words u and v, so that its weights are counted over the N² pairs. *)

From Coq Require Import ZArith Reals List Lia Bool.
From Sottovoce Require Import Sums Draw Privacy.
Import ListNotations.
Open Scope Z_scope.

(** What the file says of one rank. *)
Record column := Column { prior : Z; low : Z; own : Z }.

Definition priors (k : list column) : list Z := map prior k.
Definition lows (k : list column) : list Z := map low k.
Definition owns (k : list column) : list Z := map own k.

(** The least and the largest ρ = R/S so far, as fractions: least_r, least_s, most_r, most_s. *)
Record slopes := Slopes { least_r : Z; least_s : Z; most_r : Z; most_s : Z }.

(** One column: its largest possible weight is at most A times its smallest possible one. *)
Definition check_column (up down : Z) (last : bool) (seen : option slopes) (c : column) : bool :=
  let smallest := if last then own c else if low c <? own c then low c else own c in
  let largest := if last then own c else if low c <? own c then own c else low c in
  let smallest := match seen with
    | None => smallest
    | Some s => Z.min smallest (least_r s * prior c / least_s s - 1)
    end in
  let largest := match seen with
    | None => largest
    | Some s => Z.max largest (1 + ceil (most_r s * prior c) (most_s s))
    end in
  (1 <=? smallest) && (largest * down <=? up * smallest).

(** The running least and largest ρ with one row more. *)
Definition with_row (seen : option slopes) (R S : Z) : slopes :=
  match seen with
  | None => Slopes R S R S
  | Some s =>
      let down := R * least_s s <? least_r s * S in
      let up := most_r s * S <? R * most_s s in
      Slopes (if down then R else least_r s) (if down then S else least_s s)
             (if up then R else most_r s) (if up then S else most_s s)
  end.

(** All columns in one pass: before = Σ_{i<j} low_i, behind = Σ_{i≥j} prior_i. *)
Fixpoint check_columns (up down N before behind : Z) (seen : option slopes) (k : list column) : bool :=
  match k with
  | [] => true
  | c :: rest =>
      let last := match rest with [] => true | _ => false end in
      let tail := N - before - own c in
      if check_column up down last seen c then
        if last then tail =? 0
        else if 0 <=? tail then
          check_columns up down N (before + low c) (behind - prior c)
            (Some (with_row seen tail (behind - prior c))) rest
        else false
      else false
  end.

Fixpoint ascending (l : list Z) : bool :=
  match l with
  | [] => true
  | x :: rest => match rest with [] => true | y :: _ => if x <=? y then ascending rest else false end
  end.

(** exact.check_kernel. *)
Definition check_kernel (up down N : Z) (k : list column) : bool :=
  (0 <? down) && (0 <? N) && (sum (priors k) =? N) && forallb (fun c => 1 <=? prior c) k
  && forallb (fun c => 1 <=? low c) k && ascending (priors k) && check_columns up down N 0 N None k.

(** KernelEngine.position with the rank r of the chosen record and the words u and v; it answers a rank. *)
Definition draw_row (N : Z) (k : list column) (r : nat) (u v : Z) : nat :=
  let start := at_ (before (lows k)) r in
  if u <? start then Nat.pred (bisect_right (before (lows k)) u)
  else if u <? start + at_ (owns k) r then r
  else
    let behind := at_ (before (priors k)) (S r) in
    Nat.pred (bisect_right (before (priors k)) (behind + v * (N - behind) / N)).

(** R_r = N − Σ_{i<r} low_i − own_r, and S_r = Σ_{i>r} prior_i. *)
Definition tail (N : Z) (k : list column) (r : nat) : Z := N - sum (firstn r (lows k)) - at_ (owns k) r.
Definition behind (k : list column) (r : nat) : Z := sum (skipn (S r) (priors k)).

(** The law of row r, over N² pairs of words: the rule of tests/vectors/README.md, "Exact laws". *)
Definition weight (N : Z) (k : list column) (r j : nat) : Z :=
  if (j <? r)%nat then N * at_ (lows k) j
  else if (j =? r)%nat then N * at_ (owns k) r
  else tail N k r * at_ (shares N (behind k r) 0 (skipn (S r) (priors k))) (j - S r).

(** What a user with rank choice c (word 1 ↦ rank of a record) releases, over all N³ tapes: how often event S. *)
Definition tapes (N : Z) (k : list column) (choice : Z -> nat) (S : nat -> bool) : Z :=
  total (fun word => total (fun u => count (fun v => S (draw_row N k (choice word) u v)) (words N)) (words N))
        (words N).

(* ------------------------------------------------------------------ proofs *)

Lemma at_map (g : column -> Z) k i c : (i < length k)%nat -> at_ (map g k) i = g (nth i k c).
Proof.
  intros Hi. unfold at_. rewrite (nth_indep _ 0 (g c)) by now rewrite map_length. apply map_nth.
Qed.

(** What is known about the rows that were passed. *)
Definition knows (seen : option slopes) (rows : list (Z * Z)) : Prop :=
  match seen with
  | None => rows = []
  | Some s => 0 < least_s s /\ 0 < most_s s /\ forall R S, In (R, S) rows ->
      0 < S /\ least_r s * S <= R * least_s s /\ R * most_s s <= most_r s * S
  end.

Lemma cross (a b c d e f : Z) : 0 < b -> 0 < d -> 0 < f -> a * d <= c * b -> c * f <= e * d -> a * f <= e * b.
Proof.
  intros Hb Hd Hf H1 H2. apply Z.mul_le_mono_pos_r with d; [assumption|].
  apply Z.mul_le_mono_nonneg_r with (p := f) in H1; [|lia].
  apply Z.mul_le_mono_nonneg_r with (p := b) in H2; [|lia]. lia.
Qed.

Lemma knows_with_row seen rows R S : 0 < S -> knows seen rows -> knows (Some (with_row seen R S)) ((R, S) :: rows).
Proof.
  intros HS. destruct seen as [s|]; cbn [knows with_row least_r least_s most_r most_s].
  - intros (Hl & Hm & H).
    destruct (Z.ltb_spec (R * least_s s) (least_r s * S)) as [Hd|Hd],
             (Z.ltb_spec (most_r s * S) (R * most_s s)) as [Hu|Hu];
      (split; [assumption|]); (split; [assumption|]); intros R' S' [Heq|Hin];
      try (injection Heq as <- <-; lia);
      destruct (H R' S' Hin) as (HS' & H1 & H2); (split; [assumption|]); split; try assumption.
    + apply cross with (least_r s) (least_s s); auto; lia.
    + apply cross with (most_r s) (most_s s); auto; lia.
    + apply cross with (least_r s) (least_s s); auto; lia.
    + apply cross with (most_r s) (most_s s); auto; lia.
  - intros ->. split; [assumption|]. split; [assumption|].
    intros R' S' [Heq|[]]. injection Heq as <- <-. lia.
Qed.

(** What one column's check proves: bounds for own, low and every tail that can reach it. *)
Definition bounded (up down : Z) (last : bool) (rows : list (Z * Z)) (c : column) (s L : Z) : Prop :=
  1 <= s /\ L * down <= up * s /\ s <= own c <= L /\ (last = false -> s <= low c <= L)
  /\ forall R S, In (R, S) rows -> (s + 1) * S <= R * prior c <= (L - 1) * S.

Lemma check_column_sound up down last seen rows c :
  0 <= prior c -> knows seen rows -> check_column up down last seen c = true ->
  exists s L, bounded up down last rows c s L.
Proof.
  intros Hq Hk. unfold check_column.
  set (s0 := if last then own c else if low c <? own c then low c else own c).
  set (L0 := if last then own c else if low c <? own c then own c else low c).
  assert (s0 <= own c <= L0 /\ (last = false -> s0 <= low c <= L0)) as [H0 H1].
  { unfold s0, L0. destruct last; [split; [lia|discriminate]|]. destruct (Z.ltb_spec (low c) (own c)); lia. }
  clearbody s0 L0. destruct seen as [s|]; simpl in Hk; rewrite andb_true_iff, !Z.leb_le; intros [Hs HL].
  - destruct Hk as (Hls & Hms & Hk).
    set (below := least_r s * prior c / least_s s) in *. set (above := ceil (most_r s * prior c) (most_s s)) in *.
    exists (Z.min s0 (below - 1)), (Z.max L0 (1 + above)). unfold bounded.
    split; [lia|]. split; [assumption|]. split; [lia|]. split; [intros Hl; specialize (H1 Hl); lia|].
    intros R S H. destruct (Hk R S H) as (HS & Hlow & Hup). split.
    + assert (below * least_s s <= least_r s * prior c) as Hb
        by (unfold below; rewrite Z.mul_comm; now apply Z.mul_div_le).
      assert (below * S <= R * prior c) as Hres.
      { apply Z.mul_le_mono_pos_r with (least_s s); [assumption|].
        apply Z.mul_le_mono_nonneg_r with (p := S) in Hb; [|lia].
        apply Z.mul_le_mono_nonneg_r with (p := prior c) in Hlow; [|lia]. lia. }
      assert ((Z.min s0 (below - 1) + 1) * S <= below * S); [|lia].
      apply Z.mul_le_mono_nonneg_r; lia.
    + pose proof (ceil_spec (most_r s * prior c) (most_s s) Hms) as [Ha _]. fold above in Ha.
      assert (R * prior c <= above * S) as Hres.
      { apply Z.mul_le_mono_pos_r with (most_s s); [assumption|].
        apply Z.mul_le_mono_nonneg_r with (p := S) in Ha; [|lia].
        apply Z.mul_le_mono_nonneg_r with (p := prior c) in Hup; [|lia]. lia. }
      assert (above * S <= (Z.max L0 (1 + above) - 1) * S); [|lia].
      apply Z.mul_le_mono_nonneg_r; lia.
  - subst rows. exists s0, L0. unfold bounded.
    split; [lia|]. split; [assumption|]. split; [lia|]. split; [assumption|]. intros R S [].
Qed.

(** What the whole pass proves, with the rows that were passed before. *)
Lemma check_columns_sound up down N k : forall before behind seen rows,
  knows seen rows -> Forall (fun c => 1 <= prior c) k -> behind = sum (priors k) ->
  check_columns up down N before behind seen k = true ->
  forall j, (j < length k)%nat -> forall d,
  (exists s L, bounded up down (S j =? length k)%nat rows (nth j k d) s L
    /\ forall i, (i < j)%nat ->
       (s + 1) * (behind - sum (firstn (S i) (priors k)))
       <= (N - before - sum (firstn i (lows k)) - at_ (owns k) i) * prior (nth j k d)
       <= (L - 1) * (behind - sum (firstn (S i) (priors k))))
  /\ 0 <= N - before - sum (firstn j (lows k)) - at_ (owns k) j
  /\ (S j = length k -> N - before - sum (firstn j (lows k)) - at_ (owns k) j = 0).
Proof.
  induction k as [|c k IH]; intros before behind seen rows Hk Hp Hb Hc j Hj d; simpl in Hj; [lia|].
  inversion Hp as [|? ? Hq Hp']; subst.
  cbn [check_columns] in Hc.
  destruct (check_column up down (match k with [] => true | _ => false end) seen c) eqn:Hcol; [|discriminate].
  apply check_column_sound with (rows := rows) in Hcol; [|lia|assumption].
  destruct k as [|c' k].
  - assert (j = 0%nat) as -> by (simpl in Hj; lia). apply Z.eqb_eq in Hc.
    unfold at_. simpl. split; [|lia]. destruct Hcol as (s & L & H). exists s, L. split; [exact H|]. intros; lia.
  - set (rest := c' :: k) in *. set (R := N - before - own c) in *.
    set (S1 := sum (priors (c :: rest)) - prior c) in *.
    assert (S1 = sum (priors rest)) as HS1 by (unfold S1, priors; simpl; lia).
    destruct (Z.leb_spec 0 R) as [HR|]; [|discriminate].
    assert (0 < S1) as HS1p.
    { rewrite HS1. unfold rest. inversion Hp' as [|? ? Hq' Hp'']; subst. unfold priors. cbn [map sum].
      assert (0 <= sum (map prior k)); [|lia]. apply sum_nonneg, Forall_map.
      eapply Forall_impl; [|exact Hp'']. simpl. intros. lia. }
    destruct j as [|j].
    + unfold at_. cbn [nth firstn sum owns lows map].
      split; [|split; [unfold R in HR; lia|simpl; lia]]. destruct Hcol as (s & L & H). exists s, L.
      split; [exact H|]. intros; lia.
    + specialize (IH (before + low c) S1 (Some (with_row seen R S1)) ((R, S1) :: rows)
        (knows_with_row _ _ _ _ HS1p Hk) Hp' HS1 Hc j ltac:(simpl in *; lia) d).
      destruct IH as ((s & L & Hbd & Htail) & Hpos & Hlast).
      assert (forall i, N - before - sum (firstn (S i) (lows (c :: rest))) - at_ (owns (c :: rest)) (S i)
        = N - (before + low c) - sum (firstn i (lows rest)) - at_ (owns rest) i) as Hshift.
      { clear. clearbody rest. intros i. unfold at_, lows, owns. cbn [map firstn sum nth]. lia. }
      rewrite Hshift. split; [|split; [exact Hpos|intros; apply Hlast; simpl in *; lia]].
      exists s, L. destruct Hbd as (H1 & H2 & H3 & H4 & H5). split.
      * split; [exact H1|]. split; [exact H2|]. split; [exact H3|]. split.
        -- intros Hl. apply H4. exact Hl.
        -- intros R' S' Hin. apply H5. now right.
      * intros i Hi. destruct i as [|i].
        -- specialize (H5 R S1 (or_introl eq_refl)). unfold at_. cbn [nth firstn sum owns lows priors map] in *.
           replace (N - before - 0 - own c) with R by (unfold R; lia).
           replace (prior c + sum (map prior rest) - (prior c + 0)) with S1 by (unfold S1, priors; cbn [map sum]; lia).
           exact H5.
        -- rewrite Hshift. specialize (Htail i ltac:(lia)).
           replace (sum (priors (c :: rest)) - sum (firstn (S (S i)) (priors (c :: rest))))
             with (S1 - sum (firstn (S i) (priors rest))); [exact Htail|].
           unfold S1, priors. rewrite (map_cons prior c rest), (firstn_cons (S i)). cbn [sum]. lia.
Qed.

(** Facts of a kernel that passed. *)

Lemma check_kernel_true up down N k : check_kernel up down N k = true ->
  0 < down /\ 0 < N /\ sum (priors k) = N /\ Forall (fun c => 1 <= prior c) k /\ Forall (fun c => 1 <= low c) k
  /\ check_columns up down N 0 N None k = true.
Proof.
  unfold check_kernel. rewrite !andb_true_iff, !Z.ltb_lt, Z.eqb_eq, !forallb_forall, !Forall_forall.
  intros [[[[[[Hd HN] Hs] Hp] Hl] _] Hc].
  split; [assumption|]. split; [assumption|]. split; [assumption|].
  split; [intros c Hin; apply Z.leb_le; auto|]. split; [intros c Hin; apply Z.leb_le; auto|]. assumption.
Qed.

Lemma nonneg_map (g : column -> Z) k : Forall (fun c => 1 <= g c) k -> Forall (fun x => 0 <= x) (map g k).
Proof. intros H. apply Forall_map. eapply Forall_impl; [|exact H]. simpl. intros. lia. Qed.

Lemma behind_firstn k r : behind k r = sum (priors k) - sum (firstn (S r) (priors k)).
Proof. unfold behind. rewrite (sum_split (S r) (priors k)) at 1. lia. Qed.

Lemma behind_positive k r : Forall (fun c => 1 <= prior c) k -> (S r < length k)%nat -> 0 < behind k r.
Proof.
  intros H Hr. unfold behind, priors. rewrite skipn_map.
  assert (Forall (fun c => 1 <= prior c) (skipn (S r) k)) as Hf.
  { apply Forall_forall. intros c Hc. rewrite Forall_forall in H. apply H.
    rewrite <- (firstn_skipn (S r) k). apply in_or_app. now right. }
  assert (length (skipn (S r) k) <> 0)%nat as Hl by (rewrite skipn_length; lia).
  destruct Hf as [|c l Hc Hf]; [now simpl in Hl|].
  apply nonneg_map in Hf. apply sum_nonneg in Hf. simpl. lia.
Qed.

(** Every weight that a column can have, in any row, lies between N·s and N·L, and L ≤ A·s. *)
Theorem column_bounds up down N k : check_kernel up down N k = true -> forall j, (j < length k)%nat ->
  exists s L, 1 <= s /\ L * down <= up * s
    /\ forall r, (r < length k)%nat -> N * s <= weight N k r j <= N * L.
Proof.
  intros Hcheck j Hj. apply check_kernel_true in Hcheck. destruct Hcheck as (Hd & HN & Hs & Hp & Hl & Hc).
  set (d := Column 0 0 0).
  pose proof (check_columns_sound up down N k 0 N None [] eq_refl Hp (eq_sym Hs) Hc) as Hall.
  destruct (Hall j Hj d) as ((s & L & (H1 & H2 & H3 & H4 & _) & Htail) & _).
  exists s, L. split; [assumption|]. split; [assumption|]. intros r Hr. unfold weight.
  destruct (Nat.ltb_spec j r) as [Hjr|Hjr].
  - unfold lows. rewrite (at_map low k j d) by assumption.
    assert (s <= low (nth j k d) <= L) by (apply H4; apply Nat.eqb_neq; lia). nia.
  - destruct (Nat.eqb_spec j r) as [->|Hne].
    + unfold owns. rewrite (at_map own k r d) by assumption. nia.
    + specialize (Htail r ltac:(lia)). rewrite <- Hs in Htail at 1 4. rewrite <- behind_firstn in Htail.
      rewrite Z.sub_0_r in Htail. fold (tail N k r) in Htail.
      destruct (Hall r Hr d) as ((s' & L' & (H1' & _ & H3' & _) & _) & HR & _).
      rewrite Z.sub_0_r in HR. fold (tail N k r) in HR.
      assert (0 < behind k r) as HS by (apply behind_positive; auto; lia).
      assert (tail N k r <= N) as HRN.
      { unfold tail. assert (0 <= sum (firstn r (lows k))).
        { apply nonneg_map in Hl. pose proof (firstn_sum_mono (lows k) 0 r Hl ltac:(lia)) as H. exact H. }
        unfold owns. rewrite (at_map own k r d) by assumption. lia. }
      assert (j - S r < length (skipn (S r) (priors k)))%nat as Hlen
        by (unfold priors; rewrite skipn_length, map_length; lia).
      pose proof (shares_near N (behind k r) 0 (skipn (S r) (priors k)) (j - S r) HS Hlen) as Hnear.
      set (c := at_ (shares N (behind k r) 0 (skipn (S r) (priors k))) (j - S r)) in *.
      assert (at_ (skipn (S r) (priors k)) (j - S r) = prior (nth j k d)) as Hq.
      { unfold priors. rewrite <- (at_map prior k j d Hj). rewrite at_skipn. f_equal. lia. }
      rewrite Hq in Hnear. set (q := prior (nth j k d)) in *. set (R := tail N k r) in *.
      set (S := behind k r) in *. clearbody c q R S.
      split.
      * apply Z.mul_le_mono_pos_r with S; [assumption|].
        assert (R * (q * N - S) <= R * (c * S)) by (apply Z.mul_le_mono_nonneg_l; lia).
        assert (N * ((s + 1) * S) <= N * (R * q)) by (apply Z.mul_le_mono_nonneg_l; lia).
        assert (R * S <= N * S) by (apply Z.mul_le_mono_nonneg_r; lia). lia.
      * apply Z.mul_le_mono_pos_r with S; [assumption|].
        assert (R * (c * S) <= R * (q * N + S)) by (apply Z.mul_le_mono_nonneg_l; lia).
        assert (N * (R * q) <= N * ((L - 1) * S)) by (apply Z.mul_le_mono_nonneg_l; lia).
        assert (R * S <= N * S) by (apply Z.mul_le_mono_nonneg_r; lia). lia.
Qed.

(** TAILS WITHIN ONE UNIT. What row r gives to a rank j behind it, weight/N units, is within one unit of R_r·prior_j/S_r:
    this is the ±1 of the certificate. *)
Theorem tail_near up down N k r j : check_kernel up down N k = true -> (r < j < length k)%nat ->
  N * (tail N k r * at_ (priors k) j) - N * behind k r
  <= weight N k r j * behind k r
  <= N * (tail N k r * at_ (priors k) j) + N * behind k r.
Proof.
  intros Hcheck [Hrj Hj]. apply check_kernel_true in Hcheck. destruct Hcheck as (Hd & HN & Hs & Hp & Hl & Hc).
  set (d := Column 0 0 0).
  destruct (check_columns_sound up down N k 0 N None [] eq_refl Hp (eq_sym Hs) Hc r ltac:(lia) d)
    as ((s & L & (H1 & _ & H3 & _) & _) & HR & _).
  rewrite Z.sub_0_r in HR. fold (tail N k r) in HR.
  assert (tail N k r <= N) as HRN.
  { unfold tail. apply nonneg_map in Hl. pose proof (firstn_sum_mono (lows k) 0 r Hl ltac:(lia)) as H.
    unfold owns. rewrite (at_map own k r d) by lia. simpl in H. lia. }
  assert (0 < behind k r) as HS by (apply behind_positive; auto; lia).
  pose proof (shares_near N (behind k r) 0 (skipn (S r) (priors k)) (j - S r) HS
    ltac:(unfold priors; rewrite skipn_length, map_length; lia)) as Hnear.
  rewrite at_skipn in Hnear. replace (S r + (j - S r))%nat with j in Hnear by lia.
  unfold weight. destruct (Nat.ltb_spec j r); [lia|]. destruct (Nat.eqb_spec j r); [lia|].
  set (c := at_ (shares _ _ _ _) _) in *. set (q := at_ (priors k) j) in *. set (R := tail N k r) in *.
  set (B := behind k r) in *. clearbody c q R B.
  assert (R * (q * N - B) <= R * (c * B) <= R * (q * N + B))
    by (split; apply Z.mul_le_mono_nonneg_l; lia).
  assert (R * B <= N * B) by (apply Z.mul_le_mono_nonneg_r; lia). lia.
Qed.

(** Picking in a first part and in the rest of a list. *)

Lemma pick_firstn w r u : Forall (fun x => 0 <= x) w -> 0 <= u < sum (firstn r w) ->
  pick w u = pick (firstn r w) u.
Proof.
  intros H. revert r u. induction H as [|x w Hx H IH]; intros r u Hu.
  - now rewrite firstn_nil.
  - destruct r as [|r]; [simpl in Hu; lia|]. cbn [firstn sum] in *. cbn [pick].
    destruct (Z.ltb_spec u x); [reflexivity|]. f_equal. apply IH. lia.
Qed.

Lemma pick_skipn w i y : Forall (fun x => 0 <= x) w -> 0 <= y -> (i <= length w)%nat ->
  pick w (sum (firstn i w) + y) = (i + pick (skipn i w) y)%nat.
Proof.
  intros H Hy. revert i. induction H as [|x w Hx H IH]; intros i Hi.
  - simpl in Hi. assert (i = 0%nat) as -> by lia. reflexivity.
  - destruct i as [|i]; [reflexivity|]. cbn [firstn sum skipn]. cbn [pick].
    assert (0 <= sum (firstn i w)) by (apply (firstn_sum_mono w 0 i H); lia).
    destruct (Z.ltb_spec (x + sum (firstn i w) + y) x); [lia|].
    replace (x + sum (firstn i w) + y - x) with (sum (firstn i w) + y) by lia.
    rewrite IH; [reflexivity|simpl in Hi; lia].
Qed.

(** THE DRAW OF A ROW. Over the N² pairs of words, row r falls to rank j for exactly [weight N k r j] of them. *)
Theorem row_law up down N k r (f : nat -> Z) :
  check_kernel up down N k = true -> (r < length k)%nat ->
  total (fun u => total (fun v => f (draw_row N k r u v)) (words N)) (words N)
  = total (fun j => weight N k r j * f j) (seq 0 (length k)).
Proof.
  intros Hcheck Hr. apply check_kernel_true in Hcheck. destruct Hcheck as (Hd & HN & Hs & Hp & Hl & Hc).
  set (d := Column 0 0 0).
  destruct (check_columns_sound up down N k 0 N None [] eq_refl Hp (eq_sym Hs) Hc r Hr d)
    as ((s & L & (H1 & _ & H3 & _) & _) & HR & Hlast).
  rewrite Z.sub_0_r in HR, Hlast. fold (tail N k r) in HR, Hlast.
  pose proof (nonneg_map low k Hl) as Hl0. pose proof (nonneg_map prior k Hp) as Hp0.
  fold (lows k) in Hl0. fold (priors k) in Hp0.
  assert (length (lows k) = length k) as Hll by apply map_length.
  assert (length (priors k) = length k) as Hlp by apply map_length.
  set (B := sum (firstn r (lows k))).
  assert (0 <= B) as HB by (apply (firstn_sum_mono (lows k) 0 r Hl0); lia).
  set (o := at_ (owns k) r).
  assert (1 <= o) as Ho by (unfold o, owns; rewrite (at_map own k r d) by assumption; lia).
  assert (at_ (before (lows k)) r = B) as Hstart by (apply before_at; lia).
  assert (N = B + (o + tail N k r)) as HNs by (unfold tail; fold B; fold o; lia).
  set (F := fun u => total (fun v => f (draw_row N k r u v)) (words N)).
  transitivity (total F (words (B + (o + tail N k r)))); [now rewrite <- HNs|].
  rewrite total_words_split, total_words_split by lia. unfold F. clear F.
  replace (length k) with (r + (1 + (length k - r - 1)))%nat by lia. rewrite total_seq_split, total_seq_split.
  f_equal; [|f_equal].
  - (* below the floors of the lower ranks *)
    rewrite (total_words_ext _ (fun u => N * f (pick (firstn r (lows k)) u))).
    + rewrite total_scale. rewrite draw_law.
      * rewrite firstn_length, Hll, Nat.min_l by lia. rewrite <- total_scale. apply total_ext_in.
        intros j Hj. apply in_seq in Hj. unfold weight. destruct (Nat.ltb_spec j r); [|lia].
        assert (at_ (firstn r (lows k)) j = at_ (lows k) j) as ->; [|lia].
        unfold at_. rewrite <- (firstn_skipn r (lows k)) at 2. rewrite app_nth1; [reflexivity|].
        rewrite firstn_length. lia.
      * clear -Hl0. revert r. induction Hl0; intros [|r]; simpl; auto.
    + intros u Hu. apply total_words_const; [lia|]. intros v _. unfold draw_row. rewrite Hstart.
      destruct (Z.ltb_spec u B); [|lia]. rewrite bisect_is_pick; auto.
      * simpl. f_equal. now apply pick_firstn.
      * split; [lia|]. pose proof (firstn_sum_mono (lows k) r (length k) Hl0 ltac:(lia)) as H'.
        rewrite (firstn_all2 (n := length k) (lows k)) in H' by lia. fold B in H'. lia.
  - (* the rank itself *)
    rewrite (total_words_const _ o (N * f r)); [|lia|].
    + cbn [seq total]. rewrite Nat.add_0_r. unfold weight. rewrite Nat.ltb_irrefl, Nat.eqb_refl. fold o. lia.
    + intros u Hu. apply total_words_const; [lia|]. intros v _. unfold draw_row. rewrite Hstart. fold o.
      destruct (Z.ltb_spec (B + u) B); [lia|]. destruct (Z.ltb_spec (B + u) (B + o)); [reflexivity|lia].
  - (* the tail *)
    destruct (Nat.eq_dec (S r) (length k)) as [He|He].
    { rewrite (Hlast He). replace (length k - r - 1)%nat with 0%nat by lia. reflexivity. }
    assert (0 < behind k r) as HS by (apply behind_positive; auto; lia).
    set (rest := skipn (S r) (priors k)).
    assert (Forall (fun x => 0 <= x) rest) as Hrest.
    { apply Forall_forall. intros x Hx. rewrite Forall_forall in Hp0. apply Hp0.
      rewrite <- (firstn_skipn (S r) (priors k)). apply in_or_app. now right. }
    rewrite (total_words_const _ (tail N k r)
      (total (fun i => at_ (shares N (behind k r) 0 rest) i * f (S r + i)%nat) (seq 0 (length rest)))); [|lia|].
    + assert (length rest = length k - r - 1)%nat as -> by (unfold rest; rewrite skipn_length; lia).
      rewrite <- total_scale.
      apply total_ext. intros i. unfold weight. fold rest.
      destruct (Nat.ltb_spec (r + (1 + i)) r); [lia|]. destruct (Nat.eqb_spec (r + (1 + i)) r); [lia|].
      replace (r + (1 + i) - S r)%nat with i by lia. replace (r + (1 + i))%nat with (S r + i)%nat by lia. lia.
    + intros u Hu. unfold behind. fold rest.
      rewrite <- (scaled_draw_law N rest (fun i => f (S r + i)%nat) HN HS Hrest).
      apply total_words_ext. intros v Hv. f_equal. unfold draw_row. rewrite Hstart. fold o.
      destruct (Z.ltb_spec (B + (o + u)) B); [lia|]. destruct (Z.ltb_spec (B + (o + u)) (B + o)); [lia|].
      rewrite before_at by lia.
      assert (N - sum (firstn (S r) (priors k)) = sum rest) as Hd'
        by (unfold rest; rewrite <- Hs, (sum_split (S r) (priors k)) at 1; lia).
      rewrite Hd'.
      assert (0 <= v * sum rest / N < sum rest) as Hy
        by (change (0 < sum rest) in HS; split; [apply Z.div_pos; nia|apply Z.div_lt_upper_bound; nia]).
      assert (0 <= sum (firstn (S r) (priors k))) by (apply (firstn_sum_mono (priors k) 0 (S r) Hp0); lia).
      rewrite bisect_is_pick; [|assumption|lia]. cbn [Nat.pred].
      apply pick_skipn; [assumption|lia|lia].
Qed.

(** Every two rows, every event: counted over the N² pairs of words. *)
Theorem rows_private up down N k r r' (S : nat -> bool) :
  check_kernel up down N k = true -> (r < length k)%nat -> (r' < length k)%nat ->
  down * total (fun u => count (fun v => S (draw_row N k r u v)) (words N)) (words N)
  <= up * total (fun u => count (fun v => S (draw_row N k r' u v)) (words N)) (words N).
Proof.
  intros Hcheck Hr Hr'. unfold count.
  rewrite (row_law up down N k r (fun j => one (S j))), (row_law up down N k r' (fun j => one (S j))) by assumption.
  rewrite <- !total_scale. apply total_le_in. intros j Hj. apply in_seq in Hj.
  destruct (column_bounds up down N k Hcheck j ltac:(lia)) as (s & L & Hs & HL & Hw).
  specialize (Hw r Hr) as H1. specialize (Hw r' Hr') as H2.
  apply check_kernel_true in Hcheck. destruct Hcheck as (Hd & HN & _).
  assert (0 < up) as Hup.
  { assert (s <= L) by nia. nia. }
  assert (down * weight N k r j <= up * weight N k r' j).
  { transitivity (N * (L * down)); [nia|]. transitivity (N * (up * s)); nia. }
  destruct (S j); simpl; lia.
Qed.

(** THE KERNEL, in whole numbers. A user is a choice of a rank for each first word: a mixture of rows.
    For every two users and every event, down·(tapes into S) ≤ up·(tapes into S of the other), of N³ tapes. *)
Theorem kernel_private_tapes up down N k (choice choice' : Z -> nat) (S : nat -> bool) :
  check_kernel up down N k = true ->
  (forall word, 0 <= word < N -> (choice word < length k)%nat) ->
  (forall word, 0 <= word < N -> (choice' word < length k)%nat) ->
  down * tapes N k choice S <= up * tapes N k choice' S.
Proof.
  intros Hcheck Hc Hc'. pose proof (check_kernel_true _ _ _ _ Hcheck) as (_ & HN & _).
  apply (mixtures_private N up down (fun r => (r < length k)%nat)
    (fun r => total (fun u => count (fun v => S (draw_row N k r u v)) (words N)) (words N))); auto.
  intros r r' Hr Hr'. now apply rows_private.
Qed.

(** THE KERNEL: Pr[S] ≤ e^ε·Pr'[S] for every two users and every event. *)
Theorem kernel_private up down N (epsilon : R) k (choice choice' : Z -> nat) (S : nat -> bool) :
  at_most_exp up down epsilon -> check_kernel up down N k = true ->
  (forall word, 0 <= word < N -> (choice word < length k)%nat) ->
  (forall word, 0 <= word < N -> (choice' word < length k)%nat) ->
  (probability (tapes N k choice S) (N * N * N)
   <= exp epsilon * probability (tapes N k choice' S) (N * N * N))%R.
Proof.
  intros HA Hcheck Hc Hc'. pose proof (check_kernel_true _ _ _ _ Hcheck) as (_ & HN & _).
  apply counts_to_probabilities with up down; auto.
  - nia.
  - apply total_nonneg_in. intros w _. apply total_nonneg_in. intros u _. apply total_nonneg_in. intros v _.
    unfold one. destruct (S _); lia.
  - now apply kernel_private_tapes.
Qed.
