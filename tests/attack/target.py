"""The server under attack: started afresh, asked whether it still answers, and judged at its end."""
import collections
import json
import os
import re
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cli"))
import harness  # noqa: E402 (how tests start servers)

from peer import RdmaPeer, TcpPeer, UdpPeer
from wire import gss, nfs, nfs4

REPORTS = re.compile(r"((?:ERROR|WARNING): \w+Sanitizer|runtime error:|CHECK failed|terminate called|SUMMARY: \w+Sanitizer)[^\n]*")
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
CANARY = b"nobody reaches this\n"


class Failure(Exception):
    """What no attack may cause, in a sentence."""


class Target:
    """`stag serve` of a folder (/files), of memory (/memory), and of a folder in which clients of this machine may change nothing (/strict)."""

    def __init__(self, stag, work, arguments=(), address_space=None, processors=None):
        self.work = work
        self.served, self.strict = os.path.join(work, "served"), os.path.join(work, "strict")
        os.makedirs(self.served)
        os.makedirs(self.strict)
        self.canary = os.path.join(work, "canary")
        with open(self.canary, "wb") as file:
            file.write(CANARY)
        keytab = os.path.join(work, "keytab")
        with open(keytab, "wb") as file:
            file.write(gss.keytab())
        harness.STAG = stag

        def limit():
            if address_space:
                resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
            if processors:
                os.sched_setaffinity(0, processors)

        self.server = harness.Server(
            ["/memory=memory,no_root_squash", f"/files={self.served},no_root_squash",
             f"/strict={self.strict},client=*:rw:no_root_squash,client=127.0.0.0/8:ro:no_root_squash"], os.path.join(work, "state"),
            ["--log-level", "debug", "--log-format", "json", "--keytab", keytab, *arguments], env={**os.environ, **SANITIZER_OPTIONS, "KRB5_CONFIG": os.devnull}, preexec_fn=limit,
        )  # fmt: skip
        self.udp_port = next(int(line.rsplit(":", 1)[1].split()[0]) for line in self.server.lines if "UDP" in line)
        self.strict_root = self._root(b"/strict")
        self.places = [self._furnish(path) for path in (b"/memory", b"/files")]
        self.places4 = [self._find(path) for path in (b"memory", b"files")]
        self.idle_sockets = self.sockets()

    @property
    def rdma_port(self):
        return self.server.rdma_port

    @property
    def tcp_port(self):
        return self.server.tcp_port

    def _root(self, path):
        peer = TcpPeer(self.tcp_port)
        try:
            return nfs.mounted_handle(peer.call(nfs.mount(path)))
        finally:
            peer.close()

    def _furnish(self, path):
        """Something to work on in an export."""
        peer = TcpPeer(self.tcp_port)
        root = nfs.mounted_handle(peer.call(nfs.mount(path)))
        folder = nfs.made_handle(peer.call(nfs.mkdir(root, b"attacked")))
        file = nfs.made_handle(peer.call(nfs.create(root, b"file")))
        link = nfs.made_handle(peer.call(nfs.symlink(root, b"link", b"file")))
        good = nfs.made_handle(peer.call(nfs.create(root, b"good")))
        peer.call(nfs.write(file, 0, bytes(65536)))
        peer.call(nfs.write(good, 0, bytes(65536)))
        root2 = peer.call(nfs.mount(path, 1))[4:36]
        file2 = peer.call(nfs.Call(nfs.NFS, 2, 4, [nfs.Field("handle", "handle", root2), *nfs.name(b"file")]))[4:36]
        for i in range(40):
            peer.call(nfs.create(folder, b"entry%02d" % i))
        peer.close()
        return nfs.Place(folder, file, link, root2, file2, good)

    def _find(self, path):
        """The same for version 4."""
        peer = TcpPeer(self.tcp_port)
        try:
            return nfs4.Place(*(nfs4.looked_up(peer, (path, *at)) for at in ((), (b"attacked",), (b"file",), (b"link",))))
        finally:
            peer.close()

    def sockets(self):
        """How many the server has open; None without the right to see them, which takes CAP_SYS_PTRACE when the server switches users.
        Descriptors of files are not counted: they are a cache that has its own bound."""
        folder = f"/proc/{self.server.process.pid}/fd"
        count = 0
        for each in os.listdir(folder):
            try:
                count += os.readlink(os.path.join(folder, each)).startswith("socket:")
            except FileNotFoundError:
                pass  # closed meanwhile
            except PermissionError:
                return None
        return count

    def wait_until_idle(self):
        """The server has given back what the attackers' connections had."""
        if self.idle_sockets is None:
            return
        end = time.monotonic() + harness.PATIENCE
        while self.server.process.poll() is None and (count := self.sockets()) > self.idle_sockets:
            if time.monotonic() > end:
                raise Failure(f"{count - self.idle_sockets} sockets are still open {harness.PATIENCE} s after all connections ended")
            time.sleep(0.05)

    def clients(self):
        """What `stag clients` shows."""
        listed = harness.stag("clients", "--json", "--state", os.path.join(self.work, "state"))
        if listed.returncode != 0:
            raise Failure(f"its clients are not listed: {listed.stderr.strip()}")
        return [json.loads(line) for line in listed.stdout.splitlines()]

    def most_resident(self):
        """Bytes of memory that it has had at most."""
        with open(f"/proc/{self.server.process.pid}/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))

    def processor_seconds(self):
        with open(f"/proc/{self.server.process.pid}/stat") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def check(self):
        """A new good client of each transport is answered."""
        if self.server.process.poll() is not None:
            raise Failure(f"the server ended with {self.server.process.returncode}")
        try:
            self._ask()
        except (OSError, ValueError, TypeError) as error:
            raise Failure(f"the server does not answer a good client: {type(error).__name__}: {error}") from error

    def _ask(self):
        for peer in (RdmaPeer(self.rdma_port), TcpPeer(self.tcp_port), UdpPeer(self.udp_port)):
            try:
                if peer.call(nfs.NULL if not isinstance(peer, UdpPeer) else nfs.Call(nfs.MOUNT, 3, 0, [])) is None:
                    raise Failure("a good client's NULL was refused")
                if isinstance(peer, RdmaPeer):
                    for place in self.places:
                        results = peer.call(nfs.read(place.good, 0, 65536))
                        if results is None or results[:4] != bytes(4):
                            raise Failure("a good client's READ failed")
            finally:
                peer.close()

    def finish(self):
        """Ends the server. Returns (failures, log)."""
        process = self.server.process
        early = process.poll()
        process.terminate()
        try:
            code = process.wait(harness.PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            code = f"none {harness.PATIENCE} s after SIGTERM"
            process.wait()
        process.stdout.close()
        text = self.server.log()
        self.server.errors.close()
        failures = [match[0] for match in REPORTS.finditer(text)][:5]
        if early is not None:
            failures.append(f"the server ended by itself with {early}")
        elif code != 0:
            failures.append(f"the server's exit code is {code}")
        with open(self.canary, "rb") as file:
            if file.read() != CANARY or sorted(os.listdir(self.work)) != ["canary", "keytab", "served", "state", "strict"]:
                failures.append("something outside of the export was changed")
        if os.listdir(self.strict):
            failures.append("something was made in an export that is read-only for this address")
        return failures, text


def reasons_in(log):
    """How often each Reason was reached, by the server's own log, and a line of each that is an error."""
    counts, examples = collections.Counter(), {}
    for line in log.splitlines():
        try:
            entry = json.loads(line)
            more = re.fullmatch(r"(\d+) more", entry.get("detail", ""))
            counts[entry["reason"]] += int(more[1]) if more and "where" not in entry else 1
        except (ValueError, KeyError, AttributeError, TypeError):
            continue
        if entry.get("level") == "error":
            examples.setdefault(entry["reason"], line)
    return counts, examples
