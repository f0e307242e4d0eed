#!/usr/bin/env python3
"""What `heddle run` holds at its peak, beside what the plan says it needs.

  scripts/peak_memory.py --heddle build/release/heddle ../shared/models/resnet18 [more folders]

A fresh process per program; its peak is the most anonymous memory that was seen when looking a
thousand times a second, in the greatest of some runs: pages of the tool's and the libraries' own
files are the system's, and not in it. From it are taken off: what a run of examples/digits holds
without its arena and parameters (the libraries' data, stacks, the C heap), and the parameters'
file. What is left is compared with the plan: arena, feeds and outputs. The last column compares the
plan with what a run adds to the memory of a process that has loaded the model and made the plan,
but does not run it. Folders are of the form of the recorded models: model.pdmodel, its parameters
beside it, meta.json.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MB = 2.0 ** 20


def call(command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True,
                          text=True).stdout


def peak_of(command):
    """The most anonymous memory seen, in bytes, of the process that this command starts."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            continue
        found = re.search(r"RssAnon:\s+(\d+) kB", status)
        peak = max(peak, int(found[1]) * 1024 if found else 0)
        time.sleep(0.001)
    if process.returncode != 0:
        raise SystemExit(f"failed: {' '.join(map(str, command))}")
    return peak


def measure(heddle, model, feeds, params, flags):
    """(peak, arena, values handed in and out, parameters, before the run), in bytes."""
    common = [model, *flags] + (["--params", params] if params else [])
    for name, file in feeds.items():
        common += ["--feed", f"{name}={file}"]
    lean = [] if "--no-lean" in flags else ["--lean"]
    with tempfile.TemporaryDirectory() as out:
        peak = max(peak_of([heddle, "run", *common, "--out", out]) for _ in range(3))
        ready = max(peak_of([heddle, "plan", *common, *lean]) for _ in range(3))
        given = sum(os.path.getsize(f) for f in [*feeds.values(), *Path(out).rglob("*.npy")])
    arena = json.loads(call([heddle, "plan", *common, *lean, "--json"]))["arena_bytes"]
    return peak, arena, given, os.path.getsize(params) if params else 0, ready


def feeds_of(folder):
    case = json.loads((folder / "meta.json").read_text())["cases"][0]
    return {name: folder / value["file"] for name, value in case["inputs"].items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", type=Path, default=ROOT / "build" / "release" / "heddle")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--no-lean", action="store_true", help="pass it on")
    parser.add_argument("--within", type=float, metavar="RATIO",
                        help="fail where more is left than so many times the plan")
    parser.add_argument("folders", type=Path, nargs="+")
    options = parser.parse_args()
    if missing := [str(f) for f in options.folders if not f.is_dir()]:
        print("not here: " + ", ".join(missing))
        sys.exit(77)
    flags = ["--threads", options.threads, "--serial"] + ["--no-lean"] * options.no_lean
    digits = ROOT / "examples" / "digits"
    params = next(digits.glob("*.pdiparams"), None)
    base = measure(options.heddle, digits, {"x": digits / "input.npy"}, params, flags)
    libraries = base[0] - sum(base[1:4])
    print(f"beside programs: {libraries / MB:.1f} MB\n")
    print("| program | peak MB | parameters | left | plan | left ÷ plan | run ÷ plan |\n"
          "|---|--:|--:|--:|--:|--:|--:|")
    above = 0
    for folder in options.folders:
        file = next(folder.glob("*.pdiparams"), None)
        peak, arena, given, weights, ready = measure(options.heddle, folder, feeds_of(folder), file,
                                                     flags)
        left, plan = peak - libraries - weights, arena + given
        print(f"| {folder.name} | {peak / MB:.1f} | {weights / MB:.1f} | {left / MB:.1f} | "
              f"{plan / MB:.2f} | {left / plan:.2f} | {(peak - ready) / plan:.2f} |")
        sys.stdout.flush()
        above += options.within is not None and left > options.within * plan
    if above:
        raise SystemExit(f"{above} above {options.within} times the plan")


if __name__ == "__main__":
    main()
