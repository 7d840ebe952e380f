"""`stag cp`: trees both ways, holes, modes and times, mistakes, interruptions and servers that go away."""
import contextlib
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import termios
import time
import unittest

import harness
import rpc_proxy
from exports_test import mounting
from harness import Case, Proxy, Server, stag
from rpc_proxy import RpcProxy

SIZES = (0, 1, 3, 4095, 4096, 4097, 65536, 1024 * 1024 + 1)


def snapshot(folder):
    """Every name with its type and content."""
    found = {}
    for path, directories, files in os.walk(folder):
        for name in directories + files:
            full = os.path.join(path, name)
            key = os.path.relpath(full, folder)
            if os.path.islink(full):
                found[key] = ("link", os.readlink(full))
            elif os.path.isdir(full):
                found[key] = ("directory",)
            else:
                with open(full, "rb") as file:
                    found[key] = ("file", file.read())
    return found


def leftovers(folder):
    return [name for _, directories, files in os.walk(folder) for name in directories + files if name.startswith(".stag-")]


class Trees(Case):
    def make_tree(self, root):
        os.makedirs(os.path.join(root, "a", "b", "c"))
        os.mkdir(os.path.join(root, "empty"))
        for size in SIZES:
            self.write(os.path.join(root, "a", f"size {size}"), os.urandom(size))
        for i in range(100):
            self.write(os.path.join(root, "a", "b", f"small {i}"), b"%d" % i)
        os.symlink("b/small 1", os.path.join(root, "a", "link"))
        os.symlink("/nowhere", os.path.join(root, "dangling"))
        os.symlink("b", os.path.join(root, "a", "link to a directory"))
        return root

    def test_go_in_and_out_over_either_transport(self):
        tree = self.make_tree(self.at("tree"))
        for url in (self.url("t"), self.server.tcp(f"/files/{self.name}/u"), self.server.url(f"/memory/{self.name}")):
            self.good("cp", "-r", tree, url)
            self.good("cp", "-r", url, self.at("back"))
            self.assertEqual(snapshot(self.at("back")), snapshot(tree), url)
            subprocess.run(["rm", "-r", self.at("back")], check=True)
        self.assertEqual(snapshot(self.there("t")), snapshot(tree))
        self.assertEqual(leftovers(self.there()), [])

    def test_go_in_and_out_by_NFS_version_2(self):
        tree = self.make_tree(self.at("tree"))
        roots = (self.url("t"), self.server.tcp(f"/files/{self.name}/u"), self.server.url(f"/memory/{self.name}"))
        for url in (f"{root}&version=2" for root in roots):
            self.good("cp", "-r", tree, url)
            self.good("cp", "-r", url, self.at("back"))
            self.assertEqual(snapshot(self.at("back")), snapshot(tree), url)
            subprocess.run(["rm", "-r", self.at("back")], check=True)
        self.assertEqual(snapshot(self.there("t")), snapshot(tree))

    def test_are_worked_on_by_NFS_version_2(self):
        def url(path):
            return f"{self.url(path)}&version=2"

        self.good("mkdir", url("d"))
        self.good("touch", url("d/f"))
        self.write(self.at("data"), os.urandom(20001))
        self.good("cp", self.at("data"), url("d/f"))
        self.good("mv", url("d/f"), url("d/g"))
        self.good("ln", url("d/g"), url("d/h"))
        self.good("ln", "-s", "g", url("d/l"))
        self.good("chmod", "640", url("d/g"))
        self.assertEqual(self.good("ls", url("d")).split(), ["g", "h", "l"])
        self.assertIn("-rw-r-----", self.good("ls", "-l", url("d")))
        (followed,) = json.loads(self.good("stat", "-L", "--json", url("d/l")))
        self.assertEqual(followed["size"], 20001)
        self.assertEqual(stag("cat", url("d/l"), text=False).stdout, self.read(self.at("data")))
        self.assertEqual(os.stat(self.there("d", "g")).st_nlink, 2)
        self.good("df", url("d"))
        self.good("ping", "-c", "1", url("d"))
        self.good("rm", "-r", url("d"))
        self.assertFalse(os.path.exists(self.there("d")))
        self.bad(1, "no such file", "cat", url("d/g"))

    def test_go_from_server_to_server(self):
        self.assertIn("from server to server", " ".join(self.good("cp", "--help").split()))
        tree = self.make_tree(self.there("tree"))
        self.good("cp", "-r", self.url("tree"), self.server.url(f"/memory/{self.name}"))
        self.good("cp", "-r", self.server.url(f"/memory/{self.name}"), self.url("again"))
        self.assertEqual(snapshot(self.there("again")), snapshot(tree))

    def test_keep_modes_and_times_with_p(self):
        tree = self.make_tree(self.at("tree"))
        os.chmod(self.at("tree", "a", "size 3"), 0o4751)
        os.chmod(self.at("tree", "a", "b"), 0o500)
        os.utime(self.at("tree", "a", "size 3"), (1_000_000_000, 1_100_000_000.5))
        os.utime(self.at("tree", "a", "b"), (1_000_000_001, 1_100_000_001))
        self.good("cp", "-r", "-p", tree, self.url("tree"))
        self.good("cp", "-r", "-p", self.url("tree"), self.at("back"))
        for root in (self.there("tree"), self.at("back")):
            file, folder = os.stat(os.path.join(root, "a", "size 3")), os.stat(os.path.join(root, "a", "b"))
            self.assertEqual((stat.S_IMODE(file.st_mode), file.st_mtime), (0o4751, 1_100_000_000.5))
            self.assertEqual((stat.S_IMODE(folder.st_mode), folder.st_mtime), (0o500, 1_100_000_001))

    def test_take_modes_within_the_umask_without_p(self):
        self.write(self.at("f"))
        os.chmod(self.at("f"), 0o666)
        self.good("cp", self.at("f"), self.url("f"), umask=0o027)
        self.assertEqual(stat.S_IMODE(os.stat(self.there("f")).st_mode), 0o640)
        self.good("cp", self.url("f"), self.at("g"), umask=0o077)
        self.assertEqual(stat.S_IMODE(os.stat(self.at("g")).st_mode), 0o600)

    def test_go_into_existing_directories_and_merge(self):
        tree = self.make_tree(self.at("tree"))
        os.mkdir(self.there("into"))
        self.good("cp", "-r", tree, self.url("into"))
        self.write(self.at("tree", "a", "size 3"), b"new")
        self.write(self.there("into", "tree", "stays"))
        self.good("cp", "-r", tree, self.url("into"))
        self.assertEqual(self.read(self.there("into", "tree", "a", "size 3")), b"new")
        self.assertEqual(set(snapshot(self.there("into", "tree"))), set(snapshot(tree)) | {"stays"})

    def test_of_several_sources_need_a_directory(self):
        first, second = self.write(self.at("1"), b"one"), self.write(self.at("2"), b"two")
        self.good("cp", first, second, self.url())
        self.assertEqual((self.read(self.there("1")), self.read(self.there("2"))), (b"one", b"two"))
        self.bad(2, "is no directory", "cp", first, second, self.url("1"))

    def test_need_r(self):
        os.mkdir(self.at("tree"))
        self.bad(1, "stag cp -r", "cp", self.at("tree"), self.url("tree"))
        self.assertFalse(os.path.exists(self.there("tree")))

    def test_are_not_copied_into_themselves(self):
        os.makedirs(self.there("tree", "sub"))
        self.write(self.there("tree", "f"))
        result = stag("cp", "-r", self.url("tree"), self.url("tree", "sub"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("into itself", result.stderr)

    def test_are_not_copied_into_themselves_by_another_way_to_the_same_folder(self):
        os.makedirs(self.there("tree", "sub"))
        self.write(self.there("tree", "sub", "f"), b"content")
        expected = {"f": ("file", b"content")}
        for number, version in enumerate(("2", "3", "4.2")):
            copy, back, over = (f"{name}{number}" for name in ("copy", "back", "over"))
            url = self.url("tree") + f"&version={version}"
            for command, source, destination in (
                (["cp", "-r"], self.there("tree"), self.url("tree", copy) + f"&version={version}"),
                (["sync"], url, self.there("tree", back)),
                (["cp", "-r"], url, self.server.tcp(f"/files/{self.name}/tree/{over}") + "&version=3"),
            ):
                self.bad(1, "into itself", *command, source, destination)
            for name in (copy, back, over):
                self.assertEqual(snapshot(self.there("tree", name, "sub")), expected, (version, name))
                self.assertFalse(os.path.exists(self.there("tree", name, name)))
            self.assertEqual(leftovers(self.there("tree")), [])
            told = stag("sync", "-n", url, self.there("tree", back))
            self.assertEqual((told.returncode, told.stderr.count("into itself")), (1, 1), told.stderr)
            for name in (copy, back, over):
                shutil.rmtree(self.there("tree", name))

    def test_report_what_moved_how_as_JSON(self):
        self.write(self.at("f"), os.urandom(1 << 20))
        sent = json.loads(self.good("cp", "--json", self.at("f"), self.url("f")))
        self.assertEqual((sent["files"], sent["bytes"]), (1, 1 << 20))
        self.assertEqual(sent["moved"]["read_chunk_bytes"], 1 << 20)
        got = json.loads(self.good("cp", "--json", self.url("f"), self.at("g")))
        self.assertEqual(got["moved"]["write_chunk_bytes"], 1 << 20)
        self.assertIn("Read chunks", self.good("cp", "--stats", self.at("f"), self.url("f")))


class Files(Case):
    def test_with_holes_stay_sparse(self):
        with open(self.at("sparse"), "wb") as file:
            file.seek(30_000_000)
            file.write(b"middle")
            file.truncate(64 << 20)
        self.good("cp", self.at("sparse"), self.url("sparse"))
        self.good("cp", self.url("sparse"), self.at("back"))
        self.good("cp", self.url("sparse"), self.url("twice"))
        for path in (self.there("sparse"), self.at("back"), self.there("twice")):
            self.assertEqual(self.read(path), self.read(self.at("sparse")))
            self.assertLess(os.stat(path).st_blocks * 512, 1 << 20, path)

    def test_replace_files_and_nothing_else(self):
        source = self.write(self.at("f"), b"new")
        self.write(self.there("old"), b"old and longer")
        os.chmod(self.there("old"), 0o604)
        self.good("cp", source, self.url("old"))
        self.assertEqual(self.read(self.there("old")), b"new")
        self.assertEqual(stat.S_IMODE(os.stat(self.there("old")).st_mode), 0o604)
        os.mkfifo(self.there("fifo"))
        self.bad(1, "is no plain file", "cp", source, self.url("fifo"))
        os.symlink("old", self.there("link"))
        self.bad(1, "is no plain file", "cp", source, self.url("link"))
        os.mkfifo(self.at("fifo"))
        self.bad(1, "is no plain file", "cp", self.url("old"), self.at("fifo"))
        self.assertTrue(stat.S_ISFIFO(os.stat(self.at("fifo")).st_mode))
        self.assertEqual(leftovers(self.there()), [])

    def test_with_several_links_are_written_in_place(self):
        content = os.urandom(3_000_001)
        source = self.write(self.at("f"), content)
        for below in (self.there, self.at):
            self.write(below("long"), os.urandom(5_000_000))
            os.link(below("long"), below("link"))
        self.good("cp", source, self.url("long"))
        self.good("cp", self.url("long"), self.at("long"))
        for below in (self.there, self.at):
            self.assertEqual(self.read(below("link")), content)
            self.assertEqual(leftovers(below()), [])
        with open(self.at("sparse"), "wb") as file:
            file.truncate(1 << 20)
        self.good("cp", self.at("sparse"), self.url("long"))
        self.good("cp", self.url("long"), self.at("long"))
        for below in (self.there, self.at):
            self.assertEqual(self.read(below("link")), bytes(1 << 20))

    def test_are_not_copied_onto_themselves(self):
        self.write(self.there("a"), b"content")
        os.link(self.there("a"), self.there("b"))
        for target in (self.url("b"), self.server.tcp(f"/files/{self.name}/b"), self.url("b").replace("127.0.0.1", "127.0.0.01"), self.url("a")):
            self.bad(1, "is the same file", "cp", self.url("a"), target)
        self.assertEqual(self.read(self.there("b")), b"content")

    def test_with_a_zero_byte_in_their_names_or_link_texts_are_refused(self):
        os.mkdir(self.there("tree"))
        os.symlink("over-there", self.there("tree", "link"))
        self.write(self.there("over-there"))
        proxy = RpcProxy(self.server.tcp_port, true=b"over-there", told=b"over\0there")
        self.addCleanup(proxy.close)
        os.mkdir(self.at("into"))
        self.bad(1, "/tree/link: its text holds a zero byte", "cp", "-r", proxy.url(f"/files/{self.name}/tree"), self.at("tree"))
        self.assertEqual(os.listdir(self.at("tree")), [])
        self.bad(2, "a name cannot hold a zero byte", "cp", proxy.url(f"/files/{self.name}/over%00there"), self.at("into"))
        self.bad(1, "the server sent a name that cannot be one", "cp", "-r", proxy.url(f"/files/{self.name}"), self.at("into"))

    def test_that_are_devices_or_pipes_are_left_out_and_told(self):
        os.mkdir(self.at("tree"))
        os.mkfifo(self.at("tree", "pipe"))
        self.write(self.at("tree", "file"), b"x")
        self.bad(1, "pipe: it is a device, socket or FIFO", "cp", "-r", self.at("tree"), self.url("tree"))
        self.assertEqual(os.listdir(self.there("tree")), ["file"])

    def test_that_are_missing_or_have_no_place(self):
        self.write(self.there("f"))
        self.bad(1, "there is no such file or directory", "cp", self.at("missing"), self.url())
        self.bad(1, "there is no such file or directory", "cp", self.url("missing"), self.at())
        self.bad(1, "the directory it would be in does not exist", "cp", self.url("f"), self.at("x", "y"))
        self.bad(1, "there is no such directory", "cp", self.url("f"), self.at("x/"))
        self.bad(1, "there is no such directory", "cp", self.write(self.at("g")), self.url("x/"))
        self.bad(2, "is a URL", "cp", "a", "b")

    def test_behind_links_are_copied_without_r(self):
        self.write(self.at("f"), b"content")
        os.symlink("f", self.at("link"))
        self.good("cp", self.at("link"), self.url("there"))
        os.symlink("there", self.there("link"))
        self.good("cp", self.url("link"), self.at("back"))
        for path in (self.there("there"), self.at("back")):
            self.assertFalse(os.path.islink(path))
            self.assertEqual(self.read(path), b"content")
        self.good("cp", "-r", self.url("link"), self.at("kept"))
        self.assertEqual(os.readlink(self.at("kept")), "there")

    def test_named_by_dots_go_where_they_are_told(self):
        self.write(self.there("f"), b"content")
        self.good("cp", self.url("f"), ".", cwd=self.at())
        self.assertEqual(self.read(self.at("f")), b"content")
        os.mkdir(self.at("all"))
        self.good("cp", "-r", self.url("."), self.at("all"))
        self.assertEqual(os.listdir(self.at("all")), ["f"])


@unittest.skipIf(os.geteuid() != 0, "only root gives files away")
class Owners(Case):
    """Who owns a copy, and the setuid, setgid and sticky bits, which mean something else with another owner."""

    SOMEBODY, OTHER = 12345, 54321

    def owned(self, path, mode, uid=SOMEBODY):
        if not os.path.isdir(path):
            self.write(path, b"content")
        os.chown(path, uid, uid)
        os.chmod(path, mode)
        return path

    def standing(self, path):
        known = os.lstat(path)
        return known.st_uid, known.st_gid, stat.S_IMODE(known.st_mode)

    def as_other(self):
        os.setgroups([])
        os.setgid(self.OTHER)
        os.setuid(self.OTHER)

    def open_to_all(self):
        for path in (self.work, self.served, self.local, self.there()):
            os.chmod(path, 0o777)

    def test_are_kept_with_p_together_with_their_special_bits(self):
        os.mkdir(self.at("tree"))
        self.owned(self.at("tree", "file"), 0o4755)
        os.mkdir(self.at("tree", "folder"))
        self.owned(self.at("tree", "folder"), 0o3775)
        self.good("cp", "-r", "-p", self.at("tree"), self.url("tree"))
        self.good("cp", "-r", "-p", self.url("tree"), self.at("back"))
        for root in (self.there("tree"), self.at("back")):
            self.assertEqual(self.standing(os.path.join(root, "file")), (self.SOMEBODY, self.SOMEBODY, 0o4755))
            self.assertEqual(self.standing(os.path.join(root, "folder")), (self.SOMEBODY, self.SOMEBODY, 0o3775))

    def test_that_the_server_refuses_take_the_special_bits_with_them(self):
        os.mkdir(self.at("tree"))
        self.owned(self.at("tree", "file"), 0o6755)
        os.mkdir(self.at("tree", "folder"))
        self.owned(self.at("tree", "folder"), 0o3775)
        os.chmod(self.there(), 0o777)
        squashed = Server([f"/files={self.there()}"], self.at("state"))
        self.good("cp", "-r", "-p", self.at("tree"), squashed.url("/files/tree"))
        self.assertEqual(squashed.end(), 0)
        self.assertEqual(self.standing(self.there("tree", "file")), (65534, 65534, 0o755))
        self.assertEqual(self.standing(self.there("tree", "folder")), (65534, 65534, 0o775))

    def test_that_this_machine_refuses_take_the_special_bits_with_them(self):
        self.open_to_all()
        os.mkdir(self.there("tree"))
        self.owned(self.there("tree", "file"), 0o6755)
        os.mkdir(self.there("tree", "folder"))
        self.owned(self.there("tree", "folder"), 0o3775)
        self.good("cp", "-r", "-p", self.url("tree"), self.at("tree"), preexec_fn=self.as_other)
        self.assertEqual(self.standing(self.at("tree", "file")), (self.OTHER, self.OTHER, 0o755))
        self.assertEqual(self.standing(self.at("tree", "folder")), (self.OTHER, self.OTHER, 0o775))

    def test_come_before_the_special_bits(self):
        os.mkdir(self.at("tree"))
        self.owned(self.at("tree", "file"), 0o4755)
        os.mkdir(self.at("tree", "folder"))
        self.owned(self.at("tree", "folder"), 0o2775)
        proxy = RpcProxy(self.server.tcp_port)
        self.addCleanup(proxy.close)
        self.good("cp", "-r", "-p", self.at("tree"), proxy.url(f"/files/{self.name}/tree"))
        changes = [call.attributes for call in proxy.calls if call.attributes]
        self.assertEqual(sum(each.get("uid") == self.SOMEBODY for each in changes), 2)
        self.assertEqual(sum(each.get("mode", 0) & 0o7000 != 0 for each in changes), 2)
        given = 0
        for each in changes:
            given += "uid" in each
            # Both take their owner before either has its mode, or each its own: never a mode without an owner.
            given -= each.get("mode", 0) & 0o7000 != 0
            self.assertGreaterEqual(given, 0, changes)
            self.assertFalse("uid" in each and "mode" in each, "a server may set the mode first")

    def test_that_nobody_can_be_take_the_special_bits_with_them(self):
        # To chown(2) the largest number says "leave it", and it would succeed.
        self.owned(self.there("f"), 0o4755)
        number = self.SOMEBODY.to_bytes(4, "big")
        proxy = RpcProxy(self.server.tcp_port, true=2 * number, told=8 * b"\xff")
        self.addCleanup(proxy.close)
        self.good("cp", "-p", proxy.url(f"/files/{self.name}/f"), self.at("f"))
        self.good("cp", "-p", proxy.url(f"/files/{self.name}/f"), self.url("g"))
        for path in (self.at("f"), self.there("g")):
            self.assertEqual(self.standing(path), (0, 0, 0o755))

    def test_have_no_special_bits_without_p(self):
        for make, back in ((self.at, self.there), (self.there, self.at)):
            os.mkdir(make("tree"))
            self.owned(make("tree", "file"), 0o6755, 0)
            os.mkdir(make("tree", "folder"))
            self.owned(make("tree", "folder"), 0o7777, 0)
            source, target = (make("tree"), self.url("copy")) if make == self.at else (self.url("tree"), self.at("copy"))
            self.good("cp", "-r", source, target, umask=0o022)
            self.assertEqual(self.standing(back("copy", "file")), (0, 0, 0o755))
            self.assertEqual(self.standing(back("copy", "folder")), (0, 0, 0o755))

    def test_of_directories_on_the_way_are_inherited_without_p(self):
        os.makedirs(self.at("tree", "a"))
        for below in (self.there, self.at):
            os.mkdir(below("shared"))
            self.owned(below("shared"), 0o2775)
        self.good("cp", "-r", self.at("tree"), self.url("shared"), umask=0o022)
        self.good("cp", "-r", self.url("shared", "tree"), self.at("shared"), umask=0o022)
        for below in (self.there, self.at):
            self.assertEqual(self.standing(below("shared", "tree", "a")), (0, self.SOMEBODY, 0o2755))

    def test_of_what_is_overwritten_stay(self):
        source = self.write(self.at("new"), b"new")
        self.owned(self.there("old"), 0o4604)
        os.link(self.owned(self.there("first"), 0o640), self.there("second"))
        self.good("cp", source, self.url("old"))
        self.good("cp", source, self.url("first"))
        self.owned(self.at("old"), 0o4604)
        os.link(self.owned(self.at("first"), 0o640), self.at("second"))
        self.good("cp", self.url("old"), self.at("old"))
        self.good("cp", self.url("old"), self.at("first"))
        for below in (self.there, self.at):
            self.assertEqual((self.read(below("old")), self.read(below("second"))), (b"new", b"new"))
            self.assertEqual(self.standing(below("old")), (self.SOMEBODY, self.SOMEBODY, 0o4604))
            self.assertEqual(self.standing(below("first")), (self.SOMEBODY, self.SOMEBODY, 0o640))
            self.assertTrue(os.path.samefile(below("first"), below("second")))
            self.assertEqual(leftovers(below()), [])

    def test_of_what_is_overwritten_stay_where_they_cannot_be_given(self):
        self.open_to_all()
        self.write(self.at("new"), b"new")
        self.owned(self.there("old"), 0o4666)
        os.chmod(self.at("new"), 0o644)
        self.good("cp", self.at("new"), self.url("old"), preexec_fn=self.as_other)
        self.assertEqual(self.read(self.there("old")), b"new")
        self.assertEqual(self.standing(self.there("old")), (self.SOMEBODY, self.SOMEBODY, 0o666))
        self.owned(self.at("old"), 0o4666)
        self.good("cp", self.url("old"), self.at("old"), preexec_fn=self.as_other)
        self.assertEqual(self.standing(self.at("old")), (self.SOMEBODY, self.SOMEBODY, 0o666))
        self.assertEqual(leftovers(self.there()) + leftovers(self.at()), [])

    def test_of_files_in_a_directory_that_is_closed_stay(self):
        self.open_to_all()
        self.write(self.at("new"), b"new")
        os.chmod(self.at("new"), 0o644)
        os.mkdir(self.there("closed"), 0o755)
        self.owned(self.there("closed", "old"), 0o600, self.OTHER)
        self.good("cp", self.at("new"), self.url("closed", "old"), preexec_fn=self.as_other)
        self.assertEqual(self.read(self.there("closed", "old")), b"new")
        self.assertEqual(self.standing(self.there("closed", "old")), (self.OTHER, self.OTHER, 0o600))


class Progress(Case):
    def resize(self, terminal, columns):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def lines_until(self, terminal, wanted):
        """What is drawn up to a line that satisfies `wanted`."""
        shown, lines = b"", []
        while not any(map(wanted, lines)):
            shown += os.read(terminal, 1000)
            # The last one may be unfinished, and nothing is before the first.
            lines = [line.decode().lstrip("\r") for line in shown.split(b"\x1b[K")[:-1]]
        return lines

    def held_back_copy(self, columns):
        """A copy whose data stops after a third: the terminal, the proxy that holds it, and the process."""
        self.write(self.there("f"), os.urandom(30 << 20))
        proxy = Proxy(self.server.rdma_port, "down", 10 << 20)
        self.addCleanup(proxy.cut)
        terminal, theirs = harness.open_terminal(self)
        self.resize(terminal, columns)
        copy = subprocess.Popen([harness.STAG, "cp", self.url("f", port=proxy.port), self.at("f")], stderr=theirs)
        os.close(theirs)
        return terminal, proxy, copy

    def go_on(self, terminal, proxy, copy):
        proxy.released.set()
        with contextlib.suppress(OSError):
            while os.read(terminal, 1000):
                pass
        self.assertEqual(copy.wait(harness.PATIENCE), 0)
        os.close(terminal)

    def test_stays_within_the_window_also_of_another_size(self):
        terminal, proxy, copy = self.held_back_copy(80)
        # The traffic is held back; an outlook comes after a second.
        for line in self.lines_until(terminal, lambda line: line.endswith(" left")):
            self.assertLess(len(line), 80)
        self.resize(terminal, 24)
        self.lines_until(terminal, lambda line: re.match(r"^ *\d+%  [0-9:]{8} left$", line))
        self.go_on(terminal, proxy, copy)

    def test_of_a_server_that_stands_still_says_that_it_is_waited_for(self):
        terminal, proxy, copy = self.held_back_copy(120)
        self.lines_until(terminal, lambda line: line.endswith("  waiting for the server"))
        self.go_on(terminal, proxy, copy)

    def test_of_standard_input_speaks_of_no_total(self):
        terminal, theirs = harness.open_terminal(self)
        copy = subprocess.Popen([harness.STAG, "cp", "-", self.url("f")], stdin=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        copy.stdin.write(bytes(3 << 20))
        copy.stdin.flush()
        line = self.lines_until(terminal, lambda line: "MiB" in line)[-1]
        self.assertRegex(line, r"^[\d.]+ MiB  [\d.]+ [KM]iB/s  0 files$")
        copy.stdin.close()
        with contextlib.suppress(OSError):
            while os.read(terminal, 1000):
                pass
        self.assertEqual(copy.wait(harness.PATIENCE), 0)
        os.close(terminal)

    def test_is_shown_on_a_terminal_only(self):
        terminal, proxy, copy = self.held_back_copy(120)
        shown = b""
        # The traffic is held back: the line says so until it is let go.
        while not re.search(rb"\[#+\.+\] +\d+%  [\d.]+ MiB of 30.0 MiB  [\d.]+ [KM]iB/s", shown):
            shown += os.read(terminal, 1000)
        proxy.released.set()
        with contextlib.suppress(OSError):
            while part := os.read(terminal, 1000):
                shown += part
        self.assertEqual(copy.wait(harness.PATIENCE), 0)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-100:])
        os.close(terminal)


class Trouble(Case):
    """No half-written file has a final name, and no temporary one stays."""

    def limited(self):
        # What a full disk does, at a known place: writes beyond 1 MiB fail.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    def test_on_the_local_disk(self):
        self.write(self.there("f"), os.urandom(5 << 20))
        self.bad(1, f"'{self.at('f')}': File too large", "cp", self.url("f"), self.at("f"), preexec_fn=self.limited)
        self.assertEqual(os.listdir(self.at()), [])

    def test_in_place_says_that_the_file_is_incomplete(self):
        self.write(self.there("f"), os.urandom(5 << 20))
        os.link(self.write(self.at("f"), b"old"), self.at("g"))
        errors = stag("cp", self.url("f"), self.at("f"), preexec_fn=self.limited).stderr
        self.assertIn(f"stag cp: {self.at('f')}: it was written in place and is incomplete now; copy it again\n", errors)
        self.assertIn("File too large", errors)
        self.assertEqual(sorted(os.listdir(self.at())), ["f", "g"])

    def test_on_the_servers_disk(self):
        server = Server([f"/files={self.there()},no_root_squash"], self.at("state"), preexec_fn=self.limited)
        source = self.write(self.at("f"), os.urandom(5 << 20))
        self.bad(1, "larger than the server allows", "cp", source, server.url("/files/f"))
        self.assertEqual(os.listdir(self.there()), [])
        self.assertEqual(server.end(), 0)

    def test_with_a_read_only_export(self):
        server = Server([f"/files={self.there()},ro"], self.at("state"))
        sentence = f"cannot create 'nfs://127.0.0.1:{server.rdma_port}/files/f': the export is read-only; have it exported with rw"
        self.bad(1, sentence, "cp", self.write(self.at("f")), server.url("/files/f"))
        os.symlink("f", self.at("link"))
        self.bad(1, f"'nfs://127.0.0.1:{server.rdma_port}/files/l'", "cp", "-r", self.at("link"), server.url("/files/l"))
        # One tells the reason, and all are counted or named.
        tree = [self.write(self.at(f"{number}.txt")) for number in range(5)]
        result = stag("cp", "-j3", *tree, server.url("/files"))
        told = re.fullmatch(r"stag cp: [^\n]*read-only[^\n]*\nstag cp: (?:(\d) more could not be copied)?(?:, and )?(?:(\d) of the sources were not tried)?\n",
                            result.stderr)
        self.assertTrue(told, result.stderr)
        self.assertEqual(1 + int(told[1] or 0) + int(told[2] or 0), 5, result.stderr)
        result = stag("sync", "-j1", self.at(), server.url("/files"))
        self.assertIn("what else is in the source was not tried\n", result.stderr)
        self.assertEqual(server.end(), 0)

    @unittest.skipIf(os.geteuid() != 0, "is about root")
    def test_with_an_export_that_treats_root_as_nobody(self):
        os.chmod(self.there(), 0o755)
        server = Server([f"/files={self.there()}"], self.at("state"))
        denied = self.bad(1, "serve with no_root_squash", "cp", self.write(self.at("f")), server.url("/files/f"))
        self.assertIn("permission denied", denied.stderr)
        self.bad(1, "serve with no_root_squash", "mkdir", server.url("/files/d"))
        self.assertEqual(server.end(), 0)

    def start(self, direction, limit, *paths, timeout="10"):
        """A copy whose traffic is held back after `limit` bytes; URLs in `paths` hold '{}' for the port."""
        proxy = Proxy(self.server.rdma_port, direction, limit)
        self.addCleanup(proxy.cut)
        through = [path.format(proxy.port) for path in paths]
        copy = subprocess.Popen([harness.STAG, "cp", "--timeout", timeout, *through], stderr=subprocess.PIPE, text=True)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        return proxy, copy

    def ended(self, copy, code=1):
        errors = copy.communicate(timeout=harness.PATIENCE)[1]
        self.assertEqual(copy.returncode, code, errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        return errors

    def through(self, *parts):
        return self.url(*parts, port="{}")

    def test_interrupted_on_the_way_out(self):
        self.write(self.there("f"), os.urandom(30 << 20))
        proxy, copy = self.start("down", 10 << 20, self.through("f"), self.at("f"))
        copy.send_signal(signal.SIGINT)
        self.assertEqual(self.ended(copy, 130), "stag cp: interrupted\n")
        self.assertEqual(os.listdir(self.at()), [])

    def test_interrupted_on_the_way_in(self):
        self.write(self.at("f"), os.urandom(30 << 20))
        proxy, copy = self.start("up", 10 << 20, self.at("f"), self.through("f"))
        self.assertEqual(len(leftovers(self.there())), 1)
        # As timeout(1) and terminals do it.
        copy.send_signal(signal.SIGINT)
        copy.send_signal(signal.SIGTERM)
        proxy.released.set()
        self.assertEqual(self.ended(copy, 130), "stag cp: interrupted\n")
        self.assertEqual(os.listdir(self.there()), [])

    def test_interrupted_until_it_ends_says_what_is_left(self):
        self.write(self.at("f"), os.urandom(30 << 20))
        proxy, copy = self.start("up", 10 << 20, self.at("f"), self.through("f"))
        while copy.poll() is None:
            copy.send_signal(signal.SIGINT)
            time.sleep(0.05)
        self.assertIn("files called .stag-* may be left", self.ended(copy, 130))
        self.assertEqual(len(leftovers(self.there())), 1)

    def interrupted_during(self, procedure, *sources, number=signal.SIGTERM):
        """Interrupts a copy while the server's answer to `procedure` is on its way, and yields what it prints."""
        proxy = RpcProxy(self.server.tcp_port, held=procedure)
        self.addCleanup(proxy.close)
        copy = subprocess.Popen([harness.STAG, "cp", "-r", *sources, proxy.url(f"/files/{self.name}/")], stderr=subprocess.PIPE, text=True)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        copy.send_signal(number)
        # A signal that is not pending any more has been taken by the process.
        while copy.poll() is None and not re.search(r"ShdPnd:\t0+\n", self.read(f"/proc/{copy.pid}/status").decode()):
            pass
        proxy.released.set()
        return self.ended(copy, 128 + number)

    def test_interrupted_while_the_server_makes_a_file(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            for content in (b"", b"content"):
                errors = self.interrupted_during(rpc_proxy.CREATE, self.write(self.at("f"), content), number=number)
                self.assertEqual(errors, "stag cp: interrupted\n")
                self.assertEqual(os.listdir(self.there()), [])

    def test_interrupted_while_the_server_makes_a_symbolic_link(self):
        os.symlink("anywhere", self.at("link"))
        self.interrupted_during(rpc_proxy.SYMLINK, self.at("link"))
        self.assertEqual(leftovers(self.there()), [])

    def test_interrupted_while_the_server_renames_has_the_file_or_not(self):
        self.interrupted_during(rpc_proxy.RENAME, self.write(self.at("f"), b"content"))
        self.assertEqual(self.read(self.there("f")), b"content")
        self.assertEqual(leftovers(self.there()), [])

    def test_interrupted_while_the_server_makes_a_directory_leaves_none_half_made(self):
        os.mkdir(self.at("tree"), 0o555)
        os.chmod(self.at("tree"), 0o555)
        self.interrupted_during(rpc_proxy.MKDIR, self.at("tree"))
        self.assertEqual(stat.S_IMODE(os.stat(self.there("tree")).st_mode), 0o555)

    def test_interrupted_with_a_gives_directories_all_that_they_are_to_have(self):
        os.makedirs(self.there("tree", "sub"))
        self.write(self.there("tree", "sub", "f"), os.urandom(30 << 20))
        for path in (("tree", "sub"), ("tree",)):
            os.chmod(self.there(*path), 0o750)
            os.utime(self.there(*path), (1000, 1000))
        for version in ("3", "4.2"):
            copied = self.at(f"tree{version}")
            proxy, copy = self.start("down", 10 << 20, "-a", self.through("tree") + f"&version={version}", copied)
            self.assertEqual(stat.S_IMODE(os.stat(copied).st_mode), 0o700)
            copy.send_signal(signal.SIGINT)
            proxy.released.set()
            self.assertEqual(self.ended(copy, 130), "stag cp: interrupted\n")
            for path in (copied, os.path.join(copied, "sub")):
                known = os.stat(path)
                self.assertEqual((stat.S_IMODE(known.st_mode), known.st_mtime), (0o750, 1000), (version, path))

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_on_a_full_server_with_a_gives_directories_all_that_they_are_to_have(self):
        os.makedirs(self.at("tree", "sub"))
        self.write(self.at("tree", "sub", "f"), os.urandom(3 << 20))
        for path in (("tree", "sub"), ("tree",)):
            os.chmod(self.at(*path), 0o750)
        mount_it = mounting(b"none", self.there(), b"tmpfs", 0, b"size=1m")
        server = Server([f"/files={self.there()},no_root_squash"], self.at("state"), preexec_fn=mount_it)
        for version in ("3", "4.2"):
            url = f"{server.url('/files/tree' + version)}&version={version}"
            self.bad(1, "no space left on the server", "cp", "-a", self.at("tree"), url)
            for place in (url, url.replace("?", "/sub?")):
                (known,) = json.loads(self.good("stat", "--json", place))
                self.assertEqual(known["mode"] & 0o777, 0o750, place)
        self.assertEqual(server.end(), 0)

    def test_interrupted_with_directories_that_are_not_complete_gives_them_their_modes(self):
        os.mkdir(self.there("tree"))
        self.write(self.there("tree", "f"), os.urandom(30 << 20))
        os.chmod(self.there("tree"), 0o555)
        proxy, copy = self.start("down", 10 << 20, "-r", self.through("tree"), self.at("tree"))
        self.assertEqual(stat.S_IMODE(os.stat(self.at("tree")).st_mode), 0o755)
        copy.send_signal(signal.SIGINT)
        self.assertEqual(self.ended(copy, 130), "stag cp: interrupted\n")
        self.assertEqual(os.listdir(self.at("tree")), [])
        self.assertEqual(stat.S_IMODE(os.stat(self.at("tree")).st_mode), 0o555)

    def test_a_server_that_goes_away_in_the_middle_may_keep_a_file_and_that_is_said(self):
        self.write(self.at("f"), os.urandom(30 << 20))
        proxy, copy = self.start("up", 10 << 20, self.at("f"), self.through("f"), timeout="2")
        proxy.cut()
        errors = copy.communicate(timeout=harness.PATIENCE)[1]
        self.assertEqual(copy.returncode, 1)
        (left,) = leftovers(self.there())
        self.assertRegex(errors, rf"stag cp: '.*/{left}' may be left; remove it\n")

    def test_a_server_that_goes_away(self):
        self.write(self.there("f"), os.urandom(30 << 20))
        proxy, copy = self.start("down", 10 << 20, self.through("f"), self.at("f"), timeout="2")
        proxy.cut()
        self.assertRegex(self.ended(copy), r"stag cp: .*/f: cannot read the file: .*\n")
        self.assertEqual(os.listdir(self.at()), [])

    def test_a_connection_that_comes_again(self):
        content = os.urandom(30 << 20)
        self.write(self.there("f"), content)
        proxy, copy = self.start("down", 10 << 20, self.through("f"), self.at("f"))
        for each in list(proxy.sockets):
            # One of a pair may have ended with the other.
            with contextlib.suppress(OSError):
                each.shutdown(2)
        proxy.left = 1 << 40
        proxy.released.set()
        self.assertEqual((copy.communicate(timeout=harness.PATIENCE)[1], copy.returncode), ("", 0))
        self.assertEqual(self.read(self.at("f")), content)


if __name__ == "__main__":
    harness.main()
