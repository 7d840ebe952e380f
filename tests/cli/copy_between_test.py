"""`stag cp` between two servers of version 4.2: the source is asked for leave (COPY_NOTIFY), the destination is to copy (COPY), and what
they do not do goes through the client. The destination that does is our own server behind a proxy, which reads from the source.
"""
import contextlib
import os
import signal
import struct
import subprocess
import tempfile
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


class Between(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = work.name
        self.servers, self.folders = [], []
        for name in ("from", "to"):
            self.folders.append(os.path.join(self.work, name))
            os.mkdir(self.folders[-1])
            server = harness.Server([f"/data={self.folders[-1]},no_root_squash"], os.path.join(self.work, "state " + name))
            self.addCleanup(lambda server=server: self.assertEqual(server.end(), 0))
            self.servers.append(server)
        self.source = self.proxied(ServerProxy(self.servers[0].tcp_port))

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


if __name__ == "__main__":
    harness.main()
