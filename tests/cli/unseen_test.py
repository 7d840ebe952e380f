"""Entries that cannot be looked at: what stands beside them is copied, found and changed all the same, and nothing is removed for them."""
import os
import unittest

import harness
from exports_test import mounting
from harness import Case, Server, stag


@unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
class MountPoint(Case):
    """One in an exported folder: the server refuses to look it up."""

    def setUp(self):
        super().setUp()
        os.makedirs(self.there("tree", "mounted"))
        os.makedirs(self.there("tree", "z"))
        for path in (("tree", "a"), ("tree", "z", "f")):
            self.write(self.there(*path), b"content")
        mount_it = mounting(b"none", self.there("tree", "mounted"), b"tmpfs", 0, None)
        self.mine = Server([f"/files={self.there()},no_root_squash"], self.at("state"), preexec_fn=mount_it)
        self.addCleanup(self.mine.end)
        self.urls = [f"{self.mine.url('/files/tree')}&version={version}" for version in ("3", "4.2")]

    def complains(self, *arguments):
        result = self.bad(1, "permission denied; check owner and mode, and the options of the export, and whether something is mounted there", *arguments)
        self.assertIn("tree/mounted", result.stderr)
        return result.stdout

    def test_is_left_out_of_a_copy(self):
        for number, url in enumerate(self.urls):
            self.complains("cp", "-r", url, self.at(f"copy{number}"))
            self.assertEqual(sorted(os.listdir(self.at(f"copy{number}"))), ["a", "z"])
            self.assertEqual(os.listdir(self.at(f"copy{number}", "z")), ["f"])
            self.good("cp", "-r", "--exclude", "mounted/", url, self.at(f"without{number}"))

    def test_keeps_what_has_its_name_in_a_copy(self):
        for number, url in enumerate(self.urls):
            os.makedirs(self.at(f"copy{number}", "mounted", "kept"))
            os.makedirs(self.at(f"copy{number}", "gone"))
            self.complains("sync", "--delete", url, self.at(f"copy{number}"))
            self.assertEqual(sorted(os.listdir(self.at(f"copy{number}"))), ["a", "mounted", "z"])
            self.assertEqual(os.listdir(self.at(f"copy{number}", "mounted")), ["kept"])

    def test_stays_where_everything_else_is_removed(self):
        os.mkdir(self.at("empty"))
        for url in self.urls:
            self.complains("sync", "--delete", self.at("empty"), url)
            self.assertEqual(os.listdir(self.there("tree")), ["mounted"])
            self.write(self.there("tree", "again"))

    def test_is_passed_by_what_walks(self):
        for url in self.urls:
            self.assertEqual(self.complains("find", url).splitlines(), ["/files/tree", "/files/tree/a", "/files/tree/z", "/files/tree/z/f"])
            self.assertIn("/files/tree/z\n", self.complains("du", url))
            self.assertIn("f\n", self.complains("tree", url))
            os.chmod(self.there("tree", "z", "f"), 0o644)
            self.complains("chmod", "-R", "go=", url)
            self.assertEqual(os.stat(self.there("tree", "z", "f")).st_mode & 0o777, 0o600)


if __name__ == "__main__":
    harness.main()
