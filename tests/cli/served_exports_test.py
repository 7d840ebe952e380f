#!/usr/bin/env python3
"""`stag status exports`: what a running server exports to whom, and what one host gets of it."""
import json
import os
import signal
import unittest

import harness
from harness import Server, stag
from name_server import PrivateHosts

DEFAULTS = "root_squash,no_all_squash,anonuid=65534,anongid=65534"


class ServedExports(PrivateHosts):
    def serve(self, *exports, **options):
        server = Server(list(exports), self.at("state"), **options)
        self.addCleanup(server.end)
        return server

    def serve_file(self, text):
        return self.serve(arguments=("--exports-file", self.write(self.at("exports"), text.encode())))

    def shown(self, *arguments):
        result = stag("status", "exports", *arguments, "--state", self.at("state"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def rows(self, *arguments):
        return json.loads(self.shown("--json", *arguments))["exports"]

    def test_have_each_client_with_all_of_its_options(self):
        self.serve(f"/data={self.there()},ro,fsid=7,client=192.0.2.0/24:rw:no_root_squash,client=*:sec=none", "/scratch=memory")
        data = {"export": "/data", "store": self.there(), "export_options": "fsid=7", "where": "--export /data"}
        squashed = "no_root_squash,no_all_squash,anonuid=65534,anongid=65534"
        self.assertEqual(self.rows(), [
            {**data, "client": "192.0.2.0/24", "options": f"rw,{squashed},insecure,sec=sys:none", "flavors": ["sys", "none"]},
            {**data, "client": "*", "options": f"ro,{DEFAULTS},insecure,sec=none", "flavors": ["none"]},
            {"export": "/scratch", "store": "memory", "where": "--export /scratch", "client": "*",
             "options": f"rw,{DEFAULTS},insecure,sec=sys:none", "flavors": ["sys", "none"]}])
        header, *lines = [line.split() for line in self.shown().splitlines()]
        self.assertEqual(header, ["EXPORT", "STORE", "CLIENT", "OPTIONS"])
        self.assertEqual(lines, [
            ["/data", self.there(), "192.0.2.0/24", f"rw,{squashed},insecure,sec=sys:none,fsid=7"],
            ["/data", self.there(), "*", f"ro,{DEFAULTS},insecure,sec=none,fsid=7"],
            ["/scratch", "memory", "*", f"rw,{DEFAULTS},insecure,sec=sys:none"]])

    def test_are_those_that_SIGHUP_has_read_last(self):
        server = self.serve_file(f"{self.there()} 192.0.2.1(rw)\n")
        self.write(self.at("exports"), f"\n{self.there()} 192.0.2.2(ro,sec=none:sys,insecure)\n".encode())
        server.process.send_signal(signal.SIGHUP)
        server.process.stdout.readline()
        (row,) = self.rows()
        self.assertEqual((row["client"], row["options"]), ("192.0.2.2", f"ro,{DEFAULTS},insecure,sec=none:sys"))

    def test_are_told_for_one_host_with_the_client_that_it_is_and_where_that_is_written(self):
        self.serve_file(f"# comment\n{self.there()} 192.0.2.0/24(ro) 192.0.2.7(rw) loc?lhos*(rw,all_squash,insecure)\n")
        (row,) = self.rows("--for", "192.0.2.7")
        self.assertEqual((row["address"], row["client"], row["where"]), ("192.0.2.7", "192.0.2.7", f"{self.at('exports')}:2"))
        self.assertEqual(row["options"], f"rw,{DEFAULTS},secure,sec=sys")
        self.assertEqual([row["client"] for row in self.rows("--for", "192.0.2.8")], ["192.0.2.0/24"])
        (row,) = self.rows("--for", "198.51.100.1")
        self.assertNotIn("client", row)
        self.assertNotIn("options", row)
        self.assertTrue(self.shown("--for", "198.51.100.1").endswith(" not open to it\n"))
        by_name = [row for row in self.rows("--for", "localhost") if row["address"] == "127.0.0.1"]
        self.assertEqual([row["client"] for row in by_name], ["loc?lhos*"])
        self.assertIn("all_squash", self.shown("--for", "127.0.0.1"))

    @unittest.skipUnless(harness.may_mount(), "no right to mount a file system (CAP_SYS_ADMIN)")
    def test_have_hosts_with_their_addresses(self):
        _, private = self.private_hosts(b"127.0.0.1 localhost\n")
        self.serve(f"/data={self.there()},client=localhost,client=no-such-host.invalid", before=private)
        rows = {row["client"]: row for row in self.rows()}
        self.assertIn("127.0.0.1", rows["localhost"]["addresses"])
        self.assertNotIn("unknown", rows["localhost"])
        self.assertEqual(rows["no-such-host.invalid"]["addresses"], [])
        self.assertIn("no such host", rows["no-such-host.invalid"]["unknown"])
        self.assertIn("no-such-host.invalid (unknown)", self.shown())
        self.assertIn("localhost (127.0.0.1", self.shown("--for", "127.0.0.1"))

    def test_refuse_hosts_that_are_none(self):
        self.serve("/scratch=memory")
        for host, code, sentence in (("192.0.2.0/24", 1, "neither an address nor the name of a host"), ("*.example.com", 1, "neither"), ("", 1, "neither")):
            result = stag("status", "exports", "--for", host, "--state", self.at("state"))
            self.assertEqual((result.returncode, result.stdout), (code, ""))
            self.assertIn(sentence, result.stderr)
        result = stag("status", "--for", "192.0.2.1", "--state", self.at("state"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("--for is for 'stag status exports'", result.stderr)


if __name__ == "__main__":
    harness.main()
