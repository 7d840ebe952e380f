#!/usr/bin/env python3
"""A server of NFS 4.1 that is killed: what a client held it reclaims afterwards, on the wire."""
import os
import signal
import socket
import struct
import tempfile
import time
import unittest

import harness

OK, GRACE, NO_GRACE, RECLAIM_BAD, STALE_CLIENTID, BADSESSION, SERVERFAULT = 0, 10013, 10033, 10034, 10022, 10052, 10006
PUTFH, GETFH, LOCK, LOOKUP, OPEN, PUTROOTFH, EXCHANGE_ID, CREATE_SESSION, SEQUENCE, RECLAIM_COMPLETE = (
    22, 10, 12, 15, 18, 24, 42, 43, 53, 58)


def words(*numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


def opaque(data):
    return words(len(data)) + data + b"\0" * (-len(data) % 4)


class Client:
    """One owner with one connection, AUTH_SYS as root."""

    def __init__(self, port, owner):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE)
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

    def compound(self, *operations):
        """The status of the COMPOUND and the bytes of its results behind the number of operations."""
        self.xid += 1
        credential = words(0) + opaque(b"test") + words(0, 0, 0)
        call = words(self.xid, 0, 2, 100003, 4, 1, 1) + opaque(credential) + words(0, 0)
        call += opaque(b"") + words(1, len(operations)) + b"".join(operations)
        self.socket.sendall(words(0x80000000 | len(call)) + call)
        reply = self.read(struct.unpack(">I", self.read(4))[0] & 0x7FFFFFFF)
        status, tag = struct.unpack_from(">II", reply, 24)
        return status, reply[32 + tag + (-tag % 4) + 4:]

    def in_session(self, *operations):
        """The same behind a SEQUENCE, whose results are left out."""
        self.sequence += 1
        status, results = self.compound(words(SEQUENCE) + self.session + words(self.sequence, 0, 0, 0), *operations)
        return status, results[8 + 36:]

    def exchange_id(self):
        status, results = self.compound(words(EXCHANGE_ID) + b"verifier" + opaque(self.owner) + words(0, 0, 0))
        assert status == OK, status
        self.clientid, self.create = results[8:16], results[16:20]

    def create_session(self):
        channel = words(0, 1 << 20, 1 << 20, 4096, 16, 4, 0)
        status, results = self.compound(
            words(CREATE_SESSION) + self.clientid + self.create + words(0) + channel + channel + words(0x40000000, 0))
        self.session, self.sequence = results[8:24] if status == OK else None, 0
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


class Recovery(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.state = os.path.join(self.folder.name, "state")
        data = os.path.join(self.folder.name, "data")
        os.mkdir(data)
        os.chmod(data, 0o777)
        self.export = f"/data={data},no_root_squash"

    def start(self, *arguments):
        server = harness.Server([self.export], self.state, ["--nfs4", "--log-level", "error", *arguments])
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
        client = Client(server.tcp_port, owner)
        self.addCleanup(client.close)
        return client

    def test_a_lock_is_reclaimed_after_SIGKILL(self):
        server = self.start()
        anna = self.client(server).connect()
        self.assertEqual(anna.reclaim_complete(), OK)
        status, stateid, handle = anna.create_file(b"file")
        self.assertEqual(status, OK)
        self.assertEqual(anna.lock(handle, stateid, 0), OK)
        self.kill(server)

        server = self.start()
        again = self.client(server)
        again.clientid, again.create, again.session = anna.clientid, words(2), anna.session
        self.assertEqual(again.in_session(words(PUTROOTFH))[0], BADSESSION)
        self.assertEqual(again.create_session(), STALE_CLIENTID)
        again.connect()
        bert = self.client(server, b"bert").connect()
        self.assertEqual(bert.reclaim_complete(), OK)
        self.assertEqual(bert.create_file(b"other")[0], GRACE)
        status, stateid = again.reclaim(handle)
        self.assertEqual(status, OK)
        self.assertEqual(again.lock(handle, stateid, 1), OK)
        self.assertEqual(again.reclaim_complete(), OK)
        # All who could reclaim are done: once that is written the grace period is over.
        give_up = time.monotonic() + harness.PATIENCE
        while (status := bert.create_file(b"other")[0]) == GRACE and time.monotonic() < give_up:
            time.sleep(0.01)
        self.assertEqual(status, OK)

    def test_nobody_waits_where_nobody_held_anything(self):
        self.kill(self.start())
        anna = self.client(self.start()).connect()
        self.assertEqual(anna.reclaim_complete(), OK)
        self.assertEqual(anna.create_file(b"file")[0], OK)

    def test_a_start_without_version_4_forgets_what_its_clients_held(self):
        server = self.start()
        anna = self.client(server).connect()
        self.assertEqual(anna.reclaim_complete(), OK)
        self.kill(server)
        self.kill(self.start("--no-nfs4"))
        anna = self.client(self.start()).connect()
        self.assertEqual(anna.reclaim_complete(), OK)
        self.assertEqual(anna.create_file(b"file")[0], OK)

    def test_broken_records_are_one_sentence(self):
        os.mkdir(self.state)
        with open(os.path.join(self.state, "nfs4-clients.db"), "wb") as records:
            records.write(b"x" * 4096)
        ended = harness.stag("serve", "--nfs4", "--state", self.state, "--export", self.export, "--tcp-port", "0", "--rdma-port", "0")
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
        self.assertIn("cannot use the records of NFSv4 clients", ended.stderr)


if __name__ == "__main__":
    harness.main()
