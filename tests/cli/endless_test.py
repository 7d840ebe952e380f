"""The commands of `stag` against a server that never comes to an end, or lies: each must end with a sentence and exit code 1."""
import itertools
import os
import resource
import shutil
import socket
import socketserver
import struct
import tempfile
import threading
import unittest
import zlib

import harness
from harness import stag

NFS, MOUNT = 100003, 100005
DIRECTORY, SYMLINK = 2, 5
JUKEBOX = 10008
IDS = {"root": 1, "endless": 2, "circle": 3, "itself": 4, "busy": 5, "wide": 6, "bushy": 7, "twice": 8}
TWICE = itertools.cycle(["pair", "link"])


def opaque(data):
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def attributes(name):
    """fattr3 of a directory, or of the one symbolic link."""
    kind = SYMLINK if name == "link" else DIRECTORY
    number = IDS.get(name) or (1000 + int(name) if name.isdecimal() else zlib.crc32(name.encode()))
    return struct.pack(">5I2Q2I2Q6I", kind, 0o755, 2, 0, 0, 4096, 4096, 0, 0, 1, number, *[0] * 6)


def entries_from(cookie, count):
    return b"".join([struct.pack(">IQI4sQ", 1, at, 4, b"name", at) for at in range(cookie + 1, cookie + 1 + count)])


def entry(name, number, cookie):
    return struct.pack(">IQ", 1, number) + opaque(name.encode()) + struct.pack(">Q", cookie)


def listing(directory, cookie):
    """The entries of dirlist3 behind `cookie`, and whether they are all."""
    if directory == "endless":
        return entries_from(cookie, 2000), False
    if directory == "circle":
        return entries_from(cookie % 5000, 100), False
    if directory == "root":
        return b"".join(entry(name, number, number) for name, number in IDS.items() if name != "root" and number > cookie), True
    if directory == "wide":
        return b"".join(entry(f"empty{at}", at, at) for at in range(cookie + 1, cookie + 100)), False
    if directory.startswith("empty"):
        return b"", True
    if directory == "twice":  # a directory with another one in it, and a symbolic link in its place
        return b"".join(entry("zaa", at, at) for at in (1, 2) if at > cookie), True
    if directory == "pair":
        return entry("sub", 1, 1) if cookie == 0 else b"", True
    if directory.startswith("bushy"):  # two below each, down to where no path reaches
        return b"".join(entry(name, number, number) for name, number in (("0", 1), ("1", 2)) if number > cookie), True
    # In itself, or one level further down.
    return entry("more", 9, 1) if cookie == 0 else b"", True


def child(directory, name):
    if directory in ("root", "wide"):
        return name
    if directory.startswith("bushy"):
        return f"bushy{zlib.crc32((directory + name).encode())}"
    if directory == "twice":
        return next(TWICE)
    if directory == "pair":
        return "empty below"
    return directory if directory == "itself" else str(int(directory) + 1)


class Service(socketserver.BaseRequestHandler):
    """MOUNT and NFS version 3 on one TCP port, as far as the commands here ask."""

    target = b""  # of the symbolic link

    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while mark := self.exactly(4):
            call = self.exactly(struct.unpack(">I", mark)[0] & 0x7FFFFFFF)
            xid, _, _, program, _, procedure, _, length = struct.unpack_from(">8I", call)
            arguments = call[40 + length:]
            result = self.mounted(procedure) if program == MOUNT else self.served(procedure, arguments)
            reply = struct.pack(">6I", xid, 1, 0, 0, 0, 0) + result
            self.request.sendall(struct.pack(">I", 0x80000000 | len(reply)) + reply)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            try:
                part = self.request.recv(count - len(data))
            except ConnectionError:
                part = b""
            if not part:
                return b""
            data += part
        return data

    def mounted(self, procedure):
        if procedure == 1:
            return struct.pack(">I", 0) + opaque(b"root") + struct.pack(">2I", 1, 1)
        if procedure == 5:
            return struct.pack(">I", 1) + opaque(b"/x") + struct.pack(">2I", 0, 0)
        return b""

    def served(self, procedure, arguments):
        if procedure == 0:
            return b""
        length = struct.unpack_from(">I", arguments)[0]
        directory = arguments[4:4 + length].decode()
        rest = arguments[4 + length + -length % 4:]
        if procedure == 1:
            return struct.pack(">I", JUKEBOX) if directory == "busy" else struct.pack(">I", 0) + attributes(directory)
        if procedure == 3 and directory in ("circle", "endless"):
            return struct.pack(">2I", 2, 0)  # NFS3ERR_NOENT
        if procedure == 3:
            size = struct.unpack_from(">I", rest)[0]
            found = child(directory, rest[4:4 + size].decode())
            if directory == "root" and found == "deep":
                found = "0"
            if found == "busy":
                return struct.pack(">2I", JUKEBOX, 0)
            return struct.pack(">I", 0) + opaque(found.encode()) + struct.pack(">I", 1) + attributes(found) + struct.pack(">I", 0)
        if procedure == 5:
            return struct.pack(">2I", 0, 0) + opaque(self.target)
        if procedure == 16:
            shown, eof = listing(directory, struct.unpack_from(">Q", rest)[0])
            return struct.pack(">2IQ", 0, 0, 0) + shown + struct.pack(">2I", 0, eof)
        if procedure == 19:
            return struct.pack(">9IQ3I", 0, 0, *[1 << 20] * 7, 1 << 40, 0, 1, 0x1B)
        return struct.pack(">2I", 10004, 0)  # NFS3ERR_NOTSUPP


class Endless(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(prefix="stag-endless-")
        # The address sanitizer keeps 256 MiB of what was freed, which is not the command's doing.
        os.environ["ASAN_OPTIONS"] = "quarantine_size_mb=8"
        cls.addClassCleanup(shutil.rmtree, cls.work, ignore_errors=True)
        cls.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Service)
        cls.server.daemon_threads = True
        cls.addClassCleanup(cls.server.server_close)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.shutdown)

    def ends(self, sentence, command, *arguments):
        port = self.server.server_address[1]
        full = [f"nfs://127.0.0.1:{port}/x/{each[4:]}?proto=tcp&mountport={port}&version=3" if each.startswith("URL/") else each for each in arguments]
        result = stag(command, *full)
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertIn(sentence, result.stderr)

    def test_lists_end_in_bounded_memory(self):
        self.ends("more than 1048576 entries", "ls", "URL/endless")
        self.ends("more than 1048576 entries", "rm", "-r", "URL/endless")
        # Of which the address sanitizer keeps 256 MiB that were freed, and 100 MiB of its own and the fuzzer's tables.
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 768 << 10)

    def test_copies_end(self):
        for tree in ("wide", "bushy"):
            self.ends("more than 300 entries", "cp", "-r", "--max-entries", "300", f"URL/{tree}", os.path.join(self.work, tree))
        made = sum(len(folders) for tree in ("wide", "bushy") for _, folders, _ in os.walk(os.path.join(self.work, tree)))
        self.assertEqual(made, 600)

    def test_lists_that_go_in_circles_end(self):
        self.ends("circles", "ls", "URL/circle")
        self.ends("circles", "rm", "-r", "URL/circle")
        self.ends("circles", "cp", "-r", "URL/circle", os.path.join(self.work, "circle"))

    def test_what_takes_the_place_of_a_directory_reaches_nothing_outside_the_destination(self):
        outside, copy = os.path.join(self.work, "outside"), os.path.join(self.work, "copy")
        os.makedirs(os.path.join(outside, "sub"))
        os.chmod(os.path.join(outside, "sub"), 0o700)
        known = os.stat(os.path.join(outside, "sub"))
        Service.target = outside.encode()
        os.makedirs(os.path.join(copy, "zaa"))  # so that entries of `copy` are looked for
        self.ends("listed twice", "sync", "--delete", "URL/twice", copy)
        after = os.stat(os.path.join(outside, "sub"))
        self.assertEqual((after.st_mode, after.st_mtime_ns), (known.st_mode, known.st_mtime_ns))
        self.assertFalse(os.path.islink(os.path.join(copy, "zaa")))

    def test_a_directory_within_itself_is_found(self):
        self.ends("within itself", "rm", "-r", "URL/itself")
        self.ends("within itself", "cp", "-r", "URL/itself", os.path.join(self.work, "itself"))

    def test_a_tree_without_a_floor_is_left(self):
        self.ends("1024 directories", "rm", "-r", "URL/deep")

    def test_a_list_of_a_tree_without_a_floor_says_what_it_leaves_out(self):
        port = self.server.server_address[1]
        result = stag("ls", "-R", f"nfs://127.0.0.1:{port}/x/deep?proto=tcp&mountport={port}&version=3")
        self.assertEqual((result.returncode, result.stdout.count("more:\n")), (1, 1024))
        self.assertRegex(result.stderr, r"^stag ls: .*1024 directories deep.*\n$")

    def test_a_server_that_is_never_ready_is_left_after_the_timeout(self):
        self.ends("try again later", "stat", "--timeout", "1", "URL/busy")


if __name__ == "__main__":
    harness.main()
