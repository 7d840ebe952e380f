#!/usr/bin/env python3
"""tests/interop/run says how many scenarios ran and what came of them; in CI first come those that nothing else there shows. Scenarios are scripts here."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class Run(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="stag-interop-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.folder = self.root / "tests" / "interop"
        (self.folder / "scenarios").mkdir(parents=True)
        shutil.copy(HERE / "run", self.folder)
        self.script(self.folder / "setup", "exit 0")
        self.names = sorted(each.name for each in (HERE / "scenarios").iterdir())
        for name in self.names:
            self.script(self.folder / "scenarios" / name, f"echo {name} >>{self.root}/begun")

    @staticmethod
    def script(path, line):
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def ran(self, *scenarios, **environment):
        """The exit code, the last line, and which scenarios began."""
        begun = self.root / "begun"
        begun.write_text("")
        environment = os.environ | {"STAG_LAB": str(self.root / "lab"), "INTEROP_JOBS": "1"} | environment
        done = subprocess.run([self.folder / "run", "/bin/true", *scenarios], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return done.returncode, done.stdout.splitlines()[-1], begun.read_text().split()

    def test_begins_in_CI_with_what_nothing_else_there_shows(self):
        code, said, begun = self.ran(INTEROP_TRIES="1")
        self.assertEqual((code, said), (0, f"interop: all {len(self.names)} scenarios passed"))
        self.assertEqual(begun[:2], ["the_power_is_cut", "server_hands_over"])
        self.assertEqual(sorted(begun), self.names)

    def test_says_that_none_ran_where_there_was_no_time(self):
        self.assertEqual(self.ran(INTEROP_UNTIL="1"), (0, f"interop: none of {len(self.names)} scenarios ran", []))

    def test_counts_none_that_was_skipped(self):
        self.script(self.folder / "scenarios" / "crc_is_checked", "exit 77")
        all_but_one = f"{len(self.names) - 1} of {len(self.names)} scenarios ran"
        self.assertEqual(self.ran(INTEROP_TRIES="1")[:2], (0, f"interop: {all_but_one}, and passed"))
        code, said, _ = self.ran("crc_is_checked", "the_power_is_cut")
        self.assertEqual((code, said), (1, "interop: something failed or was skipped, see above; 1 of 2 scenarios ran"))

    def test_fails_where_one_does(self):
        self.script(self.folder / "scenarios" / "crc_is_checked", "exit 1")
        code, said, _ = self.ran("crc_is_checked", INTEROP_TRIES="2")
        self.assertEqual((code, said), (1, "interop: something failed or was skipped, see above; 1 of 1 scenarios ran"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
