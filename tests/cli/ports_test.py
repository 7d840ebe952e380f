"""URLs that name the wrong one of a server's ports: said at once, and what to do about it."""
import os
import re
import shutil
import tempfile
import time
import unittest

import harness
from harness import Server, stag

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "troubleshooting.md")


class WrongPort(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(prefix="stag-ports-")
        cls.addClassCleanup(shutil.rmtree, cls.work, ignore_errors=True)
        cls.server = Server(["/x=memory"], os.path.join(cls.work, "state"))
        cls.addClassCleanup(cls.server.end)

    def fails(self, sentence, port, query):
        # Tried again until the time is over, it would not end within the harness's.
        result = stag("ls", "--timeout", str(2 * harness.PATIENCE), f"nfs://127.0.0.1:{port}/x?{query}")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(sentence, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_a_TCP_port_for_RDMA(self):
        tcp = self.server.tcp_port
        self.fails(f"127.0.0.1:{tcp} speaks RPC over TCP, not RPC-over-RDMA; add proto=tcp", tcp, f"mountport={tcp}")

    def test_an_RDMA_port_for_TCP(self):
        tcp, rdma = self.server.tcp_port, self.server.rdma_port
        for query in ("proto=tcp", f"proto=tcp&mountport={rdma}", f"proto=tcp&mountport={tcp}"):
            self.fails("speaks RPC-over-RDMA (a URL without proto=tcp) instead of RPC over TCP", rdma, query)

    def test_an_RDMA_port_for_MOUNT(self):
        tcp, rdma = self.server.tcp_port, self.server.rdma_port
        for query, port in ((f"mountport={rdma}&version=3", rdma), (f"proto=tcp&mountport={rdma}&version=3", tcp)):
            self.fails(f"tcp 127.0.0.1:{rdma}: ", port, query)

    def test_is_logged_for_the_reason_that_the_page_names(self):
        with open(PAGE) as file:
            (row,) = re.findall(r"(?m)^- (.*) RDMA and TCP are mixed up", file.read())
        tcp, rdma = self.server.tcp_port, self.server.rdma_port
        for reason, url in (("RpcRecordTooLong", f"nfs://127.0.0.1:{tcp}/x?mountport={tcp}"), ("MpaKeyWrong", f"nfs://127.0.0.1:{rdma}/x?proto=tcp")):
            self.assertEqual(stag("ls", url).returncode, 1)
            end = time.monotonic() + harness.PATIENCE
            while reason not in self.server.log():
                self.assertLess(time.monotonic(), end, reason)
                time.sleep(0.01)
            self.assertIn(f"`{reason}`", row)


if __name__ == "__main__":
    harness.main()
