"""Operators given numbers that no sensible program has - NaN, infinities, the least, the largest -
as elements of operands (sizes, scales, boxes, indices among them) and as attributes, drawn from a
seed.

    far_values.py SEED COUNT [OPERATOR]     runs COUNT of them in this process; `ok` at the end

They are the examples of tests/ops/cases, with one to three numbers changed.
Each is run, or refused by one error. test_far_values.py runs it; a line on stderr says what is
being run, for the case that it ends the process.
"""

from __future__ import annotations

import pathlib
import random
import re
import resource
import sys

import numpy as np

import heddle
from heddle import _heddle

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from op_example_text import BadExample, case_files, parse_block  # noqa: E402

REALS = [float("nan"), float("inf"), float("-inf"), 3e38, -3e38, 1e300, -1e300, 1e18, -1e18, 6e18,
         1.5e18, 3e9, -3e9, 1e-30, -1e-30, 1e-45, 5e-324, -5e-324, 0.0, -0.0, -1.0, -0.5, 0.5,
         65504.0]
WHOLES = [-2**63, 2**63 - 1, -2**63 + 1, 2**62, -2**62, 2**33, 2**31, 2**31 - 1, -2**31, 2**20,
          1000, 100, 17, 2, 1, 0, -1, -2, -100]


def examples():
    """By operator, the examples whose operands are plain tensors."""
    found: dict[str, list] = {}
    for path in case_files():
        try:
            block = parse_block(path.stem, path.read_text())
        except (BadExample, ValueError):
            continue  # of another form
        for example in block:
            inputs = example.of("in")
            plain = all(s.tensor is not None and s.tensor.rows is None
                        and s.tensor.items is None and not s.tensor.none for s in inputs)
            if plain and not example.has("op") and not example.has("var"):
                found.setdefault(path.stem, []).append(example)
    return found


def array_of(tensor):
    if tensor.dtype == "bfloat16":
        bits = np.array(tensor.values, "f4").view("u4") >> 16
        return bits.astype("u2").reshape(tensor.shape)
    return np.array(tensor.values, tensor.dtype).reshape(tensor.shape)


def attributes_of(op):
    """Name and kind of the attributes."""
    return re.findall(r"^  attr (\w+): (\w+) =", str(_heddle.describe_op(op)), re.M)


class Far:
    def __init__(self, example, rng):
        self.rng, self.example, self.what = rng, example, []
        self.inputs = [(s.name, array_of(s.tensor), s.tensor.lod, s.tensor.dtype)
                       for s in example.of("in")]
        self.recast()
        known = attributes_of(example.op)
        self.attributes = {s.name: s.value for s in example.of("attr")
                           if any(s.name == name for name, _ in known)}
        kinds = [pair for pair in known if pair[1] in ("int", "ints", "float", "floats", "bool")]
        for _ in range(rng.randrange(1, 4)):
            if kinds and (not self.inputs or rng.randrange(2)):
                self.change_attribute(*rng.choice(kinds))
            elif self.inputs:
                self.change_input(rng.randrange(len(self.inputs)))

    def recast(self):
        """Sometimes the operands of one dtype have another that the operator has a kernel for."""
        listed = re.search(r"^  dtypes (.*)", str(_heddle.describe_op(self.example.op)), re.M)
        plain = [d for d in (listed[1].split(", ") if listed else []) if d != "bfloat16"]
        have = [dtype for *_, dtype in self.inputs if dtype in plain]
        if not have or self.rng.randrange(3):
            return
        old, new = have[0], self.rng.choice(plain)
        with np.errstate(all="ignore"):
            self.inputs = [
                (slot, a.astype(new), lod, new) if dtype == old else (slot, a, lod, dtype)
                for slot, a, lod, dtype in self.inputs]
        self.what.append(f"{old} as {new}")

    def change_input(self, k):
        rng = self.rng
        slot, array, lod, dtype = self.inputs[k]
        if not array.size:
            return
        array = array.copy()
        value = rng.choice(REALS if array.dtype.kind in "fc" or dtype == "bfloat16" else WHOLES)
        with np.errstate(all="ignore"):
            if dtype == "bfloat16":
                number = np.uint16(np.float32(value).view("u4") >> np.uint32(16))
            elif array.dtype.kind in "iu":
                number = np.int64(value).astype(array.dtype)
            else:
                number = np.array(value).astype(array.dtype)
        at = rng.randrange(array.size)
        if rng.randrange(4) == 0:
            array[...] = number
        elif rng.randrange(3) == 0:  # a few of them
            array.reshape(-1)[rng.sample(range(array.size), (array.size + 1) // 2)] = number
        else:
            array.reshape(-1)[at] = number
        self.what.append(f"{slot}[{at}] = {value}")
        self.inputs[k] = slot, array, lod, dtype

    def change_attribute(self, name, kind):
        rng = self.rng
        one = (lambda: rng.choice(WHOLES)) if kind in ("int", "ints") else \
            (lambda: rng.choice(REALS)) if kind in ("float", "floats") else \
            (lambda: bool(rng.randrange(2)))
        if kind in ("ints", "floats"):
            value = self.attributes.get(name)
            value = list(value) if isinstance(value, list) else []
            if not value or rng.randrange(4) == 0:
                value = [one() for _ in range(rng.randrange(1, 4))]
            else:
                value[rng.randrange(len(value))] = one()
        else:
            value = one()
        self.attributes[name] = value
        self.what.append(f"{name} = {value}")

    def run(self, executor):
        core = _heddle.Builder("far")
        feeds, slots = {}, {}
        for k, (slot, array, lod, dtype) in enumerate(self.inputs):
            name = f"x{k}"
            slots.setdefault(slot, []).append(
                core.feed(name, dtype, list(array.shape), len(lod or [])))
            feeds[name] = heddle.Tensor(array, "", lod or None)
        outs: dict[str, int] = {}
        for s in self.example.of("out"):
            outs[s.name] = outs.get(s.name, 0) + 1
        results = core.add(self.example.op, list(slots.items()), list(self.attributes.items()),
                           list(outs.items()), "")
        for _, handles in results:
            for handle in handles:
                core.fetch(handle)
        program, scope = core.finish()
        session = executor.compile(program, scope, [], opt_level=0, schedule="serial")
        return session.run_tensors(feeds, 1.0)


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    rng = random.Random(seed)
    by_op = examples()
    ops = sys.argv[3:] or sorted(by_op)
    executor = _heddle.Executor(1, memory_limit=256 << 20)
    ended = {"answered": 0, "refused": 0}
    failed = []
    for turn in range(count):
        example = rng.choice(by_op[rng.choice(ops)])
        far = Far(example, random.Random(f"{seed} {turn}"))
        print(turn, example.op, "/", example.title, ":", "; ".join(far.what)[:300], file=sys.stderr,
              flush=True)
        try:
            far.run(executor)
            ended["answered"] += 1
        except (heddle.Error, TypeError, ValueError, OverflowError, MemoryError) as error:
            ended["refused"] += 1
            if getattr(error, "code", "") == "INTERNAL" or "INTERNAL" in str(error)[:20]:
                failed.append(f"{turn}: {error}")
    print(ended, file=sys.stderr)
    assert not failed, failed
    assert sys.argv[3:] or min(ended.values()) > count // 20 or count < 200, ended
    print("ok")


main()
