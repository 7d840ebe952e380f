"""Mounts whose server is stopped, dies or loses its connections."""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

import harness
import mounted
import rpc_proxy
from harness import PATIENCE, Proxy
from mounted import Mounted, waits_for_fuse

# Has a file open twice, writes pieces by the first open, closes that when it is told to, and then syncs by the second one until that is well.
# What the kernel and the mount do behind close(2) has ended once questions that came later have waited in vain.
CLOSER = """
import os, sys
first = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
second = os.open(sys.argv[1], getattr(os, sys.argv[2]))
for piece in range(5):
    os.pwrite(first, b"a" * 1000, piece * 1000)
print("written", flush=True)
sys.stdin.readline()
refusals = 0
for call in [lambda: os.close(first)] + [lambda: os.statvfs(sys.argv[1])] * 3:
    try:
        call()
    except OSError:
        refusals += 1
print("refused", refusals, flush=True)
sys.stdin.readline()
while True:
    try:
        os.fsync(second)
        break
    except OSError:
        pass
print("synced", flush=True)
"""


# Opens a file, and when it is told to looks at it: copies it in one way or another, or prints its size, perhaps after a change.
LOOKER = """
import os, sys
source = os.open(sys.argv[1], os.O_RDONLY)
target = os.open(sys.argv[1] + "2", os.O_WRONLY | os.O_CREAT)
appending = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
print("open", flush=True)
sys.stdin.readline()
if sys.argv[2] == "appended":
    os.write(appending, b"more")
if sys.argv[2] == "changed":
    os.fchmod(source, 0o600)
if sys.argv[2] == "linked":
    os.link(sys.argv[1], sys.argv[1] + "3")
    print(os.stat(sys.argv[1] + "3").st_size)
elif sys.argv[2] == "sought":
    print(os.lseek(source, 0, os.SEEK_HOLE))
elif sys.argv[2] in ("size", "appended", "changed"):
    print(os.fstat(source).st_size)
elif sys.argv[2] == "copy":
    while os.copy_file_range(source, target, 10_000_000):
        pass
else:
    while data := os.read(source, 1_000_000):
        os.write(target, data)
"""


# Keeps so many files open that it has written to.
MANY = """
import os, sys
files = [open(os.path.join(sys.argv[1], f"file{number}"), "wb", buffering=0) for number in range(int(sys.argv[2]))]
for file in files * 2:
    file.write(b"content")
print("written", flush=True)
sys.stdin.readline()
"""


# Does one thing of a file when it is told to, by a call of libc, which Python does not repeat; a signal of a timer comes meanwhile.
CALLER = """
import ctypes, os, signal, sys
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
libc, (call, at) = ctypes.CDLL(None, use_errno=True), sys.argv[1:]
path, other, buffer = (at + "/file").encode(), (at + "/other").encode(), ctypes.create_string_buffer(1 << 16)
file = os.open(path, os.O_RDWR)
calls = {
    "pread": lambda: libc.pread(file, buffer, 100, ctypes.c_long(0)),
    "write": lambda: libc.write(file, buffer, 1 << 16),
    "open": lambda: libc.open(other, os.O_RDONLY),
    "stat": lambda: libc.stat(other, buffer),
    "rename": lambda: libc.rename(path, path + b"2"),
}
print("ready", flush=True)
sys.stdin.readline()
print("done" if calls[call]() >= 0 else os.strerror(ctypes.get_errno()))
"""


def command_of(process):
    """Its command line; empty where it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/cmdline", "rb") as words:
        return words.read()
    return b""


def tasks_of(process):
    return [int(task) for task in os.listdir(f"/proc/{process}/task")]


def state_of(task):
    """D: it waits for the kernel, and may not hear signals."""
    with contextlib.suppress(OSError), open(f"/proc/{task}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]
    return ""


class Trouble(Mounted):
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

    def test_a_program_that_is_killed_waits_for_a_stopped_server_once_not_for_each_of_its_files(self):
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"))
        self.addCleanup(server.end)
        self.mount(url=server.url("/files"))
        with subprocess.Popen([sys.executable, "-c", MANY, self.directory, "100"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            self.assertEqual(program.stdout.readline(), b"written\n")
            harness.stand_still(self, server.process)
            program.kill()
            try:
                program.wait(PATIENCE)
            finally:
                server.process.send_signal(signal.SIGCONT)
        self.assertEqual({self.read(self.there(name)) for name in os.listdir(self.there())}, {b"content" * 2})
        self.good("umount", self.directory)

    def mount_with_held_replies(self):
        """By version 3. The first reply to what `held` of the proxy says is kept back until `released`."""
        proxy = rpc_proxy.RpcProxy(self.server.tcp_port, overtaken=True)
        self.addCleanup(proxy.close)
        self.mount(url=proxy.url(f"/files/{self.name}") + f"&mountport={self.server.tcp_port}")
        return proxy

    def opener(self, what, flags="os.O_CREAT"):
        """A program that opens the file, says so, and then does `what`."""
        opened = f"import os, sys; file = os.open({self.here('file')!r}, os.O_RDWR | {flags}); print('open', flush=True); "
        program = subprocess.Popen([sys.executable, "-c", opened + what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for clean_up in (program.stdin.close, program.stdout.close, program.wait, program.kill):
            self.addCleanup(clean_up)
        return program

    def begun(self, what):
        """The same, which waits in `what` for the mount; that has processed what the kernel has told it so far."""
        program = self.opener(what)
        self.assertEqual(program.stdout.readline(), "open\n")
        self.wait_for_fuse([program])
        os.statvfs(self.directory)
        return program

    def killed(self, program):
        program.kill()
        program.wait(PATIENCE)

    def left_behind(self, proxy):
        """A WRITE whose program was killed."""
        proxy.held = rpc_proxy.WRITE
        left = self.opener("os.pwrite(file, b'left', 0)")
        self.assertTrue(proxy.reached.wait(PATIENCE), "it asks the server")
        self.killed(left)

    def test_what_a_killed_program_has_begun_to_write_does_not_land_behind_what_others_write(self):
        proxy = self.mount_with_held_replies()
        self.left_behind(proxy)
        before = len(proxy.calls)
        later = self.begun("os.ftruncate(file, 0); os.pwrite(file, b'new', 0); os.fsync(file)")
        sent = {call.procedure for call in proxy.calls[before:]}
        self.assertFalse(sent & {rpc_proxy.SETATTR, rpc_proxy.WRITE}, "behind what is in progress")
        proxy.released.set()
        self.assertEqual(later.wait(PATIENCE), 0)
        self.assertEqual(self.read(self.there("file")), b"new")

    def test_what_a_killed_program_had_not_begun_is_not_done(self):
        """Its truncation waited for the WRITE of another one, and has to commit first."""
        proxy = self.mount_with_held_replies()
        keeper = self.opener("os.pwrite(file, b'1', 0); os.pwrite(file, b'2', 1); print('kept', flush=True); sys.stdin.readline()")
        self.assertEqual((keeper.stdout.readline(), keeper.stdout.readline()), ("open\n", "kept\n"))
        self.left_behind(proxy)
        before = len(proxy.calls)
        self.killed(self.begun("os.ftruncate(file, 0)"))
        later = self.begun("os.pwrite(file, b'C' * 100, 0); os.fsync(file)")
        proxy.released.set()
        self.assertEqual(later.wait(PATIENCE), 0)
        self.killed(keeper)
        self.good("umount", self.directory)
        self.assertNotIn(rpc_proxy.SETATTR, {call.procedure for call in proxy.calls[before:]})
        self.assertEqual(self.read(self.there("file")), b"C" * 100)

    def test_a_program_that_is_killed_while_it_opens_a_file_does_not_empty_it(self):
        proxy = self.mount_with_held_replies()
        self.write(self.there("file"), b"content")
        os.stat(self.here("file"))
        proxy.held = rpc_proxy.ACCESS
        opening = self.opener("", "os.O_TRUNC")
        self.assertTrue(proxy.reached.wait(PATIENCE), "it asks the server")
        self.killed(opening)
        proxy.released.set()
        self.good("umount", self.directory)
        self.assertEqual(self.read(self.there("file")), b"content")

    def wait_for_fuse(self, programs):
        deadline = time.monotonic() + PATIENCE
        while running := [program.args for program in programs if not waits_for_fuse(program)]:
            self.assertLess(time.monotonic(), deadline, running)

    def caller(self, call, directory):
        program = subprocess.Popen([sys.executable, "-c", CALLER, call, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for clean_up in (program.stdin.close, program.stdout.close, program.wait, program.kill):
            self.addCleanup(clean_up)
        self.assertEqual(program.stdout.readline(), "ready\n")
        return program

    def interrupted_while_stopped(self, commands, options="actimeo=0"):
        """Starts them on a mount whose server is stopped, and once each waits for it, interrupts all; yields their ends."""
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"))
        self.addCleanup(server.end)
        self.mount("-o", options, url=server.url("/files"))
        # What is known of names is not asked for, by one program after the other.
        with os.scandir(self.directory) as entries:
            self.assertTrue(all(entry.stat() for entry in entries))
        harness.stand_still(self, server.process)
        programs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
        try:
            self.wait_for_fuse(programs)
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

    def test_a_name_that_a_stopped_server_does_not_find_keeps_nobody_from_asking_for_others_in_that_directory(self):
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"))
        self.addCleanup(server.end)
        for name in ("first", "second"):
            self.write(self.there(name), b"content")
        self.mount("-o", "actimeo=86400", url=server.url("/files"))
        os.stat(self.directory)  # is not asked for again
        harness.stand_still(self, server.process)
        programs = []
        try:
            for name in ("first", "second"):
                programs.append(subprocess.Popen(["stat", self.here(name)], stdout=subprocess.DEVNULL))
                self.wait_for_fuse(programs[-1:])
            # Who waits for the lock of a directory cannot be interrupted.
            programs[1].send_signal(signal.SIGINT)
            self.assertEqual(programs[1].wait(PATIENCE), -signal.SIGINT)
            self.assertIsNone(programs[0].poll(), "it waits for its own name")
        finally:
            server.process.send_signal(signal.SIGCONT)
            ends = [program.wait(PATIENCE) for program in programs]
        self.assertEqual(ends, [0, -signal.SIGINT])
        self.assertEqual(sorted(os.listdir(self.directory)), ["first", "second"])

    def test_programs_that_wait_for_a_stopped_server_can_be_interrupted_whatever_they_do(self):
        # Each in a directory of its own: changes of one wait for each other.
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

    def test_a_program_that_gets_the_signal_of_a_timer_waits_on_for_a_stopped_server(self):
        calls = ("pread", "write", "open", "stat", "rename")
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"))
        self.addCleanup(server.end)
        for version in ("3", "4.0", "4.2"):
            for name in (*calls, "ended"):
                os.mkdir(self.there(name + version))
                for file in ("file", "other"):
                    self.write(self.there(name + version, file), b"content")
            self.mount("-o", "direct,actimeo=0", url=server.url("/files") + "&version=" + version)
            callers = [self.caller(call, self.here(call + version)) for call in calls]
            ended = self.caller("stat", self.here("ended" + version))
            harness.stand_still(self, server.process)
            for program in (*callers, ended):
                program.stdin.write("go\n")
                program.stdin.flush()
            self.wait_for_fuse([*callers, ended])
            for program in callers:
                program.send_signal(signal.SIGALRM)
            ended.send_signal(signal.SIGALRM)
            ended.send_signal(signal.SIGTERM)  # it is looked at after the others
            self.assertEqual(ended.wait(PATIENCE), -signal.SIGTERM)
            server.process.send_signal(signal.SIGCONT)
            said = [program.communicate(timeout=PATIENCE)[0] for program in callers]
            self.assertEqual(dict(zip(calls, said)), dict.fromkeys(calls, "done\n"), version)
            self.good("umount", self.directory)


class Messages(Mounted):
    """What a mount says that is in the background."""

    def lose_the_connection(self, *options, begun=lambda: None, **how):
        """Of a mount with these options, once it has `begun`; yields its place."""
        proxy = Proxy(self.server.tcp_port, "up", 1 << 40)
        self.addCleanup(proxy.cut)
        self.mount(*options, url=f"nfs://127.0.0.1:{proxy.port}/files/{self.name}?proto=tcp&mountport={self.server.tcp_port}", **how)
        begun()
        for each in proxy.sockets:
            with contextlib.suppress(OSError):  # MOUNT's has ended by itself
                each.shutdown(socket.SHUT_RDWR)
        self.assertEqual(os.listdir(self.directory), [])
        self.good("umount", self.directory)
        return f"tcp 127.0.0.1:{proxy.port}"

    def test_are_in_the_file_that_it_was_given(self):
        server = self.lose_the_connection("--log-file", self.at("log"))
        with open(self.at("log")) as log:
            self.assertRegex(log.read(), rf"(?m)^\S+ \S+ info +RpcConnectionLost {server}: the connection to the server was lost")
        self.lose_the_connection("--log-file", self.at("other"), "--log-level", "error")
        self.assertEqual(self.read(self.at("other")), b"")
        self.bad(1, f"'{self.at('missing', 'log')}'", "mount", "--log-file", self.at("missing", "log"), self.url(), self.directory)

    def hang_up(self):
        """SIGHUP for the process of the mount, which has taken it at the end."""
        processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        [process] = [each for each in processes if self.directory.encode() in command_of(each)]
        os.kill(process, signal.SIGHUP)
        # It looks for signals in each turn of its loop: behind what came before them at the latest.
        for _ in range(2):
            os.listdir(self.directory)

    def test_go_into_another_file_of_that_name_after_SIGHUP(self):
        """Also where the mount was begun by nohup(1)."""
        def rotate():
            os.rename(self.at("log"), self.at("log.1"))
            self.hang_up()

        server = self.lose_the_connection("--log-file", os.path.relpath(self.at("log")), begun=rotate, preexec_fn=harness.ignore_terminal)
        lost = f"RpcConnectionLost {server}".encode()
        self.assertIn(lost, self.read(self.at("log")))
        self.assertNotIn(lost, self.read(self.at("log.1")))

    def test_stay_in_the_file_after_SIGHUP_where_there_can_be_no_other(self):
        def be_in_the_way():
            os.rename(self.at("log"), self.at("log.1"))
            os.mkdir(self.at("log"))
            self.hang_up()

        server = self.lose_the_connection("--log-file", self.at("log"), begun=be_in_the_way)
        log = self.read(self.at("log.1")).decode()
        self.assertRegex(log, rf"(?m)^\S+ \S+ warning +LogFileKept {self.at('log')}: .*Is a directory")
        self.assertIn(f"RpcConnectionLost {server}", log)

    def test_do_not_go_into_a_file_of_the_mount(self):
        for place in (self.at("mount", "log"), os.path.join(self.local, "..", os.path.basename(self.local), "mount", "log")):
            self.bad(1, "--log-file", "mount", "--log-file", place, self.url(), self.directory)
        self.assertEqual(os.listdir(self.directory), [])

    def test_are_not_ended_by_SIGHUP_without_a_file(self):
        self.write(self.there("file"), b"content")
        self.mount()
        with open(self.here("file"), "rb") as file:
            self.hang_up()
            self.assertTrue(mounted.is_mounted(self.directory))
            self.assertEqual(file.read(), b"content")
        self.good("umount", self.directory)

    @unittest.skipUnless(harness.may_mount(), "no mounts of its own, for a /dev with a log")
    def test_are_in_the_log_of_the_system(self):
        devices = self.at("dev")
        os.mkdir(devices)
        for name in ("null", "zero", "random", "urandom", "fuse"):
            self.write(os.path.join(devices, name))
            subprocess.run(["mount", "--bind", f"/dev/{name}", os.path.join(devices, name)], check=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
            log.bind(os.path.join(devices, "log"))
            subprocess.run(["mount", "--rbind", devices, "/dev"], check=True)
            try:
                server = self.lose_the_connection()
            finally:
                subprocess.run(["umount", "--lazy", "/dev"], check=True)
                subprocess.run(["umount", "--lazy", *(os.path.join(devices, name) for name in os.listdir(devices) if name != "log")], check=True)
            log.settimeout(PATIENCE)
            line = ""
            while self.directory not in line:  # mounts of earlier tests may still end
                line = log.recv(10_000).decode()
        facility_and_severity = 3 * 8 + 6  # daemon, info
        self.assertRegex(line, rf"^<{facility_and_severity}>.* stag\[\d+\]: {self.directory}: RpcConnectionLost {server}: the connection to the server")


class Appending(Mounted):
    """What somebody has read, or changed in a mapping, while the server does not answer for that: the kernel is to drop those pages."""

    SOON = PATIENCE / 3  # before the proxy lets go what it keeps back

    def setUp(self):
        super().setUp()
        self.hold = {}  # procedures whose replies are kept back until the event
        self.events = []
        proxy = rpc_proxy.JudgingProxy(self.server.tcp_port, lambda call: (self.hold[call.procedure], None) if call.procedure in self.hold else None)
        self.proxy = proxy
        self.addCleanup(proxy.close)
        url = proxy.url(f"/files/{self.name}") + f"&mountport={self.server.tcp_port}"
        self.errors = self.at("errors")
        with open(self.errors, "wb") as errors:
            self.mounting = subprocess.Popen([harness.STAG, "mount", "-f", *self.options(), url, self.directory], stderr=errors)
        self.addCleanup(self.mounting.wait, PATIENCE)
        self.addCleanup(self.mounting.kill)
        self.addCleanup(self.go_on)
        self.wait_until(lambda: mounted.is_mounted(self.directory))

    def go_on(self):
        for event in self.events:
            event.set()
        self.end()

    def event(self):
        self.events.append(threading.Event())
        return self.events[-1]

    def wait_until(self, what):
        deadline = time.monotonic() + PATIENCE
        while not what():
            self.assertLess(time.monotonic(), deadline)

    def program(self, what, name="file"):
        """Has the file open, and says so; then it does `what` when it is told to."""
        opened = f"import mmap, os, sys; file = os.open({self.here(name)!r}, os.O_RDWR | (os.O_APPEND if 'append' in sys.argv else 0)); "
        begun = "print('open', flush=True); sys.stdin.readline(); "
        program = subprocess.Popen([sys.executable, "-c", opened + begun + what, *(["append"] if "b'x'" in what else [])], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for clean_up in (program.stdin.close, program.stdout.close, program.wait, program.kill):
            self.addCleanup(clean_up)
        self.assertEqual(program.stdout.readline(), "open\n")
        return program

    def tell(self, program):
        program.stdin.write("go\n")
        program.stdin.flush()

    def seen(self, procedure):
        return sum(call.procedure == procedure for call in self.proxy.calls)

    def ask(self, program, procedure):
        """Tells it to do what asks the server for that, which is executed but not answered."""
        self.hold.setdefault(procedure, self.event())
        before = self.seen(procedure)
        self.tell(program)
        self.wait_until(lambda: self.seen(procedure) > before)

    def left_waiting(self, *names):
        """An append to each file has been answered, and what somebody reads of it has not."""
        programs = []
        for name in names:
            self.write(self.there(name), b"content")
            appending, reading = self.program("os.write(file, b'x')", name), self.program("os.read(file, 100)", name)
            self.ask(appending, rpc_proxy.WRITE)
            self.ask(reading, rpc_proxy.READ)
            programs += [appending, reading]
        self.hold.pop(rpc_proxy.WRITE).set()
        del self.hold[rpc_proxy.READ]  # is not set
        return programs


class Appended(Appending):
    def options(self):
        return []

    def test_files_do_not_keep_the_mount_from_being_unmounted(self):
        programs = self.left_waiting("file")
        for program in programs:
            program.kill()
            program.wait(PATIENCE)
        unmounting = subprocess.Popen([harness.STAG, "umount", self.directory])
        self.assertEqual((unmounting.wait(self.SOON), self.mounting.wait(self.SOON)), (0, 0))

    def test_files_are_not_in_the_log_of_a_mount_that_ends(self):
        reading = self.left_waiting("file")[1]
        self.mounting.terminate()
        self.assertEqual(self.mounting.wait(self.SOON), 0, self.read(self.errors))
        reading.wait(PATIENCE)
        self.assertNotIn("writing device", self.read(self.errors).decode(), "nobody hears its answer any more, which is no fault")

    def test_files_do_not_keep_others_from_being_appended_to(self):
        self.left_waiting(*(f"file{i}" for i in range(4)))
        self.write(self.there("other"), b"content")
        reading, appending = self.program("os.read(file, 100); sys.stdin.readline()", "other"), self.program("os.write(file, b'x')", "other")
        self.tell(reading)
        self.tell(appending)
        self.assertEqual(appending.wait(self.SOON), 0)
        self.assertEqual(self.read(self.there("other")), b"contentx")

    def test_file_whose_changed_pages_the_server_does_not_take_does_not_keep_the_mount_from_being_ended(self):
        """The kernel writes them in the midst of dropping them."""
        self.write(self.there("file"), b"content")
        changing = self.program("mapped = mmap.mmap(file, 7); print(mapped[0], flush=True); sys.stdin.readline(); mapped[0] = 67; "
                                "print('changed', flush=True); sys.stdin.readline()")
        appending = self.program("os.write(file, b'x')")
        self.tell(changing)
        self.assertEqual(changing.stdout.readline(), f"{ord('c')}\n")
        self.ask(appending, rpc_proxy.WRITE)
        self.tell(changing)
        self.assertEqual(changing.stdout.readline(), "changed\n")
        answered = self.hold[rpc_proxy.WRITE]
        self.hold[rpc_proxy.WRITE] = self.event()
        answered.set()
        self.wait_until(lambda: self.seen(rpc_proxy.WRITE) == 2)
        self.mounting.terminate()
        self.assertEqual(self.mounting.wait(self.SOON), 0)
        self.assertFalse(mounted.is_mounted(self.directory))


class AppendedByTwo(Appending):
    """One appends to a file that somebody reads, another one to another file."""

    def options(self):
        return ["-o", "actimeo=60"]  # attributes are not asked for while the mount is stopped

    def replies_that_wait(self):
        """Of the proxy, in the sockets of the mount."""
        port = f"{self.proxy.port:04X}"
        with open(f"/proc/{self.mounting.pid}/net/tcp") as sockets:
            lines = [line.split() for line in list(sockets)[1:]]
        return any(line[2].endswith(":" + port) and int(line[4].split(":")[1], 16) > 0 for line in lines)

    @unittest.skipUnless(os.geteuid() == 0, "umount(8) is root's")
    def test_files_do_not_keep_the_mount_from_being_unmounted_when_the_server_answers_whom_nobody_waits_for(self):
        """The mount reads what is read of the file behind the answer to the append: a thread drops pages that are locked. Whoever unmounts waits
        for it; the append of a killed program to another file, which is answered then, does not have the loop wait behind that."""
        for name in ("file", "other"):
            self.write(self.there(name), b"content")
        killed, appending = self.program("os.write(file, b'x')", "other"), self.program("os.write(file, b'x')")
        reading = self.program("os.read(file, 100)")
        self.ask(killed, rpc_proxy.WRITE)
        killed.kill()
        killed.wait(PATIENCE)
        late = self.hold.pop(rpc_proxy.WRITE)
        self.ask(appending, rpc_proxy.WRITE)
        os.stat(self.here("file"))
        read = self.hold[rpc_proxy.READ] = self.event()
        harness.stand_still(self, self.mounting)
        self.hold[rpc_proxy.WRITE].set()
        self.wait_until(self.replies_that_wait)
        self.tell(reading)
        self.wait_until(lambda: state_of(reading.pid) == "D")
        self.mounting.send_signal(signal.SIGCONT)
        self.wait_until(lambda: self.seen(rpc_proxy.READ) and any(state_of(task) == "D" for task in tasks_of(self.mounting.pid)))
        for program in (reading, appending):
            program.kill()
            program.wait(PATIENCE)
        unmounting = subprocess.Popen(["umount", self.directory])
        self.wait_until(lambda: state_of(unmounting.pid) == "D")
        waiting = sum(state_of(task) == "D" for task in tasks_of(self.mounting.pid))
        late.set()
        self.wait_until(lambda: sum(state_of(task) == "D" for task in tasks_of(self.mounting.pid)) > waiting)
        self.assertNotEqual(state_of(self.mounting.pid), "D", "the loop waits")
        read.set()
        self.assertEqual((unmounting.wait(self.SOON), self.mounting.wait(self.SOON)), (0, 0))


class Losses(Mounted):
    def test_what_a_server_lost_when_it_died_is_written_again(self):
        for version, mode in (("3", "wb"), ("3", "ab"), ("4.2", "wb"), ("4.2", "ab")):
            with self.subTest(version=version, mode=mode):
                self.write_what_is_lost_again(version, mode)

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

        with program(mounted.WRITER, self.here("file"), "wb") as writer:
            self.assertEqual(writer.stdout.readline(), b"written\n")
            with program(LOOKER, self.here("file"), see.__name__) as looker:
                self.assertEqual(looker.stdout.readline(), b"open\n")
                first.process.kill()
                first.process.wait()
                os.truncate(os.path.join(served, "file"), len(pieces[0]))
                second = harness.Server(exports, state, times, ports=("--rdma-port", str(first.rdma_port), "--tcp-port", str(first.tcp_port)))
                self.addCleanup(second.process.kill)  # where it is not as it should be
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

        def changed(written, taken, go):
            size(written, taken, go)

        def linked(written, taken, go):
            size(written, taken, go)

        def sought(written, taken, go):
            size(written, taken, go)

        def appended(written, _, go):
            self.assertEqual(int(go()), len(written) + 4)

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

        looks = [("4.2", (), see) for see in (size, changed, sought, copy, opened, listed)]
        # What the kernel does not know any more when the server is there again, and what it does.
        looks += [("4.2", ("-o", "actimeo=0.05"), named), ("4.2", ("-o", "actimeo=86400"), linked), ("4.2", (), appended)]
        looks += [(version, ("-o", "direct"), read) for version in ("3", "4.0", "4.2")]
        for version, options, see in looks:
            with self.subTest(version=version, see=see.__name__):
                self.lose_writes(version, options, see)

    def test_what_a_close_did_not_hear_of_is_written_again_for_whoever_has_the_file_open(self):
        for version, way in (("4.2", "O_RDWR"), ("4.2", "O_RDONLY"), ("4.0", "O_RDWR"), ("3", "O_RDWR")):
            with self.subTest(version=version, way=way):
                served, state = self.at(f"served-{version}-{way}"), self.at(f"state-{version}-{way}")
                os.mkdir(served)
                exports, times = (f"/x={served},no_root_squash",), ("--lease", "10", "--grace", "10")
                first = harness.Server(exports, state, times)
                self.mount("-o", "timeout=2", url=first.url("/x") + "&version=" + version)
                with subprocess.Popen([sys.executable, "-c", CLOSER, self.here("file"), way], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as closer:
                    self.assertEqual(closer.stdout.readline(), b"written\n")
                    first.process.kill()
                    first.process.wait()
                    closer.stdin.write(b"go\n")
                    closer.stdin.flush()
                    self.assertEqual(closer.stdout.readline(), b"refused 4\n")
                    os.truncate(os.path.join(served, "file"), 1000)
                    second = harness.Server(exports, state, times, ports=("--rdma-port", str(first.rdma_port), "--tcp-port", str(first.tcp_port)))
                    self.addCleanup(second.process.kill)  # where it is not as it should be
                    self.assertEqual(closer.communicate(b"go\n", timeout=PATIENCE)[0], b"synced\n")
                self.assertEqual(self.read(os.path.join(served, "file")), b"a" * 5000)
                self.good("umount", self.directory)
                first.process.stdout.close()
                first.errors.close()
                self.assertEqual(second.end(), 0)

    def counting_server(self):
        """And how often it was asked for an operation."""
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"), ("--metrics", "127.0.0.1:0"))
        self.addCleanup(lambda: self.assertEqual(server.end(), 0))
        (metrics,) = [line.split(" ")[1] for line in server.lines if line.startswith("metrics: ")]

        def counted(operation):
            with urllib.request.urlopen(metrics, timeout=PATIENCE) as answer:
                found = re.search(r'^stag_nfs4_operations_total\{[^}]*"%s"[^}]*\} (\S+)$' % operation, answer.read().decode(), re.MULTILINE)
            return float(found[1]) if found else 0

        return server, counted

    def test_what_a_server_has_is_not_committed_before_it_is_read(self):
        server, counted = self.counting_server()
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

    def test_what_is_written_with_O_SYNC_is_on_stable_storage_when_write_returns(self):
        server, counted = self.counting_server()
        for options in ("actimeo=1", "direct"):
            self.mount("-o", options, url=server.url("/files") + "&version=4.2")
            for flags in (os.O_SYNC, os.O_APPEND | os.O_SYNC, os.O_APPEND | os.O_DSYNC):
                with self.subTest(options=options, flags=flags):
                    file = os.open(self.here("file"), os.O_CREAT | os.O_WRONLY | flags)
                    for _ in range(3):
                        os.write(file, b"content")
                    before = counted("COMMIT")
                    os.close(file)
                    self.assertEqual(counted("COMMIT"), before, "something was left to commit")
            self.good("umount", self.directory)


if __name__ == "__main__":
    mounted.main()
