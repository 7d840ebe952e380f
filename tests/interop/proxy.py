"""proxy.py PORT TARGET-PORT [to=HOST] [write=N] [read=N] [send=N] [apart=SECONDS] [crc]: forwards TCP connections to TARGET-PORT of HOST, the loopback
unless told. Says at which port once it listens; PORT 0 is any that is free.

write=N, read=N, send=N: cuts N connections in the middle of an RDMA Write, N of a Read Response, N of a Send, as they come, and says each
time within what; then it only forwards. A connection has first moved a random number of bytes, and its set-up is behind it. The seed is
fixed.
apart=SECONDS: so much time is between two cuts, on average.
crc: asks for CRC in the client's MPA Request (RFC 5044 7.1, flag C), as no Linux client does by itself."""
import asyncio
import random
import sys
import time

port, target = int(sys.argv[1]), int(sys.argv[2])
settings = dict(word.split("=") for word in sys.argv[3:] if "=" in word)
host = settings.get("to", "127.0.0.1")
chance = random.Random(20049)
cuts = {kind: int(settings.get(kind.split()[0].lower(), 0)) for kind in ("Write", "Read Response", "Send")}  # those to come
apart = float(settings.get("apart", 0))
not_before = 0  # the next cut
ask_for_crc = "crc" in sys.argv[3:]

MPA_HEADER = 20  # bytes of an MPA Request before its private data; the last two are the length of that
MPA_FLAGS = 16  # place of the flags
MPA_CRC = 0x40
EMPTY = 32  # more bytes than are behind the first four of a message without data, as a client may begin with

OPCODES = ["Write", "Read Request", "Read Response", "Send", "Send with Invalidate", "Send with SE", "Send with SE and Invalidate", "Terminate"]


class Framing:
    """Finds the FPDUs of one direction (RFC 5044 4, without markers), to know which message a byte belongs to."""

    def __init__(self):
        self.frame = bytearray()  # what has come of the frame that is under way, as far as it is needed
        self.left = None  # bytes of it still to come; None: not known yet
        self.started = False  # behind the MPA Request or Reply
        self.within = "MPA"

    def feed(self, data, kinds=()):
        """Returns the middle of what these bytes have of the first message of one of these kinds, and of which, or None."""
        at, found = 0, None
        while at < len(data):
            if self.left is None:
                need = (4 if self.started else MPA_HEADER) - len(self.frame)
                self.frame += data[at : at + need]
                at += need
                if len(self.frame) >= (4 if self.started else MPA_HEADER):
                    self.begin()
            else:
                step = min(self.left, len(data) - at)
                if found is None and step > EMPTY and self.within.startswith(kinds):
                    found = at + step // 2, next(kind for kind in kinds if self.within.startswith(kind))
                self.left -= step
                at += step
            if self.left == 0:
                self.frame, self.left, self.started, self.within = bytearray(), None, True, None
        return found

    def begin(self):
        """The head of a frame is complete."""
        if not self.started:
            self.left = int.from_bytes(self.frame[-2:], "big")
            return
        length = 2 + int.from_bytes(self.frame[:2], "big")  # then up to a multiple of four, then the CRC
        self.left = length + -length % 4 + 4 - len(self.frame)
        self.within = OPCODES[self.frame[3] & 7]


class Flow:
    """One client's connection; dies within the next message of a kind that is due when its allowance of bytes is used up."""

    def __init__(self, writers):
        self.writers = writers
        # Now and then at once, mostly when a few calls have gone.
        self.allowance = chance.choice([500, 50_000, 200_000, 500_000, 1_000_000]) * chance.uniform(0.5, 1.5)

        # Sends are everywhere: who may die in any message would always do so in one of them.
        self.in_send = chance.random() * sum(cuts.values()) < cuts["Send"]

    def due(self):
        if self.allowance >= 0 or time.monotonic() < not_before:
            return ()
        left = [kind for kind in cuts if cuts[kind]]
        return tuple(kind for kind in left if (kind == "Send") == self.in_send) or tuple(left)

    def cut(self, torn):
        """Who is sent the torn message gets as much of it as there is."""
        global not_before
        not_before = time.monotonic() + apart * chance.uniform(0.5, 1.5)
        for writer in self.writers:
            writer.close() if writer is torn else writer.transport.abort()

    async def forward(self, reader, writer):
        framing = Framing()
        while data := await reader.read(1 << 16):
            self.allowance -= len(data)
            if any(cuts.values()):
                if found := framing.feed(data, self.due()):
                    middle, kind = found
                    cuts[kind] -= 1
                    print("cut within", kind, flush=True)
                    writer.write(data[:middle])
                    self.cut(writer)
                    return
            writer.write(data)
            await writer.drain()
        writer.close()


async def with_crc(reader):
    """The client's MPA Request, now with flag C. In one piece, because tshark does not put pieces together."""
    start = bytearray(await reader.readexactly(MPA_HEADER))
    start[MPA_FLAGS] |= MPA_CRC
    return bytes(start) + await reader.readexactly(int.from_bytes(start[-2:], "big"))


async def serve(reader, writer):
    try:
        far_reader, far_writer = await asyncio.open_connection(host, target)
        if ask_for_crc:
            far_writer.write(await with_crc(reader))
            print("asked for CRC", flush=True)
        flow = Flow([writer, far_writer])
        await asyncio.gather(flow.forward(reader, far_writer), flow.forward(far_reader, writer))
    except (OSError, asyncio.IncompleteReadError):
        writer.transport.abort()


async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", port)
    print("listens at", server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
