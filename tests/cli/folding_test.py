"""`stag sync` and `stag cp` to a file system that takes names which differ in case for one, here and behind a server."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import fuse_store
import harness
from harness import PATIENCE, Server, stag


class WithoutCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(prefix="stag-cli-")
        cls.addClassCleanup(shutil.rmtree, cls.work, ignore_errors=True)
        cls.below, cls.mounted = cls.at("below"), cls.at("mounted")
        for folder in (cls.below, cls.mounted, cls.at("sources")):
            os.mkdir(folder)
        cls.addClassCleanup(cls.unmount, fuse_store.mounted(cls.mounted, cls.below))
        cls.server = Server([f"/without-case={cls.mounted},no_root_squash", f"/with-case={cls.at('sources')},no_root_squash"], cls.at("state"))
        cls.addClassCleanup(cls.server.end)

    @classmethod
    def unmount(cls, store):
        subprocess.run(["umount", "-l", cls.mounted], check=False)
        store.wait(PATIENCE)

    @classmethod
    def at(cls, *names):
        return os.path.join(cls.work, *names)

    def write(self, path, content, when=1000):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(content)
        os.utime(path, (when, when))

    def ends(self, name):
        """The source and the destination of a command, where they are, and how it says so: each way to such a file system."""
        for number, version in enumerate(("3", "4.2", None)):
            source, there = self.at("sources", name + str(number)), f"{name}{number}"
            os.makedirs(source, exist_ok=True)
            if version:
                yield source, source, f"{self.server.url('/without-case/' + there)}&version={version}", os.path.join(self.below, there)
            else:
                yield f"{self.server.url('/with-case/' + there)}&version=4.2", source, os.path.join(self.mounted, there), os.path.join(self.below, there)

    def tree(self, folder):
        found = {}
        for top, _, files in os.walk(folder):
            for name in files:
                with open(os.path.join(top, name)) as file:
                    found[os.path.relpath(os.path.join(top, name), folder)] = file.read()
        return found

    def test_a_mirror_keeps_what_has_got_another_spelling(self):
        for source, folder, target, there in self.ends("mirror"):
            for name in ("readme", "changes", "photos/p1", "photos/p2"):
                self.write(os.path.join(folder, name), "content of " + name)
            self.assertEqual(stag("sync", "--delete", source, target).returncode, 0)
            for old, new in (("readme", "README"), ("changes", "Changes"), ("photos", "Photos")):
                os.rename(os.path.join(folder, old), os.path.join(folder, new))
            self.write(os.path.join(folder, "Changes"), "other content", 2000)
            for options in (["-n"], ["-v"], ["-v"]):
                done = stag("sync", "--delete", *options, source, target)
                self.assertEqual((done.returncode, done.stderr), (0, ""), target)
                self.assertNotIn("removed", done.stdout)
                if options == ["-v"]:
                    self.assertEqual(self.tree(there), self.tree(folder), target)

    def test_the_second_of_two_names_that_are_one_there_fails(self):
        for command in (["cp", "-r"], ["cp", "-a"], ["sync", "--delete"]):
            for source, folder, target, there in self.ends("two-by-" + command[0] + command[1]):
                self.write(os.path.join(folder, "d", "README"), "first")
                self.write(os.path.join(folder, "d", "readme"), "second")
                if command[0] == "cp":
                    source = source.replace("?", "/.?") if "://" in source else source + "/."
                    if not os.path.isdir(there):
                        os.mkdir(there)
                for again in range(2):
                    done = stag(*command, source, target)
                    self.assertEqual(done.returncode, 1, (command, target))
                    self.assertRegex(done.stderr, r"(?i)/readme[^\n]*: the destination takes its name for 'readme', which is beside it in the source; rename one of them\n$")
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                    kept = self.tree(there)
                    self.assertEqual(len(kept), 1)
                    if again:
                        self.assertEqual(kept, before)
                    before = kept

    def test_the_second_of_two_sources_that_are_one_there_fails(self):
        for source, folder, target, there in self.ends("sources"):
            self.write(os.path.join(folder, "README"), "first")
            self.write(os.path.join(folder, "readme"), "second")
            os.mkdir(there)
            names = [source.replace("?", f"/{name}?") if "://" in source else os.path.join(source, name) for name in ("README", "readme")]
            done = stag("cp", *names, target)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "^stag cp: [^\n]*readme[^\n]*: will not overwrite just-created '[^\n]*README[^\n]*'\n$")
            self.assertEqual(self.tree(there), {"README": "first"})


if __name__ == "__main__":
    reason = fuse_store.why_not()
    if reason is not None:
        print(f"skipped: {reason}")
        sys.exit(harness.SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
