"""`stag serve` and its clients over a network that is far slower than they are."""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import Server, stag

MIB = 1 << 20
RATE = "12mbit"  # 1.5 MB/s: what the tests move takes twice the stall limit and more
NEW_NETWORK = 0x40000000


def make_slow_network():
    """A network namespace of our own with nothing but a slow loopback device; why there is none, or nothing."""
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: iproute2)"
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NETWORK):
        return "no network namespace can be made here"
    try:
        # Sockets that take little, so that bytes wait where the server sees them.
        with open("/proc/sys/net/ipv4/tcp_wmem", "w") as sizes:
            sizes.write("4096 65536 131072")
    except OSError as problem:
        return f"socket buffers cannot be set: {problem}"
    for command in ("ip link set lo mtu 1500 up", f"tc qdisc add dev lo root tbf rate {RATE} burst 64k limit 4m"):
        done = subprocess.run(command.split(), capture_output=True, text=True)
        if done.returncode:
            return f"{command}: {done.stderr.strip()}"
    return None


class SlowLink(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(prefix="stag-slow-")
        cls.addClassCleanup(shutil.rmtree, cls.work, ignore_errors=True)
        cls.there = os.path.join(cls.work, "there")
        os.mkdir(cls.there)
        cls.data = os.urandom(4 * MIB)
        cls.server = Server([f"/x={cls.there},no_root_squash"], os.path.join(cls.work, "state"), ("--stall-limit", "1"))
        cls.addClassCleanup(lambda: cls.server.process.poll() is None and cls.server.end())

    def copied(self, source, target):
        before = self.server.log()
        result = stag("cp", source, target)
        self.assertEqual(result.returncode, 0, result.stderr)
        news = self.server.log()[len(before):]
        self.assertNotIn("Stalled", news)
        self.assertNotIn("RpcPeerTooSlow", news)

    def test_does_not_end_a_connection_that_takes_many_Replies_slowly(self):
        with open(os.path.join(self.there, "down"), "wb") as file:
            file.write(self.data)
        for url in (self.server.url("/x/down"), self.server.tcp("/x/down")):
            target = os.path.join(self.work, "down")
            self.copied(url + ("&" if "?" in url else "?") + "rsize=262144", target)
            with open(target, "rb") as file:
                self.assertTrue(file.read() == self.data)
            os.remove(target)

    def test_does_not_end_a_connection_that_gives_the_data_of_many_Calls_slowly(self):
        source = os.path.join(self.work, "up")
        with open(source, "wb") as file:
            file.write(self.data)
        url = self.server.url("/x/up")
        self.copied(source, url + ("&" if "?" in url else "?") + "wsize=262144")
        with open(os.path.join(self.there, "up"), "rb") as file:
            self.assertTrue(file.read() == self.data)


if __name__ == "__main__":
    missing = make_slow_network()
    if missing:
        print(f"skipped: {missing}", file=sys.stderr)
        sys.exit(harness.SKIPPED)
    harness.main()
