"""The other side of what the server asks of its clients: rpcbind, the lock manager and the status monitor of a host that answers in a hostile manner."""
import collections
import contextlib
import random
import socket

from floods import Flood, send, tcp
from hostile.server import parse_call, reply_fields
from mutation import spoil
from peer import TcpPeer, UdpPeer
from wire import locks, rpc
from wire.fields import join

RPCBIND, RPCBIND_PORT = 100000, 111
GETADDR = 3
LOCK_MSG = 7
NAMES = (b"", b"attacker", b"127.0.0.1", b"localhost", b"server", b"\xff\x00\n" * 3, b"../../etc", b"x" * 1024, b"x" * 1025)
MOST_CONNECTIONS = 64  # of one host


def opaque(data):
    return len(data).to_bytes(4, "big") + data + bytes(-len(data) % 4)


class Callee:
    """One host. Its manner is one of MANNERS; serve() does what can be done at once."""

    MANNERS = ("truthful", "rpc", "xdr", "endless", "slow", "silent")

    def __init__(self, address, manner, chance, counts):
        self.address, self.manner, self.chance, self.counts = address, manner, chance, counts
        self.service = self.listener(0)
        self.listeners = [self.service]
        self.datagrams = None
        try:
            self.listeners.append(self.listener(RPCBIND_PORT))
            self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            self.datagrams.bind((address, RPCBIND_PORT))
        except OSError:
            counts["hosts without port 111"] += 1  # another rpcbind has it, or there is no right to it
        self.connections = collections.deque()  # (socket, reader, what is to be sent)

    def listener(self, port):
        made = socket.create_server((self.address, port), backlog=64)
        made.setblocking(False)
        return made

    def serve(self):
        for listener in self.listeners:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connection.setblocking(False)
                    self.connections.append((connection, rpc.RecordReader(), bytearray()))
                    self.counts["called back"] += 1
        for _ in range(len(self.connections)):
            connection = self.connections.popleft()
            if len(self.connections) < MOST_CONNECTIONS and self.go_on(*connection):
                self.connections.append(connection)
            else:
                connection[0].close()
        if self.datagrams is not None and self.manner != "silent":
            with contextlib.suppress(OSError):
                message, peer = self.datagrams.recvfrom(65536)
                if fields := self.answer(message):
                    self.datagrams.sendto(join(fields), peer)

    def go_on(self, connection, reader, output):
        """Whether it is still there."""
        with contextlib.suppress(BlockingIOError):
            try:
                data = connection.recv(65536)
                if not data:
                    return False
                for message in reader.feed(data):
                    fields = self.answer(message) if self.manner != "silent" else None
                    if fields:
                        output += self.begun(join(rpc.record(join(fields))))
            except BlockingIOError:
                pass
            except OSError:
                return False
        if self.manner == "endless" and 0 < len(output) < 1 << 20:
            output += (1 << 16).to_bytes(4, "big") + bytes(1 << 16)
        try:
            sent = connection.send(output[: 1 if self.manner == "slow" else 1 << 18]) if output else 0
            del output[:sent]
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    def begun(self, record):
        """An endless one has only fragments that are not the last."""
        return bytes((record[0] & 0x7F,)) + record[1:] if self.manner == "endless" else record

    def answer(self, message):
        call = parse_call(message)
        if call is None:
            return None
        self.counts["asked"] += 1
        xid, program, version, procedure, arguments = call
        fields = reply_fields(xid, self.results(program, version, procedure, arguments), whole=False)
        return spoil(fields, self.manner, self.chance, fields) if self.manner in ("rpc", "xdr") else fields

    def results(self, program, version, procedure, arguments):
        if program == RPCBIND and procedure == GETADDR:
            port = self.service.getsockname()[1]
            return port.to_bytes(4, "big") if version == 2 else opaque(f"{self.address}.{port >> 8}.{port & 255}".encode())
        if program == locks.NLM and procedure == locks.GRANTED:
            cookie = arguments[4 : 4 + int.from_bytes(arguments[:4], "big")]
            return opaque(cookie) + self.chance.choice((0, 0, 1, 4)).to_bytes(4, "big")  # granted, denied, in its grace period
        return b""

    def close(self):
        for each in (*self.listeners, *(connection[0] for connection in self.connections)):
            each.close()
        if self.datagrams is not None:
            self.datagrams.close()


class Callbacks(Flood):
    """Locks that are granted later, and requests whose answer is a call of its own: the server has to call each of these hosts, again and again."""

    CONNECTIONS = 1
    PACE = 0.002
    DEPTH = 32

    def start(self):
        chance = random.Random(1)
        self.callees = [
            Callee(source, Callee.MANNERS[i % len(Callee.MANNERS)], chance, self.counts) for i, source in enumerate(self.sources)
        ]
        super().start()

    def open(self, source):
        peer = tcp(self, source)
        peer.waits_for = 0
        return peer

    def step(self):
        for callee in self.callees:
            callee.serve()
        for i, peer in enumerate(self.peers):
            try:
                peer.pump(0)
                peer.waits_for -= len(peer.replies)
                peer.replies.clear()
                if peer.waits_for < self.DEPTH:
                    self.ask(peer, i)
            except OSError:
                pass  # ended, which the next line notices
        super().step()

    def ask(self, peer, number):
        """One owner holds a byte, another waits for it, and the first lets go."""
        self.counts["rounds"] += 1
        host, at = self.sources[number % len(self.sources)].encode(), 1 << 32 | number << 16 | self.counts["rounds"] % 500
        file = self.place.file
        calls = [
            locks.lock(file, b"holds", at, 1, host), locks.lock(file, b"waits", at, 1, host, block=True), locks.unlock(file, b"holds", at, 1, host),
            locks.lock(file, b"asks", at, 1, host)._replace(procedure=LOCK_MSG), locks.unlock(file, b"waits", at, 1, host),
        ]  # fmt: skip
        for call in calls:
            peer.start(call)
        peer.waits_for += len(calls)

    def stop(self):
        super().stop()
        for callee in self.callees:
            callee.close()


class Notifications(Callbacks):
    """Restarts that never were: words about them without end, true ones of hosts with locks, forged ones, and such as no decoder takes; and status
    monitors that answer in a hostile manner when the server tells of its own restart, one that is only played."""

    HOSTS = 256
    RESTARTS = True
    BEFORE_RESTART = 2000  # rounds; after it there is nothing but reclaims for a while

    def start(self):
        super().start()
        self.chance = random.Random(2)
        self.datagrams = [UdpPeer(self.target.udp_port, source) for source in self.sources]
        for number, peer in enumerate(self.peers):  # many hosts behind each address
            for i in range(self.HOSTS):
                peer.start(self.lock(number, i))
            peer.wait(lambda: len(peer.replies) >= self.HOSTS)
            peer.replies.clear()

    def lock(self, number, i):
        return locks.lock(self.place.file, b"holds", number << 32 | i, 1, b"host%d" % i)

    def restart_server(self):
        """Whoever has locks is told. Only a privileged user of the machine is believed."""
        for port in range(1023, 600, -1):
            with contextlib.suppress(PermissionError, OSError):
                peer = TcpPeer(self.target.tcp_port, ("127.0.0.1", port))
                peer.call(locks.simulate_crash())
                peer.close()
                self.counts["restarts played"] += 1
                return

    def ask(self, peer, number):
        self.counts["rounds"] += 1
        if self.counts["rounds"] == self.BEFORE_RESTART:
            self.restart_server()
        source = self.sources[number % len(self.sources)].encode()
        host = self.chance.choice((source, self.chance.choice(self.sources).encode(), *NAMES))
        word = locks.notify(host, self.chance.choice((0, 1, -1, 1 << 31, self.counts["rounds"])))
        peer.start(self.lock(number, self.counts["rounds"] % self.HOSTS))
        peer.start(word)
        xid = peer.next_xid()
        fields = rpc.call_fields(xid, word)
        peer.write(join(rpc.record(join(spoil(fields, "xdr", self.chance, fields)))))
        peer.waits_for += 3
        datagram = self.datagrams[number % len(self.datagrams)]
        datagram.xid += 1
        datagram.send(join(rpc.call_fields(datagram.xid, word)))
        self.counts["words by UDP answered"] += datagram.drain()
        send(peer)

    def stop(self):
        super().stop()
        for each in self.datagrams:
            each.close()
