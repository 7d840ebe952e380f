#!/bin/sh
# generate_test.sh CMAKE XDRGEN STAGGENERATE.CMAKE: stag_generate() makes its sources again when a file changes that the specification
# includes, with each generator, in a project that asks for older policies, and leaves them alone when nothing has changed.
set -eu
cmake=$1 xdrgen=$2 module=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
project="$work/a folder"
mkdir -p "$project/parts"

fail() {
  echo "install_generate: $*" >&2
  exit 1
}

cat >"$project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.16)
project(includes LANGUAGES NONE)
set(STAG_XDRGEN "$xdrgen")
include("$module")
stag_generate(sources FILES outer.x NAMESPACE test)
add_custom_target(generate ALL DEPENDS \${sources})
END
echo '#include "parts/inner.x"
struct outer { inner x; };' >"$project/outer.x"

check() { # GENERATOR
  build="$work/$1"
  header="$build/gen/outer.h"
  echo 'struct inner { int before; };' >"$project/parts/inner.x"
  "$cmake" -G "$1" -S "$project" -B "$build" >"$work/log" 2>&1 || fail "$1: $(cat "$work/log")"
  "$cmake" --build "$build" >"$work/log" 2>&1 || fail "$1: $(cat "$work/log")"
  grep -q before "$header" || fail "$1: nothing of the included file"
  "$cmake" --build "$build" >"$work/log" 2>&1 || fail "$1: $(cat "$work/log")"
  grep -q 'xdrgen outer.x' "$work/log" && fail "$1: made again, though nothing has changed"
  echo 'struct inner { hyper after; };' >"$project/parts/inner.x"
  "$cmake" --build "$build" >"$work/log" 2>&1 || fail "$1: $(cat "$work/log")"
  grep -q after "$header" || fail "$1: not made again when the included file had changed"
}

check "Unix Makefiles"
if command -v ninja >/dev/null; then check Ninja; fi
