"""Our own traffic on loopback, as tshark reads it: MPA, DDP and RDMAP, RPC-over-RDMA and NFS, nothing malformed.

Needs tshark, dumpcap and the right to capture; is skipped where one of them is missing.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import harness
from harness import Case

TOOLS = {name: shutil.which(name) for name in ("tshark", "dumpcap")}
MARK = b"the end of what is captured"


class Capture:
    """Packets of one TCP port on loopback. All that came before end() are in it."""

    def __init__(self, path, port):
        self.path = path
        self.marks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.marks.bind(("127.0.0.1", 0))
        wanted = f"tcp port {port} or udp port {self.marks.getsockname()[1]}"
        self.process = subprocess.Popen(
            [TOOLS["dumpcap"], "-q", "-i", "lo", "-s", "0", "-f", wanted, "-w", path], stderr=subprocess.PIPE, text=True
        )
        said = []
        for line in self.process.stderr:
            said.append(line)
            # Printed once the interface is open.
            if line.startswith("File:"):
                return
        raise PermissionError("".join(said).strip())

    def end(self):
        self.marks.sendto(MARK, self.marks.getsockname())
        deadline = time.monotonic() + harness.PATIENCE
        while MARK not in self.bytes():
            assert time.monotonic() < deadline, "the capture does not come to its end"
            time.sleep(0.05)
        self.close()

    def close(self):
        self.process.terminate()
        self.process.wait(harness.PATIENCE)
        self.process.stderr.close()
        self.marks.close()

    def bytes(self):
        with open(self.path, "rb") as file:
            return file.read()

    def fields(self, filter, *fields):
        """One list of values for each packet that `filter` finds."""
        command = [TOOLS["tshark"], "-n", "-r", self.path, "-Y", filter, "-T", "fields"]
        for field in fields:
            command += ["-e", field]
        out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
        return [line.split("\t") for line in out.splitlines()]


class Wire(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.content = os.urandom(30_000)
        with open(os.path.join(cls.work, "file"), "wb") as file:
            file.write(cls.content)
        os.mkdir(os.path.join(cls.served, "many"))
        for i in range(300):
            open(os.path.join(cls.served, "many", f"a name that makes the listing long {i}"), "w").close()
        cls.capture = Capture(os.path.join(cls.work, "capture.pcapng"), cls.server.rdma_port)
        for arguments in (
            # Above the threshold, and yet short enough for one segment of loopback.
            ["cp", "--inline-threshold", "8192", os.path.join(cls.work, "file"), cls.server.url("/files/file") + "&version=3"],
            ["cp", cls.server.url("/files/file") + "&version=3", os.path.join(cls.work, "back")],
            ["ls", "-l", cls.server.url("/files/many") + "&version=3"],
            ["ln", "-s", "some/where", cls.server.url("/files/link") + "&version=3"],
            ["stat", cls.server.url("/files/link") + "&version=3"],
            ["rm", "-r", cls.server.url("/files/many") + "&version=3"],
        ):
            result = harness.stag(*arguments)
            assert result.returncode == 0, (arguments, result.stderr)
        cls.capture.end()

    def test_connections_begin_with_the_enhanced_MPA_set_up(self):
        requests = self.capture.fields("iwarp_mpa.req", "iwarp_mpa.rev")
        replies = self.capture.fields("iwarp_mpa.rep", "iwarp_mpa.rev")
        self.assertEqual(len(requests), 6)
        self.assertEqual(len(replies), 6)
        # RFC 6581 section 9: the enhanced set-up has revision 2.
        self.assertEqual({revision for (revision,) in requests + replies}, {"2"})

    def test_every_message_is_NFS_in_RPC_over_RDMA_in_RDMAP(self):
        protocols = [row[0] for row in self.capture.fields("rpcordma", "frame.protocols")]
        self.assertGreater(len(protocols), 20)
        for each in protocols:
            self.assertRegex(each, r"iwarp_mpa:iwarp_ddp_rdmap:.*rpcordma")
        self.assertGreater(len([each for each in protocols if each.endswith("nfs")]), 20)

    def test_every_procedure_used_is_seen(self):
        seen = {int(number) for row in self.capture.fields("nfs", "nfs.procedure_v3") for number in row[0].split(",") if number}
        # GETATTR, LOOKUP, READLINK, READ, WRITE, CREATE, SYMLINK, REMOVE, RMDIR, RENAME, FSINFO; a READDIR or READDIRPLUS.
        self.assertLessEqual({1, 3, 5, 6, 7, 8, 10, 12, 13, 14, 19}, seen)
        self.assertTrue(seen & {16, 17})

    def test_nothing_is_malformed(self):
        # tshark 4.0 does not put RDMA Writes on iWARP together and misses the data of READ replies (nfs.procedure_v3 6); that
        # data is compared below.
        rows = self.capture.fields("_ws.malformed && !(nfs.procedure_v3 == 6)", "frame.number", "_ws.col.Info")
        self.assertEqual(rows, [])
        errors = self.capture.fields("rpcordma.msg_type == 4 || iwarp_rdma.opcode == 7", "frame.number")
        self.assertEqual(errors, [], "RDMA_ERROR or Terminate")

    def test_file_data_goes_by_RDMA_Read_and_RDMA_Write_as_it_is(self):
        self.assertNotEqual(self.capture.fields("iwarp_rdma.opcode == 1", "frame.number"), [], "Read Request")
        self.assertNotEqual(self.capture.fields("iwarp_rdma.opcode == 2", "frame.number"), [], "Read Response")
        self.assertNotEqual(self.capture.fields("iwarp_rdma.opcode == 0", "frame.number"), [], "Write")
        # Once in and once out, whole: loopback's segments are longer than it.
        self.assertEqual(self.capture.bytes().count(self.content), 2)

    def test_long_listings_come_in_a_Reply_chunk(self):
        self.assertNotEqual(self.capture.fields("rpcordma.msg_type == 1 && rpc.msgtyp == 1", "frame.number"), [])


def may_capture():
    for name, path in TOOLS.items():
        if path is None:
            return f"{name} is not installed"
    # dumpcap removes what it was to write when it cannot begin.
    with tempfile.TemporaryDirectory() as work:
        try:
            probe = Capture(os.path.join(work, "probe"), 9)
        except PermissionError as error:
            return f"no permission to capture on loopback: {error}"
        probe.close()
    return None


if __name__ == "__main__":
    obstacle = may_capture()
    if obstacle:
        print(f"SKIPPED: {obstacle}")
        sys.exit(harness.SKIPPED)
    harness.main()
