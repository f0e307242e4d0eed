#!/usr/bin/env python3
"""Whether a higher optimisation level is ever slower than a lower one.

  benchmarks/levels.py [--heddle build/release/heddle] [--shared DIR] [--only NAMES] [--random 200]
                       [--threads 1] [--rounds 9] [--slice 0.03] [--limit 1.03] [--json FILE]

Every program is measured at each level in turns, in the default schedule: the recorded models and
loops, which lie outside the repository, and random programs of 10 to 500 operators
(heddle_bench_levels, from tests/support/mixed_program). A level is an offender where the middle of
its ratios to a lower level, round by round, is above the limit, and all but one in eight of the
rounds are above 1. Offenders are measured again with four times as many rounds before they are
listed; with any, the exit status is 1.
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEVELS = (0, 1, 2)


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def programs(options, scratch):
    """Names and arguments of `heddle bench`."""
    only = options.only.split(",") if options.only else None
    models = options.shared / "models"
    if models.is_dir():
        for name, arguments in script("check_memory_bound").recorded(models, only, scratch):
            yield name, [*arguments, "--random-feed"]
    for folder in sorted((options.shared / "loops").glob("*/meta.json")):
        if not only or folder.parent.name in only:
            yield folder.parent.name, [str(folder.parent), "--random-feed"]


class Bench:
    """One `heddle bench --on-request`."""

    def __init__(self, heddle, arguments, level, threads):
        command = [heddle, "bench", *arguments, "--bound", "--on-request", "--opt", str(level),
                   "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            raise RuntimeError(self.process.stderr.read().strip())

    def measure(self, seconds):
        self.process.stdin.write(json.dumps({"slice": seconds}) + "\n")
        self.process.stdin.flush()
        return 1e3 * json.loads(self.process.stdout.readline())["median_ms"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(options, arguments, rounds):
    """Microseconds per round and level."""
    sides = []
    try:
        for level in LEVELS:
            sides.append(Bench(options.heddle, arguments, level, options.threads))
        for side in sides:
            side.measure(5 * options.slice)
        return [[side.measure(options.slice) for side in sides] for _ in range(rounds)]
    finally:
        for side in sides:
            side.close()


def measure_random(options, first, count, rounds):
    """Names, and microseconds per round and level."""
    command = [options.random_programs, first, count, options.threads, rounds, 1e3 * options.slice]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        words = line.split()
        if words[1] == "failed:":
            continue
        times = [float(word) for word in words[2:]]
        yield (int(words[0]), f"random {words[0]} ({words[1]} operators)",
               [times[k:k + len(LEVELS)] for k in range(0, len(times), len(LEVELS))])
    if process.wait() != 0:
        raise RuntimeError(f"{options.random_programs} failed")


def offences(times, limit):
    """Higher and lower level, and their ratio, where the higher one is slower."""
    found = []
    for high in range(1, len(LEVELS)):
        for low in range(high):
            ratios = [row[high] / row[low] for row in times]
            slower = sum(ratio > 1 for ratio in ratios)
            if statistics.median(ratios) > limit and slower >= len(ratios) - len(ratios) // 8:
                found.append((LEVELS[high], LEVELS[low], statistics.median(ratios)))
    return found


def judge(options, name, times, again, results):
    found = offences(times, options.limit)
    if found:
        times = again() or times
        found = offences(times, options.limit)
    medians = [statistics.median(row[k] for row in times) for k in range(len(LEVELS))]
    results.append({"program": name, "us": medians, "slower": found})
    marks = "".join(f"  level {high} is {ratio:.3f} of level {low}" for high, low, ratio in found)
    print(f"{name:<34}" + "".join(f"{us:>11.2f}" for us in medians) + marks, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=str(ROOT / "build" / "release" / "heddle"))
    parser.add_argument("--random-programs",
                        default=str(ROOT / "build" / "release" / "heddle_bench_levels"))
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--only", help="names of recorded programs, separated by commas")
    parser.add_argument("--random", type=int, default=200, help="random programs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--slice", type=float, default=0.03, help="seconds per measurement")
    parser.add_argument("--limit", type=float, default=1.03)
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()

    results = []
    print(f"{'us per run':<34}" + "".join(f"{f'level {level}':>11}" for level in LEVELS))
    with tempfile.TemporaryDirectory() as scratch:
        for name, arguments in programs(options, Path(scratch)):
            judge(options, name, measure(options, arguments, options.rounds),
                  lambda: measure(options, arguments, 4 * options.rounds), results)
    if options.random:
        for seed, name, times in measure_random(options, 1, options.random, options.rounds):
            # Programs update their parameters: after very many runs one may fail.
            none = (seed, name, [])
            again = lambda: next(measure_random(options, seed, 1, 4 * options.rounds), none)[2]
            judge(options, name, times, again, results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    slower = sum(bool(result["slower"]) for result in results)
    print(f"{len(results)} programs, {slower} with a level that is slower than a lower one")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
