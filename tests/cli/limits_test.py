"""`stag serve`: the limits on what clients may take, by flags and by a configuration file."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

import harness
from harness import Server, request_rdma, stag
from nfs4_client import BACK_CHANNEL, GETFH, OK, PUTROOTFH, Client, words

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir))
MIB = 1 << 20
TOO_MANY_OPS, RESOURCE = 10070, 10018


def long_call(length):
    """An FPDU with an RPC-over-RDMA header: the Call stands in a Position Zero Read chunk of so many bytes (RFC 8166 3.5.3)."""
    words = [1, 1, 1, 1] + [1, 0, 0x1234, length, 0, 0, 0] + [0] + [0]
    header = struct.pack(f">{len(words)}I", *words)
    # DDP: the last segment, untagged, queue 0, first message. RDMAP: Send (RFC 5040, RFC 5041).
    segment = bytes([0x41, 0x43]) + struct.pack(">IIII", 0, 0, 1, 0) + header
    fpdu = struct.pack(">H", len(segment)) + segment
    return fpdu + bytes(-len(fpdu) % 4) + bytes(4)


def call_of_segments(count):
    """An FPDU with a Call whose Write chunk has so many segments."""
    segments = b"".join(struct.pack(">IIQ", 0x1234 + each, 64, 0) for each in range(count))
    header = words(7, 1, 1, 0) + words(0) + words(1, count) + segments + words(0) + words(0)
    segment = bytes([0x41, 0x43]) + words(0, 0, 1, 0) + header + words(7, 0, 2, 100003, 3, 0, 0, 0, 0, 0)
    fpdu = struct.pack(">H", len(segment)) + segment
    return fpdu + bytes(-len(fpdu) % 4) + bytes(4)


class Limits(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-limits-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)

    def start(self, *arguments, export="/x=memory"):
        # Of its own: after another server there would be a grace period.
        state = tempfile.mkdtemp(dir=self.work)
        server = Server([export], state, ("--log-level", "info", *arguments))
        server.state = state
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def config(self, **settings):
        self.settings = settings
        path = os.path.join(self.work, "stag.toml")
        with open(path, "w") as file:
            file.writelines(f"{key.replace('_', '-')} = {value}\n" for key, value in settings.items())
        return "--config", path

    def reload(self, server, **settings):
        """The server has taken them on when this returns."""
        missing = {key.replace("_", "-") for key, value in settings.items() if self.settings.get(key) != value}
        self.config(**settings)
        server.process.send_signal(signal.SIGHUP)
        while missing:
            line = server.process.stdout.readline()
            self.assertTrue(line, server.log())
            if said := re.match(r"settings: (\S+) = ", line):
                missing.discard(said[1])

    def logged(self, server, expression):
        end = time.monotonic() + harness.PATIENCE
        while not re.search(rf"\b{expression}", server.log()):
            self.assertLess(time.monotonic(), end, f"{expression} is not in the log: {server.log()}")
            time.sleep(0.01)

    def hit(self, server, reason, detail, by=None):
        """A limit of version 4 that was hit: the log says by whom, and `stag status` how often. `by`: the client whose last call it was;
        port and XID of that are in the log, by which it is found in a capture. The thread that ends a client may say so after another
        client has got what it held."""
        port = r"(:\d+)?"
        if by:
            port = f":{by.socket.getsockname()[1]}"
            about, colon, limit = detail.partition(": ")
            detail = (f"{about}, " if about else "") + f"xid {by.xid:#010x}" + colon + limit
        self.logged(server, rf"{reason} 127\.0\.\d+\.\d+{port}: .*\({detail}\)\n")
        limits = json.loads(stag("status", "--json", "--state", server.state).stdout)["limits"]
        self.assertIn(reason, [limit["reason"] for limit in limits if limit["count"] > 0])

    def test_of_connections_turns_away_one_more_until_another_has_gone(self):
        for arguments in (("--max-connections", "2"), self.config(max_connections=2)):
            server = self.start(*arguments)
            for port, reason in ((server.rdma_port, "TooManyConnections"), (server.tcp_port, "RpcTooManyConnections")):
                crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
                crowd[2].settimeout(harness.PATIENCE)
                self.assertEqual(crowd[2].recv(1), b"", "the third is closed")
                self.logged(server, reason)
                for each in crowd:
                    each.close()
            self.assertEqual(stag("ping", "-c", "1", server.url("/x")).returncode, 0)
            self.assertEqual(server.end(), 0)

    def test_of_RDMA_Reads_is_what_the_peer_is_told(self):
        for arguments, reads in (((), 32), (("--max-reads", "5"), 5), (self.config(max_reads=7), 7)):
            server = self.start(*arguments)
            peer, reply = request_rdma(server.rdma_port)
            peer.close()
            self.assertEqual([depth & 0x3FFF for depth in struct.unpack(">HH", reply[20:24])], [reads, reads])
            self.assertEqual(server.end(), 0)

    def test_of_bytes_refuse_a_call_that_is_larger(self):
        for arguments, length in (
            ((), 17 * MIB),
            (("--max-chunk-bytes", str(2 * MIB)), 3 * MIB),
            (self.config(max_chunk_bytes=2 * MIB), 3 * MIB),
            (("--max-connection-bytes", str(4 * MIB)), 5 * MIB),
            (("--max-bytes", str(4 * MIB)), 5 * MIB),
        ):
            server = self.start(*arguments)
            peer, _ = request_rdma(server.rdma_port)
            peer.sendall(long_call(length))
            self.logged(server, r"RdmaChunkTooLarge .*\(xid 0x00000001\)\n")
            peer.close()
            self.assertEqual(server.end(), 0)

    def test_of_chunks_are_as_a_reload_has_them_for_who_connects_then(self):
        server = self.start(*self.config())
        peer, _ = request_rdma(server.rdma_port)
        with peer:
            peer.sendall(long_call(3 * MIB))
            self.assertNotEqual(peer.recv(1), b"", "it is asked for by an RDMA Read")
        self.reload(server, max_chunk_bytes=2 * MIB)
        peer, _ = request_rdma(server.rdma_port)
        with peer:
            peer.sendall(long_call(3 * MIB))
            self.logged(server, r"RdmaChunkTooLarge .*\(xid 0x00000001\)\n")

    def test_of_segments_refuses_a_call_and_is_in_the_status(self):
        server = self.start()
        peer, _ = request_rdma(server.rdma_port)
        peer.sendall(call_of_segments(65))
        self.logged(server, r"RdmaChunksTooMany .*\(xid 0x00000007\)\n")
        peer.close()
        self.assertIn("RdmaChunksTooMany", stag("status", "--state", server.state).stdout)

    def test_that_the_page_lists_are_in_the_status(self):
        """But who may connect or copy, which is no matter of how many."""
        with open(os.path.join(ROOT, "docs/operations.md")) as page:
            section = page.read().partition("\n## Limits\n")[2].partition("\n## ")[0]
        named = {name for row in re.findall(r"^\|.*\|(.*)\|$", section, re.M) for name in re.findall(r"`([A-Z]\w+)[ `]", row)}
        self.assertIn("StoreHangs", named)
        with open(os.path.join(ROOT, "src/cli/control/status_commands.cc")) as source:
            listed = re.search(r"\bkLimits\[\] = \{(.*?)\};", source.read(), re.S)[1]
        refusals = {"PeerNotAllowed", "NfsClientNotAdmitted", "Nfs4CopySourceRefused", "Nfs4CopySourceFailed"}
        self.assertEqual(named - refusals - set(re.findall(r"Reason::(\w+)", listed)), set())

    def test_of_patience_ends_a_connection_that_does_not_go_on(self):
        server = self.start("--stall-limit", "1")
        with socket.create_connection(("127.0.0.1", server.tcp_port)) as peer:
            peer.settimeout(harness.PATIENCE)
            peer.sendall(struct.pack(">I", 0x80000064) + b"half of it")
            self.assertEqual(peer.recv(1), b"")
            self.logged(server, "RpcPeerTooSlow")
        with request_rdma(server.rdma_port)[0] as peer:
            peer.sendall(long_call(4096))
            while peer.recv(4096):
                pass
            self.logged(server, "PeerStalled")

    def test_of_version_4_are_what_sessions_get(self):
        for arguments, slots, operations, cached in (
            (("--nfs4-slots", "7", "--nfs4-operations", "13", "--nfs4-cached-reply", "1500"), 7, 13, 1500),
            (self.config(nfs4_slots=5), 5, 64, 4096),
        ):
            server = self.start(*arguments)
            with contextlib.closing(Client(server.tcp_port, b"name")) as client:
                client.exchange_id()
                self.assertEqual(client.create_session(MIB, MIB, MIB), OK)
                self.assertEqual(client.granted, (cached, operations, slots))
                self.hit(server, "Nfs4SlotsReduced", rf"client \d+: {slots} of {MIB} slots", client)
                many = words(PUTROOTFH)
                self.assertEqual(client.in_session(*[many] * operations)[0], TOO_MANY_OPS)
                self.hit(server, "Nfs4OperationsTooMany", "", client)
                client.minor = 0
                self.assertEqual(client.compound(*[many] * (operations + 1))[0], RESOURCE)
                self.hit(server, "Nfs4OperationsTooMany", "", client)
                self.assertEqual(server.log().count("Nfs4OperationsTooMany"), 2)
            self.assertEqual(server.end(), 0)

    def test_of_version_4_leave_the_smallest_session_room_for_a_lock_that_is_denied(self):
        denied = 10010
        server = self.start("--nfs4-caches", "1M", export="/data=memory,no_root_squash")
        clients = []
        for number in range(100):
            client = Client(server.tcp_port, b"client %d" % number, source=f"127.0.1.{number + 1}")
            self.addCleanup(client.close)
            client.exchange_id()
            self.assertEqual(client.create_session(slots=64), OK)
            self.assertEqual(client.reclaim_complete(), OK)
            clients.append(client)
        (cached, _, slots), last = clients[-1].granted, clients[-2:]
        self.assertEqual(slots, 1, "the caches are full")
        self.assertLess(cached, 4096)
        (status, stateid, handle), longest = last[0].create_file(b"file"), b"o" * 1024
        self.assertEqual(status, OK)
        self.assertEqual(last[0].lock(handle, stateid, 0, longest, cachethis=1), OK)
        stateid = last[1].create_file(b"file")[1]
        self.assertEqual(last[1].lock(handle, stateid, 0, cachethis=1), denied)
        self.assertEqual(server.end(), 0)

    def test_of_version_4_refuse_a_request_whose_reply_is_to_be_kept_and_is_longer_than_that(self):
        too_big_to_cache = 10067
        server = self.start("--nfs4-cached-reply", "1280")
        with contextlib.closing(Client(server.tcp_port, b"one")) as client:
            client.exchange_id()
            self.assertEqual(client.create_session(cached=4096, operations=64), OK)
            many = [words(PUTROOTFH), *[words(GETFH)] * 60]
            self.assertEqual(client.in_session(*many)[0], OK)
            self.assertEqual(client.in_session(*many, cachethis=1)[0], too_big_to_cache)
            self.hit(server, "Nfs4ReplyTooLongToKeep", r"client \d+", client)
        self.assertEqual(server.end(), 0)

    def test_of_version_4_turn_away_one_more(self):
        nospc, delay = 28, 10008
        server = self.start("--nfs4-clients", "4", "--nfs4-sessions", "2")
        with contextlib.closing(Client(server.tcp_port, b"one")) as client:
            client.exchange_id()
            self.assertEqual([client.create_session() for _ in range(3)], [OK, OK, nospc])
            self.hit(server, "Nfs4SessionsTooMany", r"client \d+: the limit of a client", client)
            client.owner = b"two"
            client.exchange_id()
            self.assertEqual(client.create_session(), delay, "a quarter of four is one at an address")
            self.hit(server, "Nfs4ClientsTooMany", r"client \d+: the limit of its address", client)
        self.assertEqual(server.end(), 0)

    def test_of_version_4_of_an_address_are_given_apart(self):
        delay = 10008
        for arguments, at_an_address, last in ((("--nfs4-clients-per-address", "2"), 2, "its address"), (("--nfs4-clients-per-address", "9"), 3, "all clients together")):
            server = self.start("--nfs4-clients", "3", *arguments)
            with contextlib.closing(Client(server.tcp_port, b"")) as client:
                for number in range(at_an_address + 1):
                    client.owner = b"%d" % number
                    client.exchange_id()
                    self.assertEqual(client.create_session(), OK if number < at_an_address else delay)
                self.hit(server, "Nfs4ClientsTooMany", rf"client \d+: the limit of {last}", client)
            self.assertEqual(server.end(), 0)

    def test_of_version_4_turn_away_one_more_than_a_reload_has_them(self):
        nospc, delay = 28, 10008
        server = self.start(*self.config(nfs4_clients=4, nfs4_sessions=2))
        with contextlib.closing(Client(server.tcp_port, b"")) as client:
            made = 0

            def fill(limit):
                """How many more clients there can be."""
                nonlocal made
                before = made
                while True:
                    client.owner = b"%d" % made
                    client.exchange_id()
                    if (status := client.create_session()) != OK:
                        break
                    made += 1
                self.assertEqual(status, delay)
                self.hit(server, "Nfs4ClientsTooMany", rf"client \d+: the limit of {limit}", client)
                return made - before

            self.assertEqual(fill("its address"), 1, "a quarter")
            client.owner = b"0"
            client.exchange_id()
            self.assertEqual([client.create_session() for _ in range(2)], [OK, nospc])
            self.reload(server, nfs4_clients=12, nfs4_sessions=3)
            client.exchange_id()
            self.assertEqual([client.create_session() for _ in range(2)], [OK, nospc])
            self.assertEqual(fill("its address"), 2, "a quarter of what there is by now")
            self.reload(server, nfs4_clients=12, nfs4_sessions=3, nfs4_clients_per_address=5)
            self.assertEqual(fill("its address"), 2)
            self.reload(server, nfs4_clients=6, nfs4_sessions=3, nfs4_clients_per_address=9)
            self.assertEqual(fill("all clients together"), 1)
            self.reload(server, nfs4_clients=3, nfs4_sessions=3, nfs4_clients_per_address=9)
            self.assertEqual(fill("all clients together"), 0)
            self.assertEqual(self.states(server).count("confirmed"), 6)
        self.assertEqual(server.end(), 0)

    @contextlib.contextmanager
    def lapsed(self, server):
        """A client with a file open whose lease is over; the folder's other clients have nothing open."""
        with contextlib.closing(Client(server.tcp_port, b"anna").connect()) as anna:
            self.assertEqual(anna.reclaim_complete(), OK)
            _, stateid, handle = anna.create_file(b"file")
            self.assertEqual(anna.lock(handle, stateid, 0), OK)
            with contextlib.closing(Client(server.tcp_port, b"bert").connect()) as bert:
                self.assertEqual(bert.reclaim_complete(), OK)
                yield bert, handle

    def eventually(self, server, bert, condition):
        """While a client of it keeps asking."""
        end = time.monotonic() + harness.PATIENCE
        while not condition():
            self.assertEqual(bert.in_session(words(PUTROOTFH))[0], OK)
            self.assertLess(time.monotonic(), end, server.log())
            time.sleep(0.1)

    def states(self, server):
        return [json.loads(line)["state"] for line in stag("clients", "--json", "--state", server.state).stdout.splitlines()]

    def test_of_courtesy_that_a_reload_takes_back_ends_what_a_silent_client_holds(self):
        server = self.start("--lease", "10", *self.config(), export="/data=memory")
        with self.lapsed(server) as (bert, _):
            self.eventually(server, bert, lambda: "courtesy" in self.states(server))
            self.assertNotIn("Nfs4CourtesyEnded", server.log())
            self.reload(server, nfs4_courtesy=0)
            self.eventually(server, bert, lambda: "Nfs4CourtesyEnded" in server.log())
            self.hit(server, "Nfs4CourtesyEnded", r"client \d+: nobody waits for it any longer")

    def test_of_courtesy_let_a_silent_client_keep_what_nobody_wants(self):
        server = self.start("--lease", "10", export="/data=memory")
        with self.lapsed(server) as (bert, handle):
            self.eventually(server, bert, lambda: "courtesy" in self.states(server))
            self.assertNotIn("Nfs4CourtesyEnded", server.log())
            _, stateid, same = bert.create_file(b"file")
            self.assertEqual(same, handle)
            while bert.lock(handle, stateid, 0) != OK:
                pass  # Once its record is gone.
            self.hit(server, "Nfs4CourtesyEnded", r"client \d+: somebody else wants what it held")

    def test_of_courtesy_give_way_to_new_clients(self):
        server = self.start("--lease", "10", "--nfs4-clients", "2", "--nfs4-clients-per-address", "2", export="/data=memory")
        with self.lapsed(server) as (bert, _):
            self.eventually(server, bert, lambda: "courtesy" in self.states(server))
            with contextlib.closing(Client(server.tcp_port, b"carl")) as carl:
                carl.exchange_id()
                while carl.create_session() != OK:
                    pass  # Once the record of the other is gone.
            self.hit(server, "Nfs4CourtesyEnded", r"client \d+: a new client needs its place")

    def test_of_version_4_let_the_oldest_go_of_clients_that_only_named_themselves(self):
        stale = 10022
        server = self.start("--nfs4-unconfirmed", "1")
        with contextlib.closing(Client(server.tcp_port, b"one")) as one, contextlib.closing(Client(server.tcp_port, b"two")) as two:
            one.exchange_id()
            two.exchange_id()
            self.assertEqual([one.create_session(), two.create_session()], [stale, OK])
            self.hit(server, "Nfs4UnconfirmedEvicted", rf"127\.0\.0\.1:{two.socket.getsockname()[1]}, xid 0x00000001")

    def test_of_version_4_let_as_many_go_of_clients_that_only_named_themselves_as_a_reload_has_it(self):
        server = self.start(*self.config())
        with contextlib.closing(Client(server.tcp_port, b"one")) as one, contextlib.closing(Client(server.tcp_port, b"two")) as two:
            self.reload(server, nfs4_unconfirmed=1)
            one.exchange_id()
            two.exchange_id()
            self.hit(server, "Nfs4UnconfirmedEvicted", rf"127\.0\.0\.1:{two.socket.getsockname()[1]}, xid 0x00000001")
        self.assertEqual(server.end(), 0)

    def test_of_version_4_keep_what_all_slots_keep_small(self):
        delay = 10008
        server = self.start("--nfs4-caches", "1M", "--nfs4-sessions", "1024")
        with contextlib.closing(Client(server.tcp_port, b"one")) as one, contextlib.closing(Client(server.tcp_port, b"two")) as two:
            for client in (one, two):
                client.exchange_id()
            self.assertEqual(one.create_session(slots=64), OK)
            self.assertEqual(one.granted, (4096, 16, 16), "an eighth of what is not kept for others")
            while (status := two.create_session(slots=64)) == OK and two.granted[0] > 1280:
                pass
            self.assertEqual((status, two.granted), (OK, (1280, 16, 1)), "the least")
            session = two.session
            # As long as it is not a session too many of one client.
            for client in (one, two):
                while (status := client.create_session(slots=64)) == OK:
                    pass
            self.assertEqual(status, delay)
            self.hit(server, "Nfs4CachesFull", r"client \d+: the limit of its address", two)
            self.hit(server, "Nfs4SlotsReduced", r"client \d+, xid 0x\w{8}: 16 of 64 slots")
            self.assertEqual(two.destroy_session(session), OK)
            self.assertEqual(two.create_session(slots=64), OK, "there is room for it again")

    def test_of_version_4_on_what_is_open_ask_to_come_back(self):
        delay = 10008
        for option, most, whose in (("--nfs4-states-per-client", 16, "a client"), ("--nfs4-states", 8, "its address"), ("--nfs4-states-per-address", 16, "its address")):
            server = self.start(option, "16", export="/data=memory")
            with contextlib.closing(Client(server.tcp_port, b"one").connect()) as client:
                self.assertEqual(client.reclaim_complete(), OK)
                statuses = [client.create_file(b"%d" % number)[0] for number in range(most + 1)]
                self.assertEqual(statuses, [OK] * most + [delay], option)
                self.hit(server, "Nfs4StatesTooMany", rf"client \d+, export /data: the limit of {whose}", client)
            self.assertEqual(server.end(), 0)

    def test_of_version_4_on_what_is_open_are_as_a_reload_has_them(self):
        delay = 10008
        server = self.start(*self.config(nfs4_states=16), export="/data=memory")
        with contextlib.closing(Client(server.tcp_port, b"one").connect()) as client:
            self.assertEqual(client.reclaim_complete(), OK)
            made = 0

            def fill(limit):
                """How many more files the client can open."""
                nonlocal made
                before = made
                while (status := client.create_file(b"%d" % made)[0]) == OK:
                    made += 1
                self.assertEqual(status, delay)
                self.hit(server, "Nfs4StatesTooMany", rf"client \d+, export /data: the limit of {limit}", client)
                return made - before

            self.assertEqual(fill("its address"), 8, "half")
            self.reload(server, nfs4_states=40)
            self.assertEqual(fill("its address"), 12, "half of what there is by now")
            self.reload(server, nfs4_states=40, nfs4_states_per_address=30)
            self.assertEqual(fill("its address"), 10)
            self.reload(server, nfs4_states=40, nfs4_states_per_address=60)
            self.assertEqual(fill("all clients together"), 10)
            self.reload(server, nfs4_states=80, nfs4_states_per_address=60, nfs4_states_per_client=50)
            self.assertEqual(fill("a client"), 10)
            self.reload(server, nfs4_states=80, nfs4_states_per_address=60, nfs4_states_per_client=20)
            self.assertEqual(fill("a client"), 0)
            opened = json.loads(stag("clients", "--json", "--state", server.state).stdout)["opens"]
            self.assertEqual(opened, 50, "it keeps them")
        self.assertEqual(server.end(), 0)

    def test_of_version_4_on_copies_that_go_on_let_others_be_done_before_they_are_answered(self):
        for arguments, goes_on in (((), 1), (("--nfs4-copies-per-client", "0"), 0), (("--nfs4-copies", "0"), 0)):
            folder = tempfile.mkdtemp(dir=self.work)
            with open(os.path.join(folder, "from"), "wb") as file:
                file.truncate(40 * MIB)
            server = self.start(*arguments, export=f"/data={folder},no_root_squash")
            with contextlib.closing(Client(server.tcp_port, b"one")) as client:
                client.minor = 2
                client.exchange_id()
                self.assertEqual(client.create_session(flags=BACK_CHANNEL), OK)
                self.assertEqual(client.reclaim_complete(), OK)
                (_, source, from_), (_, target, to) = (client.create_file(name) for name in (b"from", b"to"))
                copy = client.copy_that_goes_on if goes_on else client.copy
                self.assertEqual(copy(from_, source, to, target), (OK, goes_on))
                # To set none is no limit that is hit.
                self.assertNotIn("Nfs4CopiesTooMany", server.log())
            self.assertEqual(server.end(), 0)

    def test_of_version_4_on_copies_are_as_a_reload_has_them(self):
        for setting in ("nfs4_copies", "nfs4_copies_per_client"):
            folder = tempfile.mkdtemp(dir=self.work)
            with open(os.path.join(folder, "from"), "wb") as file:
                file.truncate(40 * MIB)
            server = self.start(*self.config(), export=f"/data={folder},no_root_squash")
            with contextlib.closing(Client(server.tcp_port, b"one")) as client:
                client.minor = 2
                client.exchange_id()
                self.assertEqual(client.create_session(flags=BACK_CHANNEL), OK)
                self.assertEqual(client.reclaim_complete(), OK)
                files = [(each[2], each[1]) for each in (client.create_file(name) for name in (b"from", b"to"))]
                self.assertEqual(client.copy_that_goes_on(*files[0], *files[1]), (OK, 1))
                self.reload(server, **{setting: 0})
                self.assertEqual(client.copy(*files[0], *files[1]), (OK, 0), setting)
                self.assertNotIn("Nfs4CopiesTooMany", server.log())
            self.assertEqual(server.end(), 0)

    def test_of_version_4_on_copies_are_of_a_client_and_of_all(self):
        for option, whose in (("--nfs4-copies-per-client", "a client"), ("--nfs4-copies", "all clients together")):
            folder = tempfile.mkdtemp(dir=self.work)
            with open(os.path.join(folder, "from"), "wb") as file:
                file.truncate(40 * MIB)
            server = self.start(option, "1", export=f"/data={folder},no_root_squash")
            with contextlib.closing(Client(server.tcp_port, b"one")) as client:
                client.minor = 2
                client.exchange_id()
                self.assertEqual(client.create_session(flags=BACK_CHANNEL), OK)
                self.assertEqual(client.reclaim_complete(), OK)
                (_, source, from_), (_, target, to) = (client.create_file(name) for name in (b"from", b"to"))
                # The first is remembered, for its client does not answer that it knows of the end.
                self.assertEqual(client.copy_that_goes_on(from_, source, to, target), (OK, 1))
                self.assertEqual(client.copy(from_, source, to, target), (OK, 0))
                self.hit(server, "Nfs4CopiesTooMany", rf"client \d+, export /data: the limit of {whose}", client)
            self.assertEqual(server.end(), 0)

    def test_of_operations_leave_room_for_our_own_client(self):
        server = self.start("--nfs4-operations", "12")
        path = os.path.join(self.work, "file")
        with open(path, "wb") as file:
            file.write(bytes(100_000))
        for version in ("4.0", "4.2"):
            copied = stag("cp", path, f"{server.url('/x/file')}&version={version}")
            self.assertEqual(copied.returncode, 0, copied.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root becomes another user")
    def test_of_the_system_on_threads_are_told_of_where_it_cannot_begin(self):
        user = 4_000_000_000
        program, state = os.path.join(self.work, "stag"), os.path.join(self.work, "state")
        shutil.copy(harness.STAG, program)
        os.mkdir(state)
        for place in (self.work, state):
            os.chown(place, user, user)
        # Who looks for leaks at the end needs a process, too.
        environment = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        words = [program, "serve", "--export", "/x=memory", "--state", state, "--rdma-port", "0", "--tcp-port", "0"]
        refused = 0
        for threads in range(1, 65):
            with subprocess.Popen(["prlimit", f"--nproc={threads}", *words], user=user, group=user, extra_groups=[], env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as server:  # fmt: skip
                ready = any(line.startswith("ready:") for line in server.stdout)
                server.terminate()
                _, said = server.communicate(timeout=60)
            if ready:
                break
            refused += 1
            self.assertEqual((server.returncode, said.count("\n")), (1, 1), said)
            self.assertRegex(said, "no more threads|TooManyThreads|threads")
        self.assertTrue(ready)
        self.assertGreater(refused, 2)

    def test_of_the_system_on_open_files_are_told_of_where_it_cannot_begin(self):
        words = ["--export", "/x=memory", "--state", os.path.join(self.work, "state"), "--rdma-port", "0", "--tcp-port", "0"]
        # The system's loader needs some itself, and sanitizers a pipe, to find out what memory can be read.
        for files, loops in [*((files, 1) for files in range(8, 33)), (150, 64)]:
            limited = ["prlimit", f"--nofile={files}", harness.STAG, "serve", *words, "--loops", str(loops)]
            done = subprocess.run(limited, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE, check=False)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), (files, done.stderr))
            self.assertIn(f"may open {files} files", done.stderr)

    def test_that_would_keep_clients_from_working_are_not_taken(self):
        for option, value in (
            ("--max-connections", "0"), ("--max-reads", "129"), ("--max-chunk-bytes", "1048576"), ("--max-connection-bytes", "1"),
            ("--max-bytes", "1"), ("--stall-limit", "-1"), ("--nfs4-clients", "0"), ("--nfs4-operations", "11"),
        ):
            result = stag("serve", "--export", "/x=memory", "--state", os.path.join(self.work, "state"), option, value)
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn(option, result.stderr)


if __name__ == "__main__":
    harness.main()
