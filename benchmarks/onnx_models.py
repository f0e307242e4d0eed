#!/usr/bin/env python3
"""ONNX models on heddle, ONNX Runtime and OpenVINO in one interleaved run, float32.

  python3 -m venv .venv && .venv/bin/pip install numpy onnx onnxruntime openvino
  .venv/bin/python benchmarks/onnx_models.py FOLDER --heddle build/release/heddle

FOLDER has a folder per case: model.onnx and test_data_set_0/input_<k>.pb, the k-th input that no
initializer fills. Each engine holds the model in a process of its own, which sleeps while the
others run; a peer's fastest setting of those tried takes part in the rounds. "start" is load and
first answer, "peak" the process's memory beyond that of Python with numpy (heddle: all of it).
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

from peers.sides import Failed, Heddle, HeddleProcess, Process, note

WORKER = Path(__file__).with_name("peers") / "inference_worker.py"
SETTINGS = {"onnxruntime": ({}, {"bound": True}),
            "openvino": ({}, {"static": True}, {"streams": 1})}


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=Path)
    p.add_argument("--heddle", type=Path, required=True, help="the tool to measure")
    p.add_argument("--threads", default="1,2", help="of each side, comma-separated [1,2]")
    p.add_argument("--rounds", type=int, default=5, help="[5]")
    p.add_argument("--seconds", type=float, default=0.4, help="of a slice [0.4]")
    p.add_argument("--only", default="", help="comma-separated beginnings of case names")
    p.add_argument("--engines", default="onnxruntime,openvino")
    p.add_argument("--json", type=Path, help="write all figures there")
    return p.parse_args()


def inputs(case, folder):
    """The model's inputs as .npy files; None where one is no tensor of numbers."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(case / "model.onnx", load_external_data=False).graph
    filled, feeds = {t.name for t in graph.initializer}, {}
    for k, name in enumerate(i.name for i in graph.input if i.name not in filled):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((case / "test_data_set_0" / f"input_{k}.pb").read_bytes())
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind not in "fiub":
            return None
        feeds[name] = Path(folder) / f"{case.name}_{k}.npy"
        np.save(feeds[name], array)
    return feeds


def open_peer(engine, case, threads, seconds):
    """The peer in the fastest of its settings, and what loading it the plain way cost."""
    def start(setting):
        spec = {"engine": engine, "model": str(case.program), "params": None, "threads": threads,
                "feeds": {k: str(v) for k, v in case.feeds.items()}, "setting": setting}
        return Process([sys.executable, WORKER, json.dumps(spec)], dict(os.environ), 120)

    best, plain = None, None
    for setting in SETTINGS[engine]:
        try:
            peer = start(setting)
            time = peer.slice(seconds)["median_ms"]
        except Failed as e:
            note(f"  {engine} {setting}: {e}")
            continue
        plain = plain or peer.facts
        if best is None or time < best[0]:
            if best:
                best[1].close()
            best = (time, peer)
        else:
            peer.close()
    return (best[1], plain) if best else (None, None)


def measure(case, threads, options):
    sides = {"heddle": HeddleProcess(Heddle(options.heddle, threads), case)}
    starts = {}
    for engine in options.engines.split(","):
        peer, facts = open_peer(engine, case, threads, options.seconds)
        if peer:
            sides[engine] = peer
            starts[engine] = (facts["load_ms"] + facts["first_ms"], facts["peak_mb"])
    once = Heddle(options.heddle, threads).bench(case, 0.01, warmup=0)
    starts["heddle"] = (once["load_ms"] + once["first_ms"], once["rss_peak_mb"])
    times = {side: [] for side in sides}
    for _ in range(options.rounds):
        for side, process in sides.items():
            times[side].append(process.slice(options.seconds)["median_ms"])
    for process in sides.values():
        process.close()
    row = {"case": case.title, "threads": threads,
           "ms": {side: statistics.median(t) for side, t in times.items()},
           "start_ms": {side: s[0] for side, s in starts.items()},
           "peak_mb": {side: s[1] for side, s in starts.items()}}
    for key in ("ms", "start_ms", "peak_mb"):
        peers = [v for side, v in row[key].items() if side != "heddle"]
        row["of_best_" + key] = row[key]["heddle"] / min(peers) if peers else float("nan")
    return row


def main():
    options = parse()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(options.folder.iterdir()):
            chosen = not options.only or path.name.startswith(tuple(options.only.split(",")))
            if not chosen or not (path / "model.onnx").exists():
                continue
            feeds = inputs(path, folder)
            if feeds is None:
                note(f"{path.name}: left out, an input is no tensor of numbers")
                continue
            case = SimpleNamespace(title=path.name, program=path / "model.onnx", params=None,
                                   feeds=feeds)
            for threads in map(int, options.threads.split(",")):
                try:
                    rows.append(measure(case, threads, options))
                except Failed as e:
                    note(f"{path.name}: {e}")
                    continue
                row = rows[-1]
                print(f"{row['case']:30s} {threads}  " + "  ".join(
                    f"{side} {ms:9.3f}" for side, ms in row["ms"].items()) +
                    f"  ratio {row['of_best_ms']:.3f}  start {row['of_best_start_ms']:.3f}"
                    f"  peak {row['of_best_peak_mb']:.3f}", flush=True)
    for threads in map(int, options.threads.split(",")):
        for key in ("ms", "start_ms", "peak_mb"):
            ratios = [r["of_best_" + key] for r in rows if r["threads"] == threads]
            ratios = [r for r in ratios if r == r]
            if ratios:
                print(f"{threads} threads, {key}: geometric mean "
                      f"{statistics.geometric_mean(ratios):.3f}, most {max(ratios):.3f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
