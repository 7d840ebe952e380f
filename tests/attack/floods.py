"""Attackers that break no rule of the wire but hold something: connections, buffers, memory, locks, or simply the server's attention.

Each is a process of its own, from several loopback addresses, with a good client beside it.
"""
import collections
import multiprocessing
import os
import resource
import socket
import time

from peer import RdmaPeer, TcpPeer, UdpPeer
from target import Failure
from wire import gss, iwarp, locks, nfs, rpc, rpcrdma
from wire.fields import join

MIB = 1 << 20
UNEXPECTED = "unexpected"  # so begins what a flood counts that is a finding


class Flood:
    """start() takes what it can get, step() keeps it up. Whatever the server refuses is counted, and asked for again."""

    CONNECTIONS = 4  # from each address
    ADDRESS_SPACE = None  # bytes that the server may have; sanitizers need more than any limit
    RESTARTS = False  # plays restarts of the server, behind which there is a grace period
    PACE = 0.02  # seconds between two steps

    def __init__(self, target, sources):
        self.target, self.sources = target, sources
        self.place = target.places[0]
        self.peers = []
        self.counts = collections.Counter()

    def start(self):
        for _ in range(self.CONNECTIONS):
            for source in self.sources:
                self.add(source)

    def add(self, source):
        try:
            self.peers.append(self.open(source))
            self.counts["opened"] += 1
        except OSError:
            self.counts["refused"] += 1

    def open(self, source):
        """A connection that holds something."""
        raise NotImplementedError

    def step(self):
        """Connections that the server has ended come again, a few at a time."""
        for peer in self.peers[:50]:
            self.peers.remove(peer)
            if self.ended(peer):
                self.counts["ended by the server"] += 1
                source = peer.socket.getsockname()[0]
                peer.close()
                self.add(source)
            else:
                self.peers.append(peer)

    def ended(self, peer):
        """Without taking anything that came."""
        peer.socket.settimeout(0)
        try:
            return peer.socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def stop(self):
        for peer in self.peers:
            peer.close()


def send(peer):
    """What is queued leaves as far as the server takes it, and nothing is read."""
    peer.socket.settimeout(0.2)
    try:
        peer.socket.sendall(peer.output)
    except TimeoutError:
        pass
    peer.output.clear()


def rdma(flood, source):
    return RdmaPeer(flood.target.rdma_port, source, patience=10)


def tcp(flood, source):
    return TcpPeer(flood.target.tcp_port, source, patience=10)


class Connections(Flood):
    """Set up and idle, over RDMA and over TCP."""

    CONNECTIONS = 40

    def open(self, source):
        return (rdma if self.counts["opened"] % 2 else tcp)(self, source)


class HalfOpen(Flood):
    """Connection set-ups that are not finished: nothing, or half an MPA Request."""

    CONNECTIONS = 40

    def open(self, source):
        peer = RdmaPeer(self.target.rdma_port, source, set_up=False)
        peer.write(join(iwarp.mpa_frame())[: (self.counts["opened"] % 4) * 8])
        send(peer)
        return peer


class PartialFpdu(Flood):
    """FPDUs, and Sends of several segments, that stop in the middle."""

    CONNECTIONS = 16

    def open(self, source):
        peer = rdma(self, source)
        segment = join(iwarp.untagged(iwarp.SEND, iwarp.SEND_QUEUE, 1, last=False)) + bytes(30000)
        whole = join(iwarp.fpdu(segment))
        peer.write(whole if self.counts["opened"] % 2 else whole[:-5000])
        send(peer)
        return peer


class PartialRecord(Flood):
    """Records of nearly 4 MiB over TCP whose last byte does not come."""

    CONNECTIONS = 2

    def open(self, source):
        peer = tcp(self, source)
        peer.write((rpc.LAST_FRAGMENT | 4 * MIB - 64).to_bytes(4, "big") + bytes(4 * MIB - 65))
        send(peer)
        return peer


class UnansweredReads(Flood):
    """Calls whose arguments stand in Read chunks of 16 MiB that are never sent. The handle is wrong: nobody would have to fetch them."""

    CONNECTIONS = 1

    def open(self, source):
        peer = rdma(self, source)
        peer.call(nfs.NULL)
        for _ in range(4):
            xid = peer.next_xid()
            fields = rpc.call_fields(xid, nfs.write(b"bogus" * 5, 0, b""), rpc.no_auth("cred"))
            reads = [(len(join(fields)), rpcrdma.Memory(1, 16 * MIB, 0))]
            peer.send_message(join(rpcrdma.header(xid, reads=reads)) + join(fields))
        send(peer)
        return peer


class TinySegments(Flood):
    """Calls whose arguments stand in as many segments of one byte as a Call may have, or in more, and no RDMA Read is answered."""

    CALLS = 60

    def open(self, source):
        peer = rdma(self, source)
        peer.call(nfs.NULL)
        message = join(rpc.call_fields(0, nfs.write(bytes(32), 0, bytes(200)), rpc.no_auth("cred")))
        for chunks in (4, 46):
            reads = [(160 + 64 * chunk, rpcrdma.Memory(1, 1, i)) for chunk in range(chunks) for i in range(64)]
            header = join(rpcrdma.header(0, reads=reads))
            for _ in range(self.CALLS):
                xid = peer.next_xid().to_bytes(4, "big")
                peer.send_message(xid + header[4:] + xid + message[4:])
        send(peer)
        return peer


class UntakenReplies(Flood):
    """READs of which the Replies, or the RDMA Writes before them, are not taken."""

    def open(self, source):
        peer = (rdma if self.counts["opened"] % 2 else tcp)(self, source)
        peer.call(nfs.NULL)
        for _ in range(30):
            peer.start(nfs.read(self.place.file, 0, 65536))
        send(peer)
        return peer


class Memory(Flood):
    """The same, of 1 MiB each, by hundreds of connections, and the server has little memory."""

    CONNECTIONS = 25
    ADDRESS_SPACE = 900 * MIB

    def start(self):
        self.place = self.target.places[1]  # what is read from a folder is in the server's memory until it is sent
        peer = tcp(self, "127.0.0.1")
        for i in range(4):
            peer.call(nfs.write(self.place.file, i * MIB, bytes(MIB)))
        peer.close()
        super().start()

    def open(self, source):
        peer = tcp(self, source)
        for i in range(31):
            peer.start(nfs.read(self.place.file, (i % 4) * MIB, MIB))
        send(peer)
        return peer


class Dribble(Flood):
    """Calls that come one byte at a time."""

    def open(self, source):
        peer = (rdma if self.counts["opened"] % 2 else tcp)(self, source)
        peer.start(nfs.getattr(self.place.file))
        return peer

    def step(self):
        for peer in self.peers:
            if not peer.output:
                peer.start(nfs.getattr(self.place.file))
            try:
                peer.socket.send(peer.output[:1])
                del peer.output[:1]
                self.counts["bytes"] += 1
            except OSError:
                pass  # ended, which the next line notices
        super().step()


class Calls(Flood):
    """As many calls at once as the server takes, all the time."""

    CONNECTIONS = 1
    DEPTH = 30
    PACE = 0
    TRANSPORT = staticmethod(rdma)

    def open(self, source):
        peer = self.TRANSPORT(self, source)
        peer.call(nfs.NULL)
        peer.asked = set()
        return peer

    def next_call(self, source):
        return nfs.getattr(self.place.file)

    def start_call(self, peer, call):
        return peer.start(call)

    def answered_by(self, reply):
        """Floods that know what they may be told count it."""

    def step(self):
        for peer in self.peers:
            source = peer.socket.getsockname()[0]
            try:
                while len(peer.asked) < self.DEPTH:
                    peer.asked.add(self.start_call(peer, self.next_call(source)))
                peer.pump(0)
            except OSError:
                self.counts["ended by the server"] += 1
            self.counts["calls"] += len(peer.replies)
            for reply in peer.replies.values():
                self.answered_by(reply)
            peer.asked.difference_update(peer.replies)
            peer.replies.clear()


class Listings(Calls):
    """Calls with long answers."""

    DEPTH = 8

    def next_call(self, source):
        return nfs.readdir(self.place.folder, 0, 16000)


class ReplayCache(Calls):
    """Calls that are not idempotent, so that each Reply is kept."""

    def next_call(self, source):
        self.counts["kept"] += 1
        return nfs.mkdir(self.place.file, b"n%d" % self.counts["kept"])


class Pipelined(Calls):
    """Small calls over TCP, where no credits limit how many are under way."""

    DEPTH = 200
    TRANSPORT = staticmethod(tcp)


class Locks(Pipelined):
    """Locks of every byte, and waiters for them, whose hosts cannot be called back."""

    TOLD = {0: "granted", 1: "denied", 2: "no room", 3: "blocked"}
    MOST_OF_HOST = 8192

    def answered_by(self, reply):
        results = rpc.results_of(reply)
        if results is not None:  # a cookie, and the status
            at = 4 + -(-int.from_bytes(results[:4], "big") // 4) * 4
            status = int.from_bytes(results[at : at + 4], "big")
            self.counts[self.TOLD.get(status, f"{UNEXPECTED} status {status} of a lock")] += 1

    @classmethod
    def judge(cls, counts, kept):
        """What is wrong, in sentences. `kept`: what `stag clients` shows of the clients that the flood has made."""
        if counts["calls"] >= 100 and not (counts["granted"] and counts["blocked"]):
            yield "no lock was granted, or nobody was told to wait"
        hosts = [row for row in kept if row["version"] == "nlm"]
        if len(hosts) > counts["opened"]:
            yield f"{len(hosts)} hosts are kept of {counts['opened']} that came"
        held = max((row["locks"] for row in hosts), default=0)
        if held > min(cls.MOST_OF_HOST, counts["locks"]):
            yield f"{held} locks of one host are kept"

    def next_call(self, source):
        self.counts["locks"] += 1
        number = self.counts["locks"]
        return locks.lock(self.place.file, b"owner%d" % number, number // 2 * 2, 1, source.encode(), block=number % 2 == 1)


class Mounts(Pipelined):
    """Mounts, each noted by the server, and lists of all of them."""

    def next_call(self, source):
        self.counts["mounts"] += 1
        if self.counts["mounts"] % 16 == 0:
            return nfs.Call(nfs.MOUNT, 3, nfs.DUMP, [])
        return nfs.mount((b"/memory", b"/files", b"/memory/attacked", b"/files/attacked")[self.counts["mounts"] % 4])


class Tokens(Pipelined):
    """Set-ups of security contexts with long tokens that Kerberos refuses."""

    DEPTH = 32

    def next_call(self, source):
        self.counts["tokens"] += 1
        return nfs.Call(nfs.NFS, 3, 0, gss.opaque("gss", "token", gss.token((100, 60_000)[self.counts["tokens"] % 2])))

    def start_call(self, peer, call):
        return peer.start(call, gss.credential(gss.INIT, 0, 1, b""))


class Reconnects(Flood):
    """Connections that end as soon as they are there."""

    CONNECTIONS = 0
    PACE = 0

    def step(self):
        for source in self.sources:
            self.add(source)
        self.stop()
        self.peers.clear()

    def open(self, source):
        peer = rdma(self, source)
        peer.start(nfs.getattr(self.place.file))
        send(peer)
        return peer


class Datagrams(Flood):
    CONNECTIONS = 1
    PACE = 0

    def open(self, source):
        return UdpPeer(self.target.udp_port, source)

    def step(self):
        for peer in self.peers:
            for _ in range(10):
                peer.xid += 1
                peer.send(join(rpc.call_fields(peer.xid, nfs.mount(b"/memory"))))
                self.counts["datagrams"] += 1
            self.counts["answered"] += peer.drain()


FLOODS = {
    "flood/connections": Connections, "flood/half-open": HalfOpen, "flood/reconnects": Reconnects, "flood/partial-fpdu": PartialFpdu,
    "flood/partial-record": PartialRecord, "flood/dribble": Dribble, "flood/calls": Calls, "flood/pipelined": Pipelined, "flood/listings": Listings,
    "flood/unanswered-reads": UnansweredReads, "flood/tiny-segments": TinySegments, "flood/untaken-replies": UntakenReplies, "flood/locks": Locks, "flood/mounts": Mounts, "flood/tokens": Tokens,
    "flood/replay-cache": ReplayCache, "flood/datagrams": Datagrams, "flood/memory": Memory,
}  # fmt: skip


class Running:
    """A flood in a process of its own."""

    def __init__(self, flood, patience):
        context = multiprocessing.get_context("fork")
        self.ready, self.over = context.Event(), context.Event()
        self.processor_seconds = 0.0
        self.results, sender = context.Pipe(duplex=False)
        self.process = context.Process(target=self._run, args=(flood, sender), daemon=True)
        self.process.start()
        self.ready.wait(patience)  # what it has then must do

    def _run(self, flood, sender):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        os.nice(19)
        priority = os.sched_getparam(0).sched_priority
        if priority > 1:  # nice means nothing there
            os.sched_setscheduler(0, os.sched_getscheduler(0), os.sched_param(priority - 1))
        flood.start()
        self.ready.set()
        while not self.over.wait(flood.PACE) if flood.PACE else not self.over.is_set():
            flood.step()
        flood.stop()
        sender.send((flood.counts, time.process_time()))

    def stop(self):
        """What it counted."""
        self.over.set()
        if not self.results.poll(60):
            self.process.kill()
            raise Failure("the attacker itself hangs")
        try:
            counts, self.processor_seconds = self.results.recv()
            return counts
        except EOFError:
            raise Failure("the attacker itself failed, see above") from None
        finally:
            self.process.join(60)
