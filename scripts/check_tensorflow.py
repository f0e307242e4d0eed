#!/usr/bin/env python3
"""Runs the recorded TensorFlow graphs, training graphs and operator cases of the shared folder.

  scripts/check_tensorflow.py --heddle build/release/heddle --shared ../shared [--what graphs,…]

Status 77: the folder, or NumPy, is not here. The checker sees bfloat16 scalars as other arrays than
they are with NumPy before 2.0, so that operator cases need that.
"""

import argparse
import importlib
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
    numpy = importlib.util.find_spec("numpy") and importlib.import_module("numpy")
    if not checker.exists() or not numpy:
        print(f"skipped: {checker} or NumPy is not here")
        return SKIPPED
    if "opcases" in args.what and int(numpy.__version__.split(".")[0]) < 2:
        print(f"skipped: operator cases need NumPy 2, not {numpy.__version__}")
        return SKIPPED
    return subprocess.run([sys.executable, checker, "--heddle", args.heddle, "--what", args.what],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
