# Sourced by soak: how much of the time there was load, and what the servers go through. Nothing here begins by itself.

# The load of a guest counts from load_begins to the last load_goes_on that found it at work: what a guest needs to start, what it did before somebody
# saw that it had fallen, and the time in which one of its writers or makers stands still, is no load. A server that was killed keeps its client waiting
# for a grace period at most.
loaded=0 load_seen=$SECONDS longest_wait=120
declare -A done_by worked_at
load_begins() {  # load_begins NAME...: of the folders that the guest works in
  local name part
  load_seen=$SECONDS done_by=() worked_at=()
  for name; do for part in writer maker; do done_by[$part:$name]= worked_at[$part:$name]=$SECONDS; done; done
}
works() {  # works PART:NAME COUNT
  [ "${done_by[$1]-}" = "$2" ] || done_by[$1]=$2 worked_at[$1]=$SECONDS
}
load_goes_on() {
  local name rounds lines each since=$((SECONDS - load_seen))
  while read -r name rounds lines; do
    works "writer:$name" "$rounds"; works "maker:$name" "$lines"
  done < <(tr -d '\r' <"$console" | awk '/^HAS [a-z]+ [0-9]+ [0-9]+$/ { last[$2] = $3 " " $4 } END { for (name in last) print name, last[name] }')
  load_seen=$SECONDS
  for each in "${!worked_at[@]}"; do
    if [ $((SECONDS - worked_at[$each])) -gt $longest_wait ]; then
      echo "    the $each has stood still for $((SECONDS - worked_at[$each])) s"
      return
    fi
  done
  loaded=$((loaded + since))
}
loaded_enough() { [ $((loaded * 10)) -ge $(($1 * 9)) ]; }  # loaded_enough SECONDS: nine tenths of them
# goes_on ELAPSED SECONDS: until they are over, and a quarter longer at most where guests that fell have taken too much of them.
goes_on() { [ "$1" -lt "$2" ] || { ! loaded_enough "$2" && [ "$1" -lt $(($2 * 5 / 4)) ]; }; }

# settings FILE FOLDER [spare]: writes the configuration of the server that stays, with a second export or without.
settings() {
  printf 'export = ["/folder=%s,no_root_squash"%s]\n' "$2" "${3:+, \"/spare=memory\"}" >"$1.new" && mv "$1.new" "$1"
}
has_spare() { "$stag" ls "$(url spare)"; }
lacks_spare() { ! has_spare; }
reloads=0
# Each second one takes away what the one before has added.
reload() {
  local wanted=has_spare spare=spare
  [ $((reloads % 2)) -eq 0 ] || wanted=lacks_spare spare=
  settings "$work/staying.toml" "$work/served" $spare && kill -HUP "$staying" && until_true 60 "$wanted" >/dev/null && reloads=$((reloads + 1))
}
# What Prometheus gets; fails where that is nothing, or says that the last reload failed.
scraped() {
  python3 -c 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=30).read().decode())' \
    "http://127.0.0.1:$metrics_port/metrics" >"$work/metrics" && grep -q '^stag_config_last_reload_successful 1$' "$work/metrics"
}
# follows PREDECESSOR COMMAND...: COMMAND starts its successor, and it ends well. One that never ends is killed, and has failed.
is_gone() { ! kill -0 "$1" 2>/dev/null || [ "$(ps -o stat= -p "$1" | cut -c1)" = Z ]; }
follows() {
  local before=$1; shift
  "$@" --take-over || return
  until_true 120 is_gone "$before" >/dev/null || kill -KILL "$before"
  wait "$before"
}
