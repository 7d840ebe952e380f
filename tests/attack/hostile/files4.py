"""The same small tree as COMPOUND results of NFS versions 4.0 to 4.2: what a truthful server says (RFC 7530, RFC 8881), for others to distort."""
import struct

from hostile.files import DIRECTORY, EMPTY, FILE, LINK, NOENT, OK, ROOT, SPARSE, Files, opaque, words
from wire import nfs

TOP = b"top_"  # handle of the root of the name space, where every name is the export
NXIO, NOTSUPP, BAD_STATEID = 6, 10004, 10025
DATA, HOLE = 0, 1  # of which READ_PLUS and SEEK tell
CLIENTID, SESSION, STATEID = b"clientid", b"session " * 2, words(1) + b"opened once."
MOST_OPERATIONS = 64
SLOTS = 8


def hyper(value):
    return struct.pack(">Q", value)


def bitmap(numbers):
    """As XDR."""
    masks = [0] * (max(numbers, default=-1) // 32 + 1)
    for number in numbers:
        masks[number // 32] |= 1 << number % 32
    return words(len(masks), *masks)


class Arguments:
    """Taken one after the other; raises struct.error behind their end."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def word(self):
        (value,) = struct.unpack_from(">I", self.data, self.at)
        self.at += 4
        return value

    def hyper(self):
        return self.word() << 32 | self.word()

    def fixed(self, length):
        self.at += length + -length % 4
        if self.at > len(self.data):
            raise struct.error("short")
        return self.data[self.at - length - -length % 4 : self.at - (-length % 4)]

    def opaque(self):
        return self.fixed(self.word())

    def bitmap(self):
        masks = [self.word() for _ in range(self.word())]
        return [32 * i + bit for i, mask in enumerate(masks) for bit in range(32) if mask >> bit & 1]

    def attributes(self):
        return self.bitmap(), self.opaque()


class Files4(Files):
    """result_N() of operation N: what follows its number, or None for one that is not served. Subclasses lie."""

    def results(self, program, version, procedure, arguments):
        if (program, version) != (nfs.NFS, 4):
            return None
        if procedure == 0:
            return b""
        call, results = Arguments(arguments), []
        call.opaque()
        self.minor = call.word()
        self.current, self.saved = TOP, TOP
        for _ in range(min(call.word(), MOST_OPERATIONS)):
            number = call.word()
            results.append((number, self.operation(number, call)))
            if results[-1][1][:4] != words(OK):
                break
        return self.compound(results)

    def operation(self, number, call):
        """Its status and what follows."""
        served = getattr(self, f"result_{number}", None)
        return served(call) if served else words(NOTSUPP)

    def compound(self, results):
        status = results[-1][1][:4] if results else words(OK)
        return status + opaque(b"") + words(len(results)) + b"".join(words(number) + result for number, result in results)

    # -- sessions

    def result_42(self, call):  # EXCHANGE_ID
        call.at = len(call.data)  # it is alone
        return words(OK) + CLIENTID + words(1, 0x20000, 0) + hyper(0) + opaque(b"hostile") + opaque(b"hostile") + words(0)

    def result_43(self, call):  # CREATE_SESSION
        call.at = len(call.data)
        channel = words(0, 1 << 20, 1 << 20, 4096, 16, SLOTS, 0)
        return words(OK) + SESSION + words(1, 2) + channel + channel

    def result_53(self, call):  # SEQUENCE
        session, sequence, slot = call.fixed(16), call.word(), call.word()
        call.word()
        call.word()
        return words(OK) + self.sequenced(session, sequence, slot)

    def sequenced(self, session, sequence, slot):
        return session + words(sequence, slot, SLOTS - 1, SLOTS - 1, 0)

    def result_41(self, call):  # BIND_CONN_TO_SESSION
        return words(OK) + call.fixed(16) + words(call.word(), call.word())

    def result_44(self, call):  # DESTROY_SESSION
        call.fixed(16)
        return words(OK)

    def result_45(self, call):  # FREE_STATEID
        call.fixed(16)
        return words(OK)

    def result_55(self, call):  # TEST_STATEID
        count = call.word()
        for _ in range(count):
            call.fixed(16)
        return words(OK, count, *[OK] * count)

    def result_57(self, call):  # DESTROY_CLIENTID
        call.fixed(8)
        return words(OK)

    def result_58(self, call):  # RECLAIM_COMPLETE
        call.word()
        return words(OK)

    def result_52(self, call):  # SECINFO_NO_NAME: AUTH_SYS
        call.word()
        return words(OK, 1, 1)

    # -- clients of version 4.0

    def result_35(self, call):  # SETCLIENTID
        call.at = len(call.data)
        return words(OK) + CLIENTID + bytes(8)

    def result_36(self, call):  # SETCLIENTID_CONFIRM
        call.fixed(16)
        return words(OK)

    def result_30(self, call):  # RENEW
        call.fixed(8)
        return words(OK)

    def result_39(self, call):  # RELEASE_LOCKOWNER
        call.fixed(8), call.opaque()
        return words(OK)

    def result_20(self, call):  # OPEN_CONFIRM
        given = call.fixed(16)
        call.word()
        return words(OK) + self.stateid(given)

    # -- handles

    def result_24(self, call):  # PUTROOTFH
        self.current = TOP
        return words(OK)

    def result_22(self, call):  # PUTFH
        self.current = call.opaque()
        return words(OK)

    def result_32(self, call):  # SAVEFH
        self.saved = self.current
        return words(OK)

    def result_31(self, call):  # RESTOREFH
        self.current = self.saved
        return words(OK)

    def result_10(self, call):  # GETFH
        return words(OK) + opaque(self.current)

    def result_15(self, call):  # LOOKUP
        name = call.opaque()
        found = ROOT if self.current == TOP else dict(self.listing(self.current)).get(name)
        if found is None:
            return words(NOENT)
        self.current = found
        return words(OK)

    def result_16(self, call):  # LOOKUPP
        self.current = ROOT
        return words(OK)

    # -- attributes

    def kind(self, handle):
        return DIRECTORY if handle == TOP else super().kind(handle)

    def values(self, handle):
        """By number (RFC 8881 5.6, 5.7), as XDR."""
        time, many, used = hyper(1) + words(0), hyper(1 << 30), hyper(self.size // 2 if handle == SPARSE else self.size)
        values = {1: words(self.kind(handle)), 2: words(0), 3: hyper(1), 4: hyper(self.size), 5: words(1), 6: words(1), 7: words(0), 8: hyper(1) + hyper(1), 9: words(1),
                  10: words(90), 11: words(OK), 13: words(0), 15: words(1), 16: words(0), 17: words(1), 18: words(1), 19: opaque(handle),
                  20: hyper(int.from_bytes(handle[:4], "big")), 21: many, 22: many, 23: many, 26: words(1), 27: hyper(1 << 62), 28: words(32000), 29: words(255),
                  30: hyper(1 << 20), 31: hyper(1 << 20), 33: words(0o755), 34: words(1), 35: words(2), 36: opaque(b"0"), 37: opaque(b"0"), 41: words(0, 0), 42: many, 43: many,
                  44: many, 45: used, 47: time, 51: time, 52: time, 53: time, 55: hyper(int.from_bytes(handle[:4], "big")), 75: bitmap([33])}  # fmt: skip
        return {0: bitmap(values), **values}

    def fattr4(self, handle, asked):
        values = self.values(handle)
        known = sorted(set(asked) & set(values))
        return bitmap(known) + opaque(b"".join(values[number] for number in known))

    def result_9(self, call):  # GETATTR
        return words(OK) + self.fattr4(self.current, call.bitmap())

    def result_34(self, call):  # SETATTR
        call.fixed(16)
        return words(OK) + bitmap(call.attributes()[0])

    def result_37(self, call):  # VERIFY
        call.attributes()
        return words(OK)

    result_17 = result_37  # NVERIFY

    def result_3(self, call):  # ACCESS
        asked = call.word()
        return words(OK, asked, asked)

    # -- files

    def result_18(self, call):  # OPEN
        call.word(), call.word(), call.word(), call.fixed(8), call.opaque()
        if call.word() == 1:
            how = call.word()
            if how in (2, 3):
                call.fixed(8)
            if how != 2:
                call.attributes()
        claim = call.word()
        if claim in (0, 2):
            self.current = dict(self.listing(self.current)).get(call.opaque(), FILE)
        elif claim == 1:
            call.word()
        return words(OK) + self.opened()

    def opened(self):
        """Nothing is delegated."""
        return STATEID + words(0) + hyper(1) + hyper(2) + words(4) + bitmap([]) + words(0)

    def result_4(self, call):  # CLOSE
        call.word()
        return words(OK) + self.stateid(call.fixed(16))

    def stateid(self, given):
        return given

    def result_12(self, call):  # LOCK
        call.at = len(call.data)
        return words(OK) + STATEID

    def result_14(self, call):  # LOCKU
        call.word(), call.word()
        given = call.fixed(16)
        call.hyper(), call.hyper()
        return words(OK) + self.stateid(given)

    def result_8(self, call):  # DELEGRETURN
        call.fixed(16)
        return words(OK)

    # -- what version 4.2 has

    def hole(self):
        """Begin and end of the one that a file has."""
        return self.size // 4, self.size // 4 * 3

    def result_69(self, call):  # SEEK
        call.fixed(16)
        offset, what = call.hyper(), call.word()
        if offset >= self.size:
            return words(NXIO)
        begin, end = self.hole()
        if what == HOLE:
            found = offset if begin <= offset < end else begin if offset < begin else self.size
        else:
            found = end if begin <= offset < end else offset
        return words(OK) + self.found(offset, found)

    def found(self, asked, offset):
        return words(offset >= self.size) + hyper(offset)

    def result_68(self, call):  # READ_PLUS, without holes
        call.fixed(16)
        offset, count = call.hyper(), call.word()
        data = self.data(offset, count)
        return words(OK, offset + len(data) >= self.size, 1, DATA) + hyper(offset) + opaque(data)

    def result_59(self, call):  # ALLOCATE
        call.fixed(16)
        call.hyper(), call.hyper()
        return words(OK)

    result_62 = result_59  # DEALLOCATE

    def result_60(self, call):  # COPY, within this server
        call.fixed(16), call.fixed(16)
        call.hyper(), call.hyper()
        count = call.hyper()
        call.word(), call.word()
        if call.word() != 0:
            call.at = len(call.data)
            return words(NOTSUPP)
        return words(OK) + self.copied(count)

    def copied(self, count):
        """At once, and stable."""
        return words(0) + hyper(count) + words(2) + bytes(8) + words(1, 1)

    def result_66(self, call):  # OFFLOAD_CANCEL
        call.fixed(16)
        return words(BAD_STATEID)

    result_67 = result_66  # OFFLOAD_STATUS

    def result_72(self, call):  # GETXATTR
        call.opaque()
        return words(OK) + opaque(b"value")

    def result_73(self, call):  # SETXATTR
        call.word(), call.opaque(), call.opaque()
        return words(OK) + self.changed()

    def result_74(self, call):  # LISTXATTRS
        call.hyper(), call.word()
        return words(OK) + hyper(1) + words(1) + opaque(b"name") + words(1)

    def result_75(self, call):  # REMOVEXATTR
        call.opaque()
        return words(OK) + self.changed()

    def result_25(self, call):  # READ
        call.fixed(16)
        offset, count = call.hyper(), call.word()
        data = self.data(offset, count)
        return words(OK, offset + len(data) >= self.size) + opaque(data)

    def result_38(self, call):  # WRITE
        call.fixed(16)
        call.hyper()
        call.word()
        return words(OK) + self.written(len(call.opaque()))

    def written(self, count):
        return words(count, 2) + bytes(8)

    def result_5(self, call):  # COMMIT
        call.hyper()
        call.word()
        return words(OK) + bytes(8)

    def result_27(self, call):  # READLINK
        return words(OK) + opaque(b"file")

    # -- names

    def changed(self):
        return words(1) + hyper(1) + hyper(2)

    def result_6(self, call):  # CREATE
        kind = call.word()
        if kind == 5:
            call.opaque()
        elif kind in (3, 4):
            call.hyper()
        call.opaque()
        attributes = call.attributes()[0]
        self.current = LINK if kind == 5 else EMPTY
        return words(OK) + self.changed() + bitmap(attributes)

    def result_28(self, call):  # REMOVE
        call.opaque()
        return words(OK) + self.changed()

    def result_29(self, call):  # RENAME
        call.opaque()
        call.opaque()
        return words(OK) + self.changed() * 2

    def result_11(self, call):  # LINK
        call.opaque()
        return words(OK) + self.changed()

    def result_26(self, call):  # READDIR
        cookie = call.hyper()
        call.fixed(8)
        call.word()
        call.word()
        asked = call.bitmap()
        found, end = self.entries(self.current, max(0, cookie - 2))
        results = words(OK) + bytes(8)
        for number, name, inner in found:
            results += words(1) + hyper(number + 2) + opaque(name) + self.fattr4(inner, asked)
        return results + words(0, end)
