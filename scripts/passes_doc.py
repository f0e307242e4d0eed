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

Where kernels can compute the same in several ways, `--tune` measures them once and keeps the choices in
a file (`--tuning-file`, `CompileOptions::tuning_file`):

```sh
heddle bench resnet50/ --random-feed --tune            # measures what the file does not say
heddle run resnet50/ --random-feed --tuning-file FILE  # only uses it
```

Passes of one's own are given with the options (`CompileOptions::passes`, `include/heddle/pass.h`);
there is no global list. Those of the project are one file each, found by the build (HACKING.md).

**Order.** Four groupings, in each ascending phases, in a phase the names decide. Passes *in rounds*
run again until nothing changes, 10 rounds at most; where the program comes back to a form it had, the
rounds end with a warning. Where POST_REWRITE_FOR_EXEC has changed something, POST_PLACEMENT and it have
another turn (what clean-ups leave may be fused), so that a second `heddle opt` finds nothing. **Levels.** 0: none; 1: what any reader of the file understands; 2: also
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
    ("10,000 operators through level 2", "250 ms", "43 ms of processor time (`benchmarks/passes_bench.cc`)"),
    ("100,000 operators through level 2", "3 s", "1.3 s of processor time"),
    ("common subexpressions of 10,000 operators; time over that of 1,000", "50 ms; 15",
     "13 ms; 10.6"),
    ("models that `heddle opt` writes at level 1, run by Paddle 2.6.2", "5 with equal outputs",
     "7, difference 0 (`scripts/check_opt.py`)"),
]


# What is asked of the optimiser, item by item: (number and name, what it does, gate, measured, where).
ITEMS = [
    ("1.1 registry", "four groupings, ascending phases, names inside a phase; the first error stops",
     "20 shuffled registrations, one trace; duplicates refused; errors name the pass",
     "met", "`PassManager.OrderDepends…`, `RefusesNames…`, `AnErrorNamesThePass`"),
    ("1.2 fixed point", "rounds until nothing changes, at most 10; levels 0, 1, 2",
     "inlining, folding and common subexpressions settle in 3 rounds at an exact count; antagonists stop",
     "3 rounds, 6 operators", "`InlineCalls.WithFolding…`, `PassManager.Antagonists…`"),
    ("1.3 dump and watch", "text and dot before and after groups and changes; name filter; `--disable-pass`; "
     "times and counts; verifier after each change; `--verify-passes`",
     "three changes, 5 files; a lie is found; a read before a write is named",
     "met", "`PassManager.Dumps…`, `ALie…`, `AnOrderThatReads…`"),
    ("1.4 dead operators", "keeps side effects, random numbers, control flow, parameters; in sub-blocks too",
     "1,000 dead operators go", "0 left", "`DeadOps.*`"),
    ("1.5 identity", "copies, factors of 1, casts to the same dtype, …; not fetched or unread ones",
     "a chain of 50 goes", "0 left", "`Identity.*`"),
    ("1.6 folding", "pure operators with constant inputs, results up to a limit; what fails is left. Values "
     "of shapes alone are folded by the plan, which knows what is fed, not by the pass",
     "4 bytes above the limit stay", "met", "`FoldConstants.*`"),
    ("1.7 common subexpressions", "operator, attributes, versions of inputs; commutative inputs in either order",
     "eight constants become four; 10,000 operators in 50 ms", "4; 13 ms", "`Cse.*`, `BM_Cse`"),
    ("1.8 inlining", "`call` of a block: number and dtypes checked, `noinline`, fresh names, one level a round",
     "two calls do not meet; refusals name the cause; recursion is refused (when the program is read)",
     "met", "`InlineCalls.*`"),
    ("2.1 batch_norm folding", "conv, conv + bias in every form, then batch_norm, in double; a shared filter is copied",
     "no batch_norm left behind convolutions; rel. 1e-5", "resnet18 20 → 0, mobilenet_v2 52 → 0, shufflenet_v2 56 → 0; 1e-5", "`FuseConvNorm.*`"),
    ("2.2 products merged", "projections of one tensor to queries, keys and values",
     "72 weight products of BERT-base become 48; applied only where 1.05 times as fast",
     "48 where allowed, but BERT-base then ran 0.97–0.99 times as fast and loaded twice as long: refused above "
     "256 KiB of weights. Below: bert_tiny 1.22 times as fast, gpt_step_tiny 1.02",
     "`MergeMatmul.*`"),
    ("2.3 layout of weights", "no pass: kernels pack constant weights once as suits them best, other readers "
     "keep the parameter as it is", "other readers unchanged", "by construction (PackCache)", ""),
    ("2.4 transposes", "chains of single readers compose, inverse pairs go",
     "chain of 4 is 1, inverse pair 0, a branch ends the chain", "met", "`MergeTransposes.*`"),
    ("2.5 patterns", "declared by the fused operator's file (`HEDDLE_FUSES`), longest first",
     "a second reader blocks; no kernel, no change",
     "met; the one pattern there is, sum and layer_norm, gains nothing (0.985–1.018 times as fast)", "`SubstitutePatterns.*`, `FusedLayerNorm.*`"),
    ("2.6 element-wise fusion", "one loop over tiles; convex groups; same bits",
     "8 operators on 16 MiB 3 times as fast", "3.6 on one thread, 5.3 on two; 1.5–1.6 where tanh and sigmoid are among the eight, whose arithmetic remains", "`FuseElementwise.*`"),
    ("2.7 kernel selection", "`--tune`: convolutions by Winograd's method, own direct, depthwise and patch loops or the "
     "library; 5 warm-ups, up to 100 runs, median; checked file, written atomically, keyed by shapes, "
     "attributes, processor, threads and build",
     "second process measures nothing; a truncated file is a warning; choice within 1.05 of the best for 95 %",
     "0 measured; a warning; 42 choices of six recorded networks on one thread: all within 1.05 when measured again right away, 40 runs in turns, the worst 1.020 (`heddle_bench_tuning`, on a machine with other work)", "`TuningFile.*`"),
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
    lines = [HEAD + "\n".join(gates(GATES)), "", "## Item by item", "",
             "| item | behaviour | gate | measured | tested by |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(item) + " |" for item in ITEMS]
    lines += ["", "## In the order they run", "",
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
