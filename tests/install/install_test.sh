#!/bin/sh
# install_test.sh CMAKE BUILD HELLO CXX LIBDIR: installs BUILD to a temporary prefix, builds HELLO against it in two ways
# and lets its client talk to its server over RPC-over-RDMA.
set -eu
cmake=$1 build=$2 hello=$3 cxx=$4 libdir=$5
work=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
prefix=$work/prefix

fail() {
  echo "install: $*" >&2
  exit 1
}

# What a reader of the example is promised: 40 non-blank lines, laid out by clang-format at 100 columns.
lines=$(cat "$hello"/*.x "$hello"/*.cc | grep -c '[^[:space:]]')
test "$lines" -le 40 || fail "hello has $lines lines"
if command -v clang-format-14 >/dev/null; then clang-format-14 --dry-run -Werror "$hello"/*.cc; fi

"$cmake" --install "$build" --prefix "$prefix" --component library >"$work/install.log"
"$cmake" --install "$build" --prefix "$prefix" --component devel >>"$work/install.log"
"$cmake" --install "$build" --prefix "$prefix" --component Unspecified >>"$work/install.log"
for file in bin/stag share/man/man1/stag.1 share/man/man1/stag-serve.1 share/man/man1/xdrgen.1 share/man/man5/stag-exports.5 share/bash-completion/completions/stag share/zsh/vendor-completions/_stag \
  share/fish/vendor_completions.d/stag.fish; do
  test -s "$prefix/$file" || fail "$file was not installed"
done
# mount(8) does not look there.
grep -q "ln -s $prefix/sbin/mount.stag /sbin/" "$work/install.log" || fail "it does not say what fstab needs"
if command -v mandoc >/dev/null; then mandoc -T lint -W warning "$prefix"/share/man/man?/*; fi
grep -rlE '#include "[a-z]+/' "$prefix/include" && fail "a header includes by a path of the source tree"

# Macros know no namespace: every one that users get to see carries the library's name.
grep -rnE '^ *# *define +' "$prefix/include" | grep -vE 'define +STAG_' && fail "a public header defines a macro without STAG_ in front"

# Outside the tree: nothing but the example's own files is there.
mkdir "$work/hello"
cp "$hello"/* "$work/hello"

greet() { # FOLDER: runs the server built there, and the client that CMake built
  mkfifo "$work/enter"
  "$1/hello_server" 0 <"$work/enter" >"$work/port" &
  server=$!
  exec 3>"$work/enter"
  while ! test -s "$work/port"; do kill -0 "$server" || fail "no server"; done
  answer=$("$work/cmake/hello_client" "$(cat "$work/port")" Stag)
  test "$answer" = "Hello, Stag!" || fail "unexpected answer: $answer"
  exec 3>&-
  wait "$server" || fail "the server did not end well"
  server=
  rm "$work/enter" "$work/port"
}

"$cmake" -S "$work/hello" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" >"$work/cmake.log"
"$cmake" --build "$work/cmake"
readelf -d "$work/cmake/hello_server" | grep -q 'NEEDED.*libstag.so.0' || fail "the CMake package does not link the shared library"
greet "$work/cmake"

"$cmake" -S "$work/hello" -B "$work/static" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" -DSTAG_STATIC=ON >"$work/static.log"
"$cmake" --build "$work/static" --target hello_server
readelf -d "$work/static/hello_server" | grep -q 'NEEDED.*libstag' && fail "STAG_STATIC links the shared library"
greet "$work/static"

# The example of docs/rpc-guide.md: its client moves data, runs into a deadline and cancels.
cp -R "$hello/../bulk" "$work/bulk"
"$cmake" -S "$work/bulk" -B "$work/bulk-build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" >"$work/bulk.log"
"$cmake" --build "$work/bulk-build"
mkfifo "$work/enter"
"$work/bulk-build/bulk_server" 0 <"$work/enter" >"$work/port" &
server=$!
exec 3>"$work/enter"
while ! test -s "$work/port"; do kill -0 "$server" || fail "no server"; done
answer=$("$work/bulk-build/bulk_client" "$(cat "$work/port")" | tr '\n' ,) || fail "bulk_client"
test "$answer" = "64 MiB each way, 8 at a time,timed out,cancelled," || fail "unexpected answer: $answer"
exec 3>&-
wait "$server" || fail "the server did not end well"
server=
rm "$work/enter" "$work/port"

# The examples of docs/client-guide.md.
lines=$(grep -c '[^[:space:]]' "$hello/../files/copy_folder.cc")
test "$lines" -le 40 || fail "copy_folder has $lines lines"
cp -R "$hello/../files" "$work/files"
"$cmake" -S "$work/files" -B "$work/files-build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" >"$work/files.log"
"$cmake" --build "$work/files-build"
"$prefix/bin/stag" serve --export /export=memory,no_root_squash --rdma-port 0 --tcp-port 0 --state "$work/state" >"$work/ready" &
server=$!
while ! grep -q "TCP  *nfs" "$work/ready"; do kill -0 "$server" || fail "no NFS server"; done
url=$(sed -n 's/^ready: TCP  *\(nfs[^?]*\).*/\1/p' "$work/ready")
echo text >"$work/text"
# user::rw-, user:1234:r--, group::r--, mask::r--, other::---; a file system without lists does not take it.
python3 -c 'import os, struct, sys
entries = ((1, 6, 2**32 - 1), (2, 4, 1234), (4, 4, 2**32 - 1), (16, 4, 2**32 - 1), (32, 0, 2**32 - 1))
os.setxattr(sys.argv[1], "system.posix_acl_access", struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *each) for each in entries))' "$work/text" 2>/dev/null || true
"$prefix/bin/stag" cp -p "$work/text" "${url%/*}/export/text?proto=tcp"
"$work/files-build/copy_folder" "${url%/*}/export?proto=tcp&version=4.2" || fail "copy_folder"
test "$("$prefix/bin/stag" cat "${url%/*}/export/copies/text?proto=tcp")" = text || fail "copy_folder copied something else"
acl_of() { "$prefix/bin/stag" stat "${url%/*}/export/$1?proto=tcp" | sed -n '/ acl  /,/^  owner/p' | grep -v owner; }
test "$(acl_of copies/text)" = "$(acl_of text)" || fail "copy_folder copied no access control list"
for bytes in 10 20; do
  "$work/files-build/journal" "${url%/*}/export?proto=tcp" | grep -qx "journal $bytes" || fail "journal"
done
kill "$server"
wait "$server" || fail "stag serve did not end well"
server=

# A server of files as docs/library.md has it, by the shared library: of a folder, and of memory.
readelf -d "$work/files-build/serve" | grep -q 'NEEDED.*libstag.so.0' || fail "serve does not link the shared library"
mkdir -m 755 "$work/served"
install -m 644 "$work/text" "$work/served/text"
(cd "$work/served" && "$work/files-build/serve") </dev/null >"$work/usage" && fail "serve without arguments serves"
grep -q usage "$work/usage" || fail "serve does not say what it needs"
test "$(ls -A "$work/served")" = text || fail "serve left something in the folder that it would have served"
"$work/files-build/serve" "$work/served" "$work" </dev/null >"$work/refused" && fail "serve shows clients its state"
grep -q "lies in the state directory" "$work/refused" || fail "serve does not say why it serves nothing"
mkfifo "$work/enter"
"$work/files-build/serve" "$work/served" "$work/serve.state" <"$work/enter" >"$work/port" &
server=$!
exec 3>"$work/enter"
while ! test -s "$work/port"; do kill -0 "$server" || fail "no server: serve"; done
url=$(cat "$work/port")
test "$("$prefix/bin/stag" cat "${url%/folder*}/folder/text?${url#*\?}")" = text || fail "serve has another file"
"$prefix/bin/stag" cp "$work/text" "${url%/folder*}/memory/text?${url#*\?}" || fail "serve keeps nothing in memory"
exec 3>&-
wait "$server" || fail "serve did not end well"
server=
rm "$work/enter" "$work/port"

export PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig"
mkdir "$work/pkg-config"
cd "$work/pkg-config"
"$(pkg-config --variable=xdrgen stag)" --namespace hello --runtime stag --header hello.h --source hello.cc "$work/hello/hello.x"
# shellcheck disable=SC2046
"$cxx" -std=c++20 $(pkg-config --cflags stag) -I. -c "$work/hello/server.cc" hello.cc
# shellcheck disable=SC2046
"$cxx" server.o hello.o $(pkg-config --libs stag) -Wl,-rpath,"$prefix/$libdir" -o hello_server
greet "$work/pkg-config"
# shellcheck disable=SC2046
"$cxx" server.o hello.o $(pkg-config --libs --static stag | sed 's/-lstag/-l:libstag.a/') -o hello_server
greet "$work/pkg-config"

# The headers that are installed, with the warnings that a user may have switched on; that each compiles alone is a test of the
# source tree.
(cd "$prefix/include" && find stag -name '*.h' | sed 's/.*/#include <&>/') >"$work/all.cc"
# shellcheck disable=SC2046
"$cxx" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags stag) "$work/all.cc"

# A plug-in or extension module is a shared object, which only position-independent code can become.
# shellcheck disable=SC2046
"$cxx" -std=c++20 -fPIC $(pkg-config --cflags stag) -I. -c "$work/hello/server.cc" hello.cc
for libraries in "$(pkg-config --libs stag)" "$(pkg-config --libs --static stag | sed 's/-lstag/-l:libstag.a/')"; do
  # shellcheck disable=SC2086
  "$cxx" -shared -Wl,-z,text,-z,defs server.o hello.o $libraries -o plugin.so
done
