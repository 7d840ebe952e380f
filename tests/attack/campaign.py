"""Rounds of attacks: each on fresh servers, its results in a table of outcomes."""
import asyncio
import collections
import contextlib
import faulthandler
import fnmatch
import functools
import multiprocessing
import os
import random
import resource
import tempfile
import time

import floods4
from callees import Callbacks, Notifications
from floods import FLOODS, UNEXPECTED, Running
from good import GoodClient, in_words, latency
from hostile import commands, mounts
from mutators import MUTATORS
from peer import Silent
from target import Failure, Target, reasons_in

FLOODS = {**FLOODS, **floods4.FLOODS, "flood/callbacks": Callbacks, "flood/notify": Notifications}


GOOD_ADDRESS = "127.0.0.1"  # where no flood comes from
LATENESS = 900  # seconds; several patiences, one after the other


def processor_seconds(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


class Outcome:
    """What came of one attack in all rounds."""

    def __init__(self, name):
        self.name = name
        self.seconds = 0.0
        self.counts = collections.Counter()
        self.latency = {}  # of the good client, in ms
        self.failures = []

    def add(self, other):
        self.seconds += other.seconds
        self.counts += other.counts
        self.latency = self.latency or other.latency
        self.failures += other.failures

    def as_json(self):
        return {"name": self.name, "seconds": round(self.seconds, 1), "counts": dict(self.counts), "latency_ms": self.latency, "failures": self.failures}


class Campaign:
    """`options`: seed, only, batches, first, and the programs under attack (see run)."""

    def __init__(self, options, show):
        self.options, self.show = options, show
        self.outcomes = {}
        self.reasons = collections.Counter()
        self.examples = {}  # a line of the log for each Reason that is an error
        self.processor = collections.Counter()  # seconds of processor time of servers, commands and attackers
        available = sorted(os.sched_getaffinity(0))
        # What the server under a flood has, and what others have; nothing where there are not enough.
        self.processors = available if len(available) > 1 and options.servers == 1 else []
        self.one_loop = ("--loops", "1")
        self.blind = False  # cannot see whether servers close their sockets

    def wanted(self, names):
        patterns = self.options.only
        return [name for name in names if any(fnmatch.fnmatch(name, each) for each in patterns)]

    def outcome(self, name):
        return self.outcomes.setdefault(name, Outcome(name))

    @property
    def failures(self):
        return [(outcome.name, failure) for outcome in self.outcomes.values() for failure in outcome.failures]

    def fail(self, name, seed, sentence):
        again = f"again by: tests/attack/run --seed {seed} --only {name.replace(',', ' --only ')}"
        self.outcome(name).failures.append(f"{sentence} ({again})")
        self.show(f"FAILED {name}: {sentence} ({again})")

    def on_target(self, names, seed, attack, *arguments, **limits):
        """Calls attack(target) with a server of its own. What is wrong with it then is a failure of all the attacks of these names, which may
        become more meanwhile."""
        with tempfile.TemporaryDirectory(prefix="stag-attack-") as work:
            target = None
            try:
                self.another = functools.partial(Target, limits.pop("stag", self.options.stag), arguments=arguments, **limits)
                target = self.another(work)
                self.look(target)
                attack(target)
                target.wait_until_idle()
            except (AssertionError, Failure, Silent, OSError) as error:
                self.fail(",".join(names), seed, f"{type(error).__name__}: {error}")
            if target is None:
                return
            with contextlib.suppress(OSError):
                self.processor["servers"] += target.processor_seconds()
            failures, log = target.finish()
            reasons, examples = reasons_in(log)
            self.reasons += reasons
            self.examples.update(examples)
            for failure in failures:
                self.fail(",".join(names), seed, failure)
            if self.failures:
                self.keep(log, f"server-{seed}.log")

    def look(self, target):
        if target.idle_sockets is None and not self.blind:
            self.show("skipped: whether the server closes its sockets; no right to see its descriptors (CAP_SYS_PTRACE)")
            self.blind = True

    def results(self):
        """What add() of another campaign takes."""
        return self.outcomes, self.reasons, self.examples, self.processor

    def add(self, results):
        outcomes, reasons, examples, processor = results
        for name, outcome in outcomes.items():
            self.outcome(name).add(outcome)
        self.reasons += reasons
        self.examples.update(examples)
        self.processor += processor

    def keep(self, log, name):
        path = os.path.join(self.options.logs, name)
        os.makedirs(self.options.logs, exist_ok=True)
        with open(path, "w") as file:
            file.write(log)
        self.show(f"the log is {path}; its end:\n" + "\n".join(log.splitlines()[-15:]))

    def share(self, names, seed, seconds, attack, *arguments, **limits):
        """Calls attack(target, name, seed, seconds) for each, on one server as long as the answer is that it is fit for more. The rest is for
        on_target()."""
        names = self.wanted(names)
        seconds /= max(1, len(names))
        while names:
            tried = [names.pop(0)]

            def attacks(target):
                while attack(target, tried[-1], seed, seconds) and names:
                    tried.append(names.pop(0))

            self.on_target(tried, seed, attacks, *arguments, **limits)

    def mutate(self, target, name, seed, seconds):
        """Whether the server is fit for more."""
        outcome, start, batch = self.outcome(name), time.monotonic(), self.options.first
        mutator = MUTATORS[name](target, name.split("/")[1])
        try:
            while time.monotonic() - start < seconds if self.options.batches is None else batch < self.options.first + self.options.batches:
                mutator.batch(f"{seed}/{name}/{batch}")
                target.check()
                batch += 1
        except (Failure, Silent, OSError) as error:
            self.fail(name, seed, f"in batch {batch}: {type(error).__name__}: {error}")
            return False
        finally:
            mutator.finish()
            outcome.counts += mutator.counts
            outcome.counts["batches"] += batch - self.options.first
            outcome.seconds += time.monotonic() - start
        self.show(f"{name}: {mutator.counts['messages']} messages in {time.monotonic() - start:.1f} s")
        return True

    def flood(self, target, name, seed, seconds):
        """A quarter of the time without the attack, to compare with, then with it. The server has a processor of its own where there are two, and
        one loop; the attackers have what the good client leaves of the others: so that it is the server for whose time they compete."""
        outcome, start = self.outcome(name), time.monotonic()
        good = GoodClient(target, name, short_of_memory=bool(FLOODS[name].ADDRESS_SPACE), sees_restarts=FLOODS[name].RESTARTS)
        flood = None
        judge = getattr(FLOODS[name], "judge", None)
        known = {row["client"] for row in target.clients()} if judge else set()
        if self.processors:
            os.sched_setaffinity(0, self.processors[1:])
        try:
            without = good.measure(seconds / 4)
            beside = self.beside(good, name, seconds / 4) if self.options.control else None
            flood = self.running(target, name, seconds / 4)
            began, busy = time.monotonic(), target.processor_seconds()
            outcome.latency = latency(without, good.measure(seconds / 2), beside)
            outcome.latency["server_busy"] = round((target.processor_seconds() - busy) / (time.monotonic() - began), 2)
        except (Failure, Silent, OSError) as error:
            self.fail(name, seed, f"{type(error).__name__}: {error}")
        finally:
            if self.processors:
                os.sched_setaffinity(0, self.processors)
        if flood is not None:
            counts = flood.stop()
            outcome.counts += counts
            self.processor["attackers"] += flood.processor_seconds
            for what in counts:
                if what.startswith(UNEXPECTED):
                    self.fail(name, seed, f"{counts[what]} times {what}")
            if judge:
                kept = [row for row in target.clients() if row["client"] not in known and row["address"] != GOOD_ADDRESS]
                outcome.counts["clients kept"] += len(kept)
                for sentence in judge(counts, kept):
                    self.fail(name, seed, sentence)
        outcome.seconds += time.monotonic() - start
        target.wait_until_idle()
        target.check()
        outcome.counts["rounds of version 4.1"] += good.fourth.rounds
        memory = target.most_resident()
        if memory > self.options.most_memory << 20:
            self.fail(name, seed, f"the server had {memory >> 20} MiB of memory, more than {self.options.most_memory}")
        self.show(f"{name}: {in_words(outcome.latency)}; the server has had {memory >> 20} MiB at most")
        return not outcome.failures

    def running(self, target, name, patience):
        return Running(FLOODS[name](target, [f"127.0.0.{2 + i}" for i in range(self.options.sources)]), patience)

    def beside(self, good, name, seconds):
        """What the good client is given while the same flood is another server's trouble, one that has the same processor: what is longer than
        that is not the machine's doing."""
        with tempfile.TemporaryDirectory(prefix="stag-attack-") as work:
            other = self.another(work)
            try:
                flood = self.running(other, name, seconds)
                times = good.measure(seconds)
                flood.stop()
                return times
            finally:
                other.finish()

    def flood_limited(self, seed, seconds):
        """Those that need a server with a limit of memory, which is one without sanitizers."""
        names = self.wanted(name for name, flood in FLOODS.items() if flood.ADDRESS_SPACE)
        for name in names:
            if not os.access(self.options.plain, os.X_OK):
                self.show(f"{name}: skipped, there is no {self.options.plain}")
                continue
            attack = functools.partial(self.flood, name=name, seed=seed, seconds=seconds / len(names))
            self.on_target([name], seed, attack, *self.one_loop, stag=self.options.plain, address_space=FLOODS[name].ADDRESS_SPACE,
                           processors=self.processors[:1])  # fmt: skip

    def mislead(self, run_one, names, seed, seconds):
        """The client commands, or mounts and programs on them, against hostile servers. Those whose turn comes in a short time are others by each seed."""
        names = self.wanted(names)
        random.Random(seed).shuffle(names)

        def done(name, taken):
            self.outcome(name).counts["commands"] += 1
            self.outcome(name).seconds += taken

        def failed(name, number, sentence):
            self.fail(name, seed, f"{sentence} (--first {number} --batches 1)")

        if names:
            start, before = time.monotonic(), processor_seconds(resource.RUSAGE_CHILDREN)
            options = self.options
            running = asyncio.run(commands.run_many(run_one, options.stag, names, seed, seconds, options.first, options.batches, done, failed))
            self.processor["commands"] += processor_seconds(resource.RUSAGE_CHILDREN) - before
            self.show(f"hostile servers: {sum(self.outcome(name).counts['commands'] for name in names)} commands, {time.monotonic() - start:.1f} s")
            if running:
                self.show(f"ended at the end of the time, without a judgement: {', '.join(running)}")

    def mount(self, seed, seconds):
        if mounts.usable():
            mounts.stand_apart()
            self.mislead(mounts.run_one, mounts.NAMES, seed, seconds)
        else:
            self.show("mounted/*: skipped, no right to use /dev/fuse")

    def round(self, seed, seconds):
        """The time is shared out among the kinds of attacks that are wanted."""
        before = processor_seconds(resource.RUSAGE_SELF)
        unlimited = [name for name, flood in FLOODS.items() if not flood.ADDRESS_SPACE]
        limited = [name for name, flood in FLOODS.items() if flood.ADDRESS_SPACE]
        kinds = [
            (0.35, MUTATORS, lambda time: self.share(MUTATORS, seed, time, self.mutate)),
            (0.3, unlimited, lambda time: self.share(unlimited, seed, time, self.flood, *self.one_loop, processors=self.processors[:1])),
            (0.05, limited, lambda time: self.flood_limited(seed, time)),
            (0.15, commands.NAMES, lambda time: self.mislead(commands.run_one, commands.NAMES, seed, time)),
            (0.15, mounts.NAMES, lambda time: self.mount(seed, time)),
        ]
        kinds = [(weight, attack) for weight, names, attack in kinds if self.wanted(names)]
        for weight, attack in kinds:
            attack(seconds * weight / sum(weight for weight, _ in kinds))
        self.processor["attackers"] += processor_seconds(resource.RUSAGE_SELF) - before

    def rounds(self, seed, stride):
        """One after the other until the time is over or something is found, with every `stride`-th seed."""
        start, left = time.monotonic(), self.options.seconds
        while True:
            self.round(seed, min(self.options.round, left))
            left = self.options.seconds - (time.monotonic() - start)
            seed += stride
            if self.failures or self.options.batches is not None or left <= min(self.options.round, self.options.seconds) / 2:
                return


def side_by_side(options, show):
    """Campaigns of `options.servers` processes, each with servers of its own; all that came of them."""
    context = multiprocessing.get_context("fork")

    def run_one(number, sender):
        # Attackers that wait for ever say where, and fail, before whoever runs them loses patience without a word.
        faulthandler.dump_traceback_later(2 * options.seconds + LATENESS, exit=True)
        campaign = Campaign(options, lambda line: show(f"{number + 1}: {line}"))
        campaign.rounds(options.seed + number, options.servers)
        faulthandler.cancel_dump_traceback_later()
        sender.send(campaign.results())

    total, processes = Campaign(options, show), []
    for number in range(options.servers):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=run_one, args=(number, sender))
        process.start()
        sender.close()
        processes.append((process, receiver))
    for number, (process, receiver) in enumerate(processes):
        try:
            total.add(receiver.recv())
        except EOFError:
            total.outcome("attack").failures.append(f"the attackers of server {number + 1} themselves failed, see above")
        process.join()
    return total


ATTACKS = [*MUTATORS, *FLOODS, *commands.NAMES, *mounts.NAMES]
