#!/usr/bin/env python3
"""What an operator sees of a running server: metrics for Prometheus, `stag status`, `stag top`, and events in the log."""
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import termios
import time
import unittest
import urllib.request

import callbacks_test
import harness
import nfs4_client
from harness import PATIENCE, STAG, stag
from nfs4_client import LOOKUP, NLM_GRANTED, OK, PUTROOTFH, Case, nlm_lock, opaque, words

GETATTR = 9
NOENT = 2
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "observability.md")
MESSAGES = os.path.join(os.path.dirname(PAGE), "messages.md")


def parse(text):
    """Families by name: (type, help, {(sample name, labels): value}); raises where the text breaks the rules of the format."""
    families, name = {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, about = line.split(" ", 3)
            assert name not in families, f"{name} twice"
            families[name] = [None, about, {}]
        elif line.startswith("# TYPE "):
            _, _, typed, kind = line.split(" ")
            assert typed == name, line
            families[name][0] = kind
        else:
            sample = re.fullmatch(r'([a-z0-9_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)', line)
            assert sample and sample[1].startswith(name), line
            key = (sample[1], tuple(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', sample[2] or "")))
            assert key not in families[name][2], f"{key} twice"
            families[name][2][key] = float(sample[3])
    return families


def scraped(server):
    """What Prometheus would read of a server that was started with --metrics."""
    (line,) = [line for line in server.lines if line.startswith("metrics: ")]
    with urllib.request.urlopen(line.split(" ")[1], timeout=PATIENCE) as answer:
        return answer.read().decode()


def value_in(text, name, **labels):
    """The sum of the samples that have these labels."""
    families = parse(text)
    samples = families[max((family for family in families if name.startswith(family)), key=len)][2]
    return sum(value for (sample, has), value in samples.items() if sample == name and labels.items() <= dict(has).items())


def lint(families):
    """What `promtool check metrics` complains about."""
    for name, (kind, about, samples) in families.items():
        assert about.endswith("."), name
        assert (kind == "counter") == name.endswith("_total"), name
        assert kind in ("counter", "gauge", "histogram"), name
        assert not re.search("_(ms|us|milliseconds|microseconds|kilobytes)(_|$)", name), name
        for sample, labels in samples:
            assert len(set(key for key, _ in labels)) == len(labels), labels
            assert sample == name or kind == "histogram", sample


class Observed(Case):
    def start(self, *arguments):
        self.server = super().start("--metrics", "127.0.0.1:0", *arguments)
        return self.server

    def scrape(self):
        return scraped(self.server)

    def value(self, name, **labels):
        return value_in(self.scrape(), name, **labels)

    def asked(self, command, *arguments):
        result = stag(command, *arguments, "--state", self.state)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout


class Metrics(Observed):
    def test_count_calls_errors_bytes_and_clients(self):
        server = self.start()
        self.assertEqual(self.value("stag_calls_total"), 0)
        with open(os.path.join(self.data, "file"), "wb") as file:
            file.write(bytes(1 << 20))
        self.assertEqual(stag("cp", server.url("/data/file") + "&version=3", os.path.join(self.folder, "copy")).returncode, 0)
        self.assertEqual(stag("cat", server.tcp("/data/none") + "&version=3").returncode, 1)
        read = {"program": "nfs", "version": "3", "procedure": "READ"}
        reads = self.value("stag_calls_total", **read)
        self.assertGreaterEqual(reads, 1)
        self.assertEqual(self.value("stag_call_duration_seconds_count", **read), reads)
        self.assertEqual(self.value("stag_call_duration_seconds_bucket", **read, le="+Inf"), reads)
        self.assertEqual(self.value("stag_call_errors_total", procedure="LOOKUP", status="NFS3ERR_NOENT"), 1)
        self.assertGreaterEqual(self.value("stag_sent_bytes_total", transport="rdma", kind="write"), 1 << 20)
        self.assertGreaterEqual(self.value("stag_export_call_duration_seconds_count", export="/data"), reads)
        while self.value("stag_connections", transport="rdma") != 0:
            pass  # The server has yet to notice that the client is gone.
        self.assertGreaterEqual(self.value("stag_connections_opened_total", transport="rdma"), 1)

    def test_count_what_clients_have_read_and_written_by_export(self):
        server = self.start()
        with open(os.path.join(self.data, "file"), "wb") as file:
            file.write(bytes(range(256)) * 500)
        copy = os.path.join(self.folder, "copy")
        read, written = 0, 0
        for version in ("2", "3", "4.0", "4.2"):
            for url in (server.tcp("/data/file"), server.url("/data/file")):
                if version == "2" and url == server.url("/data/file"):
                    continue
                self.assertEqual(stag("cp", f"{url}&version={version}", copy).returncode, 0)
                self.assertEqual(stag("cp", copy, f"{url}&version={version}").returncode, 0)
                read, written = read + 128000, written + 128000
                self.assertEqual(self.value("stag_export_read_bytes_total", export="/data"), read, (version, url))
                self.assertEqual(self.value("stag_export_written_bytes_total", export="/data"), written, (version, url))
        self.assertEqual(self.value("stag_export_read_bytes_total"), read)

    def test_tell_times_in_seconds(self):
        server = self.start()
        begun = time.monotonic()
        anna = self.client(server)
        for _ in range(200):
            anna.call(100003, 3, 0, b"")
        took = time.monotonic() - begun
        text = self.scrape()
        null = {"program": "nfs", "version": "3", "procedure": "NULL"}
        self.assertEqual(value_in(text, "stag_call_duration_seconds_count", **null), 200)
        self.assertGreater(value_in(text, "stag_call_duration_seconds_sum", **null), 200 * 50e-9)
        self.assertLess(value_in(text, "stag_call_duration_seconds_sum", **null), took)
        bounds = {dict(labels)["le"] for sample, labels in parse(text)["stag_call_duration_seconds"][2] if sample.endswith("_bucket")}
        self.assertEqual({min(map(float, bounds)), max(map(float, bounds - {"+Inf"}))}, {1e-05, 10})
        # None takes as long as all of them.
        over = min(float(bound) for bound in bounds if float(bound) >= took)
        self.assertEqual(value_in(text, "stag_call_duration_seconds_bucket", **null, le=next(bound for bound in bounds if float(bound) == over)), 200)

    def test_count_operations_and_state_of_version_4(self):
        server = self.start()
        anna = self.ready_client(server)
        _, stateid, handle = anna.create_file(b"file")
        self.assertEqual(anna.lock(handle, stateid, 0), OK)
        self.assertEqual(anna.in_session(words(PUTROOTFH), words(GETATTR, 1, 2))[0], OK)
        self.assertEqual(self.value("stag_nfs4_operations_total", operation="CREATE_SESSION"), 1)
        self.assertGreaterEqual(self.value("stag_nfs4_operations_total", operation="SEQUENCE"), 3)
        self.assertEqual(self.value("stag_nfs4_operation_duration_seconds_count", operation="OPEN"), 1)
        self.assertEqual([self.value(f"stag_nfs4_{what}") for what in ("sessions", "opens", "locks", "delegations")], [1, 1, 1, 0])
        self.assertEqual(self.value("stag_nfs4_clients", state="confirmed"), 1)

    def test_count_errors_of_operations_by_their_status(self):
        anna = self.ready_client(self.start())
        self.assertEqual(anna.in_session(words(PUTROOTFH), words(LOOKUP) + opaque(b"none"))[0], NOENT)
        self.assertEqual(self.value("stag_nfs4_operation_errors_total", operation="LOOKUP", status="NFS4ERR_NOENT"), 1)
        self.assertEqual(self.value("stag_nfs4_operation_errors_total"), 1)
        self.assertEqual(self.value("stag_uncounted_errors_total"), 0)

    def test_count_all_errors_that_a_client_can_bring_about(self):
        """`stag conform` tries what statuses there are."""
        self.server = server = harness.Server(["/data=memory,no_root_squash"], self.state, ["--metrics", "127.0.0.1:0"])
        self.addCleanup(self.kill, server)
        self.assertEqual(stag("conform", "--timeout", "60", "nfs4", server.tcp("/data"), timeout=4 * PATIENCE).returncode, 0)
        text = self.scrape()
        self.assertEqual(value_in(text, "stag_uncounted_errors_total"), 0)
        self.assertEqual(stag("stat", server.tcp("/data/none") + "&version=3").returncode, 1)
        self.assertGreater(self.value("stag_call_errors_total", program="nfs", version="3", status="NFS3ERR_NOENT"), 0)
        errors = json.loads(self.asked("status", "--json"))["server"]["errors"]
        self.assertEqual(errors, self.value("stag_call_errors_total"))

    def test_count_locks_by_NLM_and_delegations(self):
        # Which ends when its clients have.
        listener = callbacks_test.Listener()
        self.addCleanup(listener.close)
        self.server = server = harness.Server(["/data=memory"], self.state, ["--metrics", "127.0.0.1:0"])
        self.addCleanup(self.kill, server)
        anna = callbacks_test.Client(server.tcp_port, listener)
        self.addCleanup(anna.close)
        anna.open_confirmed()
        self.assertEqual(self.value("stag_nfs4_delegations"), 0)
        while anna.open()[2] == callbacks_test.NONE:
            pass  # The server has yet to hear from the listener.
        self.assertEqual(self.value("stag_nfs4_delegations"), 1)
        bert = self.ready_client(server, b"bert")
        _, _, handle = bert.create_file(b"locked")
        self.assertEqual([self.value(f"stag_nlm_{what}") for what in ("hosts", "locks")], [0, 0])
        for first in (0, 20):
            self.assertEqual(nlm_lock(bert, b"host", handle, first, 10), NLM_GRANTED)
        self.assertEqual([self.value(f"stag_nlm_{what}") for what in ("hosts", "locks")], [1, 2])

    def test_count_the_bytes_that_come_by_each_way(self):
        server = self.start()
        local = os.path.join(self.folder, "local")
        with open(local, "wb") as file:
            file.write(bytes(1 << 20))
        by = [("rdma", "inline"), ("rdma", "read"), ("tcp", "record"), ("udp", "datagram")]

        def received():
            text = self.scrape()
            return [value_in(text, "stag_received_bytes_total", transport=transport, kind=kind) for transport, kind in by]

        self.assertEqual((received(), self.value("stag_rdma_read_chunks_total")), ([0, 0, 0, 0], 0))
        self.assertEqual(stag("cp", local, server.tcp("/data/tcp")).returncode, 0)
        rdma_inline, rdma_read, record, datagram = received()
        self.assertEqual((rdma_inline, rdma_read, datagram, self.value("stag_rdma_read_chunks_total")), (0, 0, 0, 0))
        by_tcp = self.value("stag_nfs4_operations_total", operation="WRITE")
        self.assertGreater(record, 1 << 20)
        self.assertEqual(stag("cp", local, server.url("/data/rdma") + "&version=4.1").returncode, 0)
        rdma_inline, rdma_read, same, datagram = received()
        self.assertGreaterEqual(rdma_read, 1 << 20)
        self.assertGreater(rdma_inline, 0)
        self.assertEqual((same, datagram), (record, 0))
        # Each WRITE has one.
        self.assertEqual(self.value("stag_rdma_read_chunks_total"), self.value("stag_nfs4_operations_total", operation="WRITE") - by_tcp)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.settimeout(PATIENCE)
            null = words(1, 0, 2, 100005, 3, 0, 0, 0, 0, 0)
            peer.sendto(null, ("127.0.0.1", server.tcp_port))
            peer.recv(100)
            self.assertEqual(received()[3], len(null))

    def test_count_whole_calls_that_come_by_Position_Zero(self):
        server = self.start("--inline-threshold", "1024")
        local = os.path.join(self.folder, "local")
        with open(local, "wb") as file:
            file.write(bytes(1 << 20))
        try:
            os.setxattr(local, "user.long", bytes(3000))
        except OSError as error:
            self.skipTest(f"no extended attributes here: {error}")

        def read():
            text = self.scrape()
            return [value_in(text, "stag_received_bytes_total", transport="rdma", kind=kind) for kind in ("position_zero_read", "read")]

        # What such an attribute is set to is no data item of its own.
        self.assertEqual(stag("cp", "-a", local, server.url("/data/file") + "&version=4.2").returncode, 0)
        whole, arguments = read()
        self.assertGreater(whole, 3000)
        self.assertLess(whole, 4096)
        self.assertEqual(arguments, 1 << 20)

    def test_count_the_addresses_that_have_connections(self):
        server = self.start()
        self.assertEqual(self.value("stag_client_addresses"), 0)
        clients = [nfs4_client.Client(server.tcp_port, b"anna", source=f"127.0.0.{host}") for host in (2, 2, 3)]
        for client in clients:
            self.addCleanup(client.close)
            client.call(100003, 3, 0, b"")
        self.assertEqual((self.value("stag_connections"), self.value("stag_client_addresses")), (3, 2))
        clients[2].close()
        while self.value("stag_connections") != 2:
            pass  # The server has yet to notice that the client is gone.
        self.assertEqual(self.value("stag_client_addresses"), 1)

    def test_tell_how_long_the_server_runs(self):
        begun = time.monotonic()
        self.start()
        runs = time.monotonic()
        for _ in range(2):
            asked = time.monotonic()
            uptime = self.value("stag_uptime_seconds")
            self.assertTrue(asked - runs <= uptime <= time.monotonic() - begun, uptime)

    def test_tell_the_credits_of_the_connections_that_are_open(self):
        server = self.start()
        self.assertEqual(self.value("stag_rdma_credits_granted"), 0)
        ping = subprocess.Popen([STAG, "ping", server.url("/data")], stdout=subprocess.DEVNULL)
        while self.value("stag_rdma_credits_granted") == 0:
            self.assertIsNone(ping.poll())
        ping.send_signal(signal.SIGINT)
        ping.wait(PATIENCE)
        while self.value("stag_rdma_credits_granted") != 0:
            pass  # The server has yet to notice that the client is gone.

    def test_tell_what_the_process_uses_and_may_use(self):
        begun = time.time()
        server = self.start()
        with open(f"/proc/{server.process.pid}/limits") as limits:
            (most,) = [line.split()[3] for line in limits if line.startswith("Max open files")]
        text = self.scrape()
        self.assertEqual(str(int(value_in(text, "process_max_fds"))), most)
        self.assertGreater(value_in(text, "process_open_fds"), 2)
        self.assertGreater(value_in(text, "process_resident_memory_bytes"), 1 << 20)
        self.assertTrue(begun <= value_in(text, "process_start_time_seconds") <= time.time())
        used = value_in(text, "process_cpu_seconds_total")
        self.assertGreater(used, 0)
        again = self.scrape()
        self.assertGreater(value_in(again, "process_cpu_seconds_total"), used)
        self.assertEqual(value_in(again, "process_start_time_seconds"), value_in(text, "process_start_time_seconds"))

    @unittest.skipIf(harness.is_sanitized(), "the sanitizer wants descriptors, too")
    def test_tell_how_near_to_its_limit_the_process_is_when_the_scrape_has_its_last_descriptor(self):
        process, kind = self.start().process.pid, resource.RLIMIT_NOFILE
        has = {int(each) for each in os.listdir(f"/proc/{process}/fd")}
        last = min(set(range(len(has) + 1)) - has)
        resource.prlimit(process, kind, (last + 1, resource.prlimit(process, kind)[1]))
        text = self.scrape()
        self.assertEqual(value_in(text, "process_max_fds"), last + 1)
        self.assertGreater(value_in(text, "process_open_fds"), 0.9 * (last + 1))
        self.assertGreater(value_in(text, "process_resident_memory_bytes"), 1 << 20)

    def test_count_slow_calls(self):
        anna = self.ready_client(self.start("--slow-call", "3600"))
        anna.call(100003, 3, 0, b"")
        self.assertEqual(self.value("stag_slow_calls_total"), 0)
        self.kill(self.server)
        anna = self.client(self.start("--slow-call", "0.000000001"))
        anna.call(100003, 3, 0, b"")
        self.assertEqual(self.value("stag_slow_calls_total"), 1)

    def test_count_a_new_export_where_as_many_as_there_is_room_for_have_gone(self):
        path = os.path.join(self.folder, "stag.toml")

        def export(paths):
            with open(path, "w") as file:
                file.write(f"export = {json.dumps([each + '=memory' for each in paths])}\n")

        export([f"/{number}" for number in range(64)])
        self.server = harness.Server((), self.state, ("--config", path, "--metrics", "127.0.0.1:0", "--slow-call", "0.000000001"))
        self.addCleanup(self.kill, self.server)
        export(["/new"])
        self.server.process.send_signal(signal.SIGHUP)
        while stag("ls", self.server.tcp("/new") + "&version=3").returncode != 0:
            pass
        self.assertGreater(self.value("stag_export_call_duration_seconds_count", export="/new"), 0)
        slow = json.loads(self.asked("status", "--json"))["slow"]
        self.assertIn("/new", [call.get("export") for call in slow if call["call"].startswith("nfs 3 ")])

    def test_are_those_that_the_page_lists(self):
        self.start()
        with open(PAGE) as file:
            rows = re.findall(r"^\| (`(?:stag|process)_.*?) \|", file.read(), re.M)
        listed = re.findall(r"`((?:stag|process)_[a-z0-9_]+)", " ".join(rows))
        self.assertEqual(sorted(listed), sorted(parse(self.scrape())))

    def test_count_the_replies_over_RDMA_that_go_by_a_Reply_chunk(self):
        server = self.start()
        for number in range(300):
            with open(os.path.join(self.data, f"name-{number:0100}"), "wb"):
                pass

        def sent():
            text = self.scrape()
            bytes_sent = [value_in(text, "stag_sent_bytes_total", transport="rdma", kind=kind) for kind in ("inline", "write", "reply")]
            return [*bytes_sent, value_in(text, "stag_rdma_writes_total")]

        self.assertEqual(sent(), [0, 0, 0, 0])
        # A listing is no data item of its own: what is longer than the inline threshold goes as a whole into the Reply chunk.
        self.assertEqual(len(self.asked_of("ls", server.url("/data") + "&version=3").splitlines()), 300)
        inline, write, reply, writes = sent()
        self.assertGreater(reply, 300 * 105)
        self.assertEqual(write, 0)
        self.assertGreater(inline, 0)
        self.assertGreater(writes, 0)
        with open(os.path.join(self.data, "file"), "wb") as file:
            file.write(bytes(1 << 20))
        self.asked_of("cat", server.url("/data/file") + "&version=3")
        _, *sizes, more_writes = sent()
        self.assertEqual(sizes, [1 << 20, reply])
        self.assertGreater(more_writes, writes)

    def asked_of(self, *arguments):
        result = stag(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_name_the_reasons_of_refusals(self):
        server = self.start("--allow", "192.0.2.0/24")
        with socket.create_connection(("127.0.0.1", server.tcp_port)) as peer:
            peer.settimeout(PATIENCE)
            self.assertEqual(peer.recv(1), b"")
        self.assertEqual(self.value("stag_events_total", reason="PeerNotAllowed"), 1)

    def test_count_each_line_of_the_log_that_the_page_lists_from_0_on(self):
        """Those of `stag mount` have a section of their own."""
        self.start("--log-level", "off")
        with open(MESSAGES) as file:
            serves, mounts = [], []
            for section in re.split("^## ", file.read(), flags=re.M):
                (mounts if section.startswith("`stag mount`") else serves).extend(re.findall(r"^\| `(\w+)` \|", section, re.M))
        counted = {dict(labels)["reason"]: value for (_, labels), value in parse(self.scrape())["stag_events_total"][2].items()}
        self.assertEqual(sorted(counted), sorted([*serves, "InjectedFault"]))  # which tests alone can bring about
        self.assertGreater(len(mounts), 3)
        self.assertEqual(counted["ExportClientUnknown"], 0)

    def test_count_what_the_server_says_of_itself(self):
        config = os.path.join(self.folder, "stag.toml")
        with open(config, "w") as file:
            file.write(f'export = "/data={self.data},client=nobody.invalid"\nlog-level = "off"\n')
        server = self.server = harness.Server([], self.state, ["--config", config, "--metrics", "127.0.0.1:0"])
        self.addCleanup(self.kill, server)
        self.ready_client(server)
        text = self.scrape()
        self.assertEqual(value_in(text, "stag_events_total", reason="ClientConnected"), 1)
        self.assertEqual(value_in(text, "stag_events_total", reason="SessionMade"), 1)
        self.assertGreaterEqual(value_in(text, "stag_events_total", reason="ExportClientUnknown"), 1)
        self.assertEqual(server.log(), "")

    def test_count_registered_memory(self):
        server = self.start()
        with open(os.path.join(self.folder, "local"), "wb") as file:
            file.write(bytes(1 << 20))
        # In the middle of the first WRITE's data, which the server has made room for and fetches.
        proxy = harness.Proxy(server.rdma_port, "up", 1 << 19)
        self.addCleanup(proxy.cut)
        copy = subprocess.Popen([STAG, "cp", os.path.join(self.folder, "local"), server.url("/data/file", port=proxy.port)])
        self.assertTrue(proxy.reached.wait(PATIENCE))
        self.assertGreaterEqual(self.value("stag_rdma_registered_ranges", fabric="iwarp"), 1)
        proxy.released.set()
        self.assertEqual(copy.wait(PATIENCE), 0)
        self.assertGreaterEqual(self.value("stag_rdma_registrations_total", fabric="iwarp"), 1)
        self.assertEqual(self.value("stag_rdma_registered_ranges", fabric="iwarp"), 0)
        self.assertEqual(self.value("stag_rdma_registrations_total", fabric="verbs"), 0)

    def obeys_the_rules_of_prometheus(self, text):
        lint(parse(text))
        promtool = shutil.which("promtool")
        if promtool:
            checked = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True, timeout=PATIENCE)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_obey_the_rules_of_prometheus(self):
        server = self.start()
        self.ready_client(server)
        self.assertEqual(stag("ls", server.url("/data")).returncode, 0)
        self.obeys_the_rules_of_prometheus(self.scrape())

    def test_can_be_read_whatever_bytes_the_path_of_an_export_has(self):
        paths = [b"/caf\xe9", b"/caf%E9", b"/cut\xe2\x82", b'/"\\', "/caf\u00e9 \u540d".encode()]
        server = self.server = harness.Server(
            [os.fsdecode(path) + "=" + self.data for path in paths], self.state, ["--metrics", "127.0.0.1:0"], errors="surrogateescape")
        self.addCleanup(self.kill, server)
        text = self.scrape()
        self.obeys_the_rules_of_prometheus(text)
        labels = [dict(labels) for name in ("stag_export_call_duration_seconds", "stag_store_operations_running") for _, labels in parse(text)[name][2]]
        shown = ["/caf%E9", "/caf%25E9", "/cut%E2%82", r'/\"\\', "/caf\u00e9 \u540d"]
        self.assertEqual({has["export"] for has in labels if "export" in has}, set(shown))
        self.assertEqual({has["store"] for has in labels if "store" in has}, {"export " + path for path in shown} | {"state directory " + self.state})

    def test_of_an_export_go_on_when_another_folder_is_put_in_its_place(self):
        config = os.path.join(self.folder, "stag.toml")
        with open(config, "w") as file:
            file.write(f'export = "/data={self.data}"\n')
        server = self.server = harness.Server([], self.state, ["--config", config, "--metrics", "127.0.0.1:0"])
        self.addCleanup(self.kill, server)
        self.asked_of("ls", server.url("/data") + "&version=3")
        before = self.value("stag_export_call_duration_seconds_count", export="/data")
        self.assertGreater(before, 0)
        os.rename(self.data, self.data + ".old")
        os.mkdir(self.data, 0o755)
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.process.stdout.readline(), "exports: changed /data\n")
        # No series is there twice, which scrape() finds. The server counts the new folder as /data a moment after its line.
        while self.value("stag_export_call_duration_seconds_count", export="/data") == before:
            self.asked_of("ls", server.url("/data") + "&version=3")

    def test_do_not_grow_with_clients(self):
        server = self.start()
        names = [line.rsplit(" ", 1)[0] for line in self.scrape().splitlines()]
        for i in range(2, 6):
            with socket.create_connection(("127.0.0.1", server.tcp_port), source_address=(f"127.0.0.{i}", 0)):
                pass
        self.assertEqual([line.rsplit(" ", 1)[0] for line in self.scrape().splitlines()], names)

    def test_are_served_while_a_scraper_is_slow_and_end_with_the_server(self):
        server = self.start()
        (line,) = [line for line in server.lines if line.startswith("metrics: ")]
        port = int(re.search(r":(\d+)/", line)[1])
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(b"GET /metrics HTTP/1.1\r\n")
            self.assertIn("stag_calls_total", self.scrape())
            self.assertEqual(stag("ls", server.tcp("/data")).returncode, 0)
            self.assertEqual(server.end(), 0)

    def test_need_an_address_that_can_be_had(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            at = f"127.0.0.1:{taken.getsockname()[1]}"
            for address, code, sentence in (
                (at, 1, f"cannot listen at {at} (--metrics)"),
                ("9469", 2, "--metrics '9469' is no address"),
                ("127.0.0.1:http", 2, "is no address"),
                ("127.0.0.1:1,127.0.0.1:2", 2, "is no address"),
            ):
                result = stag("serve", "--export", "/x=memory", "--state", self.state, "--rdma-port", "0", "--tcp-port", "0", "--metrics", address)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(sentence, result.stderr)


@unittest.skipUnless(shutil.which("tshark"), "tshark is not installed, which reads captures")
class Capture(Observed):
    def shown(self, *arguments):
        result = subprocess.run(["tshark", "-2", "-r", self.capture, *arguments], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.splitlines()

    def test_shows_every_call_with_its_reply_and_its_data(self):
        self.capture = os.path.join(self.folder, "capture.pcapng")
        server = self.start("--capture", self.capture)
        local = os.path.join(self.folder, "local")
        with open(local, "wb") as file:
            file.write(os.urandom(300001))
        url = server.url("/data/file") + "&version=3"
        for arguments in (("cp", local, url), ("cp", url, local + ".back"), ("ls", server.url("/data")), ("cp", local, server.url("/data/file") + "&version=4.1")):
            result = stag(*arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
        code, last = server.process.terminate(), server.process.stdout.read().splitlines()[-1]
        self.assertEqual(server.process.wait(PATIENCE), 0, code)
        self.assertRegex(last, r"^capture: \d+ frames, 0 of them lost$")
        self.assertEqual(len(self.shown()), int(last.split()[1]))
        self.assertEqual(os.stat(self.capture).st_mode & 0o777, 0o600)
        calls = self.shown("-Y", "rpc.msgtyp == 0", "-T", "fields", "-e", "_ws.col.Info")
        self.assertEqual([call for call in calls if "(Reply In " not in call], [])
        for what in ("V3 LOOKUP Call", "V3 READ Call", "V3 WRITE Call", "V4 Call", "WRITE StateID"):
            self.assertTrue([call for call in calls if what in call], what)
        self.assertTrue(self.shown("-Y", "infiniband.mad.attributeid == 0x10"))
        written = self.shown("-Y", "infiniband.reth", "-T", "fields", "-e", "infiniband.reth.dmalen")
        self.assertGreaterEqual(sum(int(size) for size in written), 3 * 300001)
        self.assertEqual(self.shown("-Y", "_ws.malformed && !(nfs.procedure_v3 == 6 && rpc.msgtyp == 1)"), [])

    def test_needs_a_file_that_can_be_written(self):
        result = stag("serve", "--export", "/x=memory", "--state", self.state, "--rdma-port", "0", "--tcp-port", "0", "--capture", self.data)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"--capture: cannot write '{self.data}'", result.stderr)


class Status(Observed):
    def test_shows_who_is_connected_and_what_is_mounted(self):
        server = self.start()
        anna = self.ready_client(server)
        anna.call(100005, 3, 1, b"\0\0\0\5/data\0\0\0")
        status = json.loads(self.asked("status", "--json"))
        self.assertEqual((status["server"]["connections"], status["server"]["sessions"], status["server"]["addresses"]), (1, 1, 1))
        (row,) = status["connections"]
        self.assertEqual((row["address"], row["transport"]), ("127.0.0.1", "tcp"))
        self.assertGreaterEqual(row["calls"], 4)
        self.assertGreater(row["number"], 0)
        self.assertEqual(status["mounts"], [{"address": "127.0.0.1", "export": "/data"}])
        self.assertEqual([store["store"] for store in status["stores"]], ["export /data", f"state directory {self.state}"])
        self.assertEqual((status["slow"], status["limits"]), ([], []))
        text = self.asked("status")
        self.assertRegex(text, r"^stag \S+( \(\S+\))?, up 00:00:\d\d, ")
        self.assertIn("troubles: none\n", text)
        self.assertRegex(text, r"127\.0\.0\.1 \d+ +tcp ")
        # Version 4 has no message for it.
        self.assertIn("clients: 1 addresses with 1 connections, 1 mounts by versions 2 and 3 (version 4 announces none)\n", text)
        self.assertRegex(text, r"(?m)^CLIENT OF VERSION 4, OR NLM +VERS .*\n127\.0\.0\.1 +4\.1  confirmed +\d+ +0 +0 +0 anna$")
        (client,) = status["clients"]
        self.assertEqual((client["address"], client["version"], client["state"], client["sessions"]), ("127.0.0.1", "4.1", "confirmed", 1))

    def test_lists_slow_calls_and_limits_that_were_hit(self):
        server = self.start("--slow-call", "0.000000001", "--max-connections", "1")
        anna = self.ready_client(server)
        with socket.create_connection(("127.0.0.1", server.tcp_port)) as peer:
            peer.settimeout(PATIENCE)
            self.assertEqual(peer.recv(1), b"")
        anna.call(100003, 3, 0, b"")
        status = json.loads(self.asked("status", "--json"))
        call = status["slow"][0]
        self.assertEqual((call["call"], call["status"], call["netid"]), ("nfs 3 NULL", "OK", "tcp"))
        self.assertRegex(call["client"], r"^127\.0\.0\.1:\d+$")
        self.assertRegex(call["xid"], "^0x[0-9a-f]{8}$")
        self.assertIn(call["xid"], server.log())
        self.assertEqual([limit["reason"] for limit in status["limits"]], ["RpcTooManyConnections"])
        self.assertIn("trouble: 1 times RpcTooManyConnections", self.asked("status"))
        self.assertIn("nfs 3 NULL", self.asked("status"))

    def test_tells_of_a_grace_period_and_what_was_reclaimed(self):
        server = self.start()
        anna = self.ready_client(server)
        _, _, handle = anna.create_file(b"file")
        self.kill(server)
        server = self.start("--grace", "3600")

        def told():
            row, text = json.loads(self.asked("status", "--json"))["server"], self.scrape()
            return [row[f"grace_{what}"] for what in ("seconds", "clients", "reclaims")], [
                value_in(text, f"stag_grace_{what}") for what in ("remaining_seconds", "clients", "reclaims")]

        (left, *rest), (remaining, *counted) = told()
        self.assertTrue(0 < left <= 3600 and 0 < remaining <= 3600, (left, remaining))
        self.assertEqual((rest, counted), ([0, 0], [0, 0]))
        self.assertRegex(self.asked("status"), r"grace period: \d+ s left, more while clients reclaim, 0 clients have reclaimed, 0 opens, locks and delegations\n")
        self.assertRegex(server.log(), r"warning +GracePeriodBegun all exports: .*\(3600 s, or until all have reclaimed\)")
        again = self.client(server)
        again.exchange_id()
        self.assertEqual((again.create_session(), again.reclaim(handle)[0], again.reclaim_complete()), (OK, OK, OK))
        while told()[0][0] != 0:
            pass  # It ends once that is written.
        self.assertEqual(told(), ([0, 1, 1], [0, 1, 1]))
        self.assertIn("grace period: over, 1 clients have reclaimed, 1 opens, locks and delegations\n", self.asked("status"))
        self.assertRegex(server.log(), r"warning +GracePeriodEnded all exports: .*\(early, because nobody was left who could reclaim; 1 clients of version 4")
        self.assertEqual(self.value("stag_events_total", reason="GracePeriodEnded"), 1)

    def test_names_those_whom_a_grace_period_waits_for_until_an_administrator_ends_it(self):
        server = self.start()
        for name in (b"anna", b"bert", b"carl\xff"):
            self.assertEqual(self.ready_client(server, name).create_file(name)[0], OK)
        self.kill(server)
        server = self.start("--grace", "3600")

        def awaited():
            status = json.loads(self.asked("status", "--json"))
            self.assertEqual(status["server"]["grace_awaited"], len(status["awaited"]))
            return {row.get("name_bytes", row["name"]): row["state"] for row in status["awaited"]}

        self.assertEqual(awaited(), {"anna": "away", "bert": "away", "carl%FF": "away"})
        self.assertRegex(self.asked("status"), r"awaited, of version 4: 3\n  away +- +anna\n  away +- +bert\n  away +- +carl%FF\n")
        anna = self.client(server, b"anna")
        anna.exchange_id()
        self.assertEqual(anna.create_session(), OK)
        self.assertEqual(awaited()["anna"], "back")
        self.assertRegex(self.asked("status"), r"\n  back +127\.0\.0\.1 +anna\n")
        self.assertEqual(anna.reclaim_complete(), OK)
        self.assertEqual(awaited(), {"bert": "away", "carl%FF": "away"})
        self.assertEqual(anna.create_file(b"new")[0], 10013, "NFS4ERR_GRACE")
        self.assertEqual(json.loads(self.asked("clients", "end-grace", "--json")), {"cut_off": 2})
        self.assertEqual(awaited(), {})
        self.assertEqual(anna.create_file(b"new")[0], OK)
        self.assertRegex(server.log(), r"warning +GraceEndedByAdministrator all exports: .*\(2 clients were awaited, asked by ")
        self.assertRegex(server.log(), r"warning +GracePeriodEnded all exports: .*\(at an administrator's word; ")
        none = stag("clients", "end-grace", "--state", self.state)
        self.assertEqual((none.returncode, none.stdout, none.stderr), (1, "", "stag clients: there is no grace period\n"))

    def test_says_when_nobody_answers(self):
        for command in ("status", "top"):
            result = stag(command, "--state", self.folder)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn("no server listens at", result.stderr)


class Top(Observed):
    def test_shows_rates_of_clients_and_procedures_once(self):
        server = self.start()
        anna = self.ready_client(server)
        top = subprocess.Popen([STAG, "top", "--json", "--state", self.state], stdout=subprocess.PIPE, text=True)
        self.addCleanup(top.stdout.close)
        seen = set()
        while "nfs 3 NULL" not in seen:
            anna.call(100003, 3, 0, b"")
            if select.select([top.stdout], [], [], 0)[0]:
                look = json.loads(top.stdout.readline())
                self.assertEqual([client["address"] for client in look["clients"]], ["127.0.0.1"])
                seen |= {row["procedure"] for row in look["procedures"] if row["calls_per_second"] > 0}
        top.send_signal(signal.SIGINT)
        self.assertEqual(top.wait(PATIENCE), 0)
        (line,) = self.asked("top", "--once", "--json").splitlines()
        self.assertEqual(json.loads(line)["clients"][0]["connections"], 1)
        self.assertIn("CALLS/s", self.asked("top", "--once"))

    def told(self, *looks):
        """What `stag top --once --json` says of a server that has these rows of "status", "connections" and "procedures" to show, look by look."""
        path = os.path.join(self.folder, "scripted")
        with socket.socket(socket.AF_UNIX) as scripted:
            scripted.settimeout(PATIENCE)
            scripted.bind(path)
            scripted.listen()
            top = subprocess.Popen([STAG, "top", "--once", "--json", "--control", path], stdout=subprocess.PIPE, text=True)
            for look in looks:
                for _ in look:
                    with scripted.accept()[0] as asked:
                        rows = look[json.loads(asked.makefile().readline())["command"]]
                        asked.sendall("".join(json.dumps(row) + "\n" for row in [*rows, {"done": True}]).encode())
            output, _ = top.communicate(timeout=PATIENCE)
        self.assertEqual(top.returncode, 0)
        return json.loads(output)

    def test_shows_the_calls_of_a_client_one_of_whose_connections_has_ended(self):
        def look(calls, rows):
            connections = [{"number": number, "address": "192.0.2.7", "port": port, "calls": count} for number, port, count in rows]
            null = {"program": "nfs", "version": 3, "procedure": "NULL", "calls": calls, "timed": calls, "microseconds": 10 * calls}
            return {"status": [{"uptime": 60, "calls": calls}], "connections": connections, "procedures": [null]}

        # The second has ended, and a third one has its port.
        rates = self.told(look(9100, [(1, 701, 100), (2, 702, 9000)]), look(10800, [(1, 701, 700), (3, 702, 200)]))
        seconds, (client,) = rates["seconds"], rates["clients"]
        self.assertEqual(client["connections"], 2)
        self.assertAlmostEqual(client["calls_per_second"] * seconds, 800, 3)
        self.assertAlmostEqual(rates["calls_per_second"] * seconds, 1700, 3)
        self.assertAlmostEqual(rates["procedures"][0]["calls_per_second"] * seconds, 1700, 3)

    def test_that_is_to_look_once_says_that_it_did_not(self):
        path = os.path.join(self.folder, "silent")
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(path)
            silent.listen()
            for number in (signal.SIGINT, signal.SIGTERM):
                top = subprocess.Popen([STAG, "top", "--once", "--json", "--control", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                with silent.accept()[0]:
                    top.send_signal(number)
                    output = top.communicate(timeout=PATIENCE)
                self.assertEqual((top.returncode, *output), (128 + number, "", "stag top: interrupted\n"))

    def test_ends_cleanly_on_a_terminal(self):
        self.start()
        main, other = harness.open_terminal(self)
        top = subprocess.Popen([STAG, "top", "--state", self.state], stdin=other, stdout=other, stderr=other)
        shown = b""
        while b"PROCEDURE" not in shown:
            self.assertTrue(select.select([main], [], [], PATIENCE)[0])
            shown += os.read(main, 65536)
        self.assertIn(b"\x1b[H", shown)
        top.send_signal(signal.SIGINT)
        self.assertEqual(top.wait(PATIENCE), 0)
        for end in (main, other):
            os.close(end)

    def test_has_room_in_its_terminal_also_when_that_becomes_larger(self):
        self.ready_client(self.start())
        main, other = harness.open_terminal(self)
        for end in (main, other):
            self.addCleanup(os.close, end)
        termios.tcsetwinsize(main, (10, 60))
        top = subprocess.Popen([STAG, "top", "--state", self.state], stdin=other, stdout=other, stderr=other)
        self.addCleanup(top.wait, PATIENCE)
        self.addCleanup(top.send_signal, signal.SIGINT)

        clear, shown = b"\x1b[H\x1b[J", b""

        def frame():
            """The lines of the next one that is whole: another one has begun."""
            nonlocal shown
            while shown.count(clear) < 2:
                self.assertTrue(select.select([main], [], [], PATIENCE)[0])
                shown += os.read(main, 65536)
            _, whole, rest = shown.split(clear, 2)
            shown = clear + rest
            return whole.decode().splitlines()

        small = frame()
        self.assertRegex(small[0], r"^\d+ calls/s of 1 clients, ")
        self.assertRegex(small[3], r"^127\.0\.0\.1 +1 ")
        self.assertLess(len(small), 10)
        self.assertLessEqual(max(map(len, small)), 60)
        termios.tcsetwinsize(main, (40, 120))
        while max(map(len, frame())) <= 60:
            pass  # It has yet to look again.


class Log(Observed):
    def test_says_who_connects_mounts_and_goes(self):
        server = self.start("--log-level", "info")
        anna = self.ready_client(server)
        anna.call(100005, 3, 1, b"\0\0\0\5/data\0\0\0")
        anna.call(100005, 3, 3, b"\0\0\0\5/data\0\0\0")
        self.assertEqual(stag("ls", server.url("/data") + "&version=3").returncode, 0)
        while "ClientDisconnected tcp" not in server.log():
            pass
        log = server.log()
        self.assertRegex(log, r"info +ClientConnected tcp 127\.0\.0\.1:\d+: ")
        self.assertRegex(log, r"info +ClientConnected rdma 127\.0\.0\.1:\d+: ")
        self.assertRegex(log, r"info +ExportMounted tcp 127\.0\.0\.1:\d+: .*\(/data, xid 0x[0-9a-f]{8}\)")
        self.assertRegex(log, r"info +ExportUnmounted tcp 127\.0\.0\.1:\d+: .*\(/data, xid 0x[0-9a-f]{8}\)")
        self.assertRegex(log, r"info +SessionMade tcp 127\.0\.0\.1:\d+: ")
        self.assertRegex(log, r"info +ClientDisconnected tcp 127\.0\.0\.1:\d+: ")

    def test_follows_a_client_through_the_layers_by_xid(self):
        with open(os.path.join(self.data, "file"), "wb") as file:
            file.write(bytes(1 << 20))
        server = self.start("--trace-client", "127.0.0.1", "--log-format", "json")
        self.assertEqual(stag("cp", server.url("/data/file") + "&version=3", os.path.join(self.folder, "copy")).returncode, 0)
        read = self.steps(server, "rdma", "READ OK")
        self.assertRegex("\n".join(read), r"^arrived: \d+ bytes inline, 0 by 0 RDMA Reads\nbegins: program 100003 version 3 procedure 6, .*\n"
                                          r"ends: nfs 3 READ OK after \d+ us, .*\nanswered: \d+ bytes inline, 1048576 to Write chunks")

    def steps(self, server, netid, of):
        """Those of the first call by `netid` one of whose steps has `of`, once it is answered."""
        while True:
            steps = {}
            for line in server.log().splitlines():
                event = json.loads(line)
                if event["reason"] == "CallTraced" and event["where"].startswith(netid + " 127.0.0.1:"):
                    xid, step = re.fullmatch(r"xid (0x[0-9a-f]{8}) (.*)", event["detail"]).groups()
                    steps.setdefault((event["where"], xid), []).append(step)
            found = [each for each in steps.values() if any(of in step for step in each)]
            if found and found[0][-1].startswith("answered: "):
                return found[0]

    def test_follows_a_client_by_TCP_and_UDP_too(self):
        server = self.start("--trace-client", "127.0.0.1", "--log-format", "json")
        anna = self.client(server)
        anna.call(100003, 3, 0, b"")
        null = r"^arrived: (\d+) bytes by %s\nbegins: program %d version 3 procedure 0, .*, \1 bytes\nends: %s 3 NULL OK after \d+ us, 24 bytes\nanswered: 24 bytes$"
        self.assertRegex("\n".join(self.steps(server, "tcp", "nfs 3 NULL")), null % ("TCP", 100003, "nfs"))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.settimeout(PATIENCE)
            peer.sendto(words(1, 0, 2, 100005, 3, 0, 0, 0, 0, 0), ("127.0.0.1", server.tcp_port))
            peer.recv(100)
        self.assertRegex("\n".join(self.steps(server, "udp", "mount 3 NULL")), null % ("UDP", 100005, "mount"))

    def test_of_a_followed_call_says_what_it_waited_for_the_store_and_took_there(self):
        local = os.path.join(self.folder, "local")
        with open(local, "wb") as file:
            file.write(bytes(1 << 20))
        server = self.start("--trace-client", "127.0.0.1", "--log-format", "json")
        store = r"; store: [1-9]\d* jobs waited \d+ us for workers and took \d+ us"
        for version, of in (("3", "nfs 3 CREATE OK"), ("4.1", "operation OPEN NFS4_OK")):
            for netid, url in (("rdma", server.url), ("tcp", server.tcp)):
                self.assertEqual(stag("cp", local, url(f"/data/{version}-{netid}") + f"&version={version}").returncode, 0)
                (step,) = [step for step in self.steps(server, netid, of) if of in step]
                self.assertRegex(step, store + "$")
        # It does nothing there.
        self.client(server).call(100003, 3, 0, b"")
        self.assertNotIn("store", "".join(self.steps(server, "tcp", "nfs 3 NULL")))

    def test_of_a_traced_client_has_the_operations_of_version_4(self):
        server = self.start("--trace-client", "127.0.0.0/8")
        self.ready_client(server)
        self.assertRegex(server.log(), r"CallTraced tcp 127\.0\.0\.1:\d+: .*operation RECLAIM_COMPLETE NFS4_OK")

    def test_of_a_slow_call_has_its_export_and_status(self):
        server = self.start("--slow-call", "0.000000001")
        self.assertEqual(stag("stat", server.tcp("/data/none") + "&version=3").returncode, 1)
        self.assertRegex(server.log(), r"warning CallSlow tcp 127\.0\.0\.1:\d+: .*\(xid 0x[0-9a-f]{8}, nfs 3 LOOKUP in /data, NFS3ERR_NOENT, \d+\.\d+ s\)")
        anna = self.ready_client(server)
        anna.in_session(words(PUTROOTFH), words(LOOKUP) + opaque(b"data"))
        self.assertRegex(server.log(), r"CallSlow .*\(xid 0x[0-9a-f]{8}, nfs 4 LOOKUP in /data, NFS4_OK, ")

    def test_says_nothing_of_clients_that_nobody_follows(self):
        server = self.start("--trace-client", "192.0.2.1")
        self.ready_client(server)
        self.assertEqual(server.log(), "")


if __name__ == "__main__":
    harness.main()
