#!/usr/bin/env python3
"""How much two threads gain over one on programs whose operators are independent.

    benchmarks/scaling.py --heddle build/release/heddle --models DIR [--rounds 5] [--require]

Runs `heddle bench` with one and with two threads in turns and prints the ratio of the medians of
the rounds, beside the bound that the program's own longest path sets for whole instructions side by
side: work / max(work / 2, path), with the costs that the schedule measured, hand-overs not counted.
Kernels that share their work may go beyond it. Where no round settled on lanes there are no such
costs: "-".
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAMS = ["wide_matmul12", "wide_conv8", "googlenet", "tiny_forkjoin", "tiny_mix2000_s1"]
REQUIRED = 1.7


def feeds(folder):
    meta = json.loads((folder / "meta.json").read_text())
    names = [f["name"] if isinstance(f, dict) else f for f in meta["feeds"]]
    return [a for n in names for a in ("--feed", f"{n}={folder / f'in_{n}.npy'}")]


def bench(heddle, folder, threads, seconds):
    command = [heddle, "bench", str(folder), *feeds(folder), "--threads", str(threads),
               "--seconds", str(seconds), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(heddle, folder, rounds, seconds):
    runs = {1: [], 2: []}
    for k in range(rounds):
        for threads in ((1, 2) if k % 2 == 0 else (2, 1)):
            runs[threads].append(bench(heddle, folder, threads, seconds))
    one, two = (statistics.median(r["median_ms"] for r in runs[t]) for t in (1, 2))
    lanes = [r for r in runs[2] if r["critical_path_us"] > 0]
    bound = statistics.median(
        r["work_us"] / max(r["work_us"] / 2, r["critical_path_us"])
        for r in lanes) if lanes else None
    return {"program": folder.name, "one_ms": one, "two_ms": two, "gain": one / two,
            "bound": bound, "dispatch": sorted({r["dispatch"] for r in runs[2]})}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--heddle", default="build/release/heddle")
    p.add_argument("--models", type=Path, required=True, help="folder of program folders")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--out", type=Path, help="write the rows as JSON")
    p.add_argument("--require", action="store_true",
                   help=f"fail unless each gain is {REQUIRED}, but for programs whose bound is "
                        "less")
    options = p.parse_args()
    print("| program | 1 thread, ms | 2 threads, ms | gain | bound | how |\n"
          "|---|--:|--:|--:|--:|---|")
    rows, held = [], True
    for name in PROGRAMS:
        row = measure(options.heddle, options.models / name, options.rounds, options.seconds)
        rows.append(row)
        bound = row["bound"]
        held = held and (row["gain"] >= REQUIRED or (bound is not None and bound < REQUIRED))
        print(f"| {name} | {row['one_ms']:.4f} | {row['two_ms']:.4f} | {row['gain']:.2f} | "
              f"{'-' if bound is None else f'{bound:.2f}'} | {', '.join(row['dispatch'])} |",
              flush=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if options.require and not held else 0


if __name__ == "__main__":
    sys.exit(main())
