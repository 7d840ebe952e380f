"""proxy.py PORT TARGET-PORT [cut=N] [crc]: forwards TCP connections to TARGET-PORT of the loopback.

cut=N: cuts N of them, each after a random number of bytes, and says within which message; then it only forwards. The seed is fixed.
crc: asks for CRC in the client's MPA Request (RFC 5044 7.1, flag C), as no Linux client does by itself."""
import asyncio
import random
import sys

port, target = int(sys.argv[1]), int(sys.argv[2])
cuts_left = sum(int(word[4:]) for word in sys.argv[3:] if word.startswith("cut="))
ask_for_crc = "crc" in sys.argv[3:]
chance = random.Random(20049)

MPA_HEADER = 20  # bytes of an MPA Request before its private data; the last two are the length of that
MPA_FLAGS = 16  # place of the flags
MPA_CRC = 0x40


OPCODES = ["Write", "Read Request", "Read Response", "Send", "Send with Invalidate", "Send with SE", "Send with SE and Invalidate", "Terminate"]


class Framing:
    """Finds the FPDUs of one direction (RFC 5044 4, without markers), to know which message a byte belongs to."""

    def __init__(self):
        self.frame = bytearray()  # what has come of the frame that is under way, as far as it is needed
        self.left = None  # bytes of it still to come; None: not known yet
        self.started = False  # behind the MPA Request or Reply
        self.within = "MPA"

    def feed(self, data):
        at = 0
        while at < len(data):
            if self.left is None:
                need = (4 if self.started else MPA_HEADER) - len(self.frame)
                self.frame += data[at : at + need]
                at += need
                if len(self.frame) >= (4 if self.started else MPA_HEADER):
                    self.begin()
            else:
                step = min(self.left, len(data) - at)
                self.left -= step
                at += step
            if self.left == 0:
                self.frame, self.left, self.started = bytearray(), None, True

    def begin(self):
        """The head of a frame is complete."""
        if not self.started:
            self.left = int.from_bytes(self.frame[-2:], "big")
            return
        length = 2 + int.from_bytes(self.frame[:2], "big")  # then up to a multiple of four, then the CRC
        self.left = length + -length % 4 + 4 - len(self.frame)
        self.within = OPCODES[self.frame[3] & 7]


class Flow:
    """One client's connection; dies when its allowance of bytes is used up."""

    def __init__(self, writers):
        self.writers = writers
        # Now and then at once, mostly somewhere within the data of a few calls.
        self.allowance = chance.choice([500, 5_000, 100_000, 1_000_000, 3_000_000]) * chance.uniform(0.5, 1.5)

    def cut(self):
        for writer in self.writers:
            writer.transport.abort()

    async def forward(self, reader, writer):
        global cuts_left
        framing = Framing()
        while data := await reader.read(1 << 16):
            self.allowance -= len(data)
            if self.allowance < 0 and cuts_left > 0:
                cuts_left -= 1
                data = data[: len(data) // 2]
                framing.feed(data)
                print("cut within", framing.within, flush=True)
                writer.write(data)
                await asyncio.sleep(0)
                self.cut()
                return
            if cuts_left > 0:
                framing.feed(data)
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
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        if ask_for_crc:
            far_writer.write(await with_crc(reader))
            print("asked for CRC", flush=True)
        flow = Flow([writer, far_writer])
        await asyncio.gather(flow.forward(reader, far_writer), flow.forward(far_reader, writer))
    except (OSError, asyncio.IncompleteReadError):
        writer.transport.abort()


async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", port)
    async with server:
        await server.serve_forever()


asyncio.run(main())
