"""What `stag cp` and `stag sync` do to a file that is there already: what it keeps, and that nothing is lost."""
import json
import os
import pwd
import struct
import subprocess
import unittest

import harness
from harness import Case, stag


class OneFile(Case):
    def test_is_not_copied_onto_itself_where_one_side_is_local(self):
        os.link(self.write(self.there("f"), b"content"), self.there("g"))
        for version in ("2", "3", "4.2"):
            url = self.url("f") + f"&version={version}"
            for options in ([], ["--inplace"], ["-a"]):
                self.bad(1, "is the same file", "cp", *options, self.there("f"), url)
                self.bad(1, "is the same file", "cp", *options, url, self.there("g"))
                self.assertEqual(self.read(self.there("f")), b"content")

    def test_may_look_like_another_one_but_for_the_time_of_its_change(self):
        for below in (self.at, self.there):
            os.utime(self.write(below("f"), below("f").encode()[-3:]), (1000, 1000))
        self.good("cp", "--inplace", self.at("f"), self.url("f"))


class OneFolder(Case):
    """By several exports, the handles and file system numbers of which differ, and by all versions."""

    VERSIONS = ("2", "3", "4.2")

    def setUp(self):
        super().setUp()
        for name in ("live", "back"):
            os.mkdir(self.there(name))
        folders = {"all": self.there(), "live": self.there("live"), "back": self.there("back")}
        server = harness.Server([f"/{name}={folder},no_root_squash" for name, folder in folders.items()], self.at("state"))
        self.addCleanup(lambda: self.assertEqual(server.end(), 0))
        self.place = lambda path, version: f"{server.tcp('/' + path)}&version={version}"

    def refused(self, path, *arguments):
        self.bad(1, "the same file", "cp", *arguments)
        self.assertEqual(self.read(self.there(path)), b"content")

    def test_keeps_what_is_restored_from_a_snapshot_of_hard_links(self):
        os.link(self.write(self.there("live", "f"), b"content"), self.there("back", "f"))
        os.mkdir(self.there("back", "d"))
        os.mkdir(self.there("live", "d"))
        os.link(self.there("live", "f"), self.there("live", "d", "g"))
        os.link(self.there("live", "f"), self.there("back", "d", "g"))
        for ours in self.VERSIONS:
            for theirs in self.VERSIONS:
                self.refused("live/f", self.place("back/f", ours), self.place("live/f", theirs))
                self.refused("live/f", "-r", self.place("back/d", ours), self.place("live", theirs))

    def test_keeps_a_file_of_one_name_that_is_written_in_place(self):
        self.write(self.there("live", "f"), b"content")
        for ours in self.VERSIONS:
            for theirs in self.VERSIONS:
                for source in ("live/f", "all/live/f"):
                    self.refused("live/f", "--inplace", self.place(source, ours), self.place("live/f", theirs))

    def test_is_not_copied_onto_itself(self):
        os.mkdir(self.there("live", "d"))
        for name in ("f", "g"):
            self.write(self.there("live", "d", name), b"content")
        for ours in self.VERSIONS:
            for theirs in self.VERSIONS:
                for source in ("live/d", "all/live/d"):
                    self.bad(1, "the destination is the same directory", "cp", "-r", self.place(source, ours), self.place("live/", theirs))
        self.bad(1, "the destination is the same directory", "cp", "-r", self.there("live", "d"), self.place("live/", "3"))
        self.assertEqual(sorted(os.listdir(self.there("live", "d"))), ["f", "g"])

    def test_gets_what_another_file_has(self):
        os.link(self.write(self.there("live", "f"), b"content"), self.there("back", "f"))
        self.write(self.there("back", "new"), b"another")
        self.good("cp", self.place("back/new", "4.2"), self.place("live/f", "3"))
        self.assertEqual(self.read(self.there("back", "f")), b"another")


@unittest.skipIf(os.geteuid() != 0, "is about what other users may read")
class Unreadable(Case):
    """A source that cannot be read: what it would have overwritten in place stays."""

    SOMEBODY = 1234

    def as_somebody(self):
        os.setgroups([])
        os.setgid(self.SOMEBODY)
        os.setuid(self.SOMEBODY)

    def linked(self, path):
        os.link(self.write(path, b"old content"), path + "-too")
        os.chown(path, self.SOMEBODY, self.SOMEBODY)
        return path

    def test_leaves_what_is_there(self):
        for path in (self.work, self.served, self.local, self.there()):
            os.chmod(path, 0o777)
        for below in (self.at, self.there):
            os.chmod(self.write(below("secret"), b"secret"), 0o600)
            self.linked(below("linked"))
            os.chmod(self.write(below("foreign"), b"old content"), 0o666)
        for options, name in (([], "linked"), ([], "foreign"), (["--inplace"], "foreign")):
            self.bad(1, "ermission denied", "cp", *options, self.at("secret"), self.url(name), preexec_fn=self.as_somebody)
            self.bad(1, "ermission denied", "cp", *options, self.url("secret"), self.at(name), preexec_fn=self.as_somebody)
            for below in (self.at, self.there):
                self.assertEqual(self.read(below(name)), b"old content", (options, below(name)))


class Links(Case):
    """Names in the destination that are of one file, which in the source are of two."""

    def trees(self):
        """The source on both sides, and the folder `old`; new ones with each call."""
        self.setUp()
        for below in (self.there, self.at):
            os.mkdir(below("tree"))
            self.write(below("tree", "a"), b"a" * 3_000_000)
            self.write(below("tree", "b"), b"b" * 5_000_000)
            os.mkdir(below("old"))
            os.link(self.write(below("old", "a"), b"old content"), below("old", "b"))
            os.link(below("old", "a"), below("snapshot"))

    def ways(self):
        """The contents of the source, the destination, and where that is."""
        return ((self.at("tree", "."), self.url("old"), self.there), (self.url("tree", "."), self.at("old"), self.at))

    def expect_copies(self, root):
        for name in ("a", "b"):
            self.assertEqual(self.read(os.path.join(root, name)), self.read(self.at("tree", name)), (root, name))

    def test_are_taken_apart_by_what_copies_links(self):
        for command in (["cp", "-a"], ["cp", "-r", "--preserve=links"], ["sync"]):
            self.trees()
            for source, root, below in self.ways():
                self.good(*command, source, root)
                self.expect_copies(below("old"))
                self.assertEqual(self.read(below("snapshot")), b"old content")
        self.assertEqual(json.loads(self.good("sync", "--json", self.at("tree"), self.url("old")))["skipped"], 2)

    def test_are_no_place_for_two_sources(self):
        for options in ([], ["--inplace"], ["-a", "--inplace"]):
            self.trees()
            for source, root, below in self.ways():
                before = [self.read(self.at("tree", name)) for name in ("a", "b")]
                self.bad(1, "which was copied to before", "cp", "-r", *options, source, root)
                self.assertIn(self.read(below("old", "a")), before)
                self.assertEqual(self.read(below("snapshot")), self.read(below("old", "b")))

    def test_of_one_source_are_written_once(self):
        self.trees()
        os.unlink(self.at("tree", "b"))
        os.link(self.at("tree", "a"), self.at("tree", "b"))
        self.good("cp", "-r", self.at("tree") + "/.", self.url("old"))
        self.expect_copies(self.there("old"))
        self.assertTrue(os.path.samefile(self.there("old", "a"), self.there("snapshot")))


class Extras(Case):
    UNSET = 0xFFFFFFFF
    # user::rw-, user:4321:rw-, group::---, mask::rw-, other::---
    LIST = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", *entry) for entry in ((1, 6, UNSET), (2, 6, 4321), (4, 0, UNSET), (0x10, 6, UNSET), (0x20, 0, UNSET)))

    def marked(self, path, name, value):
        try:
            os.setxattr(path, name, value)
        except OSError as error:
            self.skipTest(f"this file system has no {name}: {error}")

    def test_of_a_file_that_is_overwritten_stay(self):
        access_list = ("system.posix_acl_access", self.LIST)
        for version, mark in (("3", access_list), ("4.0", access_list), ("4.2", access_list), ("4.2", ("user.colour", b"red"))):
            for below in (self.at, self.there):
                self.write(below("new"), b"new content")
                self.marked(self.write(below("old"), b"old"), *mark)
            self.good("cp", self.at("new"), self.url("old") + f"&version={version}")
            self.good("cp", self.url("new") + f"&version={version}", self.at("old"))
            for below in (self.at, self.there):
                self.assertEqual(self.read(below("old")), b"new content")
                self.assertEqual(os.getxattr(below("old"), mark[0]), mark[1], (version, below("old")))
                os.unlink(below("old"))

    def test_go_where_the_mode_is_that_of_the_source(self):
        self.write(self.at("new"), b"new content")
        os.chmod(self.at("new"), 0o640)
        self.marked(self.write(self.there("old"), b"old"), "system.posix_acl_access", self.LIST)
        self.good("cp", "-p", self.at("new"), self.url("old"))
        self.assertEqual((os.listxattr(self.there("old")), os.stat(self.there("old")).st_mode & 0o777), ([], 0o640))

    def test_of_lists_go_where_the_source_has_none_any_more_with_a(self):
        default = self.LIST.replace(struct.pack("<HHI", 1, 6, self.UNSET), struct.pack("<HHI", 1, 7, self.UNSET))
        for options in ([], ["--checksum"], ["--inplace"]):
            for version in ("3", "4.2"):
                self.setUp()
                for below in (self.at, self.there):
                    os.mkdir(below("from"))
                    os.mkdir(below("to"))
                    for name in ("from", "to"):
                        self.write(below(name, "f"), b"content")
                    self.marked(below("to"), "system.posix_acl_access", self.LIST)
                    # A new file would inherit it.
                    if options:
                        self.marked(below("to"), "system.posix_acl_default", default)
                    self.marked(below("to", "f"), "system.posix_acl_access", self.LIST)
                self.good("cp", "-a", *options, self.at("from", "."), self.url("to") + f"&version={version}")
                self.good("cp", "-a", *options, self.url("from", ".") + f"&version={version}", self.at("to"))
                for below in (self.at, self.there):
                    for place in ("to", "to/f"):
                        self.assertEqual(os.listxattr(below(place)), [], (options, version, below(place)))
                    self.assertEqual([os.stat(below(*path)).st_mode & 0o777 for path in (("to",), ("to", "f"))], [0o755, 0o644])

    def test_of_a_folder_that_are_for_new_files_go_alone(self):
        for below in (self.at, self.there):
            os.mkdir(below("from"))
            os.mkdir(below("to"))
            for name in ("from", "to"):
                self.marked(below(name), "system.posix_acl_access", self.LIST)
            self.marked(below("to"), "system.posix_acl_default", self.LIST)
        self.good("cp", "-a", self.at("from") + "/.", self.url("to"))
        self.good("cp", "-a", self.url("from", "."), self.at("to"))
        for below in (self.at, self.there):
            self.assertEqual(os.listxattr(below("to")), ["system.posix_acl_access"])
            self.assertEqual(os.getxattr(below("to"), "system.posix_acl_access"), self.LIST)

    def test_come_to_a_file_of_the_same_content_with_a_and_checksum(self):
        ways = ((self.at("f"), self.at("f"), self.url("f"), self.there("f")), (self.there("g"), self.url("g"), self.at("g"), self.at("g")))
        for origin, source, target, copy in ways:
            for path in (origin, copy):
                self.write(path, b"content")
            self.marked(origin, "system.posix_acl_access", self.LIST)
            self.marked(origin, "user.colour", b"red")
            copied = json.loads(self.good("cp", "-a", "--checksum", "--json", source, target))
            self.assertEqual((copied["files"], copied["adjusted"] + copied["skipped"]), (0, 1))
            self.assertEqual(os.getxattr(copy, "system.posix_acl_access"), self.LIST)
            self.assertEqual(os.getxattr(copy, "user.colour"), b"red")


class Newer(Case):
    def test_files_keep_mode_and_time_with_p_u_and_checksum(self):
        for below in (self.at, self.there):
            for name, content, mode, time in (("new", b"another", 0o600, 2000), ("old", b"content", 0o644, 1000)):
                os.chmod(self.write(below(name), content), mode)
                os.utime(below(name), (time, time))
        self.good("cp", "-p", "-u", "--checksum", self.at("old"), self.url("new"))
        self.good("cp", "-p", "-u", "--checksum", self.url("old"), self.at("new"))
        for below in (self.at, self.there):
            known = os.stat(below("new"))
            self.assertEqual((self.read(below("new")), known.st_mode & 0o777, known.st_mtime), (b"another", 0o600, 2000))


@unittest.skipIf(os.geteuid() != 0, "only root gives files away")
class NamedOwners(Case):
    DAEMON = pwd.getpwnam("daemon")

    def test_are_kept_and_nobody_gets_their_files(self):
        if not any(os.path.exists(os.path.join(folder, "libnfsidmap.so.1")) for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")):
            self.skipTest("libnfsidmap is not installed")
        names = ("--id-map", "names", "--id-domain", "example.net")
        server = harness.Server([f"/named={self.there()},no_root_squash"], self.at("state"), names)
        url = lambda name: server.url(f"/named/{name}") + "&version=4.2"
        owner = (self.DAEMON.pw_uid, self.DAEMON.pw_gid)
        os.chown(self.write(self.there("old"), b"old"), *owner)
        os.chmod(self.there("old"), 0o4755)
        try:
            for option in ("-p", "-a"):
                self.good("cp", option, url("old"), self.at("copy" + option))
                self.good("cp", option, url("old"), url("copy" + option))
                for below in (self.at, self.there):
                    known = os.stat(below("copy" + option))
                    self.assertEqual((known.st_uid, known.st_gid, known.st_mode & 0o7777), (0, 0, 0o755))
            self.good("cp", self.write(self.at("new"), b"new content"), url("old"))
        finally:
            self.assertEqual(server.end(), 0)
        known = os.stat(self.there("old"))
        self.assertEqual((known.st_uid, known.st_gid, self.read(self.there("old"))), (*owner, b"new content"))


class Unread(Case):
    def test_output_ends_a_copy_as_Ctrl_C_does(self):
        os.mkdir(self.at("tree"))
        for number in range(1000):
            self.write(self.at("tree", f"{number:04}" + "-" * 60), b"content")
        for command in (["cp", "-rv"], ["sync", "-v"]):
            ours, theirs = os.pipe()
            os.close(ours)
            result = subprocess.run(
                [harness.STAG, *command, self.at("tree"), self.url(command[0])],
                stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, timeout=harness.PATIENCE)
            os.close(theirs)
            self.assertEqual((result.returncode, result.stderr), (141, f"stag {command[0]}: interrupted\n".encode()))
            copied = os.listdir(self.there(command[0]))
            self.assertEqual([name for name in copied if name.startswith(".stag-")], [])
            self.assertLess(len(copied), 1000)

    def test_output_that_is_short_ends_a_command_so_too(self):
        self.write(self.at("tree"), b"content")
        os.mkdir(self.at("folder"))
        self.write(self.at("folder", "file"))
        for command in (["cp", "-v", self.at("tree"), self.url("copy")], ["sync", "-v", self.at("folder"), self.url("mirror")], ["conform", "nfs4", "--list"]):
            ours, theirs = os.pipe()
            os.close(ours)
            result = subprocess.run([harness.STAG, *command], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, timeout=harness.PATIENCE)
            os.close(theirs)
            self.assertEqual((result.returncode, result.stderr), (141, b""), command)


if __name__ == "__main__":
    harness.main()
