"""`stag capture`: what goes over a running server's RDMA connections, for a while."""
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time
import unittest

import harness
from harness import PATIENCE, STAG, Proxy, stag
from nfs4_client import Case

SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6


def blocks(data):
    """(type, body) of the blocks of a pcapng; raises where the last one is not whole."""
    found, at = [], 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        assert size >= 12 and size % 4 == 0 and at + size <= len(data), (at, kind, size, len(data))
        assert struct.unpack_from("<I", data, at + size - 4)[0] == size
        found.append((kind, data[at + 8 : at + size - 4]))
        at += size
    return found


def packets(data):
    return [body[20:] for kind, body in blocks(data) if kind == PACKET]


def statistics(data):
    """Frames that were there, and how many of them were lost; they are the last block."""
    kind, body = blocks(data)[-1]
    assert kind == STATISTICS, kind
    return struct.unpack_from("<Q", body, 16)[0], struct.unpack_from("<Q", body, 28)[0]


class Captured(Case):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.folder, "capture.pcapng")
        self.local = os.path.join(self.folder, "local")
        self.content = os.urandom(300001)
        with open(self.local, "wb") as file:
            file.write(self.content)

    def capture(self, *arguments, **options):
        """Captures when this returns: the server has answered, as the file shows."""
        process = subprocess.Popen(
            [STAG, "capture", "--state", self.state, *arguments],
            stdin=subprocess.DEVNULL,
            bufsize=0,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )
        self.addCleanup(self.reap, process)
        if arguments[-1] != "-":
            self.eventually(lambda: os.path.exists(arguments[-1]) and os.path.getsize(arguments[-1]) > 0, process)
        return process

    @staticmethod
    def reap(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def eventually(self, condition, process=None):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end)
            self.assertTrue(process is None or process.poll() is None, process and process.stderr)
            time.sleep(0.01)

    def ended(self, process, by=signal.SIGINT):
        process.send_signal(by)
        out, error = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, error), (0, b""))
        return out

    @staticmethod
    def waits(process):
        """How often its threads have waited for something."""
        count = 0
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            with open(f"/proc/{process.pid}/task/{thread}/status") as status:
                count += int(re.search(r"^voluntary_ctxt_switches:\s(\d+)$", status.read(), re.M)[1])
        return count

    def copied(self, server, name="file"):
        result = stag("cp", self.local, server.url(f"/data/{name}") + "&version=3")
        self.assertEqual(result.returncode, 0, result.stderr)

    def read(self):
        with open(self.file, "rb") as file:
            return file.read()

    def content_of(self, data):
        """Bytes of its frames."""
        return sum(len(body) for body in packets(data))


class Capture(Captured):
    def test_ends_though_nobody_reads_it(self):
        server = self.start()
        process = self.capture("-")
        # The first bytes fill it.
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        waiting = lambda: struct.unpack("i", fcntl.ioctl(process.stdout, termios.FIONREAD, b"\0" * 4))[0]
        self.eventually(lambda: waiting() > 0, process)
        self.copied(server)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE), 130)
        self.assertIn(b"nobody has read standard output", process.stderr.read())

    def test_has_what_was_copied_until_it_ends(self):
        server = self.start()
        self.copied(server, "before")
        process = self.capture(self.file)
        self.copied(server)
        summary = self.ended(process).decode()
        data = self.read()
        count = len(packets(data))
        self.assertEqual([kind for kind, _ in blocks(data)[:2]], [SECTION, INTERFACE])
        self.assertEqual(statistics(data), (count, 0))
        self.assertEqual(summary, f"capture: {count} packets, 0 of them lost, {len(data)} bytes\n")
        self.assertGreaterEqual(self.content_of(data), len(self.content))
        self.assertLess(self.content_of(data), 2 * len(self.content), "what was copied before is not in it")
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)

    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed, which reads captures")
    def test_is_read_by_tshark_on_a_connection_that_was_there_before(self):
        server = self.start()
        with open(os.path.join(self.data, "large"), "wb") as file:
            file.write(bytes(16 << 20))  # no more than waits for a reader, so that no frame is lost
        # A client in the middle of its file when the capture begins.
        proxy = Proxy(server.rdma_port, "down", 1 << 20)
        self.addCleanup(proxy.cut)
        url = server.url("/data/large", port=proxy.port) + "&version=3"
        client = subprocess.Popen([STAG, "cp", url, os.path.join(self.folder, "copy")], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.reap, client)
        self.assertTrue(proxy.reached.wait(PATIENCE))
        process = self.capture(self.file)
        proxy.released.set()
        _, error = client.communicate(timeout=PATIENCE)
        self.assertEqual((client.returncode, error), (0, b""))
        self.ended(process)
        shown = lambda *arguments: subprocess.run(
            ["tshark", "-2", "-r", self.file, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=True
        ).stdout.splitlines()
        self.assertEqual(statistics(self.read()), (len(shown()), 0))
        self.assertTrue(shown("-Y", "infiniband.mad.attributeid == 0x10"), "the beginning of the connection")
        calls = shown("-Y", "rpc.msgtyp == 0", "-T", "fields", "-e", "_ws.col.Info")
        self.assertTrue([call for call in calls if "V3 READ Call" in call and "(Reply In " in call], calls[:10])
        # A Reply whose Writes went before the capture began has no data: of a call that came before it, too.
        calls_of = lambda shape: shown("-Y", shape, "-T", "fields", "-E", "occurrence=f", "-e", "rpc.xid")
        begun, malformed = calls_of("rpc.msgtyp == 0"), calls_of("_ws.malformed")
        self.assertEqual(set(malformed) & set(begun), set())
        self.assertNotIn("", malformed)

    def test_goes_to_standard_output_with_its_summary_apart(self):
        server = self.start()
        process = self.capture("--json", "-")
        self.assertEqual(process.stdout.read(4), b"\x0a\x0d\x0d\x0a")
        self.copied(server)
        process.send_signal(signal.SIGINT)
        data, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)
        data = b"\x0a\x0d\x0d\x0a" + data
        self.assertEqual(json.loads(error), {"packets": len(packets(data)), "lost": 0, "bytes": len(data), "end": "asked"})

    def test_ends_after_its_time_and_at_its_size(self):
        server = self.start()
        result = stag("capture", "--state", self.state, "--seconds", "1", "--json", self.file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((json.loads(result.stdout)["end"], packets(self.read())), ("time", []))
        os.remove(self.file)  # capture() waits for the next one
        process = self.capture("--max", "1M", "--json", self.file)
        for number in range(4):
            self.copied(server, f"file{number}")
        out, _ = process.communicate(timeout=PATIENCE)
        summary = json.loads(out)
        self.assertEqual((summary["end"], summary["lost"], os.path.getsize(self.file)), ("size", 0, summary["bytes"]))
        self.assertLess(summary["bytes"], (1 << 20) + 1000)

    def test_is_of_one_client_where_that_is_wanted(self):
        server = self.start()
        mine, other = (os.path.join(self.folder, name) for name in ("mine", "other"))
        both = [self.capture("--client", client, file) for client, file in (("127.0.0.0/8", mine), ("192.0.2.7", other))]
        self.copied(server)
        for process in both:
            self.ended(process)
        sizes = []
        for file in (mine, other):
            with open(file, "rb") as opened:
                sizes.append(len(packets(opened.read())))
        self.assertGreater(sizes[0], 10)
        self.assertEqual(sizes[1], 0)

    def test_shows_on_a_terminal_how_far_it_is(self):
        server = self.start()
        controller, terminal = harness.open_terminal(self)
        process = self.capture(self.file, stderr=terminal)
        os.close(terminal)
        shown = b""
        while not re.search(rb"[1-9]\d* packets, 0 of them lost, .*Ctrl-C ends", shown):
            if b"0 packets" in shown:
                self.copied(server)
            shown += os.read(controller, 65536)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE), 0)
        os.close(controller)


class Server(Captured):
    def test_captures_for_several_and_for_its_own_file_at_once(self):
        own = os.path.join(self.folder, "own.pcapng")
        server = self.start("--capture", own)
        files = [os.path.join(self.folder, f"capture{i}") for i in range(4)]
        running = [self.capture(file) for file in files]
        result = stag("capture", "--state", self.state, self.file)
        self.assertEqual(result.returncode, 1)
        self.assertIn("4 captures are running", result.stderr)
        self.assertFalse(os.path.exists(self.file), "a capture that is refused leaves no file")
        self.copied(server)
        for process in running:
            self.ended(process)
        self.assertEqual(server.end(), 0)
        counts = set()
        for name in [*files, own]:
            with open(name, "rb") as file:
                data = file.read()
            self.assertEqual(statistics(data), (len(packets(data)), 0))
            counts.add(len(packets(data)))
        self.assertEqual(len(counts), 1, "all have the same")

    def test_waits_for_no_reader_and_counts_what_is_lost(self):
        server = self.start()
        process = self.capture("--json", "-")
        self.assertEqual(process.stdout.read(4), b"\x0a\x0d\x0d\x0a")
        with open(self.local, "wb") as file:
            file.write(bytes(40 << 20))
        self.copied(server)  # while nobody reads
        process.send_signal(signal.SIGINT)
        data, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)
        data = b"\x0a\x0d\x0d\x0a" + data
        frames, lost = statistics(data)
        self.assertGreater(lost, 0)
        self.assertEqual(frames - lost, len(packets(data)))
        self.assertEqual(json.loads(error)["lost"], lost)

    def test_is_whole_for_a_reader_that_is_slow_behind_its_end(self):
        server = self.start()
        process = self.capture("--json", "-")
        begin = process.stdout.read(4)
        with open(self.local, "wb") as file:
            file.write(bytes(4 << 20))
        self.copied(server)  # while nobody reads
        before = self.waits(process)
        process.send_signal(signal.SIGINT)
        # It has looked for the reader again and again since.
        self.eventually(lambda: self.waits(process) >= before + 10, process)
        data, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, error)
        frames, lost = statistics(begin + data)
        self.assertEqual(frames - lost, len(packets(begin + data)))

    def test_ends_as_by_SIGPIPE_where_nobody_reads_standard_output(self):
        server = self.start()
        process = self.capture("-")
        self.assertEqual(process.stdout.read(4), b"\x0a\x0d\x0d\x0a")
        process.stdout.close()
        self.copied(server)
        self.assertEqual(process.wait(PATIENCE), 141)
        self.assertEqual(process.stderr.read(), b"")

    def test_ends_the_capture_of_a_reader_that_vanishes(self):
        server = self.start()
        for _ in range(8):  # twice as many as there may be at a time
            process = self.capture(self.file)
            process.kill()
            process.communicate()
            os.unlink(self.file)
            self.copied(server)
            self.eventually(lambda: self.captures(server) == 0)

    def captures(self, server):
        """How many connections its control socket has besides that which asks now."""
        with open("/proc/net/unix") as table:
            return sum(line.rstrip().endswith(os.path.join(self.state, "control")) for line in table) - 1

    def test_ends_with_a_capture_that_can_be_read(self):
        server = self.start()
        process = self.capture(self.file)
        self.copied(server)
        self.assertEqual(server.end(), 0)
        _, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"the server ended", error)
        self.assertEqual(statistics(self.read())[1], 0)

    def test_lets_its_successor_capture_to_the_same_file_when_it_has_ended(self):
        server = self.start("--capture", self.file)
        self.copied(server)
        ports = ("--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port))
        successor = harness.Server([f"/data={self.data},no_root_squash"], self.state, ("--take-over", "--capture", self.file), ports=ports)
        self.addCleanup(self.kill, successor)
        self.assertRegex(server.process.stdout.read().splitlines()[-1], r"^capture: \d+ frames, 0 of them lost$")
        self.assertEqual(server.process.wait(PATIENCE), 0)
        server.end()
        self.copied(successor, "other")
        self.assertEqual(successor.end(), 0)
        data = self.read()
        self.assertEqual(statistics(data), (len(packets(data)), 0))

    def test_ends_at_the_first_signal_though_the_server_stands_still_and_keeps_what_it_has(self):
        server = self.start()
        process = self.capture(self.file)
        self.copied(server)
        self.eventually(lambda: os.path.getsize(self.file) > len(self.content), process)
        harness.stand_still(self, server.process)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out), (130, b""))
        self.assertIn(b"the server has not answered for 10 s", error)
        data = self.read()
        self.assertEqual(statistics(data), (len(packets(data)), 0))

    def test_lets_only_administrators_capture(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        os.chmod(self.folder, 0o755)
        self.start("--control-group", "nogroup")
        os.chmod(self.state, 0o755)
        refused = subprocess.run(
            [STAG, "capture", "--state", self.state, os.path.join(self.data, "capture")],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, user=65534, group=65534, extra_groups=[],
        )
        self.assertEqual(refused.returncode, 1)
        self.assertIn("only root and the user of the server may capture", refused.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.data, "capture")))

    def test_refuses_requests_that_make_no_sense(self):
        self.start()
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(PATIENCE)
            peer.connect(os.path.join(self.state, "control"))
            peer.sendall(b'{"command":"capture","client":"nobody"}\n')
            self.assertEqual(json.loads(peer.makefile().readline()), {"error": "'nobody' is no address"})


class Misuse(Captured):
    def test_needs_an_address_and_a_file(self):
        result = stag("capture", "--client", "nobody", self.file)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--client 'nobody' is no address", result.stderr)
        self.assertEqual(stag("capture").returncode, 2)

    def test_says_where_no_server_and_where_no_file_is(self):
        result = stag("capture", "--state", self.folder, self.file)
        self.assertEqual(result.returncode, 1)
        self.assertIn("no server listens at", result.stderr)
        self.start()
        result = stag("capture", "--state", self.state, self.data)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"cannot write '{self.data}'", result.stderr)


if __name__ == "__main__":
    harness.main()
