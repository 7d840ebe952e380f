"""What `stag cp` and `stag sync` do to a file that is there already: what it keeps, and that nothing is lost."""
import os

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


if __name__ == "__main__":
    harness.main()
