"""What `stag cp` and `stag sync` do with paths of this machine that are longer than the kernel takes at once, and with links in what the user names."""
import contextlib
import os
import subprocess
import sys
import unittest

import harness
from harness import Case

NAME = "n" * 250
# Some 5000 bytes: above PATH_MAX.
DEPTH = 20


@contextlib.contextmanager
def folder(root, depth, make=False):
    """A descriptor of the folder that is so deep below `root`."""
    descriptor = os.open(root, os.O_RDONLY)
    try:
        for _ in range(depth):
            if make:
                os.mkdir(NAME, dir_fd=descriptor)
            below = os.open(NAME, os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def put(directory, name, content):
    with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=directory), "wb") as file:
        file.write(content)


def get(directory, name):
    with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=directory), "rb") as file:
        return file.read()


class LongPaths(Case):
    def grow(self, root):
        os.mkdir(root)
        with folder(root, DEPTH, make=True) as deep:
            put(deep, "f", b"content")
            os.link("f", "g", src_dir_fd=deep, dst_dir_fd=deep)
            os.symlink("f", "link", dir_fd=deep)
            os.mkfifo("fifo", dir_fd=deep)

    def expect_grown(self, root):
        with folder(root, DEPTH) as deep:
            self.assertEqual(sorted(os.listdir(deep)), ["f", "fifo", "g", "link"])
            self.assertEqual((get(deep, "f"), os.readlink("link", dir_fd=deep)), (b"content", "f"))
            self.assertEqual(os.stat("f", dir_fd=deep).st_ino, os.stat("g", dir_fd=deep).st_ino)

    def test_are_copied_both_ways(self):
        self.grow(self.at("src"))
        self.good("cp", "-a", self.at("src"), self.url("copy"))
        self.expect_grown(self.there("copy"))
        self.good("cp", "-a", self.url("copy"), self.at("back"))
        self.expect_grown(self.at("back"))
        self.good("sync", "--checksum", self.url("copy"), self.at("back"))
        self.good("sync", "--checksum", self.at("back"), self.url("copy"))
        self.expect_grown(self.at("back"))

    def test_are_removed_and_replaced(self):
        for side in (self.at("dst"), self.there("src")):
            self.grow(side)
        with folder(self.there("src"), DEPTH) as deep:
            put(deep, "f", b"CONTENT")
            os.unlink("fifo", dir_fd=deep)
        self.good("sync", "--delete", "--checksum", self.url("src"), self.at("dst"))
        with folder(self.at("dst"), DEPTH) as deep:
            self.assertEqual((sorted(os.listdir(deep)), get(deep, "f")), (["f", "g", "link"], b"CONTENT"))
        os.mkdir(self.there("empty"))
        self.good("sync", "--delete", self.url("empty"), self.at("dst"))
        self.assertEqual(os.listdir(self.at("dst")), [])

    def test_are_named_by_the_user(self):
        self.grow(self.at("src"))
        deep = self.at("src", *[NAME] * DEPTH)
        self.good("cp", deep + "/f", self.url("f"))
        self.assertEqual(self.read(self.there("f")), b"content")
        self.good("cp", "-r", "--exclude=fifo", deep, self.url("tree"))
        self.assertEqual(self.read(self.there("tree", "f")), b"content")
        self.good("cp", self.url("f"), deep + "/new")
        self.good("cp", self.url("f"), deep)
        with folder(self.at("src"), DEPTH) as found:
            self.assertEqual((get(found, "new"), get(found, "f")), (b"content", b"content"))


class Named(Case):
    """Links in what the user names are followed, below it none is."""

    def test_links_are_followed(self):
        os.makedirs(self.at("real", "sub"))
        self.write(self.at("real", "sub", "f"), b"content")
        os.symlink("real/sub", self.at("link"))
        os.symlink("real/sub/f", self.at("file"))
        self.good("cp", self.at("file"), self.url("a"))
        self.good("cp", self.at("link", "f"), self.url("b"))
        # One of them below the other.
        self.good("cp", "-r", self.at("real"), self.at("link", "."), self.url())
        for name in ("a", "b", "f", "real/sub/f"):
            self.assertEqual(self.read(self.there(name)), b"content", name)
        self.good("cp", self.url("a"), self.at("link"))
        self.good("cp", "-a", self.url("real"), self.at("link"))
        self.good("sync", "--delete", self.url("real"), self.at("link"))
        self.assertEqual(os.listdir(self.at("real", "sub")), ["sub"])
        self.assertEqual(self.read(self.at("link", "sub", "f")), b"content")

    def test_links_below_are_not_followed(self):
        os.mkdir(self.there("src"))
        os.mkdir(self.there("src", "sub"))
        self.write(self.there("src", "sub", "f"), b"content")
        os.makedirs(self.at("victim"))
        self.write(self.at("victim", "precious"))
        os.mkdir(self.at("dst"))
        os.symlink("../victim", self.at("dst", "sub"))
        self.bad(1, "in the way", "cp", "-r", self.url("src", "."), self.at("dst"))
        self.good("sync", "--delete", self.url("src"), self.at("dst"))
        self.assertEqual(self.read(self.at("dst", "sub", "f")), b"content")
        self.assertEqual(os.listdir(self.at("victim")), ["precious"])


# Has a lease of a file until it is asked for it.
HOLDER = """
import fcntl, os, signal, sys
writes = sys.argv[2] == "w"
file = os.open(sys.argv[1], os.O_RDWR if writes else os.O_RDONLY)
signal.signal(signal.SIGIO, lambda *_: sys.exit())
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK if writes else fcntl.F_RDLCK)
print("leased", flush=True)
while True:
    signal.pause()
"""


class Leased(Case):
    """Files that servers of this machine have delegated, or given oplocks of, are leased to them."""

    @contextlib.contextmanager
    def leased(self, kind, *parts):
        with subprocess.Popen([sys.executable, "-c", HOLDER, self.at(*parts), kind], stdout=subprocess.PIPE, text=True) as holder:
            self.addCleanup(holder.kill)
            if holder.stdout.readline() != "leased\n":
                self.skipTest("the file system has no leases")
            yield
            self.assertEqual(holder.wait(harness.PATIENCE), 0)

    def test_are_read_when_they_are_given_back(self):
        os.mkdir(self.at("tree"))
        for name in ("a", "b"):
            self.write(self.at("tree", name), name.encode())
        with self.leased("w", "tree", "a"):
            self.good("cp", self.at("tree", "a"), self.url("a"))
        with self.leased("w", "tree", "a"):
            self.good("sync", self.at("tree"), self.url("tree"))
        with self.leased("w", "tree", "a"):
            self.good("sync", "--checksum", self.at("tree"), self.url("tree"))
        for name in ("a", "tree/a"):
            self.assertEqual(self.read(self.there(name)), b"a")

    def test_are_written_when_they_are_given_back(self):
        self.write(self.there("new"), b"new")
        self.write(self.at("f"), b"old")
        with self.leased("r", "f"):
            self.good("cp", "--inplace", self.url("new"), self.at("f"))
        self.assertEqual(self.read(self.at("f")), b"new")
        self.write(self.at("f"), b"older")
        os.link(self.at("f"), self.at("other"))
        with self.leased("r", "f"):
            self.good("cp", self.url("new"), self.at("f"))
        self.assertEqual(self.read(self.at("other")), b"new")


if __name__ == "__main__":
    harness.main()
