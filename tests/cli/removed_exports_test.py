#!/usr/bin/env python3
"""An export is taken out while clients hold something there: its disk can be unmounted once they have given it back, or it was taken away."""
import json
import os
import signal
import subprocess
import sys
import time

import harness
from clients_test import Holder
from harness import stag
from nfs4_client import NLM_GRANTED, OK, PUTFH, Case, nlm_lock, nlm_unlock, opaque, words

CLOSE, STALE, ADMIN_REVOKED = 4, 70, 10047
RECALLABLE_STATE_REVOKED = 0x40  # SEQ4_STATUS


class RemovedExports(Case):
    """/data is a disk of its own; there is another export as well."""

    def setUp(self):
        super().setUp()
        subprocess.run(["mount", "-t", "tmpfs", "none", self.data], check=True)
        self.addCleanup(subprocess.run, ["umount", "--lazy", self.data], stderr=subprocess.DEVNULL)
        os.chmod(self.data, 0o777)
        self.config = os.path.join(self.folder, "stag.toml")

    def serve(self, *arguments):
        self.configure(f"/data={self.data},no_root_squash", "/other=memory")
        server = harness.Server([], self.state, ["--config", self.config, *arguments])
        self.addCleanup(self.kill, server)
        return server

    def configure(self, *exports):
        with open(self.config, "w") as file:
            file.write(f"export = {json.dumps(exports)}\n")

    def reload(self, server, *exports):
        self.configure(*exports)
        server.process.send_signal(signal.SIGHUP)
        line = server.process.stdout.readline()
        self.assertTrue(line.startswith("exports: "), line + server.log())
        return line

    def remove(self, server):
        self.assertEqual(self.reload(server, "/other=memory"), "exports: removed /data\n")

    def unmounts(self):
        return subprocess.run(["umount", self.data], stderr=subprocess.DEVNULL).returncode == 0

    def comes_free(self, meanwhile=lambda: None):
        end = time.monotonic() + harness.PATIENCE
        while not self.unmounts():
            self.assertLess(time.monotonic(), end, "the disk stays busy")
            meanwhile()
            time.sleep(0.1)

    def clients(self, *arguments):
        result = stag("clients", *arguments, "--state", self.state)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return result.stdout

    def rows(self, what):
        return [json.loads(line) for line in self.clients(what, "--json").splitlines()]

    def refused(self, code, sentence, *arguments):
        result = stag("clients", *arguments, "--state", self.state)
        self.assertEqual((result.returncode, result.stdout), (code, ""), arguments)
        self.assertIn(sentence, result.stderr)

    def test_let_go_of_their_disk_when_a_mount_has_given_its_delegations_back(self):
        server = self.serve()
        with open(os.path.join(self.data, "file"), "w") as file:
            file.write("content")
        mount = os.path.join(self.folder, "mount")
        os.mkdir(mount)
        done = stag("mount", server.tcp("/data"), mount)
        if "FUSE does not mount" in done.stderr:
            self.skipTest("FUSE does not mount here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(stag, "umount", "--lazy", mount)
        with open(os.path.join(mount, "file")) as file:
            self.assertEqual(file.read(), "content")
        self.assertEqual([row["recalled"] for row in self.rows("delegations")], [False])
        self.remove(server)
        self.comes_free()
        self.assertEqual(self.rows("delegations"), [])
        self.assertNotIn("DelegationRevoked", server.log())

    def test_let_go_of_it_when_the_delegations_that_a_client_keeps_are_revoked(self):
        server = self.serve("--lease", "10")
        holder = Holder(server.tcp_port)
        self.addCleanup(holder.close)
        self.remove(server)
        self.assertFalse(self.unmounts())
        (row,) = self.rows("delegations")
        self.assertEqual((row["export"], row["removed"], row["recalled"]), ("/data", True, True))
        self.comes_free(holder.status_flags)
        self.assertEqual(holder.status_flags() & RECALLABLE_STATE_REVOKED, RECALLABLE_STATE_REVOKED)
        self.assertIn("DelegationRevoked", server.log())

    def test_recall_nothing_of_exports_that_stay(self):
        server = self.serve()
        holder = Holder(server.tcp_port)
        self.addCleanup(holder.close)
        for exports in ((f"/data={self.data},ro", "/more=memory"), (f"/data={self.data},no_root_squash",)):
            self.reload(server, *exports)
            (row,) = self.rows("delegations")
            self.assertEqual((row["export"], row.get("removed", False), row["recalled"]), ("/data", False, False))
        self.assertEqual((holder.status_flags(), set(holder.called)), (0, {0}), "it was asked for nothing")

    def test_let_go_of_it_when_programs_have_closed_what_they_had_locked(self):
        server = self.serve()
        anna = self.ready_client(server)
        _, stateid, handle = anna.create_file(b"file")
        self.assertEqual(anna.lock(handle, stateid, 0), OK)
        self.remove(server)
        self.assertFalse(self.unmounts())
        (row,) = self.rows("locks")
        self.assertEqual((row["export"], row["removed"]), ("/data", True))
        self.assertIn("/data (removed)", self.clients("opens"))
        self.assertEqual(anna.in_session(words(PUTFH) + opaque(handle), words(CLOSE, 0) + stateid)[0], STALE)
        self.assertEqual(self.rows("locks") + self.rows("opens"), [])
        self.comes_free()

    def test_let_go_of_it_when_hosts_have_released_their_locks_of_version_3(self):
        server = self.serve()
        anna = self.ready_client(server)
        handle = anna.create_file(b"file")[2]
        for first in (5, 50):
            self.assertEqual(nlm_lock(anna, b"host", handle, first, 10), NLM_GRANTED)
        self.assertEqual(stag("cat", server.tcp("/data/file") + "&version=3").returncode, 0)
        self.remove(server)
        self.assertFalse(self.unmounts())
        self.assertEqual([(row["export"], row["removed"]) for row in self.rows("locks")], [("/data", True)] * 2)
        for first in (5, 50):
            self.assertEqual(nlm_unlock(anna, b"host", handle, first, 10), NLM_GRANTED)
        self.comes_free()

    def test_let_go_of_it_when_an_administrator_takes_away_what_is_left(self):
        server = self.serve()
        anna = self.ready_client(server)
        _, stateid, handle = anna.create_file(b"file")
        self.assertEqual(anna.lock(handle, stateid, 0), OK)
        self.assertEqual(nlm_lock(anna, b"host", handle, 50, 10), NLM_GRANTED)
        self.refused(1, "export /data is served: take it out of the exports first", "revoke", "--export", "/data")
        self.refused(1, "no export /typo was removed", "revoke", "--export", "/typo")
        self.assertEqual(len(self.rows("locks")), 2)
        self.remove(server)
        self.assertFalse(self.unmounts())
        self.assertEqual(self.clients("revoke", "--export", "/data/"), "2 revoked.\n")
        self.assertIn("all of export /data: 1 opens and delegations, 1 locks by NLM", server.log())
        self.comes_free()
        self.assertEqual(self.clients("revoke", "--export", "/data"), "0 revoked.\n")
        subprocess.run(["mount", "-t", "tmpfs", "none", self.data], check=True)
        self.assertEqual(anna.in_session(words(PUTFH) + opaque(handle), words(CLOSE, 0) + stateid)[0], STALE)

    # For the sake of programs that want the file the server has a lease of it once the client has lapsed.
    def test_let_go_of_it_when_the_locks_of_a_client_that_has_gone_are_taken_away(self):
        server = self.serve("--lease", "10")
        anna = self.ready_client(server)
        _, stateid, handle = anna.create_file(b"file")
        self.assertEqual(anna.lock(handle, stateid, 0), OK)
        anna.close()
        while self.rows("list")[0]["state"] != "courtesy":
            time.sleep(0.1)
        self.remove(server)
        self.assertFalse(self.unmounts())
        self.assertEqual(self.clients("revoke", "--export", "/data"), "1 revoked.\n")
        self.comes_free()

    def test_come_back_with_what_their_clients_hold(self):
        server = self.serve()
        anna = self.ready_client(server)
        _, stateid, handle = anna.create_file(b"file")
        self.remove(server)
        self.reload(server, f"/data={self.data},no_root_squash")
        self.assertNotIn("removed", self.rows("opens")[0])
        self.assertEqual(anna.lock(handle, stateid, 0), OK)
        self.reload(server, "/other=memory")
        self.assertEqual(self.clients("revoke", "--export", "/data"), "1 revoked.\n")
        self.reload(server, f"/data={self.data},no_root_squash")
        self.assertEqual(anna.in_session(words(PUTFH) + opaque(handle), words(CLOSE, 0) + stateid)[0], ADMIN_REVOKED)

    def test_are_named_beside_revoke_alone(self):
        for words_ in (("opens", "--export", "/data"), ("revoke", "--export", "/data", "0" * 24)):
            self.refused(2, "--export is for revoke, and stands in place of the ID", *words_)


if __name__ == "__main__":
    if not harness.may_mount():
        print("skipped: no right to mount a file system (CAP_SYS_ADMIN)")
        sys.exit(harness.SKIPPED)
    harness.enter_mount_namespace()
    harness.main()
