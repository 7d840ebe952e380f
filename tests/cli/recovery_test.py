#!/usr/bin/env python3
"""A server of NFS 4.1 that is killed: what a client held it reclaims afterwards, on the wire."""
import fcntl
import os
import time

import harness
from nfs4_client import OK, PUTROOTFH, Case, words

GRACE, STALE_CLIENTID, RECLAIM_CONFLICT, BADSESSION = 10013, 10022, 10035, 10052


class Recovery(Case):
    def test_a_lock_is_reclaimed_after_SIGKILL(self):
        server = self.start()
        anna = self.ready_client(server)
        status, stateid, handle = anna.create_file(b"file")
        self.assertEqual(status, OK)
        self.assertEqual(anna.lock(handle, stateid, 0), OK)
        self.kill(server)

        server = self.start()
        again = self.client(server)
        again.clientid, again.create, again.session = anna.clientid, words(2), anna.session
        self.assertEqual(again.in_session(words(PUTROOTFH))[0], BADSESSION)
        self.assertEqual(again.create_session(), STALE_CLIENTID)
        again.connect()
        bert = self.ready_client(server, b"bert")
        self.assertEqual(bert.create_file(b"other")[0], GRACE)
        status, stateid = again.reclaim(handle)
        self.assertEqual(status, OK)
        self.assertEqual(again.lock(handle, stateid, 1), OK)
        self.assertEqual(again.reclaim_complete(), OK)
        # All who could reclaim are done: once that is written the grace period is over.
        give_up = time.monotonic() + harness.PATIENCE
        while (status := bert.create_file(b"other")[0]) == GRACE and time.monotonic() < give_up:
            time.sleep(0.01)
        self.assertEqual(status, OK)

    def test_a_lock_that_a_program_of_this_machine_has_taken_meanwhile_is_not_reclaimed_and_the_log_says_so(self):
        server = self.start()
        anna = self.ready_client(server)
        _, stateid, handle = anna.create_file(b"file")
        self.assertEqual(anna.lock(handle, stateid, 0), OK)
        self.kill(server)

        with open(os.path.join(self.data, "file"), "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX, 4, 2)
            server = self.start()
            again = self.client(server).connect()
            _, stateid = again.reclaim(handle)
            self.assertEqual(again.lock(handle, stateid, 1), RECLAIM_CONFLICT)
            self.assertRegex(
                server.log(), rf"warning +ReclaimRefused 127\.0\.0\.1:\d+: .*\(client \d+, export /data, xid {again.xid:#010x}: a lock of bytes 0 to 9; a program of .* has bytes 2 to 5\)\n")

    def test_nobody_waits_where_nobody_held_anything(self):
        self.kill(self.start())
        anna = self.ready_client(self.start())
        self.assertEqual(anna.create_file(b"file")[0], OK)

    def test_a_start_without_version_4_forgets_what_its_clients_held(self):
        server = self.start()
        anna = self.ready_client(server)
        self.kill(server)
        self.kill(self.start("--no-nfs4"))
        anna = self.ready_client(self.start())
        self.assertEqual(anna.create_file(b"file")[0], OK)

    def test_broken_records_are_one_sentence(self):
        os.mkdir(self.state)
        with open(os.path.join(self.state, "nfs4-clients.db"), "wb") as records:
            records.write(b"x" * 4096)
        ended = harness.stag("serve", "--state", self.state, "--export", f"/data={self.data}", "--tcp-port", "0", "--rdma-port", "0")
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
        self.assertIn("cannot use the records of NFSv4 clients", ended.stderr)

    def test_records_in_a_ceph_cluster_want_a_module_of_sqlite(self):
        """Which is found as any library is: here it is a file that is none."""
        with open(os.path.join(self.folder, "libcephsqlite.so"), "w"):
            pass
        environment = {**os.environ, "LD_LIBRARY_PATH": self.folder}
        ended = harness.stag(
            "serve", "--state", self.state, "--export", f"/data={self.data}", "--tcp-port", "0", "--rdma-port", "0", "--records", "ceph:nfs/a", env=environment)
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
        self.assertIn("cannot use the records of NFSv4 clients in ceph:nfs/a: ", ended.stderr)
        self.assertIn("(Debian: libsqlite3-mod-ceph)", ended.stderr)


if __name__ == "__main__":
    harness.main()
