"""The measurements: both sides in turn, round after round, so that drift hits both."""

import statistics

from peers.sides import Failed, Worker, note, settle

# Paddle Inference with oneDNN: what can be set about it. "shared" is the most favourable to it: the
# time then covers Predictor.run alone, while heddle's covers a run that returns outputs in memory
# of their own.
ONEDNN_SETTINGS = {
    "handles shared": {"border": "shared"},
    "handles shared, cache capacity 0": {"border": "shared", "cache": 0},
    "handles shared, cache capacity 10": {"border": "shared", "cache": 10},
    "handles shared, memory optim": {"border": "shared", "memory_optim": True},
    "handles copied": {"border": "copied"},
    "handles copied, memory optim": {"border": "copied", "memory_optim": True},
}
# For knowledge only: a setting without oneDNN is not what the required ratio is about.
PLAIN_SETTINGS = {"without oneDNN, handles shared": {"border": "shared", "onednn": False}}
FINALISTS = 2  # a single trial may mislead: so many settings stay for all rounds
BIG_BYTES = 100 << 20  # of parameters: not several copies of such a program at once


def median(rounds, *path):
    def value(r):
        for key in path:
            r = r[key]
        return r

    return statistics.median(value(r) for r in rounds)


def summary(ratios):
    return {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}


def _checked(comparison):
    return {"ok": comparison.ok, "worst": comparison.worst, "why": comparison.why[:3]}


def measure_start(case, heddle, python, options):
    """Plan build, peak memory and time per operator, each side in a fresh process every round."""
    note(f"{case.title}: start and dispatch")
    result = {"program": case.model, "case": case.name, "ops": case.ops,
              "heddle_outputs": _checked(heddle.check(case)), "rounds": []}
    for r in range(options.rounds):
        ours = heddle.bench(case, options.seconds)
        build_ms = ours.get("build_ms")
        if build_ms is None:
            build_ms = heddle.build_ms(case)
        with Worker(python, case, "executor", options.threads) as peer:
            if r == 0:
                result["peer_outputs"] = _checked(peer.check())
            times = peer.slice(options.seconds)
            facts = peer.facts
        result["peer"] = "paddle.static.Executor " + facts["version"]
        result["rounds"].append({
            "heddle": {"build_ms": build_ms, "load_ms": ours["load_ms"],
                       "first_ms": ours["first_ms"], "run_ms": ours["median_ms"],
                       "peak_mb": ours["rss_peak_mb"], "runs": ours["runs"],
                       "instructions": ours["instructions"]},
            "peer": {"load_ms": facts["load_ms"], "first_ms": facts["first_ms"],
                     "run_ms": times["median_ms"], "peak_mb": times["vmhwm_mb"],
                     "imported_mb": facts["imported_mb"], "runs": times["runs"]}})
        settle()
    rounds = result["rounds"]
    result["ratios"] = {
        "build": summary([x["heddle"]["build_ms"] / x["peer"]["first_ms"] for x in rounds]),
        "first_result": summary([(x["heddle"]["load_ms"] + x["heddle"]["first_ms"]) /
                                 (x["peer"]["load_ms"] + x["peer"]["first_ms"]) for x in rounds]),
        "memory": summary([x["heddle"]["peak_mb"] / x["peer"]["peak_mb"] for x in rounds]),
        "run": summary([x["heddle"]["run_ms"] / x["peer"]["run_ms"] for x in rounds]),
    }
    return result


def _choose_settings(case, python, options, result):
    """Workers with the fastest settings of the peer; those with the others are ended."""
    settings = dict(ONEDNN_SETTINGS)
    if case.param_bytes > BIG_BYTES or options.one_setting:
        settings = dict(list(settings.items())[:1])
    elif not options.quick:
        settings.update(PLAIN_SETTINGS)
    workers, tried = {}, {}
    try:
        for name, setting in settings.items():
            tried[name] = {"ms": []}
            try:
                workers[name] = Worker(python, case, "inference", options.threads, setting)
            except Failed as error:
                tried[name]["failed"] = str(error)
                note(f"  {name}: {error}")
        for _ in range(2 if len(workers) > 1 else 1):
            for name, worker in list(workers.items()):
                try:
                    tried[name]["ms"].append(worker.slice(options.seconds / 2)["median_ms"])
                    # After many runs: a setting that spoils its own inputs shows here.
                    tried[name]["outputs"] = _checked(worker.check())
                except Failed as error:
                    tried[name]["failed"] = str(error)
                    note(f"  {name}: {error}")
                    workers.pop(name).close()
                settle()
        result["peer_settings"] = tried
        usable = [n for n in workers if n not in PLAIN_SETTINGS and tried[n]["outputs"]["ok"]]
        if not usable:  # oneDNN may round differently: better such a peer than none, and say so
            usable = [n for n in workers if n not in PLAIN_SETTINGS and
                      tried[n]["outputs"]["worst"] < 1e-2]
        if not usable:
            raise Failed("no setting of Paddle Inference gives the recorded outputs")
        usable.sort(key=lambda n: min(tried[n]["ms"]))
        return {name: workers.pop(name) for name in usable[:FINALISTS]}
    finally:
        for worker in workers.values():
            worker.close()


def measure_latency(case, heddle, python, options, onnx=None):
    """Time of a run, heddle and Paddle Inference in turn."""
    note(f"{case.title}: latency")
    result = {"program": case.model, "case": case.name, "ops": case.ops, "rounds": [],
              "heddle_outputs": _checked(heddle.check(case))}
    peers = _choose_settings(case, python, options, result)
    finalists = list(peers)
    try:
        result["peer"] = "Paddle Inference " + peers[finalists[0]].facts["version"] + ", oneDNN"
        if onnx:
            _add_onnx(case, onnx, options, result, peers)
        for _ in range(options.rounds):
            ours = heddle.bench(case, options.seconds)
            row = {"heddle": {"run_ms": ours["median_ms"], "p90_ms": ours["p90_ms"],
                              "runs": ours["runs"], "peak_mb": ours["rss_peak_mb"],
                              "load_ms": ours["load_ms"], "first_ms": ours["first_ms"]}}
            for name, worker in peers.items():
                times = worker.slice(options.seconds)
                row[name] = {"run_ms": times["median_ms"], "p90_ms": times["p90_ms"],
                             "runs": times["runs"], "peak_mb": times["vmhwm_mb"]}
                settle()
            result["rounds"].append(row)
    finally:
        for worker in peers.values():
            worker.close()
    best = min(finalists, key=lambda n: median(result["rounds"], n, "run_ms"))
    result["peer_setting"] = best
    result["peer_outputs"] = result["peer_settings"][best]["outputs"]
    for row in result["rounds"]:
        row["peer"] = row[best]
    result["ratios"] = {"latency": summary(
        [r["heddle"]["run_ms"] / r["peer"]["run_ms"] for r in result["rounds"]])}
    if "onnxruntime" in peers:
        result["ratios"]["onnxruntime"] = summary(
            [r["heddle"]["run_ms"] / r["onnxruntime"]["run_ms"] for r in result["rounds"]])
    return result


def _add_onnx(case, onnx, options, result, peers):
    try:
        file = onnx.convert(case)
        worker = Worker(onnx.python, case, "onnxruntime", options.threads, {"onnx": str(file)})
        outputs = worker.check()
        result["onnxruntime_outputs"] = _checked(outputs)
        if outputs.ok:
            peers["onnxruntime"] = worker
        else:
            worker.close()
    except Failed as error:
        result["onnxruntime_outputs"] = {"ok": False, "why": [str(error)]}
