#!/bin/sh
# Build the checker in the folder $1 from the committed core and its driver: an OCaml compiler is enough.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
command -v ocamlopt >/dev/null 2>&1 || { echo "ocamlopt is not on this machine: apt install ocaml-nox"; exit 1; }
mkdir -p "$out"
cp "$here"/core.ml "$here"/main.ml "$out"/
cd "$out"
rm -f core.mli sottovoce-checker
ocamlopt -O3 -w -a core.ml main.ml -o sottovoce-checker 2>/dev/null || ocamlopt -w -a core.ml main.ml -o sottovoce-checker
echo "the checker is $out/sottovoce-checker"
