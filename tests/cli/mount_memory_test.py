"""`stag mount` where memory runs out: it waits until there is some."""
import re
import resource
import signal
import subprocess
import sys
import time
import unittest

import harness
import mounted
from harness import PATIENCE
from mounted import Mounted

REQUEST = 1 << 20  # bytes that a request of the kernel may have; it is read into memory for so many
PAUSE = 0.05  # seconds before memory is tried for again (kMemoryPause)

# Writes so much to a file that is open, when it is told to.
WRITER = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
print("open", flush=True)
sys.stdin.readline()
assert os.pwrite(file, sys.argv[1][-1:].encode() * int(sys.argv[2]), 0) == int(sys.argv[2])
"""


@unittest.skipIf(harness.is_sanitized(), "a sanitizer needs more addresses than may be had")
class Memory(Mounted):
    def wait_until(self, what):
        deadline = time.monotonic() + PATIENCE
        while not what():
            self.assertLess(time.monotonic(), deadline)

    def addresses(self, process):
        with open(f"/proc/{process.pid}/status") as status:
            return int(re.search(r"VmSize:\s*(\d+)", status.read())[1]) << 10

    def writer(self, name):
        self.write(self.there(name))
        program = subprocess.Popen([sys.executable, "-c", WRITER, self.here(name), str(REQUEST)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for clean_up in (program.stdin.close, program.stdout.close, program.wait, program.kill):
            self.addCleanup(clean_up)
        self.assertEqual(program.stdout.readline(), "open\n")
        return program

    def test_that_there_is_none_of_for_a_request_of_the_kernel_is_not_asked_for_all_the_time(self):
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"))
        self.addCleanup(server.end)
        errors = self.at("errors")
        with open(errors, "wb") as told:
            mounting = subprocess.Popen([harness.STAG, "mount", "-f", server.url("/files"), self.directory], stderr=told)
        for clean_up in (mounting.wait, mounting.kill, self.end):
            self.addCleanup(clean_up)
        self.wait_until(lambda: mounted.is_mounted(self.directory) or mounting.poll() is not None)
        names = [f"file{number}" for number in range(4)]
        writers = [self.writer(name) for name in names]
        harness.stand_still(self, server.process)
        began, before = time.monotonic(), resource.prlimit(mounting.pid, resource.RLIMIT_AS)
        # Enough for everything else.
        resource.prlimit(mounting.pid, resource.RLIMIT_AS, (self.addresses(mounting) + REQUEST // 2, before[1]))
        for program in writers:
            program.stdin.write("go\n")
            program.stdin.flush()

        def tried():
            """By libfuse, which says so."""
            return self.read(errors).count(b"failed to allocate")

        self.wait_until(lambda: tried() >= 5 or mounting.poll() is not None)
        tries, took = tried(), time.monotonic() - began
        self.assertLessEqual(tries, took / PAUSE + 1, "each turn of the loop")
        resource.prlimit(mounting.pid, resource.RLIMIT_AS, before)
        server.process.send_signal(signal.SIGCONT)
        self.assertEqual([program.wait(PATIENCE) for program in writers], [0] * len(writers))
        for name in names:
            self.assertEqual(self.read(self.there(name)), name[-1].encode() * REQUEST)
        self.good("umount", self.directory)
        self.assertEqual(mounting.wait(PATIENCE), 0)


if __name__ == "__main__":
    mounted.main()
