#!/usr/bin/env python3
"""Compares planned memory with a lower bound that this script finds by itself.

  scripts/check_memory_bound.py --heddle build/release/heddle [--shared DIR] [--opt LEVEL]
                                [--limit 1.005] [--only NAMES] [MODEL [ARGUMENT ...]]

The bound is the greatest sum of bytes alive at once in `heddle plan MODEL --serial --json`: a value
is alive from the instruction that writes it to the last one that reads its contents; who reads only
its shape does not count. Where an operator may work in place, and its input ends there, input and
output count once. What a loop's or a branch's body needs is alive while the operator runs that runs
the body; of several bodies, the largest counts. Sizes are multiples of 64 bytes, as places are.
Pieces of a joined tensor count beside it; a plan that lets them lie in it may need less.

Without a MODEL: all of the recorded ones, with the shapes that are recorded; they lie outside the
repository. Without them, or without numpy, exits with status 77, which ctest takes for "skipped".
"""

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77


def rounded(size):
    return (size + 63) // 64 * 64


class Bound:
    """Of one plan, block by block."""

    def __init__(self, plan):
        self.slots = plan["slots"]
        self.steps = defaultdict(list)
        for step in plan["steps"]:
            self.steps[step["block"]].append(step)
        self.known = {}
        self.accesses = {}

    def root(self, slot):
        base = self.slots[slot].get("base")
        return slot if base is None else base

    def counts(self, slot, block):
        value = self.slots[slot]
        return value["storage"] == "arena" and value["block"] == block and value["variable"] != ""

    def touched(self, step):
        """The values that a step, and what it runs, reads or writes."""
        all_of = {self.root(s) for s in step["inputs"] + step["outputs"] if s >= 0}
        for block in step.get("blocks", []):
            all_of |= self.touched_by_block(block)
        return all_of

    def touched_by_block(self, block):
        if block not in self.accesses:
            self.accesses[block] = set()
            for step in self.steps[block]:
                self.accesses[block] |= self.touched(step)
        return self.accesses[block]

    def in_place(self, step, at, first, last, size):
        """The bytes that need not be there twice, since the step may work in place."""
        saved, taken = 0, set()
        for source, result in step.get("in_place", []):
            a, b = step["inputs"][source], step["outputs"][result]
            if a < 0 or b < 0:
                continue
            a, b = self.root(a), self.root(b)
            readers = [self.root(s) for s in step["inputs"] if s >= 0]
            ends = last.get(a) == at and readers.count(a) == 1
            if a != b and ends and first.get(b) == at and size.get(a) == size.get(b) \
                    and not {a, b} & taken:
                taken |= {a, b}
                saved += size[a]
        return saved

    def of(self, block):
        if block in self.known:
            return self.known[block]
        steps = self.steps[block]
        first, last = {}, {}
        for at, step in enumerate(steps):
            for slot in self.touched(step):
                if self.counts(slot, block):
                    first.setdefault(slot, at)
                    last[slot] = at
        size = {slot: rounded(self.slots[slot]["bytes"]) for slot in first}
        begin, end = defaultdict(int), defaultdict(int)
        for slot, at in first.items():
            begin[at] += size[slot]
            end[last[slot]] += size[slot]
        alive = greatest = 0
        for at, step in enumerate(steps):
            alive += begin[at]
            bodies = max((self.of(b) for b in step.get("blocks", [])), default=0)
            greatest = max(greatest, alive + bodies - self.in_place(step, at, first, last, size))
            alive -= end[at]
        self.known[block] = greatest
        return greatest


def plan_of(heddle, model, level):
    command = [heddle, "plan", *model, "--serial", "--threads", "1", "--opt", str(level), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def recorded(models, only, scratch):
    """Names and arguments of the recorded models."""
    for folder in sorted(p.parent for p in models.glob("*/meta.json")):
        if only and folder.name not in only:
            continue
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        training = meta["kind"] == "training"
        arguments = [str(folder / "main.pdmodel"), "--params", str(folder / "init.pdiparams")] \
            if training else [str(with_parameters(folder, scratch, models))]
        for feed in meta["feeds"]:
            name = feed["name"]
            shape = ",".join(map(str, feed.get("batch_shape", [])))
            arguments += ["--shape", f"{name}={shape or '-'}"] if training \
                else ["--feed", f"{name}={folder}/in_{name}.npy"]
        yield folder.name, arguments


def with_parameters(folder, scratch, models):
    """The folder, or a copy where its parameters, which can be computed, are computed."""
    if (folder / "model.pdiparams").is_file() or not (folder / "params_spec.json").is_file():
        return folder
    copy = scratch / folder.name
    copy.mkdir()
    for name in ("model.pdmodel", "params_spec.json", "small_params.npz"):
        shutil.copy(folder / name, copy)
    subprocess.run([sys.executable, str(models / "tools" / "regen_params.py"), str(copy)],
                   check=True, stdout=subprocess.DEVNULL)
    return copy


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="and arguments of `heddle plan`")
    parser.add_argument("--heddle", default=str(ROOT / "build" / "release" / "heddle"))
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--opt", type=int, choices=(0, 1, 2), action="append")
    parser.add_argument("--limit", type=float, default=1.005)
    parser.add_argument("--only", help="names of recorded models, separated by commas")
    options = parser.parse_args()
    models = [(options.models[0], options.models)] if options.models else []
    with tempfile.TemporaryDirectory() as scratch:
        return compare(options, models, Path(scratch))


def compare(options, models, scratch):
    if not models:
        if not (options.shared / "models").is_dir():
            print(f"skipped: no recorded models in {options.shared}")
            return SKIPPED
        if importlib.util.find_spec("numpy") is None:
            print(f"skipped: {sys.executable} has no numpy")
            return SKIPPED
        models = recorded(options.shared / "models", (options.only or "").split(",")
                          if options.only else None, scratch)
    failed = 0
    for name, arguments in models:
        for level in options.opt or (0, 2):
            try:
                plan = plan_of(options.heddle, arguments, level)
            except RuntimeError as error:
                print(f"{name}, level {level}: {error}")
                failed += 1
                continue
            planned, bound = plan["arena_bytes"], Bound(plan).of(0)
            ratio = planned / bound if bound else float(planned > 0) + 1
            wrong = ratio > options.limit
            failed += wrong
            print(f"{name}, level {level}: planned {planned}, bound {bound} (heddle says "
                  f"{plan['arena_bound_bytes']}), {ratio:.4f}" + (" TOO MUCH" if wrong else ""),
                  flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
