"""The results as a page of Markdown."""

from scheduling.results import BODIES, MEAN_TO_BEST_PEER


def number(value):
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.3g}"


def label(contender, workers):
    """A number of workers is only named where it differs from the compared one."""
    engine, count = contender
    return engine if count == workers else f"{engine}/{count}"


def head(results, picture):
    host = results.host
    versions = {}
    for engine, version in results.versions.items():
        versions.setdefault(engine.split("_")[0], version)
    lines = [f"# Schedulers of static graphs on {host['cpu']}", "",
             f"{host['date']}; {host['cores']} cores ({host['isa']}, {host['cpu_detail']}), "
             f"{host['memory_gb']} GB; {host['system']}; compiler {results.compiler}; heddle "
             f"{host['heddle_commit']}; " + ", ".join(f"{k} {v}" for k, v in versions.items()) +
             f"; load average {host['load_at_start']:.1f} at the start, "
             f"{host['load_at_end']:.1f} at the end.", "",
             f"Nanoseconds per task on {results.workers} workers (`/1`: on one): the median of the "
             "repetitions. *ideal* is the least number of steps any schedule takes, each as long "
             "as a task of the plain loop in the same cell; its quotient with a time is the "
             "efficiency. What is measured, and how each engine is set up: "
             "[README](../scheduling/README.md).",
             ""]
    if host["load_at_start"] > 0.5 * host["cores"] or \
            host["load_at_end"] > max(host["cores"], results.workers) + 1:
        lines += ["**The machine was busy with other work**: these figures are of no use but to "
                  "see that everything runs.", ""]
    return lines + [f"![Time per task]({picture})", ""]


def means(results):
    lines = []
    for engine in results.own_engines():
        lines += [f"## {engine} ÷ best peer, geometric means", "",
                  "| body | cells | ratio | required | *ideal* ÷ best peer | largest cell |",
                  "|---|--:|--:|--:|--:|---|"]
        for body in BODIES:
            mean = results.mean_to_best_peer(body, engine)
            if mean is None:
                continue
            ratios = [(results.to_best_peer(c, engine), c.name) for c in results.cells
                      if c.body == body]
            ratios = [r for r in ratios if r[0] is not None]
            worst = max(ratios)
            lines.append(f"| {body} | {len(ratios)} | {mean:.3f} | ≤ {MEAN_TO_BEST_PEER[body]} | "
                         f"{results.mean_ideal_to_best_peer(body):.3f} | "
                         f"{worst[0]:.2f} ({worst[1]}) |")
        lines.append("")
    return lines


def table(results):
    engines = results.engines()
    own = results.own_engines()
    names = [label(e, results.workers) for e in engines]
    ratios = [f"{engine} ÷ best" for engine in own]
    lines = ["## All cells", "",
             "| " + " | ".join(["graph", "tasks", "body", "ideal", *names, "best peer", *ratios,
                                *(f"{engine} efficiency" for engine in own)]) + " |",
             "|---|--:|---|" + "--:|" * (1 + len(names)) + "---|" + "--:|" * (2 * len(own))]
    for cell in results.cells:
        ideal = cell.ideal_ns(results.workers)
        best = results.best_peer(cell, results.workers)
        row = [cell.graph, str(cell.size), cell.body, number(ideal)]
        for contender in engines:
            value = number(cell.ns(*contender))
            row.append(f"**{value}**" if best and contender == best[0] else value)
        row.append(label(best[0], results.workers) if best else "")
        for engine in own:
            ratio = results.to_best_peer(cell, engine)
            row.append(f"{ratio:.2f}" if ratio else "")
        for engine in own:
            time = cell.ns(engine, results.workers)
            row.append(f"{ideal / time:.2f}" if time else "")
        lines.append("| " + " | ".join(row) + " |")
    return lines + [""]


def required(verdicts):
    missed = [v for v in verdicts if not v["holds"]]
    lines = ["## Required ratios", "", f"{len(verdicts) - len(missed)} of {len(verdicts)} hold."]
    unmeasured = [v for v in missed if v["limit"] and v["ratio"] is None]
    for v in missed:
        if v["ratio"] is not None:
            lines.append(f"- not held: {v['what']}: {v['ratio']:.3g} > {v['limit']}")
        elif v["limit"] is None:
            lines.append(f"- not held: {v['what']}")
    if unmeasured:
        lines.append(f"- {len(unmeasured)} could not be measured, such as {unmeasured[0]['what']}")
    return lines + [""]


def markdown(results, verdicts, picture):
    return "\n".join(head(results, picture) + means(results) + required(verdicts) + table(results))
