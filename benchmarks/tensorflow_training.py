#!/usr/bin/env python3
"""Training steps of TensorFlow graphs on heddle and on TensorFlow itself, in one interleaved run.

  python3 -m venv .venv && .venv/bin/pip install numpy tensorflow-cpu
  .venv/bin/python benchmarks/tensorflow_training.py FOLDER \\
      --heddle build/release/heddle_bench_training [--require]

FOLDER has a folder per graph with meta.json, which names the graph, its init and train operators,
its batches (.npy files) and its fetches. TensorFlow steps a graph in a Session through a callable
made once, without XLA and with it; the faster one takes part in the rounds. Each side holds the
graph in a process that sleeps while the others run. Before anything is timed, each side makes the
recorded steps from the graph's own initial state, and what it fetches is compared.

Printed are milliseconds a step (medians of the rounds) and how many steps heddle makes in the time
of one of TensorFlow's. With --require the status is 1 when the geometric mean is below 2.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "peers"))

REQUIRED = 2


class Session:
    """One graph in TensorFlow."""

    def __init__(self, spec):
        import numpy as np
        import tensorflow as tf

        self.np, self.tf = np, tf
        folder = Path(spec["folder"])
        self.meta = json.loads((folder / "meta.json").read_text())
        definition = tf.compat.v1.GraphDef()
        definition.ParseFromString((folder / self.meta["model"]).read_bytes())
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.compat.v1.import_graph_def(definition, name="")
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=spec["threads"],
                                          inter_op_parallelism_threads=spec["threads"])
        if spec["xla"]:
            level = tf.compat.v1.OptimizerOptions.ON_2
            config.graph_options.optimizer_options.global_jit_level = level
        self.session = tf.compat.v1.Session(graph=self.graph, config=config)
        with_port = lambda n: n if ":" in n else n + ":0"
        names = [f["name"] for f in self.meta["feeds"]]
        arrays = [np.load(folder / f"in_{n}.npy") for n in names]
        self.batches = list(zip(*arrays))
        self.callable = self.session.make_callable(
            [with_port(f["fetch"]) for f in self.meta["fetches"]]
            + [self.graph.get_operation_by_name(self.meta["train_op"])],
            feed_list=[with_port(n) for n in names])
        self.restart()

    def restart(self):
        self.session.run(self.graph.get_operation_by_name(self.meta["init_op"]))
        self.at = 0

    def run(self):
        out = self.callable(*self.batches[self.at % len(self.batches)])
        self.at += 1
        return out[:-1]

    def record(self, steps, folder):
        self.restart()
        rows = [self.run() for _ in range(steps)]
        for k, values in enumerate(zip(*rows)):
            self.np.save(f"{folder}/out_{k}.npy",
                         self.np.stack([self.np.ravel(v) for v in values]))


def worker(spec):
    from inference_worker import run_slice
    from talk import Answers

    answers = Answers()
    start = time.perf_counter()
    session = Session(spec)
    session.run()
    answers.say({"version": session.tf.__version__,
                 "start_ms": (time.perf_counter() - start) * 1e3})
    for line in sys.stdin:
        request = json.loads(line)
        if "slice" in request:
            answers.say(run_slice(session, request["slice"]))
        elif "steps" in request:
            session.record(request["steps"], request["folder"])
            answers.say({"ok": True})
        else:
            break
    os._exit(0)  # without the library's own goodbye, which takes time


def check(side, folder, meta):
    """Whether the side fetches what is recorded, in all steps."""
    import numpy as np

    with tempfile.TemporaryDirectory() as out:
        side._ask({"steps": meta["steps"], "folder": out})
        for k, fetch in enumerate(meta["fetches"]):
            want = np.load(folder / fetch["file"])
            got = np.load(f"{out}/out_{k}.npy").reshape(want.shape)
            np.testing.assert_allclose(got, want, 1e-3, 1e-5)


def measure(folder, threads, options):
    from peers.sides import Failed, Process, note

    meta = json.loads((folder / "meta.json").read_text())
    best, tried = None, {}
    for xla in (False, True):
        spec = {"folder": str(folder), "threads": threads, "xla": xla}
        # Without the flag, the level of the session's options counts for devices other than CPUs.
        env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3",
                   TF_XLA_FLAGS="--tf_xla_cpu_global_jit" if xla else "")
        try:
            peer = Process([sys.executable, __file__, "--worker", json.dumps(spec)], env, 180)
            check(peer, folder, meta)
            tried[xla] = min(peer.slice(options.seconds)["median_ms"] for _ in range(2))
        except Failed as e:
            note(f"  {folder.name} xla={xla}: {e}")
            continue
        if best is None or tried[xla] < tried[best[1]]:
            if best:
                best[0].close()
            best = (peer, xla)
        else:
            peer.close()
    ours = Process([str(options.heddle), str(folder), str(threads)], dict(os.environ))
    check(ours, folder, meta)
    times = {"heddle": [], "tensorflow": []}
    for _ in range(options.rounds):
        times["heddle"].append(ours.slice(options.seconds)["median_ms"])
        times["tensorflow"].append(best[0].slice(options.seconds)["median_ms"])
    ours.close()
    best[0].close()
    ms = {side: statistics.median(t) for side, t in times.items()}
    ratio = ms["tensorflow"] / ms["heddle"]
    without, with_ = (f"{tried[k]:.4f}" if k in tried else "-" for k in (False, True))
    print(f"{folder.name:20s} {threads}  heddle {ms['heddle']:8.4f} ms  tensorflow "
          f"{ms['tensorflow']:8.4f} ms{' (XLA)' if best[1] else '':6s}  tried {without}, XLA "
          f"{with_}  {ratio:6.2f} times", flush=True)
    return ratio


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(json.loads(sys.argv[2]))
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=Path)
    p.add_argument("--heddle", type=Path, required=True, help="heddle_bench_training")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.5, help="of a slice [0.5]")
    p.add_argument("--only", default="", help="comma-separated graphs")
    p.add_argument("--require", action="store_true")
    options = p.parse_args()
    only, holds = [n for n in options.only.split(",") if n], True
    folders = [f for f in sorted(options.folder.iterdir())
               if (f / "meta.json").exists() and (not only or f.name in only)]
    for threads in map(int, options.threads.split(",")):
        ratios = [measure(folder, threads, options) for folder in folders]
        mean = statistics.geometric_mean(ratios)
        print(f"{threads} threads: geometric mean {mean:.2f} times, least {min(ratios):.2f}")
        holds = holds and mean >= REQUIRED
    return 1 if options.require and not holds else 0


if __name__ == "__main__":
    sys.exit(main())
