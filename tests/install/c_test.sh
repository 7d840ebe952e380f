#!/bin/sh
# c_test.sh CMAKE BUILD EXAMPLES CC LIBDIR: installs BUILD to a temporary prefix, builds EXAMPLES/c against it, as C11 with every warning, by the
# CMake package and by pkg-config, and has clients and servers in C and in Python talk to each other.
set -eu
cmake=$1 build=$2 example=$3/c cc=$4 libdir=$5
work=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
prefix=$work/prefix

fail() {
  echo "install_c: $*" >&2
  exit 1
}

"$cmake" --install "$build" --prefix "$prefix" --component library >"$work/install.log"
"$cmake" --install "$build" --prefix "$prefix" --component devel >>"$work/install.log"
"$cmake" -S "$example" -B "$work/toy" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="-Wall -Wextra -Wpedantic -Werror" \
  >"$work/toy.log"
"$cmake" --build "$work/toy" >>"$work/toy.log" || { cat "$work/toy.log"; exit 1; }
"$cmake" -S "$example" -B "$work/static" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" -DSTAG_STATIC=ON >"$work/static.log"
"$cmake" --build "$work/static" >>"$work/static.log" || { cat "$work/static.log"; exit 1; }
readelf -d "$work/static/toy_client" | grep -q 'NEEDED.*libstag' && fail "STAG_STATIC links the shared library"
export PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig"
# Compilers of C refuse flags that are for C++, or warn of them.
for compiler in "$cc" clang-14; do
  if ! command -v "$compiler" >/dev/null; then continue; fi
  # shellcheck disable=SC2046
  "$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror "$example/client.c" $(pkg-config --cflags --libs stag) -o "$work/by_pkg_config"
done
export LD_LIBRARY_PATH="$prefix/$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

begin() { # SERVER...: at $port
  mkfifo "$work/enter"
  "$@" <"$work/enter" >"$work/port" &
  server=$!
  exec 3>"$work/enter"
  while ! test -s "$work/port"; do kill -0 "$server" || fail "no server: $*"; done
  port=$(cat "$work/port")
}

end() { # what begin has begun
  exec 3>&-
  wait "$server" || fail "a server did not end well"
  server=
  rm "$work/enter" "$work/port"
}

converse() { # SERVER...: every client puts, and every client gets
  begin "$@"
  slot=0
  for put in "$work/toy/toy_client" "$work/static/toy_client" "$work/by_pkg_config" "python3 $example/toy.py"; do
    $put "$port" "$slot" "text $slot" || fail "$put put nothing to $*"
    for get in "$work/toy/toy_client" "python3 $example/toy.py"; do
      test "$($get "$port" "$slot")" = "text $slot" || fail "$get got something else from $*"
    done
    slot=$((slot + 1))
  done
  test -z "$("$work/toy/toy_client" "$port" 9)" || fail "$* had something where nothing was put"
  end
}

converse "$work/toy/toy_server" 0
converse python3 "$example/toy.py" --serve
# Ctrl-C, with calls in progress. What bash starts in the background would not hear it.
PYTHONPATH="$example" python3 - <<'PYTHON' || fail "toy.py --serve does not end well on Ctrl-C"
import signal, subprocess, sys, threading
import toy
server = subprocess.Popen([sys.executable, toy.__file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
port, busy = int(server.stdout.readline()), threading.Barrier(5)
def load(slot):
    client = toy.Client("127.0.0.1", port)
    client.put(slot, b"x")
    busy.wait()
    try:
        while client.put(slot, bytes(10000)):
            pass
    except toy.Failed:
        client.close()
loads = [threading.Thread(target=load, args=(slot,)) for slot in range(4)]
for each in loads:
    each.start()
busy.wait()
server.send_signal(signal.SIGINT)
for each in loads:
    each.join()
sys.exit(server.wait())
PYTHON
# Servers that find no memory for any reply refuse, and end.
cat >"$work/no_memory.c" <<'C'
#include <stag.h>
int stag_reply(stag_request* request, const stag_results* results) {
  (void)request;
  (void)results;
  return STAG_NO_MEMORY;
}
C
# shellcheck disable=SC2046
"$cc" -shared -fPIC "$work/no_memory.c" $(pkg-config --cflags stag) -o "$work/no_memory.so"
begin env LD_PRELOAD="$work/no_memory.so" "$work/toy/toy_server" 0
"$work/toy/toy_client" "$port" 0 "text" 2>"$work/error" && fail "toy_server has replied"
grep -q "the server failed" "$work/error" || fail "toy_server does not refuse: $(cat "$work/error")"
end
PYTHONPATH="$example" python3 - <<'PYTHON' || fail "toy.py does not refuse where it cannot reply"
import ctypes, os
import toy
NO_MEMORY = 2
toy.stag.stag_reply = lambda request, results: NO_MEMORY
handler, server = toy.server(), ctypes.c_void_p()
assert toy.stag.stag_serve(b"127.0.0.1", 0, toy.TOY, handler, None, None, server, None) == 0
client = toy.Client("127.0.0.1", toy.stag.stag_server_port(server))
try:
    client.put(0, b"x")
except toy.Failed as failure:
    if "the server failed" not in str(failure):
        print(failure)
        os._exit(1)
client.close()
toy.stag.stag_stop(server)
PYTHON
"$work/toy/toy_client" 1 0 2>"$work/error" && fail "a client without a server succeeded"
grep -q '127.0.0.1:1' "$work/error" || fail "the client does not say where nobody listens: $(cat "$work/error")"
