"""What commands say where something is wrong: how long they wait for a host that is silent, and what the user can do."""
import os
import re
import socket
import threading
import unittest

import harness
from harness import Case, Server, stag


class Silent:
    """A port at which everything is accepted and nothing answered. `events` has what came, also of other ports that share it."""

    def __init__(self, case, name="", events=None):
        self.name, self.events = name, [] if events is None else events
        self.received = bytearray()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        case.addCleanup(self.end)
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def accept(self):
        while True:
            peer, _ = self.listener.accept()
            if not self.threads:
                return peer.close()
            self.events.append((self.name, "connected"))
            self.threads.append(threading.Thread(target=self.read, args=[peer]))
            self.threads[-1].start()

    def read(self, peer):
        with peer:
            while data := peer.recv(65536):
                self.received += data
        self.events.append((self.name, "closed"))

    def end(self):
        threads, self.threads = self.threads, []
        # accept() is not woken by close().
        socket.create_connection(("127.0.0.1", self.port)).close()
        for thread in threads:
            thread.join(harness.PATIENCE)
        self.listener.close()

    def calls(self):
        """How many RPC Calls came over TCP; each is a record."""
        count, at = 0, 0
        while at < len(self.received):
            at += 4 + (int.from_bytes(self.received[at:at + 4], "big") & 0x7fffffff)
            count += 1
        return count


class Patience(Case):
    def test_of_info_is_for_all_ports_and_programs_together(self):
        events = []
        rdma, tcp, rpcbind = (Silent(self, name, events) for name in ("rdma", "tcp", "rpcbind"))
        self.bad(1, "found no RPC program", "info", "--timeout", "1", "--rdma-port", str(rdma.port), "--tcp-port", str(tcp.port),
                 "--rpcbind-port", str(rpcbind.port), "127.0.0.1")
        # One after the other would take three times as long.
        self.assertEqual(sorted(events[:3]), [("rdma", "connected"), ("rpcbind", "connected"), ("tcp", "connected")])
        self.assertEqual((tcp.calls(), rpcbind.calls()), (1, 1), "who does not answer the first is not asked for others")

    def test_of_ping_is_for_the_connection_too(self):
        port = Silent(self)
        self.bad(1, "--timeout N waits longer", "ping", "-c", "1", "--timeout", "1", f"nfs://127.0.0.1:{port.port}/")
        self.assertEqual(port.events.count(("", "connected")), 1)
        # More than one attempt takes: the host may have come back meanwhile.
        port = Silent(self)
        self.bad(1, "--timeout N waits longer", "ping", "-c", "1", "--timeout", "11", f"nfs://127.0.0.1:{port.port}/")
        self.assertEqual(port.events.count(("", "connected")), 2)


    def test_of_ls_is_for_the_first_version_that_is_tried_and_for_the_others(self):
        port = Silent(self)
        self.bad(1, "--timeout N waits longer", "ls", "--timeout", "1", f"nfs://127.0.0.1:{port.port}/?mountport={port.port}")
        self.assertEqual(port.events.count(("", "connected")), 2, "by RDMA, and whether it speaks TCP")


class NameSpace(Case):
    """The directories of version 4 that lead to the exports are none."""

    def setUp(self):
        super().setUp()
        self.other = Server([f"/data={self.there()},no_root_squash", "/deep/er/mem=memory", "/deep/ro=memory,ro"], self.at("state"))
        self.addCleanup(self.other.end)

    def at_root(self, path, version="4.2"):
        return f"nfs://127.0.0.1:{self.other.tcp_port}{path}?proto=tcp&version={version}"

    def test_says_where_a_path_is_in_no_export_and_which_there_are(self):
        there = "is in no export; there are /data, /deep/ro, /deep/er/mem\n"
        source = self.write(self.at("f"), b"f")
        for path, command in (
            ("/", ["cp", source]), ("/new", ["cp", source]), ("/deep/new", ["cp", source]), ("/new", ["mkdir"]), ("/deep/new", ["touch"]),
            ("/nope", ["ls"]), ("/nope", ["stat"]), ("/deep/nope", ["ls"]),
        ):
            result = self.bad(1, f"'{path}' is in no export", *command, self.at_root(path))
            self.assertTrue(result.stderr.endswith(there), (command, path, result.stderr))

    def test_says_nothing_of_it_where_the_path_is_in_an_export(self):
        self.bad(1, "the export is read-only; have it exported with rw", "touch", self.at_root("/deep/ro/f"))
        self.bad(1, "no such file or directory; check the path", "ls", self.at_root("/data/nope"))
        self.bad(1, "the export is read-only; have it exported with rw", "cp", self.write(self.at("f")), self.at_root("/deep/ro/f"))

    def test_of_a_server_that_exports_its_root_is_in_an_export(self):
        os.mkdir(self.there("folder"))
        self.write(self.there("file"))
        server = Server([f"/={self.there()},ro"], self.at("second"))
        self.addCleanup(server.end)
        self.bad(1, "the export is read-only; have it exported with rw", "mkdir", server.tcp("/new") + "&version=4.2")
        self.bad(1, "no such file or directory; check the path", "ls", server.tcp("/nope") + "&version=4.2")

    def test_says_how_MOUNT_is_found_which_lists_them(self):
        result = stag("ls", self.other.url("/", mount_port=1))
        self.assertEqual(result.returncode, 0)
        self.assertIn("(?mountport=PORT in the URL says where MOUNT is)", result.stderr)


class CommandLine(Case):
    def wrong(self, sentence, *arguments):
        result = stag(*arguments)
        self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
        self.assertIn(sentence, result.stderr)

    def test_says_what_a_question_mark_begins(self):
        self.wrong("a ? in a path is %3F", "ls", "nfs://h/q?x=1&y")
        self.wrong("a ? in a path is %3F", "ls", "nfs://h/q?x")

    def test_says_in_which_units_numbers_are(self):
        for value in ("5s", "1.5", "0", "", "-1"):
            self.wrong(f"--timeout: '{value}' is no whole number of seconds from 1 to 1048576", "ls", "--timeout", value, self.url())
        self.wrong("'0.2' is no whole number of milliseconds from 0 to", "ping", "-i", "0.2", self.url())
        self.wrong("'x' is no whole number from 0 to", "ping", "-c", "x", self.url())

    def test_takes_no_further_word_for_the_value_of_an_option(self):
        self.wrong("'--timeout=' has nothing after '='", "ls", "--timeout=", self.url())
        self.wrong("'--exclude=' has nothing after '='", "cp", "--exclude=", self.at(), self.url())
        self.write(self.at("--x="), b"named so")
        self.good("cp", "--", "--x=", self.url(), cwd=self.at())

    def test_names_the_option_or_command_that_may_be_meant(self):
        self.wrong("'--recusive' is no option, but '--recursive' is;", "cp", "--recusive", self.at(), self.url())
        self.wrong("'-links' is no option, and none is like it;", "find", self.url(), "-links", "1")
        self.wrong("'-i' is no option, and none is like it;", "df", "-i", self.url())
        self.wrong("stag: 'rmdir' is no command, but 'rm' is\n", "rmdir", self.url())

    def test_of_sync_may_be_that_of_rsync(self):
        os.mkdir(self.at("tree"))
        self.write(self.at("tree", "f"))
        self.assertIn("/f' ->", self.good("sync", "-av", self.at("tree"), self.url("a")))
        self.assertIn("/f' ->", self.good("sync", "-rv", self.at("tree"), self.url("r")))

    def test_of_a_server_whose_ports_are_one_says_so(self):
        result = stag("serve", "--export", "/x=memory", "--state", self.at("state"), "--rdma-port", "33490", "--tcp-port", "33490")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--rdma-port and --tcp-port are both 33490;", result.stderr)

    def test_of_an_export_may_say_what_is_always_so(self):
        result = stag("serve", "--check", "--export", f"/a={self.at()},rw,sync,no_subtree_check", "--state", self.at("state"))
        self.assertEqual(result.returncode, 0, result.stderr)
        # It would not be done.
        result = stag("serve", "--check", "--export", f"/a={self.at()},async", "--state", self.at("state"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("export option 'async' is not known", result.stderr)


class Sentences(Case):
    def test_have_a_URL_once(self):
        url = self.url("f")
        self.write(self.there("f"))
        result = stag("readlink", url, url)
        self.assertEqual(result.stderr, f"stag readlink: {url}: it is no symbolic link\n" * 2)
        result = self.bad(1, "the destination is the same file", "cp", url, url)
        self.assertEqual(result.stderr.count("nfs://"), 1, result.stderr)

    def test_of_links_say_which_one_is_a_directory(self):
        os.mkdir(self.there("folder"))
        self.bad(1, f"'{self.url('folder')}' is a directory, and has one name; 'stag ln -s' makes a symbolic link", "ln", self.url("folder"),
                 self.url("hl"))

    @unittest.skipIf(os.geteuid() != 0, "is about root")
    def test_of_what_is_denied_say_that_the_server_may_not_be_root(self):
        server = Server([f"/files={self.there()}"], self.at("state"))
        self.addCleanup(server.end)
        os.chmod(self.there(), 0o755)
        result = self.bad(1, "serve with no_root_squash; one that does not run as root may do no more than its own user", "mkdir", server.url("/files/d"))
        self.assertRegex(result.stderr, re.escape("permission denied"))


if __name__ == "__main__":
    harness.main()
