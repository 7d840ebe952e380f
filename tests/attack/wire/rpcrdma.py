"""RPC-over-RDMA version 1 headers (RFC 8166 4): made field by field, and read as far as a client and a server have to."""
import struct
from typing import NamedTuple

from wire.fields import u32, u64

RDMA_MSG, RDMA_NOMSG, RDMA_MSGP, RDMA_DONE, RDMA_ERROR = range(5)
ERR_VERS, ERR_CHUNK = 1, 2


class Memory(NamedTuple):
    """A plain segment."""

    handle: int
    length: int
    offset: int


def _segment(name, memory):
    return [
        u32("chunks", name + ".handle", memory.handle), u32("chunks", name + ".length", memory.length),
        u64("chunks", name + ".offset", memory.offset),
    ]


def _write_chunk(name, segments):
    fields = [u32("chunks", name + ".count", len(segments))]
    for memory in segments:
        fields += _segment(name, memory)
    return fields


def header(xid, proc=RDMA_MSG, credits=64, reads=(), writes=(), reply=None, version=1):
    """`reads`: (Position, Memory) each; `writes`: chunks, which are lists of Memory; `reply`: one, or None."""
    fields = [
        u32("header", "xid", xid), u32("header", "version", version), u32("header", "credits", credits), u32("header", "proc", proc),
    ]
    for position, memory in reads:
        fields += [u32("chunks", "read.present", 1), u32("chunks", "read.position", position), *_segment("read", memory)]
    fields.append(u32("chunks", "read.end", 0))
    for chunk in writes:
        fields += [u32("chunks", "write.present", 1), *_write_chunk("write", chunk)]
    fields.append(u32("chunks", "write.end", 0))
    fields.append(u32("chunks", "reply.present", reply is not None))
    return fields + (_write_chunk("reply", reply) if reply is not None else [])


class Header(NamedTuple):
    xid: int
    credits: int
    proc: int
    reads: list  # (Position, Memory)
    writes: list  # lists of Memory
    reply: list  # Memory, or None
    size: int


class _Words:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, format):
        values = struct.unpack_from(format, self.data, self.at)
        self.at += struct.calcsize(format)
        return values if len(values) > 1 else values[0]

    def chunk(self):
        return [Memory(*self.take(">IIQ")) for _ in range(self.take(">I"))]


def parse_header(data):
    words = _Words(data)
    xid, _, credits, proc = words.take(">IIII")
    reads, writes, reply = [], [], None
    if proc in (RDMA_MSG, RDMA_NOMSG):
        while words.take(">I"):
            position = words.take(">I")
            reads.append((position, Memory(*words.take(">IIQ"))))
        while words.take(">I"):
            writes.append(words.chunk())
        if words.take(">I"):
            reply = words.chunk()
    return Header(xid, credits, proc, reads, writes, reply, words.at)
