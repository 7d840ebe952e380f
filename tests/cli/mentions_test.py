"""What the documents say of commands within their sentences, tables and blocks that no test runs: each `stag SUBCOMMAND --option VALUE` is held
against the program's own --help, each URL against the options that it says URLs have, and each command of the system against that one's.
In the pages that administrators follow each command of any program is run from its sentence (pages_test.SENTENCES), or NOT_RUN has why it is not.

What stands in `sh` blocks that are run is the business of pages_test. CHANGELOG.md and docs/decisions say what was at their time.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest

import harness
import pages_test

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir))
PAGES = sorted(os.path.relpath(page, ROOT) for pattern in ("*.md", "docs/*.md", "examples/**/*.md") for page in glob.glob(os.path.join(ROOT, pattern), recursive=True)
               if os.path.basename(page) != "CHANGELOG.md")
BLOCK = re.compile(r"^( *)```(.*)\n((?:.*\n)*?)\1```$", re.M)
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
SYSTEM = ("systemctl", "journalctl", "mount", "umount", "exportfs")
# What follow_page runs, of which pages_test knows nothing, and by whom.
FOLLOWED = {"docs/guide.md": "tools/deb-test", "docs/install.md": "tools/systemd-test"}
# What is run on machines of a network, and by whom.
ON_MACHINES = {"docs/scale.md": "tests/cli/moved_address.py"}

# The documents name these because they are not there.
MISSING = ("stag mv -n", "stag mv -i", "stag cp -f", "stag ln -f")
# Options that stand alone, of other programs than `stag`.
OTHERS = {
    "docs/troubleshooting.md": {"--pids-limit"},  # docker run
    "docs/hardware.md": {"--network", "--ulimit"},  # docker run
    "docs/messages.md": {"-wal", "-shm"},  # ends of names of files
    "docs/client-guide.md": {"-DCMAKE_PREFIX_PATH"},
    "docs/library.md": {"-DSTAG_STATIC", "-l:libstag.a", "-lstag", "-fsanitize", "-std", "-Wl,--exclude-libs,libstag.a"},
    "docs/performance.md": {"-O2"},
    "docs/performance-rows.md": {"--rounds", "--version"},  # bench/mount/run
    "docs/performance-history.md": {"-O2", "-O3", "-flto", "-Wodr", "-mtune"},
    "docs/install.md": {"-p"},  # journalctl
    "docs/exports.md": {"-OPTIONS"},  # of exports(5)
    "docs/mount.md": {"-i"},  # mount
}
# Why commands that stand in sentences, or in indented blocks, are not run from there, by their first words; and what runs such commands, if anything does.
NOT_RUN = {
    "stag": ("its options are held against --help, and the other tests of this folder are of nothing else", "tests/cli/mentions_test.py"),
    "make": ("a target of the Makefile is a build or a test by itself", "Makefile"),
    "tools/container-test": ("is a test by itself", "Makefile"),
    "tools/draw_messages": ("is a test by itself", "tests/arch/CMakeLists.txt"),
    "cmake": ("builds or installs", "tests/install/install_test.sh"),
    "ln -s": ("changes the system", "tests/install/install_test.sh"),
    "apt": ("changes the system", "tests/packaging/run_by_systemd"),
    "systemctl": ("needs systemd; verbs and units are held against its --help and the package", "tests/packaging/run_by_systemd"),
    "journalctl": ("needs systemd; likewise", "tests/packaging/run_by_systemd"),
    "man": ("reads what is installed", "tests/cli/documents_test.py"),
    "docker": ("needs a daemon; podman does the same", "tools/container-test"),
    "modprobe": ("needs a kernel that a test may change: a guest of QEMU", "tests/interop/scenarios/devices_meet_software"),
    "rdma": ("likewise", "tests/interop/guest/devices"),
    "mount": ("likewise; options are held against --help and nfs(5)", "tests/interop/guest/verbs"),
    "rpc.gssd": ("likewise", "tests/interop/scenarios/kernel_mounts_with_kerberos"),
    "kinit": ("a KDC of tests renews no tickets, and a machine's keys are for the kernel", "tests/interop/scenarios/kernel_mounts_with_kerberos"),
    "rpcinfo": ("needs rpcbind at port 111", "tests/rpcbind/run"),
    "showmount": ("needs rpcbind at port 111", "tests/rpcbind/run"),
    "ip address": ("takes an address from a machine", "tests/cli/moved_address.py"),
    "ibv_devinfo": ("needs an RDMA device", None),
    "rados": ("breaks the lock of a gateway that is certainly dead", None),
}
# What begins with a small letter, has several words, and is no command.
NO_COMMANDS = {
    "docs/exports.md": {
        "ro rw root_squash no_root_squash all_squash no_all_squash anonuid= anongid= secure insecure rdma no_rdma sec=",
        "sync wdelay no_wdelay no_subtree_check hide acl secure_locks auth_nlm no_pnfs",
        "async subtree_check crossmnt nohide no_acl insecure_locks no_auth_nlm pnfs security_label nordirplus",
    },
    "docs/commands.md": {"revoke --export", "waiting for the server"},
    "docs/kerberos.md": {"permission denied"},
    "docs/messages.md": {"rdma 192.0.2.7:40123"},
    "docs/observability.md": {"not answered: the connection ended first", "the datagram did not leave"},
    "docs/rpc-guide.md": {"co_await stag::offloaded(loop, ...)"},
    "docs/scale.md": {"allow rw path=/projects", "records in ceph:nfs/a"},
}
# nfs(5), as far as the documents use it.
MOUNT_NFS = {"vers", "proto", "port", "mountproto", "mountport", "nolock", "sec", "remount", "ro", "rdma"}


def text_of(page):
    with open(os.path.join(ROOT, page)) as file:
        return file.read()


def blocks(page):
    """[(what stands behind the backquotes, commands, the paragraph before)]"""
    text = text_of(page)
    return [(found[2].strip(), found[3], text[:found.start()].rstrip().rpartition("\n\n")[2]) for found in BLOCK.finditer(text)]


def spans(page):
    """What stands between backquotes, in a line."""
    return [re.sub(r"\s+", " ", found[2]).replace("\\|", "|").strip() for found in SPAN.finditer(BLOCK.sub("", text_of(page)))]


def unrun(page):
    """The blocks with commands that no test runs."""
    return [commands for name, commands, _ in blocks(page) if name.startswith("sh not run")]


def indented(page):
    """The lines of blocks that are indented instead."""
    return re.findall(rf"^ {{4,}}((?:sudo )?(?:{'|'.join(('stag', *SYSTEM))}) .*)", BLOCK.sub("", text_of(page)), re.M)


def said(page):
    """[command or other words]: what stands in sentences, and in lines of blocks that are indented instead."""
    return spans(page) + [line.strip() for line in re.findall(r"^ {4,}([a-z].*)", BLOCK.sub("", text_of(page)), re.M)]


def commands_in(text):
    """The words of each command of a line of shell, without what runs it with other rights or in another environment."""
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars="|;&")
        lexer.whitespace_split, lexer.commenters = True, "#"
        words = list(lexer)
    except ValueError:
        words = text.split()
    command, found = [], []
    for word in [*words, ";"]:
        if re.fullmatch(r"[|;&]+", word):
            found.append(command)
            command = []
        elif command or not re.fullmatch(r"sudo|exec|[A-Z_]+=.*", word):
            command.append(word)
    return [each for each in found if each]


def mentions():
    """[(page, words)] of all commands that are named and not run."""
    found = []
    for page in PAGES:
        lines = spans(page) + indented(page) + [line for block in unrun(page) for line in block.replace("\\\n", " ").splitlines()]
        found += [(page, words) for line in lines for words in commands_in(line)]
    return found


def help_of(command):
    return harness.stag(*command, "--help").stdout


class Options:
    """Those of a command as --help shows them: name -> the only values that it takes, or None; and the words that come first."""

    def __init__(self, *command):
        shown = help_of(command)
        head, _, rest = shown.partition("Options:\n")
        self.values, self.notes = {}, rest.partition("Options of -o:")[2]
        for names, value in re.findall(r"^  (-\S+)(?: ([A-Z]\S*))?", rest, re.M):
            choices = re.search(r":\{(.*)\}", value)
            for name in names.split(","):
                self.values[name] = choices[1].split(",") if choices else None
        words = re.search(r"^  \S+ \{(.*?)\}", head, re.M)
        self.words = words[1].split(",") if words else None

    def mounts_with(self, value):
        return all(re.search(rf"\b{option.partition('=')[0]}\b", self.notes) for option in value.split(","))

    def named(self, word):
        """The names of the options that a word of the command line gives: "-rt" gives two."""
        name = word.partition("=")[0]
        if name in self.values or name.startswith("--"):
            return [name]
        if f"-{name}" in self.values:  # find, as find(1)
            return [f"-{name}"]
        if name[:2] in self.values and re.fullmatch(r"\d+", name[2:]):
            return [name[:2]]
        return [f"-{letter}" for letter in name[1:]]


COMMANDS = re.findall(r"^  (\w+)  ", help_of([]).split("Subcommands:")[1].split("URLs:")[0], re.M)
OPTIONS = {command: Options(command) for command in COMMANDS}
ALL = {name: [options.values[name] for options in OPTIONS.values() if name in options.values] for each in OPTIONS.values() for name in each.values}


def is_placeholder(word):
    return re.fullmatch(r"[\[(]?[A-Z][A-Z:,/.*]*[\])]?|\.\.\.|…|.*[$*{<].*|\S*\|\S*", word) is not None


def wrong_value(choices, value):
    """Whether an option that takes only `choices` does not take `value`, the next word or None."""
    return choices is not None and value is not None and not is_placeholder(value) and value not in choices


def trouble_with(words):
    """What is wrong with a command of `stag`; None: nothing."""
    words = [word.strip("[]") for word in words]
    if len(words) == 1 or is_placeholder(words[1]) or words[1] in ("--help", "--version"):
        return None
    command, rest = words[1], words[2:]
    if command not in OPTIONS:
        return f"there is no command {command}"
    options = OPTIONS[command]
    positional = [word for word in rest if not word.startswith("-")][:1]
    if options.words and rest and rest[0] in positional and wrong_value(options.words, rest[0]):
        return f"{command} has no {rest[0]}"
    for at, word in enumerate(rest):
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            continue
        for name in options.named(word):
            if name not in options.values:
                return f"{command} has no option {name}"
            value = word.partition("=")[2] or (rest[at + 1] if at + 1 < len(rest) else None)
            if wrong_value(options.values[name], value):
                return f"{name} does not take {value}"
            if command == "mount" and name == "-o" and value and not options.mounts_with(value):
                return f"-o does not take {value}"
    return None


def url_options():
    """name -> values, or None where they are any: as the program's help has them."""
    shown = help_of([]).partition("URLs:")[2].partition("Sizes:")[0]
    return {name: values.split("|") if "|" in values else None for name, values in re.findall(r"(\w+)=([\w.|]+)", shown)}


class Mentions(unittest.TestCase):
    def test_of_commands_are_what_their_help_says(self):
        found = [(page, words) for page, words in mentions() if words[0] == "stag"]
        self.assertGreater(len(found), 100)
        wrong = [f"{page}: `{' '.join(words)}`: {trouble}" for page, words in found if " ".join(words) not in MISSING and (trouble := trouble_with(words))]
        self.assertEqual(wrong, [])

    def test_of_commands_that_are_missing_are_right(self):
        named = {" ".join(words) for _, words in mentions()} | {f"stag mv {span}" for span in spans("docs/known-gaps.md")}
        for command in MISSING:
            self.assertIn(command, named)
            self.assertIsNotNone(trouble_with(command.split()), command)

    def test_of_options_alone_are_those_of_some_command(self):
        wrong = []
        attack = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "attack", "run"), "--help"], capture_output=True, text=True, timeout=harness.PATIENCE).stdout
        for page in PAGES:
            for span in spans(page):
                words = span.split()
                if not words[0].startswith("-") or len(words[0]) < 2 or words[0] == "--":
                    continue
                others = OTHERS.get(page, set()) | (set(re.findall(r"--[\w-]+", attack)) if page == "docs/attack.md" else set())
                for at, word in enumerate(words):
                    name = word.partition("=")[0]
                    if not name.startswith("-") or name in others or word in others or name in ("--help", "--version"):
                        continue
                    value = word.partition("=")[2] or (words[at + 1] if at + 1 < len(words) else None)
                    if name not in ALL or all(wrong_value(choices, value) for choices in ALL[name]):
                        wrong.append(f"{page}: `{span}`: {name}")
        self.assertEqual(wrong, [])

    def test_of_exports_of_CephFS_say_what_they_are_built_with(self):
        """The pages are those of every build."""
        found = [page for page in PAGES if re.search(r"=ceph:|`ceph:PATH", text_of(page))]
        self.assertIn("docs/exports.md", found)
        for page in found:
            self.assertRegex(text_of(page), r"built with CephFS|built without its headers", page)

    def test_of_URLs_have_options_that_the_help_says(self):
        known, wrong = url_options(), []
        for page in PAGES:
            for span in [*spans(page), *indented(page), *(commands for _, commands, _ in blocks(page))]:
                for query in re.findall(r"""nfs://[^\s'"?`]*\?([^\s'"`;)]*)|^[?&](\w+=\S*)$""", span):
                    for name, value in re.findall(r"(\w+)=([^&]*)", "".join(query)):
                        if name not in known or wrong_value(known[name], value or None):
                            wrong.append(f"{page}: {span}: {name}={value}")
        self.assertEqual(wrong, [])


class SystemCommands(unittest.TestCase):
    """Those in blocks that are not run, and in sentences."""

    def of(self, program):
        found = [(page, words) for page, words in mentions() if words[0] == program and len(words) > 1]
        if not shutil.which(program):
            self.skipTest(f"{program} is not installed")
        shown = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=harness.PATIENCE, env={**os.environ, "SYSTEMD_PAGER": "cat"})
        return found, shown.stdout + shown.stderr

    def check_options(self, page, words, shown):
        for word in words[1:]:
            name = word.partition("=")[0]
            if name.startswith("-"):
                self.assertRegex(shown, rf"(?m)(^|[\s,\[]){re.escape(name)}\b", (page, words))

    def check_unit(self, page, words, unit):
        name = unit if "." in unit else f"{unit}.service"
        self.assertTrue(os.path.exists(os.path.join(ROOT, "packaging", "systemd", name)), (page, words))

    def test_of_systemctl_are_about_units_of_the_package(self):
        found, shown = self.of("systemctl")
        self.assertGreater(len(found), 5)
        for page, words in found:
            self.check_options(page, words, shown)
            verb, *units = [word for word in words[1:] if not word.startswith("-")]
            self.assertRegex(shown, rf"(?m)^  {verb}\b", (page, words))
            for unit in units:
                self.check_unit(page, words, unit)

    def test_of_journalctl_are_about_units_of_the_package(self):
        found, shown = self.of("journalctl")
        self.assertGreater(len(found), 2)
        for page, words in found:
            self.check_options(page, words, shown)
            if "-u" in words:
                self.check_unit(page, words, words[words.index("-u") + 1])

    def test_of_mount_have_options_that_it_takes(self):
        for program in ("mount", "umount"):
            found, shown = self.of(program)
            for page, words in found:
                self.check_options(page, words, shown)
                if "-o" in words:
                    options = {option.partition("=")[0] for option in words[words.index("-o") + 1].split(",")}
                    self.assertEqual(options - MOUNT_NFS, set(), (page, words))

    def test_of_exportfs_have_options_that_it_takes(self):
        found, shown = self.of("exportfs")
        for page, words in found:
            for letter in "".join(word[1:] for word in words[1:] if word.startswith("-")):
                self.assertRegex(shown, rf"\[-\w*{letter}", (page, words))


def run_pages():
    return {f"docs/{page}" for page in re.findall(r'run_page\("(.*)"\)', text_of("tests/cli/pages_test.py"))}


class Sentences(unittest.TestCase):
    """Of the pages that administrators follow."""

    RUN = {**pages_test.SENTENCES, **pages_test.KERBEROS_SENTENCES}

    @classmethod
    def setUpClass(cls):
        cls.pages = sorted(run_pages() | set(FOLLOWED) | {"docs/rpc-guide.md", "docs/messages.md"})
        cls.said = [(page, line) for page in cls.pages for line in said(page)]
        cls.in_blocks = {line.strip() for page in cls.pages for name, commands, _ in blocks(page) if name.startswith("sh") and name != "sh not run" for line in commands.splitlines()}

    def reason(self, words):
        return next((first for first in (" ".join(words[:2]), words[0]) if first in NOT_RUN), None)

    def is_accounted_for(self, page, line):
        """Whether nothing in it is a command but what is run, or has a reason."""
        if line in self.RUN or line in NO_COMMANDS.get(page, ()) or any(f"{command} ".startswith(f"{line} ") for command in self.in_blocks):
            return True
        for words in commands_in(line):
            options_alone = words[0] in COMMANDS and all(word.startswith("-") for word in words[1:])  # of `stag`
            is_command = re.fullmatch(r"[a-z][\w./+-]*", words[0]) and len(words) > 1 and words[1] != "="
            if is_command and not self.reason(words) and not (options_alone and not trouble_with(["stag", *words])):
                return False
        return True

    def test_have_no_command_that_is_neither_run_nor_has_a_reason(self):
        self.assertEqual([f"{page}: `{line}`" for page, line in self.said if not self.is_accounted_for(page, line)], [])

    def test_with_a_command_of_any_program_are_found(self):
        for line in ("frobnicate --now", "frobnicate a", "stag ls URL | frobnicate -x", "sudo frobnicate /srv", "ss -tlnp; frobnicate it", "ls --frobnicate"):
            self.assertFalse(self.is_accounted_for("docs/guide.md", line), line)

    def test_still_have_the_commands_that_are_run_from_them(self):
        self.assertEqual(set(self.RUN) - {line for _, line in self.said}, set())
        for page, lines in NO_COMMANDS.items():
            self.assertEqual(lines - set(said(page)), set(), page)

    def test_have_reasons_that_are_of_use_and_hold(self):
        used = {self.reason(words) for page, line in self.said if line not in NO_COMMANDS.get(page, ()) for words in commands_in(line) if len(words) > 1}
        self.assertEqual(set(NOT_RUN) - used, set())
        for first, (_, runner) in NOT_RUN.items():
            if runner is not None:
                for word in first.split():
                    self.assertIn(word, text_of(runner), first)

    def test_name_targets_that_the_Makefile_has(self):
        targets = re.search(r"^\.PHONY: (.*)", text_of("Makefile"), re.M)[1].split()
        for page, line in self.said:
            for words in commands_in(line):
                if words[0] == "make" and len(words) > 1:
                    self.assertIn(words[1], targets, (page, line))


class Blocks(unittest.TestCase):
    def test_with_commands_are_run_or_say_why_not(self):
        run = run_pages()
        for page in PAGES:
            for name, commands, before in blocks(page):
                first = commands.split(maxsplit=1)[0] if commands.strip() else ""
                if name == "sh not run":
                    self.assertRegex(before, r"\bno test runs\b", f"{page}: the sentence before says why\n{commands}")
                elif name.startswith("sh on "):
                    self.assertIn(page, ON_MACHINES, commands)
                    self.assertIn(f'"{name.removeprefix("sh on ")}"', text_of(ON_MACHINES[page]), commands)
                elif re.match(r"sh\b", name):
                    self.assertIn(page, set(FOLLOWED) if name != "sh" and name != "sh by FUSE" else run | set(FOLLOWED), commands)
                elif not name:
                    self.assertFalse(shutil.which(first) or first == "stag" or os.path.exists(os.path.join(ROOT, first)), f"{page}: a command in a block without a name\n{commands}")

    def test_are_followed_by_who_says_so(self):
        for page, tool in (*FOLLOWED.items(), *ON_MACHINES.items()):
            self.assertIn(page, text_of(tool))


if __name__ == "__main__":
    harness.main()
