"""Paddle's recorded cases with indices, sizes and axes of other integer types.

Each input of integers is converted to each other type that holds its values, one at a time. Where
the operators take no such type, Paddle itself refuses the case, which then does not count:

  paddle_index_types.py --archive ARCHIVE... --heddle TOOL --scratch DIR

runs all of them by heddle, and asks Paddle about those that heddle refuses or has another answer
to: what is left is printed. Needs paddle 2.6.2 and what `paddle_cases.py` needs.
"""

import argparse
import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from hidden_shapes import cases as hidden  # noqa
from hidden_shapes import paddle_cases, paddle_values as values  # noqa

TYPES = {"int8": 21, "uint8": 20, "int16": 1, "int32": 2, "int64": 3}


def variants(folder, meta):
    """(input's number, other type)"""
    for k, entry in enumerate(meta["inputs"]):
        if entry["type"] != "dense" or entry["dtype"] not in TYPES or entry.get("no_buffer"):
            continue
        if any(o["name"] == entry["name"] for o in meta["outputs"]):
            continue
        value = np.load(folder / entry["file"])
        for name in TYPES:
            limits = np.iinfo(name)
            fits = not value.size or (limits.min <= value.min() and value.max() <= limits.max)
            if name != entry["dtype"] and fits:
                yield k, name, value.astype(name)


def rewritten(proto, data, meta, k, name):
    program = proto.ProgramDesc.FromString(data)
    for block in program.blocks:
        for var in block.vars:
            if var.name == meta["inputs"][k]["name"]:
                var.type.lod_tensor.tensor.data_type = TYPES[name]
    return program.SerializePartialToString()


def made_cases(archives, scratch, options):
    proto = paddle_cases.framework()
    for root in values.unpacked(archives, scratch):
        for folder, meta in values.recorded(root, options):
            data = (folder / "program.pb").read_bytes()
            recorded = f"{root.name}.{folder.name}"
            yield hidden.Case(recorded, hidden.PLAIN, folder, values.judged_by(folder, meta))
            for k, name, value in variants(folder, meta):
                changed = copy.deepcopy(meta)
                file = f"as_{name}_{k}.npy"
                changed["inputs"][k].update(dtype=name, file=file)
                target = scratch / "types" / f"{recorded}.{k}.{name}"
                values.write(folder, target, "program.pb",
                             rewritten(proto, data, meta, k, name), changed, {file: value})
                yield hidden.Case(recorded, name, target, values.judged_by(folder, meta))


def asked_apart(case, out):
    """Runs the case in Paddle, in a process of its own; whether it has an answer."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:
        import paddle
        from paddle.base import core

        meta = json.loads((case.directory / "meta.json").read_text())
        program = paddle.static.Program.parse_from_string(
            (case.directory / "program.pb").read_bytes())
        scope, feed = core.Scope(), {}
        for entry in meta["inputs"]:
            if entry["type"] != "dense":
                os._exit(2)
            tensor = core.LoDTensor()
            tensor.set(np.load(case.directory / entry["file"]), core.CPUPlace())
            if entry["lod"]:
                tensor.set_lod(entry["lod"])
            if entry["role"] == "feed":
                feed[entry["name"]] = tensor
            else:
                scope.var(entry["name"]).get_tensor().set(
                    np.load(case.directory / entry["file"]), core.CPUPlace())
        wanted = [o for o in meta["outputs"] if o["role"] == "fetch" and o["type"] == "dense"]
        executor = paddle.static.Executor(paddle.CPUPlace())
        made = executor.run(program, feed=feed, fetch_list=[o["name"] for o in wanted], scope=scope)
        for entry, value in zip(wanted, made):
            np.save(out / entry["file"], np.asarray(value), allow_pickle=False)
        os._exit(0 if len(wanted) == len(meta["outputs"]) else 2)
    except BaseException:
        os._exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--archive", type=Path, action="append", required=True)
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--share", type=float, default=1)
    options = parser.parse_args()
    cases = list(made_cases(options.archive, options.scratch, options))
    listed = options.scratch / "list.tsv"
    for case in cases:
        case.out = options.scratch / "out" / f"{case.way}.{case.directory.name}"
        case.out.mkdir(parents=True, exist_ok=True)
    listed.write_text("".join(f"{c.directory}\t{c.out}\n" for c in cases))
    said = subprocess.run([options.heddle, "run-cases", "--list", listed, "--limit", "20"],
                          capture_output=True, text=True, errors="replace", check=False).stderr
    refused = dict(line[5:].split(": ", 1) for line in said.splitlines()
                   if line.startswith("case ") and ": " in line)
    import paddle  # once, for all processes that ask it

    paddle.enable_static()
    right, left, differs = 0, [], set()
    for case in cases:
        why = refused.get(case.directory.name) or case.judge(case.out)
        if case.way == hidden.PLAIN:  # some answers are meant to be others than Paddle's
            differs |= {case.name} if why else set()
            continue
        if not why or case.name in differs:
            right += not why
            continue
        asked = options.scratch / "asked" / case.directory.name
        asked.mkdir(parents=True, exist_ok=True)
        if asked_apart(case, asked) and not case.judge(asked):
            left.append(f"{case.directory.name}: {why[:200]}")
    print("\n".join(left))
    print(f"{len(cases)} cases, {right} right, {len(left)} others that Paddle has an answer to")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
