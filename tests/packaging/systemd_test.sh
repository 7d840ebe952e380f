#!/bin/sh
# systemd_test.sh STAG FOLDER: systemd takes FOLDER/stag.service and FOLDER/stag.socket without a remark, and STAG takes FOLDER/stag.toml with
# every line of it in force. The service has every directive that confines the server, and those that start it again. Others may pass through the
# state directory to the control socket, and read nothing there. Without systemd-analyze what systemd says is skipped.
set -eu
stag=$1 folder=$2
work=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

fail() {
  echo "packaging_systemd: $*" >&2
  exit 1
}

# Addresses and folders of this machine in place of the examples'.
mkdir "$work/data"
sed -nE "s|^# (\[\[.*)|\1|p; s|^# ([a-z-]+ = .*)|\1|p" "$folder/stag.toml" |
  sed -E "s|\"192\.0\.2\.1\"|\"127.0.0.1\"|; s|192\.0\.2\.0/24|127.0.0.0/8|; s|/srv/data|$work/data|; s|^(.*-port) = .*|\1 = 0|; s|^rpcbind = true|rpcbind = false|; s|127.0.0.1:9469|127.0.0.1:0|" >"$work/stag.toml"
grep -q '^\[\[export\]\]' "$work/stag.toml" || fail "stag.toml has no export"
umask 022
install -d -m "$(sed -n 's/^StateDirectoryMode=//p' "$folder/stag.service")" "$work/state"
: >"$work/ready"
"$stag" serve --config "$work/stag.toml" --state "$work/state" >"$work/ready" 2>"$work/log" &
server=$!
while ! grep -q 'TCP  *nfs' "$work/ready"; do kill -0 "$server" 2>/dev/null || fail "stag does not take stag.toml: $(cat "$work/log")"; done
test "$(stat -c %A "$work/state" | cut -c 8-)" = --x || fail "others and the state directory: $(stat -c %A "$work/state")"
test -S "$work/state/control" || fail "no control socket in the state directory"
readable=$(find "$work/state" ! -type d -perm /077)
test -z "$readable" || fail "others may open $readable"
kill "$server"
wait "$server" || fail "stag serve did not end well"
server=

# A unit from which one of these is gone works as before: nobody else would notice.
while read -r directive; do
  grep -qxF "$directive" "$folder/stag.service" || fail "stag.service is without $directive"
done <<'DIRECTIVES'
Type=notify
NotifyAccess=main
WatchdogSec=60
Restart=on-failure
StartLimitIntervalSec=0
CapabilityBoundingSet=CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_LEASE CAP_MKNOD CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_SETGID CAP_SETPCAP CAP_SETUID CAP_SYS_RESOURCE
NoNewPrivileges=yes
ProtectSystem=full
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictRealtime=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service open_by_handle_at
SystemCallErrorNumber=EPERM
DIRECTIVES

command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze"; exit 77; }
mkdir "$work/units"
sed "s|/usr/bin/stag|$stag|" "$folder/stag.service" >"$work/units/stag.service"
cp "$folder/stag.socket" "$work/units/"
remarks=$(SYSTEMD_UNIT_PATH="$work/units:" systemd-analyze verify --man=no "$work/units/stag.service" "$work/units/stag.socket" 2>&1) || fail "$remarks"
test -z "$(echo "$remarks" | grep -E 'stag[.](service|socket)' || true)" || fail "$remarks"

# And nothing opens again what these close, by systemd's own count (of 100; it looks at a file by itself from version 250 on).
systemd-analyze --help | grep -q -e --offline || { echo "skipped: systemd-analyze is too old to weigh a unit that is not loaded"; exit 77; }
weighed=$(SYSTEMD_UNIT_PATH="$work/units:" systemd-analyze security --no-pager --offline=true --threshold=40 "$work/units/stag.service" 2>&1) ||
  fail "exposed more than before: $(echo "$weighed" | tail -n 1)"
