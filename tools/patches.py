"""The patches of tests/mutants, applied where the lines that they change stand by now.

A hunk names the lines it removes and a line around them. It fits also where those lines have moved within the file, have been
indented anew, have other neighbours, or stand in another file by now, as long as that is one place and no more.
"""
import functools, pathlib, re
from typing import NamedTuple


class DoesNotApply(Exception):
    """The sentence says which lines were not found, or found more than once."""


class Hunk(NamedTuple):
    path: str
    line: int     # where the first line of it was
    marks: str    # one of ' ', '-' and '+' for each line
    lines: tuple


def hunks(patch):
    path, found = None, []
    for text in patch.read_text().splitlines():
        if text.startswith('+++ b/'):
            path = text[6:]
        elif at := re.match(r'@@ -(\d+)', text):
            found.append([path, int(at[1]), '', []])
        elif found and text[:1] in ('', ' ', '-', '+') and not text.startswith('--- a/'):
            found[-1][2] += text[:1] or ' '
            found[-1][3].append(text[1:])
    return [Hunk(path, line, marks, tuple(lines)) for path, line, marks, lines in found]


@functools.lru_cache(maxsize=None)
def read(path, _changed):
    return path.read_text(errors='replace').splitlines()


def lines_of(path):
    return read(path, path.stat().st_mtime_ns)


def sources(folder):
    return sorted(p.relative_to(folder).as_posix() for p in (folder / 'src').rglob('*')
                  if re.search(r'(?<!_test)\.(cc|h)$', p.name))


def places(hunk, text):
    """Indexes into `text` of what the hunk expects; indentation does not count."""
    expected = [line.strip() for mark, line in zip(hunk.marks, hunk.lines) if mark != '+']
    if not expected:
        return []
    stripped = [line.strip() for line in text]
    return [i for i in range(len(text) - len(expected) + 1)
            if stripped[i] == expected[0] and stripped[i:i + len(expected)] == expected]


def without_neighbours(hunk):
    """The hunk with less and less of the lines around the change."""
    head = len(hunk.marks) - len(hunk.marks.lstrip(' '))
    tail = len(hunk.marks.rstrip(' '))
    for first, end in ((head, len(hunk.marks)), (0, tail), (head, tail)):
        if (first, end) != (0, len(hunk.marks)):
            yield hunk._replace(marks=hunk.marks[first:end], lines=hunk.lines[first:end])


def locate(hunk, folder):
    """(path, index, hunk as it fits) in the sources below `folder`."""
    own = folder / hunk.path
    if own.is_file():
        text = lines_of(own)
        if found := places(hunk, text):
            return hunk.path, min(found, key=lambda i: abs(i + 1 - hunk.line)), hunk
        for smaller in without_neighbours(hunk):
            if len(found := places(smaller, text)) == 1:
                return hunk.path, found[0], smaller
    # The file has another name, or part of it has gone elsewhere.
    for wanted in (hunk, *without_neighbours(hunk)):
        found = [(path, i, wanted) for path in sources(folder) if path != hunk.path for i in places(wanted, lines_of(folder / path))]
        if len(found) == 1:
            return found[0]
        if found:
            break
    removed = next((line for mark, line in zip(hunk.marks, hunk.lines) if mark == '-'), hunk.lines[0])
    raise DoesNotApply(f'{hunk.path} has no `{removed.strip()}` where it was')


def apply(patch, folder):
    """{path: its text with the patch applied}; raises DoesNotApply. Nothing is written."""
    changed = {}
    for path, at, hunk in (locate(hunk, pathlib.Path(folder)) for hunk in hunks(patch)):
        changed.setdefault(path, []).append((at, hunk))
    result = {}
    for path, here in changed.items():
        text = list(lines_of(pathlib.Path(folder) / path))
        for at, hunk in sorted(here, key=lambda pair: pair[0], reverse=True):
            expected = sum(mark != '+' for mark in hunk.marks)
            there = iter(text[at:at + expected])
            kept = [(mark, line if mark == '+' else next(there)) for mark, line in zip(hunk.marks, hunk.lines)]
            text[at:at + expected] = [line for mark, line in kept if mark != '-']
        result[path] = '\n'.join(text) + '\n'
    return result
