"""A small tree as NFS version 3 and MOUNT results: what a truthful server says, for others to distort (RFC 1813)."""
import struct

from wire import nfs

REGULAR, DIRECTORY, SYMLINK = 1, 2, 5
OK, NOENT = 0, 2
ROOT, FOLDER, FILE, SPARSE, LINK, EMPTY = b"root", b"dir_", b"file", b"hole", b"link", b"none"  # handles
TYPES = {ROOT: DIRECTORY, FOLDER: DIRECTORY, EMPTY: DIRECTORY, FILE: REGULAR, SPARSE: REGULAR, LINK: SYMLINK}
LISTINGS = {ROOT: [(b"file", FILE), (b"sparse", SPARSE), (b"dir", FOLDER), (b"link", LINK)], FOLDER: [(b"a", FILE), (b"b", EMPTY)], EMPTY: []}
SIZE = 100_000
VERIFIER = bytes(8)


def words(*values):
    return struct.pack(f">{len(values)}I", *values)


def opaque(data):
    return words(len(data)) + data + bytes(-len(data) % 4)


class Files:
    """results() of each procedure; None: it is not served. Subclasses lie."""

    size = SIZE

    def __init__(self, chance=None):
        self.chance = chance

    def kind(self, handle):
        return TYPES.get(handle, REGULAR)

    def attributes(self, handle):
        head = words(self.kind(handle), 0o755, 2, 0, 0) + struct.pack(">QQIIQQ", self.size, self.size, 0, 0, 1, int.from_bytes(handle[:4], "big"))
        return head + words(1, 0) * 3

    def post(self, handle):
        return words(1) + self.attributes(handle)

    def results(self, program, version, procedure, arguments):
        if procedure == 0:
            return b""
        if (program, version) == (nfs.MOUNT, 3):
            return self.mount(procedure)
        if (program, version) != (nfs.NFS, 3):
            return None
        length = int.from_bytes(arguments[:4], "big")
        handle, rest = arguments[4 : 4 + length], arguments[4 + length + -length % 4 :]
        served = getattr(self, f"procedure_{procedure}", None)
        return served(handle, rest) if served else None

    def mount(self, procedure):
        if procedure == nfs.MNT:
            return words(OK) + opaque(ROOT) + words(1, 1)
        if procedure == nfs.EXPORT:
            return words(1) + opaque(b"/x") + words(0, 0)
        return words(0) if procedure == nfs.DUMP else b""

    def procedure_1(self, handle, rest):
        return words(OK) + self.attributes(handle)

    def procedure_2(self, handle, rest):
        return words(OK, 0, 0)

    def procedure_3(self, handle, rest):
        name = rest[4 : 4 + int.from_bytes(rest[:4], "big")]
        found = dict(self.listing(handle)).get(name)
        if found is None:
            return words(NOENT) + self.post(handle)
        return words(OK) + opaque(found) + self.post(found) + self.post(handle)

    def procedure_4(self, handle, rest):
        return words(OK) + self.post(handle) + words(63)

    def procedure_5(self, handle, rest):
        return words(OK) + self.post(handle) + opaque(b"file")

    def procedure_6(self, handle, rest):
        offset, count = struct.unpack_from(">QI", rest)
        data = self.data(offset, count)
        return words(OK) + self.post(handle) + words(len(data), offset + len(data) >= self.size) + opaque(data)

    def data(self, offset, count):
        return bytes(max(0, min(count, self.size - offset, 1 << 20)))

    def procedure_7(self, handle, rest):
        return words(OK, 0, 0, int.from_bytes(rest[8:12], "big"), 2) + VERIFIER

    def procedure_8(self, handle, rest):
        return words(OK, 1) + opaque(FILE) + self.post(FILE) + words(0, 0)

    def procedure_9(self, handle, rest):
        return words(OK, 1) + opaque(EMPTY) + self.post(EMPTY) + words(0, 0)

    def procedure_10(self, handle, rest):
        return words(OK, 1) + opaque(LINK) + self.post(LINK) + words(0, 0)

    def procedure_12(self, handle, rest):
        return words(OK, 0, 0)

    procedure_13 = procedure_12

    def procedure_14(self, handle, rest):
        return words(OK, 0, 0, 0, 0)

    def procedure_15(self, handle, rest):
        return words(OK, 0, 0, 0)

    def listing(self, handle):
        return LISTINGS.get(handle, [])

    def entries(self, handle, cookie):
        """(cookie, name, handle) of those behind `cookie`, and whether there are no more."""
        return [(i + 1, *each) for i, each in enumerate(self.listing(handle)) if i >= cookie], True

    def directory(self, handle, rest, plus):
        found, end = self.entries(handle, int.from_bytes(rest[:8], "big"))
        results = words(OK) + self.post(handle) + VERIFIER
        for cookie, name, inner in found:
            results += words(1) + struct.pack(">Q", int.from_bytes(inner[:4], "big")) + opaque(name) + struct.pack(">Q", cookie)
            if plus:
                results += self.post(inner) + words(1) + opaque(inner)
        return results + words(0, end)

    def procedure_16(self, handle, rest):
        return self.directory(handle, rest, plus=False)

    def procedure_17(self, handle, rest):
        return self.directory(handle, rest, plus=True)

    def procedure_18(self, handle, rest):
        return words(OK) + self.post(handle) + struct.pack(">6QI", *[1 << 30] * 6, 0)

    def procedure_19(self, handle, rest):
        return words(OK) + self.post(handle) + words(*[1 << 20, 1 << 20, 4096] * 2, 65536) + struct.pack(">QIII", 1 << 62, 0, 1, 27)

    def procedure_20(self, handle, rest):
        return words(OK) + self.post(handle) + words(32000, 255, 1, 1, 0, 1)

    def procedure_21(self, handle, rest):
        return words(OK, 0, 0) + VERIFIER
