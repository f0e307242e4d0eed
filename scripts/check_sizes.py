#!/usr/bin/env python3
"""Checks that headers and sources stay short and folders small enough to be looked over; lists long
functions without failing on them."""

import collections
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("include", "builder", "core", "formats", "memory", "scheduler", "device", "kernels",
           "passes", "executor",
            "gradient", "training", "partition", "tools", "capi", "python", "tests", "benchmarks")
HEADER_LINES, SOURCE_LINES, FUNCTION_LINES = 250, 600, 60
# Sources and headers of one folder, not counting those of its subfolders.
FOLDER_FILES = 40
WHOLE_INTERFACES = {"include/heddle.h"}  # one header by intention: as long as a source

NOT_A_FUNCTION = re.compile(
    r"^\s*(namespace|class|struct|union|enum|extern|switch|if|for|while|do)\b|=\s*\{$")


def long_functions(lines):
    """(line, length) of blocks that look like function bodies: `…) … {` up to a brace as deep."""
    for start, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        # Deeper ones are statements; two columns are a member function.
        if depth not in (0, 2) or not line.endswith("{") or ")" not in line:
            continue
        if NOT_A_FUNCTION.search(line):
            continue
        closing = " " * depth + "}"
        for end in range(start + 1, len(lines)):
            if lines[end].startswith(closing):
                if end - start + 1 > FUNCTION_LINES:
                    yield start + 1, end - start + 1
                break


def main():
    too_long, warnings, files = [], [], 0
    in_folder = collections.Counter()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cuh", ".cc", ".c", ".cu") or not path.is_file():
                continue
            files += 1
            name = path.relative_to(ROOT)
            in_folder[name.parent.as_posix()] += 1
            lines = path.read_text(encoding="utf-8").splitlines()
            short = path.suffix in (".h", ".cuh") and name.as_posix() not in WHOLE_INTERFACES
            limit = HEADER_LINES if short else SOURCE_LINES
            if len(lines) > limit:
                too_long.append(f"{name}: {len(lines)} lines, at most {limit}")
            warnings += [f"warning: {name}:{at}: function of {length} lines, aim at "
                         f"{FUNCTION_LINES}"
                         for at, length in long_functions(lines)]
    crowded = [f"{name}/: {count} files, at most {FOLDER_FILES}"
               for name, count in sorted(in_folder.items()) if count > FOLDER_FILES]
    print("\n".join(warnings + too_long + crowded +
                    [f"{files} files, {len(too_long)} too long, {len(crowded)} crowded folders, "
                     f"{len(warnings)} long functions"]))
    return 1 if too_long or crowded else 0


if __name__ == "__main__":
    sys.exit(main())
