"""A program under attack: its memory is watched while it runs, and what it says and how it ends is judged."""
import asyncio
import contextlib
import glob
import os
import re
import time

from target import REPORTS, SANITIZER_OPTIONS

MOST_MEMORY = 1 << 20  # KiB; the sanitizers take their part of it
EXIT = 99  # that sanitizers end a program with
DEATH = 60  # seconds that the kernel may take to end a program that is killed


class Finding(Exception):
    """In a sentence."""


class Program:
    def __init__(self, process):
        self.process = process
        self.said = asyncio.ensure_future(process.stderr.read())

    @classmethod
    async def start(cls, stag, arguments, work, **process):
        environment = {**os.environ, **SANITIZER_OPTIONS, "ASAN_OPTIONS": f"{SANITIZER_OPTIONS['ASAN_OPTIONS']}:exitcode={EXIT}", "TMPDIR": work}
        return cls(await asyncio.create_subprocess_exec(
            stag, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=environment, **process
        ))  # fmt: skip

    @property
    def runs(self):
        return self.process.returncode is None and not self.said.done()

    async def watch(self, done, patience, sentence, *awaited):
        """Until done(), or until it ends; a Finding of that sentence if neither comes within `patience` seconds. It is looked at often, and when one of `awaited` is done."""
        start = time.monotonic()
        while self.runs and not done():
            if time.monotonic() - start > patience:
                raise Finding(f"{sentence} within {patience} s")
            memory = resident(self.process.pid)
            if memory > MOST_MEMORY:
                raise Finding(f"it took {memory >> 10} MiB of memory")
            await asyncio.wait([self.said, *awaited], timeout=0.05, return_when=asyncio.FIRST_COMPLETED)

    async def end(self, patience, sentence):
        """Its exit code, and what it has said."""
        await self.watch(lambda: False, patience, sentence)
        await self.process.wait()
        text = (await self.said).decode(errors="replace")
        report = REPORTS.search(text)
        if report:
            raise Finding(report[0] + "\n" + text[-3000:])
        if self.process.returncode not in (0, 1, 2):
            raise Finding(f"its exit code is {self.process.returncode}: {text[-300:]}")
        return self.process.returncode, text

    async def kill(self):
        """What waits in the kernel for itself, as whoever touches its own mount, is not ended by SIGKILL either."""
        if self.process.returncode is None:
            self.process.kill()
            try:
                await asyncio.wait_for(self.process.wait(), DEATH)
            except TimeoutError:
                raise Finding(f"SIGKILL did not end it within {DEATH} s: {threads(self.process.pid)}") from None
        self.said.cancel()


def threads(pid):
    """What each does in the kernel."""
    found = []
    for thread in glob.glob(f"/proc/{pid}/task/*"):
        with contextlib.suppress(OSError):
            name, state, stack = (open(f"{thread}/{file}").read().strip() for file in ("comm", "stat", "stack"))
            found.append(f"{name} {state.rsplit(')', 1)[1].split()[0]} {stack}")
    return "; ".join(found) or "it is gone, but its standard error is not closed"


def resident(pid):
    """KiB."""
    try:
        with open(f"/proc/{pid}/status") as file:
            found = re.search(r"VmRSS:\s*(\d+)", file.read())
            return int(found[1]) if found else 0
    except OSError:
        return 0
