"""`stag serve` under a service manager: what it is told, the sockets it passes, and reloads."""
import array
import contextlib
import ctypes
import grp
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import harness
import nfs4_client
from harness import Server, stag
from nfs4_client import OK, words


PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "operations.md")


class Manager:
    """What systemd is to a service: a datagram socket, and environment variables."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self.socket.settimeout(harness.PATIENCE)
        self.environment = {**os.environ, "NOTIFY_SOCKET": name}
        self.kept = []

    def close(self):
        self.socket.close()
        for each in self.kept:
            os.close(each)

    def hear(self, wanted):
        """The next message that holds a line that begins so, as {name: value}; others are passed over."""
        while True:
            text, control, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(64 * 4), socket.MSG_CMSG_CLOEXEC)
            assert len(text) <= 4096, "systemd ignores what is longer"
            for level, kind, data in control:
                assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
                self.kept += array.array("i", data)
            lines = text.decode().splitlines()
            if any(line.startswith(wanted) for line in lines):
                return dict(line.split("=", 1) for line in lines)


class Case(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-service-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.state = os.path.join(self.work, "state")
        self.path = os.path.join(self.work, "stag.toml")

    def manager(self, name=None):
        manager = Manager(name or os.path.join(self.work, "notify"))
        self.addCleanup(manager.close)
        return manager

    def start(self, *arguments, exports=("/x=memory",), **options):
        server = Server(exports, self.state, arguments, **options)
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def config(self, *lines):
        with open(self.path, "w") as file:
            file.write("\n".join(lines) + "\n")

    def eventually(self, condition, what):
        end = time.monotonic() + harness.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)


class Journal(Case):
    """Standard error as a service has it, where $JOURNAL_STREAM names its device and inode number."""
    SERVICE = ("sh", "-c", 'exec env "JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2)" "$@"', "sh")

    def test_has_a_priority_in_front_of_each_line_of_the_log(self):
        server = self.start("--allow", "192.0.2.0/24", before=self.SERVICE)
        with socket.create_connection(("127.0.0.1", server.tcp_port)) as peer:
            peer.settimeout(harness.PATIENCE)
            self.assertEqual(peer.recv(1), b"")
        self.eventually(lambda: server.log(), "it is logged")
        self.assertRegex(server.log(), r"^<4>PeerNotAllowed ")

    def test_hears_why_a_server_does_not_begin_as_an_error(self):
        for code, arguments in ((2, ("--no-such-option",)), (2, ("--export", "data")), (1, ("--export", f"/x={self.work}/none"))):
            result = subprocess.run(
                [*self.SERVICE, harness.STAG, "serve", "--state", self.state, *arguments], capture_output=True, text=True, timeout=harness.PATIENCE)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertTrue(result.stderr.startswith("<3>stag serve: "), result.stderr)


class Notifications(Case):
    def test_tell_when_it_is_ready_and_when_it_ends(self):
        for name in (os.path.join(self.work, "notify"), f"@stag-test-{os.getpid()}"):
            manager = self.manager(name)
            server = self.start(env=manager.environment)
            self.assertEqual(manager.hear("READY=")["STATUS"], "Serving /x")
            self.assertEqual(stag("ls", server.url("/x")).returncode, 0)
            self.assertEqual(server.end(), 0)
            told = manager.hear("STOPPING=")
            self.assertEqual(told["STOPPING"], "1")
            self.assertGreater(int(told["EXTEND_TIMEOUT_USEC"]), 10_000_000)

    def test_tell_of_a_reload(self):
        self.config('export = "/a=memory"')
        manager = self.manager()
        server = self.start("--config", self.path, exports=(), env=manager.environment)
        self.assertEqual(manager.hear("READY=")["STATUS"], "Serving /a")
        self.config('export = ["/a=memory", "/b=memory"]')
        server.process.send_signal(signal.SIGHUP)
        self.assertLessEqual(int(manager.hear("RELOADING=")["MONOTONIC_USEC"]), time.monotonic_ns() // 1000)
        self.assertEqual(manager.hear("READY=")["STATUS"], "Serving /a /b")

    def test_of_many_exports_name_the_first_ones(self):
        self.config("export = [" + ", ".join(f"'/{number:0100}=memory'" for number in range(220)) + "]")
        manager = self.manager()
        server = self.start("--config", self.path, exports=(), env=manager.environment)
        self.assertRegex(manager.hear("READY=")["STATUS"], r"^Serving 220 exports: (/\d{100} ){9}\.\.\.$")
        self.config(r'export = "/a\nSTOPPING=memory"')
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(manager.hear("READY="), {"READY": "1", "STATUS": r"Serving /a\012STOPPING"})

    def test_wait_for_a_manager_that_is_behind(self):
        manager = self.manager()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.setblocking(False)
            other.connect(os.path.join(self.work, "notify"))
            with self.assertRaises(BlockingIOError):
                while True:
                    other.send(b"OTHER=1")
            server = self.start(env=manager.environment)
            self.assertEqual(manager.hear("READY=")["STATUS"], "Serving /x")
        self.assertEqual(server.log(), "")

    def test_that_nobody_hears_are_logged_and_hurt_nothing(self):
        server = self.start(env={**os.environ, "NOTIFY_SOCKET": os.path.join(self.work, "none")})
        deadline = time.monotonic() + harness.PATIENCE
        while "ServiceManagerUnheard" not in server.log():  # it comes behind the lines that say what is served
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)


class Watchdog(Case):
    def test_hears_from_it_as_long_as_every_thread_that_serves_turns(self):
        manager = self.manager()
        manager.environment.update(WATCHDOG_USEC="60000", WATCHDOG_PID="")
        server = self.start("--loops", "2", env=manager.environment)
        for _ in range(3):
            manager.hear("WATCHDOG=1")
        tracer = Tracer()
        others = [int(each) for each in os.listdir(f"/proc/{server.process.pid}/task") if int(each) != server.process.pid]
        silent = 0
        for thread in others:
            if not tracer.stop(thread):
                self.skipTest("no thread of another process may be stopped here")
            silent += self.falls_silent(manager)
            tracer.go_on(thread)
            manager.hear("WATCHDOG=1")
        self.assertEqual(silent, 3, "two that serve connections, and that of locks")

    def falls_silent(self, manager):
        manager.socket.settimeout(0.5)  # a report is due every 20 ms
        try:
            # What was on its way may still come.
            for _ in range(8):
                manager.hear("WATCHDOG=1")
            return False
        except TimeoutError:
            return True
        finally:
            manager.socket.settimeout(harness.PATIENCE)

    @unittest.skipIf(harness.is_sanitized(), "the sanitizer wants descriptors, too")
    def test_hears_from_a_server_that_has_no_descriptor_left(self):
        self.config('export = "/x=memory"')
        manager = self.manager()
        manager.environment.update(WATCHDOG_USEC="60000", WATCHDOG_PID="")
        server = self.start("--config", self.path, exports=(), env=manager.environment)
        manager.hear("WATCHDOG=1")
        process, kind = server.process.pid, resource.RLIMIT_NOFILE
        before = resource.prlimit(process, kind)
        self.addCleanup(lambda: server.process.poll() is None and resource.prlimit(process, kind, before))
        has = {int(each) for each in os.listdir(f"/proc/{process}/fd")}
        resource.prlimit(process, kind, (min(set(range(len(has) + 1)) - has), before[1]))
        # What was on its way, and one that was being sent.
        manager.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                manager.socket.recv(4096)
        manager.socket.settimeout(harness.PATIENCE)
        for _ in range(2):
            manager.hear("WATCHDOG=1")
        server.process.send_signal(signal.SIGHUP)
        self.assertIn("Serving /x", manager.hear("READY=")["STATUS"])
        self.assertNotIn("ServiceManagerUnheard", server.log())

    def test_that_is_for_another_process_hears_nothing(self):
        manager = self.manager()
        manager.environment.update(WATCHDOG_USEC="30000", WATCHDOG_PID="1")
        self.start(env=manager.environment)
        manager.hear("READY=")
        manager.hear("FDSTORE=")
        manager.socket.settimeout(0.3)
        self.assertRaises(TimeoutError, manager.hear, "WATCHDOG=1")


class Tracer:
    """Stops single threads of another process, as ptrace(2) can."""

    SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]

    def stop(self, thread):
        if self.libc.ptrace(self.SEIZE, thread, None, None) != 0 or self.libc.ptrace(self.INTERRUPT, thread, None, None) != 0:
            return False
        os.waitpid(thread, self.WALL)
        return True

    def go_on(self, thread):
        self.libc.ptrace(self.DETACH, thread, None, None)


def passing(*sockets):
    """For preexec_fn: what sd_listen_fds(3) expects."""

    def pass_them():
        copies = [os.dup2(each.fileno(), 100 + number, inheritable=False) for number, each in enumerate(sockets)]
        for number, each in enumerate(copies):
            os.dup2(each, 3 + number)
            os.set_inheritable(3 + number, True)
        os.environ["LISTEN_PID"] = str(os.getpid())

    return pass_them


class Sockets(Case):
    def listening(self, kind=socket.SOCK_STREAM):
        each = socket.socket(socket.AF_INET, kind)
        self.addCleanup(each.close)
        each.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            each.listen()
        return each, each.getsockname()[1]

    def start_with(self, sockets, *arguments, environment=os.environ):
        # The variable is the child's: exec takes the environment of the process as it is then.
        script = "import os,sys; os.environ['LISTEN_PID'] = str(os.getpid()); os.execv(sys.argv[1], sys.argv[1:])"
        return self.start(*arguments, env={**environment, "LISTEN_FDS": str(len(sockets))}, close_fds=False, preexec_fn=passing(*sockets),
                          before=("python3", "-c", script), ports=())

    def test_that_the_service_manager_has_opened_are_served(self):
        (rdma, rdma_port), (tcp, tcp_port) = self.listening(), self.listening()
        early = socket.create_connection(("127.0.0.1", tcp_port))
        self.addCleanup(early.close)
        server = self.start_with([tcp, rdma], "--rdma-port", str(rdma_port), "--tcp-port", str(tcp_port), "--no-udp")
        self.assertEqual((server.rdma_port, server.tcp_port), (rdma_port, tcp_port))
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)
        self.assertEqual(server.log(), "")
        self.assertEqual(server.end(), 0)
        # They are the manager's, and wait for the next server.
        socket.create_connection(("127.0.0.1", tcp_port)).close()

    def test_that_fit_no_listener_are_named_and_closed(self):
        other, port = self.listening()
        server = self.start_with([other], "--rdma-port", "0", "--tcp-port", "0")
        self.assertIn(f"InheritedSocketUnused 127.0.0.1:{port}", server.log())

    def test_are_kept_by_the_service_manager_until_the_next_server(self):
        manager = self.manager()
        server = self.start(env=manager.environment)
        manager.hear("READY=")
        self.assertEqual(manager.hear("FDSTOREREMOVE=")["FDNAME"], "stag")
        self.assertEqual(manager.hear("FDSTORE=")["FDNAME"], "stag")
        kept = [socket.socket(fileno=os.dup(each)) for each in manager.kept]
        for each in kept:
            self.addCleanup(each.close)
        ports = sorted(each.getsockname()[1] for each in kept if each.type == socket.SOCK_STREAM)
        self.assertEqual(ports, sorted([server.rdma_port, server.tcp_port]))
        self.assertEqual(server.end(), 0)
        again = self.start_with(kept, "--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port))
        self.assertEqual(stag("ls", again.url("/x")).returncode, 0)
        self.assertEqual(again.log(), "")

    def test_that_are_kept_are_in_nobodys_way_when_the_addresses_have_changed(self):
        """The manager has copies of them until it is told to forget them."""
        manager = self.manager()
        server = self.start(env=manager.environment)
        ports = ("--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port))
        for listen in ("0.0.0.0", "127.0.0.1"):
            manager.hear("FDSTORE=")
            self.assertEqual(server.end(), 0)
            kept = [socket.socket(fileno=each) for each in manager.kept]
            manager.kept = []

            def forget():
                manager.hear("FDSTOREREMOVE=")
                for each in kept:
                    each.close()

            forgetting = threading.Thread(target=forget, daemon=True)
            forgetting.start()
            server = self.start_with(kept, "--listen", listen, *ports, environment=manager.environment)
            forgetting.join()
            self.assertEqual(stag("ls", server.tcp("/x")).returncode, 0)


class Reloads(Case):
    # Values of settings that do not take "7", other ones than they have without.
    VALUES = {
        "false": ("callbacks", "nfs4", "rdma-callbacks", "udp"),
        "true": ("crc", "manage-gids", "rpcbind"),
        "70": ("lease", "nfs4-operations", "nfs4-states", "nfs4-states-per-address", "nfs4-states-per-client"),
        '"8K"': ("inline-threshold", "nfs4-cached-reply"),
        '"80M"': ("capture-max", "max-bytes", "max-chunk-bytes", "max-connection-bytes", "nfs4-caches"),
        '"192.0.2.0/24"': ("callback-network",),
        '"debug"': ("log-level",), '"json"': ("log-format",), '"127.0.0.0/8"': ("allow", "copy-from", "trace-client"),
        '"127.0.0.1:9"': ("metrics",), '"verbs"': ("fabric",), '"names"': ("id-map",), '"ceph:nfs/a"': ("records",),
        f'"{grp.getgrgid(os.getgid()).gr_name}"': ("control-group",),
    }

    def reload(self, server, *lines):
        self.config(*lines)
        server.process.send_signal(signal.SIGHUP)

    def test_change_the_log_level_at_once(self):
        self.config('export = "/x=memory"', 'log-level = "warning"')
        server = self.start("--config", self.path, exports=())
        self.reload(server, 'export = "/x=memory"', 'log-level = "debug"')
        self.assertEqual(self.said(server, "settings: "), "(log-level = debug)")
        self.eventually(lambda: "SettingChanged SIGHUP" in server.log(), "it is logged")
        # What the file does not say any more is as it is without being asked for.
        self.reload(server, 'export = "/x=memory"')
        self.assertEqual(self.said(server, "settings: "), "(log-level = warning)")

    def test_change_which_calls_are_slow_and_whom_the_log_follows_at_once(self):
        quiet = ('export = "/x=memory"', "slow-call = 3600")
        self.config(*quiet)
        server = self.start("--config", self.path, exports=())

        def logged(reason):
            """How many lines of it a call adds; they are written before its answer is sent."""
            before = server.log().count(reason)
            self.assertEqual(stag("ls", server.tcp("/x") + "&version=3").returncode, 0)
            return server.log().count(reason) - before

        self.assertEqual((logged("CallSlow"), logged("begins: program")), (0, 0))
        self.reload(server, 'export = "/x=memory"', "slow-call = 0.000000001", 'trace-client = ["192.0.2.7", "127.0.0.0/8"]')
        self.assertEqual(self.said(server, "settings: "), "(slow-call = 0.000000001)")
        self.assertEqual(self.said(server, "settings: "), "(trace-client = 192.0.2.7, 127.0.0.0/8)")
        self.assertGreater(logged("begins: program"), 0)
        self.assertGreater(logged("CallSlow"), 0)
        self.reload(server, *quiet, 'trace-client = "192.0.2.7"')
        self.assertEqual(self.said(server, "settings: "), "(slow-call = 3600)")
        self.assertEqual(self.said(server, "settings: "), "(trace-client = 192.0.2.7)")
        self.assertEqual((logged("CallSlow"), logged("begins: program")), (0, 0))
        # What the file does not say any more is as it is without being asked for.
        self.reload(server, 'export = "/x=memory"')
        self.assertEqual(self.said(server, "settings: "), "(slow-call = 1)")
        self.assertEqual(self.said(server, "settings: "), "(trace-client = nobody)")
        self.assertNotIn("SettingNeedsRestart", server.log())

    def test_leave_slow_calls_and_whom_the_log_follows_as_the_command_line_says(self):
        self.config('export = "/x=memory"', "slow-call = 3600", 'trace-client = "192.0.2.7"')
        server = self.start("--config", self.path, "--slow-call", "0", "--trace-client", "127.0.0.1", exports=())
        self.reload(server, 'export = ["/x=memory", "/y=memory"]', 'slow-call = "0.000000001"')
        self.assertEqual(server.process.stdout.readline(), "exports: added /y\n")
        self.assertEqual(stag("ls", server.tcp("/y")).returncode, 0)
        self.assertIn("CallTraced", server.log())
        self.assertNotIn("CallSlow", server.log())

    def said(self, server, beginning):
        """The next line on standard output that begins so, in parentheses as the log has it."""
        while not (line := server.process.stdout.readline()).startswith(beginning):
            self.assertTrue(line)
        return f"({line[len(beginning):].strip()})"

    def test_name_each_setting_that_takes_a_restart(self):
        self.config('export = "/x=memory"', "loops = 1", "lease = 60")
        server = self.start("--config", self.path, exports=())
        self.reload(server, 'export = "/x=memory"', "loops = 2", "grace = 30")
        self.eventually(lambda: server.log().count("SettingNeedsRestart") == 3, "all are named")
        self.assertEqual(sorted(re.findall(r"\((\w+)\)$", server.log(), re.M)), ["grace", "lease", "loops"])
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)

    @staticmethod
    def settings_of_the_page():
        """Those that change at once, and those that take a restart."""
        with open(PAGE) as file:
            table = file.read().split("| setting | a change takes effect |\n", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
        # Each row by what is in its first column.
        return ([name for row in rows for name in re.findall("`([a-z0-9-]+)`", row.split("|")[1])] for rows in (table[:3], table[3:]))

    def test_take_on_each_setting_as_the_page_has_it(self):
        at_once, _ = self.settings_of_the_page()
        self.config('export = "/x=memory"', 'log-level = "info"')
        server = self.start("--config", self.path, exports=())
        values = {name: value for value, names in self.VALUES.items() for name in names}
        wanted = sorted(set(at_once) - {"export", "exports-file"})
        self.reload(server, 'export = "/x=memory"', *[f"{name} = {values.get(name, 7)}" for name in wanted])
        self.eventually(lambda: len(re.findall("SettingChanged|SettingNeedsRestart", server.log())) >= len(wanted), "all are named")
        self.assertNotIn("SettingNeedsRestart", server.log())
        self.assertEqual(sorted(self.said(server, "settings: ")[1:].split(" = ")[0] for _ in wanted), wanted)
        self.assertEqual(json.loads(stag("status", "--state", self.state, "--json").stdout)["server"]["settings_awaiting_restart"], [])

    def test_are_told_of_each_setting_as_the_page_has_it(self):
        at_once, restart = self.settings_of_the_page()
        # In the first row it is what stands in that file, in the last which file it is.
        at_once.remove("exports-file")
        options = re.findall(r"^ +(?:-\w,)?--([a-z0-9-]+)", stag("serve", "--help").stdout, re.M)
        self.assertEqual(sorted(at_once + restart), sorted(set(options) - {"help", "config", "take-over", "check"}))
        self.config('export = "/x=memory"')
        server = self.start("--config", self.path, exports=())
        values = {name: value for value, names in self.VALUES.items() for name in names}
        # The command line has the ports and the state directory, and wins.
        decided = ("rdma-port", "tcp-port", "state")
        changed = [f"{name} = {values.get(name, 7)}" for name in restart]
        self.reload(server, 'export = "/y=memory"', *changed, 'log-level = "info"')
        self.assertEqual(server.process.stdout.readline(), "exports: added /y; removed /x\n")
        self.assertEqual(self.said(server, "settings: "), "(log-level = info)")
        self.eventually(lambda: server.log().count("SettingNeedsRestart") >= len(restart) - len(decided), "all are named")
        named = re.findall(r"SettingNeedsRestart .*\(([a-z0-9-]+)\)$", server.log(), re.M)
        self.assertEqual(sorted(named), sorted(set(restart) - set(decided)))

    def test_are_listed_on_one_page(self):
        """A second list of what they change would be forgotten, and read."""
        at_once, _ = self.settings_of_the_page()
        at_once = [name for name in at_once if name not in ("export", "exports-file")]
        self.assertIn("stall-limit", at_once)
        folder = os.path.dirname(PAGE)
        texts = [("--help", words) for words in re.findall(r"^ +--config .*(?:\n {10,}.*)*", stag("serve", "--help").stdout, re.M)]
        self.assertEqual(len(texts), 1)
        for page in sorted(set(os.listdir(folder)) - {os.path.basename(PAGE)}):
            if page.endswith(".md"):
                with open(os.path.join(folder, page)) as file:
                    texts += [(page, item) for item in re.split(r"\n\n|\n *- ", file.read()) if "SIGHUP" in item]
        for where, text in texts:
            listed = [name for name in at_once if re.search(rf"(?<![\w-]){name}(?![\w-])", text)]
            self.assertLess(len(listed), 4, f"{where}: {text}")

    def test_leave_copies_from_other_servers_to_a_restart_where_no_callback_can_tell_of_their_end(self):
        self.config('export = "/x=memory"', "callbacks = false")
        server = self.start("--config", self.path, exports=())
        self.reload(server, 'export = "/x=memory"', 'copy-from = "192.0.2.1"')
        self.eventually(lambda: server.log().count("SettingNeedsRestart") == 2, "both are named")
        self.assertEqual(sorted(re.findall(r"\(([a-z-]+)\)$", server.log(), re.M)), ["callbacks", "copy-from"])

    def test_tell_which_build_runs(self):
        server = self.start("--metrics", "127.0.0.1:0")
        (metrics,) = [line.split(": ", 1)[1] for line in server.lines if line.startswith("metrics: ")]
        with urllib.request.urlopen(metrics, timeout=harness.PATIENCE) as answer:
            version, commit = re.search(r'^stag_build_info\{version="(.*)",commit="(.*)"\} 1$', answer.read().decode(), re.M).groups()
        build = f"stag {version} ({commit})" if commit else f"stag {version}"
        self.assertEqual(stag("--version").stdout, build + "\n")
        row = json.loads(stag("status", "--state", self.state, "--json").stdout)["server"]
        self.assertEqual((row["version"], row["commit"]), (version, commit))
        self.assertEqual(stag("status", "--state", self.state).stdout.partition(", up ")[0], build)

    def test_tell_each_time_what_awaits_a_restart_by_what_runs(self):
        self.config('export = "/x=memory"', 'max-bytes = "64M"')
        manager = self.manager()
        server = self.start("--config", self.path, "--metrics", "127.0.0.1:0", exports=(), env=manager.environment)
        manager.hear("READY=")
        (metrics,) = [line.split(": ", 1)[1] for line in server.lines if line.startswith("metrics: ")]

        def awaiting():
            """By the listing, in both of its forms, and the metric."""
            with urllib.request.urlopen(metrics, timeout=harness.PATIENCE) as answer:
                count = re.search(r"^stag_config_settings_awaiting_restart (\d+)$", answer.read().decode(), re.M)[1]
            listed = json.loads(stag("status", "--state", self.state, "--json").stdout)["server"]["settings_awaiting_restart"]
            self.assertEqual(int(count), len(listed))
            shown = re.search("^settings that take effect when the server is started again: (.*)$", stag("status", "--state", self.state).stdout, re.M)
            self.assertEqual(shown[1].split(", ") if shown else [], listed)
            return listed

        def reloaded(*lines):
            """The names in the log, in order."""
            before = len(server.log())
            self.reload(server, 'export = "/x=memory"', *lines)
            manager.hear("READY=")
            return re.findall(r"SettingNeedsRestart .*\(([a-z0-9-]+)\)$", server.log()[before:], re.M)

        self.assertEqual(awaiting(), [])
        for _ in range(2):
            self.assertEqual((reloaded('max-bytes = "128M"', "loops = 7"), awaiting()), (["loops", "max-bytes"], ["loops", "max-bytes"]))
        self.assertEqual((reloaded('max-bytes = "64M"', "loops = 7"), awaiting()), (["loops"], ["loops"]))
        self.assertEqual((reloaded('max-bytes = "64M"'), awaiting()), ([], []))
        # What is written otherwise, or is so without being asked for, is no other value.
        usual = ("nfs4 = true", "udp-port = 0", "lease = 90", 'listen = "127.0.0.1"', 'fabric = "iwarp"', 'log-level = "warning"')
        self.assertEqual((reloaded("max-bytes = 67108864", *usual), awaiting()), ([], []))
        self.assertNotIn("SettingChanged", server.log())
        self.assertEqual((reloaded("max-bytes = 67108864", "nfs4 = false"), awaiting()), (["nfs4"], ["nfs4"]))
        self.assertEqual((reloaded('max-bytes = "65536K"'), awaiting()), ([], []))

    def test_change_who_may_connect_at_once(self):
        self.config('export = "/x=memory"')
        server = self.start("--config", self.path, exports=())
        connected = socket.create_connection(("127.0.0.1", server.tcp_port), harness.PATIENCE)
        self.addCleanup(connected.close)
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)
        self.reload(server, 'export = "/x=memory"', 'allow = ["10.0.0.0/8"]')
        self.assertEqual(self.said(server, "settings: "), "(allow = 10.0.0.0/8)")
        # Whoever was connected is not any more.
        self.assertEqual(connected.recv(1), b"")
        for url in (server.url("/x"), server.tcp("/x")):
            self.assertEqual(stag("ls", "--timeout", "1", url).returncode, 1)
        self.reload(server, 'export = "/x=memory"')
        self.assertEqual(self.said(server, "settings: "), "(allow = all)")
        for url in (server.url("/x"), server.tcp("/x")):
            self.assertEqual(stag("ls", url).returncode, 0)
        self.assertNotIn("SettingNeedsRestart", server.log())

    def connected(self, port):
        made = socket.create_connection(("127.0.0.1", port), harness.PATIENCE)
        self.addCleanup(made.close)
        return made

    def is_refused(self, port):
        try:
            return self.connected(port).recv(1) == b""
        except ConnectionResetError:
            return True

    def test_change_how_many_connections_there_may_be_at_once(self):
        self.config('export = "/x=memory"', "connections-per-client = 1")
        server = self.start("--config", self.path, exports=())
        for port in (server.tcp_port, server.rdma_port):
            self.connected(port)
            self.assertTrue(self.is_refused(port))
        self.reload(server, 'export = "/x=memory"', "connections-per-client = 2")
        self.assertEqual(self.said(server, "settings: "), "(connections-per-client = 2)")
        for url in (server.url("/x"), server.tcp("/x")):
            self.assertEqual(stag("ls", url).returncode, 0)
        self.reload(server, 'export = "/x=memory"', "max-connections = 1")
        self.assertEqual(self.said(server, "settings: "), "(max-connections = 1)")
        # What the file does not say any more is as it is without being asked for.
        self.assertEqual(self.said(server, "settings: "), "(connections-per-client = 0)")
        for port in (server.tcp_port, server.rdma_port):
            self.assertTrue(self.is_refused(port))
        self.reload(server, 'export = "/x=memory"')
        self.assertEqual(self.said(server, "settings: "), "(max-connections = as preset)")
        for url in (server.url("/x"), server.tcp("/x")):
            self.assertEqual(stag("ls", url).returncode, 0)
        self.assertNotIn("SettingNeedsRestart", server.log())

    def test_leave_limits_as_the_command_line_says(self):
        self.config('export = "/x=memory"')
        server = self.start("--config", self.path, "--connections-per-client", "1", exports=())
        self.connected(server.tcp_port)
        self.reload(server, 'export = "/x=memory"', "connections-per-client = 2", 'allow = ["127.0.0.0/8"]')
        self.assertEqual(self.said(server, "settings: "), "(allow = 127.0.0.0/8)")
        self.assertTrue(self.is_refused(server.tcp_port))

    def test_change_the_format_of_the_log_at_once(self):
        common = ('export = "/x=memory"', 'log-level = "info"')
        self.config(*common)
        server = self.start("--config", self.path, exports=())
        self.reload(server, *common, 'log-format = "json"')
        self.assertEqual(self.said(server, "settings: "), "(log-format = json)")
        self.reload(server, *common, 'log-format = "json"', "lease = 60")
        self.eventually(lambda: "SettingNeedsRestart" in server.log() and server.log().endswith("\n"), "it is logged")
        lines = server.log().splitlines()
        first = next(i for i, line in enumerate(lines) if "SettingChanged" in line)
        self.assertIn("SettingNeedsRestart", [json.loads(line)["reason"] for line in lines[first:]])
        self.reload(server, *common)
        self.assertEqual(self.said(server, "settings: "), "(log-format = text)")
        self.eventually(lambda: "SettingChanged SIGHUP" in server.log(), "in words")

    def test_change_limits_of_version_4_and_of_chunks_at_once(self):
        self.config('export = "/x=memory"')
        server = self.start("--config", self.path, exports=())
        self.reload(server, 'export = "/x=memory"', 'max-chunk-bytes = "2M"', "nfs4-copies = 0", "nfs4-copies-per-client = 1", "nfs4-courtesy = 0")
        said = [self.said(server, "settings: ") for _ in range(4)]
        self.assertEqual(said, ["(max-chunk-bytes = 2M)", "(nfs4-copies = 0)", "(nfs4-copies-per-client = 1)", "(nfs4-courtesy = 0)"])
        self.assertNotIn("SettingNeedsRestart", server.log())

    def test_change_how_long_a_client_may_stall_and_the_last_calls_may_take(self):
        manager = self.manager()
        self.config('export = "/x=memory"', "stall-limit = 0", "drain = 1", "store-patience = 3")
        server = self.start("--config", self.path, exports=(), env=manager.environment)
        self.reload(server, 'export = "/x=memory"', "stall-limit = 1", "drain = 7", "store-patience = 3")
        self.assertEqual(self.said(server, "settings: "), "(drain = 7)")
        self.assertEqual(self.said(server, "settings: "), "(stall-limit = 1)")
        with socket.create_connection(("127.0.0.1", server.tcp_port), harness.PATIENCE) as stalled:
            stalled.sendall(b"\x80")  # of a record
            self.assertEqual(stalled.recv(1), b"")
        server.process.terminate()
        self.assertEqual(manager.hear("STOPPING=")["EXTEND_TIMEOUT_USEC"], "10000000")
        self.assertEqual(server.process.wait(harness.PATIENCE), 0)

    def test_say_nothing_of_what_the_command_line_decides(self):
        self.config('export = "/x=memory"', "loops = 1", 'log-level = "warning"')
        server = self.start("--config", self.path, "--loops", "1", "--log-level", "warning", exports=())
        self.reload(server, 'export = ["/x=memory", "/y=memory"]', "loops = 2", 'log-level = "debug"')
        self.assertEqual(server.process.stdout.readline(), "exports: added /y\n")
        self.assertEqual(server.log(), "")

    def test_of_a_file_with_a_mistake_change_nothing(self):
        self.config('export = "/x=memory"')
        server = self.start("--config", self.path, exports=())
        for line, sentence in (
            ('log-level = "loud"', f"{self.path}:2: --log-level: loud not in"),
            ("slow-call = -0.5", "--slow-call '-0.5' is no number"),
            ("slow-call = [1, 2]", f"{self.path}:2: 'slow-call' must be"),
            ('trace-client = "anna"', "--trace-client 'anna' is no address"),
            # Settings that take a restart, which would fail.
            ('max-connections = "lots"', f"{self.path}:2: "),
            ("lease = 5", f"{self.path}:2: "),
            ('nfs4 = "maybe"', f"{self.path}:2: 'nfs4' must be true or false"),
            ('allow = "not-a-network"', "--allow 'not-a-network' is no network"),
            ('fabric = ["iwarp", "iwarp"]', "--fabric names each fabric once"),
            ('control-group = "no-such-group"', "there is no group 'no-such-group'"),
        ):
            before = len(server.log())
            self.reload(server, 'export = "/y=memory"', line)
            self.eventually(lambda before=before: re.search("ExportsReloadFailed .*\\n", server.log()[before:]), f"it is logged: {line}")
            self.assertIn(sentence, server.log()[before:])
            self.assertNotIn("SettingNeedsRestart", server.log())
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)
        self.assertEqual(stag("ls", server.url("/y")).returncode, 1)

    def test_in_progress_are_waited_for_when_the_server_ends(self):
        manager = self.manager()
        self.config("loops = 1")
        pipe = harness.SilentPipe(self)
        server = self.start("--config", self.path, env=manager.environment, **pipe.passed)
        self.addCleanup(server.errors.close)
        self.addCleanup(server.process.stdout.close)
        pipe.replace(self.path)
        server.process.send_signal(signal.SIGHUP)
        manager.hear("RELOADING=")
        server.process.send_signal(signal.SIGHUP)
        server.process.terminate()
        manager.hear("STOPPING=")
        pipe.end(b"loops = 2\n")
        self.assertEqual(server.process.wait(harness.PATIENCE), 0)
        self.assertIn("SettingNeedsRestart", server.log())
        manager.socket.setblocking(False)
        self.assertRaises(BlockingIOError, manager.hear, "READY=")

    def test_do_not_end_a_server_whose_exports_are_on_the_command_line(self):
        self.config("loops = 1")
        server = self.start("--config", self.path)
        self.reload(server, "loops = 2")
        self.eventually(lambda: "SettingNeedsRestart" in server.log(), "it is read")
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)


class ReloadsUnderVersion4(nfs4_client.Case):
    """What clients hold of an export that goes and comes back."""

    STALE, DENIED = 70, 10010

    def reload(self, server, *exports):
        with open(self.path, "w") as file:
            file.write("export = [" + ", ".join(f'"{each}"' for each in exports) + "]\n")
        if server is not None:
            server.process.send_signal(signal.SIGHUP)
            while not (line := server.process.stdout.readline()).startswith("exports: "):
                self.assertTrue(line)

    def test_leave_locks_where_they_are(self):
        self.path = os.path.join(self.folder, "stag.toml")
        data, other = f"/data={self.data},no_root_squash", "/other=memory"
        self.reload(None, data, other)
        server = harness.Server([], self.state, ("--config", self.path))
        self.addCleanup(self.kill, server)
        anna, bert = self.ready_client(server), self.ready_client(server, b"bert")
        status, stateid, handle = anna.create_file(b"file")
        self.assertEqual((status, anna.lock(handle, stateid, 0)), (OK, OK))
        at_file = words(nfs4_client.PUTFH) + nfs4_client.opaque(handle)
        self.reload(server, other)
        self.assertEqual(anna.in_session(at_file)[0], self.STALE)
        self.reload(server, data, other)
        self.assertEqual(anna.in_session(at_file)[0], OK)
        status, stateid, handle = bert.create_file(b"file")
        self.assertEqual((status, bert.lock(handle, stateid, 0)), (OK, self.DENIED))


if __name__ == "__main__":
    harness.main()
