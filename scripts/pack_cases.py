#!/usr/bin/env python3
"""Packs operator cases into tests/tools/cases/recorded_cases.tar.

recorded_cases_test.cc, beside it, runs them.

  scripts/pack_cases.py CORPUS...          the smallest forward and gradient case of each operator

A corpus is a folder with cases/NAME/{program.pb,io.txt,*.npy}, as gen_op_cases.py makes them.
"""

import re
import sys
import tarfile
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "tests" / "tools" / "cases" / "recorded_cases.tar"


def wanted(case):
    return sorted(p for p in case.iterdir()
                  if p.suffix == ".npy" or p.name in ("program.pb", "io.txt"))


def plain(info):
    """The same archive from the same files, whoever packs them."""
    info.mtime, info.uid, info.gid, info.uname, info.gname, info.mode = 0, 0, 0, "", "", 0o644
    return info


def main():
    smallest = {}
    for corpus in map(Path, sys.argv[1:]):
        for case in sorted((corpus / "cases").iterdir()):
            key = re.sub(r"\.\d+$", "", case.name)
            size = sum(p.stat().st_size for p in wanted(case))
            if key not in smallest or size < smallest[key][0]:
                smallest[key] = (size, case)
    with tarfile.open(OUT, "w", format=tarfile.USTAR_FORMAT) as tar:
        for _, case in sorted(smallest.values(), key=lambda item: item[1].name):
            for path in wanted(case):
                tar.add(path, f"{case.name}/{path.name}", filter=plain)
    print(f"{len(smallest)} cases, {OUT.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
