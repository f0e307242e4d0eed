"""Files of every format with a number at an edge (scripts/sweep_counts.py, which has the rest):
each is read and run, or refused by a clear error, in bounded time and memory. HEDDLE_COUNTS=<n>
draws n files instead of 600, HEDDLE_TEST_SEED=<n> others than usual."""

import os
import subprocess
import sys

from conftest import ROOT


def test_numbers_at_the_edges_are_bounded():
    """In processes of their own, which some of the files would end."""
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "sweep_counts.py"),
         "--take", os.environ.get("HEDDLE_COUNTS", "600"),
         "--seed", os.environ.get("HEDDLE_TEST_SEED", "1")],
        capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]
    assert "files: " in made.stdout
