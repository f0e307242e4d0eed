#!/usr/bin/env python3
"""Measures inference programs on heddle and on its peers (ONNX Runtime, OpenVINO and Paddle
Inference with oneDNN, float32 throughout) in one interleaved run:

  benchmarks/inference.py                         # every recorded program, on 1 and 2 threads
  benchmarks/inference.py --only resnet18,bert_tiny --threads 2 --rounds 3 --seconds 0.5
  benchmarks/inference.py --models my_models      # any folder of the same form

The peers are installed into build/peers-inference on the first call, which needs Python 3.11 or
3.12 and the network. Each engine's outputs are compared with the recorded ones before it is timed;
of each engine several settings are tried, and the fastest takes part in the rounds: a slice of time
to heddle, then one to each peer, whose process sleeps while the others run. Besides latency: load
and first run of a fresh process with its peak memory (of heddle also with --lean), and requests a
second with eight clients. With --fallback a column tells how fast heddle is without the primitives
library.

The tables are printed, and written with all rounds and a plot to benchmarks/results/inference-*.
"""

import argparse
import os
import sys
from pathlib import Path

from peers.environment import BUILD, ROOT, find_heddle, make_inference_environment

ENGINES = ["onnxruntime", "openvino", "paddle"]


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models",
                   help="folder of recorded models [shared/models beside the checkout]")
    p.add_argument("--heddle", help="the tool to measure [build/release/heddle, built when absent]")
    p.add_argument("--fallback", metavar="HEDDLE",
                   help="a second tool to measure, one built with -DHEDDLE_ONEDNN=OFF")
    p.add_argument("--python", help="a Python that has the peers, instead of build/peers-inference")
    p.add_argument("--threads", default="1,2", help="of each side, comma-separated [1,2]")
    p.add_argument("--rounds", type=int, default=5, help="[5]")
    p.add_argument("--seconds", type=float, default=0.5, help="of a slice [0.5]")
    p.add_argument("--only", help="comma-separated programs")
    p.add_argument("--skip", default="", help="comma-separated programs to leave out")
    p.add_argument("--all-cases", action="store_true",
                   help="every recorded case, not the first alone")
    p.add_argument("--engines", default=",".join(ENGINES), help="comma-separated peers [all three]")
    p.add_argument("--clients", type=int, default=8, help="threads that ask at once; 0 = not [8]")
    p.add_argument("--patience", type=float, default=600, metavar="S",
                   help="a peer that needs longer to load or to run a program once is left out of "
                        "it [600]")
    p.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results",
                   help="folder of the results [benchmarks/results]")
    options = p.parse_args()
    options.threads = [int(t) for t in options.threads.split(",")]
    options.engines = options.engines.split(",")
    if not options.models.is_dir():
        raise SystemExit(f"{options.models}: no such folder; --models says where the models are")
    if set(options.engines) - set(ENGINES):
        p.error(f"--engines: of {', '.join(ENGINES)}")
    return options


def enter_environment(options):
    """Goes on in the peers' environment: comparing outputs needs its numpy."""
    python = Path(options.python).absolute() if options.python else make_inference_environment()
    if os.environ.get("HEDDLE_PEERS_PYTHON") != str(python):
        os.environ["HEDDLE_PEERS_PYTHON"] = str(python)
        sys.stdout.flush()
        os.execv(python, [str(python), os.path.abspath(__file__), *sys.argv[1:]])
    return python


def main():
    options = parse()
    python = enter_environment(options)
    from peers import host, inference, inference_report, models
    from peers.onnx import Onnx
    from peers.sides import Failed, Heddle, note

    binary = find_heddle(options.heddle)
    names = models.inference_models(options.models)
    wanted = options.only.split(",") if options.only else names
    if set(wanted) - set(names):
        raise SystemExit(f"{options.models} has no {', '.join(set(wanted) - set(names))}")
    onnx, text = Onnx(python, BUILD / "peers-onnx"), ""
    results = {"host": host.host_facts(), "rows": [], "settings": {
        "threads": options.threads, "rounds": options.rounds, "seconds": options.seconds,
        "clients": options.clients, "patience_s": options.patience}}
    for name in wanted:
        if name in options.skip.split(","):
            continue
        cases = models.load_cases(options.models, name, BUILD / "peers-models")
        for case in cases if options.all_cases else cases[:1]:
            for threads in options.threads:
                try:
                    fallback = Heddle(options.fallback, threads) if options.fallback else None
                    results["rows"].append(inference.measure(case, Heddle(binary, threads),
                                                             fallback,
                                                             python, onnx, options, threads))
                except Failed as error:
                    note(f"{case.title}: {error}")
                    results["rows"].append({"program": name, "case": case.name, "threads": threads,
                                            "failed": str(error)})
        # After each program: nothing is lost when this is ended early.
        results["host"]["load_at_end"] = os.getloadavg()[0]
        text = inference_report.write(results, options.out,
                                      "inference-" + host.slug(results["host"]))
    print(text)


if __name__ == "__main__":
    main()
