"""What `stag cp` and `stag sync` do to a file that is there already: what it keeps, and that nothing is lost."""
import os
import unittest

import harness
from harness import Case, stag


class OneFile(Case):
    def test_is_not_copied_onto_itself_where_one_side_is_local(self):
        os.link(self.write(self.there("f"), b"content"), self.there("g"))
        for version in ("2", "3", "4.2"):
            url = self.url("f") + f"&version={version}"
            for options in ([], ["--inplace"], ["-a"]):
                self.bad(1, "is the same file", "cp", *options, self.there("f"), url)
                self.bad(1, "is the same file", "cp", *options, url, self.there("g"))
                self.assertEqual(self.read(self.there("f")), b"content")

    def test_may_look_like_another_one_but_for_the_time_of_its_change(self):
        for below in (self.at, self.there):
            os.utime(self.write(below("f"), below("f").encode()[-3:]), (1000, 1000))
        self.good("cp", "--inplace", self.at("f"), self.url("f"))


@unittest.skipIf(os.geteuid() != 0, "is about what other users may read")
class Unreadable(Case):
    """A source that cannot be read: what it would have overwritten in place stays."""

    SOMEBODY = 1234

    def as_somebody(self):
        os.setgroups([])
        os.setgid(self.SOMEBODY)
        os.setuid(self.SOMEBODY)

    def linked(self, path):
        os.link(self.write(path, b"old content"), path + "-too")
        os.chown(path, self.SOMEBODY, self.SOMEBODY)
        return path

    def test_leaves_what_is_there(self):
        for path in (self.work, self.served, self.local, self.there()):
            os.chmod(path, 0o777)
        for below in (self.at, self.there):
            os.chmod(self.write(below("secret"), b"secret"), 0o600)
            self.linked(below("linked"))
            os.chmod(self.write(below("foreign"), b"old content"), 0o666)
        for options, name in (([], "linked"), ([], "foreign"), (["--inplace"], "foreign")):
            self.bad(1, "ermission denied", "cp", *options, self.at("secret"), self.url(name), preexec_fn=self.as_somebody)
            self.bad(1, "ermission denied", "cp", *options, self.url("secret"), self.at(name), preexec_fn=self.as_somebody)
            for below in (self.at, self.there):
                self.assertEqual(self.read(below(name)), b"old content", (options, below(name)))


if __name__ == "__main__":
    harness.main()
