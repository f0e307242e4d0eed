#!/usr/bin/env python3
"""Whether one build of heddle is slower than another: latency, first answers and memory.

  benchmarks/two_builds.py OLD NEW [--shared DIR] [--onnx FOLDER] [--only NAMES] [--threads 1,2]
                           [--turns 20] [--slice 0.02] [--json FILE]

OLD and NEW are two files of the command `heddle`. Each program is held by a process of either
build; the processes are given slices of time in turns, and one sleeps while the other runs. A
figure is the median over the turns of NEW's time in relation to OLD's. A program counts as slower
when NEW takes more than 3 % and 1 us longer in each of three measurements, of new processes each.
First answers (load and first run) and peak memory are those of new processes in turns. Both files
are copied before: how the kernel keeps a file's pages decides how many of them count as a process's
memory, and that changes with the age of the copy.

The programs are the recorded models and loops of DIR, and with --onnx the folders of FOLDER that
hold a model.onnx and its inputs as in_<k>.npy with the names of the inputs in a file `names`. The
exit status is 1 when a program is slower or the geometric mean of latencies is above 1.01.
"""

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import levels

LIMIT, LEAST_US = 1.03, 1.0


class Bench(levels.Bench):
    """One `heddle bench --on-request` at the default level."""

    def __init__(self, heddle, arguments, threads):  # pylint: disable=super-init-not-called
        self.process = subprocess.Popen(
            [heddle, "bench", *arguments, "--bound", "--on-request", "--threads", str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            raise RuntimeError(self.process.stderr.read().strip())


def programs(options, scratch):
    """Names and arguments of `heddle bench`."""
    yield from levels.programs(options, scratch)
    only = options.only.split(",") if options.only else None
    for folder in sorted(options.onnx.glob("*/names")) if options.onnx else []:
        case = folder.parent
        if only and case.name not in only:
            continue
        feeds = [word for k, name in enumerate(folder.read_text().split("\n"))
                 for word in ("--feed", f"{name}={case}/in_{k}.npy")]
        yield case.name, [str((case / "model.onnx").resolve()), *feeds]


def latency(options, arguments, threads):
    """Microseconds of either build and the ratio, over the turns."""
    sides = []
    try:
        for heddle in (options.old, options.new):
            sides.append(Bench(heddle, arguments, threads))
        for side in sides:
            side.measure(10 * options.slice)
        turns = []
        for turn in range(options.turns):
            order = (0, 1) if turn % 2 == 0 else (1, 0)
            times = {k: sides[k].measure(options.slice) for k in order}
            turns.append((times[0], times[1]))
    finally:
        for side in sides:
            side.close()
    old, new = (statistics.median(turn[k] for turn in turns) for k in (0, 1))
    return old, new, statistics.median(turn[1] / turn[0] for turn in turns)


def start(options, arguments, threads):
    """Milliseconds to the first answer and peak memory, NEW in relation to OLD."""
    found = {options.old: [], options.new: []}
    for _ in range(5):
        for heddle in found:
            text = subprocess.run([heddle, "bench", *arguments, "--threads", str(threads),
                                   "--seconds", "0.01", "--warmup", "1", "--json"],
                                  capture_output=True, text=True, check=True).stdout
            figures = json.loads(text)
            found[heddle].append((figures["load_ms"] + figures["first_ms"],
                                  figures["rss_peak_mb"], figures["arena_bytes"]))
    def middle(heddle, k):
        return statistics.median(row[k] for row in found[heddle])
    return [middle(options.new, k) / max(middle(options.old, k), 1e-9) if middle(options.old, k)
            else 1.0 for k in range(3)]


def slower(measurement):
    old, new, ratio = measurement
    return ratio > LIMIT and new - old > LEAST_US


def mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--shared", type=Path, default=levels.ROOT.parent / "shared")
    parser.add_argument("--onnx", type=Path, help="a folder of ONNX cases")
    parser.add_argument("--only", help="names of programs, separated by commas")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--slice", type=float, default=0.02, help="seconds per measurement")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()

    results = []
    with tempfile.TemporaryDirectory() as scratch:
        options.old = shutil.copy(options.old, Path(scratch) / "old")
        options.new = shutil.copy(options.new, Path(scratch) / "new")
        for name, arguments in programs(options, Path(scratch)):
            for threads in map(int, options.threads.split(",")):
                try:
                    measured = [latency(options, arguments, threads)]
                    while slower(measured[-1]) and len(measured) < 3:
                        measured.append(latency(options, arguments, threads))
                    first, memory, arena = start(options, arguments, threads)
                except (RuntimeError, subprocess.CalledProcessError, ValueError) as error:
                    print(f"{name:<40} {threads}: {error}", flush=True)
                    continue
                old, new, ratio = measured[-1]
                is_slower = len(measured) == 3 and slower(measured[-1])
                results.append({"program": name, "threads": threads, "old_us": old, "new_us": new,
                                "ratio": ratio, "first": first, "memory": memory, "arena": arena,
                                "slower": is_slower})
                print(f"{name:<40} {threads}{old:>11.2f}{new:>11.2f}{ratio:>8.3f}"
                      f"  first {first:.3f}  memory {memory:.3f}  arena {arena:.3f}"
                      f"{'  SLOWER' if is_slower else ''}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    bad = sum(result["slower"] for result in results)
    total = mean(result["ratio"] for result in results)
    print(f"geometric means: latency {total:.4f}, first answer "
          f"{mean(result['first'] for result in results):.4f}, memory "
          f"{mean(result['memory'] for result in results):.4f}; {bad} of {len(results)} slower")
    return 1 if bad or total > 1.01 else 0


if __name__ == "__main__":
    sys.exit(main())
