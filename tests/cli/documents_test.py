"""`stag manual` and `stag completion`: what groff and the shells themselves make of it."""
import os
import re
import select
import shutil
import subprocess
import tempfile
import unittest

import harness
from harness import Case

COMMANDS = re.findall(r"^  (\w+)  ", harness.stag("--help").stdout.split("Subcommands:")[1].split("URLs:")[0], re.M)


def options_of(command):
    """As --help shows them, '-l' and '--long'."""
    text = harness.stag(command, "--help").stdout.split("Options:", 1)[1]
    lines = re.findall(r"^  (-\S+)", text, re.M)
    return [name for line in lines for name in line.split(",")]


def run(*words, text=None):
    return subprocess.run(words, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=harness.PATIENCE)


def typed(case, shell, setup, line):
    """What an interactive shell runs `stag` with after `line` and the tabulator were typed at it."""
    terminal, inside = harness.open_terminal(case)
    process = subprocess.Popen(shell, stdin=inside, stdout=inside, stderr=inside, start_new_session=True, env={**os.environ, "TERM": "dumb", "PS1": "$ "})
    os.close(inside)
    seen = b""

    def wait_for(pattern):
        nonlocal seen
        while not (found := re.search(pattern, seen)):
            if not select.select([terminal], [], [], harness.PATIENCE)[0]:
                case.fail(f"{shell[0]} does not go on: {seen}")
            seen += os.read(terminal, 4096)
        return found

    os.write(terminal, f'{setup}; stag() {{ echo "<""$*"">"; }}; echo rea""dy\n'.encode())
    wait_for(rb"ready\r")
    os.write(terminal, line.encode() + b"\t\n")
    result = wait_for(rb'<([^"\r\n]*)>\r')[1].decode()
    os.write(terminal, b"exit\n")
    process.wait(harness.PATIENCE)
    os.close(terminal)
    return result


class Documents(Case):
    def manual(self, *command):
        """As a reader sees it."""
        page = self.good("manual", *command)
        shown = run("groff", "-man", "-Tutf8", "-P-cbou", "-ww", text=page)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""), command)
        return shown.stdout

    def test_there_is_a_manual_page_of_every_command_with_every_option_and_its_examples(self):
        for command in COMMANDS:
            page = self.manual(command)
            self.assertIn(f"STAG-{command.upper()}(1)", page)
            words = set(re.findall(r"--?[A-Za-z0-9][a-z0-9-]*", page.replace("\u2010\n", "-")))
            self.assertEqual([option for option in options_of(command) if option not in words], [], command)
            example = harness.stag(command, "--help").stdout.split("Example:\n")[1].strip().splitlines()[0].strip()
            self.assertIn(example, page.replace("\u2019", "'"))

    def test_the_synopsis_of_every_manual_page_is_the_usage_that_the_help_shows(self):
        for command in ([], *([each] for each in COMMANDS)):
            usage = re.search(r"^Usage: (.*)$", harness.stag(*command, "--help").stdout, re.M)[1]
            synopsis = re.search(r"^SYNOPSIS\n((?: .*\n)+)", self.manual(*command), re.M)[1]
            self.assertEqual(" ".join(synopsis.split()), usage, command)

    def test_the_manual_page_of_the_program_names_all_commands_and_how_URLs_are_written(self):
        page = self.manual()
        for command in COMMANDS:
            self.assertRegex(page, rf"stag-{command}\(1\)")
        self.assertIn("nfs://HOST[:PORT]/EXPORT/PATH", page)
        self.bad(2, "there is no command 'nope'", "manual", "nope")

    def test_there_is_a_manual_page_of_exports(self):
        page = self.manual("exports")
        self.assertIn("STAG-EXPORTS(5)", page)
        for word in ("no_root_squash", "--exports-file", "clients = ["):
            self.assertIn(word, page.replace("\u2010", "-"))

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_has_no_complaint_about_any_page(self):
        with tempfile.TemporaryDirectory() as folder:
            self.good("manual", "--to", folder)
            checked = run("mandoc", "-T", "lint", "-W", "warning", *(os.path.join(folder, page) for page in sorted(os.listdir(folder))))
            self.assertEqual((checked.returncode, checked.stdout), (0, ""))

    def test_all_pages_are_written_to_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.good("manual", "--to", folder)
            self.assertEqual(set(os.listdir(folder)), {"stag.1", *(f"stag-{command}.1" for command in COMMANDS)})
            with open(os.path.join(folder, "stag-cp.1")) as file:
                self.assertEqual(file.read(), self.good("manual", "cp"))
            self.bad(1, f"cannot write {folder}/none/stag.1", "manual", "--to", f"{folder}/none")
        self.bad(2, "say either a command or --to", "manual", "--to", "/", "cp")

    def completed(self, *words):
        """What bash offers for the last of the words."""
        script = f"source <('{harness.STAG}' completion bash); COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _stag; echo ${{COMPREPLY[@]}}"
        done = run("bash", "-c", script)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout.split()

    def test_bash_completes_commands_options_and_the_words_that_an_option_takes(self):
        self.assertEqual(set(self.completed("stag", "''")) - {"-h", "--help", "--version"}, set(COMMANDS))
        self.assertEqual(self.completed("stag", "se"), ["serve"])
        self.assertEqual(self.completed("stag", "ls", "--lo"), ["--long"])
        self.assertEqual(set(self.completed("stag", "ls", "-")), set(options_of("ls")))
        self.assertEqual(self.completed("stag", "ls", "--fabric", "v"), ["verbs"])
        self.assertEqual(self.completed("stag", "serve", "--fabric", "''"), ["iwarp", "verbs"])
        self.assertEqual(self.completed("stag", "ls", "nfs://a"), [])
        self.assertEqual(self.completed("stag", "clients", "''"), ["list", "opens", "locks", "delegations", "expire", "revoke", "adopt", "end-grace"])
        self.assertEqual(self.completed("stag", "conform", "r"), ["rpcrdma"])
        self.assertEqual(self.completed("stag", "manual", "umo"), ["umount"])
        self.assertEqual(self.completed("stag", "completion", "''"), ["bash", "zsh", "fish"])

    def test_the_tabulator_completes_in_bash_and_zsh(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "_stag"), "w") as file:
                file.write(self.good("completion", "zsh"))
            shells = [(["bash", "--norc", "-i"], f"source <('{harness.STAG}' completion bash)")]
            if shutil.which("zsh"):
                shells.append((["zsh", "-f", "-i"], f"fpath=('{folder}' $fpath); autoload -Uz compinit; compinit -u -d '{folder}/dump'"))
            for shell, setup in shells:
                for line, result in (("stag ser", "serve"), ("stag ls --lo", "ls --long"), ("stag ls --fabric v", "ls --fabric verbs"), ("stag manual umo", "manual umount"), ("stag serve --fabric v", "serve --fabric verbs"), ("stag clients dele", "clients delegations")):
                    self.assertEqual(typed(self, shell, setup, line), result, shell[0])

    def test_zsh_takes_its_script(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "_stag")
            with open(path, "w") as file:
                file.write(self.good("completion", "zsh"))
            checked = run("zsh", "-f", "-n", path)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""))
            loaded = run("zsh", "-f", "-c", f"fpath=('{folder}' $fpath); autoload -Uz compinit; compinit -u -d '{folder}/dump'; echo $_comps[stag]")
            self.assertEqual((loaded.stdout.strip(), loaded.stderr), ("_stag", ""))

    def test_fish_completes_commands_options_and_the_words_that_an_option_takes(self):
        def offered(line):
            done = run("fish", "--no-config", "-c", f"'{harness.STAG}' completion fish | source; complete -C '{line}'")
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
            return [each.split("\t")[0] for each in done.stdout.splitlines()]

        self.assertEqual(set(offered("stag ")), set(COMMANDS))
        self.assertEqual(offered("stag ls --lo"), ["--long"])
        self.assertEqual(offered("stag ls --fabric v"), ["verbs"])
        self.assertEqual(offered("stag manual umo"), ["umount"])
        self.assertEqual(offered("stag serve --fabric v"), ["verbs"])
        self.assertEqual(offered("stag clients dele"), ["delegations"])

    def test_other_shells_are_refused(self):
        self.bad(2, "there are completions for bash, zsh and fish", "completion", "csh")


if __name__ == "__main__":
    harness.main()
