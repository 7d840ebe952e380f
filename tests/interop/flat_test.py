#!/usr/bin/env python3
"""What tests/interop/soak takes for flat, and that it looks at READ and WRITE."""
import math
import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import flat


class Flat(unittest.TestCase):
    def test_is_what_does_not_grow_whatever_single_samples_do(self):
        self.assertFalse(flat.grew([500, 500] + [100, 101, 99, 900] * 20, 0, 1.5)[2])
        self.assertFalse(flat.grew([7], 0, 1.5)[2])

    def test_is_not_what_grows_all_the_time(self):
        growing = [100.0 + i for i in range(200)]
        self.assertTrue(flat.grew(growing, 0, 1.5)[2])
        self.assertFalse(flat.grew(growing, 100, 1.5)[2])

    def test_is_asked_of_READ_and_WRITE(self):
        soak = (HERE / "soak").read_text()
        self.assertIn("rand_read_4k_32,write_4k_rtt", soak)
        for what, column in (("READ", 4), ("WRITE", 5)):
            more, factor = re.search(rf'^check "the latency of {what} is" flat {column} (\d+) ([\d.]+)$', soak, re.M).groups()
            self.assertTrue(flat.grew([120.0] * 60 + [400.0] * 60, float(more), float(factor))[2], "three times as long would pass")
        self.assertTrue(flat.grew([math.inf] * 120, 400, 1.5)[2], "calls without an answer would pass")

    def test_is_asked_of_nine_tenths_of_the_calls(self):
        soak = (HERE / "soak").read_text()
        self.assertRegex(soak, r"ping -c 200 .*flat\.py\" --pings 91")
        pings = lambda times: "".join(f"nfs://x over RDMA: seq={n} time={time:.1f} us\n" for n, time in enumerate(times)) + "9 calls, 9 answered; min/avg/p99/max\n"
        self.assertEqual(flat.percentile(pings([50.0] * 9 + [9000.0]), 90), 50.0)
        self.assertEqual(flat.percentile(pings(([50.0] * 9 + [9000.0]) * 20), 91), 9000.0, "nor is one that lets every tenth wait")
        self.assertEqual(flat.percentile(pings([50.0, 9000.0] * 9), 90), 9000.0, "a server that lets every other call wait is not flat")
        self.assertEqual(flat.percentile(pings([50.0] * 8) + "seq=8: timed out\nseq=9: timed out\n", 90), math.inf)
        self.assertEqual(flat.percentile("", 90), math.inf)


if __name__ == "__main__":
    unittest.main(verbosity=2)
