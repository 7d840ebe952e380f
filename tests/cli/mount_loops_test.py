"""Mounts whose connections are worked for by several loops: files, restarts of the server and connections that are cut are as with one."""
import os
import subprocess
import sys

import harness
import mounted
import mounted_files
from harness import PATIENCE, Proxy
from mount_trouble_test import WRITER
from mounted import Mounted


class Loops(Mounted):
    def processes(self):
        """Those of mounts here; one that was unmounted may not have ended yet."""
        found = set()
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/cmdline", "rb") as words:
                    if words.read().endswith(b"\0" + self.directory.encode() + b"\0"):
                        found.add(process)
            except FileNotFoundError:  # it has ended
                pass
        return found

    def test_are_as_many_as_asked_for(self):
        for loops in (1, 2, 4):
            for version in ("3", "4.2"):
                with self.subTest(loops=loops, version=version):
                    others = self.processes()
                    self.mount("-o", f"loops={loops}", url=self.url() + "&version=" + version)
                    (process,) = self.processes() - others
                    descriptors = f"/proc/{process}/fd"
                    epolls = [os.readlink(os.path.join(descriptors, each)) for each in os.listdir(descriptors)].count("anon_inode:[eventpoll]")
                    self.assertEqual(epolls, loops)
                    self.assertGreaterEqual(len(os.listdir(f"/proc/{process}/task")), loops)
                    self.good("umount", self.directory)

    def test_serve_what_programs_do_with_files(self):
        over_tcp = self.server.tcp(f"/files/{self.name}")
        for url, version in ((self.url(), "3"), (self.url(), "4.2"), (over_tcp, "4.2")):
            self.mount("-o", "loops=2", url=f"{url}&version={version}")
            os.mkdir(self.here("place"))
            for name in mounted_files.names(version):
                with self.subTest(url=url, version=version, name=name):
                    mounted_files.run(self.here("place"), name)
            subprocess.run(["rm", "-r", self.here("place")], check=True)
            self.good("umount", self.directory)

    def test_go_on_by_other_connections_when_theirs_are_cut(self):
        content = os.urandom(8_000_001)
        for version in ("3", "4.2"):
            with self.subTest(version):
                proxy = Proxy(self.server.rdma_port, "up", 1 << 40)
                url = f"nfs://127.0.0.1:{proxy.port}/files/{self.name}?mountport={self.server.tcp_port}&version={version}"
                self.mount("-o", "loops=2,direct", url=url)
                path = self.write(self.here("file" + version), content)
                self.assertGreaterEqual(len(proxy.sockets), 4, "two connections, each of two sides")
                proxy.interrupt()
                self.assertEqual(self.read(path), content)
                # One is cut while data moves.
                proxy.left = 3_000_000
                writer = subprocess.Popen(["dd", "if=" + path, "of=" + path + "2", "bs=1M", "status=none"])  # cp(1) has the server copy
                self.assertTrue(proxy.reached.wait(PATIENCE))
                proxy.interrupt()
                self.assertEqual(writer.wait(PATIENCE), 0)
                self.assertEqual(self.read(self.there("file" + version + "2")), content)
                self.good("umount", self.directory)
                proxy.cut()

    def test_write_again_what_a_server_lost_when_it_died(self):
        for version in ("3", "4.2"):
            with self.subTest(version):
                served, state = self.at("served" + version), self.at("state" + version)
                os.mkdir(served)
                exports = (f"/x={served},no_root_squash",)
                first = harness.Server(exports, state)
                self.mount("-o", "loops=2", url=first.url("/x") + "&version=" + version)
                pieces = [bytes([size % 251]) * size for size in (10, 2_000_000, 300)]
                # Another process: a server that this one starts would close what it has open first, which waits for the server.
                writer = subprocess.Popen([sys.executable, "-c", WRITER, self.here("file"), "wb"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                self.assertEqual(writer.stdout.readline(), b"written\n")
                first.process.kill()
                first.process.wait()
                os.truncate(os.path.join(served, "file"), len(pieces[0]))  # as if the machine had died, too
                second = harness.Server(exports, state, ports=("--rdma-port", str(first.rdma_port), "--tcp-port", str(first.tcp_port)))
                self.assertEqual((writer.communicate(b"go\n", timeout=PATIENCE)[0], writer.returncode), (b"synced\n", 0))
                self.assertEqual(self.read(os.path.join(served, "file")), b"".join(pieces) + b"more")
                self.good("umount", self.directory)
                first.process.stdout.close()
                first.errors.close()
                self.assertEqual(second.end(), 0)


if __name__ == "__main__":
    mounted.main()
