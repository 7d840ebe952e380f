"""The pages for administrators: every command that they show in an `sh` block is run, and shows what the `text` block behind it says.

The commands of a page run one after the other in one folder, with $DATA, $STATE and $TREE. `stag serve` stays there until the end of the page,
and what another one prints comes after it. The pages name the usual ports; here free ones take their place. `# exit N` behind a command is its exit code.
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "docs")
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.M | re.S)


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


class Pages(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="stag-pages-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.environment = {**os.environ, "PATH": f"{self.work}/bin:{os.environ['PATH']}"}
        for name in ("DATA", "TREE", "bin"):
            os.mkdir(os.path.join(self.work, name))
        # As root the server treats its clients as nobody.
        os.chmod(os.path.join(self.work, "DATA"), 0o777)
        for name in ("DATA", "STATE", "TREE"):
            self.environment[name] = os.path.join(self.work, name)
        self.environment["HOME"] = self.work
        os.symlink(harness.STAG, os.path.join(self.work, "bin", "stag"))
        with open(os.path.join(self.work, "TREE", "hello"), "w") as file:
            file.write("hello\n")
        self.servers = []
        self.addCleanup(self.end)

    def end(self):
        for server in self.servers:
            if server.poll() is None:
                server.terminate()
            server.wait(harness.PATIENCE)
            server.stdout.close()

    def here(self, command):
        """The command as it is run: with the ports of the server, where there is one already."""
        if not self.servers:
            return command.replace("20049", "0").replace("2049", "0")
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
        self.environment["PID"] = str(server.pid)
        return shown

    def run_page(self, page):
        commands = blocks(page)
        self.assertTrue(commands, f"{page} shows commands")
        for command, expected in commands:
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

    def test_guide(self):
        self.run_page("guide.md")

    def test_operations(self):
        self.run_page("operations.md")

    def test_troubleshooting(self):
        self.run_page("troubleshooting.md")


class Links(unittest.TestCase):
    def test_lead_to_pages_that_are_there(self):
        for page in ("guide.md", "operations.md", "troubleshooting.md", "rpc-guide.md", "threat-model.md", "messages.md"):
            with open(os.path.join(DOCS, page)) as file:
                for target in re.findall(r"\[[^\]]+\]\(([^)#: ]+)(?:#[^)]*)?\)", file.read()):
                    self.assertTrue(os.path.exists(os.path.join(DOCS, target)), f"{page}: {target}")


if __name__ == "__main__":
    harness.main()
