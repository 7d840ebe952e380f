"""How mounts begin and end, as a command and as mount(8) has it."""
import errno
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest

import harness
import mounted
import rpc_proxy
from harness import PATIENCE, stag
from mounted import Mounted, is_mounted


# Changes the begin and the end of a file in a mapping.
MAPPER = """
import mmap, sys
file = open(sys.argv[1], "r+b")
mapped = mmap.mmap(file.fileno(), 0)
mapped[:3] = mapped[-3:] = b"new"
print("changed", flush=True)
sys.stdin.readline()
"""


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


class Words(Mounted):
    """Those of mount.nfs(8), as they stand in fstab."""

    def test_of_the_URL_are_taken(self):
        proxy = rpc_proxy.RpcProxy(self.server.tcp_port)
        self.addCleanup(proxy.close)
        self.write(self.there("file"), b"content" * 1000)
        words = f"rw,hard,noatime,vers=3,proto=tcp,port={proxy.port},mountport={self.server.tcp_port},rsize=4096,wsize=4096,sec=sys"
        self.mount("-o", words, url=f"nfs://127.0.0.1/files/{self.name}")
        self.assertEqual(self.read(self.here("file")), b"content" * 1000)
        self.assertEqual([call.procedure for call in proxy.calls].count(rpc_proxy.READ), 2, "version 3, by that port, 4096 bytes at a time")
        with open("/proc/self/mountinfo") as mounts:
            self.assertTrue(any(f" nfs://127.0.0.1/files/{self.name} " in line for line in mounts), "the source is what fstab says")
        self.good("umount", self.directory)

    def test_that_mean_something_else_are_told(self):
        self.bad(2, "write timeout=SECONDS", "mount", "-o", "rw,soft", self.url(), self.directory)
        self.bad(2, "'mount -i -o remount,...' (root) changes", "mount", "-o", "rw,remount,ro", self.url(), self.directory)
        self.bad(2, "NFS version '5' is not in this build", "mount", "-o", "vers=5", self.url(), self.directory)
        self.bad(2, "it is given twice", "mount", "-o", "vers=3", self.url() + "&version=4.2", self.directory)

    def test_of_reading_ahead_make_READs_as_long(self):
        self.write(self.there("file"), bytes(8 << 20))
        proxy = rpc_proxy.RpcProxy(self.server.tcp_port)
        self.addCleanup(proxy.close)
        for word, longest in (("ro", 1 << 20), ("readahead=256K", 256 << 10), ("readahead=0", 128 << 10)):
            with self.subTest(word):
                self.mount("-o", word, url=proxy.url(f"/files/{self.name}") + f"&mountport={self.server.tcp_port}")
                device = os.stat(self.directory).st_dev
                if not os.access(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb", os.W_OK):
                    self.skipTest("only root tells the kernel how much to read ahead, where it can write to sysfs")
                del proxy.calls[:]
                with open(self.here("file"), "rb", buffering=0) as file:
                    while file.read(64 << 10):
                        pass
                counts = [int.from_bytes(call.arguments[-4:], "big") for call in proxy.calls if call.procedure == rpc_proxy.READ]
                self.assertEqual(max(counts), longest)
                self.good("umount", self.directory)
        self.bad(2, "a size up to 64M is wanted", "mount", "-o", "readahead=much", self.url(), self.directory)

    @unittest.skipUnless(harness.may_mount(), "only in a mount namespace of its own")
    def test_of_reading_ahead_are_no_trouble_where_the_mount_hides_sysfs(self):
        self.write(self.there("file"), b"content")
        for self.directory in ("/sys", "/sys/devices"):
            self.mount()
            self.assertEqual(self.read(self.here("file")), b"content")
            self.good("umount", self.directory)

    def test_of_patience_end_calls(self):
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"))
        self.addCleanup(server.end)
        self.mount("-o", "timeout=10,actimeo=0", url=server.url("/files"))
        harness.stand_still(self, server.process)
        with self.assertRaises(OSError) as failed:
            os.stat(self.directory)
        self.assertEqual(failed.exception.errno, errno.EIO)


# Writes, changes, reads and lists in a folder, and says whose the file is.
USER = """
cd "$1"
seq 100000 >file
mkdir folder
mv file folder/file
chmod 640 folder/file
seq 100000 | cmp - folder/file
ls
stat -c %u folder/file
"""


class Unprivileged(Mounted):
    """A user without rights, for whom fusermount3 mounts."""

    UID = 65534  # nobody

    def as_user(self, *words):
        return subprocess.run(words, user=self.UID, group=self.UID, extra_groups=[], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE)

    @unittest.skipUnless(os.geteuid() == 0, "only root becomes another user; without it all these tests are a user's")
    def test_mounts_works_and_unmounts(self):
        helper = shutil.which("fusermount3")
        if helper is None or not os.stat(helper).st_mode & stat.S_ISUID:
            self.skipTest("fusermount3 is not there with root's rights (package fuse3)")
        os.chmod(self.work, 0o711)
        os.chmod(self.local, 0o711)
        for place in (self.directory, self.there()):
            os.chown(place, self.UID, self.UID)
        program = self.at("stag")  # where the user may run it
        shutil.copy(harness.STAG, program)
        done = self.as_user(program, "mount", self.url(), self.directory)
        if done.returncode != 0 and "FUSE does not mount" in done.stderr:
            self.skipTest("FUSE does not mount here for a user: " + done.stderr)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.addCleanup(self.end)
        used = self.as_user("sh", "-ec", USER, "sh", self.directory)
        self.assertEqual((used.returncode, used.stdout, used.stderr), (0, f"folder\n{self.UID}\n", ""))
        with self.assertRaises(PermissionError, msg="the mount is that user's alone"):
            os.listdir(self.directory)
        ended = self.as_user(program, "umount", self.directory)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertFalse(is_mounted(self.directory))
        found = os.stat(self.there("folder", "file"))
        self.assertEqual((found.st_uid, found.st_size, stat.S_IMODE(found.st_mode)), (self.UID, 588_895, 0o640))

    @unittest.skipUnless(os.geteuid() == 0, "only root becomes another user")
    def test_is_told_what_keeps_a_mount_from_ending(self):
        os.chmod(self.work, 0o711)
        os.chmod(self.local, 0o711)
        program = self.at("stag")
        shutil.copy(harness.STAG, program)
        self.mount()
        helper = self.at("fusermount3")
        for said, told in ((f"fusermount3: failed to unmount {self.directory}: Device or resource busy", "is in use"),
                           ("fusermount3: failed to open /etc/mtab: No such file or directory", "failed to open /etc/mtab"),
                           (f"fusermount3: entry for {self.directory} not found in /etc/mtab", "another user's mount: only root may unmount it")):
            with self.subTest(said):
                self.write(helper, f"#!/bin/sh\necho '{said}' >&2\nexit 1\n".encode())
                os.chmod(helper, 0o755)
                ended = self.as_user("env", f"PATH={self.local}:{os.environ['PATH']}", program, "umount", self.directory)
                self.assertEqual((ended.returncode, ended.stderr.count("\n")), (1, 1), ended.stderr)
                self.assertIn(told, ended.stderr)
                self.assertEqual("is in use" in ended.stderr, told == "is in use", ended.stderr)


class Foreground(Mounted):
    def in_the_foreground(self):
        """The process of a mount, which is there. It has no locks: a file is closed without asking it."""
        process = subprocess.Popen([harness.STAG, "mount", "-f", self.url() + "&version=3", self.directory], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not is_mounted(self.directory):
            if process.poll() is not None:
                self.skipTest("FUSE does not mount here")
            self.assertLess(time.monotonic(), deadline)
        self.addCleanup(self.end)
        return process


class Ends(Foreground):
    def test_by_the_symbolic_link_that_it_was_mounted_by(self):
        os.symlink("mount", self.at("link"))
        os.symlink(self.at("link"), self.at("link to the link"))
        self.mount()
        self.good("umount", self.at("link to the link"))
        self.assertFalse(is_mounted(self.directory))

    def end_while_it_is_kept(self):
        """What is said when the mount is taken from its directory, while something else keeps it."""
        done = stag("umount", self.directory)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (0, "", 1), done.stderr)
        self.assertFalse(is_mounted(self.directory))
        return done.stderr

    @unittest.skipUnless(harness.may_mount(), "a mount namespace cannot be made here")
    def test_with_the_last_mount_namespace_that_has_a_copy(self):
        process = self.in_the_foreground()
        keeper = subprocess.Popen(["unshare", "--mount", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with keeper:
            keeper.stdout.readline()
            said = self.end_while_it_is_kept()
            self.assertIn(f"goes on as long as process {keeper.pid} ", said)
            self.assertIn(f"on '{self.directory}'", said)
            self.assertIsNone(process.poll())
        self.assertEqual(process.wait(PATIENCE), 0)

    @unittest.skipUnless(harness.may_mount(), "nothing can be mounted here")
    def test_with_the_last_directory_that_it_is_mounted_on(self):
        process = self.in_the_foreground()
        other = self.at("other place")
        os.mkdir(other)
        subprocess.run(["mount", "--bind", self.directory, other], check=True, timeout=PATIENCE)
        self.assertIn(f"it is mounted on '{other}', too", self.end_while_it_is_kept())
        self.assertEqual(stag("umount", other).stderr, "")
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_by_a_signal_when_what_was_changed_in_mappings_is_written(self):
        process = self.in_the_foreground()
        self.write(self.here("file"), bytes(3 << 20))
        # Another process: what this one closes where it forks has the kernel write.
        program = subprocess.Popen([sys.executable, "-c", MAPPER, self.here("file")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with program:
            self.assertEqual(program.stdout.readline(), b"changed\n")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE), 0)
            self.assertFalse(is_mounted(self.directory))
            content = self.read(self.there("file"))
            self.assertEqual((content[:3], content[-3:], len(content)), (b"new", b"new", 3 << 20))


class Trouble(Foreground):
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

    def test_in_the_background_is_told_where_SIGCHLD_is_ignored(self):
        ignored = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        done = harness.stag("mount", self.url("missing"), self.directory, preexec_fn=ignored)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no such file or directory", done.stderr)

    def test_with_a_mount_whose_program_was_killed_is_told(self):
        process = self.in_the_foreground()
        process.kill()
        process.wait()
        self.bad(1, f"'stag umount {self.directory}' first", "mount", self.url(), self.directory)
        self.bad(1, "Transport endpoint is not connected", "umount", self.here("folder", "file"))
        self.good("umount", self.directory)
        self.mount()

    def test_with_a_mount_that_is_there_is_told(self):
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"))
        self.addCleanup(server.end)
        self.mount(url=server.url("/files"))
        os.symlink(self.directory, self.at("link"))
        # It would not answer for its directory.
        harness.stand_still(self, server.process)
        for name in (self.directory, self.at("link")):
            told = f"'{name}': '{server.url('/files')}' is mounted there already: 'stag umount {name}' first"
            self.bad(1, told, "mount", self.url(), name)
        self.good("umount", self.directory)
        self.assertFalse(is_mounted(self.directory))

    def test_with_a_mount_that_came_while_the_server_was_waited_for_is_told(self):
        with socket.create_server(("127.0.0.1", 0)) as early:
            port = early.getsockname()[1]
            mounting = subprocess.Popen(
                [harness.STAG, "mount", "-o", "retry=10", "--log-file", self.at("log"), f"nfs://127.0.0.1:{port}/files?version=4.2", self.directory],
                stderr=subprocess.PIPE, text=True, preexec_fn=harness.ignore_terminal, start_new_session=True)
            early.accept()[0].close()
            # To the mount in the background, too: by nohup it goes on when its terminal is closed.
            os.killpg(mounting.pid, signal.SIGHUP)
        self.mount()
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"), ports=("--rdma-port", str(port), "--tcp-port", "0"))
        self.addCleanup(server.end)
        errors = mounting.communicate(timeout=PATIENCE)[1]
        self.assertEqual(mounting.returncode, 1, errors)
        self.assertIn("is mounted there already", errors)
        self.good("umount", self.directory)

    def test_with_the_name_of_a_directory_is_told(self):
        os.symlink("circle", self.at("circle"))
        self.bad(1, "nothing is mounted at", "umount", self.at("circle"))
        self.bad(1, "Too many levels of symbolic links", "umount", self.at("circle", "below"))
        self.bad(1, "File name too long", "umount", self.at("n" * 300, "below"))
        gone = subprocess.run(["sh", "-c", 'mkdir "$1" && cd "$1" && rmdir "$1" && exec "$2" umount there', "sh", self.at("gone"), harness.STAG],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((gone.returncode, gone.stderr.count("\n")), (1, 1), gone.stderr)
        self.assertIn("No such file or directory", gone.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root becomes another user")
    def test_with_a_process_that_there_cannot_be_is_told(self):
        program = self.at("stag")
        shutil.copy(harness.STAG, program)
        for place in (self.work, self.local):
            os.chmod(place, 0o711)
        os.chown(self.directory, 4_000_000_000, 4_000_000_000)
        # Who looks for leaks at the end needs a process, too.
        environment = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        done = subprocess.run(["prlimit", "--nproc=1", program, "mount", self.url(), self.directory], user=4_000_000_000, group=4_000_000_000,
                              extra_groups=[], env=environment, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("there can be no process for the mount: Resource temporarily unavailable", done.stderr)

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

    def test_with_a_server_that_is_stopped_is_told_by_whatever_transport(self):
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"))
        self.addCleanup(server.end)
        harness.stand_still(self, server.process)
        urls = [server.url("/files"), server.tcp("/files"), server.tcp("/files") + "&version=3"]
        mounting = [subprocess.Popen([harness.STAG, "mount", url, self.directory], stderr=subprocess.PIPE, text=True) for url in urls]
        for url, process in zip(urls, mounting):
            errors = process.communicate(timeout=PATIENCE)[1]
            self.assertEqual((process.returncode, errors.count("\n")), (1, 1), (url, errors))
            self.assertIn("--timeout N waits longer", errors, url)

    def test_with_a_mount_in_use_is_told(self):
        self.mount()
        self.write(self.here("file"), b"content")
        with open(self.here("file"), "rb"):
            self.bad(1, "is in use", "umount", self.directory)
            self.good("umount", "--lazy", self.directory)
        self.assertFalse(is_mounted(self.directory))

    def test_that_was_unmounted_while_in_use_leaves_the_directory_to_the_next_one(self):
        self.write(self.there("file"), b"content")
        first = self.in_the_foreground()
        with open(self.here("file"), "rb"):
            self.good("umount", "--lazy", self.directory)
            self.mount()
            first.send_signal(signal.SIGINT)
            self.assertEqual(first.wait(PATIENCE), 0)
            self.assertTrue(is_mounted(self.directory))
            self.assertEqual(self.read(self.here("file")), b"content")
        self.good("umount", self.directory)

    def test_in_the_background_keeps_no_descriptor_that_it_inherits(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.set_blocking(reader, False)
        words = ("--log-file", self.at("log"), self.url(), self.directory)
        done = harness.stag("mount", *words, pass_fds=[writer])
        os.close(writer)
        if "FUSE does not mount" in done.stderr:
            self.skipTest("FUSE does not mount here")
        self.addCleanup(self.end)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(os.read(reader, 1), b"", "nobody could write any more")
        self.good("umount", self.directory)

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


if __name__ == "__main__":
    mounted.main()
