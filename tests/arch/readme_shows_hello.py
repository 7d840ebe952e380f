#!/usr/bin/env python3
"""The README shows the hello program as it is built and run by the tests, and it is as short as it claims to be."""
import pathlib
import sys

root = pathlib.Path(__file__).resolve().parents[2]
readme = (root / 'README.md').read_text()
missing = [f.name for f in sorted((root / 'examples/hello').iterdir()) if f.read_text().rstrip() not in readme]
lines = [line for name in ('server.cc', 'client.cc') for line in (root / 'examples/hello' / name).read_text().splitlines()]
code = sum(bool(line.strip()) for line in lines)
for name in missing:
    print(f'README.md does not show examples/hello/{name} as it is')
if code > 40:
    print(f'client and server of examples/hello have {code} non-blank lines, more than 40')
sys.exit(bool(missing) or code > 40)
