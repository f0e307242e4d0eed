#!/usr/bin/env python3
"""Writes docs/passes.md, the description of the optimiser, from what `heddle passes --json` says.

  scripts/passes_doc.py --heddle build/release/heddle            write it
  scripts/passes_doc.py --heddle build/release/heddle --check    status 1 when it is not up to date
"""

import json
import sys

import generated_page

HEAD = """# Passes

Written by `scripts/passes_doc.py` from `heddle passes --json`; a test checks that it is up to date.

A pass rewrites a program before it is planned. `Executor::Compile` runs the passes on a copy of the
program; `heddle opt` writes their result to a file:

```sh
heddle opt resnet50/ -o resnet50.opt --pass-stats      # level 1: Paddle reads it, too
heddle opt resnet50/ -o resnet50.opt --opt 2           # level 2: fused operators, for heddle
heddle run resnet50/ --random-feed --disable-pass channels_last
heddle run resnet50/ --random-feed --dump-passes dumps --dump-filter 'fuse' --verify-passes
```

Users add passes of their own with the options (`CompileOptions::passes`, `include/heddle/pass.h`);
there is no global list. How to add a pass to heddle: [passes/README.md](../passes/README.md).

**Levels.** 0: no passes. 1: passes whose results every reader of the file understands. 2: fusion
and layouts as well.

**Order.** The table below, from `passes/pipeline.cc`. Passes *in rounds* run again until nothing
changes, at most 10 times; when the program returns to a form that it had before, the rounds end
with a warning. When a pass of POST_REWRITE_FOR_EXEC changes something, POST_PLACEMENT and
POST_REWRITE_FOR_EXEC run once more, since a clean-up may make way for a fusion. A second `heddle
opt` therefore finds nothing to do.

The order is for speed alone: within its grouping each pass leaves results as they are wherever it
stands. `tests/passes/order_test.cc` runs the passes of each grouping in random orders, on random
programs.

**Partitions.** A pass of POST_PARTITIONING may take all programs of a partition at once
(`CustomPass::run_partitions`, `include/heddle/passes/partitions.h`): each group of a target, by the
target's name, and what stays as that of `host`, where a group is one operator `offload_group`. It
is told the functions of the file, the devices and targets, the options of compilation and executor,
and costs: of operators on the host, and of a group on its target, or why the target does not take
it any more. `Offload` ([engines.md](engines.md)) runs such passes before an engine sees any group;
`Executor::Compile` runs them with the whole program as that of `host`. A pass rewrites operators
and leaves the interface as it is: a group's feeds and fetches, the host's fetches and its calls of
groups. An error names the pass, the program, and what is wrong; then nothing has changed. A group
that stays with heddle in the end is computed as it was before all passes.

**From outside.** `--pass LIBRARY` of `run`, `plan` and `opt`, and `LoadPasses`
(`include/heddle/passes/pass_library.h`), take passes of a shared library with the C interface of
`include/heddle/passes/heddle_pass.h`; `examples/pass/relu_once.c` is one. The library is opened by
the path that is given and is looked for nowhere else. One for another version of the interface is
refused; what a pass throws, or says, is an error that names it, and the program stays as it was.

```sh
cc -shared -fPIC -O2 -Iinclude examples/pass/relu_once.c -o relu_once.so
heddle opt examples/digits -o digits.opt --pass ./relu_once.so --pass-stats
```

**Variables.** A program may write a variable several times. Passes reason about (variable,
version), in sub-blocks as in the first block, and leave alone what they cannot prove.

**Checks.** After each change a verifier examines the program: slots and attributes fit the
definitions, ids exist, operands are visible where they are used, nothing is read before it is
written, every fetched variable is written, variables keep their names, kinds and dtypes, and
operators with side effects are still there. `--verify-passes` also compares fingerprints when a
pass says "unchanged". An error reads `POST_PLACEMENT/foo: …`, and the given program stays as it
was. `tests/passes/law_test.cc` runs every pass, and all together, on random programs (100 in the
tests; more with `HEDDLE_LAW_PROGRAMS=1000`): results are equal, a second run changes nothing, a
failing pass leaves no trace.

*Results* below says whether a pass keeps every bit of the results, or how far results may move
relative to the largest element. (Zeros of different sign count as equal.)
"""


def section(p):
    lines = [f"### {p['name']}", "", p["doc"][0].upper() + p["doc"][1:] + ".", ""]
    where = ", ".join(p["groupings"].split())
    results = "the same bits" if p["tolerance"] == 0 else f"within {p['tolerance']:g}"
    lines.append(f"- level {p['level']}, {where}, "
                 f"{'in rounds' if p['repeat'] else 'once'}; results: {results}")
    if p["own_ops"]:
        lines.append("- makes, for heddle only: " + ", ".join(f"`{o}`" for o in p["own_ops"]))
    if p["before"]:
        lines.append(f"- before: `{p['before']}`")
        lines.append(f"- after: `{p['after']}`")
    if p["refuses"]:
        lines.append(f"- leaves alone: {p['refuses']}")
    return lines + [""]


def page(said):
    passes = said["passes"]
    level = {p["name"]: p["level"] for p in passes}
    lines = [HEAD, "## In the order they run", "", "| grouping | passes |", "|---|---|"]
    for stage in said["order"]:
        names = [f"[{name}](#{name})" + (" ²" if level[name] == 2 else "")
                 for name in stage["passes"]]
        lines.append(f"| {stage['grouping']} | {', '.join(names)} |")
    lines += ["", "² at level 2 only"]
    lines += ["", "## One by one", ""]
    for p in sorted(passes, key=lambda p: p["name"]):
        lines += section(p)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(generated_page.run(__doc__, "passes", ["passes", "--json"],
                                lambda said: page(json.loads(said))))
