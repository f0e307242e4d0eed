#!/usr/bin/env python3
"""Writes the sections of docs/formats.md that list the operators of formats, from the tables of
formats/ and from what `heddle ops --all` says. What stands before them stays as it is.

  scripts/formats_doc.py --heddle build/release/heddle            write it
  scripts/formats_doc.py --heddle build/release/heddle --check    status 1 when it is not up to date
"""

import collections
import re
import sys

import generated_page

FORMATS = generated_page.ROOT / "formats"
PAGE = generated_page.ROOT / "docs" / "formats.md"
FIRST = "## PIR\n"  # what stands before it is written by hand


def rows(name):
    """The quoted cells of each line of a generated table."""
    text = (FORMATS / "pir" / name).read_text(encoding="utf-8")
    return [re.findall(r'"([^"]*)"', line) for line in text.splitlines() if line.startswith("{")]


def handled():
    """PIR's operators that the reader has code for."""
    text = (FORMATS / "pir" / "lower_structure.cc").read_text(encoding="utf-8")
    return set(re.findall(r'\{"([\w.]+)", &L::', text)) - {"p"}


def specially_written():
    """PIR's operators that the writer has code for."""
    text = "".join(path.read_text(encoding="utf-8") for path in (FORMATS / "pir").glob("write*.cc"))
    return set(re.findall(r'"((?:pd_op|builtin|cf)\.\w+)"', text))


def pir(ops):
    reads = collections.defaultdict(list)
    for row in rows("op_table.inc"):
        if row[1] in ops and row[1] not in reads[row[0]]:
            reads[row[0]].append(row[1])
    writes = collections.defaultdict(list)
    for old, name, *_ in rows("write_table.inc"):
        if old in ops:
            writes[old].append(name)
    own, from_code = handled(), specially_written()
    spoken = {name for names in writes.values() for name in names}
    names = sorted(set(reads) | own | spoken)
    names = [name for name in names if reads.get(name) or name in own]
    lines = [f"{len(names)} operators are read. *becomes* names heddle's operators that the "
             "operator becomes, the usual one first; *own code* means structure, constants, "
             "control flow, and operators that become several. *written*: whether the writer uses "
             "the operator.",
             "", "| PIR | becomes | written |", "|---|---|---|"]
    for name in names:
        to = ", ".join(f"`{x}`" for x in reads.get(name, []))
        if name in own:
            to = "own code" + (f"; {to}" if to else "")
        says = [old for old in writes if name in writes[old]]
        lines.append(f"| `{name}` | {to} | {'yes' if says or name in from_code else ''} |")
    lines += ["", "PIR has no equivalent of heddle's other operators. A program with such "
              "operators cannot be written as PIR; the error lists them."]
    return lines


def tensorflow():
    """The operators of the handlers' tables, and those that a table maps to heddle's."""
    names = set()
    for path in sorted((FORMATS / "tensorflow").rglob("*.cc")):
        if path.name.startswith(("ops_", "lower_", "words")):
            text = path.read_text(encoding="utf-8")
            names |= set(re.findall(r'\{"(\w+)",\s*(?:&|"[a-z]|\{"[a-z])', text))
    names = sorted(name for name in names - {"Out"} if name[0].isupper())
    return ["", "## TensorFlow", "",
            f"{len(names)} operators are read, in graphs and in functions. Attributes that a file "
            "leaves out have TensorFlow's defaults. Only operators that the fetched tensors need "
            "are read. Control flow of both versions becomes branches and loops; control edges "
            "become an order. `Apply…`, `SparseApply…` and `Scatter…` are read like their "
            "`Resource…` forms.", "", ", ".join(f"`{name}`" for name in names) + "."]


def page(said):
    ops = {line.partition(":")[0] for line in said.splitlines() if not line.startswith(" ")}
    head = PAGE.read_text(encoding="utf-8").partition(FIRST)[0]
    return head + FIRST + "\n" + "\n".join(pir(ops) + tensorflow()) + "\n"


if __name__ == "__main__":
    sys.exit(generated_page.run(__doc__, "formats", ["ops", "--all"], page))
