"""A client of version 4.1 that keeps to the rules, beside an attack: it opens, writes, reads and closes, and finds the data that it wrote."""
import struct

from peer import RdmaPeer, TcpPeer
from target import Failure
from wire import nfs4
from wire.fields import Field, padded, u64

BLOCK = 8192  # goes and comes without chunks, in which peers keep no data
PER_CONNECTION = 10  # rounds until it connects anew, over the other transport
MOST_LOST = 100  # connections, or calls put off, one after the other


class GoodClient4:
    """One session, whose calls go by whatever connection there is."""

    def __init__(self, target, name, short_of_memory=False, sees_restarts=False):
        self.target, self.short_of_memory, self.sees_restarts = target, short_of_memory, sees_restarts
        self.rounds, self.put_off, self.connections = 0, 0, 0
        self.peer = TcpPeer(target.tcp_port)
        self.session = nfs4.Session(self.peer, b"good client beside " + name.encode(), slots=1, minor=1)
        self.folders = [place.root for place in target.places4]

    def close(self):
        if self.peer is not None:
            self.peer.close()
            self.peer = None

    def round(self):
        """One file, open as long as it takes."""
        if self.rounds % PER_CONNECTION == 0:
            self._connect()
        self.rounds += 1
        folder, data = self.folders[self.rounds % len(self.folders)], struct.pack(">Q", self.rounds) * (BLOCK // 8)
        at = nfs4.name(b"good4")
        opening = nfs4.open_by_name(self.session.clientid, b"good owner", b"good4")
        opened = self._answered("OPEN", nfs4.putfh(folder), opening)
        if opened.status == nfs4.GRACE:
            return
        self._skip(opened, 0)  # PUTFH
        state = opened.operation(16)[1]
        handle = [nfs4.putfh(folder), nfs4.op(nfs4.LOOKUP, at)]
        write = [*nfs4.stateid(state), u64("compound", "offset", 0), *nfs4.words(2, BLOCK, name="write"), Field("compound", "data", padded(data))]
        self._answered("WRITE", *handle, nfs4.op(nfs4.WRITE, write))
        read = self._answered("READ", *handle, nfs4.op(nfs4.READ, nfs4.stateid(state), nfs4.words(0, 0, BLOCK)))
        self._skip(read, 0, 0)  # PUTFH, LOOKUP
        if read.operation(8 + BLOCK)[1][8:] != data:
            raise Failure("a good client of version 4.1 read something else than it had written")
        self._answered("CLOSE", *handle, nfs4.op(nfs4.CLOSE, nfs4.words(0, name="seqid"), nfs4.stateid(state)))

    @staticmethod
    def _skip(results, *lengths):
        for length in lengths:
            results.operation(length)

    def _connect(self):
        self.close()
        self.connections += 1
        transport = (TcpPeer, RdmaPeer)[self.connections % 2]
        self.peer = transport(self.target.tcp_port if transport is TcpPeer else self.target.rdma_port)

    def _answered(self, what, *operations):
        """The results behind SEQUENCE, of a COMPOUND that went well in the end. What was asked on a connection that ended is asked again on
        another one, in the same slot: the server executes it once. Only one that is short of memory may end connections. What only reads is not
        kept for that, and executed again."""
        for _ in range(MOST_LOST):
            call = nfs4.compound([self.session.sequence(0, cache=what != "READ"), *operations], 1)
            try:
                if self.peer is None:
                    self._connect()
                results = self.peer.call(call)
            except ConnectionError:
                if not self.short_of_memory:
                    raise
                self.close()
                continue
            if results is None:
                raise Failure(f"a good client's COMPOUND of version 4.1 with {what} was refused")
            results = nfs4.Results(results)
            sequenced, _ = results.operation(nfs4.SEQUENCE_RESULTS)
            if sequenced in (nfs4.NFS4_OK, nfs4.RETRY_UNCACHED_REP):
                self.session.slots[0] += 1
            if sequenced == nfs4.RETRY_UNCACHED_REP and what == "READ":
                continue
            if results.status == nfs4.NFS4_OK or (self.sees_restarts and results.status == nfs4.GRACE):
                return results
            if nfs4.DELAY not in (sequenced, results.status):
                raise Failure(f"a good client's {what} of version 4.1 failed: status {results.status}")
            self.put_off += 1
        raise Failure(f"a good client of version 4.1 lost its connection, or was put off, {MOST_LOST} times one after the other")
