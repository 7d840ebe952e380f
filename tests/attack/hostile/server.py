"""The transports of a misleading server: TCP, and RDMA by software iWARP, both with the same files."""
import asyncio
import contextlib
import struct

from wire import iwarp, rpc, rpcrdma
from wire.fields import Field, join

MOST_INLINE = 8000  # bytes of results in a Send
READ = 6


def parse_call(message):
    """(XID, program, version, procedure, arguments), or None where it is no Call."""
    if len(message) < 32 or message[4:8] != bytes(4):
        return None
    xid, _, _, program, version, procedure, _, credential = struct.unpack_from(">8I", message)
    at = 32 + credential + -credential % 4
    verifier = int.from_bytes(message[at + 4 : at + 8], "big")
    return xid, program, version, procedure, message[at + 8 + verifier + -verifier % 4 :]


def reply_fields(xid, results, whole):
    """An RPC Reply word by word, so that one of them can be spoiled, or with the results as a `whole`."""
    header = rpc.accepted(xid, b"", 0 if results is not None else 1)
    fields = [Field("rpc", f"word{i}", header[i : i + 4]) for i in range(0, len(header), 4)]
    body = results or b""
    if whole:
        return [*fields, Field("xdr", "results", body)]
    return fields + [Field("xdr", f"word{i}", body[i : i + 4]) for i in range(0, len(body), 4)]


class HostileServer:
    """Serves `files` as `manner` distorts it, on free ports."""

    def __init__(self, files, manner):
        self.files, self.manner = files, manner
        self.listeners, self.tasks = [], set()

    def turn(self, files, manner):
        """From now on it is another one, on the connections that it has, too."""
        self.files, self.manner = files, manner

    async def __aenter__(self):
        for serve in (self.serve_tcp, self.serve_rdma):
            self.listeners.append(await asyncio.start_server(self.guarded(serve), "127.0.0.1", 0))
        self.tcp_port, self.rdma_port = (each.sockets[0].getsockname()[1] for each in self.listeners)
        return self

    async def __aexit__(self, *_):
        for each in self.listeners:
            each.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def guarded(self, serve):
        async def connection(reader, writer):
            self.tasks.add(asyncio.current_task())
            # The command ends as it likes, and what we send may make no sense to ourselves.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, struct.error, IndexError, asyncio.CancelledError):
                await self.manner.on_connection(writer)
                await serve(reader, writer)
            writer.transport.abort()
            self.tasks.discard(asyncio.current_task())

        return connection

    def answer(self, message):
        """The fields of the Reply to an RPC Call, or None."""
        call = parse_call(message)
        if call is None:
            return None
        xid, program, version, procedure, arguments = call
        results = self.files.results(program, version, procedure, arguments)
        return self.manner.reply(reply_fields(self.manner.xid(xid), results, whole=self.manner.layer is None))

    async def serve_tcp(self, reader, writer):
        records = rpc.RecordReader()
        while data := await reader.read(1 << 16):
            for message in records.feed(data):
                fields = self.answer(message)
                if fields is not None:
                    await self.manner.send(writer, join(self.manner.spoil(rpc.record(join(fields)))))

    async def serve_rdma(self, reader, writer):
        request = await reader.readexactly(iwarp.MPA_HEADER)
        await reader.readexactly(int.from_bytes(request[-2:], "big"))
        flags = iwarp.MPA_ENHANCED | request[16] & iwarp.MPA_CRC
        crc = bool(flags & iwarp.MPA_CRC)
        await self.manner.send(writer, join(self.manner.spoil(iwarp.mpa_frame(iwarp.REPLY_KEY, flags))))
        peer = RdmaReplies(self, writer, crc)
        segments, message = iwarp.FpduReader(), b""
        while data := await reader.read(1 << 16):
            for segment in segments.feed(data):
                if segment.opcode not in (iwarp.SEND, iwarp.SEND_INVALIDATE, iwarp.SEND_SE, iwarp.SEND_SE_INVALIDATE):
                    continue
                message += segment.payload
                if segment.last:
                    await peer.on_message(message)
                    message = b""


class RdmaReplies:
    """The sending half of a connection."""

    def __init__(self, server, writer, crc):
        self.server, self.writer, self.crc = server, writer, crc
        self.sequence = 1

    @property
    def manner(self):
        return self.server.manner

    async def on_message(self, message):
        header = rpcrdma.parse_header(message)
        fields = self.server.answer(message[header.size :])
        if fields is None:
            return
        parts = await self.manner.rdma(self, header, fields)
        if parts is not None:
            await self.manner.send(self.writer, b"".join(parts))

    def truthful(self, header, fields):
        """The FPDUs of a Reply: results of READ in the Write chunk, long ones in the Reply chunk."""
        message, parts, writes, reply = join(fields), [], [list(chunk) for chunk in header.writes], None
        if header.writes:
            length = int.from_bytes(fields[-1].data, "big") if len(message) < 32 else self.data_length(message)
            data, message = (message[-(length + -length % 4) :], message[: -(length + -length % 4)]) if length else (b"", message)
            parts += self.write(header.writes[0], data[:length])
            writes[0] = self.filled(header.writes[0], length)
        if header.reply and len(message) > MOST_INLINE:
            parts += self.write(header.reply, message)
            reply, message = self.filled(header.reply, len(message)), b""
        elif header.reply:
            reply = self.filled(header.reply, 0)
        proc = rpcrdma.RDMA_MSG if message else rpcrdma.RDMA_NOMSG
        fields = rpcrdma.header(header.xid, proc, 32, writes=writes, reply=reply)
        return parts + self.send(join(self.manner.spoil(fields)) + message)

    def data_length(self, message):
        """Of a successful READ: the RPC header has 24 bytes, the results 104 before the data."""
        return int.from_bytes(message[24 + 100 : 24 + 104], "big") if len(message) > 24 + 104 else 0

    def filled(self, chunk, length):
        filled = []
        for memory in chunk:
            part = min(memory.length, length)
            filled.append(rpcrdma.Memory(memory.handle, part, memory.offset))
            length -= part
        return filled

    def write(self, chunk, data):
        parts = []
        for memory in chunk:
            part, data = data[: memory.length], data[memory.length :]
            if part:
                for offset, piece, last in iwarp.segments_of(part, iwarp.MOST_PAYLOAD):
                    parts.append(self.fpdu(iwarp.tagged(iwarp.WRITE, memory.handle, memory.offset + offset, last), piece))
        return parts

    def send(self, message, opcode=iwarp.SEND, stag=0):
        parts = []
        for offset, part, last in iwarp.segments_of(message, iwarp.MOST_PAYLOAD):
            parts.append(self.fpdu(iwarp.untagged(opcode, iwarp.SEND_QUEUE, self.sequence, offset, last, stag), part))
        self.sequence += 1
        return parts

    def fpdu(self, fields, payload):
        return join(self.manner.spoil(iwarp.fpdu(join(self.manner.spoil(fields)) + payload, self.crc)))
