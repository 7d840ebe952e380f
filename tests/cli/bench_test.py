"""`stag bench`: every figure against a server and against servers of its own. Sanitizers would only make it slow."""
import json
import os
import signal
import subprocess
import sys
import unittest

from xml.etree import ElementTree

import harness
from harness import Case


def ticks_of(process):
    """CPU time, user and system."""
    with open(f"/proc/{process}/stat", encoding="ascii") as stat:
        return sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))


class Bench(Case):
    def test_of_a_server_gives_figures_and_leaves_nothing_behind(self):
        only = ("--only", "null_rtt", "--only", "write_4k_rtt", "--only", "read_1m")
        out = json.loads(self.good("bench", "--json", "--milliseconds", "20", "--samples", "3", *only, self.server.url("/memory")))
        self.assertEqual([(row["name"], row["samples"]) for row in out["results"]], [("null_rtt", 3), ("write_4k_rtt", 3), ("read_1m", 3)])
        self.assertTrue(all(row["ours"] > 0 for row in out["results"]))
        self.assertEqual(self.good("ls", self.server.url("/memory")), "")
        self.bad(2, "--self", "bench")
        for what in ("--self", self.server.url("/memory")):
            self.bad(2, "there is no figure 'nope'; there are null_rtt, getattr_rtt, ", "bench", what, "--only", "null_rtt", "--only", "nope")

    def test_of_a_server_leaves_out_what_needs_servers_of_its_own_and_says_so(self):
        url = self.server.url("/memory")
        for rows in "idle", "crc_null_rtt", "null_rtt,crc_null_rtt", "crc_*":
            self.bad(2, "measured with --self and software iWARP only: ", "bench", "--rows", rows, url)
        done = harness.stag("bench", "--json", "--milliseconds", "5", "--samples", "1", "--rows", "*null_rtt", url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["name"] for row in json.loads(done.stdout)["results"]], ["null_rtt"])
        self.assertRegex(done.stderr, "left out, measured with --self and software iWARP only: .*crc_null_rtt")

    def test_says_whose_time_it_counts(self):
        short = ("--milliseconds", "5", "--samples", "1", "--rows", "null_rtt")
        for where, whose, name, not_name in ((self.server.url("/memory"), "the client alone", "ours_client_cpu_us", "ours_cpu_us"),
                                             ("--self", "both processes", "ours_cpu_us", "ours_client_cpu_us")):
            self.assertIn(f"CPU: of {whose}, for an operation", self.good("bench", *short, where))
            [row, *_] = json.loads(self.good("bench", "--json", *short, where))["results"]
            self.assertIn(name, row)
            self.assertNotIn(not_name, row)

    def test_of_a_device_needs_its_address(self):
        self.bad(2, "--fabric verbs and --address go together; stag devices shows addresses", "bench", "--self", "--fabric", "verbs")
        self.bad(2, "in a URL it is ?fabric=verbs", "bench", "--fabric", "verbs", "--address", "127.0.0.1", self.server.url("/memory"))
        self.bad(1, "could not listen at 127.0.0.1 through an RDMA device", "bench", "--self", "--fabric", "verbs", "--address", "127.0.0.1")

    def check_row(self, row):
        self.assertTrue(row["unit"] and row["samples"] == 1)
        self.assertTrue(0 < row["ours_min"] <= row["ours"] <= row["ours_max"], row)
        self.assertAlmostEqual(row["ratio"], row["ours"] / row["reference"])
        latency = [row.get("ours_latency_us", {}).get(share, 0) for share in ("p50", "p90", "p99", "p99.9", "max")]
        self.assertEqual(latency, sorted(latency))

    def test_of_itself_prints_every_figure_with_its_reference(self):
        out = json.loads(self.good("bench", "--self", "--json", "--milliseconds", "5", "--samples", "1"))
        names = """null_rtt getattr_rtt null_rate_32 null_rate_128 getattr_rate_32 rand_read_4k_32 rand_write_4k_32 write_4k_rtt read_1m write_1m
            read_256k write_256k read_64k write_64k poll_null_rtt poll_getattr_rtt poll_write_4k_rtt cpu_per_null cpu_per_mib_read
            cpu_per_mib_written"""
        self.assertEqual(sorted(row["name"] for row in out["results"]), sorted(names.split()))
        for row in out["results"]:
            self.check_row(row)
            self.assertIn("met", row["goal"])
        self.assertEqual([row["name"] for row in out["references"]], ["memcpy_1m", "raw_stream_1m", "raw_ping_pong_128", "raw_pipelined_128_32"])
        self.assertTrue(all(row["ours"] > 0 for row in out["references"]))

    def test_measures_every_set_up(self):
        folders = lambda: {name for name in os.listdir("/dev/shm") if name.startswith("stag-bench")}
        before = folders()
        out = json.loads(self.good("bench", "--self", "--json", "--milliseconds", "5", "--samples", "1", "--rows",
                                   "crc_null_rtt,fpdus_*,tcp_read_64k,posix_write_64k,rand_read_4k_8x8*", "--rows", "null_rtt"))
        for row in out["results"]:
            self.check_row(row)
        self.assertEqual([row["name"] for row in out["results"]],
                         ["null_rtt", "crc_null_rtt", "fpdus_read_1m", "fpdus_write_1m", "tcp_read_64k", "posix_write_64k", "rand_read_4k_8x8_one_loop",
                          "rand_read_4k_8x8_two_loops", "cpu_per_null"])
        self.assertLessEqual(folders(), before)

    def test_holds_a_goal_that_names_another_row_against_it_though_it_was_not_chosen(self):
        out = json.loads(self.good("bench", "--self", "--json", "--milliseconds", "5", "--samples", "1", "--rows", "crc_read_64k"))
        self.assertEqual([row["name"] for row in out["results"]], ["crc_read_64k"])
        self.assertEqual(out["results"][0]["goal"]["of"], "read_64k")
        self.assertGreater(out["results"][0]["goal"]["found"], 0)

    def test_of_many_connections_of_programs_and_without_a_network(self):
        out = json.loads(self.good("bench", "--self", "--json", "--milliseconds", "5", "--samples", "1", "--idle", "100", "--active", "20", "--rows",
                                   "idle,active,serve*,cat*,sim_write_4k_rtt"))
        values = {row["name"]: row["ours"] for row in out["results"]}
        self.assertEqual(list(values), ["sim_write_4k_rtt", "idle_memory", "idle_cpu", "idle_null_rtt", "active_getattr_rate", "active_most_to_least",
                                        "serve_first_answer", "cat_small_file"])
        self.assertTrue(all(value > 0 for name, value in values.items() if name not in ("idle_memory", "idle_cpu")), values)
        self.assertGreaterEqual(values["active_most_to_least"], 1)

    @unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/sys/bus/event_source/devices/uprobe/type"), "the kernel does not count for us")
    def test_counts_system_calls_and_allocations(self):
        out = json.loads(self.good("bench", "--self", "--json", "--milliseconds", "100", "--samples", "1", "--rows", "null_rtt"))
        row = out["results"][0]
        if "ours_system_calls" not in row:
            self.skipTest("this kernel has no trace point of system calls")
        self.assertGreater(row["ours_system_calls"], 2)
        # Next to none: only what begins and ends the sample takes memory from the heap.
        self.assertGreater(row["ours_allocations"], 0)
        self.assertLess(row["ours_allocations"], 1)

    def test_draws_plots(self):
        folder = os.path.join(self.work, "plots")
        self.good("bench", "--self", "--milliseconds", "2", "--samples", "1", "--rows", "null_rtt", "--plots", folder)
        points = {name: len(ElementTree.parse(os.path.join(folder, name)).findall(".//{http://www.w3.org/2000/svg}circle")) for name in os.listdir(folder)}
        self.assertEqual(points, {"throughput-by-block.svg": 44, "latency-by-depth.svg": 32, "rate-by-connections.svg": 14})
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
        checked = subprocess.run([sys.executable, os.path.join(root, "arch", "pictures_have_footers.py"), folder], stdout=subprocess.PIPE, text=True)
        self.assertEqual((checked.returncode, checked.stdout), (0, ""))
        for name in points:
            with open(os.path.join(folder, name), encoding="utf-8") as plot:
                self.assertIn(f">{self.good('--version').strip()} on software iWARP, ", plot.read())

    def test_that_is_interrupted_while_it_draws_measures_no_further(self):
        # All samples of the raw reference alone, of two seconds each, are more than PATIENCE.
        shown, terminal = harness.open_terminal(self)
        arguments = ["bench", "--self", "--milliseconds", "2000", "--samples", "1", "--rows", "null_rtt", "--plots", self.at("plots")]
        with subprocess.Popen([harness.STAG, *arguments], stdout=subprocess.DEVNULL, stderr=terminal) as bench:
            os.close(terminal)
            text = b""
            while b"plots" not in text:
                text += os.read(shown, 4096)
            with open(f"/proc/{bench.pid}/task/{bench.pid}/children", encoding="ascii") as children:
                _, raw_peer = sorted(map(int, children.read().split()))
            before = ticks_of(raw_peer)
            while ticks_of(raw_peer) == before:
                self.assertIsNone(bench.poll())
            bench.send_signal(signal.SIGINT)
            try:
                self.assertEqual(bench.wait(harness.PATIENCE), 130)
            finally:
                bench.kill()
        os.close(shown)
        self.assertFalse(os.path.exists(self.at("plots")))

    def test_that_is_interrupted_leaves_nothing_on_the_server(self):
        url = self.server.url("/memory")
        with subprocess.Popen([harness.STAG, "bench", "--milliseconds", "60000", url], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as bench:
            while "stag-bench.data" not in self.good("ls", url) and bench.poll() is None:
                pass
            bench.send_signal(signal.SIGINT)
            self.assertEqual(bench.stderr.read(), "stag bench: interrupted\n")
            self.assertEqual(bench.wait(harness.PATIENCE), 130)
        self.assertEqual(self.good("ls", url), "")


if __name__ == "__main__":
    harness.main()
