"""Mounts that programs use all the time while the server is killed and started again, and connections are cut. tests/cli/mount_load.py are the programs."""
import collections
import fcntl
import hashlib
import os
import subprocess
import sys
import threading

import harness
import mount_load
import mounted
from harness import PATIENCE, Proxy
from mounted import Mounted

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mount_load.py")
MORE = (256 << 10) if harness.is_sanitized() else (1 << 20)  # bytes that each file is to be written between two accidents


class Load:
    """The programs, in a process of their own: that of the test starts servers, which close what it has open first, and close(2) of a file of the mount waits for a server."""

    def __init__(self, case, directory, *words):
        self.case = case
        self.process = subprocess.Popen([sys.executable, PROGRAM, directory, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.written, self.digests, self.failures = collections.Counter(), {}, []
        self.told, self.ended = threading.Condition(), False
        self.listening = threading.Thread(target=self.listen, daemon=True)
        self.listening.start()
        for clean_up in (self.listening.join, self.process.wait, self.process.kill, self.process.stdin.close):
            case.addCleanup(clean_up)

    def listen(self):
        with self.process.stdout as lines:
            for line in lines:
                name, what, *rest = line.split(maxsplit=2)
                with self.told:
                    if what == "failed":
                        self.failures.append(line)
                    elif what == "is":
                        self.digests[name] = rest[0].strip()
                    else:
                        self.written[name] += int(what)
                    self.told.notify()
        with self.told:
            self.ended = True
            self.told.notify()

    def wait_for_more(self):
        """Until each file was written so much more."""
        with self.told:
            wanted = {name: self.written[name] + MORE for name in mount_load.FILES}
            left = lambda: [name for name in wanted if self.written[name] < wanted[name]]  # noqa: E731
            self.told.wait_for(lambda: self.failures or self.ended or not left(), PATIENCE)
            self.case.assertEqual((self.failures, left(), self.ended), ([], [], False))

    def end(self):
        """The digests of what was written, by file."""
        self.process.stdin.close()
        with self.told:
            self.case.assertTrue(self.told.wait_for(lambda: self.ended, PATIENCE), self.digests)
        self.case.assertEqual((self.process.wait(PATIENCE), self.failures), (0, []))
        return self.digests


class UnderLoad(Mounted):
    """Whose server is killed so often, and whose connections are cut in between."""

    def serve(self, **ports):
        self.own = harness.Server([f"/x={self.there()},no_root_squash"], self.at("state"), ("--lease", "10", "--grace", "10"), **ports)

    def kill(self):
        """The server, which another one follows at once."""
        killed = self.own
        killed.process.kill()
        killed.process.wait()
        killed.process.stdout.close()
        killed.errors.close()
        self.serve(ports=("--rdma-port", str(killed.rdma_port), "--tcp-port", str(killed.tcp_port)))

    def mount_by(self, version, transport, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        port = {"rdma": self.own.rdma_port, "tcp": self.own.tcp_port}[transport]
        proxy = Proxy(port, "up", 1 << 40)
        self.addCleanup(proxy.cut)
        self.mount(url=f"nfs://127.0.0.1:{proxy.port}/x?proto={transport}&version={version}&mountport={self.own.tcp_port}")
        return proxy

    def goes_on(self, version, transport, kills):
        locks = version != "3"
        self.serve()
        self.addCleanup(lambda: self.assertEqual(self.own.end(), 0))
        second = self.directory + "2"
        proxy = self.mount_by(version, transport, self.directory)
        first = self.directory
        load = Load(self, first, *(["lock"] if locks else []))
        load.wait_for_more()
        for number in range(kills):
            self.kill()
            load.wait_for_more()
            if number == 0:
                proxy.interrupt()
                load.wait_for_more()
        self.mount_by(version, transport, second)
        self.addCleanup(harness.stag, "umount", "--lazy", first)
        for mount in (first, second) if locks else ():
            with self.subTest(mount), open(os.path.join(mount, "locked"), "r+b") as file, self.assertRaises(BlockingIOError):
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, mount_load.MOST - 1)
        written = load.end()
        for place in (self.there(), first, second):
            there = {name: hashlib.sha256(self.read(os.path.join(place, name))).hexdigest() for name in mount_load.FILES}
            self.assertEqual(there, written, place)
        if locks:
            with open(os.path.join(second, "locked"), "r+b") as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for mount in (first, second):
            self.good("umount", mount)

    def test_by_version_4_2_loses_nothing(self):
        self.goes_on("4.2", "rdma", 3)

    def test_by_version_4_0_loses_nothing(self):
        self.goes_on("4.0", "tcp", 2)

    def test_by_version_3_loses_nothing(self):
        self.goes_on("3", "rdma", 3)


if __name__ == "__main__":
    mounted.main()
