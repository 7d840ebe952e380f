#!/usr/bin/env python3
"""manual_of_markdown.py NAME SECTION SUMMARY DATE VERSION < page.md > name.5 -- a manual page of one of our documents.

Of Markdown it knows what such a page uses: paragraphs, headings, fenced blocks, lists one level deep, `code`, **bold** and links, of which the
text stays.
"""
import re
import sys

ESCAPES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "~": "\\(ti", "^": "\\(ha"}


def plain(text):
    text = "".join(ESCAPES.get(c, c) for c in text)
    return "\\&" + text if text.startswith(".") else text


def inline(text):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    out = ""
    for piece in re.split(r"(`[^`]*`|\*\*.*?\*\*)", text):
        if piece.startswith("`"):
            out += f"\\fB{plain(piece[1:-1])}\\fR"
        elif piece.startswith("**"):
            out += f"\\fI{plain(piece[2:-2])}\\fR"
        else:
            out += plain(piece)
    return out


def sentences(lines):
    """One to a line: roff sets the spaces between them, and no line is long."""
    text = inline(" ".join(line.strip() for line in lines))
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in re.split(r"(?<=[.;:]) (?=[A-Z\\])", text))


def body(lines):
    out, paragraph, kind = [], [], ".PP"

    def end():
        nonlocal paragraph, kind
        if paragraph:
            # Behind a heading a paragraph needs no request of its own.
            headed = not out or out[-1].startswith(".SH")
            out.extend(([] if kind == ".PP" and headed else [kind]) + [sentences(paragraph)])
        paragraph, kind = [], ".PP"

    fenced = False
    for line in lines:
        if line.startswith("```"):
            end()
            out.extend([".fi", ".RE"] if fenced else [".PP", ".RS 4", ".nf"])
            fenced = not fenced
        elif fenced:
            out.append(plain(line))
        elif line.startswith("#"):
            end()
            out.append(".SH " + plain(line.lstrip("# ").upper()))
        elif line.startswith("- "):
            end()
            paragraph, kind = [line[2:]], ".IP \\(bu 2"
        elif line.strip():
            paragraph.append(line)
        else:
            end()
    end()
    return "\n".join(out)


def main():
    name, section, summary, date, version = sys.argv[1:]
    lines = sys.stdin.read().splitlines()
    print(f'.TH {plain(name.upper())} {section} {date} "stag {version}" "NFS over RDMA"\n.SH NAME\n{plain(name)} \\- {plain(summary)}')
    print(".SH DESCRIPTION")
    print(body([line for line in lines if not line.startswith("# ")]))
    print(".SH SEE ALSO\n\\fBstag\\-serve\\fR(1)")


if __name__ == "__main__":
    main()
