#!/usr/bin/env python3
"""`stag serve --manage-gids`: users have the groups that the server's own name service has for them, in place of the sixteen that calls carry."""
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import harness
from harness import Server, stag

ANNA, STRANGER = 4711, 4712
GROUPS = range(5001, 5021)
EIGHTEENTH = GROUPS[17]


@unittest.skipUnless(os.geteuid() == 0 and harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
class ManagedGroups(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-groups-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        os.chmod(self.work, 0o755)
        self.folder = os.path.join(self.work, "data")
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o755)
        self.secret = self.write("data/secret", "of a group\n")
        os.chown(self.secret, 0, EIGHTEENTH)
        os.chmod(self.secret, 0o040)
        self.users = self.write("passwd", f"root:x:0:0::/:/bin/sh\nanna:x:{ANNA}:{ANNA}::/:/bin/sh\n")
        self.groups = self.write("group", "")
        self.join(GROUPS)

    def write(self, name, text):
        path = os.path.join(self.work, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def join(self, groups):
        """Anna is in these, and in her own. The file stays the same one, which is mounted."""
        self.write("group", "root:x:0:\n" + f"anna:x:{ANNA}:\n" + "".join(f"g{gid}:x:{gid}:anna\n" for gid in groups))

    def start(self, *arguments, **options):
        # In mounts of its own, this is the server's name service.
        names = self.write("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
        script = ('mount --bind "$0" /etc/passwd && mount --bind "$1" /etc/group && mount --bind "$2" /etc/nsswitch.conf && shift 2 && exec "$@"')
        server = Server(options.pop("exports", (f"/data={self.folder}",)), os.path.join(self.work, "state"), arguments,
                        before=("unshare", "--mount", "sh", "-c", script, self.users, self.groups, names), **options)
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def read(self, server, query="", uid=ANNA, **options):
        return stag("cat", f"nfs://127.0.0.1:{server.tcp_port}/data/secret?proto=tcp&uid={uid}&gid={uid}{query}", **options)

    def reads(self, *arguments, **options):
        done = self.read(*arguments, **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "of a group\n", ""))

    def is_denied(self, *arguments, **options):
        done = self.read(*arguments, **options)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, "(?i)permission denied|access denied")

    def test_one_behind_the_sixteenth_permits(self):
        server = self.start("--manage-gids")
        for version in ("3", "4.0", "4.1", "4.2"):
            with self.subTest(version):
                self.reads(server, f"&version={version}")
        done = stag("cat", server.url("/data/secret") + f"&uid={ANNA}&gid={ANNA}")
        self.assertEqual((done.returncode, done.stdout), (0, "of a group\n"), done.stderr)

    def test_calls_have_no_more_than_they_carry_without_the_option(self):
        server = self.start()
        for version in ("3", "4.2"):
            self.is_denied(server, f"&version={version}")

    def claim(self, server):
        """By a program of a stranger that is in the group, on the client: its calls say so."""
        program = shutil.copy(harness.STAG, os.path.join(self.work, "stag"))
        os.chmod(program, 0o755)
        return subprocess.run([program, "cat", server.tcp("/data/secret")], capture_output=True, text=True, timeout=harness.PATIENCE,
                                      user=STRANGER, group=STRANGER, extra_groups=[EIGHTEENTH], cwd="/", env={**os.environ, "HOME": "/"})

    def test_what_a_client_claims_for_somebody_who_is_no_user_does_not_count(self):
        server = self.start()
        claimed = self.claim(server)
        self.assertEqual((claimed.returncode, claimed.stdout), (0, "of a group\n"), claimed.stderr)
        self.assertEqual(server.end(), 0)
        server = self.start("--manage-gids")
        self.assertEqual(self.claim(server).returncode, 1)
        # The group that he names as his own is left to him, as by mountd.
        os.chown(self.secret, 0, STRANGER)
        self.reads(server, uid=STRANGER)

    def test_squashing_comes_afterwards(self):
        server = self.start("--manage-gids", exports=(f"/data={self.folder},all_squash",))
        self.is_denied(server)

    def test_SIGHUP_asks_again(self):
        config = self.write("stag.toml", f'manage-gids = true\nexport = ["/data={self.folder}"]\n')
        server = self.start("--config", config, exports=())
        self.reads(server)
        self.join(GROUPS[:17])
        self.reads(server)
        server.process.send_signal(signal.SIGHUP)
        # Exports are read when groups have been forgotten.
        self.assertIn("exports", server.process.stdout.readline())
        self.is_denied(server)


if __name__ == "__main__":
    harness.main()
