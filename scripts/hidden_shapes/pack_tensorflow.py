#!/usr/bin/env python3
"""Packs TensorFlow cases with hidden shapes into tests/tools/cases/hidden_shapes.tar.

hidden_shapes_test.cc, beside it, runs them.

  pack_tensorflow.py RANDOM HIDDEN TYPES

RANDOM is what tensorflow_graphs.py wrote; HIDDEN and TYPES are the folders of cases that
sweep_hidden_shapes.py --keep left for tensorflow and tensorflow_types. Of the random graphs the
smallest ones are taken until each kind of step is there several times; of the others, the smallest
case of each operator's name.
"""

import collections
import re
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from pack_cases import plain  # noqa

ROOT = Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "tests" / "tools" / "cases" / "hidden_shapes.tar"
EACH = 2  # of each kind of step
FILE_LIMIT = 9000  # bytes of a graph
COMPARED = {"bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"}


def size(case):
    return sum(p.stat().st_size for p in case.iterdir())


def steps(random):
    listed = (random / "list.txt").read_text().splitlines()
    return {random / line.split("\t")[0]: line.split("\t")[1].split() for line in listed}


def chosen_random(random):
    said, have, taken = steps(random), collections.Counter(), []
    for case in sorted(said, key=lambda c: (size(c), c.name)):
        kinds = set(said[case]) - {"old"}
        if (case / "graph.pb").stat().st_size > FILE_LIMIT:
            continue
        if any(have[k] < EACH for k in kinds) or ("old" in said[case] and have["old"] < 8):
            have.update(kinds | ({"old"} & set(said[case])))
            taken.append(case)
    return taken


def is_compared(case):
    lines = (case / "io.txt").read_text().splitlines()
    return all(line.split("\t")[3] in COMPARED for line in lines)


def smallest(folders, key):
    best = {}
    for folder in folders:
        for case in sorted(folder.iterdir()):
            if not is_compared(case):
                continue
            name = key(case.name)
            if name not in best or size(case) < size(best[name]):
                best[name] = case
    return [case for _, case in sorted(best.items())]


def main():
    random, hidden, types = map(Path, sys.argv[1:])
    cases = [(f"random_{c.name}", c) for c in chosen_random(random)]
    loops = smallest([hidden / "loop", hidden / "old_loop"], lambda n: re.sub(r"_.*", "", n))
    cases += [(c.name, c) for c in loops[::16]]
    widths = smallest([types / "constant", types / "cast"],
                      lambda n: re.sub(r"^[^.]*\.[^.]*\.\d+\.", "", n))
    narrow = [c for c in widths if re.search(r"int(8|16)$", c.name)]
    cases += [(c.name, c) for c in narrow + [c for c in widths if c not in narrow][::8]]
    with tarfile.open(OUT, "w", format=tarfile.USTAR_FORMAT, dereference=True) as tar:
        for name, case in cases:
            for path in sorted(case.iterdir()):
                tar.add(path, f"{name}/{path.name}", filter=plain)
    print(f"{len(cases)} cases, {OUT.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
