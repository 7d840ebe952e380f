"""Calls of NFS versions 3 and 2, of NFSACL and of MOUNT, valid ones, with arguments by chance (RFC 1813, RFC 1094)."""
import struct
from typing import NamedTuple

from wire.fields import Field, join, opaque, padded, u32, u64
from wire.rpc import Call

NFS, MOUNT, NFSACL = 100003, 100005, 100227
GETATTR, LOOKUP, READ, WRITE, CREATE, MKDIR, REMOVE, READDIR, READDIRPLUS = 1, 3, 6, 7, 8, 9, 12, 16, 17
MNT, DUMP, UMNT, UMNTALL, EXPORT = 1, 2, 3, 4, 5
FILE_SYNC = 2
NULL = Call(NFS, 3, 0, [])
NAMES = [b"name%02d" % i for i in range(24)] + [b"..", b".", b"n" * 255]


class Place(NamedTuple):
    """Where calls go: handles of a folder, and of a file and a symbolic link in it."""

    folder: bytes
    file: bytes
    link: bytes
    folder2: bytes = bytes(32)  # for version 2
    file2: bytes = bytes(32)
    good: bytes = b""  # a file that no attacker touches


def handle(data, name="handle"):
    return opaque("handle", name, data)


def _xdr(*values, name="word"):
    return [u32("xdr", name, value) for value in values]


def name(data):
    return opaque("xdr", "name", data)


def sattr(mode=None, uid=None, gid=None, size=None, times=0):
    fields = []
    for word in (mode, uid, gid):
        fields += _xdr(0) if word is None else _xdr(1, word)
    fields += _xdr(0) if size is None else [*_xdr(1), u64("xdr", "size", size)]
    return fields + (_xdr(2, 1, 2, 2, 3, 4) if times == 2 else _xdr(times, times))


def getattr(place):
    return Call(NFS, 3, GETATTR, handle(place))


def mount(path, version=3):
    return Call(MOUNT, version, MNT, opaque("xdr", "path", path))


def lookup(folder, at):
    return Call(NFS, 3, LOOKUP, handle(folder) + name(at))


def read(file, offset, count):
    return Call(NFS, 3, READ, [*handle(file), u64("xdr", "offset", offset), u32("xdr", "count", count)], results=count)


def write(file, offset, data, stable=FILE_SYNC):
    head = [*handle(file), u64("xdr", "offset", offset), *_xdr(len(data), stable, name="count"), u32("xdr", "data.length", len(data))]
    return Call(NFS, 3, WRITE, [*head, Field("xdr", "data", padded(data))], data=len(head))


def create(folder, at, how=0):
    return Call(NFS, 3, CREATE, handle(folder) + name(at) + _xdr(how) + ([u64("xdr", "verifier", 7)] if how == 2 else sattr(mode=0o644)))


def mkdir(folder, at):
    return Call(NFS, 3, MKDIR, handle(folder) + name(at) + sattr(mode=0o755))


def symlink(folder, at, text):
    return Call(NFS, 3, 10, handle(folder) + name(at) + sattr() + opaque("xdr", "text", text))


def remove(folder, at):
    return Call(NFS, 3, REMOVE, handle(folder) + name(at))


def readdir(folder, cookie, count, plus=True, verifier=0):
    counts = _xdr(count, count, name="count") if plus else _xdr(count, name="count")
    arguments = [*handle(folder), u64("xdr", "cookie", cookie), u64("xdr", "verifier", verifier), *counts]
    return Call(NFS, 3, READDIRPLUS if plus else READDIR, arguments)


def _acl(chance):
    count = chance.choice((0, 1, 4, 40))
    entries = _xdr(count, count, name="acl.count")
    for i in range(count):
        entries += _xdr((1, 4, 16, 32)[i % 4], i, 7, name="acl.entry")
    return entries


def _change(place, chance):
    """Calls that change something."""
    at, folder = chance.choice(NAMES), handle(place.folder)
    kind = chance.randrange(11)
    if kind == 0:
        return Call(NFS, 3, 2, handle(place.file) + sattr(mode=0o644, size=chance.choice((0, 5000, 1 << 20)), times=chance.randrange(3)) + _xdr(0))
    if kind == 1:
        return create(place.folder, at, chance.randrange(3))
    if kind == 2:
        return mkdir(place.folder, at)
    if kind == 3:
        return symlink(place.folder, at, chance.choice((b"name01", b"../../..", b"/etc/passwd")))
    if kind == 4:
        return Call(NFS, 3, 11, [*folder, *name(at), *_xdr(7, name="type"), *sattr(mode=0o600)])  # MKNOD of a FIFO
    if kind in (5, 6):
        return Call(NFS, 3, 12 + kind % 2, folder + name(at))  # REMOVE, RMDIR
    if kind == 7:
        return Call(NFS, 3, 14, folder + name(at) + folder + name(chance.choice(NAMES)))  # RENAME
    if kind == 8:
        return Call(NFS, 3, 15, handle(place.file) + folder + name(at))  # LINK
    if kind == 9:
        return Call(NFSACL, 3, 2, [*handle(place.folder), *_xdr(15), *_acl(chance), *_acl(chance)])
    return write(place.file, chance.choice((0, 1, 4096, 1 << 20)), chance.randbytes(chance.choice((0, 1, 7, 512, 5000, 20000))), chance.randrange(3))


def _look(place, chance):
    """Calls that change nothing."""
    kind = chance.randrange(12)
    if kind == 0:
        return getattr(chance.choice((place.folder, place.file, place.link)))
    if kind == 1:
        return lookup(place.folder, chance.choice(NAMES))
    if kind == 2:
        return Call(NFS, 3, 4, handle(place.file) + _xdr(63, name="access"))
    if kind == 3:
        return Call(NFS, 3, 5, handle(place.link))
    if kind in (4, 5):
        return read(place.file, chance.choice((0, 1, 4096, 1 << 40)), chance.choice((0, 1, 512, 8192, 65536)))
    if kind in (6, 7):
        return readdir(place.folder, chance.choice((0, 0, 1, 3, 1 << 62)), chance.choice((128, 512, 4096, 65536)), plus=kind == 6)
    if kind == 8:
        return Call(NFS, 3, 18 + chance.randrange(3), handle(place.folder))  # FSSTAT, FSINFO, PATHCONF
    if kind == 9:
        return Call(NFS, 3, 21, [*handle(place.file), u64("xdr", "offset", 0), *_xdr(0)])  # COMMIT
    if kind == 10:
        return Call(NFSACL, 3, 1, handle(place.folder) + _xdr(15, name="mask"))
    return NULL


def _version2(place, chance):
    folder, file = Field("handle", "handle", place.folder2), Field("handle", "handle", place.file2)
    at = name(chance.choice(NAMES))
    attributes = _xdr(0o644, *[0xFFFFFFFF] * 7, name="sattr")
    return Call(NFS, 2, *chance.choice((
        (1, [file]), (2, [file, *attributes]), (4, [folder, *at]), (5, [file]), (6, [file, *_xdr(0, 4096, 4096)]),
        (8, [file, *_xdr(0, 0, 100), *opaque("xdr", "data", bytes(100))]), (9, [folder, *at, *attributes]), (10, [folder, *at]),
        (11, [folder, *at, folder, *at]), (14, [folder, *at, *attributes]), (16, [folder, *_xdr(0, 4096)]), (17, [folder]),
    )))


def any_mount_call(chance):
    version, procedure = chance.choice((1, 2, 3)), chance.choice((MNT, MNT, DUMP, UMNT, UMNTALL, EXPORT))
    path = opaque("xdr", "path", chance.choice((b"/memory", b"/files", b"/files/sub/../sub", b"/absent", b"/" + b"a/" * 400)))
    return Call(MOUNT, version, procedure, path if procedure in (MNT, UMNT) else [])


def any_call(place, chance):
    draw = chance.random()
    if draw < 0.45:
        return _look(place, chance)
    if draw < 0.85:
        return _change(place, chance)
    return _version2(place, chance) if draw < 0.94 else any_mount_call(chance)


# -- replies --------------------------------------------------------------------------------------


def mounted_handle(results):
    """The handle in the results of a version 3 MNT, or None."""
    status, length = struct.unpack_from(">II", results)
    return results[8 : 8 + length] if status == 0 else None


def made_handle(results):
    """The handle in the results of a CREATE, MKDIR or SYMLINK, or None."""
    status, follows, length = struct.unpack_from(">III", results)
    return results[12 : 12 + length] if status == 0 and follows else None


def looked_up_handle(results):
    status, length = struct.unpack_from(">II", results)
    return results[8 : 8 + length] if status == 0 else None


def arguments_of(call):
    return join(call.arguments)
