#!/usr/bin/env python3
"""Runs the recorded inference models through the tool and compares (shared/tools/check_models.py).

  scripts/check_models.py --heddle build/release/heddle [--shared DIR] [--threads 1,2]
                          [--only NAMES]

The models lie outside the repository. Without them, or without numpy, says so and exits with status
77, which ctest takes for "skipped".
"""

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", type=Path, default=ROOT / "build" / "release" / "heddle")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--kind", default="inference")
    parser.add_argument("--only")
    args = parser.parse_args()
    checker, models = args.shared / "tools" / "check_models.py", args.shared / "models"
    if not checker.is_file() or not models.is_dir():
        print(f"skipped: no recorded models in {args.shared}")
        return SKIPPED
    if importlib.util.find_spec("numpy") is None:
        print(f"skipped: {sys.executable} has no numpy")
        return SKIPPED
    command = [sys.executable, str(checker), str(models), "--heddle", str(args.heddle),
               "--threads", args.threads, "--kind", args.kind]
    if args.only:
        command += ["--only", args.only]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
