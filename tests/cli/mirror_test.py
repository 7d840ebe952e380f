"""`stag sync` and `stag cp` of trees: what is not removed, what can be changed again, names of one file in several folders, and names in messages."""
import json
import os
import re
import stat
import subprocess
import unittest

import harness
from exports_test import mounting
from harness import Case, Proxy, stag


OTHER = 12345


def as_other():
    os.setgroups([])
    os.setgid(OTHER)
    os.setuid(OTHER)


class Mirrors(Case):

    def in_the_destination(self, source, *options):
        for name in ("f", "secret"):
            self.write(self.there("p", "deep", "sub", name), name.encode())
        self.write(self.there("p", "old"))
        self.bad(1, "the source is in the destination here, and stays", "sync", "--delete", *options, source, self.url("p"))
        self.assertEqual(sorted(os.listdir(self.there("p", "deep", "sub"))), ["f", "secret"])

    def test_do_not_remove_their_source(self):
        os.makedirs(self.there("p", "deep", "sub"))
        for source in (self.url("p", "deep", "sub"), self.there("p", "deep", "sub")):
            self.in_the_destination(source, "--dry-run")
            self.assertTrue(os.path.exists(self.there("p", "old")))
            self.in_the_destination(source)
            self.assertEqual(sorted(os.listdir(self.there("p"))), ["deep", "f", "secret"])

    def test_of_a_folder_around_their_source_leave_it_as_it_is(self):
        """What has the source's name in the source would be copied to it."""
        for command in (["cp", "-r"], ["sync"], ["sync", "--delete"]):
            top = self.there("-".join(command))
            os.makedirs(os.path.join(top, "b", "b"))
            for name in ("file1", "file2"):
                self.write(os.path.join(top, "b", name), name.encode())
            for name in ("file1", "x"):
                self.write(os.path.join(top, "b", "b", name), b"of the innermost")
            for source in (self.url("-".join(command), "b"), os.path.join(top, "b")):
                if command[0] == "cp":
                    source = source.replace("/b?", "/b/.?") if "://" in source else source + "/."
                self.bad(1, "the source is in the destination here, and stays", *command, source, self.url("-".join(command)))
                kept = {name: self.read(os.path.join(top, "b", name)) for name in os.listdir(os.path.join(top, "b")) if name != "b"}
                self.assertEqual(kept, {"file1": b"file1", "file2": b"file2"}, (command, source))
                self.assertEqual(sorted(os.listdir(top)), ["b", "file1", "file2"])

    def test_replace_no_file_that_is_named_as_the_destination(self):
        """A slip in its name would cost that file; what is below a mirror is what --delete is about."""
        os.mkdir(self.at("tree"))
        self.write(self.at("tree", "f"), b"new")
        self.write(self.there("kept"), b"kept")
        os.symlink("kept", self.there("link"))
        os.symlink("nothing", self.there("dangling"))
        for name in ("kept", "link", "dangling"):
            for options in ([], ["--delete"], ["--delete", "--dry-run"]):
                self.bad(1, "it is no directory", "sync", *options, self.at("tree"), self.url(name))
        self.assertEqual((self.read(self.there("kept")), sorted(os.listdir(self.there()))), (b"kept", ["dangling", "kept", "link"]))
        self.bad(1, "it is no directory", "sync", "--delete", self.url(), self.write(self.at("here"), b"kept"))
        self.assertEqual(self.read(self.at("here")), b"kept")
        self.write(self.there("f"), b"a file")
        os.makedirs(self.at("above", "f"))
        self.good("sync", "--delete", self.at("above"), self.url())
        self.assertEqual(os.listdir(self.there()), ["f"])
        self.assertTrue(os.path.isdir(self.there("f")), "below it is replaced")

    def test_remove_no_more_than_they_may(self):
        os.mkdir(self.at("empty"))
        for version in ("3", "4.2"):
            for name in ("a", "b", "folder/c", "folder/d"):
                os.makedirs(self.there("big", "folder"), exist_ok=True)
                self.write(self.there("big", *name.split("/")))
            target = self.url("big") + f"&version={version}"
            for options in (["-n"], []):
                done = stag("sync", "--delete", "-v", "--max-delete", "3", *options, self.at("empty"), target)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stdout.count("removed"), 3)
                self.assertRegex(done.stderr, "^stag sync: nfs:[^\n]*/big[^\n]*: 3 were removed, and no more are by --max-delete: [12] stay, with what is in them\n$")
            left = sum(len(folders) + len(files) for _, folders, files in os.walk(self.there("big")))
            self.assertEqual(left, 2)
            self.good("sync", "--delete", "--max-delete", "2", self.at("empty"), target)
            self.assertEqual(os.listdir(self.there("big")), [])

    def test_leave_out_what_a_file_says(self):
        os.mkdir(self.at("tree"))
        for name in ("kept", "made.o", "other.tmp"):
            self.write(self.at("tree", name))
        self.write(self.at("patterns"), b"# what is made\n*.o\n\n- *.tmp\n")
        self.good("sync", "--exclude-from", self.at("patterns"), self.at("tree"), self.url("tree"))
        self.assertEqual(os.listdir(self.there("tree")), ["kept"])
        self.bad(1, "cannot read", "sync", "--exclude-from", self.at("none"), self.at("tree"), self.url("tree"))
        self.write(self.at("patterns"), b"+ *.o\n")
        self.bad(2, "'+ *.o'", "sync", "--exclude-from", self.at("patterns"), self.at("tree"), self.url("tree"))

    def test_keep_what_two_stars_match(self):
        """As rsync(1) does, for which such patterns are made."""
        os.mkdir(self.at("tree"))
        for folder in ("uploads", "other"):
            os.makedirs(self.there("tree", "a", "b", folder))
            self.write(self.there("tree", "a", "b", folder, "user.dat"))
        self.write(self.at("patterns"), b"- **/uploads/\n")
        self.good("sync", "--delete", "--exclude-from", self.at("patterns"), self.at("tree"), self.url("tree"))
        self.assertEqual(os.listdir(self.there("tree", "a", "b")), ["uploads"])
        self.assertEqual(os.listdir(self.there("tree", "a", "b", "uploads")), ["user.dat"])

    def test_leave_alone_what_is_moved_away_meanwhile(self):
        """The server finds it by its handle wherever it is."""
        os.mkdir(self.at("empty"))
        for name in "abcdef":
            os.makedirs(self.there("top", name, "deep"))
            self.write(self.there("top", name, "deep", "precious"))
        first, *_, last = os.listdir(self.there("top"))
        for i in range(500):
            self.write(self.there("top", first, f"file{i}"))
        proxy = Proxy(self.server.rdma_port, "up", 40_000)
        self.addCleanup(proxy.cut)
        sync = subprocess.Popen([harness.STAG, "sync", "--delete", self.at("empty"), self.url("top", port=proxy.port)], stderr=subprocess.PIPE, text=True)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        self.assertEqual(os.listdir(self.there("top", last, "deep")), ["precious"])
        os.rename(self.there("top", last), self.there("safe"))
        proxy.released.set()
        errors = sync.communicate(timeout=harness.PATIENCE)[1]
        self.assertEqual((sync.returncode, errors), (0, ""))
        self.assertEqual(os.listdir(self.there("safe", "deep")), ["precious"])
        self.assertEqual(os.listdir(self.there("top")), [])

    def test_change_folders_in_which_their_owner_may_change_nothing(self):
        for path in (self.work, self.served, self.local, self.there()):
            os.chmod(path, 0o777)
        for step in ("first", "second"):
            for folder in ("ro", "gone") if step == "first" else ("ro",):
                os.makedirs(self.at("tree", folder), exist_ok=True)
                self.write(self.at("tree", folder, step))
                os.chmod(self.at("tree", folder), 0o555)
            self.good("sync", "--delete", self.at("tree"), self.url("mirror"), preexec_fn=as_other)
            self.assertEqual(os.stat(self.there("mirror", "ro")).st_mode & 0o777, 0o555)
            if step == "first":
                os.remove(self.at("tree", "gone", "first"))
                os.rmdir(self.at("tree", "gone"))
                os.remove(self.at("tree", "ro", "first"))
        self.assertEqual((os.listdir(self.there("mirror")), os.listdir(self.there("mirror", "ro"))), (["ro"], ["second"]))


    def test_leave_the_mode_of_a_folder_in_which_something_stays(self):
        """As what is excluded does, and what another one owns."""
        for path in (self.work, self.served, self.local, self.there()):
            os.chmod(path, 0o777)
        os.mkdir(self.at("tree"))
        os.makedirs(self.there("mirror", "ro", "below"))
        for path in (("mirror",), ("mirror", "ro")):
            os.chown(self.there(*path), OTHER, OTHER)
        self.write(self.there("mirror", "ro", "below", "f"))
        os.chmod(self.there("mirror", "ro"), 0o555)
        self.bad(1, "ermission denied", "sync", "--delete", self.at("tree"), self.url("mirror"), preexec_fn=as_other)
        self.assertEqual(os.stat(self.there("mirror", "ro")).st_mode & 0o777, 0o555)
        os.chown(self.there("mirror", "ro", "below"), OTHER, OTHER)
        self.good("sync", "--delete", "--exclude", "f", self.at("tree"), self.url("mirror"), preexec_fn=as_other)
        self.assertEqual(os.stat(self.there("mirror", "ro")).st_mode & 0o777, 0o555)
        self.good("sync", "--delete", self.at("tree"), self.url("mirror"), preexec_fn=as_other)
        self.assertEqual(os.listdir(self.there("mirror")), [])

    def test_of_this_machine_change_folders_that_their_owner_may_not_even_read(self):
        for path in (self.work, self.served, self.local, self.there(), self.at()):
            os.chmod(path, 0o777)
        os.makedirs(self.there("tree", "closed"))
        os.makedirs(self.at("mirror", "closed"))
        for path in (("mirror",), ("mirror", "closed")):
            os.chown(self.at(*path), OTHER, OTHER)
        os.chmod(self.at("mirror", "closed"), 0o300)
        self.write(self.there("tree", "closed", "f"), b"content")
        self.good("sync", self.url("tree"), self.at("mirror"), preexec_fn=as_other)
        self.assertEqual(self.read(self.at("mirror", "closed", "f")), b"content")


@unittest.skipUnless(os.geteuid() == 0, "needs files of another owner")
class OtherKinds(Case):
    """--delete replaces what is of another kind, where there is something to replace it by."""

    def setUp(self):
        super().setUp()
        for path in (self.work, self.served, self.local, self.there()):
            os.chmod(path, 0o777)

    def folders(self):
        """To a server and from it: the command's source and destination, and their folders, the second that of another user."""
        for source, target, read, changed in (
            (self.at("from"), self.url("to"), self.at("from"), self.there("to")),
            (self.url("from"), self.at("to"), self.there("from"), self.at("to")),
        ):
            for folder in (read, changed):
                os.mkdir(folder)
            yield source, target, read, changed

    def give(self, folder):
        for at, folders, files in os.walk(folder):
            for path in (at, *(os.path.join(at, name) for name in folders + files)):
                os.chown(path, OTHER, OTHER)

    def test_stay_where_their_source_cannot_be_read(self):
        for source, target, read, changed in self.folders():
            os.chmod(self.write(os.path.join(read, "file")), 0o600)
            os.mkdir(os.path.join(read, "folder"), 0o700)
            os.mkdir(os.path.join(changed, "file"))
            self.write(os.path.join(changed, "file", "data"), b"content")
            self.write(os.path.join(changed, "folder"), b"content")
            self.give(changed)
            for options in (["--dry-run"], []):
                failed = harness.stag("sync", "--delete", *options, source, target, preexec_fn=as_other)
                self.assertEqual((failed.returncode, failed.stderr.count("\n")), (1, 2), failed.stderr)
                self.assertNotIn("removed", failed.stdout)
                self.assertEqual(self.read(os.path.join(changed, "file", "data")), b"content", source)
                self.assertEqual(self.read(os.path.join(changed, "folder")), b"content", source)

    def test_stay_where_this_user_can_make_no_device(self):
        for source, target, read, changed in self.folders():
            try:
                os.mknod(os.path.join(read, "device"), 0o644 | stat.S_IFCHR, os.makedev(1, 3))
            except PermissionError:
                self.skipTest("devices cannot be made here")
            os.mkfifo(os.path.join(read, "fifo"), 0o644)
            for name in ("device", "fifo"):
                self.write(os.path.join(changed, name), b"content")
            self.give(changed)
            done = harness.stag("sync", "--delete", source, target, preexec_fn=as_other)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1), done.stderr)
            self.assertRegex(done.stderr, "device'?: the device is left out: ")
            self.assertEqual(self.read(os.path.join(changed, "device")), b"content", source)
            self.assertTrue(stat.S_ISFIFO(os.lstat(os.path.join(changed, "fifo")).st_mode))
            self.assertEqual(sorted(os.listdir(changed)), ["device", "fifo"])


@unittest.skipUnless(os.geteuid() == 0, "needs a server that does not take root for root")
class OfRoot(Case):
    """By a server that takes root for another user."""

    def test_change_folders_in_which_their_owner_may_change_nothing(self):
        os.makedirs(self.at("state"))
        os.mkdir(self.there("to"))
        os.chown(self.there("to"), OTHER, OTHER)
        server = harness.Server([f"/to={self.there('to')},anonuid={OTHER},anongid={OTHER}"], self.at("state"))
        self.addCleanup(server.end)
        for step in ("first", "second"):
            for folder in ("ro", "gone") if step == "first" else ("ro",):
                os.makedirs(self.at("from", folder), exist_ok=True)
                self.write(self.at("from", folder, step))
                os.chmod(self.at("from", folder), 0o555)
            for version in ("3", "4.2"):
                self.good("sync", "--delete", self.at("from"), f"{server.url('/to/' + version)}&version={version}")
            if step == "first":
                os.remove(self.at("from", "gone", "first"))
                os.rmdir(self.at("from", "gone"))
                os.remove(self.at("from", "ro", "first"))
        for version in ("3", "4.2"):
            self.assertEqual((os.listdir(self.there("to", version)), os.listdir(self.there("to", version, "ro"))), (["ro"], ["second"]))
            self.assertEqual(os.stat(self.there("to", version, "ro")).st_mode & 0o777, 0o555)


@unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
class FullDestinations(Case):
    """What is too much is removed all the same, and makes room."""

    MIB = 1 << 20

    def setUp(self):
        super().setUp()
        os.makedirs(self.at("from", "m"))
        for name in ("a", "b"):
            self.write(self.at("from", "m", name), os.urandom(3 * self.MIB // 2))
        # In whatever order they are listed, most of them come after it.
        for name in "cdfghijk":
            os.mkdir(self.at("from", name))
            self.write(self.at("from", name, "small"), b"content")

    def fill(self, top):
        os.makedirs(os.path.join(top, "m"))
        self.write(os.path.join(top, "m", "old"), os.urandom(3 * self.MIB))

    def test_on_a_server(self):
        for version in ("3", "4.2"):
            disk = self.there(version)
            os.mkdir(disk)
            mount_it = mounting(b"none", disk, b"tmpfs", 0, b"size=4m")

            def prepare():
                mount_it()
                self.fill(os.path.join(disk, "to"))

            server = harness.Server([f"/disk={disk},no_root_squash"], self.at("state" + version), preexec_fn=prepare)
            self.addCleanup(server.end)
            url = f"{server.url('/disk/to')}&version={version}"
            result = stag("sync", "-j1", "--delete", self.at("from"), url)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"^stag sync: [^\n]*no space left on the server[^\n]*\n(stag sync: \d+ more could not be copied\n)?$")
            found = self.good("find", url)
            self.assertNotIn("/old", found)
            self.assertEqual(found.count("/small"), 8, found)
            self.good("sync", "--delete", self.at("from"), url)
            self.assertEqual(self.good("sync", "-v", "--delete", self.at("from"), url), "")

    def test_on_this_machine(self):
        os.rename(self.at("from"), self.there("from"))
        os.mkdir(self.at("disk"))
        mount_it = mounting(b"none", self.at("disk"), b"tmpfs", 0, b"size=4m")

        def prepare():
            mount_it()
            self.fill(self.at("disk", "to"))

        failed = harness.stag("sync", "-j1", "--json", "--delete", self.url("from"), self.at("disk", "to"), preexec_fn=prepare)
        self.assertEqual(failed.returncode, 1, failed.stderr)
        self.assertRegex(failed.stderr, r"^stag sync: [^\n]*No space left on device[^\n]*\n(stag sync: \d+ more could not be copied\n)?$")
        counted = json.loads(failed.stdout)
        self.assertEqual((counted["removed"], counted["files"]), (1, 8))


class WhatIsThere(Case):
    """What stays in a mirror gets the attributes of its source."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.at("from"))

    def pairs(self, name):
        """To a server and back, by version 3 and 4.2: the command's source and destination, and the folder that it changes."""
        for version in ("3", "4.2"):
            url = self.url(name + version) + f"&version={version}"
            yield self.at("from"), url, self.there(name + version)
            yield url, self.at(name + version), self.at(name + version)

    def test_owner_and_time_of_a_symbolic_link(self):
        owner = os.geteuid() or 1234
        os.symlink("nowhere", self.at("from", "link"))
        os.lchown(self.at("from", "link"), owner, -1)
        os.utime(self.at("from", "link"), (1000, 2000), follow_symlinks=False)
        os.chmod(self.at("from"), 0o755)
        for command in (["sync"], ["cp", "-a", "--checksum"]):
            for source, target, changed in self.pairs("by-" + command[0]):
                # Into the destination, as sync does.
                self.good("sync", source, target)
                link = os.path.join(changed, "link")
                os.lchown(link, os.geteuid(), -1)
                os.utime(link, (3000, 4000), follow_symlinks=False)
                if command[0] == "cp":
                    source, target = (os.path.join(source, "link"), target) if "://" not in source else (source.replace("?", "/link?"), target)
                told = harness.stag(*command, "-v", source, target)
                self.assertEqual((told.returncode, told.stderr), (0, ""), (command, source))
                self.assertRegex(told.stdout, "link' -> '")
                known = os.lstat(link)
                self.assertEqual((known.st_mtime, known.st_uid), (2000, owner), (command, source))
                self.assertNotIn("link' -> '", self.good(*command, "-v", source, target))

    def test_what_gets_another_mode_or_time_is_told(self):
        for name in ("same", "mode", "time"):
            os.utime(self.write(self.at("from", name), b"content"), (1000, 1000))
            os.chmod(self.at("from", name), 0o640)
        for source, target, changed in self.pairs("to"):
            self.good("sync", source, target)
            os.chmod(os.path.join(changed, "mode"), 0o600)
            os.utime(os.path.join(changed, "time"), (1000, 3000))
            for options in ([], ["--checksum"]):
                told = self.good("sync", "-n", *options, source, target)
                self.assertEqual(sorted(re.findall("([a-z]+)' -> ", told)), ["mode", "time"], (options, source))
            counted = json.loads(self.good("sync", "-n", "--checksum", "--json", source, target))
            self.assertEqual([counted[key] for key in ("files", "adjusted", "skipped")], [0, 2, 1])
            told = self.good("sync", "-v", "--checksum", source, target)
            self.assertEqual(sorted(re.findall("([a-z]+)' -> ", told)), ["mode", "time"])
            known = [os.stat(os.path.join(changed, name)) for name in ("mode", "time")]
            self.assertEqual([(each.st_mode & 0o777, each.st_mtime) for each in known], [(0o640, 1000)] * 2)
            self.assertEqual(self.good("sync", "-v", "--checksum", source, target), "")

    @unittest.skipUnless(os.geteuid() == 0, "needs files of another owner")
    def test_setuid_that_comes_with_an_owner_who_is_refused_is_told_once(self):
        for path in (self.work, self.local, self.at("from"), self.served):
            os.chmod(path, 0o755)
        os.chmod(self.there(), 0o777)
        self.write(self.at("from", "file"))
        os.chmod(self.at("from", "file"), 0o4755)
        again = [self.good("sync", "-v", self.at("from"), self.url("to"), preexec_fn=as_other) for _ in range(2)]
        self.assertIn("file' -> ", again[0])
        self.assertEqual(again[1], "")

    @unittest.skipUnless(os.geteuid() == 0, "needs files of another owner")
    def test_of_another_owner_is_left_alone_where_all_is_the_same(self):
        """Nobody but its owner may set times, not even to what they are."""
        for path in (self.work, self.local, self.served, self.there()):
            os.chmod(path, 0o755)
        for owner in (1000, 1001):
            os.makedirs(self.at("from", "shared", "below"), exist_ok=True)
            for name in ("file", "shared/tool", "shared/below/file"):
                os.utime(self.write(self.at("from", name), b"content"), (1000, 1000))
            os.symlink("file", self.at("from", f"link{owner}"))
            for version in ("3", "4.2"):
                there = self.url(f"of{owner}by{version}") + f"&version={version}"
                self.good("sync", self.at("from"), there)
                for folder in (self.at("from"), self.there(f"of{owner}by{version}")):
                    for top, _, files in os.walk(folder):
                        for path in [top, *(os.path.join(top, name) for name in files)]:
                            # As a folder of theirs would be, and its copy: where owners differ, they cannot be set.
                            os.lchown(path, 1000 if folder == self.at("from") else owner, 1000)
                        os.chmod(top, 0o2775 if top.endswith("shared") else 0o755)
                        os.utime(top, (1000, 2000))
                    os.chmod(os.path.join(folder, "shared", "tool"), 0o4755)
                other = there + f"&uid={OTHER}&gid={OTHER}"
                copy = self.there(f"of{owner}by{version}")
                self.assertEqual(self.good("sync", "-v", self.at("from"), other), "", (owner, version))
                self.assertEqual(self.good("sync", "-v", there, self.at("from"), preexec_fn=as_other), "", (owner, version))
                self.assertEqual((os.stat(os.path.join(copy, "shared")).st_mode & 0o7777, os.stat(os.path.join(copy, "shared", "tool")).st_mode & 0o7777), (0o2775, 0o4755))
                # What is new in a folder changes its time, which stays so.
                os.chmod(copy, 0o777)
                os.chmod(self.at("from"), 0o777)
                self.write(self.at("from", f"new{owner}{version}"))
                os.utime(self.at("from"), (1000, 2000))
                self.bad(1, "only the owner or root may do that", "sync", self.at("from"), other)

    def test_times_that_a_version_has_not_are_told_of_once_and_not_copied_again(self):
        for name, time in (("old", -86400), ("late", 5_000_000_000), ("usual", 1000)):
            os.utime(self.write(self.at("from", name), b"content"), (1000, time))
        os.symlink("usual", self.at("from", "link"))
        os.utime(self.at("from", "link"), (1000, -5), follow_symlinks=False)
        os.utime(self.at("from"), (1000, -7))
        for version, last in (("2", 2**32 - 2), ("3", 2**32 - 1)):
            target = self.url("by" + version) + f"&version={version}"
            for files in (3, 0):
                done = harness.stag("sync", "--json", self.at("from"), target)
                self.assertEqual(done.returncode, 0)
                self.assertRegex(done.stderr, r"^stag sync: times before 1970 and after 2106 are not copied as they are, from [^\n]*: versions 2 and 3 of NFS have none\n$")
                counted = json.loads(done.stdout)
                self.assertEqual((counted["files"], counted["adjusted"]), (files, 0), version)
            self.assertEqual(harness.stag("sync", "-v", self.at("from"), target).stdout, "")
            self.assertEqual([os.stat(self.there("by" + version, name)).st_mtime for name in ("old", "late")], [0, last])
        self.good("sync", self.at("from"), self.url("by4") + "&version=4.2")
        self.assertEqual(os.stat(self.there("by4", "late")).st_mtime, 5_000_000_000)


class NamesOfOneFile(Case):
    def test_may_be_in_several_folders(self):
        for folder in ("a", "b", "c"):
            os.makedirs(self.there("tree", folder))
        self.write(self.there("tree", "a", "x"), b"one" * 1000)
        for other in (("b", "y"), ("c", "z")):
            os.link(self.there("tree", "a", "x"), self.there("tree", *other))
        for version in ("3", "4.2"):
            into = self.at("into" + version)
            os.mkdir(into)
            self.good("cp", "-a", *(self.url("tree", folder) + f"&version={version}" for folder in ("a", "b", "c")), into)
            self.assertEqual(os.stat(os.path.join(into, "c", "z")).st_nlink, 3, version)


    def test_are_links_to_the_first_one_which_no_other_source_replaces(self):
        for folder in ("s1", "s2", "s3"):
            os.mkdir(self.there(folder))
        self.write(self.there("s1", "x"), b"first")
        os.link(self.there("s1", "x"), self.there("s3", "y"))
        self.write(self.there("s2", "x"), b"other")
        for version in ("3", "4.2"):
            into = self.at("over" + version)
            os.mkdir(into)
            self.bad(1, "will not overwrite just-created", "cp", "-a", *(self.url(folder, ".") + f"&version={version}" for folder in ("s1", "s2", "s3")), into)
            self.assertEqual((self.read(os.path.join(into, "x")), self.read(os.path.join(into, "y"))), (b"first", b"first"), version)
            self.assertTrue(os.path.samefile(os.path.join(into, "x"), os.path.join(into, "y")), version)


class Messages(Case):
    NAME = "a\n<0>kernel: forged"
    SHOWN = "a\\012<0>kernel: forged"

    def test_are_a_line_whatever_the_names_are(self):
        os.makedirs(self.there("tree", self.NAME))
        os.mkdir(self.at("to"))
        self.write(self.at("to", self.NAME))
        failed = harness.stag("sync", self.url("tree"), self.at("to"))
        self.assertEqual(failed.returncode, 1)
        self.assertIn(self.SHOWN, failed.stderr)
        self.assertNotIn("\n<0>", failed.stderr)
        done = harness.stag("sync", "-v", "--delete", self.url("tree"), self.at("to"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.SHOWN, done.stdout)
        self.assertNotIn("\n<0>", done.stdout)


if __name__ == "__main__":
    harness.main()
