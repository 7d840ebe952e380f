#!/usr/bin/env python3
"""`stag clients adopt`: two servers of one folder, of which one is killed; its clients are moved to the other, which runs, and keep
what they have."""
import errno
import fcntl
import os
import shutil
import subprocess
import time
import unittest

import harness
from harness import stag
from nfs4_client import NLM_GRANTED, OK, PUTROOTFH, Case, nlm_lock, words

DENIED, GRACE, NO_GRACE, BADSESSION, RECLAIM_BAD, COMPLETE_ALREADY = 10010, 10013, 10033, 10052, 10034, 10054
NLM_DENIED_GRACE = 4


class Adopt(Case):
    def setUp(self):
        super().setUp()
        self.lost_state = os.path.join(self.folder, "lost")

    def two_servers(self):
        """The one that will be lost, and the one that goes on; they have the same key of file handles."""
        lost = self.start_in(self.lost_state)
        os.makedirs(self.state)
        shutil.copy(os.path.join(self.lost_state, "handle.key"), self.state)
        return lost, self.start_in(self.state)

    def start_in(self, state, *arguments):
        # What Ceph would look for is not there, whatever this machine has.
        server = harness.Server([f"/data={self.data},no_root_squash"], state, arguments, env={**os.environ, "CEPH_CONF": "/none/such"})
        self.addCleanup(self.kill, server)
        return server

    def adopt(self, directory=None):
        return stag("clients", "adopt", directory or self.lost_state, "--state", self.state)

    def adopted(self, output):
        done = self.adopt()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, output, ""))

    def refused(self, sentence, directory=None):
        done = self.adopt(directory)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(sentence, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def until_opened(self, fifo):
        """Somebody reads it, and waits for what is never written."""
        give_up = time.monotonic() + harness.PATIENCE
        while True:
            try:
                return self.addCleanup(os.close, os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
            except OSError as error:
                if error.errno != errno.ENXIO or time.monotonic() > give_up:
                    raise
            time.sleep(0.01)

    def eventually(self, client, name, before):
        """A file is made, once the grace period is over: its end is written first."""
        give_up = time.monotonic() + harness.PATIENCE
        while (made := client.create_file(name))[0] == before and time.monotonic() < give_up:
            time.sleep(0.01)
        self.assertEqual(made[0], OK)
        return made

    def test_a_lock_is_kept_at_the_server_that_goes_on(self):
        lost, other = self.two_servers()
        anna, bert = self.ready_client(lost), self.ready_client(other, b"bert")
        _, stateid, handle = anna.create_file(b"file")
        self.assertEqual(anna.lock(handle, stateid, 0), OK)
        self.assertEqual(bert.create_file(b"before")[0], OK)
        self.kill(lost)

        self.adopted("1 adopted; they may reclaim for 90 s.\n")
        self.assertIn("ClientsAdopted", other.log())
        self.assertEqual(bert.create_file(b"file")[0], GRACE)
        moved = self.client(other)
        moved.session = anna.session
        self.assertEqual(moved.in_session(words(PUTROOTFH))[0], BADSESSION)
        moved.connect()
        carl = self.client(other, b"carl").connect()
        self.assertEqual(carl.reclaim(handle)[0], RECLAIM_BAD)
        status, stateid = moved.reclaim(handle)
        self.assertEqual(status, OK)
        self.assertEqual(moved.lock(handle, stateid, 1), OK)
        self.assertEqual(bert.create_file(b"file")[0], GRACE)
        self.assertEqual(moved.reclaim_complete(), OK)
        _, stateid, same = self.eventually(bert, b"file", GRACE)
        self.assertEqual(same, handle)
        self.assertEqual(bert.lock(handle, stateid, 0), DENIED)
        self.assertEqual(moved.reclaim_complete(), COMPLETE_ALREADY)

        # What was adopted is not claimed a second time, here or there.
        self.adopted("There are no clients to be adopted.\n")
        self.assertEqual(moved.reclaim(handle)[0], NO_GRACE)
        again = self.start_in(self.lost_state)
        carl = self.ready_client(again, b"carl")
        self.assertEqual(carl.create_file(b"afterwards")[0], OK)

    def test_what_was_adopted_survives_a_crash(self):
        lost, other = self.two_servers()
        anna = self.ready_client(lost)
        _, stateid, handle = anna.create_file(b"file")
        self.kill(lost)
        self.adopted("1 adopted; they may reclaim for 90 s.\n")
        self.kill(other)
        other = self.start_in(self.state)
        anna = self.client(other).connect()
        self.assertEqual(anna.reclaim(handle)[0], OK)

    def test_a_host_with_locks_by_nlm_reclaims_there(self):
        lost, other = self.two_servers()
        anna = self.ready_client(lost)
        handle = anna.create_file(b"file")[2]
        self.assertEqual(nlm_lock(anna, b"host", handle, 5, 10), NLM_GRANTED)
        self.kill(lost)
        self.adopted("2 adopted; they may reclaim for 90 s.\n")
        self.assertEqual(os.listdir(os.path.join(self.lost_state, "locks/hosts")), [])
        self.assertEqual(os.listdir(os.path.join(self.state, "locks/hosts")), ["127.0.0.1"])
        moved = self.client(other).connect()
        self.assertEqual(nlm_lock(moved, b"other", handle, 5, 10), NLM_DENIED_GRACE)
        self.assertEqual(nlm_lock(moved, b"host", handle, 5, 10, reclaim=1), NLM_GRANTED)
        self.adopted("There are no clients to be adopted.\n")

    def test_records_that_are_elsewhere_are_not_passed_over(self):
        """As of a gateway with --records: nobody is adopted before those can be, too."""
        lost, other = self.two_servers()
        anna = self.ready_client(lost)
        handle = anna.create_file(b"file")[2]
        self.assertEqual(nlm_lock(anna, b"host", handle, 5, 10), NLM_GRANTED)
        self.kill(lost)
        note = os.path.join(self.lost_state, "nfs4-clients.place")
        with open(note, "w") as file:
            file.write("ceph:nfs/a\n")
        self.refused("in ceph:nfs/a: ")
        self.refused(f"nobody is adopted, for the version 4 clients of '{self.lost_state}' are recorded in ceph:nfs/a")
        self.refused("'stag clients adopt ceph:nfs/a?conf=FILE&id=NAME' goes first")
        with open(note, "wb") as file:
            file.write(b"ceph:/\x1b[2J\n")
        self.refused(f"'{note}' does not say where the records of version 4 clients are")
        self.assertEqual(os.listdir(os.path.join(self.lost_state, "locks/hosts")), ["127.0.0.1"])
        bert = self.ready_client(other, b"bert")
        self.assertEqual(bert.create_file(b"before")[0], OK, "there is no grace period")
        os.remove(note)
        self.adopted("2 adopted; they may reclaim for 90 s.\n")

    def test_a_start_that_keeps_its_records_in_the_directory_names_no_other_place(self):
        lost, _ = self.two_servers()
        self.kill(lost)
        with open(os.path.join(self.lost_state, "nfs4-clients.place"), "w") as file:
            file.write("ceph:nfs/a\n")
        lost = self.start_in(self.lost_state)
        self.assertEqual(self.ready_client(lost).create_file(b"file")[0], OK)
        self.kill(lost)
        self.adopted("1 adopted; they may reclaim for 90 s.\n")

    def test_it_is_said_that_nothing_is_known_of_clients_of_version_4(self):
        """As of a gateway of an earlier version with --records, or of one without version 4."""
        lost = self.start_in(self.lost_state, "--no-nfs4")
        os.makedirs(self.state)
        shutil.copy(os.path.join(self.lost_state, "handle.key"), self.state)
        self.start_in(self.state)
        self.kill(lost)
        self.adopted(
            "There are no clients to be adopted. No clients of version 4 are recorded there: if the lost gateway had --records, adopt them there, too.\n"
        )

    def test_the_state_directory_may_have_any_name(self):
        lost, _ = self.two_servers()
        self.assertEqual(self.ready_client(lost).create_file(b"file")[0], OK)
        self.kill(lost)
        before, self.lost_state = self.lost_state, self.lost_state + os.fsdecode(b"\xff%FF")
        os.rename(before, self.lost_state)
        self.adopted("1 adopted; they may reclaim for 90 s.\n")

    def test_the_time_is_that_of_the_longer_lease(self):
        lost = self.start_in(self.lost_state, "--lease", "300")
        self.assertEqual(self.ready_client(lost).create_file(b"file")[0], OK)
        os.makedirs(self.state)
        shutil.copy(os.path.join(self.lost_state, "handle.key"), self.state)
        self.start_in(self.state, "--lease", "30")
        self.kill(lost)
        self.adopted("1 adopted; they may reclaim for 300 s.\n")

    def test_refuses_what_it_could_not_keep(self):
        lost, other = self.two_servers()
        anna = self.ready_client(lost)
        self.refused("another 'stag serve' is using it")
        self.assertEqual(anna.create_file(b"file")[0], OK)
        self.kill(lost)
        self.refused("another 'stag serve' is using it", self.state)
        self.refused("is no state directory: there is no handle.key", self.folder)
        self.refused("'ceph:/a' names no pool of Ceph", "ceph:/a")
        key = os.path.join(self.lost_state, "handle.key")
        os.rename(key, key + ".true")
        with open(key, "w") as other_key:
            other_key.write("00" * 16 + "\n")
        self.refused("is not the one of this server")
        os.rename(key + ".true", key)
        bert = self.ready_client(other, b"bert")
        self.assertEqual(bert.create_file(b"file")[0], OK, "there is no grace period")
        self.adopted("1 adopted; they may reclaim for 90 s.\n")

    def test_that_waits_for_a_directory_keeps_no_server_from_an_orderly_end(self):
        """The records of clients that hold nothing are gone, as ever, and the next start waits for nobody."""
        limits = ("--drain", "1", "--store-patience", "1")
        server = self.start_in(self.state, *limits)
        anna = self.ready_client(server)
        status, stateid, handle = anna.create_file(b"closed")
        self.assertEqual((status, anna.close_file(handle, stateid)), (OK, OK))
        os.makedirs(self.lost_state)
        key = os.path.join(self.lost_state, "handle.key")
        os.mkfifo(key)
        with subprocess.Popen([harness.STAG, "clients", "adopt", self.lost_state, "--state", self.state], stderr=subprocess.PIPE, text=True) as adopting:
            self.until_opened(key)
            self.assertIn("still waits for", self.adopt(self.folder).stderr)
            server.process.terminate()
            self.assertIn("the server ended", adopting.communicate(timeout=harness.PATIENCE)[1])
        self.assertEqual(server.process.wait(harness.PATIENCE), 1, "it does not wait for ever")
        bert = self.ready_client(self.start_in(self.state), b"bert")
        self.assertEqual(bert.create_file(b"file")[0], OK, "there is no grace period")

    def test_a_server_without_version_4_adopts_nobody(self):
        lost = self.start_in(self.lost_state)
        self.ready_client(lost)
        self.kill(lost)
        os.makedirs(self.state)
        shutil.copy(os.path.join(self.lost_state, "handle.key"), self.state)
        self.start_in(self.state, "--no-nfs4")
        self.refused("no clients of version 4")

    def test_a_mount_that_is_moved_goes_on_with_its_lock(self):
        lost, other = self.two_servers()
        address = harness.Proxy(lost.tcp_port, "up", 1 << 40)
        self.addCleanup(address.cut)
        mount = os.path.join(self.folder, "mount")
        os.mkdir(mount)
        done = stag("mount", f"nfs://127.0.0.1:{address.port}/data?proto=tcp&version=4.1", mount)
        if done.returncode != 0 and "FUSE does not mount" in done.stderr:
            raise unittest.SkipTest("FUSE does not mount here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(stag, "umount", "--lazy", mount)
        with open(os.path.join(mount, "file"), "w+b", buffering=0) as file:
            file.write(b"before")
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)
            self.kill(lost)
            self.adopted("1 adopted; they may reclaim for 90 s.\n")
            address.target = other.tcp_port
            address.interrupt()
            file.write(b" and after")
            os.fsync(file)
            bert = self.ready_client(other, b"bert")
            _, stateid, handle = self.eventually(bert, b"file", GRACE)
            self.assertEqual(bert.lock(handle, stateid, 0), DENIED)
            fcntl.lockf(file, fcntl.LOCK_UN)
            self.assertEqual(bert.lock(handle, stateid, 0), OK)
        with open(os.path.join(self.data, "file"), "rb") as file:
            self.assertEqual(file.read(), b"before and after")


if __name__ == "__main__":
    harness.main()
