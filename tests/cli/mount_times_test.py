"""Times of files on a mount: those that a program has set of a new file and that wait, and those by which a change is noticed."""
import errno
import os
import struct
import subprocess
import threading
import time
import unittest

import harness
import mounted
import rpc_proxy
from harness import PATIENCE
from mounted import Mounted

FIRST, SECOND = 1_100_000_003, 1_200_000_007
WRITE, PERM, STALE = 7, 1, 70


class NewFiles(Mounted):
    """Files that a program has made and not closed yet."""

    def mount_by(self, judge):
        """By version 3, through a proxy that judges the calls."""
        self.proxy = rpc_proxy.JudgingProxy(self.server.tcp_port, judge)
        self.addCleanup(self.proxy.close)
        self.mount("-o", "actimeo=60", url=self.proxy.url(f"/files/{self.name}") + f"&mountport={self.server.tcp_port}")

    def make(self, name, when):
        file = os.open(self.here(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.utime(file, (when, when))
        return file

    @staticmethod
    def sets(call, when):
        return call.procedure == rpc_proxy.SETATTR and struct.pack(">I", when) in call.arguments

    def count(self, when):
        return sum(self.sets(call, when) for call in self.proxy.calls)

    def others_are_set(self):
        """Times of other files have waited and were set, again and again, after those of this one were due."""
        for number in range(5):
            file = self.make(f"other{number}", SECOND)
            deadline = time.monotonic() + PATIENCE
            while os.stat(self.there(f"other{number}")).st_mtime != SECOND:
                self.assertLess(time.monotonic(), deadline)
            os.close(file)


class Waiting(NewFiles):
    """Times of such a file."""

    def test_are_set_once_where_the_server_does_not_answer(self):
        answers = threading.Event()
        self.mount_by(lambda call: (answers, None) if self.sets(call, FIRST) else None)
        self.addCleanup(answers.set)
        file = self.make("file", FIRST)
        self.others_are_set()
        self.assertEqual(self.count(FIRST), 1)
        answers.set()
        os.close(file)
        self.assertEqual((self.count(FIRST), os.stat(self.there("file")).st_mtime), (1, FIRST))

    def test_are_not_set_again_where_the_server_refuses(self):
        for status, told in ((STALE, None), (PERM, errno.EPERM)):
            with self.subTest(status):
                self.mount_by(lambda call: status if self.sets(call, FIRST) else None)
                file = self.make("file", FIRST)
                self.others_are_set()
                self.assertEqual(self.count(FIRST), 1)
                heard = None
                try:
                    os.close(file)
                except OSError as error:
                    heard = error.errno
                self.assertEqual((heard, self.count(FIRST)), (told, 1))
                for name in os.listdir(self.directory):
                    os.unlink(self.here(name))
                self.good("umount", self.directory)
                self.proxy.close()

    def test_are_set_before_what_is_written_after_them(self):
        goes, asked, wrote = threading.Event(), threading.Event(), threading.Event()

        def judge(call):
            if call.procedure == WRITE:
                wrote.set()
            if not self.sets(call, FIRST):
                return None
            asked.set()
            return goes

        self.mount_by(judge)
        self.addCleanup(goes.set)
        file = self.make("file", FIRST)
        self.assertTrue(asked.wait(PATIENCE))
        writing = threading.Thread(target=os.write, args=(file, b"newer"))
        writing.start()

        def waits():
            with open(f"/proc/self/task/{writing.native_id}/wchan") as place:
                return place.read().startswith(("request_wait", "__fuse", "fuse"))

        deadline = time.monotonic() + PATIENCE
        while not wrote.is_set() and not waits():
            self.assertLess(time.monotonic(), deadline)
        os.statvfs(self.directory)  # the mount has processed what came before
        goes.set()
        writing.join()
        os.close(file)
        self.assertGreater(os.stat(self.there("file")).st_mtime, SECOND)

    def test_are_listed(self):
        self.mount("-o", "actimeo=60", url=self.url() + "&version=4.2")
        begun = os.stat(self.there()).st_mtime
        for number in range(20):
            os.mkdir(self.here(f"{number}"))
            # Until it has the times the server keeps something else in their place (RFC 8881 18.16.3).
            file = os.open(self.here(f"{number}", "file"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.scandir(self.here(f"{number}")) as entries:
                self.assertEqual([entry.name for entry in entries], ["file"])
            found = os.stat(self.here(f"{number}", "file"))
            for when in (found.st_mtime, found.st_atime):
                self.assertLess(abs(when - begun), 3600)
            os.close(file)


class CopyingProxy(rpc_proxy.JudgingProxy):
    """Holds back each COPY from the byte `SOURCE` of a file on, from `asked` on until `goes`."""

    SOURCE = 0x12345678

    def __init__(self, port):
        self.asked, self.goes = threading.Event(), threading.Event()
        super().__init__(port, lambda call: None)

    def _on_call(self, call, message, client):
        if struct.pack(">Q", self.SOURCE) not in message:
            return message, None
        self.asked.set()
        return message, self.goes


class Latest(NewFiles):
    """What was done last to such a file."""

    def test_a_size_is_that_after_a_copy_while_which_times_were_due(self):
        proxy = CopyingProxy(self.server.tcp_port)
        self.addCleanup(proxy.close)
        self.mount("-o", "actimeo=60", url=f"nfs://127.0.0.1:{proxy.port}/files/{self.name}?proto=tcp&version=4.2")
        with open(self.there("from"), "wb") as source:
            source.seek(proxy.SOURCE)
            source.write(b"content")
        source = os.open(self.here("from"), os.O_RDONLY)
        file = os.open(self.here("file"), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        copying = threading.Thread(target=os.copy_file_range, args=(source, file, 100, proxy.SOURCE))
        copying.start()
        self.assertTrue(proxy.asked.wait(PATIENCE))
        self.others_are_set()
        proxy.goes.set()
        copying.join()
        self.assertEqual((os.fstat(file).st_size, os.pread(file, 100, 0)), (7, b"content"))
        os.close(file)
        os.close(source)

    def changed(self, name, file):
        """The content of the file, or what is known of it."""
        if name == "copied":
            source = os.open(self.here("from"), os.O_RDONLY)
            self.assertEqual(os.copy_file_range(source, file, 100, 0), 7)
            os.close(source)
        elif name == "allocated":
            os.posix_fallocate(file, 0, 10_000)
        elif name == "sparse":
            os.pwrite(file, b"end", 1 << 20)
        elif name == "emptied":
            os.close(os.open(self.here(name), os.O_WRONLY | os.O_TRUNC))

    CHANGES = ("unchanged", "copied", "allocated", "sparse", "emptied")

    def test_times_are_those_that_were_set_last(self):
        self.write(self.there("from"), b"content")
        for actimeo in ("0", "60"):
            self.mount("-o", f"actimeo={actimeo}", url=self.url() + "&version=4.2")
            for name in self.CHANGES:
                for earlier in (None, SECOND):
                    with self.subTest(actimeo=actimeo, change=name, earlier=earlier):
                        file = os.open(self.here(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
                        if earlier is not None:
                            os.utime(file, (earlier, earlier))
                        self.changed(name, file)
                        os.utime(file, (FIRST, FIRST))
                        self.assertEqual(os.fstat(file).st_mtime, FIRST)
                        os.close(file)
                        found = os.stat(self.there(name))
                        self.assertEqual((found.st_atime, found.st_mtime), (FIRST, FIRST))
                        os.unlink(self.here(name))
            self.good("umount", self.directory)

    def test_times_are_those_of_a_change_that_came_after_they_were_set(self):
        self.write(self.there("from"), b"content")
        self.mount("-o", "actimeo=60", url=self.url() + "&version=4.2")
        for name in self.CHANGES[1:]:
            with self.subTest(name):
                file = os.open(self.here(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
                os.utime(file, (FIRST, FIRST))
                self.changed(name, file)
                os.close(file)
                self.assertGreater(os.stat(self.there(name)).st_mtime, SECOND)
                self.assertEqual(os.stat(self.there(name)).st_atime, FIRST)

    def test_times_stay_where_nothing_was_copied(self):
        self.write(self.there("from"), b"content")
        self.mount("-o", "actimeo=60", url=self.url() + "&version=4.2")
        source = os.open(self.here("from"), os.O_RDONLY)
        file = self.make("file", FIRST)
        self.assertEqual(os.copy_file_range(source, file, 100, 7), 0)
        os.close(file)
        os.close(source)
        self.assertEqual(os.stat(self.there("file")).st_mtime, FIRST)

    def test_links_are_those_that_it_has(self):
        for version in ("3", "4.2"):
            with self.subTest(version):
                self.mount("-o", "actimeo=60", url=self.url() + "&version=" + version)
                for change in (lambda file: None, lambda file: os.fchmod(file, 0o600), lambda file: os.utime(file, (FIRST, FIRST))):
                    file = os.open(self.here("file"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
                    for replaced in (False, True):
                        os.link(self.here("file"), self.here("link"))
                        change(file)
                        self.assertEqual(os.fstat(file).st_nlink, 2)
                        if replaced:
                            os.rename(self.write(self.here("other")), self.here("link"))
                        else:
                            os.unlink(self.here("link"))
                        change(file)
                        self.assertEqual(os.fstat(file).st_nlink, 1)
                        if replaced:
                            os.unlink(self.here("link"))
                    os.close(file)
                    os.unlink(self.here("file"))
                self.good("umount", self.directory)

    def test_the_time_of_a_write_is_the_server_s(self):
        self.mount("-o", "actimeo=60", url=self.url() + "&version=4.2")
        file = os.open(self.here("file"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        for number in range(3):
            before = os.stat(self.there("file")).st_mtime_ns
            while os.stat(self.there("file")).st_mtime_ns == before:
                os.pwrite(file, b"content", number * 7)
            self.assertEqual(os.fstat(file).st_mtime_ns, os.stat(self.there("file")).st_mtime_ns)
        os.close(file)


class Changes(Mounted):
    @unittest.skipUnless(harness.may_mount(), "a file system whose times tick slowly needs a mount")
    def test_of_one_tick_and_size_are_noticed_by_version_4(self):
        ram, writers = self.at("ram"), self.at("writers")
        for directory in (ram, writers):
            os.mkdir(directory)
        subprocess.run(["mount", "-t", "ramfs", "none", ram], check=True)
        self.addCleanup(subprocess.run, ["umount", "--lazy", ram], check=True)
        server = harness.Server([f"/ram={ram},no_root_squash"], self.at("state"))
        self.addCleanup(server.end)
        readers = self.directory
        for self.directory in (writers, readers):
            self.mount(url=server.url("/ram") + "&version=4.2")
            self.addCleanup(harness.stag, "umount", "--lazy", self.directory)
        self.write(os.path.join(ram, "file"), b"%08d" % 0)
        tried = 0
        for number in range(1, 400, 2):
            with open(os.path.join(writers, "file"), "r+b", buffering=0) as file:
                file.write(b"%08d" % number)
                os.fsync(file)
                self.assertEqual(self.read(self.here("file")), b"%08d" % number)
                before = os.stat(os.path.join(ram, "file")).st_ctime_ns
                file.seek(0)
                file.write(b"%08d" % (number + 1))
            tried += os.stat(os.path.join(ram, "file")).st_ctime_ns == before
            self.assertEqual(self.read(self.here("file")), b"%08d" % (number + 1))
        if tried == 0:
            self.skipTest("each change had a tick of its own")


if __name__ == "__main__":
    mounted.main()
