"""A client of NFS 4.1 that speaks on the wire, for the tests of the `stag` command, and the case whose server it speaks to."""
import os
import signal
import socket
import struct
import tempfile
import time
import unittest

import harness

OK = AUTH_NONE = 0
REPLY = 1
CLOSE, PUTFH, GETFH, LOCK, LOOKUP, OPEN, PUTROOTFH, SAVEFH, EXCHANGE_ID, CREATE_SESSION, DESTROY_SESSION, SEQUENCE = (
    4, 22, 10, 12, 15, 18, 24, 32, 42, 43, 44, 53)
RECLAIM_COMPLETE, COPY = 58, 60
CB_SEQUENCE = 11
BACK_CHANNEL = 2  # CREATE_SESSION4_FLAG_CONN_BACK_CHAN


def words(*numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


def opaque(data):
    return words(len(data)) + data + b"\0" * (-len(data) % 4)


class Client:
    """One owner with one connection, AUTH_SYS as root."""

    def __init__(self, port, owner, host="127.0.0.1", source=None):
        self.socket = socket.create_connection((host, port), timeout=harness.PATIENCE, source_address=source and (source, 0))
        self.owner, self.xid, self.sequence, self.minor = owner, 0, 0, 1

    def close(self):
        self.socket.close()

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the server closed the connection")
            data += part
        return data

    def call(self, program, version, procedure, arguments):
        """The bytes of the results of any procedure."""
        self.xid += 1
        credential = words(0) + opaque(b"test") + words(0, 0, 0)
        call = words(self.xid, 0, 2, program, version, procedure, 1) + opaque(credential) + words(0, 0) + arguments
        return self.exchange(call)[24:]

    def exchange(self, message):
        """The reply to it; of what the server calls meanwhile only answer_probe() answers anything."""
        self.send_record(message)
        while True:
            record = self.read(struct.unpack(">I", self.read(4))[0] & 0x7FFFFFFF)
            if struct.unpack_from(">I", record, 4)[0] == REPLY:
                return record
            self.answer_probe(record)

    def send_record(self, message):
        self.socket.sendall(words(0x80000000 | len(message)) + message)

    def answer_probe(self, call):
        """Answers CB_NULL, and a CB_COMPOUND of CB_SEQUENCE alone: by these the server asks whether the client can be called."""
        answer = call[:4] + words(REPLY, 0, 0, 0, 0)
        if struct.unpack_from(">I", call, 20)[0] == 0:
            return self.send_record(answer)
        at = 24
        for length_at in (4, 4, 0):  # of credential, verifier and tag
            size = struct.unpack_from(">I", call, at + length_at)[0]
            at += length_at + 4 + size + -size % 4
        operations, first = struct.unpack_from(">8xII", call, at)
        if (operations, first) == (1, CB_SEQUENCE):
            session, *slot = struct.unpack_from(">16s3I", call, at + 16)
            self.send_record(answer + words(OK, 0, 1, CB_SEQUENCE, OK) + session + words(*slot, slot[-1]))

    def compound(self, *operations):
        """The status of the COMPOUND and the bytes of its results behind the number of operations."""
        results = self.call(100003, 4, 1, opaque(b"") + words(self.minor, len(operations)) + b"".join(operations))
        status, tag = struct.unpack_from(">II", results)
        return status, results[8 + tag + (-tag % 4) + 4:]

    def in_session(self, *operations, cachethis=0):
        """The same behind a SEQUENCE, whose results are left out."""
        self.sequence += 1
        status, results = self.compound(words(SEQUENCE) + self.session + words(self.sequence, 0, 0, cachethis), *operations)
        return status, results[8 + 36:]

    def exchange_id(self):
        status, results = self.compound(words(EXCHANGE_ID) + b"verifier" + opaque(self.owner) + words(0, 0, 0))
        assert status == OK, status
        self.clientid, self.create = results[8:16], results[16:20]

    def create_session(self, cached=4096, operations=16, slots=4, flags=0):
        """Its status; what the server granted of the four is in `granted` and `flags`, and the next session has the next sequence number."""
        channel = words(0, 1 << 20, 1 << 20, cached, operations, slots, 0)
        status, results = self.compound(
            words(CREATE_SESSION) + self.clientid + self.create + words(flags) + channel + channel + words(0x40000000) +
            (words(1, AUTH_NONE) if flags else words(0)))
        self.session, self.sequence = None, 0
        if status == OK:
            self.session, self.granted = results[8:24], struct.unpack_from(">3I", results, 44)
            self.flags = struct.unpack_from(">I", results, 28)[0]
            self.create = words(struct.unpack(">I", self.create)[0] + 1)
        return status

    def connect(self):
        self.exchange_id()
        assert self.create_session() == OK
        return self

    def reclaim_complete(self):
        return self.in_session(words(RECLAIM_COMPLETE, 0))[0]

    def open_operation(self, claim, create):
        how = words(1, 0, 0, 0) if create else words(0)
        return words(OPEN, 0, 3, 0) + self.clientid + opaque(b"opener") + how + claim

    def create_file(self, name):
        """Status, stateid and filehandle."""
        status, results = self.in_session(
            words(PUTROOTFH), words(LOOKUP) + opaque(b"data"), self.open_operation(words(0) + opaque(name), True), words(GETFH))
        return status, results[24:40], self.last_handle(results) if status == OK else None

    def close_file(self, handle, stateid):
        return self.in_session(words(PUTFH) + opaque(handle), words(CLOSE, 0) + stateid)[0]

    @staticmethod
    def last_handle(results):
        # GETFH is the last: its number, NFS4_OK, and an opaque that reaches to the end.
        at = results.rindex(words(GETFH, 0))
        size = struct.unpack_from(">I", results, at + 8)[0]
        return results[at + 12:at + 12 + size]

    def destroy_session(self, session):
        return self.compound(words(DESTROY_SESSION) + session)[0]

    def copy(self, from_, source, to, target):
        """Status, and 1 where it goes on after its answer, which version 4.2 lets it do; of the whole file."""
        status, results = self.in_session(
            words(PUTFH) + opaque(from_), words(SAVEFH), words(PUTFH) + opaque(to),
            words(COPY) + source + target + struct.pack(">QQQ", 0, 0, 0) + words(1, 0, 0))
        return status, struct.unpack_from(">I", results, 32)[0] if status == OK else None

    def copy_that_goes_on(self, *files):
        """The first copy that does: the server lets none before it knows that the client can be called."""
        deadline = time.monotonic() + harness.PATIENCE
        while (result := self.copy(*files)) == (OK, 0) and time.monotonic() < deadline:
            pass
        return result

    def reclaim(self, handle):
        status, results = self.in_session(words(PUTFH) + opaque(handle), self.open_operation(words(1, 0), False))
        return status, results[16:32]

    def lock(self, handle, stateid, reclaim, owner=b"locker", cachethis=0):
        arguments = words(LOCK, 2, reclaim) + struct.pack(">QQ", 0, 10)
        arguments += words(1, 0) + stateid + words(0) + self.clientid + opaque(owner)
        return self.in_session(words(PUTFH) + opaque(handle), arguments, cachethis=cachethis)[0]


NLM, NLM_LOCK, NLM_UNLOCK = 100021, 2, 4
NLM_GRANTED, NLM_DENIED = 0, 1


def nlm_ask(client, procedure, before, host, handle, first, count, behind):
    cookie = opaque(b"cookie")
    lock = opaque(host) + opaque(handle) + opaque(b"owner") + words(1) + struct.pack(">QQ", first, count)
    return struct.unpack_from(">I", client.call(NLM, 4, procedure, cookie + before + lock + behind), len(cookie))[0]


def nlm_lock(client, host, handle, first, count, reclaim=0):
    """The status of NLMPROC4_LOCK for this host, on a client's connection."""
    return nlm_ask(client, NLM_LOCK, words(0, 1), host, handle, first, count, words(reclaim, 0))


def nlm_unlock(client, host, handle, first, count):
    return nlm_ask(client, NLM_UNLOCK, b"", host, handle, first, count, b"")


class RdmaClient(Client):
    """The same over RPC-over-RDMA and software iWARP; each message is inline, in one FPDU (RFC 5044, RFC 8166)."""

    def __init__(self, port, owner):
        self.socket, _ = harness.request_rdma(port)
        self.owner, self.xid, self.sequence, self.minor, self.sent = owner, 0, 0, 1, 0

    def exchange(self, message):
        self.sent += 1
        # DDP: the last segment, untagged, queue 0. RDMAP: Send. RPC-over-RDMA: RDMA_MSG without chunks.
        segment = bytes([0x41, 0x43]) + words(0, 0, self.sent, 0) + words(self.xid, 1, 32, 0, 0, 0, 0) + message
        fpdu = struct.pack(">H", len(segment)) + segment
        self.socket.sendall(fpdu + bytes(-len(fpdu) % 4 + 4))
        size = struct.unpack(">H", self.read(2))[0]
        return self.read(size + -(2 + size) % 4 + 4)[18 + 28:size]


class Case(unittest.TestCase):
    """Tests of one folder, exported as /data by servers that keep their state in another."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.state = os.path.join(self.folder, "state")
        self.data = os.path.join(self.folder, "data")
        os.mkdir(self.data)
        os.chmod(self.data, 0o777)

    def start(self, *arguments):
        server = harness.Server([f"/data={self.data},no_root_squash"], self.state, arguments)
        self.addCleanup(self.kill, server)
        return server

    @staticmethod
    def kill(server):
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGKILL)
            server.process.wait(harness.PATIENCE)
            server.process.stdout.close()
            server.errors.close()

    def client(self, server, owner=b"anna"):
        """One that has no session yet."""
        client = Client(server.tcp_port, owner)
        self.addCleanup(client.close)
        return client

    def ready_client(self, server, owner=b"anna"):
        client = self.client(server, owner).connect()
        self.assertEqual(client.reclaim_complete(), OK)
        return client
