#!/usr/bin/env python3
"""Compares one model on a device with the host.

check_card.py --heddle build/heddle --place cuda --model DIR --out DIR

DIR is a directory as tests take it: model.pdmodel, or main.pdmodel and startup.pdmodel for a
training program (four steps), with in_<name>.npy. Every number b of the host must be met by the
device's a as |a - b| <= 1e-3 + 1e-3 * |b|; integers and truth values must be equal. The device
runs three times, of which the second is captured where the device can and the third replayed; all
must give the same bits. Exit status: 0, 1 where something differs, 2 for other failures.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

import check_places


def run(heddle, model, out, place, repeat):
    out.mkdir(parents=True, exist_ok=True)
    command = check_places.command(heddle, model, str(out))
    if command is None:
        sys.exit(f"{model}: neither model.pdmodel nor main.pdmodel")
    if "--repeat" in command:
        command[command.index("--repeat") + 1] = str(repeat)
    done = subprocess.run(command + ["--place", place], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{model.name} at {place}: status {done.returncode}: {done.stderr.strip()[-500:]}")
        sys.exit(2)


def difference(name, got, want):
    """What is wrong with an array; empty where nothing is."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{name}: {got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if not np.issubdtype(want.dtype, np.inexact):
        wrong = int(np.count_nonzero(got != want))
        return f"{name}: {wrong} of {want.size} values differ" if wrong else ""
    with np.errstate(invalid="ignore"):
        near = np.abs(got - want) <= 1e-3 + 1e-3 * np.abs(want)
    wrong = int(np.count_nonzero(~(near | (np.isnan(got) & np.isnan(want)) | (got == want))))
    if not wrong:
        return ""
    worst = np.nanmax(np.abs(got.astype(np.float64) - want))
    return f"{name}: {wrong} of {want.size} values differ, by {worst:.3g} at most"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--place", default="cuda")
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    run(args.heddle, args.model, args.out / "host", "cpu", 1)
    run(args.heddle, args.model, args.out / "device", args.place, 3)
    compared, wrong = 0, []
    for path in sorted((args.out / "host").glob("*.npy")):
        got = args.out / "device" / path.name
        compared += 1
        what = (difference(path.stem, np.load(got), np.load(path)) if got.is_file()
                else f"{path.stem}: not given")
        if what:
            wrong.append(what)
    for line in wrong:
        print(line)
    print(f"{args.model.name}: {compared - len(wrong)} of {compared} results as on the host")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
