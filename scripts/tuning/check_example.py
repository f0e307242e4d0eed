#!/usr/bin/env python3
"""Runs the example of docs/fine-tuning.md and asks how many digits the model recognises before and
after: check_example.py --heddle TOOL. The new head alone knows nothing; trained, at least 95 %."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def accuracy(text):
    return float(re.search(r"recognised: ([0-9.]+)%", text).group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--heddle", required=True, type=Path)
    heddle = parser.parse_args().heddle.resolve()
    page = (ROOT / "docs/fine-tuning.md").read_text(encoding="utf-8")
    block = re.search(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE).group(1)
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "bin").mkdir()
        (place / "bin/heddle").symlink_to(heddle)
        (place / "examples").symlink_to(ROOT / "examples")
        path = f"{place / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        # Without training, the same commands measure what the new head begins with.
        untrained = re.sub(r"--lr \S+", "--lr 0", block)
        untrained = re.sub(r"--epochs \d+", "--steps 1", untrained)
        for script in (untrained, block):
            program = "examples/digits/train/accuracy.py"
            script = script.replace(program, f"{sys.executable} {program}")
            done = subprocess.run(["bash", "-e", "-c", script], cwd=place, text=True,
                                  env=dict(os.environ, PATH=path), capture_output=True)
            if done.returncode != 0:
                sys.exit(f"status {done.returncode}: {done.stderr}")
            measured.append(accuracy(done.stdout))
    print(f"{measured[0]} % before, {measured[1]} % after")
    return 0 if measured[0] < 40 and measured[1] >= 95 else 1


if __name__ == "__main__":
    sys.exit(main())
