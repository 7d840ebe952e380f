# Sourced by soak: how much of the time there was load, and what the servers go through. Nothing here begins by itself.

# The load of a guest counts from load_begins to the last load_goes_on that found it: what a guest needs to start, and what it did before somebody saw
# that it had fallen, is no load.
loaded=0 load_seen=$SECONDS
load_begins() { load_seen=$SECONDS; }
load_goes_on() { loaded=$((loaded + SECONDS - load_seen)) load_seen=$SECONDS; }
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
