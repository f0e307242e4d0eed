#!/usr/bin/env python3
"""Records how far Paddle's own training runs lie apart, for tests/models/training_test.cc:

  record_spread.py --models DIR --python PYTHON_WITH_PADDLE_2.6.2

A recorded training program is stepped by Paddle from the recorded initial state with one and with
two OpenMP threads, and from states whose elements are off by at most one unit in the last place.
What these runs differ by from the recorded one, rounding decides, not the program: a parameter
whose gradient is zero but for rounding moves by whole learning rates under Adam, and a
pre-activation next to relu's kink falls on either side. Written to training_spread.json: for each
variable, and each fetched value, the largest differences of an element and of the norm, where they
exceed a tenth of the test's tolerance.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
WORKER = ROOT / "benchmarks" / "training" / "paddle_worker.py"
PERTURBED = 12
RTOL, ATOL = 1e-3, 1e-6


def run(python, folder, threads, perturb):
    spec = {"folder": str(folder), "perturb": perturb}
    steps = json.loads((folder / "meta.json").read_text())["steps"]
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([python, str(WORKER), json.dumps(spec)], check=True, capture_output=True,
                       input=json.dumps({"steps": steps, "folder": out}) + "\n{}\n", text=True,
                       env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
        values = {f"out_{k}.npy": np.load(f) for k, f in
                  enumerate(sorted(Path(out).glob("out_*.npy")))}
        with np.load(f"{out}/state.npz") as state:
            values.update({name: state[name] for name in state.files})
    return values


def recorded(folder, meta):
    import importlib.util

    spec = importlib.util.spec_from_file_location("paddle_worker", WORKER)
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)
    values = {f["file"]: np.load(folder / f["file"]) for f in meta["fetches"]}
    values.update(zip(sorted(meta["state"]), worker.read_tensors(folder / "final.pdiparams")))
    return values


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", type=Path, required=True)
    p.add_argument("--python", required=True)
    options = p.parse_args()
    result = {}
    for file in sorted(options.models.glob("*/main.pdmodel")):
        folder = file.parent.absolute()
        meta = json.loads((folder / "meta.json").read_text())
        base, spread = recorded(folder, meta), {}
        ways = [(1, None), (2, None)] + [(1, seed) for seed in range(PERTURBED)]
        for threads, perturb in ways:
            values = run(options.python, folder, threads, perturb)
            for name, want in base.items():
                if want.dtype.kind != "f":
                    continue
                want = want.astype("f8").ravel()
                off = np.abs(values[name].astype("f8").ravel() - want)
                norm = float(np.sqrt((off ** 2).sum()))
                if (off > 0.1 * (ATOL + RTOL * np.abs(want))).any() or \
                        norm > 0.1 * RTOL * np.linalg.norm(want):
                    entry = spread.setdefault(name, {"element": 0.0, "norm": 0.0})
                    entry["element"] = max(entry["element"], float(f"{off.max():.3g}"))
                    entry["norm"] = max(entry["norm"], float(f"{norm:.3g}"))
        result[folder.name] = spread
        print(folder.name, {k: v["element"] for k, v in spread.items()}, flush=True)
    text = json.dumps(result, indent=1, sort_keys=True) + "\n"
    Path(__file__).with_name("training_spread.json").write_text(text)


if __name__ == "__main__":
    main()
