#!/usr/bin/env python3
"""Owners of files as version 4 clients see them: numbers, or names where the server is told to."""
import json
import os
import pwd
import re
import shutil
import struct
import tempfile
import unittest

import harness
from harness import stag
from nfs4_client import LOOKUP, OK, PUTROOTFH, Client, opaque, words

GETATTR, OWNERS = 9, (0, 1 << 4 | 1 << 5)


class Owners(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = os.path.join(folder.name, "state")

    def owners(self, *arguments):
        """Of the root of a new export."""
        server = harness.Server(["/data=memory,no_root_squash"], self.state, arguments)
        try:
            client = Client(server.tcp_port, b"anna").connect()
            self.assertEqual(client.reclaim_complete(), OK)
            status, results = client.in_session(
                words(PUTROOTFH), words(LOOKUP) + opaque(b"data"), words(GETATTR, 2, *OWNERS))
            self.assertEqual(status, OK)
            client.close()
        finally:
            self.assertEqual(server.end(), 0)
        # Behind PUTROOTFH and LOOKUP: the operation, its status, a bitmap of two words, and the values' length.
        values, found = results[16 + 8 + 12 + 4:], []
        while len(found) < 2:
            size = struct.unpack_from(">I", values)[0]
            found.append(values[4:4 + size].decode())
            values = values[4 + size + (-size % 4):]
        return found

    def need_names(self):
        if not any(os.path.exists(os.path.join(folder, "libnfsidmap.so.1")) for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")):
            self.skipTest("libnfsidmap is not installed")

    def test_are_numbers(self):
        for text in self.owners():
            self.assertRegex(text, r"^\d+$")

    def test_are_names_where_they_are_asked_for(self):
        refused = stag("serve", "--id-map", "names", "--id-domain", "no domain", "--state", self.state, "--export", "/m=memory")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--id-domain 'no domain' is no domain", refused.stderr)
        self.need_names()
        self.assertEqual(self.owners("--id-map", "names", "--id-domain", "example.net"), ["root@example.net"] * 2)

    def test_in_lists_are_shown_as_they_are_said_and_told_of_where_they_are_lost(self):
        self.need_names()
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        file = os.path.join(folder, "f")
        with open(file, "wb"):
            os.chmod(file, 0o640)
        # user::rw-, user:1:r--, group::---, mask::r--, other::---
        entries = ((1, 6, 0xFFFFFFFF), (2, 4, 1), (4, 0, 0xFFFFFFFF), (0x10, 4, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF))
        try:
            os.setxattr(file, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *each) for each in entries))
        except OSError as error:
            self.skipTest(f"this file system has no access control lists: {error}")
        server = harness.Server([f"/data={folder},no_root_squash"], self.state, ["--id-map", "names", "--id-domain", "example.net"])
        self.addCleanup(server.end)
        named = f"A::{pwd.getpwuid(1).pw_name}@example.net:rtcy"
        text = stag("stat", server.tcp("/data/f")).stdout
        self.assertRegex(text, rf"\n    acl  [AD]::OWNER@:[a-zA-Z]+\n(         .*\n)*         {re.escape(named)}\n")
        (shown,) = json.loads(stag("stat", "--json", server.tcp("/data/f")).stdout)
        self.assertIn(named, shown["nfs4_acl"])
        self.assertNotIn("acl", shown)
        (shown,) = json.loads(stag("stat", "--json", server.tcp("/data/f") + "&version=3").stdout)
        self.assertEqual(shown["acl"], "user::rw-,user:1:r--,group::---,mask::r--,other::---")
        copied = stag("cp", "-p", server.tcp("/data/f"), os.path.join(folder, "copy"))
        self.assertEqual(copied.returncode, 0, copied.stderr)
        self.assertRegex(copied.stderr, r"^stag cp: access control lists are not copied, from \S+ on: [^\n]+\n$")


if __name__ == "__main__":
    harness.main()
