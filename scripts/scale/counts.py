"""Every number that a file has, one at a time at the edges of what numbers can be."""

import json
import re

from .wire import msg, varint

EDGES = (0, 1, 7, 64, 65, 255, 1 << 15, (1 << 20) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1,
         1 << 32, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 2,
         (1 << 64) - (1 << 31))
NUMBERS = (0, 1, 7, 64, 65, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63,
           1 << 64, -1, -2, -(1 << 31), -(1 << 63), -(1 << 63) - 1, 0.5, 1e300, -1e300)


def read(data, at):
    value, shift = 0, 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """[field, wire type, value or bytes] of a message; ValueError where it is none."""
    at, found = 0, []
    while at < len(data):
        key, at = read(data, at)
        field, kind = key >> 3, key & 7
        if field == 0 or field > 200:
            raise ValueError
        if kind == 0:
            value, at = read(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        elif kind == 2:
            size, at = read(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError
        else:
            raise ValueError
        if at > len(data):
            raise ValueError
        found.append([field, kind, value])
    return found


def tree(data):
    """The same with messages in it as lists, as far as they can be read as such."""
    made = fields(data)
    for item in made:
        if item[1] == 2 and len(item[2]) > 1 and not re.fullmatch(rb"[\w/:.\- ]+", item[2]):
            try:
                item[2] = tree(item[2])
            except ValueError:
                pass
    return made


def encode(made):
    out = []
    for field, kind, value in made:
        if kind == 0:
            out.append(varint(field << 3) + varint(value))
        elif kind in (1, 5):
            out.append(varint(field << 3 | kind) + value)
        else:
            out.append(msg(field, encode(value) if isinstance(value, list) else value))
    return b"".join(out)


def _numbers(made, path=""):
    """(where, item) of each number in a tree."""
    for item in made:
        where = f"{path}.{item[0]}"
        if item[1] == 0:
            yield where, item
        elif isinstance(item[2], list):
            yield from _numbers(item[2], where)


def _places(text):
    return list(re.finditer(r"(?<![\w.\"])-?\d+(\.\d+)?(?![\w.\"])", text))


def _with(root, item, edge):
    kept, item[2] = item[2], edge
    changed = encode(root)
    item[2] = kept
    return changed


def _replaced(text, found, number):
    return (text[:found.start()] + json.dumps(number) + text[found.end():]).encode()


def of_messages(data):
    """(where, changed file) for each number of a protocol buffer and each edge."""
    root = tree(data)
    for where, item in _numbers(root):
        for edge in EDGES:
            if edge != item[2]:
                yield f"{where}={edge}", _with(root, item, edge)


def of_json(data):
    """The same for each number of a JSON text."""
    text = data.decode()
    for found in _places(text):
        for number in NUMBERS:
            yield f"byte {found.start()}: {number}", _replaced(text, found, number)


class Drawn:
    """Draws some of them."""

    def __init__(self, data, is_json):
        self.text = data.decode() if is_json else None
        self.root = None if is_json else tree(data)
        self.places = _places(self.text) if is_json else list(_numbers(self.root))

    def draw(self, rng):
        if self.text is not None:
            found, number = rng.choice(self.places), rng.choice(NUMBERS)
            return f"byte {found.start()}: {number}", _replaced(self.text, found, number)
        where, item = rng.choice(self.places)
        edge = rng.choice([e for e in EDGES if e != item[2]])
        return f"{where}={edge}", _with(self.root, item, edge)
