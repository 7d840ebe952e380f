"""The pages for administrators: every command that they show in an `sh` block is run, and shows what the `text` block behind it says.

The commands of a page run one after the other in one folder, with $DATA, $STATE and $TREE. `stag serve` stays there until the end of the page,
and what another one prints comes after it. The pages name the usual ports, and networks of examples; here free ports and this machine take their
place. `# exit N` behind a command is its exit code. Mounting is left out where there is no FUSE, and what tshark reads where that is missing, and the page
then counts as skipped; Kerberos is skipped where there is no KDC. What cannot be run here stands in a block `sh as USER`, which tools/deb-test
and tools/systemd-test run, what takes several machines in one `sh on MACHINE`, which moved_address.py runs, or in one `sh not run`, before which the page says why (mentions_test.py).
Of the commands in sentences those of SENTENCES are run; mentions_test.py has the reasons why others are not.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
import kdc
import nfs4_client

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
DOCS = os.path.join(ROOT, "docs")
BLOCK = re.compile(r"^```(sh|text)(?: by FUSE)?\n(.*?)^```$", re.M | re.S)


def blocks(page):
    """[(command, [lines that it shows])]"""
    with open(os.path.join(DOCS, page)) as file:
        found = BLOCK.findall(file.read())
    commands = []
    for kind, text in found:
        lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
        if kind == "sh":
            commands += [(line, []) for line in lines]
        else:
            commands[-1][1].extend(lines)
    return commands


# What stands in sentences and is run there, with a server of $DATA: {the command: (how it is run here, what it shows)}. COMMAND is itself, with HERE in it.
HERE = {"ADDRESS": "127.0.0.1", "DIRECTORY": "$DATA", "NAME": "localhost", "USER": "$(id -u)", "UID": "$(id -u)", "$(pidof stag)": "$PID"}
SENTENCES = {
    "chmod 711 $STATE": ("COMMAND && stat -c %a $STATE", "711"),
    # Of two `stag cp` one was killed, two days ago.
    "find DIRECTORY -name '.stag-????????????????' -mmin +1440": ("""
        mkfifo pipe && exec 9<>pipe && echo begun >&9
        stag cp - nfs://127.0.0.1/data/copy <pipe & copy=$!
        until set -- $DATA/.stag-* && [ -e "$1" ]; do kill -0 $copy || exit 1; done
        kill -9 $copy
        touch -d '2 days ago' "$1" && touch $DATA/.stag-0123456789abcdef
        [ "$1" = "$(COMMAND)" ] && echo the old one""", "the old one"),
    "find -inum": ("find $DATA -inum $(stat -c %i $DATA)", "DATA"),
    "fuser -vm $DATA": ("COMMAND", "stag"),
    "getent ahosts NAME": ("COMMAND", "127.0.0.1"),
    "getent hosts ADDRESS": ("COMMAND", "localhost"),
    "getent passwd USER": ("getent passwd root", "root:"),
    "id UID": ("COMMAND", "uid="),
    "install -d -o USER $DATA": ("COMMAND && [ $(stat -c %u $DATA) = $(id -u) ]", ""),
    "ip addr": ("COMMAND", "127.0.0.1"),
    "ls -b": ("""echo >"$DATA/$(printf 'a\\001')" && COMMAND $DATA && stag ls nfs://127.0.0.1/data""", "a\\001"),
    # What nobody uses is closed once in a while, be it behind each of these commands.
    "ls -l /proc/$(pidof stag)/fd | grep deleted": (
        "until echo >$DATA/gone && stag cat nfs://127.0.0.1/data/gone && rm $DATA/gone && COMMAND; do kill -0 $PID || exit 1; done", "gone (deleted)"),
    "pidof stag": ("COMMAND", "$PID"),
    "promtool check rules FILE": (f"promtool check rules {os.path.join(os.path.abspath(ROOT), 'packaging/prometheus/stag.rules.yml')}", "SUCCESS"),
    "ss -tlnp": ("COMMAND", ":2049"),
    "ss -tn": ("COMMAND", "State"),
    "tshark -Y 'rpc.xid == 0x6b8b4567'": ("stag capture --seconds 1 --state $STATE rpc.pcapng && COMMAND -r rpc.pcapng", "capture: "),
    "ulimit -n": ("COMMAND", ""),
    "ulimit -u": ("bash -c 'COMMAND'", ""),
}
# Those of kerberos.md, in its realm.
KERBEROS_SENTENCES = {
    "kadmin.local addprinc -randkey nfs/HOST": ("kadmin.local addprinc -randkey nfs/other.example.org && kadmin.local listprincs", "nfs/other.example.org@"),
    "klist -k FILE": ("klist -k $KRB5_KTNAME", "nfs/localhost"),
    "kvno nfs/HOST": ("kvno nfs/localhost", "kvno = "),
}


class Case(unittest.TestCase):
    """A folder of its own, with the server of a page."""

    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-pages-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.environment = {**os.environ, "PATH": f"{self.work}/bin:{os.environ['PATH']}"}
        for name in ("DATA", "TREE", "bin"):
            os.mkdir(os.path.join(self.work, name))
        for name in ("DATA", "STATE", "TREE"):
            self.environment[name] = os.path.join(self.work, name)
        self.environment["HOME"] = self.work
        os.symlink(harness.STAG, os.path.join(self.work, "bin", "stag"))
        with open(os.path.join(self.work, "TREE", "hello"), "w") as file:
            file.write("hello\n")
        self.servers, self.replaced, self.rdma, self.tcp, self.with_traffic = [], (), "", "", False
        self.addCleanup(self.end)

    def end(self):
        for server in self.servers:
            if server.poll() is None:
                server.terminate()
            server.wait(harness.PATIENCE)
            server.stdout.close()

    def here(self, command):
        """The command as it is run: with the ports of the server, where there is one already."""
        for theirs, ours in self.replaced:
            command = command.replace(theirs, ours.format(rdma=self.rdma, tcp=self.tcp))
        command = command.replace("192.0.2.0/24", "127.0.0.0/8").replace("--seconds 60", "--seconds 1")
        if not self.servers:
            if command.startswith("stag serve"):
                for option, value in (("--rdma-port", "20049"), ("--tcp-port", "2049"), ("--state", "$STATE")):
                    command += "" if option in command or "--config" in command else f" {option} {value}"
            return command.replace("20049", "0").replace("2049", "0").replace(":9469", ":0")
        command = command.replace("127.0.0.1:9469", self.metrics or "127.0.0.1:9469")
        command = re.sub(r"'?nfs://127\.0\.0\.1(/[^\s'?;]*)\?proto=tcp'?", rf"'nfs://127.0.0.1:{self.tcp}\1?proto=tcp'", command)
        command = re.sub(r"'?nfs://127\.0\.0\.1(/[^\s'?;]*)(?=[\s;]|$)'?", rf"'nfs://127.0.0.1:{self.rdma}\1?mountport={self.tcp}'", command)
        return re.sub(r"(?<!\d)2049(?!\d)", self.tcp, command.replace("20049", self.rdma))

    def serve(self, command):
        # Of the shell nothing is left, so that a signal reaches the server.
        server = subprocess.Popen(["sh", "-c", "exec " + command], env=self.environment, cwd=self.work, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.servers.append(server)
        shown = ""
        while "ready: TCP" not in shown:
            line = server.stdout.readline()
            self.assertTrue(line, (command, shown))
            shown += line
        self.rdma, self.tcp = (re.search(rf"ready: {kind} +nfs://[^/]*?:(\d+)/", shown)[1] for kind in ("RPC-over-RDMA", "TCP"))
        self.metrics = (re.findall("metrics: http://(.*)/metrics", shown) or [""])[0]
        self.environment["PID"] = str(server.pid)
        if self.with_traffic:
            url = f"nfs://127.0.0.1:{self.rdma}/data?mountport={self.tcp}"
            ping = subprocess.Popen([harness.STAG, "ping", "-i", "1", url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(ping.wait)
            self.addCleanup(ping.kill)
        return shown

    def run_sentences(self, sentences):
        for said, (command, expected) in sentences.items():
            program = said.split()[0]
            with self.subTest(said):
                if program != "ulimit" and not shutil.which(program, path=self.environment["PATH"]):
                    self.skipTest(f"{program} is not installed")
                itself = said
                for name, value in HERE.items():
                    itself = itself.replace(name, value)
                done = subprocess.run(["sh", "-c", self.here(command.replace("COMMAND", itself))], env=self.environment, cwd=self.work, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=harness.PATIENCE)
                self.assertEqual(done.returncode, 0, (said, done.stdout))
                self.assertIn(self.here(expected).replace("$PID", self.environment["PID"]), done.stdout, said)

    def run_page(self, page):
        """{command: what it showed}"""
        commands = blocks(page)
        self.assertTrue(commands, f"{page} shows commands")
        left_out, all_shown = [], {}
        for command, expected in commands:
            mounts = re.match("stag u?mount |ls ~/data", command)
            if mounts and not os.access("/dev/fuse", os.R_OK | os.W_OK) or "tshark " in command and not shutil.which("tshark"):
                left_out.append(command)
                continue
            code = re.search(r"# exit (\d+)$", command)
            if command.startswith("stag serve") and not code:
                shown = self.serve(self.here(command))
            else:
                done = subprocess.run(["sh", "-c", self.here(command)], env=self.environment, cwd=self.work, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=harness.PATIENCE)
                shown = done.stdout
                self.assertEqual(done.returncode, int(code[1]) if code else 0, (page, command, shown))
            for line in expected:
                self.assertIn(line.strip(), shown, (page, command))
            all_shown[command] = shown
        if left_out:
            self.skipTest(f"no /dev/fuse, or no tshark; the page does what it says but for {', '.join(left_out)}")
        return all_shown


class Pages(Case):
    def test_guide(self):
        self.run_page("guide.md")

    def test_commands(self):
        self.run_page("commands.md")

    def test_exports(self):
        self.run_page("exports.md")

    def test_exports_in_a_file(self):
        with open(os.path.join(DOCS, "exports.md")) as file:
            (settings,) = re.findall(r"^```toml\n(.*?)^```$", file.read(), re.M | re.S)
        # Addresses, a folder and a name that this machine has.
        for theirs, ours in (('"192.0.2.1", "2001:db8::1"', '"127.0.0.1"'), ("/srv/data", self.environment["DATA"]), ("build.example.org", "localhost")):
            self.assertIn(theirs, settings)
            settings = settings.replace(theirs, ours)
        with open(os.path.join(self.work, "stag.toml"), "w") as file:
            file.write(settings)
        self.assertIn("export: /data = ", self.serve("stag serve --config stag.toml --state $STATE --rdma-port 0 --tcp-port 0"))

    def test_observability(self):
        # For as long as there is something to capture, not for a time.
        self.replaced = (("capture --seconds 60", "capture --max 1M"),)
        self.with_traffic = True
        shown = self.run_page("observability.md")
        captured = [lines for command, lines in shown.items() if "tshark " in command]
        self.assertEqual(len(captured), 2)
        for lines in captured:
            self.assertRegex(lines, r" NFS \d+ V\d NULL (Call|Reply)")

    def test_operations(self):
        self.run_page("operations.md")

    def test_troubleshooting(self):
        self.run_page("troubleshooting.md")

    def test_mount(self):
        # Root is nobody there, as for clients of any server.
        os.chmod(self.environment["DATA"], 0o777)
        self.replaced = (("--listen 0.0.0.0", ""), ("/srv/data", "$DATA"), ("nfs://server/data", "'nfs://127.0.0.1:{rdma}/data?mountport={tcp}'"), ("~/photos", "$HOME/photos"))
        os.mkdir(os.path.join(self.work, "photos"))
        self.run_page("mount.md")

    @unittest.skipIf(kdc.MISSING, f"the programs of a KDC are missing: {kdc.MISSING}")
    def test_kerberos(self):
        realm = kdc.Realm(os.path.join(self.work, "realm"))
        self.addCleanup(realm.stop)
        realm.add_user("anna")
        self.environment = {**realm.environment("tickets"), **self.environment, "KRB5_KTNAME": realm.keytab("nfs.keytab", "nfs/localhost")}
        self.replaced = (("--listen 0.0.0.0", ""), ("/srv/data", "$DATA"), ("kinit anna", "echo secret | kinit anna"),
                         ("nfs://server.example.org/data?sec=krb5p", "nfs://localhost:{rdma}/data?sec=krb5p&mountport={tcp}"))
        self.run_page("kerberos.md")
        self.run_sentences(KERBEROS_SENTENCES)

    def test_scale(self):
        lost = harness.Server(["/data=memory"], os.path.join(self.work, "lost"))
        self.addCleanup(nfs4_client.Case.kill, lost)
        for number in range(12):
            client = nfs4_client.Client(lost.tcp_port, b"%d" % number).connect()
            self.addCleanup(client.close)
            self.assertEqual((client.reclaim_complete(), client.create_file(b"file")[0]), (0, 0))
        os.mkdir(self.environment["STATE"])
        shutil.copy(os.path.join(self.work, "lost", "handle.key"), self.environment["STATE"])
        self.serve(self.here("stag serve --export /data=memory"))
        nfs4_client.Case.kill(lost)
        self.replaced = (("stag clients adopt /srv/gateways/a", f"stag clients adopt {self.work}/lost --state $STATE"),)
        self.run_page("scale.md")


class Sentences(Case):
    def test_have_commands_that_do_what_they_say(self):
        self.serve(self.here("stag serve --export /data=$DATA,no_root_squash"))
        self.run_sentences(SENTENCES)


class FirstPages(unittest.TestCase):
    """What a new administrator follows, from `apt install` on."""

    def text(self, page):
        with open(os.path.join(DOCS, page)) as file:
            return "\n".join(re.findall(r"^ *```sh[^\n]*\n(.*?)^ *```$", file.read(), re.M | re.S))

    def test_watch_the_server_and_have_it_read_its_file_again(self):
        for page, again in (("guide.md", "kill -HUP $PID"), ("install.md", "systemctl reload stag")):
            for command in ("/metrics | grep stag_", "stag.toml", again):
                self.assertIn(command, self.text(page), page)

    def test_install_what_they_use(self):
        for page in ("guide.md", "install.md"):
            text = self.text(page)
            installed = text[:text.index("curl --silent")]
            self.assertRegex(installed, r"apt install .*\bcurl\b", page)


class Links(unittest.TestCase):
    def test_lead_to_pages_and_headings_that_are_there(self):
        pages = [os.path.join(ROOT, page) for page in ("docs", "examples", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
        checked = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "check_links.py"), *pages], capture_output=True, text=True, timeout=harness.PATIENCE)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""), checked.stdout)

    def test_that_lead_nowhere_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.md")
            for link, good in (("page.md", True), ("#a-heading", True), ("page.md#a-heading", True), ("https://example.org/x", True), ("none.md", False), ("#none", False), ("../none/", False)):
                with open(page, "w") as file:
                    file.write(f"# A heading\n\n[text]({link}) `[code](no.md)`\n")
                checked = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "check_links.py"), folder], capture_output=True, text=True, timeout=harness.PATIENCE)
                self.assertEqual((checked.returncode == 0, link in checked.stdout), (good, not good), link)


if __name__ == "__main__":
    harness.main()
