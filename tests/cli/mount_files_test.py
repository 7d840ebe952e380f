"""Files of a mount: what programs do with them that know nothing of NFS. The server's own folder says what came of it."""
import ctypes
import errno
import filecmp
import itertools
import mmap
import os
import re
import shutil
import stat
import struct
import subprocess
import threading
import time
import unittest
import urllib.request

import harness
import mounted
import mounted_files
import rpc_proxy
from harness import PATIENCE
from mounted import Mounted

VERSIONS = ("3", "4.0", "4.1", "4.2")

# Numbers of io_setup(2), io_submit(2) and io_getevents(2), which libc has no functions for.
ASYNCHRONOUS = {"x86_64": (206, 209, 208), "aarch64": (0, 2, 4)}


class Iocb(ctypes.Structure):
    """struct iocb of linux/aio_abi.h, where numbers are little-endian."""

    PWRITE = 1
    _fields_ = [("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("flags_of_write", ctypes.c_uint32), ("opcode", ctypes.c_uint16),
                ("priority", ctypes.c_int16), ("file", ctypes.c_uint32), ("buffer", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
                ("offset", ctypes.c_int64), ("reserved", ctypes.c_uint64), ("flags", ctypes.c_uint32), ("event_file", ctypes.c_uint32)]


def written_asynchronously(file, content):
    """What one io_submit(2) of all of it yields in the end."""
    setup, submit, getevents = ASYNCHRONOUS[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    context, events = ctypes.c_ulong(), (ctypes.c_int64 * 4)()  # of one struct io_event
    with mmap.mmap(-1, len(content)) as aligned:
        aligned[:] = content
        first = ctypes.c_char.from_buffer(aligned)
        write = Iocb(opcode=Iocb.PWRITE, file=file, buffer=ctypes.addressof(first), bytes=len(content))
        asked = (ctypes.POINTER(Iocb) * 1)(ctypes.pointer(write))
        done = (libc.syscall(setup, 1, ctypes.byref(context)), libc.syscall(submit, context, 1, asked),
                libc.syscall(getevents, context, ctypes.c_long(1), ctypes.c_long(1), events, None))
        del first
    if done != (0, 1, 1):
        raise OSError(ctypes.get_errno(), f"asynchronous I/O: {done}")
    return events[2]


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

    @unittest.skipIf(os.geteuid() != 0, "only root calls as root, and becomes another user")
    def test_lose_setuid_and_setgid_when_another_user_writes(self):
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"))
        self.addCleanup(lambda: self.assertEqual(server.end(), 0))
        mode = lambda: stat.S_IMODE(os.stat(self.there("file")).st_mode)
        for version, options, way in itertools.product(("3", "4.2"), ("allow_other", "allow_other,direct"), ("ab", "r+b")):
            with self.subTest(version=version, options=options, way=way):
                self.write(self.there("file"), b"content")
                self.mount("-o", options, url=server.url("/files") + "&version=" + version)
                with open(self.here("file"), way, buffering=0) as file:
                    # What another client does to the mode is learned by whoever appends, or opens the file.
                    for place in (self.here, self.there) if way == "ab" else (self.here,):
                        os.chmod(place("file"), 0o6777)
                        file.write(b"by root")
                        self.assertEqual(mode(), 0o6777)
                        subprocess.run(["echo", "by another one"], stdout=file, user=65534, group=65534, extra_groups=[], check=True)
                        self.assertEqual(mode(), 0o777)
                        self.assertEqual(stat.S_IMODE(os.stat(self.here("file")).st_mode), 0o777)
                self.good("umount", self.directory)

    @unittest.skipIf(os.geteuid() != 0, "only root calls as root, and becomes another user")
    def test_are_open_to_whom_their_lists_let_in_where_users_share_a_mount(self):
        unset = 0xFFFFFFFF
        # user::rw-, user:1500:rw-, group::---, mask::rw-, other::---
        entries = ((1, 6, unset), (2, 6, 1500), (4, 0, unset), (0x10, 6, unset), (0x20, 0, unset))
        os.chown(self.write(self.there("listed"), b"secret"), 0, 1234)
        os.chown(self.write(self.there("shared"), b"content"), 0, 1234)
        os.chmod(self.there("shared"), 0o660)
        try:
            os.setxattr(self.there("listed"), "system.posix_acl_access", struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in entries))
        except OSError as error:
            self.skipTest(f"the folder's file system has no lists: {error}")
        self.assertEqual(stat.S_IMODE(os.stat(self.there("listed")).st_mode), 0o660, "the group's bits are the mask")
        for version in ("2", *VERSIONS):
            with self.subTest(version=version):
                self.mount("-o", "allow_other", url=self.url() + "&version=" + version)
                found = {(name, user): self.opened(name, user, group) for name in ("listed", "shared") for user, group in ((1500, 1500), (1001, 1234))}
                self.good("umount", self.directory)
                self.assertEqual((found["listed", 1500], found["listed", 1001]), (0, errno.EACCES), "by its list")
                self.assertEqual((found["shared", 1500], found["shared", 1001]), (errno.EACCES, 0), "by its mode")

    @unittest.skipIf(os.geteuid() != 0 or not shutil.which("setfacl"), "only root may share, and setfacl(1) is needed")
    def test_keep_their_lists_in_copies_and_take_others_where_users_share_a_mount(self):
        self.write(self.there("listed"), b"content")
        if subprocess.run(["setfacl", "-m", "u:1500:rw,g::r,o::-", self.there("listed")], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("the folder's file system has no lists")
        run = lambda *words: subprocess.run(words, check=True, stdout=subprocess.PIPE, timeout=PATIENCE).stdout
        listed = lambda place, name: run("getfacl", "-ncEp", "--omit-header", place(name))
        mode = lambda place, name: stat.S_IMODE(os.stat(place(name)).st_mode)
        expected = listed(self.there, "listed")
        self.assertIn(b"user:1500:rw-", expected)
        for version in VERSIONS:
            with self.subTest(version=version):
                self.mount("-o", "allow_other", url=self.url() + "&version=" + version)
                for how in ("-p", "-a"):
                    run("cp", how, self.here("listed"), self.here("copy"))
                    self.assertEqual((listed(self.there, "copy"), listed(self.here, "copy")), (expected, expected), how)
                self.assertEqual(mode(self.here, "copy"), 0o660)
                stranger = {"cwd": self.directory, "user": 1500, "group": 1500, "extra_groups": []}
                refused = subprocess.run(["setfacl", "-m", "u:1501:rw", "copy"], stderr=subprocess.PIPE, timeout=PATIENCE, **stranger)
                self.assertIn(b"Operation not permitted", refused.stderr)
                self.assertEqual(listed(self.there, "copy"), expected)
                run("setfacl", "-m", "m::r", self.here("copy"))
                self.assertEqual((mode(self.here, "copy"), mode(self.there, "copy")), (0o640, 0o640), "the kernel asks again")
                run("setfacl", "-b", self.here("copy"))
                self.assertEqual(listed(self.there, "copy"), b"user::rw-\ngroup::r--\nother::---\n\n")
                with self.assertRaises(OSError) as none:
                    os.getxattr(self.here("copy"), "system.posix_acl_access")
                self.assertEqual(none.exception.errno, errno.ENODATA)
                os.mkdir(self.here("folder"), 0o750)
                before = listed(self.there, "folder")
                run("setfacl", "-d", "-m", "u:1500:rwx", self.here("folder"))
                self.assertIn(b"default:user:1500:rwx", listed(self.there, "folder"))
                self.assertEqual((listed(self.here, "folder"), mode(self.there, "folder")), (listed(self.there, "folder"), 0o750))
                run("setfacl", "-m", "u:1500:rx", self.here("folder"))
                self.assertIn(b"default:user:1500:rwx", listed(self.there, "folder"))
                run("setfacl", "-x", "u:1500", "-k", self.here("folder"))
                self.assertEqual(listed(self.there, "folder").replace(b"mask::r-x\n", b""), before)
                os.unlink(self.here("copy"))
                os.rmdir(self.here("folder"))
                self.good("umount", self.directory)

    @unittest.skipIf(os.geteuid() != 0, "only root calls as root, and becomes another user")
    def test_are_open_to_whom_their_modes_let_in_where_the_server_tells_no_lists(self):
        # The server hears of a program that it does not serve.
        nfsacl, unknown, version = 100_227, 600_000_227, 3
        asked = [struct.pack(">II", number, version) for number in (nfsacl, unknown)]
        proxy = rpc_proxy.RpcProxy(self.server.tcp_port, told=asked[0], true=asked[1])
        self.addCleanup(proxy.close)
        os.chown(self.write(self.there("file"), b"content"), 0, 1234)
        os.chmod(self.there("file"), 0o660)
        self.mount("-o", "allow_other", url=proxy.url(f"/files/{self.name}") + f"&mountport={self.server.tcp_port}")
        self.assertEqual((self.opened("file", 1001, 1234), self.opened("file", 1500, 1500)), (0, errno.EACCES))
        self.good("umount", self.directory)

    def opened(self, name, user, group):
        """The error of open(2) for reading and writing by that user, or 0."""
        groups, directory = os.getgroups(), os.open(self.directory, os.O_RDONLY)
        os.setgroups([])
        os.setegid(group)
        os.seteuid(user)
        try:
            os.close(os.open(name, os.O_RDWR, dir_fd=directory))
            return 0
        except OSError as error:
            return error.errno
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)
            os.close(directory)

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

    @unittest.skipUnless(os.uname().machine in ASYNCHRONOUS, "the numbers of its system calls are not known here")
    def test_are_appended_to_by_one_asynchronous_write_in_order(self):
        """Of its pieces of a megabyte the kernel sends all at once."""
        content = b"".join(bytes([65 + piece]) * (1 << 20) for piece in range(4))
        for options, version in itertools.product(("actimeo=1", "direct"), ("3", "4.2")):
            with self.subTest(options=options, version=version):
                self.mount("-o", options, url=self.url() + "&version=" + version)
                self.write(self.here("file"), b"before")
                file = os.open(self.here("file"), os.O_WRONLY | os.O_APPEND | os.O_DIRECT)
                self.assertEqual(written_asynchronously(file, content), len(content))
                os.close(file)
                self.good("umount", self.directory)
                self.assertTrue(self.read(self.there("file")) == b"before" + content)

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
        names = {f"a name that makes the listing long {i}" for i in range(20_000)}
        for name in names:
            open(self.there(name), "w").close()
        listed = os.listdir(self.directory)
        self.assertEqual(len(listed), 20_000)
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


class Removed(Mounted):
    """Directories of files that were removed while they were open, right behind the last close(2), which the kernel does not wait for."""

    def open_and_remove(self, *parts):
        self.write(self.here(*parts), b"content")
        file = os.open(self.here(*parts), os.O_RDWR)
        os.write(file, b"changed")
        os.unlink(self.here(*parts))
        return file

    def test_can_be_removed(self):
        for version in VERSIONS:
            with self.subTest(version):
                self.mount(url=self.url() + "&version=" + version)
                for number in range(20):
                    os.mkdir(self.here(f"{number}"))
                    files = [self.open_and_remove(f"{number}", name) for name in ("a", "b", "c")]
                    for file in files:
                        os.close(file)
                    os.rmdir(self.here(f"{number}"))
                self.assertEqual(os.listdir(self.there()), [])
                self.good("umount", self.directory)

    def test_can_be_replaced(self):
        for version in VERSIONS:
            with self.subTest(version):
                self.mount(url=self.url() + "&version=" + version)
                os.mkdir(self.here("old"))
                for _ in range(20):
                    os.mkdir(self.here("new"))
                    files = [self.open_and_remove("old", name) for name in ("a", "b", "c")]
                    for file in files:
                        os.close(file)
                    os.rename(self.here("new"), self.here("old"))
                os.rmdir(self.here("old"))
                self.assertEqual(os.listdir(self.there()), [])
                self.good("umount", self.directory)

    def test_are_listed_without_them(self):
        self.mount()
        for _ in range(20):
            os.mkdir(self.here("d"))
            self.write(self.here("d", "other"))
            os.close(self.open_and_remove("d", "file"))
            shutil.rmtree(self.here("d"))

    def test_stay_while_one_is_open(self):
        for version in VERSIONS:
            with self.subTest(version):
                self.mount(url=self.url() + "&version=" + version)
                os.mkdir(self.here("d"))
                os.mkdir(self.here("new"))
                kept = self.open_and_remove("d", "kept")
                for _ in range(5):
                    os.close(self.open_and_remove("d", "file"))
                    for remove, words in ((os.rmdir, ["d"]), (os.rename, ["new", "d"])):
                        with self.assertRaises(OSError) as refused:
                            remove(*map(self.here, words))
                        self.assertIn(refused.exception.errno, (errno.ENOTEMPTY, errno.EEXIST))
                self.assertEqual(os.pread(kept, 100, 0), b"changed")
                os.close(kept)
                os.rmdir(self.here("d"))
                os.rmdir(self.here("new"))
                self.good("umount", self.directory)

    def test_wait_for_what_keeps_the_kernel_from_telling_the_last_close(self):
        proxy = rpc_proxy.RpcProxy(self.server.tcp_port, rpc_proxy.READ, overtaken=True)
        self.addCleanup(proxy.close)
        os.mkdir(self.there("d"))
        self.write(self.there("d", "file"), bytes(1 << 20))
        self.mount(url=proxy.url(f"/files/{self.name}") + f"&mountport={self.server.tcp_port}")
        file = os.open(self.here("d", "file"), os.O_RDONLY)
        os.unlink(self.here("d", "file"))
        os.posix_fadvise(file, 0, 1 << 20, os.POSIX_FADV_WILLNEED)
        self.assertTrue(proxy.reached.wait(PATIENCE), "it reads ahead")
        os.close(file)
        remover = subprocess.Popen(["rmdir", self.here("d")], stderr=subprocess.PIPE, text=True)

        def not_empty():
            procedures = [call.procedure for call in proxy.calls]
            return rpc_proxy.RMDIR in procedures and rpc_proxy.LOOKUP in procedures[procedures.index(rpc_proxy.RMDIR) :]

        deadline = time.monotonic() + PATIENCE
        while not not_empty() and remover.poll() is None:
            self.assertLess(time.monotonic(), deadline)
        proxy.released.set()
        self.assertEqual((remover.communicate(timeout=PATIENCE)[1], remover.returncode), ("", 0))
        self.assertEqual(os.listdir(self.there()), [])
        self.good("umount", self.directory)


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


class Listed(Mounted):
    """Names of objects whose attributes the server cannot read: who lists the directory must know that there is something."""

    def setUp(self):
        super().setUp()
        user = ""
        self.closed = self.there("closed")
        self.names = {"folder", *(f"file{number}" for number in range(1000))}  # listed with attributes at first, and then without
        os.makedirs(os.path.join(self.closed, "folder"))
        for name in self.names - {"folder"}:
            self.write(os.path.join(self.closed, name))
        if os.geteuid() == 0:
            os.chown(self.closed, 65534, 65534)
            user = ",all_squash,anonuid=65534,anongid=65534"
        os.chmod(self.closed, 0o400)  # its owner may list, and not enter it
        self.addCleanup(os.chmod, self.closed, 0o700)
        server = harness.Server([f"/files={self.there()}{user}"], self.at("state"))
        self.addCleanup(server.end)
        self.url_of_all = server.url("/files")

    def lists(self, version, closed, names):
        self.mount(url=self.url_of_all + "&version=" + version)
        self.assertEqual(set(os.listdir(self.here(closed))), names)
        with self.assertRaises(PermissionError):
            os.stat(self.here(closed, min(names)))
        self.good("umount", self.directory)

    def test_are_the_names_of_a_directory_that_may_not_be_entered(self):
        for version in ("2", *VERSIONS):
            with self.subTest(version):
                self.lists(version, "closed", self.names)

    @unittest.skipUnless(harness.may_mount(), "no mounts of its own")
    def test_is_the_name_that_another_file_system_is_mounted_on(self):
        os.makedirs(self.there("open", "disk"))
        subprocess.run(["mount", "-t", "tmpfs", "none", self.there("open", "disk")], check=True)
        self.addCleanup(subprocess.run, ["umount", self.there("open", "disk")], check=True)
        for version in ("2", *VERSIONS):
            with self.subTest(version):
                self.lists(version, "open", {"disk"})


class Programs(Mounted):
    def test_find_what_they_know_of_files_in_every_version(self):
        self.write(self.there("file"))
        cannot = {"lists"}  # longer ones are listed above
        try:
            os.setxattr(self.there("file"), "user.color", b"red")
        except OSError:
            cannot.add("xattrs")  # the folder's file system
        for version in VERSIONS:
            self.mount(url=self.url() + "&version=" + version)
            os.mkdir(self.here(version))
            for name in mounted_files.names(version):
                if name not in cannot:
                    with self.subTest(version=version, what=name):
                        mounted_files.run(self.here(version), name)
            self.good("umount", self.directory)


if __name__ == "__main__":
    mounted.main()
