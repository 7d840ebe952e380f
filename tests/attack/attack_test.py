"""The attackers themselves: `python3 attack_test.py STAG`. A tool that finds nothing must be one that could have found something."""
import asyncio
import collections
import os
import random
import re
import stat
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock

STAG = os.path.abspath(sys.argv.pop(1))
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import campaign  # noqa: E402
import floods  # noqa: E402
import floods4  # noqa: E402
from hostile import commands, lies4, manners, mounts, program  # noqa: E402
from hostile.files import Files  # noqa: E402
from hostile.files4 import Files4  # noqa: E402
from hostile.server import HostileServer  # noqa: E402
from mutation import spoil  # noqa: E402
from wire import iwarp, nfs, rpc, rpcrdma  # noqa: E402
from wire.fields import join  # noqa: E402


def run(program, *arguments):
    return subprocess.run([os.path.join(HERE, "run"), "--stag", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run_wrapped(script, name="tcp/rpc", *arguments):
    """Against a program in whose place `script` is run."""
    with tempfile.TemporaryDirectory() as work:
        program = os.path.join(work, "stag")
        with open(program, "w") as file:
            file.write(f"#!/bin/bash\nSTAG={STAG}\n{script}\n")
        os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
        return run(program, "--seed", "1", "--only", name, "--seconds", "3", *arguments)


class Codecs(unittest.TestCase):
    def test_CRC32C_is_that_of_RFC_3720(self):
        # RFC 3720 B.4: 32 bytes of zeros.
        self.assertEqual(iwarp.crc32c(bytes(32)), bytes.fromhex("aa36918a"))

    def test_FPDUs_are_found_in_a_stream_of_bytes_that_come_one_by_one(self):
        parts = [b"", b"a", b"four", b"x" * 1000]
        stream = b"".join(
            join(iwarp.fpdu(join(iwarp.untagged(iwarp.SEND, 0, i + 1)) + part)) for i, part in enumerate(parts)
        )
        reader = iwarp.FpduReader()
        segments = [segment for i in range(len(stream)) for segment in reader.feed(stream[i : i + 1])]
        self.assertEqual([segment.payload for segment in segments], parts)
        self.assertEqual([segment.sequence for segment in segments], [1, 2, 3, 4])

    def test_headers_are_read_as_they_were_made(self):
        memory = rpcrdma.Memory(7, 100, 1 << 40)
        fields = rpcrdma.header(9, rpcrdma.RDMA_NOMSG, 64, [(0, memory)], [[memory, memory]], [memory])
        header = rpcrdma.parse_header(join(fields) + b"rest")
        self.assertEqual(
            (header.xid, header.proc, header.reads, header.writes, header.reply), (9, 1, [(0, memory)], [[memory, memory]], [memory])
        )
        self.assertEqual(header.size, len(join(fields)))

    def test_records_are_put_together_from_their_fragments(self):
        reader = rpc.RecordReader()
        stream = join(rpc.record(b"one message", 3)) + join(rpc.record(b"another"))
        self.assertEqual([record for i in range(len(stream)) for record in reader.feed(stream[i : i + 1])], [b"one message", b"another"])


class Mutations(unittest.TestCase):
    def test_leave_the_other_layers_as_they_are(self):
        fields = rpc.call_fields(1, nfs.write(b"h" * 28, 0, b"data"))
        for seed in range(500):
            spoiled = spoil(fields, "handle", random.Random(seed), fields)
            others = [field for field in fields if field.layer != "handle"]
            if len(spoiled) == len(fields):  # one value only, or two fields that changed places
                self.assertLessEqual(len([field for field in others if field not in spoiled]), 1)
        self.assertEqual([field.name for field in fields if field.layer == "handle"], ["handle.length", "handle"])

    def test_are_the_same_by_the_same_seed(self):
        fields = rpc.call_fields(1, nfs.lookup(b"h" * 28, b"name"))
        spoiled = [[spoil(fields, "xdr", random.Random(seed), fields) for seed in range(100)] for _ in range(2)]
        self.assertEqual(*spoiled)
        self.assertGreater(len({join(each) for each in spoiled[0]}), 50)


class Asked(Files4):
    """Notes the operations that it was asked for."""

    def __init__(self):
        super().__init__()
        self.operations = set()

    def operation(self, number, call):
        self.operations.add(number)
        return super().operation(number, call)


class TruthfulServer(unittest.TestCase):
    def test_is_understood_by_every_command(self):
        for transport in ("tcp", "rdma"):
            for words in commands.COMMANDS:
                self.assertEqual(self.exit_code(Files(), words, transport), 0, (transport, words))

    def test_of_version_4_is_understood_by_every_command_that_speaks_it(self):
        for version in ("4.0", "4.1", "4.2"):
            for words in commands.COMMANDS:
                if words[0] != "info":
                    self.assertEqual(self.exit_code(Files4(), words, "tcp", version=version), 0, (version, words))

    def test_of_version_4_2_is_asked_for_what_only_that_has(self):
        files = Asked()
        for words in commands.OF_VERSION_4_2:
            self.exit_code(files, words, "tcp", version="4.2")
        copy, seek, clone, getxattr, listxattrs = 60, 69, 71, 72, 74
        self.assertLessEqual({copy, seek, clone, getxattr, listxattrs}, files.operations)

    def exit_code(self, *arguments, **options):
        with tempfile.TemporaryDirectory() as local:
            commands.fill(local)
            return asyncio.run(self.run_command(*arguments, local, **options))

    async def run_command(self, files, words, transport, local, **options):
        async with HostileServer(files, manners.Manner(None)) as server:
            arguments = commands.arguments_of(words, transport, server, local, timeout=60, **options)
            process = await asyncio.create_subprocess_exec(STAG, *arguments, stdout=asyncio.subprocess.DEVNULL)
            return await process.wait()


class HostileServers(unittest.TestCase):
    def test_of_version_4_2_find_nothing(self):
        only = [word for kind in lies4.OF_VERSION_4_2 for word in ("--only", f"hostile/{kind}")]
        result = run(STAG, "--seed", "1", "--batches", "6", *only)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"hostile/v4-many-xattrs +[0-9.]+ +6 commands")


@unittest.skipUnless(mounts.usable(), "no right to use /dev/fuse")
class TruthfulMount(unittest.TestCase):
    def results(self, files, query):
        results = asyncio.run(mounts.mount_and_visit(STAG, files, manners.Manner(random.Random(0)), True, query))
        return {operation: result for operation, result in results.items() if result != "ok"}

    def test_can_do_whatever_visitors_do(self):
        no_xattrs = {"getfattr": "ENOTSUP", "setfattr": "ENOTSUP"}
        for query in ("proto=tcp&version=3", "proto=rdma&version=3"):
            self.assertEqual(self.results(Files(), query), no_xattrs, query)
        for version, missing in (("4.0", no_xattrs), ("4.1", no_xattrs), ("4.2", {})):
            self.assertEqual(self.results(Files4(), f"proto=tcp&version={version}"), missing, version)


@unittest.skipUnless(mounts.usable(), "no right to use /dev/fuse")
class HostileMounts(unittest.TestCase):
    QUICK = ("cycling-cookies", "endless-directory", "strange-sizes", "strange-names", "calls-back", "v4-stateids", "v4-contradictions", "v4-other-results",
             "v4-recalls", "v4-lost-sessions", "v4-revoked", "v4-calls-back", "v4-copies", "v4-holes", "v4-many-xattrs")  # fmt: skip

    def test_find_nothing(self):
        only = [word for name in self.QUICK for word in ("--only", f"mounted/{name}")]
        result = run(STAG, "--seed", "1", "--batches", "2", *only)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"mounted/v4-recalls +[0-9.]+ +2 commands")
        self.assertIn("nothing found", result.stdout)

    def test_find_a_mount_that_dies(self):
        result = run_wrapped('"$STAG" "$@" & mount=$!; (sleep 2; kill -ABRT $mount) & wait $mount', "mounted/silence", "--batches", "1")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stdout, r"FAILED mounted/silence: .*(it ended while it was used|its exit code is)")

    def test_find_a_visitor_that_is_left_waiting(self):
        visit = mounts.visit

        async def visit_impatiently(*arguments):
            with unittest.mock.patch.object(mounts, "PATIENCE", 3):
                return await visit(*arguments)

        with unittest.mock.patch.multiple(mounts, TIMEOUT=1000, visit=visit_impatiently), self.assertRaisesRegex(mounts.Finding, "'statvfs' does not end within 3 s"):
            asyncio.run(mounts.mount_and_visit(STAG, Files(), manners.Silence(random.Random(0)), False, "proto=tcp&version=3"))


class Patience(unittest.TestCase):
    """What never ends is found, too."""

    def test_has_an_end_with_a_program_that_SIGKILL_does_not_end(self):
        async def killed(work):
            reader, writer = os.pipe()
            began, begins = os.pipe()
            # Its standard error stays open in a process of its own, until our pipe is closed.
            shell = await program.Program.start("/bin/bash", ["-c", f"cat <&{reader} >&2 & echo >&{begins}; wait"], work, pass_fds=(reader, begins))
            os.close(begins)
            self.assertEqual(os.read(began, 1), b"\n")
            try:
                await shell.kill()
            finally:
                for each in (reader, writer, began):
                    os.close(each)

        with tempfile.TemporaryDirectory() as work, unittest.mock.patch.object(program, "DEATH", 0.1), self.assertRaisesRegex(program.Finding, "SIGKILL did not end it"):
            asyncio.run(killed(work))

    def test_has_an_end_behind_which_everything_is_cleaned_up(self):
        cleaned = []

        async def run_one(stag, name, seed):
            try:
                await asyncio.Event().wait()
            finally:
                for _ in range(10 * int(name)):
                    await asyncio.sleep(0)
                cleaned.append(name)

        names = [str(i) for i in range(commands.AT_ONCE)]
        with unittest.mock.patch.object(commands, "GRACE", 0):
            running = asyncio.run(commands.run_many(run_one, STAG, names, 1, 0.01, 0, None, None, None))
        self.assertEqual(sorted(running), names)
        self.assertEqual(sorted(cleaned), names)

    def test_has_an_end_with_attackers_that_wait_for_ever(self):
        options = types.SimpleNamespace(seconds=0, servers=1, seed=1)
        with unittest.mock.patch.multiple(campaign, LATENESS=0.1), unittest.mock.patch.object(campaign.Campaign, "rounds", lambda *_: threading.Event().wait()):
            total = campaign.side_by_side(options, lambda line: None)
        self.assertRegex(str(total.failures), "attackers of server 1 themselves failed")


class Runs(unittest.TestCase):
    def test_find_nothing_in_a_server_without_fault(self):
        result = run(STAG, "--seed", "1", "--batches", "1", "--only", "rdma/chunks", "--only", "tcp/xdr", "--seconds", "2")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("nothing found", result.stdout)
        self.assertIn("RdmaHeaderMalformed", result.stdout)

    def test_attack_a_server_with_Kerberos(self):
        result = run(STAG, "--seed", "1", "--batches", "1", "--only", "*/gss", "--only", "flood/tokens", "--sources", "4", "--seconds", "4")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("GssTokenRefused", result.stdout)
        self.assertRegex(result.stdout, r"p99 .*server \d+% busy")

    def test_of_several_servers_at_once_are_one_result(self):
        result = run(STAG, "--servers", "2", "--seed", "1", "--batches", "1", "--only", "tcp/rpc", "--only", "hostile/cut", "--seconds", "2")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"tcp/rpc +[0-9.]+ +512 messages")
        self.assertRegex(result.stdout, r"hostile/cut +[0-9.]+ +2 commands")
        self.assertRegex(result.stdout, r"processor time: servers \d+ s, commands \d+ s, attackers \d+ s")

    def test_measure_a_good_client_beside_hosts_that_the_server_calls(self):
        result = run(STAG, "--seed", "1", "--only", "flood/callbacks", "--sources", "6", "--seconds", "3")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"called back|hosts without port 111")
        self.assertRegex(result.stdout, r"p99 .*server \d+% busy")

    def test_measure_it_also_beside_the_same_flood_of_another_server(self):
        result = run(STAG, "--seed", "1", "--only", "flood/notify", "--sources", "4", "--seconds", "3", "--control")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"\d+ opened")  # how far a flood comes is the machine's to say
        self.assertRegex(result.stdout, r"p99 .*\[beside [0-9.]+ ms, [0-9.]+x\]")

    def test_leave_a_good_client_of_version_4_unharmed_and_what_it_has(self):
        result = run(STAG, "--seed", "1", "--only", "flood/nfs4-stolen", "--only", "flood/nfs4-counted", "--sources", "4", "--seconds", "6")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"[1-9]\d* rounds of version 4.1")

    def test_find_a_server_that_takes_too_much_memory(self):
        result = run(STAG, "--seed", "1", "--only", "flood/dribble", "--sources", "4", "--seconds", "2", "--most-memory", "1")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stdout, r"FAILED flood/dribble: the server had \d+ MiB of memory, more than 1")

    def test_find_a_status_that_a_flood_may_not_be_told(self):
        counts = collections.Counter()
        for status in (floods4.OK, floods4.DELAYED, 10006):
            floods4.counted(counts, status, floods4.Leases.ALLOWED)
        floods4.counted(counts, floods4.OK, floods4.Stolen.ALLOWED)
        self.assertEqual(counts, {"ok": 1, "delayed": 1, "unexpected status 10006": 1, "unexpected status 0": 1})

    def test_judge_floods_by_what_they_were_told_and_what_is_kept(self):
        names = [word for name in floods4.FLOODS if name not in ("flood/nfs4-stolen", "flood/nfs4-counted") for word in ("--only", name)]
        result = run(STAG, "--seed", "1", "--sources", "4", "--seconds", "10", "--only", "flood/locks", *names)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(len(re.findall(r"flood/\S+ .* [1-9]\d* clients kept", result.stdout)), 5, result.stdout)

    def test_find_a_flood_that_takes_more_than_it_may(self):
        def judged(flood, kept, **counts):
            return list(flood.judge(collections.Counter({word.replace("_", " "): count for word, count in counts.items()}), kept))

        row = {"version": "4.1", "address": "127.0.0.2", "opens": 1, "locks": 0}
        self.assertEqual(judged(floods4.Clients, [row] * 100, ok=100, clients=100), [])
        self.assertEqual(judged(floods4.Clients, [row] * 101, ok=100, clients=100), ["101 clients are kept of 100 that came"])
        self.assertEqual(judged(floods4.Clients, [row] * 5000, ok=5000, clients=5000), ["5000 clients of one address are kept"])
        self.assertEqual(judged(floods4.Clients, [{**row, "locks": 1}], ok=1, clients=1), ["2 opens and locks of one client are kept, more than 1"])
        host = {"version": "nlm", "address": "127.0.0.2", "locks": 9}
        waited = {"opened": 1, "calls": 200, "granted": 100, "blocked": 100}
        self.assertEqual(judged(floods.Locks, [host], locks=200, **waited), [])
        self.assertEqual(judged(floods.Locks, [host, host], locks=8, **waited), ["2 hosts are kept of 1 that came", "9 locks of one host are kept"])
        self.assertEqual(judged(floods.Locks, [], calls=100, granted=100), ["no lock was granted, or nobody was told to wait"])
        told = {"opened": 1, "bad_stateid": 99, "misordered": 1, "false_retry": 1}
        self.assertEqual(judged(floods4.Replays, [{**row, "opens": 0}], **told), [])
        self.assertEqual(judged(floods4.Stolen, [row], **told), ["1 opens and locks of one client are kept, more than 0"])
        self.assertEqual(judged(floods4.Replays, [], ok=100), ["nobody was told 'bad stateid'", "nobody was told 'misordered'", "nobody was told 'false retry or retry uncached'"])

    def test_find_a_server_that_dies(self):
        result = run_wrapped('"$STAG" "$@" & server=$!; trap "kill $server" TERM; (sleep 0.5; kill -ABRT $server) & wait $server')
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("again by: tests/attack/run --seed 1 --only tcp/rpc", result.stdout)

    def test_find_a_sanitizer_report(self):
        result = run_wrapped('echo "==1==ERROR: AddressSanitizer: heap-use-after-free" >&2; exec "$STAG" "$@"')
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("heap-use-after-free", result.stdout)


if __name__ == "__main__":
    mounts.stand_apart()
    unittest.main(verbosity=2)
