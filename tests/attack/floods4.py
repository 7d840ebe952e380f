"""Floods of NFS version 4: clients that vanish, leases, states, replays and guesses."""
import collections
import itertools
import time

from floods import UNEXPECTED, Calls, Flood, tcp
from peer import TcpPeer
from wire import nfs4, rpc

STATUSES = {0: "ok", 28: "no space", 10008: "delayed", 10022: "stale client", 10025: "bad stateid", 10063: "misordered", 10067: "too big to cache", 10068: "retry uncached", 10074: "client busy", 10076: "false retry"}
(OK, NO_SPACE, DELAYED, STALE_CLIENT, BAD_STATEID, MISORDERED, TOO_BIG_TO_CACHE, RETRY_UNCACHED, CLIENT_BUSY, FALSE_RETRY) = STATUSES

# Whoever comes when others have taken much may be told so: there is little memory for results that are kept, for one.
UNDER_PRESSURE = {DELAYED, TOO_BIG_TO_CACHE}


def counted(counts, status, allowed):
    """`allowed`: what the flood may be told besides."""
    counts[STATUSES.get(status, f"status {status}") if status in allowed | UNDER_PRESSURE else f"{UNEXPECTED} status {status}"] += 1


# What a server keeps of one address, and in one client's name, where its options do not say otherwise.
MOST_OF_ADDRESS, MOST_OF_CLIENT = 4096, 65536
ENOUGH = 100  # answers, by when each that a flood is after has come


class Judged(Flood):
    """A flood that is judged at its end by what it was told, and by what the server keeps of it."""

    TOLD = ({OK},)  # of each of these some came
    HELD = 0  # opens and locks of one client, at most
    TRIED = ("opened", "refused")  # what a client may have come of

    def owner_name(self, source, number):
        """No other flood's: its clients are told from theirs."""
        return f"{type(self).__name__} {source} {number}".encode()

    @classmethod
    def judge(cls, counts, kept):
        """What is wrong, in sentences. `kept`: what `stag clients` shows of the clients that the flood has made."""
        kept = [row for row in kept if row["version"] != "nlm"]
        if sum(counts[word] for word in STATUSES.values()) >= ENOUGH:
            for statuses in cls.TOLD:
                words = sorted(STATUSES[status] for status in statuses)
                if not any(counts[word] for word in words):
                    yield f"nobody was told '{' or '.join(words)}'"
        tried = sum(counts[word] for word in cls.TRIED)
        if len(kept) > tried:
            yield f"{len(kept)} clients are kept of {tried} that came"
        of_address = collections.Counter(row["address"] for row in kept)
        if of_address and max(of_address.values()) > MOST_OF_ADDRESS:
            yield f"{max(of_address.values())} clients of one address are kept"
        held = max((row["opens"] + row["locks"] for row in kept), default=0)
        if held > cls.HELD:
            yield f"{held} opens and locks of one client are kept, more than {cls.HELD}"


class Clients(Judged):
    """Clients that make a session, open a file, and are never heard of again."""

    CONNECTIONS = 1
    PACE = 0
    ALLOWED = {OK, DELAYED, NO_SPACE}
    HELD = 1
    TRIED = ("clients", "clients refused", "ended by the server")
    numbers = itertools.count()

    def open(self, source):
        return tcp(self, source)

    def step(self):
        super().step()
        for peer in self.peers:
            source = peer.socket.getsockname()[0]
            try:
                session = nfs4.Session(peer, self.owner_name(source, next(self.numbers)), slots=64)
                status, _ = session.try_open(peer, self.target.places4[0].folder, b"vanished%d" % (self.counts["clients"] % 1000))
                counted(self.counts, status, self.ALLOWED)
                self.counts["clients"] += 1
            except nfs4.Refused as refused:
                counted(self.counts, refused.status, self.ALLOWED)
                self.counts["clients refused"] += 1
            except OSError:
                self.counts["ended by the server"] += 1


class InSessions(Judged, Calls):
    """As many COMPOUNDs at once as a session has slots, all the time."""

    TRANSPORT = staticmethod(tcp)
    SLOTS = 32
    ALLOWED = {OK, DELAYED}

    def open(self, source):
        peer = self.TRANSPORT(self, source)
        try:
            peer.session = nfs4.Session(peer, self.owner_name(source, self.counts["opened"]), slots=self.SLOTS)
        except BaseException:
            peer.close()
            raise
        peer.free, peer.asked = list(range(len(peer.session.slots))), {}
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
        counted(self.counts, results.status, self.ALLOWED)
        if results.operation()[0] == nfs4.NFS4_OK:
            peer.session.slots[slot] += 1


class Leases(InSessions):
    """Leases renewed as fast as the server takes it."""

    def compound(self, peer, slot):
        return nfs4.compound([peer.session.sequence(slot)])


class States(InSessions):
    """Opens and locks of one owner after the other, none given back."""

    HELD = MOST_OF_CLIENT
    numbers = itertools.count()

    def compound(self, peer, slot):
        number = next(self.numbers)
        owner, session = b"owner%d" % number, peer.session
        opening = nfs4.open_by_name(session.clientid, owner, b"state%d" % (number % 64))
        locking = nfs4.lock(nfs4.CURRENT_STATEID, session.clientid, owner, 2 * number, 1)
        return nfs4.compound([session.sequence(slot), nfs4.putfh(self.target.places4[0].folder), opening, locking])


class Replays(InSessions):
    """Retries with other arguments, gaps in the sequence, and stateids by guess: none of them is executed."""

    ALLOWED = {BAD_STATEID, MISORDERED, RETRY_UNCACHED, FALSE_RETRY}
    TOLD = ({BAD_STATEID}, {MISORDERED}, {RETRY_UNCACHED, FALSE_RETRY})
    numbers = itertools.count(1 << 40)  # low ones are special stateids

    def guessed(self, session, number):
        guess = nfs4.stateid(number.to_bytes(16, "big"))
        return [nfs4.putfh(self.target.places4[0].file), nfs4.op(nfs4.READ, guess, nfs4.words(0, 0, 4096))]

    def compound(self, peer, slot):
        number, session = next(self.numbers), peer.session
        operations = self.guessed(session, number)
        again = session.slots[slot] - 1
        wanted = (None, again, session.slots[slot] + 1 + number % 7)[number % 3]
        if wanted == again:
            operations.append(nfs4.op(nfs4.GETFH))
        return nfs4.compound([session.sequence(slot, wanted, cache=number % 2), *operations])


class Stolen(Replays):
    """The same with open and lock stateids, and the client ID, that belong to somebody else, who has them still in the end."""

    ALLOWED = Replays.ALLOWED | {CLIENT_BUSY}
    FILES = 8
    LEASE = 20  # seconds; less than the server's

    def start(self):
        """Somebody who has some files open and locked."""
        self.owner = TcpPeer(self.target.tcp_port)
        self.owned = nfs4.Session(self.owner, b"somebody else")
        root = self.target.places4[1].root
        self.files = []
        for i in range(self.FILES):
            name = b"owned%d" % i
            status, opened = self.owned.try_open(self.owner, root, name)
            handle = nfs4.looked_up(self.owner, (b"files", name))
            locked = self.ask([nfs4.putfh(handle), nfs4.lock(opened, self.owned.clientid, b"owner", 0, 10)], 0, 16)
            if status != OK or locked is None:
                raise AssertionError(f"who keeps to the rules got no open or no lock: status {status}")
            self.files.append((handle, opened, locked))
        self.renewed = time.monotonic()
        super().start()

    def step(self):
        super().step()
        if time.monotonic() - self.renewed > self.LEASE:
            self.renewed = time.monotonic()
            self.ask([nfs4.putfh(self.files[0][0])], 0)

    def ask(self, operations, *lengths):
        """The result of the last operation in the owner's session, None where one failed."""
        results = nfs4.Results(self.owner.call(nfs4.compound([self.owned.sequence(0), *operations])))
        if results.operation(nfs4.SEQUENCE_RESULTS)[0] == OK:
            self.owned.slots[0] += 1
        for length in lengths:
            _, last = results.operation(length)
        return last if results.status == OK else None

    def guessed(self, session, number):
        handle, opened, locked = self.files[number // 3 % self.FILES]
        kind = number // 3 // self.FILES % 10
        state, on_file = nfs4.stateid((opened, locked)[number // 3 // self.FILES // 10 % 2]), nfs4.putfh(handle)
        data = [nfs4.u64("compound", "offset", 0), *nfs4.words(2, 0, name="write")]
        ways = (
            [on_file, nfs4.op(nfs4.READ, state, nfs4.words(0, 0, 4096))], [on_file, nfs4.op(nfs4.WRITE, state, data)],
            [on_file, nfs4.op(nfs4.CLOSE, nfs4.words(0), state)], [on_file, nfs4.op(nfs4.OPEN_DOWNGRADE, state, nfs4.words(0, 1, 0))],
            [on_file, nfs4.op(nfs4.LOCKU, nfs4.words(2, 0), state, nfs4.words(0, 0, 0, 10))], [on_file, nfs4.op(nfs4.DELEGRETURN, state)],
            [on_file, nfs4.op(nfs4.SETATTR, state, nfs4.words(1, 1 << 4, 8, 0, 0))], [nfs4.op(nfs4.FREE_STATEID, state)],
            [on_file, nfs4.lock(locked, session.clientid, b"owner", 20, 10, new=False)],
            [nfs4.op(nfs4.DESTROY_CLIENTID, [nfs4.u64("state", "clientid", self.owned.clientid)])],
        )  # fmt: skip
        return ways[kind]

    def stop(self):
        super().stop()
        for handle, opened, locked in self.files:
            for state in (opened, locked):
                if self.ask([nfs4.putfh(handle), nfs4.op(nfs4.WRITE, nfs4.stateid(state), nfs4.words(0, 0, 2, 0))], 0, 16) is None:
                    self.counts[f"{UNEXPECTED} end of what somebody else has"] += 1
        self.owner.close()


class Counted(Judged, Calls):
    """Stateids and client IDs of version 4.0, where they alone say who asks: who has some of his own counts up and down from these, and comes to
    nobody else's."""

    TRANSPORT = staticmethod(tcp)
    ALLOWED = {BAD_STATEID, STALE_CLIENT}
    TOLD = ({BAD_STATEID}, {STALE_CLIENT})
    HELD = 1
    LEASE = 20  # seconds; less than the server's
    FILE, LOCKED = b"counted", (0, 10)

    def __init__(self, target, sources):
        super().__init__(target, sources)
        self.numbers = itertools.count()
        self.folder = target.places4[1].root

    def start(self):
        """Somebody who has a file open and locked."""
        self.owner = TcpPeer(self.target.tcp_port)
        self.owned = nfs4.Client40(self.owner, b"somebody else")
        self.handle, self.opened = self.owned.open(self.owner, self.folder, self.FILE, lambda: nfs4.looked_up(self.owner, (b"files", self.FILE)))
        self.locked = self.owned.ask(self.owner, [nfs4.putfh(self.handle), nfs4.lock(self.opened, self.owned.clientid, b"owner", *self.LOCKED, seqid=3)], 0, 16)
        self.renewed = time.monotonic()
        super().start()

    def open(self, source):
        peer = super().open(source)
        try:
            peer.client = nfs4.Client40(peer, self.owner_name(source, self.counts["opened"]))
            peer.stateid = peer.client.open(peer, self.folder, b"own", lambda: nfs4.looked_up(peer, (b"files", b"own")))[1]
        except BaseException:
            peer.close()
            raise
        return peer

    def step(self):
        super().step()
        if time.monotonic() - self.renewed > self.LEASE:
            self.renewed = time.monotonic()
            self.works()

    def next_call(self, source):
        return next(self.numbers)

    @staticmethod
    def near(own, number, first=0):
        """These bytes with a number beside the one that stands in them at `first` or behind."""
        places = (len(own) - 4 - first) // 2 + 1
        at, number = first + number % places * 2, number // places
        word = int.from_bytes(own[at : at + 4], "big") + (number // 2 + 1) * (-1) ** number
        return own[:at] + (word % (1 << 32)).to_bytes(4, "big") + own[at + 4 :]

    def start_call(self, peer, number):
        kind, number = number % 10, number // 10
        other = bytes(4) + self.near(peer.stateid[4:], number, 2)  # behind the epoch, which everybody knows
        state, on_file = nfs4.stateid(other), nfs4.putfh(self.handle)
        client = int.from_bytes(self.near(peer.client.clientid.to_bytes(8, "big"), number), "big")
        data, seqid = [nfs4.u64("compound", "offset", 0), *nfs4.words(2, 0, name="write")], nfs4.words(1 + number % 8)
        ways = (
            [on_file, nfs4.op(nfs4.READ, state, nfs4.words(0, 0, 4096))], [on_file, nfs4.op(nfs4.WRITE, state, data)],
            [on_file, nfs4.op(nfs4.CLOSE, seqid, state)], [on_file, nfs4.op(nfs4.OPEN_DOWNGRADE, state, seqid, nfs4.words(1, 0))],
            [on_file, nfs4.op(nfs4.LOCKU, nfs4.words(2), seqid, state, nfs4.words(0, 0, 0, 10))], [on_file, nfs4.op(nfs4.DELEGRETURN, state)],
            [on_file, nfs4.op(nfs4.SETATTR, state, nfs4.words(1, 1 << 4, 8, 0, 0))],
            [on_file, nfs4.lock(other, client, b"owner", 20, 10, new=False)],
            [nfs4.op(nfs4.RENEW, [nfs4.u64("state", "clientid", client)])],
            [nfs4.putfh(self.folder), nfs4.open_by_name(client, b"owner", self.FILE, seqid=1)],
        )  # fmt: skip
        return peer.start(nfs4.compound(ways[kind], 0))

    def answered_by(self, reply):
        results = rpc.results_of(reply)
        if results is None:
            self.counts["refused"] += 1
        else:
            counted(self.counts, nfs4.Results(results).status, self.ALLOWED)

    def works(self):
        """What somebody else has."""
        for state in (self.opened, self.locked):
            try:
                self.owned.ask(self.owner, [nfs4.putfh(self.handle), nfs4.op(nfs4.WRITE, nfs4.stateid(state), nfs4.words(0, 0, 2, 0))])
            except nfs4.Refused:
                self.counts[f"{UNEXPECTED} end of what somebody else has"] += 1

    def stop(self):
        super().stop()
        self.works()
        self.owner.close()


FLOODS = {
    "flood/nfs4-clients": Clients, "flood/nfs4-leases": Leases, "flood/nfs4-states": States, "flood/nfs4-replays": Replays, "flood/nfs4-stolen": Stolen, "flood/nfs4-counted": Counted,
}  # fmt: skip
