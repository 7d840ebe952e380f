"""COMPOUNDs of NFS version 4 (RFC 7530, RFC 8881, RFC 7862, RFC 8276), valid ones, with arguments by chance, and sessions to send them in.

Fields of the layer `state` name state: stateids, sessions, slots, clients. Those of `compound` are all others but handles."""
import struct
from typing import NamedTuple

from wire.fields import Field, opaque, padded, u32, u64
from wire.nfs import NAMES, NFS
from wire.rpc import Call

NFS4_OK, BADSESSION, DELAY, GRACE, RETRY_UNCACHED_REP = 0, 10052, 10008, 10013, 10068
(ACCESS, CLOSE, COMMIT, CREATE, GETATTR, GETFH, LINK, LOCK, LOCKT, LOCKU, LOOKUP, LOOKUPP, NVERIFY, OPEN) = (3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)
(PUTFH, PUTROOTFH, READ, READDIR, READLINK, REMOVE, RENAME, RESTOREFH, SAVEFH, SECINFO, SETATTR, VERIFY, WRITE) = (22, 24, 25, 26, 27, 28, 29, 31, 32, 33, 34, 37, 38)
(BACKCHANNEL_CTL, BIND, EXCHANGE_ID, CREATE_SESSION, DESTROY_SESSION, FREE_STATEID) = (40, 41, 42, 43, 44, 45)
(DELEGRETURN, OPEN_CONFIRM, OPEN_DOWNGRADE, RENEW, SETCLIENTID, SETCLIENTID_CONFIRM) = (8, 20, 21, 30, 35, 36)  # but for the first and third, of version 4.0
(SECINFO_NO_NAME, SEQUENCE, TEST_STATEID, DESTROY_CLIENTID, RECLAIM_COMPLETE) = (52, 53, 55, 57, 58)
NULL_STATEID, CURRENT_STATEID = bytes(16), bytes((0, 0, 0, 1)) + bytes(12)
WRITE_LT = 2
SEQUENCE_RESULTS = 36  # bytes


class Place(NamedTuple):
    root: bytes
    folder: bytes
    file: bytes
    link: bytes


def words(*values, name="word", layer="compound"):
    return [u32(layer, name, value) for value in values]


def handle(data):
    return opaque("handle", "handle", data)


def name(data):
    return opaque("compound", "name", data)


def stateid(data):
    return [Field("state", "stateid.seqid", data[:4]), Field("state", "stateid.other", data[4:16])]


def session_id(data):
    return Field("state", "sessionid", data)


def op(number, *fields):
    flat = [u32("compound", "operation", number)]
    for field in fields:
        flat += [field] if isinstance(field, Field) else field
    return flat


def putfh(data):
    return op(PUTFH, handle(data))


def compound(operations, minor=2, data=None, results=0):
    """`data`: the number of the operation whose last field may go in a Read chunk."""
    fields = [*opaque("compound", "tag", b""), u32("compound", "minor", minor), u32("compound", "operations", len(operations))]
    place = None
    for i, each in enumerate(operations):
        fields += each
        if i == data:
            place = len(fields) - 1
    return Call(NFS, 4, 1, fields, place, results)


# -- replies --------------------------------------------------------------------------------------


class Results:
    """The status of a COMPOUND and what stands behind it; the results of operations without any are skipped."""

    def __init__(self, results):
        self.status, tag = struct.unpack_from(">II", results)
        self.count, = struct.unpack_from(">I", results, 8 + tag + -tag % 4)
        self.rest = results[12 + tag + -tag % 4 :]

    def operation(self, length=0):
        """The status and the results, of `length` bytes, of the next one; without one, the status of all."""
        if len(self.rest) < 8:
            return self.status, b""
        status, = struct.unpack_from(">I", self.rest, 4)
        taken = 8 + (length if status == NFS4_OK else 0)
        results, self.rest = self.rest[8:taken], self.rest[taken:]
        return status, results


def looked_up(peer, path):
    """The handle at the end of this path."""
    steps = [op(LOOKUP, name(part)) for part in path]
    results = Results(peer.call(compound([op(PUTROOTFH), *steps, op(GETFH)], 0)))
    if results.status != NFS4_OK:
        return b""
    for _ in range(1 + len(path)):
        results.operation()
    length, = struct.unpack_from(">I", results.rest, 8)
    return results.rest[12 : 12 + length]


# -- clients --------------------------------------------------------------------------------------


def exchange_id(owner, verifier):
    owner_fields = [u64("state", "verifier", verifier), *opaque("compound", "owner", owner)]
    return op(EXCHANGE_ID, owner_fields, words(0, 0, 0, name="flags"))


def channel(slots):
    return words(0, 1 << 20, 1 << 20, 4096, 64, slots, 0, name="channel")


def create_session(clientid, sequence, slots=16):
    ids = [u64("state", "clientid", clientid), u32("state", "sequence", sequence)]
    return op(CREATE_SESSION, ids, words(0, name="flags"), channel(slots), channel(1), words(0x40000000, 0, name="callback"))


class Refused(ConnectionRefusedError):
    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status = status


class Session:
    """A client's only one, with the numbers of its slots. Raises ConnectionError where the server makes none."""

    def __init__(self, peer, owner, verifier=1, slots=16, minor=2):
        results = Results(self._answered(peer, compound([exchange_id(owner, verifier)], minor)))
        status, ids = results.operation(12)
        self._need(status)
        self.clientid, sequence = struct.unpack(">QI", ids)
        results = Results(self._answered(peer, compound([create_session(self.clientid, sequence, slots)], minor)))
        status, made = results.operation(48)
        self._need(status)
        granted, = struct.unpack_from(">I", made, 44)
        self.id, self.next, self.slots = made[:16], 0, [1] * min(slots, granted)
        self.asked = {}  # slots by the XIDs of what is under way
        self._answered(peer, compound([self.sequence(0), op(RECLAIM_COMPLETE, words(0))], minor))
        self.slots[0] += 1

    def _answered(self, peer, call):
        results = peer.call(call)
        if results is None:
            raise ConnectionError("no COMPOUND is executed")
        return results

    def _need(self, status):
        if status != NFS4_OK:
            raise Refused(status)

    def sequence(self, slot, number=None, cache=False):
        return op(SEQUENCE, session_id(self.id), words(self.slots[slot] if number is None else number, slot, slot, name="slot", layer="state"), words(cache, name="cache"))

    def in_slot(self, xid):
        """SEQUENCE in the next slot, for the Call with this XID."""
        self.next = (self.next + 1) % len(self.slots)
        self.asked[xid] = self.next
        return self.sequence(self.next)

    def learn(self, replies, results_of):
        """Each slot counts on where its SEQUENCE was executed. Returns how many COMPOUNDs went well."""
        well = 0
        for xid in [xid for xid in self.asked if xid in replies]:
            slot, results = self.asked.pop(xid), results_of(replies[xid])
            if results is None or len(results) < 12:
                continue
            results = Results(results)
            well += results.status == NFS4_OK
            if results.rest and results.operation()[0] == NFS4_OK:
                self.slots[slot] += 1
        return well

    def try_open(self, peer, folder, at, owner=b"owner", how=3):
        """The status, and the stateid of a file that is opened, and made if it is not there."""
        results = Results(self._answered(peer, compound([self.sequence(0), putfh(folder), open_by_name(self.clientid, owner, at, how)])))
        if results.operation(SEQUENCE_RESULTS)[0] == NFS4_OK:
            self.slots[0] += 1
        results.operation()
        status, opened = results.operation(16) if results.status == NFS4_OK else (results.status, b"")
        return status, opened if status == NFS4_OK else NULL_STATEID

    def open(self, peer, folder, at, owner=b"owner", how=3):
        return self.try_open(peer, folder, at, owner, how)[1]


class Client40:
    """A client of version 4.0, with the one file that it opens. Raises ConnectionError where the server has none."""

    def __init__(self, peer, owner, verifier=1):
        called = [*words(0, name="callback"), *opaque("compound", "netid", b""), *opaque("compound", "address", b""), *words(0, name="callback")]
        made = self.ask(peer, [op(SETCLIENTID, u64("state", "verifier", verifier), opaque("compound", "owner", owner), called)], 16)
        self.clientid, = struct.unpack_from(">Q", made)
        self.ask(peer, [op(SETCLIENTID_CONFIRM, Field("state", "clientid", made))])

    def ask(self, peer, operations, *lengths):
        """The result of the last operation."""
        results = peer.call(compound(operations, 0))
        if results is None:
            raise ConnectionError("no COMPOUND is executed")
        results, last = Results(results), b""
        if results.status != NFS4_OK:
            raise Refused(results.status)
        for length in lengths:
            _, last = results.operation(length)
        return last

    def open(self, peer, folder, at, handle_of, owner=b"owner"):
        """The handle and the stateid of a file that is made if it is not there. `handle_of`: tells the handle once it is."""
        opened = self.ask(peer, [putfh(folder), open_by_name(self.clientid, owner, at, seqid=1)], 0, 16)
        handle = handle_of()
        return handle, self.ask(peer, [putfh(handle), op(OPEN_CONFIRM, stateid(opened), words(2, name="seqid", layer="state"))], 0, 16)


# -- operations by chance -------------------------------------------------------------------------


def open_by_name(clientid, owner, at, access=3, deny=0, create=True, seqid=0):
    who = [*words(seqid, access, deny, name="share"), u64("state", "clientid", clientid), *opaque("compound", "owner", owner)]
    how = words(1, 0, 0, 0, name="how") if create else words(0, name="how")  # UNCHECKED, without attributes
    return op(OPEN, who, how, words(0, name="claim"), name(at))


def lock(state, clientid, owner, offset, length, new=True, kind=WRITE_LT, seqid=0):
    locker = words(seqid, name="seqid", layer="state") + stateid(state) + words(0, name="seqid", layer="state")
    locker += [u64("state", "clientid", clientid), *opaque("compound", "owner", owner)]
    if not new:
        locker = stateid(state) + words(0, name="seqid", layer="state")
    return op(LOCK, words(kind, 0, name="lock"), _range(offset, length), words(new, name="new"), locker)


def _range(offset, length):
    return [u64("compound", "offset", offset), u64("compound", "length", length)]


def _attributes(chance):
    """A bitmap, of what is asked for."""
    return words(3, chance.getrandbits(32), chance.getrandbits(32), chance.getrandbits(22), name="bitmap")


def _mode(mode):
    """fattr4 with a mode."""
    return words(2, 0, 2, 4, mode, name="fattr")


def _reads(place, state, chance):
    offset, count = chance.choice((0, 1, 4096, 1 << 40)), chance.choice((0, 1, 512, 8192, 65536))
    kind = chance.randrange(10)
    on_file = putfh(place.file)
    if kind < 3:
        return [on_file, op(READ, stateid(state), [u64("compound", "offset", offset)], words(count, name="count"))], None, count
    if kind == 3:
        return [on_file, op(68, stateid(state), [u64("compound", "offset", offset)], words(count, name="count"))], None, 0  # READ_PLUS
    if kind == 4:
        return [on_file, op(69, stateid(state), [u64("compound", "offset", offset)], words(chance.randrange(3), name="what"))], None, 0  # SEEK
    if kind == 5:
        counts = words(chance.choice((0, 512, 8192)), chance.choice((0, 512, 8192, 1 << 20)), name="count")
        return [putfh(place.folder), op(READDIR, [u64("compound", "cookie", chance.choice((0, 3, 1 << 62))), u64("compound", "verifier", 0)], counts, _attributes(chance))], None, 0
    if kind == 6:
        return [putfh(place.link), op(READLINK)], None, 0
    if kind == 7:
        return [on_file, op(GETATTR, _attributes(chance)), op(ACCESS, words(chance.getrandbits(9), name="access"))], None, 0
    if kind == 8:
        return [on_file, op(72, name(b"user.name")), op(74, [u64("compound", "cookie", 0)], words(4096, name="count"))], None, 0  # GETXATTR, LISTXATTRS
    return [putfh(place.folder), op(LOOKUP, name(chance.choice(NAMES))), op(GETFH), op(LOOKUPP), op(SECINFO_NO_NAME, words(chance.randrange(2), name="style"))], None, 0


def _changes(place, state, clientid, chance):
    at, offset, length = chance.choice(NAMES), chance.choice((0, 1, 4096)), chance.choice((0, 1, 5000, (1 << 64) - 1))
    on_file, in_folder, owner = putfh(place.file), putfh(place.folder), b"owner%d" % chance.randrange(4)
    kind = chance.randrange(16)
    if kind < 3:
        data = chance.randbytes(chance.choice((0, 1, 7, 512, 5000, 20000)))
        head = [*stateid(state), u64("compound", "offset", offset), *words(chance.randrange(3), len(data), name="write"), Field("compound", "data", padded(data))]
        return [on_file, op(WRITE, head)], 1, 0
    if kind < 6:
        return [in_folder, open_by_name(clientid, owner, at, chance.choice((1, 2, 3)), chance.choice((0, 0, 0, 1, 3)), chance.random() < 0.7), op(GETFH)], None, 0
    if kind == 6:
        return [on_file, lock(state, clientid, owner, offset, length, chance.random() < 0.7, chance.choice((1, 2, 3, 4)))], None, 0
    if kind == 7:
        return [on_file, op(LOCKU, words(2, 0, name="lock"), stateid(state), _range(offset, length))], None, 0
    if kind == 8:
        return [on_file, op(SETATTR, stateid(state), _mode(0o644)), op(COMMIT, [u64("compound", "offset", offset)], words(0, name="count"))], None, 0
    if kind == 9:
        return [in_folder, op(CREATE, words(2, name="type"), name(at), _mode(0o755))], None, 0
    if kind == 10:
        return [in_folder, op(REMOVE, name(at))], None, 0
    if kind == 11:
        return [in_folder, op(SAVEFH), op(RENAME, name(at), name(chance.choice(NAMES)))], None, 0
    if kind == 12:
        return [on_file, op(SAVEFH), in_folder, op(LINK, name(at)), op(RESTOREFH)], None, 0
    if kind == 13:
        number = chance.choice((59, 62))  # ALLOCATE, DEALLOCATE
        return [on_file, op(number, stateid(state), _range(offset, length))], None, 0
    if kind == 14:
        copy = [*stateid(state), *stateid(state), u64("compound", "from", 0), u64("compound", "to", chance.choice((0, 65536))), u64("compound", "length", 65536)]
        number = chance.choice((60, 71))  # COPY, CLONE
        return [on_file, op(SAVEFH), op(number, copy, words(1, chance.randrange(2), 0, name="copy") if number == 60 else [])], None, 0
    return [on_file, op(73, words(0, name="how"), name(b"user.name"), opaque("compound", "value", b"v" * 40))], None, 0  # SETXATTR


def _states(place, state, session, chance):
    """What is about state alone."""
    return chance.choice((
        [op(TEST_STATEID, words(2, name="count"), stateid(state), stateid(chance.randbytes(16)))],
        [op(FREE_STATEID, stateid(chance.randbytes(16)))],
        [putfh(place.folder), open_by_name(session.clientid, b"brief", chance.choice(NAMES[:24])), op(CLOSE, words(0, name="seqid", layer="state"), stateid(CURRENT_STATEID))],
        [putfh(place.file), op(CLOSE, words(0, name="seqid", layer="state"), stateid(chance.randbytes(16)))],
        [putfh(place.file), op(8, stateid(chance.randbytes(16)))],  # DELEGRETURN
        [putfh(place.file), op(LOCKT, words(2, name="lock"), _range(0, 10), [u64("state", "clientid", session.clientid)], opaque("compound", "owner", b"another"))],
        [op(BACKCHANNEL_CTL, words(0x40000000, 1, 0, name="callback"))],
        [op(DESTROY_CLIENTID, [u64("state", "clientid", chance.getrandbits(64))])],
        [putfh(place.file), op(67, stateid(state))],  # OFFLOAD_STATUS
        [putfh(place.folder), op(SECINFO, name(chance.choice(NAMES)))],
        [op(chance.choice((7, 36, 47, 48, 49, 50, 51, 54, 56, 61, 65, 70, 75, 76, 10044)))],
    ))  # fmt: skip


def any_operations(place, state, session, chance):
    """Operations, the one with data for a Read chunk, and the bytes that a Write chunk has to have."""
    draw = chance.random()
    if draw < 0.4:
        return _reads(place, state, chance)
    if draw < 0.85:
        return _changes(place, state, session.clientid, chance)
    return _states(place, state, session, chance), None, 0


def any_call(place, state, session, xid, chance):
    """A COMPOUND of the session; now and then one of version 4.0, or one that stands outside of sessions."""
    draw = chance.random()
    if draw < 0.08:
        alone = chance.choice((
            exchange_id(b"another %d" % chance.randrange(8), chance.getrandbits(64)), create_session(chance.getrandbits(64), 1),
            op(DESTROY_SESSION, session_id(chance.randbytes(16))), op(BIND, session_id(session.id), words(chance.randrange(4), 0, name="bind")),
        ))  # fmt: skip
        return compound([alone], chance.choice((1, 2)))
    operations, data, results = any_operations(place, state, session, chance)
    if draw < 0.2:
        return compound(operations, 0, data, results)
    return compound([session.in_slot(xid), *operations], chance.choice((1, 2, 2)), None if data is None else data + 1, results)
