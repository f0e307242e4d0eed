#!/usr/bin/env python3
"""One network in several files (formats, or ways to export it) on heddle, in turns.

  benchmarks/one_network.py --heddle build/release/heddle --feed x.npy MODEL[:PARAMETERS]...

Every file gets the same array in its one input, whatever that is called there. Each file is held
by a process of its own, which sleeps while the others run. Printed is the median of the slices'
medians and its ratio to that of the first file; "spread" is the distance between the quarters of a
file's slices, as a part of its median: a ratio nearer to 1 than that says nothing.
"""

import argparse
import json
import statistics
import subprocess
from pathlib import Path
from types import SimpleNamespace

from peers.sides import Heddle, HeddleProcess


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="+", metavar="MODEL[:PARAMETERS]")
    p.add_argument("--heddle", type=Path, required=True, help="the tool to measure")
    p.add_argument("--feed", type=Path, required=True, help="the input, .npy")
    p.add_argument("--threads", default="1,2", help="comma-separated [1,2]")
    p.add_argument("--rounds", type=int, default=12, help="[12]")
    p.add_argument("--seconds", type=float, default=0.4, help="of a slice [0.4]")
    return p.parse_args()


def case_of(text, options):
    model, _, parameters = text.partition(":")
    command = [options.heddle, "inspect", model, "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    name = found["inputs"][0]["name"]
    return SimpleNamespace(title=model, program=Path(model), feeds={name: options.feed},
                           params=Path(parameters) if parameters else None)


def main():
    options = parse()
    cases = [case_of(text, options) for text in options.files]
    for threads in map(int, options.threads.split(",")):
        sides = [HeddleProcess(Heddle(options.heddle, threads), case) for case in cases]
        times = [[] for _ in sides]
        for _ in range(options.rounds):
            for slices, side in zip(times, sides):
                slices.append(side.slice(options.seconds)["median_ms"])
        for side in sides:
            side.close()
        first = statistics.median(times[0])
        for case, slices in zip(cases, times):
            middle = statistics.median(slices)
            quarters = statistics.quantiles(slices, n=4)
            print(f"{threads} threads  {middle:10.4f} ms  ratio {middle / first:.3f}  spread "
                  f"{(quarters[2] - quarters[0]) / middle:.3f}  {case.title}", flush=True)


if __name__ == "__main__":
    main()
