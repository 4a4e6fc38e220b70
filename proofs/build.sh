#!/bin/sh
# Compile the proofs, let Coq's independent checker look at what was compiled, write down what they rest on, extract
# the checker and build it, all in the folder $1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
back=$(pwd)
need() {
  command -v "$1" >/dev/null 2>&1 || { echo "$1 is not on this machine: apt install coq (it brings OCaml too)"; exit 1; }
}
need coqc
need coqchk
need ocamlopt
mkdir -p "$out"
rm -f "$out"/assumptions.txt "$out"/checked.txt "$out"/sottovoce-checker
cp "$here"/*.v "$out"/
cd "$out"
if grep -nE '(^|[^A-Za-z])(Admitted|admit|Axiom|Parameter|Conjecture|Abort)([^A-Za-z]|$)' ./*.v; then
  echo "the proofs are not complete"
  exit 1
fi
for file in Sums Draw Privacy Exp Box Clip BoxRelease Kernel Response Survey Compose Stream Checker StreamCheck Together Lives Extract; do
  echo "coqc $file.v"
  coqc -q -Q . Sottovoce "$file.v"
done
coqc -q -Q . Sottovoce Assumptions.v > assumptions.txt
echo "coqchk"
coqchk -silent -o -Q . Sottovoce Sottovoce.Assumptions > checked.txt 2>&1 || { cat checked.txt; exit 1; }
if ! cmp -s core.ml "$here"/checker/core.ml; then
  diff "$here"/checker/core.ml core.ml | head -20 || true
  echo "the committed core is not the one that was extracted now ($(coqc --version | head -1)):"
  echo "  if the proofs were changed, copy $out/core.ml to proofs/checker/core.ml and look at what changed"
  exit 1
fi
cd "$back"
sh "$here"/checker/build.sh "$out"
