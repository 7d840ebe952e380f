#!/usr/bin/env python3
"""check_links.py PAGE|FOLDER...: every relative link of these pages, and of the pages (*.md) below these folders, leads to a file or folder
that is there, and its #heading to a heading. Prints those that lead nowhere; exit code 1 where there are some, or no page at all."""
import os
import re
import sys
from urllib.parse import unquote

CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages(names):
    for name in names:
        if not os.path.isdir(name):
            yield name
        for folder, _, files in os.walk(name):
            yield from (os.path.join(folder, file) for file in sorted(files) if file.endswith(".md"))


def text_of(page):
    with open(page) as file:
        return file.read()


def headings(page):
    """As GitHub makes names of them."""
    lines = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", text_of(page), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def broken(page):
    for target in LINK.findall(CODE.sub("", text_of(page))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        there = os.path.join(os.path.dirname(page), unquote(path)) if path else page
        if not os.path.exists(there) or (heading and there.endswith(".md") and heading not in headings(there)):
            yield target


def main():
    found = list(pages(sys.argv[1:]))
    nowhere = [f"{page}: {target}" for page in found for target in broken(page)]
    print("\n".join(nowhere) if nowhere else f"{len(found)} pages")
    return 1 if nowhere or not found else 0


if __name__ == "__main__":
    sys.exit(main())
