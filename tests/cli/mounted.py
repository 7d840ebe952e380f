"""What the tests of `stag mount` share: a mount of the test's folder, and whether it is there."""
import os
import subprocess
import sys
import unittest

import harness
from harness import PATIENCE, Case, stag

# Writes three pieces, and when it is told to a fourth one; syncs them.
WRITER = """
import os, sys
file = open(sys.argv[1], sys.argv[2], buffering=0)
for size in (10, 2_000_000, 300):
    file.write(bytes([size % 251]) * size)
print("written", flush=True)
sys.stdin.readline()
file.write(b"more")
os.fsync(file)
print("synced", flush=True)
"""


def is_mounted(directory):
    with open("/proc/self/mountinfo") as mounts:
        return any(line.split()[4] == directory and " fuse.stag " in line for line in mounts)


def waits_for_fuse(program):
    """Whether it waits in the kernel for an answer of the mount's program."""
    with open(f"/proc/{program.pid}/wchan") as wchan, open(f"/proc/{program.pid}/cmdline", "rb") as words:
        return wchan.read().startswith(("request_wait", "__fuse", "fuse")) and os.path.basename(words.read().split(b"\0")[0]) == \
            os.path.basename(program.args[0]).encode()


class Mounted(Case):
    def setUp(self):
        super().setUp()
        self.directory = self.at("mount")
        os.mkdir(self.directory)

    def mount(self, *options, url=None, **how):
        done = stag("mount", *options, url or self.url(), self.directory, **how)
        if done.returncode != 0 and "FUSE does not mount" in done.stderr:
            raise unittest.SkipTest("FUSE does not mount here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(self.end)

    def end(self):
        if is_mounted(self.directory):
            stag("umount", "--lazy", self.directory)

    def here(self, *parts):
        return os.path.join(self.directory, *parts)

    def write_what_is_lost_again(self, version, mode, *options):
        """A program writes pieces of a file; the server dies, its machine has the first one on its disk only, and it starts again. All is there
        when the program has synced."""
        served, state = self.at(f"served-{version}-{mode}"), self.at(f"state-{version}-{mode}")
        os.mkdir(served)
        exports = (f"/x={served},no_root_squash",)
        first = harness.Server(exports, state)
        self.mount(*options, url=first.url("/x") + "&version=" + version)
        pieces = [bytes([size % 251]) * size for size in (10, 2_000_000, 300)]
        # Another process: a server that this one starts would close what it has open first, which waits for the server.
        writer = subprocess.Popen([sys.executable, "-c", WRITER, self.here("file"), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(writer.stdout.readline(), b"written\n")
        first.process.kill()
        first.process.wait()
        os.truncate(os.path.join(served, "file"), len(pieces[0]))  # as if the machine had died, too
        second = harness.Server(exports, state, ports=("--rdma-port", str(first.rdma_port), "--tcp-port", str(first.tcp_port)))
        self.assertEqual((writer.communicate(b"go\n", timeout=PATIENCE)[0], writer.returncode), (b"synced\n", 0))
        with open(os.path.join(served, "file"), "rb") as there:
            self.assertEqual(there.read(), b"".join(pieces) + b"more")
        self.good("umount", self.directory)
        first.process.stdout.close()
        first.errors.close()
        self.assertEqual(second.end(), 0)


def main():
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("skipped: no right to use /dev/fuse")
        sys.exit(harness.SKIPPED)
    # Tests that run beside these and enter a mount namespace of their own take a copy of every mount with them, which keeps it from ending.
    if harness.may_mount():
        harness.enter_mount_namespace()
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
