#!/usr/bin/env python3
"""Counts the slices, splits and transposes of optimised programs, and those of them that copy.

  count_moves.py --heddle TOOL DIR...

A DIR is a recorded model (model.pdmodel, meta.json with the inputs of its cases), or a folder of
such. The operators are counted in the program of level 2, the copies in the plan for the first
case: an instruction whose outputs all lie where its input lies moves nothing, and neither does an
operator that the plan has no instruction for, since it is a view.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

OPERATORS = ("slice", "strided_slice", "split", "transpose", "transpose2", "unbind", "unstack")


def call(*command):
    run = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{run.stderr}")
    return run.stdout


def operators(heddle, model):
    """How many operators there are in the optimised program."""
    with tempfile.TemporaryDirectory() as folder:
        call(heddle, "opt", model, "-o", f"{folder}/model", "--opt", "2")
        told = json.loads(call(heddle, "inspect", next(Path(folder).glob("*.pdmodel")),
                               "--json"))
    return sum(count for name, count in told["operator_counts"].items() if name in OPERATORS)


def root(slots, at):
    offset = slots[at].get("offset", 0)
    base = slots[at].get("base")
    if slots[at]["storage"] == "arena":
        return ("arena", offset)
    return (at if base is None else base, offset)


def copies(heddle, model, feeds):
    """Instructions that copy, of all those that are left in the plan."""
    told = json.loads(call(heddle, "plan", model, "--json", *feeds))
    slots = {slot["slot"]: slot for slot in told["slots"]}
    count = 0
    for step in told["steps"]:
        if step["op"] not in OPERATORS:
            continue
        at = root(slots, step["inputs"][0])
        size = 0
        for output in step["outputs"]:
            if output < 0:
                continue
            if root(slots, output) != (at[0], at[1] + size):
                count += 1
                break
            size += slots[output].get("bytes", 0)
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--heddle", required=True)
    args = parser.parse_args()
    found = [m for d in args.models
             for m in ([d] if (d / "meta.json").exists() else sorted(d.iterdir()))
             if (m / "model.pdmodel").exists()]
    all_operators = all_copies = 0
    for model in found:
        case = json.loads((model / "meta.json").read_text())["cases"][0]
        feeds = [part for name, value in case["inputs"].items()
                 for part in ("--feed", f"{name}={model / value['file']}")]
        count, moved = operators(args.heddle, model), copies(args.heddle, model, feeds)
        if count > 0:
            print(f"{model.name}: {count} operators, {moved} copy")
        all_operators += count
        all_copies += moved
    still = all_operators - all_copies
    print(f"all: {all_operators} operators, {all_copies} copy; "
          f"{100 * still / max(1, all_operators):.1f} % move nothing")


if __name__ == "__main__":
    main()
