"""A message as a list of fields. Lengths of outer layers are computed from the bytes inside, so that a spoiled inner field still arrives."""
import struct
from typing import NamedTuple


class Field(NamedTuple):
    layer: str  # one of the layers that can be attacked: mpa, fpdu, ddp, rdmap, header, chunks, rpc, gss, xdr, handle, record
    name: str
    data: bytes


_U32 = struct.Struct(">I").pack
_U64 = struct.Struct(">Q").pack


def u8(layer, name, value):
    return Field(layer, name, bytes((value & 0xFF,)))


def u16(layer, name, value):
    return Field(layer, name, (value & 0xFFFF).to_bytes(2, "big"))


def u32(layer, name, value):
    return Field(layer, name, _U32(value & 0xFFFFFFFF))


def u64(layer, name, value):
    return Field(layer, name, _U64(value & 0xFFFFFFFFFFFFFFFF))


def opaque(layer, name, data):
    """A variable-length opaque or string (RFC 4506 4.10, 4.11): its length, then the bytes with their pad."""
    return [u32(layer, name + ".length", len(data)), Field(layer, name, padded(data))]


def padded(data):
    return data + bytes(-len(data) % 4)


def join(fields):
    return b"".join([field.data for field in fields])
