#!/usr/bin/env python3
"""A sentence names who acts, and a test what its unit does. In comments and in docs/*.md no sentence but a question begins with
Who, Whoever, Whose, Whom, Somebody, Someone or Nobody, and no program, peer or user is a he. The name of a test is a predicate of its
suite: it begins with no preposition, and has no he either.

    sentences_name_who_acts.py [TREE]     the tree to read; this one where none is named"""
import pathlib
import re
import sys

WORDS = r"(?:Who|Whoever|Whose|Whom|Somebody|Someone|Nobody)\b(?![^.?!]*\?)"
SENTENCE = re.compile(rf"[.?!:][)*\"]* [(\"*]*{WORDS}|^[(\"*]*(?i:{WORDS})")
PRONOUN = re.compile(r"\b(?:he|him|his|himself)\b", re.IGNORECASE)
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PREPOSITIONS = """about above across after against along among around as at because before behind below beneath beside between beyond but
by despite during except for from if in inside instead into like near of off on once onto out outside over past per since through
throughout till to toward towards under unless until up upon via when where while with within without""".split()
TEST = re.compile(r"\b(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)")
OTHER_NAME = re.compile(rf"(?:{'|'.join(PREPOSITIONS)})_|(?:.*_)?(?:he|him|his|himself)(?:_|$)")


def comments(text):
    """Each comment as one line, with the number of the line that it begins on: `//` below one another, of which only the first is behind
    code."""
    block, first, column = [], 0, 0
    for number, line in enumerate(text.splitlines() + [""], 1):
        found = "//" in line and re.search(r"(?:^|\s)(//[/!]?<?)(.*)$", line)
        if block and (not found or found.start(1) != column or line[:column].strip()):
            yield first, " ".join(block)
            block = []
        if found:
            first, column = first if block else number, found.start(1)
            block.append(found[2].strip())


def paragraphs(text):
    text = CODE.sub(lambda block: "\n" * block[0].count("\n"), text)
    number = 1
    for paragraph in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) ))", text):
        if words := paragraph.strip():
            yield number, re.sub(r"\s+", " ", re.sub(r"^[-*|\d.#> ]+", "", words)).replace("| ", ". ")
        number += paragraph.count("\n")


def sentences(path, parts):
    for number, text in parts:
        for found in (*SENTENCE.finditer(text), *PRONOUN.finditer(text)):
            yield f"{path}:{number}: ...{text[max(0, found.start() - 20):found.end() + 40].strip()}..."


def faults(tree):
    for folder in ("src", "tests", "xdrgen", "examples"):
        for path in sorted((tree / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".c"):
                text = path.read_text()
                yield from sentences(path.relative_to(tree), comments(text))
                for suite, name in TEST.findall(text):
                    if OTHER_NAME.match(name):
                        yield f"{path.relative_to(tree)}: {suite}.{name} is no predicate of {suite}"
    for path in sorted((tree / "docs").glob("*.md")):
        yield from sentences(path.relative_to(tree), paragraphs(path.read_text()))


found = list(faults(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
print(*found, sep="\n", end="\n" if found else "")
sys.exit(bool(found))
