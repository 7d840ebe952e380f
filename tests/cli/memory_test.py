"""`stag serve` takes no more memory for Calls than --max-bytes says, and gives it back when they are over."""
import os
import re
import shutil
import struct
import tempfile
import time
import unittest

import harness
from harness import Server, request_rdma, stag

MIB = 1 << 20
LIMIT = 128 * MIB


class Peer:
    """A client whose Calls stand in Position Zero Read chunks (RFC 8166 3.5.3), and which never end an RDMA Read."""

    def __init__(self, port, source):
        self.socket, _ = request_rdma(port, source=source)
        self.sent = 0
        self.received = b""

    def fpdu(self, segment):
        frame = struct.pack(">H", len(segment)) + segment
        return frame + bytes(-len(frame) % 4) + bytes(4)

    def call(self, length):
        words = [self.sent + 1, 1, 1, 1] + [1, 0, 0x1234, length, 0, 0, 0] + [0] + [0]
        # DDP: the last segment, untagged, queue 0. RDMAP: Send (RFC 5040, RFC 5041).
        self.sent += 1
        header = bytes([0x41, 0x43]) + struct.pack(">IIII", 0, 0, self.sent, 0)
        self.socket.sendall(self.fpdu(header + struct.pack(f">{len(words)}I", *words)))

    def read_request(self):
        """The next one that came: the sink's STag and offset, and the length."""
        while True:
            length = struct.unpack(">H", self.received[:2])[0] if len(self.received) > 1 else 0
            total = (length + 5) // 4 * 4 + 4
            if length and len(self.received) >= total:
                frame, self.received = self.received[2:2 + length], self.received[total:]
                if frame[1] & 15 == 1:
                    return struct.unpack(">IQI", frame[18:34])
                continue
            part = self.socket.recv(65536)
            if not part:
                raise AssertionError("the server closed the connection")
            self.received += part

    def respond_but_for_the_end(self, sink, offset, length):
        for at in range(0, length - 1, 32768):
            tagged = bytes([0x81, 0x42]) + struct.pack(">IQ", sink, offset + at)
            self.socket.sendall(self.fpdu(tagged + b"x" * min(32768, length - 1 - at)))


class Memory(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-memory-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.server = Server(["/x=memory"], os.path.join(self.work, "state"),
                             ["--max-bytes", str(LIMIT), "--loops", "4"])
        self.addCleanup(lambda: self.server.process.poll() is None and self.server.end())

    def status(self, field):
        """In bytes."""
        with open(f"/proc/{self.server.process.pid}/status") as status:
            return int(re.search(rf"{field}:\s*(\d+) kB", status.read())[1]) << 10

    def eventually(self, true):
        end = time.monotonic() + harness.PATIENCE
        while not true():
            self.assertLess(time.monotonic(), end, f"{self.status('VmRSS') >> 20} MiB are resident")
            time.sleep(0.01)

    def load(self, length):
        """Calls from many addresses whose Reads are all but done, for half of the limit; then their connections end."""
        peers = [Peer(self.server.rdma_port, f"127.0.0.{2 + n % 24}") for n in range(LIMIT // 2 // length)]
        for peer in peers:
            peer.call(length)
        for peer in peers:
            peer.respond_but_for_the_end(*peer.read_request())
        self.eventually(lambda: self.status("VmRSS") > LIMIT * 3 // 8)
        for peer in peers:
            peer.socket.close()

    def test_is_bounded_by_the_limit_and_comes_back_when_connections_end(self):
        idle = self.status("VmRSS")
        for length in (MIB, 200_000, 700_000, 5 * MIB):
            self.load(length)
        self.assertLess(self.status("VmHWM") - idle, 3 * LIMIT // 2)
        self.eventually(lambda: self.status("VmRSS") < idle + 16 * MIB)
        self.assertEqual(self.server.end(), 0)


class Fairness(unittest.TestCase):
    def test_a_few_connections_that_answer_no_Reads_delay_nobody_else(self):
        work = tempfile.mkdtemp(prefix="stag-memory-")
        self.addCleanup(shutil.rmtree, work, ignore_errors=True)
        server = Server(["/x=memory,no_root_squash"], os.path.join(work, "state"))
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        hostile = [Peer(server.rdma_port, "127.0.0.2") for _ in range(17)]
        for peer in hostile:
            for _ in range(4):
                peer.call(16 * MIB)
        # The first can be served, and then there is no memory for more of this address.
        hostile[0].read_request()
        data = os.path.join(work, "data")
        with open(data, "wb") as file:
            file.write(os.urandom(MIB))
        begun = time.monotonic()
        for source, target in ((data, server.url("/x/data")), (server.url("/x/data"), data + ".back")):
            copied = stag("cp", source, target)
            self.assertEqual(copied.returncode, 0, copied.stderr)
        # Far less than the time after which those who answer no Reads lose their memory.
        self.assertLess(time.monotonic() - begun, 5)
        for peer in hostile:
            peer.socket.close()
        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    harness.main()
