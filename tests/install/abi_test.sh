#!/bin/sh
# abi_test.sh LIBSTAG.SO [--write]: compares what the shared library exports with packaging/abi/libstag.symbols, or writes that; and with it the
# symbols file of Debian's package, where each symbol has the version it came with.
# A new line is a new function; a line that is gone breaks programs which use it: then STAG_SOVERSION grows (cmake/StagInstall.cmake).
set -eu
library=$1
root=$(dirname "$0")/../..
kept=$root/packaging/abi/libstag.symbols
debian=$root/packaging/debian/libstag0.symbols
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//' | grep -v '^STAG_0$' | c++filt | LC_ALL=C sort -u >"$work/now"
version=$(sed -nE 's/^project\(stag VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
# deb-src-symbols(5): names of C++ as people read them, those of C as they are.
{
  printf 'libstag.so.0 libstag0 #MINVER#\n* Build-Depends-Package: libstag-dev\n STAG_0@STAG_0 0.1.0\n'
  sed -E '/^[A-Za-z0-9_]+$/!s/.*/(c++)"&/; /^[(]c/s/$/@STAG_0"/; /^[(]c/!s/$/@STAG_0/' "$work/now" | while IFS= read -r name; do
    came=$(grep -F -- " $name " "$debian" 2>/dev/null | sed 's/.* //' || true)
    printf ' %s %s\n' "$name" "${came:-$version}"
  done
} >"$work/debian"
if [ "${2:-}" = --write ]; then
  cp "$work/now" "$kept"
  cp "$work/debian" "$debian"
  exit
fi
diff -u "$kept" "$work/now" && diff -u "$debian" "$work/debian" && exit
echo "abi: libstag.so exports something else (-: gone, +: new). If that is meant: $0 $library --write" >&2
exit 1
