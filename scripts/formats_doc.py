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
    "[heddle's operators](ops.md), under their names | all operators; Paddle 2.6 runs those that "
    "are its own |",
    "| `pir`: Paddle 3's PIR, versions 0 to 4 | `inference.json` and other `.json`; parameters as "
    "for `paddle`, also stored as float16 | operators of the [table](#pir) | operators of the "
    "[table](#pir), as version 4 |",
    "| `onnx`: ONNX | `.onnx`; parameters in the same file, or in files beside it that it names | "
    "ONNX's operators, as heddle's | no: written as `paddle` or `pir` |",
    "| `tensorflow`: TensorFlow graphs and SavedModels | `.pb` (binary GraphDef); `.pbtxt` (text "
    "form); a directory with `saved_model.pb` or `.pbtxt` and its variables; `.meta` with the "
    "checkpoint beside it | operators of the [list](#tensorflow), any part of a graph | no: "
    "written as `paddle` or `pir` |", "",
    "Commands, `LoadModel` and `heddle.load` take a file or a directory. The first bytes of a file",
    "decide which format it is. In a directory, heddle looks for `model.pdmodel`,",
    "`inference.pdmodel`, `__model__`, `inference.json`, `model.json`, `model.onnx` and",
    "`saved_model.pb`, in this order, then for a single file with such an ending, then for the",
    "TensorFlow checkpoint that the file `checkpoint` names. `ParseModel` (C++),",
    "`heddle_model_parse_all` (C) and `heddle.parse` (Python) take the contents of the files.",
    "`heddle convert MODEL --to FORMAT -o DIR` writes a model.", "",
    "If a program has operators that heddle does not know, the error lists all of them; so it does",
    "if a program cannot be written. Every format becomes a program of heddle's operators. Formats",
    "can be left out of a build ([HACKING.md](../HACKING.md#builds-without-some-formats)).", "",
    "**Checksums.** These checksums are compared:", "",
    "- of the blocks of a TensorFlow checkpoint's index: always;",
    "- of a TensorFlow variable: if all of it is read, at once or in parts. Variables that a",
    "  program does not read are compared too, if they have at most 64 MiB together. A variable of",
    "  64 MiB and more that is mapped, so that only gathered rows are read, is not compared;",
    "- of external data of an ONNX model: if the model has a checksum. It is the SHA-1 of the",
    "  whole file, which is read for it.", "",
    "**External data.** External data of an ONNX model must be in the model's folder or below, in",
    "files that are no links: no symbolic links, also of folders on the way, and no hard links.",
    "(Copy the files instead.) If the model's file is itself a symbolic link, as in the cache of",
    "Hugging Face's hub, links beside it may lead to files in the folder of the model's real file.",
    "The same rule holds for files of a SavedModel's tables: they must be in its folder `assets`,",
    "which must not be a link.",
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
        lines.append(f"| `{name}` | {to} | {'yes' if says or name in to_code else ''} |")
    unsaid = sorted(op for op in ops if op not in writes and op not in from_code
                    and not op.startswith(("elementwise_", "onnx_", "tf_")))
    lines += ["", "PIR has no equivalent of these operators, so programs with them cannot be "
              "written as PIR: those whose names begin with `onnx_` or `tf_`, and "
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
            f"{len(names)} operators are read, in graphs and in functions. Attributes that a file "
            "leaves out have TensorFlow's defaults. Only operators that the fetched tensors need "
            "are read. Control flow of both versions becomes branches and loops; control edges "
            "become an order. `Apply…`, `SparseApply…` and `Scatter…` are read like their "
            "`Resource…` forms.", "", ", ".join(f"`{name}`" for name in names) + "."]


def page(said):
    ops = {line.partition(":")[0] for line in said.splitlines() if not line.startswith(" ")}
    return HEAD + "\n".join(pir(ops) + tensorflow()) + "\n"


if __name__ == "__main__":
    sys.exit(generated_page.run(__doc__, "formats", ["ops", "--all"], page))
