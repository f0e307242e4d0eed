"""Wrong calls, and processes that end in the middle: errors or right answers, no crash, no hang."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TURNS = int(os.environ.get("HEDDLE_MISUSE_TURNS", "600"))
ENDS = int(os.environ.get("HEDDLE_MISUSE_ENDS", "8"))
FIRST = int(os.environ.get("HEDDLE_MISUSE_SEED", "1"))


def process(script, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", str(HERE / script),
         *map(str, arguments)],
        capture_output=True, text=True, timeout=600, check=False)


def test_wrong_calls_are_refused_or_answered():
    made = process("misuse.py", FIRST, TURNS)
    assert made.returncode == 0 and made.stdout.strip() == "ok", made.stderr[-3000:]


def test_lives_and_rights():
    made = process("misuse_lives.py", FIRST, TURNS // 4, HERE / "scripts.npz")
    assert made.returncode == 0 and made.stdout.strip() == "ok", made.stderr[-3000:]


@pytest.mark.parametrize("seeds", [range(FIRST, FIRST + ENDS)])
def test_processes_end(seeds):
    def one(seed):
        made = process("ends.py", seed, HERE / "scripts.npz")
        bad = made.stdout.strip().splitlines()[-1:] != ["ok"] or made.returncode not in (
            0, 1, 3, -15) or "Fatal" in made.stderr or "terminate called" in made.stderr
        return f"seed {seed}, status {made.returncode}: {made.stderr[-2000:]}" if bad else None

    with ThreadPoolExecutor(2) as pool:
        failures = [why for why in pool.map(one, seeds) if why]
    assert not failures, failures[0]
