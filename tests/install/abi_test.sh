#!/bin/sh
# abi_test.sh LIBSTAG.SO [--write]: compares what the shared library exports with packaging/abi/libstag.symbols, or writes that.
# A new line is a new function; a line that is gone breaks programs which use it: then STAG_SOVERSION grows (cmake/StagInstall.cmake).
set -eu
library=$1
kept=$(dirname "$0")/../../packaging/abi/libstag.symbols
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//' | grep -v '^STAG_0$' | c++filt | LC_ALL=C sort -u >"$work/now"
if [ "${2:-}" = --write ]; then
  cp "$work/now" "$kept"
  exit
fi
diff -u "$kept" "$work/now" && exit
echo "abi: libstag.so exports something else (-: gone, +: new). If that is meant: $0 $library --write" >&2
exit 1
