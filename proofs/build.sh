#!/bin/sh
# Compile the proofs, print what they rest on, extract the checker and build it, all in the folder $1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
need() {
  command -v "$1" >/dev/null 2>&1 || { echo "$1 is not on this machine: apt install coq (it brings OCaml too)"; exit 1; }
}
need coqc
need ocamlopt
mkdir -p "$out"
cp "$here"/*.v "$here"/checker/main.ml "$out"/
cd "$out"
if grep -nE '(^|[^A-Za-z])(Admitted|admit|Axiom|Parameter|Conjecture|Abort)([^A-Za-z]|$)' ./*.v; then
  echo "the proofs are not complete"
  exit 1
fi
for file in Sums Draw Privacy Exp Box Clip BoxRelease Kernel Response Survey Compose Stream Checker Extract; do
  echo "coqc $file.v"
  coqc -q -Q . Sottovoce "$file.v"
done
coqc -q -Q . Sottovoce Assumptions.v > assumptions.txt
rm -f core.mli
ocamlopt -O3 -w -a core.ml main.ml -o sottovoce-checker 2>/dev/null || ocamlopt -w -a core.ml main.ml -o sottovoce-checker
echo "the checker is $out/sottovoce-checker"
