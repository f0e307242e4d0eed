#!/usr/bin/env python3
"""Loops beside the same work unrolled: latency and load.

Paddle's front end makes a selective scan, as state space models have it, once as a while loop and
once unrolled; heddle runs both in turns on one thread. Needs paddlepaddle==2.6.2 and "numpy<2"
(Python 3.8 to 3.12):

  python3 -m venv .venv && .venv/bin/pip install paddlepaddle==2.6.2 "numpy<2"
  .venv/bin/python benchmarks/loops.py --heddle build/release/heddle

With --pair, two models that heddle is to compare are measured instead, and with --pairs all pairs
NAME_loop, NAME_flat of a folder, such as loop_pairs.py writes; Paddle is not needed then. The
outputs of both programs are compared before they are timed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

CHANNELS, STATES = 16, 32


def scan(path, trips, unrolled):
    """h = exp(-softplus(d[t]) exp(a)) h + softplus(d[t]) u[t] b; y += sum(h c)."""
    import numpy as np
    import paddle
    from paddle import static
    from paddle.nn.functional import softplus

    random = np.random.RandomState(7)

    def constant(name, shape):
        value = random.uniform(-0.5, 0.5, shape).astype("float32")
        attr = paddle.ParamAttr(name, initializer=paddle.nn.initializer.Assign(value))
        return static.create_parameter(shape, "float32", attr=attr)

    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        u = static.data("u", [trips, CHANNELS])
        d = static.data("d", [trips, CHANNELS])
        a, b, c = (constant(name, [CHANNELS, STATES]) for name in "abc")

        def step(at, h, y):
            column = [paddle.reshape(paddle.gather(x, at), [CHANNELS, 1]) for x in (u, d)]
            rate = softplus(column[1])
            h = h * paddle.exp(-rate * paddle.exp(a)) + rate * column[0] * b
            return h, y + paddle.sum(h * c, axis=1, keepdim=True)

        h, y = paddle.zeros([CHANNELS, STATES]), paddle.zeros([CHANNELS, 1])
        at, last = (paddle.full([1], n, "int64") for n in (0, trips))
        if unrolled:
            for t in range(trips):
                h, y = step(paddle.full([1], t, "int64"), h, y)
        else:
            at, h, y = static.nn.while_loop(
                lambda at, h, y: at < last,
                lambda at, h, y: [at + 1, *step(at, h, y)], [at, h, y])
        executor = static.Executor(paddle.CPUPlace())
        executor.run(startup)
        static.save_inference_model(str(path / "model"), [u, d], [h, y], executor, program=main)


def make_scan(folder, trips):
    import paddle

    paddle.enable_static()
    pair = []
    for unrolled in (False, True):
        path = Path(folder) / ("scan_flat" if unrolled else "scan_loop")
        path.mkdir(parents=True, exist_ok=True)
        scan(path, trips, unrolled)
        pair.append(path)
    return pair


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


class Tool:
    """heddle on one thread, at one optimisation level, with random feeds."""

    def __init__(self, path, level):
        self.path, self.level = path, level

    def options(self, model):
        return [model, "--random-feed", "--threads", 1, "--opt", self.level]

    def bench(self, model, seconds):
        return json.loads(run([self.path, "bench", *self.options(model), "--json",
                               "--seconds", seconds]))

    def outputs(self, model):
        import numpy as np

        with tempfile.TemporaryDirectory() as folder:
            run([self.path, "run", *self.options(model), "--out", folder])
            return [np.load(file) for file in sorted(Path(folder).iterdir())]


def compare(pair, tool):
    import numpy as np

    for k, (loop, unrolled) in enumerate(zip(*(tool.outputs(model) for model in pair))):
        if not np.allclose(loop, unrolled, rtol=1e-4, atol=1e-5):
            sys.exit(f"output {k} of {pair[0]} and {pair[1]} differs at level {tool.level}")


def measure(pair, options):
    """The pair's medians over rounds, per level; heddle runs the two in turns."""
    for level in options.levels:
        tool = Tool(options.heddle, level)
        compare(pair, tool)
        runs = {model: [] for model in pair}
        for _ in range(options.rounds):
            for model in pair:
                runs[model].append(tool.bench(model, options.seconds))
        us, load = ([statistics.median(r[what] for r in runs[model]) for model in pair]
                    for what in ("median_ms", "load_ms"))
        yield {"loop": pair[0].name, "level": level,
               "loop_us": 1e3 * us[0], "unrolled_us": 1e3 * us[1], "ratio": us[0] / us[1],
               "loop_load_ms": load[0], "unrolled_load_ms": load[1],
               "load_ratio": load[0] / load[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", default="build/release/heddle", help="the tool")
    parser.add_argument("--trips", type=int, default=512, help="iterations of the scan")
    parser.add_argument("--pair", nargs=2, type=Path, action="append", metavar=("LOOP", "UNROLLED"),
                        help="a loop and the same unrolled, instead of the scan; may be repeated")
    parser.add_argument("--pairs", type=Path, help="a folder of pairs NAME_loop*, NAME_flat*")
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 2], help="as --opt of heddle")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each run of the tool")
    parser.add_argument("--most", type=float, help="fail when a loop takes this many times as long")
    parser.add_argument("--keep", type=Path, help="folder for the scan's programs")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()

    results = []
    print(f"{'loop':<16} {'level':>5} {'loop us':>10} {'unrolled':>10} {'ratio':>6} "
          f"{'load ms':>8} {'unrolled':>9} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        pairs = options.pair or []
        if options.pairs:
            pairs += [[path, path.with_name(path.name.replace("_loop", "_flat"))]
                      for path in sorted(options.pairs.glob("*_loop*"))]
        pairs = pairs or [make_scan(options.keep or folder, options.trips)]
        for pair in pairs:
            for r in measure(pair, options):
                results.append(r)
                print(f"{r['loop']:<16} {r['level']:>5} {r['loop_us']:>10.1f} "
                      f"{r['unrolled_us']:>10.1f} {r['ratio']:>6.2f} {r['loop_load_ms']:>8.2f} "
                      f"{r['unrolled_load_ms']:>9.2f} {r['load_ratio']:>6.3f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.most and any(r["ratio"] > options.most for r in results):
        sys.exit(f"a loop takes more than {options.most} times as long as the same unrolled")


if __name__ == "__main__":
    main()
