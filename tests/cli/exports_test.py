"""`stag serve`: who may reach what, exports that are read again on SIGHUP, IPv6, and what the two sides of RDMA agree on."""
import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

import harness
from harness import Proxy, Server, request_rdma, stag


class Case(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-exports-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.state = os.path.join(self.work, "state")
        self.path = os.path.join(self.work, "stag.toml")

    def start(self, *arguments, exports=(), **options):
        server = Server(exports, self.state, arguments, **options)
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def folder(self, name, *files):
        path = os.path.join(self.work, name)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o755)
        for file in files:
            with open(os.path.join(path, file), "w") as made:
                made.write(file)
        return path

    def config(self, *lines):
        with open(self.path, "w") as file:
            file.write("\n".join(lines) + "\n")

    def names(self, url):
        result = stag("ls", url)
        self.assertEqual((result.returncode, result.stderr), (0, ""), url)
        return result.stdout.split()

    def denied(self, sentence, *arguments):
        result = stag(*arguments)
        self.assertEqual(result.returncode, 1, (arguments, result.stdout))
        self.assertIn(sentence, result.stderr)


def mounting(what, where, kind, flags, data):
    """For preexec_fn: a mount that only the new process sees."""
    libc = ctypes.CDLL(None, use_errno=True)

    def mount_it():
        if not harness.enter_mount_namespace() or libc.mount(what, where.encode(), kind, flags, data):
            os._exit(1)

    return mount_it


class Clients(Case):
    def test_are_told_apart_by_address(self):
        exports = (
            "/open=memory",
            "/both=memory,ro,client=127.0.0.1:rw,client=[::]/0",
            "/six=memory,client=[::1]:all_squash:anonuid=7",
            "/net=memory,client=127.0.0.0/8:rw,client=127.0.0.1:ro",
            "/none=memory,client=192.0.2.0/24:rw,client=[2001:db8::/32]",
        )
        server = self.start("--listen", "127.0.0.1", "--listen", "::1", exports=exports)
        ready = [server.process.stdout.readline() for _ in range(2)]
        six = re.search(r"RPC-over-RDMA +(\S+)$", ready[0])[1]
        self.assertIn("nfs://[::1]:", six)
        mkdir = lambda url: stag("mkdir", url).stderr
        at_six = lambda path: six.replace("/open", path)

        self.assertEqual(mkdir(server.url("/both/a")), "")
        self.assertIn("read-only", mkdir(at_six("/both/b")))
        self.denied("does not let this client mount it", "ls", server.url("/six"))
        self.assertEqual(mkdir(at_six("/six/d")), "")
        made, = json.loads(stag("stat", "--json", at_six("/six/d")).stdout)
        self.assertEqual(made["uid"], 7)
        self.assertIn("read-only", mkdir(server.url("/net/d")))
        for url in (server.url("/none"), at_six("/none"), server.tcp("/none")):
            self.denied("does not let this client mount it", "ls", url)
        self.assertIn("NfsClientNotAdmitted", self.log_of_a_denial())

    def log_of_a_denial(self):
        server = Server(["/none=memory,client=192.0.2.1"], self.state + "2", ("--log-level", "info"))
        stag("ls", server.url("/none"))
        log = server.log()
        self.assertEqual(server.end(), 0)
        return log

    def test_are_listed_with_the_exports(self):
        server = self.start(exports=("/open=memory", "/some=memory,client=192.0.2.0/24,client=localhost:ro"))
        info = stag("info", "--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port), "127.0.0.1")
        self.assertRegex(info.stdout, r"/some +sec=sys +192\.0\.2\.0/24 +localhost")
        info = stag("info", "--json", "--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port), "127.0.0.1")
        listed = [(each["path"], each["flavors"], each["clients"]) for each in json.loads(info.stdout)["exports"]]
        self.assertEqual(listed, [("/open", ["sys"], []), ("/some", ["sys"], ["192.0.2.0/24", "localhost"])])
        self.assertEqual(self.names(server.url("/some")), [], "a host name stands for its addresses")

    def test_that_may_not_connect_are_turned_away(self):
        for allowed in (True, False):
            server = Server(["/x=memory"], f"{self.state}{allowed}", ("--allow", "192.0.2.0/24", "--allow", "127.0.0.0/8" if allowed else "::1"))
            for url in (server.url("/x"), server.tcp("/x")):
                result = stag("ls", "--timeout", "1", url)
                self.assertEqual(result.returncode, 0 if allowed else 1, (url, result.stderr))
            self.assertEqual("PeerNotAllowed" in server.log(), not allowed)
            self.assertEqual(server.end(), 0)

    def test_have_no_more_connections_each_than_they_may(self):
        server = self.start("--connections-per-client", "3", exports=("/x=memory",))
        crowd = [socket.create_connection(("127.0.0.1", server.tcp_port)) for _ in range(4)]
        for each in crowd:
            self.addCleanup(each.close)
        crowd[3].settimeout(harness.PATIENCE)
        self.assertEqual(crowd[3].recv(1), b"", "the fourth is closed")
        self.assertIn("TooManyConnectionsOfPeer", server.log())
        # Another address, and the other listener, have places of their own.
        other = socket.create_connection(("127.0.0.1", server.tcp_port), source_address=("127.0.0.9", 0))
        self.addCleanup(other.close)
        other.settimeout(0.2)
        self.assertRaises(TimeoutError, other.recv, 1)
        self.assertEqual(stag("ping", "-c", "1", server.url("/x")).returncode, 0)


class Rpc:
    """Calls over TCP from a local port of one's choice, with AUTH_NONE."""

    def __init__(self, port, local_port):
        self.connection = socket.create_connection(("127.0.0.1", port), harness.PATIENCE, ("127.0.0.1", local_port))

    def call(self, program, procedure, *arguments):
        """The results of a procedure of version 3 that takes opaques or strings."""
        body = struct.pack(">10I", 1, 0, 2, program, 3, procedure, 0, 0, 0, 0)
        for argument in arguments:
            body += struct.pack(">I", len(argument)) + argument + bytes(-len(argument) % 4)
        self.connection.sendall(struct.pack(">I", 1 << 31 | len(body)) + body)
        length, = struct.unpack(">I", self.read(4))
        reply = self.read(length & 0x7FFFFFFF)
        # xid, REPLY, MSG_ACCEPTED, no verifier, SUCCESS
        assert struct.unpack(">6I", reply[:24]) == (1, 1, 0, 0, 0, 0), reply
        return reply[24:]

    def read(self, length):
        data = b""
        while len(data) < length and (part := self.connection.recv(length - len(data))):
            data += part
        return data


@unittest.skipIf(os.geteuid() != 0, "only root has ports below 1024")
class Secure(Case):
    MNT, GETATTR = (100005, 1), (100003, 1)
    ACCES, STALE = struct.pack(">I", 13), struct.pack(">I", 70)

    def connect(self, port, local_ports):
        for local_port in local_ports:
            # Another program may have it.
            with contextlib.suppress(OSError):
                rpc = Rpc(port, local_port)
                self.addCleanup(rpc.connection.close)
                return rpc
        self.fail("no free port")

    def test_exports_are_for_ports_below_1024_over_TCP(self):
        server = self.start(exports=("/s=memory,secure",))
        low = self.connect(server.tcp_port, range(1023, 600, -1))
        high = self.connect(server.tcp_port, [0])
        mounted = low.call(*self.MNT, b"/s")
        status, length = struct.unpack(">2I", mounted[:8])
        self.assertEqual(status, 0)
        self.assertEqual(high.call(*self.MNT, b"/s"), self.ACCES)
        handle = mounted[8:8 + length]
        self.assertEqual(low.call(*self.GETATTR, handle)[:4], bytes(4))
        # RFC 1813 3.3.1 has no NFS3ERR_ACCES.
        self.assertEqual(high.call(*self.GETATTR, handle), self.STALE)


class SecureOverRdma(Case):
    """Version 4, which has no MOUNT."""

    def test_exports_are_for_any_port_unless_they_are_not_served_over_RDMA(self):
        server = self.start(exports=("/open=memory,secure,no_root_squash", "/shut=memory,secure,no_root_squash,no_rdma", "/tcp=memory,no_rdma"))
        self.assertEqual(stag("touch", server.url("/open/file") + "&version=4").returncode, 0)
        self.denied("permission denied", "touch", server.url("/shut/file") + "&version=4")
        self.denied("permission denied", "ls", server.url("/tcp") + "&version=4")
        self.assertEqual(stag("touch", server.tcp("/tcp/file") + "&version=4").returncode, 0)

    def test_take_copies_with_access_control_lists_by_version_4_where_MOUNT_refuses(self):
        server = self.start(exports=(f"/s={self.folder('s')},rw,secure,no_root_squash", "/shut=memory,secure,no_root_squash,no_rdma"))
        self.folder("tree", "file")
        listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in ((1, 6, 0xffffffff), (2, 4, 7), (4, 4, 0xffffffff),
                                                                                          (16, 4, 0xffffffff), (32, 0, 0xffffffff)))
        try:
            os.setxattr(os.path.join(self.work, "tree", "file"), "system.posix_acl_access", listed)
        except OSError as error:
            self.skipTest(f"no access control lists here: {error}")
        copied = stag("cp", "-r", "--preserve=mode,acl", os.path.join(self.work, "tree"), server.url("/s/tree"))
        self.assertEqual((copied.returncode, copied.stderr), (0, ""))
        self.assertEqual(os.getxattr(os.path.join(self.work, "s", "tree", "file"), "system.posix_acl_access"), listed)
        self.denied("/shut", "cp", "--preserve=mode,acl", os.path.join(self.work, "tree", "file"), server.url("/shut/file"))
        self.assertEqual(self.names(server.url("/")), ["/s", "/shut"], "of MOUNT, not of version 4")

    REMARK = "is root there over RDMA"

    def test_is_remarked_on_at_start_and_reload_where_it_makes_anybody_root(self):
        self.config('export = ["/trap=memory,secure,no_root_squash", "/tcp=memory,secure,no_root_squash,no_rdma", "/squashed=memory,secure",',
                    '"/nobody=memory,secure,no_root_squash,all_squash", "/krb=memory,secure,no_root_squash,sec=none", "/any=memory,no_root_squash"]')
        server = self.start("--config", self.path)
        self.assertEqual(server.log().count(self.REMARK), 1, server.log())
        self.assertIn(f"stag serve: {self.path}:1: any user of a client of /trap", server.log())
        self.config('export = ["/new=memory,client=127.0.0.1:secure:no_root_squash,client=*"]')
        server.process.send_signal(signal.SIGHUP)
        self.assertIn("added /new", server.process.stdout.readline())
        self.assertEqual(server.log().count(self.REMARK), 2, server.log())
        self.assertIn(f"stag serve: {self.path}:1: any user of a client of /new (127.0.0.1)", server.log())


class Exports(Case):
    def test_may_lie_within_each_other(self):
        outer, inner = self.folder("outer", "file"), self.folder("inner", "deep")
        os.mkdir(os.path.join(outer, "in"))
        server = self.start(exports=(f"/a={outer}", f"/a/in={inner}"))
        self.assertEqual(self.names(server.url("/a")), ["file", "in"])
        self.assertEqual(self.names(server.url("/a/in")), ["deep"])

    def test_that_are_refused_are_not_taken_for_what_they_cover(self):
        outer, inner = self.folder("outer"), self.folder("inner", "file")
        covered = self.folder("outer/in", "file")
        server = self.start(exports=(f"/a={outer},no_root_squash", f"/a/in={inner},no_root_squash,client=192.0.2.1"))
        file = os.path.join(self.folder("local", "f"), "f")
        for version in ("&version=2", "&version=3", "&version=4", ""):
            for command in (("cp", file, server.tcp("/a/in/f3") + version), ("rm", server.tcp("/a/in/file") + version),
                            ("sync", "--delete", os.path.dirname(file), server.tcp("/a/in") + version), ("ls", server.tcp("/a/in") + version)):
                with self.subTest(command[0] + version):
                    self.denied("", *command)
        self.assertEqual((os.listdir(covered), os.listdir(inner)), (["file"], ["file"]))

    def fsids(self, server, *paths):
        """Of the exports' roots, as GETATTR tells them."""
        return [json.loads(stag("stat", "--json", server.url(path)).stdout)[0]["fsid"] for path in paths]

    def test_are_file_systems_of_their_own_that_keep_their_numbers(self):
        one, two, inner = self.folder("one"), self.folder("two"), self.folder("inner")
        exports = (f"/one={one}", f"/two={two}", f"/again={one}", f"/one/within={inner}", f"/told={one},fsid=77")
        paths = ("/one", "/two", "/again", "/one/within", "/told")
        first = self.start(exports=exports)
        numbers = self.fsids(first, *paths)
        self.assertEqual(len(set(numbers)), 5)
        self.assertEqual(numbers[-1], "77")
        self.assertEqual(first.end(), 0)
        self.assertEqual(self.fsids(self.start(exports=reversed(exports)), *paths), numbers)

    def test_are_mounted_by_MOUNT_version_2_over_TCP_and_UDP(self):
        server = self.start(exports=("/a/b=memory",))

        def mnt(path):
            """What MOUNTPROC_MNT of version 2 (RFC 1094 A.5 has version 1's) answers to a Call without credentials, by TCP and by UDP."""
            call = struct.pack(">10I", 7, 0, 2, 100005, 2, 1, 0, 0, 0, 0) + struct.pack(">I", len(path)) + path + bytes(-len(path) % 4)
            for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
                with socket.socket(socket.AF_INET, kind) as peer:
                    peer.settimeout(harness.PATIENCE)
                    peer.connect(("127.0.0.1", server.tcp_port))
                    if kind == socket.SOCK_DGRAM:
                        peer.send(call)
                        yield peer.recv(1000)
                    else:
                        peer.sendall(struct.pack(">I", 1 << 31 | len(call)) + call)
                        reply = peer.makefile("rb")
                        yield reply.read(struct.unpack(">I", reply.read(4))[0] & ~(1 << 31))

        accepted = struct.pack(">6I", 7, 1, 0, 0, 0, 0)
        for reply in mnt(b"/a/b"):
            self.assertEqual((reply[:24], reply[24:28], len(reply)), (accepted, bytes(4), 28 + 32), "a file handle of 32 bytes")
        for reply in mnt(b"/a/c"):
            self.assertEqual(reply, accepted + struct.pack(">I", 2), "no such entry")

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_that_are_full_say_so(self):
        small = self.folder("small")
        mount_it = mounting(b"none", small, b"tmpfs", 0, b"size=1m")
        server = self.start(exports=(f"/small={small},no_root_squash",), preexec_fn=mount_it)
        big = os.path.join(self.work, "big")
        with open(big, "wb") as file:
            file.write(os.urandom(3 << 20))
        self.denied("no space left on the server", "cp", big, server.url("/small/big"))
        with open(big, "wb") as file:
            file.write(b"fits" * 1000)
        stag("rm", server.url("/small/big"))
        self.assertEqual(stag("cp", big, server.url("/small/big")).returncode, 0)


class State(Case):
    """The key that protects handles lies in the state directory."""

    def refused(self, sentence, state, folder, **options):
        result = stag("serve", "--tcp-port", "0", "--rdma-port", "0", "--state", state, "--export", f"/x={folder}", **options)
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertIn(sentence, result.stderr)
        self.assertIn("--state DIR, or export another folder", result.stderr)

    def test_within_an_export_is_refused(self):
        served = self.folder("served")
        within = os.path.join(served, "deep", "state")
        link = os.path.join(self.work, "link")
        os.makedirs(within)
        os.symlink(within, link)
        os.symlink(served, link + " to served")
        for state, folder in (within, served), (served, served), (link, served), (within, link + " to served"), (link, link + " to served"):
            self.refused("lies in the exported folder", state, folder)

    def test_around_an_export_is_refused(self):
        os.makedirs(os.path.join(self.state, "sub", "served"))
        self.refused("lies in the state directory", self.state, os.path.join(self.state, "sub", "served"))

    def test_beside_an_export_is_served(self):
        # The one's name begins with the other's.
        self.start(exports=(f"/x={self.folder('stat')}", f"/y={self.folder('state too')}"))

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_that_a_bind_mount_shows_in_an_export_is_refused(self):
        served, elsewhere = self.folder("ser ved"), self.folder("elsewhere")
        within = os.path.join(served, "state")
        os.mkdir(within)
        bind = 4096
        self.refused("lies in the exported folder", elsewhere, served, preexec_fn=mounting(within.encode(), elsewhere, None, bind, None))
        self.refused("lies in the exported folder", within, elsewhere, preexec_fn=mounting(served.encode(), elsewhere, None, bind, None))

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_on_a_file_system_of_its_own_is_served(self):
        served = self.folder("served")
        self.state = os.path.join(served, "state")
        os.mkdir(self.state)
        server = self.start(exports=(f"/x={served}",), preexec_fn=mounting(b"none", self.state, b"tmpfs", 0, None))
        self.denied("permission", "ls", server.url("/x/state"))

    def test_that_gets_into_an_export_by_SIGHUP_is_refused(self):
        one = self.folder("one", "first")
        self.config(f'export = ["/one={one}"]')
        server = self.start("--config", self.path)
        self.config(f'export = ["/one={one}", "/all={self.work}"]')
        Reload.refused(self, server, "lies in the exported folder")
        self.assertEqual(self.names(server.url("/one")), ["first"])
        self.denied("exports no such directory", "ls", server.url("/all"))


class Many(Case):
    def test_folders_take_no_thread_each(self):
        folders = [self.folder(f"d{number}") for number in range(60)]
        server = self.start("--loops", "1", exports=[f"/{os.path.basename(each)}={each}" for each in folders])
        self.assertLess(len(os.listdir(f"/proc/{server.process.pid}/task")), len(folders) / 2)
        self.assertEqual(server.end(), 0)


class Reload(Case):
    def reload(self, server):
        """Yields the line that says what has changed."""
        server.process.send_signal(signal.SIGHUP)
        return server.process.stdout.readline()

    def refused(self, server, sentence):
        before = server.log()
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + harness.PATIENCE
        while "ExportsReloadFailed" not in server.log()[len(before):]:
            self.assertLess(time.monotonic(), end, before)
            time.sleep(0.01)
        self.assertIn(sentence, server.log()[len(before):])

    def test_takes_on_what_the_file_says_now(self):
        one, two = self.folder("one", "first"), self.folder("two", "second")
        self.config("[[export]]", 'path = "/one"', f'folder = "{one}"', "[[export]]", 'path = "/memory"', 'folder = "memory"')
        server = self.start("--config", self.path)
        self.assertEqual(stag("mkdir", server.url("/memory/kept")).returncode, 0)
        self.assertEqual(self.reload(server), "exports: nothing has changed\n")
        self.config(
            "[[export]]", 'path = "/two"', f'folder = "{two}"', 'options = ["ro"]',
            "[[export]]", 'path = "/memory"', 'folder = "memory"', 'clients = [{match = "*", options = ["ro"]}]',
        )
        self.assertEqual(self.reload(server), "exports: added /two; changed /memory; removed /one\n")
        self.assertEqual(self.names(server.url("/two")), ["second"])
        self.assertEqual(self.names(server.url("/memory")), ["kept"])
        self.assertIn("read-only", stag("mkdir", server.url("/memory/more")).stderr)
        self.denied("exports no such directory", "ls", server.url("/one"))

    def test_drops_no_client_of_what_stays_and_makes_handles_of_what_goes_stale(self):
        content = os.urandom(20 << 20)
        stays, goes = self.folder("stays"), self.folder("goes")
        for folder in (stays, goes):
            with open(os.path.join(folder, "f"), "wb") as file:
                file.write(content)
        self.config(f'export = ["/stays={stays},no_root_squash", "/goes={goes},no_root_squash"]')
        server = self.start("--config", self.path, "--log-level", "debug")
        copies = []
        for name in ("stays", "goes"):
            proxy = Proxy(server.rdma_port, "down", 4 << 20)
            self.addCleanup(proxy.cut)
            target = os.path.join(self.work, f"copy of {name}")
            command = [harness.STAG, "cp", server.url(f"/{name}/f", port=proxy.port), target]
            copies.append((proxy, target, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)))
        for proxy, _, _ in copies:
            self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        self.config(f'export = ["/stays={stays},no_root_squash,client=127.0.0.1"]')
        self.assertEqual(self.reload(server), "exports: changed /stays; removed /goes\n")
        for proxy, _, _ in copies:
            proxy.left = 1 << 40
            proxy.released.set()
        (first, target, kept), (_, _, lost) = copies
        self.assertEqual((kept.communicate(timeout=harness.PATIENCE)[1], kept.returncode), ("", 0))
        with open(target, "rb") as file:
            self.assertEqual(file.read(), content)
        self.assertEqual(len(first.sockets), 2, "one connection, on both sides of the proxy")
        self.assertIn("stale", lost.communicate(timeout=harness.PATIENCE)[1])
        self.assertEqual(lost.returncode, 1)

    def test_of_a_file_with_a_mistake_names_it_and_changes_nothing(self):
        one = self.folder("one", "first")
        self.config(f'export = ["/one={one}"]')
        server = self.start("--config", self.path)
        for sentence, lines in (
            (f"{self.path}:2: export option 'rx' is not known", ["[[export]]", 'options = ["rx"]', 'path = "/x"', 'folder = "memory"']),
            (f"{self.path}:3: ", ['export = [', '"/new=memory",', '"/one=/nonexistent"]']),
            (f"{self.path}:2: there is no setting 'colour'", ['export = "/new=memory"', 'colour = "red"']),
            (f"{self.path}:1: ", ['export = = "/new=memory"']),
            ("nothing to serve", ["# still being written"]),
            (f"{self.path}:1: export '/new' is given twice", ['export = ["/new=memory", "/new/=memory"]']),
        ):
            self.config(*lines)
            self.refused(server, sentence)
            self.assertEqual(self.names(server.url("/one")), ["first"])
            self.denied("exports no such directory", "ls", server.url("/new"))
        os.unlink(self.path)
        self.refused(server, "No such file")
        self.config('export = "/new=memory"')
        self.assertEqual(self.reload(server), "exports: added /new; removed /one\n")

    def test_finds_a_folder_that_was_made_anew(self):
        one = self.folder("one", "first")
        self.config(f'export = ["/one={one}"]')
        server = self.start("--config", self.path)
        os.rename(one, one + ".old")
        self.folder("one", "second")
        self.assertEqual(self.reload(server), "exports: changed /one\n")
        self.assertEqual(self.names(server.url("/one")), ["second"])

    def test_of_another_folder_makes_the_handles_of_the_first_stale(self):
        one, two = self.folder("one", "f"), self.folder("two", "f")
        current = os.path.join(self.work, "current")
        getattr, lookup, good, stale = (100003, 1), (100003, 3), bytes(4), struct.pack(">I", 70)

        def point_to(folder):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(current)
            os.symlink(folder, current)

        def rpc(server):
            connected = Rpc(server.tcp_port, 0)
            self.addCleanup(connected.connection.close)
            return connected

        point_to(one)
        self.config(f'export = ["/x={current}", "/x/in={two}"]')
        server = self.start("--config", self.path)
        mounted = rpc(server).call(100005, 1, b"/x")
        root = mounted[8:8 + struct.unpack(">I", mounted[4:8])[0]]
        found = rpc(server).call(*lookup, root, b"f")
        handles = root, found[8:8 + struct.unpack(">I", found[4:8])[0]]
        answers = lambda server: [rpc(server).call(*getattr, handle)[:4] for handle in handles]
        self.assertEqual(answers(server), [good, good])
        self.assertEqual(self.reload(server), "exports: nothing has changed\n")
        self.assertEqual(answers(server), [good, good])
        point_to(two)
        self.assertEqual(self.reload(server), "exports: changed /x\n")
        self.assertEqual(answers(server), [stale, stale])
        self.assertEqual(server.end(), 0)
        # A restart is the same to clients.
        server = self.start("--config", self.path)
        self.assertEqual(answers(server), [stale, stale])
        self.assertEqual(server.end(), 0)
        point_to(one)
        self.assertEqual(answers(self.start("--config", self.path)), [good, good])

    def test_keeps_what_is_in_memory_whatever_options_change(self):
        self.config('export = "/m=memory"')
        server = self.start("--config", self.path)
        self.assertEqual(stag("mkdir", server.url("/m/kept")).returncode, 0)
        for options in ("nfs_only", "offload", "at_once", "ro,nfs_only"):
            self.config(f'export = "/m=memory,{options}"')
            self.assertRegex(self.reload(server), "^exports: ")
            self.assertEqual(self.names(server.url("/m")), ["kept"], options)

    def test_refuses_another_fsid_for_what_is_in_memory(self):
        self.config('export = "/m=memory,fsid=3"')
        server = self.start("--config", self.path)
        self.assertEqual(stag("mkdir", server.url("/m/kept")).returncode, 0)
        for options in (",fsid=4", ""):
            self.config(f'export = ["/m=memory{options}", "/new=memory"]')
            self.refused(server, f"{self.path}:1: export /m is in memory: another fsid needs a restart")
            self.assertEqual(self.names(server.url("/m")), ["kept"])
            self.denied("exports no such directory", "ls", server.url("/new"))

    def test_is_done_for_SIGHUP_and_nothing_for_SIGUSR1_and_SIGUSR2(self):
        self.config('export = "/one=memory"')
        server = self.start("--config", self.path)
        for sent in signal.SIGUSR1, signal.SIGUSR2:
            server.process.send_signal(sent)
        self.assertEqual(self.reload(server), "exports: nothing has changed\n")

    def test_tells_of_exports_that_do_not_count_as_the_start_and_a_check_do(self):
        self.config("log-level = 'warning'", 'export = "/file=memory"')
        remark = f"stag serve: {self.path}:2: the exports of this file do not count beside --export on the command line\n"
        server = self.start("--config", self.path, exports=("/x=memory",))
        self.assertEqual((self.names(server.url("/")), server.log()), (["/x"], remark))
        check = stag("serve", "--config", self.path, "--state", self.state, "--export", "/x=memory", "--check")
        self.assertEqual((check.returncode, check.stderr), (0, remark))
        self.config("", "", 'export = "/other=memory"')
        self.assertEqual(self.reload(server), "exports: those of --export, as before\n")
        self.assertEqual((self.names(server.url("/")), server.log()), (["/x"], remark + remark.replace(":2:", ":3:")))

    def test_is_no_more_than_the_end_where_the_exports_are_on_the_command_line(self):
        server = self.start(exports=("/x=memory",))
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.process.wait(harness.PATIENCE), 0)
        server.end()


class Mounts(Case):
    """Of which an export may depend (mp). /proc is one everywhere."""

    def test_that_are_missing_keep_no_other_export_down(self):
        one = self.folder("one", "first")
        missing = os.path.join(self.work, "missing")
        self.config("[[export]]", 'path = "/one"', f'folder = "{one}"', "[[export]]", 'path = "/disk"', f'folder = "{missing}"', 'options = ["mp"]')
        server = self.start("--config", self.path)
        self.assertIn(f"{self.path}:4: /disk is not exported: nothing is mounted at {missing}", server.log())
        self.assertEqual(self.names(server.url("/")), ["/one"])
        self.config(f'export = ["/one={one}", "/disk={one}/,mp=/proc"]')
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.process.stdout.readline(), "exports: added /disk\n")
        self.config(f'export = ["/disk={one}/,mp={missing}"]')
        self.assertEqual(stag("serve", "--config", self.path, "--check", "--state", self.state).returncode, 0)
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.process.stdout.readline(), "exports: removed /one; removed /disk\n")

    def test_that_are_all_missing_are_waited_for_by_the_service_manager(self):
        result = stag("serve", "--export", f"/x={self.work},mp", "--state", self.state)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("nothing to serve yet", result.stderr)

    def test_are_named_as_a_way_out_where_a_folder_is_missing(self):
        result = stag("serve", "--export", f"/x={self.work}/missing", "--state", self.state)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("missing: No such file or directory; make it, or mount it, or take the export out. With the option 'mp'", result.stderr)


class Mistakes(Case):
    def test_in_an_export_are_told_with_their_line(self):
        table = ["[[export]]", 'path = "/x"', 'folder = "memory"']
        for code, sentence, lines in (
            (2, ":4: there is no 'colour' in an export, which has path", [*table, 'colour = "red"']),
            (2, ":4: there is no 'listen' in an export, which has path", [*table, 'listen = ["127.0.0.1"]']),
            (2, "a setting of the server stands above the first [[export]]", [*table, 'slow-call = "1"']),
            (2, ":4: 'options' must be an array of texts", [*table, 'options = "ro"']),
            (2, ":2: 'path' must be one value", ["[[export]]", 'path = ["/x"]', 'folder = "memory"']),
            (2, ":1: an export wants a 'path' and a 'folder'", ["[[export]]", 'path = "/x"']),
            (2, ":4: fsid 'many' is no number", [*table, 'fsid = "many"']),
            (2, ":4: client '10.0.0.0/33' is not understood", [*table, 'clients = [{match = "10.0.0.0/33"}]']),
            (2, ":5: export option 'rx' is not known", [*table, "clients = [", '{match = "*", options = ["rx"]}]']),
            (2, ":4: a client is written {match", [*table, 'clients = ["10.0.0.0/8"]']),
            (2, ":4: a client is written {match", [*table, 'clients = [{match = "*", option = ["ro"]}]']),
            (2, ":1: export '/x': client '10.0.0.0/8' is given twice", [*table, 'clients = [{match = "10.0.0.0/8"}, {match = "10.0.0.0/8"}]']),
            (2, ":4: export '/x' is given twice", [*table, *table]),
            (2, ":5: fsid=7 is given twice", [*table, "fsid = 7", "[[export]]", 'path = "/y"', 'folder = "memory"', "fsid = 7"]),
            (2, ":2: export '/y=': is not understood", ["export = [", '"/y="]']),
            (1, ":1: ", ['export = "/x=/nonexistent"']),
            (2, ":1: 'export' must be", ["export = 1979-05-27"]),
        ):
            self.config(*lines)
            result = stag("serve", "--state", self.state, "--config", self.path, "--tcp-port", "0", "--rdma-port", "0")
            self.assertEqual(result.returncode, code, (lines, result.stdout, result.stderr))
            self.assertIn(self.path + sentence if sentence.startswith(":") else sentence, result.stderr)
            self.assertEqual(result.stdout, "")

    def test_that_leave_a_file_empty_or_are_no_file_are_told(self):
        for code, sentence, path in (2, "nothing to serve", self.path), (2, "Is a directory", self.work):
            open(self.path, "w").close()
            result = stag("serve", "--state", self.state, "--config", path)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(sentence, result.stderr)

    def test_on_the_command_line_are_told(self):
        for sentence, arguments in (
            ("an IPv6 address stands in brackets", ["--export", "/x=memory,client=2001:db8::/32:rw"]),
            ("client '10.0.0.0/33' is not understood", ["--export", "/x=memory,client=10.0.0.0/33"]),
            ("export option 'rx' is not known", ["--export", "/x=memory,client=10.0.0.0/8:rx"]),
            ("fsid '0' is no number from 1 on", ["--export", "/x=memory,fsid=0"]),
            ("--allow 'everybody' is no network", ["--export", "/x=memory", "--allow", "everybody"]),
            ("--credits", ["--export", "/x=memory", "--credits", "0"]),
            ("--inline-threshold", ["--export", "/x=memory", "--inline-threshold", "512"]),
        ):
            result = stag("serve", "--state", self.state, *arguments)
            self.assertEqual(result.returncode, 2, (arguments, result.stdout))
            self.assertIn(sentence, result.stderr)


class Rdma(Case):
    def answer(self, server, flags):
        """The MPA Reply to a request with these flags: its flags, and the sizes in the private data (RFC 8797)."""
        peer, reply = request_rdma(server.rdma_port, flags)
        peer.close()
        self.assertEqual(reply[:16], b"MPA ID Rep Frame")
        return reply[16], 1024 * (reply[30] + 1), 1024 * (reply[31] + 1)

    def test_sizes_and_checksums_are_those_asked_for(self):
        enhanced, crc = 0x10, 0x40
        plain = self.start(exports=("/x=memory",))
        self.assertEqual(self.answer(plain, enhanced), (enhanced, 16384, 73728))
        self.assertEqual(self.answer(plain, enhanced | crc)[0] & crc, crc)
        self.assertEqual(plain.end(), 0)
        usual = self.start("--inline-threshold", "16384", exports=("/x=memory",))
        self.assertEqual(self.answer(usual, enhanced), (enhanced, 16384, 16384), "what is asked for holds, the usual size too")
        self.assertEqual(usual.end(), 0)
        told = self.start("--inline-threshold", "65536", "--crc", "--credits", "2", exports=("/x=memory,no_root_squash",))
        self.assertEqual(self.answer(told, enhanced), (enhanced | crc, 65536, 65536))
        content = os.path.join(self.work, "content")
        with open(content, "wb") as file:
            file.write(os.urandom(3_000_001))
        for number, flags in enumerate(([], ["--crc"], ["--inline-threshold", "1024"], ["--inline-threshold", "262144", "--credits", "1"])):
            url, back = told.url(f"/x/{number}"), os.path.join(self.work, "back")
            self.assertEqual(stag("cp", *flags, content, url).returncode, 0, flags)
            self.assertEqual(stag("cp", *flags, url, back).returncode, 0, flags)
            with open(content, "rb") as sent, open(back, "rb") as received:
                self.assertEqual(sent.read(), received.read(), flags)
            os.unlink(back)


    def test_sizes_of_a_client_are_those_asked_for(self):
        for flags, sizes in (([], (73728, 16384)), (["--inline-threshold", "16384"], (16384, 16384)), (["--inline-threshold", "4096"], (4096, 4096))):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                url = f"nfs://127.0.0.1:{listener.getsockname()[1]}/x?mountport=1"
                client = subprocess.Popen([harness.STAG, "ping", *flags, url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                with listener.accept()[0] as peer:
                    peer.settimeout(harness.PATIENCE)
                    request = b""
                    while len(request) < 32 and (part := peer.recv(32 - len(request))):
                        request += part
                client.kill()
                client.wait()
            self.assertEqual(request[:16], b"MPA ID Req Frame")
            self.assertEqual((1024 * (request[30] + 1), 1024 * (request[31] + 1)), sizes, flags)


class OverIPv6(Case):
    def test_every_command_works(self):
        server = self.start("--listen", "::1", exports=("/x=memory,client=[::1]:no_root_squash",))
        rdma, tcp = server.urls["RPC-over-RDMA"], server.urls["TCP"]
        self.assertRegex(rdma, r"^nfs://\[::1\]:\d+/x\?mountport=\d+$")
        self.assertRegex(tcp, r"^nfs://\[::1\]:\d+/x\?proto=tcp$")
        content = os.path.join(self.work, "content")
        with open(content, "wb") as file:
            file.write(os.urandom(1_000_001))
        for url in (rdma, tcp):
            at = lambda name, url=url: url.replace("/x?", f"/x/{name}?")
            back = os.path.join(self.work, "back")
            for arguments in (
                ["mkdir", at("d")], ["cp", content, at("d/f")], ["cp", at("d/f"), back], ["ln", at("d/f"), at("d/g")],
                ["mv", at("d/g"), at("d/h")], ["chmod", "600", at("d/h")], ["touch", at("d/h")], ["ls", at("d")], ["stat", at("d/f")],
                ["cat", at("d/h")], ["df", url], ["ping", "-c", "1", url], ["info", url], ["rm", "-r", at("d")],
            ):
                result = stag(*arguments, text=False)
                self.assertEqual((result.returncode, result.stderr), (0, b""), arguments)
            with open(content, "rb") as sent, open(back, "rb") as received:
                self.assertEqual(sent.read(), received.read())
            os.unlink(back)
        self.assertEqual(stag("bench", "--samples", "1", "--milliseconds", "10", "--rows", "null_rtt", rdma).returncode, 0)
        info = stag("info", "--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port), "::1")
        self.assertEqual(info.returncode, 0, info.stderr)
        self.assertRegex(info.stdout, r"/x +sec=sys +::1")


if __name__ == "__main__":
    harness.main()
