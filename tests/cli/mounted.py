"""What the tests of `stag mount` share: a mount of the test's folder, and whether it is there."""
import os
import sys
import unittest

import harness
from harness import Case, stag


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


def main():
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("skipped: no right to use /dev/fuse")
        sys.exit(harness.SKIPPED)
    # Tests that run beside these and enter a mount namespace of their own take a copy of every mount with them, which keeps it from ending.
    if harness.may_mount():
        harness.enter_mount_namespace()
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
