"""A private Kerberos realm for tests: a KDC on a loopback port, with its database, its configuration and its tickets in one folder.
Nothing of the machine's own Kerberos is read or changed. Needs Debian's krb5-kdc, krb5-admin-server and krb5-user.
"""
import os
import shutil
import socket
import subprocess
import time

from harness import PATIENCE

# Debian's daemons are not in everybody's PATH.
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
PROGRAMS = {name: shutil.which(name, path=PATH) for name in ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "klist")}
GSSPROXY = shutil.which("gssproxy", path=PATH)
MISSING = [name for name, path in PROGRAMS.items() if path is None]


def free_port():
    """One that is free for TCP and UDP alike, as far as one can know."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            port = tcp.getsockname()[1]
            try:
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Realm:
    """The realm `name` in `folder`. Service principals are of "localhost"; nobody is looked up in the DNS. `clockskew`: seconds by which
    clocks may differ, and tickets outlive themselves."""

    def __init__(self, folder, name="STAG.TEST", clockskew=300):
        self.folder, self.name = folder, name
        os.makedirs(folder)
        self.port = free_port()
        self.kdc = None
        self._write("kdc.conf", f"""
[kdcdefaults]
  kdc_listen = 127.0.0.1:{self.port}
  kdc_tcp_listen = 127.0.0.1:{self.port}
[realms]
  {name} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    max_life = 1d
    max_renewable_life = 0
    supported_enctypes = aes256-cts-hmac-sha1-96:normal
  }}
[logging]
  kdc = FILE:{folder}/kdc.log
""")
        libdefaults = "".join(f"  {line}\n" for line in (
            f"default_realm = {name}", "dns_lookup_realm = false", "dns_lookup_kdc = false", "dns_canonicalize_hostname = false", "rdns = false",
            # Tickets come by TCP, which does not lose them on a busy machine.
            "udp_preference_limit = 1", f"clockskew = {clockskew}",
            f"default_keytab_name = FILE:{folder}/no.keytab", f"default_client_keytab_name = FILE:{folder}/no.keytab",
        ))
        realms = f"  {name} = {{\n    kdc = 127.0.0.1:{self.port}\n  }}\n"
        self._write("krb5.conf", f"[libdefaults]\n{libdefaults}[realms]\n{realms}[domain_realm]\n  localhost = {name}\n")
        self._run("kdb5_util", "-r", name, "create", "-s", "-P", "of the master key")
        self.start()

    def start(self):
        self.kdc = subprocess.Popen([PROGRAMS["krb5kdc"], "-n", "-r", self.name], env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                if self.kdc.poll() is not None or time.monotonic() > end:
                    raise AssertionError(f"the KDC does not start: {self.log()}") from None
                time.sleep(0.02)

    def stop(self):
        if self.kdc is not None:
            self.kdc.terminate()
            self.kdc.wait(PATIENCE)
            self.kdc = None

    def log(self):
        try:
            with open(os.path.join(self.folder, "kdc.log"), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def environment(self, cache="none", **more):
        """For a process of this realm whose tickets are in the file `cache` of its folder."""
        return {**os.environ, "KRB5_CONFIG": f"{self.folder}/krb5.conf", "KRB5_KDC_PROFILE": f"{self.folder}/kdc.conf",
                "KRB5CCNAME": f"FILE:{self.folder}/{cache}", "KRB5RCACHEDIR": self.folder, "PATH": PATH, **more}

    def add_user(self, name, password="secret"):
        self._kadmin(f"addprinc -pw {password} {name}")

    def keytab(self, name, *principals):
        """Makes these principals, with keys that nobody knows, and a file that has them; its path."""
        path = os.path.join(self.folder, name)
        for principal in principals:
            self._kadmin(f"addprinc -randkey {principal}")
            self._kadmin(f"ktadd -k {path} {principal}")
        return path

    def limit_tickets(self, name, life):
        """No ticket of this principal lives for longer."""
        self._kadmin(f'modprinc -maxlife "{life}" {name}')

    def login(self, name, cache="tickets", lifetime="1h", password="secret"):
        """Gets a ticket for the user; the environment of a process that has it."""
        self._run("kinit", "-l", lifetime, name, cache=cache, input=password + "\n")
        return self.environment(cache)

    def has_tickets(self, cache):
        """Whether there are any that have not expired."""
        return subprocess.run([PROGRAMS["klist"], "-s"], env=self.environment(cache), timeout=PATIENCE).returncode == 0

    def _kadmin(self, query):
        self._run("kadmin.local", "-r", self.name, "-q", query)

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def _run(self, program, *arguments, cache="none", **options):
        options.setdefault("input", "")
        done = subprocess.run([PROGRAMS[program], *arguments], env=self.environment(cache), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=PATIENCE, **options)
        assert done.returncode == 0, (program, arguments, done.stdout)
        return done.stdout
