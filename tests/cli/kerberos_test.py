"""`stag` and `stag serve` with Kerberos: every flavor by TCP and by RPC-over-RDMA, who the user is, and what goes wrong.

Needs a KDC (kdc.py); is skipped where its programs are missing.
"""
import json
import os
import pwd
import re
import signal
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import harness
import kdc
from harness import Proxy, Server, stag
from observe_test import scraped, value_in
from rpc_proxy import RpcProxy
from wire_test import TOOLS, Capture

FLAVORS = ("krb5", "krb5i", "krb5p")
# A user of every Debian machine who is not the one that runs this, nor anonymous.
USER = "games"
WORDS = b"what nobody on the way may read; " * 3000


class Kerberos(unittest.TestCase):
    """A realm, a server of it, and a user with a ticket."""

    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(prefix="stag-kerberos-")
        cls.addClassCleanup(shutil.rmtree, cls.work, ignore_errors=True)
        cls.realm = kdc.Realm(os.path.join(cls.work, "realm"))
        cls.addClassCleanup(cls.realm.stop)
        cls.realm.add_user(USER)
        cls.keytab = cls.realm.keytab("nfs.keytab", "nfs/localhost")
        cls.user = cls.realm.login(USER)
        cls.served = os.path.join(cls.work, "served")
        os.mkdir(cls.served)
        os.chmod(cls.served, 0o1777)
        os.chmod(cls.work, 0o755)
        exports = [f"/{flavor}={cls.served},sec={flavor}" for flavor in FLAVORS]
        cls.server = Server([*exports, f"/any={cls.served},sec=krb5p:krb5i:krb5:sys", "/memory=memory,sec=krb5:sys"], os.path.join(cls.work, "state"),
                            ("--keytab", cls.keytab, "--metrics", "127.0.0.1:0"), env=cls.realm.environment())

    @classmethod
    def tearDownClass(cls):
        code = cls.server.end()
        if code != 0:
            raise AssertionError(f"the server ended with {code}")

    def at(self, name):
        return os.path.join(self.work, name)

    def url(self, path, flavor, tcp=False, server=None):
        server = server or self.server
        port = server.tcp_port if tcp else server.rdma_port
        return f"nfs://localhost:{port}{path}?sec={flavor}" + ("&proto=tcp" if tcp else f"&mountport={server.tcp_port}")

    def good(self, *arguments, **options):
        options.setdefault("env", self.user)
        result = stag(*arguments, **options)
        self.assertEqual((result.returncode, result.stderr), (0, "" if options.get("text", True) else b""), arguments)
        return result.stdout

    def bad(self, sentence, *arguments, **options):
        options.setdefault("env", self.user)
        result = stag(*arguments, **options)
        self.assertEqual(result.returncode, 1, (arguments, result.stdout, result.stderr))
        self.assertRegex(result.stderr, sentence)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def write(self, name, content=WORDS):
        with open(self.at(name), "wb") as file:
            file.write(content)
        return self.at(name)

    def start(self, *exports, keytab=None, name="another", **options):
        options.setdefault("env", self.realm.environment())
        server = Server(exports, self.at(f"state-of-{name}"), ("--keytab", keytab or self.keytab), **options)
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        return server

    def strict(self, name, export="/x=memory,sec=krb5", **environment):
        """A realm whose clocks may differ by a second, and a server of it."""
        realm = kdc.Realm(self.at(name), clockskew=1)
        self.addCleanup(realm.stop)
        realm.add_user(USER)
        server = self.start(export, name=name, keytab=realm.keytab("nfs.keytab", "nfs/localhost"), env=realm.environment(**environment))
        return realm, server


class Flavors(Kerberos):
    def test_carry_files_both_ways_in_every_version_by_every_transport(self):
        file = self.write("words")
        for flavor in FLAVORS:
            for tcp in (False, True):
                for version in ("2", "3", "4.0", "4.1", "4.2"):
                    with self.subTest(flavor=flavor, tcp=tcp, version=version):
                        url = self.url(f"/{flavor}/{flavor}-{tcp}-{version}", flavor, tcp) + f"&version={version}"
                        self.good("cp", file, url)
                        self.assertEqual(self.good("cat", url, text=False), WORDS)
                        self.assertIn(f"{flavor}-{tcp}-{version}", self.good("ls", self.url(f"/{flavor}", flavor, tcp) + f"&version={version}"))
                        self.good("rm", url)

    def test_go_on_by_version_4_where_the_connection_is_cut(self):
        """The server binds the new one to the session for nobody but the machine credential (RFC 8881 2.10.8.3)."""
        content = os.urandom(8 << 20)
        with open(os.path.join(self.served, "large"), "wb") as file:
            file.write(content)
        for flavor in FLAVORS:
            with self.subTest(flavor=flavor):
                proxy = Proxy(self.server.tcp_port, "down", 3 << 20)
                url = f"nfs://localhost:{proxy.port}/{flavor}/large?sec={flavor}&proto=tcp&version=4.1"
                reader = subprocess.Popen([harness.STAG, "cat", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.user)
                waiter = threading.Thread(target=lambda: (proxy.reached.wait(harness.PATIENCE), proxy.interrupt()))
                waiter.start()
                output, error = reader.communicate(timeout=harness.PATIENCE)
                waiter.join()
                proxy.cut()
                self.assertEqual((reader.returncode, error), (0, b""))
                self.assertTrue(output == content)

    def test_have_contexts_that_metrics_count(self):
        def contexts(state):
            return value_in(scraped(self.server), "stag_gss_contexts", state=state)

        with open(os.path.join(self.served, "counted"), "wb") as file:
            file.write(bytes(8 << 20))
        before = contexts("established")
        proxy = Proxy(self.server.tcp_port, "down", 1 << 20)
        self.addCleanup(proxy.cut)
        url = f"nfs://localhost:{proxy.port}/krb5/counted?sec=krb5&proto=tcp&version=4.1"
        reader = subprocess.Popen([harness.STAG, "cat", url], stdout=subprocess.DEVNULL, env=self.user)
        self.assertTrue(proxy.reached.wait(harness.PATIENCE))
        self.assertGreater(contexts("established"), before)
        self.assertEqual(contexts("half_open"), 0)
        proxy.released.set()
        self.assertEqual(reader.wait(harness.PATIENCE), 0)

    def test_count_calls_by_export_though_arguments_are_protected(self):
        def counted(export):
            return value_in(scraped(self.server), "stag_export_call_duration_seconds_count", export=export)

        file = self.write("by-export")
        for flavor in FLAVORS:
            for version in ("2", "3"):
                with self.subTest(flavor=flavor, version=version):
                    before, other = counted(f"/{flavor}"), counted("other")
                    self.good("cp", file, self.url(f"/{flavor}/by-export", flavor) + f"&version={version}")
                    self.assertGreater(counted(f"/{flavor}"), before)
                    self.assertEqual(counted("other"), other)

    def test_name_the_export_of_a_slow_call_though_its_arguments_are_protected(self):
        exports = [f"/{flavor}={self.served},sec={flavor}" for flavor in FLAVORS]
        state = self.at("state-of-slow")
        server = Server(exports, state, ("--keytab", self.keytab, "--slow-call", "0.000000001"), env=self.realm.environment())
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        file = self.write("slow")
        for flavor in FLAVORS:
            self.good("cp", file, self.url(f"/{flavor}/slow", flavor, server=server) + "&version=3")
            # The log has ten of them in a second.
            slow = json.loads(self.good("status", "--json", "--state", state))["slow"]
            self.assertIn(("nfs 3 WRITE", f"/{flavor}"), [(call["call"], call.get("export")) for call in slow])

    def test_reach_every_command(self):
        name = self.url("/any/folder", "krb5p")
        self.good("mkdir", name)
        self.good("ping", "-c", "2", name)
        self.good("stat", name)
        self.good("df", name)
        self.good("rm", "-r", name)

    def test_make_the_user_who_the_ticket_says_whoever_runs_the_command(self):
        self.good("cp", self.write("own"), self.url("/any/own", "krb5"))
        self.assertEqual(os.stat(os.path.join(self.served, "own")).st_uid, pwd.getpwnam(USER).pw_uid)
        self.assertEqual(os.stat(os.path.join(self.served, "own")).st_gid, pwd.getpwnam(USER).pw_gid)

    def test_make_a_principal_who_is_no_user_the_anonymous_one(self):
        self.realm.keytab("machine.keytab", "host/localhost")
        machine = self.realm.environment("machine")
        subprocess.run([kdc.PROGRAMS["kinit"], "-k", "-t", self.realm.folder + "/machine.keytab", "host/localhost"], env=machine, check=True)
        self.good("cp", self.write("anonymous"), self.url("/any/anonymous", "krb5"), env=machine)
        self.assertEqual(os.stat(os.path.join(self.served, "anonymous")).st_uid, 65534)

    def test_have_no_users_until_the_server_finds_its_default_realm(self):
        """A user who were nobody until then would leave files that are nobody's."""
        with open(os.path.join(self.realm.folder, "krb5.conf"), "rb") as file:
            configuration = file.read()
        path = self.write("realm.conf", configuration.replace(b"default_realm = STAG.TEST", b""))
        server = self.start(f"/x={self.served},sec=krb5", name="realmless", env=self.realm.environment(KRB5_CONFIG=path))
        early = self.write("early-bird")
        self.bad("refused the Kerberos ticket", "cp", early, self.url("/x/early-bird", "krb5", server=server))
        self.assertIn("GssPrincipalRefused", server.log())
        self.write("realm.conf", configuration)
        self.good("cp", early, self.url("/x/early-bird", "krb5", server=server))
        self.assertEqual(os.stat(os.path.join(self.served, "early-bird")).st_uid, pwd.getpwnam(USER).pw_uid)

    def test_are_each_taken_only_where_the_export_says_so(self):
        for flavor in FLAVORS:
            for other in ("sys", *FLAVORS):
                with self.subTest(export=flavor, call=other):
                    if other == flavor:
                        self.good("ls", self.url(f"/{flavor}", other))
                    else:
                        self.bad("no calls by this security flavor", "touch", self.url(f"/{flavor}/x", other))

    def test_are_shown_by_info(self):
        shown = self.good("info", "--rdma-port", str(self.server.rdma_port), "--tcp-port", str(self.server.tcp_port), "127.0.0.1")
        self.assertRegex(shown, r"/krb5p +sec=krb5p\n")
        self.assertRegex(shown, r"/any +sec=krb5p:krb5i:krb5:sys\n")
        exports = json.loads(self.good("info", "--json", "--rdma-port", str(self.server.rdma_port), "--tcp-port", str(self.server.tcp_port), "127.0.0.1"))["exports"]
        self.assertEqual({each["path"]: each["flavors"] for each in exports}["/any"], ["krb5p", "krb5i", "krb5", "sys"])

    def test_of_an_export_change_on_SIGHUP(self):
        path = self.write("reload.toml", f'[[export]]\npath = "/x"\nfolder = "{self.served}"\noptions = ["sec=krb5p"]\n'.encode())
        server = Server([], self.at("state-of-reloaded"), ("--keytab", self.keytab, "--config", path), env=self.realm.environment())
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        self.good("ls", self.url("/x", "krb5p", server=server))
        self.bad("no calls by this security flavor", "touch", self.url("/x/y", "krb5", server=server))
        self.write("reload.toml", f'[[export]]\npath = "/x"\nfolder = "{self.served}"\noptions = ["sec=krb5"]\n'.encode())
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(server.process.stdout.readline().startswith("exports: "))
        self.good("ls", self.url("/x", "krb5", server=server))
        self.bad("no calls by this security flavor", "touch", self.url("/x/y", "krb5p", server=server))

    def test_that_want_a_keytab_do_not_come_with_SIGHUP_to_a_server_without(self):
        path = self.write("none.toml", b'[[export]]\npath = "/x"\nfolder = "memory"\n')
        server = Server([], self.at("state-of-none"), ("--config", path), env=self.realm.environment())
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        self.write("none.toml", b'[[export]]\npath = "/x"\nfolder = "memory"\noptions = ["sec=krb5"]\n')
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + harness.PATIENCE
        while "want a keytab" not in server.log():
            self.assertLess(time.monotonic(), end, server.log())
            time.sleep(0.02)


LIBNFSIDMAP = any(os.path.exists(os.path.join(folder, "libnfsidmap.so.1")) for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"))


@unittest.skipUnless(LIBNFSIDMAP, "libnfsidmap is not installed")
class Users(Kerberos):
    """libnfsidmap knows the users where it is installed and has a domain; the realm is named like it."""

    def test_are_those_of_libnfsidmap_with_all_their_groups(self):
        server = Server([f"/x={self.served},sec=krb5"], self.at("state-of-idmap"), ("--keytab", self.keytab, "--id-domain", "stag.test"), env=self.realm.environment())
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        self.good("cp", self.write("mapped"), self.url("/x/mapped", "krb5", server=server))
        self.assertEqual(os.stat(os.path.join(self.served, "mapped")).st_uid, pwd.getpwnam(USER).pw_uid)

    def test_of_another_domain_are_nobody(self):
        server = Server([f"/x={self.served},sec=krb5,anonuid=99"], self.at("state-of-other"), ("--keytab", self.keytab, "--id-domain", "elsewhere.test"),
                        env=self.realm.environment())
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        self.good("cp", self.write("unmapped"), self.url("/x/unmapped", "krb5", server=server))
        self.assertEqual(os.stat(os.path.join(self.served, "unmapped")).st_uid, 99)

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_are_not_nobody_because_the_name_service_failed_for_a_moment(self):
        """Whoever is taken for nobody is that until his ticket ends."""
        users = shutil.copy("/etc/passwd", self.at("passwd"))
        names = self.write("nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files\n")
        script = ('mount --bind "$0" /etc/passwd && mount --bind "$1" /etc/nsswitch.conf && shift && '
                  'exec setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-all "$@"')
        server = self.start(f"/x={self.served},sec=krb5", name="failing-names", before=("unshare", "--mount", "sh", "-c", script, users, names))
        os.chmod(users, 0)
        file, there = self.write("early"), self.url("/x/early", "krb5", server=server)
        self.bad("the server refused the Kerberos ticket", "cp", file, there)
        self.assertRegex(server.log(), f"GssPrincipalRefused .*{USER}@")
        os.chmod(users, 0o644)
        self.good("cp", file, there)
        self.assertEqual(os.stat(os.path.join(self.served, "early")).st_uid, pwd.getpwnam(USER).pw_uid)


# The C library's clocks, an hour late.
CLOCK = """
#define _GNU_SOURCE
#include <sys/time.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  struct timespec exact;
  (void)zone;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec - 3600;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* to) {
  struct timeval now;
  gettimeofday(&now, 0);
  if (to) *to = now.tv_sec;
  return now.tv_sec;
}
"""


class Sentences(Kerberos):
    def test_no_ticket(self):
        self.bad("no Kerberos ticket", "ls", self.url("/krb5", "krb5"), env=self.realm.environment("nothing"))

    def test_a_ticket_that_has_expired(self):
        realm, server = self.strict("expired")
        user = realm.login(USER, lifetime="2s")
        end = time.monotonic() + harness.PATIENCE
        while realm.has_tickets("tickets"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        # What is left of the second that clocks may differ.
        while (result := stag("ls", self.url("/x", "krb5", server=server), env=user)).returncode == 0:
            self.assertLess(time.monotonic(), end)
        self.assertIn("has expired", result.stderr)

    def test_clocks_that_differ(self):
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("no cc is there to make another clock with")
        with open(self.at("clock.c"), "w", encoding="utf-8") as file:
            file.write(CLOCK)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", self.at("clock.so"), self.at("clock.c")], check=True)
        realm, server = self.strict("skewed", LD_PRELOAD=self.at("clock.so"))
        self.bad("clocks of client, server and KDC differ", "ls", self.url("/x", "krb5", server=server), env=realm.login(USER))

    def test_a_server_that_another_realm_does_not_know(self):
        other = kdc.Realm(self.at("other"), "OTHER.TEST")
        self.addCleanup(other.stop)
        other.add_user(USER)
        self.bad("knows no such server", "ls", self.url("/krb5", "krb5"), env=other.login(USER))

    def test_realms_that_krb5_conf_has_wrong(self):
        with open(os.path.join(self.realm.folder, "krb5.conf"), encoding="utf-8") as file:
            text = file.read()
        for mistake, sentence in (
            # Of the user's own realm, and of the server's, which the KDC of the user's knows no way to.
            (("  STAG.TEST = {", "  OTHER.TEST = {"), "Kerberos knows no KDC for the realm"),
            (("localhost = STAG.TEST", "localhost = NOWHERE.TEST"), "the KDC knows no such server"),
        ):
            path = self.at("wrong.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(*mistake))
            # A cache of its own: in another one there may be a ticket for the server already.
            user = {**self.realm.login(USER, "fresh"), "KRB5_CONFIG": path}
            self.bad(sentence, "ls", self.url("/krb5", "krb5"), env=user)

    def test_have_the_library_s_own_where_that_says_more(self):
        with open(os.path.join(self.realm.folder, "krb5.conf"), "rb") as file:
            text = file.read()
        short = b"[libdefaults]\n  permitted_enctypes = aes128-cts-hmac-sha1-96\n"
        for name, content, sentence in (
            ("syntax.conf", text + b"\n[broken\n", "Improper format of Kerberos configuration file: Kerberos failed"),
            ("enctypes.conf", text.replace(b"[libdefaults]\n", short), "No credentials found with supported encryption types .*: Kerberos failed"),
        ):
            user = {**self.realm.login(USER, "fresh"), "KRB5_CONFIG": self.write(name, content)}
            self.bad(sentence, "ls", self.url("/krb5", "krb5"), env=user)
        cache = "FILE:" + self.write("no-cache", b"")
        self.bad("Bad format in credentials cache .*no-cache.*: there is no Kerberos ticket", "ls", self.url("/krb5", "krb5"), env={**self.user, "KRB5CCNAME": cache})
        self.bad(r"\(default cache: NONE:x\): there is no Kerberos ticket", "ls", self.url("/krb5", "krb5"), env={**self.user, "KRB5CCNAME": "NONE:x"})

    def test_a_user_of_a_realm_that_the_server_does_not_trust(self):
        # The same names, other keys: a ticket that the server cannot decrypt.
        other = kdc.Realm(self.at("impostor"))
        self.addCleanup(other.stop)
        other.add_user(USER)
        other.keytab("unused.keytab", "nfs/localhost")
        self.bad("refused the Kerberos ticket|no key for this ticket", "ls", self.url("/krb5", "krb5"), env=other.login(USER))

    def test_a_server_named_by_its_address(self):
        self.bad("nfs/HOST", "ls", self.url("/krb5", "krb5").replace("localhost", "127.0.0.1"))

    def test_a_server_without_a_keytab(self):
        server = Server(["/x=memory"], self.at("state-of-keyless"), env=self.realm.environment())
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        self.bad("Kerberos", "ls", self.url("/x", "krb5", server=server))

    def test_a_keytab_that_cannot_be_read_or_is_none(self):
        for name, content in (("missing.keytab", None), ("broken.keytab", b"no keytab"), ("other.keytab", "other")):
            path = self.at(name)
            if content == "other":
                path = self.realm.keytab(name, "host/elsewhere")
            elif content is not None:
                self.write(name, content)
            result = stag("serve", "--rdma-port", "0", "--tcp-port", "0", "--state", self.at("state-of-broken"), "--export", "/x=memory,sec=krb5", "--keytab", path,
                          env=self.realm.environment())
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn(path, result.stderr)
            self.assertNotIn("ready:", result.stdout)

    def test_a_keytab_that_is_not_named_and_not_there(self):
        result = stag("serve", "--rdma-port", "0", "--tcp-port", "0", "--state", self.at("state-of-broken"), "--export", "/x=memory,sec=krb5", env=self.realm.environment())
        self.assertEqual(result.returncode, 1)
        self.assertIn("--keytab", result.stderr)


class Contexts(Kerberos):
    def test_survive_a_restart_of_the_server(self):
        for tcp in (True, False):
            with self.subTest(tcp=tcp):
                name = f"restarted-{tcp}"
                first = self.start(f"/x={self.served},sec=krb5i", name=name)
                command = subprocess.Popen([harness.STAG, "ping", "-i", "20", "--json", "-c", "200", self.url("/x", "krb5i", tcp, first)], env=self.user,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                time.sleep(0.5)
                ports = ("--rdma-port", str(first.rdma_port), "--tcp-port", str(first.tcp_port))
                first.end()
                second = self.start(f"/x={self.served},sec=krb5i", name=name, ports=ports)
                out, err = command.communicate(timeout=harness.PATIENCE)
                self.assertEqual((command.returncode, err), (0, ""), out)
                second.end()

    def test_outlive_the_tickets_that_they_are_made_of_under_load(self):
        for flavor, tcp, keytab in (("krb5p", False, True), ("krb5i", True, False)):
            with self.subTest(flavor=flavor, tcp=tcp, keytab=keytab):
                realm, server = self.strict(f"expiring-{flavor}", export=f"/x=memory,no_root_squash,sec={flavor}")
                key = realm.keytab("client.keytab", "root")
                realm.limit_tickets("root", "3 seconds")
                user, renewed = realm.environment("none", KRB5_CLIENT_KTNAME=key), threading.Event()
                if not keytab:
                    user = realm.environment("renewed")
                    self.renew(realm, key, user)
                    thread = threading.Thread(target=lambda: [self.renew(realm, key, user) for _ in iter(lambda: renewed.wait(1), True)])
                    thread.start()
                try:
                    self.good("bench", "--json", "--rows", "getattr_rate_32,read_64k", "--samples", "6", "--milliseconds", "1000",
                              self.url("/x", flavor, tcp, server), env=user)
                finally:
                    renewed.set()
                    keytab or thread.join()
                self.assertGreater(len(re.findall(r"TGS_REQ .*ISSUE.* for nfs/localhost", realm.log())), 3, realm.log())

    @staticmethod
    def renew(realm, key, environment):
        """As k5start does: whoever reads the cache finds a whole one."""
        cache = environment["KRB5CCNAME"].removeprefix("FILE:")
        subprocess.run([kdc.PROGRAMS["kinit"], "-k", "-t", key, "-c", cache + ".new", "root"], env=environment, check=True)
        os.replace(cache + ".new", cache)


@unittest.skipIf(kdc.GSSPROXY is None, "gssproxy is not installed")
class Gssproxy(Kerberos):
    """Keys and tickets that only gssproxy can read: the library asks it where GSS_USE_PROXY is set."""

    def test_has_the_keys_of_server_and_client(self):
        key = self.realm.keytab("root.keytab", "root")
        services = {
            "server": f"cred_store = keytab:{self.keytab}\n cred_usage = accept",
            "client": f"cred_store = client_keytab:{key}\n cred_store = ccache:FILE:{self.at('proxied')}\n cred_usage = initiate",
        }
        environment = {name: self.realm.environment(f"of-{name}", GSS_USE_PROXY="yes", GSSPROXY_SOCKET=self.at(f"{name}.sock")) for name in services}
        with open(self.at("gssproxy.conf"), "w", encoding="utf-8") as file:
            for name, words in services.items():
                file.write(f"[service/{name}]\n mechs = krb5\n socket = {self.at(name)}.sock\n euid = {os.geteuid()}\n trusted = yes\n {words}\n")
        proxy = subprocess.Popen([kdc.GSSPROXY, "-i", "-c", self.at("gssproxy.conf"), "-s", self.at("default.sock")], env=self.realm.environment("none"),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (proxy.terminate(), proxy.wait(harness.PATIENCE)))
        end = time.monotonic() + harness.PATIENCE
        while not os.path.exists(self.at("default.sock")):
            self.assertTrue(proxy.poll() is None and time.monotonic() < end, "gssproxy does not start")
            time.sleep(0.02)
        server = Server(["/x=memory,no_root_squash,sec=krb5:krb5i:krb5p"], self.at("state-of-proxied"), env=environment["server"])
        self.addCleanup(lambda: server.process.poll() is None and server.end())
        file = self.write("proxied-words")
        for flavor in FLAVORS:
            with self.subTest(flavor=flavor):
                self.good("cp", file, self.url(f"/x/{flavor}", flavor, server=server), env=environment["client"])
                self.assertEqual(self.good("cat", self.url(f"/x/{flavor}", flavor, server=server), text=False, env=environment["client"]), WORDS)


class Wire(Kerberos):
    """What travels, by TCP: software iWARP carries the same messages."""

    @unittest.skipIf(None in TOOLS.values(), "tshark and dumpcap are not installed")
    def test_shows_neither_content_nor_name_with_krb5p(self):
        name = "a-name-that-nobody-sees"
        file = self.write(name)
        seen = {}
        for flavor in ("krb5", "krb5p"):
            for tcp in (True, False):
                try:
                    capture = Capture(self.at(f"{flavor}-{tcp}.pcapng"), self.server.tcp_port if tcp else self.server.rdma_port)
                except PermissionError as error:
                    self.skipTest(f"nothing can be captured here: {error}")
                url = self.url(f"/any/{name}", flavor, tcp)
                self.good("cp", file, url)
                self.assertEqual(self.good("cat", url, text=False), WORDS)
                self.good("rm", url)
                capture.end()
                seen[flavor, tcp] = capture.bytes()
        for (flavor, tcp), wire in seen.items():
            self.assertEqual(name.encode() in wire, flavor == "krb5", (flavor, tcp))
            self.assertEqual(WORDS[:30] in wire, flavor == "krb5", (flavor, tcp))

    def test_of_krb5i_that_was_changed_on_the_way_is_refused(self):
        file = self.write("changed", b"the right words, which somebody changes on the way")
        self.good("cp", file, self.url("/krb5i/changed", "krb5i"))
        self.good("cp", file, self.url("/krb5/changed", "krb5"))
        proxy = RpcProxy(self.server.tcp_port, true=b"the right words", told=b"the wrong words")
        self.addCleanup(proxy.close)
        through = f"nfs://localhost:{proxy.port}/%s/changed?proto=tcp&mountport={self.server.tcp_port}&sec=%s"
        # krb5 proves who the user is, and no more.
        self.assertIn(b"the wrong words", self.good("cat", through % ("krb5", "krb5"), text=False))
        result = stag("cat", through % ("krb5i", "krb5i"), env=self.user)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


if __name__ == "__main__":
    if kdc.MISSING:
        print(f"skipped: no {', '.join(kdc.MISSING)} (Debian's krb5-kdc, krb5-admin-server, krb5-user)", file=sys.stderr)
        sys.exit(harness.SKIPPED)
    harness.main()
