"""`stag cp` and `stag sync` onto files that are there: where the source has holes, nothing of what was there is left, and no storage is taken."""
import contextlib
import json
import os
import signal
import struct
import subprocess

import harness
import rpc_proxy
from harness import Case, Proxy

MIB = 1 << 20
SIZE = 64 * MIB
# What the source has beside holes: at the beginning, in the middle, and before a hole at the end.
PARTS = {0: os.urandom(MIB), 30 * MIB + 4096: os.urandom(MIB), 40 * MIB: os.urandom(8192)}
STORED = sum(map(len, PARTS.values()))


class HoleProxy(rpc_proxy.RpcProxy):
    """Notes the ranges of DEALLOCATE and, where it `refuses`, has the server do nothing and say NFS4ERR_NOTSUPP."""

    OPERATION = struct.pack(">I", 62) + bytes(16)  # with the anonymous stateid

    def __init__(self, port, refuses=False):
        self.refuses, self.ranges = refuses, []
        super().__init__(port)

    def _forward(self, source, target, see, old, new):
        up = see == self._see_call
        stream = source.makefile("rb")
        with contextlib.suppress(OSError, struct.error):
            while mark := stream.read(4):
                record = stream.read(struct.unpack(">I", mark)[0] & 0x7FFFFFFF)
                self._send(target, mark + (self.of_call(record) if up else self.of_reply(record)))

    def of_call(self, record):
        if record[-36:-16] != self.OPERATION:
            return record
        self.ranges.append(struct.unpack(">QQ", record[-16:]))
        # RFC 7862 15.4.3: a range without length is invalid.
        return record[:-8] + bytes(8) if self.refuses else record

    def of_reply(self, record):
        if not self.refuses or record[-8:] != struct.pack(">2I", 62, 22):
            return record
        status = struct.pack(">I", rpc_proxy.NOTSUPP)
        return record[:24] + status + record[28:-4] + status

    def url(self, path):
        return f"nfs://127.0.0.1:{self.port}{path}?proto=tcp&version=4.2"


class SparseCase(Case):
    def sparse(self, path):
        with open(path, "wb") as file:
            for offset, data in PARTS.items():
                file.seek(offset)
                file.write(data)
            file.truncate(SIZE)
        self.assertLess(os.stat(path).st_blocks * 512, 2 * STORED)
        return path

    def through(self, **options):
        proxy = HoleProxy(self.server.tcp_port, **options)
        self.addCleanup(proxy.close)
        return proxy, proxy.url(f"/files/{self.name}/f")

    def check(self, path, source, most=2 * STORED):
        # The whole of it in a message would be too much.
        self.assertTrue(self.read(path) == self.read(source), path)
        self.assertLess(os.stat(path).st_blocks * 512, most, path)

    def full(self, path):
        """Data everywhere, and longer than the source."""
        self.write(path, os.urandom(SIZE + MIB))
        return path


class Holes(SparseCase):
    def test_are_holes_in_a_file_that_is_written_in_place(self):
        self.sparse(self.at("f"))
        for version in ("4.2", "3"):
            for url in (self.url("f"), self.server.tcp(f"/files/{self.name}/f")):
                self.full(self.there("f"))
                self.good("cp", "--inplace", self.at("f"), f"{url}&version={version}")
                self.check(self.there("f"), self.at("f"))
                self.full(self.at("back"))
                self.good("cp", "--inplace", f"{url}&version={version}", self.at("back"))
                self.check(self.at("back"), self.at("f"))

    def test_are_holes_in_a_file_of_several_names(self):
        self.sparse(self.at("f"))
        os.link(self.full(self.there("f")), self.there("other"))
        self.good("cp", self.at("f"), self.url("f"))
        self.check(self.there("other"), self.at("f"))

    def test_are_holes_in_a_file_in_place_from_server_to_server(self):
        self.sparse(self.there("f"))
        elsewhere = harness.Server([f"/to={self.local},no_root_squash"], self.local + "-state")
        for version in ("4.2", "3"):
            self.full(self.at("g"))
            self.good("cp", "--inplace", f"{self.url('f')}&version={version}", f"{elsewhere.url('/to/g')}&version={version}")
            self.check(self.at("g"), self.there("f"))
        self.assertEqual(elsewhere.end(), 0)

    def test_that_a_file_got_are_holes_in_its_copy_by_sync(self):
        for folder in (self.at("tree"), self.there("tree")):
            os.mkdir(folder)
        self.full(self.at("tree", "f"))
        self.good("sync", self.at("tree"), self.url("tree"))
        self.sparse(self.at("tree", "f"))
        self.good("sync", self.at("tree"), self.url("tree"))
        self.check(self.there("tree", "f"), self.at("tree", "f"))
        self.full(self.there("tree", "f"))
        self.good("sync", self.at("tree"), self.url("tree"))
        self.sparse(self.there("tree", "f"))
        self.good("sync", self.url("tree"), self.at("tree"))
        self.check(self.at("tree", "f"), self.there("tree", "f"))


class Continued(SparseCase):
    """What is there is the beginning of the source, with zeros where that has holes."""

    def begun(self, path, source):
        self.write(path, self.read(source)[: 60 * MIB])
        self.assertGreaterEqual(os.stat(path).st_blocks * 512, 60 * MIB)
        return path

    def test_take_no_storage_on_a_server_of_version_4_2(self):
        self.sparse(self.at("f"))
        self.begun(self.there("f"), self.at("f"))
        proxy, url = self.through()
        self.good("cp", "--continue", self.at("f"), url)
        self.check(self.there("f"), self.at("f"))
        # What WRITEs may have left out is written again; before it the file is kept, and every hole of it is made.
        self.assertEqual(proxy.ranges, [(MIB, 29 * MIB + 4096), (31 * MIB + 4096, 9 * MIB - 4096), (40 * MIB + 8192, 4 * MIB - 8192)])

    def test_take_no_storage_in_a_copy_here(self):
        self.sparse(self.there("f"))
        self.begun(self.at("f"), self.there("f"))
        self.good("cp", "--continue", self.url("f"), self.at("f"))
        self.check(self.at("f"), self.there("f"))

    def test_take_no_storage_from_server_to_server(self):
        self.sparse(self.there("f"))
        elsewhere = harness.Server([f"/to={self.local},no_root_squash"], self.local + "-state")
        self.begun(self.at("f"), self.there("f"))
        self.good("cp", "--continue", "--checksum", self.url("f"), elsewhere.url("/to/f"))
        self.check(self.at("f"), self.there("f"))
        self.assertEqual(elsewhere.end(), 0)

    def test_stay_zeros_where_the_server_makes_no_holes(self):
        self.sparse(self.at("f"))
        self.begun(self.there("f"), self.at("f"))
        proxy, url = self.through(refuses=True)
        self.good("cp", "--continue", self.at("f"), url)
        self.check(self.there("f"), self.at("f"), most=SIZE)
        self.assertEqual(len(proxy.ranges), 1, "it is not asked again")
        for version in ("2", "3", "4.1"):
            self.begun(self.there("f"), self.at("f"))
            self.good("cp", "--continue", self.at("f"), f"{self.url('f')}&version={version}")
            self.check(self.there("f"), self.at("f"), most=SIZE)
            # Nor are the holes of a source known there.
            self.begun(self.at("back"), self.there("f"))
            self.good("cp", "--continue", f"{self.url('f')}&version={version}", self.at("back"))
            self.check(self.at("back"), self.at("f"), most=SIZE)

    def test_and_data_are_whole_after_an_interruption(self):
        with open(self.at("f"), "wb") as file:
            for offset, length in ((0, 8 * MIB), (20 * MIB, 24 * MIB)):
                file.seek(offset)
                file.write(os.urandom(length))
            file.truncate(SIZE)
        self.full(self.there("f"))
        proxy = Proxy(self.server.tcp_port, "up", 26 * MIB)
        self.addCleanup(proxy.cut)
        through = f"nfs://127.0.0.1:{proxy.port}/files/{self.name}/f?proto=tcp&version=4.2"
        copy = subprocess.Popen([harness.STAG, "cp", "--inplace", self.at("f"), through], stderr=subprocess.PIPE, text=True)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        copy.send_signal(signal.SIGINT)
        proxy.released.set()
        errors = copy.communicate(timeout=harness.PATIENCE)[1]
        self.assertEqual(copy.returncode, 130, errors)
        self.assertLess(os.stat(self.there("f")).st_size, SIZE, "nothing of the old file is taken for the copy")
        self.good("cp", "--continue", self.at("f"), self.url("f"))
        self.check(self.there("f"), self.at("f"), most=34 * MIB)

    def test_are_not_read_behind_what_is_there(self):
        self.sparse(self.there("f"))
        self.write(self.at("f"), self.read(self.there("f"))[: 35 * MIB])
        proxy = Proxy(self.server.tcp_port, "down", 2 * MIB)
        self.addCleanup(proxy.cut)
        url = f"nfs://127.0.0.1:{proxy.port}/files/{self.name}/f?proto=tcp&version=4.2"
        got = json.loads(self.good("cp", "--continue", "--json", url, self.at("f")))
        self.assertFalse(proxy.reached.is_set(), "29 MiB are missing, of which 8 KiB are data")
        self.assertEqual(got["bytes"], 29 * MIB)
        self.check(self.at("f"), self.there("f"))


if __name__ == "__main__":
    harness.main()
