#!/usr/bin/env python3
"""Every number in files of every format, one at a time at the edges of what numbers can be (0, 1,
2^31, 2^63, -1 ...): each file is read, planned and run, or refused with one clear error, within
seconds and a bounded memory.

  sweep_counts.py --pythonpath DIR [--kinds chain,loops] [--formats onnx,pir] [--take N --seed S]

The files are small programs of the kinds of scale/kinds.py. Prints a line for each file that ends
the process, takes too long, too much memory or fails inside; then counts. Exit status 1 where there
is one."""

import argparse
import collections
import mmap
import os
import random
import resource
import signal
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from scale import counts, kinds, to_onnx, to_paddle, to_pir, to_tensorflow  # noqa: E402

FORMATS = {"onnx": to_onnx, "tensorflow": to_tensorflow, "paddle": to_paddle, "pir": to_pir}
SECONDS, BYTES = 10, 6 << 30
STATES = ("not reached", "began", "runs", "refused", "INTERNAL", "out of memory")


def sources(formats, chosen):
    """(format, kind, program, parameters) of the files before anything is changed."""
    for form in formats:
        for kind in chosen:
            files = FORMATS[form].write(kinds.KINDS[kind](12 if kind == "long_names" else 2))
            if files is not None:
                rest = b"".join(v for k, v in files.items() if k != FORMATS[form].FILE)
                yield form, kind, files[FORMATS[form].FILE], rest


def inputs(formats, chosen, take, seed):
    """(format, kind, where, program, parameters) of all files, or of `take` that are drawn."""
    made = []
    if take:
        rng = random.Random(seed)
        drawn = [(form, kind, counts.Drawn(program, form == "pir"), rest)
                 for form, kind, program, rest in sources(formats, chosen)]
        for _ in range(take):
            form, kind, of, rest = rng.choice(drawn)
            made.append((form, kind, *of.draw(rng), rest))
        return made
    for form, kind, program, rest in sources(formats, chosen):
        change = counts.of_json if form == "pir" else counts.of_messages
        made += [(form, kind, where, changed, rest) for where, changed in change(program)]
    return made


def attempt(heddle, np, program, params):
    """The state that it ends in, and the error's text."""
    try:
        model = heddle.parse(program, params, threads=1)
        feeds = {}
        for info in model.inputs:
            shape = [2 if d < 0 else d for d in info.shape or [2]]
            if np.prod([float(d) for d in shape]) > 1 << 24:
                return 2, ""
            dtype = info.dtype if info.dtype != "unknown" else "float32"
            feeds[info.name] = np.ones(shape, dtype)
        model.run(feeds, timeout=2)
        return 2, ""
    except heddle.Error as error:
        return (4 if "INTERNAL" in str(error) else 3), str(error)
    except MemoryError:
        return 5, "MemoryError"


def work(heddle, np, batch, board):
    """In a process of its own; `board` has the states."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    for at, (_, _, _, program, params) in batch:
        struct.pack_into("B", board, at, 1)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        try:
            state, text = attempt(heddle, np, program, params)
        except Exception as error:  # of this script, or one that is none of heddle's
            state, text = 4, repr(error)
        if state in (4, 5):
            print(text[:300], flush=True)
        struct.pack_into("B", board, at, state)


def sweep(heddle, np, made, say=print):
    """Counts by state, and what failed."""
    board, failed, at = mmap.mmap(-1, len(made) + 1), [], 0
    while at < len(made):
        child = os.fork()
        if child == 0:
            try:
                work(heddle, np, list(enumerate(made))[at:at + 500], board)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        end = min(at + 500, len(made))
        while at < end and board[at] > 1:
            at += 1
        if at < end:
            why = "too long" if code == -signal.SIGALRM else f"ends the process ({code})"
            failed.append((at, why))
            at += 1
    for k in range(len(made)):
        if board[k] >= 4:
            failed.append((k, STATES[board[k]]))
    for k, why in failed:
        say(f"{made[k][0]} {made[k][1]} {made[k][2]}: {why}")
    return collections.Counter(STATES[board[k]] for k in range(len(made))), failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pythonpath", help="where the package heddle is")
    parser.add_argument("--kinds", default=",".join(kinds.KINDS))
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--take", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.pythonpath:
        sys.path.insert(0, options.pythonpath)
    import heddle
    import numpy as np
    made = inputs(options.formats.split(","), options.kinds.split(","), options.take, options.seed)
    by_state, failed = sweep(heddle, np, made)
    print(f"{len(made)} files: " + ", ".join(f"{n} {s}" for s, n in sorted(by_state.items())))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
