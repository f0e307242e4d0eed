#!/usr/bin/env python3
"""Writes kernels/strings/letter_case.inc: the case of letters, from Python's Unicode tables.

Lines RANGE(first, last, step, to_lower): the code points first, first + step, … last have their
small letter at the distance to_lower; UP for capitals likewise. LONG lines are letters whose other
case has several code points.
"""
import sys
import unicodedata


def ranges(change):
    """[first, last, step, distance] of the code points that `change` moves, greedily joined."""
    made = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        other = change(chr(code))
        if len(other) != 1 or ord(other) == code:
            continue
        distance = ord(other) - code
        if made and made[-1][3] == distance:
            first, last, step, _ = made[-1]
            gap = code - last
            if first == last and gap in (1, 2) or gap == step:
                made[-1][1:3] = [code, gap]
                continue
        made.append([code, code, 1, distance])
    return made


def main():
    out = [
        "// Made by scripts/letter_case_table.py from Unicode %s." % unicodedata.unidata_version
    ]
    for name, change in (("LOWER", str.lower), ("UPPER", str.upper)):
        for first, last, step, distance in ranges(change):
            out.append("%s(0x%X, 0x%X, %d, %d)" % (name, first, last, step, distance))
    for name, change in (("LONG_LOWER", str.lower), ("LONG_UPPER", str.upper)):
        for code in range(0x110000):
            if 0xD800 <= code < 0xE000:
                continue
            other = change(chr(code))
            if len(other) > 1:
                text = "".join("\\x%02x" % b for b in other.encode())
                out.append('%s(0x%X, "%s")' % (name, code, text))
    sys.stdout.write("\n".join(out) + "\n")


main()
