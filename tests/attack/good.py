"""A client that keeps to the rules, beside an attack: each of its calls must be answered well, and their times tell what the attack costs it."""
import time
from typing import NamedTuple

from good4 import GoodClient4
from peer import RdmaPeer, TcpPeer
from target import Failure
from wire import nfs

BLOCK = 65536
KINDS = 3  # of calls
PER_CONNECTION = 60  # calls until it connects anew
PER_ROUND = 20  # calls until version 4.1 has its turn, whose time is not measured
MOST_LOST = 100  # connections, or calls put off, one after the other
PUT_OFF = 0.05  # seconds until a call that was put off is made again
JUKEBOX = bytes.fromhex("00002718")  # NFS3ERR_JUKEBOX: ask again later


class Times(NamedTuple):
    """In seconds."""

    calls: list
    connects: list  # until the first call was answered, NULL


class GoodClient:
    def __init__(self, target, name, short_of_memory=False, sees_restarts=False):
        """`name`: what it is beside. `short_of_memory`: the server is, so that it may end any connection and put any call off; what was asked is asked again then.
        `sees_restarts`: the server may say that it has a grace period, in which there are no new opens."""
        self.target, self.short_of_memory = target, short_of_memory
        self.fourth = GoodClient4(target, name, short_of_memory, sees_restarts)
        self.calls = []
        for place in target.places:
            data = bytes(BLOCK)
            # Small, by RDMA Write, by RDMA Read.
            self.calls += [nfs.getattr(place.good), nfs.read(place.good, 0, BLOCK), nfs.write(place.good, 0, data)]

    def measure(self, seconds):
        """The times of what was done meanwhile; at least one call of each kind."""
        self.times, peer, end = Times([], []), None, time.monotonic() + seconds
        times = self.times.calls
        try:
            while len(times) < KINDS or time.monotonic() < end:
                peer, taken = self._answered(peer, self.calls[len(times) % len(self.calls)], anew=len(times) % PER_CONNECTION == 0)
                times.append(taken)
                if len(times) % PER_ROUND == 0:
                    self.fourth.round()
            self.fourth.round()
        finally:
            self.fourth.close()
            if peer is not None:
                peer.close()
        return self.times

    def _connect(self, before):
        if before is not None:
            before.close()
        transport = TcpPeer if isinstance(before, RdmaPeer) else RdmaPeer
        start = time.monotonic()
        peer = transport(self.target.tcp_port if transport is TcpPeer else self.target.rdma_port)
        peer.call(nfs.NULL)
        self.times.connects.append(time.monotonic() - start)
        return peer

    def _answered(self, peer, call, anew):
        """The connection on which the call was answered well in the end, and how long that took there."""
        for _ in range(MOST_LOST):
            try:
                if anew:
                    peer = self._connect(peer)
                start = time.monotonic()
                results = peer.call(call)
            except ConnectionError:
                if not self.short_of_memory:
                    raise
                anew = True
                continue
            if self.short_of_memory and results is not None and results[:4] == JUKEBOX:
                time.sleep(PUT_OFF)
                anew = False
                continue
            if results is None or results[:4] != bytes(4):
                raise Failure(f"a good client's call of procedure {call.procedure} failed: {results and results[:4].hex()}")
            return peer, time.monotonic() - start
        raise Failure(f"a good client lost its connection, or was put off, {MOST_LOST} times one after the other")


def percentile(times, share):
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


FIGURES = {"p50": ("calls", 0.5), "p99": ("calls", 0.99), "connecting": ("connects", 0.5)}


def latency(without, under, beside=None):
    """In milliseconds, and how many times as long it takes under the attack; also of what it takes beside the same attack on another server."""
    figures = {"calls": len(under.calls)}
    for name, (kind, share) in FIGURES.items():
        attacked = percentile(getattr(under, kind), share)
        figures[name] = round(attacked * 1e3, 2)
        for what, other, times in (("_without", "_ratio", without), ("_beside", "_to_beside", beside)):
            if times is not None:
                reference = percentile(getattr(times, kind), share)
                figures.update({name + what: round(reference * 1e3, 2), name + other: round(attacked / reference, 1)})
    return figures


def in_words(figures):
    if not figures:
        return ""
    parts = []
    for name in FIGURES:
        part = f"{name} {figures[name + '_without']:g} -> {figures[name]:g} ms ({figures[name + '_ratio']:g}x)"
        if name + "_beside" in figures:
            part += f" [beside {figures[name + '_beside']:g} ms, {figures[name + '_to_beside']:g}x]"
        parts.append(part)
    return ", ".join([*parts, f"server {figures['server_busy']:.0%} busy"])
