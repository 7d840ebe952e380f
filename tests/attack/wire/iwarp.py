"""MPA connection set-up (RFC 5044 7.1, RFC 6581), FPDUs without markers, DDP segments (RFC 5041) and RDMAP messages (RFC 5040)."""
import struct
from typing import NamedTuple

from wire.fields import Field, join, u8, u16, u32, u64

WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INVALIDATE, SEND_SE, SEND_SE_INVALIDATE, TERMINATE = range(8)
SEND_QUEUE, READ_QUEUE, TERMINATE_QUEUE = range(3)
MPA_HEADER = 20
MPA_CRC, MPA_ENHANCED = 0x40, 0x10
REQUEST_KEY, REPLY_KEY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
DDP_TAGGED, DDP_LAST, VERSION = 0x80, 0x40, 0x01
MOST_PAYLOAD = 16384  # bytes that we put into one segment


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _crc_table()


def crc32c(data):
    """As the four bytes that follow an FPDU; they are in the order of the bits, not of the network (RFC 5044 4.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


def private_data(send_size=0x47, receive_size=0x0F, flags=1):
    """RFC 8797 4: sizes are in KiB, less one."""
    return [
        u32("mpa", "private.magic", 0xF6AB0E18), u8("mpa", "private.version", 1), u8("mpa", "private.flags", flags),
        u8("mpa", "private.send_size", send_size), u8("mpa", "private.receive_size", receive_size),
    ]


def mpa_frame(key=REQUEST_KEY, flags=MPA_ENHANCED, ird=32, ord=32, private=None):
    private = private_data() if private is None else private
    return [
        Field("mpa", "key", key), u8("mpa", "flags", flags), u8("mpa", "revision", 2),
        u16("mpa", "private.length", 4 + len(join(private))), u16("mpa", "ird", ird), u16("mpa", "ord", ord), *private,
    ]


def untagged(opcode, queue, sequence, offset=0, last=True, stag=0):
    """Header fields of an untagged segment; a payload follows."""
    return [
        u8("ddp", "control", (DDP_LAST if last else 0) | VERSION), u8("rdmap", "control", VERSION << 6 | opcode),
        u32("rdmap", "invalidate", stag), u32("ddp", "queue", queue), u32("ddp", "sequence", sequence), u32("ddp", "offset", offset),
    ]


def tagged(opcode, stag, offset, last=True):
    return [
        u8("ddp", "control", DDP_TAGGED | (DDP_LAST if last else 0) | VERSION), u8("rdmap", "control", VERSION << 6 | opcode),
        u32("ddp", "stag", stag), u64("ddp", "offset", offset),
    ]


def read_request(sink_stag, sink_offset, size, source_stag, source_offset):
    return [
        u32("rdmap", "sink.stag", sink_stag), u64("rdmap", "sink.offset", sink_offset), u32("rdmap", "size", size),
        u32("rdmap", "source.stag", source_stag), u64("rdmap", "source.offset", source_offset),
    ]


def fpdu(ulpdu, crc=False):
    length = len(ulpdu).to_bytes(2, "big")
    pad = bytes(-(2 + len(ulpdu)) % 4)
    return [
        Field("fpdu", "length", length), Field("fpdu", "ulpdu", ulpdu), Field("fpdu", "pad", pad),
        Field("fpdu", "crc", crc32c(length + ulpdu + pad) if crc else bytes(4)),
    ]


def segments_of(payload, most):
    """(offset, part, whether it is the last) of each DDP segment of a message."""
    for offset in range(0, max(len(payload), 1), most):
        yield offset, payload[offset : offset + most], offset + most >= len(payload)


class Segment(NamedTuple):
    """What came in an FPDU."""

    opcode: int
    last: bool
    stag: int  # of a tagged segment, or to be invalidated
    sequence: int  # of an untagged one
    offset: int
    payload: bytes


_UNTAGGED = struct.Struct(">IIII")
_TAGGED = struct.Struct(">IQ")


def parse_segment(ulpdu):
    opcode, last = ulpdu[1] & 0xF, bool(ulpdu[0] & DDP_LAST)
    if ulpdu[0] & DDP_TAGGED:
        stag, offset = _TAGGED.unpack_from(ulpdu, 2)
        return Segment(opcode, last, stag, 0, offset, ulpdu[14:])
    stag, _, sequence, offset = _UNTAGGED.unpack_from(ulpdu, 2)
    return Segment(opcode, last, stag, sequence, offset, ulpdu[18:])


class FpduReader:
    """Cuts a stream of bytes into segments."""

    def __init__(self):
        self.buffer = bytearray()

    def feed(self, data):
        self.buffer += data
        at, segments, buffer = 0, [], self.buffer
        while len(buffer) - at >= 4:
            length = buffer[at] << 8 | buffer[at + 1]
            whole = 2 + length + -(2 + length) % 4 + 4
            if len(buffer) - at < whole:
                break
            segments.append(parse_segment(bytes(buffer[at + 2 : at + 2 + length])))
            at += whole
        del buffer[:at]
        return segments
