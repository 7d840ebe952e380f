# Sourced by the scenarios: the lab, a network, guests with their consoles, a `stag serve`, and how checks are counted.
# A scenario is called as SCENARIO STAG; it ends with `finish`.
#
# The network is the scenario's own: a namespace in which guest N (0 unless told) is at 10.77.N.2 and fd77:N::2, on a tap device of its
# own where the host is 10.77.N.1 and fd77:N::1. Nothing else is in it, so all ports are free, and whoever is in it can
# call whom it likes. A scenario that says network=user before it sources this has QEMU's user networking instead: no root
# needed, the guest sees the host's loopback as 10.0.2.2, and nobody calls the guest.
set -uo pipefail
export PATH=$PATH:/usr/sbin:/sbin
interop=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$interop/../.." && pwd)
lab=${STAG_LAB:-$project/build/lab}
scenario=$(basename "$0")
stag=${1:?usage: $scenario STAG}
failures=0 checks=0 captures=0 pids=()
full() { [ "${INTEROP:-}" = full ]; }  # everything by every version and every transport, and for longer
versions() { full && echo 3 4.0 4.1 4.2 || echo 3 "$@"; }  # versions 4.N…: of NFS, 3 and these, or all

stop() { kill "$1" 2>/dev/null && wait "$1" 2>/dev/null; true; }
die() { echo "interop: $scenario: $*" >&2; exit 1; }
skip() {
  [ "$failures" -eq 0 ] || die "$failures checks failed, and it would be skipped now: $*"
  echo "interop: skipped: $*" >&2; exit 77
}

"$interop/setup" "$lab" || exit $?
if [ "${network:=private}" = private ] && [ -z "${STAG_INTEROP_NETWORK:-}" ]; then
  [ "$(id -u)" -eq 0 ] || skip "not root, which a network namespace and its tap devices need"
  [ -c /dev/net/tun ] || skip "no /dev/net/tun, which the guest's network card needs"
  unshare -nmu true 2>/dev/null || skip "no network namespace can be made here"
  STAG_INTEROP_NETWORK=made exec unshare -nmu --propagation private "$0" "$@"
fi
[ -x "$stag" ] || die "no program '$stag'"
stag=$(realpath "$stag")
kernel=$(cat "$lab/kernel-version")
work=$(mktemp -d "${TMPDIR:-/tmp}/stag-interop-XXXXXX") || die "no folder can be made in ${TMPDIR:-/tmp}"
undo() { :; }  # a scenario's own, when all processes are gone
clean() {
  local pid
  for pid in "${pids[@]}"; do stop "$pid"; done
  undo
  if [ -n "${KEEP:-}" ]; then echo "kept: $work"; else rm -rf "$work"; fi
}
trap clean EXIT
trap 'exit 130' INT TERM

took() { [ "$1" -lt 10 ] || echo " ($1 s)"; }  # took SECONDS: of what takes long it is said
check() {  # check SENTENCE COMMAND…
  local sentence=$1 check_begun=$SECONDS; shift
  checks=$((checks + 1))
  if "$@" >"$work/check.out" 2>&1; then
    echo "ok: $sentence$(took $((SECONDS - check_begun)))"
  else
    echo "FAILED: $sentence$(took $((SECONDS - check_begun)))"
    tail -n 12 "$work/check.out" | sed 's/^/    /'
    failures=$((failures + 1))
  fi
}

if [ "$network" = private ]; then
  mount -t tmpfs run /run # of rpcbind and statd, if any
  hostname host
  ip link set lo up
  address=:: rdma_port=20049 tcp_port=2049
else
  address=127.0.0.1
fi
tap() {  # tap N: makes the device of guest N
  ip tuntap add dev "tap$1" mode tap && ip addr add "10.77.$1.1/24" dev "tap$1" && ip -6 addr add "fd77:$1::1/64" dev "tap$1" nodad &&
    ip link set "tap$1" up
}

# proxy NAME WORD…: starts proxy.py with these words; what it says goes to $work/NAME. Sets $proxy and $proxy_port.
proxy() {
  local said=$work/$1; shift
  : >"$said" # or what an earlier one said would be taken for this one's word
  python3 "$interop/proxy.py" "$@" >"$said" 2>&1 &
  proxy=$!; pids+=("$proxy")
  until_true 60 grep -q '^listens' "$said" || die "the proxy does not start: $(cat "$said")"
  proxy_port=$(sed -n 's/^listens at //p' "$said")
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# serve OPTION…: starts `stag serve` with them; sets $server, $rdma_port, $tcp_port. Ports stay the same when called again. Of several
# servers at once each has its own `instance=N rdma_port=P tcp_port=P serve …`.
serve() {
  : "${rdma_port:=$(free_port)}" "${tcp_port:=$(free_port)}"
  : >"$work/serve${instance:-}.out" # or what an earlier one said would be taken for this one's word
  "$stag" serve --listen "$address" --rdma-port "$rdma_port" --tcp-port "$tcp_port" --state "$work/state${instance:-}" --log-level info "$@" \
    >"$work/serve${instance:-}.out" 2>>"$work/serve.log" &
  server=$!; pids+=("$server")
  until_true 60 grep -q '^ready: TCP' "$work/serve${instance:-}.out" || die "stag serve did not start: $(cat "$work/serve.log")"
}
served_by=127.0.0.1
url() { echo "nfs://$served_by:$rdma_port/$1?mountport=$tcp_port&version=${2:-3}"; }  # url PATH [VERSION]

# Debian's rpcbind in the scenario's network.
start_rpcbind() {
  rpcbind -f >"$work/rpcbind.log" 2>&1 &
  rpcbind=$!; pids+=("$rpcbind")
  until_true 60 rpcinfo -p 127.0.0.1 >/dev/null || die "rpcbind does not start: $(cat "$work/rpcbind.log")"
}

until_true() {  # until_true SECONDS COMMAND…
  local tries=$(($1 * 10)); shift
  while ! "$@" 2>/dev/null; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || return 1
    sleep 0.1
  done
}

# pack PROGRAM…: makes of these programs, and what they are linked with, an archive that `boot packed` gives the guest, in /bin.
pack() {
  local root=$work/packed program library
  mkdir -p "$root/bin" "$root/lib64"
  for program in "$@"; do
    [ -x "$program" ] || die "no program '$program'; build it"
    strip -o "$root/bin/$(basename "$program")" "$program"
    for library in $(ldd "$program" | grep -oE '/[^ ]+\.so[^ ]*'); do mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; done
  done
  (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/packed.gz"
}

# boot SCRIPT SECONDS [NAME=VALUE…] [guest=N] [with=PART] [packed] [memory=MIB] [cpus=N] [hostfwd=…] [disk=SOCKET]: starts a guest that runs guest/SCRIPT with these settings; its
# console goes to $console, its process to $guest. It has one processor: emulated ones wait for each other, and two take twice the time for the same work. PART is an archive of the lab that it has besides (fio). Each disk=SOCKET is a disk that
# somebody serves there by NBD.
boot() {
  local script=$1 longest=$2 number=0 memory=1024 cpus=1 settings= card="user,id=net" parts=("$lab/base.gz") disks=() word; shift 2
  for word in "$@"; do
    case $word in
      hostfwd=*) card+=",$word" ;;
      guest=*) number=${word#guest=} ;;
      with=*) parts+=("$lab/${word#with=}.gz") ;;
      memory=*) memory=${word#memory=} ;;
      cpus=*) cpus=${word#cpus=} ;;
      disk=*) disks+=(-drive "file=nbd+unix:///?socket=${word#disk=},format=raw,if=none,cache=writeback,id=disk${#disks[@]}" -device "virtio-blk-pci,drive=disk${#disks[@]}") ;;
      packed) parts+=("$work/packed.gz") ;;
      *) settings+=" $word" ;;
    esac
  done
  if [ "$network" = private ]; then
    ip link show "tap$number" >/dev/null 2>&1 || tap "$number" || die "no tap device can be made"
    card="tap,id=net,ifname=tap$number,script=no,downscript=no"
    settings+=" HOST=10.77.$number.1 NUMBER=$number"
  else
    settings+=" HOST=10.0.2.2"
  fi
  console=$work/console.$script.$number; : >"$console"
  mkfifo "$work/orders.$number".{in,out} 2>/dev/null
  (cd "$interop/guest" && printf '%s\n' init checks "$script" | cpio -o -H newc --quiet | gzip -1) >"$work/scripts.$number.gz"
  cat "${parts[@]}" "$work/scripts.$number.gz" >"$work/initrd.$number.gz"
  # On a busy machine the emulated timer is late for the kernel's test of it, which then panics, and its watchdogs see what stands still.
  # And with event_idx or ioeventfd a kick of the network card's queue may be lost there: the guest sends nothing any more.
  timeout "$longest" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m "$memory" -smp "$cpus" -nographic -no-reboot -nodefaults \
    -kernel "$lab/vmlinux" -initrd "$work/initrd.$number.gz" -serial "file:$console" -serial "pipe:$work/orders.$number" -device virtio-rng-pci \
    -append "console=ttyS0 quiet panic=-1 oops=panic nokaslr mitigations=off no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1 sysctl.kernel.hung_task_timeout_secs=0 RUN=$script LONGEST=$longest $settings" \
    -netdev "$card" -device virtio-net-pci,netdev=net,romfile=,event_idx=off,ioeventfd=off "${disks[@]}" </dev/null >"$work/qemu.$number.log" 2>&1 &
  guest=$!; pids+=("$guest")
}

told() { grep -q "$1" "$console"; }
guest_says() {  # guest_says WORDS SECONDS: waits until it does
  until_true "$2" ended_or_told "$1"; told "$1" || die "the guest did not say '$1': $(tail -n 30 "$console"; cat "$work"/qemu.*.log)"
}
ended_or_told() { told "$1" || ! kill -0 "$guest" 2>/dev/null; }

# Waits for the guest's end and counts its checks as ours. What it counted itself must be what its console shows.
guest_ends() {
  local made failed counted
  wait "$guest"
  tr -d '\r' <"$console" | grep -E '^(CHECK |    |NOTE )' | sed 's/^CHECK //; s/^NOTE /    /'
  made=$(grep -c '^CHECK ' "$console") failed=$(grep -c '^CHECK FAILED' "$console")
  counted=$(tr -d '\r' <"$console" | sed -n 's/^GUEST-END //p')
  checks=$((checks + made)) failures=$((failures + failed))
  if [ -z "$counted" ]; then
    what_is_known
    check "the guest reached its end" false
  elif [ "$counted" != "$failed" ]; then
    check "the console shows the $counted failures that the guest counted" false
  fi
  [ "$made" -gt 0 ] || check "the guest made a check" false
}

# Of a guest that did not reach its end within the time it was given, or fell: what it said last, what the server logged and does.
what_is_known() {
  if told WAITS; then sed -n '/WAITS/,$p' "$console" | head -n 400; else tail -n 40 "$console"; fi
  [ ! -e "$work/serve.log" ] || { echo "    -- the server's log"; tail -n 20 "$work/serve.log"; }
  echo "    -- connections"; ss -Htni
  [ -z "${server:-}" ] || { echo "    -- the server's threads"; grep -H . "/proc/$server"/task/*/{comm,wchan}; grep -E '^(State|VmRSS)' "/proc/$server/status"; }
} 2>&1

# A connection that ends while Sends complete sometimes costs Linux 6.1 its life (its Send contexts are freed and still completed:
# rpcrdma_wc_send, rpcrdma_sendctx_dma_unmap): nothing about the server is known then. The busier the machine, the more often.
guest_fell() {
  wait "$guest"
  told '^\[.*Kernel panic' && told '^\[.*RIP: .*rpcrdma_\(sendctx_dma_unmap\|wc_send\)+' || return 1
  echo "    the guest's own kernel fell in its completion of Sends: once more"
}
# while_it_falls COMMAND…: does what boots a guest and ends with `! guest_fell`, again if it fell, five times at most.
while_it_falls() {
  local try
  for try in 1 2 3 4 5; do "$@" && return; done
}

# in_guest N COMMAND: has guest N, which runs guest/obey, do a command (one line), writes what that wrote and ends as it did.
in_guest() {
  local console=$work/console.obey.$1 token try
  token=$(date +%N)$RANDOM
  for try in 1 2 3 4 5; do
    printf '%s %s %s\n' "$token" "${#2}" "$2" >"$work/orders.$1.in"
    ! until_true 20 grep -q "^TAKEN $token" "$console" || break
  done
  until_true 300 grep -q "^ANSWER $token " "$console" || { echo "no answer of guest $1"; return 99; }
  tr -d '\r' <"$console" | sed -n "/^ORDER $token\$/,/^ANSWER $token /s/^> //p"
  return "$(tr -d '\r' <"$console" | sed -n "s/^ANSWER $token //p")"
}
refused() { in_guest "$1" "fails_with 'access denied' $2"; }  # refused N COMMAND
obeying() {  # obeying N [NAME=VALUE…]: boots guest N, which then does what in_guest says
  local number=$1; shift
  boot obey 1000 "guest=$number" "$@"
}

# listen DEVICE FILTER: captures what goes over it to $wire, until `listened`. To begin before a connection does: tshark knows MPA by
# its first messages.
listen() {
  wire=$work/wire.$((captures += 1)).pcapng
  : >"$work/dumpcap.out" # or what an earlier one said would be taken for this one's word
  dumpcap -q -B 256 -i "$1" -f "$2" -w "$wire" >"$work/dumpcap.out" 2>&1 &
  capture=$!; pids+=("$capture")
  until_true 60 grep -q '^File:' "$work/dumpcap.out" || skip "dumpcap cannot listen on $1: $(cat "$work/dumpcap.out")"
}
listened() {
  sleep 1; kill -INT "$capture"; wait "$capture" 2>/dev/null
  local lost; lost=$(sed -nE 's|^Packets received/dropped.*: [0-9]+/([0-9]+) .*|\1|p' "$work/dumpcap.out")
  [ "${lost:-0}" -eq 0 ] || echo "    dumpcap lost $lost packets on this busy machine: what tshark does not find may have been sent"
}
# The kernel's client has one of the ports for superusers, which are those of other protocols, too.
as_rpc=(-d tcp.port==665-1023,rpc -d udp.port==665-1023,rpc)
frames() {  # frames FILTER: how many; a filter that tshark does not know counts nothing, and must not pass for none
  tshark -r "$wire" "${as_rpc[@]}" -Y "$1" >"$work/frames" 2>"$work/tshark.out" || { echo "broken"; return; }
  wc -l <"$work/frames"
}
# finds WHAT LEAST FILTER: of WHAT, which FILTER selects, there are LEAST frames or more.
finds() {
  local all; all=$(frames "$3")
  echo "    $all frames with $1"
  check "tshark finds $1" [ "$all" -ge "$2" ]
}
# Calls and replies of NFS in $wire, of which tshark takes long to read a large one: stream, XID, 0 or 1 of a reply, minor version, procedure
# and status of version 3, operations and statuses of 4.x.
table() {
  [ -e "$wire.table" ] || tshark -r "$wire" "${as_rpc[@]}" -Y nfs -T fields -e tcp.stream -e rpc.xid -e rpc.msgtyp -e nfs.minorversion -e nfs.procedure_v3 -e nfs.status3 \
    -e nfs.opcode -e nfs.nfsstat4 >"$wire.table" 2>"$work/tshark.out"
  cat "$wire.table"
}
# on_version VERSION: a filter for the connections on which this version of NFS is called.
on_version() {
  table | awk -F '\t' -v version="$1" '$3 == 0 && ($4 != "" ? "4." $4 : $5 != "" ? 3 : "") == version { print $1 }' | sort -u | paste -sd , | sed 's/.*/tcp.stream in {&}/'
}
# answers VERSION: how many replies to calls of this version of NFS there are.
answers() {
  table | awk -F '\t' -v version="$1" '$3 == 0 { spoken[$1, $2] = $4 != "" ? "4." $4 : 3 } $3 == 1 && spoken[$1, $2] == version { ++count } END { print count + 0 }'
}
# refusals VERSION: of the replies of this version of NFS what is not OK, "TIMES PROCEDURE STATUS". With version 4 that is the operation
# at which the COMPOUND ended; of a PUTFH the one behind it in the call, which the file handle was for.
refusals() {
  table | awk -F '\t' -v version="$1" '
    $3 == 0 { called[$1, $2] = $7; spoken[$1, $2] = $4 != "" ? "4." $4 : 3 }
    $3 == 1 && spoken[$1, $2] == version {
      operations = split($7, operation, ","); split($8, status, ","); split(called[$1, $2], wanted, ",")
      if (version == 3 && $6 + 0 > 0) print $5, $6
      if (version != 3 && status[1] > 0) print operation[operations] == 22 ? wanted[operations + 1] : operation[operations], status[1]
    }' | sort | uniq -c | sed 's/^ *//' | tee "$work/refusals"
}
answered() { grep -Eq "^[0-9]+ $1 $2\$" "$work/refusals"; }  # answered PROCEDURE STATUS, of the last refusals
# A Terminate is the only message to queue 2 (RFC 5040 4.8). Where tshark loses the thread, it takes data for headers, and now and then some of
# it for the opcode.
terminate='iwarp_rdma.opcode == 7 && iwarp_ddp.qn == 2'
# nothing_is_malformed [EXCUSED]: of the whole capture, whatever it was taken for. tshark 4.0 calls a READ reply malformed whose data went
# into a Write chunk, of any sender; others are not excused but by EXCUSED, a filter.
nothing_is_malformed() {
  check "no packet is malformed but READ replies with a Write chunk" sound "${1:-!frame}"
}
sound() {
  local excused='rpcordma && (nfs.procedure_v2 == 6 || nfs.procedure_v3 == 6 || nfs.opcode == 25) && rpc.msgtyp == 1 && rpcordma.writes_count > 0' bad
  bad=$(frames "_ws.malformed && !($excused) && !($1)")
  head -n 5 "$work/frames"
  [ "$bad" = 0 ]
}

this_guest() { guest=$1 console=$2; }  # of several, the one that is spoken of from here on

random_tree() {  # random_tree DIR LARGEST: a file of every size that matters, nested directories, and SHA256SUMS
  local size
  mkdir -p "$1/a/b/c" "$1/empty"
  for size in 0 1 3 4095 4096 4097 1048577 "$2"; do head -c "$size" /dev/urandom >"$1/$size"; done
  echo "deep down" >"$1/a/b/c/file"
  (cd "$1" && find . -type f ! -name SHA256SUMS -print0 | sort -z | xargs -0 sha256sum >"$work/sums" && mv "$work/sums" SHA256SUMS)
}
equal_to_sums() { (cd "$1" && sha256sum --quiet -c SHA256SUMS); }

# finish CLIENT SERVER WHAT: leaves the row of docs/interop.md, and ends. A scenario of more or others than version 3 over RDMA sets
# protocol before.
finish() {
  local result="$checks checks passed"
  [ "$failures" -eq 0 ] || result="**$failures of $checks checks failed**"
  mkdir -p "$lab/rows"
  printf '| `%s` | %s | %s | %s | %s | %s | %s |\n' "$scenario" "$1" "$2" "${protocol:-NFSv3, siw / software iWARP}" "$3" "$result" "$(date -u +%Y-%m-%d)" \
    >"$lab/rows/$scenario"
  echo "$scenario: $result"
  [ "$failures" -eq 0 ] && exit 0
  # Of a failure that comes once in twenty runs there is no second look.
  [ ! -s "$work/serve.log" ] || { echo "    what the servers said:"; grep -vE 'Client(Connected|Disconnected)' "$work/serve.log" | tail -n 80 | sed 's/^/    /'; }
  exit 1
}
