#!/usr/bin/env python3
"""`stag clients`: what an administrator sees of a running server, takes away, and is told when nobody answers."""
import json
import os
import signal
import socket
import stat
import struct
import unittest

import harness
from harness import stag
from nfs4_client import (
    BACK_CHANNEL, GETFH, LOOKUP, NLM_DENIED, NLM_GRANTED, OK, PUTFH, PUTROOTFH, REPLY, SEQUENCE, Case, Client, nlm_lock, opaque, words)

BADSESSION, STALE_CLIENTID, ADMIN_REVOKED, DENIED, BAD_STATEID = 10052, 10022, 10047, 10010, 10025
DELEGRETURN, READ, FREE_STATEID = 8, 25, 45
NO_DELEGATION = 0
ADMIN_STATE_REVOKED = 0x20  # SEQ4_STATUS


class Holder(Client):
    """A client that can be called back on its connection, and has a delegation of /data/file."""

    def __init__(self, port):
        super().__init__(port, b"holder")
        self.called = []  # procedures of the callback program
        self.exchange_id()
        assert self.create_session(flags=BACK_CHANNEL) == OK and self.flags == BACK_CHANNEL
        assert self.reclaim_complete() == OK
        self.delegation = None
        # An OPEN waits for the answer of a client for a moment only.
        while self.delegation is None:
            self.open()

    def exchange(self, message):
        self.socket.sendall(words(0x80000000 | len(message)) + message)
        while True:
            record = self.read(struct.unpack(">I", self.read(4))[0] & 0x7FFFFFFF)
            if struct.unpack_from(">I", record, 4)[0] == REPLY:
                return record
            self.called.append(struct.unpack_from(">I", record, 20)[0])
            self.socket.sendall(words(0x80000000 | 24) + record[:4] + words(REPLY, 0, 0, 0, 0))

    def open(self):
        status, results = self.in_session(
            words(PUTROOTFH), words(LOOKUP) + opaque(b"data"), self.open_operation(words(0) + opaque(b"file"), True), words(GETFH))
        assert status == OK, status
        self.handle = self.last_handle(results)
        # Behind change_info4 and rflags is a bitmap, and then the delegation.
        at = 24 + 16 + 20 + 4
        at += 4 + 4 * struct.unpack_from(">I", results, at)[0]
        if struct.unpack_from(">I", results, at)[0] != NO_DELEGATION:
            self.delegation = results[at + 4:at + 20]

    def uses_it(self, operation, *arguments):
        """The status of an operation whose first argument is the delegation's stateid."""
        return self.in_session(words(PUTFH) + opaque(self.handle), words(operation) + self.delegation + words(*arguments))[0]

    def status_flags(self):
        """Those of SEQUENCE."""
        self.sequence += 1
        status, results = self.compound(words(SEQUENCE) + self.session + words(self.sequence, 0, 0, 0))
        assert status == OK, status
        return struct.unpack_from(">I", results, 8 + 32)[0]


class Clients(Case):
    def setUp(self):
        super().setUp()
        self.socket = os.path.join(self.state, "control")

    def good(self, *arguments):
        result = stag("clients", *arguments, "--state", self.state)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return result.stdout

    def rows(self, *arguments):
        return [json.loads(line) for line in self.good(*arguments, "--json").splitlines()]

    def bad(self, code, sentence, *arguments):
        result = stag("clients", *arguments)
        self.assertEqual((result.returncode, result.stdout), (code, ""), arguments)
        self.assertIn(sentence, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    @staticmethod
    def number(client):
        return str(int.from_bytes(client.clientid, "big"))

    def test_lists_clients_and_what_they_hold(self):
        server = self.start()
        anna, bert = self.ready_client(server), self.ready_client(server, b"bert\x1b[31m")
        _, stateid, handle = anna.create_file(b"file")
        self.assertEqual(anna.lock(handle, stateid, 0), OK)
        rows = {row["client"]: row for row in self.rows()}
        self.assertEqual(set(rows), {self.number(anna), self.number(bert)})
        row = rows[self.number(anna)]
        self.assertEqual(
            (row["address"], row["name"], row["version"], row["state"], row["opens"], row["locks"], row["sessions"], row["lease"]),
            ("127.0.0.1", "anna", "4.1", "confirmed", 1, 1, 1, 90))
        lines = self.good().splitlines()
        self.assertEqual(lines[0].split(), "CLIENT ADDRESS VERS STATE IDLE OPENS LOCKS DELEGS SESS CALLBACK NAME".split())
        self.assertEqual(len(lines), 3)
        self.assertNotIn("\x1b", self.good())

        (open_row,) = self.rows("opens")
        self.assertEqual((open_row["client"], open_row["export"], open_row["access"], open_row["deny"]), (self.number(anna), "/data", "rw", "--"))
        self.assertEqual(open_row["owner"], "opener")
        (lock_row,) = self.rows("locks", "--client", self.number(anna))
        self.assertEqual((lock_row["mode"], lock_row["first"], lock_row["last"]), ("write", 0, 9))
        self.assertEqual(self.rows("locks", "--client", self.number(bert)), [])
        self.assertEqual(self.rows("delegations"), [])
        self.assertEqual(len(self.good("opens").splitlines()), 2)
        self.assertEqual(server.end(), 0)

    def test_lists_and_ends_hosts_that_have_locks_of_version_3(self):
        server = self.start()
        anna = self.ready_client(server)
        _, _, handle = anna.create_file(b"file")
        self.assertEqual(nlm_lock(anna, b"old\x1b", handle, 5, 10), NLM_GRANTED)
        host = "127.0.0.1/old\x1b"
        (row,) = [row for row in self.rows() if row["version"] == "nlm"]
        self.assertEqual((row["client"], row["address"], row["name"], row["locks"]), (host, "127.0.0.1", "old\x1b", 1))
        self.assertNotIn("\x1b", self.good())
        (lock_row,) = self.rows("locks")
        self.assertEqual((lock_row["client"], lock_row["export"], lock_row["mode"], lock_row["first"], lock_row["last"]), (host, "/data", "write", 5, 14))
        self.assertEqual(self.rows("locks", "--client", host), [lock_row])
        self.assertEqual(self.rows("locks", "--client", self.number(anna)), [])
        self.assertEqual(nlm_lock(anna, b"new", handle, 5, 10), NLM_DENIED)
        self.good("expire", host)
        self.assertEqual(nlm_lock(anna, b"new", handle, 5, 10), NLM_GRANTED)
        self.assertEqual([row["name"] for row in self.rows() if row["version"] == "nlm"], ["new"])
        self.assertIn("host 127.0.0.1/old", server.log())
        self.bad(1, "there is no client 127.0.0.1/old", "expire", host, "--state", self.state)
        self.bad(1, "there is no client 127.0.0.1/none", "--client", "127.0.0.1/none", "--state", self.state)

    def test_ends_hosts_whose_names_are_no_text(self):
        server = self.start()
        anna = self.ready_client(server)
        _, _, handle = anna.create_file(b"file")
        for name, text in ((b"a\xff", "a%FF"), (b"\x1b", "%1B"), (b"\xff" * 1024, "%FF" * 1024), (b"\x01" * 1024, "%01" * 1024)):
            host = f"127.0.0.1/{text}"
            for given in (host, os.fsdecode(b"127.0.0.1/" + name)):
                self.assertEqual(nlm_lock(anna, name, handle, 5, 10), NLM_GRANTED)
                for what in ("list", "locks"):
                    self.assertIn(f"\n{host} ", self.good(what))
                self.assertEqual(len(self.rows("locks", "--client", given)), 1)
                (row,) = self.rows("--client", given)
                self.assertIn(row.get("client_bytes", host), host)
                self.good("expire", given)
                self.assertEqual(self.rows("locks"), [])
        # The name itself comes before what it may stand for.
        for name, first in ((b"%FF", 0), (b"\xff", 10)):
            self.assertEqual(nlm_lock(anna, name, handle, first, 1), NLM_GRANTED)
        for left in ([10], []):
            self.good("expire", "127.0.0.1/%FF")
            self.assertEqual([row["first"] for row in self.rows("locks")], left)
        self.assertEqual(server.end(), 0)

    def test_revokes_one_lock_of_version_3(self):
        server = self.start()
        anna = self.ready_client(server)
        _, _, handle = anna.create_file(b"file")
        self.assertEqual(nlm_lock(anna, b"old", handle, 5, 10), NLM_GRANTED)
        self.assertEqual(nlm_lock(anna, b"old", handle, 50, 10), NLM_GRANTED)
        names = {row["first"]: row["lock"] for row in self.rows("locks")}
        self.assertIn(names[5], self.good("locks"))
        self.assertEqual(nlm_lock(anna, b"new", handle, 5, 10), NLM_DENIED)
        self.good("revoke", names[5])
        self.assertEqual(nlm_lock(anna, b"new", handle, 50, 10), NLM_DENIED)
        self.assertEqual(nlm_lock(anna, b"new", handle, 5, 10), NLM_GRANTED)
        self.assertEqual(sorted((row["client"][-3:], row["first"]) for row in self.rows("locks")), [("new", 5), ("old", 50)])
        self.assertIn(f"lock {names[5]} of host 127.0.0.1/old", server.log())
        self.bad(1, f"there is no lock {names[5]}", "revoke", names[5], "--state", self.state)

    def test_lists_more_opens_than_one_page_has(self):
        server = self.start()
        anna = self.ready_client(server)
        for i in range(300):
            self.assertEqual(anna.create_file(b"file %d" % i)[0], OK)
        rows = self.rows("opens")
        self.assertEqual(len({row["stateid"] for row in rows}), 300)
        self.assertEqual(len(rows), 300)

    def test_ends_a_client(self):
        server = self.start()
        anna = self.ready_client(server)
        anna.create_file(b"file")
        self.good("expire", self.number(anna))
        self.assertEqual(self.rows(), [])
        self.assertEqual(self.rows("opens"), [])
        self.assertEqual(anna.in_session(words(PUTROOTFH))[0], BADSESSION)
        anna.create = words(2)
        self.assertEqual(anna.create_session(), STALE_CLIENTID)
        self.assertIn(f"by user {os.geteuid()}, process ", server.log())
        self.assertIn(f"client {self.number(anna)} at 127.0.0.1", server.log())
        self.bad(1, f"there is no client {self.number(anna)}", "expire", self.number(anna), "--state", self.state)

    def test_revokes_one_open(self):
        server = self.start()
        anna = self.ready_client(server)
        _, stateid, handle = anna.create_file(b"file")
        self.assertEqual(anna.create_file(b"other")[0], OK)
        self.good("revoke", stateid[4:].hex())
        self.assertEqual(anna.lock(handle, stateid, 0), ADMIN_REVOKED)
        self.assertEqual(sorted(row.get("revoked", False) for row in self.rows("opens")), [False, True])
        self.assertIn("stateid " + stateid[4:].hex(), server.log())
        self.bad(1, "there is no stateid", "revoke", "0" * 24, "--state", self.state)
        self.bad(1, "24 hexadecimal digits", "revoke", "xyz", "--state", self.state)

    def test_revokes_one_lock_of_version_4(self):
        server = self.start()
        anna, bert = self.ready_client(server), self.ready_client(server, b"bert")
        _, stateid, handle = anna.create_file(b"file")
        self.assertEqual(anna.lock(handle, stateid, 0), OK)
        _, other, handle = bert.create_file(b"file")
        self.assertEqual(bert.lock(handle, other, 0), DENIED)
        self.good("revoke", self.rows("locks")[0]["stateid"])
        self.assertEqual(bert.lock(handle, other, 0), OK)
        self.assertEqual([row["revoked"] for row in self.rows("opens") if "revoked" in row], [], "its open stays")

    def test_revokes_one_delegation_and_its_client_is_told_until_it_frees_it(self):
        server = harness.Server(["/data=memory,no_root_squash"], self.state, [])
        self.addCleanup(self.kill, server)
        holder = Holder(server.tcp_port)
        self.addCleanup(holder.close)
        name = holder.delegation[4:].hex()
        (row,) = self.rows("delegations")
        self.assertEqual((row["stateid"], row["client"], row.get("revoked", False)), (name, self.number(holder), False))
        self.assertEqual((holder.uses_it(READ, 0, 0, 10), holder.status_flags()), (OK, 0))
        self.good("revoke", name)
        self.assertTrue(self.rows("delegations")[0]["revoked"])
        self.assertEqual(holder.uses_it(READ, 0, 0, 10), ADMIN_REVOKED)
        self.assertEqual(holder.uses_it(DELEGRETURN), ADMIN_REVOKED)
        self.assertEqual(holder.status_flags(), ADMIN_STATE_REVOKED)
        self.assertEqual(self.ready_client(server, b"other").create_file(b"file")[0], OK, "it is in nobody's way")
        self.assertEqual(set(holder.called), {0}, "nothing was recalled")
        self.assertEqual(holder.uses_it(FREE_STATEID), OK)
        self.assertEqual((holder.status_flags(), self.rows("delegations")), (0, []))
        self.assertEqual(holder.uses_it(READ, 0, 0, 10), BAD_STATEID)
        self.bad(1, "there is no stateid", "revoke", name, "--state", self.state)

    def test_of_a_server_that_is_not_there_name_the_path(self):
        self.bad(1, f"no server listens at {self.socket}; is 'stag serve' running?", "--state", self.state)
        server = self.start()
        self.assertEqual(server.end(), 0)
        self.assertFalse(os.path.exists(self.socket))
        self.bad(1, f"no server listens at {self.socket}", "--control", self.socket)

    def test_of_a_server_that_stands_still_end_with_a_sentence(self):
        """Monitoring asks so, and must not wait with the server."""
        harness.stand_still(self, self.start().process)
        for command in (["status"], ["status", "--json"], ["clients"], ["clients", "opens"], ["top", "--once"]):
            result = stag(*command, "--state", self.state, "--timeout", "1")
            self.assertEqual((result.returncode, result.stdout, result.stderr), (
                1, "", f"stag {command[0]}: the server has not answered for 1 s; is it stopped, or its machine too busy? --timeout N waits longer\n"))
        usual = stag("status", "--state", self.state)
        self.assertIn("the server has not answered for 5 s;", usual.stderr)
        changed = stag("clients", "expire", "1", "--state", self.state, "--timeout", "1")
        self.assertIn("the server has not answered for 1 s; if it goes on, it may still do what it was asked", changed.stderr)

    def test_of_the_command_line(self):
        wrong = stag("clients", "everything")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("everything not in {list,opens,locks,delegations,expire,revoke,adopt,end-grace}", wrong.stderr)
        self.bad(2, "expire whom or what?", "expire")
        self.bad(2, "adopt whose clients?", "adopt")
        self.bad(2, "end-grace takes no ID", "end-grace", "7")
        self.bad(2, "opens takes no '7'; --client 7", "opens", "7")
        self.bad(2, "--client is for listings", "expire", "7", "--client", "7")

    def test_replaces_the_socket_of_a_server_that_was_killed(self):
        self.kill(self.start())
        self.assertTrue(stat.S_ISSOCK(os.lstat(self.socket).st_mode))
        self.bad(1, "no server listens", "--state", self.state)
        self.start()
        self.assertEqual(self.rows(), [])

    def test_leaves_the_socket_of_a_running_server_alone(self):
        path = os.path.join(self.folder, "socket")
        self.start("--control", path)
        result = stag("serve", "--state", os.path.join(self.folder, "second"), "--export", "/m=memory", "--tcp-port", "0", "--rdma-port", "0",
                      "--control", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"cannot make the control socket {path} (--control): another server listens there", result.stderr)
        self.assertEqual(stag("clients", "--control", path).returncode, 0)

    def test_goes_without_a_socket_where_none_is_wanted_or_can_be(self):
        self.start("--control", "none")
        self.assertFalse(os.path.exists(self.socket))
        self.bad(1, "no server listens", "--state", self.state)
        self.state = os.path.join(self.folder, "x" * 120)
        server = self.start()
        self.assertIn("the control socket cannot be made", server.log())

    def test_is_for_the_user_of_the_server_and_a_group_that_looks(self):
        server = self.start()
        self.assertEqual(stat.S_IMODE(os.lstat(self.socket).st_mode), 0o600)
        self.assertEqual(server.end(), 0)
        if os.geteuid() != 0:
            self.skipTest("only root can be somebody else")
        os.chmod(self.folder, 0o755)
        server = self.start("--control-group", "nogroup")
        anna = self.ready_client(server)
        os.chmod(self.state, 0o755)
        self.assertEqual(stat.S_IMODE(os.lstat(self.socket).st_mode), 0o660)

        def ask(gid, request):
            """As user 65534 of this group; nothing where it may not connect."""
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                answer = b""
                try:
                    os.setgroups([])
                    os.setgid(gid)
                    os.setuid(65534)
                    with socket.socket(socket.AF_UNIX) as peer:
                        peer.connect(self.socket)
                        peer.sendall(json.dumps(request).encode() + b"\n")
                        answer = peer.makefile("rb").readline()
                except OSError:
                    pass
                os.write(writing, answer)
                os._exit(0)
            os.close(writing)
            os.waitpid(child, 0)
            with os.fdopen(reading, "rb") as answers:
                return answers.read().decode()

        self.assertEqual(ask(12345, {"command": "clients"}), "")
        self.assertIn("anna", ask(65534, {"command": "clients"}))
        self.assertIn("only root and the user of the server may change anything", ask(65534, {"command": "expire", "client": self.number(anna)}))
        self.assertIn("only root", ask(65534, {"command": "revoke", "stateid": "0" * 24}))
        self.assertIn("only root", ask(65534, {"command": "adopt", "directory": self.folder}))
        self.assertIn("only root", ask(65534, {"command": "end-grace"}))
        self.assertEqual(len(self.rows()), 1)
        result = stag("serve", "--state", os.path.join(self.folder, "second"), "--export", "/m=memory", "--control-group", "no such group")
        self.assertIn("there is no group 'no such group'", result.stderr)

    @unittest.skipIf(os.geteuid() != 0, "only root can be somebody else")
    def test_is_not_promised_to_a_group_that_it_cannot_be_given_to(self):
        os.chmod(self.folder, 0o777)
        state = os.path.join(self.folder, "theirs")
        for more in ((), ("--check",)):
            result = stag("serve", "--state", state, "--export", "/m=memory", "--rdma-port", "0", "--tcp-port", "0", "--control-group", "root", *more,
                          user=65534, group=65534, extra_groups=[])
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("may not give the control socket to the group 'root' (Operation not permitted)", result.stderr)

    def test_stays_over_a_reload(self):
        config = os.path.join(self.folder, "stag.toml")

        def write(name):
            with open(config, "w") as file:
                file.write(f'export = ["/{name}={self.data},no_root_squash"]\n')

        write("data")
        server = harness.Server([], self.state, ["--config", config])
        self.addCleanup(self.kill, server)
        anna = self.ready_client(server)
        self.assertEqual(anna.create_file(b"file")[0], OK)
        write("other")
        server.process.send_signal(signal.SIGHUP)
        while not server.process.stdout.readline().startswith("exports:"):
            pass
        self.assertEqual(len(self.rows()), 1)
        # Its export is gone, and it is still shown.
        (row,) = self.rows("opens")
        self.assertEqual((row["export"], row["removed"]), ("/data", True))


if __name__ == "__main__":
    harness.main()
