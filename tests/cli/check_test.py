"""`stag serve --check`: what is wrong with a configuration is said before a server has it; and what is told of a reload that failed."""
import ctypes
import json
import os
import signal
import subprocess
import unittest

import harness
import service_test
from exports_test import mounting
from harness import stag
from observe_test import scraped, value_in

UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "systemd", "stag.service")


class Checks(service_test.Case):
    def check(self, *arguments, **options):
        return stag("serve", "--config", self.path, "--state", self.state, "--check", *arguments, **options)

    def refused(self, code, sentence, *lines):
        self.config(*lines)
        result = self.check()
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertIn(sentence, result.stderr)

    def test_say_nothing_of_a_good_file_and_leave_a_server_that_runs_alone(self):
        self.config(f'export = ["/a=memory", "/work={self.work}/.."]', 'state = "/nonexistent"', "slow-call = 1")
        manager = self.manager()
        result = self.check(env=manager.environment)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.assertFalse(os.path.exists(self.state))
        self.config('export = "/a=memory"')
        server = self.start("--config", self.path, exports=(), env=manager.environment)
        self.assertEqual(manager.hear("")["STATUS"], "Serving /a", "the first that it hears")
        result = self.check("--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(stag("ls", server.url("/a")).returncode, 0)

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_say_that_the_state_directory_cannot_be_written(self):
        os.mkdir(self.state)
        self.config('export = "/a=memory"')
        read_only = 1
        for flags, size, why in ((0, b"size=32k", "No space left on device"), (read_only, b"size=1m", "Read-only file system")):
            result = self.check(preexec_fn=mounting(b"none", self.state, b"tmpfs", flags, size))
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(f"{self.state}", result.stderr)
            self.assertIn(why, result.stderr)
        result = self.check()
        self.assertEqual((result.returncode, result.stderr, os.listdir(self.state)), (0, "", []))

    def test_say_that_the_state_directory_cannot_be_made(self):
        self.config('export = "/a=memory"')
        for state in ("/proc/none", "/proc/none/deep"):
            result = stag("serve", "--config", self.path, "--state", state, "--check")
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(f"cannot make {state}: ", result.stderr)

    def test_say_what_a_start_would_be_told(self):
        self.refused(2, f"{self.path}:2: there is no setting 'colour'", 'export = "/a=memory"', 'colour = "red"')
        self.refused(2, "'rx' is not known", 'export = "/a=memory,rx"')
        self.refused(2, "nothing to serve", "# nothing")
        self.refused(2, "is given twice", 'export = ["/a=memory", "/a=memory"]')
        self.refused(1, f"{self.path}:1: ", 'export = "/a=/nonexistent"')
        self.refused(1, "there is no group 'no-such-group'", 'export = "/a=memory"', 'control-group = "no-such-group"')
        for setting in ("capture", "control"):
            self.refused(1, f"--{setting} /nonexistent/x: there is no directory /nonexistent", 'export = "/a=memory"', f'{setting} = "/nonexistent/x"')
            self.refused(1, f"--{setting} {self.work}: it is a directory", 'export = "/a=memory"', f'{setting} = "{self.work}"')
        self.refused(1, "have at most 107 bytes", 'export = "/a=memory"', f'control = "{self.work}/{"x" * 108}"')
        self.refused(1, "there is a file that is no socket", 'export = "/a=memory"', f'control = "{self.path}"')
        self.refused(2, "--records: 'ceph:nfs/a/b' names no pool of Ceph", 'export = "/a=memory"', 'records = "ceph:nfs/a/b"')
        for addresses in '"0.0.0.0", "127.0.0.1"', '"::1", "::1"', '"::", "192.0.2.1"':
            self.refused(2, "have an address in common", 'export = "/a=memory"', f"listen = [{addresses}]")
        self.refused(1, "have an address in common", 'export = "/a=memory"', 'listen = ["0.0.0.0", "::1", "localhost"]')
        self.refused(2, "--metrics [::1]:2049 is where --tcp-port listens, too", 'export = "/a=memory"', 'listen = "::"', 'metrics = "[::1]:2049"')
        self.refused(1, "keytab", 'export = "/a=memory,sec=krb5"', f'keytab = "{self.work}/none"')

    def test_tell_the_control_socket_of_another_server_from_that_of_the_one_that_runs(self):
        place = os.path.join(self.work, "place")
        self.config('export = "/a=memory"', f'control = "{place}"')
        self.start("--config", self.path, exports=())
        result = self.check()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.state += "-of-another"
        self.start()
        own = os.path.join(self.state, "control")
        self.config('export = "/a=memory"', f'control = "{own}"')
        self.assertEqual(self.check().returncode, 0)
        self.refused(1, f"cannot make the control socket {place} (--control): another server listens there", 'export = "/a=memory"', f'control = "{place}"')

    def passed(self, text):
        """A pipe that has this to be read."""
        read, write = os.pipe()
        with open(write, "w") as pipe:
            pipe.write(text)
        pipe = open(read)
        self.addCleanup(pipe.close)
        return pipe

    def test_read_what_is_passed_open(self):
        """As `... | stag serve --check --config /dev/stdin` does, and <(...) of a shell."""
        for option, text in (("--exports-file", f'"{self.work}" *(rx)\n'), ("--config", 'export = "/a=memory,rx"\n')):
            for place in "/dev/stdin", "/dev/fd/{}":
                pipe = self.passed(text)
                result = stag("serve", "--check", "--state", self.state, option, place.format(pipe.fileno()), stdin=pipe, pass_fds=[pipe.fileno()])
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn("'rx'", result.stderr)

    def test_are_of_what_a_start_reads_too(self):
        pipe = self.passed('export = "/a=memory"\n')
        server = self.start("--config", f"/dev/fd/{pipe.fileno()}", exports=(), pass_fds=[pipe.fileno()])
        self.assertEqual(stag("ls", server.url("/a")).returncode, 0)

    def test_wait_for_nobody_to_write_into_a_FIFO(self):
        os.mkfifo(self.path)
        result = self.check()
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertIn(f"'{self.path}' is a FIFO: name a regular file", result.stderr)

    def test_leave_no_process_behind(self):
        """In a container nobody would wait for its end."""
        self.config(f'export = "/work={self.work}/.."')
        # What the check leaves behind becomes a child of this process.
        prctl, set_subreaper = ctypes.CDLL(None).prctl, 36
        self.addCleanup(prctl, set_subreaper, 0, 0, 0, 0)
        self.assertEqual(prctl(set_subreaper, 1, 0, 0, 0), 0)
        self.assertEqual(self.check().returncode, 0)
        self.assertRaises(ChildProcessError, os.waitpid, -1, os.WNOHANG)

    def test_tell_the_journal_the_priority_of_each_line(self):
        """Which goes by the process that looks at the folders."""
        self.config('export = "/a=memory,secure,no_root_squash"', 'capture = "/nonexistent/x"')
        command = [*service_test.Journal.SERVICE, harness.STAG, "serve", "--config", self.path, "--state", self.state, "--check"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=harness.PATIENCE)
        self.assertEqual((result.returncode, [line[:15] for line in result.stderr.splitlines()]), (1, ["<4>stag serve: ", "<3>stag serve: "]), result.stderr)

    def test_come_before_a_reload_of_the_service(self):
        with open(UNIT) as file:
            check, signal_it = [line for line in file if line.startswith("ExecReload=")]
        self.assertEqual(check, "ExecReload=/usr/bin/stag serve --config /etc/stag/stag.toml $STAG_OPTIONS --check\n")
        self.assertIn("kill -HUP", signal_it)


class Reloads(service_test.Case):
    def test_that_fail_are_told_to_the_service_manager_in_the_metrics_and_in_the_status_until_one_succeeds(self):
        metric = "stag_config_last_reload_successful"
        asked = ("status", "--state", self.state)
        self.config('export = "/x=memory"')
        manager = self.manager()
        server = self.start("--config", self.path, "--metrics", "127.0.0.1:0", exports=(), env=manager.environment)
        manager.hear("READY=")
        self.assertEqual(value_in(scraped(server), metric), 1)
        self.config('export = "/y=memory"', "colour = 'a\\\\nb'")
        server.process.send_signal(signal.SIGHUP)
        status = manager.hear("READY=")["STATUS"]
        self.assertRegex(status, f"^The last reload failed: {self.path}:2: there is no setting 'colour'.*; Serving /x$")
        self.assertEqual(value_in(scraped(server), metric), 0)
        why = json.loads(stag(*asked, "--json").stdout)["server"]["last_reload_error"]
        self.assertRegex(why, f"^{self.path}:2: there is no setting 'colour'")
        self.assertIn(f"\nthe last reload failed: {self.path}:2: ", stag(*asked).stdout)
        self.config('export = "/y=memory"')
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(manager.hear("READY=")["STATUS"], "Serving /y")
        self.assertEqual(value_in(scraped(server), metric), 1)
        self.assertEqual(json.loads(stag(*asked, "--json").stdout)["server"]["last_reload_error"], "")

    def test_that_meet_a_FIFO_fail_and_those_that_come_later_are_done(self):
        self.config('export = "/x=memory"')
        manager = self.manager()
        server = self.start("--config", self.path, exports=(), env=manager.environment)
        manager.hear("READY=")
        os.unlink(self.path)
        os.mkfifo(self.path)
        server.process.send_signal(signal.SIGHUP)
        self.assertIn("is a FIFO: name a regular file", manager.hear("READY=")["STATUS"])
        os.unlink(self.path)
        self.config('export = "/y=memory"')
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(manager.hear("READY=")["STATUS"], "Serving /y")

    def test_that_fail_for_long_reasons_are_told_in_a_message_that_systemd_takes(self):
        self.config('export = "/x=memory"')
        manager = self.manager()
        server = self.start("--config", self.path, exports=(), env=manager.environment)
        manager.hear("READY=")
        self.config(f'export = "/y=/{"é" * 3000}"')
        server.process.send_signal(signal.SIGHUP)
        self.assertRegex(manager.hear("READY=")["STATUS"], "^The last reload failed: .*é.*; Serving /x$")


if __name__ == "__main__":
    harness.main()
