#!/usr/bin/env python3
"""Runs what heddle writes of groups as ONNX under ONNX Runtime, and compares with heddle's numbers.

  scripts/check_group_onnx.py --writer build/release/heddle_record_onnx [--count 4000] [--first 0]

The writer draws programs of one operator and records those that ONNX has words for. What ONNX
Runtime has no kernel for is counted apart. Needs numpy and onnxruntime in the Python that runs it.
Exit status: 0, 1 where something differs, 77 without onnxruntime.
"""

import argparse
import collections
import subprocess
import sys
import tempfile
from pathlib import Path


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--writer", type=Path, required=True)
    p.add_argument("--first", type=int, default=0, help="seed [0]")
    p.add_argument("--count", type=int, default=4000, help="[4000]")
    p.add_argument("--keep", type=Path, help="write the models there, and keep them")
    return p.parse_args()


def differs(np, got, want):
    """What is wrong with an output; empty: nothing."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype} {got.shape}, expected {want.dtype} {want.shape}"
    if want.dtype.kind != "f":
        return "" if (got == want).all() else f"{got.ravel()[:4]}, expected {want.ravel()[:4]}"
    scale = 1e-3 if want.dtype == np.float64 else 1
    finite = np.abs(want[np.isfinite(want)])
    most = max(1.0, finite.max()) if finite.size else 1.0
    if np.allclose(got, want, rtol=1e-4 * scale, atol=3e-5 * scale * most, equal_nan=True):
        return ""
    return f"differs by {np.nanmax(np.abs(got - want))}"


def run(np, ort, folder):
    """("ok" | "no kernel" | "wrong", why)."""
    feeds = {f.name[3:-4]: np.load(f) for f in folder.glob("in_*.npy")}
    try:
        session = ort.InferenceSession(str(folder / "model.onnx"),
                                       providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        outputs = session.run(names, feeds)
    except Exception as error:  # its classes are not public
        text = str(error).replace("\n", " ")[:300]
        return ("no kernel", text) if "NOT_IMPLEMENTED" in text else ("wrong", text)
    for name, got in zip(names, outputs):
        why = differs(np, got, np.load(folder / f"out_{name}.npy"))
        if why:
            return "wrong", f"{name}: {why}"
    return "ok", ""


def main():
    args = parse()
    try:
        import numpy as np
        import onnxruntime as ort
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    ort.set_default_logger_severity(4)
    with tempfile.TemporaryDirectory() as own:
        root = args.keep or Path(own)
        listed = subprocess.run([args.writer, root, str(args.first), str(args.count)], check=True,
                                text=True, stdout=subprocess.PIPE).stdout
        cases = [line.split() for line in listed.splitlines()]
        counts, wrong = collections.Counter(), 0
        for seed, kind in cases:
            result, why = run(np, ort, root / seed)
            counts[result] += 1
            if result == "wrong":
                wrong += 1
                print(f"seed {seed}, {kind}: {why}")
        kinds = len({kind for _, kind in cases})
    print(f"{len(cases)} models of {kinds} operators: {counts['ok']} agree, {wrong} do not, "
          f"{counts['no kernel']} have no kernel in ONNX Runtime")
    return 1 if wrong or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
