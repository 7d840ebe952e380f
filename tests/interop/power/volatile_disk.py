"""volatile_disk.py SOCKET IMAGE SEED: a disk with a volatile write cache, for QEMU by NBD (fixed newstyle, one client at a time).

What is written stays in memory until the client flushes, or writes with FUA. To flush takes a while, as it does on a disk, and a client
that is gone meanwhile has heard nothing of it. A client that goes without saying so is a power cut: of what was in the cache each block
is kept or lost by chance (the first time all is lost), as a disk writes in whatever order it likes. A line on standard output tells each
cut.
"""
import os
import random
import select
import socket
import struct
import sys
import time

BLOCK = 4096
OPTION_ABORT, OPTION_INFO, OPTION_GO = 2, 6, 7
REPLY_ACK, REPLY_INFO, REPLY_UNSUPPORTED = 1, 3, 0x80000001
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
HAS_FLAGS, SENDS_FLUSH, SENDS_FUA = 1, 4, 8
FUA = 1
FLUSH_TIME = 0.03  # seconds


class PowerCut(Exception):
    pass


class Disk:
    def __init__(self, path, seed):
        self.image = os.open(path, os.O_RDWR)
        self.size = os.fstat(self.image).st_size
        self.cache = {}  # block number: its bytes
        self.chance = random.Random(seed)
        self.cuts = 0

    def block(self, number):
        return self.cache.get(number) or os.pread(self.image, BLOCK, number * BLOCK)

    def read(self, offset, size):
        first, last = offset // BLOCK, (offset + size + BLOCK - 1) // BLOCK
        start = offset - first * BLOCK
        return b"".join(self.block(number) for number in range(first, last))[start:start + size]

    def write(self, offset, data):
        at = 0
        while at < len(data):
            number, start = divmod(offset + at, BLOCK)
            part = data[at:at + BLOCK - start]
            if len(part) < BLOCK:
                before = self.block(number)
                part = before[:start] + part + before[start + len(part):]
            self.cache[number] = part
            at += BLOCK - start

    def keep(self, numbers):
        for number in numbers:
            os.pwrite(self.image, self.cache.pop(number), number * BLOCK)

    def flush(self):
        self.keep(list(self.cache))

    def lose_power(self):
        self.cuts += 1
        cached = len(self.cache)
        self.keep([number for number in list(self.cache) if self.cuts > 1 and self.chance.random() < 0.5])
        print(f"cut {self.cuts}: {cached} blocks were in the cache, {len(self.cache)} are lost", flush=True)
        self.cache.clear()


class Client:
    def __init__(self, connection, disk):
        self.connection, self.disk = connection, disk

    def receive(self, size):
        data = bytearray()
        while len(data) < size:
            part = self.connection.recv(size - len(data))
            if not part:
                raise PowerCut
            data += part
        return bytes(data)

    def is_gone(self):
        # Whatever it has still sent.
        looks = select.poll()
        looks.register(self.connection, select.POLLRDHUP)
        return bool(looks.poll(0))

    def agree(self):
        """Whether a client came that wants the disk."""
        self.connection.sendall(b"NBDMAGICIHAVEOPT" + struct.pack(">H", 1))
        self.receive(4)
        while True:
            _, option, size = struct.unpack(">8sII", self.receive(16))
            self.receive(size)
            if option == OPTION_ABORT:
                return False
            if option not in (OPTION_INFO, OPTION_GO):
                self.answer(option, REPLY_UNSUPPORTED)
                continue
            self.answer(option, REPLY_INFO, struct.pack(">HQH", 0, self.disk.size, HAS_FLAGS | SENDS_FLUSH | SENDS_FUA))
            self.answer(option, REPLY_ACK)
            if option == OPTION_GO:
                return True

    def answer(self, option, reply, data=b""):
        self.connection.sendall(struct.pack(">QIII", 0x3E889045565A9, option, reply, len(data)) + data)

    def serve(self):
        while True:
            _, flags, command, cookie, offset, size = struct.unpack(">IHHQQI", self.receive(28))
            data = b""
            if command == DISCONNECT:
                return self.disk.flush()
            if command == READ:
                data = self.disk.read(offset, size)
            elif command == WRITE:
                self.disk.write(offset, self.receive(size))
                if flags & FUA:
                    self.disk.keep([n for n in range(offset // BLOCK, (offset + size + BLOCK - 1) // BLOCK)])
            elif command == FLUSH:
                time.sleep(FLUSH_TIME)
                if self.is_gone():
                    raise PowerCut
                self.disk.flush()
            self.connection.sendall(struct.pack(">IIQ", 0x67446698, 0, cookie) + data)


def main(path, image, seed):
    disk = Disk(image, seed)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    while True:
        connection, _ = listener.accept()
        with connection:
            client, mounted = Client(connection, disk), False
            try:
                mounted = client.agree()
                if mounted:
                    client.serve()
            except (PowerCut, ConnectionError):
                if mounted:
                    disk.lose_power()


main(*sys.argv[1:])
