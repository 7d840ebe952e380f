# Sourced by the scenarios: the lab, a guest with its console, a `stag serve`, and how checks are counted.
# A scenario is called as SCENARIO STAG; it ends with `finish`.
set -uo pipefail
interop=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$interop/../.." && pwd)
lab=${STAG_LAB:-$project/build/lab}
scenario=$(basename "$0")
stag=${1:?usage: $scenario STAG}
failures=0 checks=0 pids=()

stop() { kill "$1" 2>/dev/null && wait "$1" 2>/dev/null; true; }
skip() { echo "interop: skipped: $*" >&2; exit 77; }
die() { echo "interop: $scenario: $*" >&2; exit 1; }

"$interop/setup" "$lab" || exit $?
[ -x "$stag" ] || die "no program '$stag'"
stag=$(realpath "$stag")
kernel=$(cat "$lab/kernel-version")
work=$(mktemp -d "${TMPDIR:-/tmp}/stag-interop-XXXXXX")
undo() { :; }  # a scenario's own, when all processes are gone
clean() {
  local pid
  for pid in "${pids[@]}"; do stop "$pid"; done
  undo
  if [ -n "${KEEP:-}" ]; then echo "kept: $work"; else rm -rf "$work"; fi
}
trap clean EXIT
trap 'exit 130' INT TERM

check() {  # check SENTENCE COMMAND…
  local sentence=$1; shift
  checks=$((checks + 1))
  if "$@" >"$work/check.out" 2>&1; then
    echo "ok: $sentence"
  else
    echo "FAILED: $sentence"
    tail -n 12 "$work/check.out" | sed 's/^/    /'
    failures=$((failures + 1))
  fi
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# serve OPTION…: starts `stag serve` with them; sets $server, $rdma_port, $tcp_port. Ports stay the same when called again.
serve() {
  : "${rdma_port:=$(free_port)}" "${tcp_port:=$(free_port)}"
  "$stag" serve --rdma-port "$rdma_port" --tcp-port "$tcp_port" --state "$work/state" --log-level info "$@" \
    >"$work/serve.out" 2>>"$work/serve.log" &
  server=$!; pids+=("$server")
  until_true 20 grep -q '^ready: TCP' "$work/serve.out" || die "stag serve did not start: $(cat "$work/serve.log")"
}
url() { echo "nfs://127.0.0.1:$rdma_port/$1?mountport=$tcp_port"; }

until_true() {  # until_true SECONDS COMMAND…
  local tries=$(($1 * 10)); shift
  while ! "$@" 2>/dev/null; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || return 1
    sleep 0.1
  done
}

# boot SCRIPT SECONDS [NAME=VALUE…] [hostfwd=…]: starts a guest that runs guest/SCRIPT with these settings; its console
# goes to $console.
boot() {
  local script=$1 longest=$2 settings= forwards= word; shift 2
  for word in "$@"; do
    case $word in hostfwd=*) forwards+=",$word" ;; *) settings+=" $word" ;; esac
  done
  console=$work/console.$script
  (cd "$interop/guest" && printf '%s\n' init checks "$script" | cpio -o -H newc --quiet | gzip -1) >"$work/scripts.gz"
  cat "$lab/base.gz" "$work/scripts.gz" >"$work/initrd.gz"
  timeout "$longest" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 1024 -smp 2 -nographic -no-reboot -nodefaults \
    -kernel "$lab/vmlinuz" -initrd "$work/initrd.gz" -serial "file:$console" -device virtio-rng-pci \
    -append "console=ttyS0 quiet panic=-1 oops=panic nokaslr mitigations=off RUN=$script$settings" \
    -netdev "user,id=net$forwards" -device virtio-net-pci,netdev=net,romfile= </dev/null >"$work/qemu.log" 2>&1 &
  guest=$!; pids+=("$guest")
}

told() { grep -q "$1" "$console"; }
guest_says() {  # guest_says WORDS SECONDS: waits until it does
  until_true "$2" ended_or_told "$1"; told "$1" || die "the guest did not say '$1': $(tail -n 30 "$console"; cat "$work/qemu.log")"
}
ended_or_told() { told "$1" || ! kill -0 "$guest" 2>/dev/null; }

# Waits for the guest's end and counts its checks as ours.
guest_ends() {
  wait "$guest"
  tr -d '\r' <"$console" | grep -E '^(CHECK |    |NOTE )' | sed 's/^CHECK //; s/^NOTE /    /'
  checks=$((checks + $(grep -c '^CHECK ' "$console")))
  failures=$((failures + $(grep -c '^CHECK FAILED' "$console")))
  told '^GUEST-END' || { tail -n 40 "$console"; check "the guest reached its end" false; }
}

random_tree() {  # random_tree DIR: a file of every size that matters, nested directories, and SHA256SUMS
  local size
  mkdir -p "$1/a/b/c" "$1/empty"
  for size in 0 1 3 4095 4096 4097 1048577 16777216; do head -c "$size" /dev/urandom >"$1/$size"; done
  echo "deep down" >"$1/a/b/c/file"
  (cd "$1" && find . -type f ! -name SHA256SUMS -print0 | sort -z | xargs -0 sha256sum >"$work/sums" && mv "$work/sums" SHA256SUMS)
}
equal_to_sums() { (cd "$1" && sha256sum --quiet -c SHA256SUMS); }

# finish CLIENT SERVER WHAT: leaves the row of docs/interop.md, and ends.
finish() {
  local result="$checks checks passed"
  [ "$failures" -eq 0 ] || result="**$failures of $checks checks failed**"
  mkdir -p "$lab/rows"
  printf '| %s | %s | NFSv3, siw / software iWARP | %s | %s | %s |\n' "$1" "$2" "$3" "$result" "$(date -u +%Y-%m-%d)" >"$lab/rows/$scenario"
  echo "$scenario: $result"
  [ "$failures" -eq 0 ]
  exit $?
}
