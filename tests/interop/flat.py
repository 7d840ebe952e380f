#!/usr/bin/env python3
"""flat.py SAMPLES COLUMN MORE FACTOR: whether what is in that column of a file of samples, a line each, stayed what it was. The median of the
last quarter may be at most FACTOR times that of the second, and MORE; what the first quarter does is the beginning's. Exit code 1: it is more.

flat.py --pings PERCENT: of what `stag ping` prints, the microseconds that so many percent of the calls took at most. Calls without an answer count
as the longest of all: exit code 1 where those are more than the rest of the percents."""
import math
import re
import statistics
import sys


def grew(values, more, factor):
    """(median of the second quarter, of the last, whether that is too much)"""
    quarter = max(1, len(values) // 4)
    early, late = statistics.median(values[quarter:2 * quarter] or values), statistics.median(values[-quarter:])
    return early, late, math.isinf(late) or late > early * factor + more


def percentile(text, percent):
    """Of the calls of `stag ping`; infinite where too few were answered."""
    times = sorted(float(time) if time else math.inf for time in re.findall(r"^(?:.*: )?seq=\d+(?: time=([\d.]+) us|:)", text, re.M))
    return times[math.ceil(len(times) * percent / 100) - 1] if times else math.inf


def main():
    if sys.argv[1] == "--pings":
        took = percentile(sys.stdin.read(), float(sys.argv[2]))
        print(took)
        return int(math.isinf(took))
    with open(sys.argv[1]) as file:
        values = [float(line.split()[int(sys.argv[2])]) for line in file]
    early, late, too_much = grew(values, float(sys.argv[3]), float(sys.argv[4]))
    print(f"{early} in the second quarter, {late} in the last")
    return int(too_much)


if __name__ == "__main__":
    sys.exit(main())
