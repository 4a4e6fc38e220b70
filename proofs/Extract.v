(** The programs that are extracted to OCaml. Whole numbers stay Coq's own binary numbers: nothing is replaced by a
    library of OCaml, except booleans, options, pairs and lists. *)

From Coq Require Import Extraction ExtrOcamlBasic ZArith.
From Sottovoce Require Import Sums Draw Exp Clip Compose Stream Checker StreamCheck.

Extraction Language OCaml.
Extraction "core.ml" check answer exact_clip scaled_exp TRIES TERMS charge_of least_ratio most_ratio moved
  check_stream.
