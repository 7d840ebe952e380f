"""Two gateways of one file system on machines of their own, and an address that goes from one to the other (docs/scale.md): what is tried with them, for tests
that say what the file system is. The commands that move the address are those that the page shows."""
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import harness
import network
from harness import stag

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/scale.md")
ADDRESS = network.PREFIX + "10"  # of the service
ALL_GATEWAYS, NEW_OWNER = "every gateway", "the gateway that is to have the address"
# What is copied takes longer than it takes to see that it is being copied: with 12 MB/s each way, three seconds.
RATE, SIZE = "100mbit", 20 << 20
UNDER_WAY = 6 << 20
WRITERS = (("3", "rdma"), ("3", "tcp"), ("4.1", "tcp"), ("4.2", "rdma"))

# Appends numbers, a line each, each on the disk before the next one, under a lock where it is told to. Answers a line with how many there are after three
# more, and the end of its input with how many there are in all.
WRITER = """
import fcntl, os, select, sys
path, locks = sys.argv[1:]
file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
if locks == "yes":
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
written = 0
def write(lines):
    global written
    for _ in range(lines):
        written += 1
        os.write(file, b"%d\\n" % written)
        os.fsync(file)
while True:
    write(1)
    if select.select([0], [], [], 0)[0]:
        if not os.read(0, 1):
            break
        write(3)
        print(written, flush=True)
print(written, flush=True)
"""


def documented(where):
    """The lines of shell that the page shows for there."""
    with open(PAGE) as file:
        (block,) = re.findall(rf"^ *```sh on {where}\n(.*?)^ *```$", file.read(), re.M | re.S)
    return [line.split("#")[0].strip() for line in block.splitlines()]


def run_documented(where, machine):
    for line in documented(where):
        machine.run("sh", "-c", line)


class Gateway:
    def __init__(self, pair, name, number):
        self.name = name
        self.state = os.path.join(pair.work, name)
        self.machine = network.Machine(name, number)
        pair.addCleanup(self.machine.end)
        run_documented(ALL_GATEWAYS, self.machine)
        if not os.path.isdir(self.state):
            os.mkdir(self.state)
            if pair.key is not None:
                shutil.copy(pair.key, self.state)
        arguments = ("--listen", ADDRESS, "--listen", self.machine.address, "--lease", "30", "--grace", "300", *pair.arguments(name))
        self.server = harness.Server([pair.export(name)], self.state, arguments, ports=("--rdma-port", "20049", "--tcp-port", "2049"), before=self.machine.enter)
        pair.addCleanup(self.end)
        pair.key = pair.key or shutil.copy(os.path.join(self.state, "handle.key"), pair.work)

    def url(self, path, **options):
        return url(path, self.machine.address, **options)

    def loses_its_power(self):
        """Nobody is told: not a packet comes from it once its processes are dead."""
        self.machine.plug("down")
        self.server.process.kill()
        self.end()

    def end(self):
        if self.server.process.returncode is None:
            self.server.process.kill()
        if not self.server.errors.closed:
            self.server.process.wait(harness.PATIENCE)
            self.server.process.stdout.close()
            self.server.errors.close()

    def clients(self, what):
        done = stag("clients", what, "--json", "--state", self.state)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def url(path, host=ADDRESS, version="4.2", proto="tcp"):
    return f"nfs://{host}/data{path}?version={version}&proto={proto}"


class Pair(unittest.TestCase):
    """export(NAME) of a gateway is for whoever inherits; arguments(NAME), fence(NAME) and place(GATEWAY) where they are others than of a folder."""

    def setUp(self):
        self.work = tempfile.mkdtemp(dir=os.environ[network.INSIDE])
        os.chmod(self.work, 0o755)
        self.key = None

    def arguments(self, _name):
        return ()

    def fence(self, _name):
        """What keeps the lost gateway from the files is made ready; the call of the result does it."""
        return lambda: None

    def place(self, gateway):
        return gateway.state

    def good(self, *arguments):
        done = stag(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def mount(self, at, machine=None):
        """By that machine, or the one where this runs."""
        directory = tempfile.mkdtemp(dir=self.work)
        done = machine.stag("mount", at, directory) if machine else stag("mount", at, directory)
        if done.returncode != 0 and "FUSE does not mount" in done.stderr:
            self.skipTest("FUSE does not mount here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(stag, "umount", "--lazy", directory)
        return directory

    def writer(self, path, locks):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path, "yes" if locks else "no"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(writer.communicate)
        self.addCleanup(writer.kill)
        return writer

    def goes_on(self, writer):
        writer.stdin.write("\n")
        writer.stdin.flush()
        self.assertTrue(writer.stdout.readline(), "it has ended")

    def copy(self, machine, source, target):
        copier = subprocess.Popen([*machine.enter, harness.STAG, "cp", source, target], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(copier.communicate)
        self.addCleanup(copier.kill)
        return copier

    def eventually(self, condition, what):
        give_up = time.monotonic() + harness.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), give_up, what)
            time.sleep(0.02)

    def local(self, name, content=None):
        path = os.path.join(self.work, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
            return path
        with open(path, "rb") as file:
            return file.read()

    def begin_copies(self, client, data):
        """Two up and two down; returns when all that may be lost of them is under way."""
        self.local("up", data)
        before = client.traffic()
        copiers = []
        for version, proto in (("3", "rdma"), ("4.2", "tcp")):
            copiers.append(self.copy(client, os.path.join(self.work, "up"), url(f"/up.{version}", version=version, proto=proto)))
            copiers.append(self.copy(client, url("/down", version=version, proto=proto), os.path.join(self.work, f"down.{version}")))
        self.eventually(lambda: all(now - then > UNDER_WAY for now, then in zip(client.traffic(), before)), "data moves")
        return copiers

    def move(self, lost, to, fence):
        """As the page has it: the fence, the clients, the address."""
        fence()
        self.assertRegex(self.good("clients", "adopt", self.place(lost), "--state", to.state), r"^\d+ adopted; they may reclaim for 300 s\.\n$")
        run_documented(NEW_OWNER, to.machine)

    def takes_the_lock(self, path):
        with open(path, "r+b", buffering=0) as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    def try_a_loss(self):
        a, b = Gateway(self, "a", 11), Gateway(self, "b", 12)
        run_documented(NEW_OWNER, a.machine)
        client = network.Machine("client", 20)
        self.addCleanup(client.end)
        data = os.urandom(SIZE)
        self.good("cp", self.local("data", data), a.url("/down"))
        mounts = [self.mount(url("", version=version, proto=proto), client) for version, proto in WRITERS]
        writers = [self.writer(os.path.join(mount, f"log.{version}.{proto}"), version[0] == "4") for mount, (version, proto) in zip(mounts, WRITERS)]
        # It has no call in progress when the gateway dies, and none afterwards but those that keep its lease.
        idle = self.mount(url(""), client)
        held = open(os.path.join(idle, "held"), "w+b", buffering=0)  # pylint: disable=consider-using-with
        self.addCleanup(held.close)
        fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for writer in writers:
            self.goes_on(writer)
        self.assertEqual((len(a.clients("locks")), b.clients("locks")), (3, []))
        fence = self.fence("a")
        client.slow_down(RATE)
        copiers = self.begin_copies(client, data)

        a.loses_its_power()
        self.assertEqual([copier.poll() for copier in copiers], [None] * len(copiers))
        client.speed_up()
        self.move(a, b, fence)
        for writer in writers:
            self.goes_on(writer)
        self.eventually(lambda: len(b.clients("locks")) == 3, b.clients("locks"))
        for copier in copiers:
            self.assertEqual((*copier.communicate(timeout=harness.PATIENCE), copier.returncode), ("", "", 0))
        for version in ("3", "4.2"):
            self.assertTrue(self.local(f"down.{version}") == data)

        # Somebody who never knew the first one, at the second's own address.
        other = self.mount(b.url(""))
        for name in ("log.4.1.tcp", "log.4.2.rdma", "held"):
            self.assertFalse(self.takes_the_lock(os.path.join(other, name)), name)
        self.comes_back(a)
        for writer, (version, proto) in zip(writers, WRITERS):
            self.goes_on(writer)
            lines = int(writer.communicate(timeout=harness.PATIENCE)[0])
            self.assertEqual(writer.returncode, 0)
            self.good("cp", b.url(f"/log.{version}.{proto}"), os.path.join(self.work, "log"))
            self.assertEqual(self.local("log"), b"".join(b"%d\n" % number for number in range(1, lines + 1)))
        held.close()
        for name in ("log.4.1.tcp", "log.4.2.rdma", "held"):
            self.assertTrue(self.takes_the_lock(os.path.join(other, name)), name)
        for version in ("3", "4.2"):
            self.good("cp", b.url(f"/up.{version}"), os.path.join(self.work, "there"))
            self.assertTrue(self.local("there") == data)
        self.assertNotIn("ReclaimRefused", b.server.log())
        for mount in (*mounts, idle, other):
            self.good("umount", mount)
        self.assertEqual(b.server.end(), 0)

    def comes_back(self, lost):
        """The lost one starts again, as a machine that remembers nothing and does not have the address: nobody goes there, and nobody waits there."""
        lost.machine.end()
        back = Gateway(self, "a", 11)
        self.good("cp", self.local("text", b"text\n"), back.url("/again"))
        self.assertEqual(self.good("cat", back.url("/again", version="3")), "text\n")
        self.assertEqual(back.clients("locks"), [])
        self.assertNotIn("grace", back.server.log())
