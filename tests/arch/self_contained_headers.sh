#!/usr/bin/env bash
# Every header under src/ compiles alone. $1: compiler, $2: build tree (for generated headers).
set -uo pipefail
compiler=$1 build=$2
flags="-std=c++20 -fsyntax-only -Isrc -I$build/gen -DASIO_STANDALONE"
check() {
  echo "#include \"$1\"" | $compiler $flags -x c++ - || { echo "not self-contained: $1"; return 1; }
}
export -f check
export compiler flags
find src -name '*.h' -printf '%P\n' | sort | xargs -P 2 -I{} bash -c 'check {}'
