"""Calls of NLM and NSM (X/Open XNFS chapters 10 and 11), valid ones, with arguments by chance."""
from wire.fields import Field, opaque, u32, u64
from wire.nfs import handle
from wire.rpc import Call

NLM, NSM = 100021, 100024
SIMULATE_CRASH, NOTIFY = 5, 6
TEST, LOCK, CANCEL, UNLOCK, GRANTED, SHARE, UNSHARE, NM_LOCK, FREE_ALL = 1, 2, 3, 4, 5, 20, 21, 22, 23
# Hosts that can be called back without a name service; nobody listens there.
HOSTS = (b"127.0.0.1", b"127.0.0.2", b"attacker")


def _word(value, name="word"):
    return u32("xdr", name, value)


def _lock(version, host, file, owner, pid, offset, length):
    wide = u64 if version == 4 else u32
    return [
        *opaque("xdr", "caller", host), *handle(file), *opaque("xdr", "owner", owner), _word(pid, "svid"), wide("xdr", "offset", offset),
        wide("xdr", "length", length),
    ]


def lock(file, owner, offset, length, host=HOSTS[0], block=False, exclusive=True, version=4, cookie=b"cook"):
    arguments = [
        *opaque("xdr", "cookie", cookie), _word(block, "block"), _word(exclusive, "exclusive"), *_lock(version, host, file, owner, 1, offset, length),
        _word(0, "reclaim"), _word(1, "state"),
    ]
    return Call(NLM, version, LOCK, arguments)


def unlock(file, owner, offset, length, host=HOSTS[0], version=4):
    return Call(NLM, version, UNLOCK, [*opaque("xdr", "cookie", b"cook"), *_lock(version, host, file, owner, 1, offset, length)])


def free_all(host, version=4):
    return Call(NLM, version, FREE_ALL, [*opaque("xdr", "name", host), _word(1, "state")])


def notify(host, state):
    """A host's word that it has restarted."""
    return Call(NSM, 1, NOTIFY, [*opaque("xdr", "monitored", host), _word(state & 0xFFFFFFFF, "state")])


def simulate_crash():
    return Call(NSM, 1, SIMULATE_CRASH, [])


def _share(version, host, file, owner, chance):
    arguments = [
        *opaque("xdr", "cookie", b"c"), *opaque("xdr", "caller", host), *handle(file), *opaque("xdr", "owner", owner),
        _word(chance.randrange(4), "mode"), _word(chance.randrange(4), "access"), _word(0, "reclaim"),
    ]
    return Call(NLM, version, chance.choice((SHARE, UNSHARE)), arguments)


def _nsm(host, chance):
    procedure = chance.randrange(7)
    target = opaque("xdr", "monitored", host)
    me = [*opaque("xdr", "me", b"attacker"), _word(NLM), _word(4), _word(16)]
    arguments = {1: target, 2: [*target, *me, Field("xdr", "private", bytes(16))], 3: target + me, 4: me, 6: [*target, _word(3)]}
    return Call(NSM, 1, procedure, arguments.get(procedure, []))


def any_call(place, chance):
    version = chance.choice((4, 4, 4, 1, 3))
    file = place.file if version == 4 else place.file2
    host, owner = chance.choice(HOSTS), b"owner%d" % chance.randrange(8)
    offset, length = chance.choice((0, 1, 10, 1000)), chance.choice((0, 1, 10, 1000))
    kind = chance.randrange(9)
    if kind < 3:
        return lock(file, owner, offset, length, host, chance.random() < 0.3, chance.random() < 0.6, version)
    if kind < 5:
        return unlock(file, owner, offset, length, host, version)
    if kind == 5:
        return Call(NLM, version, TEST, [*opaque("xdr", "cookie", b"c"), _word(1), *_lock(version, host, file, owner, 1, offset, length)])
    if kind == 6:
        return _share(3 if version == 1 else version, host, file, owner, chance)
    if kind == 7:
        return free_all(host, 3 if version == 1 else version)
    return _nsm(host, chance)
