"""NLM_GRANTED comes from the address of the server that the client has locked at: a machine may have several, as one does that a virtual IP address has moved
to, and Linux refuses what comes from another one."""
import queue
import socket
import struct
import tempfile
import threading
import unittest

import harness
import network
from nfs4_client import NLM, NLM_DENIED, NLM_GRANTED, NLM_LOCK, OK, Client, nlm_ask, nlm_unlock, opaque, words

RPCBIND, PMAPPROC_GETPORT, SUCCESS, PROG_MISMATCH = 100000, 3, 0, 2
TCP, UDP = socket.IPPROTO_TCP, socket.IPPROTO_UDP
NLM_BLOCKED = 3
LOCK_MANAGER = 33040


def where(host, port):
    """As socket takes it, with the scope of a link-local address."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4]


def host_of(address):
    return socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]


def family_of(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


class ClientHost:
    """A client's rpcbind of version 2, and its lock manager, by one transport, which answers as Linux's does: it wants the lock if it is from its server."""

    def __init__(self, host, server, transport):
        self.server, self.transport, self.granted_from = server, transport, queue.Queue()
        self.sockets = []
        self.serve_tcp(host, 111)
        (self.serve_tcp if transport == TCP else self.serve_udp)(host, LOCK_MANAGER)

    def end(self):
        for one in self.sockets:
            one.shutdown(socket.SHUT_RDWR) if one.type == socket.SOCK_STREAM else None
            one.close()

    def answer(self, message, source):
        xid, _, _, program, version, procedure = struct.unpack_from(">6I", message)
        if program == RPCBIND and version != 2:
            return words(xid, 1, 0, 0, 0, PROG_MISMATCH, 2, 2)
        reply = words(xid, 1, 0, 0, 0, SUCCESS)
        if program == RPCBIND:
            transport = struct.unpack_from(">I", message, len(message) - 8)[0]
            return reply + words(LOCK_MANAGER if procedure == PMAPPROC_GETPORT and transport == self.transport else 0)
        assert program == NLM, program
        self.granted_from.put(source)
        return reply + opaque(b"") + words(NLM_GRANTED if source == self.server else NLM_DENIED)

    def serve_tcp(self, host, port):
        listener = socket.create_server(where(host, port), family=family_of(host))
        self.sockets.append(listener)

        def serve(connection):
            with connection, connection.makefile("rwb") as stream:
                while mark := stream.read(4):
                    message = stream.read(struct.unpack(">I", mark)[0] & 0x7FFFFFFF)
                    reply = self.answer(message, host_of(connection.getpeername()))
                    stream.write(words(0x80000000 | len(reply)) + reply)
                    stream.flush()

        def accept():
            try:
                while True:
                    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
            except OSError:
                pass  # end()

        threading.Thread(target=accept, daemon=True).start()

    def serve_udp(self, host, port):
        receiver = socket.socket(family_of(host), socket.SOCK_DGRAM)
        receiver.bind(where(host, port))
        self.sockets.append(receiver)

        def serve():
            try:
                while True:
                    message, source = receiver.recvfrom(65536)
                    receiver.sendto(self.answer(message, host_of(source)), source)
            except OSError:
                pass  # end()

        threading.Thread(target=serve, daemon=True).start()


class LockCallbacks(unittest.TestCase):
    def grant(self, server_host, client_host, transport):
        state = tempfile.TemporaryDirectory()
        self.addCleanup(state.cleanup)
        server = harness.Server(["/data=memory,no_root_squash"], state.name, ("--listen", server_host, "--listen", client_host))
        self.addCleanup(server.end)
        host = ClientHost(client_host, server_host, transport)
        self.addCleanup(host.end)
        maker = Client(server.tcp_port, b"maker", server_host).connect()
        self.addCleanup(maker.close)
        self.assertEqual(maker.reclaim_complete(), OK)
        status, _, handle = maker.create_file(b"file")
        self.assertEqual(status, OK)
        locker = Client.__new__(Client)
        locker.socket, locker.xid = socket.socket(family_of(server_host)), 0
        self.addCleanup(locker.close)
        locker.socket.settimeout(harness.PATIENCE)
        locker.socket.bind(where(client_host, 0))
        locker.socket.connect(where(server_host, server.tcp_port))

        def lock(who, block):
            return nlm_ask(locker, NLM_LOCK, words(block, 1), who, handle, 0, 10, words(0, 0))

        self.assertEqual(lock(b"holder", 0), NLM_GRANTED)
        self.assertEqual(lock(b"waiter", 1), NLM_BLOCKED)
        self.assertEqual(nlm_unlock(locker, b"holder", handle, 0, 10), NLM_GRANTED)
        self.assertEqual(host.granted_from.get(timeout=harness.PATIENCE), server_host)
        self.assertEqual(lock(b"other", 0), NLM_DENIED)

    def test_a_lock_is_granted_from_the_address_that_its_client_called(self):
        self.grant("127.0.0.2", "127.0.0.3", TCP)

    def test_a_lock_is_granted_by_UDP_from_the_address_that_its_client_called(self):
        self.grant("127.0.0.2", "127.0.0.3", UDP)

    def test_a_lock_is_granted_from_the_link_local_address_that_its_client_called(self):
        for address in ("fe80::a", "fe80::b"):
            network.run("ip", "address", "add", f"{address}/64", "dev", "switch", "nodad")
        self.grant("fe80::a%switch", "fe80::b%switch", TCP)


if __name__ == "__main__":
    network.isolate(harness.main)
