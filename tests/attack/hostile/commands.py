"""Runs the client commands against misleading servers, several at a time."""
import asyncio
import contextlib
import os
import random
import shutil
import tempfile
import time

from hostile import lies4, manners
from hostile.program import Finding, Program
from hostile.server import HostileServer

NAMES = [f"hostile/{name}" for name in (*manners.LAYERS, *manners.MANNERS, *manners.TREES, *lies4.NAMES)]
AT_ONCE = 6
TIMEOUT = 2  # seconds, as the commands are told
GRACE = 4  # seconds
PATIENCE = 180  # seconds until a command counts as one that never ends; sanitizers take minutes for a million entries on a busy machine
# What asks for holes, copies by the server and extended attributes, where the version has them.
OF_VERSION_4_2 = (
    ("cp", "{}/file", "{}/copied"), ("cp", "{}/sparse", "{local}/down"), ("cp", "{}/sparse", "{}/copied"), ("cp", "--inplace", "{local}/sparse", "{}/new"),
    ("cp", "-a", "--max-entries", "300", "{}/file", "{local}/down"), ("cp", "-a", "{local}/up", "{}/new"), ("cp", "-a", "--max-entries", "300", "{}/", "{local}/tree"),
)  # fmt: skip
COMMANDS = (
    ("ls", "-l", "{}/"), ("ls", "{}/dir"), ("cat", "{}/file"), ("cp", "{}/file", "{local}/down"), ("cp", "{local}/up", "{}/new"),
    ("cp", "-r", "--max-entries", "300", "{}/", "{local}/tree"), ("stat", "{}/file"), ("df", "{}/"), ("ping", "-c", "3", "{}/"), ("rm", "-r", "{}/dir"),
    ("mkdir", "{}/made"), ("touch", "{}/file"), ("ln", "-s", "text", "{}/made"), ("mv", "{}/file", "{}/moved"), ("info",), *OF_VERSION_4_2,
)  # fmt: skip


async def run_one(stag, name, seed):
    """One command against one server. Returns the command's words."""
    chance = random.Random(f"{seed}")
    kind = name.split("/", 1)[1]
    of_version_4 = kind in lies4.NAMES
    version = lies4.version_of(kind, chance) if of_version_4 else "3"
    files, manner = (lies4 if of_version_4 else manners).make(kind, chance)
    # What is between RDMA and version 4 has no manner of its own.
    only_tcp = of_version_4 or kind in manners.TCP_ONLY
    transport = "rdma" if kind in manners.RDMA_ONLY or (not only_tcp and chance.random() < 0.6) else "tcp"
    words = chance.choice(OF_VERSION_4_2 if kind in lies4.OF_VERSION_4_2 else [each for each in COMMANDS if not of_version_4 or each[0] != "info"])
    work = tempfile.mkdtemp(prefix="stag-hostile-")
    try:
        local = os.path.join(work, "local")
        os.mkdir(local)
        fill(local)
        async with HostileServer(files, manner) as server:
            await judge(stag, arguments_of(words, transport, server, local, version=version), work)
        if sorted(os.listdir(work)) != ["local"] or os.path.exists("/tmp/escaped"):
            raise Finding(f"{words[0]} wrote outside of its destination")
        return f"{' '.join(words)} over {transport}"
    except Finding as error:
        raise Finding(f"{' '.join(words)} by version {version} over {transport}: {error}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def fill(folder):
    """With what the commands find on this side."""
    for name in ("up", "sparse"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes(200_000))
    os.truncate(os.path.join(folder, "sparse"), 1 << 20)
    with contextlib.suppress(OSError):
        os.setxattr(os.path.join(folder, "up"), "user.name", b"value")


def arguments_of(words, transport, server, local, timeout=TIMEOUT, version="3"):
    """The command line of one of COMMANDS."""
    port = server.rdma_port if transport == "rdma" else server.tcp_port
    command = [words[0], "--timeout", str(timeout)]
    if words[0] == "info":
        return [*command, "--rdma-port", str(server.rdma_port), "--tcp-port", str(server.tcp_port), "--rpcbind-port", "9", "127.0.0.1"]
    for word in words[1:]:
        at = f"nfs://127.0.0.1:{port}/x{word[2:]}?proto={transport}&mountport={server.tcp_port}&version={version}"
        command.append(at if word.startswith("{}") else word.replace("{local}", local))
    return command


async def judge(stag, arguments, work):
    program = await Program.start(stag, arguments, work)
    try:
        await program.end(PATIENCE, f"told to wait {TIMEOUT} s, it did not end")
    finally:
        await program.kill()


async def run_many(run_one, stag, names, seed, seconds, first, batches, done, failed):
    """run_one() of all the names in turn until the time is over. done(name, seconds); failed(name, number, sentence). Returns the names of the commands that were
    still running then, which are ended without a judgement."""
    running = []
    end = time.monotonic() + seconds
    numbers = iter(range(first * len(names), (first + batches) * len(names) if batches is not None else 1 << 62))

    async def worker():
        for number in numbers:
            if batches is None and time.monotonic() >= end:
                return
            name, start = names[number % len(names)], time.monotonic()
            running.append(name)
            try:
                await run_one(stag, name, f"{seed}/{name}/{number // len(names)}")
            except Finding as error:
                failed(name, number // len(names), str(error))
            running.remove(name)
            done(name, time.monotonic() - start)

    workers = [asyncio.ensure_future(worker()) for _ in range(AT_ONCE)]
    ended, left = await asyncio.wait(workers, timeout=None if batches is not None else seconds + GRACE, return_when=asyncio.FIRST_EXCEPTION)
    stopped = list(running)
    # Once, and all of them waited for: asyncio waits for ever for a process whose start is cancelled twice.
    for each in left:
        each.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    for each in ended:
        each.result()
    return stopped
