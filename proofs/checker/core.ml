
(** val negb : bool -> bool **)

let negb = function
| true -> false
| false -> true

type nat =
| O
| S of nat

(** val fst : ('a1 * 'a2) -> 'a1 **)

let fst = function
| (x, _) -> x

(** val snd : ('a1 * 'a2) -> 'a2 **)

let snd = function
| (_, y) -> y

(** val length : 'a1 list -> nat **)

let rec length = function
| [] -> O
| _ :: l' -> S (length l')

(** val app : 'a1 list -> 'a1 list -> 'a1 list **)

let rec app l m =
  match l with
  | [] -> m
  | a :: l1 -> a :: (app l1 m)

type comparison =
| Eq
| Lt
| Gt

(** val compOpp : comparison -> comparison **)

let compOpp = function
| Eq -> Eq
| Lt -> Gt
| Gt -> Lt

module Coq__1 = struct
 (** val add : nat -> nat -> nat **)
 let rec add n m =
   match n with
   | O -> m
   | S p -> S (add p m)
end
include Coq__1

type positive =
| XI of positive
| XO of positive
| XH

type z =
| Z0
| Zpos of positive
| Zneg of positive

(** val eqb : bool -> bool -> bool **)

let eqb b1 b2 =
  if b1 then b2 else if b2 then false else true

module type TotalLeBool' =
 sig
  type t

  val leb : t -> t -> bool
 end

module Nat =
 struct
  (** val pred : nat -> nat **)

  let pred n = match n with
  | O -> n
  | S u -> u

  (** val leb : nat -> nat -> bool **)

  let rec leb n m =
    match n with
    | O -> true
    | S n' -> (match m with
               | O -> false
               | S m' -> leb n' m')

  (** val ltb : nat -> nat -> bool **)

  let ltb n m =
    leb (S n) m

  (** val div2 : nat -> nat **)

  let rec div2 = function
  | O -> O
  | S n0 -> (match n0 with
             | O -> O
             | S n' -> S (div2 n'))
 end

module Pos =
 struct
  type mask =
  | IsNul
  | IsPos of positive
  | IsNeg
 end

module Coq_Pos =
 struct
  (** val succ : positive -> positive **)

  let rec succ = function
  | XI p -> XO (succ p)
  | XO p -> XI p
  | XH -> XO XH

  (** val add : positive -> positive -> positive **)

  let rec add x y =
    match x with
    | XI p ->
      (match y with
       | XI q -> XO (add_carry p q)
       | XO q -> XI (add p q)
       | XH -> XO (succ p))
    | XO p ->
      (match y with
       | XI q -> XI (add p q)
       | XO q -> XO (add p q)
       | XH -> XI p)
    | XH -> (match y with
             | XI q -> XO (succ q)
             | XO q -> XI q
             | XH -> XO XH)

  (** val add_carry : positive -> positive -> positive **)

  and add_carry x y =
    match x with
    | XI p ->
      (match y with
       | XI q -> XI (add_carry p q)
       | XO q -> XO (add_carry p q)
       | XH -> XI (succ p))
    | XO p ->
      (match y with
       | XI q -> XO (add_carry p q)
       | XO q -> XI (add p q)
       | XH -> XO (succ p))
    | XH ->
      (match y with
       | XI q -> XI (succ q)
       | XO q -> XO (succ q)
       | XH -> XI XH)

  (** val pred_double : positive -> positive **)

  let rec pred_double = function
  | XI p -> XI (XO p)
  | XO p -> XI (pred_double p)
  | XH -> XH

  type mask = Pos.mask =
  | IsNul
  | IsPos of positive
  | IsNeg

  (** val succ_double_mask : mask -> mask **)

  let succ_double_mask = function
  | IsNul -> IsPos XH
  | IsPos p -> IsPos (XI p)
  | IsNeg -> IsNeg

  (** val double_mask : mask -> mask **)

  let double_mask = function
  | IsPos p -> IsPos (XO p)
  | x0 -> x0

  (** val double_pred_mask : positive -> mask **)

  let double_pred_mask = function
  | XI p -> IsPos (XO (XO p))
  | XO p -> IsPos (XO (pred_double p))
  | XH -> IsNul

  (** val sub_mask : positive -> positive -> mask **)

  let rec sub_mask x y =
    match x with
    | XI p ->
      (match y with
       | XI q -> double_mask (sub_mask p q)
       | XO q -> succ_double_mask (sub_mask p q)
       | XH -> IsPos (XO p))
    | XO p ->
      (match y with
       | XI q -> succ_double_mask (sub_mask_carry p q)
       | XO q -> double_mask (sub_mask p q)
       | XH -> IsPos (pred_double p))
    | XH -> (match y with
             | XH -> IsNul
             | _ -> IsNeg)

  (** val sub_mask_carry : positive -> positive -> mask **)

  and sub_mask_carry x y =
    match x with
    | XI p ->
      (match y with
       | XI q -> succ_double_mask (sub_mask_carry p q)
       | XO q -> double_mask (sub_mask p q)
       | XH -> IsPos (pred_double p))
    | XO p ->
      (match y with
       | XI q -> double_mask (sub_mask_carry p q)
       | XO q -> succ_double_mask (sub_mask_carry p q)
       | XH -> double_pred_mask p)
    | XH -> IsNeg

  (** val sub : positive -> positive -> positive **)

  let sub x y =
    match sub_mask x y with
    | IsPos z0 -> z0
    | _ -> XH

  (** val mul : positive -> positive -> positive **)

  let rec mul x y =
    match x with
    | XI p -> add y (XO (mul p y))
    | XO p -> XO (mul p y)
    | XH -> y

  (** val iter : ('a1 -> 'a1) -> 'a1 -> positive -> 'a1 **)

  let rec iter f x = function
  | XI n' -> f (iter f (iter f x n') n')
  | XO n' -> iter f (iter f x n') n'
  | XH -> f x

  (** val size_nat : positive -> nat **)

  let rec size_nat = function
  | XI p0 -> S (size_nat p0)
  | XO p0 -> S (size_nat p0)
  | XH -> S O

  (** val compare_cont : comparison -> positive -> positive -> comparison **)

  let rec compare_cont r x y =
    match x with
    | XI p ->
      (match y with
       | XI q -> compare_cont r p q
       | XO q -> compare_cont Gt p q
       | XH -> Gt)
    | XO p ->
      (match y with
       | XI q -> compare_cont Lt p q
       | XO q -> compare_cont r p q
       | XH -> Gt)
    | XH -> (match y with
             | XH -> r
             | _ -> Lt)

  (** val compare : positive -> positive -> comparison **)

  let compare =
    compare_cont Eq

  (** val eqb : positive -> positive -> bool **)

  let rec eqb p q =
    match p with
    | XI p0 -> (match q with
                | XI q0 -> eqb p0 q0
                | _ -> false)
    | XO p0 -> (match q with
                | XO q0 -> eqb p0 q0
                | _ -> false)
    | XH -> (match q with
             | XH -> true
             | _ -> false)

  (** val gcdn : nat -> positive -> positive -> positive **)

  let rec gcdn n a b =
    match n with
    | O -> XH
    | S n0 ->
      (match a with
       | XI a' ->
         (match b with
          | XI b' ->
            (match compare a' b' with
             | Eq -> a
             | Lt -> gcdn n0 (sub b' a') a
             | Gt -> gcdn n0 (sub a' b') b)
          | XO b0 -> gcdn n0 a b0
          | XH -> XH)
       | XO a0 ->
         (match b with
          | XI _ -> gcdn n0 a0 b
          | XO b0 -> XO (gcdn n0 a0 b0)
          | XH -> XH)
       | XH -> XH)

  (** val gcd : positive -> positive -> positive **)

  let gcd a b =
    gcdn (Coq__1.add (size_nat a) (size_nat b)) a b

  (** val iter_op : ('a1 -> 'a1 -> 'a1) -> positive -> 'a1 -> 'a1 **)

  let rec iter_op op p a =
    match p with
    | XI p0 -> op a (iter_op op p0 (op a a))
    | XO p0 -> iter_op op p0 (op a a)
    | XH -> a

  (** val to_nat : positive -> nat **)

  let to_nat x =
    iter_op Coq__1.add x (S O)

  (** val of_succ_nat : nat -> positive **)

  let rec of_succ_nat = function
  | O -> XH
  | S x -> succ (of_succ_nat x)
 end

module Z =
 struct
  (** val double : z -> z **)

  let double = function
  | Z0 -> Z0
  | Zpos p -> Zpos (XO p)
  | Zneg p -> Zneg (XO p)

  (** val succ_double : z -> z **)

  let succ_double = function
  | Z0 -> Zpos XH
  | Zpos p -> Zpos (XI p)
  | Zneg p -> Zneg (Coq_Pos.pred_double p)

  (** val pred_double : z -> z **)

  let pred_double = function
  | Z0 -> Zneg XH
  | Zpos p -> Zpos (Coq_Pos.pred_double p)
  | Zneg p -> Zneg (XI p)

  (** val pos_sub : positive -> positive -> z **)

  let rec pos_sub x y =
    match x with
    | XI p ->
      (match y with
       | XI q -> double (pos_sub p q)
       | XO q -> succ_double (pos_sub p q)
       | XH -> Zpos (XO p))
    | XO p ->
      (match y with
       | XI q -> pred_double (pos_sub p q)
       | XO q -> double (pos_sub p q)
       | XH -> Zpos (Coq_Pos.pred_double p))
    | XH ->
      (match y with
       | XI q -> Zneg (XO q)
       | XO q -> Zneg (Coq_Pos.pred_double q)
       | XH -> Z0)

  (** val add : z -> z -> z **)

  let add x y =
    match x with
    | Z0 -> y
    | Zpos x' ->
      (match y with
       | Z0 -> x
       | Zpos y' -> Zpos (Coq_Pos.add x' y')
       | Zneg y' -> pos_sub x' y')
    | Zneg x' ->
      (match y with
       | Z0 -> x
       | Zpos y' -> pos_sub y' x'
       | Zneg y' -> Zneg (Coq_Pos.add x' y'))

  (** val opp : z -> z **)

  let opp = function
  | Z0 -> Z0
  | Zpos x0 -> Zneg x0
  | Zneg x0 -> Zpos x0

  (** val sub : z -> z -> z **)

  let sub m n =
    add m (opp n)

  (** val mul : z -> z -> z **)

  let mul x y =
    match x with
    | Z0 -> Z0
    | Zpos x' ->
      (match y with
       | Z0 -> Z0
       | Zpos y' -> Zpos (Coq_Pos.mul x' y')
       | Zneg y' -> Zneg (Coq_Pos.mul x' y'))
    | Zneg x' ->
      (match y with
       | Z0 -> Z0
       | Zpos y' -> Zneg (Coq_Pos.mul x' y')
       | Zneg y' -> Zpos (Coq_Pos.mul x' y'))

  (** val pow_pos : z -> positive -> z **)

  let pow_pos z0 =
    Coq_Pos.iter (mul z0) (Zpos XH)

  (** val pow : z -> z -> z **)

  let pow x = function
  | Z0 -> Zpos XH
  | Zpos p -> pow_pos x p
  | Zneg _ -> Z0

  (** val compare : z -> z -> comparison **)

  let compare x y =
    match x with
    | Z0 -> (match y with
             | Z0 -> Eq
             | Zpos _ -> Lt
             | Zneg _ -> Gt)
    | Zpos x' -> (match y with
                  | Zpos y' -> Coq_Pos.compare x' y'
                  | _ -> Gt)
    | Zneg x' ->
      (match y with
       | Zneg y' -> compOpp (Coq_Pos.compare x' y')
       | _ -> Lt)

  (** val leb : z -> z -> bool **)

  let leb x y =
    match compare x y with
    | Gt -> false
    | _ -> true

  (** val ltb : z -> z -> bool **)

  let ltb x y =
    match compare x y with
    | Lt -> true
    | _ -> false

  (** val eqb : z -> z -> bool **)

  let eqb x y =
    match x with
    | Z0 -> (match y with
             | Z0 -> true
             | _ -> false)
    | Zpos p -> (match y with
                 | Zpos q -> Coq_Pos.eqb p q
                 | _ -> false)
    | Zneg p -> (match y with
                 | Zneg q -> Coq_Pos.eqb p q
                 | _ -> false)

  (** val max : z -> z -> z **)

  let max n m =
    match compare n m with
    | Lt -> m
    | _ -> n

  (** val min : z -> z -> z **)

  let min n m =
    match compare n m with
    | Gt -> m
    | _ -> n

  (** val abs : z -> z **)

  let abs = function
  | Zneg p -> Zpos p
  | x -> x

  (** val to_nat : z -> nat **)

  let to_nat = function
  | Zpos p -> Coq_Pos.to_nat p
  | _ -> O

  (** val of_nat : nat -> z **)

  let of_nat = function
  | O -> Z0
  | S n0 -> Zpos (Coq_Pos.of_succ_nat n0)

  (** val pos_div_eucl : positive -> z -> z * z **)

  let rec pos_div_eucl a b =
    match a with
    | XI a' ->
      let (q, r) = pos_div_eucl a' b in
      let r' = add (mul (Zpos (XO XH)) r) (Zpos XH) in
      if ltb r' b
      then ((mul (Zpos (XO XH)) q), r')
      else ((add (mul (Zpos (XO XH)) q) (Zpos XH)), (sub r' b))
    | XO a' ->
      let (q, r) = pos_div_eucl a' b in
      let r' = mul (Zpos (XO XH)) r in
      if ltb r' b
      then ((mul (Zpos (XO XH)) q), r')
      else ((add (mul (Zpos (XO XH)) q) (Zpos XH)), (sub r' b))
    | XH -> if leb (Zpos (XO XH)) b then (Z0, (Zpos XH)) else ((Zpos XH), Z0)

  (** val div_eucl : z -> z -> z * z **)

  let div_eucl a b =
    match a with
    | Z0 -> (Z0, Z0)
    | Zpos a' ->
      (match b with
       | Z0 -> (Z0, a)
       | Zpos _ -> pos_div_eucl a' b
       | Zneg b' ->
         let (q, r) = pos_div_eucl a' (Zpos b') in
         (match r with
          | Z0 -> ((opp q), Z0)
          | _ -> ((opp (add q (Zpos XH))), (add b r))))
    | Zneg a' ->
      (match b with
       | Z0 -> (Z0, a)
       | Zpos _ ->
         let (q, r) = pos_div_eucl a' b in
         (match r with
          | Z0 -> ((opp q), Z0)
          | _ -> ((opp (add q (Zpos XH))), (sub b r)))
       | Zneg b' -> let (q, r) = pos_div_eucl a' (Zpos b') in (q, (opp r)))

  (** val div : z -> z -> z **)

  let div a b =
    let (q, _) = div_eucl a b in q

  (** val modulo : z -> z -> z **)

  let modulo a b =
    let (_, r) = div_eucl a b in r

  (** val gcd : z -> z -> z **)

  let gcd a b =
    match a with
    | Z0 -> abs b
    | Zpos a0 ->
      (match b with
       | Z0 -> abs a
       | Zpos b0 -> Zpos (Coq_Pos.gcd a0 b0)
       | Zneg b0 -> Zpos (Coq_Pos.gcd a0 b0))
    | Zneg a0 ->
      (match b with
       | Z0 -> abs a
       | Zpos b0 -> Zpos (Coq_Pos.gcd a0 b0)
       | Zneg b0 -> Zpos (Coq_Pos.gcd a0 b0))
 end

(** val nth : nat -> 'a1 list -> 'a1 -> 'a1 **)

let rec nth n l default =
  match n with
  | O -> (match l with
          | [] -> default
          | x :: _ -> x)
  | S m -> (match l with
            | [] -> default
            | _ :: t0 -> nth m t0 default)

(** val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list **)

let rec map f = function
| [] -> []
| a :: t0 -> (f a) :: (map f t0)

(** val fold_right : ('a2 -> 'a1 -> 'a1) -> 'a1 -> 'a2 list -> 'a1 **)

let rec fold_right f a0 = function
| [] -> a0
| b :: t0 -> f b (fold_right f a0 t0)

(** val forallb : ('a1 -> bool) -> 'a1 list -> bool **)

let rec forallb f = function
| [] -> true
| a :: l0 -> (&&) (f a) (forallb f l0)

(** val combine : 'a1 list -> 'a2 list -> ('a1 * 'a2) list **)

let rec combine l l' =
  match l with
  | [] -> []
  | x :: tl ->
    (match l' with
     | [] -> []
     | y :: tl' -> (x, y) :: (combine tl tl'))

(** val seq : nat -> nat -> nat list **)

let rec seq start = function
| O -> []
| S len0 -> start :: (seq (S start) len0)

(** val sum : z list -> z **)

let rec sum = function
| [] -> Z0
| x :: rest -> Z.add x (sum rest)

(** val total : ('a1 -> z) -> 'a1 list -> z **)

let rec total f = function
| [] -> Z0
| x :: rest -> Z.add (f x) (total f rest)

(** val at_ : z list -> nat -> z **)

let at_ l i =
  nth i l Z0

(** val sums_from : z -> z list -> z list **)

let rec sums_from s = function
| [] -> s :: []
| x :: rest -> s :: (sums_from (Z.add s x) rest)

(** val before : z list -> z list **)

let before w =
  sums_from Z0 w

(** val bisect_loop : nat -> z list -> z -> nat -> nat -> nat **)

let rec bisect_loop fuel a x lo0 hi0 =
  match fuel with
  | O -> lo0
  | S fuel' ->
    if Nat.ltb lo0 hi0
    then let mid = Nat.div2 (add lo0 hi0) in
         if Z.ltb x (at_ a mid)
         then bisect_loop fuel' a x lo0 mid
         else bisect_loop fuel' a x (S mid) hi0
    else lo0

(** val bisect_right : z list -> z -> nat **)

let bisect_right a x =
  bisect_loop (length a) a x O (length a)

(** val ceil : z -> z -> z **)

let ceil a b =
  Z.opp (Z.div (Z.opp a) b)

(** val walk_records : (nat * z) list -> z -> nat option **)

let rec walk_records weights number =
  match weights with
  | [] -> None
  | p :: rest ->
    let (place, k0) = p in
    if Z.ltb (Z.sub number k0) Z0
    then Some place
    else walk_records rest (Z.sub number k0)

(** val choose_record : (nat * z) list -> z -> z -> nat option **)

let choose_record weights word n =
  walk_records weights (Z.div (Z.mul word (sum (map snd weights))) n)

(** val series : nat -> z -> z -> z -> z -> z -> z -> z -> (z * z) option **)

let rec series fuel a b j s t0 s0 t1 =
  match fuel with
  | O -> None
  | S fuel' ->
    let j0 = Z.add j (Zpos XH) in
    let s1 = Z.div (Z.mul s a) (Z.mul b j0) in
    let t2 = ceil (Z.mul t0 a) (Z.mul b j0) in
    let s2 = Z.add s0 s1 in
    let t3 = Z.add t1 t2 in
    if (&&) (Z.leb (Z.mul (Zpos (XO XH)) a) (Z.mul b (Z.add j0 (Zpos XH))))
         (Z.leb t2 (Zpos XH))
    then Some (s2, (Z.add t3 (Z.mul (Zpos (XO XH)) t2)))
    else series fuel' a b j0 s1 t2 s2 t3

(** val bounds : nat -> z -> z -> z -> (z * z) option **)

let bounds fuel a b p =
  let unit0 = Z.pow (Zpos (XO XH)) p in
  series fuel a b Z0 unit0 unit0 unit0 unit0

(** val scaled_exp : nat -> nat -> z -> z -> z -> z option **)

let rec scaled_exp tries fuel a b p =
  match tries with
  | O -> None
  | S tries' ->
    (match bounds fuel a b p with
     | Some p0 ->
       let (lower, upper) = p0 in
       let unit0 =
         Z.pow (Zpos (XO XH))
           (Z.sub p (Zpos (XO (XO (XO (XO (XO (XO XH))))))))
       in
       if Z.eqb (Z.div lower unit0) (Z.div upper unit0)
       then Some (Z.div lower unit0)
       else scaled_exp tries' fuel a b (Z.mul (Zpos (XO XH)) p)
     | None -> None)

(** val tRIES : nat **)

let tRIES =
  S (S (S (S (S (S (S (S O)))))))

(** val tERMS : nat **)

let tERMS =
  Z.to_nat (Zpos (XO (XO (XO (XO (XO (XO (XO (XO (XO (XO (XO (XO (XO (XO
    XH)))))))))))))))

(** val check_ratio : z -> z -> z -> z -> bool **)

let check_ratio a b up down =
  (&&) ((&&) ((&&) (Z.ltb Z0 a) (Z.ltb Z0 b)) (Z.ltb Z0 down))
    (match scaled_exp tRIES tERMS a b (Zpos (XO (XO (XO (XO (XO (XO (XO (XO
             XH))))))))) with
     | Some e ->
       Z.eqb
         (Z.mul up
           (Z.pow (Zpos (XO XH)) (Zpos (XO (XO (XO (XO (XO (XO XH)))))))))
         (Z.mul e down)
     | None -> false)

type item = { k : z; lo : z; hi : z; fixed : z option }

(** val if_active : item -> z -> z **)

let if_active it x =
  match it.fixed with
  | Some _ -> Z0
  | None -> x

(** val if_fixed : item -> z **)

let if_fixed it =
  match it.fixed with
  | Some x -> x
  | None -> Z0

(** val floored : z -> z -> item -> bool **)

let floored left slope it =
  Z.leb (Z.mul left it.k) (Z.mul it.lo slope)

(** val capped : z -> z -> item -> bool **)

let capped left slope it =
  (&&) (negb (floored left slope it))
    (Z.leb (Z.mul it.hi slope) (Z.mul left it.k))

(** val excess : z -> z -> item -> z **)

let excess left slope it =
  if floored left slope it
  then Z.sub (Z.mul it.lo slope) (Z.mul left it.k)
  else if capped left slope it
       then Z.sub (Z.mul it.hi slope) (Z.mul left it.k)
       else Z0

(** val set_to : z -> item -> item **)

let set_to x it =
  { k = it.k; lo = it.lo; hi = it.hi; fixed = (Some x) }

(** val fix_at : (item -> z) -> (item -> bool) -> item -> item **)

let fix_at bound p it =
  match it.fixed with
  | Some _ -> it
  | None -> if p it then set_to (bound it) it else it

(** val taken : (item -> z) -> (item -> bool) -> item list -> z **)

let taken bound p l =
  total (fun it -> if_active it (if p it then bound it else Z0)) l

(** val give : z -> z -> z -> item list -> z list **)

let rec give left slope spare = function
| [] -> []
| it :: rest ->
  (match it.fixed with
   | Some x -> x :: (give left slope spare rest)
   | None ->
     let q = Z.div (Z.mul left it.k) slope in
     if (&&) (negb (Z.eqb (Z.modulo (Z.mul left it.k) slope) Z0))
          (Z.ltb Z0 spare)
     then (Z.add q (Zpos XH)) :: (give left slope (Z.sub spare (Zpos XH))
                                   rest)
     else q :: (give left slope spare rest))

(** val round_down : z -> item list -> z list **)

let round_down left l =
  let slope = total (fun it -> if_active it it.k) l in
  let spare =
    Z.sub left
      (total (fun it -> if_active it (Z.div (Z.mul left it.k) slope)) l)
  in
  give left slope spare l

(** val clip_loop : nat -> z -> item list -> z list option **)

let rec clip_loop fuel left l =
  match fuel with
  | O -> None
  | S fuel' ->
    if forallb (fun it -> match it.fixed with
                          | Some _ -> true
                          | None -> false) l
    then Some (map if_fixed l)
    else let slope = total (fun it -> if_active it it.k) l in
         let balance = total (fun it -> if_active it (excess left slope it)) l
         in
         let p = floored left slope in
         let q = capped left slope in
         if Z.ltb Z0 balance
         then clip_loop fuel' (Z.sub left (taken (fun i -> i.lo) p l))
                (map (fix_at (fun i -> i.lo) p) l)
         else if Z.ltb balance Z0
              then clip_loop fuel' (Z.sub left (taken (fun i -> i.hi) q l))
                     (map (fix_at (fun i -> i.hi) q) l)
              else Some
                     (round_down
                       (Z.sub (Z.sub left (taken (fun i -> i.lo) p l))
                         (taken (fun i -> i.hi) q l))
                       (map (fun it ->
                         fix_at (fun i -> i.hi) q
                           (fix_at (fun i -> i.lo) p it)) l))

(** val exact_clip : ((z * z) * z) list -> z -> z list option **)

let exact_clip items target =
  clip_loop (S (length items)) target
    (map (fun pat ->
      let (y, hi0) = pat in
      let (k0, lo0) = y in { k = k0; lo = lo0; hi = hi0; fixed = None })
      items)

(** val mICRO : z **)

let mICRO =
  Zpos (XO (XO (XO (XO (XO (XO (XI (XO (XO (XI (XO (XO (XO (XO (XI (XO (XI
    (XI (XI XH)))))))))))))))))))

(** val charge_of : z -> z -> z **)

let charge_of a b =
  ceil (Z.mul a mICRO) b

(** val least_ratio : z -> z -> z -> z **)

let least_ratio one unit0 low0 =
  ceil (Z.mul one unit0) low0

(** val most_ratio : z -> z -> z -> z **)

let most_ratio most unit0 high =
  Z.div (Z.mul most unit0) high

(** val moved : z -> z -> z -> z -> z -> z -> z -> z * z **)

let moved one most unit0 low0 high q w =
  ((Z.max (Z.div (Z.mul low0 (Z.div w q)) unit0) one),
    (Z.min (ceil (Z.mul high (ceil w q)) unit0) most))

module Sort =
 functor (X:TotalLeBool') ->
 struct
  (** val merge : X.t list -> X.t list -> X.t list **)

  let rec merge l1 l2 =
    let rec merge_aux l3 =
      match l1 with
      | [] -> l3
      | a1 :: l1' ->
        (match l3 with
         | [] -> l1
         | a2 :: l2' ->
           if X.leb a1 a2 then a1 :: (merge l1' l3) else a2 :: (merge_aux l2'))
    in merge_aux l2

  (** val merge_list_to_stack :
      X.t list option list -> X.t list -> X.t list option list **)

  let rec merge_list_to_stack stack l =
    match stack with
    | [] -> (Some l) :: []
    | y :: stack' ->
      (match y with
       | Some l' -> None :: (merge_list_to_stack stack' (merge l' l))
       | None -> (Some l) :: stack')

  (** val merge_stack : X.t list option list -> X.t list **)

  let rec merge_stack = function
  | [] -> []
  | y :: stack' ->
    (match y with
     | Some l -> merge l (merge_stack stack')
     | None -> merge_stack stack')

  (** val iter_merge : X.t list option list -> X.t list -> X.t list **)

  let rec iter_merge stack = function
  | [] -> merge_stack stack
  | a :: l' -> iter_merge (merge_list_to_stack stack (a :: [])) l'

  (** val sort : X.t list -> X.t list **)

  let sort =
    iter_merge []

  (** val flatten_stack : X.t list option list -> X.t list **)

  let rec flatten_stack = function
  | [] -> []
  | o :: stack' ->
    (match o with
     | Some l -> app l (flatten_stack stack')
     | None -> flatten_stack stack')
 end

(** val highs : z -> z -> z -> z list -> z list **)

let highs up down n low0 =
  map (fun l -> Z.min (Z.div (Z.mul up l) down) n) low0

(** val check_box : z -> z -> z -> z list -> bool **)

let check_box up down n low0 =
  (&&)
    ((&&)
      ((&&) ((&&) (Z.ltb Z0 down) (Z.leb down up))
        (forallb (fun l -> Z.leb (Zpos XH) l) low0)) (Z.leb (sum low0) n))
    (Z.leb n (sum (highs up down n low0)))

(** val walk : z list -> z list -> (nat * z) list -> z -> z -> nat **)

let rec walk before0 low0 units0 shift u =
  match units0 with
  | [] -> Nat.pred (bisect_right before0 (Z.sub u shift))
  | p0 :: rest ->
    let (p, w) = p0 in
    let start = Z.add (at_ before0 p) shift in
    if Z.ltb u start
    then Nat.pred (bisect_right before0 (Z.sub u shift))
    else if Z.ltb u (Z.add start w)
         then p
         else walk before0 low0 rest (Z.add shift (Z.sub w (at_ low0 p))) u

(** val clipped :
    z -> z list -> z list -> (nat * z) list -> (nat * z) list option **)

let clipped n low0 high weights =
  let places = map fst weights in
  (match exact_clip
           (map (fun pat ->
             let (p, k0) = pat in ((k0, (at_ low0 p)), (at_ high p))) weights)
           (Z.min (Z.add (Z.sub n (sum low0)) (total (at_ low0) places))
             (total (at_ high) places)) with
   | Some x -> Some (combine places x)
   | None -> None)

(** val public : z -> z list -> z list -> z list -> z list option **)

let public n prior0 low0 high =
  exact_clip
    (map (fun i -> (((at_ prior0 i), (at_ low0 i)), (at_ high i)))
      (seq O (length low0))) n

(** val minus : z list -> z list -> z list **)

let minus t0 low0 =
  map (fun i -> Z.sub (at_ t0 i) (at_ low0 i)) (seq O (length low0))

(** val nothing : (nat * z) list -> (nat * z) list **)

let nothing units0 =
  map (fun pat -> let (p, _) = pat in (p, Z0)) units0

(** val box_position :
    z -> z list -> z list -> z list -> (nat * z) list -> z -> nat option **)

let box_position n prior0 low0 high weights u =
  match clipped n low0 high weights with
  | Some units0 ->
    let filled =
      Z.add (sum low0)
        (total (fun pat -> let (p, w) = pat in Z.sub w (at_ low0 p)) units0)
    in
    if Z.ltb u filled
    then Some (walk (before low0) low0 units0 Z0 u)
    else (match public n prior0 low0 high with
          | Some t0 ->
            let above = minus t0 low0 in
            let room = Z.sub (sum above) (total (at_ above) (map fst units0))
            in
            Some
            (walk (before above) above (nothing units0) Z0
              (Z.div (Z.mul (Z.sub u filled) room) (Z.sub n filled)))
          | None -> None)
  | None -> None

type column = { prior : z; low : z; own : z }

(** val priors : column list -> z list **)

let priors k0 =
  map (fun c -> c.prior) k0

(** val lows : column list -> z list **)

let lows k0 =
  map (fun c -> c.low) k0

(** val owns : column list -> z list **)

let owns k0 =
  map (fun c -> c.own) k0

type slopes = { least_r : z; least_s : z; most_r : z; most_s : z }

(** val check_column : z -> z -> bool -> slopes option -> column -> bool **)

let check_column up down last seen c =
  let smallest =
    if last then c.own else if Z.ltb c.low c.own then c.low else c.own
  in
  let largest =
    if last then c.own else if Z.ltb c.low c.own then c.own else c.low
  in
  let smallest0 =
    match seen with
    | Some s ->
      Z.min smallest
        (Z.sub (Z.div (Z.mul s.least_r c.prior) s.least_s) (Zpos XH))
    | None -> smallest
  in
  let largest0 =
    match seen with
    | Some s ->
      Z.max largest (Z.add (Zpos XH) (ceil (Z.mul s.most_r c.prior) s.most_s))
    | None -> largest
  in
  (&&) (Z.leb (Zpos XH) smallest0)
    (Z.leb (Z.mul largest0 down) (Z.mul up smallest0))

(** val with_row : slopes option -> z -> z -> slopes **)

let with_row seen r s =
  match seen with
  | Some s0 ->
    let down = Z.ltb (Z.mul r s0.least_s) (Z.mul s0.least_r s) in
    let up = Z.ltb (Z.mul s0.most_r s) (Z.mul r s0.most_s) in
    { least_r = (if down then r else s0.least_r); least_s =
    (if down then s else s0.least_s); most_r = (if up then r else s0.most_r);
    most_s = (if up then s else s0.most_s) }
  | None -> { least_r = r; least_s = s; most_r = r; most_s = s }

(** val check_columns :
    z -> z -> z -> z -> z -> slopes option -> column list -> bool **)

let rec check_columns up down n before0 behind seen = function
| [] -> true
| c :: rest ->
  let last = match rest with
             | [] -> true
             | _ :: _ -> false in
  let tail = Z.sub (Z.sub n before0) c.own in
  if check_column up down last seen c
  then if last
       then Z.eqb tail Z0
       else if Z.leb Z0 tail
            then check_columns up down n (Z.add before0 c.low)
                   (Z.sub behind c.prior) (Some
                   (with_row seen tail (Z.sub behind c.prior))) rest
            else false
  else false

(** val ascending : z list -> bool **)

let rec ascending = function
| [] -> true
| x :: rest ->
  (match rest with
   | [] -> true
   | y :: _ -> if Z.leb x y then ascending rest else false)

(** val check_kernel : z -> z -> z -> column list -> bool **)

let check_kernel up down n k0 =
  (&&)
    ((&&)
      ((&&)
        ((&&)
          ((&&) ((&&) (Z.ltb Z0 down) (Z.ltb Z0 n))
            (Z.eqb (sum (priors k0)) n))
          (forallb (fun c -> Z.leb (Zpos XH) c.prior) k0))
        (forallb (fun c -> Z.leb (Zpos XH) c.low) k0))
      (ascending (priors k0))) (check_columns up down n Z0 n None k0)

(** val draw_row : z -> column list -> nat -> z -> z -> nat **)

let draw_row n k0 r u v =
  let start = at_ (before (lows k0)) r in
  if Z.ltb u start
  then Nat.pred (bisect_right (before (lows k0)) u)
  else if Z.ltb u (Z.add start (at_ (owns k0) r))
       then r
       else let behind = at_ (before (priors k0)) (S r) in
            Nat.pred
              (bisect_right (before (priors k0))
                (Z.add behind (Z.div (Z.mul v (Z.sub n behind)) n)))

(** val check_response : z -> z -> z -> z -> z -> nat -> bool **)

let check_response up down n own0 other kept =
  let several = Nat.ltb (S O) kept in
  let least = if several then Z.min own0 other else own0 in
  let most = if several then Z.max own0 other else own0 in
  (&&)
    ((&&)
      ((&&) ((&&) ((&&) (Z.ltb Z0 down) (Z.ltb Z0 n)) (Nat.ltb O kept))
        (Z.eqb (Z.add own0 (Z.mul (Z.sub (Z.of_nat kept) (Zpos XH)) other)) n))
      (Z.leb (Zpos XH) least)) (Z.leb (Z.mul most down) (Z.mul up least))

(** val draw_response : z -> z -> z -> nat -> nat option -> z -> nat **)

let draw_response n own0 other kept slot u =
  match slot with
  | Some s ->
    if Z.ltb u own0
    then s
    else let step = Z.to_nat (Z.div (Z.sub u own0) other) in
         if Nat.leb s step then S step else step
  | None -> Z.to_nat (Z.div (Z.mul u (Z.of_nat kept)) n)

(** val digits_from : nat -> z -> z -> z -> nat **)

let rec digits_from fuel base power n =
  match fuel with
  | O -> S O
  | S rest ->
    if Z.leb n power
    then S O
    else S (digits_from rest base (Z.mul power base) n)

(** val digits : z -> z -> nat **)

let digits base n =
  digits_from (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
    (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
    (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
    O)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))) base
    base n

(** val questions_of : nat -> z -> z **)

let rec questions_of digits0 base =
  match digits0 with
  | O -> Z0
  | S rest -> Z.add (Zpos XH) (Z.mul base (questions_of rest base))

(** val questions : z -> z -> z **)

let questions base n =
  questions_of (digits base n) base

(** val vector_from : nat -> z -> z -> z -> z -> z **)

let rec vector_from fuel base first power question =
  match fuel with
  | O -> Z0
  | S rest ->
    if Z.ltb question (Z.add first power)
    then Z.sub (Z.add power question) first
    else vector_from rest base (Z.add first power) (Z.mul power base) question

(** val vector : z -> z -> z -> z **)

let vector base n question =
  vector_from (digits base n) base Z0 (Zpos XH) question

(** val dot : nat -> z -> z -> z -> z **)

let rec dot digits0 base v w =
  match digits0 with
  | O -> Z0
  | S rest ->
    Z.add (Z.mul (Z.modulo v base) (Z.modulo w base))
      (dot rest base (Z.div v base) (Z.div w base))

(** val right_answer : z -> z -> z -> nat -> nat **)

let right_answer base n question place =
  Z.to_nat
    (Z.modulo
      (dot (digits base n) base (vector base n question) (Z.of_nat place))
      base)

(** val draw_survey : z -> z -> z -> z -> z -> nat -> z -> z -> nat **)

let draw_survey n base n0 own0 other place asked u =
  let question = Z.div (Z.mul asked (questions base n0)) n in
  let value =
    draw_response n own0 other (Z.to_nat base) (Some
      (right_answer base n0 question place)) u
  in
  Z.to_nat (Z.add (Z.mul question base) (Z.of_nat value))

(** val is_small_prime : z -> bool **)

let is_small_prime base =
  (&&)
    ((&&) (Z.leb (Zpos (XO XH)) base)
      (Z.ltb base (Zpos (XO (XO (XO (XO (XO (XO (XO (XO (XO (XO (XO (XO (XO
        (XO (XO (XO XH)))))))))))))))))))
    (forallb (fun k0 ->
      let f = Z.of_nat k0 in
      (||) (Z.leb base f) (negb (Z.eqb (Z.modulo base f) Z0)))
      (seq (S (S O)) (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
        (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
        (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
        (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
        (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
        (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
        (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
        (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
        (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
        (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
        (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S (S
        (S (S (S (S (S
        O))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))

(** val check_survey : z -> z -> z -> z -> z -> z -> z -> bool **)

let check_survey up down n base n0 own0 other =
  (&&)
    ((&&) (is_small_prime base)
      (Z.ltb (Z.mul (questions base n0) base)
        (Z.pow (Zpos (XO XH)) (Zpos (XI (XO (XI (XO (XI XH)))))))))
    (check_response up down n own0 other (Z.to_nat base))

type kind =
| BoxKind of z list * z list
| KernelKind of z list * z list * z list * z list
| ResponseKind of z list * z * z * z list
| SurveyKind of z * z * z

type mechanism = { bits : z; size : z; epsilon_up : z; epsilon_down : 
                   z; ratio_up : z; ratio_down : z; keeps_prior : bool;
                   body : kind }

(** val units : mechanism -> z **)

let units m =
  Z.pow (Zpos (XO XH)) m.bits

module ZOrder =
 struct
  type t = z

  (** val leb : z -> z -> bool **)

  let leb =
    Z.leb
 end

module ZSort = Sort(ZOrder)

(** val counts_up : z -> z list -> bool **)

let rec counts_up start = function
| [] -> true
| x :: rest ->
  if Z.eqb x start then counts_up (Z.add start (Zpos XH)) rest else false

(** val strictly_above : z -> z list -> bool **)

let rec strictly_above least = function
| [] -> true
| x :: rest -> if Z.ltb least x then strictly_above x rest else false

(** val has_size : z -> z list -> bool **)

let has_size n l =
  Z.eqb (Z.of_nat (length l)) n

(** val wholes : z -> z list -> bool **)

let wholes n l =
  forallb (fun x -> (&&) (Z.leb Z0 x) (Z.leb x n)) l

(** val check_prior : z -> z -> z list -> bool **)

let check_prior n n0 prior0 =
  (&&)
    ((&&) (has_size n0 prior0) (forallb (fun x -> Z.leb (Zpos XH) x) prior0))
    (Z.eqb (sum prior0) n)

(** val columns : z list -> z list -> z list -> column list **)

let rec columns prior0 low0 own0 =
  match prior0 with
  | [] -> []
  | q :: prior' ->
    (match low0 with
     | [] -> []
     | a :: low' ->
       (match own0 with
        | [] -> []
        | o :: own' ->
          { prior = q; low = a; own = o } :: (columns prior' low' own')))

(** val all_between : z list -> z list -> z list -> bool **)

let rec all_between low0 w high =
  match low0 with
  | [] ->
    (match w with
     | [] -> (match high with
              | [] -> true
              | _ :: _ -> false)
     | _ :: _ -> false)
  | a :: low' ->
    (match w with
     | [] -> false
     | x :: w' ->
       (match high with
        | [] -> false
        | b :: high' ->
          if (&&) (Z.leb a x) (Z.leb x b)
          then all_between low' w' high'
          else false))

(** val level : z list -> bool **)

let level = function
| [] -> false
| x :: rest ->
  Z.leb (Z.sub (fold_right Z.max x rest) (fold_right Z.min x rest)) (Zpos XH)

(** val check_kind : z -> z -> z -> z -> bool -> kind -> bool **)

let check_kind n n0 up down keeps = function
| BoxKind (prior0, low0) ->
  (&&)
    ((&&)
      ((&&) ((&&) (has_size n0 low0) (wholes n low0))
        (check_box up down n low0)) (check_prior n n0 prior0))
    (eqb keeps (all_between low0 prior0 (highs up down n low0)))
| KernelKind (order, prior0, low0, own0) ->
  (&&)
    ((&&)
      ((&&)
        ((&&)
          ((&&)
            ((&&)
              ((&&)
                ((&&) (has_size n0 order) (counts_up Z0 (ZSort.sort order)))
                (has_size n0 prior0)) (has_size n0 low0)) (has_size n0 own0))
          (wholes n low0)) (wholes n own0))
      (check_kernel up down n (columns prior0 low0 own0))) keeps
| ResponseKind (kept, own0, other, prior0) ->
  let sorted = ZSort.sort kept in
  (&&)
    ((&&)
      ((&&)
        ((&&)
          ((&&) (strictly_above (Zneg XH) sorted)
            (forallb (fun x -> Z.ltb x n0) kept))
          (wholes n (own0 :: (other :: []))))
        (check_response up down n own0 other (length kept)))
      (check_prior n n0 prior0))
    (eqb keeps ((&&) (has_size n0 kept) (level prior0)))
| SurveyKind (base, own0, other) ->
  (&&)
    ((&&) (wholes n (own0 :: (other :: [])))
      (check_survey up down n base n0 own0 other)) (negb keeps)

(** val check_heading : z -> z -> z -> z -> z -> z -> bool **)

let check_heading bits0 size0 a b up down =
  (&&)
    ((&&)
      ((&&)
        ((&&)
          ((&&)
            ((&&)
              ((&&)
                ((&&)
                  ((&&) (Z.leb (Zpos XH) bits0)
                    (Z.leb bits0 (Zpos (XO (XI (XI (XI (XI XH))))))))
                  (Z.leb (Zpos XH) size0)) (Z.ltb Z0 a)) (Z.ltb Z0 b))
            (Z.leb a (Z.mul (Zpos (XO (XO (XI (XO (XO (XI XH))))))) b)))
          (Z.ltb Z0 up)) (Z.ltb Z0 down)) (Z.eqb (Z.gcd a b) (Zpos XH)))
    (Z.eqb (Z.gcd up down) (Zpos XH))

(** val check : mechanism -> bool **)

let check m =
  (&&)
    ((&&)
      (check_heading m.bits m.size m.epsilon_up m.epsilon_down m.ratio_up
        m.ratio_down)
      (check_kind (units m) m.size m.ratio_up m.ratio_down m.keeps_prior
        m.body))
    (check_ratio m.epsilon_up m.epsilon_down m.ratio_up m.ratio_down)

(** val index_of : nat -> z list -> nat **)

let rec index_of place = function
| [] -> O
| x :: rest -> if Z.eqb x (Z.of_nat place) then O else S (index_of place rest)

(** val place_at : z list -> nat -> nat **)

let place_at l i =
  Z.to_nat (at_ l i)

(** val record : z -> (nat * z) list -> z -> nat **)

let record n weights word =
  match choose_record weights word n with
  | Some place -> place
  | None -> O

(** val slot_of : z list -> nat -> nat option **)

let slot_of kept place =
  let i = index_of place kept in
  if Nat.ltb i (length kept) then Some i else None

(** val answer : mechanism -> (nat * z) list -> z -> z -> z -> nat option **)

let answer m weights word u v =
  let n = units m in
  (match m.body with
   | BoxKind (prior0, low0) ->
     box_position n prior0 low0 (highs m.ratio_up m.ratio_down n low0)
       weights word
   | KernelKind (order, prior0, low0, own0) ->
     Some
       (place_at order
         (draw_row n (columns prior0 low0 own0)
           (index_of (record n weights word) order) u v))
   | ResponseKind (kept, own0, other, _) ->
     Some
       (place_at kept
         (draw_response n own0 other (length kept)
           (slot_of kept (record n weights word)) u))
   | SurveyKind (base, own0, other) ->
     Some (draw_survey n base m.size own0 other (record n weights word) u v))

type stream = { stream_bits : z; stream_size : z; stream_epsilon_up : 
                z; stream_epsilon_down : z; stream_ratio_up : z;
                stream_ratio_down : z; stream_keeps_prior : bool;
                stream_prior : z list; stream_start : z;
                stream_pace : z list; stream_persistence : z }

(** val ratio_bits : stream -> z **)

let ratio_bits s =
  Z.div (Z.mul (Zpos (XO (XI (XI (XO XH))))) s.stream_bits) (Zpos (XO (XI (XI
    (XI (XI XH))))))

(** val prior_total : stream -> z **)

let prior_total s =
  Z.pow (Zpos (XO XH)) (Z.sub s.stream_bits (ratio_bits s))

(** val positive_digits : positive -> z **)

let rec positive_digits = function
| XI q -> Z.add (positive_digits q) (Zpos XH)
| XO q -> Z.add (positive_digits q) (Zpos XH)
| XH -> Zpos XH

(** val binary_digits : z -> z **)

let binary_digits = function
| Zpos p -> positive_digits p
| _ -> Z0

(** val whole_ratio : stream -> z **)

let whole_ratio s =
  Z.div s.stream_ratio_up s.stream_ratio_down

(** val one_of : stream -> z **)

let one_of s =
  Z.pow (Zpos (XO XH))
    (Z.sub (Zpos (XO (XI (XI (XI (XI XH)))))) (binary_digits (whole_ratio s)))

(** val most_of : stream -> z **)

let most_of s =
  Z.div (Z.mul s.stream_ratio_up (one_of s)) s.stream_ratio_down

(** val between : z -> z -> z -> bool **)

let between low0 x high =
  (&&) (Z.leb low0 x) (Z.leb x high)

(** val check_steps : stream -> bool **)

let check_steps s =
  (&&)
    ((&&)
      ((&&)
        ((&&)
          ((&&)
            ((&&) (check_prior (prior_total s) s.stream_size s.stream_prior)
              (Z.leb (binary_digits (whole_ratio s)) (Zpos (XO (XO (XO (XI
                (XO XH))))))))
            (between (one_of s) s.stream_start (most_of s)))
          (between (Zpos XH) (Z.of_nat (length s.stream_pace)) (Zpos (XO (XO
            (XO (XO (XO (XO (XO (XO (XO (XO (XO (XO XH)))))))))))))))
        (forallb (fun x ->
          between Z0 x (Zpos (XO (XO (XO (XO (XO (XO (XO (XO XH))))))))))
          s.stream_pace))
      (between Z0 s.stream_persistence (Zpos (XI (XI (XI (XI (XI (XI (XI (XI
        (XI XH))))))))))))
    (eqb s.stream_keeps_prior (Z.eqb s.stream_persistence Z0))

(** val check_stream : stream -> bool **)

let check_stream s =
  (&&)
    ((&&)
      (check_heading s.stream_bits s.stream_size s.stream_epsilon_up
        s.stream_epsilon_down s.stream_ratio_up s.stream_ratio_down)
      (check_steps s))
    (check_ratio s.stream_epsilon_up s.stream_epsilon_down s.stream_ratio_up
      s.stream_ratio_down)
