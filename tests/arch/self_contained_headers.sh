#!/usr/bin/env bash
# Headers compile alone. $1: compiler, $2: build tree (for generated headers); then: those that are installed, which are
# public, or with `all` every one under src/ (make tidy), a minute of two processors more.
# A header that is the first include of its own .cc is compiled that way by preset dev; the others are compiled here.
set -uo pipefail
compiler=$1 build=$2
flags="-std=c++20 -fsyntax-only -Isrc -I. -I$build/gen -Itests/include"
check() {
  echo "#include \"$1\"" | $compiler $flags -x c++ - || { echo "not self-contained: $1"; return 1; }
}
export -f check
export compiler flags
if [ "${3:-}" = all ]; then
  find src -name '*.h' -printf '%P\n' | sort
else
  grep -E '\.h$' cmake/public_headers.txt
fi | while read -r header; do
  own=src/${header%.h}.cc
  [ -f "$own" ] && [ "$(grep -m1 '^#include' "$own")" = "#include \"$header\"" ] || echo "$header"
done | xargs -P 2 -I{} bash -c 'check {}'
