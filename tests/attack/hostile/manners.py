"""How servers mislead: by what they say of their files, and by how they say it."""
import asyncio
import socket
import struct
import zlib

from hostile.files import DIRECTORY, FILE, FOLDER, OK, ROOT, VERIFIER, Files, opaque, words
from mutation import spoil
from wire import iwarp, rpcrdma
from wire.fields import join, u32

JUKEBOX = 10008


class Manner:
    """Truthful in every respect."""

    layer = None  # where something is spoiled now and then

    def __init__(self, chance):
        self.chance = chance

    async def on_connection(self, writer):
        """Raises OSError where it shall not go on."""

    def xid(self, xid):
        return xid

    def reply(self, fields):
        """The RPC Reply, None: none is sent."""
        return self.spoil(fields)

    def spoil(self, fields):
        if self.layer is None or self.chance.random() < 0.6:
            return fields
        return spoil(fields, self.layer, self.chance, fields)

    async def rdma(self, replies, header, fields):
        """FPDUs that answer a Call over RDMA."""
        return replies.truthful(header, fields)

    async def send(self, writer, data):
        writer.write(data)
        await writer.drain()


class Spoiling(Manner):
    def __init__(self, chance, layer):
        super().__init__(chance)
        self.layer = layer


class Silence(Manner):
    def reply(self, fields):
        return None


class Cut(Manner):
    """Replies end in the middle, with the connection."""

    async def send(self, writer, data):
        if self.chance.random() < 0.5:
            return await super().send(writer, data)
        writer.write(data[: self.chance.randrange(len(data) + 1)])
        raise ConnectionError


class Resets(Manner):
    """The connection is reset, at once or in the middle."""

    async def on_connection(self, writer):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self.chance.random() < 0.3:
            raise ConnectionError

    async def send(self, writer, data):
        if self.chance.random() < 0.3:
            raise ConnectionError
        await super().send(writer, data)


class Dribble(Manner):
    async def send(self, writer, data):
        for i in range(0, len(data), 1 + len(data) // 50):
            await super().send(writer, data[i : i + 1 + len(data) // 50])
            await asyncio.sleep(0.002)


class WrongXids(Manner):
    def xid(self, xid):
        return xid ^ self.chance.choice((0, 1, 0x80000000, 0xFFFFFFFF))


class Twice(Manner):
    """Every Reply comes twice."""

    async def send(self, writer, data):
        await super().send(writer, data)
        await super().send(writer, data)

    async def rdma(self, replies, header, fields):
        return replies.truthful(header, fields) + replies.truthful(header, fields)


class RdmaErrors(Manner):
    async def rdma(self, replies, header, fields):
        code = self.chance.choice((rpcrdma.ERR_VERS, rpcrdma.ERR_CHUNK, 7))
        message = rpcrdma.header(header.xid, rpcrdma.RDMA_ERROR)[:4] + [u32("header", "error", word) for word in (code, 1, 1)]
        return replies.send(join(message))


class BogusChunks(Manner):
    """Chunks come back that nobody offered, or longer than they were, or in another form."""

    async def rdma(self, replies, header, fields):
        wrong = rpcrdma.Memory(self.chance.getrandbits(32), self.chance.choice((0, 4, 1 << 31)), 0)
        longer = [[memory._replace(length=memory.length + 4) for memory in chunk] for chunk in header.writes] or [[wrong]]
        proc = self.chance.choice((rpcrdma.RDMA_MSG, rpcrdma.RDMA_NOMSG, rpcrdma.RDMA_MSGP, rpcrdma.RDMA_DONE))
        reads = self.chance.choice(([], [(0, wrong)], [(32, wrong)]))
        message = rpcrdma.header(header.xid, proc, self.chance.choice((0, 1, 1 << 31)), reads, self.chance.choice(([], longer, [[wrong]])),
                                 self.chance.choice((None, [wrong], header.reply)))  # fmt: skip
        return replies.send(join(message) + join(fields))


class BogusMemory(Manner):
    """Reads and Writes of memory that was not offered, or not like this, and handles that are invalidated too early."""

    async def rdma(self, replies, header, fields):
        offered = [memory for chunk in header.writes for memory in chunk] + [memory for _, memory in header.reads] + (header.reply or [])
        memory = self.chance.choice(offered) if offered else rpcrdma.Memory(self.chance.getrandbits(32), 64, 0)
        kind = self.chance.randrange(4)
        if kind == 0:
            request = iwarp.read_request(1, 0, memory.length + 1, memory.handle, memory.offset)
            return [replies.fpdu(iwarp.untagged(iwarp.READ_REQUEST, iwarp.READ_QUEUE, 1), join(request))]
        if kind == 1:
            return [replies.fpdu(iwarp.tagged(iwarp.WRITE, memory.handle, memory.offset + memory.length), b"beyond its end")]
        if kind == 2:
            return [replies.fpdu(iwarp.tagged(iwarp.READ_RESPONSE, memory.handle, memory.offset), b"nobody asked")]
        return replies.send(join(rpcrdma.header(header.xid)) + join(fields), iwarp.SEND_INVALIDATE, memory.handle)


class CallsBack(Manner):
    """The server calls the client, again and again."""

    async def rdma(self, replies, header, fields):
        parts = []
        for i in range(20):
            call = words(i, 0, 2, 0x40000000, 1, 1, 0, 0, 0, 0)
            parts += replies.send(join(rpcrdma.header(i)) + call)
        return parts + replies.truthful(header, fields)


# -- what is said of files ------------------------------------------------------------------------


class EndlessDirectory(Files):
    def directory(self, handle, rest, plus):
        """Made in a hurry, so that a million of them come in seconds."""
        cookie = int.from_bytes(rest[:8], "big")
        tail = self.post(FILE) + words(1) + opaque(FILE) if plus else b""
        pack = struct.Struct(">IQI12sQ").pack
        entries = [pack(1, 7, 12, b"entry%07d" % at, at) + tail for at in range(cookie + 1, cookie + 100)]
        return words(OK) + self.post(handle) + VERIFIER + b"".join(entries) + words(0, False)


class CyclingCookies(Files):
    def entries(self, handle, cookie):
        return [((cookie + i) % 7 + 1, b"entry%d" % i, FILE) for i in range(4)], False


class NoProgress(Files):
    """Directories whose listing has neither entries nor an end, and files of which nothing can be read."""

    def entries(self, handle, cookie):
        return [], False

    def data(self, offset, count):
        return b""


class DirectoryInItself(Files):
    def listing(self, handle):
        return [(b"dir", FOLDER), (b"file", FILE)]


class Bottomless(Files):
    """Each directory has two more in it that were not there before."""

    def kind(self, handle):
        return DIRECTORY

    def listing(self, handle):
        return [(name, zlib.crc32(handle + name).to_bytes(4, "big") * 2) for name in (b"dir", b"file")]


class StrangeNames(Files):
    """Names that lead elsewhere, or are none."""

    NAMES = (b"..", b".", b"", b"../escaped", b"/tmp/escaped", b"a/b", b"nul\0l", b"\x1b[2Jescape", b"n" * 255, b"n" * 5000, b"\xff\xfe", b"new\nline")

    def listing(self, handle):
        return [(self.chance.choice(self.NAMES), FILE), (b"ok", FILE)] if handle in (ROOT, FOLDER) else []


class StrangeSizes(Files):
    @property
    def size(self):
        return self.chance.choice((0, 1, 1 << 31, (1 << 63) - 1, (1 << 64) - 1, 100_000))

    def data(self, offset, count):
        return bytes(self.chance.choice((0, 1, count, min(count + 4096, 1 << 20))))


class Jukebox(Files):
    """Come back later, for ever."""

    # Words of attributes that are not there, after a status that is none of success.
    ABSENT = {**dict.fromkeys((3, 4, 5, 6, 16, 17, 18, 20), 1), **dict.fromkeys((2, 7, 8, 9, 10, 11, 12, 13, 21), 2), 14: 4, 15: 3}

    def results(self, program, version, procedure, arguments):
        results = super().results(program, version, procedure, arguments)
        return words(JUKEBOX, *[0] * self.ABSENT[procedure]) if program == 100003 and procedure in self.ABSENT else results


LAYERS = ("mpa", "fpdu", "ddp", "rdmap", "header", "chunks", "record", "rpc", "xdr")
MANNERS = {
    "silence": Silence, "cut": Cut, "resets": Resets, "dribble": Dribble, "wrong-xids": WrongXids, "twice": Twice, "rdma-errors": RdmaErrors,
    "bogus-chunks": BogusChunks, "bogus-memory": BogusMemory, "calls-back": CallsBack,
}  # fmt: skip
TREES = {
    "endless-directory": EndlessDirectory, "cycling-cookies": CyclingCookies, "no-progress": NoProgress, "directory-in-itself": DirectoryInItself,
    "bottomless": Bottomless, "strange-names": StrangeNames, "strange-sizes": StrangeSizes, "jukebox": Jukebox,
}  # fmt: skip
RDMA_ONLY = {"rdma-errors", "bogus-chunks", "bogus-memory", "calls-back", "mpa", "fpdu", "ddp", "rdmap", "header", "chunks"}
TCP_ONLY = {"record"}


def make(name, chance):
    """(files, manner) of an attack's name."""
    if name in LAYERS:
        return Files(chance), Spoiling(chance, name)
    if name in MANNERS:
        return Files(chance), MANNERS[name](chance)
    return TREES[name](chance), Manner(chance)
