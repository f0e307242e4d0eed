"""Inference programs on heddle and on three other engines, in turn: latency, first answer, requests
of many clients. benchmarks/inference.py is the command."""

import json
import os
import statistics
import time
from pathlib import Path

from peers.sides import PATIENCE_S, Failed, Heddle, HeddleProcess, Process, note, settle

WORKER = Path(__file__).with_name("inference_worker.py")
# What can be set about each engine. The best one by a trial takes part in the rounds.
SETTINGS = {
    "onnxruntime": {"": {}, "bound": {"bound": True}, "basic": {"basic": True},
                    "parallel": {"parallel": True}},
    "openvino": {"": {}, "static": {"static": True}},
    "paddle": {"": {"border": "shared"}, "cache 0": {"border": "shared", "cache": 0}},
}
CLIENT_SETTINGS = {
    "onnxruntime": {"": {}, "1 thread each": {"threads": 1}},
    "openvino": {"throughput": {"throughput": True}, "a stream a core": {"streams": 2}},
}
# For the first answer of a fresh process, besides the default.
START_SETTINGS = {
    "onnxruntime": {"not optimized": {"unoptimized": True}},
    "openvino": {"static": {"static": True}},
}
SLOW_LOAD_MS = 5000  # such a program is not loaded again in every round
ATTEMPTS = 5


class Engine(Process):
    def __init__(self, python, case, engine, model, threads, setting, patience=PATIENCE_S):
        spec = {"engine": engine, "model": str(model), "threads": setting.get("threads", threads),
                "params": str(case.params) if case.params else None, "setting": setting,
                "feeds": {k: str(v) for k, v in case.feeds.items()}}
        self.case = case
        super().__init__([python, WORKER, json.dumps(spec)],
                         dict(os.environ, GLOG_minloglevel="3", PYTHONWARNINGS="ignore",
                              OMP_NUM_THREADS=str(threads)), patience)

    def check(self):
        import tempfile

        from peers.models import compare

        with tempfile.TemporaryDirectory() as folder:
            self._ask({"outputs": folder})
            return compare(self.case, Path(folder))

    def clients(self, count, seconds):
        return self._ask({"clients": count, "slice": seconds})


def models_for(engine, case, onnx):
    """What the engine can read, the first choice first."""
    if engine == "paddle":
        return [case.program]
    try:
        converted = [onnx.convert(case)]
    except Failed as error:
        note(f"  {error}")
        converted = []
    # OpenVINO reads Paddle's own files where the parameters lie beside them.
    own = case.params and case.params == case.program.with_suffix(".pdiparams")
    return converted + ([case.program] if engine == "openvino" and own else [])


def sound(engine, row):
    """Its outputs are those recorded; for oneDNN's other rounding a little more is let pass."""
    return row.ok or (engine == "paddle" and row.worst < 1e-2)


def best_setting(case, engine, python, onnx, options, threads):
    """(worker with the fastest setting, what was tried). The worker is None when nothing works."""
    tried, best = {}, (None, None)
    for model in models_for(engine, case, onnx):
        for name, setting in SETTINGS[engine].items():
            if threads == 1 and setting.get("parallel"):
                continue
            title = f"{name or 'default'}, {model.suffix[1:]}" if engine == "openvino" else \
                name or "default"
            try:
                worker = Engine(python, case, engine, model, threads, setting, options.patience)
            except Failed as error:
                tried[title] = {"failed": str(error)}
                continue
            try:
                checked = worker.check()
                if not sound(engine, checked):
                    raise Failed("wrong outputs: " + "; ".join(checked.why[:2]))
                trial = min(worker.slice(options.seconds / 2)["median_ms"] for _ in range(2))
            except Failed as error:
                tried[title] = {"failed": str(error)}
                worker.close()
                continue
            tried[title] = {"ms": trial, "load_ms": worker.facts["load_ms"],
                            "first_ms": worker.facts["first_ms"],
                            "peak_mb": worker.facts["peak_mb"]}
            settle()
            if best[0] is None or trial < best[0]:
                if best[1]:
                    best[1].close()
                worker.title, worker.model, worker.setting = title, model, setting
                best = (trial, worker)
            else:
                worker.close()
    return best[1], tried


def measure(case, heddle, fallback, python, onnx, options, threads):
    note(f"{case.title}, {threads} thread{'s' * (threads > 1)}")
    checked = heddle.check(case)
    lean = heddle.check(case, ["--lean"])
    row = {"program": case.model, "case": case.name, "threads": threads, "ops": case.ops,
           "outputs_ok": checked.ok and lean.ok,
           "worst": max(checked.worst, lean.worst), "rounds": [], "peers": {}}
    if fallback:
        row["fallback"] = {"outputs_ok": fallback.check(case).ok, "rounds": []}
    workers, own = {}, {}
    try:
        own["heddle"] = HeddleProcess(heddle, case)
        if threads > 1:
            own["heddle, 1 thread"] = HeddleProcess(Heddle(heddle.binary, 1), case)
        if fallback:
            own["fallback"] = HeddleProcess(fallback, case)
        for engine in options.engines:
            worker, tried = best_setting(case, engine, python, onnx, options, threads)
            row["peers"][engine] = {"tried": tried}
            if worker:
                workers[engine] = worker
                row["peers"][engine].update(setting=worker.title, version=worker.facts["version"])
        for _ in range(options.rounds):
            times, before = {}, own["heddle"].round_trip_ns()
            for side, process in {**own, **workers}.items():
                times[side] = process.slice(options.seconds)["median_ms"]
                settle()
            if fallback:
                row["fallback"]["rounds"].append(times.pop("fallback"))
            one = times.pop("heddle, 1 thread", None)
            row["rounds"].append({"ms": times, "one_thread_ms": one,
                                  "round_trip_ns": [before, own["heddle"].round_trip_ns()]})
        row["start"] = first_answers(case, heddle, workers, python, threads, options)
        if options.clients and threads == max(options.threads):
            row["clients"] = many_clients(case, heddle, workers, python, threads, options)
    finally:
        for worker in [*own.values(), *workers.values()]:
            worker.close()
    row["ms"] = {side: statistics.median(r["ms"][side] for r in row["rounds"])
                 for side in ["heddle", *workers]}
    if threads > 1:
        row["one_thread_ms"] = statistics.median(r["one_thread_ms"] for r in row["rounds"])
    if fallback:
        row["fallback"]["ms"] = statistics.median(row["fallback"]["rounds"])
    return row


def first_answers(case, heddle, workers, python, threads, options):
    """Load and first run in a fresh process, and its peak memory: the median of some attempts, of
    heddle as it is and lean; of each peer, in time and in memory, its best setting for that."""
    found = {}

    def add(side, ms, mb):
        found.setdefault(side, []).append({"ms": ms, "mb": mb})

    for _ in range(ATTEMPTS):
        for side, extra in (("heddle", ()), ("heddle lean", ("--lean",))):
            ours = heddle.bench(case, 0, warmup=0, extra=extra)
            add(side, ours["load_ms"] + ours["first_ms"], ours["rss_first_mb"])
        for engine, worker in workers.items():
            for name, setting in {"": {}, **START_SETTINGS.get(engine, {})}.items():
                if worker.facts["load_ms"] > SLOW_LOAD_MS:
                    if not name:
                        add((engine, ""), worker.facts["load_ms"] + worker.facts["first_ms"],
                            worker.facts["peak_mb"])
                    continue
                try:
                    with Engine(python, case, engine, worker.model, threads,
                                worker.setting if engine == "paddle" else setting) as fresh:
                        add((engine, name), fresh.facts["load_ms"] + fresh.facts["first_ms"],
                            fresh.facts["peak_mb"])
                except Failed as error:
                    note(f"  {engine} {name}: {error}")
    answers = {}
    for side, rows in found.items():
        middle = {key: statistics.median(r[key] for r in rows) for key in rows[0]}
        known = answers.setdefault(side if isinstance(side, str) else side[0], middle)
        answers[side if isinstance(side, str) else side[0]] = {k: min(known[k], middle[k])
                                                               for k in middle}
    return answers


def many_clients(case, heddle, workers, python, threads, options):
    """Requests a second with so many clients; of each peer its best setting for that."""
    engines = {}
    try:
        engines["heddle"] = HeddleProcess(heddle, case)
        for engine, worker in workers.items():
            for name, setting in CLIENT_SETTINGS.get(engine, {}).items():
                if worker.facts["load_ms"] > SLOW_LOAD_MS:
                    continue
                try:
                    engines[f"{engine}, {name}" if name else engine] = \
                        Engine(python, case, engine, worker.model, threads, setting)
                except Failed as error:
                    note(f"  {engine} {name}: {error}")
        found = {name: [] for name in engines}
        for _ in range(options.rounds):
            for name, engine in engines.items():
                times = engine.clients(options.clients, options.seconds)
                found[name].append({k: times[k] for k in ("runs_per_s", "median_ms", "p99_ms")})
                settle()
    finally:
        for engine in engines.values():
            engine.close()
    middle = {name: {k: statistics.median(r[k] for r in rows) for k in rows[0]}
              for name, rows in found.items()}
    return {"heddle": middle.pop("heddle"), "peers": middle}
