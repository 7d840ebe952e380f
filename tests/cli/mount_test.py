"""`stag mount`: files of a server in a directory of this machine, as programs use them that know nothing of NFS. The server's own folder
says what came of it."""
import contextlib
import errno
import fcntl
import filecmp
import json
import mmap
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

import harness
import mounted_files
from harness import PATIENCE, Case, Proxy, stag


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


# Opens a file, and when it is told to looks at it: prints its size or content, or copies it.
LOOKER = """
import os, sys
source = os.open(sys.argv[1], os.O_RDONLY)
target = os.open(sys.argv[1] + "2", os.O_WRONLY | os.O_CREAT)
print("open", flush=True)
sys.stdin.readline()
if sys.argv[2] == "size":
    print(os.fstat(source).st_size)
elif sys.argv[2] == "copy":
    while os.copy_file_range(source, target, 10_000_000):
        pass
else:
    while data := os.read(source, 1_000_000):
        os.write(target, data)
"""


class Mounted(Case):
    def setUp(self):
        super().setUp()
        self.directory = self.at("mount")
        os.mkdir(self.directory)

    def mount(self, *options, url=None):
        done = stag("mount", *options, url or self.url(), self.directory)
        if done.returncode != 0 and "FUSE does not mount" in done.stderr:
            raise unittest.SkipTest("FUSE does not mount here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(self.end)

    def end(self):
        if is_mounted(self.directory):
            stag("umount", "--lazy", self.directory)

    def here(self, *parts):
        return os.path.join(self.directory, *parts)


class Files(Mounted):
    def test_are_those_of_the_server(self):
        content = os.urandom(3_500_001)
        self.write(self.there("theirs"), content)
        over_tcp = self.server.tcp(f"/files/{self.name}")
        for url in (self.url(), over_tcp, self.url() + "&version=4.2", over_tcp + "&version=4.0"):
            with self.subTest(url):
                self.mount(url=url)
                with open(self.here("theirs"), "rb") as file:
                    self.assertEqual(file.read(), content)
                    file.seek(1_048_570)
                    self.assertEqual(file.read(20), content[1_048_570:1_048_590])
                self.write(self.here("ours"), content)
                self.assertTrue(filecmp.cmp(self.here("ours"), self.there("ours"), shallow=False))
                self.good("umount", self.directory)

    def test_have_names_modes_links_and_times(self):
        self.mount()
        os.mkdir(self.here("d"), 0o750)
        self.write(self.here("d", "f"), b"content")
        os.link(self.here("d", "f"), self.here("hard"))
        os.symlink("d/f", self.here("soft"))
        os.mkfifo(self.here("fifo"), 0o600)
        os.chmod(self.here("hard"), 0o604)
        os.utime(self.here("hard"), (1_000_000_000, 1_100_000_000))
        os.truncate(self.here("hard"), 3)
        self.assertEqual(stat.S_IMODE(os.stat(self.there("d")).st_mode), 0o750)
        self.assertEqual(os.readlink(self.here("soft")), "d/f")
        self.assertEqual(os.readlink(self.there("soft")), "d/f")
        self.assertTrue(stat.S_ISFIFO(os.stat(self.there("fifo")).st_mode))
        for path in (self.there("d", "f"), self.here("d", "f"), self.here("soft")):
            found = os.stat(path)
            self.assertEqual((found.st_nlink, stat.S_IMODE(found.st_mode), found.st_size), (2, 0o604, 3), path)
        os.rename(self.here("hard"), self.here("d", "moved"))
        self.assertEqual(sorted(os.listdir(self.there("d"))), ["f", "moved"])
        with self.assertRaises(OSError) as refused:
            os.rmdir(self.here("d"))
        self.assertEqual(refused.exception.errno, errno.ENOTEMPTY)
        shutil.rmtree(self.here("d"))
        self.assertEqual(sorted(os.listdir(self.there())), ["fifo", "soft"])
        with self.assertRaises(FileNotFoundError):
            os.stat(self.here("d"))

    def test_are_mapped_appended_and_made_only_once(self):
        self.mount()
        with open(self.here("file"), "w+b") as file:
            file.write(b"." * 10_000)
            file.flush()
            with mmap.mmap(file.fileno(), 10_000) as mapped:
                mapped[5_000] = ord("X")
                mapped.flush()
        with open(self.here("file"), "ab") as file:
            file.write(b"end")
        with open(self.there("file"), "rb") as file:
            self.assertEqual(file.read(), b"." * 5_000 + b"X" + b"." * 4_999 + b"end")
        os.close(os.open(self.here("once"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640))
        self.assertEqual(stat.S_IMODE(os.stat(self.there("once")).st_mode), 0o640)
        with self.assertRaises(FileExistsError):
            os.open(self.here("once"), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        with open(self.here("file"), "wb"):
            self.assertEqual(os.stat(self.there("file")).st_size, 0, "O_TRUNC")

    def test_are_read_and_written_past_the_cache(self):
        self.mount()
        file = os.open(self.here("file"), os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
        self.addCleanup(os.close, file)
        with mmap.mmap(-1, 8192) as aligned:
            aligned[:] = b"ours" * 2048
            self.assertEqual(os.pwritev(file, [aligned], 4096), 8192)
            self.assertEqual(self.read(self.there("file")), bytes(4096) + b"ours" * 2048)
            with open(self.there("file"), "r+b") as theirs:
                theirs.write(b"them" * 1024)
            self.assertEqual(os.preadv(file, [aligned], 0), 8192)
            self.assertEqual(aligned[:], b"them" * 1024 + b"ours" * 1024)

    def test_that_are_removed_or_replaced_stay_readable_where_they_are_open(self):
        self.mount()
        for name in ("removed", "replaced"):
            self.write(self.here(name), name.encode())
        with open(self.here("removed"), "rb") as removed, open(self.here("replaced"), "rb") as replaced:
            os.unlink(self.here("removed"))
            self.write(self.here("new"), b"new")
            os.rename(self.here("new"), self.here("replaced"))
            self.assertFalse(os.path.exists(self.here("removed")))
            self.assertEqual((removed.read(), replaced.read()), (b"removed", b"replaced"))
        with open(self.here("replaced"), "rb") as file:
            self.assertEqual(file.read(), b"new")
        # The last close is no system call that waits for the server.
        self.good("umount", self.directory)
        deadline = time.monotonic() + PATIENCE
        while os.listdir(self.there()) != ["replaced"]:
            self.assertLess(time.monotonic(), deadline, os.listdir(self.there()))

    def test_are_seen_as_they_are_when_they_are_opened(self):
        self.mount("-o", "actimeo=86400")
        self.write(self.there("file"), b"old content")
        with open(self.here("file"), "rb") as file:
            self.assertEqual(file.read(), b"old content")
        for content in (b"new content", b"longer than the content before"):
            os.stat(self.here("file"))  # a read has made the kernel forget them
            self.write(self.there("file"), content)
            with open(self.here("file"), "rb") as file:
                self.assertEqual(os.fstat(file.fileno()).st_size, len(content))
                self.assertEqual(file.read(), content, "close-to-open")

    def test_are_appended_to_where_they_end_now(self):
        self.mount("-o", "actimeo=86400")
        self.write(self.there("file"), b"1")
        with open(self.here("file"), "ab", buffering=0) as file:
            file.write(b"2")
            with open(self.there("file"), "ab") as theirs:
                theirs.write(b"theirs")
            file.write(b"3")
        with open(self.there("file"), "rb") as file:
            self.assertEqual(file.read(), b"12theirs3")
        with open(self.here("file"), "rb") as file:
            self.assertEqual(file.read(), b"12theirs3")

    def test_stay_what_they_are_where_another_cannot_take_their_name(self):
        self.mount("-o", "actimeo=86400")
        self.write(self.here("source"), b"source")
        self.write(self.here("target"), b"target")
        with open(self.here("target"), "rb") as target:
            os.unlink(self.there("source"))
            with self.assertRaises(FileNotFoundError):
                os.rename(self.here("source"), self.here("target"))
            self.assertEqual(target.read(), b"target")
        with open(self.there("target"), "rb") as file:
            self.assertEqual(file.read(), b"target")

    def test_that_keep_a_removed_one_cannot_be_removed(self):
        self.mount()
        self.write(self.here("file"), b"content")
        with open(self.here("file"), "rb") as file:
            os.unlink(self.here("file"))
            (silly,) = os.listdir(self.directory)
            with self.assertRaises(OSError) as busy:
                os.unlink(self.here(silly))
            self.assertEqual(busy.exception.errno, errno.EBUSY)
            self.assertEqual(file.read(), b"content")

    def test_in_their_thousands_are_listed_once_each(self):
        self.mount()
        names = {f"a name that makes the listing long {i}" for i in range(3000)}
        for name in names:
            open(self.there(name), "w").close()
        listed = os.listdir(self.directory)
        self.assertEqual(len(listed), 3000)
        self.assertEqual(set(listed), names)
        with os.scandir(self.directory) as entries:
            self.assertTrue(all(entry.is_file() for entry in entries))

    def test_of_a_read_only_mount_cannot_be_changed(self):
        self.write(self.there("file"), b"content")
        self.mount("-o", "ro,noatime")
        with self.assertRaises(OSError) as refused:
            open(self.here("file"), "ab")
        self.assertEqual(refused.exception.errno, errno.EROFS)

    @unittest.skipUnless(os.geteuid() == 0, "others than root may not, whoever asks")
    def test_are_open_to_whom_the_server_says(self):
        self.write(self.there("file"), b"content")
        os.chmod(self.there("file"), 0o000)
        self.mount()
        self.assertTrue(os.access(self.here("file"), os.R_OK), "root may")
        self.assertFalse(os.access(self.here("file"), os.X_OK), "nobody may")

    def test_pass_the_test_of_git(self):
        self.mount()
        def git(*words):
            settings = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
            done = subprocess.run(["git", *settings, *words], cwd=self.here("repository"), capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout
        os.mkdir(self.here("repository"))
        git("init", "-q")
        for i in range(50):
            self.write(self.here("repository", f"file{i}"), os.urandom(1000))
        git("add", ".")
        git("commit", "-q", "-m", "fifty files")
        git("gc", "-q")
        git("fsck", "--strict")
        self.assertEqual(git("status", "--porcelain"), "")


class Programs(Mounted):
    def test_find_what_they_know_of_files_in_every_version(self):
        self.write(self.there("file"))
        cannot = {"lists"}  # longer ones are listed above
        try:
            os.setxattr(self.there("file"), "user.color", b"red")
        except OSError:
            cannot.add("xattrs")  # the folder's file system
        for version in ("3", "4.0", "4.1", "4.2"):
            self.mount(url=self.url() + "&version=" + version)
            os.mkdir(self.here(version))
            for name in mounted_files.names(version):
                if name not in cannot:
                    with self.subTest(version=version, what=name):
                        mounted_files.run(self.here(version), name)
            self.good("umount", self.directory)


class Version42(Mounted):
    """What only version 4.2 has."""

    def setUp(self):
        super().setUp()
        self.newest = self.url() + "&version=4.2"

    def test_has_extended_attributes(self):
        self.write(self.there("file"))
        try:
            os.setxattr(self.there("file"), "user.theirs", b"old")
        except OSError:
            self.skipTest("the folder's file system has no extended attributes")
        self.mount(url=self.newest)
        file = self.here("file")
        self.assertEqual(os.getxattr(file, "user.theirs"), b"old")
        os.setxattr(file, "user.ours", b"\0new" * 100)
        self.assertEqual(os.getxattr(self.there("file"), "user.ours"), b"\0new" * 100)
        self.assertEqual(sorted(os.listxattr(file)), ["user.ours", "user.theirs"])
        for flag, name, wanted in ((os.XATTR_CREATE, "user.ours", errno.EEXIST), (os.XATTR_REPLACE, "user.none", errno.ENODATA)):
            with self.assertRaises(OSError) as refused:
                os.setxattr(file, name, b"", flag)
            self.assertEqual(refused.exception.errno, wanted)
        os.removexattr(file, "user.ours")
        self.assertEqual(os.listxattr(self.there("file")), ["user.theirs"])

    def test_tells_holes_and_makes_them(self):
        with open(self.there("file"), "wb") as file:
            file.truncate(1 << 20)
            file.seek(512 << 10)
            file.write(b"data")
        with open(self.there("file"), "rb") as file:
            if os.lseek(file.fileno(), 0, os.SEEK_DATA) != 512 << 10:
                self.skipTest("the folder's file system tells no holes")
        self.mount(url=self.newest)
        with open(self.here("file"), "r+b") as file:
            self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_DATA), 512 << 10)
            self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_HOLE), 0)
            subprocess.run(["fallocate", "--punch-hole", "-o", str(512 << 10), "-l", str(64 << 10), self.here("file")], check=True)
            with self.assertRaises(OSError) as none:
                os.lseek(file.fileno(), 0, os.SEEK_DATA)
            self.assertEqual(none.exception.errno, errno.ENXIO)
            os.posix_fallocate(file.fileno(), 1 << 20, 1 << 20)
        self.assertEqual(os.stat(self.there("file")).st_size, 2 << 20)
        self.assertGreaterEqual(os.stat(self.there("file")).st_blocks, (1 << 20) // 512)

    def test_has_the_server_copy(self):
        content = os.urandom(3_000_001)
        self.write(self.there("from"), content)
        self.mount(url=self.newest)
        with open(self.here("from"), "rb") as source, open(self.here("to"), "wb") as target:
            self.assertEqual(os.copy_file_range(source.fileno(), target.fileno(), 10_000_000), len(content), "to the end of the file")
            self.assertEqual(os.copy_file_range(source.fileno(), target.fileno(), 10), 0)
        with open(self.there("to"), "rb") as file:
            self.assertEqual(file.read(), content)

    def test_copies_within_one_file(self):
        self.write(self.there("file"), b"0123456789" * 1000)
        self.mount(url=self.newest)
        with open(self.here("file"), "r+b") as file:
            self.assertEqual(os.copy_file_range(file.fileno(), file.fileno(), 4000, 1, 6000), 4000)
            with self.assertRaises(OSError) as overlap:
                os.copy_file_range(file.fileno(), file.fileno(), 100, 0, 50)
            self.assertEqual(overlap.exception.errno, errno.EINVAL)
        content = b"0123456789" * 1000
        self.assertEqual(self.read(self.there("file")), content[:6000] + content[1:4001])

    def test_is_not_needed_by_programs_that_can_do_without(self):
        self.write(self.there("from"), b"content")
        self.mount(url=self.url() + "&version=3")
        with self.assertRaises(OSError) as none:
            os.getxattr(self.here("from"), "user.none")
        self.assertEqual(none.exception.errno, errno.EOPNOTSUPP)
        subprocess.run(["cp", "--sparse=always", self.here("from"), self.here("to")], check=True)
        with open(self.there("to"), "rb") as file:
            self.assertEqual(file.read(), b"content")
        with open(self.here("to"), "rb") as file:
            self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_HOLE), 7)


class Delegations(Mounted):
    """Files of versions 4.1 and 4.2 that the server lets a mount open and close by itself, until somebody else wants them."""

    def setUp(self):
        super().setUp()
        # umount(8) does not wait until the program behind a mount has given back what it holds: those of the test before may still be there.
        self.earlier = set()
        self.earlier = self.held()

    def held(self):
        listed = stag("clients", "--state", os.path.join(self.work, "state"), "--json", "delegations")
        return {row["stateid"] for row in map(json.loads, listed.stdout.splitlines())} - self.earlier

    def test_of_what_is_written_go_when_another_mount_reads_it(self):
        ours, theirs = self.directory, self.at("second")
        os.mkdir(theirs)
        for self.directory in (theirs, ours):
            self.mount(url=self.url() + "&version=4.2")
            self.addCleanup(stag, "umount", "--lazy", self.directory)
        self.write(self.here("file"), b"first")
        with open(self.here("file"), "r+b", buffering=0) as file:
            self.assertEqual(len(self.held()), 1)
            file.write(b"other")
            with open(os.path.join(theirs, "file"), "rb") as same:
                self.assertEqual(same.read(), b"other")
            file.write(b" words")
        with open(os.path.join(theirs, "file"), "rb") as same:
            self.assertEqual(same.read(), b"other words")

    def test_are_given_back_when_the_mount_ends(self):
        process = subprocess.Popen([harness.STAG, "mount", "-f", self.url() + "&version=4.2", self.directory], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        deadline = time.monotonic() + PATIENCE
        while not is_mounted(self.directory):
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
        self.write(self.here("file"), b"content")
        self.assertEqual(self.read(self.here("file")), b"content")
        self.assertEqual(len(self.held()), 1)
        # umount(8) does not wait for the program behind the mount.
        self.good("umount", self.directory)
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(self.held(), set())

    def test_come_again_after_the_connection_was_lost(self):
        proxy = Proxy(self.server.tcp_port, "up", 1 << 40)
        self.mount(url=f"nfs://127.0.0.1:{proxy.port}/files/{self.name}?proto=tcp&version=4.1")
        self.write(self.here("file"), b"content")

        def read():
            with open(self.here("file"), "rb") as file:
                self.assertEqual(file.read(), b"content")
            return self.held()

        before = read()
        self.assertEqual(len(before), 1)
        proxy.interrupt()
        deadline = time.monotonic() + PATIENCE
        while len(after := read() - before) != 1:
            self.assertLess(time.monotonic(), deadline, "there is another one")
        with open(self.there("file"), "r+b") as file:
            file.write(b"CONTENT")
        with open(self.here("file"), "rb") as file:
            self.assertEqual(file.read(), b"CONTENT", "the server could ask for it")
        self.assertFalse(after & self.held())
        self.good("umount", self.directory)
        proxy.cut()


class Locks(Mounted):
    """Of version 4 the server keeps them: two mounts are two clients."""

    def setUp(self):
        super().setUp()
        self.first = self.directory
        self.second = self.at("second")
        os.mkdir(self.second)

    def mount_both(self, url):
        for self.directory in (self.second, self.first):
            self.mount(url=url)
            self.addCleanup(stag, "umount", "--lazy", self.directory)

    def open_both(self, name="file"):
        """The same file by both mounts."""
        self.write(os.path.join(self.first, name), b"content")
        return [self.enterContext(open(os.path.join(mount, name), "r+b")) for mount in (self.first, self.second)]

    def refused(self, lock, *arguments):
        with self.assertRaises(BlockingIOError):
            lock(*arguments)

    def test_of_one_mount_are_in_the_way_of_another(self):
        self.one_mount_is_in_the_way_of_another("version=4.1")

    def test_of_version_4_0_are_in_the_way_of_another_mount_too(self):
        self.one_mount_is_in_the_way_of_another("version=4.0&callback=127.0.0.1")

    def test_come_with_callbacks_by_TCP(self):
        self.one_mount_is_in_the_way_of_another("version=4.1&callback=tcp")

    def one_mount_is_in_the_way_of_another(self, options):
        self.mount_both(self.url() + "&" + options)
        ours, theirs = self.open_both()
        fcntl.lockf(ours, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)
        self.refused(fcntl.lockf, theirs, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 9)
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = struct.unpack("hhqqi4x", fcntl.fcntl(theirs, fcntl.F_GETLK, asked))
        self.assertEqual(answer[:4], (fcntl.F_WRLCK, os.SEEK_SET, 0, 10))
        fcntl.lockf(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 10)
        fcntl.lockf(ours, fcntl.LOCK_UN, 5, 0)
        fcntl.lockf(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 0)
        with open(os.path.join(self.first, "file"), "rb"):
            pass  # POSIX: with this, the process has no lock of the file any more
        fcntl.lockf(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)

    def test_of_whole_files_are_in_the_way_until_the_file_is_unlocked(self):
        self.mount_both(self.url() + "&version=4.2")
        ours, theirs = self.open_both()
        fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.refused(fcntl.flock, theirs, fcntl.LOCK_SH | fcntl.LOCK_NB)
        got = []
        waiting = threading.Thread(target=lambda: got.append(fcntl.flock(theirs, fcntl.LOCK_EX)))
        waiting.start()
        fcntl.flock(ours, fcntl.LOCK_UN)
        waiting.join()
        self.assertEqual(got, [None])
        self.refused(fcntl.flock, ours, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def test_that_a_program_waits_for_let_it_be_interrupted(self):
        self.mount_both(self.url() + "&version=4.2")
        ours, theirs = self.open_both()
        fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        waiting = subprocess.Popen(["flock", os.path.join(self.second, "file"), "true"])
        deadline = time.monotonic() + PATIENCE
        while not waits_for_fuse(waiting):
            self.assertLess(time.monotonic(), deadline)
        waiting.send_signal(signal.SIGINT)
        self.assertEqual(waiting.wait(PATIENCE), -signal.SIGINT)
        fcntl.flock(ours, fcntl.LOCK_UN)
        fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_are_claimed_again_from_a_server_that_was_killed(self):
        exports, state = [f"/files={self.there()},no_root_squash"], self.at("state")
        server = harness.Server(exports, state)
        self.mount_both(server.tcp("/files") + "&version=4.1")
        ours, theirs = self.open_both()
        fcntl.lockf(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        server.process.kill()
        server.process.wait()
        server.process.stdout.close()
        server.errors.close()
        again = harness.Server(exports, state, ports=("--rdma-port", "0", "--tcp-port", str(server.tcp_port)))
        self.addCleanup(again.end)
        self.assertEqual((ours.read(), theirs.read()), (b"content", b"content"))
        self.refused(fcntl.lockf, theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(ours, fcntl.LOCK_UN)
        fcntl.lockf(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for file, mount in ((ours, self.first), (theirs, self.second)):
            file.close()
            self.good("umount", mount)

    def test_of_version_3_are_this_machine_s(self):
        self.mount_both(self.url() + "&version=3")
        ours, theirs = self.open_both()
        fcntl.lockf(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)


class NewFiles(Mounted):
    """Files as tar(1) and cp(1) make them: owner, mode and times are set before they are closed."""

    def make(self, name, content=b"content", mode=0o640, times=(1_000_000_000, 1_100_000_000)):
        file = os.open(self.here(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.write(file, content)
        os.utime(file, times)
        os.fchown(file, os.geteuid(), os.getegid())
        os.fchmod(file, mode)
        return file

    def expect(self, path, mode=0o640, size=7):
        found = os.stat(path)
        self.assertEqual((found.st_atime, found.st_mtime, stat.S_IMODE(found.st_mode), found.st_size),
                         (1_000_000_000, 1_100_000_000, mode, size), path)

    def test_have_what_was_set_of_them(self):
        for version in ("4.2", "4.0", "3"):
            with self.subTest(version):
                self.mount(url=self.url() + "&version=" + version)
                os.mkdir(self.here(version))
                name = os.path.join(version, "file")
                file = self.make(name)
                self.expect(self.here(name))
                os.close(file)
                self.expect(self.here(name))
                self.expect(self.there(name))
                self.good("umount", self.directory)
                self.expect(self.there(name))

    def test_have_times_that_were_set_last(self):
        self.mount(url=self.url() + "&version=4.2")
        begun = os.stat(self.here()).st_mtime
        for name, mode in (("only made", 0o600), ("written", 0o600)):
            with open(os.open(self.here(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb", buffering=0) as file:
                if name == "written":
                    os.utime(file.fileno(), (1_000_000_000, 1_100_000_000))
                    file.write(b"later")
                self.assertGreaterEqual(os.fstat(file.fileno()).st_mtime, begun - 1)
            for path in (self.there(name), self.here(name)):
                self.assertGreaterEqual(os.stat(path).st_mtime, begun - 1, path)
                self.assertLess(os.stat(path).st_mtime, begun + 3600, path)
        self.assertEqual(os.stat(self.there("written")).st_atime, 1_000_000_000)

    def test_have_their_times_soon_where_they_stay_open(self):
        self.mount(url=self.url() + "&version=4.2")
        file = os.open(self.here("lock"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.utime(file, (1_000_000_000, 1_100_000_000))
        deadline = time.monotonic() + PATIENCE
        while os.stat(self.there("lock")).st_mtime != 1_100_000_000:
            self.assertLess(time.monotonic(), deadline)
        os.close(file)

    def test_of_others_in_a_new_directory_are_found(self):
        self.mount("-o", "actimeo=0.2", url=self.url() + "&version=4.2")
        os.mkdir(self.here("new"))
        self.write(self.here("new", "ours"), b"1")
        self.assertFalse(os.path.exists(self.here("new", "theirs")))
        self.write(self.there("new", "theirs"), b"2")
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(self.here("new", "theirs")):
            self.assertLess(time.monotonic(), deadline)
        with self.assertRaises(FileExistsError):
            os.open(self.here("new", "theirs"), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        os.unlink(self.here("new", "ours"))
        shutil.rmtree(self.here("new"))
        self.assertEqual(os.listdir(self.there()), [])

    def test_take_no_more_than_four_COMPOUNDs_each(self):
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"), ("--metrics", "127.0.0.1:0"))
        self.addCleanup(lambda: self.assertEqual(server.end(), 0))
        (metrics,) = [line.split(" ")[1] for line in server.lines if line.startswith("metrics: ")]

        def compounds():
            with urllib.request.urlopen(metrics, timeout=PATIENCE) as answer:
                found = re.search(r'^stag_nfs4_operations_total\{[^}]*"SEQUENCE"[^}]*\} (\S+)$', answer.read().decode(), re.MULTILINE)
            return float(found[1])

        self.mount("-o", "actimeo=60", url=server.url("/files") + "&version=4.2")
        batch, fewest = 20, float("inf")
        for number in range(5):  # One of the batches is not held up by a slow machine.
            os.mkdir(self.here(f"d{number}"))
            before = compounds()
            for i in range(batch):
                os.close(self.make(os.path.join(f"d{number}", f"f{i}")))
            fewest = min(fewest, (compounds() - before) / batch)
        self.assertLessEqual(fewest, 4)
        self.expect(self.there("d4", "f19"))
        self.good("umount", self.directory)


class Helper(Mounted):
    """What mount(8) calls for a file system of type "stag"."""

    def test_mounts_by_the_words_of_mount_and_fstab(self):
        helper = self.at("mount.stag")
        os.symlink(harness.STAG, helper)
        self.write(self.there("file"), b"content")
        words = "ro,relatime,nodiratime,lazytime,noiversion,nofail,noauto,_netdev,user,x-systemd.automount,comment=ours"
        done = subprocess.run([helper, self.url(), self.directory, "-n", "-o", words], capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0 and "FUSE does not mount" in done.stderr:
            self.skipTest("FUSE does not mount here")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.addCleanup(self.end)
        self.assertEqual(self.read(self.here("file")), b"content")
        with self.assertRaises(OSError) as refused:
            os.unlink(self.here("file"))
        self.assertEqual(refused.exception.errno, errno.EROFS)


class Trouble(Mounted):
    def test_with_what_cannot_be_mounted_is_told(self):
        self.write(self.there("file"))
        self.bad(1, "is no directory", "mount", self.url("file"), self.directory)
        self.bad(1, f"'{self.at('missing')}': No such file or directory", "mount", self.url(), self.at("missing"))
        with open(self.at("file"), "w"):
            pass
        self.bad(1, f"'{self.at('file')}' is no directory", "mount", self.url(), self.at("file"))
        self.bad(1, "no such file or directory", "mount", self.url("missing"), self.directory)
        self.bad(2, "a number of seconds", "mount", "-o", "actimeo=soon", self.url(), self.directory)
        self.bad(1, "nothing is mounted at", "umount", self.directory)
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        self.bad(1, "", "mount", f"nfs://127.0.0.1:{port}/files?proto=tcp", self.directory)

    def test_with_a_mount_whose_program_was_killed_is_told(self):
        process = subprocess.Popen([harness.STAG, "mount", "-f", self.url(), self.directory], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not is_mounted(self.directory):
            if process.poll() is not None:
                self.skipTest("FUSE does not mount here")
            self.assertLess(time.monotonic(), deadline)
        self.addCleanup(self.end)
        process.kill()
        process.wait()
        self.bad(1, f"'stag umount {self.directory}' first", "mount", self.url(), self.directory)
        self.good("umount", self.directory)
        self.mount()

    def test_with_a_server_that_comes_later_is_waited_for_as_long_as_retry_says(self):
        with socket.create_server(("127.0.0.1", 0)) as early:
            port = early.getsockname()[1]
            mounting = subprocess.Popen([harness.STAG, "mount", "-o", "retry=10", f"nfs://127.0.0.1:{port}/files?version=4.2", self.directory],
                                        stderr=subprocess.PIPE, text=True)
            early.accept()[0].close()
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"), ports=("--rdma-port", str(port), "--tcp-port", "0"))
        self.addCleanup(server.end)
        errors = mounting.communicate(timeout=PATIENCE)[1]
        if "FUSE does not mount" in errors:
            self.skipTest("FUSE does not mount here")
        self.addCleanup(self.end)
        self.assertEqual((mounting.returncode, errors), (0, ""))
        self.assertTrue(is_mounted(self.directory))
        self.bad(2, "a number of minutes", "mount", "-o", "retry=soon", self.url(), self.directory)

    def test_with_a_mount_in_use_is_told(self):
        self.mount()
        self.write(self.here("file"), b"content")
        with open(self.here("file"), "rb"):
            self.bad(1, "is in use", "umount", self.directory)
            self.good("umount", "--lazy", self.directory)
        self.assertFalse(is_mounted(self.directory))

    def test_a_connection_that_comes_again_goes_unnoticed(self):
        proxy = Proxy(self.server.tcp_port, "up", 1 << 40)
        self.mount(url=f"nfs://127.0.0.1:{proxy.port}/files/{self.name}?proto=tcp&mountport={self.server.tcp_port}")
        self.write(self.here("file"), b"before")
        # The channel finds its connections cut and makes new ones.
        for each in proxy.sockets:
            with contextlib.suppress(OSError):  # MOUNT's has ended by itself
                each.shutdown(socket.SHUT_RDWR)
        self.write(self.here("file"), b"behind")
        with open(self.there("file"), "rb") as file:
            self.assertEqual(file.read(), b"behind")
        self.good("umount", self.directory)
        proxy.cut()

    def test_what_a_server_lost_when_it_died_is_written_again(self):
        for version, mode in (("3", "wb"), ("3", "ab"), ("4.2", "wb"), ("4.2", "ab")):
            with self.subTest(version=version, mode=mode):
                served, state = self.at(f"served-{version}-{mode}"), self.at(f"state-{version}-{mode}")
                os.mkdir(served)
                exports = (f"/x={served},no_root_squash",)
                first = harness.Server(exports, state)
                self.mount(url=first.url("/x") + "&version=" + version)
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

    def lose_writes(self, version, options, see):
        """A program writes three pieces, and another one has the file open; the server dies, its machine has the first piece on its disk
        only, and it starts again. `see` looks at the file then, by that other program or by itself."""
        name = f"{version}-{see.__name__}"
        served, state = self.at(f"served-{name}"), self.at(f"state-{name}")
        os.mkdir(served)
        exports, times = (f"/x={served},no_root_squash",), ("--lease", "10", "--grace", "10")
        first = harness.Server(exports, state, times)
        self.mount(*options, url=first.url("/x") + "&version=" + version)
        pieces = [bytes([size % 251]) * size for size in (10, 2_000_000, 300)]

        # Not by this process: a server that this one starts would close what it has open first, which waits for the server.
        def program(*words):
            return subprocess.Popen([sys.executable, "-c", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        with program(WRITER, self.here("file"), "wb") as writer:
            self.assertEqual(writer.stdout.readline(), b"written\n")
            with program(LOOKER, self.here("file"), see.__name__) as looker:
                self.assertEqual(looker.stdout.readline(), b"open\n")
                first.process.kill()
                first.process.wait()
                os.truncate(os.path.join(served, "file"), len(pieces[0]))
                second = harness.Server(exports, state, times, ports=("--rdma-port", str(first.rdma_port), "--tcp-port", str(first.tcp_port)))
                see(b"".join(pieces), os.path.join(served, "file2"), lambda: looker.communicate(b"go\n", timeout=PATIENCE)[0])
            self.assertEqual((writer.communicate(b"go\n", timeout=PATIENCE)[0], writer.returncode), (b"synced\n", 0))
        self.assertEqual(self.read(os.path.join(served, "file")), b"".join(pieces) + b"more")
        self.good("umount", self.directory)
        first.process.stdout.close()
        first.errors.close()
        self.assertEqual(second.end(), 0)

    def test_what_a_server_lost_when_it_died_is_there_for_all_programs_of_the_mount(self):
        def size(written, _, go):
            self.assertEqual(int(go()), len(written))

        def read(written, taken, go):
            go()
            self.assertEqual(self.read(taken), written)

        def copy(written, taken, go):
            read(written, taken, go)

        def named(written, _, go):
            self.assertEqual(os.stat(self.here("file")).st_size, len(written))

        def opened(written, _, go):
            self.assertEqual(self.read(self.here("file")), written)

        def listed(written, _, go):
            with os.scandir(self.directory) as entries:
                sizes = {entry.name: entry.stat().st_size for entry in entries}
            self.assertEqual(sizes["file"], len(written))

        looks = [("4.2", (), see) for see in (size, copy, named, opened, listed)]
        looks += [(version, ("-o", "direct"), read) for version in ("3", "4.0", "4.2")]
        for version, options, see in looks:
            with self.subTest(version=version, see=see.__name__):
                self.lose_writes(version, options, see)

    def test_what_a_server_has_is_not_committed_before_it_is_read(self):
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"), ("--metrics", "127.0.0.1:0"))
        self.addCleanup(lambda: self.assertEqual(server.end(), 0))
        (metrics,) = [line.split(" ")[1] for line in server.lines if line.startswith("metrics: ")]

        def counted(operation):
            with urllib.request.urlopen(metrics, timeout=PATIENCE) as answer:
                found = re.search(r'^stag_nfs4_operations_total\{[^}]*"%s"[^}]*\} (\S+)$' % operation, answer.read().decode(), re.MULTILINE)
            return float(found[1]) if found else 0

        self.mount("-o", "direct,actimeo=0", url=server.url("/files") + "&version=4.2")
        with open(self.here("file"), "w+b", buffering=0) as file, open(self.here("file"), "rb", buffering=0) as same:
            for piece in (b"one ", b"two ", b"three"):
                file.write(piece)
            before = counted("READ")
            self.assertEqual((same.read(13), os.fstat(same.fileno()).st_size), (b"one two three", 13))
            self.assertEqual(counted("READ"), before + 1)
            self.assertEqual(os.stat(self.here("file")).st_size, 13)
            self.assertEqual(os.listdir(self.directory), ["file"])
            self.assertEqual(counted("COMMIT"), 0, "nothing was lost")
            with open(self.here("copy"), "wb") as copy:
                self.assertEqual(os.copy_file_range(same.fileno(), copy.fileno(), 13, 0), 13)
            self.assertEqual(counted("COMMIT"), 1, "of the copy")
            os.fsync(file)
            self.assertEqual(counted("COMMIT"), 2)
        self.assertEqual(self.read(self.there("copy")), b"one two three")

    def test_a_program_that_waits_for_a_dead_server_can_be_interrupted(self):
        proxy = Proxy(self.server.tcp_port, "down", 1 << 40)
        self.mount(url=f"nfs://127.0.0.1:{proxy.port}/files/{self.name}?proto=tcp&mountport={self.server.tcp_port}")
        self.write(self.here("file"), b"content")
        proxy.left = 0
        reader = subprocess.Popen(["cat", self.here("file")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertTrue(proxy.reached.wait(PATIENCE), "it asks the server")
        reader.send_signal(signal.SIGINT)
        self.assertEqual(reader.wait(PATIENCE), -signal.SIGINT)
        self.good("umount", "--lazy", self.directory)
        proxy.cut()

    def interrupted_while_stopped(self, commands, options="actimeo=0"):
        """Starts them on a mount whose server is stopped, and once each waits for it, interrupts all; yields their ends."""
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"))
        self.addCleanup(server.end)
        self.mount("-o", options, url=server.url("/files"))
        # What is known of names is not asked for, by one program after the other.
        with os.scandir(self.directory) as entries:
            self.assertTrue(all(entry.stat() for entry in entries))
        server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(server.process.send_signal, signal.SIGCONT)
        programs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
        try:
            deadline = time.monotonic() + PATIENCE
            while running := [program.args for program in programs if not waits_for_fuse(program)]:
                self.assertLess(time.monotonic(), deadline, running)
            for program in programs:
                program.send_signal(signal.SIGINT)
            return [program.wait(PATIENCE) for program in programs]
        finally:
            server.process.send_signal(signal.SIGCONT)
            for program in programs:
                program.kill()
                program.wait(PATIENCE)

    def test_a_hundred_programs_that_wait_for_a_stopped_server_can_be_interrupted(self):
        for i in range(100):
            self.write(self.there(f"file{i}"), b"content")
        ended = self.interrupted_while_stopped([["cat", self.here(f"file{i}")] for i in range(100)], "actimeo=86400")
        self.assertEqual(ended, [-signal.SIGINT] * 100)
        self.assertEqual(len(os.listdir(self.directory)), 100, "the mount goes on when the server does")

    def test_programs_that_wait_for_a_stopped_server_can_be_interrupted_whatever_they_do(self):
        # Each in a directory of its own: in one they would wait for each other.
        commands = {
            "ls": ["ls", "-l", self.here("ls")],
            "mkdir": ["mkdir", self.here("mkdir", "made")],
            "rm": ["rm", "-f", self.here("rm", "file")],
            "mv": ["mv", self.here("mv", "file"), self.here("mv", "new")],
            "cp": ["cp", self.here("cp", "file"), self.here("cp", "copy")],
            "flock": ["flock", self.here("flock", "file"), "true"],
        }
        for name in commands:
            os.mkdir(self.there(name))
            self.write(self.there(name, "file"), b"content")
        ended = self.interrupted_while_stopped(commands.values())
        self.assertEqual(dict(zip(commands, ended)), dict.fromkeys(commands, -signal.SIGINT))

    def test_in_the_foreground_an_interruption_unmounts(self):
        process = subprocess.Popen([harness.STAG, "mount", "-f", self.url() + "&version=3", self.directory], stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE
        while not is_mounted(self.directory):
            if process.poll() is not None:
                raise unittest.SkipTest("FUSE does not mount here: " + process.communicate()[1])
            self.assertLess(time.monotonic(), deadline)
        self.write(self.here("file"), b"content")
        self.write(self.here("removed"), b"content")
        with open(self.here("removed"), "rb"):
            os.unlink(self.here("removed"))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(PATIENCE), 0)
        process.stderr.close()
        self.assertFalse(is_mounted(self.directory))
        self.assertEqual(os.listdir(self.directory), [])
        self.assertEqual(os.listdir(self.there()), ["file"], "what kept the removed file")

    def test_many_programs_at_once_do_not_disturb_each_other(self):
        self.mount()
        wrong = []

        def work(number):
            for turn in range(20):
                content = bytes([number]) * (50_000 + turn)
                self.write(self.here(f"{number}"), content)
                with open(self.here(f"{number}"), "rb") as file:
                    if file.read() != content:
                        wrong.append((number, turn))
            os.unlink(self.here(f"{number}"))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(os.listdir(self.there()), [])


if __name__ == "__main__":
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("skipped: no right to use /dev/fuse")
        sys.exit(harness.SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
