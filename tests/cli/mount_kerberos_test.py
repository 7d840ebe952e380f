"""A mount with Kerberos: who the user is, a ticket that expires under it, and a server that forgets everybody.

Needs a KDC (kdc.py); is skipped where its programs are missing.
"""
import errno
import itertools
import os
import pwd
import subprocess
import sys
import time

import harness
import kdc
import mounted
from harness import PATIENCE, Server, stag
from mounted import Mounted

# A user of every Debian machine who is not the one that runs this, nor anonymous.
USER = "games"
WAYS = (("3", "krb5"), ("4.0", "krb5i"), ("4.1", "krb5i"), ("4.2", "krb5p"))
# Locks a file, writes to it at once and for each line that comes, and says what came of it.
HOLDER = """
import errno, fcntl, os, sys
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
fcntl.lockf(file, fcntl.LOCK_EX)
while True:
    try:
        os.write(file, b"x")
        os.fsync(file)
        print("done", flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
    if not sys.stdin.readline():
        break
"""


class Kerberos(Mounted):
    def setUp(self):
        super().setUp()
        # Tickets outlive themselves by a second in place of five minutes.
        self.realm = kdc.Realm(self.at("realm"), clockskew=1)
        self.addCleanup(self.realm.stop)
        self.realm.add_user(USER)
        self.arguments = ("--keytab", self.realm.keytab("nfs.keytab", "nfs/localhost"), "--lease", "10", "--grace", "10")
        os.chmod(self.there(), 0o1777)
        for folder in (self.work, self.served):
            os.chmod(folder, 0o755)
        self.server_of_realm = self.start()
        self.unused = itertools.count()

    def start(self, **options):
        server = Server([f"/x={self.there()},sec=krb5:krb5i:krb5p"], self.at("state"), self.arguments, env=self.realm.environment(), **options)
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def mount_all(self, lifetime, *options):
        """In every way, by a ticket of that lifetime; yields the directories."""
        user, server = self.realm.login(USER, lifetime=lifetime), self.server_of_realm
        for version, flavor in WAYS:
            self.directory = self.at(version)
            os.mkdir(self.directory)
            self.addCleanup(stag, "umount", "--lazy", self.directory)
            self.mount(*options, "--log-file", self.at("log." + version), url=f"nfs://localhost:{server.rdma_port}/x?mountport={server.tcp_port}&sec={flavor}&version={version}", env=user)
        return [self.at(version) for version, _ in WAYS]

    def hold(self, directory):
        """A program that writes by the mount in `directory` each time that it is asked."""
        program = subprocess.Popen([sys.executable, "-c", HOLDER, os.path.join(directory, os.path.basename(directory))], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        for clean_up in (program.stdin.close, program.stdout.close, program.wait, program.kill):
            self.addCleanup(clean_up)
        self.assertEqual(program.stdout.readline(), "done\n")
        return program

    @staticmethod
    def ask(program):
        program.stdin.write("again\n")
        program.stdin.flush()

    def writes(self, program):
        self.ask(program)
        return program.stdout.readline().rstrip("\n")

    def until_tickets_end(self, cache):
        deadline = time.monotonic() + PATIENCE
        while self.realm.has_tickets(cache):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def until_it_fails_with(self, name, program):
        """Each call may have begun in a context of its own, whose end is known by the second."""
        deadline, came = time.monotonic() + PATIENCE, None
        while came != name:
            self.assertLess(time.monotonic(), deadline, came)
            came = self.writes(program)

    def until_a_look_up_fails_with(self, number, directory):
        """Of names that were not asked for yet."""
        deadline, failed = time.monotonic() + PATIENCE, None
        while failed != number:
            self.assertLess(time.monotonic(), deadline, failed)
            try:
                os.stat(os.path.join(directory, f"none{next(self.unused)}"))
            except OSError as error:
                failed = error.errno

    def test_is_the_user_s_and_needs_a_ticket_that_has_not_expired(self):
        directories = self.mount_all("20s")
        holders = [self.hold(directory) for directory in directories]
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER).pw_uid
            self.assertEqual({os.stat(self.there(version)).st_uid for version, _ in WAYS}, {user})
        for directory in directories:
            self.until_a_look_up_fails_with(errno.EKEYEXPIRED, directory)
        for holder in holders:
            self.until_it_fails_with("EKEYEXPIRED", holder)
        self.realm.login(USER)
        for directory in directories:
            self.until_a_look_up_fails_with(errno.ENOENT, directory)
        self.assertEqual([self.writes(holder) for holder in holders], ["done"] * len(WAYS))

    def test_goes_on_by_all_its_connections_where_the_server_was_killed(self):
        directories, first = self.mount_all("1h", "-o", "nconnect=3"), self.server_of_realm
        for version, _ in WAYS:
            self.assertNotIn(b"FewerConnections", self.read(self.at("log." + version)), version)
        holders = [self.hold(directory) for directory in directories]
        first.process.kill()
        first.process.wait()
        self.start(ports=("--rdma-port", str(first.rdma_port), "--tcp-port", str(first.tcp_port)))
        for _ in range(3):
            self.assertEqual([self.writes(holder) for holder in holders], ["done"] * len(WAYS))
        self.assertEqual({self.read(self.there(version)) for version, _ in WAYS}, {b"xxxx"})
        first.process.stdout.close()
        first.errors.close()

    def test_goes_on_after_an_outage_that_is_longer_than_a_token_is_good_for(self):
        """Here that is a second."""
        directories, first = self.mount_all("20s"), self.server_of_realm
        holders = [self.hold(directory) for directory in directories]
        first.process.kill()
        first.process.wait()
        self.until_tickets_end("tickets")
        self.realm.login(USER)
        for holder in holders:
            self.ask(holder)
        # Of the time that passes meanwhile.
        self.realm.login(USER, cache="meanwhile", lifetime="10s")
        self.until_tickets_end("meanwhile")
        self.start(ports=("--rdma-port", str(first.rdma_port), "--tcp-port", str(first.tcp_port)))
        self.assertEqual([holder.stdout.readline() for holder in holders], ["done\n"] * len(WAYS))
        first.process.stdout.close()
        first.errors.close()


if __name__ == "__main__":
    if kdc.MISSING:
        print(f"skipped: no {', '.join(kdc.MISSING)} (Debian's krb5-kdc, krb5-admin-server, krb5-user)", file=sys.stderr)
        sys.exit(harness.SKIPPED)
    mounted.main()
