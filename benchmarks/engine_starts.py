#!/usr/bin/env python3
"""Starts with an engine: what the second one takes of the first one, where a cache is kept.

  benchmarks/engine_starts.py --heddle build/release/heddle \\
      --engine build/release/heddle_engine_openvino.so --option folder=SITE_PACKAGES/openvino \\
      --models ../shared/models --onnx ONNX_FOLDER

A start is a process that loads a model, gives its groups to the engine (policy always), runs once
and ends. "alone" is a start without an engine. Figures are the least of all rounds: of the time on
the clock, and of the processor's, which says more where the machine does other work.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import engines


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--heddle", type=Path, required=True)
    p.add_argument("--engine", type=Path, required=True)
    p.add_argument("--target", default="openvino", help="the name of the engine's target")
    p.add_argument("--option", action="append", default=[], help="KEY=VALUE of the engine")
    p.add_argument("--models", type=Path)
    p.add_argument("--graphs", type=Path)
    p.add_argument("--onnx", type=Path)
    p.add_argument("--only", default="", help="comma-separated names")
    p.add_argument("--threads", type=int, default=1, help="[1]")
    p.add_argument("--rounds", type=int, default=3, help="[3]")
    return p.parse_args()


def start(command):
    """Seconds on the clock and of the processor, and what the process said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    done = subprocess.run([str(c) for c in command], text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    clock = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or f"status {done.returncode}")[-200:])
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (clock, used), done.stdout


def measure(args, case, work):
    name, _, model, parameters, feeds, fetches = case
    command = [args.heddle, "run", model, "--threads", args.threads]
    if parameters != "-":
        command += ["--params", parameters]
    for feed, file in feeds.items():
        command += ["--feed", f"{feed}={file}"]
    for fetch in fetches:
        command += ["--fetch", fetch]
    cache = Path(work) / f"cache_{name}"
    with_engine = command + ["--engine", f"{args.target}={args.engine}", "--engine-policy",
                             "always", "--engine-cache", cache]
    for option in args.option:
        with_engine += ["--engine-option", f"{args.target}:{option}"]
    best = {}
    for _ in range(args.rounds):
        subprocess.run(["rm", "-rf", cache], check=True)
        for side, line in (("alone", command), ("first", with_engine), ("second", with_engine)):
            times, said = start(line)
            best[side] = tuple(map(min, zip(times, best.get(side, times))))
            hits = said.count("hit on disk")
    bytes_of = sum(f.stat().st_size for f in cache.glob("*.module"))
    return best, hits, bytes_of


def main():
    args = parse()
    os.environ.setdefault("OMP_NUM_THREADS", str(args.threads))
    only = [n for n in args.only.split(",") if n]
    print("| model | from disk | MB | alone, s | first, s | second, s | second / first | "
          "processor: first, s | second / first |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|",
          flush=True)
    with tempfile.TemporaryDirectory() as work:
        for folder, cases in ((args.models, engines.of_descriptions), (args.onnx, engines.of_onnx),
                              (args.graphs, engines.of_graphs)):
            for case in cases(folder, Path(work)) if folder else ():
                if only and case[0] not in only:
                    continue
                try:
                    best, hits, size = measure(args, case, work)
                except RuntimeError as error:
                    print(f"| {case[0]} | {error} |", flush=True)
                    continue
                (first, first_used), (second, second_used) = best["first"], best["second"]
                print(f"| {case[0]} | {hits} | {size / 1e6:.1f} | {best['alone'][0]:.2f} | "
                      f"{first:.2f} | {second:.2f} | {second / first:.2f} | {first_used:.2f} | "
                      f"{second_used / first_used:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
