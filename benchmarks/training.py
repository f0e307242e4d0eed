#!/usr/bin/env python3
"""Measures training steps: heddle against the executors of Paddle 2.6.2 and 3.3.1, interleaved.

  benchmarks/training.py                          # every recorded training program
  benchmarks/training.py --require                # the exit status says whether the ratios hold
  benchmarks/training.py --only train_fc_sgd --rounds 3 --seconds 0.5 --threads 2

Each program is stepped by heddle and by every peer in turn, round after round, so that drift hits
all; while one runs, the others sleep. Of each peer several settings are tried before (OpenMP
threads, serial dispatch, in-place and addto, oneDNN); the fastest takes part in all rounds. Before,
each side makes the recorded steps from the recorded state, and its losses are compared.

Required: at least 1.5 times the steps per second of the faster peer, 4 times where a step takes it
under 1 ms, and at most half the peak memory of the leaner one. The peers are installed into
build/training-env-<version> on the first call. The table is printed, and written with all rounds to
benchmarks/results/training-<processor>.{md,json}.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from peers import host
from peers.environment import BUILD, ROOT, _install, _run
from peers.sides import Failed, Process, note, settle

WORKER = ROOT / "benchmarks" / "training" / "paddle_worker.py"
PEERS = {
    "2.6.2": ["paddlepaddle==2.6.2", "numpy<2", "protobuf<=3.20.3", "setuptools<81"],
    "3.3.1": ["paddlepaddle==3.3.1", "setuptools<81"],
}
# Settings of a peer's executor, each tried with every number of OpenMP threads allowed.
SETTINGS = {
    "default": {},
    "serial": {"env": {"FLAGS_new_executor_serial_run": "1"}},
    "inplace": {"inplace": True},
    "oneDNN": {"env": {"FLAGS_use_mkldnn": "1"}},
}
# Of 3.x alone: it turns such programs into its newer representation before it runs them.
NEWER = {"PIR": {"env": {"FLAGS_enable_pir_in_executor": "1"}}}
SHORT_MS, RATIO, SHORT_RATIO, MEMORY = 1.0, 1.5, 4.0, 0.5


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models",
                   help="folder of recorded models [shared/models beside the checkout]")
    p.add_argument("--heddle", type=Path, help="heddle_bench_training [that of build/release]")
    p.add_argument("--python", action="append", default=[], metavar="VERSION=PATH",
                   help="a Python that has that Paddle, instead of an environment made here")
    p.add_argument("--threads", default="1,2", help="thread counts [1,2]")
    p.add_argument("--rounds", type=int, default=7, help="[7]")
    p.add_argument("--seconds", type=float, default=1, help="of a slice [1]")
    p.add_argument("--only", help="comma-separated programs")
    p.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results",
                   help="folder of the results [benchmarks/results]")
    p.add_argument("--require", action="store_true",
                   help="exit with 1 when a required ratio does not hold")
    return p.parse_args()


def pythons(options):
    """The Pythons of the peers by version, in environments made where none is given."""
    given = dict(entry.split("=", 1) for entry in options.python)
    found = {}
    for version, packages in PEERS.items():
        if version in given:
            found[version] = Path(given[version])
            continue
        place = BUILD / f"training-env-{version}"
        if not (place / "bin" / "python").exists():
            _run([sys.executable, "-m", "venv", "--clear", place], stdout=sys.stderr)
        _install(place, packages)
        found[version] = place / "bin" / "python"
    return found


def find_heddle(given):
    if given:
        return given.resolve()
    path = BUILD / "release" / "heddle_bench_training"
    if not path.exists():
        _run(["cmake", "--preset", "release"], cwd=ROOT, stdout=sys.stderr)
        _run(["cmake", "--build", BUILD / "release", "--target", "heddle_bench_training"], cwd=ROOT,
             stdout=sys.stderr)
    return path


class Trainer(Process):
    """A side with one training program loaded."""

    def worst_loss(self, python, folder, steps):
        """Largest relative difference of a fetched value from the recorded ones, in all steps."""
        with tempfile.TemporaryDirectory() as out:
            self._ask({"steps": steps, "folder": out})
            script = ("import sys, glob, numpy as np; worst = 0\n"
                      "for f in glob.glob(sys.argv[1] + '/out_*.npy'):\n"
                      "    a = np.load(f).ravel().astype('f8')\n"
                      "    b = np.load(sys.argv[2] + f[len(sys.argv[1]):]).ravel().astype('f8')\n"
                      "    off = abs(a - b) / np.maximum(abs(b), 1e-6)\n"
                      "    worst = max(worst, float(off.max()))\n"
                      "print(worst)")
            done = subprocess.run([str(python), "-c", script, out, str(folder)], check=True,
                                  capture_output=True, text=True)
            return float(done.stdout)


def start_heddle(binary, folder, threads):
    return Trainer([binary, folder, threads], dict(os.environ))


def start_paddle(python, folder, omp, setting):
    env = dict(os.environ, GLOG_minloglevel="3", PYTHONWARNINGS="ignore", OMP_NUM_THREADS=str(omp),
               FLAGS_enable_pir_api="0", **setting.get("env", {}))
    spec = {"folder": str(folder), "inplace": setting.get("inplace", False)}
    return Trainer([python, WORKER, json.dumps(spec)], env)


def choose(version, python, folder, threads, options, steps):
    """The fastest setting of one peer: its name, its worker, and all that were tried."""
    tried, best = {}, None
    settings = dict(SETTINGS, **(NEWER if version >= "3" else {}))
    for name, setting in settings.items():
        for omp in range(1, threads + 1):
            title = f"{name}, {omp} OpenMP thread" + ("s" if omp > 1 else "")
            try:
                worker = start_paddle(python, folder, omp, setting)
            except Failed as error:
                tried[title] = {"failed": str(error)}
                continue
            try:
                worst = worker.worst_loss(python, folder, steps)
                ms = min(worker.slice(options.seconds / 2)["median_ms"] for _ in range(2))
            except Failed as error:
                tried[title] = {"failed": str(error)}
                worker.close()
                continue
            tried[title] = {"ms": ms, "worst_loss": worst}
            if best is None or ms < best[2]:
                if best is not None:
                    best[1].close()
                best = (title, worker, ms)
            else:
                worker.close()
            settle()
    if best is None:
        raise Failed(f"no setting of Paddle {version} works: {tried}")
    return best[0], best[1], tried


def measure(name, threads, options, binary, found):
    folder = (options.models / name).absolute()
    steps = json.loads((folder / "meta.json").read_text())["steps"]
    row = {"program": name, "threads": threads, "rounds": [], "peers": {}}
    sides = {}
    any_python = next(iter(found.values()))
    try:
        sides["heddle"] = start_heddle(binary, folder, threads)
        row["worst_loss"] = sides["heddle"].worst_loss(any_python, folder, steps)
        for version, python in found.items():
            setting, sides[version], tried = choose(version, python, folder, threads, options,
                                                    steps)
            row["peers"][version] = {"setting": setting, "tried": tried,
                                     "first_ms": sides[version].facts["first_ms"]}
        for _ in range(options.rounds):
            measured = {}
            for side, worker in sides.items():
                measured[side] = worker.slice(options.seconds)
                settle()
            row["rounds"].append(measured)
    finally:
        for worker in sides.values():
            worker.close()
    return summarise(row, found)


def summarise(row, versions):
    def median(side, field):
        return statistics.median(r[side][field] for r in row["rounds"])

    row["ms"] = {side: median(side, "median_ms") for side in ["heddle", *versions]}
    row["mb"] = {side: row["rounds"][-1][side]["vmhwm_mb"] for side in ["heddle", *versions]}
    fastest = min(versions, key=lambda v: row["ms"][v])
    ratios = [r[fastest]["median_ms"] / r["heddle"]["median_ms"] for r in row["rounds"]]
    row["fastest"] = fastest
    row["speed"] = {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    row["required"] = SHORT_RATIO if row["ms"][fastest] < SHORT_MS else RATIO
    row["memory"] = row["mb"]["heddle"] / min(row["mb"][v] for v in versions)
    row["holds"] = row["speed"]["median"] >= row["required"] and row["memory"] <= MEMORY
    return row


def markdown(results):
    facts, settings = results["host"], results["settings"]
    versions = list(PEERS)
    lines = [f"# Training steps on {facts['cpu']}", "",
             f"{facts['date']}; {facts['cores']} cores ({facts['isa']}, {facts['cpu_detail']}), "
             f"{facts['memory_gb']} GB; {facts['system']}; heddle {facts['heddle_commit']}; "
             f"Python {facts['python']}. {settings['rounds']} rounds of {settings['seconds']} s a "
             f"side, in turn; load average {facts['load_at_start']:.1f} at the start, "
             f"{facts['load_at_end']:.1f} at the end. Times are medians over rounds of a round's "
             "median step, feeding and fetching included. Speed: how many times the steps per "
             "second of the faster peer, the median of the rounds' ratios (least–most).", "",
             "| program | threads | heddle ms | " +
             " | ".join(f"Paddle {v} ms (setting)" for v in versions) +
             " | speed | required | heddle MB | leaner peer MB |",
             "|---|---|---|" + "---|" * (len(versions) + 4)]
    for row in results["rows"]:
        if "failed" in row:
            lines.append(f"| {row['program']} | {row['threads']} | {row['failed']} |" +
                         " |" * (len(versions) + 4))
            continue
        peers = " | ".join(f"{row['ms'][v]:.3f} ({row['peers'][v]['setting']})" for v in versions)
        speed = row["speed"]
        lines.append(
            f"| {row['program']} | {row['threads']} | {row['ms']['heddle']:.3f} | {peers} | "
            f"{speed['median']:.2f}× ({speed['least']:.2f}–{speed['most']:.2f}) | "
            f"{row['required']:g}×{'' if row['holds'] else ' **not held**'} | "
            f"{row['mb']['heddle']:.0f} | {min(row['mb'][v] for v in versions):.0f} |")
    return "\n".join(lines) + "\n"


def main():
    options = parse()
    if not options.models.is_dir():
        raise SystemExit(f"{options.models}: no such folder; --models says where the recorded "
                         "models are")
    found, binary = pythons(options), find_heddle(options.heddle)
    names = sorted(f.parent.name for f in options.models.glob("*/main.pdmodel"))
    if options.only:
        names = [n for n in names if n in options.only.split(",")]
    results = {"host": host.host_facts(), "rows": [],
               "settings": {"rounds": options.rounds, "seconds": options.seconds}}
    for name in names:
        for threads in map(int, options.threads.split(",")):
            try:
                row = measure(name, threads, options, binary, found)
                note(f"{name} {threads}: " +
                     ", ".join(f"{k} {v:.3f} ms" for k, v in row["ms"].items()) +
                     f"; {row['speed']['median']:.2f}x")
            except Failed as error:
                row = {"program": name, "threads": threads, "failed": str(error), "holds": False}
                note(f"{name} {threads}: {error}")
            results["rows"].append(row)
    results["host"]["load_at_end"] = os.getloadavg()[0]
    options.out.mkdir(parents=True, exist_ok=True)
    text = markdown(results)
    stem = "training-" + host.slug(results["host"])
    (options.out / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    (options.out / f"{stem}.md").write_text(text)
    print(text)
    if options.require and not all(row["holds"] for row in results["rows"]):
        sys.exit(1)


if __name__ == "__main__":
    main()
