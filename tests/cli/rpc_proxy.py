"""A proxy for ONC RPC over TCP that knows calls from each other: it notes every NFSv3 call, can hold back the reply to one
procedure, and can tell the client what no server of this project would. URLs through it are `nfs://127.0.0.1:PORT/...?proto=tcp`.
"""
import contextlib
import socket
import struct
import threading

from harness import PATIENCE

NFS = 100003
SETATTR, LOOKUP, ACCESS, READ, WRITE, CREATE, MKDIR, SYMLINK, REMOVE, RMDIR, RENAME, LINK, READDIRPLUS = 2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14, 15, 17
PERM, NOENT, EXIST, NOTSUPP = 1, 2, 17, 10004


class Call:
    """One call as it was seen; `handle` is what it begins with, `attributes` are those that it sets (RFC 1813 2.5.3, sattr3), for the
    procedures that do."""

    def __init__(self, xid, procedure, arguments):
        self.xid, self.procedure, self.arguments = xid, procedure, arguments
        self._rest = arguments
        self.handle = arguments[4 : 4 + int.from_bytes(arguments[:4], "big")]
        self.attributes = None
        if procedure == SETATTR:
            self._opaque()
            self.attributes = self._sattr()
        elif procedure in (CREATE, MKDIR):
            self._opaque()
            self._opaque()
            if procedure == MKDIR or self._word() != 2:
                self.attributes = self._sattr()

    def _word(self):
        (value,) = struct.unpack(">I", self._rest[:4])
        self._rest = self._rest[4:]
        return value

    def _opaque(self):
        length = self._word()
        self._rest = self._rest[(length + 3) // 4 * 4 :]

    def _sattr(self):
        return {name: self._word() for name in ("mode", "uid", "gid") if self._word()}


def call_of(record):
    """The NFSv3 call in a record; None for everything else."""
    xid, direction, _, program, version, procedure = struct.unpack(">6I", record[:24])
    if (direction, program, version) != (0, NFS, 3):
        return None
    rest = record[24:]
    for _ in ("credential", "verifier"):
        (length,) = struct.unpack(">I", rest[4:8])
        rest = rest[8 + (length + 3) // 4 * 4 :]
    return Call(xid, procedure, rest)


class RpcProxy:
    """Forwards connections to `port`. The first reply to `held` stays here from `reached` until `released` is set, and so do the later
    ones unless it is `overtaken`. The bytes `true` of the server are `told` to the client, and the other way round; both have one length."""

    def __init__(self, port, held=None, true=b"", told=b"", overtaken=False):
        self.target, self.held, self.overtaken = port, held, overtaken
        self.sending = threading.Lock()
        self.true, self.told = true, told
        self.calls = []
        self.reached, self.released = threading.Event(), threading.Event()
        self.held_xid = None
        self.sockets, self.threads = [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self._start(self._accept)

    def _start(self, target, *arguments):
        self.threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self.threads[-1].start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            self.sockets.append(client)
            if self.released.is_set() and self.held == "nothing":
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            self.sockets.append(server)
            self._start(self._forward, client, server, self._see_call, self.told, self.true)
            self._start(self._forward, server, client, self._see_reply, self.true, self.told)

    def _forward(self, source, target, see, old, new):
        stream = source.makefile("rb")
        with contextlib.suppress(OSError, struct.error):
            while mark := stream.read(4):
                (word,) = struct.unpack(">I", mark)
                record = stream.read(word & 0x7FFFFFFF)
                message = mark + (record.replace(old, new) if old else record)
                if see(record) and self.overtaken:
                    self._start(self._send_later, target, message)
                    continue
                self._send(target, message)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _send(self, target, message):
        with self.sending:
            target.sendall(message)

    def _send_later(self, target, message):
        self.released.wait(PATIENCE)
        with contextlib.suppress(OSError):
            self._send(target, message)

    def _see_call(self, record):
        call = call_of(record)
        if call is None:
            return
        if call.procedure == self.held and self.held_xid is None:
            self.held_xid = call.xid
        self.calls.append(call)

    def _see_reply(self, record):
        if record[:4] == struct.pack(">I", self.held_xid or 0):
            self.reached.set()
            if not self.overtaken:
                self.released.wait(PATIENCE)
            return True
        return False

    def url(self, path):
        return f"nfs://127.0.0.1:{self.port}{path}?proto=tcp&version=3"

    def close(self):
        """Everything ends, and nobody listens any more."""
        self.held = "nothing"
        self.released.set()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(PATIENCE)
        for each in [self.listener, *self.sockets]:
            each.close()


def refusal(call, status):
    """A reply by which the server refuses it, without attributes (RFC 1813 2.6, wcc_data and post_op_attr)."""
    absent = {RENAME: 4, LINK: 3, SETATTR: 2}[call.procedure]
    record = struct.pack(">7I", call.xid, 1, 0, 0, 0, 0, status) + bytes(4 * absent)
    return struct.pack(">I", 1 << 31 | len(record)) + record


class JudgingProxy(RpcProxy):
    """`judge(call)` says what becomes of a call: None, it goes on; an event, it does so once that is set, and others overtake it; a
    status, the client hears that without the server; and the two as (event, None) and (None, status), of the reply of a server that has
    executed it."""

    def __init__(self, port, judge):
        self.judge = judge
        self.told_otherwise = {}
        super().__init__(port)

    def _forward(self, source, target, see, old, new):
        upwards = see == self._see_call
        stream = source.makefile("rb")
        with contextlib.suppress(OSError, struct.error):
            while mark := stream.read(4):
                (word,) = struct.unpack(">I", mark)
                record = stream.read(word & 0x7FFFFFFF)
                message = mark + record
                verdict, held = message, None
                if upwards:
                    verdict, held = self._on_call(call_of(record), message, source)
                elif len(record) >= 4:
                    verdict, held = self.told_otherwise.pop(record[:4], (None, None))
                    verdict = verdict or message
                if held is not None:
                    self._start(self._send_once, held, target, verdict)
                elif verdict:
                    self._send(target, verdict)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _on_call(self, call, message, client):
        """What goes to the server, and the event that it waits for."""
        if call is None:
            return message, None
        verdict = self.judge(call)
        self.calls.append(call)
        if isinstance(verdict, threading.Event):
            return message, verdict
        if isinstance(verdict, int):
            self._send(client, refusal(call, verdict))
            return None, None
        if isinstance(verdict, tuple):
            held, status = verdict
            self.told_otherwise[struct.pack(">I", call.xid)] = (status and refusal(call, status), held)
        return message, None

    def _send_once(self, event, target, message):
        event.wait(PATIENCE)
        with contextlib.suppress(OSError):
            self._send(target, message)
