"""`stag serve` keeps nothing of connections that were cut in the middle of RDMA Reads and Writes: neither memory nor descriptors."""
import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import harness
from harness import Server, stag

PROXY = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "interop", "proxy.py")


class Cuts(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-leak-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.served = os.path.join(self.work, "served")
        os.mkdir(self.served)
        # A folder, so that what is in files is not the server's memory.
        self.server = Server([f"/x={self.served},no_root_squash"], os.path.join(self.work, "state"), ["--inline-threshold", "4096"])
        self.addCleanup(lambda: self.server.process.poll() is None and self.server.end())
        with open(os.path.join(self.served, "from"), "wb") as file:
            file.write(os.urandom(16 << 20))

    def of_server(self, name):
        return os.path.join("/proc", str(self.server.process.pid), name)

    def resident(self):
        """KiB of the server's memory."""
        with open(self.of_server("status")) as status:
            return int(re.search(r"VmRSS:\s*(\d+)", status.read())[1])

    def descriptors(self, kind=""):
        names = []
        for each in os.listdir(self.of_server("fd")):
            try:
                names.append(os.readlink(self.of_server(f"fd/{each}")))
            except FileNotFoundError:
                pass  # closed meanwhile
        return sum(name.startswith(kind) for name in names)

    def wait_for_sockets(self, count):
        """A connection ends a little later at its other end."""
        self.eventually(lambda: self.descriptors("socket:") == count, f"{self.descriptors('socket:')} sockets are not {count}")

    def eventually(self, true, otherwise):
        end = time.monotonic() + harness.PATIENCE
        while not (result := true()):
            self.assertLess(time.monotonic(), end, otherwise)
            time.sleep(0.01)
        return result

    def cut(self, times):
        """Copies through the server, by connections that are cut so many times within Writes and so many within Reads."""
        with tempfile.TemporaryFile() as said:
            proxy = subprocess.Popen([sys.executable, PROXY, "0", str(self.server.rdma_port), f"write={times}", f"read={times}"], stdout=said)
            try:
                told = lambda: os.pread(said.fileno(), 1 << 20, 0)
                port = int(self.eventually(lambda: re.match(rb"listens at (\d+)\n", told()), "the proxy does not listen")[1])
                count = 0
                while count < 2 * times:
                    copied = stag("cp", *(self.server.url(f"/x/{name}", port=port) + "&version=3&rsize=16384&wsize=16384" for name in ("from", "to")))
                    self.assertEqual(copied.returncode, 0, copied.stderr)
                    self.assertTrue(filecmp.cmp(os.path.join(self.served, "from"), os.path.join(self.served, "to"), shallow=False))
                    before, count = count, told().count(b"cut within")
                    self.assertGreater(count, before)
            finally:
                proxy.terminate()
                proxy.wait(harness.PATIENCE)

    def test_leave_no_memory_and_no_descriptor_behind(self):
        if not harness.sees_descriptors(self.server.process):
            self.skipTest("no right to see the server's descriptors (CAP_SYS_PTRACE)")
        listening = self.descriptors("socket:")
        # Pools, caches and malloc have what they want then, and the files are open: one that is overwritten
        # in other ways than one that is new.
        self.cut(20)
        self.cut(20)
        self.wait_for_sockets(listening)
        memory, descriptors = self.resident(), self.descriptors()
        self.cut(100)
        self.wait_for_sockets(listening)
        self.assertEqual(self.descriptors(), descriptors)
        self.assertLess(self.resident() - memory, 10 * 200, "KiB of 200 cuts; the buffer of a call has 16")


if __name__ == "__main__":
    harness.main()
