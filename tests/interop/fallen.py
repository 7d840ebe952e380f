#!/usr/bin/env python3
"""fallen.py CONSOLE FOLDER...: whether what a guest of tests/interop/soak had been told is done is there, in folders of the names that its console
has. The guest may have fallen at any moment, so what it was about to do may be there or not; nothing else may be missing, half done or done twice.
Says what is wrong, and exits with 1 then.

The console (guest/soak) has a line `SUM SHA256` of what is written behind the number of its round, and from time to time for each folder
`HAS NAME ROUNDS LINES`: so many rounds the writer has read back, and so many lines the maker's log had, of which one may have been in its cache."""
import hashlib
import pathlib
import re
import sys

SUM = re.compile(rb"^SUM ([0-9a-f]{64})\r?$", re.M)
HAS = re.compile(rb"^HAS (\w+) (\d+) (\d+)\r?$", re.M)
NAMES = 5  # of written.N, in turn


def told(console):
    """(checksum or None, {name: (rounds, lines)} as of the last line of each)"""
    sums = SUM.findall(console)
    return (sums[-1].decode() if sums else None), {name.decode(): (int(rounds), int(lines)) for name, rounds, lines in HAS.findall(console)}


def of_writer(folder, checksum, rounds):
    """What is wrong with written.0 to written.4 where the writer had read `rounds` back."""
    for turn in range(NAMES):
        file = folder / f"written.{turn}"
        # The last of those rounds that had this name; 0: none had.
        due = max(rounds - (rounds - turn) % NAMES, 0)
        if not file.exists():
            if due > 0:
                yield f"{file} of round {due} is missing"
            continue
        first, _, rest = file.read_bytes().partition(b"\n")
        if not first.isdigit() or int(first) % NAMES != turn or int(first) < due:
            yield f"{file} begins with {first[:20]!r}, and round {due} was read back"
        if checksum is not None and hashlib.sha256(rest).hexdigest() != checksum:
            yield f"{file} of round {first[:20].decode(errors='replace')} differs"


def of_maker(folder, lines):
    """What is wrong with what the maker made, whose log had had so many lines."""
    if not folder.exists():
        return [f"{folder} is missing"] * (lines > 0)
    log = folder / "log"
    text = log.read_text() if log.exists() else ""
    count = text.count("\n")
    wrong = []
    if text != "".join(f"{n}\n" for n in range(count)):
        wrong.append(f"{log} does not have each round once, in order")
    if count < lines - 1:
        wrong.append(f"{log} has {count} lines, and had {lines}")
    # Of the round that was under way: before its line, or behind it.
    under_way = {f"{what}.{n}" for what in ("dir", "moved") for n in (count - 1, count)}
    left = {each.name for each in folder.iterdir() if not each.name.startswith(".")} - {"log"} - under_way
    return wrong + [f"{folder / name} is left of a round that was over" for name in sorted(left)]


def faults(console, folders):
    checksum, names = told(console)
    for folder in folders:
        rounds, lines = names.get(folder.name, (0, 0))
        yield from of_writer(folder, checksum, rounds)
        yield from of_maker(folder / "made", lines)


def main():
    console = pathlib.Path(sys.argv[1]).read_bytes()
    wrong = list(faults(console, [pathlib.Path(each) for each in sys.argv[2:]]))
    for each in wrong:
        print(each)
    _, names = told(console)
    print(", ".join(f"{name}: {rounds} rounds read back, {lines} lines" for name, (rounds, lines) in names.items()) or "the guest had been told nothing")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
