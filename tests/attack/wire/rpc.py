"""ONC RPC messages and record marking (RFC 5531)."""
import struct
from typing import NamedTuple

from wire.fields import Field, join, opaque, u32

AUTH_NONE, AUTH_SYS = 0, 1
LAST_FRAGMENT = 0x80000000


class Call(NamedTuple):
    """A Call without its transport. `data`: the index of the argument field that may go in a Read chunk. `results`: bytes that a Write chunk
    for the data of the Reply has to have, 0 where there is none."""

    program: int
    version: int
    procedure: int
    arguments: list
    data: int = None
    results: int = 0


def auth_sys(uid=0, gid=0, groups=(), machine=b"attacker"):
    body = [u32("rpc", "cred.stamp", 0), *opaque("rpc", "cred.machine", machine), u32("rpc", "cred.uid", uid), u32("rpc", "cred.gid", gid)]
    body += [u32("rpc", "cred.groups", len(groups)), *(u32("rpc", "cred.group", each) for each in groups)]
    return [u32("rpc", "cred.flavor", AUTH_SYS), u32("rpc", "cred.length", len(join(body))), *body]


def no_auth(name):
    return [u32("rpc", name + ".flavor", AUTH_NONE), u32("rpc", name + ".length", 0)]


ROOT = auth_sys()


def call_fields(xid, call, credential=None):
    return [
        u32("rpc", "xid", xid), u32("rpc", "direction", 0), u32("rpc", "rpcvers", 2), u32("rpc", "program", call.program),
        u32("rpc", "version", call.version), u32("rpc", "procedure", call.procedure), *(ROOT if credential is None else credential),
        *no_auth("verf"), *call.arguments,
    ]


def record(message, fragments=1):
    """The fields of a record of so many fragments."""
    fields, size = [], max(1, -(-len(message) // fragments))
    starts = list(range(0, max(len(message), 1), size))
    for start in starts:
        part = message[start : start + size]
        fields += [u32("record", "mark", len(part) | (LAST_FRAGMENT if start == starts[-1] else 0)), Field("record", "fragment", part)]
    return fields


class RecordReader:
    def __init__(self):
        self.buffer, self.record = bytearray(), bytearray()

    def feed(self, data):
        self.buffer += data
        records = []
        while len(self.buffer) >= 4:
            mark = int.from_bytes(self.buffer[:4], "big")
            length = mark & ~LAST_FRAGMENT
            if len(self.buffer) < 4 + length:
                break
            self.record += self.buffer[4 : 4 + length]
            del self.buffer[: 4 + length]
            if mark & LAST_FRAGMENT:
                records.append(bytes(self.record))
                self.record = bytearray()
        return records


def results_of(reply):
    """The results of an accepted Reply with SUCCESS; else None."""
    if len(reply) < 24:
        return None
    _, direction, status, _, length = struct.unpack_from(">IIIII", reply)
    at = 20 + length + -length % 4
    if direction != 1 or status != 0 or reply[at : at + 4] != bytes(4):
        return None
    return reply[at + 4 :]


def accepted(xid, results, status=0):
    """A Reply of a server."""
    return struct.pack(">IIIIII", xid, 1, 0, 0, 0, status) + results
