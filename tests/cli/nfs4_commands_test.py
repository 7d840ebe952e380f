"""The commands on NFS version 4: over software iWARP and TCP, against our own server."""
import json
import os
import re
import shutil
import struct
import subprocess
import unittest
import urllib.request

import harness
import rpc_proxy
from harness import PATIENCE, Case


def count_operations(server, *names):
    """How often the server was asked for each."""
    (metrics,) = [line.split(" ")[1] for line in server.lines if line.startswith("metrics: ")]
    with urllib.request.urlopen(metrics, timeout=PATIENCE) as answer:
        text = answer.read().decode()
    found = [re.search(rf'^stag_nfs4_operations_total\{{[^}}]*"{name}"[^}}]*\}} (\S+)$', text, re.MULTILINE) for name in names]
    return [float(each[1]) if each else 0 for each in found]


class Version4(Case):
    versions = ("4", "4.0", "4.1", "4.2")

    def urls(self, *parts):
        """This test's folder in every version, over both transports; with sanitizers, where a command takes ten times as long, by either with one of them."""
        path = "/".join(["/files", self.name, *parts])
        for version in self.versions:
            if not harness.is_sanitized() or version == "4.0":
                yield self.server.url(path).split("?")[0] + f"?version={version}"
            if not harness.is_sanitized() or version == "4.2":
                yield self.server.tcp(path) + f"&version={version}"

    def below(self, url, name):
        path, options = url.split("?")
        return f"{path}/{name}?{options}"

    def test_lists_shows_and_reads(self):
        self.write(self.there("file"), b"12345")
        os.symlink("file", self.there("link"))
        known = os.stat(self.there("file"))
        for url in self.urls():
            self.assertEqual(self.good("ls", url), "file\nlink\n")
            self.assertEqual(self.good("cat", self.below(url, "link")), "12345")
            entries = {entry["name"]: entry for entry in json.loads(self.good("ls", "--json", url))}
            self.assertEqual((entries["file"]["size"], entries["file"]["uid"]), (5, known.st_uid))
            self.assertEqual(entries["file"]["fileid"], str(known.st_ino))
            self.assertIn("file", self.good("stat", self.below(url, "file")))
            self.assertIn("%", self.good("df", url))

    def test_changes_names(self):
        for index, url in enumerate(self.urls()):
            folder = self.below(url, f"folder {index}".replace(" ", "%20"))
            self.good("mkdir", folder)
            self.good("touch", self.below(folder, "file"))
            self.good("chmod", "600", self.below(folder, "file"))
            self.good("mv", self.below(folder, "file"), self.below(folder, "moved"))
            self.good("ln", self.below(folder, "moved"), self.below(folder, "linked"))
            self.assertEqual(os.stat(self.there(f"folder {index}", "linked")).st_nlink, 2)
            self.assertEqual(self.good("ls", folder), "linked\nmoved\n")
            self.good("rm", "-r", folder)
            self.assertFalse(os.path.exists(self.there(f"folder {index}")))

    def test_copies_there_and_back(self):
        content = os.urandom(5_000_001)
        self.write(self.at("data"), content)
        for index, url in enumerate(self.urls()):
            there = self.below(url, f"copy{index}")
            self.good("cp", self.at("data"), there)
            self.assertEqual(self.read(self.there(f"copy{index}")), content)
            self.good("cp", there, self.at(f"back{index}"))
            self.assertEqual(self.read(self.at(f"back{index}")), content)

    def test_copies_within_the_server_without_moving_the_data(self):
        content = os.urandom(5_000_000)
        self.write(self.there("data"), content)
        proxy = harness.Proxy(self.server.tcp_port, "down", 1_000_000)
        self.addCleanup(proxy.cut)
        url = f"nfs://127.0.0.1:{proxy.port}/files/{self.name}?proto=tcp&version=4.2"
        self.good("cp", self.below(url, "data"), self.below(url, "copy"))
        self.assertEqual(self.read(self.there("copy")), content)
        self.assertFalse(proxy.reached.is_set())

    @unittest.skipUnless(os.geteuid() == 0, "as any other user, a server does everything as that one")
    def test_copies_within_the_server_whatever_one_of_the_files_is(self):
        os.mkdir(self.there("from"))
        self.write(self.there("from", "a"), b"of another")
        os.chmod(self.there("from", "a"), 0o600)
        with open(self.there("from", "b"), "wb") as file:  # sparse
            file.write(b"x")
            file.truncate(5_000_000)
        os.truncate(self.there("from", "a"), 1_000_000)
        self.write(self.there("from", "another"), b"of another")
        os.chmod(self.there("from", "another"), 0o600)
        content = os.urandom(5_000_000)
        self.write(self.there("from", "c"), content)
        os.chmod(self.there(), 0o777)
        proxy = harness.Proxy(self.server.tcp_port, "down", 1_000_000)
        self.addCleanup(proxy.cut)
        url = f"nfs://127.0.0.1:{proxy.port}/files/{self.name}?proto=tcp&version=4.2&uid=4242&gid=4242"
        result = harness.stag("cp", "-r", "-j", "1", self.below(url, "from"), self.below(url, "to"))
        self.assertEqual((result.returncode, result.stderr.count("permission denied")), (1, 2), result.stderr)
        self.assertEqual(self.read(self.there("to", "c")), content)
        self.assertEqual(os.stat(self.there("to", "b")).st_size, 5_000_000)
        self.assertFalse(proxy.reached.is_set())

    def test_copies_large_files_within_the_server_in_one_COPY_that_goes_on(self):
        server = harness.Server([f"/files={self.there()},no_root_squash"], self.at("state"), ("--metrics", "127.0.0.1:0"))
        self.addCleanup(lambda: self.assertEqual(server.end(), 0))
        content = os.urandom(1 << 20) * 150  # A COPY that is answered at its end moves 64 MiB.
        self.write(self.there("from"), content)
        for url in server.url("/files/"), server.tcp("/files/"):
            path, _, options = url.partition("?")
            self.good("cp", f"{path}from?{options}&version=4.2", f"{path}to?{options}&version=4.2")
            self.assertTrue(self.read(self.there("to")) == content)
            os.unlink(self.there("to"))
        copies, clones = count_operations(server, "COPY", "CLONE")
        if not copies:
            self.assertEqual(clones, 2, "the folder's file system clones")
        else:
            self.assertEqual(copies, 2)

    @unittest.skipUnless(os.geteuid() == 0 and harness.may_mount() and shutil.which("mkfs.xfs"), "no xfs can be mounted here")
    def test_clones_within_the_server_on_a_file_system_that_shares_blocks(self):
        self.assertTrue(harness.enter_mount_namespace())
        image, place, content = self.at("image"), self.at("xfs"), os.urandom(40 << 20)
        self.write(image)
        os.truncate(image, 400 << 20)
        os.mkdir(place)
        subprocess.run(["mkfs.xfs", "-q", image], check=True)
        mounting = subprocess.run(["mount", "-o", "loop", image, place], stderr=subprocess.PIPE, text=True)
        if mounting.returncode != 0:
            self.skipTest(f"no xfs can be mounted here: {mounting.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", place], check=True)
        server = harness.Server([f"/x={place},no_root_squash"], self.at("state"), ("--metrics", "127.0.0.1:0"))
        self.addCleanup(lambda: self.assertEqual(server.end(), 0))
        self.write(os.path.join(place, "from"), content)
        os.sync()
        before = os.statvfs(place).f_bfree
        for name in ("whole", "again"):
            self.good("cp", server.tcp("/x/from") + "&version=4.2", server.tcp(f"/x/{name}") + "&version=4.2")
            self.assertTrue(self.read(os.path.join(place, name)) == content)
        os.sync()
        self.assertLess((before - os.statvfs(place).f_bfree) * os.statvfs(place).f_bsize, len(content) // 4, "the blocks are shared")
        self.assertEqual(count_operations(server, "CLONE", "COPY", "WRITE"), [2, 0, 0])

    def test_copies_between_versions_of_one_server(self):
        content = os.urandom(100_000)
        self.write(self.there("data"), content)
        for index, url in enumerate(self.urls()):
            self.good("cp", self.below(url, "data"), self.url(f"by3 {index}".replace(" ", "%20")))
            self.good("cp", self.url("data"), self.below(url, f"from3_{index}"))
            for name in (f"by3 {index}", f"from3_{index}"):
                self.assertEqual(self.read(self.there(name)), content)

    def test_copies_trees(self):
        os.makedirs(self.at("tree", "a", "b"))
        for i in range(50):
            self.write(self.at("tree", "a", f"file {i}"), b"x" * i)
        for index, url in enumerate(self.urls()):
            self.good("cp", "-r", self.at("tree"), self.below(url, f"tree{index}"))
            self.assertEqual(len(os.listdir(self.there(f"tree{index}", "a"))), 51)

    def test_sees_all_exports_from_the_root(self):
        root = self.server.url("/").split("?")[0]
        self.assertEqual(self.good("ls", f"{root}?version=4"), "files\nmemory\n")

    def test_says_what_went_wrong(self):
        for url in self.urls("nothing"):
            self.bad(1, "no such file or directory", "ls", url)
        os.mkdir(self.there("folder"))
        for url in self.urls("folder"):
            self.bad(1, "directory", "cat", url)

    def test_keeps_to_one_export(self):
        self.write(self.there("file"))
        for url in self.urls("file"):
            other = url.replace(f"/files/{self.name}", "/memory")
            self.bad(2, "stag cp", "mv", url, other)
            self.bad(1, "names the export itself", "rm", "-r", url.replace(f"/{self.name}/file", ""))
        self.assertTrue(os.path.exists(self.there("file")))

    def test_needs_no_MOUNT(self):
        url = self.server.url("/files", mount_port=1)
        self.good("ls", f"{url}&version=4.1")

    def test_pings(self):
        for url in self.urls():
            self.good("ping", "-c", "1", url)


class OnlyVersion4(harness.Case):
    """A server without version 3, as Linux with `vers3=n`: commands whose URL names no version."""

    # user::rw-, user:1234:r--, group::r--, mask::r--, other::---
    LIST = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in (
        (1, 6, 0xFFFFFFFF), (2, 4, 1234), (4, 4, 0xFFFFFFFF), (0x10, 4, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF)))

    def setUp(self):
        super().setUp()
        # The server hears of a version that nobody has.
        self.proxy = rpc_proxy.RpcProxy(self.server.tcp_port, told=struct.pack(">II", rpc_proxy.NFS, 3), true=struct.pack(">II", rpc_proxy.NFS, 9))
        self.addCleanup(self.proxy.close)
        try:
            os.setxattr(self.write(self.there("f"), b"content"), "system.posix_acl_access", self.LIST)
        except OSError as error:
            self.skipTest(f"this file system has no access control lists: {error}")

    def urls(self, name):
        """With no MOUNT service, and with one that says yes."""
        for mount_port in (1, self.server.tcp_port):
            yield f"nfs://127.0.0.1:{self.proxy.port}/files/{self.name}/{name}?proto=tcp&mountport={mount_port}"

    def test_shows_access_control_lists(self):
        for url in self.urls("f"):
            (shown,) = json.loads(self.good("stat", "--json", url))
            self.assertEqual(shown["acl"], "user::rw-,user:1234:r--,group::r--,mask::r--,other::---")

    def test_takes_and_gives_them_in_copies(self):
        for options in (["--preserve=mode,acl"], ["-p"], ["-a"]):
            for url, copy in zip(self.urls("f"), self.urls("copy")):
                self.good("cp", *options, url, self.at("down"))
                self.good("cp", *options, self.at("down"), copy)
                for path in (self.at("down"), self.there("copy")):
                    self.assertEqual(os.getxattr(path, "system.posix_acl_access"), self.LIST, (options, url))
                    os.unlink(path)


class WithoutVersion4(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.old = harness.Server(["/memory=memory,no_root_squash"], os.path.join(cls.work, "old"), ["--no-nfs4"])
        cls.addClassCleanup(cls.old.end)

    def test_is_told(self):
        for url in (self.old.tcp("/memory") + "&version=4", self.old.url("/memory") + "&version=4.1"):
            self.bad(1, "version", "ls", url)


if __name__ == "__main__":
    harness.main()
