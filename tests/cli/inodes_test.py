#!/usr/bin/env python3
"""`stag serve` without root: its table of inodes when the state directory is full, and when the table is damaged."""
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

import harness
from exports_test import mounting
from harness import Server, stag

NOBODY = 65534


class WithoutRoot(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        self.work = tempfile.mkdtemp(prefix="stag-inodes-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.served, self.state = (os.path.join(self.work, name) for name in ("served", "state"))
        for path in self.work, self.served, self.state:
            os.makedirs(path, exist_ok=True)
            os.chown(path, NOBODY, NOBODY)
        try:
            subprocess.run([harness.STAG, "--version"], stdout=subprocess.DEVNULL, check=True, user=NOBODY, group=NOBODY, extra_groups=[])
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("the program is not for everybody")

    def start(self, before=lambda: None):
        def become_nobody():
            before()
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

        server = Server([f"/x={self.served}"], self.state, preexec_fn=become_nobody)
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def put(self, name):
        with open(os.path.join(self.served, name), "w") as file:
            file.write(name)

    def good(self, *arguments):
        result = stag(*arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return result.stdout

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_a_full_state_directory_keeps_nobody_from_files(self):
        server = self.start(mounting(b"none", self.state, b"tmpfs", 0, b"size=2m,mode=1777"))
        filler = f"/proc/{server.process.pid}/root{self.state}/filler"
        with self.assertRaises(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        self.put("one")
        self.assertEqual(self.good("cat", server.url("/x/one")), "one")
        self.put("two")
        self.assertEqual(len(self.good("ls", "-l", server.url("/x")).splitlines()), 2)
        self.put("three")
        self.assertIn("three", self.good("stat", server.url("/x/three") + "&version=4.2"))
        self.assertRegex(server.log(), r"(?m)^.* error +InodeTableUnwritten .*inodes-\S*\.sqlite: .*full")
        os.remove(filler)
        self.put("four")
        self.assertEqual(self.good("cat", server.url("/x/four")), "four")
        self.assertEqual(server.log().count("InodeTableUnwritten"), 1)

    def test_a_damaged_table_is_set_aside(self):
        self.put("file")
        server = self.start()
        self.assertEqual(self.good("cat", server.url("/x/file")), "file")
        self.assertEqual(server.end(), 0)
        (table,) = glob.glob(f"{self.state}/inodes-*.sqlite")
        with open(table, "wb") as file:
            file.write(b"damaged " * 10000)
        server = self.start()
        self.assertRegex(server.log(), rf"(?m)^.* error +InodeTableSetAside .*{table}\.damaged")
        self.assertEqual(self.good("cat", server.url("/x/file")), "file")
        self.assertEqual(server.end(), 0)
        with open(f"{table}.damaged", "rb") as file:
            self.assertEqual(file.read(8), b"damaged ")
        self.assertNotIn("InodeTableSetAside", self.start().log())


if __name__ == "__main__":
    harness.main()
