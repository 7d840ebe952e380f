#!/bin/sh
# systemd_test.sh STAG FOLDER: systemd takes FOLDER/stag.service and FOLDER/stag.socket without a remark, and STAG takes FOLDER/stag.toml with
# every line of it in force. Others may pass through the state directory to the control socket, and read nothing there. Without systemd-analyze the first is skipped.
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

command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze"; exit 77; }
mkdir "$work/units"
sed "s|/usr/bin/stag|$stag|" "$folder/stag.service" >"$work/units/stag.service"
cp "$folder/stag.socket" "$work/units/"
remarks=$(SYSTEMD_UNIT_PATH="$work/units:" systemd-analyze verify --man=no "$work/units/stag.service" "$work/units/stag.socket" 2>&1) || fail "$remarks"
test -z "$(echo "$remarks" | grep -E 'stag[.](service|socket)' || true)" || fail "$remarks"
