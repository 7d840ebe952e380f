#!/usr/bin/env python3
"""An operation of NFSv4, or a family of them that share what they do, is a file, and fits on two screens: no file in src/nfs/v4/ops has
more than 110 lines."""
import pathlib
import sys

LINES = 110
long = [(path, count) for path in sorted(pathlib.Path("src/nfs/v4/ops").iterdir())
        if (count := len(path.read_text().splitlines())) > LINES]
for path, count in long:
    print(f"{path} has {count} lines, more than {LINES}")
sys.exit(1 if long else 0)
