"""proxy.py PORT TARGET-PORT [cut=N] [crc]: forwards TCP connections to TARGET-PORT of the loopback.

cut=N: cuts N of them, each after a random number of bytes; then it only forwards. The seed is fixed.
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
        while data := await reader.read(1 << 16):
            self.allowance -= len(data)
            if self.allowance < 0 and cuts_left > 0:
                cuts_left -= 1
                print("cut", cuts_left, "left", flush=True)
                writer.write(data[: len(data) // 2])
                await asyncio.sleep(0)
                self.cut()
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
