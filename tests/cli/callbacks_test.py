#!/usr/bin/env python3
"""A client of NFS 4.0 that listens for callbacks: the server connects to it, on the wire."""
import os
import signal
import socket
import struct
import tempfile
import threading
import time
import unittest

import harness
import nfs4_client
from nfs4_client import BACK_CHANNEL

OK, NONE, WRITE = 0, 0, 2
GETFH, LOOKUP, OPEN, OPEN_CONFIRM, PUTFH, PUTROOTFH, SETCLIENTID, SETCLIENTID_CONFIRM = 10, 15, 18, 20, 22, 24, 35, 36
CALLBACK_PROGRAM = 0x40000000


def words(*numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


def opaque(data):
    return words(len(data)) + data + b"\0" * (-len(data) % 4)


def read(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the other side closed the connection")
        data += part
    return data


def read_record(connection):
    return read(connection, struct.unpack(">I", read(connection, 4))[0] & 0x7FFFFFFF)


class Listener:
    """The client's callback service: answers CB_NULL, and notes what it was asked."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.asked = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def address(self):
        port = self.socket.getsockname()[1]
        return f"127.0.0.1.{port >> 8}.{port & 255}".encode()

    def serve(self):
        try:
            while True:
                connection, _ = self.socket.accept()
                with connection:
                    self.answer(connection)
        except OSError:
            return

    def answer(self, connection):
        try:
            while True:
                xid, _, _, program, version, procedure = struct.unpack_from(">6I", read_record(connection))
                self.asked.append((program, version, procedure))
                reply = words(xid, 1, 0, 0, 0, 0)
                connection.sendall(words(0x80000000 | len(reply)) + reply)
        except ConnectionError:
            return

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(harness.PATIENCE)


class Client:
    """One owner of version 4.0 with one connection, AUTH_SYS as root."""

    def __init__(self, port, listener, name=b"anna", source="127.0.0.1"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE, source_address=(source, 0))
        self.xid = self.seqid = 0
        results = self.compound(words(SETCLIENTID) + b"verifier" + opaque(name) + words(CALLBACK_PROGRAM) +
                                opaque(b"tcp") + opaque(listener.address()) + words(7))
        self.clientid = results[8:16]
        self.compound(words(SETCLIENTID_CONFIRM) + results[8:24])

    def close(self):
        self.socket.close()

    def compound(self, *operations):
        """The bytes of its results behind the number of operations."""
        self.xid += 1
        credential = words(0) + opaque(b"test") + words(0, 0, 0)
        call = words(self.xid, 0, 2, 100003, 4, 1, 1) + opaque(credential) + words(0, 0)
        call += opaque(b"") + words(0, len(operations)) + b"".join(operations)
        self.socket.sendall(words(0x80000000 | len(call)) + call)
        reply = read_record(self.socket)
        status, tag = struct.unpack_from(">II", reply, 24)
        assert status == OK, status
        return reply[32 + tag + (-tag % 4) + 4:]

    def open(self, name=b"file"):
        """Stateid, filehandle and the type of the delegation."""
        self.seqid += 1
        operation = words(OPEN, self.seqid, 3, 0) + self.clientid + opaque(b"opener") + words(1, 0, 0, 0)
        results = self.compound(words(PUTROOTFH), words(LOOKUP) + opaque(b"data"), operation + words(0) + opaque(name),
                                words(GETFH))
        attributes = struct.unpack_from(">I", results, 64)[0]
        at = results.rindex(words(GETFH, 0)) + 8
        size = struct.unpack_from(">I", results, at)[0]
        return results[24:40], results[at + 4:at + 4 + size], struct.unpack_from(">I", results, 68 + 4 * attributes)[0]

    def open_confirmed(self, name=b"file"):
        stateid, handle, delegation = self.open(name)
        assert delegation == NONE, "its owner is not confirmed"
        self.seqid += 1
        self.compound(words(PUTFH) + opaque(handle), words(OPEN_CONFIRM) + stateid + words(self.seqid))
        return self


class Callbacks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = os.path.join(folder.name, "state")
        self.listener = Listener()
        self.addCleanup(self.listener.close)

    def server(self, *arguments, export="/data=memory"):
        server = harness.Server([export], self.state, ["--log-level", "info", *arguments])
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def client(self, *arguments, **options):
        self.serving = server = self.server(*arguments, **options)
        client = Client(server.tcp_port, self.listener)
        self.addCleanup(client.close)
        return client.open_confirmed()

    def delegated(self, client, name=b"file"):
        """The delegation of a file, the first that the client opens once it is known."""
        # An OPEN waits for the answer for a moment only.
        until = time.monotonic() + harness.PATIENCE
        while (delegation := client.open(name)[2]) == NONE and time.monotonic() < until:
            time.sleep(0.05)
        return delegation

    def test_a_client_that_answers_gets_a_delegation(self):
        self.assertEqual(self.delegated(self.client()), WRITE)
        self.assertEqual(self.listener.asked[0], (CALLBACK_PROGRAM, 1, 0))

    def test_as_many_files_are_delegated_as_the_limit_says(self):
        client = self.client("--nfs4-delegations", "4")
        self.assertEqual(self.delegated(client), WRITE)
        self.assertEqual([client.open(name)[2] for name in (b"second", b"third")], [WRITE, NONE])
        self.assertRegex(self.serving.log(), r"Nfs4DelegationsTooMany 127\.0\.0\.1:\d+: .*\(client \d+, export /data, xid 0x\w{8}: the limit of its address\)", "half of four")

    def config(self, *lines):
        path = os.path.join(os.path.dirname(self.state), "stag.toml")
        with open(path, "w") as file:
            file.writelines(line + "\n" for line in lines)
        return "--config", path

    def reload(self, server, name, *lines):
        """The server has taken the setting on when this returns."""
        self.config(*lines)
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(any(line.startswith(f"settings: {name} = ") for line in iter(server.process.stdout.readline, "")))

    def test_as_many_files_are_delegated_as_a_reload_has_it(self):
        client = self.client(*self.config("nfs4-delegations = 4"))
        self.assertEqual(self.delegated(client), WRITE)
        self.assertEqual([client.open(name)[2] for name in (b"second", b"third")], [WRITE, NONE])
        self.reload(self.serving, "nfs4-delegations", "nfs4-delegations = 6")
        self.assertEqual([client.open(name)[2] for name in (b"fourth", b"fifth")], [WRITE, NONE], "half of six")
        self.reload(self.serving, "nfs4-delegations", "nfs4-delegations = 0")
        self.assertEqual(client.open(b"sixth")[2], NONE)

    def test_a_client_is_called_in_the_networks_that_a_reload_has(self):
        server = self.server(*self.config())

        def client(name):
            made = Client(server.tcp_port, self.listener, name, source="127.0.0.2")
            self.addCleanup(made.close)
            return made.open_confirmed(name)

        before = client(b"before")
        self.assertIn("CallbackAddressRefused 127.0.0.2", server.log())
        self.reload(server, "callback-network", 'callback-network = "127.0.0.1"')
        self.assertEqual(self.delegated(client(b"after"), b"after's"), WRITE)
        self.assertEqual(before.open(b"another")[2], NONE, "its address was refused")
        refused = server.log().count("CallbackAddressRefused")
        self.reload(server, "callback-network")
        client(b"later")
        self.assertEqual(server.log().count("CallbackAddressRefused"), refused + 1)

    def test_as_many_files_that_programs_use_are_delegated_as_their_limit_says(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        client = self.client("--nfs4-local-delegations", "2", export=f"/data={folder.name},no_root_squash")
        if self.delegated(client) == NONE:
            self.skipTest("no leases can be had in this folder")
        self.assertEqual([client.open(name)[2] for name in (b"second", b"third")], [WRITE, NONE])
        self.assertRegex(self.serving.log(), r"Nfs4DelegationsTooMany .*\(client \d+, export /data, xid 0x\w{8}: of files that programs of the server are kept from\)")

    def test_connections_over_RDMA_carry_them_unless_that_is_turned_off(self):
        for arguments, over_rdma in (((), BACK_CHANNEL), (("--no-rdma-callbacks",), 0)):
            server = self.server(*arguments)
            for kind, port, carries in ((nfs4_client.RdmaClient, server.rdma_port, over_rdma),
                                        (nfs4_client.Client, server.tcp_port, BACK_CHANNEL)):
                client = kind(port, b"name")
                self.addCleanup(client.close)
                client.exchange_id()
                self.assertEqual(client.create_session(flags=BACK_CHANNEL), OK)
                self.assertEqual(client.flags, carries, (arguments, kind))
            self.assertEqual(server.end(), 0)

    def test_without_callbacks_nobody_is_connected_to(self):
        client = self.client("--no-callbacks")
        for _ in range(3):
            self.assertEqual(client.open()[2], NONE)
        self.assertEqual(self.listener.asked, [])

    def test_a_network_that_is_none_is_a_wrong_usage(self):
        wrong = harness.stag("serve", "--export", "/data=memory", "--callback-network", "everywhere")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("--callback-network 'everywhere'", wrong.stderr)


if __name__ == "__main__":
    harness.main()
