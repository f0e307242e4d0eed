#!/usr/bin/env python3
"""Checks that sources which are compiled as one have no names in common.

HEDDLE_UNITY compiles sources of a folder together (cmake/HeddleUnity.cmake): what one declares in
an unnamed namespace would clash with another's, or overload it, or what a header of the folder
declares, as soon as they meet in a group. Groups move when a source is added, so names are unique
within a folder. Nor may two headers of the project define a type of one name: the linker would take
functions of one for those of the other. Prints each name that is not unique with its files, and
fails if there is one.
"""

import collections
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("builder", "device", "executor", "formats", "kernels",
         "gradient", "training", "partition", "passes", "tools")
HEADER_FOLDERS = ("core", "include", "memory", "offload", "ranks", "scheduler")
GROUPS = ROOT / "cmake/HeddleUnity.cmake"

DEFINED = re.compile(r"(?:struct|class|enum class|enum)\s+(?:HEDDLE_\w+(?:\([^)]*\))?\s+)?(\w+)\b"
                     r"[^;<]*\{")

# Programs and other long literals.
LITERAL = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
UNNAMED = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.DOTALL | re.MULTILINE)
TEMPLATE = re.compile(r"^template <.*>$|^template <[^()]*> (?=\w)")
# At the beginning of a line, for everything in a namespace stands there (clang-format).
TYPE = re.compile(r"(?:struct|class|enum(?: class)?|union)\s+(\w+)\s*(?:final\s*)?(?:[:{;]|$)|"
                  r"using\s+(\w+)\s*=")
OTHER = re.compile(r"(?:\[\[.*?\]\] )?(?!namespace|using|static_assert|#|/)"
                   r"[A-Za-z_][\w:<>,*&\[\] ]*?[ *&>](\w+)\s*(?:\(|\[|=|\{|;)")


def alone():
    """The folders whose sources are never compiled together."""
    found = re.search(r"set\(HEDDLE_ALONE ([^)]*)\)", GROUPS.read_text(encoding="utf-8"))
    return set(found.group(1).split())


def names(path):
    """name -> its line, for what a header or the unnamed namespaces of a source declare."""
    text = LITERAL.sub('""', path.read_text(encoding="utf-8"))
    found = {}
    for block in UNNAMED.findall(text) if path.suffix == ".cc" else [text]:
        for line in block.splitlines():
            line = TEMPLATE.sub("", line)
            match = TYPE.match(line) or OTHER.match(line)
            if match:
                found.setdefault(match.group(match.lastindex), line)
    return found


def header_types(path):
    """The types that a header defines, each with its namespaces."""
    spaces = []
    for line in LITERAL.sub('""', path.read_text(encoding="utf-8")).splitlines():
        opened = re.match(r"(?:inline )?namespace\s*([\w:]*)\s*\{", line)
        if opened:
            spaces.append(opened.group(1))
        elif re.match(r"\}\s*//.*namespace", line):
            spaces = spaces[:-1]
        else:
            defined = DEFINED.match(line)
            if defined:
                yield "::".join([*spaces, defined.group(1)])


def types_of_two_headers():
    """(type, headers): two headers of the project that define a type of one name. A program that
    uses both would have two meanings for one symbol."""
    headers = collections.defaultdict(set)
    for root in [*FOLDERS, *HEADER_FOLDERS]:
        for path in (ROOT / root).rglob("*.h"):
            for name in header_types(path):
                headers[name].add(path.relative_to(ROOT).as_posix())
    return [(name, sorted(found)) for name, found in sorted(headers.items()) if len(found) > 1]


def main():
    folders = collections.defaultdict(lambda: collections.defaultdict(list))
    apart, files = alone(), 0
    for root in FOLDERS:
        for path in sorted((ROOT / root).rglob("*.*")):
            folder = path.parent.relative_to(ROOT).as_posix()
            if folder in apart or path.suffix not in (".cc", ".h"):
                continue
            files += 1
            for name, line in names(path).items():
                folders[folder][name].append((path.name, line))
    clashes = 0
    for folder, found in sorted(folders.items()):
        for name, places in sorted(found.items()):
            # An alias may be repeated; two headers may declare what they like.
            lines = {line for _, line in places}
            if (len(places) > 1 and any(file.endswith(".cc") for file, _ in places) and
                    not (len(lines) == 1 and lines.pop().startswith("using"))):
                clashes += 1
                print(f"{folder}: {name} in {', '.join(file for file, _ in places)}")
    for name, found in types_of_two_headers():
        clashes += 1
        print(f"{name} in {', '.join(found)}")
    print(f"{files} files, {clashes} names that two of a folder, or two headers, have")
    return 1 if clashes or not files else 0


if __name__ == "__main__":
    sys.exit(main())
