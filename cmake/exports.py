#!/usr/bin/env python3
"""exports.py NM ARCHIVE ROOT... < public_headers.txt -- writes the linker's version script of libstag.so.

Exported is what a public header declares and a source file defines: functions, data, members of classes, and the tables of
classes that have virtual functions. Inline functions and templates are not: whoever calls them compiles them. So
public_headers.txt is the one list of what is public, and no header needs a macro (docs/decisions/0054).
"""
import os
import re
import subprocess
import sys

SOURCE_NAME = re.compile(r"(\d+)")
SPECIAL = re.compile(r"_ZT[VIST]")  # vtable, typeinfo and its name, VTT
STRONG = "TDBR"
NAMESPACE = re.compile(r"namespace ([\w:]+) \{")
NO_CODE = re.compile(r"//.*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'")
DEFINED_TYPE = re.compile(r"\b(?:class|struct|union) (?:\[\[.*?\]\] )?([\w:]+)(?: final)?(?: :[^:{;][^{;]*)?\s*\{")
FUNCTION = re.compile(r"\b(?:(operator)\W|(\w+)\()")
NO_DECLARATION = re.compile(r"#|//|\}|namespace|using|template|static_assert|requires|concept|enum|\s|$")


def lines_of(text):
    """The lines, each with the namespaces that are open where it begins."""
    open_braces = []  # the namespace of each brace, or nothing
    for line in text.splitlines():
        yield line, [name for name in open_braces if name]
        opened = NAMESPACE.match(line)
        for brace in re.findall(r"[{}]", NO_CODE.sub("", line)):
            if brace == "}":
                open_braces.pop()
            else:
                open_braces.append(opened[1] if opened else "")
                opened = None
    if open_braces:
        raise ValueError("a brace is not closed")


def declared_by(text):
    """The names at namespace level with their namespaces, 'stag::rpc::Client', and the types that are defined inside others."""
    names, nested = set(), set()
    for line, scope in lines_of(text):
        types = DEFINED_TYPE.search(line)
        if types:
            names.add("::".join([*scope, types[1]]))
            nested.update(types[1].split("::"))
        elif not NO_DECLARATION.match(line) or line.lstrip().startswith("friend "):
            if function := FUNCTION.search(line):
                names.add("::".join([*scope, function[1] or function[2]]))
            elif data := re.match(r"extern .*?(\w+)(\[[^\]]*\])*;", line):
                names.add("::".join([*scope, data[1]]))
    return names, nested


def path_of(symbol):
    """The names that a mangled name begins with: stag, rpc, Client, ping. Operators and templates end it."""
    begun = re.match(r"_Z(?:T[VIST])?N[rVKRO]*", symbol)
    path = []
    at = begun.end() if begun else len(symbol)
    while number := SOURCE_NAME.match(symbol, at):
        at = number.end() + int(number[1])
        path.append(symbol[number.end() : at])
    return path, symbol[at:]


def is_public(symbol, names, nested):
    if symbol.startswith("stag_"):
        return True
    path, rest = path_of(symbol)
    if re.match(r"[a-z]", rest):  # an operator: its name is its code
        path.append("operator")
    for length in range(2, len(path) + 1):
        if "::".join(path[:length]) in names:
            whole = SPECIAL.match(symbol) or re.match(r"[CD]\d", rest)  # of a class, without a member's name
            return all(each in nested for each in path[length : None if whole else -1])
    return False


def symbols_of(nm, archive):
    lines = subprocess.run([nm, "--defined-only", "--extern-only", "--format=posix", archive], check=True, capture_output=True, text=True).stdout
    for line in lines.splitlines():
        parts = line.split()
        if len(parts) >= 2 and (parts[1] in STRONG or SPECIAL.match(parts[0])):
            yield parts[0]


def main():
    nm, archive, roots = sys.argv[1], sys.argv[2], sys.argv[3:]
    names, nested = set(), set()
    for header in (line.strip() for line in sys.stdin):
        if header and not header.startswith("#"):
            path = next(path for root in roots if os.path.exists(path := os.path.join(root, header)))
            with open(path) as file:
                try:
                    more = declared_by(file.read())
                except (IndexError, ValueError):
                    sys.exit(f"exports.py: {path}: its braces do not match")
            names |= more[0]
            nested |= more[1]
    public = sorted({symbol for symbol in symbols_of(nm, archive) if is_public(symbol, names, nested)})
    print("STAG_0 {\n  global:")
    for symbol in public:
        print(f"    {symbol};")
    print("  local: *;\n};")


if __name__ == "__main__":
    main()
