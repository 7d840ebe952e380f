"""`stag find`, `du`, `tree`, `sync`, `chown`, `readlink`, and what `ls`, `chmod` and `touch` do with whole trees and times."""
import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import threading
import time
import unittest

import harness
from harness import Case, Proxy, stag
from rpc_proxy import READDIRPLUS, RpcProxy, call_of


class Tree(Case):
    def setUp(self):
        super().setUp()
        os.makedirs(self.there("a", "deep", "down"))
        os.mkdir(self.there("empty"))
        self.write(self.there("a", "one.txt"), b"1" * 10_000)
        self.write(self.there("a", "deep", "two.TXT"), b"2" * 3_000_000)
        self.write(self.there("a", "deep", "down", ".hidden"), b"3")
        os.symlink("one.txt", self.there("a", "link"))
        os.utime(self.there("a", "one.txt"), (1000, 1000))
        self.top = f"/files/{self.name}"

    def both(self, *parts):
        """The URL by versions 3 and 4.2."""
        return self.url(*parts), self.url(*parts) + "&version=4.2"


class FarAway(RpcProxy):
    """The second directory that is listed is answered when `enough` listings of others have been asked for; `many` says that they were."""

    def __init__(self, port, enough):
        super().__init__(port, overtaken=True)
        self.enough, self.listings, self.many = enough, 0, threading.Event()

    def _see_call(self, record):
        call = call_of(record)
        if call is not None and call.procedure == READDIRPLUS:
            self.listings += 1
            if self.listings == 2:
                self.held_xid = call.xid
            if self.listings == 2 + self.enough:
                self.many.set()
                self.released.set()


class ReadingAhead(Tree):
    """A server that is far away is not asked for one directory after another."""

    DIRECTORIES = [f"d{i}" for i in range(12)]

    def setUp(self):
        super().setUp()
        for name in self.DIRECTORIES:
            os.makedirs(self.there("wide", name))
            self.write(self.there("wide", name, "f"), b"x")
            os.chmod(self.there("wide", name), 0o755)

    def by_proxy(self, *command):
        proxy = FarAway(self.server.tcp_port, enough=7)
        self.addCleanup(proxy.close)
        output = self.good(*command, proxy.url(f"{self.top}/wide"))
        self.assertTrue(proxy.many.is_set(), command)
        return output

    def test_keeps_the_order(self):
        wide = f"{self.top}/wide"
        expected = [wide] + [path for name in sorted(self.DIRECTORIES) for path in (f"{wide}/{name}", f"{wide}/{name}/f")]
        self.assertEqual(self.by_proxy("find").splitlines(), expected)
        self.assertEqual(len(self.by_proxy("du", "-a").splitlines()), len(expected))
        self.assertEqual(self.by_proxy("tree"), self.good("tree", self.url("wide")))

    def test_is_done_by_changes_that_leave_directories_readable(self):
        self.by_proxy("chmod", "-R", "go-w")

    def test_waits_where_a_change_is_what_opens_a_directory(self):
        owner = os.geteuid() or 1234
        for name in self.DIRECTORIES:
            os.chown(self.there("wide", name), owner, -1)
            os.chown(self.there("wide", name, "f"), owner, -1)
            os.chmod(self.there("wide", name), 0)
        os.chown(self.there("wide"), owner, -1)
        self.good("chmod", "-R", "u+rwX", self.url("wide") + f"&uid={owner}")
        for name in self.DIRECTORIES:
            self.assertEqual(stat.S_IMODE(os.stat(self.there("wide", name)).st_mode), 0o700)

    def test_is_not_done_below_what_is_looked_at(self):
        self.assertEqual(len(self.good("find", "-maxdepth", "1", self.url("wide")).splitlines()), 13)
        self.assertEqual(len(self.good("find", "-maxdepth", "2", self.url("wide")).splitlines()), 25)


class Find(Tree):
    def found(self, *options, below=()):
        lines = self.good("find", self.url(*below), *options).splitlines()
        return [line.removeprefix(self.top).lstrip("/") for line in lines]

    def test_finds_everything(self):
        everything = ["", "a", "a/deep", "a/deep/down", "a/deep/down/.hidden", "a/deep/two.TXT", "a/link", "a/one.txt", "empty"]
        self.assertEqual(self.found(), everything)
        self.assertEqual(self.good("find", self.both()[1]), self.good("find", self.both()[0]))

    def test_by_name_type_size_time_and_depth_with_one_dash_or_two(self):
        self.assertEqual(self.found("-name", "*.txt"), ["a/one.txt"])
        self.assertEqual(self.found("--iname", "*.txt"), ["a/deep/two.TXT", "a/one.txt"])
        self.assertEqual(self.found("-path", "*/deep/*"), ["a/deep/down", "a/deep/down/.hidden", "a/deep/two.TXT"])
        self.assertEqual(self.found("-type", "l"), ["a/link"])
        self.assertEqual(self.found("--type", "d"), ["", "a", "a/deep", "a/deep/down", "empty"])
        self.assertEqual(self.found("-type", "f", "-size", "+1M"), ["a/deep/two.TXT"])
        self.assertEqual(self.found("-type", "f", "-size", "10000c"), ["a/one.txt"])
        self.assertEqual(self.found("-type", "f", "-size", "-2"), ["a/deep/down/.hidden"])
        self.assertEqual(self.found("-maxdepth", "1"), ["", "a", "empty"])
        self.assertEqual(self.found("-mindepth", "3"), ["a/deep/down", "a/deep/down/.hidden", "a/deep/two.TXT"])
        self.assertEqual(self.found("-maxdepth", "0", below=("a",)), ["a"])

    def test_by_conditions_that_are_given_several_times_all_of_which_hold(self):
        for path, size in (("a/empty.txt", 0), ("a/large", 5_000_000)):
            self.write(self.there(*path.split("/")), bytes(size))
        for name, time in (("old", 1000), ("new", 4_000_000_000)):
            os.utime(self.write(self.at(name)), (time, time))
        for conditions in (
            ("-type", "f", "-size", "+1", "-size", "-8M"), ("-type", "f", "-size", "-8M", "-size", "+3M"), ("-name", "*e*", "-name", "*.txt"),
            ("-iname", "*.TXT", "-iname", "T*"), ("-path", "*/a/*", "-path", "*deep*"), ("-type", "f", "-type", "f"), ("-type", "f", "-type", "d"),
            ("-newermt", "2099-01-01", "-newermt", "2001-01-01"), ("-newermt", "2099-01-01", "-newer", self.at("old")),
            ("-newer", self.at("old"), "-newer", self.at("new")), ("-newer", self.at("new"), "-newermt", "2001-01-01"),
        ):
            expected = subprocess.run(["find", ".", *conditions], cwd=self.there(), stdout=subprocess.PIPE, text=True, check=True).stdout.split()
            self.assertEqual(sorted(self.found(*conditions)), sorted(path.lstrip("./") for path in expected), conditions)

    def as_find_does(self, *conditions):
        """What find(1) finds, and that `stag find` finds the same by both versions."""
        theirs = subprocess.run(["find", ".", *conditions], cwd=self.there(), stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")[:-1]
        expected = sorted(path.removeprefix(".").lstrip("/") for path in theirs)
        for url in self.both():
            found = self.good("find", url, *conditions).split("\n")[:-1]
            self.assertEqual(sorted(path.removeprefix(self.top).lstrip("/") for path in found), expected, conditions)
        return expected

    def test_by_age_as_find_does(self):
        for name, age in (("now", 0), ("hour", 3600 + 30), ("half a day", 12 * 3600), ("day", 86400 + 600), ("month", 30 * 86400 + 600), ("older", 31 * 86400 + 600), ("future", -4000)):
            moment = time.time() - age
            os.utime(self.write(self.there("empty", name)), (moment, moment))
        self.assertEqual(self.as_find_does("-type", "f", "-path", "*/empty/*", "-mtime", "+29"), ["empty/month", "empty/older"])
        self.assertEqual(self.as_find_does("-path", "*/empty/*", "-mtime", "+30"), ["empty/older"])
        self.assertEqual(self.as_find_does("-path", "*/empty/*", "-mtime", "30"), ["empty/month"])
        self.assertEqual(self.as_find_does("-path", "*/empty/*", "-mmin", "61"), ["empty/hour"])
        for days in ("0", "+0", "-1", "1", "+1", "-31", "31", "+31", "+4000"):
            self.as_find_does("-mtime", days)
        for minutes in ("-1", "0", "+0", "1", "-60", "+60", "-61", "+61", "60", "-720", "+721", "1451", "+1450"):
            self.as_find_does("-mmin", minutes)
        self.assertEqual(self.as_find_does("-path", "*/empty/*", "-mmin", "+50", "-mtime", "-1"), ["empty/half a day", "empty/hour"])

    def test_what_is_empty_as_find_does(self):
        self.write(self.there("a", "nothing"))
        os.mkdir(self.there("a", "deep", "hollow"))
        os.mkfifo(self.there("a", "fifo"))
        self.assertEqual(self.as_find_does("-empty"), ["a/deep/hollow", "a/nothing", "empty"])
        self.assertEqual(self.as_find_does("-empty", "-type", "d"), ["a/deep/hollow", "empty"])
        self.as_find_does("-not", "-empty")
        self.assertEqual(self.as_find_does("-empty", "!", "-empty"), [])
        self.as_find_does("-maxdepth", "1", "-empty")

    def test_of_a_user_as_find_does(self):
        own = pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            os.chown(self.there("a", "one.txt"), 12345, -1)
            self.assertEqual(self.as_find_does("-user", "12345"), ["a/one.txt"])
        self.as_find_does("-user", own)
        self.as_find_does("!", "-user", own)
        self.as_find_does("-user", str(os.geteuid()))

    def test_what_must_not_hold_as_find_does(self):
        for conditions in (
            ("-not", "-name", "*.txt"), ("!", "-name", "*.txt"), ("!", "-type", "d", "-name", "*o*"), ("-type", "f", "!", "-size", "+1"), ("-not", "-not", "-type", "l"),
            ("!", "-name", "*.txt", "!", "-iname", "*.txt"), ("-name", "!"), ("!", "-newermt", "2001-01-01"), ("-type", "f,d"), ("-type", "l,f"), ("!", "-type", "f,d"), ("-type", "f,d", "-type", "d,l"),
        ):
            self.as_find_does(*conditions)
        self.write(self.there("!"))
        self.assertEqual(self.as_find_does("-name", "!"), ["!"])
        self.bad(2, "no condition after the last --not", "find", self.url(), "-name", "a", "-not")

    def test_what_is_newer(self):
        os.utime(self.write(self.at("mark")), (1000, 1000))
        self.assertNotIn("a/one.txt", self.found("-newer", self.at("mark"), "-type", "f"))
        os.utime(self.at("mark"), (999, 999))
        self.assertIn("a/one.txt", self.found("-newer", self.at("mark"), "-type", "f"))
        self.assertIn("a/one.txt", self.found("-newermt", "@999"))
        self.assertNotIn("a/one.txt", self.found("-newermt", "1970-01-01T00:16:40Z"))

    def test_with_an_empty_option_finds_nothing_or_says_what_is_wrong(self):
        for glob in ("-name", "-iname", "-path"):
            self.assertEqual(self.found(glob, ""), [], glob)
        for option in ("-size", "-newer", "-newermt"):
            self.bad(2, f"-{option} ''", "find", self.url(), option, "")

    def test_for_other_programs(self):
        self.write(self.there("a\nb"))
        raw = self.good("find", self.url(), "-print0", "-name", "a*b")
        self.assertEqual(raw, f"{self.top}/a\nb\0")
        (found,) = json.loads(self.good("find", self.url(), "--json", "-name", "one.txt"))
        self.assertEqual((found["path"], found["name"], found["size"]), (f"{self.top}/a/one.txt", "one.txt", 10_000))
        self.assertEqual(found["fileid"], str(os.stat(self.there("a", "one.txt")).st_ino))

    def test_says_what_is_wrong(self):
        self.bad(2, "--size '5X' is no size", "find", self.url(), "-size", "5X")
        self.bad(2, "is no date", "find", self.url(), "-newermt", "yesterday")
        self.bad(2, "no such file on this machine", "find", self.url(), "-newer", self.at("missing"))
        self.bad(1, "no such file or directory", "find", self.url("missing"))
        for types in ("x", "f,", ",f", "fd", "f,,d", ""):
            self.bad(2, f"--type '{types}': write f, d", "find", self.url(), "-type", types)
        for option in ("mtime", "mmin"):
            for age in ("", "+", "x", "1.5", "1d", "--1", "99999999999"):
                self.bad(2, f"--{option} '{age}' is no number", "find", self.url(), f"-{option}", age)
        self.bad(2, "there is no such user on this machine", "find", self.url(), "-user", "nobody at all")

    @unittest.skipIf(os.geteuid() != 0, "root may read everything")
    def test_goes_on_behind_a_directory_that_cannot_be_read(self):
        os.chmod(self.there(), 0o755)
        for path in (self.work, self.served):
            os.chmod(path, 0o755)
        os.chmod(self.there("a"), 0o700)
        result = stag("find", self.url() + "&uid=1234&gid=1234")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, rf"^stag find: '{self.top}/a': .*permission denied.*\n$")
        self.assertIn(f"{self.top}/empty\n", result.stdout)


@unittest.skipIf(os.geteuid() != 0, "root may look at everything")
class Unseen(Tree):
    """What is in a folder that may be read, and not searched."""

    def setUp(self):
        super().setUp()
        for path in (self.work, self.served, self.there()):
            os.chmod(path, 0o755)
        os.chmod(self.there("a"), 0o744)

    def listed(self, *options):
        """What `stag ls` prints, by both versions."""
        results = [stag("ls", *options, url + "&uid=1234&gid=1234") for url in self.both("a")]
        for result in results:
            self.assertEqual(result.returncode, 1, result.stdout)
            for name in ("deep", "link", "one.txt"):
                self.assertRegex(result.stderr, rf"stag ls: '{self.top}/a/{name}': .*permission denied")
        return [result.stdout for result in results]

    def test_is_listed_by_its_name_and_told(self):
        for said in self.listed("--json"):
            self.assertEqual([set(each) for each in json.loads(said)], 3 * [{"name", "url"}])
            self.assertEqual([each["name"] for each in json.loads(said)], ["deep", "link", "one.txt"])
        for said in self.listed("-l"):
            self.assertRegex(said, r"^\?{10} [? ]+ deep\n")
        for options in (["-R"], ["-S"], ["-t"]):
            for said in self.listed(*options):
                self.assertEqual(set(said.splitlines()) - {f"{self.top}/a:"}, {"deep", "link", "one.txt"})

    def test_is_named_where_it_is_a_folder(self):
        os.chmod(self.there("a"), 0o755)
        os.chmod(self.there("a", "deep"), 0o700)
        for url in self.both():
            user = url + "&uid=1234&gid=1234"
            result = stag("ls", "-R", user)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, rf"^stag ls: '{self.top}/a/deep': cannot list the directory: permission denied.*\n$")
            result = stag("ls", user, user.replace("?", "/a/deep?"))
            self.assertRegex(result.stderr, rf"^stag ls: '{self.top}/a/deep': cannot list the directory: permission denied.*\n$")


class Du(Tree):
    def used(self, *parts):
        return sum(
            os.lstat(path).st_blocks * 512
            for folder, directories, files in os.walk(self.there(*parts))
            for path in [folder, *(os.path.join(folder, name) for name in files)]
        )

    def test_counts_as_du_does(self):
        for url in self.both():
            lines = [line.split("\t") for line in self.good("du", url).splitlines()]
            sizes = {path.removeprefix(self.top): int(size) for size, path in lines}
            self.assertEqual(list(sizes), ["/a/deep/down", "/a/deep", "/a", "/empty", ""])
            self.assertEqual(sizes[""], self.used() // 1024)
            self.assertEqual(sizes["/a/deep"], self.used("a", "deep") // 1024)

    def test_sums_up_and_counts_a_file_once(self):
        os.link(self.there("a", "deep", "two.TXT"), self.there("empty", "again"))
        self.assertEqual(self.good("du", "-s", self.url()), f"{self.used() // 1024 - (os.stat(self.there('empty', 'again')).st_blocks // 2)}\t{self.top}\n")
        self.assertRegex(self.good("du", "-sh", self.url()), r"^2\.9M\t")
        self.assertEqual(self.good("du", "-s", "-b", self.url()), f"3010008\t{self.top}\n")
        self.assertEqual(len(self.good("du", "--max-depth", "1", self.url()).splitlines()), 3)
        self.assertEqual(len(self.good("du", "-a", self.url()).splitlines()), 10)
        (found,) = json.loads(self.good("du", "-s", "--json", self.url("a", "deep", "down")))
        self.assertEqual(found["used"], self.used("a", "deep", "down"))
        self.assertTrue(self.good("du", self.url("a", "one.txt")).endswith("a/one.txt\n"))


    def test_in_a_readable_form_is_what_sort_h_orders(self):
        for name, size in (("small", 12_000), ("middle", 500_000), ("large", 9_000_000)):
            self.write(self.there("empty", name), os.urandom(size))
        self.write(self.there("empty", "none"))
        for url in self.both():
            ordered = {
                options: [line.split("\t")[1] for line in self.sorted(self.good("du", "-a", *options, url), sort)]
                for options, sort in (((), "-n"), (("-h",), "-h"), (("-b",), "-n"), (("-b", "-h"), "-h"))
            }
            self.assertEqual(ordered[("-h",)], ordered[()])
            self.assertEqual(ordered[("-b", "-h")], ordered[("-b",)])
        own = subprocess.run(["du", "-ah", "."], cwd=self.there("empty"), stdout=subprocess.PIPE, text=True, check=True).stdout
        theirs = dict(reversed(line.split("\t.")) for line in own.splitlines())
        ours = dict(reversed(line.split("\t" + self.top + "/empty")) for line in self.good("du", "-ah", self.url("empty")).splitlines())
        self.assertEqual(ours, theirs)

    def sorted(self, text, option):
        """As sort(1) does; of lines of the same size, those that were first remain so."""
        return subprocess.run(["sort", "-s", option], input=text, stdout=subprocess.PIPE, text=True, check=True, env={"LC_ALL": "C"}).stdout.splitlines()


class Draw(Tree):
    def test_draws_what_is_there(self):
        for url in self.both("a"):
            self.assertEqual(
                self.good("tree", url),
                f"{self.top}/a\n"
                "├── deep\n"
                "│   ├── down\n"
                "│   └── two.TXT\n"
                "├── link -> one.txt\n"
                "└── one.txt\n"
                "\n2 directories, 3 files\n",
            )

    def test_draws_more_or_less(self):
        self.assertIn("│   └── .hidden\n", self.good("tree", "-a", self.url("a", "deep")))
        self.assertEqual(self.good("tree", "-L", "1", "-d", self.url()), f"{self.top}\n├── a\n└── empty\n\n2 directories, 0 files\n")
        paths = [entry["path"] for entry in json.loads(self.good("tree", "--json", self.url("a", "deep")))]
        self.assertEqual(paths, [f"{self.top}/a/deep", f"{self.top}/a/deep/down", f"{self.top}/a/deep/two.TXT"])


class Ls(Tree):
    def test_lists_all_that_is_below(self):
        self.assertEqual(
            self.good("ls", "-R", self.url("a")),
            f"{self.top}/a:\ndeep\nlink\none.txt\n\n{self.top}/a/deep:\ndown\ntwo.TXT\n\n{self.top}/a/deep/down:\n",
        )
        entries = json.loads(self.good("ls", "-R", "--json", self.url("a")))
        place = self.url("a").split("?")[0]
        self.assertEqual([(entry["url"], entry["name"]) for entry in entries][3:], [(f"{place}/deep", "down"), (f"{place}/deep", "two.TXT")])

    def test_sorts_by_time_and_size_and_in_reverse(self):
        for index, name in enumerate("xyz"):
            os.utime(self.write(self.there("empty", name), b"1" * (100 * ((index + 1) % 3))), (5000 - index, 5000 - index))
        listed = {options: self.good("ls", *options, self.url("empty")).split() for options in (("-t",), ("-t", "-r"), ("-S",), ("-r",))}
        self.assertEqual(listed, {("-t",): ["x", "y", "z"], ("-t", "-r"): ["z", "y", "x"], ("-S",): ["y", "x", "z"], ("-r",): ["z", "y", "x"]})

    def test_lists_exports_where_no_path_is_given(self):
        for url in (self.server.url("/"), self.server.tcp("/"), self.server.tcp(""), self.server.tcp("/") + "&version=4"):
            self.assertEqual([line.lstrip("/") for line in self.good("ls", url).splitlines()], ["files", "memory"])
        self.assertRegex(self.good("ls", "-l", self.server.url("/")), r"^/files +\*\n/memory +\*\n$")
        exports = json.loads(self.good("ls", "--json", self.server.url("/")))
        self.assertEqual([(each["name"], each["type"]) for each in exports], [("/files", "export"), ("/memory", "export")])

    def test_says_so_where_it_lists_the_root_of_version_4_instead_of_exports(self):
        result = stag("ls", self.server.url("/", mount_port=1))
        self.assertEqual((result.returncode, result.stdout), (0, "files\nmemory\n"))
        self.assertRegex(result.stderr, r"^stag ls: 127\.0\.0\.1 does not tell by MOUNT what it exports; [^\n]*root directory of its version 4[^\n]*\n$")
        self.assertEqual(stag("ls", self.server.url("/", mount_port=1) + "&version=4").stderr, "")


class Change(Tree):
    def mode(self, *parts):
        return stat.S_IMODE(os.lstat(self.there(*parts)).st_mode)

    def test_of_modes_goes_down_but_through_no_links(self):
        os.symlink("/etc/passwd", self.there("a", "out"))
        os.chmod(self.there("a", "one.txt"), 0o640)
        self.good("chmod", "-R", "u=rwX,go=", self.url())
        self.assertEqual((self.mode("a"), self.mode("a", "deep", "down"), self.mode("a", "one.txt")), (0o700, 0o700, 0o600))
        self.good("chmod", "-R", "go+rX", self.both()[1])
        self.assertEqual((self.mode("a"), self.mode("a", "one.txt"), self.mode("a", "deep", "down", ".hidden")), (0o755, 0o644, 0o644))
        self.good("chmod", "755", self.url("a", "link"))
        self.assertEqual(self.mode("a", "one.txt"), 0o755)

    def test_of_modes_that_names_nobody_is_within_the_umask(self):
        for umask, mode, change, expected in (
            (0o022, 0o444, "+w", 0o644), (0o022, 0o666, "-w", 0o466), (0o027, 0o000, "=rwX", 0o640), (0o027, 0o100, "+X", 0o110),
            (0o077, 0o000, "a+rw", 0o666), (0o077, 0o000, "go+r", 0o044), (0o077, 0o000, "666", 0o666), (0o077, 0o777, "=", 0),
        ):
            os.chmod(self.there("a", "one.txt"), mode)
            self.good("chmod", "--", change, self.url("a", "one.txt"), umask=umask)
            self.assertEqual(self.mode("a", "one.txt"), expected, (oct(umask), oct(mode), change))

    def test_of_modes_leaves_setuid_and_setgid_as_chmod_does(self):
        if "GNU" not in subprocess.run(["chmod", "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout:
            self.skipTest("chmod(1) is another one")
        changes = ["755", "0755", "00755", "2755", "4755", "6755", "02755", "1755", "u=rwx", "g=rx", "ug=rwx", "a=rx", "=rx", "u=rwxs", "g=s", "g=u", "u-s", "g-s",
                   "-s", "+s", "=s", "a=", "u=rwx,g-s", "o=t", "g=rx,u=s"]
        ours, theirs = self.there("ours"), self.at("theirs")
        for make in (os.mkdir, self.write):
            make(ours)
            make(theirs)
            for before in (0o0750, 0o2750, 0o4750, 0o7750):
                for change in changes:
                    os.chmod(ours, before)
                    os.chmod(theirs, before)
                    subprocess.run(["chmod", "--", change, theirs], check=True, stderr=subprocess.DEVNULL)
                    self.good("chmod", "--", change, self.url("ours"))
                    self.assertEqual(oct(self.mode("ours")), oct(stat.S_IMODE(os.stat(theirs).st_mode)), (make, oct(before), change))
            for path in (ours, theirs):
                os.rmdir(path) if make == os.mkdir else os.remove(path)

    def test_of_times_makes_files_within_the_umask(self):
        for umask, expected in ((0o022, 0o644), (0o077, 0o600), (0, 0o666)):
            self.good("touch", self.url(f"new{umask}"), umask=umask)
            self.assertEqual(self.mode(f"new{umask}"), expected)

    @unittest.skipIf(os.geteuid() != 0, "is about another user than root")
    def test_of_modes_opens_before_it_reads_and_closes_behind(self):
        for path in (self.work, self.served, self.there()):
            os.chmod(path, 0o777)
        for folder, directories, files in os.walk(self.there("a")):
            for name in [folder, *(os.path.join(folder, each) for each in files)]:
                os.lchown(name, 1234, 1234)
        url = self.url("a") + "&uid=1234&gid=1234"
        self.good("chmod", "-R", "a-rwx", url)
        self.assertEqual((self.mode("a"), self.mode("a", "deep", "down")), (0, 0))
        self.good("chmod", "-R", "u+rwX", url)
        self.assertEqual((self.mode("a"), self.mode("a", "deep", "down"), self.mode("a", "one.txt")), (0o700, 0o700, 0o600))

    @unittest.skipIf(os.geteuid() != 0, "only root gives files away")
    def test_of_owners(self):
        def owner(*parts):
            known = os.lstat(self.there(*parts))
            return known.st_uid, known.st_gid

        self.good("chown", "1234:2345", self.url("a", "one.txt"))
        self.assertEqual(owner("a", "one.txt"), (1234, 2345))
        self.good("chown", ":3456", self.url("a", "one.txt"))
        self.assertEqual(owner("a", "one.txt"), (1234, 3456))
        self.good("chown", "root", self.url("a", "one.txt"))
        self.assertEqual(owner("a", "one.txt"), (0, 3456))
        self.good("chown", "--no-dereference", "77", self.url("a", "link"))
        self.assertEqual((owner("a", "link")[0], owner("a", "one.txt")[0]), (77, 0))
        self.good("chown", "-R", "1234:1234", self.both()[1])
        for parts in ((), ("a", "deep", "down", ".hidden"), ("a", "link"), ("empty",)):
            self.assertEqual(owner(*parts), (1234, 1234))
        self.bad(2, "there is no user 'no-such-user'", "chown", "no-such-user", self.url())
        self.bad(2, "there is no group 'no-such-group'", "chown", ":no-such-group", self.url())
        self.bad(2, "which group", "chown", "4711:", self.url())

    @unittest.skipIf(os.geteuid() != 0, "only root gives files away")
    def test_of_owners_of_a_link_that_is_named_is_as_chown_has_it(self):
        for slash in ("", "/"):
            found = []
            for top in (self.there("ours"), self.at("theirs")):
                os.makedirs(os.path.join(top, "real"))
                self.write(os.path.join(top, "real", "f"))
                os.symlink("real", os.path.join(top, "link"))
                if top == self.there("ours"):
                    self.good("chown", "-R", "1234", self.url("ours", "link" + slash))
                else:
                    subprocess.run(["chown", "-R", "1234", os.path.join(top, "link" + slash)], check=True)
                found.append([os.lstat(os.path.join(top, name)).st_uid for name in ("link", "real", "real/f")])
                shutil.rmtree(top)
            self.assertEqual(found[0], found[1], slash)

    def test_leaves_alone_what_is_moved_away_meanwhile(self):
        """The server finds it by its handle wherever it is."""
        for i in range(500):
            self.write(self.there("a", f"f{i:03}"))
        self.write(self.there("a", "z"))
        os.chmod(self.there("a", "z"), 0o644)
        proxy = Proxy(self.server.rdma_port, "up", 40_000)
        self.addCleanup(proxy.cut)
        change = subprocess.Popen([harness.STAG, "chmod", "-R", "go-r", self.url("a", port=proxy.port)], stderr=subprocess.PIPE, text=True)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        os.rename(self.there("a", "z"), self.there("z"))
        proxy.released.set()
        errors = change.communicate(timeout=harness.PATIENCE)[1]
        self.assertEqual((change.returncode, errors.count("\n")), (1, 1), errors)
        self.assertRegex(errors, "/a/z': .*no such file or directory")
        self.assertEqual((self.mode("z"), self.mode("a", "f499")), (0o644, self.mode("a", "f000") & ~0o044))

    def test_of_times(self):
        self.good("touch", "-d", "2024-02-29T12:30:00.5Z", self.url("a", "one.txt"))
        known = os.stat(self.there("a", "one.txt"))
        self.assertEqual((known.st_mtime, known.st_atime), (1709209800.5, 1709209800.5))
        self.good("touch", "-m", "-d", "@1000", self.url("a", "one.txt"))
        known = os.stat(self.there("a", "one.txt"))
        self.assertEqual((known.st_mtime, known.st_atime), (1000, 1709209800.5))
        self.bad(2, "is no date", "touch", "-d", "soon", self.url("x"))
        self.bad(2, "'' is no date", "touch", "-d", "", self.url("x"))
        self.assertFalse(os.path.exists(self.there("x")))

    def test_as_another_user(self):
        if os.geteuid() == 0:
            for path in (self.work, self.served):
                os.chmod(path, 0o755)
            os.chmod(self.there("empty"), 0o777)
            self.good("touch", self.url("empty", "f") + "&uid=1234&gid=4321")
            known = os.stat(self.there("empty", "f"))
            self.assertEqual((known.st_uid, known.st_gid), (1234, 4321))
        self.bad(2, "is no number of a user or group", "ls", self.url() + "&uid=anna")
        self.bad(2, "knows who the user is", "ls", self.url() + "&uid=5&sec=krb5")


class Removal(Tree):
    @unittest.skipUnless(os.geteuid() == 0, "asks the server as several users")
    def test_goes_on_behind_what_cannot_be_removed_and_names_it(self):
        for path in (self.work, self.served, self.there()):
            os.chmod(path, 0o755)
        os.mkdir(self.there("top"))
        for folder in "abcd":
            os.makedirs(self.there("top", folder, "deep"))
            self.write(self.there("top", folder, "deep", "f"))
            self.write(self.there("top", folder, "g"))
        for folder, _, _ in os.walk(self.there("top")):
            os.chown(folder, 1234, 1234)
        os.chown(self.there("top", "b", "deep"), 0, 0)
        os.chmod(self.there("top", "d"), 0)
        os.chown(self.there("top", "d"), 0, 0)
        result = stag("rm", "-r", self.url("top") + "&uid=1234&gid=1234")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        lines = sorted(result.stderr.splitlines())
        self.assertEqual(len(lines), 2, lines)
        self.assertRegex(lines[0], rf"^stag rm: '{self.top}/top/b/deep/f': .*permission denied")
        self.assertRegex(lines[1], rf"^stag rm: '{self.top}/top/d': .*permission denied")
        left = [os.path.relpath(path, self.there("top")) for path, _, _ in os.walk(self.there("top"))]
        self.assertEqual(sorted(left), [".", "b", "b/deep", "d", "d/deep"])
        self.assertEqual(os.listdir(self.there("top", "b")), ["deep"])

    def test_ends_where_the_server_is_gone_and_says_so_once(self):
        for index in range(40):
            os.mkdir(self.there("empty", f"d{index}"))
            self.write(self.there("empty", f"f{index}"))
        proxy = harness.Proxy(self.server.tcp_port, "up", 4000)
        self.addCleanup(proxy.cut)
        url = self.server.tcp(f"{self.top}/empty").replace(f":{self.server.tcp_port}/", f":{proxy.port}/") + "&version=3"
        result = stag("rm", "-r", "--timeout", "5", url)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, rf"^stag rm: '{self.top}/empty[^']*': [^\n]*\n$")

    def test_that_is_interrupted_says_so_once(self):
        for index in range(40):
            self.write(self.there("empty", f"f{index}"))
        proxy = harness.Proxy(self.server.tcp_port, "up", 4000)
        self.addCleanup(proxy.cut)
        url = self.server.tcp(f"{self.top}/empty").replace(f":{self.server.tcp_port}/", f":{proxy.port}/") + "&version=3"
        process = subprocess.Popen([harness.STAG, "rm", "-r", url], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=harness.PATIENCE)[1]
        self.assertEqual((process.returncode, errors), (130, "stag rm: interrupted\n"))

    def test_takes_R_as_well(self):
        self.good("rm", "-R", self.url("a"))
        self.assertEqual(os.listdir(self.there()), ["empty"])


class Readlink(Tree):
    def test_prints_where_links_lead(self):
        os.symlink("to\nboth", self.there("odd"))
        for url in self.both("a", "link"):
            self.assertEqual(self.good("readlink", url), "one.txt\n")
        self.assertEqual(self.good("readlink", "-n", self.url("a", "link")), "one.txt")
        self.assertEqual(self.good("readlink", "-z", self.url("odd"), self.url("a", "link")), "to\nboth\0one.txt\0")
        self.bad(1, "is no symbolic link", "readlink", self.url("a", "one.txt"))


def snapshot(folder):
    found = {}
    for path, directories, files in os.walk(folder):
        for name in directories + files:
            full = os.path.join(path, name)
            known = os.lstat(full)
            content = os.readlink(full) if os.path.islink(full) else None
            if stat.S_ISREG(known.st_mode):
                with open(full, "rb") as file:
                    content = file.read()
            found[os.path.relpath(full, folder)] = (stat.S_IFMT(known.st_mode), content)
    return found


class Sync(Tree):
    def test_makes_a_copy_and_leaves_what_is_the_same(self):
        for version in ("", "&version=4.2"):
            url, back, away = self.url("a") + version, self.at(f"back{version}"), self.url(f"copy{version[-1:]}") + version
            first = json.loads(self.good("sync", "--json", url, back))
            self.assertEqual((first["files"], first["symlinks"], first["skipped"]), (3, 1, 0))
            self.assertEqual(snapshot(back), snapshot(self.there("a")))
            self.assertEqual(os.stat(os.path.join(back, "one.txt")).st_mtime, 1000)
            again = json.loads(self.good("sync", "--json", url, back))
            self.assertEqual((again["files"], again["skipped"], again["bytes"]), (0, 4, 0))
            self.good("sync", back, away)
            again = json.loads(self.good("sync", "--json", back, away))
            self.assertEqual((again["files"], again["symlinks"], again["bytes"]), (0, 0, 0))

    def test_copies_what_has_changed(self):
        self.good("sync", self.url("a"), self.at("copy"))
        self.write(self.at("copy", "one.txt"), b"changed here")
        os.unlink(self.at("copy", "link"))
        os.symlink("elsewhere", self.at("copy", "link"))
        os.chmod(self.there("a", "deep", "two.TXT"), 0o604)
        result = json.loads(self.good("sync", "--json", self.url("a"), self.at("copy")))
        self.assertEqual((result["files"], result["symlinks"]), (1, 1))
        self.assertEqual(snapshot(self.at("copy")), snapshot(self.there("a")))
        self.assertEqual(stat.S_IMODE(os.stat(self.at("copy", "deep", "two.TXT")).st_mode), 0o604)

    def test_compares_contents_with_checksum(self):
        self.good("sync", self.url("a"), self.at("copy"))
        os.utime(self.write(self.at("copy", "one.txt"), b"9" * 10_000), (1000, 1000))
        self.good("sync", self.url("a"), self.at("copy"))
        self.assertEqual(self.read(self.at("copy", "one.txt"))[:1], b"9")
        self.good("sync", "--checksum", self.url("a"), self.at("copy"))
        self.assertEqual(self.read(self.at("copy", "one.txt"))[:1], b"1")

    def test_removes_only_with_delete_and_what_is_not_excluded(self):
        for back, below, there, here in ((self.at("copy"), self.at, self.url("a"), self.there("a")), (self.url("copy"), self.there, self.at("copy"), self.at("copy"))):
            self.good("sync", there, back)
            os.makedirs(below("copy", "more", "and", "more"))
            self.write(below("copy", "more", "and", "f"))
            self.write(below("copy", "deep", "extra"))
            self.write(below("copy", "kept.o"))
            self.good("sync", there, back)
            self.assertTrue(os.path.exists(below("copy", "deep", "extra")))
            told = self.good("sync", "--delete", "--dry-run", "--exclude", "*.o", there, back).splitlines()
            self.assertEqual(sum(line.startswith("removed '") for line in told), 5, told)
            self.assertTrue(os.path.exists(below("copy", "deep", "extra")))
            result = json.loads(self.good("sync", "--delete", "--json", "--exclude", "*.o", there, back))
            self.assertEqual(result["removed"], 5)
            os.unlink(below("copy", "kept.o"))
            self.assertEqual(snapshot(below("copy")), snapshot(here))

    def test_keeps_what_is_excluded_with_delete_below_the_source_that_is_here(self):
        os.makedirs(self.at("cache"))
        self.write(self.at("f"))
        os.makedirs(self.there("copy", "cache"))
        for name in ("keep", "go"):
            self.write(self.there("copy", "cache", name))
        for source in (".", "./"):
            self.good("sync", "--delete", "--exclude", "cache/keep", source, self.url("copy"), cwd=self.at())
            self.assertEqual(snapshot(self.there("copy")).keys(), {"f", "cache", "cache/keep"})

    def test_keeps_what_is_excluded_with_delete_below_a_directory_that_is_gone(self):
        self.good("sync", self.url("a"), self.at("copy"))
        os.makedirs(self.at("copy", "gone", "below"))
        os.makedirs(self.at("copy", "gone", "empty"))
        for name in ("a.log", "b.txt", "below/c.log", "below/d.txt"):
            self.write(self.at("copy", "gone", name))
        told = self.good("sync", "--delete", "--dry-run", "--exclude", "*.log", self.url("a"), self.at("copy"))
        self.assertEqual(told.count("removed '"), 3)
        self.good("sync", "--delete", "--exclude", "*.log", self.url("a"), self.at("copy"))
        expected = {"gone", "gone/a.log", "gone/below", "gone/below/c.log"}
        self.assertEqual(snapshot(self.at("copy")).keys() - snapshot(self.there("a")).keys(), expected)
        os.unlink(self.at("copy", "one.txt"))
        os.rename(self.at("copy", "gone"), self.at("copy", "one.txt"))
        self.bad(1, "what --exclude matches is in it", "sync", "--delete", "--exclude", "*.log", self.url("a"), self.at("copy"))
        self.assertTrue(os.path.exists(self.at("copy", "one.txt", "below", "c.log")))

    def test_replaces_what_is_of_another_kind_with_delete(self):
        self.good("sync", self.url("a"), self.at("copy"))
        os.unlink(self.at("copy", "one.txt"))
        os.makedirs(self.at("copy", "one.txt", "deep"))
        subprocess.run(["rm", "-r", self.at("copy", "deep")], check=True)
        self.write(self.at("copy", "deep"))
        self.assertEqual(stag("sync", self.url("a"), self.at("copy")).returncode, 1)
        self.good("sync", "--delete", self.url("a"), self.at("copy"))
        self.assertEqual(snapshot(self.at("copy")), snapshot(self.there("a")))

    def test_changes_nothing_in_a_dry_run(self):
        told = self.good("sync", "-n", self.url("a"), self.at("copy"))
        self.assertEqual(len(told.splitlines()), 7)
        self.assertIn("/a/deep/two.TXT' -> '", told)
        self.assertEqual(os.listdir(self.at()), [])

    def test_tells_of_directories_only_where_something_of_them_changes(self):
        for there, here, below in ((self.url("a"), self.at("copy"), self.at), (self.at("copy"), self.url("copy"), self.there)):
            self.good("sync", there, here)
            self.assertEqual(self.good("sync", "-n", there, here), "")
            self.assertEqual(self.good("sync", "-v", there, here), "")
            os.chmod(below("copy", "deep"), 0o700)
            os.utime(below("copy"), (1, 1))
            told = self.good("sync", "-n", there, here).splitlines()
            self.assertEqual(len(told), 2, told)
            self.assertEqual(self.good("sync", "-v", there, here).splitlines(), told)
            self.assertEqual(self.good("sync", "-n", there, here), "")

    def test_goes_through_a_link_that_the_user_named(self):
        os.mkdir(self.at("real"))
        os.symlink("real", self.at("link"))
        for path in (self.at("link"), self.at("link") + "/"):
            self.good("sync", self.url("a"), path)
        self.assertEqual(snapshot(self.at("real")), snapshot(self.there("a")))
        self.assertTrue(os.path.islink(self.at("link")))

    def test_goes_through_a_link_to_its_source(self):
        self.good("sync", self.url("a"), self.at("a"))
        for link, file, below, target in ((self.at, self.at("a", "one.txt"), self.there, self.url), (self.there, self.url("a", "one.txt"), self.at, self.at)):
            os.symlink("a", link("to a"))
            source = link("to a") if link == self.at else self.url("to a")
            for end in ("", "/"):
                self.good("sync", source.replace("to a", "to a" + end), target("copy"))
                self.assertEqual(snapshot(below("copy")), snapshot(self.there("a")))
                self.assertFalse(os.path.islink(below("copy")))
            self.bad(1, "it is no directory; copy it with 'stag cp'", "sync", file, target("file"))
            self.assertFalse(os.path.exists(below("file")))

    def test_tells_in_a_dry_run_of_names_of_one_file_in_new_directories(self):
        os.makedirs(self.at("tree", "new"))
        os.link(self.write(self.at("tree", "new", "a"), b"content"), self.at("tree", "new", "b"))
        os.link(self.at("tree", "new", "a"), self.at("tree", "c"))
        for source, target, below in ((self.at("tree"), self.url("copy"), self.there), (self.url("copy"), self.at("back"), self.at)):
            told = self.good("sync", "-n", source, target).splitlines()
            self.assertEqual(sorted(line.rsplit("/")[-1] for line in told if "new" in line or "/c'" in line), ["a'", "b'", "c'", "new'"])
            self.assertEqual(sorted(self.good("sync", "-v", source, target).splitlines()), sorted(told))
            self.assertEqual(self.good("sync", "-n", source, target), "")
            # A file stands where the directory is to be.
            shutil.rmtree(below(target.split("?")[0].rsplit("/")[-1], "new"))
            self.write(below(target.split("?")[0].rsplit("/")[-1], "new"))
            told = self.good("sync", "-n", "--delete", source, target).splitlines()
            self.assertEqual(sorted(self.good("sync", "-v", "--delete", source, target).splitlines()), sorted(told))

    def test_within_a_server_and_with_mistakes(self):
        self.good("sync", self.url("a"), self.server.tcp(f"/files/{self.name}/copy") + "&version=4.2")
        self.assertEqual(snapshot(self.there("copy")), snapshot(self.there("a")))
        self.bad(2, "neither", "sync", self.at(), self.at("x"))
        self.bad(2, "standard input", "sync", "-", self.url())
        self.bad(1, "into itself", "sync", self.url("a"), self.url("a", "deep"))


if __name__ == "__main__":
    harness.main()
