#!/usr/bin/env python3
"""Runs the recorded TensorFlow graphs, training graphs and operator cases of the shared folder.

  scripts/check_tensorflow.py --heddle build/release/heddle --shared ../shared [--what graphs,…]

Status 77: the folder, or NumPy, is not here.
"""

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

SKIPPED = 77


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--what", default="graphs,training,opcases")
    args = parser.parse_args()
    checker = args.shared / "tf" / "check_tf.py"
    if not checker.exists() or importlib.util.find_spec("numpy") is None:
        print(f"skipped: {checker} or NumPy is not here")
        return SKIPPED
    return subprocess.run([sys.executable, checker, "--heddle", args.heddle, "--what", args.what],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
