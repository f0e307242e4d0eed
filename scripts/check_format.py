#!/usr/bin/env python3
"""Checks the form of sources: C++ and CUDA as clang-format leaves them, no line above 100 columns.

Exits with 1 where a file breaks a rule; with 77, "skipped", where the lines are right and
clang-format of the major version that formatted the tree is not here.
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = 14
COLUMNS = 100
SKIPPED = ("build", "dist", ".")  # folders whose names begin so
CPP = {".h", ".cc", ".c", ".cu", ".cuh"}
OTHERS = {".py", ".pyi", ".cmake", ".sh"}
NAMES = {"CMakeLists.txt"}
BATCH = 32  # files a call


def sources():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if f == ".ci" or not f.startswith(SKIPPED))
        for name in sorted(names):
            path = Path(folder, name)
            if path.suffix in CPP | OTHERS or name in NAMES or folder == str(ROOT / ".ci"):
                yield path


def long_lines(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if len(line) > COLUMNS:
            yield f"{path.relative_to(ROOT)}:{number}: {len(line)} columns, at most {COLUMNS}"


def formatter():
    """clang-format of the wanted version; None where there is none."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if not shutil.which(name):
            continue
        said = subprocess.run([name, "--version"], stdout=subprocess.PIPE, text=True, check=False)
        if re.search(rf"version {VERSION}\.", said.stdout):
            return name
    return None


def unformatted(program, paths):
    """One line per place that clang-format would change."""
    done = subprocess.run([program, "--dry-run", "--style=file", *map(str, paths)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    places = re.findall(r"^(\S+?:\d+):\d+: (?:warning|error): (.*)$", done.stderr, re.MULTILINE)
    if done.returncode and not places:
        return [done.stderr.strip() or f"{program} failed"]
    return [f"{Path(at).relative_to(ROOT)}: {what}" for at, what in places]


def main():
    paths = list(sources())
    breaches = [line for path in paths for line in long_lines(path)]
    program = formatter()
    cpp = [path for path in paths if path.suffix in CPP] if program else []
    batches = [cpp[at:at + BATCH] for at in range(0, len(cpp), BATCH)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines in pool.map(lambda batch: unformatted(program, batch), batches):
            breaches += lines
    print("\n".join(breaches + [f"{len(paths)} files, {len(breaches)} breaches"]))
    if breaches:
        return 1
    if program is None:
        print(f"skipped: no clang-format {VERSION} here (scripts/setup.sh --with-clang)")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
