"""`stag cp` with the options of cp(1) and rsync(1): many sources, standard input and output, what is left alone, what goes on."""
import fcntl
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import termios
import threading

import harness
import rpc_proxy
from harness import Case, Proxy, stag


@harness.release_only
class Sources(Case):
    def copied_at_once(self, procedure, *arguments):
        """`stag cp` of local paths, and of what stands behind @ on the server; no call of that procedure is answered before those of 8 files
        are there."""
        files, enough = set(), threading.Event()

        def judge(call):
            if call.procedure != procedure:
                return None
            files.add(call.handle)
            if len(files) == 8:
                enough.set()
            return enough, None

        proxy = rpc_proxy.JudgingProxy(self.server.tcp_port, judge)
        self.addCleanup(proxy.close)
        through = [proxy.url(f"/files/{self.name}/{each[1:]}") if each.startswith("@") else each for each in arguments]
        command = [harness.STAG, "cp", *through]
        copy = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        met, held = enough.wait(harness.PATIENCE), len(files)
        enough.set()
        self.assertEqual((copy.communicate(timeout=harness.PATIENCE), copy.returncode), (("", ""), 0))
        self.assertTrue(met, f"no more than {held} were in flight")

    def test_are_in_flight_together_eight_at_a_time(self):
        names = [f"f{i:02}" for i in range(20)]
        for folder in ("one by one", "tree"):
            os.mkdir(self.at(folder))
            for name in names:
                self.write(self.at(folder, name), name.encode())
        os.mkdir(self.there("into"))
        os.mkdir(self.at("back"))
        self.copied_at_once(rpc_proxy.WRITE, *(self.at("one by one", name) for name in names), "@into")
        self.copied_at_once(rpc_proxy.WRITE, "-r", self.at("tree"), "@into")
        self.copied_at_once(rpc_proxy.READ, *(f"@into/{name}" for name in names), self.at("back"))
        self.copied_at_once(rpc_proxy.READ, "-r", "@into/tree", self.at("back"))
        for below in (self.there("into"), self.at("back")):
            self.assertEqual(sorted(os.listdir(below)), [*names, "tree"])
            self.assertEqual([self.read(os.path.join(below, folder, name)) for folder in ("", "tree") for name in names], 2 * [name.encode() for name in names])

    def test_in_thousands_share_a_session(self):
        names = [f"f{i:04}" for i in range(2000)]
        for name in names:
            self.write(self.at(name), name.encode())
        os.mkdir(self.there("into"))
        sent = json.loads(self.good("cp", "--json", *(self.at(name) for name in names), self.url("into")))
        self.assertEqual(sent["files"], 2000)
        self.assertEqual(sorted(os.listdir(self.there("into"))), names)
        # LOOKUP, CREATE, WRITE and RENAME of each, and nothing of the directory.
        self.assertLess(sent["moved"]["calls"], 2000 * 4 + 100)
        os.mkdir(self.at("back"))
        got = json.loads(self.good("cp", "--json", *(self.url("into", name) for name in names), self.at("back")))
        self.assertEqual(got["files"], 2000)
        self.assertLess(got["moved"]["calls"], 2000 * 4 + 100)
        self.assertEqual(self.read(self.at("back", "f1234")), b"f1234")

    def test_that_tell_no_length_are_copied_to_their_end(self):
        """As files of /proc, which the kernel makes up when they are read."""
        content = self.read("/proc/sys/kernel/ostype")
        self.assertEqual(os.stat("/proc/sys/kernel/ostype").st_size, 0)
        self.write(self.at("empty"))
        for version in ("3", "4.2"):
            os.mkdir(self.there(version))
            self.good("cp", "/proc/sys/kernel/ostype", self.at("empty"), self.url(version) + f"&version={version}")
            self.assertEqual((self.read(self.there(version, "ostype")), self.read(self.there(version, "empty"))), (content, b""))

    def test_of_one_name_do_not_overwrite_each_other(self):
        for folder in ("a", "b"):
            os.makedirs(self.at(folder, "tree"))
            for path in (("same",), (folder,), ("tree", "same"), ("tree", folder)):
                self.write(self.at(folder, *path), folder.encode() * 100_000)
            os.symlink(folder, self.at(folder, "link"))
        for name in ("same", "link"):
            self.bad(1, f"{self.at('b', name)}: will not overwrite just-created '", "cp", "-a", self.at("a", name), self.at("b", name), self.url())
        self.assertEqual((self.read(self.there("same")), os.readlink(self.there("link"))), (b"a" * 100_000, "a"))
        # What was there before is replaced, and with -n nothing is.
        self.good("cp", self.at("b", "same"), self.url())
        self.good("cp", "-n", self.at("a", "same"), self.at("a", "a"), self.at("b", "same"), self.url())
        self.assertEqual(self.read(self.there("same")), b"b" * 100_000)
        # Directories of one name become one.
        for sources in ([self.at("a", "tree"), self.at("b", "tree")], [self.at("a", "tree", "."), self.at("b", "tree", ".")]):
            self.bad(1, "will not overwrite just-created '", "cp", "-r", *sources, self.url())
        for top in (self.there("tree"), self.there()):
            self.assertTrue({"a", "b", "same"} <= set(os.listdir(top)), top)
        self.assertEqual(self.read(self.there("tree", "same")), b"a" * 100_000)

    def test_that_are_given_twice_are_copied_once(self):
        file = self.write(self.at("f"), b"f")
        result = stag("cp", "-v", file, file, self.url())
        self.assertEqual((result.returncode, result.stdout.count("->"), result.stderr), (0, 1, f"stag cp: '{file}' is given more than once\n"))
        self.assertEqual(self.good("cp", self.url("f"), self.url("f"), "-"), "ff")

    def test_of_several_servers_and_of_none_go_together(self):
        self.write(self.there("f"), b"there")
        self.write(self.there("g"), b"too")
        self.write(self.at("h"), b"here")
        self.good("mkdir", self.server.url(f"/memory/{self.name}"))
        self.good("cp", self.url("f"), self.server.tcp(f"/files/{self.name}/g"), self.at("h"), self.server.url(f"/memory/{self.name}"))
        self.assertEqual(self.good("ls", self.server.url(f"/memory/{self.name}")), "f\ng\nh\n")

    def test_beside_each_other_may_be_exports(self):
        for folder in ("a", "b"):
            os.mkdir(self.there(folder))
            self.write(self.there(folder, folder))
        os.mkdir(self.there("elsewhere"))
        self.write(self.there("elsewhere", "of the other export"))
        exports = [f"/top={self.there()},no_root_squash", f"/top/b={self.there('elsewhere')},no_root_squash"]
        server = harness.Server(exports, self.at("state"))
        self.good("cp", "-r", server.url("/top/a"), server.url("/top/b"), self.at())
        self.assertEqual(server.end(), 0)
        self.assertEqual(os.listdir(self.at("b")), ["of the other export"])

    def test_in_brackets_or_braces_are_the_files_of_that_name(self):
        names = ("[abc]", "[a,b]", "[[a]]", "{}", "%%")
        for name in (*names, "abc", "a", "b"):
            self.write(self.at(name), name.encode())
        self.good("cp", *names, self.url(), cwd=self.at())
        self.assertEqual(sorted(os.listdir(self.there())), sorted(names))
        os.mkdir(self.at("[out]"))
        self.good("cp", self.url("[[a]]"), "[out]", cwd=self.at())
        self.assertEqual(self.read(self.at("[out]", "[[a]]")), b"[[a]]")
        self.good("cp", self.url("%7B%7D"), "--", "[--]", cwd=self.at())
        self.assertEqual(self.read(self.at("[--]")), b"{}")
        self.assertFalse(os.path.exists(self.at("out")))

    def test_that_fail_leave_the_others_alone(self):
        self.write(self.there("f"), b"f")
        result = stag("cp", self.url("missing"), self.url("f"), self.url("absent"), self.at())
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("there is no such file"), 2)
        self.assertEqual(self.read(self.at("f")), b"f")


@harness.release_only
class StandardStreams(Case):
    def test_are_files_named_by_a_dash(self):
        content = os.urandom(3_000_001)
        for url in (self.url("f"), self.server.tcp(f"/files/{self.name}/g"), self.url("h") + "&version=4.2"):
            sent = stag("cp", "-", url, stdin=None, input=content, text=False)
            self.assertEqual((sent.returncode, sent.stderr), (0, b""))
            self.assertEqual(stag("cp", url, "-", text=False).stdout, content)
            self.assertEqual(stag("cat", url, text=False).stdout, content)
        self.assertEqual(self.read(self.there("g")), content)

    def test_may_be_empty(self):
        self.assertEqual(stag("cp", "-", self.url("f"), stdin=None, input="").returncode, 0)
        self.assertEqual(os.stat(self.there("f")).st_size, 0)
        self.assertEqual(self.good("cp", self.url("f"), "-"), "")

    def test_are_copied_whatever_is_there_but_with_n(self):
        for option in ("-u", "--checksum", "--continue"):
            for old in (b"", b"old and longer"):
                self.write(self.there("f"), old)
                result = stag("cp", option, "-", self.url("f"), stdin=None, input="content")
                self.assertEqual((result.returncode, result.stderr, self.read(self.there("f"))), (0, "", b"content"), option)
        self.assertEqual(stag("cp", "-n", "-", self.url("f"), stdin=None, input="x").returncode, 0)
        self.assertEqual(self.read(self.there("f")), b"content")

    def test_have_nothing_that_p_could_keep(self):
        self.write(self.there("old"))
        os.chmod(self.there("old"), 0o604)
        for option in ("-p", "-a"):
            for name, mode in (("old", 0o604), (f"new{option}", 0o640)):
                before = os.stat(self.there("old")).st_mtime
                result = stag("cp", option, "-", self.url(name), stdin=None, input="content", umask=0o027)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                known = os.stat(self.there(name))
                self.assertEqual(known.st_mode & 0o7777, mode)
                self.assertGreaterEqual(known.st_mtime, before)

    def test_have_no_name_for_a_directory(self):
        result = stag("cp", "-", self.url(), stdin=None, input="x")
        self.assertEqual(result.returncode, 1)
        self.assertIn("it is a directory; name the file in it", result.stderr)

    def test_stand_among_the_files_of_cat(self):
        self.write(self.there("f"), b"from the server\n")
        result = stag("cat", self.url("f"), "-", self.url("f"), stdin=None, input="from here\n")
        self.assertEqual(result.stdout, "from the server\nfrom here\nfrom the server\n")

    def test_may_be_devices(self):
        self.write(self.there("f"), os.urandom(3 << 20))
        for options in ([], ["-p"], ["-n"], ["--inplace"]):
            counted = json.loads(self.good("cp", "--json", *options, self.url("f"), "/dev/null"))
            self.assertEqual((counted["files"], counted["bytes"]), (1, 3 << 20))
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.bad(2, "'/dev/null' is no directory", "cp", self.url("f"), self.url("f"), "/dev/null")
        self.bad(1, "'/dev/full': No space left on device", "cp", self.url("f"), "/dev/full")
        self.bad(1, "'/dev/null' is a device, and takes files only", "cp", "-r", self.url(), "/dev/null")

    def test_take_one_file_after_the_other(self):
        self.write(self.there("a"), b"a" * 1_000_000)
        self.write(self.there("b"), b"b")
        self.assertEqual(stag("cp", "-j", "1", self.url("a"), self.url("b"), "-").stdout, "a" * 1_000_000 + "b")
        self.write(self.there("c"), b"c")
        os.link(self.there("b"), self.there("d"))
        for options in ([], ["-a"], ["--preserve=links"]):
            self.assertEqual(stag("cp", *options, *(self.url(name) for name in "bdc"), "-").stdout, "bbc", options)

    def test_that_nobody_reads_are_no_mistake_to_talk_about(self):
        self.write(self.there("f"), bytes(10_000_000))
        for command in (["cp", self.url("f"), "-"], ["cat", self.url("f")]):
            ours, theirs = os.pipe()
            os.close(ours)
            result = subprocess.run([harness.STAG, *command], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, timeout=harness.PATIENCE)
            os.close(theirs)
            self.assertEqual(result.stderr, b"", command)
            self.assertEqual(result.returncode, 141)

    def test_end_with_Ctrl_C(self):
        for command in (["cp", "-", self.url("f")], ["cat", "-", self.url("f")]):
            ours, theirs = os.pipe()
            process = subprocess.Popen([harness.STAG, *command], stdin=ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            os.close(ours)
            os.write(theirs, b"begun")
            # Until it has taken what is in the pipe.
            while bytes_in(theirs) > 0:
                pass
            process.send_signal(signal.SIGINT)
            errors = process.communicate(timeout=harness.PATIENCE)[1]
            os.close(theirs)
            self.assertEqual((process.returncode, errors), (130, b"stag %s: interrupted\n" % command[0].encode()))
        self.assertEqual(os.listdir(self.there()), [])


def bytes_in(pipe):
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), "little")


@harness.release_only
class LeftAlone(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.at("tree"))
        os.mkdir(self.there("tree"))
        for name, ours, theirs in (("older", 1000, 2000), ("newer", 3000, 2000), ("equal", 2000, 2000)):
            os.utime(self.write(self.at("tree", name), b"new content"), (ours, ours))
            os.utime(self.write(self.there("tree", name), b"old"), (theirs, theirs))
        self.write(self.at("tree", "fresh"), b"new content")

    def replaced(self):
        return sorted(name for name in os.listdir(self.there("tree")) if self.read(self.there("tree", name)) == b"new content")

    def test_is_what_is_as_new_with_u(self):
        self.good("cp", "-r", "-u", self.at("tree"), self.url())
        self.assertEqual(self.replaced(), ["fresh", "newer"])

    def test_is_what_is_as_new_as_the_destination_can_have_it_with_u(self):
        self.write(self.at("exact"), b"content")
        os.utime(self.at("exact"), ns=(1_700_000_000_123_456_789,) * 2)
        for version in ("2", "3", "4.2"):
            url = self.url("exact" + version) + f"&version={version}"
            counts = [json.loads(self.good("cp", "-p", "-u", "--json", self.at("exact"), url)) for _ in range(2)]
            self.assertEqual([(each["files"], each["skipped"]) for each in counts], [(1, 0), (0, 1)], version)

    def test_is_what_is_there_with_n(self):
        os.symlink("new", self.at("tree", "link"))
        os.symlink("old", self.there("tree", "link"))
        counted = json.loads(self.good("cp", "-r", "-n", "--json", self.at("tree"), self.url()))
        self.assertEqual(os.readlink(self.there("tree", "link")), "old")
        self.assertEqual((counted["files"], counted["skipped"]), (1, 4))
        os.unlink(self.there("tree", "link"))
        self.assertEqual(self.replaced(), ["fresh"])

    def test_is_what_is_no_plain_file_with_n(self):
        for name, ways in (("kept", (self.at("tree", "kept"), self.url("tree"))), ("tree", ("-r", self.at("tree"), self.url()))):
            self.write(self.at("tree", "kept"), b"new content")
            for make in (lambda path: os.symlink("older", path), lambda path: os.symlink("nowhere", path), os.mkfifo):
                make(self.there("tree", "kept"))
                before = os.lstat(self.there("tree", "kept"))
                self.good("cp", "-n", *ways)
                self.assertEqual(os.lstat(self.there("tree", "kept")).st_ino, before.st_ino, name)
                self.assertEqual(self.read(self.there("tree", "older")), b"old")
                os.unlink(self.there("tree", "kept"))
        os.mkdir(self.there("tree", "kept"))
        self.bad(1, "is no plain file", "cp", "-n", "-r", self.at("tree"), self.url())

    def late(self, option, source, destination, direction):
        """A copy during which its destination gets another file, as old as that of the source; and what it says in the end."""
        proxy = Proxy(self.server.rdma_port, direction, 10 << 20)
        self.addCleanup(proxy.cut)
        through = [path.format(proxy.port) for path in (source, destination)]
        copy = subprocess.Popen([harness.STAG, "cp", "--json", option, *through], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        below = self.there if direction == "up" else self.at
        os.utime(self.write(below("late"), b"of somebody else"), (2000, 2000))
        proxy.released.set()
        said, errors = copy.communicate(timeout=harness.PATIENCE)
        self.assertEqual((copy.returncode, errors), (0, ""))
        self.assertEqual([name for name in os.listdir(below()) if name.startswith(".stag-")], [])
        counted, content = json.loads(said), self.read(below("late"))
        os.unlink(below("late"))
        return counted["files"], counted["skipped"], content[:16]

    def test_is_what_comes_while_a_file_is_copied_with_n_and_with_u_unless_it_is_older(self):
        content = b"new content here" + os.urandom(30 << 20)
        for below in (self.at, self.there):
            self.write(below("big"), content)
        for version in ("2", "3", "4.2"):
            url = [self.url(name, port="{}") + f"&version={version}" for name in ("big", "late")]
            for paths in ((self.at("big"), url[1], "up"), (url[0], self.at("late"), "down")):
                for option, time, expected in (("-n", 3000, b"of somebody else"), ("-u", 2000, b"of somebody else"), ("-u", 3000, content[:16])):
                    for below in (self.at, self.there):
                        os.utime(below("big"), (time, time))
                    counts = (1, 0) if expected == content[:16] else (0, 1)
                    self.assertEqual(self.late(option, *paths), (*counts, expected), (version, paths, option))

    def linked(self, verdict, during=lambda: None):
        """A copy with -n, of whose LINK becomes what the verdict says; how many files it counts, and the calls that gave a name."""
        asked = threading.Event()

        def judge(call):
            if call.procedure != rpc_proxy.LINK:
                return None
            asked.set()
            return verdict

        proxy = rpc_proxy.JudgingProxy(self.server.tcp_port, judge)
        self.addCleanup(proxy.close)
        command = [harness.STAG, "cp", "-n", "--json", self.at("tree", "fresh"), proxy.url(f"/files/{self.name}/late")]
        copy = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertTrue(asked.wait(harness.PATIENCE))
        during()
        said, errors = copy.communicate(timeout=harness.PATIENCE)
        self.assertEqual((copy.returncode, errors), (0, ""))
        self.assertEqual(sorted(os.listdir(self.there())), ["late", "tree"])
        self.assertEqual(os.stat(self.there("late")).st_nlink, 1)
        procedures = [call.procedure for call in proxy.calls if call.procedure in (rpc_proxy.LINK, rpc_proxy.RENAME)]
        return json.loads(said)["files"], procedures

    def test_is_what_takes_the_name_in_the_last_moment_with_n(self):
        ahead = threading.Event()

        def another_one():
            self.write(self.there("late"), b"of somebody else")
            ahead.set()

        self.assertEqual(self.linked(ahead, another_one), (0, [rpc_proxy.LINK]))
        self.assertEqual(self.read(self.there("late")), b"of somebody else")

    def test_with_n_is_not_the_copy_itself_whose_answer_was_lost(self):
        answered = threading.Event()
        answered.set()
        self.assertEqual(self.linked((answered, rpc_proxy.EXIST)), (1, [rpc_proxy.LINK]))
        self.assertEqual(self.read(self.there("late")), b"new content")

    def test_with_n_by_a_server_without_links_too(self):
        self.assertEqual(self.linked(rpc_proxy.NOTSUPP), (1, [rpc_proxy.LINK, rpc_proxy.RENAME]))
        self.assertEqual(self.read(self.there("late")), b"new content")

    def test_is_what_has_the_same_content_with_checksum(self):
        content = bytes(1 << 20) + os.urandom(1 << 20) + b"end"
        for below in (self.at, self.there):
            os.utime(self.write(below("tree", "same"), content), (1000, 1000))
        self.write(self.at("tree", "differs at the end"), content)
        self.write(self.there("tree", "differs at the end"), content[:-1] + b"x")
        counted = json.loads(self.good("cp", "-r", "--checksum", "--json", self.at("tree"), self.url()))
        self.assertEqual((counted["files"], counted["skipped"]), (5, 1))
        self.assertEqual(os.stat(self.there("tree", "same")).st_mtime, 1000)
        self.assertEqual(self.read(self.there("tree", "differs at the end")), content)
        back = json.loads(self.good("cp", "-r", "--checksum", "--json", self.url("tree"), self.at()))
        self.assertEqual((back["files"], back["skipped"]), (0, 6))

    def test_is_what_is_excluded(self):
        os.makedirs(self.at("tree", "cache", "deep"))
        self.write(self.at("tree", "cache", "deep", "x"))
        self.write(self.at("tree", "a.o"))
        self.write(self.at("tree", "cache", "deep", "b.o"))
        for source, target in ((self.at("tree"), self.url("copy")), (self.url("copy"), self.at("copy"))):
            self.good("cp", "-r", "--exclude", "*.o", "--exclude", "/cache/deep/x", "--exclude", "fresh/", source, target)
        for below in (self.there, self.at):
            self.assertEqual(sorted(os.listdir(below("copy"))), ["cache", "equal", "fresh", "newer", "older"])
            self.assertEqual(os.listdir(below("copy", "cache", "deep")), [])


@harness.release_only
class Told(Case):
    def test_with_v_what_goes_where(self):
        os.mkdir(self.at("tree"))
        self.write(self.at("tree", "f"))
        os.symlink("f", self.at("tree", "l"))
        lines = self.good("cp", "-rv", self.at("tree"), self.url()).splitlines()
        place = self.url().split("?")[0]
        expected = [f"'{self.at('tree', name)}' -> '{place}/tree/{name}'" for name in ("f", "l")]
        self.assertEqual(sorted(lines), sorted([f"'{self.at('tree')}' -> '{place}/tree'", *expected]))
        self.write(self.there("g"), b"content")
        self.assertEqual(self.good("cp", "-v", self.url("g"), "-"), "content")


class Kept(Case):
    def make_specials(self, tree):
        os.mkdir(tree)
        self.write(os.path.join(tree, "file"), b"x")
        os.mkfifo(os.path.join(tree, "pipe"))
        os.mknod(os.path.join(tree, "socket"), stat.S_IFSOCK)
        os.mknod(os.path.join(tree, "device"), stat.S_IFCHR, os.makedev(1, 3))
        for name in ("pipe", "socket", "device"):
            os.chmod(os.path.join(tree, name), 0o602)
            os.utime(os.path.join(tree, name), (1_000_000_000, 1_100_000_000))

    def test_with_a_modes_times_and_names_of_one_file(self):
        os.mkdir(self.at("tree"))
        self.write(self.at("tree", "a"), b"content")
        os.chmod(self.at("tree", "a"), 0o604)
        os.link(self.at("tree", "a"), self.at("tree", "b"))
        os.mkdir(self.at("tree", "sub"))
        os.link(self.at("tree", "a"), self.at("tree", "sub", "c"))
        self.write(self.at("tree", "alone"))
        os.utime(self.at("tree", "a"), (1_000_000_000, 1_100_000_000.5))
        for version in ("3", "4.2"):
            os.mkdir(self.at(version))
            url = self.url(f"tree{version}") + f"&version={version}"
            self.good("cp", "-a", self.at("tree"), url)
            self.good("cp", "-a", url, self.at(version, "back"))
            for root in (self.there(f"tree{version}"), self.at(version, "back")):
                known = os.stat(os.path.join(root, "a"))
                self.assertEqual((known.st_nlink, known.st_mode & 0o7777, known.st_mtime), (3, 0o604, 1_100_000_000.5))
                self.assertTrue(os.path.samefile(os.path.join(root, "b"), os.path.join(root, "sub", "c")))
                self.assertEqual(sorted(os.listdir(root)), ["a", "alone", "b", "sub"])

    @harness.release_only
    def test_with_a_a_second_time_as_well(self):
        os.mkdir(self.at("tree"))
        os.link(self.write(self.at("tree", "a"), b"content"), self.at("tree", "b"))
        for _ in range(2):
            self.good("cp", "-a", self.at("tree") + "/.", self.url())
            self.assertEqual(sorted(os.listdir(self.there())), ["a", "b"])
            self.assertTrue(os.path.samefile(self.there("a"), self.there("b")))

    @harness.release_only
    def test_with_a_and_by_sync_pipes_sockets_and_devices(self):
        self.make_specials(self.at("tree"))
        kinds = {"device": stat.S_IFCHR, "pipe": stat.S_IFIFO, "socket": stat.S_IFSOCK}
        for version in ("2", "3", "4.0", "4.2"):
            for command in (("cp", "-a"), ("sync",)):
                there = f"tree{version}{command[0]}"
                url, back = self.url(there) + f"&version={version}", self.at(there)
                for source, target, root in ((self.at("tree"), url, self.there(there)), (url, back, back)):
                    made = json.loads(self.good(*command, "--json", source, target))
                    self.assertEqual((made["files"], made["specials"]), (1, 3), target)
                    for name, kind in kinds.items():
                        known = os.lstat(os.path.join(root, name))
                        self.assertEqual((stat.S_IFMT(known.st_mode), stat.S_IMODE(known.st_mode), known.st_mtime), (kind, 0o602, 1_100_000_000), f"{version} {name}")
                    self.assertEqual(os.lstat(os.path.join(root, "device")).st_rdev, os.makedev(1, 3))
                    self.assertEqual(sorted(os.listdir(root)), ["device", "file", "pipe", "socket"])

    @harness.release_only
    def test_by_sync_pipes_and_devices_that_are_there_already(self):
        self.make_specials(self.at("tree"))
        for source, target, below in ((self.at("tree"), self.url("copy"), self.there("copy")), (self.url("copy"), self.at("back"), self.at("back"))):
            self.good("sync", source, target)
            again = json.loads(self.good("sync", "--json", source, target))
            self.assertEqual((again["specials"], again["skipped"]), (0, 4))
            # Another mode is set, another device is made, and what is no special file gives way to one.
            os.chmod(os.path.join(below, "pipe"), 0o666)
            os.unlink(os.path.join(below, "device"))
            os.mknod(os.path.join(below, "device"), stat.S_IFCHR | 0o602, os.makedev(1, 5))
            os.unlink(os.path.join(below, "socket"))
            os.mkdir(os.path.join(below, "socket"))
            changed = json.loads(self.good("sync", "--json", "--delete", source, target))
            self.assertEqual((changed["specials"], changed["removed"]), (2, 1))
            self.assertEqual(stat.S_IMODE(os.lstat(os.path.join(below, "pipe")).st_mode), 0o602)
            self.assertEqual(os.lstat(os.path.join(below, "device")).st_rdev, os.makedev(1, 3))
            self.assertTrue(stat.S_ISSOCK(os.lstat(os.path.join(below, "socket")).st_mode))

    @harness.release_only
    def test_with_a_no_device_where_nobody_may_make_one_and_that_is_told(self):
        self.make_specials(self.at("tree"))
        os.chmod(self.there(), 0o777)
        result = stag("cp", "-a", self.at("tree"), self.url("tree") + "&uid=1234&gid=1234")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("tree/device: the device is left out: ", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertEqual(sorted(os.listdir(self.there("tree"))), ["file", "pipe", "socket"])

    @harness.release_only
    def test_by_sync_names_of_one_file(self):
        os.mkdir(self.at("tree"))
        os.link(self.write(self.at("tree", "a"), b"content"), self.at("tree", "b"))
        for source, target, below in ((self.at("tree"), self.url("copy"), self.there("copy")), (self.url("copy"), self.at("back"), self.at("back"))):
            self.good("sync", source, target)
            self.assertTrue(os.path.samefile(os.path.join(below, "a"), os.path.join(below, "b")))
            again = json.loads(self.good("sync", "--json", source, target))
            self.assertEqual((again["files"], again["skipped"]), (0, 2))
            # Copies that are files of their own become one again, and are told of before.
            os.unlink(os.path.join(below, "b"))
            shutil.copy2(os.path.join(below, "a"), os.path.join(below, "b"))
            self.assertEqual(len(re.findall("/[ab]' -> ", self.good("sync", "-n", source, target))), 1)
            self.good("sync", source, target)
            self.assertTrue(os.path.samefile(os.path.join(below, "a"), os.path.join(below, "b")))

    @harness.release_only
    def test_with_a_names_become_links_to_nothing_but_a_copy(self):
        for option in ("-n", "-u"):
            os.mkdir(self.at(option))
            for name in ("b", "c", "d"):
                os.link(self.write(self.at(option, "a"), b"content") if name == "b" else self.at(option, "a"), self.at(option, name))
            os.utime(self.at(option, "a"), (1000, 1000))
            os.mkdir(self.there(option))
            for name in ("a", "b", "c"):
                self.write(self.there(option, name), b"another file")
            os.unlink(self.there(option, "b"))
            self.good("cp", "-a", option, self.at(option) + "/.", self.url(option))
            contents = [self.read(self.there(option, name)) for name in ("a", "b", "c", "d")]
            self.assertEqual(contents, [b"another file", b"content", b"another file", b"content"])
            self.assertTrue(os.path.samefile(self.there(option, "b"), self.there(option, "d")))

    @harness.release_only
    def test_with_a_times_of_symbolic_links(self):
        os.symlink("nowhere", self.at("link"))
        os.utime(self.at("link"), (1000, 2000), follow_symlinks=False)
        for version in ("3", "4.2"):
            self.good("cp", "-a", self.at("link"), self.url(f"link{version}") + f"&version={version}")
            self.good("cp", "-a", self.url(f"link{version}") + f"&version={version}", self.at(f"back{version}"))
            for path in (self.there(f"link{version}"), self.at(f"back{version}")):
                self.assertEqual((os.readlink(path), os.lstat(path).st_mtime), ("nowhere", 2000))

    @harness.release_only
    def test_as_the_list_says(self):
        self.write(self.at("f"))
        os.chmod(self.at("f"), 0o666)
        os.utime(self.at("f"), (1000, 1000))
        self.good("cp", "--preserve=timestamps", self.at("f"), self.url("t"), umask=0o027)
        known = os.stat(self.there("t"))
        self.assertEqual((known.st_mode & 0o7777, known.st_mtime), (0o640, 1000))
        self.good("cp", "--preserve=mode", self.at("f"), self.url("m"), umask=0o027)
        known = os.stat(self.there("m"))
        self.assertEqual(known.st_mode & 0o7777, 0o666)
        self.assertNotEqual(known.st_mtime, 1000)
        for options in (["-p", "--preserve=links"], ["--preserve=links", "-p"], ["--preserve=links", "--preserve=mode,timestamps"]):
            self.good("cp", *options, self.at("f"), self.url("added"), umask=0o027)
            known = os.stat(self.there("added"))
            self.assertEqual((stat.S_IMODE(known.st_mode), known.st_mtime), (0o666, 1000), options)
            os.unlink(self.there("added"))
        self.bad(2, "--preserve 'colour' is unknown", "cp", "--preserve=mode,colour", self.at("f"), self.url("x"))


class Holes(Case):
    def sparse(self, path):
        with open(path, "wb") as file:
            file.seek(30_000_000)
            file.write(b"middle")
            file.truncate(64 << 20)
        return path

    def test_are_not_read_from_a_server_of_version_4_2(self):
        self.sparse(self.there("f"))
        proxy = Proxy(self.server.tcp_port, "down", 2 << 20)
        self.addCleanup(proxy.cut)
        url = f"nfs://127.0.0.1:{proxy.port}/files/{self.name}/f?proto=tcp&version=4.2"
        self.good("cp", url, self.at("back"))
        self.assertFalse(proxy.reached.is_set())
        self.assertEqual(self.read(self.at("back")), self.read(self.there("f")))
        self.assertLess(os.stat(self.at("back")).st_blocks * 512, 1 << 20)
        self.good("cp", url, self.server.url(f"/memory/{self.name}"))
        self.assertFalse(proxy.reached.is_set())

    def changed_meanwhile(self, size, change):
        """Copies a file of `size` bytes, data but for a hole at 32 MiB; `change` comes in the middle."""
        with open(self.there("f"), "wb") as file:
            file.write(os.urandom(32 << 20))
            file.seek(48 << 20)
            file.write(os.urandom(max(0, size - (48 << 20))))
            file.truncate(size)
        proxy = Proxy(self.server.tcp_port, "down", 4 << 20)
        self.addCleanup(proxy.cut)
        url = f"nfs://127.0.0.1:{proxy.port}/files/{self.name}/f?proto=tcp&version=4.2"
        copy = subprocess.Popen([harness.STAG, "cp", url, self.at("back")], stderr=subprocess.PIPE, text=True)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        with open(self.there("f"), "r+b") as file:
            change(file)
        proxy.released.set()
        errors = copy.communicate(timeout=harness.PATIENCE)[1]
        self.assertEqual((copy.returncode, errors), (0, ""))
        self.assertEqual(os.stat(self.at("back")).st_size, os.stat(self.there("f")).st_size)
        self.assertTrue(self.read(self.at("back"))[8 << 20:] == self.read(self.there("f"))[8 << 20:])

    def test_in_a_file_that_shrinks_are_no_zeros_behind_its_end(self):
        self.changed_meanwhile(50 << 20, lambda file: file.truncate(30 << 20))
        self.changed_meanwhile(50 << 20, lambda file: file.truncate(49 << 20))
        self.changed_meanwhile(64 << 20, lambda file: file.truncate(40 << 20))

    def test_in_a_file_that_grows_do_not_cut_what_came(self):
        def grow(file):
            file.seek(0, os.SEEK_END)
            file.write(b"more" * 1000)

        for size in (40 << 20, 50 << 20):
            self.changed_meanwhile(size, grow)

    def test_are_zeros_on_standard_output(self):
        self.sparse(self.there("f"))
        for version in ("3", "4.2"):
            result = stag("cp", self.url("f") + f"&version={version}", "-", text=False)
            self.assertTrue(result.stdout == self.read(self.there("f")), version)

    def test_stay_in_copies_within_a_server(self):
        self.sparse(self.there("f"))
        url = self.url("f") + "&version=4.2"
        self.good("cp", url, self.url("g") + "&version=4.2")
        self.assertTrue(self.read(self.there("g")) == self.read(self.there("f")))
        self.assertLess(os.stat(self.there("g")).st_blocks * 512, 1 << 20)


class InPlace(Case):
    CONTENT = os.urandom(40 << 20)

    def interrupted(self, option, direction, *paths):
        """A copy that is interrupted when half of it went through."""
        proxy = Proxy(self.server.rdma_port, direction, 25 << 20)
        self.addCleanup(proxy.cut)
        through = [path.format(proxy.port) for path in paths]
        copy = subprocess.Popen([harness.STAG, "cp", option, *through], stderr=subprocess.PIPE, text=True)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        copy.send_signal(signal.SIGINT)
        proxy.released.set()
        errors = copy.communicate(timeout=harness.PATIENCE)[1]
        self.assertEqual(copy.returncode, 130, errors)
        self.assertIn("it was written in place and is incomplete now; 'stag cp --continue' goes on", errors)

    def test_goes_on_where_it_was_interrupted_on_the_way_in(self):
        self.write(self.at("f"), self.CONTENT)
        self.interrupted("--inplace", "up", self.at("f"), self.url("f", port="{}"))
        self.assertEqual(os.listdir(self.there()), ["f"])
        sent = json.loads(self.good("cp", "--continue", "--json", self.at("f"), self.url("f")))
        self.assertEqual(self.read(self.there("f")), self.CONTENT)
        self.assertLess(sent["bytes"], len(self.CONTENT))

    def test_goes_on_where_it_was_interrupted_on_the_way_out(self):
        os.chmod(self.write(self.there("f"), self.CONTENT), 0o640)
        self.interrupted("--continue", "down", self.url("f", port="{}"), self.at("f"))
        self.assertEqual(os.listdir(self.at()), ["f"])
        got = json.loads(self.good("cp", "--continue", "--json", self.url("f"), self.at("f")))
        self.assertEqual(self.read(self.at("f")), self.CONTENT)
        self.assertLess(got["bytes"], len(self.CONTENT) // 2)
        self.assertEqual(stat.S_IMODE(os.stat(self.at("f")).st_mode), 0o640)

    def test_goes_on_with_smaller_writes_than_before_and_leaves_no_hole(self):
        # A WRITE of 1 MiB may be missing where one behind it has arrived.
        self.write(self.at("f"), self.CONTENT)
        for option in ("wsize=64K", "version=2", "version=4.2&wsize=4K"):
            self.write(self.there("f"), self.CONTENT[: 8 << 20] + bytes(1 << 20) + self.CONTENT[9 << 20 : 10 << 20])
            self.good("cp", "--continue", self.at("f"), f"{self.url('f')}&{option}")
            self.assertEqual(self.read(self.there("f")), self.CONTENT, option)

    def test_goes_on_only_behind_the_same_beginning_with_checksum(self):
        self.write(self.at("f"), self.CONTENT)
        self.write(self.there("f"), b"x" + self.CONTENT[1 : 30 << 20])
        self.good("cp", "--continue", "--checksum", self.at("f"), self.url("f"))
        self.assertEqual(self.read(self.there("f")), self.CONTENT)
        self.write(self.at("g"), b"x" + self.CONTENT[1 : 30 << 20])
        self.good("cp", "--continue", "--checksum", self.url("f"), self.at("g"))
        self.assertEqual(self.read(self.at("g")), self.CONTENT)

    def test_begins_again_where_more_is_there(self):
        self.write(self.at("f"), b"short")
        self.write(self.there("f"), b"longer")
        self.good("cp", "--continue", self.at("f"), self.url("f"))
        self.assertEqual(self.read(self.there("f")), b"short")

    def test_keeps_the_file_that_is_there(self):
        self.write(self.at("f"), b"content")
        self.write(self.there("f"), b"old and longer")
        inode = os.stat(self.there("f")).st_ino
        self.good("cp", "--inplace", self.at("f"), self.url("f"))
        self.assertEqual((os.stat(self.there("f")).st_ino, self.read(self.there("f"))), (inode, b"content"))
        inode = os.stat(self.at("f")).st_ino
        self.good("cp", "--inplace", self.url("f"), self.at("f"))
        self.assertEqual(os.stat(self.at("f")).st_ino, inode)


if __name__ == "__main__":
    harness.main()
