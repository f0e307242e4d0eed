"""The table and the JSON file."""

import json

from peers.measure import median

LIMITS = {  # the required ratios: heddle ÷ peer
    "build": ("plan build ÷ Paddle's first run", 1 / 20),
    "memory": ("peak memory of a fresh process", 1 / 5),
    "run": ("time of a run per operator", 1 / 10),
    "latency": ("latency ÷ Paddle Inference with oneDNN", 1.5),
}


def verdicts(results):
    """One line per required ratio. What could not be measured does not hold."""
    lines = []
    for group, keys in (("start", ("build", "memory", "run")), ("latency", ("latency",))):
        for r in results[group]:
            if not r.get("required", True):
                continue
            for key in keys:
                what, limit = LIMITS[key]
                ratio = r.get("ratios", {}).get(key, {}).get("median")
                sound = r.get("heddle_outputs", {}).get("ok", False)
                lines.append({"program": r["program"], "case": r["case"], "what": what,
                              "ratio": ratio, "limit": limit, "outputs_ok": sound,
                              "holds": ratio is not None and sound and ratio <= limit})
    return lines


def _ms(value):
    return f"{value:.3g}" if value < 99.95 else f"{value:.0f}"


def _number(ratio):
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.5f}".rstrip("0") if ratio < 0.001 else \
        f"{ratio:.4f}"


def _ratio(r):
    return f"{_number(r['median'])} ({_number(r['least'])}–{_number(r['most'])})"


def _outputs(r, side):
    checked = r.get(side + "_outputs")
    if checked is None:
        return "not checked"
    if checked["ok"]:
        return "equal"
    return "differ" + (f" by {checked['worst']:.1g}" if checked.get("worst") else "")


def _start_table(rows):
    lines = ["| program | figure | heddle | Paddle executor | heddle ÷ Paddle | required |",
             "|---|---|--:|--:|--:|--:|"]
    for r in rows:
        if "failed" in r:
            lines.append(f"| {r['program']} | not measured: {r['failed']} | | | | |")
            continue
        x, ratio = r["rounds"], r["ratios"]

        def both(figure, ours, theirs, key, limit=""):
            limit = f"≤ {LIMITS[key][1]:.2f}" if key in LIMITS else ""
            lines.append(f"| {r['program']} | {figure} | {ours} | {theirs} | {_ratio(ratio[key])} "
                         f"| {limit} |")

        both("plan build; first run, ms", _ms(median(x, "heddle", "build_ms")),
             _ms(median(x, "peer", "first_ms")), "build")
        both("files to first result, ms",
             _ms(median(x, "heddle", "load_ms") + median(x, "heddle", "first_ms")),
             _ms(median(x, "peer", "load_ms") + median(x, "peer", "first_ms")), "first_result")
        both("peak memory, MB", _ms(median(x, "heddle", "peak_mb")),
             f"{_ms(median(x, 'peer', 'peak_mb'))} ({_ms(median(x, 'peer', 'imported_mb'))} after "
             "import)", "memory")
        both("run per operator, ns", _ms(median(x, "heddle", "run_ms") * 1e6 / r["ops"]),
             _ms(median(x, "peer", "run_ms") * 1e6 / r["ops"]), "run")
        lines.append(f"| {r['program']} | outputs | {_outputs(r, 'heddle')} | "
                     f"{_outputs(r, 'peer')} | | |")
    return lines


def _latency_table(rows):
    onnx = any("onnxruntime" in r.get("ratios", {}) for r in rows)
    head = "| program | case | heddle, ms | Paddle Inference, ms | heddle ÷ Paddle | required | "
    head += "ONNX Runtime, ms | heddle ÷ ORT | " if onnx else ""
    lines = [head + "outputs (heddle; Paddle) | Paddle's setting |",
             "|---|---|--:|--:|--:|--:|" + ("--:|--:|" if onnx else "") + "---|---|"]
    for r in rows:
        limit = f"≤ {LIMITS['latency'][1]}" if r.get("required") else ""
        blank = " | |" if onnx else ""
        if "failed" in r:
            lines.append(f"| {r['program']} | {r['case']} | | | | {limit} |{blank} not measured: "
                         f"{r['failed']} | |")
            continue
        x = r["rounds"]
        if "onnxruntime" in r["ratios"]:
            blank = (f" {_ms(median(x, 'onnxruntime', 'run_ms'))} | "
                     f"{_ratio(r['ratios']['onnxruntime'])} |")
        lines.append(f"| {r['program']} | {r['case']} | {_ms(median(x, 'heddle', 'run_ms'))} | "
                     f"{_ms(median(x, 'peer', 'run_ms'))} | {_ratio(r['ratios']['latency'])} | "
                     f"{limit} |{blank} {_outputs(r, 'heddle')}; {_outputs(r, 'peer')} | "
                     f"{r['peer_setting']} |")
    failures = {}  # a peer must not look slow because its good settings did not work
    for r in rows:
        for name, tried in r.get("peer_settings", {}).items():
            why = tried.get("failed")
            if why is None and not tried.get("outputs", {}).get("ok", True):
                why = "outputs differ: " + "; ".join(tried["outputs"]["why"][:1])
            if why:
                failures.setdefault((name, why), []).append(f"{r['program']} {r['case']}")
    if failures:
        lines += ["", "Settings of Paddle Inference that were left out:"]
        lines += [f"- {name}: {why} ({', '.join(where)})" for (name, why), where in
                  failures.items()]
    for r in rows:
        checked = r.get("onnxruntime_outputs", {"ok": True})
        if not checked["ok"]:
            lines += ["", f"No ONNX Runtime for {r['program']} {r['case']}: " +
                      "; ".join(checked["why"][:1])]
    return lines


def markdown(results):
    host, settings = results["host"], results["settings"]
    lines = [f"# heddle and its peers on {host['cpu']}", "",
             f"{host['date']}; {host['cores']} cores ({host['isa']}, {host['cpu_detail']}), "
             f"{host['memory_gb']} GB; {host['system']}; heddle {host['heddle_commit']}; "
             + "; ".join(f"{k} {v}" for k, v in sorted(results["versions"].items()))
             + f"; Python {host['python']}.",
             f"{settings['threads']} threads a side; {settings['rounds']} rounds of "
             f"{settings['seconds']} s a side, in turn; load average {host['load_at_start']:.1f} "
             f"at the start, {host['load_at_end']:.1f} at the end. A figure is the median over "
             "rounds of a round's median; a ratio is the median of the rounds' ratios "
             "(least–most).", ""]
    # The measurement itself keeps about as many processors busy as it has threads.
    if host["load_at_start"] > 0.5 * host["cores"] or \
            host["load_at_end"] > max(host["cores"], settings["threads"]) + 1:
        lines += ["**The machine was busy with other work.** Peers whose threads meet at OpenMP "
                  "barriers suffer more from that than heddle: the ratios are too good, those of "
                  "small models by far.", ""]
    if results["start"]:
        lines += ["## Start and dispatch", "", "Every round starts a fresh process of each side. "
                  "Plan build: from the checked program to a plan ready to run; against it stands "
                  "Paddle's first `Executor.run`, in which it makes its plan.", ""]
        lines += _start_table(results["start"]) + [""]
    if results["latency"]:
        lines += ["## Latency", "", "Of Paddle Inference the fastest of several settings: all are "
                  "tried before, the two best take part in every round. With shared handles its "
                  "time leaves out the copying of inputs and outputs; heddle's always holds the "
                  "making of fresh outputs.", ""]
        lines += _latency_table(results["latency"]) + [""]
    required = results["required"]
    if required:
        kept = sum(v["holds"] for v in required)
        lines += ["## Required ratios", "", f"{kept} of {len(required)} hold."]
        lines += [f"- not held: {v['program']} {v['case']}, {v['what']}: " +
                  (f"{v['ratio']:.3g} > {v['limit']:.3g}" if v["ratio"] is not None and
                   v["outputs_ok"] else "no sound measurement")
                  for v in required if not v["holds"]]
        lines.append("")
    return "\n".join(lines)


def write(results, folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    text = markdown(results)
    (folder / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / f"{name}.md").write_text(text)
    return text
