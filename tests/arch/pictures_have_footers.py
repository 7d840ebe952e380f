#!/usr/bin/env python3
"""The committed plots of `stag bench --plots` say below what they are of: version and date, the machine, and what lines and bands are.

All pictures of docs/images are such plots but those that another program draws and a test compares."""
import pathlib
import re
import sys
import xml.etree.ElementTree as ET

DRAWN = {"layers.svg"}  # tools/draw_layers
# As caption() in src/bench/sweep.cc has it.
LINES = {
    "version and date": r"stag \d+\.\d+\.\d+\S*( \([0-9a-f]+(-dirty)?\))? on .*, \d{4}-\d\d-\d\d\.",
    "machine": r".+, \d+ CPUs?, Linux \S+",
    "samples": r"Lines: the median of \d+ samples of \S+ s each\..*",
}
folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images")
plots = [path for path in sorted(folder.glob("*.svg")) if path.name not in DRAWN]
missing = []
for path in plots:
    texts = [(text.text or "").strip() for text in ET.parse(path).getroot().iter("{http://www.w3.org/2000/svg}text")]
    for what, line in LINES.items():
        if not any(re.fullmatch(line, text) for text in texts):
            missing.append(f"{path} does not say: {what}")
for line in missing or ([] if plots else [f"{folder} has no plot"]):
    print(line)
sys.exit(bool(missing) or not plots)
