"""`stag conform rpcrdma` against servers that are wrong in one thing, or take a liberty that an RFC gives them."""
import json

import harness
from fpdu_proxy import FpduProxy, pack

RDMA_MSG, RDMA_NOMSG = 0, 1
NULL_LISTS = [0, 0, 0]
ERRORS_OF_RPC = 1, 2, 3, 4  # PROG_UNAVAIL to GARBAGE_ARGS
SYSTEM_ERR = 5
CB_PROGRAM = 0x40000000


def has_error_of_rpc(words):
    """A Reply without chunks that is accepted, with such a status."""
    return len(words) >= 13 and words[3:7] == [RDMA_MSG, *NULL_LISTS] and words[8:10] == [1, 0] and words[12] in ERRORS_OF_RPC


class OneErrorForAll(FpduProxy):
    def reply(self, words, rest):
        if has_error_of_rpc(words):
            return pack(*words[:12], SYSTEM_ERR)


class NobodyIsTrusted(FpduProxy):
    """MSG_DENIED, AUTH_ERROR, AUTH_TOOWEAK."""

    def reply(self, words, rest):
        if has_error_of_rpc(words):
            return pack(*words[:9], 1, 1, 5)


class AnyRange(FpduProxy):
    """PROG_MISMATCH from 0 to the largest version."""

    def reply(self, words, rest):
        if has_error_of_rpc(words) and words[12] == 2:
            return pack(*words[:13], 0, 0xFFFFFFFF)


class AnyPrivateData(FpduProxy):
    """Takes any version and identifier, and does not search behind other bytes."""

    def mpa(self, private_data):
        at = private_data.find(b"\xab\x0e\x18") - 1
        if at < 0:
            return private_data
        own = bytearray(private_data[at:])
        # In front of it is what MPA puts there.
        if at > 4:
            own[0] = 0
        else:
            own[0], own[4] = 0xF6, 1
        return private_data[:at] + bytes(own)


class NoCredits(FpduProxy):
    """Answers a request for zero credits with an RDMA_ERROR that grants none."""

    def __init__(self, port):
        self.xids = set()
        super().__init__(port)

    def call(self, words, rest):
        if words[2] == 0:
            self.xids.add(words[0])

    def reply(self, words, rest):
        if words[0] in self.xids:
            return pack(words[0], 1, 0, 4, 2)


class InlineRubbish(FpduProxy):
    def down(self, ulpdu):
        return [ulpdu.replace(b"\0\0\0\6target\0\0", b"\0\0\0\6XXXXXX\0\0")]


class Pads(FpduProxy):
    """Writes XDR's padding into Write chunks."""

    def down(self, ulpdu):
        return [ulpdu + b"\0\0" if ulpdu[0] & 0x80 and ulpdu[14:] == b"target" else ulpdu]


class LastSegment(FpduProxy):
    """Puts a result into the first segment in which all of it has room: the third."""

    def __init__(self, port):
        self.handles = []
        super().__init__(port)

    def call(self, words, rest):
        if words[3:7] == [RDMA_MSG, 0, 1, 3]:
            self.handles = words[7:19:4]

    def reply(self, words, rest):
        if words[3:7] == [RDMA_MSG, 0, 1, 3]:
            words[8], words[12], words[16] = 0, 0, 6
            return pack(*words) + rest

    def down(self, ulpdu):
        handle = int.from_bytes(ulpdu[2:6], "big")
        if ulpdu[0] & 0x80 and handle in self.handles:
            return [ulpdu[:14] + b"target"] if handle == self.handles[2] else []
        return super().down(ulpdu)


class OtherChunks(FpduProxy):
    """Returns word `wrong` of each segment changed: 0 is the handle, 2 and 3 are the offset."""

    def __init__(self, port, wrong):
        self.wrong = wrong
        super().__init__(port)

    def spoil(self, words, at):
        """The segments of a chunk, whose number is at `at`; where its end is."""
        end = at + 1 + 4 * words[at]
        for segment in range(at + 1, end, 4):
            words[segment + self.wrong] ^= 0xFFFF
        return end

    def reply(self, words, rest):
        if words[3] not in (RDMA_MSG, RDMA_NOMSG) or words[4] != 0:
            return None
        at = 5
        while words[at] == 1:
            at = self.spoil(words, at + 1)
        if words[at + 1] == 1:
            self.spoil(words, at + 2)
        return pack(*words) + rest


class Joins(FpduProxy):
    """Joins two segments of a Position Zero chunk in the wrong order."""

    def __init__(self, port, one, other):
        self.at = [4 + 6 * one, 4 + 6 * other]
        super().__init__(port)

    def call(self, words, rest):
        if words[3:6] == [RDMA_NOMSG, 1, 0] and len(words) > 4 + 6 * 7:
            one, other = self.at
            words[one : one + 6], words[other : other + 6] = words[other : other + 6], words[one : one + 6]
            return pack(*words)


class ShortInstead(FpduProxy):
    """Answers what needs a Long Reply with a short message."""

    def __init__(self, port, message):
        self.message = message
        super().__init__(port)

    def reply(self, words, rest):
        if words[3:7] == [RDMA_NOMSG, 0, 0, 1]:
            for segment in range(words[7]):
                words[9 + 4 * segment] = 0
            return pack(*words[:3], RDMA_MSG, *words[4 : 8 + 4 * words[7]]) + self.message(words[0])


def system_error(xid):
    return pack(xid, 1, 0, 0, 0, SYSTEM_ERR)


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


SHUFFLED = (0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (1, 5)
SEVEN = "long call.in seven segments of odd lengths"
LONG_REPLIES = "reply chunk.a Reply of more than 1024 bytes", "reply chunk.segments are filled one after the other"
OTHER_REPLIES = "reply chunk.unused, it comes back with no length", "reply chunk.one that is too small draws ERR_CHUNK, or results that fit"
RESULT = "write list.a result goes into the chunk, without pad"


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

    def test_an_rpc_error_is_the_one_that_the_call_asks_for(self):
        statuses = {"a program that is not served": "PROG_UNAVAIL", "a version that is not served": "PROG_MISMATCH with the range of versions",
                    "a procedure that there is not": "PROC_UNAVAIL", "arguments that cannot be decoded": "GARBAGE_ARGS"}
        for kind, came in (OneErrorForAll, "SYSTEM_ERR"), (NobodyIsTrusted, "MSG_DENIED"):
            complaints = {f"message.{name}": f"{came} came, asked for {status}" for name, status in statuses.items()}
            self.check_fails(kind(self.version4.rdma_port), "rpcrdma.message.*", complaints)
        self.check_fails(AnyRange(self.version4.rdma_port), "rpcrdma.message.*",
                         {"message.a version that is not served": "PROG_MISMATCH came, asked for PROG_MISMATCH with the range"})

    def test_private_data_counts_only_where_it_is_right_and_wherever_it_stands(self):
        self.check_fails(AnyPrivateData(self.version4.rdma_port), "rpcrdma.private data.*", {
            "private data.of another version counts as none": "bytes came",
            "private data.of another format counts as none": "bytes came",
            "private data.behind other bytes": "results came that are cut to 1024 bytes",
        })

    def test_an_error_grants_credits_too(self):
        self.check_fails(NoCredits(self.version4.rdma_port), "rpcrdma.credits.*", {"credits.a request of zero": "zero credits were granted"})

    def test_results_that_stay_inline_are_read(self):
        inline = "write list.a result without a chunk stays inline", "write list.an empty chunk leaves its result inline"
        self.check_fails(InlineRubbish(self.version4.rdma_port), "rpcrdma.write list.*inline", {name: "a result is 'XXXXXX', not 'target'" for name in inline})

    def test_a_write_chunk_has_the_result_and_nothing_else(self):
        self.check_fails(Pads(self.version4.rdma_port), "rpcrdma.write list.a result goes*", {RESULT: "chunk 0 was written behind the length"})

    def test_segments_of_a_write_chunk_are_filled_in_their_order(self):
        self.check_fails(LastSegment(self.version4.rdma_port), "rpcrdma.write list.segments*",
                         {"write list.segments are filled one after the other": "used before the one in front of it was full"})

    def test_chunks_come_back_with_the_handles_and_offsets_of_the_call(self):
        for wrong in 0, 2, 3:
            proxy = OtherChunks(self.version4.rdma_port, wrong)
            self.check_fails(proxy, "rpcrdma.write list.a result goes*", {RESULT: "chunk 0 came back with another handle or offset"})
            proxy = OtherChunks(self.version4.rdma_port, wrong)
            self.check_fails(proxy, "rpcrdma.reply chunk.*", {name: "the Reply chunk came back with another handle or offset" for name in (*LONG_REPLIES, *OTHER_REPLIES)})

    def test_a_long_call_is_joined_in_the_order_of_its_segments(self):
        for one, other in SHUFFLED:
            found, code = self.asked(Joins(self.version4.rdma_port, one, other), "rpcrdma.long call.*seven*")
            self.assertEqual((found[SEVEN][0], code), ("fail", 1), (one, other, found))

    def test_results_that_need_a_long_reply_come_in_one(self):
        for message, came in (system_error, "SYSTEM_ERR"), (lambda xid: b"rubbish!", "that is no RPC Reply"):
            proxy = ShortInstead(self.version4.rdma_port, message)
            self.check_fails(proxy, "rpcrdma.reply chunk.*", {name: f"{came} came, asked for the results" for name in LONG_REPLIES})

    def test_a_server_may_go_by_rdma_xid_alone(self):
        found = self.check_passes(OneXidOnly(self.version4.rdma_port), "rpcrdma.xid.*")
        self.assertIn("SUCCESS came", found["xid.rdma_xid and the XID of the RPC message differ"][1])

    def test_a_server_may_call_back_by_version_4(self):
        self.check_passes(CallsByVersion4(self.version4.rdma_port), "rpcrdma.callback.*")
        self.check_passes(CallsByVersion4(self.version4.rdma_port), "nfs4.1.DELEGRETURN.NFS4_OK*")


if __name__ == "__main__":
    harness.main()
