"""Two gateways, `stag serve` twice, to one CephFS (docs/scale.md): a client writes through one and reads through the other, and goes
on with the other when its own is killed. Run by tests/ceph/run, which starts the cluster."""
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import admin  # noqa: E402
import harness  # noqa: E402
from harness import PATIENCE, Server, stag  # noqa: E402

CONF = os.environ["STAG_CEPH_CONF"]
# Clients that retry for as long as a take-over takes.
COUNT = 5


def pump(source, target):
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
    source.close()


class Address:
    """An address that goes from one gateway to another, as one of a pair's network does."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            for ends in ((client, server), (server, client)):
                threading.Thread(target=pump, args=ends, daemon=True).start()


class Gateways(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-gateways-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.key = None
        self.gateways = {}

    def gateway(self, name, *arguments, **options):
        """Started; with the handle key of the first one."""
        state = os.path.join(self.work, name)
        if not os.path.isdir(state):
            os.mkdir(state)
            if self.key is not None:
                shutil.copy(self.key, os.path.join(state, "handle.key"))
        server = Server([f"/data=ceph:/?conf={CONF}&gateway={name},no_root_squash"], state, arguments, **options)
        self.key = self.key or os.path.join(state, "handle.key")
        self.gateways[name] = server
        self.addCleanup(self.end, name)
        return server

    def end(self, name):
        server = self.gateways.pop(name, None)
        if server is not None:
            self.assertEqual(server.end(), 0)

    def kill(self, name):
        server = self.gateways.pop(name)
        server.process.kill()
        server.process.wait()
        server.process.stdout.close()
        server.errors.close()

    def good(self, *arguments, **options):
        result = stag(*arguments, **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return result.stdout

    def put(self, text, url):
        path = os.path.join(self.work, "text")
        with open(path, "w") as file:
            file.write(text)
        self.good("cp", path, url)

    def test_what_is_written_through_one_is_read_through_the_other(self):
        a, b = self.gateway("a"), self.gateway("b")
        for count in range(COUNT):
            for writer, reader in ((a, b), (b, a)):
                text = f"{count} {writer.tcp_port}\n" * 1000
                self.put(text, writer.tcp("/data/shared"))
                self.assertEqual(self.good("cat", reader.tcp("/data/shared")), text)
        self.good("mkdir", a.tcp("/data/folder"))
        self.good("mv", b.tcp("/data/shared"), b.tcp("/data/folder/moved"))
        self.assertEqual(self.good("ls", a.tcp("/data/folder")).split(), ["moved"])
        self.good("rm", "-r", a.tcp("/data/folder"))
        self.assertNotIn("folder", self.good("ls", b.tcp("/data")))

    def test_a_client_goes_on_with_the_other_when_its_own_is_killed(self):
        a, b = self.gateway("a"), self.gateway("b")
        address = Address(a.tcp_port)
        self.addCleanup(address.listener.close)
        directory = self.mounted(address.port, "3", "mount")
        path = os.path.join(directory, "file")
        fence = admin.fence(CONF, "a")
        with open(path, "w+b", buffering=0) as file:
            file.write(b"safe " * 1000)
            os.fsync(file.fileno())
            # Not on any disk when the gateway dies: the client has it still, and finds out.
            file.write(b"late " * 1000)
            self.kill("a")
            fence()
            address.target = b.tcp_port
            os.fsync(file.fileno())
            file.write(b"more " * 1000)
            os.fsync(file.fileno())
            file.seek(0)
            self.assertEqual(file.read(), b"safe " * 1000 + b"late " * 1000 + b"more " * 1000)
        self.assertEqual(self.good("cat", b.tcp("/data/file")), "safe " * 1000 + "late " * 1000 + "more " * 1000)
        self.good("umount", directory)

    def mounted(self, port, version, name):
        directory = os.path.join(self.work, name)
        os.mkdir(directory)
        done = stag("mount", f"nfs://127.0.0.1:{port}/data?proto=tcp&version={version}", directory)
        if done.returncode != 0 and "FUSE does not mount" in done.stderr:
            self.skipTest("FUSE does not mount here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(stag, "umount", "--lazy", directory)
        return directory

    def test_clients_of_version_4_reclaim_their_locks_at_the_other(self):
        for version in ("4.0", "4.1", "4.2"):
            with self.subTest(version):
                self.move_a_lock(version, *(f"{name}-{version}" for name in ("lost", "taking", "mount", "other")))

    def test_they_do_so_by_records_in_the_cluster(self):
        if not admin.has_sqlite_module():
            self.skipTest("there is no libcephsqlite.so here (Debian: libsqlite3-mod-ceph)")
        self.move_a_lock("4.1", "dead", "living", "mount", "other", records=True)

    def move_a_lock(self, version, lost, taking, mount, other, records=False):
        def place(name):
            return ("--records", f"ceph:metadata/{name}?conf={CONF}") if records else ()

        a, b = self.gateway(lost, *place(lost)), self.gateway(taking, *place(taking))
        address = Address(a.tcp_port)
        self.addCleanup(address.listener.close)
        path = os.path.join(self.mounted(address.port, version, mount), f"file-{version}")
        fence = admin.fence(CONF, lost)
        with open(path, "w+b", buffering=0) as file:
            file.write(b"safe ")
            fcntl.lockf(file, fcntl.LOCK_EX)
            self.kill(lost)
            fence()
            states = [os.path.join(self.work, name) for name in (lost, taking)]
            if records:
                # What the machine had is lost with it.
                shutil.rmtree(states[0])
            self.assertEqual(self.good("clients", "adopt", place(lost)[1] if records else states[0], "--state", states[1]), "1 adopted; they may reclaim for 90 s.\n")
            address.target = b.tcp_port
            file.write(b"more ")
            os.fsync(file.fileno())
            locks = [json.loads(line) for line in self.good("clients", "locks", "--json", "--state", states[1]).splitlines()]
            self.assertEqual(len(locks), 1, locks)
            # Somebody who never knew the lost one: out as long as the lock is held, and in when it is not.
            with open(os.path.join(self.mounted(b.tcp_port, version, other), f"file-{version}"), "r+b", buffering=0) as opened:
                with self.assertRaises(BlockingIOError):
                    fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.lockf(file, fcntl.LOCK_UN)
                fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.assertEqual(opened.read(), b"safe more ")
        self.end(taking)

    def test_a_gateway_that_starts_again_takes_its_own_past_from_the_cluster(self):
        a = self.gateway("a")
        self.put("text\n", a.tcp("/data/before"))
        self.kill("a")
        again = self.gateway("a")
        self.assertEqual(self.good("cat", again.tcp("/data/before")), "text\n")
        sessions = admin.sessions(CONF)
        named = [each for each in sessions if each["client_metadata"].get("uuid") == "a:/data"]
        self.assertEqual(len(named), 1)

    def test_a_successor_takes_the_place_of_its_predecessor_under_the_same_name(self):
        """It mounts when that has gone, and so takes nothing away from it."""
        server = self.gateway("a")
        directory = self.mounted(server.tcp_port, "4.1", "mount")
        text = b""
        with open(os.path.join(directory, "file"), "w+b", buffering=0) as file:
            for count in range(3):
                text += b"%d " % count * 100_000
                file.write(text[file.tell():])
                self.gateways.pop("a")
                following = self.gateway("a", "--take-over", ports=("--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port)))
                self.assertEqual(server.process.wait(PATIENCE), 0)
                self.assertEqual(server.end(), 0)
                server = following
            os.fsync(file.fileno())
        self.assertEqual(self.good("cat", server.tcp("/data/file")).encode(), text)
        sessions = admin.sessions(CONF)
        self.assertEqual([each["client_metadata"].get("uuid") for each in sessions].count("a:/data"), 1)
        self.good("umount", directory)

    def test_a_reload_does_not_end_the_mount_that_is_served(self):
        path = os.path.join(self.work, "config")

        def configure(place):
            with open(path, "w") as file:
                file.write(f'export = ["/data={place},no_root_squash"]\n')

        one, other = f"ceph:/?conf={CONF}&gateway=a", f"ceph:/?id=admin&conf={CONF}&gateway="
        configure(one)
        state = os.path.join(self.work, "a")
        server = self.gateways["a"] = Server([], state, ("--config", path))
        self.addCleanup(self.end, "a")
        self.put("text\n", server.tcp("/data/before"))
        configure(other + "a")
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + PATIENCE
        while "needs a restart" not in server.log():
            self.assertLess(time.monotonic(), end, server.log())
            time.sleep(0.01)
        self.assertEqual(self.good("cat", server.tcp("/data/before")), "text\n")
        configure(other + "b")
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.process.stdout.readline(), "exports: changed /data\n")
        self.assertEqual(self.good("cat", server.tcp("/data/before")), "text\n")

    def until(self, done, what):
        end = time.monotonic() + PATIENCE
        while not done():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def test_what_a_dead_gateway_has_rights_in_keeps_nobody_out_of_other_files(self):
        """Not by a rename that waits for its turn behind whoever waits for the cluster, either."""
        a, b = self.gateway("a", "--metrics", "127.0.0.1:0"), self.gateway("b")
        metrics = next(line for line in a.lines if line.startswith("metrics: ")).split()[1]

        def running():
            with urllib.request.urlopen(metrics, timeout=PATIENCE) as page:
                return sum(float(count) for count in re.findall(r'^stag_store_operations_running\{.*\} (\S+)$', page.read().decode(), re.MULTILINE))

        self.good("mkdir", a.tcp("/data/elsewhere"), a.tcp("/data/dead"))
        self.put("text\n", a.tcp("/data/elsewhere/file"))
        self.put("text\n", b.tcp("/data/dead/file"))
        fence = admin.fence(CONF, "b")
        self.kill("b")
        waits = subprocess.Popen([harness.STAG, "ls", "-l", a.tcp("/data/dead/file")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until(lambda: running() == 1, "the look-up of the dead gateway's file")
        moves = subprocess.Popen([harness.STAG, "mv", a.tcp("/data/elsewhere/file"), a.tcp("/data/elsewhere/moved")])
        self.until(lambda: running() == 2, "the rename")
        self.assertEqual(self.good("ls", a.tcp("/data/elsewhere")).split(), ["file"])
        self.assertIsNone(waits.poll(), "the look-up ended before the others' did")
        fence()
        self.assertEqual((waits.wait(PATIENCE), moves.wait(PATIENCE)), (0, 0))
        self.assertEqual(self.good("ls", a.tcp("/data/elsewhere")).split(), ["moved"])

    def test_a_mount_that_comes_too_late_is_not_another_ones_end(self):
        path = os.path.join(self.work, "config")
        data = f"/data=ceph:/?conf={CONF}&gateway=late,no_root_squash"

        def reload(*exports):
            with open(path, "w") as file:
                file.write(f"export = {json.dumps(exports)}\n")
            if exports[1:]:
                server.process.send_signal(signal.SIGHUP)

        reload("/memory=memory")
        server = Server([], os.path.join(self.work, "late"), ("--config", path, "--store-patience", "1"))
        self.gateways["late"] = server
        self.addCleanup(self.end, "late")
        with open(os.path.join(os.path.dirname(CONF), "mon.pid")) as file:
            monitor = int(file.read())
        os.kill(monitor, signal.SIGSTOP)
        self.addCleanup(os.kill, monitor, signal.SIGCONT)
        reload("/memory=memory", data)
        self.until(lambda: "does not answer" in server.log(), "the first attempt")
        reload("/memory=memory", data)
        self.until(lambda: "still waits for the Ceph cluster" in server.log(), "the second one")
        os.kill(monitor, signal.SIGCONT)

        def served():
            reload("/memory=memory", data)
            return stag("ls", server.tcp("/data")).returncode == 0

        self.until(served, "the mount")
        # Threads of the attempt that nobody waited for are gone by now, and with them what it could have done.
        for _ in range(20):
            self.good("ls", server.tcp("/data"))

    def test_what_one_has_read_and_the_other_removes_is_gone(self):
        a, b = self.gateway("a"), self.gateway("b")
        self.put("text\n" * 1000, b.tcp("/data/file"))
        self.good("cat", a.tcp("/data/file"))
        self.good("rm", b.tcp("/data/file"))

        def strays():
            return json.loads(admin.ceph(CONF, "tell", "mds.a", "perf", "dump"))["mds_cache"]["num_strays"]

        self.until(lambda: strays() == 0, "the file is kept open")

    def test_a_cluster_that_hangs_holds_nobody_else_and_not_the_end(self):
        patience = ("--drain", "1", "--store-patience", "1")
        state = os.path.join(self.work, "hangs")
        server = Server([f"/data=ceph:/?conf={CONF}", "/memory=memory"], state, patience)
        self.good("ls", server.tcp("/data"))
        for name in ("mds", "osd", "mgr", "mon"):
            with open(os.path.join(os.path.dirname(CONF), f"{name}.pid")) as file:
                daemon = int(file.read())
            os.kill(daemon, signal.SIGSTOP)
            self.addCleanup(os.kill, daemon, signal.SIGCONT)
        self.good("ls", server.tcp("/memory"))
        server.process.terminate()
        self.assertEqual(server.process.wait(PATIENCE), 1)
        self.assertIn("no answer from the file system below export /data", server.log())
        server.process.stdout.close()
        server.errors.close()

    def test_it_is_said_what_is_wrong_with_an_export_of_ceph(self):
        for place, code, sentence in (
            ("ceph:data", 2, "write its path from '/' on"),
            ("ceph:/?colour=red", 2, "there are conf=FILE, id=NAME, fs=NAME and gateway=NAME"),
            ("ceph:/?conf=/none/such", 1, "cannot read the configuration of Ceph in /none/such"),
            (f"ceph:/none/such?conf={CONF}", 1, "cannot mount /none/such of CephFS"),
        ):
            with self.subTest(place):
                done = stag("serve", "--export", f"/data={place}", "--state", os.path.join(self.work, "state"))
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(sentence, done.stderr)


if __name__ == "__main__":
    harness.main()
