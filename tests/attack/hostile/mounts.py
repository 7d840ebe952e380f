"""Runs `stag mount` against misleading servers, and programs on what is mounted."""
import asyncio
import contextlib
import os
import random
import shutil
import sys
import tempfile

from hostile import lies4, manners
from hostile.files import Files
from hostile.files4 import Files4
from hostile.program import Finding, Program, threads
from hostile.server import HostileServer
from target import harness

KINDS = [*manners.LAYERS, *manners.MANNERS, *manners.TREES, *lies4.NAMES, *lies4.MOUNTED]
NAMES = [f"mounted/{kind}" for kind in KINDS]
VISITOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "visitor.py")
TIMEOUT = 1  # seconds, as the mount is told
PATIENCE = 180  # seconds until something that should end counts as what never does, as on a busy machine with sanitizers


def usable():
    """Whether FUSE can be had."""
    return os.access("/dev/fuse", os.R_OK | os.W_OK)


def stand_apart():
    """Other programs on this machine do not see our mounts: who makes a mount namespace of its own gets a copy of each, and a mount whose copy is left does not end."""
    if harness.may_mount():
        harness.enter_mount_namespace()


def is_mounted(directory):
    """Nothing here may touch the directory itself: who waits for the mount could not answer it."""
    with open("/proc/self/mountinfo") as mounts:
        return any(line.split()[4] == directory for line in mounts)


async def run_one(stag, name, seed):
    """One mount of one server. Returns what was done, in words."""
    chance = random.Random(seed)
    kind = name.split("/", 1)[1]
    of_version_4 = kind.startswith("v4-")
    version = lies4.version_of(kind, chance) if of_version_4 else "3"
    files, manner = (lies4 if of_version_4 else manners).make(kind, chance)
    only_tcp = of_version_4 or kind in manners.TCP_ONLY
    transport = "rdma" if kind in manners.RDMA_ONLY or (not only_tcp and chance.random() < 0.6) else "tcp"
    # A server that is hostile from the begin is seldom one that can be mounted.
    from_begin = chance.random() < 0.2
    try:
        await mount_and_visit(stag, files, manner, from_begin, f"proto={transport}&version={version}")
    except Finding as error:
        raise Finding(f"version {version} over {transport}, hostile {'from the begin' if from_begin else 'once mounted'}: {error}") from None


async def mount_and_visit(stag, files, manner, from_begin, query):
    """Returns what the visitor has said, by operation; nothing where the mount was refused."""
    work = tempfile.mkdtemp(prefix="stag-mounted-")
    place, local = os.path.join(work, "place"), os.path.join(work, "local")
    os.mkdir(place)
    os.mkdir(local)
    try:
        truthful = (Files4 if isinstance(files, Files4) else Files)(), manners.Manner(random.Random(0))
        async with HostileServer(*((files, manner) if from_begin else truthful)) as server:
            port = server.rdma_port if "proto=rdma" in query else server.tcp_port
            url = f"nfs://127.0.0.1:{port}/x?mountport={server.tcp_port}&{query}"
            results = await visited(stag, url, place, local, lambda: server.turn(files, manner), work)
        if sorted(os.listdir(work)) != ["local", "place"] or os.listdir(place) or not set(os.listdir(local)) <= {"down"}:
            raise Finding("something was written outside of what is mounted")
        return results
    finally:
        if not is_mounted(place):
            shutil.rmtree(work, ignore_errors=True)


async def visited(stag, url, place, local, turn, work):
    program = await Program.start(stag, ["mount", "-f", "--timeout", str(TIMEOUT), url, place], work)
    results = {}
    try:
        await program.watch(lambda: is_mounted(place), PATIENCE, "it neither mounts nor ends")
        if program.runs:
            turn()
            results = await visit(program, place, local)
            await unmount(stag, program, place)
        code, text = await program.end(PATIENCE, "it did not end after its mount")
        if code != 0 and not text.strip():
            raise Finding(f"it ends with {code}, and does not say why")
        return results
    finally:
        # Whoever still waits for the mount is told that it is gone.
        await program.kill()
        if is_mounted(place):
            await run(stag, "umount", "--lazy", place)


async def run(*words):
    process = await asyncio.create_subprocess_exec(*words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
    try:
        said = await asyncio.wait_for(process.stderr.read(), PATIENCE)
    except TimeoutError:
        stuck = threads(process.pid)
        process.kill()
        raise Finding(f"'{' '.join(words)}' did not end within {PATIENCE} s: {stuck}") from None
    return await process.wait(), said.decode(errors="replace")


async def visit(program, place, local):
    visitor = await asyncio.create_subprocess_exec(sys.executable, VISITOR, place, local, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                                                   stderr=asyncio.subprocess.PIPE)  # fmt: skip
    results = {}
    try:
        while operation := await line_of(visitor, program, "a visitor's next operation does not begin"):
            results[operation] = await line_of(visitor, program, f"'{operation}' does not end")
        code, said = await visitor.wait(), (await visitor.stderr.read()).decode(errors="replace")
        # What ends the mount under a visitor is for its own judgement.
        if code != 0 and program.runs:
            raise Finding(f"the visitor ends with {code}: {said[-600:]}")
        return results
    finally:
        with contextlib.suppress(ProcessLookupError):
            visitor.kill()


async def line_of(visitor, program, sentence):
    line = asyncio.ensure_future(visitor.stdout.readline())
    try:
        await program.watch(line.done, PATIENCE, sentence, line)
        return (await line).decode().strip() if program.runs else ""
    finally:
        line.cancel()


async def unmount(stag, program, place):
    """As a user does; and once more, where the kernel has not yet seen that its visitors are gone."""
    if not program.runs:
        raise Finding("it ended while it was used")
    code, said = await run(stag, "umount", place)
    if code != 0 and is_mounted(place):
        code, said = await run(stag, "umount", "--lazy", place)
    if code != 0:
        raise Finding(f"it cannot be unmounted: {said}")
