"""`stag serve`: listeners, options, configuration files, limits, signals and restarts."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import harness
from harness import Proxy, Server, stag

FREE_PORTS = ("--rdma-port", "0", "--tcp-port", "0")


class Help(unittest.TestCase):
    def test_names_CephFS_where_this_program_has_it(self):
        with tempfile.TemporaryDirectory() as state:
            tried = stag("serve", "--state", state, *FREE_PORTS, "--export", f"/x=ceph:/?conf={state}/none")
        self.assertEqual(tried.returncode, 1)
        shown = stag("serve", "--help").stdout
        self.assertEqual("ceph:" in shown, "was built without CephFS" not in tried.stderr, tried.stderr)

    def test_says_what_is_the_case_without_an_option(self):
        shown = stag("serve", "--help").stdout
        self.assertRegex(shown, r"--slow-call SECONDS .*\[1\]\n")
        self.assertIn("--config /etc/stag/stag.toml\n", shown)


class Case(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-serve-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.served = os.path.join(self.work, "served")
        self.state = os.path.join(self.work, "state")
        os.mkdir(self.served)

    def start(self, *arguments, exports=("/x=memory",), **options):
        server = Server(exports, self.state, arguments, **options)
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def refused(self, code, sentence, *arguments, **options):
        """`stag serve` ends by itself, with one line that says why."""
        result = stag("serve", "--state", self.state, *arguments, **options)
        self.assertEqual(result.returncode, code, (result.stdout, result.stderr))
        self.assertIn(sentence, result.stderr)
        self.assertNotIn("ready:", result.stdout)
        return result

    def eventually(self, condition, what):
        end = time.monotonic() + harness.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)


class Listening(Case):
    def test_prints_a_URL_for_each_listener_that_works_as_it_is(self):
        server = self.start(exports=("/x/deep=memory", "/y=memory"))
        ready = [line.split()[1:3] for line in server.lines if line.startswith("ready: ")]
        self.assertEqual([transport for transport, _ in ready], ["RPC-over-RDMA", "UDP", "TCP"])
        self.assertRegex(ready[1][1], r"^127\.0\.0\.1:\d+$")
        for url in server.urls.values():
            self.assertEqual(stag("ls", url).returncode, 0, url)
        self.assertEqual(stag("ls", server.url("/y")).returncode, 0)

    def test_is_on_the_loopback_address_unless_told(self):
        server = self.start()
        for port in (server.rdma_port, server.tcp_port):
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", port))
        open_to_all = Server(["/x=memory"], self.state + "2", ("--listen", "0.0.0.0"))
        self.assertTrue(any("0.0.0.0" in line and "trusted network" in line for line in open_to_all.lines))
        self.assertFalse(any("trusted network" in line for line in server.lines))
        for port in (open_to_all.rdma_port, open_to_all.tcp_port):
            socket.create_connection(("127.0.0.2", port)).close()
        self.assertEqual(open_to_all.end(), 0)

    def test_is_on_every_IPv4_and_IPv6_address_where_both_wildcards_are_named(self):
        server = self.start("--listen", "0.0.0.0", "--listen", "::", "--loops", "2")
        for host in ("127.0.0.2", "::1"):
            for port in (server.rdma_port, server.tcp_port):
                socket.create_connection((host, port)).close()

    def test_is_on_every_address_named(self):
        server = self.start("--listen", "127.0.0.1", "--listen", "127.0.0.3")
        # Port 0 gives each its own.
        ready = [server.process.stdout.readline() for _ in range(2)]
        url = re.search(r"RDMA +(\S+127\.0\.0\.3\S+)", ready[0])[1]
        self.assertEqual(stag("ls", url).returncode, 0, url)

    def test_says_that_a_port_is_taken(self):
        server = self.start()
        for option, port in (("--rdma-port", server.rdma_port), ("--tcp-port", server.tcp_port)):
            result = stag("serve", "--state", self.state + "2", "--export", "/x=memory", *FREE_PORTS, option, str(port))
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"127.0.0.1:{port} ({option}): the port is taken; stop the program", result.stderr)

    def test_says_that_an_address_is_not_of_this_machine(self):
        self.refused(1, "the address is not one of this machine", "--export", "/x=memory", "--listen", "192.0.2.1", *FREE_PORTS)

    def test_listens_nowhere_if_it_is_told_no_address(self):
        self.refused(2, "--listen '' is no address; 0.0.0.0 or :: stand for all", "--export", "/x=memory", "--listen", "", *FREE_PORTS)

    def test_ends_well_on_SIGTERM_and_SIGINT_with_clients_there(self):
        for end in (subprocess.Popen.terminate, lambda process: process.send_signal(2)):
            server = self.start()
            connections = [socket.create_connection(("127.0.0.1", port)) for port in (server.rdma_port, server.tcp_port)]
            self.assertEqual(stag("ls", server.url("/x")).returncode, 0)
            end(server.process)
            self.assertEqual(server.process.wait(harness.PATIENCE), 0)
            server.end()
            for connection in connections:
                connection.close()

    def test_is_not_brought_down_by_a_crowd_of_connections(self):
        server = self.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48)))
        crowd = [socket.create_connection(("127.0.0.1", server.tcp_port)) for _ in range(80)]
        for each in crowd:
            self.addCleanup(each.close)
        self.eventually(lambda: re.search("TooManyConnections|TooManyOpenFiles", server.log()), "the limit is reached")
        self.assertEqual(stag("ping", "-c", "1", server.url("/")).returncode, 0)
        for each in crowd:
            each.close()
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)
        self.assertEqual(server.end(), 0)

    def test_raises_the_limit_of_open_files(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        server = self.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)))
        with open(f"/proc/{server.process.pid}/limits") as limits:
            soft, = [line.split()[3] for line in limits if line.startswith("Max open files")]
        self.assertEqual(soft, "unlimited" if hard == resource.RLIM_INFINITY else str(hard))


class Options(Case):
    def test_that_make_no_sense_exit_with_2(self):
        for sentence, arguments in (
            ("nothing to serve", []),
            ("is not understood; write /name=DIR", ["--export", "data"]),
            ("is not understood; write /name=DIR", ["--export", "/x="]),
            ("export option 'rx' is not known", ["--export", "/x=memory,rx"]),
            ("--export /a/../b", ["--export", "/a/../b=memory"]),
            ("--export /x", ["--export", "/x=memory", "--export", "/x=memory"]),
            ("--rdma-port", ["--export", "/x=memory", "--rdma-port", "65536"]),
            ("--log-level", ["--export", "/x=memory", "--log-level", "loud"]),
        ):
            self.refused(2, sentence, *arguments)

    def test_of_what_is_observed_are_checked(self):
        self.refused(2, "--slow-call 'soon' is no number of seconds", "--export", "/x=memory", "--slow-call", "soon")
        self.refused(2, "--slow-call 'inf' is no number of seconds", "--export", "/x=memory", "--slow-call", "inf")
        self.refused(2, "--slow-call '-1' is no number of seconds", "--export", "/x=memory", "--slow-call=-1")
        self.refused(2, "--trace-client 'anna' is no address", "--export", "/x=memory", "--trace-client", "anna")
        self.start("--no-rpcbind", "--fabric", "iwarp")

    def test_of_fabrics_name_each_once_and_need_a_device(self):
        self.refused(2, "opa not in {iwarp,verbs}", "--export", "/x=memory", "--fabric", "opa")
        self.refused(2, "--fabric names each fabric once", "--export", "/x=memory", "--fabric", "iwarp", "--fabric", "iwarp")
        if os.path.exists("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
            self.skipTest("this machine has an RDMA device")
        result = self.refused(1, "(--fabric verbs, --verbs-port): ", "--export", "/x=memory", "--fabric", "iwarp", "--fabric", "verbs",
                              "--verbs-port", "20099", *FREE_PORTS)
        self.assertRegex(result.stderr, "no RDMA device|rdma-core, which is not installed")

    def test_that_name_no_folder_exit_with_1(self):
        self.refused(1, "/nonexistent", "--export", "/x=/nonexistent", *FREE_PORTS)

    def test_of_exports_are_obeyed(self):
        server = self.start(exports=(f"/ro={self.served},ro", f"/squash={self.served},all_squash,anonuid=12,anongid=34", "/fresh=memory"))
        self.assertIn("the export is read-only", stag("touch", server.url("/ro/f")).stderr)
        fresh, = json.loads(stag("stat", "--json", server.url("/fresh")).stdout)
        self.assertEqual(fresh["mode"], 0o1777)
        if os.geteuid() == 0:
            os.chmod(self.served, 0o777)
            os.chmod(self.work, 0o755)
            self.assertEqual(stag("touch", server.url("/squash/f")).returncode, 0)
            made = os.stat(os.path.join(self.served, "f"))
            self.assertEqual((made.st_uid, made.st_gid), (12, 34))

    def test_log_format_json_gives_one_object_a_line(self):
        server = self.start("--log-level", "debug", "--log-format", "json")
        bad = socket.create_connection(("127.0.0.1", server.rdma_port))
        bad.sendall(b'no MPA at all, but "quotes"' * 10)
        self.eventually(lambda: "MpaKeyWrong" in server.log(), "the line is there")
        lines = [json.loads(line) for line in server.log().splitlines()]
        (line,) = [line for line in lines if line["reason"] == "MpaKeyWrong"]
        self.assertEqual(line["level"], "warning")
        self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT")
        self.assertIn("127.0.0.1:", line["where"])
        bad.close()

    def test_log_level_decides_what_is_logged(self):
        server = self.start("--log-level", "error")
        with socket.create_connection(("127.0.0.1", server.rdma_port)) as bad:
            bad.sendall(b"no MPA at all" * 10)
            # It ends when the server has judged it.
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(bad.recv(1), b"")
        self.assertEqual(server.log(), "")


class ConfigFiles(Case):
    def config(self, text):
        path = os.path.join(self.work, "stag.toml")
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_can_say_all_that_the_flags_can(self):
        flags = set(re.findall(r"--([a-z0-9-]+)", stag("serve", "--help").stdout.split("Options:")[1].split("Example")[0]))
        flags -= {"help", "config", "no-rpcbind", "no-udp", "no-nfs4", "no-callbacks",
                  "no-rdma-callbacks"}
        text = f"""
            export = ["/a=memory,ro", "/b={self.served}"]
            exports-file = ""
            listen = "127.0.0.1"
            allow = ["127.0.0.0/8", "::1"]
            connections-per-client = 100
            max-connections = 1000
            max-reads = 16
            max-chunk-bytes = "4MiB"
            max-connection-bytes = 33554432
            max-bytes = "8G"
            stall-limit = 30
            store-patience = 10
            drain = 10
            take-over = false
            check = false
            inline-threshold = 4096
            credits = 32
            crc = true
            rdma-port = 0
            tcp-port = 0
            udp-port = 0
            udp = true
            nfs4 = true
            callbacks = true
            rdma-callbacks = true
            callback-network = ["192.0.2.0/24", "2001:db8::/32"]
            copy-from = ["192.0.2.0/24,192.0.2.77", "2001:db8::/32"]
            control = ""
            control-group = ""
            id-map = "numbers"
            id-domain = "example.net"
            manage-gids = true
            keytab = ""
            gss-contexts = 1000
            lease = 60
            grace = 30
            records = ""
            nfs4-clients = 100
            nfs4-clients-per-address = 30
            nfs4-unconfirmed = 50
            nfs4-sessions = 4
            nfs4-slots = 32
            nfs4-operations = 32
            nfs4-cached-reply = 2048
            nfs4-caches = 16777216
            nfs4-states-per-client = 1000
            nfs4-states = 10000
            nfs4-states-per-address = 5000
            nfs4-courtesy = 3600
            nfs4-delegations = 100
            nfs4-local-delegations = 50
            nfs4-copies = 16
            nfs4-copies-per-client = 2
            fabric = ["iwarp"]
            verbs-port = 20099
            device = ""
            rpcbind = false
            rdma-netid = "rdma"
            state = "{self.state}"
            loops = 1
            busy-poll = 50
            log-level = "debug"
            log-format = "json"
            metrics = ""
            capture = ""
            capture-max = "1G"
            slow-call = "0.5"
            trace-client = ["192.0.2.1"]
        """
        self.assertEqual(flags, set(re.findall(r"^ *([a-z0-9-]+) =", text, re.M)))
        server = Server([], None, ("--config", self.config(text)), ports=())
        self.assertIn("export: /a = memory, read-only", server.lines)
        self.assertIn(f"export: /b = {self.served}", server.lines)
        self.assertEqual(stag("ls", server.url("/b")).returncode, 0)
        self.assertIn("read-only", stag("touch", server.url("/a/f")).stderr)
        self.assertTrue(os.path.exists(os.path.join(self.state, "handle.key")))
        self.assertIn("debug", [json.loads(line)["level"] for line in server.log().splitlines()])
        self.assertEqual(server.end(), 0)

    def test_give_way_to_the_command_line(self):
        path = self.config('export = "/file=memory"\nlog-level = "bogus"\n')
        server = self.start("--config", path, "--log-level", "off", exports=("/flag=memory",))
        self.assertIn("export: /flag = memory", server.lines)
        self.assertNotIn("export: /file = memory", server.lines)

    def test_with_mistakes_name_the_line(self):
        for text, line, sentence in (
            ('export = "/x=memory"\n\ncolour = "red"\n', 3, "there is no setting 'colour'"),
            ('export = "/x=memory"\nrdma-port = = 1\n', 2, ""),
            ('export = "/x=memory"\nrdma-port = 70000\n', 2, "70000"),
            ('rdma-port = "many"\n', 1, "many"),
            ('# comment\nlog-level = "loud"\n', 2, "loud"),
            ("[section]\nx = 1\n", 1, "there is no setting 'section'"),
            ("[log-level]\nx = 1\n", 1, "'log-level' must be"),
            ('export = "/x=memory"\nrpcbind = 1\n', 2, "'rpcbind' must be true or false"),
            ('export = "/x=memory"\ncrc = "yes"\n', 2, "'crc' must be true or false"),
            ('export = "/x=memory"\nlog-level = false\n', 2, "'log-level' must be a text or a number"),
            ('export = "/x=memory"\nloops = [1, 2]\n', 2, "'loops' must be a text or a number"),
            ('export = "/x=memory"\nloops = 1.5\n', 2, "1.5"),
            ('export = "/x=memory"\ncapture-max = 0.5\n', 2, "0.5"),
            ('export = "/x=memory"\nrpcbind = 1.0\n', 2, "'rpcbind' must be true or false"),
            ('export = "/x=memory"\nlog-level = 2026-11-27\n', 2, "'log-level' must be a text, a number, true or false"),
            ('export = 1.5\n', 1, "export '1.5': is not understood"),
            ('[[export]]\npath = "/x"\nfolder = "memory"\nfsid = 0.5\n', 4, "0.5"),
            ('export = "/x=memory"\nlisten = [true]\n', 2, "'listen' must be a text or an array of texts"),
            ('export = "/x=memory"\nno-udp = true\n', 2, "there is no setting 'no-udp'"),
            ('\nconfig = "other.toml"\n', 2, "there is no setting 'config'"),
        ):
            path = self.config(text)
            result = self.refused(2, f"{path}:{line}: ", "--config", path)
            self.assertIn(sentence, result.stderr)

    def test_that_cannot_be_read_say_why(self):
        self.refused(2, "No such file or directory", "--config", "/nonexistent.toml")


class State(Case):
    def test_of_a_running_server_is_not_shared(self):
        self.start()
        # Another directory would make the handles of all clients stale.
        result = self.refused(1, "another 'stag serve' is using it; it may be ending: wait for that, or replace it by --take-over (",
                              "--export", "/x=memory", *FREE_PORTS)
        self.assertNotIn("choose one with --state", result.stderr)

    def test_that_cannot_be_made_says_so(self):
        result = stag("serve", "--export", "/x=memory", "--state", "/proc/no/such")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--state", result.stderr)

    def test_that_is_damaged_is_no_new_key(self):
        self.assertEqual(self.start().end(), 0)
        with open(os.path.join(self.state, "handle.key"), "w") as key:
            key.write("damaged")
        self.refused(1, "handle.key", "--export", "/x=memory", *FREE_PORTS)

    def test_keeps_handles_good_over_a_restart_in_the_middle_of_a_copy(self):
        content = os.urandom(30 << 20)
        with open(os.path.join(self.served, "f"), "wb") as file:
            file.write(content)
        exports = (f"/x={self.served},no_root_squash",)
        first = self.start(exports=exports)
        proxy = Proxy(first.rdma_port, "down", 10 << 20)
        self.addCleanup(proxy.cut)
        target = os.path.join(self.work, "copy")
        copy = subprocess.Popen([harness.STAG, "cp", first.url("/x/f", port=proxy.port), target], stderr=subprocess.PIPE, text=True)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        self.assertEqual(first.end(), 0)
        self.start(exports=exports, ports=("--rdma-port", str(first.rdma_port), "--tcp-port", str(first.tcp_port)))
        proxy.left = 1 << 40
        proxy.released.set()
        self.assertEqual((copy.communicate(timeout=harness.PATIENCE)[1], copy.returncode), ("", 0))
        with open(target, "rb") as file:
            self.assertEqual(file.read(), content)


def drop_capabilities(*capabilities):
    """What this process may no more, nor what it becomes (PR_CAPBSET_DROP)."""
    libc = ctypes.CDLL(None)
    for capability in capabilities:
        libc.prctl(24, capability, 0, 0, 0)


def become_the_only_user():
    """In a user namespace that has no other one (CLONE_NEWUSER)."""
    if ctypes.CDLL(None).unshare(0x10000000) != 0:
        os._exit(harness.SKIPPED)
    for name, text in (("setgroups", "deny"), ("uid_map", "0 0 1"), ("gid_map", "0 0 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


class Signals(Case):
    def test_what_nohup_has_it_ignore_stays_ignored(self):
        server = self.start(preexec_fn=harness.ignore_terminal)
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(harness.is_ignored(server.process, signal.SIGHUP))
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)
        server.process.send_signal(signal.SIGINT)
        self.assertEqual(server.process.wait(harness.PATIENCE), 0, "as by a script that began it with '&'")

    def test_with_files_SIGHUP_is_no_less_a_request_to_read_them(self):
        config = os.path.join(self.work, "stag.toml")
        with open(config, "w") as file:
            print('export = "/x=memory"', file=file)
        server = self.start("--config", config, exports=(), preexec_fn=harness.ignore_terminal)
        server.process.send_signal(signal.SIGHUP)
        while not (line := server.process.stdout.readline()).startswith("exports: "):
            self.assertTrue(line, "it is there")


@unittest.skipIf(os.geteuid() != 0, "is about what root may give up")
class WithoutRoot(Case):
    CAP_SETGID, CAP_SETUID = 6, 7

    def test_folders_are_not_served_by_a_root_that_would_do_everything_for_everybody(self):
        for capability in (self.CAP_SETGID, self.CAP_SETUID):
            with self.subTest(capability=capability):
                self.refused(1, "CAP_SETUID and CAP_SETGID", "--export", f"/x={self.served}", *FREE_PORTS,
                             preexec_fn=lambda lost=capability: drop_capabilities(lost))

    def test_memory_is_served_by_a_root_that_cannot_act_as_others(self):
        server = self.start(exports=("/x=memory",), preexec_fn=lambda: drop_capabilities(self.CAP_SETGID, self.CAP_SETUID))
        self.assertEqual(stag("touch", server.url("/x/f")).returncode, 0)

    def test_the_root_of_a_namespace_without_other_users_serves_as_itself(self):
        if subprocess.run(["true"], preexec_fn=become_the_only_user, check=False).returncode != 0:
            self.skipTest("no user namespaces here")
        server = self.start(exports=(f"/x={self.served}",), preexec_fn=become_the_only_user)
        self.assertTrue(any("everything is done as user 0" in line for line in server.lines), server.lines)
        self.assertEqual(stag("touch", server.url("/x/f")).returncode, 0)

    def test_a_folder_that_the_servers_user_may_not_read_is_named(self):
        shut = os.path.join(self.work, "shut")
        os.mkdir(shut, 0o700)
        os.chmod(self.work, 0o777)
        drop = {"user": 65534, "group": 65534, "extra_groups": []}
        try:
            subprocess.run([harness.STAG, "--version"], stdout=subprocess.DEVNULL, check=True, **drop)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("the program is not for everybody")
        server = self.start(exports=(f"/shut={shut}", f"/open={self.served}", "/memory=memory"), **drop)
        self.assertRegex(server.log(), rf"(?m)^.* warning +ExportFolderClosed export /shut: .*\({shut}, user 65534\)$")
        self.assertEqual(server.log().count("ExportFolderClosed"), 1)
        self.assertIn("\ntrouble: 1 times ExportFolderClosed: ", stag("status", "--state", self.state).stdout)
        self.assertEqual(server.end(), 0)
        self.assertNotIn("ExportFolderClosed", self.start(exports=(f"/shut={shut}",)).log())

    def test_an_overlay_over_several_file_systems_is_named(self):
        low, above, overlay = (os.path.join(self.work, name) for name in ("low", "above", "overlay"))
        for folder in (low, above, overlay):
            os.mkdir(folder)
        pathlib.Path(low, "file").touch()
        if subprocess.run(["mount", "-t", "tmpfs", "none", above], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no right to mount")
        self.addCleanup(subprocess.run, ["umount", "-l", above], check=True)
        for folder in ("upper", "work"):
            os.mkdir(os.path.join(above, folder))
        layers = f"lowerdir={low},upperdir={above}/upper,workdir={above}/work,xino="
        for xino, named in (("off", True), ("on", False)):
            if subprocess.run(["mount", "-t", "overlay", "none", "-o", layers + xino, overlay], stderr=subprocess.DEVNULL, check=False).returncode != 0:
                self.skipTest("no overlays here")
            try:
                server = self.start(exports=(f"/o={overlay}",))
                line = rf"(?m)^.* warning +ExportFilesUnserved export /o: .*\({overlay}/file\)$"
                self.assertEqual(re.search(line, server.log()) is not None, named, server.log())
                self.assertEqual(server.end(), 0)
            finally:
                subprocess.run(["umount", "-l", overlay], check=True)

    def test_everything_is_done_as_the_servers_user_and_it_says_so(self):
        for path in (self.work, self.served):
            os.chown(path, 65534, 65534)
        drop = {"user": 65534, "group": 65534, "extra_groups": []}
        try:
            subprocess.run([harness.STAG, "--version"], stdout=subprocess.DEVNULL, check=True, **drop)
        except (PermissionError, subprocess.CalledProcessError):
            self.skipTest("the program lies where only root may read")
        server = self.start(exports=(f"/x={self.served}",), **drop)
        self.assertTrue(any("not run by root, so everything is done as user 65534" in line for line in server.lines), server.lines)
        self.assertEqual(stag("touch", server.url("/x/f")).returncode, 0)
        self.assertEqual(os.stat(os.path.join(self.served, "f")).st_uid, 65534)


if __name__ == "__main__":
    harness.main()
