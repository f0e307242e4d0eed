#!/usr/bin/env python3
"""What a call from Python costs over Executor::Run in C++: one small feed, one fetch.

    PYTHONPATH=build/release/python python3 benchmarks/python_call.py --heddle build/release/heddle

A program of one operator on four numbers is timed in turns through `heddle bench` (C++) and through
Model.run, each on one thread; printed are the medians of each round's median, in microseconds. The
second part lets one, two and four clients run the example model at once, threads of C++ (`heddle
bench --clients`) and of Python in turns; printed are runs per second, and how often one client's
they are.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import heddle

ROOT = Path(__file__).resolve().parent.parent


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def part(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def variable(name, kind, dims=None):
    tensor = b"" if dims is None else part(3, part(
        1, number(1, 5) + b"".join(number(2, d) for d in dims)))
    return part(3, part(1, name) + part(2, number(1, kind) + tensor))


def operator(kind, ins, outs, attrs=b""):
    slots = [part(1, part(1, s) + part(2, a)) for s, a in ins.items()]
    slots += [part(2, part(1, s) + part(2, a)) for s, a in outs.items()]
    return part(4, b"".join(slots) + part(3, kind) + attrs)


def tiny_program():
    """x[4] -> relu -> y[4], as a serialized ProgramDesc."""
    column = part(4, part(1, "col") + number(2, 0) + number(3, 0))
    block = number(1, 0) + varint(2 << 3) + b"\xff" * 9 + b"\x01"
    block += variable("feed", 9) + variable("fetch", 10)
    block += variable("x", 7, [4]) + variable("y", 7, [4])
    block += operator("feed", {"X": "feed"}, {"Out": "x"}, column)
    block += operator("relu", {"X": "x"}, {"Out": "y"})
    block += operator("fetch", {"X": "y"}, {"Out": "fetch"}, column)
    return part(1, block) + part(4, number(1, 2006002))


def time_cpp(tool, path):
    command = [tool, "bench", path, "--random-feed", "--threads", "1", "--seconds", "0.3", "--json"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out)["median_ms"] * 1e3


def time_python(call, chunks=100, calls=200):
    """Median over chunks that are short beside the scheduler's time slices."""
    times = []
    for _ in range(chunks):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls)
    return statistics.median(times) * 1e6


def cpp_runs_per_second(tool, path, feed, clients, seconds):
    command = [tool, "bench", path, "--feed", feed, "--clients", str(clients), "--threads", "2",
               "--seconds", str(seconds), "--json"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out)["runs_per_s"]


def runs_per_second(model, x, threads, seconds):
    counts, stop = [0] * threads, time.perf_counter() + seconds

    def work(i):
        while time.perf_counter() < stop:
            model(x)
            counts[i] += 1

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / seconds


def compare_clients(options, clients=(1, 2, 4), seconds=0.5):
    path = ROOT / "examples/digits"
    model = heddle.load(path, threads=2)
    x = np.repeat(np.load(path / "input.npy"), options.batch // 4, axis=0)
    rates = {("C++", c): [] for c in clients} | {("Python", c): [] for c in clients}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.npy"
        np.save(file, x)
        runs_per_second(model, x, 1, seconds)
        for _ in range(options.rounds):
            for c in clients:
                rates["C++", c].append(
                    cpp_runs_per_second(options.heddle, str(path), f"x={file}", c, seconds))
                rates["Python", c].append(runs_per_second(model, x, c, seconds))
    for language in ("C++", "Python"):
        one = statistics.median(rates[language, 1])
        print(f"{language}: " + ", ".join(
            f"{c} clients {statistics.median(rates[language, c]):.0f}/s "
            f"({statistics.median(rates[language, c]) / one:.2f})" for c in clients))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", type=int, default=64, help="images a run, a multiple of four")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "tiny.pdmodel")
        Path(path).write_bytes(tiny_program())
        model = heddle.load(path, threads=1)
        x = np.ones(4, "float32")
        feeds = {"x": x}
        calls = {"run": lambda: model.run(feeds), "call": lambda: model(x)}
        for call in calls.values():
            time_python(call, 10)
        rounds = [(time_cpp(options.heddle, path), *map(time_python, calls.values()))
                  for _ in range(options.rounds)]
    cpp, *python = map(statistics.median, zip(*rounds))
    print(f"C++ {cpp:.2f} us")
    for name, value in zip(calls, python):
        print(f"model.{name} {value:.2f} us, {value - cpp:.2f} more")
    compare_clients(options)


if __name__ == "__main__":
    main()
