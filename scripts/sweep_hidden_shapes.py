#!/usr/bin/env python3
"""Runs recorded cases with their shapes hidden, and tells which are wrong, which refused and why.

A reader that guesses a rank, a dtype or a shape gives wrong answers where the file does not say
them. Each recorded case is rewritten in several ways that change nothing of what it computes: its
inputs are undeclared, its dimensions open, its inputs are reshaped to fed shapes, it lies in a loop
or in a function. Cases that fail as they are recorded do not count.

  scripts/sweep_hidden_shapes.py --format onnx --onnx official --onnx generated
  scripts/sweep_hidden_shapes.py --format tensorflow --format pir
  scripts/sweep_hidden_shapes.py --format onnx --onnx official --way loop --only 'test_softmax*'

The cases and what compares them lie in a folder outside the repository (--shared). Needs numpy and
what the formats' cases need: onnx and ml_dtypes, TensorFlow. Exit status: 0, or 1 when a case is
wrong, crashes or more than --refusals of them are refused.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import importlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from hidden_shapes import cases as hidden

ROOT = Path(__file__).resolve().parent.parent
VERDICTS = ("right", "wrong", "crashed", "refused")
FORMATS = {"onnx": "hidden_shapes.onnx_cases", "paddle": "hidden_shapes.paddle_cases",
           "pir": "hidden_shapes.pir_cases", "tensorflow": "hidden_shapes.tensorflow_cases",
           "onnx_types": "hidden_shapes.onnx_index_types",
           "tensorflow_types": "hidden_shapes.tensorflow_index_types"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--heddle", type=Path, default=ROOT / "build" / "release" / "heddle", help="the tool")
    add("--command", help="another system's command with {list}, to see whether a case can be run")
    add("--shared", type=Path, default=ROOT.parent / "shared", help="folder of recorded cases")
    add("--format", action="append", choices=sorted(FORMATS), help="formats [all]")
    add("--onnx", type=Path, action="append", default=[],
        help="folder of ONNX cases with an index.tsv")
    add("--way", action="append", default=[], help="only this way to hide shapes")
    add("--only", action="append", default=[], help="only cases whose name matches this glob")
    add("--share", type=float, default=1, help="share of the cases that is run, spread evenly [1]")
    add("--opt", type=int, default=2, help="optimisation level [2]")
    add("--threads", type=int, default=1, help="threads of each run [1]")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="runs at the same time [all CPUs]")
    add("--limit", type=float, default=20, help="seconds for one case [20]")
    add("--refusals", type=float, default=0.005, help="share that may be refused [0.005]")
    add("--largest", type=float, default=4, help="leave out models above so many MB [4]")
    add("--keep", type=Path, help="write the rewritten cases here and keep them")
    add("--report", type=Path, help="write the verdicts as JSON")
    add("--show", type=int, default=40, help="print so many cases of each verdict [40]")
    return parser.parse_args()


def wanted(case, options):
    return not options.only or any(fnmatch.fnmatch(case.name, glob) for glob in options.only)


def run(options, scratch):
    """All cases of the formats that are asked for, with their verdicts."""
    done = []
    command = [str(options.heddle), "run-cases", "--list", "{list}", "--limit", str(options.limit),
               "--opt", str(options.opt), "--threads", str(options.threads)]
    if options.command:
        command = shlex.split(options.command)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name in options.format or sorted(FORMATS):
            module = importlib.import_module(FORMATS[name])
            options.ways = [w for w in (hidden.PLAIN, *module.WAYS)
                            if not options.way or w in options.way or w == hidden.PLAIN]
            batch, futures = [], []

            def start(cases):
                futures.append(pool.submit(hidden.run_batch, command, cases))

            for case in module.cases(options, scratch / name):
                done.append(case)
                batch.append(case)
                if len(batch) == hidden.BATCH:
                    start(batch)
                    batch = []
            if batch:
                start(batch)
            for future in futures:
                future.result()
    return done


def kind_of(why):
    """A refusal without the names and numbers of one case."""
    why = re.sub(r"/\S+: ", "", why)
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'|\"[^\"]*\"", "…", why))[:110]


def report(done, options):
    """Prints what came out; whether it is good enough."""
    plain = {c.name for c in done if c.way == hidden.PLAIN and c.verdict == "right"}
    counted = [c for c in done if c.way != hidden.PLAIN and c.name in plain]
    failed_plain = [c for c in done if c.way == hidden.PLAIN and c.verdict != "right"]
    print(f"{len(plain)} cases right as recorded, {len(failed_plain)} not")
    total = collections.Counter(c.verdict for c in counted)
    for way in dict.fromkeys(c.way for c in counted):
        by = collections.Counter(c.verdict for c in counted if c.way == way)
        print(f"{way:12}", "  ".join(f"{verdict} {by[verdict]}" for verdict in VERDICTS))
    for verdict in VERDICTS[1:]:
        bad = [c for c in counted if c.verdict == verdict]
        for c in bad[:options.show]:
            print(f"{verdict} {c.way} {c.name}: {c.why[:300]}")
    if kinds := collections.Counter(kind_of(c.why) for c in counted if c.verdict == "refused"):
        print("refusals:")
        for kind, count in kinds.most_common(20):
            print(f"{count:6} {kind}")
    if options.report:
        rows = [{"name": c.name, "way": c.way, "verdict": c.verdict, "why": c.why} for c in done]
        options.report.write_text(json.dumps(rows, indent=0))
    share = total["refused"] / max(1, len(counted))
    print(f"{len(counted)} cases: {total['right']} right, {total['wrong']} wrong, "
          f"{total['crashed']} crashed, {total['refused']} refused ({100 * share:.2f} %)")
    return counted and total["wrong"] + total["crashed"] == 0 and share <= options.refusals


def main():
    options = parse_arguments()
    scratch = options.keep or Path(tempfile.mkdtemp(prefix="hidden_shapes_"))
    try:
        return 0 if report(run(options, scratch), options) else 1
    finally:
        if not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
