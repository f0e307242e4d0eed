"""Tables and a plot of benchmarks/inference.py's results."""

import json
import math
import statistics
from xml.sax.saxutils import escape

TITLES = {"heddle": "heddle", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO",
          "paddle": "Paddle Inference"}
NEAR_NS = 130  # see tools/round_trip.h
COLOURS = {"onnxruntime": "#4477aa", "openvino": "#ee6677", "paddle": "#228833"}


def ratio(row):
    peers = [ms for side, ms in row["ms"].items() if side != "heddle"]
    return row["ms"]["heddle"] / min(peers) if peers else None


def gain(row):
    """One thread's time over that of all, of each round, whose two slices saw the same machine."""
    return statistics.median(r["one_thread_ms"] / r["ms"]["heddle"] for r in row["rounds"])


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def number(value):
    if value is None:
        return "–"
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---|" + "--:|" * (len(header) - 1)]
    return lines + ["| " + " | ".join(r) + " |" for r in rows]


def measured(results, threads):
    return [r for r in results["rows"] if r["threads"] == threads and "failed" not in r]


def fallback_cell(row):
    """heddle without the primitives library; no part of the ratios."""
    found = row.get("fallback")
    if not found:
        return "–"
    return number(found["ms"]) + ("" if found["outputs_ok"] else " (wrong outputs)")


def near(rows):
    """In how many rounds the two processors shared a cache, before and after."""
    rounds = [r["round_trip_ns"] for row in rows for r in row["rounds"]]
    count = sum(max(ends) < NEAR_NS for ends in rounds)
    return ("Signal and answer between the first two processors took "
            f"{number(min(map(min, rounds)))} to {number(max(map(max, rounds)))} ns; less than "
            f"{NEAR_NS} before and after, as where they share a cache, in {count} of {len(rounds)} "
            "rounds. The last column: heddle's own time with one thread over that with these, the "
            "median of the rounds' ratios.")


def latency(results, threads, engines):
    rows = measured(results, threads)
    fallback = any("fallback" in r for r in rows)
    cells = []
    for r in rows:
        value = ratio(r)
        best = min((ms, side) for side, ms in r["ms"].items() if side != "heddle")[1] \
            if value else None
        wrong = "" if r["outputs_ok"] else " (wrong outputs)"
        cells.append([f"{r['program']} {r['case']}{wrong}",
                      number(r["ms"]["heddle"])] +
                     [fallback_cell(r)] * fallback +
                     [number(r["ms"].get(e)) for e in engines] +
                     [f"**{value:.2f}**" if value else "–", TITLES.get(best, "–")] +
                     [f"{gain(r):.2f}" for _ in [0] if threads > 1])
    ratios = [ratio(r) for r in rows if ratio(r) and r["outputs_ok"]]
    lines = table(["program, median ms", "heddle"] + ["without oneDNN"] * fallback +
                  [TITLES[e] for e in engines] + ["heddle ÷ best", "best peer"] +
                  ["one thread ÷ these"] * (threads > 1), cells)
    worst = max(ratios, default=float("nan"))
    above = [r for r in ratios if r > 1.05]
    lines += ["", near(rows)] if threads > 1 else []
    return lines + ["", f"Geometric mean of {len(ratios)} ratios: **{geomean(ratios):.3f}**; "
                    f"the largest is {worst:.2f}, {len(above)} above 1.05."]


def start(results, threads, engines):
    rows = [r for r in measured(results, threads) if "start" in r]
    sides = ["heddle lean", "heddle"]
    ratios, cells = {side: [] for side in sides}, []
    for r in rows:
        peers = {e: r["start"][e] for e in engines if e in r["start"]}
        row = [f"{r['program']} {r['case']}"]
        for e in [*sides, *engines]:
            ours = r["start"].get(e)
            row.append(f"{number(ours['ms'])} / {number(ours['mb'])}" if ours else "–")
        for side in sides:
            if not peers or side not in r["start"]:
                row.append("–")
                continue
            ratios[side].append([r["start"][side][key] / min(p[key] for p in peers.values())
                                 for key in ("ms", "mb")])
            row.append("{:.2f} / {:.2f}".format(*ratios[side][-1]))
        cells.append(row)
    lines = table(["program, ms / MB", *sides] + [TITLES[e] for e in engines] +
                  [f"{side} ÷ best" for side in sides], cells)
    for side in sides:
        for k, what in enumerate(("time", "memory")):
            values = [v[k] for v in ratios[side]]
            lines += ["", f"{side}, {what}: geometric mean **{geomean(values):.3f}**, largest "
                      f"{max(values, default=float('nan')):.2f}."]
    return lines


def clients(results, threads):
    rows = [r for r in measured(results, threads) if r.get("clients", {}).get("peers")]
    cells, gains = [], []
    for r in rows:
        ours, peers = r["clients"]["heddle"], r["clients"]["peers"]
        best = max(peers, key=lambda p: peers[p]["runs_per_s"])
        gains.append(ours["runs_per_s"] / peers[best]["runs_per_s"])
        cells.append([f"{r['program']} {r['case']}", number(ours["runs_per_s"]),
                      f"{ours['p99_ms'] / ours['median_ms']:.2f}",
                      number(peers[best]["runs_per_s"]),
                      f"{peers[best]['p99_ms'] / peers[best]['median_ms']:.2f}", best,
                      f"**{gains[-1]:.2f}**"])
    if not cells:
        return []
    return table(["program", "heddle requests/s", "p99 ÷ median", "best peer's", "p99 ÷ median",
                  "best peer", "heddle ÷ best"], cells) + \
        ["", f"Geometric mean {geomean(gains):.3f}, the smallest {min(gains):.2f}."]


def refused(results):
    """A line for each peer that a program could not be measured with, and why."""
    lines = []
    for r in results["rows"]:
        for engine, found in r.get("peers", {}).items():
            if "setting" in found:
                continue
            why = [t["failed"] for t in found["tried"].values() if "failed" in t]
            reason = why[0] if why else "no form of it that this reads"
            line = f"- {r['program']}: {TITLES[engine]}: {reason}"
            if line not in lines:
                lines.append(line)
    return lines


def markdown(results):
    host, settings = results["host"], results["settings"]
    engines = [e for e in COLOURS if any(e in r.get("ms", {}) for r in results["rows"])]
    versions = sorted({p["version"] for r in results["rows"] for p in r.get("peers", {}).values()
                       if "version" in p})
    lines = ["# Inference beside other engines", "",
             f"{host['date']}; {host['cpu']}; {host['cores']} cores ({host['isa']}, "
             f"{host['cpu_detail']}), {host['memory_gb']} GB; {host['system']}; heddle "
             f"{host['heddle_commit']}; {', '.join(versions)}; Python {host['python']}.",
             f"Float32; {settings['rounds']} rounds of {settings['seconds']} s a side, in turn; "
             f"load average {host['load_at_start']:.1f} at the start, {host['load_at_end']:.1f} at "
             "the end. A figure is the median over rounds of a round's median. Peers run from "
             "Python in their fastest setting, heddle from its command line tool; all are started "
             "once, and run in turn.", ""]
    if host["load_at_start"] > 0.5 * host["cores"]:
        lines += ["**The machine was busy with other work when this began.**", ""]
    for threads in settings["threads"]:
        name = f"{threads} thread" + ("s" if threads > 1 else "")
        lines += [f"## Latency, {name}", "", *latency(results, threads, engines), ""]
    threads = settings["threads"][-1]
    lines += [f"## Load and first answer, {threads} threads", "",
              "A fresh process: from opening the files to the first output, and its peak memory. "
              "Of the peers, importing the library is left out of the time, and what Python with "
              "numpy holds out of the memory; heddle's memory is the whole process. Of each peer "
              "the better of its default and a setting for quick loading, for time and memory "
              "apart; heddle also with `--lean`.",
              "", *start(results, threads, engines), ""]
    served = clients(results, threads)
    if served:
        lines += [f"## {settings['clients']} clients, {threads} threads", "", *served, ""]
    failed = [r for r in results["rows"] if "failed" in r]
    lines += [f"- {r['program']} {r['case']}, {r['threads']} threads: {r['failed']}"
              for r in failed]
    left_out = refused(results)
    lines += ["", "Not measured:", "", *left_out] * bool(left_out)
    return "\n".join(lines) + "\n"


def plot(results):
    """For each program and thread count a line of marks: each peer's time divided by heddle's."""
    rows = [r for r in results["rows"] if "failed" not in r and ratio(r)]
    left, width, step, top = 230, 560, 16, 60
    low, high = math.log2(0.25), math.log2(64)

    def x(value):
        return left + width * (min(max(math.log2(value), low), high) - low) / (high - low)

    height = top + step * len(rows) + 30
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 30}" '
             f'height="{height}" font-family="sans-serif" font-size="11">',
             '<rect width="100%" height="100%" fill="#fff"/>',
             f'<text x="{left}" y="18" font-weight="bold">time of the peer ÷ time of heddle '
             '(right of 1: heddle is faster)</text>']
    for k, (engine, colour) in enumerate(COLOURS.items()):
        parts.append(f'<circle cx="{left + 6 + 150 * k}" cy="34" r="4" fill="{colour}"/>'
                     f'<text x="{left + 15 + 150 * k}" y="38">{TITLES[engine]}</text>')
    for e in range(int(low), int(high) + 1):
        parts.append(f'<path d="M{x(2**e):.1f} {top - 6}V{height - 24}" stroke="'
                     f'{"#000" if e == 0 else "#ddd"}"/><text x="{x(2**e):.1f}" y="{height - 10}" '
                     f'text-anchor="middle">{2**e:g}</text>')
    for k, r in enumerate(rows):
        y = top + step * k + 6
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">'
                     f'{escape(r["program"])}, {r["threads"]} thr.</text>')
        parts += [f'<circle cx="{x(ms / r["ms"]["heddle"]):.1f}" cy="{y}" r="4" '
                  f'fill="{COLOURS[side]}" fill-opacity="0.8"/>'
                  for side, ms in r["ms"].items() if side != "heddle"]
    return "\n".join(parts + ["</svg>"]) + "\n"


def write(results, folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    text = markdown(results) + f"\n![ratios]({name}.svg)\n"
    (folder / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / f"{name}.md").write_text(text)
    (folder / f"{name}.svg").write_text(plot(results))
    return text
