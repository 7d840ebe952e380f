"""How servers of versions 4.0 to 4.2 mislead: by what COMPOUNDs say of sessions, state and files."""
import struct

from hostile.files import FILE, OK, opaque, words
from hostile.files4 import BAD_STATEID, CLIENTID, DATA, HOLE, NOTSUPP, NXIO, SESSION, SLOTS, STATEID, Files4, bitmap, hyper
from hostile.manners import Bottomless, CyclingCookies, DirectoryInItself, Manner, NoProgress, Spoiling, StrangeNames, StrangeSizes, Twice
from wire import nfs4
from wire.fields import join
from wire.rpc import record

(OLD_STATEID, STALE_STATEID, EXPIRED, GRACE, BADSESSION, BADSLOT, SEQ_MISORDERED, DEADSESSION, CONN_NOT_BOUND, STALE_CLIENTID) = (
    10024, 10023, 10011, 10013, 10052, 10053, 10063, 10078, 10055, 10022)  # fmt: skip
SETCLIENTID, SETCLIENTID_CONFIRM, RENEW = 35, 36, 30
HIGHEST = (1 << 32) - 1
DELEGATED = words(1) + b"a delegation"


class WrongSlots(Files4):
    """SEQUENCE of other sessions, slots and numbers, and of more slots than there are, or none."""

    def sequenced(self, session, sequence, slot):
        other = self.chance.randrange(8)
        highest = self.chance.choice((0, SLOTS - 1, SLOTS, HIGHEST))
        return ((bytes(16) if other == 0 else session) + words(sequence + (other == 1) & HIGHEST, slot if other != 2 else self.chance.choice((slot + 1, HIGHEST)), highest,
                                                               self.chance.choice((0, highest, HIGHEST)), 0))  # fmt: skip


class LostSessions(Files4):
    """SEQUENCE and what makes sessions fail, now and then or for ever."""

    def operation(self, number, call):
        rare = number in (nfs4.EXCHANGE_ID, nfs4.CREATE_SESSION, SETCLIENTID, SETCLIENTID_CONFIRM)
        often = number in (nfs4.SEQUENCE, nfs4.BIND, RENEW) or (self.minor == 0 and number == nfs4.OPEN)
        if (rare or often) and self.chance.random() < (0.1 if rare else 0.4):
            return words(self.chance.choice((BADSESSION, BADSLOT, SEQ_MISORDERED, DEADSESSION, CONN_NOT_BOUND, STALE_CLIENTID, nfs4.DELAY, GRACE)))
        return super().operation(number, call)


class StrangeSessions(Files4):
    """Sessions of no slots, of tiny messages and of other clients."""

    def result_42(self, call):
        call.at = len(call.data)
        flags, protection = self.chance.choice(((0x20000, 0), (0, 0), (HIGHEST, 0), (0x80000000, 0), (0x20000, 1), (0x20000, 2)))
        return words(OK) + CLIENTID + words(self.chance.choice((0, 1, HIGHEST)), flags, protection) + hyper(0) + opaque(b"h" * self.chance.choice((0, 1, 1024, 5000))) + \
            opaque(b"hostile") + words(self.chance.choice((0, HIGHEST)))

    def result_43(self, call):
        call.at = len(call.data)
        channel = words(*(self.chance.choice((0, 1, 100, 4096, 1 << 20, HIGHEST)) for _ in range(6)), self.chance.choice((0, 0, 1, HIGHEST)))
        return words(OK) + SESSION + words(self.chance.choice((0, 1, 7)), self.chance.choice((0, 2, HIGHEST))) + channel * 2


class Revoked(Files4):
    """Something is always said to be revoked, moved or lost, and asked about it, the server says one thing or another."""

    def sequenced(self, session, sequence, slot):
        return session + words(sequence, slot, SLOTS - 1, SLOTS - 1, self.chance.choice((HIGHEST, 0x8, 0x10, 0x20, 0x40, 0x100, 0x200, 0x1000)))

    def result_55(self, call):
        count = call.word()
        for _ in range(count):
            call.fixed(16)
        count = self.chance.choice((count, 0, count + 1))
        return words(OK, count, *(self.chance.choice((OK, EXPIRED, BAD_STATEID)) for _ in range(count)))


class WrongStateids(Files4):
    """OPEN and CLOSE give stateids that are special, or others at each time; what is done by them fails."""

    def other(self):
        return self.chance.choice((bytes(16), b"\xff" * 16, words(0) + b"opened once.", words(1) + self.chance.randbytes(12)))

    def opened(self):
        kind = self.chance.choice((0, 0, 1, 2, 3, 4, 9))
        return self.other() + words(0) + hyper(1) + hyper(2) + words(self.chance.choice((0, 2, 4, HIGHEST))) + bitmap([]) + words(kind) + self.delegated(kind)

    def delegated(self, kind):
        """What nobody has asked for."""
        ace = words(0, 0, 0) + opaque(b"EVERYONE@")
        if kind == 1:
            return self.other() + words(1) + ace
        if kind == 2:
            return self.other() + words(1, self.chance.choice((1, 2, 7))) + hyper(1) + ace
        return words(self.chance.randrange(10)) if kind == 3 else b""

    def stateid(self, given):
        return self.other()

    def operation(self, number, call):
        if number in (nfs4.READ, nfs4.WRITE, nfs4.SETATTR, nfs4.CLOSE, nfs4.OPEN) and self.chance.random() < 0.4:
            return words(self.chance.choice((OLD_STATEID, BAD_STATEID, STALE_STATEID, EXPIRED, GRACE)))
        return super().operation(number, call)


class OtherResults(Files4):
    """Results of other operations than were asked for, more of them, fewer, or of another status than the COMPOUND's."""

    def compound(self, results):
        results = list(results)
        kind, at = self.chance.randrange(8), self.chance.randrange(len(results) + 1)
        if kind == 0:
            results.insert(at, (self.chance.choice((0, 1, 2, 59, 10044, nfs4.GETFH, HIGHEST)), words(OK)))
        elif kind == 1 and results:
            del results[at - 1 :]
        elif kind == 2 and results:
            results[at - 1] = (self.chance.choice((nfs4.PUTFH, nfs4.READ, nfs4.OPEN, HIGHEST)), results[at - 1][1])
        elif kind == 3:
            results *= self.chance.choice((2, 100))
        elif kind == 4 and results:
            results[at - 1] = (results[at - 1][0], words(self.chance.choice((1, 5, 10044, HIGHEST))))
        whole = super().compound(results)
        return words(self.chance.choice((OK, 5, nfs4.DELAY))) + whole[4:] if kind == 5 else whole


class Contradictions(Files4):
    """Attributes that were not asked for, are not there, are shorter or longer than they say, or others at each time."""

    def kind(self, handle):
        return self.chance.choice((0, 1, 1, 2, 2, 5, 9, HIGHEST))

    def fattr4(self, handle, asked):
        numbers, values = set(asked) & set(self.values(handle)), self.values(handle)
        for number in [number for number in numbers if self.chance.random() < 0.1]:
            numbers.remove(number)
        data = b"".join(values[number] for number in sorted(numbers))
        said = sorted(numbers | ({self.chance.randrange(100)} if self.chance.random() < 0.3 else set()))
        cut = self.chance.choice((0, 0, 0, 4, len(data)))
        return bitmap(said) + opaque(data[: len(data) - cut] + bytes(self.chance.choice((0, 0, 8))))

    def changed(self):
        return words(self.chance.choice((0, 1))) + hyper(self.chance.getrandbits(64)) + hyper(self.chance.getrandbits(64))

    def written(self, count):
        return words(self.chance.choice((count, 0, count + 1, HIGHEST)), self.chance.choice((0, 1, 2, 9))) + self.chance.randbytes(8)


class WrongCopies(Files4):
    """COPY has copied more than it was asked for, less, or nothing, goes on for ever, or is forgotten; CLONE does what it says, or does not."""

    def result_71(self, call):  # CLONE
        call.fixed(16), call.fixed(16)
        call.hyper(), call.hyper(), call.hyper()
        return words(self.chance.choice((OK, 5, 22, NOTSUPP, nfs4.DELAY)))

    def result_60(self, call):  # COPY
        copied = super().result_60(call)
        # NFS4ERR_OFFLOAD_NO_REQS has an arm of its own.
        return self.chance.choice((copied, copied, copied, words(5), words(10094, 0, 0), words(10094, 1, 1), words(nfs4.DELAY)))

    def count(self, asked):
        return self.chance.choice((asked, asked, asked // 2, 0, asked + 1, (1 << 64) - 1))

    def copied(self, count):
        goes_on = [self.chance.choice((STATEID, bytes(16), b"\xff" * 16, self.chance.randbytes(16)))] * self.chance.choice((0, 0, 1, 1, 2))
        return words(len(goes_on)) + b"".join(goes_on) + hyper(self.count(count)) + self.written(0)[4:] + words(1, self.chance.choice((0, 1)))

    def written(self, count):
        return words(count, self.chance.choice((0, 1, 2, 9))) + self.chance.choice((bytes(8), self.chance.randbytes(8)))

    def result_67(self, call):  # OFFLOAD_STATUS
        call.fixed(16)
        ended = self.chance.choice(((), (), (OK,), (OK, OK), (5,), (BAD_STATEID,)))
        return self.chance.choice((words(OK) + hyper(self.count(self.size)) + words(len(ended), *ended), words(BAD_STATEID), words(NOTSUPP)))

    def result_66(self, call):  # OFFLOAD_CANCEL
        call.fixed(16)
        return words(self.chance.choice((OK, BAD_STATEID, NOTSUPP)))


class WrongHoles(Files4):
    """SEEK finds what lies before the place that it was asked for, behind the end, or elsewhere each time; READ_PLUS tells of parts that nobody asked for."""

    def result_69(self, call):  # SEEK
        found = super().result_69(call)
        return self.chance.choice((found, found, found, words(NXIO), words(10090)))

    def found(self, asked, offset):
        other = self.chance.choice((offset, offset, asked, max(asked, 1) - 1, asked + 1000, 0, self.size, (1 << 63) - 1, (1 << 64) - 1))
        return words(self.chance.choice((other >= self.size, 0, 1, 2))) + hyper(other)

    def result_68(self, call):  # READ_PLUS
        call.fixed(16)
        offset, count = call.hyper(), call.word()
        parts = [self.part(offset, count) for _ in range(self.chance.choice((0, 1, 2, 1000)))]
        return words(OK, self.chance.choice((0, 1)), len(parts)) + b"".join(parts)

    def part(self, offset, count):
        kind, at = self.chance.choice((DATA, HOLE, 2)), self.chance.choice((offset, max(offset, 1) - 1, offset + count, (1 << 64) - 1))
        size = self.chance.choice((0, 1, count, count + 1))
        body = {DATA: opaque(bytes(min(size, 1 << 10))), HOLE: hyper(self.chance.choice((size, (1 << 64) - 1)))}
        return words(kind) + (hyper(at) + body[kind] if kind in body else b"")


class StrangeXattrs(Files4):
    """Names without an end, or that are none, and values that are long, or not there."""

    NAMES = (b"", b"name", b"user.name", b"n" * 255, b"n" * 5000, b"../escaped", b"nul\0l", b"\xff\xfe", b"new\nline")

    def result_74(self, call):  # LISTXATTRS
        cookie, most = call.hyper(), call.word()
        names = [self.chance.choice(self.NAMES) for _ in range(self.chance.choice((0, 1, 10, most // 100)))]
        following = self.chance.choice((cookie + 1, cookie + 1, cookie, 0, (1 << 64) - 1)) & (1 << 64) - 1
        return words(OK) + hyper(following) + words(len(names)) + b"".join(map(opaque, names)) + words(self.chance.choice((0, 0, 0, 1)))

    def result_72(self, call):  # GETXATTR
        call.opaque()
        return self.chance.choice((words(10095), words(5), words(OK) + opaque(bytes(self.chance.choice((0, 1, 1000, 1 << 16, 1 << 20))))))


class ManyXattrs(Files4):
    """Tens of thousands of short names, or a list without an end, and each with a long value."""

    def result_74(self, call):  # LISTXATTRS
        cookie = call.hyper()
        call.word()
        return words(OK) + hyper(cookie + 1) + words(1000) + opaque(b"n") * 1000 + words(cookie >= 30 and self.chance.random() < 0.5)

    def result_72(self, call):  # GETXATTR
        call.opaque()
        return words(OK) + opaque(bytes(1 << 16))


class Endless4(Files4):
    """A directory without an end, whose entries come in a hurry."""

    def result_26(self, call):
        cookie = call.hyper()
        call.fixed(8), call.word(), call.word()
        fattr, pack = self.fattr4(FILE, call.bitmap()), struct.Struct(">IQI12s").pack
        entries = [pack(1, at, 12, b"entry%07d" % at) + fattr for at in range(max(cookie, 2) + 1, max(cookie, 2) + 100)]
        return words(OK) + bytes(8) + b"".join(entries) + words(0, False)


class Delays(Files4):
    """Come back later, for ever."""

    def operation(self, number, call):
        result = super().operation(number, call)
        return words(nfs4.DELAY) if number in (nfs4.GETATTR, nfs4.READ, nfs4.OPEN, nfs4.READDIR, nfs4.REMOVE) else result


class Cycling4(CyclingCookies, Files4):
    pass


class NoProgress4(NoProgress, Files4):
    pass


class InItself4(DirectoryInItself, Files4):
    pass


class Bottomless4(Bottomless, Files4):
    pass


class StrangeNames4(StrangeNames, Files4):
    pass


class StrangeSizes4(StrangeSizes, Files4):
    pass


class CallsBack4(Manner):
    """Callbacks of sessions that nobody knows, and of the one there is, of what nobody has, in between the replies."""

    xids = 0x40000000

    async def send(self, writer, data):
        for _ in range(self.chance.randrange(4)):
            await super().send(writer, join(record(self.callback())))
        await super().send(writer, data)

    def callback(self):
        CallsBack4.xids += 1
        chance = self.chance
        session, what = chance.choice((SESSION, bytes(16), chance.randbytes(16))), chance.choice((3, 4, 5, 8, 9, 10, 11, 15, 10044))
        body = words(0, 1, 0, 2, 11) + session + words(chance.choice((0, 1, 2, HIGHEST)), chance.choice((0, 1, HIGHEST)), 0, 0, chance.choice((0, HIGHEST)))
        body += words(what) + chance.randbytes(4 * chance.randrange(12))
        return words(self.xids, 0, 2, chance.choice((0x40000000, 0x40000001, nfs4.NFS)), 1, chance.choice((0, 1, 2)), 0, 0, 0, 0) + body


class Delegates(Files4):
    """Whatever is opened is delegated, for writing as long as the same file is not delegated for writing yet."""

    def opened(self):
        reading = self.chance.random() < 0.5
        ace = words(0, 0, 0) + opaque(b"EVERYONE@")
        limit = b"" if reading else words(1) + hyper(1 << 40)
        return STATEID + words(0) + hyper(1) + hyper(2) + words(4) + bitmap([]) + words(1 if reading else 2) + DELEGATED + words(0) + limit + ace


class Recalls(Manner):
    """What is delegated is asked back by callbacks that are right, or wrong in one thing; and come twice, or in the wrong order."""

    def __init__(self, chance):
        super().__init__(chance)
        self.sequence, self.xids = 0, 0x50000000

    async def send(self, writer, data):
        if self.chance.random() < 0.3:
            for _ in range(self.chance.choice((1, 1, 1, 2, 5))):
                await super().send(writer, join(record(self.callback())))
        await super().send(writer, data)

    def callback(self):
        chance = self.chance
        self.xids += 1
        self.sequence += chance.choice((1, 1, 1, 1, 0, 2))
        body = words(0, 1, 0, 2, 11) + SESSION + words(self.sequence, chance.choice((0, 0, 0, 1)), 0, 0, 0)
        stateid, handle = chance.choice((DELEGATED, DELEGATED, STATEID, bytes(16))), chance.choice((FILE, FILE, b"other", b""))
        if chance.random() < 0.6:
            body += words(4) + stateid + words(chance.choice((0, 1))) + opaque(handle)  # CB_RECALL
        else:
            body += words(3) + opaque(handle) + bitmap([3, 4])  # CB_GETATTR
        return words(self.xids, 0, 2, 0x40000000, 1, 1, 0, 0, 0, 0) + body


FILES = {
    "slots": WrongSlots, "lost-sessions": LostSessions, "strange-sessions": StrangeSessions, "revoked": Revoked, "stateids": WrongStateids, "other-results": OtherResults,
    "contradictions": Contradictions, "endless-directory": Endless4, "cycling-cookies": Cycling4, "no-progress": NoProgress4, "directory-in-itself": InItself4,
    "bottomless": Bottomless4, "strange-names": StrangeNames4, "strange-sizes": StrangeSizes4, "delays": Delays, "copies": WrongCopies, "holes": WrongHoles,
    "xattrs": StrangeXattrs, "many-xattrs": ManyXattrs,
}  # fmt: skip
MANNERS = {"truth": Manner, "twice": Twice, "calls-back": CallsBack4, "xdr": lambda chance: Spoiling(chance, "xdr")}
NAMES = [f"v4-{name}" for name in (*FILES, *MANNERS)]
# What only those meet who hold something for long.
MOUNTED = ["v4-recalls"]
OF_VERSION_4_2 = ("v4-copies", "v4-holes", "v4-xattrs", "v4-many-xattrs")
# What is about sessions, and about what version 4.2 has.
VERSIONS = {
    **dict.fromkeys(("v4-slots", "v4-strange-sessions", "v4-revoked", "v4-calls-back", "v4-recalls"), ("4.1", "4.2")),
    **dict.fromkeys(OF_VERSION_4_2, ("4.2",)),
}


def version_of(kind, chance):
    """One by which that kind of lie can be told."""
    return chance.choice(VERSIONS.get(kind, ("4.0", "4.1", "4.2")))


def make(name, chance):
    """(files, manner) of one of NAMES or MOUNTED."""
    name = name.removeprefix("v4-")
    if name == "recalls":
        return Delegates(chance), Recalls(chance)
    if name in FILES:
        return FILES[name](chance), Manner(chance)
    return Files4(chance), MANNERS[name](chance)
