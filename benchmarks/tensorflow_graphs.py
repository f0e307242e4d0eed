#!/usr/bin/env python3
"""Inference graphs of TensorFlow on heddle and on TensorFlow itself, in one interleaved run.

  python3 -m venv .venv && .venv/bin/pip install numpy tensorflow-cpu
  .venv/bin/python benchmarks/tensorflow_graphs.py FOLDER --heddle build/release/heddle

FOLDER has a folder per graph with meta.json, which names the model, its inputs (.npy files) and its
fetches. TensorFlow runs a graph as a ConcreteFunction, without XLA and with it; the faster one
takes part in the rounds. Both sides hold the model in a process that sleeps while the other runs.
Outputs are compared before anything is timed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE / "peers"))


def worker(spec):
    """A process with one graph in TensorFlow; answers as peers/inference_worker.py does."""
    import time

    import numpy as np
    from inference_worker import run_slice
    from talk import Answers

    answers = Answers()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(spec["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(spec["threads"])

    class Engine:
        def __init__(self):
            arrays = {n: np.load(f) for n, f in spec["feeds"].items()}
            if spec["saved_model"]:
                loaded = tf.saved_model.load(spec["model"])
                call = loaded.signatures[spec["signature"]]
                self.keep, self.names = loaded, spec["fetches"]
                self.feeds = {n: tf.constant(a) for n, a in arrays.items()}
                function = lambda **feeds: call(**feeds)
                self.call = (tf.function(function, jit_compile=True) if spec["xla"] else call)
                self.run = lambda: self.finish(self.call(**self.feeds))
                return
            graph = tf.compat.v1.GraphDef()
            graph.ParseFromString(Path(spec["model"]).read_bytes())
            with_port = lambda n: n if ":" in n else n + ":0"
            wrapped = tf.compat.v1.wrap_function(
                lambda: tf.compat.v1.import_graph_def(graph, name=""), [])
            feeds = list(arrays)
            pruned = wrapped.prune([wrapped.graph.get_tensor_by_name(with_port(n)) for n in feeds],
                                   [wrapped.graph.get_tensor_by_name(with_port(n))
                                    for n in spec["fetches"]])
            self.call = tf.function(pruned, jit_compile=True) if spec["xla"] else pruned
            self.names, self.feeds = None, [tf.constant(arrays[n]) for n in feeds]
            self.run = lambda: self.finish(self.call(*self.feeds))

        def finish(self, out):
            if self.names is not None:
                out = [out[n] for n in self.names]
            elif not isinstance(out, (list, tuple)):
                out = [out]
            self.out = [o.numpy() for o in out]

        def outputs(self):
            return self.out

    start = time.perf_counter()
    engine = Engine()
    engine.run()
    answers.say({"version": tf.__version__, "start_ms": (time.perf_counter() - start) * 1e3})
    answers.serve(engine, run_slice)


def cases(folder, only):
    for path in sorted(folder.iterdir()):
        if not (path / "meta.json").exists() or (only and path.name not in only):
            continue
        meta = json.loads((path / "meta.json").read_text())
        case = meta["cases"][0]
        model = path / meta["model"] if "model" in meta else None
        if meta.get("stateful") or model is None or not model.exists():
            continue
        yield {"name": path.name, "model": str(model),
               "saved_model": meta["format"] == "saved_model",
               "signature": case.get("signature") or "serving_default",
               "feeds": {n: str(path / case["dir"] / v["file"])
                         for n, v in case["inputs"].items()},
               "fetches": [o["fetch"] for o in case["outputs"]]}


def measure(case, threads, options):
    import numpy as np
    from peers.sides import Failed, Process, note

    command = [str(options.heddle), "bench", case["model"], "--threads", str(threads)]
    for name, file in case["feeds"].items():
        command += ["--feed", f"{name}={file}"]
    for name in case["fetches"]:
        command += ["--fetch", name]
    if case["saved_model"]:
        command += ["--signature", case["signature"]]
    best = None
    with tempfile.TemporaryDirectory() as folder:
        run = [str(options.heddle), "run", *command[2:], "--out", folder]
        subprocess.run(run, check=True, capture_output=True)
        for xla in (False, True):
            spec = {**case, "threads": threads, "xla": xla}
            try:
                peer = Process([sys.executable, __file__, "--worker", json.dumps(spec)],
                               dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"), 180)
                time = peer.slice(options.seconds)["median_ms"]
            except Failed as e:
                note(f"  {case['name']} xla={xla}: {e}")
                continue
            if not xla:
                theirs = Path(folder) / "theirs"
                theirs.mkdir()
                peer._ask({"outputs": str(theirs)})
                for k in range(len(case["fetches"])):
                    ours, want = (np.load(p / f"out_{k}.npy") for p in (Path(folder), theirs))
                    np.testing.assert_allclose(ours, want, 1e-3, 1e-3)
            if best is None or time < best[0]:
                if best:
                    best[1].close()
                best = (time, peer, xla)
            else:
                peer.close()
    ours = Process([*command, "--on-request"], dict(os.environ))
    times = {"heddle": [], "tensorflow": []}
    for _ in range(options.rounds):
        times["heddle"].append(ours.slice(options.seconds)["median_ms"])
        times["tensorflow"].append(best[1].slice(options.seconds)["median_ms"])
    ours.close()
    best[1].close()
    ms = {side: statistics.median(t) for side, t in times.items()}
    print(f"{case['name']:24s} {threads}  heddle {ms['heddle']:9.4f}  tensorflow "
          f"{ms['tensorflow']:9.4f}{' (XLA)' if best[2] else '':6s}  ratio "
          f"{ms['heddle'] / ms['tensorflow']:.3f}", flush=True)
    return ms["heddle"] / ms["tensorflow"]


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(json.loads(sys.argv[2]))
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=Path)
    p.add_argument("--heddle", type=Path, required=True)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--only", default="", help="comma-separated graphs")
    options = p.parse_args()
    only = [n for n in options.only.split(",") if n]
    for threads in map(int, options.threads.split(",")):
        ratios = []
        for case in cases(options.folder, only):
            try:
                ratios.append(measure(case, threads, options))
            except (Exception, subprocess.CalledProcessError) as e:
                print(f"{case['name']}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
        if ratios:
            print(f"{threads} threads: geometric mean {statistics.geometric_mean(ratios):.3f}, "
                  f"most {max(ratios):.3f}")


if __name__ == "__main__":
    main()
