#!/usr/bin/env python3
"""tools/nightly runs what there is, goes on after a failure, and says of each part whether it passed, failed or was skipped, and why; docs/nightly.md keeps what
came of each. make is a script here."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

MAKE = r"""#!/bin/sh
case $1 in
  deb) echo "all packages are built" ;;
  deb-test) echo "tools/deb-test: skipped: a chroot needs root" >&2; echo "make: *** [Makefile:1: deb-test] Error 77" >&2; exit 2 ;;
  systemd-test) printf 'skipped: no python3-x\nThe following tests did not run:\n'; echo "the service did not come back"; echo "make: *** [Makefile:1: systemd-test] Error 1" >&2; exit 2 ;;
  interop) echo "interop: skipped, the lab cannot be set up: apt-get update failed" >&2; echo "make: *** [Makefile:1: interop] Error 77" >&2; exit 2 ;;
  ceph) printf 'skipped: there is no ceph-mon here\n1/1 Test #1: ceph_records ...***Skipped   0.01 sec\nThe following tests did not run:\n' ;;
  soak-short) printf 'skipped: no python3-x\n1/2 Test #1: a ... Passed   0.01 sec\nThe following tests did not run:\n' ;;
  *) exit 2 ;;
esac
"""


class Nightly(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="stag-nightly-"))
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "tools").mkdir()
        (self.root / "docs").mkdir()
        shutil.copy(ROOT / "tools" / "nightly", self.root / "tools")
        make = self.root / "make"
        make.write_text(MAKE)
        make.chmod(0o755)

    def nightly(self, *arguments):
        environment = os.environ | {"MAKE": str(self.root / "make")}
        return subprocess.run([self.root / "tools" / "nightly", *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_lists_targets_of_the_Makefile(self):
        listed = self.nightly("--list").stdout.split()
        self.assertEqual(listed, ["deb", "deb-test", "systemd-test", "container-test", "bare", "ceph", "sanitize", "interop", "fuzz", "soak-short", "soak"])
        targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M)
        self.assertLessEqual({*listed, "nightly"}, set(targets))

    def test_goes_on_after_a_failure_and_sums_up(self):
        done = self.nightly("deb", "deb-test", "systemd-test", "ceph", "interop", "soak-short")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(re.findall(r"^== make (\S+) \(", done.stdout, re.M), ["deb", "deb-test", "systemd-test", "ceph", "interop", "soak-short"])
        _, summary = done.stdout.split("\n== summary\n")
        self.assertEqual([re.sub(r"\(\d+ s\)", "(s)", line) for line in summary.splitlines()], [
            "passed   deb (s)",
            "skipped  deb-test: a chroot needs root",
            "FAILED   systemd-test (s): the service did not come back",
            "skipped  ceph: there is no ceph-mon here",
            "skipped  interop: the lab cannot be set up: apt-get update failed",
            "passed   soak-short (s)",
        ])
        self.assertIn("did not come back", (self.root / "build" / "nightly" / "systemd-test.log").read_text())

    def test_keeps_what_came_of_each_part_when_it_ran_last(self):
        page = self.root / "docs" / "nightly.md"
        page.write_text("| `soak` | passed in 3700 s | 0123abcd | 2026-01-02 |\n| `deb` | passed in 9 s | 0123abcd | 2026-01-02 |\n")
        self.nightly("systemd-test", "deb", "ceph")
        rows = [line.split(" | ")[:2] for line in page.read_text().splitlines() if line.startswith("| `")]
        self.assertEqual([[part, re.sub(r"\d+ s", "N s", result)] for part, result in rows], [
            ["| `deb`", "passed in N s"],
            ["| `systemd-test`", "**failed** after N s"],
            ["| `soak`", "passed in N s"],
        ])
        self.assertNotIn("passed in 9 s", page.read_text())

    def test_tells_by_its_exit_code_what_came_of_it(self):
        self.assertEqual(self.nightly("deb", "ceph").returncode, 0)
        self.assertEqual(self.nightly("ceph").returncode, 77)
        unknown = self.nightly("dep")
        self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))
        self.assertIn("'dep'", unknown.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
