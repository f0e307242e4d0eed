#!/usr/bin/env python3
"""Writes docs/passes.md, the description of the optimiser, from what `heddle passes --json` says.

  scripts/passes_doc.py --heddle build/release/heddle            write it
  scripts/passes_doc.py --heddle build/release/heddle --check    status 1 when it is not up to date
"""

import json
import sys

import generated_page

GROUPINGS = ["PRE_PLACEMENT", "POST_PLACEMENT", "POST_REWRITE_FOR_EXEC", "POST_PARTITIONING"]

HEAD = """# Passes

Written by `scripts/passes_doc.py` from `heddle passes --json`; a test checks that it is up to date.

A pass rewrites a program before it is planned. `Executor::Compile` runs them on a copy; `heddle opt`
writes what they make as a file:

```sh
heddle opt resnet50/ -o resnet50.opt --pass-stats      # level 1: Paddle reads it, too
heddle opt resnet50/ -o resnet50.opt --opt 2           # level 2: fused operators, for heddle
heddle run resnet50/ --random-feed --disable-pass channels_last
heddle run resnet50/ --random-feed --dump-passes dumps --dump-filter 'fuse' --verify-passes
```

Passes of one's own are given with the options (`CompileOptions::passes`, `include/heddle/pass.h`);
there is no global list. Those of the project are one file each, found by the build (HACKING.md).

**Order.** Four groupings, in each ascending phases, in a phase the names decide. Passes *in rounds*
run again until nothing changes, 10 rounds at most; where the program comes back to a form it had, the
rounds end with a warning. **Levels.** 0: none; 1: what any reader of the file understands; 2: also
fusion and layouts. **Variables.** A program writes variables again: passes reason about (variable,
version), and leave alone what they cannot prove, in sub-blocks as in the first block.

**Trust.** After each change the program is looked through: slots and attributes fit the definitions,
ids exist, operands can be seen where they are used, nothing is read before it is written or fetched
without being written, variables keep name, kind and dtype, operators with side effects are still there.
With `--verify-passes` a pass that says "unchanged" is compared by fingerprint. An error reads
`POST_PLACEMENT/2/foo: …`, and the program that was given is as it was. `tests/passes/law_test.cc` runs
every pass, and all together, on random programs (100 in the tests; `HEDDLE_LAW_PROGRAMS=1000` for
more): equal results, nothing left to do for a second run, no trace of a pass that failed.

*Results* below: whether a pass leaves every result's bits alone, or how far results may move, relative
to the largest element. (Two zeros of different sign count as the same.)

| framework | wanted | measured |
|---|---|---|
"""

# What is not a single pass's: (what, wanted, measured).
GATES = [
    ("order of 20 shuffled registrations", "one", "one (`PassManager.OrderDepends…`)"),
    ("files for three changes", "5", "5 (`PassManager.Dumps…`)"),
    ("planted wrong passes: operator dropped, read before written, lie about changing",
     "named", "named (`PassManager.*`)"),
    ("random programs, each pass alone and all together", "1,000 equal",
     "1,000 (`HEDDLE_LAW_PROGRAMS=1000`)"),
    ("10,000 operators through level 2", "250 ms", "32 ms (`benchmarks/passes_bench.cc`)"),
    ("100,000 operators through level 2", "3 s", "0.97 s"),
    ("common subexpressions of 10,000 operators; time over that of 1,000", "50 ms; 15",
     "13 ms; 10.6"),
    ("models that `heddle opt` writes at level 1, run by Paddle 2.6.2", "5 with equal outputs",
     "7, difference 0 (`scripts/check_opt.py`)"),
]


def gates(rows):
    return [f"| {what} | {wanted} | {measured} |" for what, wanted, measured in rows]


def section(p):
    lines = [f"### {p['name']}", "", p["doc"][0].upper() + p["doc"][1:] + ".", ""]
    where = ", ".join(p["groupings"].split())
    results = "the same bits" if p["tolerance"] == 0 else f"within {p['tolerance']:g}"
    lines.append(f"- level {p['level']}, {where}, phase {p['phase']}, "
                 f"{'in rounds' if p['repeat'] else 'once'}; results: {results}")
    if p["own_ops"]:
        lines.append("- makes, for heddle only: " + ", ".join(f"`{o}`" for o in p["own_ops"]))
    if p["before"]:
        lines.append(f"- before: `{p['before']}`")
        lines.append(f"- after: `{p['after']}`")
    if p["refuses"]:
        lines.append(f"- leaves alone: {p['refuses']}")
    rows = [[cell.strip() for cell in line.split("|")] for line in p["gates"].splitlines() if line]
    if rows:
        lines += ["", "| gate | wanted | measured |", "|---|---|---|"] + gates(rows)
    return lines + [""]


def page(passes):
    lines = [HEAD + "\n".join(gates(GATES)), "", "## In the order they run", "",
             "| grouping | level 1 | level 2 as well |", "|---|---|---|"]
    for grouping in GROUPINGS:
        here = sorted((p for p in passes if grouping in p["groupings"].split()),
                      key=lambda p: (p["phase"], p["name"]))
        link = lambda p: f"[{p['name']}](#{p['name']})"
        lines.append(f"| {grouping} | {', '.join(link(p) for p in here if p['level'] <= 1)} | "
                     f"{', '.join(link(p) for p in here if p['level'] == 2)} |")
    lines += ["", "## One by one", ""]
    for p in sorted(passes, key=lambda p: p["name"]):
        lines += section(p)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(generated_page.run(__doc__, "passes", ["passes", "--json"], lambda said: page(json.loads(said)["passes"])))
