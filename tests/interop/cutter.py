"""cutter.py PORT TARGET-PORT CUTS: forwards TCP connections on the loopback, and cuts every one after a random number of
bytes, CUTS times in all; after that it only forwards. The seed is fixed, so that two runs cut at the same counts."""
import asyncio
import random
import sys

port, target, cuts_left = (int(word) for word in sys.argv[1:4])
chance = random.Random(20049)


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


async def serve(reader, writer):
    try:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        flow = Flow([writer, far_writer])
        await asyncio.gather(flow.forward(reader, far_writer), flow.forward(far_reader, writer))
    except OSError:
        writer.transport.abort()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


asyncio.run(main())
