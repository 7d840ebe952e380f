# Sourced by scenarios after lib.sh: what guests that run guest/obey do with byte-range locks (guest/locker.c).

# hold N NAME WORDS…: guest N runs locker with these words in the background, and it has its lock or waits for it.
hold() { in_guest "$1" "rm -f /tmp/$2; locker ${*:3} >/tmp/$2 2>&1 & echo \$! >/tmp/$2.pid"; }
has() { in_guest "$1" "grep -q has /tmp/$2"; }
gets() { until_true 300 has "$@"; }
let_go() { in_guest "$1" "pid=\$(cat /tmp/$2.pid); kill \$pid; n=0; while kill -0 \$pid 2>/dev/null && [ \$n -lt 600 ]; do sleep 0.1; n=\$((n + 1)); done"; }
takes() { in_guest "$1" "rm -f /tmp/try; locker ${*:2} >/tmp/try 2>&1 & n=0; while kill -0 \$! && ! grep -q has /tmp/try && [ \$n -lt 900 ]; do sleep 0.1; n=\$((n + 1)); done; grep has /tmp/try; status=\$?; kill \$!; cat /tmp/try; exit \$status"; }
held() { in_guest "$1" "timeout 200 locker ${*:2}; [ \$? -eq 1 ]"; }  # exits 1: somebody else has it
