#!/usr/bin/env python3
"""What an operator costs besides its arithmetic: heddle, Paddle's executor and ONNX Runtime in one
interleaved run, on the two recorded programs of 2000 tiny operators.

  benchmarks/dispatch_peers.py [--rounds 7] [--seconds 1] [--python PYTHON] [--heddle HEDDLE]
  benchmarks/dispatch_peers.py --require    # the exit status says whether the required figures hold

heddle runs on one thread without optimising (--opt 0), so that every operator is an instruction. Of
ONNX Runtime several settings run, with and without its optimiser, which may remove operators; of
those with the recorded outputs the fastest counts. Programs are converted by paddle2onnx.

The environment that --python names needs paddlepaddle 2.6.2, paddle2onnx, onnxruntime and numpy;
without it build/peers-env is used, whose ONNX Runtime is an older one that goes with Paddle's
protobuf.

Prints a table, and writes it with all rounds to benchmarks/results/dispatch-<processor>.{md,json}.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

from peers.environment import BUILD, ROOT, find_heddle, make_environment

PROGRAMS = ["tiny_chain2000", "tiny_dag2000_s1"]
ONNX_SETTINGS = {
    f"{'optimised' if optimise else 'as it is'}, {threads} thread{'s' * (threads > 1)}":
    {"optimise": optimise, "threads": threads} for optimise in (True, False) for threads in (1, 2)}
MOST_NS = 80  # heddle, an operator
LEAST_GAIN = {"ONNX Runtime": 6, "Paddle executor": 40}  # times faster than they


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models",
                   help="folder of recorded models [shared/models beside the checkout]")
    p.add_argument("--heddle", help="the tool to measure [build/release/heddle, built when absent]")
    p.add_argument("--python", help="a Python that has the peers, instead of build/peers-env")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=1, help="of a slice [1]")
    p.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    p.add_argument("--require", action="store_true",
                   help="exit with 1 when a required figure does not hold")
    return p.parse_args()


def measure(case, heddle, python, onnx, options):
    from peers.sides import Worker, note, settle

    note(case.title)
    row = {"program": case.model, "ops": case.ops, "outputs": {}, "versions": {}, "rounds": []}
    row["outputs"]["heddle"] = heddle.check(case, ["--no-lean", "--opt", "0"]).ok
    file = onnx.convert(case)
    workers = {"Paddle executor": Worker(python, case, "executor", 1)}
    try:
        for name, setting in ONNX_SETTINGS.items():
            workers[f"ONNX Runtime, {name}"] = Worker(
                python, case, "onnxruntime", setting["threads"],
                {"onnx": str(file), "optimise": setting["optimise"]})
        for name, worker in workers.items():
            row["outputs"][name] = worker.check().ok
            row["versions"][name.split(",")[0]] = worker.facts["version"]
        for _ in range(options.rounds):
            times = {"heddle": heddle.bench(case, options.seconds,
                                            extra=["--opt", "0"])["median_ms"]}
            for name, worker in workers.items():
                times[name] = worker.slice(options.seconds)["median_ms"]
                settle()
            row["rounds"].append({k: ms * 1e6 / case.ops for k, ms in times.items()})
    finally:
        for worker in workers.values():
            worker.close()
    median = {name: statistics.median(r[name] for r in row["rounds"]) for name in row["rounds"][0]}
    sound = [n for n in median if n.startswith("ONNX") and row["outputs"][n]]
    row["ns_per_op"] = median
    row["best"] = {"Paddle executor": "Paddle executor"}
    if sound:
        row["best"]["ONNX Runtime"] = min(sound, key=median.get)
    row["gain"] = {peer: statistics.median(r[name] / r["heddle"] for r in row["rounds"])
                   for peer, name in row["best"].items()}
    row["holds"] = row["outputs"]["heddle"] and median["heddle"] <= MOST_NS and all(
        row["gain"].get(peer, 0) >= least for peer, least in LEAST_GAIN.items())
    return row


def markdown(results):
    host, settings = results["host"], results["settings"]
    versions = results["rows"][0]["versions"]
    lines = [
        f"# The price of an operator on {host['cpu']}", "",
        f"{host['date']}; {host['cores']} cores ({host['isa']}); {host['system']}; heddle "
        f"{host['heddle_commit']}; " + "; ".join(f"{k} {v}" for k, v in versions.items()) + ".",
        f"{settings['rounds']} rounds of {settings['seconds']} s a side, in turn; load average "
        f"{host['load_at_start']:.1f} at the start, {host['load_at_end']:.1f} at the end. Time of "
        "a run divided by the operators of the program, medians over rounds; the gain is the "
        "median of the rounds' ratios. heddle: one thread, not optimised.", "",
        "| program | side | ns per operator | times heddle's | outputs |", "|---|---|--:|--:|---|"]
    for row in results["rows"]:
        for name, ns in row["ns_per_op"].items():
            ratio = statistics.median(r[name] / r["heddle"] for r in row["rounds"])
            mark = " (best)" if name == row["best"].get("ONNX Runtime") else ""
            lines.append(f"| {row['program']} | {name}{mark} | {ns:.1f} | {ratio:.1f} | "
                         f"{'equal' if row['outputs'][name] else 'differ'} |")
    lines += ["", f"Required: at most {MOST_NS} ns, " + ", ".join(
        f"{least} times faster than {peer}" for peer, least in LEAST_GAIN.items()) + ". " +
        "; ".join(f"{r['program']}: {'holds' if r['holds'] else 'does not hold'}"
                  for r in results["rows"]) + ".", ""]
    return "\n".join(lines)


def main():
    options = parse()
    if not options.models.is_dir():
        raise SystemExit(f"{options.models}: no such folder; --models says where the recorded "
                         "models are")
    python = Path(options.python).absolute() if options.python else make_environment(True)
    if os.environ.get("HEDDLE_PEERS_PYTHON") != str(python):
        os.environ["HEDDLE_PEERS_PYTHON"] = str(python)
        sys.stdout.flush()
        os.execv(python, [str(python), os.path.abspath(__file__), *sys.argv[1:]])
    from peers import host, models
    from peers.onnx import Onnx
    from peers.sides import Heddle

    heddle = Heddle(find_heddle(options.heddle), 1)
    onnx = Onnx(python, BUILD / "peers-onnx")
    results = {"host": host.host_facts(),
               "settings": {"rounds": options.rounds, "seconds": options.seconds}}
    results["rows"] = [
        measure(models.load_cases(options.models, name, BUILD / "peers-models")[0], heddle, python,
                onnx, options) for name in PROGRAMS]
    results["host"]["load_at_end"] = os.getloadavg()[0]
    name = "dispatch-" + host.slug(results["host"])
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    (options.out / f"{name}.md").write_text(markdown(results))
    print(markdown(results))
    if options.require and not all(row["holds"] for row in results["rows"]):
        sys.exit(1)


if __name__ == "__main__":
    main()
