"""`stag conform rpcrdma` against servers that are wrong in one thing, or take a liberty that an RFC gives them."""
import json

import harness
from fpdu_proxy import FpduProxy, pack

RDMA_MSG, RDMA_NOMSG = 0, 1
NULL_LISTS = [0, 0, 0]
CB_PROGRAM = 0x40000000


class OneXidOnly(FpduProxy):
    """Goes by rdma_xid alone, which RFC 8166 4.2.1 allows."""

    def call(self, words, rest):
        if len(words) > 9 and words[1] == 1 and words[3:7] == [RDMA_MSG, *NULL_LISTS] and words[8] == 0 and words[7] != words[0]:
            return pack(*words[:7], words[0], *words[8:]) + rest


class CallsByVersion4(FpduProxy):
    """Calls back by version 4, as RFC 8881 18.36.3 asks; the XDR says 1."""

    def reply(self, words, rest):
        if len(words) > 12 and words[3] == RDMA_MSG and words[8] == 0 and words[10:12] == [CB_PROGRAM, 1]:
            return pack(*words[:11], 4, *words[12:]) + rest


class ConformToWrong(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.version4 = harness.Server(["/memory=memory,no_root_squash"], f"{cls.work}/state4", ["--grace", "1"])

    @classmethod
    def tearDownClass(cls):
        code = cls.version4.end()
        super().tearDownClass()
        if code != 0:
            raise AssertionError(f"the server ended with {code}")

    def asked(self, proxy, pattern):
        """{"group.name": (outcome, detail)} of the cases, and the exit code."""
        self.addCleanup(proxy.cut)
        url = f"nfs://127.0.0.1:{proxy.port}/memory?mountport={self.version4.tcp_port}"
        suite = "nfs4" if pattern.startswith("nfs4") else "rpcrdma"
        done = harness.stag("conform", "--json", "--filter", pattern, "--timeout", "60", suite, url)
        self.assertTrue(done.stdout, done.stderr)
        self.assertGreater(proxy.changed, 0, "the server was as it is")
        cases = json.loads(done.stdout)["cases"]
        return {f"{c['group']}.{c['name']}": (c["outcome"], c["detail"]) for c in cases}, done.returncode

    def check_fails(self, proxy, pattern, complaints):
        """The cases of `complaints` fail with these sentences, and no others do."""
        found, code = self.asked(proxy, pattern)
        failed = {name: detail for name, (outcome, detail) in found.items() if outcome == "fail"}
        self.assertEqual(failed.keys(), complaints.keys())
        for name, complaint in complaints.items():
            self.assertIn(complaint, failed[name])
        self.assertEqual(code, 1)

    def check_passes(self, proxy, pattern):
        found, code = self.asked(proxy, pattern)
        self.assertEqual({outcome for outcome, _ in found.values()}, {"pass"}, found)
        self.assertEqual(code, 0)
        return found

    def test_a_server_may_go_by_rdma_xid_alone(self):
        found = self.check_passes(OneXidOnly(self.version4.rdma_port), "rpcrdma.xid.*")
        self.assertIn("SUCCESS came", found["xid.rdma_xid and the XID of the RPC message differ"][1])

    def test_a_server_may_call_back_by_version_4(self):
        self.check_passes(CallsByVersion4(self.version4.rdma_port), "rpcrdma.callback.*")
        self.check_passes(CallsByVersion4(self.version4.rdma_port), "nfs4.1.DELEGRETURN.NFS4_OK*")


if __name__ == "__main__":
    harness.main()
