"""`stag serve` where there is little memory: clients that take nothing do not end it, and others are served."""
import os
import resource
import shutil
import socket
import struct
import subprocess
import tempfile
import unittest

import harness
from harness import Server

MIB = 1 << 20
ADDRESS_SPACE = 900 * MIB
CROWD = 400
MOUNT, NFS = (100005, 3), (100003, 3)


class Client:
    """NFS over TCP by hand, so that it can send without receiving."""

    def __init__(self, port, source):
        self.socket = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
        self.socket.settimeout(harness.PATIENCE)
        self.xid = 0

    def send(self, program, procedure, arguments):
        self.xid += 1
        credential = struct.pack(">IIIIII", 1, 20, 0, 0, 0, 0) + bytes(4)
        message = struct.pack(">6I", self.xid, 0, 2, *program, procedure) + credential + bytes(8) + arguments
        self.socket.sendall(struct.pack(">I", 1 << 31 | len(message)) + message)

    def receive(self):
        """The results of a successful call."""
        length = struct.unpack(">I", self.exactly(4))[0] & 0x7FFFFFFF
        reply = self.exactly(length)
        accepted = struct.unpack(">6I", reply[:24])
        if accepted[2] != 0 or accepted[5] != 0:
            raise AssertionError(f"refused: {accepted}")
        return reply[24:]

    def exactly(self, length):
        data = bytearray()
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            if not part:
                raise AssertionError("the server closed the connection")
            data += part
        return bytes(data)

    def call(self, program, procedure, arguments=b""):
        self.send(program, procedure, arguments)
        return self.receive()


def opaque(data):
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def handle_at(results):
    length = struct.unpack(">I", results[4:8])[0]
    return results[8:8 + length]


class LittleMemory(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-little-memory-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.folder = os.path.join(self.work, "export")
        os.mkdir(self.folder)
        with open(os.path.join(self.folder, "file"), "wb") as file:
            file.write(b"x" * MIB)

    def crowd_at(self, *arguments):
        """A server, a client of it with the handle of the file, and a crowd that asks for it again and again and takes nothing."""
        server = Server(
            [f"/x={self.folder}"], os.path.join(self.work, "state"), arguments,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
        )
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        good = Client(server.tcp_port, "127.0.0.2")
        root = handle_at(good.call(MOUNT, 1, opaque(b"/x")))
        read = opaque(handle_at(good.call(NFS, 3, opaque(root) + opaque(b"file")))) + struct.pack(">QI", 0, MIB)
        crowd = [Client(server.tcp_port, "127.0.0.1") for _ in range(CROWD)]
        for _ in range(8):
            for client in crowd:
                try:
                    client.send(NFS, 6, read)
                except OSError:
                    pass  # Without memory the server may end connections.
        self.addCleanup(lambda: [client.socket.close() for client in [good, *crowd]])
        return server, good, read

    def test_serves_others_while_a_crowd_takes_nothing(self):
        server, good, read = self.crowd_at("--max-bytes", str(128 * MIB))
        for _ in range(3):
            results = good.call(NFS, 6, read)
            self.assertEqual(struct.unpack(">I", results[:4])[0], 0)
            self.assertIn(b"x" * MIB, results)
        self.assertEqual(server.end(), 0)

    def test_outlives_allocations_that_fail(self):
        server, good, _ = self.crowd_at()  # its limit of bytes is larger than what it can have
        for _ in range(3):
            good.call(NFS, 0)
        self.assertEqual(server.end(), 0)

    def test_ends_in_order_where_no_thread_can_be_had_any_more(self):
        server, _, _ = self.crowd_at("--max-bytes", str(16 * MIB))
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (MIB, MIB))  # far below what it has
        self.assertEqual(server.end(), 0)


class Copy(harness.Case):
    """Files of which as many are copied at a time as there is no memory for."""

    FILES, SIZE = 8, 30 * MIB

    def copied(self, limit, source, destination):
        """The exit code of a copy within so many bytes of addresses; what it says of those that are missing must be so."""
        result = subprocess.run([harness.STAG, "cp", "-r", source, destination], capture_output=True, text=True, timeout=harness.PATIENCE,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        place = self.at("copy") if destination == self.at("copy") else self.there("copy")
        there = os.listdir(place)
        self.assertFalse([name for name in there if name.startswith(".stag-")], "what was begun is removed")
        for name in there:
            self.assertEqual(os.path.getsize(os.path.join(place, name)), self.SIZE, name)
        if result.returncode == 0:
            self.assertEqual((len(there), result.stderr), (self.FILES, ""))
        else:
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(f"there was no memory for {self.FILES - len(there)} of the files", result.stderr)
        shutil.rmtree(place)
        return result.returncode

    def test_that_finds_no_memory_says_so_and_leaves_nothing_half_done(self):
        for folder in (self.there("tree"), self.at("tree")):
            os.mkdir(folder)
            for number in range(self.FILES):
                with open(os.path.join(folder, str(number)), "wb") as file:
                    file.truncate(self.SIZE)
        limits = [MIB * limit for limit in (80, 100, 120)]
        codes = [self.copied(limit, self.url("tree"), self.at("copy")) for limit in limits]
        codes += [self.copied(limit, self.at("tree"), self.url("copy")) for limit in limits]
        self.assertIn(1, codes, "there was memory enough")


if __name__ == "__main__":
    harness.main()
