(* The driver of the extracted checker. It is not proved: it reads numbers, calls Core, and prints the answer.

   One question on a line, words separated by blanks, numbers hexadecimal with an optional "-":
     check MECHANISM                        yes | no
     draw MECHANISM n (place count)*n w u v the released place, or none
     clip n (k low high)*n target           the clipped weights, or none
     ratio a b                              floor(2^64 e^(a/b)), or none
     charge a b                             ceil(10^6 a/b)
     step one most unit low high q w        V, U and the bounds of R that follow
   MECHANISM is: bits size a b up down keeps kind, and by kind, each list with its length before it
     box prior low | kernel order prior low own | response kept own other prior | survey base own other
     stream prior start pace persistence (only to be checked)
   A line that is none of these is answered by "unreadable"; the next line is read all the same. *)

open Core

exception Unreadable

let digit c =
  match c with
  | '0' .. '9' -> Char.code c - 48
  | 'a' .. 'f' -> Char.code c - 87
  | _ -> raise Unreadable

(* The binary digits of a natural number, the highest first, as Coq's positive. *)
let natural text start =
  if String.length text = start then raise Unreadable;
  let value = ref None in
  for i = start to String.length text - 1 do
    let d = digit text.[i] in
    for bit = 3 downto 0 do
      let set = (d lsr bit) land 1 = 1 in
      value := (match !value with
        | None -> if set then Some XH else None
        | Some p -> Some (if set then XI p else XO p))
    done
  done;
  !value

let z_of text =
  if text <> "" && text.[0] = '-' then
    (match natural text 1 with None -> raise Unreadable | Some p -> Zneg p)
  else (match natural text 0 with None -> Z0 | Some p -> Zpos p)

let rec bits_of p = match p with XH -> [true] | XO q -> false :: bits_of q | XI q -> true :: bits_of q

let text_of_positive p =
  let rec digits bits =
    match bits with
    | [] -> []
    | a :: b :: c :: d :: rest -> (a, b, c, d) :: digits rest
    | [a; b; c] -> [(a, b, c, false)]
    | [a; b] -> [(a, b, false, false)]
    | [a] -> [(a, false, false, false)] in
  let one flag weight = if flag then weight else 0 in
  digits (bits_of p)
  |> List.rev_map (fun (a, b, c, d) -> "0123456789abcdef".[one a 1 + one b 2 + one c 4 + one d 8])
  |> List.to_seq |> String.of_seq

let text_of z = match z with Z0 -> "0" | Zpos p -> text_of_positive p | Zneg p -> "-" ^ text_of_positive p

let small text =
  if text = "" || String.length text > 15 then raise Unreadable;
  String.fold_left (fun sum c -> sum * 16 + digit c) 0 text

let rec nat_of n = if n <= 0 then O else S (nat_of (n - 1))
let int_of n = let rec go sum n = match n with O -> sum | S m -> go (sum + 1) m in go 0 n

(* The words of the line that are left. *)
let next words = match !words with [] -> raise Unreadable | word :: rest -> words := rest; word
let number words = z_of (next words)

let times words read =
  let n = small (next words) in
  let rec go n found = if n = 0 then List.rev found else go (n - 1) (read words :: found) in
  go n []

let numbers words = times words number

type asked = Release of mechanism | Steps of stream

let file words =
  let bits = number words in
  let size = number words in
  let epsilon_up = number words in
  let epsilon_down = number words in
  let ratio_up = number words in
  let ratio_down = number words in
  let keeps_prior = (match next words with "1" -> true | "0" -> false | _ -> raise Unreadable) in
  let release body =
    Release { bits; size; epsilon_up; epsilon_down; ratio_up; ratio_down; keeps_prior; body } in
  match next words with
    | "box" ->
        let prior = numbers words in
        let low = numbers words in
        release (BoxKind (prior, low))
    | "kernel" ->
        let order = numbers words in
        let prior = numbers words in
        let low = numbers words in
        let own = numbers words in
        release (KernelKind (order, prior, low, own))
    | "response" ->
        let kept = numbers words in
        let own = number words in
        let other = number words in
        let prior = numbers words in
        release (ResponseKind (kept, own, other, prior))
    | "survey" ->
        let base = number words in
        let own = number words in
        let other = number words in
        release (SurveyKind (base, own, other))
    | "stream" ->
        let prior = numbers words in
        let start = number words in
        let pace = numbers words in
        let persistence = number words in
        Steps { stream_bits = bits; stream_size = size; stream_epsilon_up = epsilon_up;
                stream_epsilon_down = epsilon_down; stream_ratio_up = ratio_up; stream_ratio_down = ratio_down;
                stream_keeps_prior = keeps_prior; stream_prior = prior; stream_start = start;
                stream_pace = pace; stream_persistence = persistence }
    | _ -> raise Unreadable

let ended words = if !words <> [] then raise Unreadable
let or_none text found = match found with None -> "none" | Some value -> text value

let answered line =
  let words = ref (List.filter (fun word -> word <> "") (String.split_on_char ' ' line)) in
  match next words with
  | "check" ->
      let asked = file words in
      ended words;
      if (match asked with Release m -> check m | Steps s -> check_stream s) then "yes" else "no"
  | "draw" ->
      let m = (match file words with Release m -> m | Steps _ -> raise Unreadable) in
      let weights = times words (fun words -> let place = nat_of (small (next words)) in (place, number words)) in
      let word = number words in
      let u = number words in
      let v = number words in
      ended words;
      or_none (fun place -> Printf.sprintf "%x" (int_of place)) (answer m weights word u v)
  | "clip" ->
      let item words =
        let k = number words in
        let low = number words in
        let high = number words in
        ((k, low), high) in
      let items = times words item in
      let target = number words in
      ended words;
      or_none (fun x -> String.concat " " (List.map text_of x)) (exact_clip items target)
  | "ratio" ->
      let a = number words in
      let b = number words in
      ended words;
      or_none text_of (scaled_exp tRIES tERMS a b (z_of "100"))
  | "step" ->
      let one = number words in
      let most = number words in
      let unit = number words in
      let low = number words in
      let high = number words in
      let q = number words in
      let w = number words in
      ended words;
      let low', high' = moved one most unit low high q w in
      String.concat " " (List.map text_of [least_ratio one unit low; most_ratio most unit high; low'; high'])
  | "charge" ->
      let a = number words in
      let b = number words in
      ended words;
      text_of (charge_of a b)
  | _ -> raise Unreadable

let () =
  try
    while true do
      let line = input_line stdin in
      let answer = (try answered line with
        | Unreadable -> "unreadable"
        | Stack_overflow -> "too large") in
      print_endline answer
    done
  with End_of_file -> ()
