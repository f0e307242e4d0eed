#!/usr/bin/env python3
"""Compares heddle's scheduler with others on static graphs of small tasks:

  benchmarks/scheduling/setup_peers.sh                       # once: Taskflow and dispenso
  cmake --preset release && cmake --build build/release --target heddle_bench_scheduling
  benchmarks/scheduling.py build/release/heddle_bench_scheduling             # some 10 minutes
  benchmarks/scheduling.py …/heddle_bench_scheduling --filter '^random/1000/'
  benchmarks/scheduling.py …/heddle_bench_scheduling --require   # exit status: do the ratios hold

The binary runs all schedulers in turn (benchmarks/scheduling/README.md says what it measures). The
results go to benchmarks/results/scheduling-<processor>.{json,md,svg}. A figure is the median of the
repetitions; the best peer of a cell is the one with the least figure, with as many workers as
heddle.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from peers.host import host_facts, slug
from scheduling import plot, report
from scheduling.results import Results


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("binary", type=Path, help="heddle_bench_scheduling")
    p.add_argument("--filter", help="a regular expression for <graph>/<tasks>/<body>/<engine>/"
                                    "<workers>")
    p.add_argument("--workers", type=int, default=2, help="the number to compare at [2]")
    p.add_argument("--all", action="store_true",
                   help="peers with one worker too, and 100000 tasks of 10 us")
    p.add_argument("--repetitions", type=int, help="[7]")
    p.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results",
                   help="folder of the results [benchmarks/results]")
    p.add_argument("--name", help="of the files [scheduling-<processor>]")
    p.add_argument("--require", action="store_true",
                   help="exit with 1 when a required ratio does not hold")
    return p.parse_args()


def run(options):
    """The binary's own report, as Google Benchmark writes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [str(options.binary.resolve()), f"--workers={options.workers}",
                   f"--benchmark_out={path}"]
        if options.filter:
            command.append(f"--benchmark_filter={options.filter}")
        if options.repetitions:
            command.append(f"--benchmark_repetitions={options.repetitions}")
        if options.all:
            command.append("--all")
        status = subprocess.run(command).returncode
        if status < 0 or not path.exists() or not path.stat().st_size:
            raise SystemExit(f"{options.binary} ended with status {status} and without a report")
        # A status above 0: engines that do not keep the order were left out, or a run lost tasks.
        return json.loads(path.read_text()), status == 0


def main():
    options = parse()
    if not os.access(options.binary, os.X_OK):
        raise SystemExit(f"{options.binary}: no such program")
    host = host_facts()
    raw, all_engines_right = run(options)
    host["load_at_end"] = os.getloadavg()[0]
    results = Results(raw, host, all_engines_right)
    if not results.cells:
        raise SystemExit("the filter leaves no benchmark")
    verdicts = results.verdicts()
    name = options.name or f"scheduling-{slug(host)}"
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{name}.json").write_text(results.to_json(verdicts))
    text = report.markdown(results, verdicts, f"{name}.svg")
    (options.out / f"{name}.md").write_text(text)
    (options.out / f"{name}.svg").write_text(plot.svg(results))
    print(text)
    if options.require and not all(v["holds"] for v in verdicts):
        sys.exit(1)


if __name__ == "__main__":
    main()
