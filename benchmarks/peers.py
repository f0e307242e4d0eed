#!/usr/bin/env python3
"""Measures heddle against its peers in one interleaved run:

  benchmarks/peers.py                 # the required comparisons, some 10 minutes
  benchmarks/peers.py --require       # the exit status says whether the required ratios hold
  benchmarks/peers.py --all           # and the latency of every other inference program
  benchmarks/peers.py --only ppocrv4_det --rounds 3 --seconds 1

The peers are those of Paddle 2.6.2: its executor (plan build, memory and time per operator, on
programs of 2000 tiny operators) and Paddle Inference with oneDNN (latency). They are installed into
build/peers-env on the first call, which needs Python 3.8 to 3.12 and the network. Outputs of both
sides are compared with the recorded ones before anything is timed. Each round gives a slice of time
to heddle, then to the peer; while one runs, the other sleeps or is not there.

The table is printed, and written with all rounds to benchmarks/results/<processor>.{md,json}.
"""

import argparse
import os
import sys
from pathlib import Path

from peers.environment import BUILD, ROOT, find_heddle, make_environment

TINY = ["tiny_chain2000", "tiny_dag2000_s1"]
LATENCY = ["ppocrv4_det", "ppocrv4_rec", "ppocrv2_cls"]


def parse():
    def positive(kind):
        def convert(text):
            if kind(text) <= 0:
                raise argparse.ArgumentTypeError("must be positive")
            return kind(text)

        return convert

    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models",
                   help="folder of recorded models [shared/models beside the checkout]")
    p.add_argument("--heddle", help="the tool to measure [build/release/heddle, built when absent]")
    p.add_argument("--python", help="a Python that has the peers, instead of build/peers-env")
    p.add_argument("--threads", type=positive(int), default=2, help="of each side [2]")
    p.add_argument("--rounds", type=positive(int), default=7, help="[7]")
    p.add_argument("--seconds", type=positive(float), default=2, help="of a slice [2]")
    p.add_argument("--only", help="comma-separated programs")
    p.add_argument("--all", action="store_true", help="latency of every inference program")
    p.add_argument("--quick", action="store_true", help="leave out the peer's plain settings")
    p.add_argument("--one-setting", action="store_true", help="do not look for the peer's best one")
    p.add_argument("--onnxruntime", action="store_true", help="ONNX Runtime as a further peer")
    p.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results",
                   help="folder of the results [benchmarks/results]")
    p.add_argument("--require", action="store_true",
                   help="exit with 1 when a required ratio does not hold")
    return p.parse_args()


def enter_environment(options):
    """Goes on in the peers' environment: comparing outputs needs its numpy."""
    python = Path(options.python).absolute() if options.python else \
        make_environment(options.onnxruntime)
    if os.environ.get("HEDDLE_PEERS_PYTHON") != str(python):
        os.environ["HEDDLE_PEERS_PYTHON"] = str(python)
        sys.stdout.flush()
        os.execv(python, [str(python), os.path.abspath(__file__), *sys.argv[1:]])
    return python


def run_all(options, python, heddle):
    from peers import host, measure, models, report
    from peers.onnx import Onnx
    from peers.sides import Failed, Heddle, note

    only = options.only.split(",") if options.only else None
    names = models.inference_models(options.models)
    for name in only or TINY + LATENCY:
        if name not in names:
            raise SystemExit(f"{options.models} has no inference program {name}")
    onnx = Onnx(python, BUILD / "peers-onnx") if options.onnxruntime else None
    side = Heddle(heddle, options.threads)
    results = {"host": host.host_facts(), "versions": {}, "start": [], "latency": [],
               "settings": {"threads": options.threads, "rounds": options.rounds,
                            "seconds": options.seconds}}

    def add(group, case, required, work):
        row = {"program": case.model, "case": case.name}
        try:
            row = work()
            results["versions"]["Paddle"] = row["peer"].split(",")[0].split()[-1]
        except Failed as error:
            note(f"{case.title}: {error}")
            row["failed"] = str(error)
        row["required"] = required
        results[group].append(row)

    def cases(name):
        return models.load_cases(options.models, name, BUILD / "peers-models")

    for name in TINY:
        if only is None or name in only:
            case = cases(name)[0]
            add("start", case, True, lambda: measure.measure_start(case, side, python, options))
    for name in LATENCY + ([n for n in names if n not in LATENCY] if options.all or only else []):
        if only is not None and (name not in only or (name in TINY and not options.all)):
            continue
        for case in cases(name):
            add("latency", case, name in LATENCY,
                lambda: measure.measure_latency(case, side, python, options, onnx))
    results["host"]["load_at_end"] = os.getloadavg()[0]
    results["required"] = report.verdicts(results)
    print(report.write(results, options.out, host.slug(results["host"])))
    return all(v["holds"] for v in results["required"])


def main():
    options = parse()
    if not options.models.is_dir():
        raise SystemExit(f"{options.models}: no such folder; --models says where the recorded "
                         "models are")
    python = enter_environment(options)
    holds = run_all(options, python, find_heddle(options.heddle))
    if options.require and not holds:
        sys.exit(1)


if __name__ == "__main__":
    main()
