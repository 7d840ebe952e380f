#!/usr/bin/env python3
"""builders.py IN.x C_OUT CC_OUT -- functions that fill values of IN.x's types with random contents, for rpcgen's C types
and for xdrgen's C++ types, drawing the same numbers in the same order.

Reads the specification on its own, so that neither compiler is its own witness. Knows the part of the language that
nfs_prot.x, mount.x, nlm_prot.x and heads.x use and refuses the rest."""
import re
import sys

TOKEN = re.compile(r"[A-Za-z_]\w*|0x[0-9a-fA-F]+|-?\d+|\S")
INTEGERS = {"int", "unsigned", "u_int", "long", "bool"}


def tokens_of(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    constants = dict(re.findall(r"^%#define\s+(\w+)\s+([\w+]+)\s*$", text, flags=re.M))
    text = re.sub(r"^[%#].*$", "", text, flags=re.M)
    return TOKEN.findall(text), constants


class Specification:
    def __init__(self, text):
        self.tokens, self.constants = tokens_of(text)
        self.enums, self.structs, self.unions, self.typedefs, self.order = {}, {}, {}, {}, []
        while self.tokens:
            getattr(self, "read_" + self.take())()
        self.lists = {n: f[-1][1] for n, f in self.structs.items() if self.points_to(f[-1], n)}
        arms = [field for _, of_union in self.unions.values() for _, field in of_union if field]
        fields = arms + [field for of_struct in self.structs.values() for field in of_struct]
        # Lists whose first node stands by value.
        self.heads = {kind for kind, _, shape, _ in fields if shape == "plain" and kind in self.lists}

    def take(self, *expected):
        token = self.tokens.pop(0)
        if expected and token not in expected:
            raise SystemExit(f"expected {expected}, found {token}")
        return token

    def number(self, text):
        if text in self.constants:
            return sum(self.number(part) for part in self.constants[text].split("+"))
        return int(text, 0) if not re.fullmatch(r"0\d+", text) else int(text, 8)

    def read_const(self):
        name = self.take()
        self.take("=")
        self.constants[name] = self.take()
        self.take(";")

    def read_enum(self):
        name = self.take()
        self.take("{")
        self.enums[name] = []
        while True:
            self.enums[name].append(self.take())
            self.take("=")
            self.take()
            if self.take(",", "}") == "}":
                break
        self.take(";")
        self.order.append(name)

    def declaration(self):
        kind = self.take()
        if kind == "void":
            return None
        if kind == "struct":
            kind = self.take()
        shape, bound = "plain", None
        name = self.take()
        if name == "*":
            shape, name = "pointer", self.take()
        elif self.tokens[0] in ("<", "["):
            shape = "variable" if self.take() == "<" else "fixed"
            bound = self.number(self.take())
            self.take(">", "]")
        return (kind, name, shape, bound)

    def read_typedef(self):
        field = self.declaration()
        self.take(";")
        self.typedefs[field[1]] = field
        self.order.append(field[1])

    def read_struct(self):
        name = self.take()
        self.take("{")
        self.structs[name] = []
        while self.tokens[0] != "}":
            self.structs[name].append(self.declaration())
            self.take(";")
        self.take("}")
        self.take(";")
        self.order.append(name)

    def read_union(self):
        name = self.take()
        self.take("switch")
        self.take("(")
        discriminant = self.declaration()
        self.take(")")
        self.take("{")
        arms = []
        while self.tokens[0] != "}":
            label = None
            if self.take("case", "default") == "case":
                label = self.take()
            self.take(":")
            arms.append((label, self.declaration()))
            self.take(";")
        self.take("}")
        self.take(";")
        self.unions[name] = (discriminant, arms)
        self.order.append(name)

    def read_program(self):
        depth = 0
        while True:
            token = self.take()
            depth += {"{": 1, "}": -1}.get(token, 0)
            if token == ";" and depth == 0:
                return

    def points_to(self, field, name):
        kind, _, shape, _ = field
        if kind in self.typedefs and shape == "plain":
            kind, _, shape, _ = self.typedefs[kind]
        return shape == "pointer" and kind == name


class Writer:
    """What both languages have in common; subclasses say how a piece of a value is filled."""

    def __init__(self, specification):
        self.spec = specification

    def scalar(self, kind, value):
        if kind == "bool":
            return f"{value} = draw_below(rng, 2) == 1;"
        if kind in self.spec.enums:
            names = ", ".join(self.spec.enums[kind])
            count = len(self.spec.enums[kind])
            return f"{{ static const {kind} all[] = {{{names}}}; {value} = all[draw_below(rng, {count})]; }}"
        return f"{value} = (int32_t)draw_u32(rng);"

    def fill(self, field, value, outer=None):
        kind, name, shape, bound = field
        if kind == "string":
            return self.string(value, min(bound, 60))
        if kind == "opaque":
            return self.fixed(value, bound) if shape == "fixed" else self.variable(value, name, min(bound, 1500))
        if shape == "pointer":
            return f"build_list_of_{kind}(rng, &{value});"
        if shape != "plain":
            raise SystemExit(f"cannot fill {field}")
        if kind in INTEGERS or kind in self.spec.enums:
            return self.scalar(kind, value)
        if kind == "netobj":
            return self.netobj(value)
        if kind in self.spec.typedefs:
            return self.fill(self.spec.typedefs[kind], value)
        built = f"build_{kind}(rng, &{value});"
        if kind in self.spec.heads:
            built += f" build_list_of_{kind}(rng, &{value}.{self.spec.lists[kind]});"
        return built

    def members(self, name):
        fields = self.spec.structs[name]
        return fields[:-1] if name in self.spec.lists else fields

    def struct(self, name):
        body = "".join(f"  {self.fill(f, 'to->' + self.member(name, f))}\n" for f in self.members(name))
        return self.builder(name) + f" {{\n{body}}}\n"

    def builder(self, name):
        return f"static void build_{name}(struct rng* rng, {name}* to)"

    def union(self, name):
        discriminant, arms = self.spec.unions[name]
        which = "to->" + discriminant[1]
        text = f"static void build_{name}(struct rng* rng, {name}* to) {{\n"
        text += f"  {self.fill(discriminant, which)}\n"
        labels = [label for label, _ in arms if label]
        # Random integers would hardly ever hit an arm.
        text += f"  if (draw_below(rng, 2) == 0) {which} = {labels[0]};\n  switch ({which}) {{\n"
        for label, field in arms:
            # Of an int, for C++ converts no larger number in a case.
            text += f"    case (int)({label}):\n" if label else "    default:\n"
            if field:
                text += f"      {self.fill(field, self.arm(name, field))}\n"
            text += "      break;\n"
        return text + "  }\n}\n"

    def text(self):
        out = "/* Made by builders.py. */\n"
        spec = self.spec
        for name in spec.order:
            if name in spec.structs:
                out += self.struct(name)
            if name in spec.unions:
                out += self.union(name)
            if name in spec.lists:
                out += self.list(name)
        names = [n for n in spec.order if n not in spec.lists]
        for name in names:
            out += self.entry(name)
        rows = "".join(f"  {self.row(n)},\n" for n in names)
        return out + self.table(rows)


class C(Writer):
    def member(self, _, field):
        return field[1]

    def arm(self, union, field):
        return f"to->{union}_u.{field[1]}"

    def string(self, value, most):
        return f"{value} = draw_string(rng, {most});"

    def fixed(self, value, size):
        return f"draw_bytes(rng, {value}, {size});"

    def variable(self, value, name, most):
        length = f"{value}.{name}_len"
        return f"{length} = draw_below(rng, {most + 1}); {value}.{name}_val = draw_bytes(rng, take({length}), {length});"

    def netobj(self, value):
        return f"{value}.n_len = draw_below(rng, 65); {value}.n_bytes = draw_bytes(rng, take({value}.n_len), {value}.n_len);"

    def list(self, name):
        following = self.spec.lists[name]
        return (
            f"static void build_list_of_{name}(struct rng* rng, {name}** to) {{\n"
            f"  while (draw_below(rng, 3) != 0) {{\n    *to = take(sizeof **to);\n    build_{name}(rng, *to);\n"
            f"    to = &(*to)->{following};\n  }}\n  *to = NULL;\n}}\n"
        )

    def entry(self, name):
        # A typedef of an array is passed to xdr_* as the array itself.
        fixed = self.spec.typedefs.get(name, (0, 0, 0, 0))[2] == "fixed"
        fill = self.fill((name, "", "plain", None), "value")
        return (
            f"static void value_of_{name}(struct rng* rng, XDR* xdrs) {{\n  static {name} value;\n"
            f"  memset(&value, 0, sizeof value);\n  {fill}\n"
            f"  expect(xdr_{name}(xdrs, {'' if fixed else '&'}value));\n}}\n"
        )

    def row(self, name):
        return f'{{"{name}", value_of_{name}}}'

    def table(self, rows):
        return f"static const struct oracle_type types[] = {{\n{rows}}};\n"


class Cxx(Writer):
    def member(self, owner, field):
        return field[1] if field[1] != owner else field[1] + "_"

    def arm(self, union, field):
        return f"to->{self.member(union, field)}()"

    def string(self, value, most):
        return f"{value} = draw_string(rng, {most});"

    def fixed(self, value, _):
        return f"draw_bytes(rng, {value});"

    def variable(self, value, _, most):
        return f"{value} = draw_rope(rng, draw_below(rng, {most + 1}));"

    def netobj(self, value):
        return f"{value} = draw_rope(rng, draw_below(rng, 65));"

    def builder(self, name):
        # The first node and the others are two types.
        if name in self.spec.heads:
            return f"template <class Node> static void build_{name}(struct rng* rng, Node* to)"
        return super().builder(name)

    def list(self, name):
        following = self.spec.lists[name]
        node = f"{name}_{following}" if name in self.spec.heads else name
        text = (
            f"static void build_list_of_{name}(struct rng* rng, std::vector<{node}>* to) {{\n"
            f"  while (draw_below(rng, 3) != 0) build_{name}(rng, &to->emplace_back());\n}}\n"
        )
        if name in self.spec.heads:
            text += (
                f"static void build_list_of_{name}(struct rng* rng, std::optional<{name}>* to) {{\n"
                f"  if (draw_below(rng, 3) == 0) return;\n  build_{name}(rng, &to->emplace());\n"
                f"  build_list_of_{name}(rng, &(*to)->{following});\n}}\n"
            )
        return text

    def entry(self, name):
        fill = self.fill((name, "", "plain", None), "value")
        return f"static {name} value_of_{name}(struct rng* rng) {{\n  {name} value{{}};\n  {fill}\n  return value;\n}}\n"

    def row(self, name):
        typedef = self.spec.typedefs.get(name)
        suffix = f"_{name}" if typedef else ""
        return (
            f'row<{name}>("{name}", value_of_{name}, '
            f"[](stag::xdr::Encoder& e, const {name}& v) {{ encode{suffix}(e, v); }}, "
            f"[](stag::xdr::Decoder& d, {name}& v) {{ return decode{suffix}(d, v); }})"
        )

    def table(self, rows):
        return f"static const std::vector<Row> types = {{\n{rows}}};\n"


def main():
    source, c_out, cxx_out = sys.argv[1:]
    text = open(source, encoding="latin-1").read()
    for path, writer in ((c_out, C), (cxx_out, Cxx)):
        with open(path, "w", encoding="ascii") as file:
            file.write(writer(Specification(text)).text())


main()
