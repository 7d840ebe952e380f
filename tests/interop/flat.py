#!/usr/bin/env python3
"""flat.py SAMPLES COLUMN MORE FACTOR: whether what is in that column of a file of samples, a line each, stayed what it was. The median of the
last quarter may be at most FACTOR times that of the second, and MORE; what the first quarter does is the beginning's. Exit code 1: it is more."""
import statistics
import sys


def grew(values, more, factor):
    """(median of the second quarter, of the last, whether that is too much)"""
    quarter = max(1, len(values) // 4)
    early, late = statistics.median(values[quarter:2 * quarter] or values), statistics.median(values[-quarter:])
    return early, late, late > early * factor + more


def main():
    with open(sys.argv[1]) as file:
        values = [float(line.split()[int(sys.argv[2])]) for line in file]
    early, late, too_much = grew(values, float(sys.argv[3]), float(sys.argv[4]))
    print(f"{early} in the second quarter, {late} in the last")
    return int(too_much)


if __name__ == "__main__":
    sys.exit(main())
