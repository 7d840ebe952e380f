#!/usr/bin/env python3
"""What tests/interop/soak finds missing of what a guest had been told is done, and how long it goes on."""
import contextlib
import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import fallen

DATA = b"as it was written\n" * 100
CONSOLE = b"[    1.0] boots\r\nSUM " + hashlib.sha256(DATA).hexdigest().encode() + b"\r\nHAS four 2 1\r\nHAS four 7 4\r\nHAS four 9"


class Fallen(unittest.TestCase):
    """A guest that had read seven rounds back, and had seen four lines of the maker's log."""

    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.folder = pathlib.Path(work.name) / "four"
        self.made = self.folder / "made"
        self.made.mkdir(parents=True)
        for number in range(3, 8):
            self.write(number)
        (self.made / "log").write_text("0\n1\n2\n3\n")

    def write(self, number, data=DATA, turn=None):
        (self.folder / f"written.{number % 5 if turn is None else turn}").write_bytes(b"%d\n" % number + data)

    def wrong(self, console=CONSOLE):
        return list(fallen.faults(console, [self.folder]))

    def test_leaves_what_it_was_told_and_what_it_was_about_to_do(self):
        self.assertEqual(self.wrong(), [])
        self.write(8)
        (self.folder / "part").write_bytes(b"9\nhalf")
        for name in "dir.4", "moved.3", ".nfs0001":
            (self.made / name).write_text("")
        self.assertEqual(self.wrong(), [])
        (self.made / "log").write_text("0\n1\n2\n")
        (self.made / "dir.4").unlink()
        self.assertEqual(self.wrong(), [], "the fourth line may have been in the guest's cache")

    def test_leaves_no_file_of_an_earlier_round(self):
        self.write(1)
        (wrong,) = self.wrong()
        self.assertRegex(wrong, r"written\.1 begins with b'1', and round 6 was read back")

    def test_leaves_no_file_of_another_name_or_content(self):
        self.write(8, turn=4)
        self.assertEqual(len(self.wrong()), 1)
        self.write(4, DATA[:-1])
        self.assertRegex(self.wrong()[0], r"written\.4 of round 4 differs")

    def test_misses_nothing(self):
        (self.folder / "written.2").unlink()
        (self.made / "log").write_text("0\n1\n")
        self.assertEqual([each.split()[-1] for each in self.wrong()], ["missing", "4"])
        (self.made / "log").unlink()
        self.made.rmdir()
        self.assertEqual(len(self.wrong()), 2)

    def test_did_nothing_twice_and_left_no_round_that_was_over(self):
        (self.made / "log").write_text("0\n1\n2\n2\n3\n")
        (self.made / "dir.1").mkdir()
        self.assertEqual(len(self.wrong()), 2)

    def test_may_have_been_told_nothing(self):
        for number in range(5):
            (self.folder / f"written.{number}").unlink()
        self.assertEqual(self.wrong(b"[    1.0] boots\r\nHAS fo"), [])

    def test_has_a_console_that_says_it(self):
        guest = (HERE / "guest" / "soak").read_text()
        self.assertIn('echo "SUM ${sum%% *}"', guest)
        self.assertIn('echo "HAS $2 $(cat "/tmp/$2.rounds") $lines"', guest)
        soak = (HERE / "soak").read_text()
        self.assertLess(soak.index("until_true 30 all_is_there"), soak.index('rm -rf "${folders[@]}"'), "nothing is removed that was not looked at")


class Guest(unittest.TestCase):
    """guest/soak in a folder of this machine, with a maker that makes folders and lines."""

    STUBS = """
    check() { shift; "$@"; }
    random() { head -c 30001 /dev/urandom >"$1"; }
    timeout() { :; }
    umount() { :; }
    probe() {
      n=0; mkdir "$2"; : >"$2/log"
      while [ ! -e "$ROOT/tmp/loaded" ]; do mkdir "$2/dir.$n"; echo $n >>"$2/log"; rmdir "$2/dir.$n"; n=$((n + 1)); sleep 0.01; done
    }
    """

    def setUp(self):
        work = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(work.cleanup)
        self.root = pathlib.Path(work.name)
        self.folder = self.root / "m" / "four" / "four"
        (self.root / "tmp").mkdir()
        script = (HERE / "guest" / "soak").read_text()
        for there, here in (("/tmp/", f"{self.root}/tmp/"), ('"/m/', f'"{self.root}/m/'), ("iflag=direct ", ""), ("sleep 5", "sleep 0.1")):
            self.assertIn(there, script)
            script = script.replace(there, here)
        environment = os.environ | {"ROOT": str(self.root), "MOUNTS": "1::4.2:four", "REPEATED": "0", "HOST": "host"}
        self.console = self.root / "console"
        with open(self.console, "wb") as console:
            self.process = subprocess.Popen(["sh", "-c", self.STUBS + script], env=environment, stdout=console, stderr=subprocess.STDOUT, start_new_session=True)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.fall)

    def fall(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def told(self, rounds):
        """Waits until the console has said so many."""
        while fallen.told(self.console.read_bytes())[1].get("four", (0, 0))[0] < rounds:
            self.assertIsNone(self.process.poll(), self.console.read_text())
            time.sleep(0.05)

    def wrong(self):
        return list(fallen.faults(self.console.read_bytes(), [self.folder]))

    def lines(self):
        return str(fallen.told(self.console.read_bytes())[1]["four"][1])

    def test_that_falls_has_left_what_its_console_says(self):
        self.told(7)
        self.fall()
        self.process.wait()
        self.assertEqual(self.wrong(), [])
        (self.folder / "written.3").unlink()
        (self.folder / "made" / "log").unlink()
        self.assertEqual([each.split()[-1] for each in self.wrong() if "/dir." not in each], ["missing", self.lines()], "with or without a folder that was under way")

    def test_that_is_stopped_says_how_much_it_did(self):
        self.told(2)
        (self.root / "m" / "four" / "stop").touch()
        self.assertEqual(self.process.wait(60), 0)
        self.assertRegex(self.console.read_text(), r"(?s)GUEST-SOAKS\n.*NOTE four: \d+ rounds")
        self.assertEqual(self.wrong(), [])


class Time(unittest.TestCase):
    """Of a soak of 1000 s; bash's SECONDS is set."""

    def said(self, script):
        script = f'set -u; source "{HERE}/soaking.sh"; ' + script
        return subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def loads(self, *steps):
        """What counts as load of a guest with the folders three and four, after steps (seconds, what the console shows by then or None for a new guest)."""
        with tempfile.TemporaryDirectory() as work:
            script = f"console={work}/console; : >$console; "
            for seconds, shown in steps:
                script += f"SECONDS={seconds}; " + ("load_begins three four; " if shown is None else f"printf '{shown}' >>$console; load_goes_on >/dev/null; ")
            return int(self.said(script + "echo $loaded"))

    def test_in_which_guests_begin_is_no_load(self):
        self.assertEqual(self.loads((100, None), (150, ""), (400, None), (410, "")), 60)

    def test_in_which_somebody_stands_still_is_no_load(self):
        both = "HAS three {0} {0}\\r\\nHAS four {0} {0}\\r\\n"
        self.assertEqual(self.loads((0, None), (100, both.format(1)), (200, both.format(2)), (300, both.format(3))), 300)
        self.assertEqual(self.loads((0, None), (100, "HAS three 1 1\\r\\n"), (200, "HAS three 2 2\\r\\n")), 100, "four says nothing")
        standing = [both.format(1), "HAS three 2 2\\r\\nHAS four 1 2\\r\\n", "HAS three 3 3\\r\\nHAS four 1 3\\r\\n"]
        self.assertEqual(self.loads((0, None), *zip((100, 200, 300), standing)), 200, "the writer of four stands still, its maker does not")
        self.assertEqual(self.loads((0, None), *zip((100, 200, 300), standing), (310, both.format(4)), (400, both.format(5))), 300)

    def test_of_a_guest_that_follows_starts_anew(self):
        self.assertEqual(self.loads((0, None), (100, "HAS three 1 1\\r\\nHAS four 1 1\\r\\n"), (500, None), (600, "")), 200)

    def test_is_made_good_for_a_quarter_and_no_longer(self):
        goes_on = lambda loaded, elapsed: self.said(f"loaded={loaded}; goes_on {elapsed} 1000 && echo yes || echo no")
        self.assertEqual(goes_on(899, 999), "yes")
        self.assertEqual(goes_on(899, 1000), "yes")
        self.assertEqual(goes_on(900, 1000), "no")
        self.assertEqual(goes_on(899, 1250), "no")

    def test_without_load_fails_the_soak(self):
        self.assertEqual(self.said("for loaded in 0 899 900; do loaded_enough 1000 && echo yes || echo no; done"), "no\nno\nyes")
        self.assertRegex((HERE / "soak").read_text(), r'(?m)^check ".*" loaded_enough "\$seconds"$')


if __name__ == "__main__":
    unittest.main(verbosity=2)
