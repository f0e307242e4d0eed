#!/usr/bin/env python3
"""Runs the commands that docs/json.md shows and compares what they print with its tables:
check_json.py --heddle TOOL. Every key that is printed must be listed, with its type; every listed
one that is not optional must be printed; every command that takes --json must have a section."""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "json.md"
KINDS = {"text": lambda v: isinstance(v, str), "bool": lambda v: isinstance(v, bool),
         "null": lambda v: v is None, "any": lambda v: True,
         "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
         "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool)}


def sections(text):
    """(schema, command, [(path, kinds, optional)])."""
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        command = re.search(r"^`(heddle [^`]*)`$", part, re.MULTILINE).group(1)
        rows = []
        for keys, what in re.findall(r"^\| (`[^|]*`) \| ([^|]*) \|", part, re.MULTILINE):
            kinds = what.replace("?", "").strip().split(" or ")
            rows += [(key, kinds, "?" in what) for key in re.findall(r"`([^`]*)`", keys)]
        yield part.split("\n", 1)[0], command, rows


def leaves(value, path=""):
    """(path, value) of whatever is no container; of an empty one, itself."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from leaves(inner, path + "[]")
    else:
        yield path, value


def pattern(path):
    """A regular expression for a path of the tables: `*` is any name, below `any` all of them."""
    return re.compile(re.escape(path).replace(r"\*", r".+"))


def compare(said, rows):
    rows = [(path, pattern(path), kinds, optional) for path, kinds, optional in rows]
    seen, wrong = set(), set()
    for path, value in leaves(said):
        if value == [] or value == {}:
            known = [r[0] for r in rows if r[0].startswith(path)
                     or ("any" in r[2] and r[1].fullmatch(path))]
        else:
            known = [r[0] for r in rows if r[1].fullmatch(path)
                     and any(KINDS[kind](value) for kind in r[2])]
            if not known and value is None and any(r[0].startswith(path + "[]") for r in rows):
                known = [r[0] for r in rows if r[0].startswith(path + "[]")]
        seen.update(known)
        if not known:
            wrong.add(f"{path}: {json.dumps(value)[:60]} is not in the table")
    wrong.update(f"{r[0]}: in the table, not printed" for r in rows
                 if not r[3] and r[0] not in seen)
    return sorted(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", type=Path, required=True)
    heddle = parser.parse_args().heddle.resolve()
    failed, shown = 0, set()
    with tempfile.TemporaryDirectory() as folder:
        for example in ("digits", "targets"):
            shutil.copytree(ROOT / "examples" / example, Path(folder) / example)
        for schema, command, rows in sections(PAGE.read_text(encoding="utf-8")):
            done = subprocess.run([str(heddle), *command.split()[1:]], cwd=folder, text=True,
                                  capture_output=True, timeout=120)
            expected = 1 if schema.startswith("heddle.error/") else 0
            wrong = []
            try:
                said = json.loads(done.stdout)
                wrong += compare(said, rows)
                if not isinstance(said, dict) or list(said)[:1] != ["schema"]:
                    wrong.append("no object that begins with its schema")
                elif said["schema"] != schema:
                    wrong.append(f"the schema is {said['schema']}")
            except ValueError as error:
                wrong.append(f"no JSON: {error}; {done.stderr}")
            if done.returncode != expected:
                wrong.append(f"status {done.returncode}: {done.stderr}")
            shown.add(command.split()[1])
            failed += bool(wrong)
            print(f"{schema}: {'ok' if not wrong else '; '.join(wrong)}")
        usage = subprocess.run([str(heddle), "--help"], text=True, capture_output=True).stdout
        for name in re.findall(r"^  ([a-z]+(?:-[a-z]+)*) +\S", usage.split("Subcommands:")[1],
                               re.MULTILINE):
            help_text = subprocess.run([str(heddle), name, "--help"], text=True,
                                       capture_output=True).stdout
            if "--json" in help_text and name not in shown:
                failed += 1
                print(f"{name} takes --json and has no section")
    print(f"{failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
