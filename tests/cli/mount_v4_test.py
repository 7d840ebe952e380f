"""What a mount by version 4 has: locks, delegations, and the operations of 4.2."""
import contextlib
import errno
import fcntl
import json
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time

import harness
import mounted
import rpc_proxy
from harness import PATIENCE, Proxy, stag
from mounted import Mounted, is_mounted, waits_for_fuse

# Locks, and gives up at the signal of a timer.
TIMED_LOCK = """
import fcntl, signal, sys
def give_up(*_):
    raise TimeoutError
file = open(sys.argv[1], "r+b")
signal.signal(signal.SIGALRM, give_up)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    fcntl.lockf(file, fcntl.LOCK_EX)
except TimeoutError:
    print("given up")
"""


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

    def test_lists_no_extended_attributes_of_what_can_have_none(self):
        os.symlink("nowhere", self.there("link"))
        os.mkfifo(self.there("fifo"))
        self.mount(url=self.newest)
        for name in ("link", "fifo"):
            self.assertEqual(os.listxattr(self.here(name), follow_symlinks=False), [], name)

    def sparse_file(self):
        """1 MiB of a hole, with "data" in the midst."""
        with open(self.there("file"), "wb") as file:
            file.truncate(1 << 20)
            file.seek(512 << 10)
            file.write(b"data")
        with open(self.there("file"), "rb") as file:
            if os.lseek(file.fileno(), 0, os.SEEK_DATA) != 512 << 10:
                self.skipTest("the folder's file system tells no holes")

    def test_tells_holes_and_makes_them(self):
        self.sparse_file()
        self.mount(url=self.newest)
        with open(self.here("file"), "rb") as file:
            self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_DATA), 512 << 10)
            self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_HOLE), 0)
            subprocess.run(["fallocate", "--punch-hole", "-o", str(512 << 10), "-l", str(64 << 10), self.here("file")], check=True)
            with self.assertRaises(OSError) as none:
                os.lseek(file.fileno(), 0, os.SEEK_DATA)
            self.assertEqual(none.exception.errno, errno.ENXIO)
        with open(self.here("file"), "r+b") as file:
            os.posix_fallocate(file.fileno(), 1 << 20, 1 << 20)
        self.assertEqual(os.stat(self.there("file")).st_size, 2 << 20)
        self.assertGreaterEqual(os.stat(self.there("file")).st_blocks, (1 << 20) // 512)

    def test_tells_no_hole_where_a_program_has_changed_a_mapping(self):
        self.sparse_file()
        self.mount(url=self.newest)
        changed = 100 << 10
        with open(self.here("file"), "r+b") as mapped_by, mmap.mmap(mapped_by.fileno(), 1 << 20) as mapped, open(self.here("file"), "rb") as file:
            mapped[changed : changed + 3] = b"new"
            self.assertLessEqual(os.lseek(file.fileno(), 0, os.SEEK_DATA), changed)
            self.assertGreater(os.lseek(file.fileno(), changed, os.SEEK_HOLE), changed)
        with open(self.here("file"), "rb") as file:
            self.assertEqual(os.lseek(file.fileno(), changed + (64 << 10), os.SEEK_DATA), 512 << 10, "it is written, and closed")

    def test_tells_holes_of_files_though_there_is_one_that_cannot_be_asked_for_them(self):
        with open(self.there("file"), "wb") as file:
            file.truncate(1 << 20)
        with open(self.there("file"), "rb") as file:
            if os.lseek(file.fileno(), 0, os.SEEK_HOLE) != 0:
                self.skipTest("the folder's file system tells no holes")
        # The server hears of an operation that it does not know where this one asks about an odd place (RFC 7862 15.11.1).
        odd, seek, unknown = 70_001, 69, 9_999
        asked = [struct.pack(">I16xQ", number, odd) for number in (seek, unknown)]
        proxy = rpc_proxy.RpcProxy(self.server.tcp_port, told=asked[0], true=asked[1])
        self.addCleanup(proxy.close)
        self.mount(url=proxy.url(f"/files/{self.name}").replace("version=3", "version=4.2"))
        with open(self.here("file"), "rb") as file:
            self.assertEqual(os.lseek(file.fileno(), odd, os.SEEK_HOLE), 1 << 20)
            self.assertEqual(os.lseek(file.fileno(), odd, os.SEEK_DATA), odd)
            self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_HOLE), 0, "the others are asked on")
        self.good("umount", self.directory)

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


class Connections(Mounted):
    def test_that_are_asked_for_and_not_to_be_had_are_told(self):
        few = harness.Server(["/data=memory,no_root_squash"], self.at("few"), ["--connections-per-client", "1"])
        self.addCleanup(few.end)
        for version in ("4.0", "4.2"):
            for url, told in ((self.url(), False), (few.url("/data"), True)):
                log = self.at(f"log.{version}.{told}")
                self.mount("--log-file", log, "-o", "nconnect=2", url=url + "&version=" + version)
                self.assertEqual(os.listdir(self.directory), [])
                self.good("umount", self.directory)
                self.assertEqual(b"FewerConnections" in self.read(log), told, version)


class FileSystems(Mounted):
    """A mount of all exports of a server, each of which is a file system of its own."""

    def setUp(self):
        super().setUp()
        server = harness.Server(["/one=memory,no_root_squash", "/other=memory,no_root_squash"], self.at("state"))
        self.addCleanup(server.end)
        self.mount(url=server.url("/") + "&version=4.2")

    def test_has_different_files_under_different_numbers(self):
        for name in ("one", "other"):
            self.write(self.here(name, "file"), name.encode())
        numbers = [os.stat(self.here(*parts)).st_ino for parts in ((), ("one",), ("other",), ("one", "file"), ("other", "file"))]
        self.assertEqual(len(set(numbers)), len(numbers), numbers)
        # Two names of one number are one file to it.
        subprocess.run(["cp", "-a", self.here(), self.at("copy")], check=True)
        for name in ("one", "other"):
            self.assertEqual(self.read(os.path.join(self.at("copy"), name, "file")), name.encode())

    def test_has_attributes_in_one_though_another_has_none(self):
        with self.assertRaises(OSError):
            os.setxattr(self.here(), "user.name", b"value")
        self.write(self.here("one", "file"))
        os.setxattr(self.here("one", "file"), "user.name", b"value")
        self.assertEqual(os.listxattr(self.here("one", "file")), ["user.name"])


class Delegations(Mounted):
    """Files of versions 4.1 and 4.2 that the server lets a mount open and close by itself, until somebody else wants them."""

    def setUp(self):
        super().setUp()
        # umount(8) does not wait until the program behind a mount has given back what it holds: those of the test before may still be there.
        self.earlier = set()
        self.earlier = self.held()

    def held(self, state=None):
        listed = stag("clients", "--state", state or os.path.join(self.work, "state"), "--json", "delegations")
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

    def test_come_and_go_over_TCP_where_connections_over_RDMA_carry_no_callbacks(self):
        state = self.at("state")
        server = harness.Server([f"/files={self.there()},no_root_squash"], state, ("--no-rdma-callbacks",))
        self.addCleanup(lambda: self.assertEqual(server.end(), 0))
        url = server.url("/files") + "&version=4.1"
        nobody_there = re.sub(r"mountport=\d+", "mountport=1", url)
        for number, (url, given) in enumerate(((url, 1), (url + "&callback=tcp", 1), (nobody_there, 0))):
            with self.subTest(url=url):
                # Another one each time: a file that was in dispute is not delegated for a while.
                log, name = self.at(f"log{number}"), f"file{number}"
                self.mount("--log-file", log, url=url)
                self.write(self.here(name), b"content")
                with open(self.here(name), "rb") as ours:
                    self.assertEqual(len(self.held(state)), given)
                    # A program of the server, which waits until it is given back.
                    with open(self.there(name), "r+b") as theirs:
                        self.assertEqual(self.held(state), set())
                        theirs.write(b"CONTENT")
                    self.assertEqual(ours.read(), b"CONTENT")
                self.good("umount", self.directory)
                self.assertEqual(b"NothingDelegated" in self.read(log), given == 0)

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

    def test_of_an_open_file_end_when_it_is_closed(self):
        whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)

        def lock(file):
            """As soon as nobody else has a lock: the kernel does not wait for the last close."""
            deadline = time.monotonic() + PATIENCE
            while True:
                try:
                    return fcntl.fcntl(file, fcntl.F_OFD_SETLK, whole)
                except BlockingIOError:
                    self.assertLess(time.monotonic(), deadline)

        for version in ("4.0", "4.1", "4.2"):
            with self.subTest(version):
                self.mount(url=self.url() + "&version=" + version)
                # From 4.1 on it is delegated once it is opened again, and all opens are one to the server.
                path = self.write(self.here("file" + version), b"content")
                with open(path, "r+b") as open_on:
                    with open(path, "r+b") as file:
                        lock(file)
                    lock(open_on)
                with open(path, "r+b") as file:
                    lock(file)
                self.good("umount", self.directory)

    def test_of_what_was_closed_are_in_nobody_s_way_whatever_connection_the_server_reads_first(self):
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        for version in ("4.1", "4.2"):
            with self.subTest(version):
                self.mount("-o", "nconnect=4", url=self.url() + "&version=" + version)
                path = self.write(self.here("file" + version), b"content")
                with contextlib.ExitStack() as last:
                    for number in range(1000):
                        file = open(path, "r+b", buffering=0)
                        last.close()
                        last.enter_context(file)
                        if number % 2 == 0:
                            (kind,) = struct.unpack_from("h", fcntl.fcntl(file, fcntl.F_GETLK, asked))
                            self.assertEqual(kind, fcntl.F_UNLCK)
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.good("umount", self.directory)

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

    def test_that_a_program_waits_for_are_given_up_at_the_signal_of_a_timer(self):
        self.mount_both(self.url() + "&version=4.2")
        with self.open_both()[0] as ours:
            fcntl.lockf(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
            timed = [sys.executable, "-c", TIMED_LOCK, os.path.join(self.second, "file")]
            self.assertEqual(subprocess.run(timed, timeout=PATIENCE, capture_output=True, text=True).stdout, "given up\n")
            fcntl.lockf(ours, fcntl.LOCK_UN)
            fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
            timed = ["flock", "--wait", "0.1", os.path.join(self.second, "file"), "true"]
            self.assertEqual(subprocess.run(timed, timeout=PATIENCE).returncode, 1)

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

    def test_of_version_4_0_need_a_name_that_is_known(self):
        self.mount("-o", "actimeo=86400", url=self.url() + "&version=4.0")
        self.write(self.here("file"), b"content")
        os.link(self.here("file"), self.here("other"))
        os.unlink(self.here("file"))
        # The kernel does not ask for the name that it knows: the file is used without an open.
        with open(self.here("other"), "r+b") as file:
            for lock in (fcntl.lockf, fcntl.flock):
                with self.assertRaises(OSError) as refused:
                    lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.assertEqual(refused.exception.errno, errno.ENOLCK)
            with self.assertRaises(OSError) as refused:
                fcntl.fcntl(file, fcntl.F_GETLK, bytes(32))
            self.assertEqual(refused.exception.errno, errno.ENOLCK)
            fcntl.lockf(file, fcntl.LOCK_UN)
            self.assertEqual(file.read(), b"content")
        self.assertEqual(os.listdir(self.here()), ["other"])
        with open(self.here("other"), "r+b") as file, open(self.there("other"), "r+b") as there:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.refused(fcntl.lockf, there, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_of_version_3_are_this_machine_s(self):
        self.mount_both(self.url() + "&version=3")
        ours, theirs = self.open_both()
        fcntl.lockf(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)


if __name__ == "__main__":
    mounted.main()
