#!/usr/bin/env python3
"""Checks that the files heddle writes give the recorded numbers in Paddle.

  check_written.py --heddle TOOL --shared DIR --to paddle --python PADDLE_2.6.2
  check_written.py --heddle TOOL --shared DIR --to pir --python PADDLE_3.3.1 [--opt 1]

Each inference program of DIR is converted, loaded and run by that Python's Paddle, and its outputs
are compared with the recorded ones (1e-4 + 1e-4·|b|, integers equal): for --to paddle the PIR
programs of DIR/pir, for --to pir the models of DIR/models and the PIR programs. One line a program;
the last one: N written and right, M that the format cannot say, K wrong. Status 1 when any is
wrong."""

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
for job in json.load(open(sys.argv[1])):
    try:
        for case in job["cases"]:
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
        if not name.split("/")[1].startswith(("train_", "v1_train")):
            yield name, folder, twin, regenerate


def difference(got, expected):
    if got.shape != expected.shape:
        return f"shape {got.shape} for {expected.shape}"
    if expected.dtype.kind in "biu":
        unequal = int((got != expected).sum())
        return f"{unequal} of {expected.size} unequal" if unequal else ""
    a, b = got.astype("f8"), expected.astype("f8")
    bad = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= 1e-4 + 1e-4 * np.abs(b)))
    return f"{int(bad.sum())} of {bad.size} outside, up to {np.nanmax(np.abs(a - b)):.2e}" \
        if bad.any() else ""


def prepare(name, folder, twin, regenerate, work, args):
    """The job for Paddle, or why the program cannot be written."""
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
    expected = [[source / o["file"] for o in case["outputs"]] for case in meta["cases"]]
    return {"name": name, "prefix": str(stem), "cases": cases,
            "expected": [[str(p) for p in e] for e in expected]}, ""


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
                for case, expected in zip(job["cases"], job["expected"]) if not why else ():
                    for i, path in enumerate(expected):
                        what = difference(np.load(f"{case['out']}_{i}.npy"), np.load(path))
                        why = why or (what and f"output {i}: {what}")
                print(("wrong " if why else "right ") + job["name"] + (": " + why if why else ""),
                      flush=True)
                wrong += bool(why)
                right += not why
            jobs = jobs[len(said) + 1:]
    print(f"{right} written and right, {unsaid} that the format cannot say, {wrong} wrong")
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main())
