"""Locks of a mount by version 4: what they say of the data, and, for a program that was interrupted, that POSIX leaves it those that it had before."""
import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

import harness
import mounted
from harness import PATIENCE
from mounted import Mounted, waits_for_fuse

# Locks in one way, and in another one when it is told to, until it is interrupted; keeps what it has until it is told again.
LOCKER = """
import fcntl, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its jobs in the background ignore it
file = open(sys.argv[1], "r+b")
exec(sys.argv[2])
print("locked", flush=True)
sys.stdin.readline()
try:
    exec(sys.argv[3])
    print("locked", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.readline()
"""
# Locks by a call that is made again whenever it was interrupted, as fcntl.lockf() does.
AGAIN = """
import fcntl, signal, sys
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
file = open(sys.argv[1], "r+b")
print("open", flush=True)
sys.stdin.readline()
fcntl.lockf(file, fcntl.LOCK_EX, 10, 0)
print("locked", flush=True)
sys.stdin.readline()
"""


class Locks(Mounted):
    def asked(self, *operations):
        """How often the server was asked for these."""
        with urllib.request.urlopen(self.metrics, timeout=PATIENCE) as answer:
            found = re.findall(rf'^stag_nfs4_operations_total\{{[^}}]*"(?:{"|".join(operations)})"[^}}]*\}} (\S+)$', answer.read().decode(), re.MULTILINE)
        return sum(map(float, found))

    def locks(self):
        return self.asked("LOCK", "LOCKU")

    def until(self, is_so):
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            self.assertLess(time.monotonic(), deadline)

    def two_mounts(self, version, *options):
        """Of a server of its own, and a file of it; yields their directories, of which the second is that of here()."""
        self.server_of_locks = harness.Server([f"/files={self.there()},no_root_squash"], self.at(f"state{version}"), ("--metrics", "127.0.0.1:0"))
        self.addCleanup(self.server_of_locks.end)
        (self.metrics,) = [line.split(" ")[1] for line in self.server_of_locks.lines if line.startswith("metrics: ")]
        others, ours = self.at(f"others{version}"), self.at(f"ours{version}")
        for self.directory in (others, ours):
            os.mkdir(self.directory)
            self.mount(*options, url=self.server_of_locks.url("/files") + f"&callback=127.0.0.1&version={version}")
            self.addCleanup(harness.stag, "umount", "--lazy", self.directory)
        self.file = f"file{version}"  # the locks of another server are in the way of the same file
        self.write(self.there(self.file), bytes(100))
        return others, ours


class Data(Locks):
    def test_that_another_one_wrote_is_read_by_who_has_locked_the_file(self):
        for version in ("4.0", "4.1", "4.2"):
            places = self.two_mounts(version, "-o", "actimeo=86400")
            for lock in (fcntl.lockf, fcntl.flock):
                with self.subTest(version=version, lock=lock.__name__), contextlib.ExitStack() as files:
                    writer, reader = (files.enter_context(open(os.path.join(place, self.file), "r+b", buffering=0)) for place in places)
                    for written in (b"one", b"three"):
                        lock(writer, fcntl.LOCK_EX)
                        writer.truncate(0)
                        os.pwrite(writer.fileno(), written, 0)
                        lock(writer, fcntl.LOCK_UN)
                        lock(reader, fcntl.LOCK_SH)
                        self.assertEqual(os.pread(reader.fileno(), 100, 0), written)
                        lock(reader, fcntl.LOCK_UN)

    def test_are_on_stable_storage_before_another_one_gets_the_lock(self):
        for version in ("4.0", "4.1", "4.2"):
            place, _ = self.two_mounts(version)
            for lock in (fcntl.lockf, fcntl.flock):
                with self.subTest(version=version, lock=lock.__name__), open(os.path.join(place, self.file), "r+b", buffering=0) as file:
                    lock(file, fcntl.LOCK_EX)
                    for piece in (b"one ", b"two ", b"three"):
                        file.write(piece)
                    before = self.asked("COMMIT")
                    lock(file, fcntl.LOCK_UN)
                    self.assertEqual(self.asked("COMMIT"), before + 1)
                    lock(file, fcntl.LOCK_EX)
                    lock(file, fcntl.LOCK_UN)
                    self.assertEqual(self.asked("COMMIT"), before + 1, "nothing is left to commit")


class Interrupted(Locks):
    def begin(self, version, *words):
        """A server with two mounts, and the program, in the second one, once it has written a line; yields the directory of the first."""
        others, _ = self.two_mounts(version)
        script, *more = words
        self.program = subprocess.Popen([sys.executable, "-c", script, self.here(self.file), *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for close in (self.program.stdin.close, self.program.stdout.close, self.program.wait, self.program.kill):
            self.addCleanup(close)
        self.program.stdout.readline()
        return others

    def interrupt(self):
        """The program, while it waits for a server that stands still."""
        harness.stand_still(self, self.server_of_locks.process)
        self.program.stdin.write("go\n")
        self.program.stdin.flush()
        self.until(lambda: waits_for_fuse(self.program))
        self.program.send_signal(signal.SIGINT)
        self.assertEqual(self.program.stdout.readline(), "interrupted\n")

    def interrupted(self, version, first, second, asked):
        """A file of a second mount, and the program that was interrupted in `second`; `asked`: LOCK and LOCKU of both and of the undoing."""
        others = self.begin(version, LOCKER, first, second)
        self.interrupt()
        self.server_of_locks.process.send_signal(signal.SIGCONT)
        self.until(lambda: self.locks() >= asked)
        return self.enterContext(open(os.path.join(others, self.file), "r+b"))

    def refused(self, lock, *arguments):
        with self.assertRaises(BlockingIOError):
            lock(*arguments)

    def test_in_making_a_shared_lock_exclusive_they_have_the_shared_one(self):
        for version in ("4.0", "4.2"):
            with self.subTest(version):
                shared = "fcntl.lockf(file, fcntl.LOCK_SH, 10, 0)"
                exclusive = "fcntl.lockf(file, fcntl.LOCK_EX, 15, 5)"
                other = self.interrupted(version, shared, exclusive, 4)
                self.refused(fcntl.lockf, other, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
                self.refused(fcntl.lockf, other, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 9)
                fcntl.lockf(other, fcntl.LOCK_SH | fcntl.LOCK_NB, 10, 0)
                fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 10)

    def test_in_making_an_exclusive_lock_shared_they_have_the_exclusive_one(self):
        other = self.interrupted("4.2", "fcntl.lockf(file, fcntl.LOCK_EX, 10, 0)", "fcntl.lockf(file, fcntl.LOCK_SH, 10, 0)", 3)
        self.refused(fcntl.lockf, other, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 9)

    def test_in_locking_what_they_had_not_they_have_nothing(self):
        other = self.interrupted("4.2", "pass", "fcntl.lockf(file, fcntl.LOCK_EX, 10, 0)", 2)
        fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)

    def test_in_making_a_shared_lock_of_the_whole_file_exclusive_they_have_the_shared_one(self):
        other = self.interrupted("4.2", "fcntl.flock(file, fcntl.LOCK_SH)", "fcntl.flock(file, fcntl.LOCK_EX)", 3)
        self.refused(fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def test_and_calling_again_they_have_what_was_granted_then(self):
        for version in ("4.0", "4.2"):
            with self.subTest(version):
                others = self.begin(version, AGAIN)
                self.interrupt()
                self.until(lambda: waits_for_fuse(self.program))
                with self.assertRaises(OSError):
                    os.getxattr(self.directory, "security.none")  # the mount has processed what came before, and asks no server for this
                self.server_of_locks.process.send_signal(signal.SIGCONT)
                self.assertEqual(self.program.stdout.readline(), "locked\n")
                self.until(lambda: self.locks() >= 3)
                other = self.enterContext(open(os.path.join(others, self.file), "r+b"))
                self.refused(fcntl.lockf, other, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)


class LocalLocks(Mounted):
    """By versions that have none."""

    def test_are_told_when_the_mount_begins(self):
        for version, told in (("2", True), ("3", True), ("4.0", False), ("4.2", False)):
            with self.subTest(version):
                log = self.at("log." + version)
                self.mount("--log-file", log, url=self.url() + "&version=" + version)
                self.good("umount", self.directory)
                self.assertEqual(b"LocksAreLocal" in self.read(log), told)


if __name__ == "__main__":
    mounted.main()
