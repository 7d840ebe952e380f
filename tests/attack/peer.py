"""Connections to a server, over RDMA (software iWARP), TCP and UDP, that keep to the rules; attackers bend them from outside."""
import select
import socket
import struct
import time

from wire import iwarp, rpc, rpcrdma
from wire.fields import Field, join

PATIENCE = 90  # seconds until an answer that should come is given up: sanitizers are slow, more so on a busy machine
INLINE_CALL, INLINE_REPLY = 65536, 16384  # less than what servers and we agree on


class Silent(Exception):
    """No answer came in time."""


class Stream:
    """A TCP connection that reads whatever comes while it writes, so that two full buffers cannot wait for one another."""

    def __init__(self, port, source="127.0.0.1", host="127.0.0.1", patience=PATIENCE):
        """`source`: an address, or an address and a port."""
        self.patience = patience
        self.socket = socket.socket()
        self.socket.settimeout(patience)
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.bind((source, 0) if isinstance(source, str) else source)
            self.socket.connect((host, port))
        except BaseException:
            self.socket.close()
            raise
        self.output = bytearray()

    def close(self):
        self.socket.close()

    def write(self, data):
        self.output += data

    def take(self, data):
        """What has come."""
        raise NotImplementedError

    def pump(self, seconds):
        """Sends what is to be sent and reads for so long, or until something has been read. Raises ConnectionError at the end of the stream."""
        end = time.monotonic() + seconds
        while True:
            left = max(0.0, end - time.monotonic())
            ready = self._ready(left)
            if ready & select.POLLOUT and self.output:
                del self.output[: self.socket.send(self.output[: 1 << 20])]
            if ready & (select.POLLIN | select.POLLHUP | select.POLLERR):
                data = self.socket.recv(1 << 18)
                if not data:
                    raise ConnectionError("the server closed the connection")
                self.take(data)
                return
            if left == 0:
                return

    def _ready(self, seconds):
        poll = select.poll()  # select() knows no descriptor above 1023
        poll.register(self.socket, select.POLLIN | (select.POLLOUT if self.output else 0))
        events = poll.poll(seconds * 1000)
        return events[0][1] if events else 0

    def wait(self, done):
        """Pumps until done() is true."""
        end = time.monotonic() + self.patience
        while not (result := done()):
            left = end - time.monotonic()
            if left <= 0:
                raise Silent(f"no answer in {self.patience} s")
            self.pump(min(left, 1.0))
        while self.output:
            self.pump(0)
        return result


class TcpPeer(Stream):
    """RPC with record marking."""

    def __init__(self, port, source="127.0.0.1", **options):
        super().__init__(port, source, **options)
        self.reader = rpc.RecordReader()
        self.replies = {}
        self.xid = 1

    def take(self, data):
        for message in self.reader.feed(data):
            self.replies[int.from_bytes(message[:4], "big")] = message

    def next_xid(self):
        self.xid += 1
        return self.xid

    def start(self, call, credential=None):
        """Queues a Call; its XID."""
        xid = self.next_xid()
        self.write(join(rpc.record(join(rpc.call_fields(xid, call, credential)))))
        return xid

    def reply(self, xid):
        return self.wait(lambda: self.replies.pop(xid, None))

    def call(self, call, credential=None):
        """The results, or None where the server refused the Call."""
        return rpc.results_of(self.reply(self.start(call, credential)))


class RdmaPeer(Stream):
    """RPC-over-RDMA. Memory that calls offer is not real: every Read is answered from the Call's data or with zeros, and what the server writes
    is counted only."""

    def __init__(self, port, source="127.0.0.1", crc=False, set_up=True, **options):
        super().__init__(port, source, **options)
        self.crc = crc
        self.reader = iwarp.FpduReader()
        self.preamble = bytearray()  # the MPA Reply, until it is whole
        self.connected = False
        self.message = bytearray()  # a Send that came in part
        self.replies = {}
        self.sources = {}  # what can be read, by handle
        self.written = 0  # bytes that the server wrote into chunks
        self.sequence = {iwarp.SEND_QUEUE: 1, iwarp.READ_QUEUE: 1, iwarp.TERMINATE_QUEUE: 1}
        self.handles = 0x1000
        self.xid = 1
        self.grant = 1
        self.terminated = None
        if set_up:
            try:
                self.write(join(iwarp.mpa_frame(flags=iwarp.MPA_ENHANCED | (iwarp.MPA_CRC if crc else 0))))
                self.wait(lambda: self.connected)
            except BaseException:
                self.close()
                raise

    # -- in --

    def take(self, data):
        if not self.connected:
            self.preamble += data
            if len(self.preamble) < iwarp.MPA_HEADER:
                return
            whole = iwarp.MPA_HEADER + int.from_bytes(self.preamble[18:20], "big")
            if len(self.preamble) < whole:
                return
            self.connected = True
            # The server decides whether there are CRCs when we did not ask.
            self.crc = bool(self.preamble[16] & iwarp.MPA_CRC)
            data = bytes(self.preamble[whole:])
        for segment in self.reader.feed(data):
            self.on_segment(segment)

    def on_segment(self, segment):
        if segment.opcode == iwarp.READ_REQUEST:
            self.on_read_request(segment)
        elif segment.opcode == iwarp.WRITE:
            self.written += len(segment.payload)
        elif segment.opcode == iwarp.TERMINATE:
            self.terminated = segment.payload[:2].hex()
        else:
            self.message += segment.payload
            if segment.last:
                message, self.message = bytes(self.message), bytearray()
                self.on_message(message)

    def on_message(self, message):
        header = rpcrdma.parse_header(message)
        self.grant = header.credits
        self.replies[header.xid] = (header, message[header.size :])

    def read_response(self, segment):
        """Header fields and payload of what answers a Read Request."""
        sink, sink_offset, size, source, offset = struct.unpack(">IQIIQ", segment.payload)
        data = self.sources.get(source, b"")[offset : offset + size]
        return sink, sink_offset, data + bytes(min(size, 1 << 26) - len(data))

    def on_read_request(self, segment):
        stag, start, data = self.read_response(segment)
        for offset, part, last in iwarp.segments_of(data, iwarp.MOST_PAYLOAD):
            self.send_segment(iwarp.tagged(iwarp.READ_RESPONSE, stag, start + offset, last), part)

    # -- out --

    def next_xid(self):
        self.xid += 1
        return self.xid

    def send_segment(self, fields, payload):
        self.write(join(iwarp.fpdu(join(fields) + payload, self.crc)))

    def send_message(self, message):
        sequence = self.next_sequence(iwarp.SEND_QUEUE)
        for offset, part, last in iwarp.segments_of(message, iwarp.MOST_PAYLOAD):
            self.send_segment(iwarp.untagged(iwarp.SEND, iwarp.SEND_QUEUE, sequence, offset, last), part)

    def next_sequence(self, queue):
        sequence = self.sequence[queue]
        self.sequence[queue] += 1
        return sequence

    def expose(self, data, count=1):
        """Memory to be read, in so many segments of nearly the same length."""
        size, segments = -(-len(data) // count), []
        for start in range(0, max(len(data), 1), max(size, 1)):
            part = data[start : start + size]
            self.handles += 1
            self.sources[self.handles] = part
            segments.append(rpcrdma.Memory(self.handles, len(part), 0))
        return segments

    def target(self, size, count=1):
        """Memory to be written."""
        part = -(-size // count)
        self.handles += count
        return [rpcrdma.Memory(self.handles - i, part, 0x1000 * i) for i in range(count)]

    def form(self, xid, fields, call, chunked=True, segments=1, long_call=False, reply_chunk=0):
        """Header fields and inline payload fields of a Call. `fields`: the RPC Call; its data go in a Read chunk and its results in a Write
        chunk where `chunked`, all of it in a Position Zero Read chunk where `long_call`, a long Reply in a chunk of `reply_chunk` bytes."""
        reads, writes = [], []
        if chunked and call.data is not None and not long_call and len(fields) >= len(call.arguments):
            at = len(fields) - len(call.arguments) + call.data
            position = len(join(fields[:at]))
            reads = [(position, memory) for memory in self.expose(fields[at].data, segments)]
            fields = fields[:at] + [Field("xdr", "data", b"")] + fields[at + 1 :]
        if chunked and call.results:
            writes = [self.target(call.results, segments)]
        reply = self.target(reply_chunk, segments) if reply_chunk else None
        if not long_call:
            return rpcrdma.header(xid, reads=reads, writes=writes, reply=reply), fields
        reads = [(0, memory) for memory in self.expose(join(fields), segments)]
        return rpcrdma.header(xid, rpcrdma.RDMA_NOMSG, reads=reads, writes=writes, reply=reply), []

    def start(self, call, credential=None, **form):
        xid = self.next_xid()
        header, inline = self.form(xid, rpc.call_fields(xid, call, credential), call, **form)
        self.send_message(join(header) + join(inline))
        return xid

    def reply(self, xid):
        return self.wait(lambda: self.replies.pop(xid, None))

    def call(self, call, credential=None, **form):
        header, message = self.reply(self.start(call, credential, **form))
        self.sources.clear()
        return rpc.results_of(message) if header.proc == rpcrdma.RDMA_MSG else None


class UdpPeer:
    def __init__(self, port, source="127.0.0.1", patience=PATIENCE):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(patience)
        self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", port))
        self.xid = 1

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.send(data)
        except OSError:
            pass  # too long for a datagram, or nobody listens any more: the server's check says which

    def drain(self):
        """How many datagrams had come."""
        count = 0
        self.socket.setblocking(False)
        try:
            while self.socket.recv(65536):
                count += 1
        except OSError:
            pass
        self.socket.setblocking(True)
        return count

    def call(self, call):
        """The results; a datagram that was lost in a full buffer is sent again."""
        self.xid += 1
        message = join(rpc.call_fields(self.xid, call))
        self.socket.settimeout(1.0)
        for _ in range(PATIENCE):
            self.send(message)
            try:
                while True:
                    reply = self.socket.recv(65536)
                    if reply[:4] == message[:4]:
                        return rpc.results_of(reply)
            except TimeoutError:
                continue
            except ConnectionRefusedError:
                break
        raise Silent("no answer by UDP")
