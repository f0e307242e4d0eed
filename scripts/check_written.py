#!/usr/bin/env python3
"""Checks that the files heddle writes give the recorded numbers in Paddle.

  check_written.py --heddle TOOL --shared DIR --to paddle --python PADDLE_2.6.2
  check_written.py --heddle TOOL --shared DIR --to pir --python PADDLE_3.3.1 [--opt 1]

Each program of DIR is converted, loaded and run by that Python's Paddle, and its outputs are
compared with the recorded ones (1e-4 + 1e-4·|b|, integers equal): for --to paddle the PIR programs
of DIR/pir, for --to pir the models of DIR/models and the PIR programs. Training programs (--to pir
only) begin from the recorded state, after their startup program; their losses (1e-3·|b| + 1e-5) and
their state in the end (5e-3·|b| + 1e-4 + 4 times its recorded noise) are compared. One line a
program; the last one: N written and right, M that the format cannot say, K wrong. Status 1 when any
is wrong."""

import argparse
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# Runs in Paddle's Python: the jobs of a file, one model each.
RUNNER = r'''
import json, sys, traceback
import numpy as np, paddle
paddle.enable_static()

def train(job):
    """Startup, the recorded state, the steps: what they fetch, stacked, and the state."""
    programs = {}
    for name, file in job["programs"].items():
        programs[name] = paddle.static.Program()
        paddle.base.core.deserialize_pir_program(file, programs[name])
    scope, place = paddle.static.Scope(), paddle.CPUPlace()
    values = lambda files: {n: np.load(p, allow_pickle=False) for n, p in files.items()}
    with paddle.static.scope_guard(scope):
        exe = paddle.static.Executor(place)
        exe.run(programs["startup"])
        for name, array in values(job["init"]).items():
            var = scope.find_var(name)
            if var is None or not var.get_tensor()._is_initialized():
                raise ValueError(f"the startup program gives no {name}")
            var.get_tensor().set(array, place)
        feeds, sets, out = values(job["feeds"]), values(job["sets"]), []
        for step in range(job["steps"]):
            for name, array in sets.items():
                tensor = scope.find_var(name).get_tensor()
                tensor.set(array[step].reshape(np.asarray(tensor).shape), place)
            feed = {n: a[step % len(a)] for n, a in feeds.items()}
            out.append([np.asarray(o) for o in exe.run(programs["main"], feed=feed)])
        for k in range(len(out[0])):
            np.save(f"{job['out']}_{k}.npy", np.stack([o[k].reshape(-1) for o in out]))
        for name, file in job["final"].items():
            np.save(file, np.asarray(scope.find_var(name).get_tensor()))

for job in json.load(open(sys.argv[1])):
    try:
        if "programs" in job:
            train(job)
        for case in job.get("cases", ()):
            # A scope of its own: arrays of a run before would still be there.
            with paddle.static.scope_guard(paddle.static.Scope()):
                exe = paddle.static.Executor(paddle.CPUPlace())
                program, feeds, fetches = paddle.static.load_inference_model(job["prefix"], exe)
                feed = {n: np.load(p, allow_pickle=False) for n, p in case["feeds"].items()}
                for i, out in enumerate(exe.run(program, feed=feed, fetch_list=fetches)):
                    np.save(f"{case['out']}_{i}.npy", np.asarray(out))
        why = ""
    except BaseException as e:
        lines = [x.strip() for x in str(e).splitlines() if x.strip()]
        why = type(e).__name__ + ": " + " ".join(lines[-3:])[:500]
    print("JOB", json.dumps([job["name"], why]), flush=True)
'''


def unpacked(source, to):
    shutil.copytree(source, to, dirs_exist_ok=True)
    for path in list(Path(to).rglob("*")):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)
        if path.suffix == ".xz":
            path.with_suffix("").write_bytes(lzma.open(path).read())


def models(shared, to):
    """(name, folder with meta.json and arrays, what heddle converts)"""
    regenerate = shared / "models" / "tools" / "regen_params.py"
    pir = [(f"native/{p.name}", p, None) for p in sorted((shared / "pir/native").iterdir())
           if p.is_dir()]
    pir += [(f"twins/{p.name}", shared / "models" / p.name, p)
            for p in sorted((shared / "pir/twins").iterdir()) if p.is_dir()]
    if to == "pir":
        pir += [(f"models/{p.name}", p, None) for p in sorted((shared / "models").iterdir())
                if (p / "meta.json").exists()]
    for name, folder, twin in pir:
        if to == "pir" or not is_training(name):
            yield name, folder, twin, regenerate


def is_training(name):
    return name.split("/")[1].startswith(("train_", "v1_train"))


def difference(got, expected, relative=1e-4, absolute=1e-4):
    if got.shape != expected.shape:
        return f"shape {got.shape} for {expected.shape}"
    if expected.dtype.kind in "biu":
        unequal = int((got != expected).sum())
        return f"{unequal} of {expected.size} unequal" if unequal else ""
    a, b = got.astype("f8"), expected.astype("f8")
    close = np.abs(a - b) <= absolute + relative * np.abs(b)
    bad = ~((a == b) | (np.isnan(a) & np.isnan(b)) | close)
    return f"{int(bad.sum())} of {bad.size} outside, up to {np.nanmax(np.abs(a - b)):.2e}" \
        if bad.any() else ""


def tensors(path):
    """The tensors of a combined file of parameters, in its order."""
    dtypes = {0: "?", 1: "i2", 2: "i4", 3: "i8", 4: "f2", 5: "f4", 6: "f8", 20: "u1", 21: "i1"}
    data, at = path.read_bytes(), 0

    def number(size):
        nonlocal at
        at += size
        return int.from_bytes(data[at - size:at], "little")

    def varint():
        value, shift = 0, 0
        while True:
            byte = number(1)
            value, shift = value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(data):
        if (number(4), number(8), number(4)) != (0, 0, 0):
            raise ValueError(f"{path}: another version, or a tensor with offsets")
        end, dtype, dims = number(4) + at, None, []
        while at < end:
            field, value = varint(), varint()
            if field == 8:  # the element type
                dtype = np.dtype(dtypes[value])
            elif field == 16:  # one dimension
                dims.append(value)
            else:  # packed dimensions
                stop = at + value
                while at < stop:
                    dims.append(varint())
        count = int(np.prod(dims)) * dtype.itemsize
        yield np.frombuffer(data[at:at + count], dtype).reshape(dims)
        at += count


def prepare_training(name, folder, twin, work, args):
    """As prepare(), for a startup and a main program."""
    source = work / name.replace("/", "_")
    unpacked(folder, source)
    program = source
    if twin is not None:
        program = source / "twin"
        unpacked(twin, program)
    meta = json.loads((source / "meta.json").read_text())
    extension = ".pdmodel" if (program / "main.pdmodel").exists() else ".json"
    for part in ("startup", "main"):
        # Programs that passes have been over are written anew; others are the file that was read.
        given = (["--opt", "1", "--params", source / "init.pdiparams"]
                 if part == "main" and args.opt != "0" else ["--program-only"])
        command = [args.heddle, "convert", program / (part + extension), "--to", args.to,
                   "-o", source / "written" / part, *given]
        if part == "main":
            command += [x for f in meta["fetches"] for x in ("--fetch", f["fetch"])]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return None, done.stderr.strip()
    (source / "state").mkdir()
    state = {}
    for when in ("init", "final"):
        for n, array in zip(sorted(meta["state"]), tensors(source / f"{when}.pdiparams"),
                            strict=True):
            file = source / "state" / f"{when}_{n}.npy"
            np.save(file, array)
            state.setdefault(when, {})[n] = str(file)
    sets = {}
    if meta.get("lr_schedule"):
        sets[meta["lr_schedule"]["var"]] = str(source / "schedule.npy")
        np.save(source / "schedule.npy", np.asarray(meta["lr_schedule"]["values"], "float32"))
    noise = meta.get("state_noise", {})
    out = {n: str(source / "state" / f"got_{n}.npy") for n in meta["state"]}
    expected = [(f"{source / 'got'}_{k}.npy", str(source / f["file"]), f["fetch"], 1e-3, 1e-5)
                for k, f in enumerate(meta["fetches"])]
    expected += [(out[n], state["final"][n], n, 5e-3, 1e-4 + 4 * noise.get(n, 0.0)) for n in out]
    files = {part: str(next((source / "written" / part).glob("*.json")))
             for part in ("startup", "main")}
    return {"name": name, "programs": files,
            "init": state["init"], "final": out, "steps": meta["steps"], "sets": sets,
            "feeds": {f["name"]: str(source / f"in_{f['name']}.npy") for f in meta["feeds"]},
            "out": str(source / "got"), "compared": expected}, ""


def prepare(name, folder, twin, regenerate, work, args):
    """The job for Paddle, or why the program cannot be written."""
    if is_training(name):
        return prepare_training(name, folder, twin, work, args)
    source = work / name.replace("/", "_")
    unpacked(folder, source)
    if (source / "params_spec.json").exists() and not (source / "model.pdiparams").exists():
        subprocess.run([sys.executable, regenerate, source], check=True, stdout=subprocess.DEVNULL)
    program = source
    if twin is not None:
        program = source / "twin"
        unpacked(twin, program)
        if (source / "model.pdiparams").exists():
            shutil.copy(source / "model.pdiparams", program / "inference.pdiparams")
    out = source / "written"
    done = subprocess.run([args.heddle, "convert", program, "--to", args.to, "--opt", args.opt,
                           "-o", out], capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()
    meta = json.loads((source / "meta.json").read_text())
    stem = out / ("model" if args.to == "paddle" else "inference")
    if args.to == "paddle" and not stem.with_suffix(".pdiparams").exists():
        stem.with_suffix(".pdiparams").touch()  # Paddle 2.6 wants a file
    cases = [{"feeds": {n: str(source / v["file"]) for n, v in case["inputs"].items()},
              "out": str(source / f"got{k}")} for k, case in enumerate(meta["cases"])]
    expected = [(f"{source}/got{k}_{i}.npy", str(source / o["file"]), f"output {i}", 1e-4, 1e-4)
                for k, case in enumerate(meta["cases"]) for i, o in enumerate(case["outputs"])]
    return {"name": name, "prefix": str(stem), "cases": cases, "compared": expected}, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--to", choices=("paddle", "pir"), required=True)
    parser.add_argument("--python", required=True, help="an interpreter that has Paddle")
    parser.add_argument("--opt", default="0", help="as in heddle convert")
    parser.add_argument("--only", default="", help="names, separated by commas")
    args = parser.parse_args()
    only = set(filter(None, args.only.split(",")))
    jobs, unsaid, wrong, right = [], 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="check_written_") as folder:
        work = Path(folder)
        for name, *where in models(args.shared, args.to):
            if only and name not in only and name.split("/")[1] not in only:
                continue
            job, why = prepare(name, *where, work, args)
            if job is None:
                print(f"unsaid {name}: {why}", flush=True)
                unsaid += "UNIMPLEMENTED" in why
                wrong += "UNIMPLEMENTED" not in why
            else:
                jobs.append(job)
        (work / "runner.py").write_text(RUNNER)
        while jobs:
            (work / "jobs.json").write_text(json.dumps(jobs))
            done = subprocess.run([args.python, work / "runner.py", work / "jobs.json"],
                                  capture_output=True, text=True, env=dict(os.environ, GLOG_v="0"))
            said = dict(json.loads(x[4:]) for x in done.stdout.splitlines() if x.startswith("JOB "))
            for job in jobs[:len(said) + 1]:  # one more than it got through: that one ended it
                why = said.get(job["name"], f"Paddle ended with status {done.returncode}: "
                               + done.stderr.strip()[-300:])
                for got, recorded, title, *bounds in job["compared"] if not why else ():
                    got, recorded = np.load(got), np.load(recorded)
                    if "programs" in job:  # a step's value is stacked flat
                        got = got.reshape(recorded.shape) if got.size == recorded.size else got
                    what = difference(got, recorded, *bounds)
                    why = why or (what and f"{title}: {what}")
                print(("wrong " if why else "right ") + job["name"] + (": " + why if why else ""),
                      flush=True)
                wrong += bool(why)
                right += not why
            jobs = jobs[len(said) + 1:]
    print(f"{right} written and right, {unsaid} that the format cannot say, {wrong} wrong")
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main())
