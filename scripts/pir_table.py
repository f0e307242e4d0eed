#!/usr/bin/env python3
"""Makes formats/pir/op_table.inc: how PIR's operators map to those that heddle has.

  pir_table.py --facts op_names.tsv > formats/pir/op_table.inc

The facts are a table of the operators that Paddle 3.3.1 registers and of its translator's names for
them (paddle/phi/ops/yaml/*.yaml and op_compat.yaml, as the published wheel has them): one line per
pair of a PIR operator and an operator of ProgramDesc, with the tab-separated columns

  pir  old  in_2.6  seen  operands  attributes  results  inplace

operands: name=Slot in order; "?" optional, ":T[]" a list, "name=@attribute|Slot|Slot" a value that
is an attribute or comes in one of the slots. attributes: name=old_name:kind. results: name=Slot.
inplace: result<-operand. "-" stands for nothing. formats/pir/op_supplement.tsv takes the place of
these lines where an operator has no single counterpart, or one that wants something else: operand
"name=-" is not handed on, and attribute "=name:value" is always set.
"""
import argparse
import os
import re
import sys

SUPPLEMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "formats", "pir",
                          "op_supplement.tsv")

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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", required=True, help="op_names.tsv")
    args = parser.parse_args()
    out = ["// Made by scripts/pir_table.py of Paddle 3.3.1's operator descriptions; do not edit."]
    for pir, old, operands, attributes, results, inplace, _ in rows(args.facts):
        cells = [pir, old, plain(operands, True), plain(attributes, False), plain(results, True),
                 "" if inplace == "-" else inplace]
        out.append("{" + ", ".join(f'"{c}"' for c in cells) + "},")
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
