"""Attackers that send valid messages with one thing wrong, by transport and layer."""
import collections
import random
import socket
import struct

from mutation import spoil, spoil_order
from peer import RdmaPeer, Silent, TcpPeer, UdpPeer
from wire import gss, iwarp, locks, nfs, nfs4, rpc, rpcrdma
from wire.fields import Field, join, u32

BURST = 16  # messages between two that must be answered
BURSTS = 4  # on one connection
OPEN = 32  # connections left to the server in the state they are in


def any_call(place, chance):
    return locks.any_call(place, chance) if chance.random() < 0.12 else nfs.any_call(place, chance)


class Mutator:
    """batch() sends about BATCH messages, connection by connection."""

    BATCH = 256

    def __init__(self, target, layer):
        self.target, self.layer, self.chance = target, layer, None
        self.donors = collections.defaultdict(list)
        self.left = collections.deque()
        self.counts = collections.Counter()

    def spoil(self, fields):
        """Something of this attack's layer is wrong. The message before, of the same kind, is what it may go on as."""
        kind = fields[0].layer, fields[0].name
        donor, self.donors[kind] = self.donors[kind], fields
        return spoil(fields, self.layer, self.chance, donor)

    def call_fields(self, xid):
        self.counts["messages"] += 1
        call = any_call(self.chance.choice(self.target.places), self.chance)
        fields = rpc.call_fields(xid, call)
        if self.layer in ("rpc", "xdr", "handle"):
            fields = self.spoil(fields)
        return call, fields

    def leave(self, peer):
        """What was written leaves, and the connection stays for a while as it is; the oldest ends, now and then by a reset."""
        try:
            peer.pump(0)
        except OSError:
            self.counts["closed"] += 1
        self.left.append(peer)
        while len(self.left) > OPEN:
            self.end(self.left.popleft())

    def end(self, peer):
        if self.chance.random() < 0.3:
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()

    def finish(self):
        while self.left:
            self.left.popleft().close()

    def bursts(self, peer, message):
        """Many messages with an answer awaited now and then."""
        for _ in range(BURSTS):
            for _ in range(BURST):
                peer.write(message())
            if not self.settle(peer, peer.start(nfs.NULL)):
                break
        peer.close()

    def settle(self, peer, marker):
        """Waits for the answer to the valid message behind the spoiled ones. Returns whether the connection goes on."""
        try:
            peer.reply(marker)
            peer.replies.clear()
            return True
        except Silent:
            self.counts["unanswered"] += 1
        except OSError:
            self.counts["closed"] += 1
        return False

    def batch(self, seed):
        """Every batch has a seed of its own, so that what a server did in one decides nothing about the next."""
        self.chance = random.Random(seed)
        self.donors.clear()
        end = self.counts["messages"] + self.BATCH
        while self.counts["messages"] < end:
            self.connection()


class RdmaMutator(Mutator):
    # What is wrong there breaks the stream: what comes behind it has no meaning any more.
    BREAKING = ("fpdu", "ddp", "rdmap", "order")

    def connection(self):
        peer = ReadSpoiler(self) if self.layer == "read" else RdmaPeer(self.target.rdma_port, crc=self.chance.random() < 0.05, patience=10)
        peer.call(nfs.NULL)
        if self.layer in self.BREAKING:
            parts = [part for _ in range(4) for part in self.message(peer)]
            peer.write(b"".join(spoil_order(parts, self.chance) if self.layer == "order" else parts))
            self.leave(peer)
        else:
            self.bursts(peer, lambda: b"".join(self.message(peer)))

    def message(self, peer):
        """The FPDUs of one message."""
        if self.layer == "rdmap" and self.chance.random() < 0.6:
            return [self.other_message(peer)]
        xid = peer.next_xid()
        call, fields = self.call_fields(xid)
        reply_chunk = self.chance.choice((0, 0, 100, 20000, 70000))
        header, inline = peer.form(
            xid, fields, call, self.chance.random() < 0.7, self.chance.choice((1, 1, 2, 5)), self.chance.random() < 0.2, reply_chunk
        )
        if self.layer == "header" and self.chance.random() < 0.15:
            header, inline = self.error(xid), []
        if self.layer in ("header", "chunks"):
            header = self.spoil(header)
        return self.fpdus(peer, join(header) + join(inline))

    def error(self, xid):
        return [*rpcrdma.header(xid, rpcrdma.RDMA_ERROR)[:4], *(u32("header", "error", word) for word in (self.chance.choice((1, 2)), 1, 1))]

    def fpdus(self, peer, message):
        most = self.chance.choice((200, 1024, iwarp.MOST_PAYLOAD, iwarp.MOST_PAYLOAD))
        segments = list(iwarp.segments_of(message, most))
        wrong = self.chance.randrange(len(segments))
        sequence = peer.next_sequence(iwarp.SEND_QUEUE)
        parts = []
        for i, (offset, part, last) in enumerate(segments):
            opcode = self.chance.choice((iwarp.SEND, iwarp.SEND, iwarp.SEND_SE)) if i == 0 else opcode
            fields = iwarp.untagged(opcode, iwarp.SEND_QUEUE, sequence, offset, last)
            if self.layer in ("ddp", "rdmap") and i == wrong:
                fields = self.spoil(fields)
            frame = iwarp.fpdu(join(fields) + part, peer.crc)
            parts.append(join(self.spoil(frame) if self.layer == "fpdu" and i == wrong else frame))
        return parts

    def other_message(self, peer):
        """RDMAP messages that are not Sends: nobody waits for them."""
        self.counts["messages"] += 1
        chance = self.chance
        kind = chance.choice((iwarp.READ_REQUEST, iwarp.WRITE, iwarp.READ_RESPONSE, iwarp.TERMINATE, iwarp.SEND_INVALIDATE))
        stag = chance.choice((0, 1, chance.getrandbits(32)))
        payload = chance.randbytes(chance.choice((0, 1, 40, 500)))
        if kind == iwarp.READ_REQUEST:
            payload = join(self.spoil(iwarp.read_request(7, 0, chance.choice((0, 1, 4096, 1 << 31)), stag, chance.getrandbits(40))))
            fields = iwarp.untagged(kind, iwarp.READ_QUEUE, peer.next_sequence(iwarp.READ_QUEUE))
        elif kind == iwarp.TERMINATE:
            fields = iwarp.untagged(kind, iwarp.TERMINATE_QUEUE, peer.next_sequence(iwarp.TERMINATE_QUEUE))
        elif kind == iwarp.SEND_INVALIDATE:
            payload = join(rpcrdma.header(1)) + payload
            fields = iwarp.untagged(kind, iwarp.SEND_QUEUE, peer.next_sequence(iwarp.SEND_QUEUE), stag=stag)
        else:
            fields = iwarp.tagged(kind, stag, chance.getrandbits(64), chance.random() < 0.5)
        return join(iwarp.fpdu(join(fields) + payload, peer.crc))


class ReadSpoiler(RdmaPeer):
    """Answers Reads of its chunks wrongly now and then. Its chance is its own: when Reads come is up to the server."""

    def __init__(self, mutator):
        super().__init__(mutator.target.rdma_port, patience=10)
        self.wrong = random.Random(mutator.chance.getrandbits(64))

    def on_read_request(self, segment):
        if self.wrong.random() < 0.9:
            return super().on_read_request(segment)
        stag, start, data = self.read_response(segment)
        data = self.wrong.choice((data, data[:-1], data + b"\0", data[: len(data) // 2], b""))
        parts = []
        for offset, part, last in iwarp.segments_of(data, self.wrong.choice((100, iwarp.MOST_PAYLOAD))):
            fields = iwarp.tagged(iwarp.READ_RESPONSE, stag, start + offset, last)
            if self.wrong.random() < 0.3:
                fields = spoil(fields, self.wrong.choice(("ddp", "rdmap")), self.wrong)
            parts.append(join(iwarp.fpdu(join(fields) + part, self.crc)))
        self.write(b"".join(spoil_order(parts, self.wrong) if self.wrong.random() < 0.3 else parts))


class MpaMutator(Mutator):
    """Connection set-ups, each on a connection of its own, with a Call right behind."""

    def connection(self):
        peer = RdmaPeer(self.target.rdma_port, set_up=False, patience=10)
        frame = iwarp.mpa_frame(flags=self.chance.choice((0x10, 0x10, 0x50, 0x00, 0x90)))
        peer.write(join(self.spoil(frame)))
        peer.start(nfs.NULL)
        self.counts["messages"] += 1
        self.leave(peer)


class ResetMutator(Mutator):
    """Calls that break an export's rules for this address, on connections that are reset as soon as they are written: the server finds them when
    the system has forgotten whose they were."""

    def connection(self):
        peer = self.open()
        peer.start(nfs.create(self.target.strict_root, b"made%d" % self.counts["messages"]))
        peer.socket.sendall(peer.output)
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        self.counts["messages"] += 1


class TcpReset(ResetMutator):
    def open(self):
        return TcpPeer(self.target.tcp_port)


class RdmaReset(ResetMutator):
    def open(self):
        peer = RdmaPeer(self.target.rdma_port, set_up=False)
        peer.write(join(iwarp.mpa_frame()))
        return peer


class TcpMutator(Mutator):
    def connection(self):
        peer = TcpPeer(self.target.tcp_port, patience=10)
        if self.layer == "record":
            peer.write(b"".join([self.record(peer) for _ in range(4)]))
            self.leave(peer)
        else:
            self.bursts(peer, lambda: self.record(peer))

    def record(self, peer):
        _, fields = self.call_fields(peer.next_xid())
        record = rpc.record(join(fields), self.chance.choice((1, 1, 1, 2, 7)))
        return join(self.spoil(record) if self.layer == "record" else record)


class Compounds:
    """COMPOUNDs of version 4 for a mutator of this transport: one field of most of them is wrong, in a session of its own with an open file."""

    VALID = 0.25  # share of those that are right, so that what they lead to is attacked, too

    def set_up(self, peer):
        self.place = self.chance.choice(self.target.places4)
        self.session = nfs4.Session(peer, b"mutator %d" % self.chance.randrange(4), self.chance.getrandbits(64))
        self.state = self.session.open(peer, self.place.root, b"file", b"mutator")

    def call_fields(self, xid):
        self.counts["messages"] += 1
        call = nfs4.any_call(self.place, self.chance.choice((self.state, self.state, nfs4.NULL_STATEID)), self.session, xid, self.chance)
        fields = rpc.call_fields(xid, call)
        return call, fields if self.chance.random() < self.VALID else self.spoil(fields)

    def settle(self, peer, marker):
        try:
            peer.wait(lambda: marker in peer.replies)
        except (Silent, OSError):
            pass  # which the next line counts
        self.counts["done"] += self.session.learn(peer.replies, self.results_of)
        return super().settle(peer, marker)


class TcpCompounds(Compounds, TcpMutator):
    results_of = staticmethod(rpc.results_of)

    def connection(self):
        peer = TcpPeer(self.target.tcp_port, patience=10)
        self.set_up(peer)
        self.bursts(peer, lambda: self.record(peer))


class RdmaCompounds(Compounds, RdmaMutator):
    def results_of(self, reply):
        header, message = reply
        return rpc.results_of(message) if header.proc == rpcrdma.RDMA_MSG else None

    def connection(self):
        peer = RdmaPeer(self.target.rdma_port, patience=10)
        self.set_up(peer)
        self.bursts(peer, lambda: b"".join(self.message(peer)))


class Stranger:
    """Messages with RPCSEC_GSS of somebody who has no ticket, for a mutator of this transport."""

    def call_fields(self, xid):
        self.counts["messages"] += 1
        call, fields = gss.any_message(xid, self.chance)
        return call, self.spoil(fields)


class TcpStranger(Stranger, TcpMutator):
    pass


class RdmaStranger(Stranger, RdmaMutator):
    pass


class UdpMutator(Mutator):
    """Datagrams of MOUNT, NLM and NSM."""

    def __init__(self, target, layer):
        super().__init__(target, layer)
        self.peer = UdpPeer(target.udp_port)

    def connection(self):
        for _ in range(BURST):
            place = self.chance.choice(self.target.places)
            call = locks.any_call(place, self.chance) if self.chance.random() < 0.6 else nfs.any_mount_call(self.chance)
            fields = rpc.call_fields(self.chance.getrandbits(32), call)
            if self.layer == "datagram":
                data = join(fields)
                self.peer.send(join(spoil([Field("datagram", "all", data)], "datagram", self.chance)))
            else:
                self.peer.send(join(self.spoil(fields)))
        self.counts["messages"] += BURST
        self.counts["answered"] += self.peer.drain()

    def finish(self):
        self.peer.close()


MUTATORS = {
    "rdma/mpa": MpaMutator,
    "rdma/reset": RdmaReset,
    "tcp/reset": TcpReset,
    **{f"rdma/{layer}": RdmaMutator for layer in ("fpdu", "ddp", "rdmap", "order", "read", "header", "chunks", "rpc", "xdr", "handle")},
    **{f"tcp/{layer}": TcpMutator for layer in ("record", "rpc", "xdr", "handle")},
    **{f"tcp/{layer}": TcpCompounds for layer in ("compound", "state")},
    **{f"rdma/{layer}": RdmaCompounds for layer in ("compound", "state")},
    "tcp/gss": TcpStranger,
    "rdma/gss": RdmaStranger,
    **{f"udp/{layer}": UdpMutator for layer in ("datagram", "rpc", "xdr", "handle")},
}
