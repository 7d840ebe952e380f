"""A client that keeps to the rules, beside an attack: each of its calls must be answered well, and their times tell what the attack costs it."""
import time

from peer import RdmaPeer, TcpPeer
from target import Failure
from wire import nfs

BLOCK = 65536
KINDS = 3  # of calls
PER_CONNECTION = 60  # calls until it connects anew


class GoodClient:
    def __init__(self, target):
        self.target = target
        self.calls = []
        for place in target.places:
            data = bytes(BLOCK)
            # Small, by RDMA Write, by RDMA Read.
            self.calls += [nfs.getattr(place.good), nfs.read(place.good, 0, BLOCK), nfs.write(place.good, 0, data)]

    def measure(self, seconds):
        """The times of the calls made meanwhile, in seconds; at least one of each kind."""
        times, peer, end = [], None, time.monotonic() + seconds
        try:
            while len(times) < KINDS or time.monotonic() < end:
                if len(times) % PER_CONNECTION == 0:
                    peer = self._connect(peer)
                times.append(self._time(peer, self.calls[len(times) % len(self.calls)]))
        finally:
            if peer is not None:
                peer.close()
        return times

    def _connect(self, before):
        if before is not None:
            before.close()
        transport = TcpPeer if isinstance(before, RdmaPeer) else RdmaPeer
        peer = transport(self.target.tcp_port if transport is TcpPeer else self.target.rdma_port)
        peer.call(nfs.NULL)
        return peer

    def _time(self, peer, call):
        start = time.monotonic()
        results = peer.call(call)
        taken = time.monotonic() - start
        if results is None or results[:4] != bytes(4):
            raise Failure(f"a good client's call of procedure {call.procedure} failed: {results and results[:4].hex()}")
        return taken


def percentile(times, share):
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def latency(before, under):
    """In milliseconds, and how many times as long it takes under the attack."""
    figures = {"calls": len(under)}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        alone, attacked = percentile(before, share), percentile(under, share)
        figures.update({name: round(attacked * 1e3, 2), name + "_without": round(alone * 1e3, 2), name + "_ratio": round(attacked / alone, 1)})
    return figures


def in_words(figures):
    if not figures:
        return ""
    parts = [f"{name} {figures[name + '_without']:g} -> {figures[name]:g} ms ({figures[name + '_ratio']:g}x)" for name in ("p50", "p99")]
    return ", ".join([*parts, f"server {figures['server_busy']:.0%} busy"])
