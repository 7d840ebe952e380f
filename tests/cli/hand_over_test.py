"""One `stag serve` takes the place of another under load, and one that ends finishes its calls: no client sees an error."""
import contextlib
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
from functools import partialmethod

import harness
from exports_test import mounting
from harness import Proxy, Server, SilentPipe, stag
from nfs4_client import NLM_GRANTED, OK, PUTROOTFH, Client, nlm_lock, nlm_unlock, words

GRACE = 10013
GETATTR, FATTR4_CHANGE = 9, 3


class Case(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-hand-over-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.state = os.path.join(self.work, "state")
        self.served = os.path.join(self.work, "served")
        os.mkdir(self.served)
        self.exports = (f"/x={self.served},no_root_squash",)

    def start(self, *arguments, **options):
        server = Server(self.exports, self.state, arguments, **options)
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def successor(self, server, *arguments):
        """Serves when this returns; its predecessor has ended, or is about to."""
        ports = ("--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port))
        return self.start("--take-over", *arguments, ports=ports)

    def ended(self, server):
        """Its exit code and its log."""
        code, log = server.process.wait(harness.PATIENCE), server.log()
        server.end()
        return code, log

    def eventually(self, condition, what):
        end = time.monotonic() + harness.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)

    def tree(self, files=250, size=3000):
        folder = os.path.join(self.work, "tree")
        os.mkdir(folder)
        for number in range(files):
            with open(os.path.join(folder, f"f{number}"), "wb") as file:
                file.write(os.urandom(size))
        return folder


class TakingOver(Case):
    COPIES = 6

    def under_load(self, version, transport):
        """The grace period is short: with clients of version 4.0, which do not say when they have reclaimed all, it lasts to its end."""
        grace = ("--grace", "15")
        server = self.start(*grace)
        tree = self.tree()
        url = (server.url("/x") if transport == "rdma" else server.tcp("/x")) + f"&version={version}"
        to = url.replace("/x?", "/x/to$i?").replace("&", "\\&").replace("?", "\\?")
        script = f"for i in $(seq {self.COPIES}); do '{harness.STAG}' cp -r '{tree}' {to} || exit 1; done"
        load = subprocess.Popen(["sh", "-c", script], stderr=subprocess.PIPE, text=True)
        followed = 0
        while load.poll() is None and followed < 3:
            following = self.successor(server, *grace)
            self.assertEqual(self.ended(server)[0], 0)
            server = following
            followed += load.poll() is None
        self.assertEqual((load.communicate(timeout=harness.PATIENCE)[1], load.returncode), ("", 0))
        self.assertGreater(followed, 0, "all was copied before a server had followed")
        for number in range(1, self.COPIES + 1):
            copied = os.path.join(self.served, f"to{number}")
            self.assertEqual(sorted(os.listdir(tree)), sorted(os.listdir(copied)))
            for name in os.listdir(tree):
                with open(os.path.join(tree, name), "rb") as ours, open(os.path.join(copied, name), "rb") as theirs:
                    self.assertTrue(ours.read() == theirs.read(), (copied, name))
        self.assertEqual(server.end(), 0)

    test_in_the_middle_of_a_copy_of_version_3_over_RDMA = partialmethod(under_load, "3", "rdma")
    test_in_the_middle_of_a_copy_of_version_3_over_TCP = partialmethod(under_load, "3", "tcp")
    test_in_the_middle_of_a_copy_of_version_4_0_over_RDMA = partialmethod(under_load, "4.0", "rdma")
    test_in_the_middle_of_a_copy_of_version_4_0_over_TCP = partialmethod(under_load, "4.0", "tcp")
    test_in_the_middle_of_a_copy_of_version_4_1_over_RDMA = partialmethod(under_load, "4.1", "rdma")
    test_in_the_middle_of_a_copy_of_version_4_1_over_TCP = partialmethod(under_load, "4.1", "tcp")
    test_in_the_middle_of_a_copy_of_version_4_2_over_RDMA = partialmethod(under_load, "4.2", "rdma")
    test_in_the_middle_of_a_copy_of_version_4_2_over_TCP = partialmethod(under_load, "4.2", "tcp")

    def test_while_calls_that_must_not_run_twice_come_all_the_time(self):
        """mkdir and rmdir fail when one of them runs twice."""
        server = self.start()
        url = server.tcp("/x")
        script = f"for i in $(seq 40); do '{harness.STAG}' mkdir '{url.replace('/x?', '/x/d?')}' && '{harness.STAG}' rm -r '{url.replace('/x?', '/x/d?')}' || exit 1; done"
        load = subprocess.Popen(["sh", "-c", script], stderr=subprocess.PIPE, text=True)
        for _ in range(3):
            following = self.successor(server)
            self.assertEqual(self.ended(server)[0], 0)
            server = following
        self.assertEqual((load.communicate(timeout=harness.PATIENCE)[1], load.returncode), ("", 0))

    def test_keeps_the_listening_sockets_for_those_who_connect_meanwhile(self):
        server = self.start()
        waiting = socket.create_connection(("127.0.0.1", server.tcp_port))
        self.addCleanup(waiting.close)
        following = self.successor(server)
        code, log = self.ended(server)
        self.assertEqual((code, "cannot" in log), (0, False))
        self.assertEqual(stag("ls", following.url("/x")).returncode, 0)
        self.assertEqual(following.log(), "")

    def test_changes_the_addresses_at_the_same_ports(self):
        """A socket at one address is in the way of one at all of them, and the other way round."""
        server = self.start()
        for listen in ("0.0.0.0", "127.0.0.1"):
            following = self.successor(server, "--listen", listen)
            self.assertEqual(self.ended(server)[0], 0)
            self.assertEqual(stag("ls", following.tcp("/x")).returncode, 0)
            self.assertEqual(len(re.findall("InheritedSocketUnused", following.log())), 3, following.log())
            server = following
        with socket.create_server(("127.0.0.2", 0)) as other:
            port = str(other.getsockname()[1])
            self.assertIn("(--tcp-port)", self.refused(server, "--state", self.state, "--listen", "0.0.0.0", "--tcp-port", port, logged=True))

    def test_finds_the_control_socket_where_the_predecessor_has_it(self):
        server = self.start()
        elsewhere = os.path.join(self.work, "control")
        for control in (elsewhere, elsewhere + "-2", os.path.join(self.state, "control"), "none"):
            following = self.successor(server, "--control", control)
            self.assertEqual(self.ended(server)[0], 0)
            server = following
        refused = self.refused(server, "--state", self.state)
        self.assertIn(f"it may be ending: wait for that (--take-over: no server answers at {self.state}/control", refused)

    def test_where_nobody_serves_is_an_ordinary_start(self):
        server = self.start("--take-over")
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)

    def test_leaves_the_root_of_version_4_with_a_change_that_rises(self):
        """As a restart does, also after a kill: what a client has listed there it asks for again."""
        def change(server):
            with contextlib.closing(Client(server.tcp_port, b"anna")) as client:
                client.minor = 0
                status, results = client.compound(words(PUTROOTFH), words(GETATTR, 1, 1 << FATTR4_CHANGE))
                self.assertEqual(status, OK)
                return struct.unpack(">Q", results[-8:])[0]

        server = self.start()
        seen = [change(server)]
        for more in (True, False, True, False):
            self.exports = (self.exports[0], "/y=memory") if more else self.exports[:1]
            following = self.successor(server)
            self.assertEqual(self.ended(server)[0], 0)
            seen.append(change(following))
            following.process.kill()
            self.assertEqual(self.ended(following)[0], -signal.SIGKILL)
            server = self.start()
            seen.append(change(server))
        self.assertEqual(seen, sorted(set(seen)))

    def test_waits_for_nobody_who_held_nothing(self):
        """With the default grace period: a listing whose reader has gone leaves a client that cannot say goodbye, but has nothing to reclaim."""
        server = self.start()
        source = self.tree(files=1)
        for number in range(1000):
            os.mkdir(os.path.join(self.served, f"{number:0200}"))
        with subprocess.Popen([harness.STAG, "ls", server.tcp("/x") + "&version=4.2"], stdout=subprocess.PIPE) as listing:
            self.assertTrue(listing.stdout.readline())
        self.assertEqual(listing.returncode, -signal.SIGPIPE)
        with contextlib.closing(Client(server.tcp_port, b"anna").connect()) as client:
            self.assertEqual(client.reclaim_complete(), OK)
        ports = ("--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port))
        for killed in (False, True):
            if killed:
                server.process.kill()
                server.process.wait(harness.PATIENCE)
            following = self.start(ports=ports) if killed else self.successor(server)
            self.assertEqual(self.ended(server)[0], -signal.SIGKILL if killed else 0)
            copied = stag("cp", os.path.join(source, "f0"), following.tcp("/x/f0"))
            self.assertEqual((copied.stderr, copied.returncode), ("", 0))
            self.assertNotIn("GracePeriod", following.log())
            server = following

    def test_waits_for_nobody_who_has_closed_everything(self):
        """Neither for one whose goodbye would come to the successor, nor for one of version 4.0, which says none."""
        self.exports = (f"/data={self.served},no_root_squash",)
        source = os.path.join(self.tree(files=1), "f0")
        server = self.start("--grace", "3600")
        client = Client(server.tcp_port, b"anna").connect()
        self.addCleanup(client.close)
        self.assertEqual(client.reclaim_complete(), OK)
        status, stateid, handle = client.create_file(b"new")
        self.assertEqual((status, client.close_file(handle, stateid)), (OK, OK))
        copied = stag("cp", source, server.tcp("/data/f") + "&version=4.0")
        self.assertEqual((copied.stderr, copied.returncode), ("", 0))
        following = self.successor(server, "--grace", "3600")
        self.assertEqual(self.ended(server)[0], 0)
        for version in ("4.0", "4.1", "4.2"):
            copied = stag("cp", source, following.tcp("/data/f") + f"&version={version}")
            self.assertEqual((copied.stderr, copied.returncode), ("", 0))
        self.assertNotIn("GracePeriod", following.log())

    def handle_of(self, server, owner, name, expected=OK):
        """The handle of a file that the client has made, and closed again; None where something else is expected."""
        with contextlib.closing(Client(server.tcp_port, owner).connect()) as client:
            self.assertEqual(client.reclaim_complete(), OK)
            status, stateid, handle = client.create_file(name)
            self.assertEqual(status, expected)
            if status == OK:
                self.assertEqual(client.close_file(handle, stateid), OK)
            return handle

    def test_waits_for_no_host_that_has_given_its_locks_back_by_NLM(self):
        """A server that is killed cannot know of those that it has just had: everybody waits."""
        self.exports = (f"/data={self.served},no_root_squash",)
        for ending, unlocks in (("hand-over", True), ("end", True), ("kill", True), ("hand-over", False)):
            server = self.start("--grace", "3600")
            handle = self.handle_of(server, b"anna", b"file")
            with contextlib.closing(Client(server.tcp_port, b"host")) as host:
                self.assertEqual(nlm_lock(host, b"host", handle, 5, 10), NLM_GRANTED)
                if unlocks:
                    self.assertEqual(nlm_unlock(host, b"host", handle, 5, 10), NLM_GRANTED)
            if ending == "end":
                self.assertEqual(server.end(), 0)
            if ending == "kill":
                server.process.kill()
                self.ended(server)
            following = self.successor(server, "--grace", "3600") if ending == "hand-over" else self.start("--grace", "3600")
            if ending == "hand-over":
                self.assertEqual(self.ended(server)[0], 0)
            is_awaited = ending == "kill" or not unlocks
            self.assertEqual("GracePeriodBegun" in following.log(), is_awaited, (ending, unlocks))
            self.handle_of(following, b"bert", b"other", GRACE if is_awaited else OK)
            self.assertEqual(following.end(), 0)
            shutil.rmtree(self.state)

    def test_waits_for_a_client_of_version_4_1_that_has_vanished_until_the_grace_period_is_over(self):
        """Only where all come back it is shorter."""
        self.exports = (f"/data={self.served},no_root_squash",)
        for vanishes, why in ((True, "its time was over"), (False, "early, because nobody was left who could reclaim")):
            server = self.start("--grace", "15")
            port, handles = server.tcp_port, {}
            for name in (b"anna", b"bert"):
                with contextlib.closing(Client(port, name).connect()) as client:
                    self.assertEqual(client.reclaim_complete(), OK)
                    status, _, handles[name] = client.create_file(name)
                    self.assertEqual(status, OK)
            following = self.successor(server, "--grace", "15" if vanishes else "3600")
            self.assertEqual(self.ended(server)[0], 0)
            self.assertIn("GracePeriodBegun", following.log())
            come_back = (b"bert",) if vanishes else (b"bert", b"anna")
            clients = [Client(port, name).connect() for name in come_back]
            for name, client in zip(come_back, clients):
                self.addCleanup(client.close)
                self.assertEqual(client.reclaim(handles[name])[0], OK)
                if client is clients[0]:
                    self.assertEqual((client.reclaim_complete(), client.create_file(b"new")[0]), (OK, GRACE))
            if not vanishes:
                self.assertEqual(clients[1].reclaim_complete(), OK)
            while (status := clients[0].create_file(b"new")[0]) == GRACE:
                pass
            self.assertEqual(status, OK)
            self.assertRegex(following.log(), rf"GracePeriodEnded all exports: .*\({why}; {len(clients)} clients of version 4")
            self.assertEqual(following.end(), 0)
            shutil.rmtree(self.state)

    def stuck(self, *arguments):
        """A server whose end waits for a reload: its configuration is a pipe that nobody writes."""
        path = os.path.join(self.work, "stag.toml")
        with open(path, "w") as file:
            file.write("loops = 1\n")
        pipe = SilentPipe(self)
        server = self.start("--config", path, *arguments, **pipe.passed)
        self.addCleanup(server.errors.close)
        self.addCleanup(server.process.stdout.close)
        pipe.replace(path)
        server.process.send_signal(signal.SIGHUP)
        self.eventually(pipe.is_read, "the configuration is read")
        return server

    def waiting(self, server, *settings):
        """A successor that is to wait for its predecessor's end."""
        waiting = subprocess.Popen([harness.STAG, "serve", "--state", self.state, "--take-over", *(settings or ("--export", self.exports[0])), "--rdma-port",
                                    str(server.rdma_port), "--tcp-port", str(server.tcp_port)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(waiting.stdout.close)
        self.addCleanup(waiting.kill)
        return waiting

    def serves_alone(self, successor):
        self.assertIn("export", successor.stdout.readline())
        refused = stag("serve", "--state", self.state, "--export", "/x=memory", "--rdma-port", "0", "--tcp-port", "0")
        self.assertIn("another 'stag serve' is using it", refused.stderr)
        successor.terminate()
        self.assertEqual(successor.wait(harness.PATIENCE), 0)

    def test_of_a_server_that_is_killed_leaves_one_owner(self):
        server = self.stuck()
        successor = self.waiting(server)
        control = os.path.join(self.state, "control")
        self.eventually(lambda: not os.path.exists(control), "the predecessor ends")
        self.assertEqual((successor.poll(), server.process.poll()), (None, None))
        server.process.kill()
        self.assertEqual(server.process.wait(harness.PATIENCE), -signal.SIGKILL)
        self.serves_alone(successor)

    def test_reloads_when_it_serves_where_that_was_asked_for_before(self):
        server = self.stuck()
        path = os.path.join(self.work, "next.toml")
        with open(path, "w") as file:
            file.write(f'export = "{self.exports[0]}"\n')
        successor = self.waiting(server, "--config", path)
        self.eventually(lambda: not os.path.exists(os.path.join(self.state, "control")), "the predecessor ends")
        with open(path, "w") as file:
            file.write(f'export = ["{self.exports[0]}", "/more=memory"]\n')
        successor.send_signal(signal.SIGHUP)
        server.process.kill()
        while not (line := successor.stdout.readline()).startswith("exports: "):
            self.assertTrue(line, "it has ended")
        self.assertEqual(stag("ls", server.url("/more")).returncode, 0)
        successor.terminate()
        self.assertEqual(successor.wait(harness.PATIENCE), 0)

    def test_of_a_server_that_its_time_limit_ends_waits_for_that(self):
        server = self.stuck("--drain", "0", "--store-patience", "1")
        successor = self.waiting(server)
        self.assertEqual(server.process.wait(harness.PATIENCE), 1)
        self.assertIn("ends before the last calls have", server.log())
        self.serves_alone(successor)

    def refused(self, server, *arguments, code=1, logged=False):
        """What a successor says that gives up; the server serves on, and has logged nothing unless told."""
        result = stag("serve", "--take-over", "--export", "/x=memory", "--rdma-port", "0", "--tcp-port", "0", *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)
        self.assertEqual(server.log() != "", logged)
        return result.stderr

    def test_is_for_the_owner_of_the_same_state_directory_only(self):
        server = self.start()
        said = self.refused(server, "--state", os.path.join(self.work, "other"), "--control", os.path.join(self.state, "control"))
        self.assertIn("it serves with another state directory", said)
        same = os.path.join(self.work, "same")
        os.symlink(self.state, same)
        self.state = same
        following = self.successor(server)
        self.assertEqual(self.ended(server)[0], 0)
        self.assertEqual(stag("ls", following.url("/x")).returncode, 0)

    def test_leaves_a_server_where_it_is_when_something_is_in_the_way(self):
        server = self.start()
        self.assertIn("there is no group", self.refused(server, "--state", self.state, "--control-group", "no-such-group"))
        self.assertIn("--keytab", self.refused(server, "--state", self.state, "--keytab", os.path.join(self.work, "none")))
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = str(other.getsockname()[1])
            self.assertIn("(--rdma-port)", self.refused(server, "--state", self.state, "--rdma-port", port))
            self.assertIn("(--tcp-port)", self.refused(server, "--state", self.state, "--tcp-port", port))

    def test_leaves_a_server_where_it_is_when_the_exports_of_the_successor_cannot_be_served(self):
        server = self.start()
        gone, inside = os.path.join(self.work, "gone"), os.path.join(self.state, "inside")
        os.mkdir(inside)
        for code, sentence, exports in (
            (2, "fsid=3 is given twice", ("/a=memory,fsid=3", "/b=memory,fsid=3")),
            (2, "export '/x' is given twice", ("/x/=memory",)),
            (1, f"cannot open the folder {gone}: No such file", (f"/a={gone}",)),
            (1, "lies in the exported folder", (f"/a={self.work}",)),
            (1, "lies in the state directory", (f"/a={inside}",)),
        ):
            said = self.refused(server, "--state", self.state, *(word for each in exports for word in ("--export", each)), code=code)
            self.assertIn(sentence, said)
            self.assertIn("the server that runs serves on", said)

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_leaves_a_server_where_it_is_when_the_state_directory_is_full(self):
        os.mkdir(self.state)
        server = self.start(preexec_fn=mounting(b"none", self.state, b"tmpfs", 0, b"size=3m"))
        seen = f"/proc/{server.process.pid}/root{self.state}"  # the mount is that server's alone
        with open(os.path.join(seen, "fill"), "wb", buffering=0) as file, self.assertRaises(OSError):
            while True:
                file.write(bytes(4096))
        said = self.refused(server, "--state", seen)
        self.assertIn("No space left on device", said)
        self.assertIn("the server that runs serves on", said)
        os.unlink(os.path.join(seen, "fill"))
        before = sorted(os.listdir(seen))
        self.refused(server, "--state", seen, "--capture", "/dev/null")
        self.assertEqual(sorted(os.listdir(seen)), before, "what was tried is gone")

    def test_leaves_a_server_where_it_is_when_metrics_or_a_capture_of_the_successor_are_impossible(self):
        server = self.start("--metrics", "127.0.0.1:0")
        with socket.create_server(("127.0.0.1", 0)) as other:
            self.assertIn("(--metrics)", self.refused(server, "--state", self.state, "--metrics", f"127.0.0.1:{other.getsockname()[1]}"))
        self.assertIn("--capture", self.refused(server, "--state", self.state, "--capture", os.path.join(self.work, "none", "capture")))
        self.assertIn("no regular file", self.refused(server, "--state", self.state, "--capture", "/dev/null"))

    def test_leaves_a_server_where_it_is_when_a_third_process_has_its_ports_at_another_address(self):
        """What the predecessor has at 127.0.0.1 is not in the way of 127.0.0.2."""
        def refused(option, *arguments):
            with socket.create_server(("127.0.0.2", int(arguments[-1].rpartition(":")[2]))):
                said = self.refused(server, "--state", self.state, *arguments)
            self.assertIn(f"({option})", said)
            self.assertIn("the server that runs serves on", said)

        server = self.start("--metrics", "127.0.0.1:0", "--no-udp")
        refused("--rdma-port", "--listen", "127.0.0.2", "--rdma-port", str(server.rdma_port))
        refused("--tcp-port", "--listen", "127.0.0.2", "--tcp-port", str(server.tcp_port))
        (port,) = re.findall(r"^metrics: http://127.0.0.1:(\d+)/", "\n".join(server.lines), re.M)
        refused("--metrics", "--metrics", f"127.0.0.2:{port}")

    def test_leaves_a_server_where_it_is_when_two_addresses_of_the_successor_are_one(self):
        local = socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)[0][4][0]
        one = "127.0.0.1"
        for before, addresses, code in (
            ((one,), (one, one), 2), ((one,), ("0.0.0.0", "127.0.0.2"), 2), ((one,), ("::", one), 2), ((one,), (local, "localhost"), 1),
            (("0.0.0.0",), (local, "localhost"), 1), (("0.0.0.0",), (one, "0.0.0.0"), 2),
        ):
            with self.subTest(before=before, addresses=addresses):
                listening, wanted = ([word for each in addresses for word in ("--listen", each)] for addresses in (before, addresses))
                server = self.start(*listening)
                ports = ("--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port))
                said = self.refused(server, "--state", self.state, *ports, *wanted, code=code)
                self.assertIn("have an address in common", said)
                self.assertEqual(server.end(), 0)
        server = self.start()
        said = self.refused(server, "--state", self.state, "--rdma-port", str(server.rdma_port), "--metrics", f"{one}:{server.rdma_port}", code=2)
        self.assertIn(f"--metrics {one}:{server.rdma_port} is where --rdma-port listens, too", said)

    def test_leaves_a_server_where_it_is_when_the_control_socket_of_the_successor_is_impossible(self):
        server = self.start()
        taken, file, new = (os.path.join(self.work, name) for name in ("taken", "file", "new"))
        with open(file, "w"), socket.socket(socket.AF_UNIX) as other:
            other.bind(taken)
            other.listen()
            for path, why in (
                (os.path.join(self.work, "none", "control"), "there is no directory"),
                (self.work, "it is a directory"),
                (os.path.join(self.work, "x" * 108), "have at most 107 bytes"),
                (taken, "another server listens there"),
                (file, "there is a file that is no socket"),
            ):
                said = self.refused(server, "--state", self.state, "--control", path)
                self.assertIn(why, said)
                self.assertIn("--control", said)
                self.assertIn("the server that runs serves on", said)
        # One that can be made is removed where something else is in the way.
        self.refused(server, "--state", self.state, "--control", new, "--capture", "/dev/null")
        self.assertFalse(os.path.exists(new))

    def test_takes_over_the_address_of_the_metrics_and_the_file_of_the_capture(self):
        capture = ("--capture", os.path.join(self.work, "capture"))
        server = self.start("--metrics", "127.0.0.1:0", *capture)
        (port,) = re.findall(r"^metrics: http://127.0.0.1:(\d+)/", "\n".join(server.lines), re.M)
        following = self.successor(server, "--metrics", f"127.0.0.1:{port}", *capture)
        self.assertEqual(self.ended(server)[0], 0)
        socket.create_connection(("127.0.0.1", int(port))).close()
        self.assertEqual(following.log(), "")

    def test_leaves_a_server_where_it_is_when_the_successor_is_gone(self):
        server = self.start()
        found = os.stat(self.state)
        with socket.socket(socket.AF_UNIX) as successor:
            successor.connect(os.path.join(self.state, "control"))
            successor.sendall(b'{"command": "take-over", "state": "%d:%d"}\n' % (found.st_dev, found.st_ino))
            text, sockets, _, _ = socket.recv_fds(successor, 4096, 16)
            for each in sockets:
                os.close(each)
            self.assertIn(b'"sockets"', text)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(os.path.join(self.state, "control"))
            other.sendall(b'{"command": "no-such-command"}\n')
            self.assertIn(b"knows no command", other.recv(4096))
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)
        self.assertEqual(server.log(), "")

    def asking(self, found):
        """A process that has the sockets; each line that it reads has it ask the server to make way, and it prints the answer."""
        script = """if True:
            import socket, sys
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(sys.argv[1])
                server.sendall(sys.argv[2].encode() + b"\\n")
                answer = socket.recv_fds(server, 4096, 16)[0]
                while b"done" not in answer:
                    answer += server.recv(4096)
                print("asked", flush=True)
                for _ in sys.stdin:
                    server.sendall(b'{"command": "make-way"}\\n')
                    print(server.recv(4096).decode(), end="", flush=True)
        """
        request = '{"command": "take-over", "state": "%d:%d"}' % (found.st_dev, found.st_ino)
        process = subprocess.Popen(["python3", "-c", script, os.path.join(self.state, "control"), request], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(), "asked\n")
        return process

    def test_of_two_successors_is_that_of_the_later_one(self):
        server = self.start()
        first, second = (self.asking(os.stat(self.state)) for _ in range(2))
        print("go", file=first.stdin, flush=True)
        self.assertIn("only a successor that has the sockets may ask", first.stdout.readline())
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)
        print("go", file=second.stdin, flush=True)
        self.assertEqual(self.ended(server)[0], 0)

    def test_is_for_root_and_the_user_of_the_server_only(self):
        if os.geteuid() != 0:
            self.skipTest("needs another user")
        os.chmod(self.work, 0o755)
        server = self.start("--control-group", "nogroup")
        os.chmod(self.state, 0o755)
        asked = subprocess.run(
            ["python3", "-c", "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b'{\"command\": \"take-over\"}\\n');"
             "print(s.recv(4096).decode())", os.path.join(self.state, "control")],
            user=65534, group=65534, extra_groups=[], stdout=subprocess.PIPE, text=True, timeout=harness.PATIENCE)
        self.assertIn("only root and the user of the server may take its place", asked.stdout)
        self.assertEqual(stag("ls", server.url("/x")).returncode, 0)


class Ending(Case):
    def test_finishes_the_calls_in_progress(self):
        """A READ of which the Reply is held back on its way to the client arrives although the server ends."""
        with open(os.path.join(self.served, "f"), "wb") as file:
            file.write(os.urandom(4 << 20))
        server = self.start()
        proxy = Proxy(server.tcp_port, "down", 1 << 20)
        self.addCleanup(proxy.cut)
        target = os.path.join(self.work, "copy")
        copy = subprocess.Popen([harness.STAG, "cp", server.tcp("/x/f").replace(str(server.tcp_port), str(proxy.port)), target],
                                stderr=subprocess.PIPE, text=True)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        server.process.terminate()
        proxy.left = 1 << 40
        proxy.released.set()
        self.assertEqual(self.ended(server)[0], 0)
        following = self.start(ports=("--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port)))
        self.assertEqual((copy.communicate(timeout=harness.PATIENCE)[1], copy.returncode), ("", 0))
        self.assertEqual(following.end(), 0)

    def answered(self, host, port):
        """A connection on which a call has been answered."""
        client = socket.create_connection((host, port))
        self.addCleanup(client.close)
        client.settimeout(harness.PATIENCE)
        client.sendall(struct.pack(">11I", 0x80000000 | 40, 7, 0, 2, 100003, 3, 0, 0, 0, 0, 0))
        self.assertEqual(len(client.recv(28, socket.MSG_WAITALL)), 28)
        return client

    def test_gives_all_connections_the_same_second(self):
        """Whoever does not end his side of a connection prolongs nobody's."""
        hosts = ("127.0.0.1", "127.0.0.2")
        server = self.start("--loops", "2", "--listen", hosts[0], "--listen", hosts[1])
        while not (other := re.match(r"ready: TCP .*://127.0.0.2:(\d+)/", server.process.stdout.readline())):
            pass
        clients = [self.answered(host, port) for host, port in zip(hosts, (server.tcp_port, int(other[1]))) for _ in range(2)]
        server.process.terminate()
        for client in reversed(clients):
            self.assertEqual(client.recv(1), b"")
        for _ in range(2):
            for client in clients:
                client.sendall(b"x")  # is refused when the server has closed the connection
        for client in clients:
            client.close()
        self.assertEqual(self.ended(server)[0], 0)

    def unread(self, ends, *arguments, **options):
        """A server with `arguments` whose reader takes nothing any more once it is ready."""
        reading, writing = ends
        for each in ends:
            self.addCleanup(os.close, each)
        process = subprocess.Popen([harness.STAG, "serve", "--state", self.state, "--rdma-port", "0", "--tcp-port", "0", "--drain", "0", "--store-patience", "1",
                                    *arguments], stdout=writing, stderr=writing, **options)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        said = b""
        while not (ready := re.search(rb"ready: TCP .*:(\d+)/", said)):
            said += os.read(reading, 4096)
        if os.isatty(writing):
            os.write(reading, b"\x13")  # Ctrl-S
            self.eventually(lambda: not select.select([], [writing], [], 0)[1], "the terminal is stopped")
        else:
            self.fill(writing)
        return process, int(ready[1])

    def fill(self, writing):
        pipe = os.open(f"/proc/self/fd/{writing}", os.O_WRONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, pipe)
        for size in (4096, 1):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(pipe, b"x" * size)

    def reloads_and_ends(self, ends):
        path = os.path.join(self.work, "exports")
        line = f"{self.served} *(rw,insecure,async)\n"  # of which there is a remark
        with open(path, "w") as file:
            file.write(line)
        process, port = self.unread(ends, "--exports-file", path)
        more = os.path.join(self.work, "more")
        os.mkdir(more)
        with open(path, "w") as file:
            file.write(line + line.replace(self.served, more))
        process.send_signal(signal.SIGHUP)
        self.eventually(lambda: stag("ls", f"nfs://127.0.0.1:{port}{more}?proto=tcp").returncode == 0, "the exports are read again")
        process.terminate()
        self.assertEqual(process.wait(harness.PATIENCE), 0)

    def test_does_not_wait_for_a_full_pipe(self):
        self.reloads_and_ends(os.pipe())

    def test_does_not_wait_for_a_terminal_that_is_stopped(self):
        self.reloads_and_ends(harness.open_terminal(self))

    def test_has_its_time_limit_whoever_reads_what_it_says(self):
        path = os.path.join(self.work, "stag.toml")
        with open(path, "w") as file:
            file.write("loops = 1\n")
        pipe = SilentPipe(self)
        process, _ = self.unread(os.pipe(), "--export", "/x=memory", "--config", path, **pipe.passed)
        pipe.replace(path)
        process.send_signal(signal.SIGHUP)
        self.eventually(pipe.is_read, "the configuration is read")
        process.terminate()
        self.assertEqual(process.wait(harness.PATIENCE), 1)

    def test_turns_new_clients_away_at_once(self):
        server = self.start()
        self.assertEqual(server.process.poll(), None)
        server.process.terminate()
        self.assertEqual(self.ended(server)[0], 0)
        self.assertRaises(ConnectionRefusedError, socket.create_connection, ("127.0.0.1", server.tcp_port))


if __name__ == "__main__":
    harness.main()
