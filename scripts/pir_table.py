#!/usr/bin/env python3
"""Makes formats/pir/op_table.inc: how PIR's operators map to those that heddle has.

  pir_table.py --facts op_names.tsv > formats/pir/op_table.inc
  pir_table.py --facts op_names.tsv --write --dynamic dynamic_operands.tsv --programs DIR...
      --heddle build/release/heddle > formats/pir/write_table.inc

The facts are a table of the operators that Paddle 3.3.1 registers and of its translator's names for
them (paddle/phi/ops/yaml/*.yaml and op_compat.yaml, as the published wheel has them): one line per
pair of a PIR operator and an operator of ProgramDesc, with the tab-separated columns

  pir  old  in_2.6  seen  operands  attributes  results  inplace

operands: name=Slot in order; "?" optional, ":T[]" a list, "name=@attribute|Slot|Slot" a value that
is an attribute or comes in one of the slots. attributes: name=old_name:kind. results: name=Slot.
inplace: result<-operand. "-" stands for nothing. formats/pir/op_supplement.tsv takes the place of
these lines where an operator has no single counterpart, or one that wants something else: operand
"name=-" is not handed on, and attribute "=name:value" is always set.

The second form makes the table for writing, by the old names, of the facts alone: with the kinds of
attributes; for those that the old operator does not have, with the value that most operators of the
programs (Paddle's own files) have there. Which attributes those are, `heddle ops` tells. The table
of dynamic operands has, tab-separated, pir, old, index, operand, attribute and its kind.
"""
import argparse
import collections
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
HEAD = "// Made by scripts/pir_table.py of Paddle 3.3.1's operator descriptions; do not edit."
SUPPLEMENT = os.path.join(ROOT, "formats", "pir", "op_supplement.tsv")

def plain(text, operand):
    """name=Slot without flags of types, which heddle's own definitions have"""
    items = [] if text == "-" else text.split(" ")
    if operand:
        return " ".join(re.sub(r"(:(T\[\]|SR|TA|COO|CSR)|[?~])+$", "", i) for i in items)
    return " ".join(i if i.startswith("=") else i.split(":")[0] for i in items)


def rows(path):
    with open(SUPPLEMENT, encoding="utf-8") as lines:
        supplement = [x.rstrip("\n").split("\t") for x in lines if not x.startswith("#")]
    replaced = {r[0] for r in supplement}
    found = [r + [1] for r in supplement]
    with open(path, encoding="utf-8") as facts:
        for line in facts:
            if line.startswith("#"):
                continue
            row = line.rstrip("\n").split("\t")
            pir, old, _, seen, operands, attributes, results, inplace = row
            if old != "-" and pir not in replaced:
                found.append([pir, old, operands, attributes, results, inplace, int(seen)])
    # The counterpart that most programs use goes first.
    return sorted(found, key=lambda r: (r[0], -r[6], r[1]))


def heddle_attributes(heddle):
    """heddle's operators -> their attributes"""
    said = subprocess.run([heddle, "ops", "--all"], check=True, capture_output=True, text=True)
    found = {}
    for line in said.stdout.splitlines():
        if attribute := re.match(r"  attr (\S+): ", line):
            found[name].add(attribute.group(1))
        elif not line.startswith(" "):
            name = line.partition(": ")[0]
            found[name] = set()
    return found


def usual_values(folders):
    """(operator, attribute) -> values of Paddle's files, with their counts"""
    dialects = {"0": "builtin", "1": "pd_op", "2": "cf"}
    found = collections.defaultdict(collections.Counter)

    def look_at(block):
        for op in block["ops"]:
            dialect, _, name = op["#"].partition(".")
            for attribute in op["A"] if name else []:
                value = attribute["AT"].get("D")
                if isinstance(value, (bool, int, float, str)):
                    key = (f"{dialects.get(dialect, dialect)}.{name}", attribute["N"])
                    found[key][str(int(value) if isinstance(value, bool) else value)] += 1
            for region in op.get("regions", []):
                for inner in region["blocks"]:
                    look_at(inner)

    for folder in folders:
        for path in glob.glob(os.path.join(folder, "**", "*.json"), recursive=True):
            with open(path, encoding="utf-8") as file:
                program = json.load(file)
            if isinstance(program, dict) and "base_code" in program:
                look_at(program["program"]["regions"][0]["blocks"][0])
    return found


FLAGS = r"((?::T\[\]|:TA|[?~])*)$"


def merged(item, fact):
    """an item of the supplement with flags, or kind, as the fact about the same operand has them"""
    if fact is None or item.startswith("="):
        return item
    kind = fact.partition("=")[2].partition(":")[2]
    flags = re.search(FLAGS, fact).group(1)
    return item + (flags or (":" + kind if kind else ""))


def write_rows(args):
    """old, pir, operands, attributes, results of the operators that heddle has"""
    with open(args.dynamic, encoding="utf-8") as lines:
        kinds = {(r[0], r[3]): r[5] for r in (x.split("\t") for x in lines)}
    with open(args.facts, encoding="utf-8") as lines:
        facts = [x.rstrip("\n").split("\t") for x in lines if not x.startswith("#")]
    with open(SUPPLEMENT, encoding="utf-8") as lines:
        supplement = [x.rstrip("\n").split("\t") for x in lines if not x.startswith("#")]
    rows = [[r[0], r[1], r[3], *r[4:]] for r in facts if r[0] not in {s[0] for s in supplement}]
    cells = lambda cell: [] if cell == "-" else cell.split(" ")  # noqa: E731
    for pir, old, *parts in supplement:
        about = [r for r in facts if r[0] == pir]
        row = [pir, old, max([r[3] for r in about], key=int, default="0")]
        for i in range(3):
            by_name = {x.split("=")[0]: x for r in about[:1] for x in cells(r[4 + i])}
            items = [merged(x, by_name.get(x.split("=")[0])) for x in cells(parts[i])]
            if i == 1:  # files have all attributes
                given = {x.split("=")[0] for x in items}
                items += [x for name, x in by_name.items() if name not in given]
            row.append(" ".join(items))
        rows.append([*row, parts[3]])
    known, usual = heddle_attributes(args.heddle), usual_values(args.programs)
    found = []
    for pir, old, seen, operands, attributes, results, inplace in rows:
        if old not in known or re.search(r":(SR|COO|CSR)", operands + results):
            continue
        operands, attributes, results, inplace = (
            cells(x or "-") for x in (operands, attributes, results, inplace))
        names = [x.split("=")[0] for x in operands]
        flags = lambda x: x.replace(":T[]", "*").replace(":TA", "")  # noqa: E731
        operands = [flags(x) + (f"#{kinds.get((pir, x.split('=')[0]), 'scalar')}"
                                if "=@" in x else "") for x in operands]
        for i, item in enumerate(attributes):
            name, _, kind = item.partition("=")
            if name and kind.split(":")[0] not in known[old]:
                value = usual[pir, name].most_common(1)
                attributes[i] = f"{item}={value[0][0] if value else ''}"
        same = dict(x.split("<-") for x in inplace)
        results = [flags(x) + (f"<{names.index(same[x.split('=')[0]])}"
                               if same.get(x.split("=")[0]) in names else "") for x in results]
        found.append((old, pir.endswith("_"), -int(seen), pir, operands, attributes, results))
    return [(r[0], *r[2:]) for r in sorted((r[0], r[2] == 0, *r[1:]) for r in found)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", required=True, help="op_names.tsv")
    parser.add_argument("--write", action="store_true", help="the table for writing")
    parser.add_argument("--dynamic", help="dynamic_operands.tsv")
    parser.add_argument("--programs", nargs="*", default=[])
    parser.add_argument("--heddle", default="build/release/heddle")
    args = parser.parse_args()
    if args.write:
        print(HEAD)
        for old, _, _, pir, *cells in write_rows(args):
            print("{" + ", ".join(f'"{x}"' for x in (old, pir, *map(" ".join, cells))) + "},")
        return
    out = [HEAD]
    for pir, old, operands, attributes, results, inplace, _ in rows(args.facts):
        cells = [pir, old, plain(operands, True), plain(attributes, False), plain(results, True),
                 "" if inplace == "-" else inplace]
        out.append("{" + ", ".join(f'"{c}"' for c in cells) + "},")
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
