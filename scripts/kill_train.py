#!/usr/bin/env python3
"""Kills a checkpointing `heddle train` at random moments and checks that nothing is lost.

An undisturbed run comes first. Then the same job is begun, killed (SIGKILL) at a random moment, and
begun again with --resume, until as many kills as asked for have happened; each time a job gets to
its end, its parameters, its fetched values and its metrics must be those of the undisturbed run,
bit by bit, and a new job begins. After every kill each checkpoint under its final name is checked:
all its files there, with the sizes and checksums it was written with. A few jobs are stopped by
SIGTERM instead, and must say so with exit status 3.

  kill_train.py --heddle build/release/heddle [--kills 200] [--steps 120] [--every 3] [--threads 2]

Exit status 0 when all was well.
"""

import argparse
import csv
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIGITS = ROOT / "examples" / "digits" / "train"
STOPPED = 3


class Job:
    """One training job in a directory of its own."""

    def __init__(self, options, directory):
        self.directory = directory
        self.command = [
            options.heddle, "train", "--startup", DIGITS / "startup.pdmodel",
            "--main", DIGITS / "main.pdmodel", "--data", DIGITS / "train.npz", "--batch-size", "32",
            "--shuffle", "--seed", "3", "--steps", str(options.steps), "--threads",
            str(options.threads), "--checkpoint", directory / "checkpoints", "--every",
            str(options.every), "--keep", "2", "--resume", "--quiet",
            "--save", directory / "final.pdiparams", "--out", directory / "out",
            "--metrics", directory / "metrics.csv"]

    def start(self):
        return subprocess.Popen([str(word) for word in self.command], stderr=subprocess.PIPE,
                                text=True)

    def results(self):
        """Everything that must be the same: files as bytes, metrics without their times."""
        with open(self.directory / "metrics.csv", newline="", encoding="utf-8") as file:
            metrics = [[cell for i, cell in enumerate(row) if i != 2] for row in csv.reader(file)]
        return {"parameters": (self.directory / "final.pdiparams").read_bytes(),
                "fetched values": (self.directory / "out" / "out_0.npy").read_bytes(),
                "metrics": metrics}


def check_checkpoints(directory):
    """How many complete checkpoints there are; any other thing under a final name is an error."""
    count = 0
    for checkpoint in (directory / "checkpoints").glob("step-*"):
        state = json.loads((checkpoint / "train.json").read_text(encoding="utf-8"))
        for name, expected in state["files"].items():
            size = (checkpoint / name).stat().st_size
            if f"{size} bytes," not in expected:
                raise SystemExit(f"{checkpoint / name}: {size} bytes, {expected} was written")
        count += 1
    return count


def expect_success(process, what):
    _, errors = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"{what}: exit status {process.returncode}: {errors.strip()}")


def compare(expected, job, what):
    got = job.results()
    for name, value in expected.items():
        if got[name] != value:
            raise SystemExit(f"{what}: {name} differ from the undisturbed run's")


def disturb(options, expected, seconds, work, rng):
    """Kills and resumes until enough kills; returns counts for the report."""
    told = {"killed": 0, "stopped": 0, "finished": 0, "resumed": 0}
    job = None
    while told["killed"] < options.kills or job is not None:
        if job is None:
            job = Job(options, work / f"job{told['finished']}")
            job.directory.mkdir()
        ending = told["killed"] >= options.kills
        process = job.start()
        if not ending:
            time.sleep(rng.uniform(0, seconds * options.span))
            gentle = rng.random() < 0.1
            process.send_signal(signal.SIGTERM if gentle else signal.SIGKILL)
        _, errors = process.communicate()
        if process.returncode == -signal.SIGKILL:
            told["killed"] += 1
            told["resumed"] += check_checkpoints(job.directory) > 0
        elif process.returncode in (STOPPED, -signal.SIGTERM):
            # Before the program has begun to listen, the signal just ends it.
            told["stopped"] += process.returncode == STOPPED
        elif process.returncode == 0:
            compare(expected, job, f"job {told['finished']} after {told['killed']} kills")
            told["finished"] += 1
            if not options.quiet:
                print(f"job {told['finished']}: bit-equal; {told['killed']} kills so far",
                      file=sys.stderr)
            shutil.rmtree(job.directory)
            job = None
        else:
            raise SystemExit(f"exit status {process.returncode}: {errors.strip()}")
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--every", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--span", type=float, default=0.5,
                        help="kills come within this share of an undisturbed run's time")
    parser.add_argument("--quiet", action="store_true", help="only the last line")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="heddle_kill_") as folder:
        work = Path(folder)
        whole = Job(options, work / "undisturbed")
        whole.directory.mkdir()
        begin = time.monotonic()
        expect_success(whole.start(), "the undisturbed run")
        seconds = time.monotonic() - begin
        told = disturb(options, whole.results(), seconds, work, rng)
    print(f"{told['killed']} kills ({told['resumed']} with a checkpoint to resume from), "
          f"{told['stopped']} gentle stops, {told['finished']} jobs ended bit-equal; "
          f"an undisturbed run takes {seconds:.2f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
