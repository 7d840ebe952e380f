"""`stag conform`: our server passes, and a server that is wrong, silent or gone is said to be."""
import collections
import concurrent.futures
import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import xml.etree.ElementTree

import harness

NOENT, PERM = 2, 1
WITH_CALLBACKS = "a delegation to read", "for the second time", "not acknowledged"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# To the client's callback program, in the reverse direction: what is before the credits that are asked for, and behind them.
CALL_OF_SERVER = rb"(.{4}\0\0\0\x01).{4}(\0{16}.{4}\0\0\0\0\0\0\0\x02\x40\0\0\0\0\0\0\x01)"


class Changing(harness.Proxy):
    """Forwards, and changes what the server sends, or with `changed` "up" the client: whole messages of `size_of(buffer)` bytes."""

    def __init__(self, port, size_of, change, changed="down"):
        self.size_of, self.change, self.changed = size_of, change, changed
        super().__init__(port, changed, 1 << 62)

    def _forward(self, source, target, direction):
        if direction != self.changed:
            return super()._forward(source, target, direction)
        waiting = b""
        try:
            while data := source.recv(65536):
                waiting += data
                while (size := self.size_of(waiting)) is not None and len(waiting) >= size:
                    target.sendall(self.change(waiting[:size]))
                    waiting = waiting[size:]
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Losing(harness.Proxy):
    """Forwards, until a client ends a connection on which the server has called it: then nobody can connect any more."""

    def __init__(self, port):
        self.called = set()
        super().__init__(port, "down", 1 << 62)

    def _forward(self, source, target, direction):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if direction == "down" and re.search(CALL_OF_SERVER, data, flags=re.DOTALL):
                    self.called.add(target)
                target.sendall(data)
        if source in self.called:
            self.target = 1
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class WritingBeyond(harness.Proxy):
    """Forwards, and before the answer writes `beyond` bytes more than it has into the chunk that a client announced, or under another handle."""

    def __init__(self, port, beyond, other_handle):
        self.beyond, self.other_handle, self.chunk = beyond, other_handle, None
        super().__init__(port, "down", 1 << 62)

    def _forward(self, source, target, direction):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                # An absent list, and a Write or Reply chunk of one short segment: handle, length, offset.
                announced = re.search(rb"\0\0\0\0\0\0\0\x01\0\0\0\x01(.{4})\0\0\0(.)(.{8})", data, flags=re.DOTALL)
                if direction == "up" and announced:
                    self.chunk = announced.groups()
                if direction == "down" and self.chunk:
                    handle = bytes(byte ^ self.other_handle for byte in self.chunk[0])
                    target.sendall(fpdu(b"\xc1\x40" + handle + self.chunk[2] + b"x" * (self.chunk[1][0] + self.beyond)))
                    self.chunk = None
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


def fpdu(ulpdu):
    """Without a checksum."""
    return struct.pack(">H", len(ulpdu)) + ulpdu + bytes(-(len(ulpdu) + 2) % 4 + 4)


def record_size(buffer):
    """Of an RPC message over TCP in one fragment."""
    return 4 + (struct.unpack(">I", buffer[:4])[0] & 0x7FFFFFFF) if len(buffer) >= 4 else None


def no_entry_is_not_permitted(record):
    """NFS4ERR_NOENT as NFS4ERR_PERM, in the status of a COMPOUND and in that of its last operation."""
    if len(record) < 36 or struct.unpack(">I", record[28:32])[0] != NOENT or record[-4:] != struct.pack(">I", NOENT):
        return record
    wrong = struct.pack(">I", PERM)
    return record[:28] + wrong + record[32:-4] + wrong


def no_credits_asked_for(data):
    """Of Calls to the client's callback program, in the reverse direction: a request for zero credits."""
    return re.sub(CALL_OF_SERVER, rb"\1\0\0\0\0\2", data, flags=re.DOTALL)


def four_credits_granted(data):
    """Of a client's answers that grant one."""
    answer = rb"(.{4}\0\0\0\x01)\0\0\0\x01(\0{16}.{4}\0\0\0\x01)"
    return re.sub(answer, lambda found: found[1] + b"\0\0\0\4" + found[2], data, flags=re.DOTALL)


def another_range(data):
    """ERR_VERS that offers version 2 only."""
    return data.replace(struct.pack(">4I", 4, 1, 1, 1), struct.pack(">4I", 4, 1, 2, 2))


def another_error(data, xid, version, credits):
    """ERR_VERS for a message of version 2, with what is not None instead of its own."""
    error = rb"(.{4})(\0\0\0\x02)(.{4})(\0\0\0\x04\0\0\0\x01)"
    return re.sub(error, lambda found: (xid or found[1]) + (version or found[2]) + (credits or found[3]) + found[4], data, flags=re.DOTALL)


class Conform(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.version4 = harness.Server(
            [f"/files={cls.served},no_root_squash", "/memory=memory,no_root_squash"],
            os.path.join(cls.work, "state4"),
            ["--grace", "1"],
        )

    @classmethod
    def tearDownClass(cls):
        code = cls.version4.end()
        super().tearDownClass()
        if code != 0:
            raise AssertionError(f"the server ended with {code}")

    def results(self, *arguments, code=0):
        # Thousands of cases: with sanitizers, on a machine with other work, that takes minutes.
        done = harness.stag("conform", "--json", "--timeout", "60", *arguments, timeout=5 * harness.PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr + "\n".join(self.failures(done.stdout)))
        return json.loads(done.stdout)

    @staticmethod
    def failures(text):
        cases = json.loads(text)["cases"] if text.startswith("{") else []
        return [f"{c['suite']}.{c['group']}.{c['name']}: {c['detail']}" for c in cases if c["outcome"] == "fail"]

    def test_version_4_passes_by_tcp(self):
        found = self.results("nfs4", self.version4.tcp("/memory"))
        ran = collections.Counter(c["suite"] for c in found["cases"] if c["outcome"] == "pass")
        self.assertGreater(ran["nfs4.0"], 440)
        self.assertGreater(ran["nfs4.1"], 570)
        self.assertGreater(ran["nfs4.2"], 720)
        for case in found["cases"]:
            self.assertRegex(case["section"], r"^RFC \d{4} [\d.]+$", case)
            self.assertNotEqual(case["detail"], "no case asks for it", case)
        listing = self.good("ls", self.version4.url("/memory"))
        self.assertEqual(listing, "", "something was left behind")

    def test_what_needs_callbacks_is_asked_by_either_transport(self):
        for url in self.version4.tcp("/memory"), self.version4.url("/memory"), self.version4.url(f"/files/{self.name}"):
            for operation, asked in ("DELEGRETURN", 2), ("OFFLOAD_STATUS", 1), ("OFFLOAD_CANCEL", 1):
                cases = self.results("--minor", "2", "--filter", f"nfs4.2.{operation}.*", "nfs4", url)["cases"]
                called_back = [c for c in cases if any(word in c["name"] for word in WITH_CALLBACKS)]
                self.assertEqual([c["outcome"] for c in called_back], ["pass"] * asked, called_back)

    def test_a_folder_passes_by_rdma(self):
        self.results("--minor", "1", "nfs4", self.version4.url(f"/files/{self.name}"))
        self.assertEqual(os.listdir(self.there()), [])

    def test_the_transport_passes(self):
        found = self.results("rpcrdma", self.version4.url("/memory"))
        self.assertGreater(found["counts"]["pass"], 90)
        self.assertEqual(found["counts"]["skipped"], 0)
        with open(os.path.join(ROOT, "docs", "requirements.tsv"), encoding="utf-8") as table:
            known = {line.split("\t")[0] for line in table}
        for case in found["cases"]:
            self.assertLessEqual(set(case["requirements"].split()), known, case)

    def test_a_server_that_is_named_without_an_export_is_asked_in_one_that_takes_folders(self):
        exports = ["/a=memory,ro", "/deep/b=memory,no_root_squash", "/deep/c=memory,no_root_squash"]
        server = harness.Server(exports, self.at("state"), ["--grace", "1"])
        options = ("--json", "--timeout", "60", "--minor", "1", "--filter", "nfs4.1.LOOKUP.*")
        done = harness.stag("conform", *options, "nfs4", server.tcp("/"))
        self.assertEqual((done.returncode, self.failures(done.stdout)), (0, []), done.stderr)
        self.assertIn("works in '/deep/b'", done.stderr)
        self.assertEqual(self.good("ls", server.url("/deep/b")), "")
        done = harness.stag("conform", "--json", "--timeout", "60", "rpcrdma", server.url("/"))
        self.assertEqual((done.returncode, json.loads(done.stdout)["counts"]["skipped"]), (0, 0), done.stderr)
        self.assertEqual(server.end(), 0)

    def test_where_no_folder_can_be_made_that_is_said_with_what_to_give(self):
        server = harness.Server(["/a=memory,ro"], self.at("state"), ["--grace", "1"])
        self.bad(1, "in no export a folder can be made; name one that can be written to, by --export", "conform", "nfs4", server.tcp("/"))
        done = harness.stag("conform", "--filter", "*version*", "rpcrdma", server.url("/"))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("cases that need a file are skipped: in no export a folder can be made", done.stderr)
        self.assertEqual(server.end(), 0)

    def test_a_wrong_status_fails(self):
        proxy = Changing(self.version4.tcp_port, record_size, no_entry_is_not_permitted)
        self.addCleanup(proxy.cut)
        url = f"nfs://127.0.0.1:{proxy.port}/memory?proto=tcp"
        report = self.at("report.xml")
        found = self.results("--minor", "1", "--filter", "nfs4.1.LOOKUP.*", "--junit", report, "nfs4", url, code=1)
        failed = self.failures(json.dumps(found))
        self.assertIn(
            "nfs4.1.LOOKUP.NFS4ERR_NOENT, a name that is not there: NFS4ERR_PERM came, asked for NFS4ERR_NOENT", failed
        )
        suites = xml.etree.ElementTree.parse(report).getroot()
        self.assertEqual(int(suites.get("failures")), len(failed))
        self.assertEqual(len(suites.findall("testsuite/testcase/failure")), len(failed))
        self.assertEqual(int(suites.get("tests")), len(suites.findall("testsuite/testcase")))

    def test_a_wrong_range_of_versions_fails(self):
        proxy = Changing(self.version4.rdma_port, lambda buffer: len(buffer) or None, another_range)
        self.addCleanup(proxy.cut)
        url = f"nfs://127.0.0.1:{proxy.port}/memory?mountport={self.version4.tcp_port}"
        done = harness.stag("conform", "--filter", "*rdma_vers 2 *", "rpcrdma", url)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ERR_VERS 2..2 came", done.stdout)

    def test_an_error_that_is_not_that_of_the_message_fails(self):
        for what, why in (
            ((b"\xde\xad\xbe\xef", None, None), "came with XID 0xdeadbeef, the message had"),
            ((None, b"\0\0\0\x63", None), "came with version 99, the message had 2"),
            ((None, None, b"\0\0\0\0"), "came with zero credits"),
        ):
            proxy = Changing(self.version4.rdma_port, lambda buffer: len(buffer) or None, lambda data, what=what: another_error(data, *what))
            self.addCleanup(proxy.cut)
            url = f"nfs://127.0.0.1:{proxy.port}/memory?mountport={self.version4.tcp_port}"
            done = harness.stag("conform", "--filter", "*rdma_vers 2 *", "rpcrdma", url)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(why, done.stdout)

    def test_a_server_that_writes_behind_a_chunk_fails(self):
        for one in "*too small is not written beyond", "*one that is too small draws ERR_CHUNK*":
            for handle, why in (0, "memory behind the chunk was written"), (0xFF, "the connection was lost: the peer used a memory handle"):
                proxy = WritingBeyond(self.version4.rdma_port, 4, handle)
                self.addCleanup(proxy.cut)
                url = f"nfs://127.0.0.1:{proxy.port}/memory?mountport={self.version4.tcp_port}"
                done = harness.stag("conform", "--filter", one, "rpcrdma", url)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(why, done.stdout)
            self.good("conform", "--filter", one, "rpcrdma", self.version4.url("/memory"))

    def test_a_call_of_the_server_without_a_request_for_credits_fails(self):
        proxy = Changing(self.version4.rdma_port, lambda buffer: len(buffer) or None, no_credits_asked_for)
        self.addCleanup(proxy.cut)
        url = f"nfs://127.0.0.1:{proxy.port}/memory?mountport={self.version4.tcp_port}"
        done = harness.stag("conform", "--filter", "rpcrdma.callback.CB_RECALL*", "rpcrdma", url)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the server's Call: a request for zero credits", done.stdout)
        self.good("conform", "--filter", "rpcrdma.callback.*", "rpcrdma", self.version4.url("/memory"))

    def test_a_server_that_calls_beyond_its_credits_fails(self):
        proxy = Changing(self.version4.rdma_port, lambda buffer: len(buffer) or None, four_credits_granted, changed="up")
        self.addCleanup(proxy.cut)
        one = ("--filter", "rpcrdma.callback.a second CB_RECALL waits*", "rpcrdma")
        url = f"nfs://127.0.0.1:{proxy.port}/memory?mountport={self.version4.tcp_port}"
        done = harness.stag("conform", *one, url)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("a second Call came before the first was answered", done.stdout)
        self.good("conform", *one, self.version4.url("/memory"))

    def test_a_server_that_is_gone_with_the_connection_of_a_callback_fails(self):
        proxy = Losing(self.version4.rdma_port)
        self.addCleanup(proxy.cut)
        one = ("--filter", "rpcrdma.callback.the connection is lost*", "rpcrdma")
        url = f"nfs://127.0.0.1:{proxy.port}/files/{self.name}?mountport={self.version4.tcp_port}"
        done = harness.stag("conform", "--timeout", "60", *one, url)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no connection after that", done.stdout)
        self.good("conform", *one, self.version4.url(f"/files/{self.name}"))

    def test_a_client_of_version_4_0_is_called_where_it_listens(self):
        url = self.version4.tcp("/memory")
        for where, outcome in ("&callback=127.0.0.1", "pass"), ("", "skipped"):
            for pattern, count in ("OPEN.NFS4_OK*deleg*", 2), ("RENEW.*delegation*", 1), ("DELEGRETURN.NFS4_OK*", 1):
                found = self.results("--minor", "0", "--filter", f"nfs4.0.{pattern}", "nfs4", url + where)
                self.assertEqual([c["outcome"] for c in found["cases"]], [outcome] * count, found["cases"])

    def test_leases_that_run_out_are_waited_for_where_that_is_wanted(self):
        server = harness.Server(["/memory=memory,no_root_squash"], self.at("state"), ["--grace", "1", "--lease", "10"])
        patterns = "*.READ.NFS4ERR_EXPIRED*", "*.DELEGRETURN.NFS4ERR_DELEG_REVOKED*"

        def asked(pattern, url, *more):
            cases = self.results(*more, "--minor", "1", "--filter", pattern, "nfs4", url)["cases"]
            return [(case["outcome"], case["detail"]) for case in cases]

        for pattern in patterns:
            [(outcome, detail)] = asked(pattern, server.tcp("/memory"))
            self.assertEqual(outcome, "skipped")
            self.assertIn("--slow-cases", detail)
        with concurrent.futures.ThreadPoolExecutor() as at_once:
            waiting = [at_once.submit(asked, pattern, url, "--slow-cases")
                       for pattern in patterns for url in (server.tcp("/memory"), server.url("/memory"))]
        for each in waiting:
            self.assertEqual([outcome for outcome, _ in each.result()], ["pass"], each.result())
        self.assertEqual(server.end(), 0)

    def test_waiting_for_a_lease_is_shown_and_can_be_interrupted(self):
        url = f"{self.version4.tcp(f'/files/{self.name}')}"
        shown, terminal = harness.open_terminal(self)
        arguments = ["conform", "--slow-cases", "--minor", "1", "--filter", "*.READ.NFS4ERR_EXPIRED*", "nfs4", url]
        command = subprocess.Popen([harness.STAG, *arguments], stdout=subprocess.PIPE, stderr=terminal, text=True)
        os.close(terminal)
        text = b""
        while b"(waits " not in text:
            text += os.read(shown, 4096)
        self.assertNotEqual(os.listdir(self.there()), [])
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=harness.PATIENCE)
        os.close(shown)
        self.assertEqual(command.returncode, 130)
        self.assertEqual(os.listdir(self.there()), [])

    def test_a_server_that_says_nothing_costs_a_time_out(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"nfs://127.0.0.1:{silent.getsockname()[1]}/memory?proto=tcp"
            self.bad(1, "no answer within the time", "conform", "--timeout", "1", "--minor", "1", "--json", "nfs4", url)

    def test_an_interruption_leaves_nothing_behind(self):
        proxy = harness.Proxy(self.version4.tcp_port, "up", 50_000)
        self.addCleanup(proxy.cut)
        url = f"nfs://127.0.0.1:{proxy.port}/files/{self.name}?proto=tcp"
        report = self.at("report.xml")
        command = subprocess.Popen(
            [harness.STAG, "conform", "--minor", "1", "--json", "--junit", report, "nfs4", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        self.assertNotEqual(os.listdir(self.there()), [])
        command.send_signal(signal.SIGINT)
        proxy.released.set()
        proxy.left = 1 << 62
        output, errors = command.communicate(timeout=harness.PATIENCE)
        self.assertEqual(command.returncode, 130, errors)
        self.check_trouble(output, report, errors, "interrupted")
        self.assertEqual(os.listdir(self.there()), [])

    def check_trouble(self, output, report, errors, sentence):
        """What ended a run early stands in all that a program may read."""
        self.assertIn(sentence, errors)
        self.assertIn(sentence, json.loads(output).get("trouble", ""))
        suites = xml.etree.ElementTree.parse(report).getroot()
        self.assertEqual(suites.get("errors"), "1")
        self.assertIn(sentence, suites.find("testsuite/testcase/error").get("message"))
        self.assertEqual(int(suites.get("tests")), len(suites.findall("testsuite/testcase")))

    def test_a_run_that_cannot_begin_does_not_look_clean_to_programs(self):
        server = harness.Server(["/a=memory,ro"], self.at("state"), ["--grace", "1"])
        report = self.at("report.xml")
        for suite, url, sentence in (("nfs4", server.tcp("/a"), "NFS4ERR_ROFS"),
                                     ("rpcrdma", server.url("/a", port=server.tcp_port), "the port closed the connection without an answer")):
            done = harness.stag("conform", "--timeout", "5", "--json", "--junit", report, suite, url)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.check_trouble(done.stdout, report, done.stderr, sentence)
        self.assertEqual(server.end(), 0)
        self.good("conform", "--junit", report, "--filter", "*.LOOKUP.*", "nfs4", self.version4.tcp("/memory"))
        self.assertEqual(xml.etree.ElementTree.parse(report).getroot().get("errors"), "0")

    def test_a_server_that_cannot_be_reached_is_no_clean_run_either(self):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
        report = self.at("report.xml")
        for suite, path in (("nfs4", "/a?proto=tcp"), ("nfs4", "/a"), ("nfs4", ""), ("rpcrdma", "/a")):
            self.good("conform", "--junit", report, "--filter", "*.LOOKUP.*", "nfs4", self.version4.tcp("/memory"))
            done = harness.stag("conform", "--timeout", "5", "--json", "--junit", report, suite, f"nfs://127.0.0.1:{port}{path}")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.check_trouble(done.stdout, report, done.stderr, "refused the connection")

    def test_what_one_minor_version_leaves_behind_is_said_though_others_follow(self):
        proxy = harness.Proxy(self.version4.tcp_port, "up", 50_000)
        self.addCleanup(proxy.cut)
        url = f"nfs://127.0.0.1:{proxy.port}/files/{self.name}?proto=tcp"
        report = self.at("report.xml")
        done = harness.stag("conform", "--timeout", "1", "--json", "--junit", report, "nfs4", url)
        self.assertEqual(done.returncode, 1, done.stderr)
        [folder] = os.listdir(self.there())
        for sentence in f"the folder '{folder}' remains at the server", "EXCHANGE_ID: no results":
            self.check_trouble(done.stdout, report, done.stderr, sentence)

    def test_cases_are_listed_without_a_server(self):
        everything = self.good("conform", "--list", "nfs4").splitlines()
        locks = self.good("conform", "--list", "--filter", "*.LOCK.*", "nfs4").splitlines()
        self.assertGreater(len(everything), 2500)
        self.assertTrue(all(".LOCK." in line for line in locks) and 0 < len(locks) < len(everything))
        self.assertEqual(len(set(everything)), len(everything), "two cases have one name")
        self.bad(1, "no case", "conform", "--list", "--filter", "nothing", "nfs4")
        wrong = harness.stag("conform", "nfs9", "server")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("nfs9 not in {nfs4,rpcrdma}", wrong.stderr)


if __name__ == "__main__":
    harness.main()
