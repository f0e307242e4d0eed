#!/usr/bin/env python3
"""Runs what `heddle opt --opt 1` writes under Paddle 2.6.2 and compares with the recorded outputs,
and with what Paddle makes of the model itself.

  scripts/check_opt.py --heddle build/release/heddle --models DIR [--only NAME,...] [--json OUT]

DIR holds one folder a model: model.pdmodel, model.pdiparams, meta.json with the names of inputs and
outputs, in_NAME.npy. Needs paddlepaddle. Status 0 when all agree.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

DEFAULT = "bert_tiny,resnet18,mobilenet_v2_x05,ppocrv4_rec,cf_while,cf_cond,googlenet,vit_micro"
TOLERANCE = 1e-5  # relative to the largest element


def run_paddle(prefix, feeds):
    """Outputs of PREFIX.pdmodel, with Paddle's own optimisations off."""
    import paddle

    paddle.enable_static()
    scope = paddle.static.Scope()
    with paddle.static.scope_guard(scope):
        exe = paddle.static.Executor(paddle.CPUPlace())
        program, names, targets = paddle.static.load_inference_model(str(prefix), exe)
        return exe.run(program, feed={n: feeds[n] for n in names}, fetch_list=targets)


def difference(a, b):
    """Relative to the largest element; None where shapes or dtypes differ."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return None
    if a.dtype.kind in "biu":
        return 0.0 if (a == b).all() else None
    scale = max(1.0, float(np.abs(a).max())) if a.size else 1.0
    return float(np.abs(a.astype("f8") - b.astype("f8")).max() / scale) if a.size else 0.0


def check(heddle, folder):
    feeds = {}
    for file in folder.glob("in_*.npy"):
        feeds[file.stem[3:]] = np.load(file)
    with tempfile.TemporaryDirectory() as tmp:
        out = Path(tmp) / "opt"
        said = subprocess.run([str(heddle), "opt", str(folder), "-o", str(out), "--opt", "1",
                               "--verify-passes"], capture_output=True, text=True)
        if said.returncode != 0:
            return {"ok": False, "why": said.stderr.strip()}
        before = run_paddle(folder / "model", feeds)
        after = run_paddle(out, feeds)
    counts = re.search(r": (\d+) operators \(were (\d+)\)", said.stdout)
    row = {"operators": int(counts.group(2)), "after": int(counts.group(1))}
    worst = 0.0
    for a, b in zip(before, after):
        d = difference(a, b)
        if d is None:
            return {**row, "ok": False, "why": "another shape, dtype or integer"}
        worst = max(worst, d)
    row.update(ok=len(before) == len(after) and worst <= TOLERANCE, difference=worst,
               why="" if worst <= TOLERANCE else "outputs differ")
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--only", default=DEFAULT)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows, failed = {}, 0
    for name in args.only.split(","):
        folder = args.models / name
        if not (folder / "meta.json").exists():
            print(f"{name}: not there")
            continue
        start = time.time()
        row = rows[name] = check(args.heddle, folder)
        failed += not row["ok"]
        print(f"{'ok  ' if row['ok'] else 'FAIL'} {name}: {row.get('operators')} -> "
              f"{row.get('after')} operators, difference {row.get('difference')} {row['why']} "
              f"({time.time() - start:.1f} s)", flush=True)
    print(f"{len(rows) - failed} agree, {failed} do not")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
