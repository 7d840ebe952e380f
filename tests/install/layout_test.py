#!/usr/bin/env python3
"""layout_test.py CXX GENERATED [--write]: compares how public types are laid out with packaging/abi/libstag.layouts, or writes that.

A program has these numbers compiled into it: sizes, offsets of members and bases, places in tables of virtual functions, values of
enumerators. abi_test.sh compares names of functions, which stay the same when a member comes in between. The types are those of
namespace stag and of stag.h that a compiler has complete when a program includes all of cmake/public_headers.txt; it describes them
in its debugging information (DWARF 5), which readelf shows. What only private headers define is not among them.
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
HEADERS = os.path.join(ROOT, "cmake", "public_headers.txt")
KEPT = os.path.join(ROOT, "packaging", "abi", "libstag.layouts")
# Sizes are those of a machine, and compilers write names of template arguments in different ways.
KNOWN = ("x86_64-linux-gnu", "12")
SKIPPED = 77

ENTRY = re.compile(r" <(\d+)><([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)")
ATTRIBUTE = re.compile(r"    <[0-9a-f]+> +DW_AT_(\w+) *: ?(?:\(indirect[^)]*\): )?(.*)")
RECORDS = {"class_type": "class", "structure_type": "struct", "union_type": "union"}
DERIVED = {"pointer_type": "{}*", "reference_type": "{}&", "rvalue_reference_type": "{}&&", "const_type": "const {}", "volatile_type": "volatile {}"}


class Entry:
    """An entry of DWARF, with those that it contains."""

    def __init__(self, depth, tag, parent):
        self.depth, self.tag, self.parent = depth, tag, parent
        self.children, self.attributes = [], {}

    def text(self, attribute):
        return self.attributes.get(attribute, "").strip()

    def number(self, attribute):
        """`8`, or the operand of a location: `2 byte block: 10 2 (DW_OP_constu: 2)`."""
        value = self.text(attribute)
        operand = re.search(r"\(DW_OP_\w+: (-?\d+)\)$", value)
        return int(operand[1]) if operand else int(value.split()[0], 0)

    def each(self, *tags):
        return (child for child in self.children if child.tag in tags)


class Types:
    def __init__(self, dwarf):
        self.entries = {}
        last = self.top = Entry(-1, "", None)
        for line in dwarf.splitlines():
            if attribute := ATTRIBUTE.match(line):
                last.attributes[attribute[1]] = attribute[2]
            elif begun := ENTRY.match(line):
                depth, parent = int(begun[1]), last
                while parent.depth >= depth:
                    parent = parent.parent
                last = Entry(depth, begun[3], parent)
                parent.children.append(last)
                self.entries[begun[2]] = last

    def referred(self, entry, attribute):
        reference = re.match(r"<0x([0-9a-f]+)>", entry.text(attribute))
        return self.entries[reference[1]] if reference else None

    def name(self, entry):
        """Qualified; of a type that is defined outside of the class that declares it, by the declaration."""
        declared = self.referred(entry, "specification") or entry
        own = declared.text("name") or "(unnamed)"
        outer = declared.parent
        return f"{self.name(outer)}::{own}" if outer.tag == "namespace" or outer.tag in RECORDS else own

    def type_name(self, entry):
        if entry is None:
            return "void"
        if entry.tag in DERIVED:
            return DERIVED[entry.tag].format(self.type_name(self.referred(entry, "type")))
        if entry.tag == "array_type":
            counts = "".join(f"[{each.number('upper_bound') + 1}]" for each in entry.each("subrange_type"))
            return self.type_name(self.referred(entry, "type")) + counts
        return "function" if entry.tag == "subroutine_type" else self.name(entry)

    def complete(self):
        """All types that are defined, unless within a function."""
        waiting = [self.top]
        while waiting:
            entry = waiting.pop()
            if entry.tag in RECORDS or entry.tag == "enumeration_type":
                if "declaration" not in entry.attributes:
                    yield entry
            elif entry.tag == "subprogram":
                continue
            waiting += entry.children


def is_public(name):
    return re.match(r"stag(::|_)", name) and "(unnamed)" not in name


def layout_of(types, entry):
    """A line for the type, and for each base, member and virtual function in their order, or each enumerator."""
    size, aligned = entry.number("byte_size"), entry.text("alignment")
    kind = RECORDS.get(entry.tag, "enum")
    yield f"{kind} {types.name(entry)}: {size} bytes" + (f", aligned to {aligned}" if aligned else "")
    for each in entry.each("enumerator"):
        yield f"  {each.text('name')} = {each.number('const_value')}"
    for each in entry.each("inheritance"):
        place = "virtual" if "virtuality" in each.attributes else each.number("data_member_location")
        yield f"  {place}: base {types.name(types.referred(each, 'type'))}"
    yield from members_of(types, entry, 0)
    virtual = [each for each in entry.each("subprogram") if "vtable_elem_location" in each.attributes]
    for each in sorted(virtual, key=lambda each: each.number("vtable_elem_location")):
        yield f"  virtual function {each.number('vtable_elem_location')}: {each.text('linkage_name') or each.text('name')}"


def members_of(types, entry, offset):
    """With those of members without a name, in their place."""
    for each in entry.each("member"):
        of = types.referred(each, "type")
        if "data_bit_offset" in each.attributes:
            yield f"  bit {8 * offset + each.number('data_bit_offset')}: {each.text('name')}, {each.number('bit_size')} bits"
            continue
        if "external" in each.attributes:  # static
            continue
        place = offset + (each.number("data_member_location") if "data_member_location" in each.attributes else 0)
        if each.text("name"):
            yield f"  {place}: {each.text('name')}, {types.type_name(of)}"
        else:
            yield from members_of(types, of, place)


def dwarf_of(compiler, generated):
    """Of a program that includes all public headers, and uses nothing."""
    with open(HEADERS) as file:
        headers = [line.strip() for line in file if line.strip().endswith(".h")]
    with tempfile.TemporaryDirectory() as work:
        source, compiled = os.path.join(work, "all.cc"), os.path.join(work, "all.o")
        with open(source, "w") as file:
            file.writelines(f'#include "{header}"\n' for header in [*headers, "c/stag.h"])
        # Also of classes whose tables of virtual functions are elsewhere.
        options = ["-std=c++20", "-gdwarf-5", "-fno-eliminate-unused-debug-types", "-femit-class-debug-always"]
        subprocess.run([compiler, *options, f"-I{ROOT}/src", f"-I{generated}", "-c", source, "-o", compiled], check=True)
        shown = subprocess.run(["readelf", "--debug-dump=info", compiled], check=True, capture_output=True, text=True)
        return shown.stdout


def layouts(compiler, generated):
    types = Types(dwarf_of(compiler, generated))
    found = {types.name(entry): entry for entry in types.complete()}
    public = [line for name in sorted(found) if is_public(name) for line in layout_of(types, found[name])]
    names = subprocess.run(["c++filt"], input="\n".join(public), check=True, capture_output=True, text=True)
    return names.stdout.splitlines()


def main():
    compiler, generated = sys.argv[1:3]
    asked = [subprocess.run([compiler, option], check=True, capture_output=True, text=True).stdout.strip() for option in ("-dumpmachine", "-dumpversion")]
    if tuple(asked) != KNOWN:
        print(f"skipped: packaging/abi/libstag.layouts is of g++ {KNOWN[1]} for {KNOWN[0]}, this is {asked[1]} for {asked[0]}")
        return SKIPPED
    now = layouts(compiler, generated)
    if sys.argv[3:] == ["--write"]:
        with open(KEPT, "w") as file:
            file.writelines(line + "\n" for line in now)
        return 0
    with open(KEPT) as file:
        kept = file.read().splitlines()
    if kept == now:
        return 0
    print("\n".join(difflib.unified_diff(kept, now, "packaging/abi/libstag.layouts", "the public headers", lineterm="", n=6)))
    print(
        f"""
abi: public types are laid out in another way (-: as programs have it compiled in, +: now).
New types, enumerators with new values and members at the end of a struct of stag.h break nobody. Anything else breaks programs that were compiled
before: STAG_SOVERSION in cmake/StagInstall.cmake grows with the next release (docs/decisions/0054). If that is meant:
{' '.join(sys.argv)} --write""",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
