"""Programs that know hosts of their own, or ask a name server that can be silent."""
import os
import socket
import threading

from harness import Case


class NameServer:
    """Of DNS, at an address of its own on this machine: it knows nobody, and answers nobody once it is `silent`."""

    # Other tests may run at the same time.
    ADDRESS = f"127.83.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((self.ADDRESS, 53))
        self.silent = False
        self.asked = threading.Event()  # in vain
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        while query := self.socket.recvfrom(4096):
            if not query[0]:
                return
            if self.silent:
                self.asked.set()
            else:
                self.socket.sendto(query[0][:2] + b"\x81\x83" + query[0][4:6] + bytes(6) + query[0][12:], query[1])

    def end(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", (self.ADDRESS, 53))
        self.thread.join()
        self.socket.close()


class PrivateHosts(Case):
    def private_hosts(self, known, service=b"files", resolver=b""):
        """The file of a server's own hosts, and what begins such a server."""
        hosts = self.write(self.at("hosts"), known)
        lookups = self.write(self.at("nsswitch.conf"), b"hosts: " + service + b"\nnetgroup: files\npasswd: files\ngroup: files\n")
        resolver = self.write(self.at("resolv.conf"), resolver)
        script = ('mount --bind "$0" /etc/hosts && mount --bind "$1" /etc/nsswitch.conf && mount --bind "$2" /etc/resolv.conf && shift 2 && '
                  'exec "$@"')
        return hosts, ("unshare", "--mount", "sh", "-c", script, hosts, lookups, resolver)

    def name_server(self, options):
        """One that can be silent, and what begins a server that asks it with these options of resolv.conf(5)."""
        try:
            names = NameServer()
        except OSError as error:
            self.skipTest(f"no name server of DNS can be had here: {error}")
        self.addCleanup(names.end)
        resolver = f"nameserver {names.ADDRESS}\noptions {options}\n".encode()
        return names, self.private_hosts(b"127.0.0.1 localhost\n", b"files dns", resolver)[1]
