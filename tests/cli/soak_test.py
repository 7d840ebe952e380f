"""`make soak` without a guest: load over connections that are cut, and at servers that take over from one another all the time. Nothing is lost, and memory, descriptors and
latency of the server that stays are at the end what they were. SOAK_SECONDS (10) says for how long."""
import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import harness
from harness import Server, stag

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interop"))
import flat

SECONDS = float(os.environ.get("SOAK_SECONDS", "10"))


class CuttingProxy:
    """Forwards TCP to `port`, and ends each connection after a random number of bytes of replies."""

    def __init__(self, port, least, most):
        self.target, self.least, self.most = port, least, most
        self.random = random.Random(4711)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.cuts = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            left = self.random.randrange(self.least, self.most)
            for source, sink, most in ((client, server, None), (server, client, left)):
                threading.Thread(target=self.forward, args=(source, sink, most), daemon=True).start()

    def forward(self, source, sink, left):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
                left = None if left is None else left - len(data)
                if left is not None and left <= 0:
                    self.cuts += 1
                    break
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def close(self):
        self.listener.close()


class Soak(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-soak-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.tree = os.path.join(self.work, "tree")
        os.mkdir(self.tree)
        for number in range(20):
            with open(os.path.join(self.tree, f"f{number}"), "wb") as file:
                file.write(os.urandom(100_000))
        self.samples = []

    def start(self, name, *arguments, **options):
        folder = os.path.join(self.work, name)
        os.makedirs(folder, exist_ok=True)
        server = Server([f"/x={folder},no_root_squash"], os.path.join(self.work, name + "-state"), ("--lease", "10", "--grace", "10", *arguments), **options)
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def sample(self, server):
        with open(f"/proc/{server.process.pid}/status") as status:
            memory = next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
        descriptors = len(os.listdir(f"/proc/{server.process.pid}/fd")) if harness.sees_descriptors(server.process) else 0
        ping = stag("ping", "-c", "20", "-i", "5", "--json", server.url("/x"))
        self.samples.append((memory, descriptors, json.loads(ping.stdout)["avg_us"]))

    def flat(self, column, more, factor):
        values = [sample[column] for sample in self.samples]
        early, late, too_much = flat.grew(values, more, factor)
        self.assertFalse(too_much, (column, early, late, values))

    def there_and_back(self, url, name):
        back = os.path.join(self.work, "back-" + name)
        for arguments in (("cp", "-r", self.tree, url), ("cp", "-r", url, back), ("rm", "-r", url)):
            done = stag(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        for each in os.listdir(self.tree):
            with open(os.path.join(self.tree, each), "rb") as ours, open(os.path.join(back, each), "rb") as theirs:
                self.assertTrue(ours.read() == theirs.read(), (url, each))
        shutil.rmtree(back)

    def load(self, urls, failures):
        while not self.over.is_set() and not failures:
            for name, url in urls:
                try:
                    self.there_and_back(url, name)
                except Exception as failure:  # a command that does not end, too
                    failures.append(failure)

    def test_nothing_is_lost_and_nothing_grows(self):
        staying, followed = self.start("staying"), self.start("followed")
        rdma, tcp = CuttingProxy(staying.rdma_port, 300_000, 1_500_000), CuttingProxy(staying.tcp_port, 300_000, 1_500_000)
        for proxy in (rdma, tcp):
            self.addCleanup(proxy.close)
        at = lambda proxy, path: f"nfs://127.0.0.1:{proxy.port}/x/{path}?"
        self.over = threading.Event()
        self.addCleanup(self.over.set)
        failures = []
        loads = [
            [("a", at(rdma, "a") + f"mountport={staying.tcp_port}&version=3"), ("b", at(tcp, "b") + "proto=tcp&version=3")],
            [("c", followed.url("/x/c") + "&version=3"), ("d", followed.tcp("/x/d") + "&version=4.1")],
        ]
        threads = [threading.Thread(target=self.load, args=(urls, failures)) for urls in loads]
        for thread in threads:
            thread.start()
        ports = ("--rdma-port", str(followed.rdma_port), "--tcp-port", str(followed.tcp_port))
        begun, turns = time.monotonic(), 0
        while time.monotonic() - begun < SECONDS and not failures:
            self.sample(staying)
            turns += 1
            following = self.start("followed", "--take-over", ports=ports)
            self.assertEqual(followed.process.wait(harness.PATIENCE), 0)
            followed.end()
            followed = following
        self.over.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        print(f"{turns} servers followed one another, connections were cut {rdma.cuts} times over RDMA and {tcp.cuts} over TCP")
        # Each load made a whole round, with more bytes than a connection may have.
        self.assertGreater(rdma.cuts, 0)
        self.assertGreater(tcp.cuts, 0)
        self.flat(0, 8192, 1.2)
        self.flat(1, 40, 1)  # some thirty are files in use, by chance more or fewer
        self.flat(2, 1000, 2)


class Load(unittest.TestCase):
    def test_that_ends_for_whatever_reason_fails_the_soak(self):
        soak = Soak()
        soak.over = threading.Event()
        for reason in (AssertionError(), subprocess.TimeoutExpired("stag cp", harness.PATIENCE), OSError()):
            failures = []
            soak.there_and_back = unittest.mock.Mock(side_effect=reason)
            soak.load([("a", "nfs://127.0.0.1/x/a")], failures)
            self.assertEqual(failures, [reason])


class Soaking(unittest.TestCase):
    """What `make soak` does to the server that stays (tests/interop/soaking.sh), at one of this machine."""

    SCRIPT = r"""
set -uo pipefail
source <(sed -n '/^until_true()/,/^}/p' "$interop/lib.sh")
source "$interop/soaking.sh"
url() { echo "nfs://127.0.0.1:$rdma_port/$1?mountport=$tcp_port&version=3"; }
stays() {
  : >"$work/out"  # here: the server before has said that it is ready, and the next may come late to empty it
  "$stag" serve --listen 127.0.0.1 --rdma-port "${rdma_port:-0}" --tcp-port "${tcp_port:-0}" --state "$work/state" --config "$work/staying.toml" \
    --metrics "127.0.0.1:${metrics_port:-0}" "$@" >>"$work/out" 2>>"$work/err" &
  staying=$!
  trap 'kill "$staying" 2>/dev/null' EXIT
  until_true 60 grep -q '^ready: TCP' "$work/out"
  rdma_port=$(sed -nE 's,^ready: RPC-over-RDMA +nfs://[^/]*:([0-9]+)/.*,\1,p' "$work/out") tcp_port=$(sed -nE 's,^ready: TCP +nfs://[^/]*:([0-9]+)/.*,\1,p' "$work/out")
  metrics_port=$(sed -nE 's,^metrics: http://127.0.0.1:([0-9]+)/.*,\1,p' "$work/out")
}
said() { "$@" >/dev/null 2>&1; echo "$1 $?"; }
mkdir "$work/served"
settings "$work/staying.toml" "$work/served"
stays
said has_spare; said scraped
reload; said has_spare
first=$staying
follows "$staying" stays; echo "follows $?"
[ "$staying" != "$first" ] && kill -0 "$staying" && ! kill -0 "$first" 2>/dev/null; echo "successor $?"
said scraped
reload; said has_spare
echo 'export = "nonsense"' >"$work/staying.toml"
kill -HUP "$staying"
until_true 60 grep -q ExportsReloadFailed "$work/err"
said scraped; echo "$reloads reloads"
"""

    def test_reloads_scrapes_and_follows_a_server(self):
        work = tempfile.mkdtemp(prefix="stag-soaking-")
        self.addCleanup(shutil.rmtree, work, ignore_errors=True)
        interop = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "interop")
        done = subprocess.run(["bash", "-c", self.SCRIPT], env=os.environ | {"stag": harness.STAG, "work": work, "interop": interop}, stdout=subprocess.PIPE, text=True,
                              timeout=4 * harness.PATIENCE)
        self.assertEqual(done.stdout.splitlines(), ["has_spare 1", "scraped 0", "has_spare 0", "follows 0", "successor 0", "scraped 0", "has_spare 1", "scraped 1", "2 reloads"])


if __name__ == "__main__":
    harness.main()
