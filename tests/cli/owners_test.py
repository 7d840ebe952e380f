#!/usr/bin/env python3
"""Owners of files as version 4 clients see them: numbers, or names where the server is told to."""
import os
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

    def test_are_numbers(self):
        for text in self.owners():
            self.assertRegex(text, r"^\d+$")

    def test_are_names_where_they_are_asked_for(self):
        refused = stag("serve", "--id-map", "names", "--id-domain", "no domain", "--state", self.state, "--export", "/m=memory")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--id-domain 'no domain' is no domain", refused.stderr)
        if not any(os.path.exists(os.path.join(folder, "libnfsidmap.so.1")) for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")):
            self.skipTest("libnfsidmap is not installed")
        self.assertEqual(self.owners("--id-map", "names", "--id-domain", "example.net"), ["root@example.net"] * 2)


if __name__ == "__main__":
    harness.main()
