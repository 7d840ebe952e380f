"""`stag cp` where one allocation fails, whichever: it ends, and leaves nothing that it does not name. Run as
`python3 copy_memory_test.py STAG FAILING_MALLOC`."""
import os
import subprocess
import sys
import unittest

import harness
from harness import Case

PRELOADED = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
RUNS = 60  # of each way


@unittest.skipUnless(PRELOADED, "the library that makes allocations fail is not named")
@unittest.skipIf(harness.is_sanitized(), "a sanitizer has its own malloc")
class OneAllocation(Case):
    FILES = 20

    def copied(self, *arguments, fail_at=None):
        """What became of a copy, and how many allocations it took."""
        count = self.at("count")
        environment = dict(os.environ, LD_PRELOAD=PRELOADED, COUNT_TO=count)
        if fail_at is not None:
            environment["FAIL_AT"] = str(fail_at)
        result = subprocess.run([harness.STAG, "cp", *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=harness.PATIENCE)
        return result, int(self.read(count)) if os.path.exists(count) else None

    def expect_order(self, sources, url, place):
        before = self.copied(self.at("sources", "0"), "nfs://127.0.0.1:1/x?proto=tcp&version=4.2")[1]
        result, total = self.copied("-r", sources, url)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for fail_at in range(before, total, max(1, (total - before) // RUNS)):
            subprocess.run(["rm", "-r", place], check=True)
            result, _ = self.copied("-r", sources, url, fail_at=fail_at)
            self.assertIn(result.returncode, (0, 1), (fail_at, result.stderr))
            for folder, _, names in os.walk(place):
                for name in names:
                    if name.startswith(".stag-"):
                        self.assertIn(name, result.stderr, fail_at)
                    else:
                        self.assertEqual(self.read(os.path.join(folder, name)), self.content, (fail_at, name))
            if result.returncode == 0:
                self.assertEqual(len(os.listdir(place)), self.FILES, fail_at)
            else:
                self.assertRegex(result.stderr, "^stag cp: ", fail_at)
            os.makedirs(place, exist_ok=True)

    def test_that_fails_ends_a_copy_in_order(self):
        self.content = os.urandom(100_000)
        os.mkdir(self.at("sources"))
        for number in range(self.FILES):
            self.write(self.at("sources", str(number)), self.content)
        for version in ("3", "4.2"):
            name = "copy" + version
            self.expect_order(self.at("sources"), f"{self.server.tcp(f'/files/{self.name}/{name}')}&version={version}", self.there(name))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
