"""A client of NFS 4.1 that speaks on the wire, for the tests of the `stag` command, and the case whose server it speaks to."""
import os
import signal
import socket
import struct
import tempfile
import unittest

import harness

OK = 0
PUTFH, GETFH, LOCK, LOOKUP, OPEN, PUTROOTFH, EXCHANGE_ID, CREATE_SESSION, SEQUENCE, RECLAIM_COMPLETE = (
    22, 10, 12, 15, 18, 24, 42, 43, 53, 58)


def words(*numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


def opaque(data):
    return words(len(data)) + data + b"\0" * (-len(data) % 4)


class Client:
    """One owner with one connection, AUTH_SYS as root."""

    def __init__(self, port, owner, host="127.0.0.1"):
        self.socket = socket.create_connection((host, port), timeout=harness.PATIENCE)
        self.owner, self.xid, self.sequence = owner, 0, 0

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
        self.socket.sendall(words(0x80000000 | len(call)) + call)
        return self.read(struct.unpack(">I", self.read(4))[0] & 0x7FFFFFFF)[24:]

    def compound(self, *operations):
        """The status of the COMPOUND and the bytes of its results behind the number of operations."""
        results = self.call(100003, 4, 1, opaque(b"") + words(1, len(operations)) + b"".join(operations))
        status, tag = struct.unpack_from(">II", results)
        return status, results[8 + tag + (-tag % 4) + 4:]

    def in_session(self, *operations):
        """The same behind a SEQUENCE, whose results are left out."""
        self.sequence += 1
        status, results = self.compound(words(SEQUENCE) + self.session + words(self.sequence, 0, 0, 0), *operations)
        return status, results[8 + 36:]

    def exchange_id(self):
        status, results = self.compound(words(EXCHANGE_ID) + b"verifier" + opaque(self.owner) + words(0, 0, 0))
        assert status == OK, status
        self.clientid, self.create = results[8:16], results[16:20]

    def create_session(self, cached=4096, operations=16, slots=4):
        """Its status; what the server granted of the three is in `granted`, and the next session has the next sequence number."""
        channel = words(0, 1 << 20, 1 << 20, cached, operations, slots, 0)
        status, results = self.compound(
            words(CREATE_SESSION) + self.clientid + self.create + words(0) + channel + channel + words(0x40000000, 0))
        self.session, self.sequence = None, 0
        if status == OK:
            self.session, self.granted = results[8:24], struct.unpack_from(">3I", results, 44)
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

    @staticmethod
    def last_handle(results):
        # GETFH is the last: its number, NFS4_OK, and an opaque that reaches to the end.
        at = results.rindex(words(GETFH, 0))
        size = struct.unpack_from(">I", results, at + 8)[0]
        return results[at + 12:at + 12 + size]

    def reclaim(self, handle):
        status, results = self.in_session(words(PUTFH) + opaque(handle), self.open_operation(words(1, 0), False))
        return status, results[16:32]

    def lock(self, handle, stateid, reclaim):
        arguments = words(LOCK, 2, reclaim) + struct.pack(">QQ", 0, 10)
        arguments += words(1, 0) + stateid + words(0) + self.clientid + opaque(b"locker")
        return self.in_session(words(PUTFH) + opaque(handle), arguments)[0]


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
