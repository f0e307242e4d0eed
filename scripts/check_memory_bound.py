#!/usr/bin/env python3
"""Compares planned memory with a lower bound that this script finds by itself.

  scripts/check_memory_bound.py --heddle build/release/heddle [--shared DIR] [--opt LEVEL]
                                [--lanes] [--limit 1.005] [--only NAMES] [MODEL [ARGUMENT ...]]

The bound is the greatest sum of bytes alive at once in `heddle plan MODEL --serial --json`: a value
is alive from the instruction that writes it to the last one that reads its contents; who reads only
its shape does not count. Where an operator may work in place, and its input ends there, input and
output count once. What a loop's or a branch's body needs is alive while the operator runs that runs
the body; of several bodies, the largest counts. Sizes are multiples of 64 bytes, as places are.
Pieces of a joined tensor count beside it; a plan that lets them lie in it may need less.
Beside it stands the same sum if who reads a shape kept the contents alive, where that is more: as
in training, whose gradients read many shapes.

With --lanes the plan is that of two lanes, and the bound the greatest sum in any state that the
lanes' order permits: each lane goes through its steps by itself and waits where the plan says so.
The limit is then 1.05, unless another is given.

Without a MODEL: all of the recorded ones, with the shapes that are recorded, the recorded loops and
Paddle 3's own programs; they lie outside the repository. Without them, or without numpy, exits with
status 77, which ctest takes for "skipped".
"""

import argparse
import importlib.util
import itertools
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
    """Of one plan, block by block. With `shapes_keep`, as if who reads only the shape of a value
    kept it alive."""

    def __init__(self, plan, shapes_keep=False):
        self.plan = plan
        self.slots = plan["slots"]
        self.values = self.values_of_shapes() if shapes_keep else {}
        self.steps = defaultdict(list)
        for step in plan["steps"]:
            self.steps[step["block"]].append(step)
        self.known = {}
        self.accesses = {}

    def values_of_shapes(self):
        """Slots that are only a shape, and the value of the same variable that it belongs to."""
        newest, values = {}, {}
        for number, slot in enumerate(self.slots):
            key = slot["variable"], slot["block"]
            if slot["storage"] == "shape":
                values[number] = newest.get(key, number)
            else:
                newest[key] = number
        return values

    def root(self, slot):
        slot = self.values.get(slot, slot)
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
            same = self.slots[a].get("bytes") == self.slots[b].get("bytes")
            if a != b and ends and first.get(b) == at and same and not {a, b} & taken:
                taken |= {a, b}
                saved += size[a]
        return saved

    def of(self, block):
        if block not in self.known:
            lanes = block != 0 and any(step.get("lane") for step in self.steps[block])
            self.known[block] = LaneBound(self.plan, block).of_lanes() if lanes \
                else self.of_sequence(block)
        return self.known[block]

    def of_sequence(self, block):
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
        return greatest


class LaneBound(Bound):
    """Of a block in two lanes. A lane stands at place 2 k between its steps k - 1 and k, and at
    2 k + 1 while it executes step k; a state is a place of each lane."""

    def __init__(self, plan, block=0):
        super().__init__(plan)
        self.block = block
        self.lanes = [[], []]
        self.at = []  # per step of the block: its lane, and its number there
        for at, step in enumerate(self.steps[block]):
            lane = self.lanes[step.get("lane", 0)]
            self.at.append((step.get("lane", 0), len(lane)))
            lane.append(at)
        self.needs = self.find_needs(plan["edges"] if block == 0 else self.edges_of_values())

    def edges_of_values(self):
        """Who touches a value waits for the one who writes it, who writes it for all before."""
        edges, last_write, reads = [], {}, defaultdict(list)
        for at, step in enumerate(self.steps[self.block]):
            written = {self.root(s) for s in step["outputs"] if s >= 0}
            for inner in step.get("blocks", []):
                written |= self.written_by_block(inner)
            for slot in self.touched(step):
                before = [last_write[slot]] if slot in last_write else []
                edges += [(u, at) for u in before + (reads[slot] if slot in written else [])]
                if slot in written:
                    last_write[slot], reads[slot] = at, []
                else:
                    reads[slot].append(at)
        return edges

    def written_by_block(self, block):
        written = set()
        for step in self.steps[block]:
            written |= {self.root(s) for s in step["outputs"] if s >= 0}
            for inner in step.get("blocks", []):
                written |= self.written_by_block(inner)
        return written

    def find_needs(self, edges):
        """Per step: how many steps of each lane are finished before it starts."""
        before = defaultdict(set)
        for first, second in edges:
            before[second].add(first)
        for lane in self.lanes:
            for first, second in zip(lane, lane[1:]):
                before[second].add(first)
        needs, open_steps = {}, list(range(len(self.at)))
        while open_steps:
            waiting = []
            for at in open_steps:
                if any(first not in needs for first in before[at]):
                    waiting.append(at)
                    continue
                needs[at] = [0, 0]
                for first in before[at]:
                    lane, number = self.at[first]
                    needs[at] = [max(pair) for pair in zip(needs[at], needs[first])]
                    needs[at][lane] = max(needs[at][lane], number + 1)
            open_steps = waiting
        return needs

    def states(self, size):
        """Which states the order permits."""
        import numpy

        least = []
        for lane, steps in enumerate(self.lanes):
            started = [steps[(place + 1) // 2 - 1] if place else None
                       for place in range(size[lane])]
            least.append(numpy.array([2 * self.needs[at][1 - lane] if at is not None else 0
                                      for at in started]))
        places = [numpy.arange(n) for n in size]
        return ((places[1][None, :] >= least[0][:, None])
                & (places[0][:, None] >= least[1][None, :]))

    def of_lanes(self):
        import numpy

        size = [2 * len(steps) + 1 for steps in self.lanes]
        users = defaultdict(lambda: ([], []))
        for at, step in enumerate(self.steps[self.block]):
            lane, number = self.at[at]
            for slot in self.touched(step):
                if self.counts(slot, self.block):
                    users[slot][lane].append(number)
        gone = numpy.zeros([n + 1 for n in size], dtype=numpy.int64)  # differences along both axes
        weight = {slot: rounded(self.slots[slot]["bytes"]) for slot in users}

        def add(bytes_, first, end):
            for place_0, sign_0 in ((first[0], 1), (end[0], -1)):
                for place_1, sign_1 in ((first[1], 1), (end[1], -1)):
                    gone[place_0, place_1] += sign_0 * sign_1 * bytes_

        for slot, by_lane in users.items():  # not begun, and ended
            add(weight[slot], [0, 0],
                [2 * min(by_lane[k]) + 1 if by_lane[k] else size[k] for k in (0, 1)])
            add(weight[slot], [2 * max(by_lane[k]) + 2 if by_lane[k] else 0 for k in (0, 1)], size)
        alive = sum(weight.values()) - gone.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
        for at, step in enumerate(self.steps[self.block]):
            lane, number = self.at[at]
            more = max((self.of(b) for b in step.get("blocks", [])), default=0)
            more -= self.saved(step, at, users, weight)
            place = [slice(None), slice(None)]
            place[lane] = 2 * number + 1
            alive[tuple(place)] += more
        return int(alive[self.states(size)].max(initial=0))

    def saved(self, step, at, users, weight):
        """As in_place: the step may work in place where it is the last user."""
        lane, number = self.at[at]

        def last(slot):
            here, there = users[slot][lane], users[slot][1 - lane]
            return here and max(here) == number and \
                (not there or max(there) < self.needs[at][1 - lane])

        first = {s: at for s in map(self.root, filter(lambda s: s >= 0, step["outputs"]))
                 if s in users and users[s][lane] and min(users[s][lane]) == number}
        ends = {s: at for s in users if users[s][lane] and last(s)}
        return self.in_place(step, at, first, ends, weight)


def bound_of(plan):
    return LaneBound(plan).of_lanes() if plan["lanes"] == 2 else Bound(plan).of(0)


def plan_of(heddle, model, level, lanes):
    way = ["--lanes", "--threads", "2"] if lanes else ["--serial", "--threads", "1"]
    command = [heddle, "plan", *model, *way, "--opt", str(level), "--json"]
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


def further(shared, only):
    """The recorded loops, and the programs that Paddle 3 has exported."""
    for folder in sorted(p.parent for p in shared.glob("loops/*/meta.json")):
        if not only or folder.name in only:
            yield folder.name, [str(folder)]
    for folder in sorted(p.parent for p in shared.glob("pir/native/*/meta.json")):
        if only and folder.name not in only:
            continue
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        if meta.get("kind") == "training":
            arguments = [str(folder / "main.json"), "--params", str(folder / "init.pdiparams")]
            for feed in meta["feeds"]:
                shape = ",".join(map(str, feed["batch_shape"])) or "-"
                arguments += ["--shape", f"{feed['name']}={shape}"]
        else:
            arguments = [str(folder)]
            for feed in meta["feeds"]:
                arguments += ["--feed", f"{feed['name']}={folder}/in_{feed['name']}.npy"]
        yield f"pir/{folder.name}", arguments


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
    parser.add_argument("--lanes", action="store_true", help="two lanes")
    parser.add_argument("--limit", type=float, help="[1.005, with --lanes 1.05]")
    parser.add_argument("--only", help="names of recorded models, separated by commas")
    options = parser.parse_args()
    options.limit = options.limit or (1.05 if options.lanes else 1.005)
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
        only = options.only.split(",") if options.only else None
        models = itertools.chain(recorded(options.shared / "models", only, scratch),
                                 further(options.shared, only))
    failed = 0
    for name, arguments in models:
        for level in options.opt or (0, 2):
            try:
                plan = plan_of(options.heddle, arguments, level, options.lanes)
            except RuntimeError as error:
                print(f"{name}, level {level}: {error}")
                failed += 1
                continue
            planned, bound = plan["arena_bytes"], bound_of(plan)
            ratio = planned / bound if bound else float(planned > 0) + 1
            wrong = ratio > options.limit
            failed += wrong
            kept = 0 if options.lanes else Bound(plan, shapes_keep=True).of(0)
            print(f"{name}, level {level}: planned {planned}, bound {bound} (heddle says "
                  f"{plan['arena_bound_bytes']}), {ratio:.4f}"
                  + (f", {kept} if shapes kept values" if kept > bound else "")
                  + (" TOO MUCH" if wrong else ""), flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
