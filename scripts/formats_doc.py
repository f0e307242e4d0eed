#!/usr/bin/env python3
"""Writes docs/formats.md, what is read and written of each format, from the tables of formats/ and
from what `heddle ops --all` says.

  scripts/formats_doc.py --heddle build/release/heddle            write it
  scripts/formats_doc.py --heddle build/release/heddle --check    status 1 when it is not up to date
"""

import collections
import re
import sys

import generated_page

FORMATS = generated_page.ROOT / "formats"

HEAD = "\n".join([
    "# Formats", "",
    "Written by `scripts/formats_doc.py`; a test checks that it is up to date.", "",
    "| format | files | read | written |",
    "|---|---|---|---|",
    "| `paddle`: Paddle 2's ProgramDesc | `.pdmodel`, `__model__`; parameters combined "
    "(`.pdiparams`), one file each, or pickled (`.pdparams`, `.pdopt`) | all "
    "[heddle's operators](ops.md), under their names | all of them; Paddle 2.6 runs those that are "
    "its own |",
    "| `pir`: Paddle 3's PIR, versions 0 to 4 | `inference.json` and other `.json`; parameters as "
    "for `paddle`, also stored as float16 | what stands below | what stands below, version 4 |",
    "| `onnx`: ONNX | `.onnx`, with parameters inside, or beside it where the file names them | "
    "ONNX's operators, as heddle's | no: written as `paddle` or `pir` |",
    "| `tensorflow`: TensorFlow graphs and SavedModels | `.pb` (binary GraphDef), `.pbtxt` (in "
    "text form), a directory with `saved_model.pb` or `.pbtxt` and its variables, `.meta` with "
    "the checkpoint beside it | what stands "
    "below, "
    "any part of a graph | no: written as `paddle` or `pir` |", "",
    "Commands, `LoadModel` and `heddle.load` take a file or a directory; the first bytes of a file",
    "say which format it is. In a directory `model.pdmodel`, `inference.pdmodel`, `__model__`,",
    "`inference.json`, `model.json`, `model.onnx` and `saved_model.pb` are looked for, in this",
    "order, then a single file with such an ending, then the checkpoint of TensorFlow that the",
    "file `checkpoint` names. `ParseModel` (C++),",
    "`heddle_model_parse_all` (C) and `heddle.parse` (Python) take the bytes of the files.",
    "`heddle convert MODEL --to FORMAT -o DIR` writes.", "",
    "A program with operators that heddle does not have is refused with a list of all of them; so",
    "is one that cannot be written. What a reader makes is the same program whatever the format:",
    "heddle's operators. Formats can be left out of a build",
    "([HACKING.md](../HACKING.md#builds-without-some-formats)).", "",
    "Checksums are compared. Blocks of a TensorFlow checkpoint's index always are, variables",
    "when all of one is read, at once or part by part, and those that a program does not read",
    "where they have no more than 64 MiB together. A variable of 64 MiB and more that is mapped",
    "(of which only the rows that are gathered are read) is not read as a whole and is not",
    "compared. External data of an ONNX model is compared where the model says a checksum:",
    "SHA-1 of the whole file, which is read for that. External data lies in the model's folder",
    "or below it, in files that are no links: neither symbolic ones, folders on the way",
    "included, nor files with a second name (hard links). Copies take their place. Where the",
    "model's file is a link itself, as in the cache of Hugging Face's hub, links beside it may",
    "lead to files in the folder that the model's file really lies in. The files of a",
    "SavedModel's tables go by the same rule: they lie in its folder `assets`, which is no link.",
    "",
    "## PIR", "", ""])


def rows(name):
    """The quoted cells of each line of a generated table."""
    text = (FORMATS / "pir" / name).read_text(encoding="utf-8")
    return [re.findall(r'"([^"]*)"', line) for line in text.splitlines() if line.startswith("{")]


def handled():
    """PIR's operators that the reader has code for."""
    text = (FORMATS / "pir" / "lower_structure.cc").read_text(encoding="utf-8")
    return set(re.findall(r'\{"([\w.]+)", &L::', text)) - {"p"}


def specially_written():
    """heddle's operators that the writer has code for, and PIR's that they become."""
    text = "".join(path.read_text(encoding="utf-8") for path in (FORMATS / "pir").glob("write*.cc"))
    return (set(re.findall(r'\{"(\w+)", &W::', text)) |
            set(re.findall(r'op\.type\(\) == "(\w+)"', text)),
            set(re.findall(r'"((?:pd_op|builtin|cf)\.\w+)"', text)))


def pir(ops):
    reads = collections.defaultdict(list)
    for row in rows("op_table.inc"):
        if row[1] in ops and row[1] not in reads[row[0]]:
            reads[row[0]].append(row[1])
    writes = collections.defaultdict(list)
    for old, name, *_ in rows("write_table.inc"):
        if old in ops:
            writes[old].append(name)
    own, (from_code, to_code) = handled(), specially_written()
    spoken = {name for names in writes.values() for name in names}
    names = sorted(set(reads) | own | spoken)
    names = [name for name in names if reads.get(name) or name in own]
    lines = [f"{len(names)} operators are read. *own code*: structure, constants, control flow, "
             "and what takes several operators. The second column has heddle's operators that "
             "an operator becomes, the usual one first; *written*: those are written as this one.",
             "", "| PIR | becomes | written |", "|---|---|---|"]
    for name in names:
        to = ", ".join(f"`{x}`" for x in reads.get(name, []))
        if name in own:
            to = "own code" + (f"; {to}" if to else "")
        says = [old for old in writes if name in writes[old]]
        lines.append(f"| `{name}` | {to} | {'yes' if says or name in to_code else ''} |")
    unsaid = sorted(op for op in ops if op not in writes and op not in from_code
                    and not op.startswith(("elementwise_", "onnx_", "tf_")))
    lines += ["", "Operators that no operator of PIR says, so that programs with them "
              "are not written as PIR: those whose names begin with `onnx_` or `tf_`, and "
              + ", ".join(f"`{x}`" for x in unsaid) + "."]
    return lines


def tensorflow():
    """The operators of the handlers' tables, and those that a table maps to heddle's."""
    names = set()
    for path in sorted((FORMATS / "tensorflow").rglob("*.cc")):
        if path.name.startswith(("ops_", "lower_")):
            text = path.read_text(encoding="utf-8")
            names |= set(re.findall(r'\{"(\w+)", (?:&|"[a-z])', text))
    names = sorted(name for name in names - {"Out"} if name[0].isupper())
    return ["", "## TensorFlow", "",
            f"{len(names)} operators are read, in graphs and in functions; attributes that a file "
            "leaves out have TensorFlow's defaults. Only what leads to the fetched tensors is "
            "looked at. Control flow of both kinds becomes branches and loops, and control edges "
            "are kept as order. `Apply…`, `SparseApply…` and `Scatter…` are read as `Resource…`, "
            "too.", "", ", ".join(f"`{name}`" for name in names) + "."]


def page(said):
    ops = {line.partition(":")[0] for line in said.splitlines() if not line.startswith(" ")}
    return HEAD + "\n".join(pir(ops) + tensorflow()) + "\n"


if __name__ == "__main__":
    sys.exit(generated_page.run(__doc__, "formats", ["ops", "--all"], page))
