"""`stag sync` and `stag cp` of trees: what is not removed, what can be changed again, names of one file in several folders, and names in messages."""
import os

import harness
from harness import Case


class Mirrors(Case):
    OTHER = 12345

    def as_other(self):
        os.setgroups([])
        os.setgid(self.OTHER)
        os.setuid(self.OTHER)

    def in_the_destination(self, source, *options):
        for name in ("f", "secret"):
            self.write(self.there("p", "deep", "sub", name), name.encode())
        self.write(self.there("p", "old"))
        self.bad(1, "the source is in the destination here, and stays", "sync", "--delete", *options, source, self.url("p"))
        self.assertEqual(sorted(os.listdir(self.there("p", "deep", "sub"))), ["f", "secret"])

    def test_do_not_remove_their_source(self):
        os.makedirs(self.there("p", "deep", "sub"))
        for source in (self.url("p", "deep", "sub"), self.there("p", "deep", "sub")):
            self.in_the_destination(source, "--dry-run")
            self.assertTrue(os.path.exists(self.there("p", "old")))
            self.in_the_destination(source)
            self.assertEqual(sorted(os.listdir(self.there("p"))), ["deep", "f", "secret"])

    def test_change_folders_in_which_their_owner_may_change_nothing(self):
        for path in (self.work, self.served, self.local, self.there()):
            os.chmod(path, 0o777)
        for step in ("first", "second"):
            for folder in ("ro", "gone") if step == "first" else ("ro",):
                os.makedirs(self.at("tree", folder), exist_ok=True)
                self.write(self.at("tree", folder, step))
                os.chmod(self.at("tree", folder), 0o555)
            self.good("sync", "--delete", self.at("tree"), self.url("mirror"), preexec_fn=self.as_other)
            self.assertEqual(os.stat(self.there("mirror", "ro")).st_mode & 0o777, 0o555)
            if step == "first":
                os.remove(self.at("tree", "gone", "first"))
                os.rmdir(self.at("tree", "gone"))
                os.remove(self.at("tree", "ro", "first"))
        self.assertEqual((os.listdir(self.there("mirror")), os.listdir(self.there("mirror", "ro"))), (["ro"], ["second"]))


    def test_leave_the_mode_of_a_folder_in_which_something_stays(self):
        """As what is excluded does, and what another one owns."""
        for path in (self.work, self.served, self.local, self.there()):
            os.chmod(path, 0o777)
        os.mkdir(self.at("tree"))
        os.makedirs(self.there("mirror", "ro", "below"))
        for path in (("mirror",), ("mirror", "ro")):
            os.chown(self.there(*path), self.OTHER, self.OTHER)
        self.write(self.there("mirror", "ro", "below", "f"))
        os.chmod(self.there("mirror", "ro"), 0o555)
        self.bad(1, "ermission denied", "sync", "--delete", self.at("tree"), self.url("mirror"), preexec_fn=self.as_other)
        self.assertEqual(os.stat(self.there("mirror", "ro")).st_mode & 0o777, 0o555)
        os.chown(self.there("mirror", "ro", "below"), self.OTHER, self.OTHER)
        self.good("sync", "--delete", "--exclude", "f", self.at("tree"), self.url("mirror"), preexec_fn=self.as_other)
        self.assertEqual(os.stat(self.there("mirror", "ro")).st_mode & 0o777, 0o555)
        self.good("sync", "--delete", self.at("tree"), self.url("mirror"), preexec_fn=self.as_other)
        self.assertEqual(os.listdir(self.there("mirror")), [])

    def test_of_this_machine_change_folders_that_their_owner_may_not_even_read(self):
        for path in (self.work, self.served, self.local, self.there(), self.at()):
            os.chmod(path, 0o777)
        os.makedirs(self.there("tree", "closed"))
        os.makedirs(self.at("mirror", "closed"))
        for path in (("mirror",), ("mirror", "closed")):
            os.chown(self.at(*path), self.OTHER, self.OTHER)
        os.chmod(self.at("mirror", "closed"), 0o300)
        self.write(self.there("tree", "closed", "f"), b"content")
        self.good("sync", self.url("tree"), self.at("mirror"), preexec_fn=self.as_other)
        self.assertEqual(self.read(self.at("mirror", "closed", "f")), b"content")


class NamesOfOneFile(Case):
    def test_may_be_in_several_folders(self):
        for folder in ("a", "b", "c"):
            os.makedirs(self.there("tree", folder))
        self.write(self.there("tree", "a", "x"), b"one" * 1000)
        for other in (("b", "y"), ("c", "z")):
            os.link(self.there("tree", "a", "x"), self.there("tree", *other))
        for version in ("3", "4.2"):
            into = self.at("into" + version)
            os.mkdir(into)
            self.good("cp", "-a", *(self.url("tree", folder) + f"&version={version}" for folder in ("a", "b", "c")), into)
            self.assertEqual(os.stat(os.path.join(into, "c", "z")).st_nlink, 3, version)


    def test_are_no_links_to_what_has_taken_the_first_one(self):
        for folder in ("s1", "s2", "s3"):
            os.mkdir(self.there(folder))
        self.write(self.there("s1", "x"), b"first")
        os.link(self.there("s1", "x"), self.there("s3", "y"))
        self.write(self.there("s2", "x"), b"other")
        for version in ("3", "4.2"):
            into = self.at("over" + version)
            os.mkdir(into)
            self.good("cp", "-a", *(self.url(folder, ".") + f"&version={version}" for folder in ("s1", "s2", "s3")), into)
            self.assertEqual((self.read(os.path.join(into, "x")), self.read(os.path.join(into, "y"))), (b"other", b"first"), version)


class Messages(Case):
    NAME = "a\n<0>kernel: forged"
    SHOWN = "a\\012<0>kernel: forged"

    def test_are_a_line_whatever_the_names_are(self):
        os.makedirs(self.there("tree", self.NAME))
        os.mkdir(self.at("to"))
        self.write(self.at("to", self.NAME))
        failed = harness.stag("sync", self.url("tree"), self.at("to"))
        self.assertEqual(failed.returncode, 1)
        self.assertIn(self.SHOWN, failed.stderr)
        self.assertNotIn("\n<0>", failed.stderr)
        done = harness.stag("sync", "-v", "--delete", self.url("tree"), self.at("to"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.SHOWN, done.stdout)
        self.assertNotIn("\n<0>", done.stdout)


if __name__ == "__main__":
    harness.main()
