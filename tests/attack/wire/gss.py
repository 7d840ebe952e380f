"""RPCSEC_GSS messages of somebody without a ticket (RFC 2203), and a keytab that no KDC knows."""
from wire.fields import Field, join, opaque, u32
from wire.nfs import NFS
from wire.rpc import Call, call_fields

RPCSEC_GSS = 6
DATA, INIT, CONTINUE_INIT, DESTROY = range(4)
# A GSSAPI token of Kerberos begins so (RFC 4121 4.1): the mechanism, and that an AP-REQ follows.
MECHANISM = bytes.fromhex("06092a864886f712010202") + b"\x01\x00"
# AP-REQ, version 5, without flags, of a ticket for nfs/localhost@STAG.TEST.
AP_REQ = bytes.fromhex("6e43 3041 a003020105 a10302010e a20703050000000000 a32c 612a 3028 a003020105 a10b1b09") + b"STAG.TEST" + \
    bytes.fromhex("a2143012a003020101a10b3009") + b"\x1b\x03nfs\x1b\x02lo"


def keytab():
    """A file with a key of nfs/localhost@STAG.TEST."""
    def counted(text):
        return len(text).to_bytes(2, "big") + text

    entry = b"\0\2" + counted(b"STAG.TEST") + counted(b"nfs") + counted(b"localhost") + bytes(3) + b"\1" + bytes(4) + b"\1" + b"\0\x12" + counted(b"k" * 32)
    return b"\5\2" + len(entry).to_bytes(4, "big") + entry


def token(size):
    """As long as that, or a little longer; Kerberos reads some of it before it says no."""
    body = MECHANISM + AP_REQ + bytes(max(0, size - len(MECHANISM) - len(AP_REQ)))
    return b"\x60\x83" + len(body).to_bytes(3, "big") + body


def credential(procedure, number, service, handle):
    body = [u32("gss", "version", 1), u32("gss", "procedure", procedure), u32("gss", "seq_num", number), u32("gss", "service", service),
            *opaque("gss", "handle", handle)]
    return [u32("rpc", "cred.flavor", RPCSEC_GSS), u32("gss", "cred.length", len(join(body))), *body]


def any_message(xid, chance):
    """A Call, and its fields with a verifier where one is due."""
    procedure = chance.choice((DATA, INIT, INIT, INIT, CONTINUE_INIT, DESTROY))
    handle = b"" if procedure == INIT else chance.randbytes(chance.choice((0, 8, 16, 16, 16, 400)))
    creates = procedure in (INIT, CONTINUE_INIT)
    arguments = opaque("gss", "token", token(chance.choice((0, 100, 1000, 60_000)))) if creates else []
    call = Call(NFS, 3, 0 if procedure != DATA else 1, arguments)
    fields = call_fields(xid, call, credential(procedure, chance.choice((0, 1, 2, 0x7FFFFFFF, 0x80000000)), chance.choice((1, 2, 3)), handle))
    if creates:
        return call, fields
    at = next(i for i, field in enumerate(fields) if field.name == "verf.flavor")
    mic = opaque("gss", "mic", chance.randbytes(chance.choice((0, 28, 37, 400))))
    return call, [*fields[:at], Field("gss", "verf.flavor", RPCSEC_GSS.to_bytes(4, "big")), *mic, *fields[at + 2 :]]
