#!/usr/bin/env python3
"""Writes docs/ops.md, the list of operators, from what `heddle ops --all` says.

  scripts/ops_doc.py --heddle build/release/heddle            write it
  scripts/ops_doc.py --heddle build/release/heddle --check    status 1 when it is not up to date
"""

import re
import sys

import generated_page

LONG_DTYPES = "bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, " \
              "complex64, complex128"


def parse(text):
    """[(name, description, [(kind, text)])] in the order given."""
    ops = []
    for line in text.splitlines():
        if line.startswith("  "):
            kind, _, rest = line.strip().partition(" ")
            ops[-1][2].append((kind, rest.strip()))
        else:
            name, _, doc = line.partition(": ")
            ops.append((name, doc, []))
    return ops


def slot(text):
    match = re.fullmatch(r"(\S+)(?: \((.*)\))?", text)
    return f"`{match.group(1)}`" + (f" ({match.group(2)})" if match.group(2) else "")


def attribute(text):
    match = re.fullmatch(r"(\S+): (\S+)(?: = (.*))?", text, re.S)
    return f"`{match.group(1)}` {match.group(2)}" + (f" {match.group(3)}" if match.group(3) else "")


def section(op):
    name, doc, facts = op
    of = lambda kind: [text for k, text in facts if k == kind]
    lines = [f"### {name}", ""]
    if doc != "(no description)":
        lines += [doc, ""]
    lines.append("- in: " + (", ".join(map(slot, of("in"))) or "none"))
    lines.append("- out: " + (", ".join(map(slot, of("out"))) or "none"))
    if of("attr"):
        lines.append("- attributes: " + "; ".join(map(attribute, of("attr"))))
    dtypes = ", ".join(of("dtypes"))
    lines.append("- dtypes: " + ("all" if dtypes == LONG_DTYPES else dtypes or "none"))
    for kind, title in (("gradient", "gradient"), ("in-place", "in place"), ("view", "view"),
                        ("traits", "traits")):
        if of(kind):
            lines.append(f"- {title}: " + ", ".join(of(kind)))
    return lines + [""]


def page(ops):
    gradients = [op for op in ops if re.search(r"_grad(_grad)?$", op[0])]
    lines = ["# Operators", "",
             "Written by `scripts/ops_doc.py` from `heddle ops --all`; a test checks that it is up "
             "to date.", "",
             f"{len(ops)} operators: {len(ops) - len(gradients)} forward, {len(gradients)} "
             "gradients.", "",
             "*list*: any number of variables. *optional*: may be left out. *shape only*: shape "
             "and dtype are read, not the values, so that the memory may be gone. *decides "
             "shapes*: the values are read when shapes are inferred. Attributes come with their "
             "defaults. *in place*: the output may be computed in the input's memory. *view*: the "
             "output is the input's memory.", ""]
    for title, chosen in (("Forward", [op for op in ops if op not in gradients]),
                          ("Gradients", gradients)):
        lines += [f"## {title}", ""]
        for op in chosen:
            lines += section(op)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(generated_page.run(__doc__, "ops", ["ops", "--all"], lambda said: page(parse(said))))
