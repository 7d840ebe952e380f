"""Records of NFSv4 clients in the Ceph cluster (`--records ceph:POOL/NAMESPACE`, docs/scale.md): a restart, a lost gateway whose
clients another one adopts, and who is kept out. Run by tests/ceph/run, which starts the cluster."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import harness  # noqa: E402
import nfs4_client  # noqa: E402
from harness import stag  # noqa: E402
from nfs4_client import NLM_GRANTED, OK, nlm_lock  # noqa: E402

CONF = os.environ["STAG_CEPH_CONF"]
SERVERFAULT, DENIED, GRACE, NO_GRACE = 10006, 10010, 10013, 10033
POOL = "data"


class Records(nfs4_client.Case):
    def setUp(self):
        super().setUp()
        self.state_of = {}
        self.key = None
        # The cluster is that of all tests.
        self.prefix = f"{os.getpid()}.{self.id().rsplit('.', 1)[1]}"

    def place(self, name):
        return f"ceph:{POOL}/{self.prefix}.{name}"

    def state_directory(self, name):
        """A new one for each start, which has nothing but the key of the first one."""
        path = tempfile.mkdtemp(prefix=name, dir=self.folder)
        if self.key is not None:
            shutil.copy(self.key, path)
        self.state_of[name] = path
        return path

    def arguments(self, name):
        return ("--records", f"{self.place(name)}?conf={CONF}", "--lease", "60")

    def gateway(self, name, *arguments, state=None):
        state = state or self.state_directory(name)
        server = harness.Server([f"/data={self.data},no_root_squash"], state, (*self.arguments(name), *arguments))
        self.key = self.key or shutil.copy(os.path.join(state, "handle.key"), self.folder)
        self.addCleanup(self.kill, server)
        return server

    def refused_start(self, sentence, *arguments):
        done = stag("serve", "--export", f"/data={self.data}", "--rdma-port", "0", "--tcp-port", "0", "--state", os.path.join(self.folder, "refused"), *arguments)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn(sentence, done.stderr.splitlines()[-1])

    def adopt(self, place, by):
        return stag("clients", "adopt", place, "--state", self.state_of[by])

    def adopted(self, place, by, output):
        done = self.adopt(place, by)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, output, ""))

    def refused(self, place, by, sentence):
        done = self.adopt(place, by)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(sentence, done.stderr)

    def locked_file(self, server, owner=b"anna"):
        client = self.ready_client(server, owner)
        status, stateid, handle = client.create_file(b"file")
        self.assertEqual((status, client.lock(handle, stateid, 0)), (OK, OK))
        return handle

    def reclaimed(self, server, handle, owner=b"anna"):
        client = self.client(server, owner).connect()
        status, stateid = client.reclaim(handle)
        self.assertEqual((status, client.lock(handle, stateid, 1)), (OK, OK))
        self.assertEqual(client.reclaim_complete(), OK)
        return client

    def eventually(self, client, name):
        """A file is made, once the grace period is over: its end is written first."""
        give_up = time.monotonic() + harness.PATIENCE
        while (made := client.create_file(name))[0] == GRACE and time.monotonic() < give_up:
            time.sleep(0.01)
        self.assertEqual(made[0], OK)
        return made

    def test_a_restart_finds_them_also_on_another_machine(self):
        """Whose state directory has nothing but the key. The first server is killed, the next one ends in order."""
        first = self.gateway("a")
        handle = self.locked_file(first)
        self.kill(first)
        again = self.gateway("a")
        self.assertIn("RecordsAwaited", again.log())
        bert = self.ready_client(again, b"bert")
        self.assertEqual(bert.create_file(b"file")[0], GRACE)
        self.reclaimed(again, handle)
        _, stateid, _ = self.eventually(bert, b"file")
        self.assertEqual(bert.lock(handle, stateid, 0), DENIED)
        self.assertEqual(again.end(), 0)
        last = self.gateway("a")
        self.assertNotIn("RecordsAwaited", last.log())
        self.reclaimed(last, handle)

    def test_another_gateway_adopts_them_without_any_directory_of_the_lost_one(self):
        lost = self.gateway("lost")
        handle = self.locked_file(lost)
        other = self.gateway("other")
        bert = self.ready_client(other, b"bert")
        self.assertEqual(bert.create_file(b"before")[0], OK)
        self.kill(lost)
        shutil.rmtree(self.state_of["lost"])
        self.adopted(self.place("lost"), "other", "1 adopted; they may reclaim for 60 s.\n")
        self.assertIn("ClientsAdopted", other.log())
        self.assertEqual(bert.create_file(b"file")[0], GRACE)
        self.reclaimed(other, handle)
        _, stateid, _ = self.eventually(bert, b"file")
        self.assertEqual(bert.lock(handle, stateid, 0), DENIED)
        self.adopted(self.place("lost"), "other", "There are no clients to be adopted.\n")
        # It is told apart: its own past has nothing for it any more.
        back = self.gateway("lost")
        self.assertEqual(self.client(back).connect().reclaim(handle)[0], NO_GRACE)

    def test_its_directory_says_where_they_are(self):
        """Once it has kept them in it, too."""
        state = self.state_directory("lost")
        before = harness.Server([f"/data={self.data},no_root_squash"], state)
        self.assertEqual(before.end(), 0)
        lost = self.gateway("lost", state=state)
        handle = self.locked_file(lost)
        self.assertEqual(nlm_lock(self.ready_client(lost, b"bert"), b"host", handle, 20, 10), NLM_GRANTED)
        other = self.gateway("other")
        self.kill(lost)
        self.adopted(state, "other", "2 adopted; they may reclaim for 60 s.\n")
        self.reclaimed(other, handle)
        self.adopted(state, "other", "There are no clients to be adopted.\n")

    def test_a_gateway_with_another_configuration_is_told_what_goes_first(self):
        lost = self.gateway("lost")
        handle = self.locked_file(lost)
        self.assertEqual(nlm_lock(self.ready_client(lost, b"bert"), b"host", handle, 20, 10), NLM_GRANTED)
        self.kill(lost)
        state = self.state_directory("other")
        other = harness.Server([f"/data={self.data},no_root_squash"], state, env={**os.environ, "CEPH_CONF": "/none/such"})
        self.addCleanup(self.kill, other)
        self.refused(self.state_of["lost"], "other", f"'stag clients adopt {self.place('lost')}?conf=FILE&id=NAME' goes first")
        self.adopted(f"{self.place('lost')}?conf={CONF}", "other", "1 adopted; they may reclaim for 90 s.\n")
        self.adopted(self.state_of["lost"], "other", "1 adopted; they may reclaim for 90 s.\n")
        self.reclaimed(other, handle)

    def test_hosts_with_locks_are_adopted_by_the_gateway_that_has_the_records_already(self):
        lost = self.gateway("a")
        handle = self.locked_file(lost)
        self.assertEqual(nlm_lock(self.ready_client(lost, b"bert"), b"host", handle, 20, 10), NLM_GRANTED)
        self.kill(lost)
        former = self.state_of["a"]
        again = self.gateway("a")
        self.adopted(former, "a", "1 adopted; they may reclaim for 60 s.\n")
        self.reclaimed(again, handle)

    def test_a_gateway_with_a_directory_adopts_those_in_the_cluster(self):
        lost = self.gateway("lost")
        handle = self.locked_file(lost)
        self.kill(lost)
        state = self.state_directory("other")
        other = harness.Server([f"/data={self.data},no_root_squash"], state)
        self.addCleanup(self.kill, other)
        self.adopted(f"{self.place('lost')}?conf={CONF}", "other", "1 adopted; they may reclaim for 90 s.\n")
        self.reclaimed(other, handle)

    def test_records_have_one_owner_as_long_as_it_lives(self):
        owner, other = self.gateway("owner"), self.gateway("other")
        sentence = f"in {self.place('owner')}: another server, at 127.0.0.1:"
        refusing = threading.Thread(target=self.refused_start, args=(sentence, *self.arguments("owner")))
        refusing.start()
        self.refused(self.place("owner"), "other", sentence)
        refusing.join()
        # What others wanted has not touched it.
        handle = self.locked_file(owner)
        self.refused(self.place("other"), "other", "has the records of this server itself")
        self.kill(owner)
        self.adopted(self.place("owner"), "other", "1 adopted; they may reclaim for 60 s.\n")
        self.reclaimed(other, handle)

    def test_one_that_only_seemed_dead_writes_no_more(self):
        """It stands still until another one has what it had."""
        lost = self.gateway("lost")
        self.locked_file(lost)
        self.gateway("other")
        harness.stand_still(self, lost.process)
        self.adopted(self.place("lost"), "other", "1 adopted; they may reclaim for 60 s.\n")
        lost.process.send_signal(signal.SIGCONT)
        bert = self.ready_client(lost, b"bert")
        self.assertEqual(bert.create_file(b"late")[0], SERVERFAULT)
        self.assertIn("ClientRecordsUnwritten", lost.log())

    def test_one_that_is_shut_out_writes_no_more_before_its_lock_is_to_be_renewed(self):
        """Ceph's VFS notices then; a write that is refused meanwhile it takes for done."""
        conf = os.path.join(self.folder, "hour.conf")
        with open(CONF, encoding="utf-8") as cluster, open(conf, "w", encoding="utf-8") as file:
            file.write(cluster.read() + "[client]\ncephsqlite lock renewal interval = 3600000\n")
        server = harness.Server([f"/data={self.data},no_root_squash"], self.state_directory("a"), ("--records", f"{self.place('a')}?conf={conf}", "--lease", "60"))
        self.addCleanup(self.kill, server)
        anna, bert = self.ready_client(server, b"anna"), self.ready_client(server, b"bert")
        self.assertEqual(anna.create_file(b"file")[0], OK)
        pool = ("rados", "--conf", CONF, "--pool", POOL, "--namespace", f"{self.prefix}.a")
        lock = json.loads(subprocess.check_output((*pool, "lock", "info", "nfs4-clients.db.0000000000000000", "striper.lock")))
        subprocess.run(("ceph", "--conf", CONF, "osd", "blocklist", "add", lock["lockers"][0]["addr"]), check=True, capture_output=True)
        self.assertEqual(bert.create_file(b"late")[0], SERVERFAULT)
        self.assertIn("the cluster has shut this server out", server.log())

    def test_those_of_the_state_directory_are_moved(self):
        state = self.state_directory("a")
        before = harness.Server([f"/data={self.data},no_root_squash"], state)
        self.addCleanup(self.kill, before)
        handle = self.locked_file(before)
        self.kill(before)
        moved = self.gateway("a", state=state)
        self.assertEqual(self.ready_client(moved, b"bert").create_file(b"file")[0], GRACE)
        self.kill(moved)
        again = self.gateway("a", state=state)
        self.reclaimed(again, handle)
        self.assertEqual(again.end(), 0)
        # Nobody claims by those that would be old by now, nor adopts them by this directory.
        self.assertIn("nfs4-clients.place", os.listdir(state))
        back = harness.Server([f"/data={self.data},no_root_squash"], state)
        self.addCleanup(self.kill, back)
        self.assertEqual(self.client(back).connect().reclaim(handle)[0], NO_GRACE)
        self.assertNotIn("nfs4-clients.place", os.listdir(state))

    def test_those_of_the_state_directory_are_gone_once_other_versions_alone_were_served(self):
        """Whoever was served then may have taken what they are about."""
        state = self.state_directory("a")
        before = harness.Server([f"/data={self.data},no_root_squash"], state)
        self.addCleanup(self.kill, before)
        handle = self.locked_file(before)
        self.kill(before)
        self.assertEqual(self.gateway("a", "--no-nfs4", state=state).end(), 0)
        again = self.gateway("a", state=state)
        self.assertEqual(self.client(again).connect().reclaim(handle)[0], NO_GRACE)

    def test_a_successor_waits_for_nothing(self):
        server = self.gateway("a")
        handle = self.locked_file(server)
        ports = ("--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port))
        following = harness.Server([f"/data={self.data},no_root_squash"], self.state_of["a"], (*self.arguments("a"), "--take-over"), ports=ports)
        self.addCleanup(self.kill, following)
        self.assertEqual(server.process.wait(harness.PATIENCE), 0)
        self.assertNotIn("RecordsAwaited", following.log())
        self.reclaimed(following, handle)

    def test_it_is_said_what_is_wrong(self):
        with_conf = f"?conf={CONF}"
        self.refused_start("the Ceph cluster has no pool 'nothing'", "--records", f"ceph:nothing/a{with_conf}")
        self.refused_start("cannot read the configuration of Ceph in /none/such", "--records", f"ceph:{POOL}/a?conf=/none/such")
        self.gateway("a")
        self.refused(self.place("nothing"), "a", f"in {self.place('nothing')}: no server has kept any there")
        self.refused(f"{self.place('nothing')}?conf=/none/such", "a", "cannot read the configuration of Ceph in /none/such")
        self.key = None
        stranger = self.gateway("stranger")
        self.locked_file(stranger)
        self.kill(stranger)
        self.refused(self.place("stranger"), "a", "had another handle.key than this one")


if __name__ == "__main__":
    harness.main()
