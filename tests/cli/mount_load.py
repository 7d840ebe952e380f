"""mount_load.py FOLDER [lock]: changes files in FOLDER all the time until its standard input ends; with `lock`, one of them under a byte-range lock.

Says `NAME BYTES` of each change that is done, at the end `NAME is SHA256`, and `NAME failed WHY` where a call fails or a file has another content than was written.
"""
import contextlib
import fcntl
import hashlib
import os
import random
import sys
import threading

FILES = ("over", "locked", "reopened", "appended")
MOST = 1 << 20  # bytes of a file that is written over
PIECE = 64 << 10  # bytes at most
over, saying = threading.Event(), threading.Lock()


def say(*words):
    with saying:
        print(*words, flush=True)


class Writer:
    def __init__(self, folder, name, locks):
        self.path, self.name, self.locks, self.chance = os.path.join(folder, name), name, locks, random.Random(name)
        self.content = bytearray()  # as it was written

    def open(self):
        flags = os.O_APPEND if self.name == "appended" else 0
        return os.open(self.path, os.O_RDWR | os.O_CREAT | flags, 0o644)

    def run(self):
        try:
            self.write()
            say(self.name, "is", hashlib.sha256(self.content).hexdigest())
        except Exception as error:
            say(self.name, "failed", repr(error))
            raise

    def write(self):
        file = self.open()
        if self.locks:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, MOST, 0)
        change = self.append if self.name == "appended" else self.write_over
        while not over.is_set():
            say(self.name, change(file))
            if self.chance.randrange(8) == 0:
                self.look(file)
            if self.chance.randrange(16) == 0:
                os.fsync(file)
            if self.name == "reopened" and self.chance.randrange(32) == 0:
                os.close(file)
                file = self.open()
        os.fsync(file)
        os.close(file)

    def write_over(self, file):
        at, piece = self.chance.randrange(min(len(self.content), MOST - PIECE) + 1), self.chance.randbytes(self.chance.randrange(1, PIECE))
        self.done(os.pwrite(file, piece, at), piece)
        self.content[at : at + len(piece)] = piece
        return len(piece)

    def append(self, file):
        piece = self.chance.randbytes(self.chance.randrange(1, PIECE // 8))
        self.done(os.write(file, piece), piece)
        self.content += piece
        return len(piece)

    def done(self, written, piece):
        if written != len(piece):
            raise RuntimeError(f"{written} of {len(piece)} bytes were written")

    def look(self, file):
        at = self.chance.randrange(len(self.content))
        if os.pread(file, PIECE, at) != self.content[at : at + PIECE]:
            raise RuntimeError(f"other bytes than were written, at {at} or behind it")


if __name__ == "__main__":
    writers = [threading.Thread(target=Writer(sys.argv[1], name, name == "locked" and "lock" in sys.argv).run) for name in FILES]
    for each in writers:
        each.start()
    with contextlib.suppress(OSError):
        sys.stdin.read()
    over.set()
