"""`stag manual` and `stag completion`: what groff and the shells themselves make of it."""
import os
import re
import subprocess
import tempfile

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
            words = set(re.findall(r"--?[A-Za-z][a-z0-9-]*", page.replace("\u2010\n", "-")))
            self.assertEqual([option for option in options_of(command) if option not in words], [], command)
            example = harness.stag(command, "--help").stdout.split("Example:\n")[1].strip().splitlines()[0].strip()
            self.assertIn(example, page.replace("\u2019", "'"))

    def test_the_manual_page_of_the_program_names_all_commands_and_how_URLs_are_written(self):
        page = self.manual()
        for command in COMMANDS:
            self.assertRegex(page, rf"stag-{command}\(1\)")
        self.assertIn("nfs://HOST[:PORT]/EXPORT/PATH", page)
        self.bad(2, "there is no command 'nope'", "manual", "nope")

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
        self.assertEqual(self.completed("stag", "ls", "nfs://a"), [])

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

    def test_other_shells_are_refused(self):
        self.bad(2, "there are completions for bash, zsh and fish", "completion", "csh")


if __name__ == "__main__":
    harness.main()
