"""`stag serve` with a folder whose file system does not answer: it freezes nobody but its own clients, and neither a reload nor the
end of the server waits for it for ever."""
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import fuse_store
import harness
from harness import PATIENCE, Server, stag
from observe_test import scraped, value_in


class HangingStore:
    """A mounted file system that hangs when told to."""

    def __init__(self, folder):
        self.folder = folder
        os.mkdir(folder)
        never_cached = "attr_timeout=0,entry_timeout=0,negative_timeout=0,default_permissions,allow_other"
        self.process = fuse_store.mounted(folder, "-o", never_cached, stdout=subprocess.PIPE, text=True)

    def hang(self):
        self.process.send_signal(signal.SIGUSR1)
        self.wait_for("hangs")

    def wait_for(self, word):
        for line in self.process.stdout:
            if line.strip() == word:
                return
        raise AssertionError(f"the store never was '{word}'")

    def answer(self):
        self.process.send_signal(signal.SIGUSR2)

    def end(self):
        # Its connection is broken off: whoever waits for it is let go.
        self.process.kill()
        self.process.wait()
        while os.path.ismount(self.folder) or self.is_broken():
            subprocess.run(["umount", "-l", self.folder], check=False)
        self.process.stdout.close()

    def is_broken(self):
        try:
            os.stat(self.folder)
        except OSError as error:
            return error.errno == errno.ENOTCONN
        return False


class StoreThatHangs(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-stores-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.state = os.path.join(self.work, "state")
        self.store = HangingStore(os.path.join(self.work, "slow"))
        self.addCleanup(self.store.end)
        self.good = os.path.join(self.work, "good")
        os.mkdir(self.good)
        os.chmod(self.good, 0o777)
        os.chmod(self.work, 0o755)
        self.config = os.path.join(self.work, "stag.toml")
        self.exports("/good=" + self.good, "/slow=" + self.store.folder)
        self.waiting = []

    def exports(self, *texts):
        with open(self.config, "w") as file:
            file.write("export = [" + ", ".join(f'"{text}"' for text in texts) + "]\n")

    def start(self, *arguments):
        server = Server((), self.state, ("--config", self.config, "--loops", "1", "--store-patience", "1", *arguments))
        self.addCleanup(self.end, server)
        return server

    def end(self, server):
        if server.process.poll() is None:
            self.store.end()
            server.process.kill()
            server.process.wait()
        server.process.stdout.close()
        server.errors.close()

    def ask(self, url):
        """Somebody who waits for the store that hangs."""
        process = subprocess.Popen([harness.STAG, "stat", url], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        self.waiting.append(process)

    def wait_for_log(self, server, pattern):
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, server.log()):
            self.assertLess(time.monotonic(), end, server.log())
            time.sleep(0.02)

    def works(self, server, name):
        for url in (server.url("/good"), server.tcp("/good")):
            at = url.replace("/good", f"/good/{name}", 1)
            for words in (("mkdir", at), ("stat", at), ("ls", url), ("rm", "-r", at)):
                result = stag(*words)
                self.assertEqual((result.returncode, result.stderr), (0, ""), words)

    def test_freezes_its_own_clients_only_and_is_told_of(self):
        server = self.start()
        self.assertEqual(stag("stat", server.url("/slow/file")).returncode, 0)
        self.store.hang()
        for _ in range(3):
            self.ask(server.url("/slow/file"))
            self.ask(server.tcp("/slow"))
        self.store.wait_for("asked")
        self.works(server, "before")
        self.wait_for_log(server, "export /slow: .*does not answer")
        self.works(server, "while")
        # What is asked for now waits in no queue: the reload serves another export, and keeps this one.
        self.exports("/good=" + self.good, "/slow=" + self.store.folder, "/more=memory")
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.process.stdout.readline(), "exports: added /more\n")
        self.assertEqual(stag("ls", server.url("/more")).returncode, 0)
        for process in self.waiting:
            self.assertIsNone(process.poll())
        self.store.answer()
        for process in self.waiting:
            self.assertEqual(process.wait(PATIENCE), 0, process.stderr.read())
        self.wait_for_log(server, "answers again")
        self.assertEqual(server.end(), 0)

    def test_of_a_successor_leaves_its_predecessor_where_it_is(self):
        self.exports("/good=" + self.good)
        server = self.start()
        self.exports("/good=" + self.good, "/slow=" + self.store.folder)
        self.store.hang()
        ports = ("--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port))
        successor = subprocess.Popen([harness.STAG, "serve", "--take-over", "--config", self.config, "--state", self.state, *ports, "--store-patience", "1"],
                                     stderr=subprocess.PIPE, text=True)
        self.addCleanup(successor.stderr.close)
        self.addCleanup(lambda: successor.poll() is None and (self.store.end(), successor.kill(), successor.wait()))
        self.assertIn("does not answer", successor.stderr.readline())
        self.works(server, "while")
        # Until then the kernel keeps the process.
        self.store.answer()
        self.assertEqual(successor.wait(PATIENCE), 1)
        self.works(server, "after")
        self.assertEqual(server.log(), "")

    def exports_file(self, *lines):
        with open(self.config, "w") as file:
            file.write("".join(f"{folder} *(rw,insecure{option})\n" for folder, option in lines))

    def test_that_has_to_be_mounted_keeps_no_reload_waiting(self):
        """The folder is exported as before. Of one that was not, nothing is known: the file changes nothing."""
        slow, good, more = (self.store.folder, ",mp"), (self.good, f",mp={self.work}/slow/file"), (os.path.join(self.work, "more"), "")
        os.mkdir(more[0])
        self.exports_file(slow, more)
        server = Server((), self.state, ("--exports-file", self.config, "--store-patience", "1"))
        self.addCleanup(self.end, server)
        self.store.hang()
        self.exports_file(slow, more, good)
        server.process.send_signal(signal.SIGHUP)
        self.wait_for_log(server, rf"ExportsReloadFailed SIGHUP: .*:3: .* mounted at {self.work}/slow/file .*it does not answer")
        self.exports_file(slow)
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.process.stdout.readline(), f"exports: removed {more[0]}\n")
        self.exports_file(more)
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.process.stdout.readline(), f"exports: added {more[0]}; removed {slow[0]}\n")
        self.store.answer()
        self.assertEqual(server.end(), 0)

    def test_is_told_by_metrics(self):
        server = self.start("--metrics", "127.0.0.1:0", "--slow-call", "0.000000001")
        each = [f"stag_store_{what}" for what in ("operations_running", "operations_waiting", "oldest_operation_seconds")]

        def values():
            text = scraped(server)
            return [value_in(text, name, store="export /slow", queue="plain") for name in each]

        self.assertEqual(values(), [0, 0, 0])
        self.store.hang()
        self.ask(server.url("/slow/file"))
        self.store.wait_for("asked")
        running, _, oldest = values()
        self.assertGreaterEqual(running, 1)
        self.assertGreater(oldest, 0)
        self.assertEqual([value_in(scraped(server), name, store="export /good") for name in each], [0, 0, 0])
        self.store.answer()
        for process in self.waiting:
            self.assertEqual(process.wait(PATIENCE), 0, process.stderr.read())
        while values() != [0, 0, 0]:
            pass  # The last answer is sent a moment before its worker is counted as idle.
        self.assertGreaterEqual(value_in(scraped(server), "stag_slow_calls_total"), len(self.waiting))
        self.assertEqual(server.end(), 0)

    def test_has_those_counted_that_wait_for_a_thread(self):
        """It has eight."""
        server = Server((), self.state, ("--config", self.config, "--store-patience", "3600", "--metrics", "127.0.0.1:0"))
        self.addCleanup(self.end, server)

        def values():
            text = scraped(server)
            return [value_in(text, f"stag_store_operations_{what}", store="export /slow", queue="plain") for what in ("running", "waiting")]

        self.store.hang()
        for _ in range(11):
            self.ask(server.url("/slow/file"))
        end = time.monotonic() + PATIENCE
        while (now := values()) != [8, 3]:
            self.assertLess(time.monotonic(), end, now)
        self.store.answer()
        for process in self.waiting:
            self.assertEqual(process.wait(PATIENCE), 0, process.stderr.read())
        while values() != [0, 0]:
            pass  # The last answer is sent a moment before its worker is counted as idle.
        self.assertEqual(server.end(), 0)

    def test_is_told_by_metrics_once_however_often_exports_are_read_again(self):
        server = self.start("--metrics", "127.0.0.1:0")
        self.store.hang()
        self.ask(server.url("/slow/file"))
        self.store.wait_for("asked")
        threads = []
        for _ in range(4):
            # The first asks the folder on a thread of its own, and the others know that it has not answered.
            server.process.send_signal(signal.SIGHUP)
            self.assertEqual(server.process.stdout.readline(), "exports: nothing has changed\n")
            # No series is there twice, which value_in() finds.
            threads.append(value_in(scraped(server), "stag_store_operations_running", store="export /slow", queue="plain"))
        self.assertGreaterEqual(threads[0], 2)
        self.assertEqual(threads, threads[:1] * 4)
        status = json.loads(stag("status", "--json", "--state", self.state).stdout)
        self.assertEqual([store["store"] for store in status["stores"]], ["export /good", "export /slow", f"state directory {self.state}"])
        self.store.answer()
        self.assertEqual(self.waiting[0].wait(PATIENCE), 0)
        self.assertEqual(server.end(), 0)

    def test_does_not_keep_the_server_from_ending(self):
        server = self.start()
        self.store.hang()
        self.ask(server.url("/slow/file"))
        self.store.wait_for("asked")
        server.process.send_signal(signal.SIGTERM)
        self.wait_for_log(server, "ends before the last calls have: no answer from the file system below export /slow")
        # The kernel keeps the process while its call is in the store's hands. Nothing else of it is left.
        again = Server(("/good=" + self.good,), self.state, ports=("--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port)))
        self.assertEqual(stag("ls", again.url("/good")).returncode, 0)
        self.assertEqual(again.end(), 0)
        self.store.end()
        self.assertEqual(server.process.wait(PATIENCE), 1)

    def test_is_not_served_if_it_hangs_from_the_start(self):
        harness.stand_still(self, self.store.process)
        arguments = ("serve", "--config", self.config, "--state", self.state, "--store-patience", "1", "--rdma-port", "0", "--tcp-port", "0")
        started = stag(*arguments)
        self.store.process.send_signal(signal.SIGCONT)
        self.assertEqual(started.returncode, 1)
        self.assertIn(f"the folder {self.store.folder} does not answer", started.stderr)

    def test_is_remarked_on_by_a_check_which_is_no_failure(self):
        """A reload leaves it as it is, and would not be done otherwise (ExecReload=)."""
        harness.stand_still(self, self.store.process)
        checked = stag("serve", "--check", "--config", self.config, "--state", self.state, "--store-patience", "1")
        self.assertEqual(checked.returncode, 0)
        self.assertIn(f"the folder {self.store.folder} does not answer", checked.stderr)

    def test_keeps_no_check_from_ending_that_it_has_taken_a_call_of(self):
        """Nor whoever reads what the check says: that takes until nobody has the pipe any more."""
        self.store.hang()
        for export, code, sentence in (("memory", 0, f"the folder {self.store.folder} does not answer"), ("/nonexistent", 1, "the folder /nonexistent: ")):
            self.exports("/slow=" + self.store.folder, "/other=" + export)
            command = (harness.STAG, "serve", "--check", "--config", self.config, "--state", self.state, "--store-patience", "1")
            checking = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                output, errors = checking.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                self.store.answer()
                checking.communicate()
                self.fail("it ends only now")
            self.assertEqual((checking.returncode, output), (code, ""), errors)
            self.assertIn(sentence, errors)

    def test_is_asked_together_with_others_by_a_check_a_start_and_a_reload(self):
        """Each answers only when the other one has been asked, too."""
        other = HangingStore(os.path.join(self.work, "other"))
        self.addCleanup(other.end)
        watchdog = threading.Timer(PATIENCE, lambda: (self.store.process.kill(), other.process.kill()))
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        stores = (self.store, other)
        self.exports(*(f"/{number}={store.folder}" for number, store in enumerate(stores)))

        def hang():
            for store in stores:
                store.hang()

        def answer():
            for store in stores:
                store.wait_for("asked")
            for store in stores:
                store.answer()

        patient = ("--config", self.config, "--store-patience", "3600")
        hang()
        checking = subprocess.Popen((harness.STAG, "serve", "--check", "--state", self.state, *patient), stderr=subprocess.PIPE, text=True)
        answer()
        self.assertEqual((checking.communicate(timeout=PATIENCE)[1], checking.returncode), ("", 0))
        hang()
        answering = threading.Thread(target=answer)
        answering.start()
        server = Server((), self.state, patient)
        self.addCleanup(self.end, server)
        answering.join()
        hang()
        server.process.send_signal(signal.SIGHUP)
        answer()
        self.assertEqual(server.process.stdout.readline(), "exports: nothing has changed\n")
        self.assertEqual(server.end(), 0)

    def test_with_the_state_directory_of_a_lost_server_delays_nobody_else(self):
        self.exports("/good=" + self.good)
        server = self.start()
        lost = self.store.folder
        adopt = ("clients", "adopt", lost, "--state", self.state)
        self.store.hang()
        adopting = subprocess.Popen((harness.STAG, *adopt), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.store.wait_for("asked")
        # Its end is not that of what the server does for it.
        adopting.send_signal(signal.SIGINT)
        self.assertEqual(adopting.wait(PATIENCE), 130)
        for _ in range(4):
            again = stag(*adopt)
            self.assertEqual((again.returncode, again.stdout), (1, ""))
            self.assertIn(f"another 'stag clients adopt' still waits for '{lost}'", again.stderr)
        opened = stag("touch", server.tcp("/good/new") + "&version=4.1")
        self.assertEqual((opened.returncode, opened.stderr), (0, ""))
        self.wait_for_log(server, f"StoreHangs state directory {lost}: ")
        self.store.answer()
        self.wait_for_log(server, f"StoreAnswers state directory {lost}: ")
        self.assertIn("is no state directory", stag(*adopt).stderr)
        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    reason = fuse_store.why_not()
    if reason is not None:
        print(f"skipped: {reason}")
        sys.exit(harness.SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
