#!/usr/bin/env python3
"""Models on heddle alone and with groups on an engine, in turns.

  benchmarks/engines.py --bench build/release/heddle_bench_engines \\
      --engine build/release/heddle_engine_openvino.so --option folder=SITE_PACKAGES/openvino \\
      --models ../shared/models --graphs ../shared/tf/graphs --onnx ONNX_FOLDER

--models has a folder per ProgramDesc (meta.json), --graphs one per TensorFlow graph (meta.json),
--onnx one per case (model.onnx, test_data_set_0/input_<k>.pb; needs the package onnx). Each model
runs in a process of its own: alone, with all groups on the engine (policy always), and with what
the policy measured takes. Rounds are interleaved; a figure is the least time of a run over all
rounds, since whatever else the machine does only adds to it. "noise" is how far the least times of
the rounds of heddle alone lie apart.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", type=Path, required=True, help="heddle_bench_engines")
    p.add_argument("--engine", type=Path, required=True)
    p.add_argument("--option", action="append", default=[], help="KEY=VALUE of the engine")
    p.add_argument("--models", type=Path)
    p.add_argument("--graphs", type=Path)
    p.add_argument("--onnx", type=Path)
    p.add_argument("--only", default="", help="comma-separated names")
    p.add_argument("--threads", type=int, default=1, help="[1]")
    p.add_argument("--rounds", type=int, default=7, help="[7]")
    p.add_argument("--ms", type=float, default=150, help="of a slice [150]")
    p.add_argument("--json", type=Path, help="write all figures there")
    return p.parse_args()


def of_descriptions(folder, work):
    """(name, format, model, parameters, feeds, fetches) of recorded ProgramDescs."""
    for meta in sorted(folder.glob("*/meta.json")):
        said = json.loads(meta.read_text())
        if said["kind"] != "inference":
            continue
        home, parameters = meta.parent, "-"
        if (home / "params_spec.json").exists() and not (home / "model.pdiparams").exists():
            made = work / home.name
            made.mkdir()
            for file in home.iterdir():
                if file.is_file():
                    (made / file.name).write_bytes(file.read_bytes())
            subprocess.run([sys.executable, folder / "tools/regen_params.py", made], check=True,
                           stdout=subprocess.DEVNULL)
            parameters = made / "model.pdiparams"
        feeds = {name: home / v["file"] for name, v in said["cases"][0]["inputs"].items()}
        yield home.name, "paddle", home, parameters, feeds, []


def of_graphs(folder, work):
    for meta in sorted(folder.glob("*/meta.json")):
        said, home = json.loads(meta.read_text()), meta.parent
        if said["kind"] != "inference" or not (home / said["model"]).exists():
            continue
        case = said["cases"][0]
        feeds = {name: home / v["file"] for name, v in case["inputs"].items()}
        yield (home.name, "tensorflow", home / said["model"], "-", feeds,
               [o["fetch"] for o in case["outputs"]])


def of_onnx(folder, work):
    import numpy as np
    import onnx
    from onnx import numpy_helper

    for model in sorted(folder.glob("*/model.onnx")):
        graph = onnx.load(model, load_external_data=False).graph
        filled, feeds = {t.name for t in graph.initializer}, {}
        for k, name in enumerate(i.name for i in graph.input if i.name not in filled):
            tensor = onnx.TensorProto()
            tensor.ParseFromString(
                (model.parent / "test_data_set_0" / f"input_{k}.pb").read_bytes())
            feeds[name] = work / f"{model.parent.name}_{k}.npy"
            np.save(feeds[name], numpy_helper.to_array(tensor))
        if all(np.load(f).dtype.kind in "fiub" for f in feeds.values()):
            yield model.parent.name, "onnx", model, "-", feeds, []


def measure(args, case):
    name, _, model, parameters, feeds, fetches = case
    command = [args.bench, model, parameters, args.engine, ",".join(args.option) or "-",
               args.threads, args.rounds, args.ms,
               ",".join(f"{n}={f}" for n, f in feeds.items()), ",".join(fetches) or "-"]
    done = subprocess.run([str(c) for c in command], text=True, timeout=1800,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        return {"error": (done.stderr.strip() or f"status {done.returncode}")[-300:]}
    return json.loads(done.stdout.splitlines()[-1])


def line(name, kind, r):
    if "error" in r:
        return f"| {name} | {kind} | {r['error'][:120]} |"
    best = {side: min(times) for side, times in r["ms"].items()}
    alone = r["ms"]["alone"]
    noise = sorted(alone)[len(alone) // 2] / min(alone)
    return (f"| {name} | {kind} | {r['always']['groups']} | "
            f"{r['always']['operators']}/{r['always']['of']} | {r['apart']['always']:.1e} | "
            f"{best['alone']:.3f} | {best['always'] / best['alone']:.2f} | "
            f"{r['measured']['groups']} | {best['measured'] / best['alone']:.3f} | {noise:.2f} |")


def main():
    args = parse()
    only = [n for n in args.only.split(",") if n]
    results = {}
    print("| model | format | groups | operators | apart | alone, ms | always | taken | measured | "
          "noise |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    with tempfile.TemporaryDirectory() as work:
        for folder, cases in ((args.models, of_descriptions), (args.onnx, of_onnx),
                              (args.graphs, of_graphs)):
            for case in cases(folder, Path(work)) if folder else ():
                if only and case[0] not in only:
                    continue
                results[case[0]] = measure(args, case)
                print(line(case[0], case[1], results[case[0]]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
