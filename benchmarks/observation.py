#!/usr/bin/env python3
"""What it costs to watch runs: traced runs (events, spans and the memory line) beside plain ones.

  benchmarks/observation.py [--heddle build/release/heddle] [--shared DIR] [--only NAMES]
                            [--threads 1] [--rounds 21] [--slice 0.1] [--limit 1.05]
                            [--least-us 2] [--json FILE]

One process a recorded model (they lie outside the repository), whose slices are traced and plain in
turns; a figure is the middle of the ratios, round by round. Models whose instructions take
--least-us and more on average are held to the limit: above it, the exit status is 1.
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


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def instructions(heddle, arguments, threads):
    done = subprocess.run([heddle, "plan", *arguments, "--threads", str(threads), "--json"],
                          capture_output=True, text=True)
    return len(json.loads(done.stdout)["steps"]) if done.returncode == 0 else 0


def ratios(options, arguments):
    """Microseconds of a plain run, and traced over plain, round by round."""
    command = [options.heddle, "bench", *arguments, "--bound", "--on-request", "--threads",
               str(options.threads)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        if not process.stdout.readline():
            raise RuntimeError(process.stderr.read().strip())

        def measure(traced, seconds):
            process.stdin.write(json.dumps({"slice": seconds, "trace": traced}) + "\n")
            process.stdin.flush()
            return 1e3 * json.loads(process.stdout.readline())["median_ms"]

        for traced in (False, True):
            measure(traced, 3 * options.slice)
        rows = [(measure(False, options.slice), measure(True, options.slice))
                for _ in range(options.rounds)]
        process.stdin.close()
    return statistics.median(row[0] for row in rows), [row[1] / row[0] for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=str(ROOT / "build" / "release" / "heddle"))
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--only", help="names of recorded programs, separated by commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--slice", type=float, default=0.1, help="seconds per measurement")
    parser.add_argument("--limit", type=float, default=1.05)
    parser.add_argument("--least-us", type=float, default=2)
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()

    only = options.only.split(",") if options.only else None
    results, above = [], 0
    print(f"{'program':<28}{'us per run':>12}{'instructions':>14}{'us each':>9}{'traced':>9}")
    with tempfile.TemporaryDirectory() as scratch:
        models = script("check_memory_bound").recorded(options.shared / "models", only,
                                                       Path(scratch))
        for name, arguments in models:
            arguments = [*arguments, "--random-feed"]
            count = instructions(options.heddle, arguments, options.threads)
            plain, found = ratios(options, arguments)
            each, ratio = plain / max(count, 1), statistics.median(found)
            held = each >= options.least_us
            above += held and ratio > options.limit
            results.append({"program": name, "us": plain, "instructions": count, "ratio": ratio,
                            "held": held})
            print(f"{name:<28}{plain:>12.2f}{count:>14}{each:>9.2f}{ratio:>9.3f}"
                  f"{'' if held else '  (short instructions)'}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    held = [result["ratio"] for result in results if result["held"]]
    if held:
        print(f"{len(held)} programs of {options.least_us} us an instruction and more: geometric "
              f"mean {statistics.geometric_mean(held):.3f}, most {max(held):.3f}, {above} above "
              f"{options.limit}")
    return 1 if above or not results else 0


if __name__ == "__main__":
    sys.exit(main())
