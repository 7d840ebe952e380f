"""Spoils one field of one layer of a message; everything outside is computed afterwards and stays valid."""
from wire.fields import Field

# What lies at the edges of counts, lengths, offsets and enumerations, by width in bytes.
EDGES = {
    1: (0, 1, 0x7F, 0x80, 0xFF),
    2: (0, 1, 2, 3, 13, 14, 17, 18, 19, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF),
    4: (0, 1, 2, 3, 4, 5, 8, 16, 64, 255, 256, 400, 401, 1024, 4096, 65535, 65536, 1 << 20, (1 << 24) + 1, 0x7FFFFFFC, 0x7FFFFFFF,
        0x80000000, 0x80000001, 0xFFFFFFFC, 0xFFFFFFFE, 0xFFFFFFFF),
    8: (0, 1, 2, 4095, 4096, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 4096, (1 << 64) - 2, (1 << 64) - 1),
}  # fmt: skip


def _edge(data, chance):
    edges = EDGES.get(len(data))
    if edges is None:
        return _flip(data, chance)
    return chance.choice(edges).to_bytes(len(data), "big")


def _near(data, chance):
    """A little more or less."""
    if len(data) not in EDGES:
        return _flip(data, chance)
    value = int.from_bytes(data, "big") + chance.choice((-8, -4, -1, 1, 3, 4, 8))
    return (value % (1 << 8 * len(data))).to_bytes(len(data), "big")


def _flip(data, chance):
    if not data:
        return b"\0"
    at = chance.randrange(len(data) * 8)
    return data[: at // 8] + bytes((data[at // 8] ^ 1 << at % 8,)) + data[at // 8 + 1 :]


def _noise(data, chance):
    return chance.randbytes(len(data))


def _cut(data, chance):
    return data[: chance.randrange(len(data))] if data else data


def _grow(data, chance):
    return data + chance.randbytes(chance.choice((1, 3, 4, 16, 300)))


_VALUES = (_edge, _edge, _edge, _near, _flip, _flip, _noise, _cut, _grow)


def _spoil_list(fields, at, chance, donor):
    """Fields are left out, come twice, change places, end early, or go on as another message of the same kind."""
    kind = chance.randrange(5)
    if kind == 0:
        return fields[:at] + fields[at + 1 :]
    if kind == 1:
        return fields[: at + 1] + fields[at:]
    if kind == 2:
        other = chance.randrange(len(fields))
        fields = list(fields)
        fields[at], fields[other] = fields[other], fields[at]
        return fields
    if kind == 3:
        return fields[:at]
    return fields[:at] + donor[chance.randrange(len(donor) + 1) :]


def spoil(fields, layer, chance, donor=()):
    """A copy of the list in which one thing of `layer` is wrong, or the list itself where it has nothing of that layer."""
    places = [i for i, field in enumerate(fields) if field.layer == layer]
    if not places:
        return fields
    at = chance.choice(places)
    if chance.random() < 0.2:
        return _spoil_list(fields, at, chance, list(donor))
    field = fields[at]
    data = chance.choice(_VALUES)(field.data, chance)
    return [*fields[:at], Field(layer, field.name, data), *fields[at + 1 :]]


def spoil_order(parts, chance):
    """The same for whole segments or messages of a stream: left out, twice, exchanged, cut."""
    if not parts:
        return parts
    at, other = chance.randrange(len(parts)), chance.randrange(len(parts))
    kind = chance.randrange(4)
    if kind == 0:
        return parts[:at] + parts[at + 1 :]
    if kind == 1:
        return parts[: at + 1] + parts[at:]
    parts = list(parts)
    if kind == 2:
        parts[at], parts[other] = parts[other], parts[at]
        return parts
    return [*parts[:at], _cut(parts[at], chance)]
