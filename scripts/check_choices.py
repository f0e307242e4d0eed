#!/usr/bin/env python3
"""Compares the implementations that instructions get on described machines with what is recorded.

  check_choices.py --heddle TOOL [--shared DIR] [--record]

tests/machines has the descriptions (*.json) and the records: examples.tsv for the programs of the
repository, shared_models.tsv for the recorded models outside of it, left out where they are not.
A line names an instruction by its place and first output, its operator, and its implementation for
each description at 1 and 2 threads; one that holds for all of them stands once. --record writes the
files anew: read the difference before it is committed.
"""

import argparse
import difflib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MACHINES = sorted((ROOT / "tests" / "machines").glob("*.json"))
THREADS = (1, 2)
EXAMPLES = ("examples/digits",)


def plan(heddle, program, feeds, machine, threads):
    command = [heddle, "plan", program, "--json", "--machine", machine, "--threads", str(threads),
               *feeds]
    run = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{run.stderr}")
    return json.loads(run.stdout)


def choices(heddle, program, feeds):
    """A row per instruction with several implementations: place, output, operator, choice."""
    rows = {}
    columns = [(machine, threads) for machine in MACHINES for threads in THREADS]
    for at, (machine, threads) in enumerate(columns):
        told = plan(heddle, program, feeds, machine, threads)
        variables = {slot["slot"]: slot["variable"] for slot in told["slots"]}
        for step in told["steps"]:
            outputs = [variables[s] for s in step["outputs"] if s >= 0]
            key = (step["block"], step["position"], step["op"], outputs[0] if outputs else "-")
            rows.setdefault(key, ["-"] * len(columns))[at] = step.get("implementation") or "-"
    for (block, position, op, output), got in sorted(rows.items()):
        if set(got) == {"-"}:
            continue
        yield [f"{block}.{position}", output, op, *(got[:1] if len(set(got)) == 1 else got)]


def example_lines(heddle):
    for program in EXAMPLES:
        for row in choices(heddle, ROOT / program, []):
            yield "\t".join([program, *row])


def shared_lines(heddle, models):
    """Of the first case of each inference model."""
    for folder in sorted(p.parent for p in models.glob("*/meta.json")):
        meta = json.loads((folder / "meta.json").read_text())
        if meta["kind"] != "inference":
            continue
        with tempfile.TemporaryDirectory() as scratch:
            model = folder
            if (folder / "params_spec.json").exists() and not (folder / "model.pdiparams").exists():
                model = Path(scratch) / folder.name
                shutil.copytree(folder, model)
                tool = models / "tools" / "regen_params.py"
                subprocess.run([sys.executable, tool, model], check=True)
            feeds = []
            for name, value in meta["cases"][0]["inputs"].items():
                feeds += ["--feed", f"{name}={folder / value['file']}"]
            for row in choices(heddle, model, feeds):
                yield "\t".join([folder.name, *row])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", type=Path, default=ROOT / "build" / "release" / "heddle")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    names = [f"{m.stem}, {t}" for m in MACHINES for t in THREADS]
    header = "\t".join(["program", "place", "output", "operator", *names])
    lists = {"examples.tsv": example_lines(args.heddle)}
    models = args.shared / "models"
    if models.is_dir():
        lists["shared_models.tsv"] = shared_lines(args.heddle, models)
    else:
        print(f"without the recorded models: {models} is not there")
    wrong = 0
    for name, lines in lists.items():
        path, got = ROOT / "tests" / "machines" / name, [header, *lines]
        if args.record:
            path.write_text("\n".join(got) + "\n")
        recorded = path.read_text().splitlines()
        for line in difflib.unified_diff(recorded, got, "recorded", "now", n=0, lineterm=""):
            wrong += 1
            print(line)
        print(f"{name}: {len(got) - 1} instructions")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
