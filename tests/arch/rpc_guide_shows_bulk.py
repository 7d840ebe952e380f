#!/usr/bin/env python3
"""What docs/rpc-guide.md shows in C++ stands in examples/bulk, which is built and run by the tests; white space is the page's own."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
shown = re.findall(r'^```cpp\n(.*?)^```$', (root / 'docs/rpc-guide.md').read_text(), re.M | re.S)
files = [re.sub(r'\s', '', f.read_text()) for f in sorted((root / 'examples/bulk').iterdir())]
missing = [block for block in shown if not any(re.sub(r'\s', '', block) in text for text in files)]
for block in missing:
    print(f'docs/rpc-guide.md shows what is not in examples/bulk:\n{block}')
if not shown:
    print('docs/rpc-guide.md shows nothing of examples/bulk')
sys.exit(bool(missing) or not shown)
