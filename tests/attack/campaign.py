"""Rounds of attacks: each on fresh servers, its results in a table of outcomes."""
import collections
import contextlib
import fnmatch
import tempfile
import time

from mutators import MUTATORS
from peer import Silent
from target import Failure, Target


class Outcome:
    """What came of one attack in all rounds."""

    def __init__(self, name):
        self.name = name
        self.seconds = 0.0
        self.counts = collections.Counter()
        self.latency = {}  # of the good client, in ms
        self.failures = []

    def as_json(self):
        return {"name": self.name, "seconds": round(self.seconds, 1), "counts": dict(self.counts), "latency_ms": self.latency, "failures": self.failures}


class Campaign:
    """`options`: seed, only, batches, first, and the programs under attack (see run)."""

    def __init__(self, options, show):
        self.options, self.show = options, show
        self.outcomes = {}
        self.reasons = collections.Counter()
        self.processor_seconds = 0.0

    def wanted(self, names):
        return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in self.options.only)]

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
                target = Target(limits.pop("stag", self.options.stag), work, arguments, **limits)
                attack(target)
                target.wait_until_idle()
            except (AssertionError, Failure, Silent, OSError) as error:
                self.fail(",".join(names) or "server", seed, f"{type(error).__name__}: {error}")
            if target is None:
                return
            with contextlib.suppress(OSError):
                self.processor_seconds += target.processor_seconds()
            failures, reasons = target.finish()
            self.reasons += reasons
            for failure in failures:
                self.fail(",".join(names) or "server", seed, failure)

    def mutate(self, seed, seconds):
        """Every mutator for its part of the time, on one server while it lives."""
        names = self.wanted(MUTATORS)
        share = seconds / max(1, len(names))
        while names:
            tried = []

            def attack(target):
                while names:
                    tried.append(names.pop(0))
                    if not self.mutate_one(target, tried[-1], seed, share):
                        return

            self.on_target(tried, seed, attack, "--stall-limit", "10")
            if not tried:
                return

    def mutate_one(self, target, name, seed, seconds):
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

    def round(self, seed, seconds):
        self.mutate(seed, seconds)


ATTACKS = [*MUTATORS]
