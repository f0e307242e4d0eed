#!/usr/bin/env python3
"""One network as Paddle 3 saves it (PIR) and as Paddle 2 does (ProgramDesc), on heddle and on both
Paddles, in one interleaved run:

  benchmarks/paddle3.py inference.json model.pdmodel model.pdiparams --feed x=in_x.npy \\
      --heddle build/release/heddle --paddle3 VENV/bin/python --paddle2 VENV/bin/python

The two Pythons have paddlepaddle 3.x and 2.6.2. Of each Paddle every setting below is tried, those
that fail are named, and the fastest takes part in the rounds.
"""

import argparse
import json
import os
import statistics
from pathlib import Path
from types import SimpleNamespace

from peers.sides import Failed, Heddle, HeddleProcess, Process, note

WORKER = Path(__file__).with_name("peers") / "inference_worker.py"
SETTINGS = [{"border": "shared"}, {"border": "copied"}, {"border": "copied", "memory_optim": True},
            {"border": "shared", "onednn": False}, {"border": "copied", "onednn": False}]


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("pir", type=Path)
    p.add_argument("program", type=Path)
    p.add_argument("params", type=Path)
    p.add_argument("--feed", action="append", default=[], metavar="NAME=FILE")
    p.add_argument("--heddle", type=Path, required=True)
    p.add_argument("--paddle3", required=True, metavar="PYTHON")
    p.add_argument("--paddle2", required=True, metavar="PYTHON")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=0.6)
    return p.parse_args()


def open_paddle(python, program, options, feeds, threads):
    best = None
    for setting in SETTINGS:
        spec = {"engine": "paddle", "model": str(program), "params": str(options.params),
                "threads": threads, "feeds": feeds, "setting": setting}
        try:
            env = dict(os.environ, GLOG_minloglevel="3", PYTHONWARNINGS="ignore")
            peer = Process([python, WORKER, json.dumps(spec)], env, 120)
            time = peer.slice(options.seconds)["median_ms"]
        except Failed as e:
            note(f"  {program.name} {setting}: {e}")
            continue
        note(f"  {peer.facts['version']} {setting}: {time:.2f} ms")
        if best is None or time < best[0]:
            if best:
                best[1].close()
            best = (time, peer)
        else:
            peer.close()
    if best is None:
        raise SystemExit(f"{program}: no setting works")
    return best[1]


def main():
    options = parse()
    feeds = dict(f.split("=", 1) for f in options.feed)
    for threads in map(int, options.threads.split(",")):
        tool = Heddle(options.heddle, threads)
        sides = {}
        for name, program in (("heddle pir", options.pir), ("heddle pdmodel", options.program)):
            case = SimpleNamespace(program=program, params=options.params, feeds=feeds)
            sides[name] = HeddleProcess(tool, case)
        sides["paddle 3"] = open_paddle(options.paddle3, options.pir, options, feeds, threads)
        sides["paddle 2"] = open_paddle(options.paddle2, options.program, options, feeds, threads)
        times = {side: [] for side in sides}
        for _ in range(options.rounds):
            for side, process in sides.items():
                times[side].append(process.slice(options.seconds)["median_ms"])
        for process in sides.values():
            process.close()
        ms = {side: statistics.median(t) for side, t in times.items()}
        print(f"{threads} threads: " + ", ".join(f"{s} {t:.2f} ms" for s, t in ms.items()))
        print(f"  pir / {sides['paddle 3'].facts['version']}: "
              f"{ms['heddle pir'] / ms['paddle 3']:.3f}; pdmodel / "
              f"{sides['paddle 2'].facts['version']}: "
              f"{ms['heddle pdmodel'] / ms['paddle 2']:.3f}", flush=True)


if __name__ == "__main__":
    main()
