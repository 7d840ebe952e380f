"""A directory that is listed in parts, while this mount changes what is in it: what the server said before is not told the kernel for news."""
import collections
import ctypes
import mmap
import os
import platform
import re
import subprocess
import urllib.request

import harness
import mounted
from mounted import Mounted

FILES = 400  # of which the kernel is told half at a time
GETDENTS64 = {"x86_64": 217, "aarch64": 61}


class Directory:
    """getdents64(2) with less room than the C library has for a directory of a mount."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self.room = ctypes.create_string_buffer(32768)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.behind = {}  # where the list goes on behind a name

    def part(self):
        used = self.libc.syscall(GETDENTS64[platform.machine()], self.file, self.room, len(self.room))
        if used < 0:
            raise OSError(ctypes.get_errno(), "getdents64")
        names, at = [], 0
        while at < used:
            size = int.from_bytes(self.room.raw[at + 16:at + 18], "little")
            names.append(os.fsdecode(self.room.raw[at + 19:at + size].split(b"\0")[0]))
            self.behind[names[-1]] = int.from_bytes(self.room.raw[at + 8:at + 16], "little")
            at += size
        return names

    def rest(self):
        names = []
        while part := self.part():
            names += part
        return names

    def go_back(self, name):
        """The next part begins behind it."""
        os.lseek(self.file, self.behind[name], os.SEEK_SET)

    def close(self):
        os.close(self.file)


class Listed:
    def begin(self):
        for number in range(FILES):
            self.write(self.there(f"file{number:04}"), b"x" * 10)
        self.mount("-o", "actimeo=600,vers=" + self.VERSION)
        directory = Directory(self.here())
        self.assertLess(len(directory.part()), FILES - 20)
        self.names = directory.rest()
        directory.close()

    def listing(self):
        """Of which the first part has been read. The kernel asks for attributes with the next one, since one of the first was wanted."""
        directory = Directory(self.here())
        self.addCleanup(directory.close)
        os.stat(self.here(directory.part()[-1]))
        return directory

    def test_keeps_the_size_of_what_was_written(self):
        self.begin()
        name = self.names[-5]
        file = os.open(self.here(name), os.O_RDWR)
        listing = self.listing()
        os.pwrite(file, b"y" * 8000, 10)
        os.fsync(file)
        self.assertIn(name, listing.rest())
        self.assertEqual(os.fstat(file).st_size, 8010)
        os.lseek(file, 0, os.SEEK_END)
        os.write(file, b"APPENDED")
        os.close(file)
        self.assertEqual(self.read(self.there(name)), b"x" * 10 + b"y" * 8000 + b"APPENDED")

    def test_keeps_the_size_also_where_the_end_was_seen_and_it_goes_back(self):
        self.begin()
        name = self.names[-5]
        file = os.open(self.here(name), os.O_RDWR)
        listing = self.listing()
        part = listing.part()
        self.assertIn(name, part)
        os.pwrite(file, b"y" * 8000, 10)
        os.fsync(file)
        self.assertEqual(listing.part(), [])
        listing.go_back(self.names[-7])
        os.stat(self.here(self.names[0]))
        self.assertIn(name, listing.rest())
        self.assertEqual(os.fstat(file).st_size, 8010)
        os.close(file)

    def test_keeps_pages_of_what_was_made_longer(self):
        self.begin()
        name = self.names[-6]
        file = os.open(self.here(name), os.O_RDWR)
        listing = self.listing()
        os.ftruncate(file, 12288)
        with mmap.mmap(file, 12288) as pages:
            pages[8200:8208] = b"MAPPED!!"
            self.assertIn(name, listing.rest())
            self.assertEqual(os.fstat(file).st_size, 12288)
            self.assertEqual(pages[8200:8208], b"MAPPED!!")
            pages.flush()
        os.close(file)
        self.assertEqual(self.read(self.there(name))[8200:8208], b"MAPPED!!")

    def test_shows_no_file_that_was_removed_or_replaced_as_it_was(self):
        self.begin()
        removed, replaced = self.names[-7:-5]
        listing = self.listing()
        os.unlink(self.here(removed))
        self.write(self.here("new"), b"new content")
        os.rename(self.here("new"), self.here(replaced))
        listing.rest()
        self.assertFalse(os.path.exists(self.here(removed)))
        self.assertEqual(os.stat(self.here(replaced)).st_size, 11)
        self.assertEqual(self.read(self.here(replaced)), b"new content")

    def test_leaves_what_was_seen_since(self):
        """Another client wrote and closed, and this one has opened the file: it sees that."""
        self.begin()
        name = self.names[-5]
        listing = self.listing()
        self.write(self.there(name), b"z" * 5000)
        file = os.open(self.here(name), os.O_RDONLY)
        self.assertEqual(os.fstat(file).st_size, 5000)
        listing.rest()
        self.assertEqual(os.fstat(file).st_size, 5000)
        os.close(file)


class ByVersion3(Listed, Mounted):
    VERSION = "3"


class ByVersion40(Listed, Mounted):
    VERSION = "4.0"


class ByVersion42(Listed, Mounted):
    VERSION = "4.2"


class Counted(Mounted):
    MANY = 1000
    # What may be asked once for the directory, and once more while it is mounted and unmounted.
    FEW = 20

    def asked(self, server):
        """How often the server was asked for each procedure or operation."""
        (metrics,) = [line.split(" ")[1] for line in server.lines if line.startswith("metrics: ")]
        with urllib.request.urlopen(metrics, timeout=harness.PATIENCE) as answer:
            lines = re.findall(r'^stag_(?:nfs4_operations|calls)_total\{.*?(?:procedure|operation)="(\w+)".*?\} (\S+)$', answer.read().decode(), re.MULTILINE)
        asked = collections.Counter()
        for name, count in lines:
            asked[name] += int(float(count))
        return asked

    def test_tells_the_attributes_of_a_thousand_files_without_a_question_for_each(self):
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"), ("--metrics", "127.0.0.1:0"))
        self.addCleanup(lambda: self.assertEqual(server.end(), 0))
        for number in range(self.MANY):
            self.write(self.there(f"file{number:04}"), b"x" * (number % 10))
        listed = ("ls", "-ln", "--time-style=full-iso")
        known = subprocess.run([*listed, self.there()], check=True, capture_output=True).stdout
        for version in ("3", "4.0", "4.2"):
            with self.subTest(version):
                self.mount(url=server.url("/files") + "&version=" + version)
                before = self.asked(server)
                shown = subprocess.run([*listed, self.here()], check=True, capture_output=True).stdout
                asked = self.asked(server) - before
                self.assertEqual(shown, known)
                self.assertLessEqual(asked["GETATTR"] + asked["LOOKUP"], self.FEW, asked)
                self.assertGreater(asked["READDIRPLUS"] + asked["READDIR"], 0, asked)
                self.good("umount", self.directory)


if __name__ == "__main__":
    mounted.main()
