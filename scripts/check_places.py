#!/usr/bin/env python3
"""Runs models on the emulated device and at random mixes of places, and compares with the host's
bits.

check_places.py --heddle build/release/heddle --models DIR [--seeds 100] [--only NAME,...]

DIR holds one directory a model: model.pdmodel, or main.pdmodel and startup.pdmodel for a training
program, with in_<name>.npy and, where there are some, parameters. Each is run on the host, on the
device alone and with --random-places 0 … seeds - 1. Fails when a run fails, hangs or gives other
bits.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def feeds_of(model):
    args = []
    for path in sorted(model.glob("in_*.npy")):
        args += ["--feed", f"{path.stem[3:]}={path}"]
    return args


def command(heddle, model, out):
    """The command line that runs a model, writing what it gives to `out`; None for no model."""
    if (model / "model.pdmodel").is_file():
        return [heddle, "run", str(model), "--out", out, "--repeat", "2"] + feeds_of(model)
    if not (model / "main.pdmodel").is_file():
        return None
    meta = json.loads((model / "meta.json").read_text())
    args = [heddle, "train", "--startup", str(model / "startup.pdmodel"), "--main",
            str(model / "main.pdmodel"), "--init", str(model / "init.pdiparams"), "--steps", "4",
            "--out", out, "--save", f"{out}/state.pdiparams"]
    for fetch in meta["fetches"]:
        args += ["--fetch", fetch["fetch"]]
    return args + feeds_of(model)


def run(heddle, model, extra, timeout):
    """What the run wrote, by file name, or a line that says why there is nothing."""
    with tempfile.TemporaryDirectory() as out:
        try:
            done = subprocess.run(command(heddle, model, out) + ["--threads", "2"] + extra,
                                  capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return f"no end after {timeout} s"
        if done.returncode != 0:
            return f"status {done.returncode}: {done.stderr.strip()[-300:]}"
        return {path.name: path.read_bytes() for path in sorted(Path(out).iterdir())}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--models", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--place", default="emulated", help="a device with the host's kernels")
    parser.add_argument("--timeout", type=int, default=300)
    options = parser.parse_args()
    failures = runs = 0
    for model in sorted(options.models.iterdir()):
        if options.only and model.name not in options.only.split(","):
            continue
        if not model.is_dir() or command(options.heddle, model, "") is None:
            continue
        want = run(options.heddle, model, [], options.timeout)
        if not isinstance(want, dict):
            print(f"{model.name}: on the host: {want}")
            failures += 1
            continue
        places = [[]] + [["--random-places", str(seed)] for seed in range(options.seeds)]
        bad = 0
        for place in places:
            got = run(options.heddle, model, ["--place", options.place] + place, options.timeout)
            runs += 1
            if got != want:
                bad += 1
                print(f"{model.name} {' '.join(place)}: "
                      f"{'other bits' if isinstance(got, dict) else got}")
        failures += bad
        print(f"{model.name}: {len(places) - bad} of {len(places)} as on the host", flush=True)
    print(f"{runs} runs with a device, {failures} failures")
    return 1 if failures or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
