"""`stag cp` between two servers of version 4.2: the source is asked for leave (COPY_NOTIFY), the destination is to copy (COPY), and what
they do not do goes through the client. The destination that does is our own server with --copy-from, or it is behind a proxy, which reads
from the source in its place.
"""
import contextlib
import os
import signal
import struct
import subprocess
import tempfile
import threading
import unittest

import harness
from harness import PATIENCE, stag
from nfs4_client import PUTFH, SAVEFH, SEQUENCE, COPY, Client, opaque, words
from rpc_proxy import RpcProxy

CLOSE, OPEN, READ, WRITE, COPY_NOTIFY = 4, 18, 25, 38, 61
OK, OFFLOAD_DENIED, BAD_STATEID = 0, 10091, 10025
ASKED = [SEQUENCE, PUTFH, SAVEFH, PUTFH, COPY]
PIECE = 512 << 10  # bytes that the proxy copies at a time
LONG = 5 << 20  # bytes of a file that the servers are asked to copy


class Words:
    """XDR that is read from its beginning on."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def word(self):
        return struct.unpack(">I", self.take(4))[0]

    def hyper(self):
        return struct.unpack(">Q", self.take(8))[0]

    def opaque(self):
        size = self.word()
        return self.take(size + -size % 4)[:size]


class Compound:
    """A call of COMPOUND: its RPC header, and the numbers of its operations as far as they are known here."""

    def __init__(self, record):
        words_ = Words(record)
        self.xid, direction, _, program, version, procedure = struct.unpack(">6I", words_.take(24))
        self.operations = []
        if (direction, program, version, procedure) != (0, 100003, 4, 1):
            return
        for _ in ("credential", "verifier"):
            words_.word()
            words_.opaque()
        self.head = record[:words_.at]
        words_.opaque()
        self.minor = words_.word()
        for _ in range(words_.word()):
            self.operations.append(words_.word())
            if self.operations[-1] == SEQUENCE:
                self.sequence = words_.take(32)
            elif self.operations[-1] == PUTFH:
                self.handle, self.saved = words_.opaque(), getattr(self, "handle", None)
            elif self.operations[-1] == COPY:
                self.source, self.target = words_.take(16), words_.take(16)
                self.offset, self.to, self.count = words_.hyper(), words_.hyper(), words_.hyper()
                words_.take(8)
                self.servers = [(words_.word(), words_.opaque(), words_.opaque()) for _ in range(words_.word())]
            elif self.operations[-1] != SAVEFH:
                break


class ServerProxy(RpcProxy):
    """Forwards what it counts."""

    def __init__(self, port, **options):
        self.operations = []
        super().__init__(port, **options)

    def of(self, operation):
        return self.operations.count(operation)

    def url(self, path, more=""):
        return f"nfs://127.0.0.1:{self.port}{path}?proto=tcp&version=4.2{more}"

    def call(self, record):
        self.operations += Compound(record).operations
        return record

    def reply(self, record):
        return record

    def _accept(self):
        # Of a server that the test has ended.
        with contextlib.suppress(ConnectionRefusedError):
            super()._accept()

    def _forward(self, source, target, see, old, new):
        change = self.call if see == self._see_call else self.reply
        stream = source.makefile("rb")
        with contextlib.suppress(OSError, struct.error):
            while mark := stream.read(4):
                record = change(stream.read(struct.unpack(">I", mark)[0] & 0x7FFFFFFF))
                if record is not None:
                    self._send(target, words(0x80000000 | len(record)) + record)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(2)


class Destination(ServerProxy):
    """Answers COPY from another server: it writes what it has read there; from byte `refused` of a file on it says `refusal`, or nothing
    (None), or writes no more (OK)."""

    def __init__(self, port, refusal=OK, refused=1 << 60):
        self.refusal, self.refused = refusal, refused
        self.asked, self.waiting = [], {}
        self.before_piece = lambda call: None
        super().__init__(port)

    def call(self, record):
        call = Compound(super().call(record))
        if call.operations != ASKED or not call.servers:
            return record
        self.asked.append(call)
        self.before_piece(call)
        if self.refusal is None and call.offset >= self.refused:
            return None
        status, data = (self.refusal, b"") if call.offset >= self.refused else self.read_at(call)
        self.waiting[call.xid] = status
        # In place of what is refused the server is asked for something else: it has to see the SEQUENCE.
        operation = words(SAVEFH)
        if status == OK:
            operation = words(WRITE) + call.target + struct.pack(">Q", call.to) + words(0) + opaque(data)
        return (call.head + opaque(b"") + words(call.minor, 5, SEQUENCE) + call.sequence + words(PUTFH) + opaque(call.handle) +
                words(SAVEFH, PUTFH) + opaque(call.handle) + operation)

    @staticmethod
    def read_at(call):
        """Status and data, by the stateid that the client was told, as a client of the source."""
        _, netid, address = call.servers[0]
        assert netid == b"tcp", netid
        *host, high, low = address.decode().split(".")
        reader = Client(int(high) * 256 + int(low), b"the destination", ".".join(host)).connect()
        status, results = reader.in_session(
            words(PUTFH) + opaque(call.saved), words(READ) + call.source + struct.pack(">Q", call.offset) + words(min(call.count, PIECE)))
        reader.destroy_session(reader.session)
        reader.close()
        if status != OK:
            return status, b""
        size = struct.unpack_from(">I", results, 20)[0]
        return OK, results[24:24 + size]

    def reply(self, record):
        xid = struct.unpack_from(">I", record)[0]
        if xid not in self.waiting or record[4:8] != words(1):
            return record
        refusal = self.waiting.pop(xid)
        if refusal != OK:
            # The COMPOUND's status, an empty tag, and five results.
            at = record.index(words(OK, 0, 5, SEQUENCE))
            return record[:at] + words(refusal) + record[at + 4:-8] + words(COPY, refusal)
        # WRITE4resok is count, committed and verifier.
        written, committed = struct.unpack_from(">II", record, len(record) - 16)
        return record[:-24] + words(COPY, OK, 0) + struct.pack(">Q", written) + words(committed) + record[-8:] + words(1, 1)


class Pair(unittest.TestCase):
    def setUp(self, *destination):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.servers, self.folders = [], []
        for name in ("from", "to"):
            self.folders.append(os.path.join(self.work, name))
            os.mkdir(self.folders[-1])
            server = harness.Server([f"/data={self.folders[-1]},no_root_squash"], os.path.join(self.work, "state " + name),
                                    destination if name == "to" else ())
            self.addCleanup(self.end, server)
            self.servers.append(server)
        self.source = self.proxied(ServerProxy(self.servers[0].tcp_port))

    def end(self, server):
        if server.process.poll() is None:
            self.assertEqual(server.end(), 0)
        for each in (server.process.stdout, server.errors):
            each.close()

    def proxied(self, proxy):
        self.addCleanup(proxy.close)
        return proxy

    def destination(self, refusal=OK, refused=1 << 60):
        return self.proxied(Destination(self.servers[1].tcp_port, refusal, refused))

    def file(self, name, size=LONG):
        content = os.urandom(size)
        with open(os.path.join(self.folders[0], name), "wb") as file:
            file.write(content)
        return content

    def copy(self, destination, *arguments, source="/data/f", target="/data/f", command="cp"):
        """In silence."""
        result = stag(command, *arguments, self.source.url(source), destination.url(target))
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def there(self, name):
        with open(os.path.join(self.folders[1], name), "rb") as file:
            return file.read()


class Between(Pair):
    def test_is_made_by_the_servers(self):
        content = self.file("f")
        destination = self.destination()
        self.copy(destination, "-p")
        self.assertEqual(self.there("f"), content)
        self.assertEqual(os.listdir(self.folders[1]), ["f"])
        self.assertEqual(len(destination.asked), LONG // PIECE)
        self.assertEqual((self.source.of(READ), destination.of(WRITE)), (0, 0), "the data went through the client")
        self.assertEqual({call.source for call in destination.asked}, {destination.asked[0].source})

    def test_has_one_open_of_the_source_a_file(self):
        contents = {name: self.file(name) for name in ("f", "g")}
        destination = self.destination()
        self.copy(destination, "-r", "-j", "1", source="/data", target="/data/all")
        self.assertEqual({name: self.there("all/" + name) for name in contents}, contents)
        self.assertEqual([each for each in self.source.operations if each in (OPEN, COPY_NOTIFY, CLOSE)], [OPEN, COPY_NOTIFY, CLOSE] * 2)

    def test_is_what_sync_does_too(self):
        content = self.file("f")
        destination = self.destination()
        self.copy(destination, source="/data", target="/data/all", command="sync")
        self.assertEqual(self.there("all/f"), content)
        self.assertEqual((self.source.of(READ), destination.of(WRITE)), (0, 0))
        self.copy(destination, source="/data", target="/data/all", command="sync")
        self.assertEqual(len(destination.asked), LONG // PIECE, "it is up to date")

    def test_of_short_files_and_files_with_holes_goes_through_the_client(self):
        short = self.file("short", 1000)
        with open(os.path.join(self.folders[0], "holes"), "wb") as file:
            file.truncate(LONG)
        destination = self.destination()
        self.copy(destination, "-r", source="/data", target="/data/all")
        self.assertEqual((self.there("all/short"), self.there("all/holes")), (short, bytes(LONG)))
        self.assertEqual(destination.asked, [])

    def test_that_the_destination_refuses_goes_through_the_client_and_is_asked_for_once(self):
        contents = {name: self.file(name) for name in ("f", "g", "h")}
        destination = self.destination(OFFLOAD_DENIED, 0)
        self.copy(destination, "-r", "-j", "1", source="/data", target="/data/all")
        self.assertEqual({name: self.there("all/" + name) for name in contents}, contents)
        self.assertEqual(len(destination.asked), 1)
        self.assertEqual([self.source.of(each) for each in (OPEN, COPY_NOTIFY, CLOSE)], [1, 1, 1])

    def test_that_our_server_refuses_goes_through_the_client(self):
        contents = {name: self.file(name) for name in ("f", "g")}
        destination = self.proxied(ServerProxy(self.servers[1].tcp_port))
        self.copy(destination, "-r", "-j", "1", source="/data", target="/data/all")
        self.assertEqual({name: self.there("all/" + name) for name in contents}, contents)
        self.assertEqual(destination.of(COPY), 1)

    def test_that_is_refused_half_way_is_begun_again(self):
        content = self.file("f")
        destination = self.destination(BAD_STATEID, PIECE)
        self.copy(destination)
        self.assertEqual(self.there("f"), content)
        self.assertEqual(len(destination.asked), 2)

    def test_in_place_goes_through_the_client(self):
        content = self.file("f")
        with open(os.path.join(self.folders[1], "f"), "wb") as file:
            file.write(b"what was there")
        destination = self.destination()
        self.copy(destination, "--inplace")
        self.assertEqual(self.there("f"), content)
        self.assertEqual(destination.asked, [])

    def test_that_ends_half_way_is_begun_again(self):
        content = self.file("f")
        destination = self.destination(OK, PIECE)
        self.copy(destination)
        self.assertEqual(self.there("f"), content)
        self.assertIn(PIECE, [call.offset for call in destination.asked])
        self.assertGreater(self.source.of(READ), 0)

    def test_of_a_file_that_becomes_shorter_meanwhile_is_no_longer_than_that(self):
        for size in (1000, 0):
            content = self.file("f")
            destination = self.destination()

            def shorten(call):
                if call.offset >= 2 * PIECE:
                    os.truncate(os.path.join(self.folders[0], "f"), size)

            destination.before_piece = shorten
            self.copy(destination)
            self.assertEqual(self.there("f"), content[:size])

    def test_that_the_destination_does_not_answer_is_made_to_another_file_through_the_client(self):
        contents = {name: self.file(name) for name in ("f", "g")}
        destination = self.destination(None, 0)
        self.copy(destination, "-r", "-j", "1", "--timeout", "5", source="/data", target="/data/all")
        self.assertEqual({name: self.there("all/" + name) for name in contents}, contents)
        self.assertEqual(sorted(os.listdir(os.path.join(self.folders[1], "all"))), ["f", "g"])
        self.assertEqual(len({call.handle for call in destination.asked}), 1)

    def test_is_not_made_by_servers_of_earlier_versions(self):
        content = self.file("f")
        destination = self.destination()
        result = stag("cp", self.source.url("/data/f").replace("4.2", "4.1"), destination.url("/data/f"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.there("f"), content)
        self.assertEqual(destination.asked, [])

    def test_that_is_interrupted_leaves_nothing(self):
        self.file("f")
        destination = self.destination()
        copying = []

        def interrupting(call):
            copying[0].send_signal(signal.SIGINT)
            return Destination.read_at(call)

        destination.read_at = interrupting
        copying.append(subprocess.Popen(
            [harness.STAG, "cp", self.source.url("/data/f"), destination.url("/data/f")], stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True))
        _, errors = copying[0].communicate(timeout=PATIENCE)
        self.assertEqual((copying[0].returncode, errors), (130, "stag cp: interrupted\n"))
        self.assertEqual(os.listdir(self.folders[1]), [])


class Gate(ServerProxy):
    """Between our servers: on the READ number `at` it calls `reached`, and what goes to the source after that waits until `release()`."""

    def __init__(self, port, at=1 << 60):
        self.at, self.seen, self.arrived = at, 0, threading.Event()
        self.opened = threading.Event()
        self.broken = False
        super().__init__(port)

    def call(self, record):
        operations = Compound(super().call(record)).operations
        self.seen += READ in operations
        if self.seen >= self.at and not self.opened.is_set():
            self.arrived.set()
            self.opened.wait(PATIENCE)
        if self.broken:
            raise OSError("the source is gone")
        return record

    def break_off(self):
        self.broken = True
        self.opened.set()

    def close(self):
        self.opened.set()
        super().close()


class Redirecting(ServerProxy):
    """The client's way to the destination, which it tells of the gate in place of the source."""

    def __init__(self, port, source, gate):
        self.source, self.gate = (opaque(f"127.0.0.1.{each >> 8}.{each & 255}".encode()) for each in (source, gate))
        super().__init__(port)

    def call(self, record):
        return super().call(record).replace(self.source, self.gate)


class ByOurServers(Pair):
    COPY_FROM = "192.0.2.0/24,localhost"

    def setUp(self):
        super().setUp("--copy-from", self.COPY_FROM)
        self.to = self.proxied(ServerProxy(self.servers[1].tcp_port))

    def gated(self, at):
        gate = self.proxied(Gate(self.servers[0].tcp_port, at))
        return gate, self.proxied(Redirecting(self.servers[1].tcp_port, self.servers[0].tcp_port, gate.port))

    def begin(self, destination, *arguments):
        """A copy of f."""
        process = subprocess.Popen([harness.STAG, "cp", *arguments, self.source.url("/data/f"), destination.url("/data/f")],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def test_the_data_does_not_pass_through_the_client(self):
        content = self.file("f", 20 << 20)
        self.copy(self.to, "-p")
        self.assertEqual(self.there("f"), content)
        self.assertEqual(os.listdir(self.folders[1]), ["f"])
        self.assertEqual((self.source.of(READ), self.to.of(WRITE)), (0, 0))
        self.assertEqual([self.source.of(each) for each in (OPEN, COPY_NOTIFY, CLOSE)], [1, 1, 1])

    def test_many_files_are_copied_at_a_time(self):
        contents = {str(i): self.file(str(i)) for i in range(20)}
        self.copy(self.to, "-r", source="/data", target="/data/all")
        self.assertEqual({name: self.there("all/" + name) for name in contents}, contents)
        self.assertEqual((self.source.of(READ), self.to.of(WRITE)), (0, 0))

    def test_goes_by_rdma_where_the_client_calls_the_source_so(self):
        content = self.file("f")
        result = stag("cp", f"nfs://127.0.0.1:{self.servers[0].rdma_port}/data/f?version=4.2", self.to.url("/data/f"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.there("f"), content)
        self.assertEqual(self.to.of(WRITE), 0)

    def test_holes_stay_where_the_client_copies(self):
        with open(os.path.join(self.folders[0], "f"), "wb") as file:
            file.truncate(1 << 30)
            file.seek(500 << 20)
            file.write(b"in the middle")
        self.copy(self.to)
        status = os.stat(os.path.join(self.folders[1], "f"))
        self.assertEqual(status.st_size, 1 << 30)
        self.assertLess(status.st_blocks * 512, 1 << 20)
        with open(os.path.join(self.folders[1], "f"), "rb") as file:
            file.seek(500 << 20)
            self.assertEqual(file.read(14), b"in the middle\0")

    def test_what_the_user_may_not_read_the_server_does_not_read_for_him(self):
        content = self.file("f")
        os.chmod(os.path.join(self.folders[0], "f"), 0o600)
        os.chmod(self.folders[1], 0o777)
        nobody = "&uid=4242&gid=4242"
        result = stag("cp", self.source.url("/data/f", nobody), self.to.url("/data/f", nobody))
        self.assertEqual(result.returncode, 1)
        self.assertIn("permission denied", result.stderr)
        # As root at the source, and as nobody at the destination, whose server reads as nobody.
        result = stag("cp", self.source.url("/data/f"), self.to.url("/data/f", nobody))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.there("f"), content)
        self.assertGreater(self.to.of(WRITE), 0)

    def test_a_source_that_is_gone_in_the_middle_is_read_by_the_client(self):
        content = self.file("f", 20 << 20)
        gate, destination = self.gated(3)
        copying = self.begin(destination)
        self.assertTrue(gate.arrived.wait(PATIENCE))
        gate.close()
        gate.break_off()
        _, errors = copying.communicate(timeout=PATIENCE)
        self.assertEqual((copying.returncode, errors), (0, ""))
        self.assertEqual(self.there("f"), content)
        self.assertGreater(destination.of(WRITE), 0)
        self.assertIn("Nfs4CopySourceFailed", self.servers[1].log())

    def test_a_source_that_is_killed_in_the_middle_leaves_nothing(self):
        self.file("f", 20 << 20)
        gate, destination = self.gated(3)
        copying = self.begin(destination, "--timeout", "5")
        self.assertTrue(gate.arrived.wait(PATIENCE))
        self.servers[0].process.kill()
        self.servers[0].process.wait(PATIENCE)
        gate.break_off()
        _, errors = copying.communicate(timeout=PATIENCE)
        self.assertEqual(copying.returncode, 1, errors)
        self.assertEqual(os.listdir(self.folders[1]), [])
        self.assertEqual(stag("ls", destination.url("/data")).returncode, 0)

    def test_is_cancelled_while_the_source_is_silent(self):
        self.file("f", 20 << 20)
        gate, destination = self.gated(3)
        copying = self.begin(destination)
        self.assertTrue(gate.arrived.wait(PATIENCE))
        copying.send_signal(signal.SIGINT)
        _, errors = copying.communicate(timeout=PATIENCE)
        self.assertEqual((copying.returncode, errors), (130, "stag cp: interrupted\n"))
        self.assertEqual(os.listdir(self.folders[1]), [])

    def test_a_server_ends_while_the_source_is_silent(self):
        self.file("f", 20 << 20)
        gate, destination = self.gated(3)
        copying = self.begin(destination, "--timeout", "5")
        self.assertTrue(gate.arrived.wait(PATIENCE))
        self.assertEqual(self.servers[1].end(), 0)
        gate.close()
        copying.communicate(timeout=PATIENCE)

    def test_another_address_is_not_connected_to(self):
        content = self.file("f")
        # Of the test's own machine, and not among those named.
        source = opaque(f"127.0.0.1.{self.servers[0].tcp_port >> 8}.{self.servers[0].tcp_port & 255}".encode())
        destination = self.proxied(ServerProxy(self.servers[1].tcp_port))
        plain = destination.call
        destination.call = lambda record: plain(record).replace(source, opaque(b"198.51.100.1.8.1"))
        self.copy(destination)
        self.assertEqual(self.there("f"), content)
        self.assertGreater(destination.of(WRITE), 0)
        self.assertIn("Nfs4CopySourceRefused", self.servers[1].log())
        self.assertIn("198.51.100.1:2049", self.servers[1].log())


class OnReload(Pair):
    """The servers are named in the destination's configuration file."""

    def setUp(self):
        file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        self.addCleanup(file.close)
        self.config = file.name
        super().setUp("--config", self.config)

    def reload(self, line, said):
        """`said`: on standard output, when it is taken on."""
        with open(self.config, "w") as file:
            file.write(line)
        self.servers[1].process.send_signal(signal.SIGHUP)
        while (read := self.servers[1].process.stdout.readline()) != f"settings: copy-from = {said}\n":
            self.assertTrue(read, "it has ended")

    def goes_through_the_client(self):
        content, to = self.file("f"), self.proxied(ServerProxy(self.servers[1].tcp_port))
        self.copy(to)
        self.assertEqual(self.there("f"), content)
        return to.of(WRITE) != 0

    def test_others_are_copied_from_or_nobody(self):
        self.assertTrue(self.goes_through_the_client())
        self.assertEqual(self.servers[1].log(), "", "nobody is named, so nobody is missed")
        self.reload('copy-from = "127.0.0.1"', "127.0.0.1")
        self.assertFalse(self.goes_through_the_client())
        self.reload('copy-from = "192.0.2.1"', "192.0.2.1")
        self.assertTrue(self.goes_through_the_client())
        self.assertIn("Nfs4CopySourceRefused", self.servers[1].log())
        self.reload("", "none")
        self.assertTrue(self.goes_through_the_client())
        self.assertNotIn("SettingNeedsRestart", self.servers[1].log())


class CopyFrom(unittest.TestCase):
    def test_names_servers(self):
        for wrong in ("@servers", "*", "*.example.com", "192.0.2.1,", "", "192.0.2.0/33"):
            result = stag("serve", "--export", "/data=memory", "--copy-from", wrong)
            self.assertEqual(result.returncode, 2, wrong)
            self.assertIn("is no server; write an address, a host, or a network", result.stderr)

    def test_is_refused_where_it_has_no_effect(self):
        for other in ("--no-nfs4", "--no-callbacks"):
            for also in ((), ("--check",)):
                result = stag("serve", "--export", "/data=memory", "--copy-from", "192.0.2.1", other, *also)
                self.assertEqual(result.returncode, 2, other)
                self.assertIn(f"--copy-from has no effect with {other}", result.stderr)


if __name__ == "__main__":
    harness.main()
