"""Names that are removed or replaced while programs have the file open, or are just opening it, whatever the server does about it."""
import contextlib
import errno
import os
import subprocess
import sys
import threading
import time

import mounted
import rpc_proxy
from harness import PATIENCE
from mounted import Mounted, waits_for_fuse

SILLY = b".stag-silly-"
# Opens a file, and reads it when it is told to.
READER = """
import errno, os, sys
try:
    file = os.open(sys.argv[1], os.O_RDONLY)
    print("open", flush=True)
    sys.stdin.readline()
    print(os.read(file, 100).decode())
except OSError as error:
    print(errno.errorcode[error.errno])
"""


class Names(Mounted):
    def mount_by(self, judge, *options):
        """By version 3, through a proxy that judges the calls."""
        self.proxy = rpc_proxy.JudgingProxy(self.server.tcp_port, judge)
        self.addCleanup(self.proxy.close)
        self.mount(*options, url=self.proxy.url(f"/files/{self.name}") + f"&mountport={self.server.tcp_port}")

    def content(self):
        """Of the names that the server has."""
        found = {}
        for name in os.listdir(self.there()):
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                found[name] = self.read(self.there(name))
        return found

    def processed(self):
        """The mount has processed what the kernel has told it so far."""
        os.statvfs(self.directory)

    def ends_as(self, content):
        """No silly name is left once all is closed; the kernel does not wait for the last close."""
        deadline = time.monotonic() + PATIENCE
        while self.content() != content:
            self.assertLess(time.monotonic(), deadline, self.content())


class Replaced(Names):
    """rename(2) onto a file that is open."""

    def begin(self, judge, *options):
        self.write(self.there("target"), b"old")
        self.write(self.there("source"), b"new")
        self.mount_by(judge, *options)
        self.reader = os.open(self.here("target"), os.O_RDONLY)

    def fails(self, number):
        with self.assertRaises(OSError) as failed:
            os.rename(self.here("source"), self.here("target"))
        self.assertEqual(failed.exception.errno, number)

    def reads_old(self):
        self.assertEqual(os.pread(self.reader, 10, 0), b"old")
        os.close(self.reader)

    @staticmethod
    def is_rename(call):
        return call.procedure == rpc_proxy.RENAME and b"source" in call.arguments

    def test_keeps_the_new_file_where_the_server_has_renamed_and_a_repetition_says_otherwise(self):
        self.begin(lambda call: (None, rpc_proxy.NOENT) if self.is_rename(call) else None)
        self.fails(errno.ENOENT)
        self.assertEqual(self.content()["target"], b"new")
        self.reads_old()
        self.ends_as({"target": b"new"})

    def test_keeps_the_new_file_where_the_reply_comes_too_late(self):
        late = threading.Event()
        self.begin(lambda call: (late, None) if self.is_rename(call) else None, "--timeout", "1")
        self.fails(errno.EIO)
        late.set()
        self.assertEqual(self.content()["target"], b"new")
        self.reads_old()
        self.ends_as({"target": b"new"})

    def test_keeps_the_old_file_where_it_was_closed_before_the_server_refused(self):
        silly = threading.Event()
        self.begin(lambda call: (silly, None) if SILLY in call.arguments and call.procedure != rpc_proxy.REMOVE else None)
        renaming = threading.Thread(target=self.fails, args=(errno.ENOENT,))
        renaming.start()
        deadline = time.monotonic() + PATIENCE
        while not any(SILLY in call.arguments for call in self.proxy.calls):
            self.assertLess(time.monotonic(), deadline)
        os.close(self.reader)
        self.processed()
        os.unlink(self.there("source"))
        silly.set()
        renaming.join()
        self.ends_as({"target": b"old"})

    def test_has_its_name_at_any_time(self):
        renaming, seen = threading.Event(), []

        def judge(call):
            if self.is_rename(call):
                seen.append(self.content())
            return renaming if self.is_rename(call) else None

        self.begin(judge)
        renaming.set()
        os.rename(self.here("source"), self.here("target"))
        (before,) = seen
        self.assertEqual(before["target"], b"old", "other clients find it")
        self.reads_old()
        self.ends_as({"target": b"new"})

    def test_twice_keeps_both_files(self):
        self.begin(lambda call: None)
        os.rename(self.here("source"), self.here("target"))
        self.write(self.here("source"), b"newest")
        with open(self.here("target"), "rb") as second:
            os.rename(self.here("source"), self.here("target"))
            self.assertEqual(second.read(), b"new")
        self.reads_old()
        self.ends_as({"target": b"newest"})

    def test_is_removed_later_where_another_name_of_it_was_left_by_a_failure(self):
        self.begin(lambda call: rpc_proxy.NOENT if self.is_rename(call) else None)
        self.fails(errno.ENOENT)
        os.unlink(self.here("target"))
        self.reads_old()
        self.ends_as({"source": b"new"})

    def test_stays_readable_where_another_name_of_it_is_just_being_removed(self):
        goes, asked = threading.Event(), threading.Event()

        def judge(call):
            if call.procedure != rpc_proxy.REMOVE or SILLY not in call.arguments:
                return rpc_proxy.NOENT if self.is_rename(call) else None
            asked.set()
            return goes

        self.begin(judge)
        self.fails(errno.ENOENT)
        os.close(self.reader)
        self.assertTrue(asked.wait(PATIENCE))
        self.reader = os.open(self.here("target"), os.O_RDONLY)
        self.assertEqual(len(self.content()), 3, "open(2) has not waited for that")
        removing = subprocess.Popen(["unlink", self.here("target")])
        deadline = time.monotonic() + PATIENCE
        while removing.poll() is None and not waits_for_fuse(removing):
            self.assertLess(time.monotonic(), deadline)
        self.processed()
        goes.set()
        self.assertEqual(removing.wait(PATIENCE), 0)
        self.reads_old()
        self.ends_as({"source": b"new"})

    def test_leaves_no_name_where_the_directory_lets_only_owners_take_one(self):
        def judge(call):
            takes = call.procedure == rpc_proxy.RENAME and b"target" in call.arguments
            return rpc_proxy.PERM if takes else None

        os.chmod(self.there(), 0o1777)
        self.begin(judge)
        self.fails(errno.EPERM)
        self.assertEqual(self.content(), {"target": b"old", "source": b"new"})
        self.reads_old()
        self.ends_as({"target": b"old", "source": b"new"})

    def without_links(self, otherwise):
        return lambda call: rpc_proxy.NOTSUPP if call.procedure == rpc_proxy.LINK else otherwise if self.is_rename(call) else None

    def test_stays_readable_where_the_server_has_no_links(self):
        self.begin(self.without_links(None))
        os.rename(self.here("source"), self.here("target"))
        self.assertEqual(self.content()["target"], b"new")
        self.reads_old()
        self.ends_as({"target": b"new"})

    def test_gets_its_name_back_where_the_server_has_no_links(self):
        self.begin(self.without_links(rpc_proxy.NOENT))
        self.fails(errno.ENOENT)
        self.assertEqual(self.content(), {"target": b"old", "source": b"new"})
        self.reads_old()
        self.ends_as({"target": b"old", "source": b"new"})

    def test_gets_its_name_back_where_the_server_has_no_links_and_does_not_say_that_it_lost_it(self):
        late = threading.Event()
        without_links = self.without_links(None)

        def judge(call):
            takes = call.procedure == rpc_proxy.RENAME and 0 <= call.arguments.find(b"target") < call.arguments.find(SILLY)
            return (late, None) if takes else without_links(call)

        self.begin(judge, "--timeout", "1")
        self.addCleanup(late.set)
        self.fails(errno.EIO)
        self.assertEqual(self.content(), {"target": b"old", "source": b"new"})
        self.reads_old()
        self.ends_as({"target": b"old", "source": b"new"})

    def test_does_not_get_its_name_back_where_the_new_file_has_it(self):
        self.begin(self.without_links((None, rpc_proxy.NOENT)))
        self.fails(errno.ENOENT)
        self.assertEqual(self.content()["target"], b"new")
        self.reads_old()
        self.ends_as({"target": b"new"})


class Opened(Names):
    """open(2) of a file that is being removed or replaced."""

    def reader(self, path=None):
        program = subprocess.Popen([sys.executable, "-c", READER, path or self.here("file")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stdin.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def test_stays_readable_where_the_server_was_asked_for_it_before(self):
        for remove in ("unlink", "rename"):
            with self.subTest(remove):
                answers, asked = threading.Event(), threading.Event()

                def judge(call):
                    if call.procedure != rpc_proxy.ACCESS:
                        return None
                    asked.set()
                    return (answers, None)

                self.write(self.there("file"), b"content")
                self.write(self.there("new"), b"new")
                self.mount_by(judge)
                reader = self.reader()
                self.assertTrue(asked.wait(PATIENCE))
                if remove == "unlink":
                    os.unlink(self.here("file"))
                else:
                    os.rename(self.here("new"), self.here("file"))
                answers.set()
                self.assertEqual(reader.communicate("go\n", timeout=PATIENCE)[0], "open\ncontent\n")
                self.ends_as({"new": b"new"} if remove == "unlink" else {"file": b"new"})
                self.good("umount", self.directory)
                self.proxy.close()

    def opened_while(self, procedure, change, path=None):
        """What a program reads that opens the file, by `path()` where its name says another one, while the server is to take its name."""
        asked, goes = threading.Event(), threading.Event()

        def judge(call):
            if call.procedure != procedure:
                return None
            asked.set()
            return goes

        self.mount_by(judge, "-o", "actimeo=60")
        os.stat(self.here("file"))
        changing = threading.Thread(target=change)
        changing.start()
        self.assertTrue(asked.wait(PATIENCE))
        reader = self.reader(path and path())
        opened = threading.Event()
        lines = []
        waiting = threading.Thread(target=lambda: (lines.append(reader.stdout.readline()), opened.set()))
        waiting.start()
        deadline = time.monotonic() + PATIENCE
        while not waits_for_fuse(reader) and not opened.is_set():
            self.assertLess(time.monotonic(), deadline)
        self.processed()
        goes.set()
        changing.join()
        waiting.join()
        rest = reader.communicate("go\n", timeout=PATIENCE)[0]
        return lines[0] + rest

    def test_is_told_that_there_is_none_any_more(self):
        self.write(self.there("file"), b"content")
        read = self.opened_while(rpc_proxy.REMOVE, lambda: os.unlink(self.here("file")))
        self.assertEqual(read, "ENOENT\n")

    def test_gets_the_file_that_replaces_it(self):
        self.write(self.there("file"), b"content")
        self.write(self.there("new"), b"new")
        read = self.opened_while(rpc_proxy.RENAME, lambda: os.rename(self.here("new"), self.here("file")))
        self.assertEqual(read, "open\nnew\n")

    @contextlib.contextmanager
    def known(self):
        """A path that leads to the file whatever becomes of its name."""
        descriptor = os.open(self.here("file"), os.O_PATH)
        try:
            yield f"/proc/{os.getpid()}/fd/{descriptor}"
        finally:
            os.close(descriptor)

    def remove_open(self):
        file = os.open(self.here("file"), os.O_RDONLY)
        os.unlink(self.here("file"))
        os.close(file)

    def test_waits_for_the_removal_behind_the_last_close_and_is_told_of_it(self):
        paths = []

        def change():
            paths.append(self.enterContext(self.known()))
            self.remove_open()

        self.write(self.there("file"), b"content")
        self.assertEqual(self.opened_while(rpc_proxy.REMOVE, change, lambda: paths[0]), "ESTALE\n")

    def test_behind_the_last_close_of_a_removed_one_fails_in_place_of_the_read(self):
        for version in ("3", "4.0", "4.1", "4.2"):
            with self.subTest(version):
                self.mount(url=self.url() + "&version=" + version)
                for _ in range(50):
                    self.write(self.here("file"), b"content")
                    with self.known() as path:
                        self.remove_open()
                        try:
                            file = open(path, "rb")
                        except OSError as error:
                            self.assertEqual(error.errno, errno.ESTALE)
                            continue
                        with file:
                            file.read()
                self.good("umount", self.directory)

    def test_gets_one_of_the_files_that_replace_each_other_again_and_again(self):
        for version in ("3", "4.0", "4.1", "4.2"):
            with self.subTest(version):
                self.mount(url=self.url() + "&version=" + version)
                self.write(self.here("file"), b"00000000")
                stopped, failed = threading.Event(), []

                def replace():
                    number = 0
                    while not stopped.is_set():
                        number += 1
                        self.write(self.here("new"), b"%08d" % number)
                        os.rename(self.here("new"), self.here("file"))

                replacing = threading.Thread(target=replace)
                replacing.start()
                for _ in range(500):
                    try:
                        if len(self.read(self.here("file"))) != 8:
                            failed.append("short")
                    except OSError as error:
                        failed.append(error)
                stopped.set()
                replacing.join()
                self.assertEqual(failed, [])
                self.good("umount", self.directory)
                deadline = time.monotonic() + PATIENCE
                while os.listdir(self.there()) != ["file"]:
                    self.assertLess(time.monotonic(), deadline, os.listdir(self.there()))

    def test_stays_readable_or_is_told_that_there_is_none_any_more(self):
        for version in ("3", "4.0", "4.1", "4.2"):
            with self.subTest(version):
                self.mount(url=self.url() + "&version=" + version)
                ends = []

                def look():
                    try:
                        file = os.open(self.here("file"), os.O_RDONLY)
                    except FileNotFoundError:
                        return removed.wait()
                    removed.wait()
                    try:
                        ends.append(os.read(file, 100))
                    except OSError as error:
                        ends.append(error)
                    os.close(file)

                for _ in range(100):
                    self.write(self.here("file"), b"content")
                    removed = threading.Barrier(2)
                    looking = threading.Thread(target=look)
                    looking.start()
                    os.unlink(self.here("file"))
                    removed.wait()
                    looking.join()
                self.assertEqual([end for end in ends if end != b"content"], [])
                self.ends_as({})
                self.good("umount", self.directory)


class Taken(Names):
    """Names that another client has just given to something else, which the kernel has not heard of."""

    @contextlib.contextmanager
    def mounted_by(self, version):
        """A folder of its own."""
        with self.subTest(version):
            os.mkdir(self.there(version))
            self.mount("-o", "actimeo=600", url=self.url(version) + "&version=" + version)
            try:
                yield lambda name: self.there(version, name)
            finally:
                self.good("umount", self.directory)

    def test_are_opened_as_what_they_are_by_who_would_make_a_file(self):
        for version in ("3", "4.0", "4.1", "4.2"):
            with self.mounted_by(version) as there:
                for name in ("link", "other", "fifo", "directory"):
                    self.assertFalse(os.path.lexists(self.here(name)))
                self.write(there("target"), b"old")
                os.symlink("target", there("link"))
                os.symlink("target", there("other"))
                os.mkfifo(there("fifo"))
                os.mkdir(there("directory"))
                self.write(self.here("link"), b"new")
                self.assertEqual(self.read(there("target")), b"new")
                os.close(os.open(self.here("fifo"), os.O_CREAT | os.O_RDWR | os.O_NONBLOCK))
                with self.assertRaises(IsADirectoryError):
                    os.open(self.here("directory"), os.O_CREAT | os.O_WRONLY)
                with self.assertRaises(FileExistsError):
                    os.open(self.here("other"), os.O_CREAT | os.O_EXCL | os.O_WRONLY)

    def test_are_opened_as_what_they_are_by_who_knows_a_file(self):
        for version in ("3", "4.0"):  # the others have the file delegated
            with self.mounted_by(version) as there:
                self.write(there("target"), b"new")
                for name in ("link", "directory"):
                    self.write(there(name), b"old")
                    self.assertEqual(self.read(self.here(name)), b"old")
                    os.unlink(there(name))
                os.symlink("target", there("link"))
                os.mkdir(there("directory"))
                self.assertEqual(self.read(self.here("link")), b"new")
                with self.assertRaises(IsADirectoryError):
                    self.read(self.here("directory"))


if __name__ == "__main__":
    mounted.main()
