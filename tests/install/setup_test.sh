#!/usr/bin/env bash
# setup_test.sh: tools/setup where there is no dpkg goes on when building has what it needs, and else names what is missing.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "setup: $*" >&2
  exit 1
}

for program in bash env g++ make cmake ninja pkg-config python3; do ln -s "$(command -v "$program")" "$work/$program"; done
PATH=$work "$root/tools/setup" build || fail "a system that has all is refused"
rm "$work/ninja"
said=$(PATH=$work "$root/tools/setup" build 2>&1) && fail "a system without ninja is taken"
case "$said" in
  *" matches: ninja-build ("*) ;;
  *) fail "it does not name what is missing: $said" ;;
esac
