"""Floods of NFS version 4: clients that vanish, leases, states, replays and guesses."""
import itertools

from floods import Calls, Flood, tcp
from wire import nfs4, rpc

STATUSES = {0: "ok", 10008: "delayed", 10025: "bad stateid", 10063: "misordered", 10068: "retry uncached", 10076: "false retry"}


def counted(counts, status):
    counts[STATUSES.get(status, f"status {status}")] += 1


class Clients(Flood):
    """Clients that make a session, open a file, and are never heard of again."""

    CONNECTIONS = 1
    PACE = 0
    numbers = itertools.count()

    def open(self, source):
        return tcp(self, source)

    def step(self):
        super().step()
        for peer in self.peers:
            source = peer.socket.getsockname()[0]
            try:
                session = nfs4.Session(peer, f"{source} {next(self.numbers)}".encode(), slots=64)
                session.open(peer, self.target.places4[0].folder, b"vanished%d" % (self.counts["clients"] % 1000))
                self.counts["clients"] += 1
            except ConnectionRefusedError:
                self.counts["clients refused"] += 1
            except OSError:
                self.counts["ended by the server"] += 1


class InSessions(Calls):
    """As many COMPOUNDs at once as a session has slots, all the time."""

    TRANSPORT = staticmethod(tcp)
    SLOTS = 32

    def open(self, source):
        peer = self.TRANSPORT(self, source)
        try:
            peer.session = nfs4.Session(peer, f"{source} {self.counts['opened']}".encode(), slots=self.SLOTS)
        except BaseException:
            peer.close()
            raise
        peer.free, peer.asked = list(range(self.SLOTS)), {}
        return peer

    def step(self):
        for peer in self.peers:
            try:
                while peer.free:
                    slot = peer.free.pop()
                    peer.asked[peer.start(self.compound(peer, slot))] = slot
                peer.pump(0)
            except OSError:
                self.counts["ended by the server"] += 1
            for xid in [xid for xid in peer.asked if xid in peer.replies]:
                self.answered(peer, peer.asked.pop(xid), peer.replies.pop(xid))

    def answered(self, peer, slot, reply):
        results = rpc.results_of(reply)
        peer.free.append(slot)
        if results is None:
            self.counts["refused"] += 1
            return
        results = nfs4.Results(results)
        counted(self.counts, results.status)
        if results.operation()[0] == nfs4.NFS4_OK:
            peer.session.slots[slot] += 1


class Leases(InSessions):
    """Leases renewed as fast as the server takes it."""

    def compound(self, peer, slot):
        return nfs4.compound([peer.session.sequence(slot)])


class States(InSessions):
    """Opens and locks of one owner after the other, none given back."""

    numbers = itertools.count()

    def compound(self, peer, slot):
        number = next(self.numbers)
        owner, session = b"owner%d" % number, peer.session
        opening = nfs4.open_by_name(session.clientid, owner, b"state%d" % (number % 64))
        locking = nfs4.lock(nfs4.CURRENT_STATEID, session.clientid, owner, 2 * number, 1)
        return nfs4.compound([session.sequence(slot), nfs4.putfh(self.target.places4[0].folder), opening, locking])


class Replays(InSessions):
    """Retries with other arguments, gaps in the sequence, and stateids by guess: none of them is executed."""

    numbers = itertools.count(1 << 40)  # low ones are special stateids

    def compound(self, peer, slot):
        number, session = next(self.numbers), peer.session
        guess = nfs4.op(nfs4.READ, nfs4.stateid(number.to_bytes(16, "big")), nfs4.words(0, 0, 4096))
        operations = [nfs4.putfh(self.target.places4[0].file), guess]
        again = session.slots[slot] - 1
        wanted = (None, again, session.slots[slot] + 1 + number % 7)[number % 3]
        if wanted == again:
            operations.append(nfs4.op(nfs4.GETFH))
        return nfs4.compound([session.sequence(slot, wanted, cache=number % 2), *operations])

    def answered(self, peer, slot, reply):
        results = rpc.results_of(reply)
        if results is not None and nfs4.Results(results).status == nfs4.NFS4_OK:
            raise AssertionError("what only was guessed was executed")
        super().answered(peer, slot, reply)


FLOODS = {"flood/nfs4-clients": Clients, "flood/nfs4-leases": Leases, "flood/nfs4-states": States, "flood/nfs4-replays": Replays}
