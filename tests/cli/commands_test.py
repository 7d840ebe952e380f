"""Every command that looks at or changes files, with good and bad input."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
import tty
import unittest

import harness
from harness import Case, stag
from name_server import PrivateHosts


class Ls(Case):
    def test_lists_names_in_order_and_hides_dots(self):
        for name in ("b", "a", ".hidden"):
            self.write(self.there(name))
        self.assertEqual(self.good("ls", self.url()), "a\nb\n")
        self.assertEqual(self.good("ls", "-a", self.url()), ".hidden\na\nb\n")

    def test_lists_thousands(self):
        names = sorted(f"name {i:05}" for i in range(3000))
        for name in names:
            self.write(self.there(name))
        self.assertEqual(self.good("ls", self.url()).splitlines(), names)

    def test_long_shows_type_mode_size(self):
        self.write(self.there("file"), b"12345")
        os.chmod(self.there("file"), 0o640)
        os.symlink("file", self.there("link"))
        lines = self.good("ls", "-l", self.url()).splitlines()
        self.assertRegex(lines[0], r"^-rw-r----- +1 .* 5 \d{4}-\d\d-\d\d \d\d:\d\d:\d\d file$")
        self.assertRegex(lines[1], r"^l.* link -> file$")

    def test_long_shows_links_that_lead_nowhere_or_into_themselves(self):
        os.symlink("missing", self.there("dangling"))
        os.symlink("circle", self.there("circle"))
        for name, target in (("dangling", "missing"), ("circle", "circle")):
            self.assertRegex(self.good("ls", "-l", self.url(name)), rf"^l.*/{name} -> {target}\n$")
            self.assertTrue(self.good("ls", self.url(name)).endswith(f"/{name}\n"))
            (entry,) = json.loads(self.good("ls", "--json", self.url(name)))
            self.assertEqual((entry["type"], entry["target"]), ("symlink", target))
        self.assertEqual([line.split(" -> ")[1] for line in self.good("ls", "-l", self.url()).splitlines()], ["circle", "missing"])
        self.bad(1, "no such file or directory", "ls", self.url("nothing"))

    def test_of_a_link_lists_where_it_leads_and_with_long_the_link(self):
        os.mkdir(self.there("folder"))
        self.write(self.there("folder", "file"))
        os.symlink("folder", self.there("link"))
        self.assertEqual(self.good("ls", self.url("link")), "file\n")
        self.assertRegex(self.good("ls", "-l", self.url("link")), r"^l.*/link -> folder\n$")
        self.assertRegex(self.good("ls", "-l", self.url("link/")), r"^-.* file\n$")

    def test_long_shows_sizes_as_people_write_them_with_h(self):
        self.write(self.there("file"), bytes(4096))
        self.assertRegex(self.good("ls", "-lh", self.url()), r"^-.* 4\.0K .* file\n$")
        self.assertRegex(self.good("ls", "-l", self.url()), r"^-.* 4096 .* file\n$")
        self.assertIn("4.0 GiB", self.good("df", "-h", self.server.url("/memory")))
        self.assertIn("Usage:", self.good("cp", "-h"))

    def test_of_thousands_of_links_shows_where_all_of_them_lead(self):
        for i in range(1000):
            os.symlink(f"to {i}", self.there(f"link {i:04}"))
        lines = self.good("ls", "-l", self.url()).splitlines()
        self.assertEqual([line.split(" link ")[1] for line in lines], [f"{i:04} -> to {i}" for i in range(1000)])

    def test_json_holds_every_attribute(self):
        self.write(self.there("file"), b"12345")
        (entry,) = json.loads(self.good("ls", "--json", self.url()))
        known = os.stat(self.there("file"))
        self.assertEqual(
            (entry["name"], entry["type"], entry["size"], entry["mode"], entry["uid"], entry["fileid"], entry["links"]),
            ("file", "file", 5, stat.S_IMODE(known.st_mode), known.st_uid, str(known.st_ino), 1),
        )
        self.assertAlmostEqual(entry["mtime"], known.st_mtime, places=5)
        self.assertEqual(entry["mtime_exact"], f"{known.st_mtime_ns // 10**9}.{known.st_mtime_ns % 10**9:09}")

    def test_json_tells_several_directories_apart(self):
        for folder in ("a", "b"):
            os.mkdir(self.there(folder))
            self.write(self.there(folder, "same"))
        entries = json.loads(self.good("ls", "--json", self.url("a"), self.url("b")))
        self.assertEqual([(entry["name"], entry["url"]) for entry in entries], [("same", self.url(folder).split("?")[0]) for folder in "ab"])

    def test_of_a_file_is_that_file(self):
        self.write(self.there("file"))
        self.assertTrue(self.good("ls", self.url("file")).endswith("/file\n"))

    def test_works_over_tcp(self):
        self.write(self.there("file"))
        self.assertEqual(self.good("ls", self.server.tcp(f"/files/{self.name}")), "file\n")

    def test_goes_on_after_one_that_fails(self):
        self.write(self.there("file"))
        result = stag("ls", self.url("missing"), self.url())
        self.assertEqual(result.returncode, 1)
        self.assertIn("file", result.stdout)


class Mistakes(Case):
    def test_of_the_command_line_exit_with_2(self):
        for arguments in ([], ["bogus"], ["ls"], ["ls", "--bogus", "nfs://h/x"], ["cp", "one"], ["ping", "-c", "x", "nfs://h/x"], ["mv", "nfs://h/x"]):
            result = stag(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn("--help", result.stderr)
            self.assertEqual(result.stdout, "")
        self.assertIn("stag: 'frob' is no command\n", stag("frob").stderr)
        self.assertIn("stag: '--frob' is no option\n", stag("--frob").stderr)

    def test_of_what_looks_like_an_option_say_how_an_argument_is_written(self):
        self.write(self.there("file"))
        os.chmod(self.there("file"), 0o755)
        for arguments in (["chmod", "-x"], ["ls", "--bogus"], ["ls", "-y", self.url()]):
            result = stag(*arguments, self.url("file"))
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"stag {arguments[0]}: '{arguments[1]}' is no option, and none is like it; if it is an argument, write '--' before it\n", result.stderr)
        self.good("chmod", "--", "-x", self.url("file"))
        self.assertEqual(stat.S_IMODE(os.stat(self.there("file")).st_mode), 0o644)

    def test_in_URLs_exit_with_2_and_say_what_is_wrong(self):
        self.bad(2, "write nfs://HOST/EXPORT/PATH", "ls", "http://server/x")
        self.bad(2, "use rdma or tcp", "ls", "nfs://server/x?proto=carrier-pigeon")
        self.bad(2, "no port", "ls", "nfs://server:99999/x")
        self.bad(2, "use version=4", "stat", "nfs://server/x?version=4.3")

    def test_in_sizes_exit_with_2_and_say_how_they_are_written(self):
        result = stag("ping", "-s", "many", self.url())
        self.assertEqual(result.returncode, 2)
        self.assertIn("'many' is no size; write 65536, 64K or 1MiB", result.stderr)
        self.assertIn("2M is not in range [0 - 1M]", stag("ping", "-s", "2M", self.url()).stderr)
        self.good("ping", "-c", "1", "-s", "64K", self.url())
        self.good("ls", self.url() + "&rsize=64K&wsize=1M")

    def test_of_the_port_name_the_address_and_ask_for_the_server(self):
        self.bad(1, "127.0.0.1:1: the peer refused the connection; is the server running", "ls", "nfs://127.0.0.1:1/files")
        self.bad(1, "mountport=", "ls", self.server.url("/files", mount_port=1) + "&version=3")

    def test_of_a_server_that_does_not_answer_ask_for_it(self):
        # Connected by the kernel, and then nobody is there.
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        url = f"nfs://127.0.0.1:{silent.getsockname()[1]}/files?proto=tcp"
        self.bad(1, "is the server running? --timeout N waits longer", "ls", "--timeout", "1", url)

    def test_of_the_export_tell_which_there_are(self):
        self.bad(1, "it exports /files, /memory", "ls", self.server.url("/nothing"))

    def test_of_the_host(self):
        result = stag("ls", "nfs://no-such-host.invalid/files", "--timeout", "5")
        self.assertEqual(result.returncode, 1)
        # The second is what a machine without a name service says.
        self.assertRegex(result.stderr, "no such host; check its name|use a numeric address")

    def test_where_no_rdma_device_is(self):
        if os.path.exists("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
            self.skipTest("this machine has an RDMA device")
        url = self.server.url("/files")
        named = "no RDMA device|rdma-core, which is not installed"
        for command in (["ls"], ["ping"], ["bench", "--milliseconds", "1"]):
            result = stag(*command, url + ("&" if "?" in url else "?") + "fabric=verbs")
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, named)
        result = stag("ls", "--fabric", "verbs", url)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, named)
        result = stag("ls", "--fabric", "auto", url)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, "^stag: connected by software iWARP over TCP: .*(" + named + ")")
        self.assertEqual(stag("stat", "--fabric", "auto", url).stderr.count("connected by"), 1)
        result = stag("devices")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, "^stag devices: .*(" + named + ")")
        result = stag("devices", "--json")
        self.assertEqual(result.returncode, 1)
        found = json.loads(result.stdout)
        self.assertEqual(found["devices"], [])
        self.assertRegex(found["reason"], named)


class Help(Case):
    def test_of_every_command_has_an_example(self):
        listing = stag("--help").stdout.split("Subcommands:")[1].split("URLs:")[0]
        commands = [line.split()[0] for line in listing.splitlines() if line.startswith("  ")]
        wanted = "serve clients status top capture ls stat cat cp sync mkdir rm mv ln touch chmod chown readlink find tree du df mount umount ping info devices conform bench manual completion".split()
        self.assertEqual(sorted(commands), sorted(wanted))
        for command in commands:
            text = self.good(command, "--help")
            self.assertRegex(text, rf"Example:\n  stag {command}[ \n]")

    def test_is_also_what_help_prints(self):
        self.assertEqual(self.good("help"), self.good("--help"))
        self.assertEqual(self.good("help", "ls"), self.good("ls", "--help"))
        self.assertEqual((stag("help", "frob").returncode, stag("help", "frob").stderr.splitlines()[0]), (2, "stag: 'frob' is no command"))

    def test_tells_the_version(self):
        self.assertRegex(self.good("--version"), r"^stag \d+\.\d+\.\d+( \([0-9a-f]{12}(-dirty)?\))?\n$")


class Names(Case):
    def test_mkdir_makes_one_directory_or_the_whole_way(self):
        self.good("mkdir", "-m", "750", self.url("one"))
        self.assertEqual(stat.S_IMODE(os.stat(self.there("one")).st_mode), 0o750)
        self.bad(1, "it exists already", "mkdir", self.url("one"))
        self.bad(1, "no such file or directory; check the path", "mkdir", self.url("two", "three"))
        self.good("mkdir", "-p", self.url("two", "three"))
        self.good("mkdir", "-p", self.url("two", "three"))
        self.assertTrue(os.path.isdir(self.there("two", "three")))
        self.write(self.there("file"))
        self.bad(1, "is no directory", "mkdir", "-p", self.url("file", "x"))
        self.bad(2, "is no mode", "mkdir", "-m", "9", self.url("x"))

    def test_mkdir_heeds_the_umask_and_gives_the_mode_to_the_last_one_only(self):
        def mode(*parts):
            return oct(stat.S_IMODE(os.stat(self.there(*parts)).st_mode))

        self.good("mkdir", self.url("usual"), umask=0o027)
        self.assertEqual(mode("usual"), "0o750")
        self.good("mkdir", "-p", "-m", "500", self.url("way", ".", "down", "last/"), umask=0o327)
        self.assertEqual((mode("way"), mode("way", "down"), mode("way", "down", "last")), ("0o750", "0o750", "0o500"))
        self.good("mkdir", "-m", "go-rx", self.url("private"))
        self.assertEqual(mode("private"), "0o722")
        self.good("mkdir", "-p", "-m", "700", self.url("usual"))
        self.assertEqual(mode("usual"), "0o750")

    def test_rm_removes_files_and_with_r_trees(self):
        self.write(self.there("file"))
        os.makedirs(self.there("tree", "a", "b"))
        for i in range(50):
            self.write(self.there("tree", "a", f"f{i}"))
        os.symlink("/", self.there("tree", "link"))
        self.good("rm", self.url("file"))
        self.bad(1, "/tree' is a directory; remove it with 'stag rm -r'", "rm", self.url("tree"))
        self.good("rm", "-r", self.url("tree"))
        self.assertEqual(os.listdir(self.there()), [])
        self.bad(1, "no such file or directory", "rm", self.url("file"))
        self.good("rm", "-f", self.url("file"))
        self.bad(1, "names the export itself", "rm", "-r", self.server.url("/files"))

    def test_mv_renames_and_moves_into_directories(self):
        self.write(self.there("a"), b"content")
        os.mkdir(self.there("dir"))
        self.good("mv", self.url("a"), self.url("b"))
        self.good("mv", self.url("b"), self.url("dir"))
        self.assertEqual(self.read(self.there("dir", "b")), b"content")
        self.bad(1, "no such file or directory", "mv", self.url("a"), self.url("c"))
        self.bad(2, "stag cp", "mv", self.url("dir", "b"), self.server.url("/memory/b"))

    def test_mv_says_what_is_in_the_way(self):
        os.makedirs(self.there("dir", "in"))
        os.makedirs(self.there("other", "file"))
        self.write(self.there("file"))
        for version in ("", "&version=3"):
            self.bad(1, "'dir' cannot be moved into a subdirectory of itself", "mv", self.url("dir") + version, self.url("dir", "in"))
            self.bad(1, "'file' is there and is no directory", "mv", self.url("dir") + version, self.url("file"))
            self.bad(1, "'file' is there and is a directory", "mv", self.url("file") + version, self.url("other"))

    def test_mv_moves_several_into_a_directory(self):
        for folder in ("a", "b", "dir"):
            os.mkdir(self.there(folder))
        for name in (("one",), ("a", "same"), ("b", "same")):
            self.write(self.there(*name), "/".join(name).encode())
        self.bad(2, "is no directory, and several files cannot become one", "mv", self.url("a"), self.url("b"), self.url("none/"))
        self.bad(2, "is no directory, and several files cannot become one", "mv", self.url("a"), self.url("b"), self.url("one"))
        self.assertEqual(sorted(os.listdir(self.there())), ["a", "b", "dir", "one"])
        sources = [self.url("one"), self.url("missing"), self.url("a", "same"), self.url("b", "same")]
        result = stag("mv", *sources, self.url("dir"))
        self.assertEqual(result.returncode, 1)
        missing, twice = result.stderr.splitlines()
        self.assertIn(f"{sources[1]}: ", missing)
        self.assertIn("no such file or directory", missing)
        self.assertIn(f"{sources[3]}: 'same' was moved to its place before", twice)
        self.assertEqual(sorted(os.listdir(self.there("dir"))), ["one", "same"])
        self.assertEqual(self.read(self.there("dir", "same")), b"a/same")
        self.assertEqual(self.read(self.there("b", "same")), b"b/same")

    def test_mv_of_one_name_of_a_file_to_another_leaves_one(self):
        self.write(self.there("a"), b"content")
        os.mkdir(self.there("dir"))
        os.link(self.there("a"), self.there("b"))
        os.link(self.there("a"), self.there("dir", "a"))
        os.symlink(".", self.there("here"))
        self.good("mv", self.url("a"), self.url("b"))
        self.good("mv", self.url("b"), self.url("here", "b"))
        self.assertEqual(sorted(os.listdir(self.there())), ["b", "dir", "here"])
        self.good("mv", self.url("dir", "a"), self.url("b"))
        self.assertEqual(os.listdir(self.there("dir")), [])
        self.good("mv", self.url("b"), self.url("b"))
        self.assertEqual(self.read(self.there("b")), b"content")

    def test_a_path_with_more_slashes_than_it_needs_names_the_same_files(self):
        os.mkdir(self.there("dir"))
        self.write(self.there("dir", "file"), b"content")
        os.symlink(f"/files/{self.name}/dir", self.there("absolute"))
        for root in ("//files", "/./files", "/files//."):
            for version in ("3", "4.2"):
                at = lambda path: self.server.url(f"{root}/{self.name}/{path}") + f"&version={version}"
                self.assertEqual(self.good("cat", at("absolute/file")), "content", (root, version))
                self.good("mv", at("dir/file"), self.url("moved"))
                self.good("mv", self.url("moved"), at("dir/file"))

    def test_ln_makes_hard_and_symbolic_links(self):
        self.write(self.there("file"), b"content")
        self.good("ln", self.url("file"), self.url("hard"))
        self.good("ln", "-s", "some/where else", self.url("soft"))
        self.assertTrue(os.path.samefile(self.there("file"), self.there("hard")))
        self.assertEqual(os.readlink(self.there("soft")), "some/where else")
        self.bad(1, "it exists already", "ln", "-s", "x", self.url("soft"))
        self.bad(1, "no such file or directory", "ln", self.url("missing"), self.url("x"))
        self.bad(2, "the text of a symbolic link cannot be empty", "ln", "-s", "", self.url("x"))

    def test_touch_makes_files_and_sets_times(self):
        self.good("touch", self.url("new"))
        self.assertEqual(os.stat(self.there("new")).st_size, 0)
        os.utime(self.there("new"), (1, 1))
        self.good("touch", self.url("new"))
        self.assertGreater(os.stat(self.there("new")).st_mtime, 1e9)
        self.good("touch", "-c", self.url("other"))
        self.assertFalse(os.path.exists(self.there("other")))
        self.bad(1, "no such file or directory", "touch", self.url("missing", "x"))

    def test_touch_sets_no_other_time_than_was_said(self):
        self.write(self.there("file"))
        os.utime(self.there("file"), (1, 1))
        for version, first, last in ((2, 0, 2**32 - 2), (3, 0, 2**32 - 1)):
            for time in (first - 1, last + 1):
                for name in ("file", "new"):
                    self.bad(1, f"version {version} of NFS has no times before 1970", "touch", "-d", f"@{time}", self.url(name) + f"&version={version}")
            self.assertEqual((os.stat(self.there("file")).st_mtime, os.listdir(self.there())), (1, ["file"]))
            for time in (last, first, 1):
                self.good("touch", "-d", f"@{time}", self.url("file") + f"&version={version}")
                self.assertEqual(os.stat(self.there("file")).st_mtime, time)
        self.good("touch", "-d", f"@{2**32}", self.url("file") + "&version=4")
        self.assertEqual(os.stat(self.there("file")).st_mtime, 2**32)

    def test_touch_takes_the_times_of_a_file_or_a_stamp(self):
        mark = self.at("mark")
        self.write(mark)
        os.utime(mark, ns=(1_000_000_007_123_456_789, 1_200_000_009_987_654_321))
        os.symlink("mark", self.at("link to mark"))
        for version in ("3", "4.2"):
            url = self.url(f"of{version}") + f"&version={version}"
            self.good("touch", "-r", self.at("link to mark"), url)
            now = os.stat(self.there(f"of{version}"))
            self.assertEqual((now.st_atime_ns, now.st_mtime_ns), (1_000_000_007_123_456_789, 1_200_000_009_987_654_321))
            self.good("touch", "-t", "202405011230.15", url)
            self.good("touch", "-a", "--reference", mark, url)
            now = os.stat(self.there(f"of{version}"))
            self.assertEqual((now.st_atime_ns, now.st_mtime), (1_000_000_007_123_456_789, time.mktime((2024, 5, 1, 12, 30, 15, 0, 0, -1))))
        for stamp in ("05011230", "2405011230", "202405011230"):
            self.good("touch", "-t", stamp, self.url("ours"))
            subprocess.run(["touch", "-t", stamp, mark], check=True)
            self.assertEqual(os.stat(self.there("ours")).st_mtime, os.stat(mark).st_mtime, stamp)
        os.utime(mark, (-5, 5))
        self.bad(1, "no times before 1970", "touch", "-r", mark, self.url("ours") + "&version=3")
        self.good("touch", "-m", "-r", mark, self.url("ours") + "&version=3")
        self.bad(2, "no such file on this machine", "touch", "-r", self.at("none"), self.url("ours"))
        self.bad(2, "'yesterday' is no time; write [[CC]YY]MMDDhhmm[.ss]", "touch", "-t", "yesterday", self.url("ours"))
        self.bad(2, "say the time once", "touch", "-t", "05011230", "-d", "@5", self.url("ours"))

    def test_touch_makes_what_a_symbolic_link_leads_to(self):
        os.mkdir(self.there("dir"))
        os.symlink("dir/second", self.there("first"))
        os.symlink("../made", self.there("dir", "second"))
        self.good("touch", self.url("first"))
        self.assertTrue(stat.S_ISREG(os.lstat(self.there("made")).st_mode))
        for name, text in (("out", "/nowhere/x"), ("gone", "none/x")):
            os.symlink(text, self.there(name))
        for name in ("out", "gone"):
            self.bad(1, "symbolic link", "touch", self.url(name))
        self.bad(1, "leads to nothing; make or name its target", "touch", self.url("gone"))
        self.good("touch", "-c", self.url("gone"))

    def test_chmod_takes_octal_and_symbolic_modes(self):
        self.write(self.there("file"))
        os.mkdir(self.there("dir"))
        for text, before, after in (("4711", 0o644, 0o4711), ("u+x,go=r", 0o666, 0o744), ("a-w", 0o666, 0o444), ("+X", 0o644, 0o644), ("o=", 0o777, 0o770),
                                    ("g=u", 0o750, 0o770), ("u=g,o+u", 0o6750, 0o2555), ("o=u-w", 0o760, 0o765), ("a-o", 0o777, 0o000)):
            os.chmod(self.there("file"), before)
            self.good("chmod", text, self.url("file"))
            self.assertEqual(stat.S_IMODE(os.stat(self.there("file")).st_mode), after, text)
        os.chmod(self.there("dir"), 0o600)
        self.good("chmod", "u+X", self.url("dir"))
        self.assertEqual(stat.S_IMODE(os.stat(self.there("dir")).st_mode), 0o700)
        self.bad(2, "is no mode", "chmod", "u*x", self.url("file"))
        self.bad(2, "is no mode", "chmod", "u=gr", self.url("file"))
        self.bad(1, "no such file or directory", "chmod", "644", self.url("missing"))

    def test_are_bytes(self):
        os.close(os.open(os.fsencode(self.there()) + b"/\xff %?", os.O_CREAT))
        listed = stag("ls", self.url(), text=False).stdout
        self.assertEqual(listed, b"\xff %?\n")
        (entry,) = json.loads(self.good("ls", "--json", self.url()))
        self.assertEqual((entry["name"], entry["name_bytes"]), ("\ufffd %?", "%FF%20%25%3F"))
        self.assertEqual(stag("stat", self.url(entry["name_bytes"]), text=False).returncode, 0)
        os.symlink(b"\xfe", os.fsencode(self.there("link")))
        (link,) = json.loads(self.good("stat", "--json", self.url("link")))
        self.assertEqual((link["target"], link["target_bytes"]), ("\ufffd", "%FE"))
        self.good("rm", self.url("%ff%20%25%3F"))


class SlashesBehind(Case):
    """A name with '/' behind it is that of a directory, as in every path."""

    def setUp(self):
        super().setUp()
        self.write(self.there("file"), b"precious")
        self.write(self.there("new"), b"new")
        os.mkdir(self.there("dir"))
        os.symlink("dir", self.there("link"))

    def check_all_is_there(self):
        self.assertEqual(self.read(self.there("file")), b"precious")
        self.assertEqual(self.read(self.there("new")), b"new")
        self.assertEqual(sorted(os.listdir(self.there())), ["dir", "file", "link", "new"])
        self.assertEqual(os.listdir(self.there("dir")), [])

    def refused(self, sentence, *arguments):
        self.bad(1, sentence, *arguments)
        self.check_all_is_there()

    def test_mv_replaces_no_file_and_makes_none(self):
        self.refused("not a directory", "mv", self.url("new"), self.url("file/"))
        self.refused("not a directory", "mv", self.url("dir"), self.url("file/"))
        self.refused("not a directory", "mv", self.url("file/"), self.url("other"))
        self.refused("not a directory", "mv", self.url("link/"), self.url("other"))
        self.refused("no such file or directory", "mv", self.url("new"), self.url("none/"))
        self.good("mv", self.url("new"), self.url("link/"))
        self.assertEqual(os.listdir(self.there("dir")), ["new"])
        self.good("mv", self.url("dir/"), self.url("renamed/"))
        self.assertEqual(os.listdir(self.there("renamed")), ["new"])

    def test_cp_replaces_no_file_and_makes_none(self):
        local = self.write(self.at("local"), b"local")
        self.refused("not a directory", "cp", local, self.url("file/"))
        self.refused("not a directory", "cp", self.url("new"), self.url("file/"))
        self.refused("not a directory", "cp", "-r", self.url("dir"), self.url("file/"))
        self.refused("not a directory", "sync", self.url("dir"), self.url("file/"))
        self.refused("not a directory", "cp", self.url("file/"), self.at("copy"))
        self.refused("no such directory", "cp", local, self.url("none/"))
        self.assertFalse(os.path.exists(self.at("copy")))
        self.good("cp", local, self.url("link/"))
        self.assertEqual(self.read(self.there("dir", "local")), b"local")
        self.good("cp", "-r", self.url("link/"), self.url("copied/"))
        self.assertEqual(os.listdir(self.there("copied")), ["local"])

    def test_rm_removes_neither_a_file_nor_a_link(self):
        for name in ("file/", "link/"):
            for option in ("-f", "-r"):
                self.refused("not a directory", "rm", option, self.url(name))
        self.good("rm", "-r", self.url("dir/"))
        self.assertFalse(os.path.exists(self.there("dir")))

    def test_ln_makes_no_link_and_has_none_lead_to_a_file(self):
        self.refused("no such file or directory", "ln", self.url("file"), self.url("none/"))
        self.refused("no such file or directory", "ln", "-s", "file", self.url("none/"))
        self.refused("not a directory", "ln", "-s", "text", self.url("file/"))
        self.refused("not a directory", "ln", self.url("file/"), self.url("other"))
        self.good("ln", "-s", "to/text/", self.url("link/"))
        self.assertEqual(os.readlink(self.there("dir", "text")), "to/text/")

    def test_touch_makes_no_file_and_changes_none(self):
        os.utime(self.there("file"), (1, 1))
        self.refused("no such file or directory", "touch", self.url("none/"))
        self.refused("not a directory", "touch", self.url("file/"))
        self.assertEqual(os.stat(self.there("file")).st_mtime, 1)
        self.good("touch", "-d", "@5", self.url("dir/"))
        self.assertEqual(os.stat(self.there("dir")).st_mtime, 5)

    def test_mkdir_makes_a_directory(self):
        self.good("mkdir", self.url("one/"))
        self.good("mkdir", "-p", self.url("two", "three/"))
        self.assertTrue(os.path.isdir(self.there("one")) and os.path.isdir(self.there("two", "three")))

    def test_all_other_commands_find_directories_alone(self):
        os.chmod(self.there("file"), 0o640)
        for command in (["cat"], ["chmod", "600"], ["chown", "1:1"], ["df"], ["du"], ["find"], ["ls"], ["readlink"], ["stat"], ["tree"]):
            self.refused("not a directory", *command, self.url("file/"))
        self.assertEqual(stat.S_IMODE(os.stat(self.there("file")).st_mode), 0o640)
        self.good("chmod", "700", self.url("link/"))
        (entry,) = json.loads(self.good("stat", "--json", self.url("link/")))
        self.assertEqual(entry["type"], "directory")


class Looking(Case):
    def test_stat_tells_everything(self):
        self.write(self.there("file"), b"abc")
        os.symlink("file", self.there("link"))
        text = self.good("stat", self.url("file"))
        self.assertIn("size  3", text)
        link, file = json.loads(self.good("stat", "--json", self.url("link"), self.url("file")))
        self.assertEqual((link["type"], link["target"], file["size"]), ("symlink", "file", 3))
        (followed,) = json.loads(self.good("stat", "-L", "--json", self.url("link")))
        self.assertEqual(followed["fileid"], file["fileid"])
        self.bad(1, "no such file or directory", "stat", self.url("missing"))

    def test_stat_tells_times_and_finds_directories_as_ls_does(self):
        os.utime(self.write(self.there("old")), (-5, -86400))
        os.utime(self.write(self.there("late")), (5_000_000_000, 5_000_000_000))
        told = json.loads(self.good("stat", "--json", self.url("old"), self.url("late")))
        self.assertEqual([int(float(entry["mtime_exact"])) for entry in told], [-86400, 5_000_000_000])
        self.assertIn("directory", self.good("stat", self.server.url("/")))

    def test_stat_needs_no_mount_service(self):
        self.write(self.there("file"))
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        # What waits for MOUNT ends with the harness's patience, not with the command's.
        url = self.server.url(f"/files/{self.name}/file", mount_port=silent.getsockname()[1])
        self.assertIn("size  0", self.good("stat", "--timeout", "100000", url))

    def test_stat_shows_access_control_lists_beyond_the_mode(self):
        if not shutil.which("setfacl"):
            self.skipTest("Debian's acl package is not installed")
        os.mkdir(self.there("dir"), 0o750)
        self.assertNotIn("acl", self.good("stat", self.url("dir")))
        entries = "user::rwx,user:1001:rw-,group::r-x,mask::rwx,other::---,default:user::rwx,default:group::r-x,default:other::---"
        if subprocess.run(["setfacl", "--set", entries, self.there("dir")], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no access control lists here")
        for version in ("", "&version=2", "&version=3", "&version=4.0", "&version=4.1", "&version=4.2"):
            (shown,) = json.loads(self.good("stat", "--json", self.url("dir") + version))
            self.assertEqual(shown["acl"], entries, version)
            text = self.good("stat", self.url("dir") + version)
            for entry in entries.split(","):
                self.assertIn(f" {entry}\n", text, version)

    def test_cat_writes_files_one_after_the_other(self):
        content = os.urandom(3_000_001)
        self.write(self.there("a"), content)
        self.write(self.there("b"), b"end")
        result = stag("cat", self.url("a"), self.url("b"), text=False)
        self.assertEqual((result.returncode, result.stdout), (0, content + b"end"))
        self.bad(1, f"/{self.name}' is a directory; see what", "cat", self.url())
        self.bad(1, "no such file or directory", "cat", self.url("missing"))

    def test_cat_into_a_full_device_says_so(self):
        self.write(self.there("a"), b"content")
        with open("/dev/full", "wb") as full:
            result = subprocess.run([harness.STAG, "cat", self.url("a")], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left on device; make room", result.stderr)

    def into_full_device(self, *arguments, error=subprocess.PIPE):
        with open("/dev/full", "wb") as full:
            return subprocess.run(
                [harness.STAG, *arguments], stdin=subprocess.DEVNULL, stdout=full, stderr=error, text=True, timeout=harness.PATIENCE
            )

    def test_no_command_takes_a_full_device_for_success(self):
        for i in range(1000):
            self.write(self.there(f"a name of some length {i}"))
        file = self.url("a name of some length 0".replace(" ", "%20"))
        commands = ["--help", "--version", "ls --help"], ["ls"], ["ls", "-l"], ["ls", "--json"], ["stat"], ["df"], ["df", "--json"], ["find"], ["tree"], ["du", "-a"], ["ls", "-R"], ["ping", "-c", "3", "-i", "0"]
        for command in commands[1:]:
            result = self.into_full_device(*command, self.url())
            self.assertEqual(result.returncode, 1, command)
            self.assertEqual(result.stderr, f"stag {command[0]}: cannot write 'standard output': No space left on device; make room or choose another destination\n")
        for command in commands[0]:
            self.assertEqual(self.into_full_device(*command.split()).returncode, 1, command)
        self.assertEqual(self.into_full_device("info", "--rdma-port", str(self.server.rdma_port), "127.0.0.1").returncode, 1)
        self.assertEqual(self.into_full_device("cp", "--stats", file, self.at("copy")).returncode, 1)

    def test_a_message_that_cannot_be_written_changes_no_exit_code(self):
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.into_full_device("ls", self.url("missing"), error=full).returncode, 1)
            self.assertEqual(self.into_full_device("ls", "http://server/x", error=full).returncode, 2)

    def test_a_command_without_standard_output_fails(self):
        self.write(self.there("a"), b"content")
        for command in ("ls", "cat"):
            result = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', harness.STAG, command, self.url("a")], stderr=subprocess.PIPE, text=True)
            self.assertEqual(result.returncode, 1, command)
            self.assertIn("Bad file descriptor", result.stderr)

    def test_cat_ends_quietly_when_nobody_reads_on(self):
        self.write(self.there("a"), bytes(8 << 20))
        cat = subprocess.Popen([harness.STAG, "cat", self.url("a")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(cat.stdout.read(10), bytes(10))
        cat.stdout.close()
        self.assertEqual(cat.stderr.read(), b"")
        cat.stderr.close()
        self.assertNotEqual(cat.wait(harness.PATIENCE), 0)

    def test_df_tells_sizes(self):
        (room,) = json.loads(self.good("df", "--json", self.server.url("/memory")))
        self.assertEqual(room["size"], 4 << 30)
        self.assertLessEqual(room["used"] + room["available"], room["size"])
        self.assertIn("4.0 GiB", self.good("df", self.server.url("/memory")))

    def test_df_rounds_up_the_share_of_what_users_can_have(self):
        def used():
            return int(re.search(r" (\d+)% ", self.good("df", self.url()))[1])

        def local():
            room = os.statvfs(self.served)
            full = room.f_blocks - room.f_bfree
            return -(-100 * full // (full + room.f_bavail))

        local_before = local()
        shown = used()
        self.assertIn(shown, range(min(local_before, local()), max(local_before, local()) + 1))
        self.write(self.at("byte"), b"1")
        self.good("cp", self.at("byte"), self.server.url("/memory/byte"))
        self.assertRegex(self.good("df", self.server.url("/memory")), r" 1% ")
        self.assertRegex(self.good("df", self.server.tcp("/") + "&version=4"), r" 0 B +0 B +0 B +- ")


class Terminals(Case):
    """What a peer has named does not reach a terminal as it is."""

    HOSTILE = "\x1b]0;title\x07 \u009b2J \u202e gpj\n".encode() + b"\xff"
    HARMLESS = rb"\033]0;title\007 \302\2332J \342\200\256 gpj\012\377"

    def on_terminal(self, *arguments, stream="stdout"):
        """What a command shows there."""
        terminal, theirs = harness.open_terminal(self)
        tty.setraw(theirs)
        others = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([harness.STAG, *arguments], **{**others, stream: theirs})
        os.close(theirs)
        shown = b""
        # The terminal fails to read when nobody has its other end any more.
        with contextlib.suppress(OSError):
            while part := os.read(terminal, 65536):
                shown += part
        os.close(terminal)
        process.wait(harness.PATIENCE)
        return shown

    def make(self):
        os.mkdir(self.there("tree"))
        self.write(os.fsencode(self.there("tree")) + b"/" + self.HOSTILE)
        os.symlink(self.HOSTILE, self.there("tree", "link"))

    def assert_harmless(self, shown):
        self.assertIn(self.HARMLESS, shown)
        for bad in (b"\x1b", b"\x07", b"\xc2\x9b", b"\xe2\x80\xae", b"\xff"):
            self.assertNotIn(bad, shown)

    def test_show_names_escaped(self):
        self.make()
        for arguments in (["ls"], ["ls", "-l"]):
            self.assert_harmless(self.on_terminal(*arguments, self.url("tree")))
        self.assert_harmless(self.on_terminal("stat", self.url("tree", "link")))
        shown = self.on_terminal("ls", "--json", self.url("tree"))
        self.assertTrue(shown.isascii() and b"\x1b" not in shown, shown)
        self.assertEqual(json.loads(shown)[1]["target"], self.HOSTILE.decode(errors="replace"))

    def test_show_messages_escaped(self):
        url = self.url("".join(f"%{byte:02x}" for byte in self.HOSTILE))
        self.assert_harmless(self.on_terminal("rm", url, stream="stderr"))

    def test_are_not_pipes_which_get_names_byte_for_byte(self):
        self.make()
        self.assertEqual(stag("ls", self.url("tree"), text=False).stdout, self.HOSTILE + b"\nlink\n")
        self.assertIn(b" -> " + self.HOSTILE, stag("ls", "-l", self.url("tree"), text=False).stdout)


class Interruptions(Case):
    def interrupted(self, number, command):
        """A command that has connected to a server which is silent. Each has one of its own: some connect more than once."""
        with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
            port = silent.getsockname()[1]
            url = f"nfs://127.0.0.1:{port}/files/x?proto=tcp&rpcbindport={port}"
            command = [word.replace("URL", url) for word in command]
            process = subprocess.Popen([harness.STAG, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            peer, _ = silent.accept()
            process.send_signal(number)
            errors = process.communicate(timeout=harness.PATIENCE)[1]
            peer.close()
        self.assertEqual((process.returncode, errors), (128 + number, f"stag {command[0]}: interrupted\n"), command)

    def test_exit_alike_with_every_command(self):
        commands = [[name, "URL"] for name in "ls stat cat mkdir rm touch df ping info bench".split()]
        commands += [["ls", "URL", "URL"], ["chmod", "644", "URL"], ["mv", "URL", "URL"], ["ln", "URL", "URL"], ["cp", "URL", self.at("x")],
                     ["ping", "-c", "5", "URL"]]
        for number in (signal.SIGINT, signal.SIGTERM):
            for command in commands:
                self.interrupted(number, command)

    def test_by_what_nohup_has_it_ignore_are_none(self):
        copy = subprocess.Popen([harness.STAG, "cp", "-", self.url("x")], stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=harness.ignore_terminal)
        content = bytes(3 << 20)
        # So much that it has been at work, and knows its signals.
        copy.stdin.write(content)
        copy.send_signal(signal.SIGHUP)
        self.assertTrue(harness.is_ignored(copy, signal.SIGHUP))
        self.assertEqual(copy.communicate(content, timeout=harness.PATIENCE), (None, b""))
        self.assertEqual((copy.returncode, self.read(self.there("x"))), (0, content + content))


@unittest.skipIf(os.geteuid() != 0, "only root gives itself groups")
class Groups(Case):
    def test_of_a_user_in_more_than_a_call_can_carry_are_the_first_sixteen(self):
        groups = range(20000, 20300)
        for group in (groups[0], groups[15], groups[16]):
            os.mkdir(self.there(str(group)))
            os.chown(self.there(str(group)), 0, group)
            os.chmod(self.there(str(group)), 0o770)

        def become_user():
            os.setgroups(groups)
            os.setgid(30000)
            os.setuid(30000)

        for path in (self.work, self.served, self.there()):
            os.chmod(path, 0o755)
        for group in (groups[0], groups[15]):
            self.good("mkdir", self.url(str(group), "x"), preexec_fn=become_user)
        self.bad(1, "permission denied", "mkdir", self.url(str(groups[16]), "x"), preexec_fn=become_user)


class NameService(PrivateHosts):
    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_that_is_silent_keeps_no_command_from_its_end(self):
        names, private = self.name_server("timeout:30 attempts:5")
        names.silent = True
        process = subprocess.Popen([*private, harness.STAG, "ls", "nfs://build.example/x"], stderr=subprocess.PIPE, text=True)
        self.assertTrue(names.asked.wait(harness.PATIENCE))
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=harness.PATIENCE)[1]
        self.assertEqual((process.returncode, errors), (130, "stag ls: interrupted\n"))
        tired = subprocess.run([*private, harness.STAG, "ls", "--timeout", "1", "nfs://build.example/x"], stderr=subprocess.PIPE, text=True,
                               timeout=harness.PATIENCE, check=False)
        self.assertEqual(tired.returncode, 1)


class Network(Case):
    def test_ping_counts_round_trips_on_both_transports(self):
        for url in (self.server.url("/files"), self.server.tcp("/files")):
            figures = json.loads(self.good("ping", "-c", "4", "-i", "0", "--json", url))
            self.assertEqual((figures["sent"], figures["answered"]), (4, 4))
            self.assertLessEqual(figures["min_us"], figures["avg_us"])
            self.assertLessEqual(figures["avg_us"], figures["max_us"])
        self.assertRegex(self.good("ping", "-c", "1", self.server.url("/")), r"seq=1 time=[\d.]+ us\n1 calls, 1 answered; min/avg/p99/max")

    def test_ping_carries_as_many_bytes_as_told(self):
        figures = json.loads(self.good("ping", "-c", "3", "-i", "0", "-s", "200000", "--json", self.server.url("/files")))
        self.assertEqual(figures["answered"], 3)

    def test_ping_ends_with_its_summary_when_interrupted(self):
        ping = subprocess.Popen([harness.STAG, "ping", "-i", "1", self.server.url("/")], stdout=subprocess.PIPE, text=True)
        self.assertIn("seq=1", ping.stdout.readline())
        ping.send_signal(signal.SIGINT)
        rest = ping.stdout.read()
        self.assertEqual(ping.wait(harness.PATIENCE), 0)
        self.assertIn("min/avg/p99/max", rest.splitlines()[-1])
        ping.stdout.close()

    def test_ping_to_nobody_fails(self):
        self.bad(1, "refused", "ping", "-c", "1", "nfs://127.0.0.1:1/")

    def test_info_finds_programs_ports_and_exports(self):
        found = json.loads(self.good("info", "--json", self.server.url("/") + "&rpcbindport=1"))
        services = {(each["name"], each["versions"], each["netid"], each["port"]) for each in found["services"]}
        at_tcp = (("nfs", "2-4"), ("mountd", "1-3"), ("nfs_acl", "2-3"), ("nlockmgr", "1-4"), ("status", "1"))
        self.assertEqual(services, {("nfs", "2-4", "rdma", self.server.rdma_port)} | {(*each, "tcp", self.server.tcp_port) for each in at_tcp})
        self.assertEqual([each["path"] for each in found["exports"]], ["/files", "/memory"])
        text = self.good("info", "--rdma-port", str(self.server.rdma_port), "--tcp-port", str(self.server.tcp_port), "127.0.0.1")
        self.assertIn("  /memory", text)
        self.bad(1, "--rdma-port", "info", "--rdma-port", "1", "--tcp-port", "1", "--rpcbind-port", "1", "127.0.0.1")

    def test_info_asks_rpcbind_where_the_URL_says(self):
        rpcbind = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(rpcbind.close)
        rpcbind.settimeout(harness.PATIENCE)
        url = f"{self.server.url('/')}&rpcbindport={rpcbind.getsockname()[1]}"
        info = subprocess.Popen([harness.STAG, "info", "--timeout", "2", url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rpcbind.accept()[0].close()
        self.assertEqual(info.wait(harness.PATIENCE), 0)


if __name__ == "__main__":
    harness.main()
