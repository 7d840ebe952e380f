"""`stag serve --exports-file`: files in the form of exports(5)."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

import harness
from harness import Server, stag
from name_server import PrivateHosts
from observe_test import scraped, value_in


class ExportsFile(PrivateHosts):
    def served_by(self, text):
        path = self.write(self.at("exports"), text.encode())
        return Server([], self.at("state"), ("--exports-file", path))

    def test_is_served_with_the_defaults_of_exports_5(self):
        os.mkdir(self.there("my files"))
        self.write(self.there("my files", "f"), b"content")
        folder = self.there("my files")
        server = self.served_by(f'# comment\n"{folder}" -insecure \\\n  192.0.2.7(rw) 127.0.0.0/8(sync,no_subtree_check)\n')
        self.assertEqual(self.good("cat", server.url(f"{folder}/f".replace(" ", "%20"))), "content")
        self.bad(1, "read-only", "touch", server.url(f"{folder}/g".replace(" ", "%20")))
        self.assertEqual(server.log(), "")
        self.assertEqual(server.end(), 0)

    def test_is_read_again_on_SIGHUP(self):
        server = self.served_by(f"{self.there()} 127.0.0.1(insecure)\n")
        self.bad(1, "read-only", "mkdir", server.url(self.there("x")))
        self.write(self.at("exports"), f"{self.there()} 127.0.0.1(rw,insecure,no_root_squash,crossmnt)\n".encode())
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.process.stdout.readline(), f"exports: changed {self.there()}\n")
        self.good("mkdir", server.url(self.there("x")))
        self.assertIn(f"stag serve: {self.at('exports')}:1: crossmnt is not done", server.log())
        self.assertEqual(server.end(), 0)

    def test_has_clients_by_patterns_of_their_names(self):
        server = self.served_by(f"{self.there()} 127.0.0.*(ro,insecure) loc?lho[r-t]*(rw,insecure,no_root_squash) *.example.com(rw)\n")
        self.good("mkdir", server.url(self.there("x")))
        self.write(self.at("exports"), f"{self.there()} *.example.com(rw,insecure)\n".encode())
        server.process.send_signal(signal.SIGHUP)
        server.process.stdout.readline()
        self.bad(1, "does not let this client mount it", "ls", server.url(self.there()) + "&version=3")
        self.assertEqual(server.end(), 0)

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_has_netgroups_whose_hosts_come_and_go(self):
        etc = shutil.copytree("/etc", self.at("etc"), symlinks=True)
        self.write(os.path.join(etc, "nsswitch.conf"), b"hosts: files\nnetgroup: files\npasswd: files\ngroup: files\n")
        name = socket.gethostname()
        domain = name.partition(".")[2] or "example.com"
        self.write(os.path.join(etc, "hosts"), f"127.0.0.1 desk.{domain} desk\n127.0.1.1 here.{domain} {name}\n".encode())
        group = self.write(os.path.join(etc, "netgroup"), b"trusted (elsewhere,,)\n")
        path = self.write(self.at("exports"), f"{self.there()} @trusted(rw,insecure,no_root_squash)\n".encode())
        private = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', etc)
        server = Server([], self.at("state"), ("--exports-file", path), before=private)
        self.bad(1, "does not let this client mount it", "ls", server.url(self.there()) + "&version=3")
        self.write(group, b"trusted (elsewhere,,) (desk,,)\n")
        self.write(path, f"{self.there()} @trusted(rw,insecure,no_root_squash,sec=sys)\n".encode())
        server.process.send_signal(signal.SIGHUP)
        server.process.stdout.readline()
        self.good("mkdir", server.url(self.there("x")))
        self.assertEqual(server.end(), 0)

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_is_served_without_hosts_that_nobody_knows_until_they_are_known(self):
        hosts, private = self.private_hosts(b"192.0.2.1 other\n")
        path = self.write(self.at("exports"), f"{self.there()} build(rw,insecure,no_root_squash)\n{self.there('x')} *(insecure) @no-such(rw)\n".encode())
        os.mkdir(self.there("x"))
        server = Server(["/y=memory,client=build"], self.at("state"), ("--exports-file", path), before=private)
        unknown = re.findall(r"warning +ExportClientUnknown export (\S+): .*\('(\S+)': (?:no such|there is no such|the name service)", server.log())
        self.assertEqual(sorted(unknown), sorted([(self.there(), "build"), (self.there("x"), "@no-such"), ("/y", "build")]))
        for closed in (self.there(), "/y"):
            self.bad(1, "does not let this client mount it", "ls", server.url(closed) + "&version=3")
        self.good("ls", server.url(self.there("x")) + "&version=3")
        with open(hosts, "a") as file:
            file.write("127.0.0.1 build.example.com build\n")
        until = time.monotonic() + harness.PATIENCE
        while server.log().count("ExportClientKnown") < 2:
            self.assertLess(time.monotonic(), until, server.log())
            time.sleep(0.1)
        self.good("mkdir", server.url(self.there("new")) + "&version=3")
        self.good("ls", server.url("/y") + "&version=3")
        self.assertEqual(server.end(), 0)

    def until(self, server, condition):
        end = time.monotonic() + harness.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, server.log())
            time.sleep(0.1)

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_leaves_its_folders_alone_until_it_is_reloaded_where_a_host_becomes_known(self):
        """One that is gone keeps no host of another export out, and one that was replaced is not taken on behind the administrator's back."""
        hosts, private = self.private_hosts(b"192.0.2.1 other\n")
        replaced, gone, closed = (self.there(name) for name in ("x", "y", "z"))
        for folder in (replaced, gone, closed):
            os.mkdir(folder)
        self.write(os.path.join(replaced, "kept"), b"")
        text = f"{replaced} *(insecure)\n{gone} *(insecure)\n{closed} build(insecure)\n"
        path = self.write(self.at("exports"), text.encode())
        server = Server([], self.at("state"), ("--exports-file", path, "--metrics", "127.0.0.1:0"), before=private)
        os.rename(replaced, self.there("before"))
        os.mkdir(replaced)
        os.rmdir(gone)
        with open(hosts, "a") as file:
            file.write("127.0.0.1 build\n")
        self.until(server, lambda: "ExportClientKnown" in server.log())
        self.good("ls", server.url(closed) + "&version=3")
        listed = stag("ls", server.url(replaced) + "&version=3")
        self.assertEqual((listed.stdout, listed.stderr), ("kept\n", ""))
        self.assertNotIn("ExportsReloadFailed", server.log())
        os.mkdir(gone)
        self.reloaded(server, path, text)

        def counted():
            listed = stag("ls", server.url(replaced) + "&version=3")
            self.assertEqual((listed.stdout, listed.stderr), ("", ""))
            return value_in(scraped(server), "stag_export_call_duration_seconds_count", export=replaced) > 0

        self.until(server, counted)
        self.assertEqual(server.end(), 0)

    def reloaded(self, server, path, text):
        self.write(path, text.encode())
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(server.process.stdout.readline().startswith("exports: "), server.log())

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_keeps_the_clients_that_nobody_knows_any_more(self):
        """They are neither locked out nor let in by a rule for all, on SIGHUP and by a successor."""
        hosts, private = self.private_hosts(b"127.0.0.1 build\n")
        path = self.write(self.at("exports"), f"{self.there()} build(ro,insecure) *(rw,insecure,no_root_squash)\n".encode())
        server = Server([], self.at("state"), ("--exports-file", path), before=private)
        there = server.url(self.there("x")) + "&version=3"
        self.bad(1, "read-only", "mkdir", there)
        self.write(hosts, b"192.0.2.1 other\n")
        self.reloaded(server, path, f"{self.there()} build(ro,insecure,all_squash) *(rw,insecure,no_root_squash)\n")
        self.assertRegex(server.log(), r"ExportClientUnknown export \S+: .*\('build': .*; it stays 127.0.0.1\)")
        self.good("ls", server.url(self.there()) + "&version=3")
        self.bad(1, "read-only", "mkdir", there)
        self.reloaded(server, path, f"{self.there()} build(rw,insecure,no_root_squash)\n")
        self.good("mkdir", there)
        successor = self.take_over(private, path)
        complaint = successor.communicate(timeout=harness.PATIENCE)[1]
        self.assertEqual(successor.returncode, 1)
        self.assertRegex(complaint, r"exports:1: client 'build': .*; the server that runs serves on")
        self.good("ls", there)
        self.assertEqual(server.end(), 0)

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_gives_a_host_that_never_was_known_no_more_by_a_rule_for_all(self):
        hosts, private = self.private_hosts(b"192.0.2.1 other\n")
        path = self.write(self.at("exports"), f"{self.there()} build(ro,insecure) *(rw,insecure,no_root_squash)\n".encode())
        server = Server([], self.at("state"), ("--exports-file", path), before=private)
        there = server.url(self.there("x")) + "&version=3"
        self.bad(1, "read-only", "mkdir", there)
        self.write(hosts, b"192.0.2.7 build\n")
        self.reloaded(server, path, f"{self.there()} build(ro,insecure) *(rw,insecure,no_root_squash)\n")
        self.good("mkdir", there)
        self.assertEqual(server.end(), 0)

    def take_over(self, private, path):
        return subprocess.Popen([*private, harness.STAG, "serve", "--take-over", "--state", self.at("state"), "--exports-file", path,
                                 "--rdma-port", "0", "--tcp-port", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_leaves_a_server_where_it_is_when_nobody_answers_its_successor(self):
        names, private = self.name_server("timeout:3 attempts:1")
        path = self.write(self.at("exports"), f"{self.there()} build.example(rw,insecure) *(insecure)\n".encode())
        server = Server([], self.at("state"), ("--exports-file", path), before=private)
        names.silent = True
        names.asked.clear()
        successor = self.take_over(private, path)
        self.assertTrue(names.asked.wait(harness.PATIENCE))
        self.good("ls", server.url(self.there()) + "&version=3")
        complaint = successor.communicate(timeout=harness.PATIENCE)[1]
        self.assertRegex(complaint, r"exports:1: client 'build\.example': .*; the server that runs serves on")
        self.assertEqual(successor.returncode, 1)
        self.good("ls", server.url(self.there()) + "&version=3")
        self.assertEqual(server.end(), 0)

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_is_not_in_the_way_of_the_end_when_the_name_service_is_silent(self):
        """Neither when the server asks again for hosts, nor when it reads its exports again."""
        names, private = self.name_server("timeout:30 attempts:5")
        path = self.write(self.at("exports"), f"{self.there()} build1.example(rw,insecure) build2.example(rw,insecure) *(insecure)\n".encode())
        for reads_again in (False, True):
            names.silent = False
            names.asked.clear()
            server = Server([], self.at("state"), ("--exports-file", path), before=private)
            self.good("ls", server.url(self.there()) + "&version=3")
            names.silent = True
            if reads_again:
                server.process.send_signal(signal.SIGHUP)
            self.assertTrue(names.asked.wait(harness.PATIENCE))
            self.assertEqual(server.end(), 0)

    def test_that_cannot_be_served_as_it_says_is_refused(self):
        for text, sentence in (
            (f"\n{self.there()} *(xprtsec=mtls)", "exports:2: xprtsec: RPC-with-TLS is not in this build"),
            (f"{self.there()} *(rw,frob)", "'frob' is not known"),
            (f"{self.there()} 127.0.0.1(ro)(rw,no_root_squash)", "exports:1: a blank is missing after ')'"),
            ("# nothing", "nothing to serve"),
        ):
            path = self.write(self.at("exports"), text.encode())
            self.bad(2, sentence, "serve", "--exports-file", path, "--state", self.at("state"))
        self.bad(2, "cannot be read", "serve", "--exports-file", self.at("missing"), "--state", self.at("state"))

    def test_is_refused_where_one_flavor_wants_a_keytab_that_is_not_there(self):
        path = self.write(self.at("exports"), f"{self.there()} *(ro,sec=sys:krb5p)\n".encode())
        os.mkdir(self.at("other"))
        command = ("serve", "--exports-file", path, "--export", f"/other={self.at('other')}", "--state", self.at("state"), "--rdma-port", "0", "--tcp-port", "0")
        without = os.environ | {"KRB5_KTNAME": self.at("no.keytab")}
        for more in (("--check",), ()):
            self.bad(1, "cannot use the default keytab", *command, *more, env=without)

    def test_that_waits_for_all_its_mounts_fails_so_that_the_service_is_tried_again(self):
        path = self.write(self.at("exports"), f"{self.there()} *(ro,mp) 192.0.2.7(rw,mp)\n".encode())
        result = stag("serve", "--exports-file", path, "--state", self.at("state"))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.count(f"{self.there()} is not exported: nothing is mounted at {self.there()}\n"), 2)
        self.assertIn("stag serve: nothing to serve yet", result.stderr)
        server = Server(["/memory=memory"], self.at("state"), ("--exports-file", path))
        self.assertEqual(server.end(), 0)

    def test_wants_reserved_ports_where_it_does_not_say_insecure(self):
        server = self.served_by(f"{self.there()} 127.0.0.1(rw)\n")
        answer = stag("ls", server.tcp(self.there()) + "&version=3")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("does not let this client mount it", answer.stderr)
        self.assertEqual(server.end(), 0)

    def test_grants_what_the_first_network_that_matches_says(self):
        server = self.served_by(f"{self.there()} 127.0.0.0/24(ro,insecure) 127.0.0.0/30(rw,insecure,no_root_squash)\n")
        self.bad(1, "read-only", "mkdir", server.url(self.there("x")))
        self.assertEqual(server.end(), 0)

    def beside(self, name, text):
        os.makedirs(self.at("exports.d"), exist_ok=True)
        return self.write(self.at("exports.d", name), text.encode())

    def test_is_read_with_those_in_the_directory_beside_it_as_exportfs_does(self):
        a, b, c, d = folders = [self.there(name) for name in ("a", "b", "c", "d")]
        for folder in folders:
            os.mkdir(folder)
        self.beside("10.exports", f"{c} *(insecure)\n{a} 127.0.0.1(rw,insecure,no_root_squash)\n")
        self.beside("9.exports", f"{b} *(insecure)\n")
        for name in (".hidden.exports", "other", "exports"):
            self.beside(name, f"{d} *(insecure)\n")
        os.mkdir(self.at("exports.d", "folder.exports"))
        os.mkfifo(self.at("exports.d", "fifo.exports"))
        server = self.served_by(f"{a} 127.0.0.1(ro,insecure)\n")
        self.assertEqual([line.split()[1] for line in server.lines if line.startswith("export:")], [a, b, c])
        self.bad(1, "read-only", "mkdir", server.url(f"{a}/x"))
        self.beside("other.exports", f"{d} *(insecure)\n")
        os.unlink(self.at("exports.d", "10.exports"))
        self.reloaded(server, self.at("exports"), "# none")
        self.assertEqual(self.good("ls", server.url("/")).split(), [b, d])
        self.beside("bad.exports", "\n/x *(frob)\n")
        server.process.send_signal(signal.SIGHUP)
        self.until(server, lambda: f"{self.at('exports.d', 'bad.exports')}:2: " in server.log())
        self.assertEqual(server.end(), 0)

    def test_that_is_a_link_to_nothing_takes_no_export_away(self):
        a, b = self.there("a"), self.there("b")
        for folder in (a, b):
            os.mkdir(folder)
        target = self.write(self.at("target"), f"{b} *(insecure)\n".encode())
        os.mkdir(self.at("exports.d"))
        link = self.at("exports.d", "link.exports")
        os.symlink(target, link)
        server = self.served_by(f"{a} *(insecure)\n")
        os.unlink(target)
        self.bad(2, f"'{link}' cannot be read", "serve", "--exports-file", self.at("exports"), "--check")
        server.process.send_signal(signal.SIGHUP)
        self.until(server, lambda: f"'{link}' cannot be read" in server.log())
        self.assertEqual(self.good("ls", server.url("/")).split(), [a, b])
        self.assertEqual(server.end(), 0)

    def test_is_no_FIFO_that_waits_for_whoever_writes_to_it(self):
        os.mkfifo(self.at("exports"))
        self.bad(2, f"'{self.at('exports')}' is a FIFO: name a regular file", "serve", "--exports-file", self.at("exports"), "--check")

    def test_may_be_a_pipe_that_was_handed_over(self):
        checked = stag("serve", "--exports-file", "/dev/stdin", "--check", stdin=None, input=f"{self.there()} *(insecure)\n")
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_may_be_missing_where_there_are_others_beside_it(self):
        self.beside("a.exports", f"{self.there()} *(insecure)\n")
        server = Server([], self.at("state"), ("--exports-file", self.at("exports")))
        self.assertEqual(self.good("ls", server.url("/")).split(), [self.there()])
        self.assertEqual(server.end(), 0)

    def test_stands_beside_exports_of_the_command_line(self):
        path = self.write(self.at("exports"), f"{self.there()} *(insecure)\n".encode())
        server = Server(["/memory=memory"], self.at("state"), ("--exports-file", path))
        self.assertEqual(self.good("ls", server.url("/")).split(), ["/memory", self.there()])
        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    harness.main()
