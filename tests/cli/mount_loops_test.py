"""Mounts whose connections are worked for by several loops: files, restarts of the server and connections that are cut are as with one."""
import os
import subprocess

import mounted
import mounted_files
from harness import PATIENCE, Proxy
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
                self.write_what_is_lost_again(version, "wb", "-o", "loops=2")


if __name__ == "__main__":
    mounted.main()
