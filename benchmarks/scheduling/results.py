"""Reads a report of heddle_bench_scheduling and says which required ratios hold."""

import json
import math
import statistics

GRAPHS = ["chain", "fan", "tree", "ladder", "random", "wavefront", "inception"]
BODIES = ["empty", "100ns", "1us", "10us"]

# The required ratios, on two workers unless it says otherwise.
ONE_WORKER_TO_FLAT = 1.3
CELL_TO_BEST_PEER = 1.05
MEAN_TO_BEST_PEER = {"empty": 0.10, "100ns": 0.55, "1us": 0.92, "10us": 0.97}
MANY_WORKERS_TO_ONE = 1.05


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


class Cell:
    """What was measured on one graph of one size with one body."""

    FACTS = ("tasks", "edges", "critical_path", "body_ns")


    def __init__(self, graph, size, body):
        self.graph, self.size, self.body = graph, size, body
        self.facts = {}
        self.least_steps = {}  # workers -> steps of one task's length that any execution takes
        self.rounds = {}  # (engine, workers) -> ns per task of every repetition
        self.build = {}  # (engine, workers) -> ns per task
        self.errors = {}  # (engine, workers) -> message

    @property
    def name(self):
        return f"{self.graph}/{self.size}/{self.body}"

    def ns(self, engine, workers):
        rounds = self.rounds.get((engine, workers))
        return statistics.median(rounds) if rounds and (engine, workers) not in self.errors \
            else None

    def ideal_ns(self, workers):
        """Per task: no fewer steps are possible, at what a step takes the plain loop in this very
        cell (the processor's clock is not that of the moment when a body was measured alone)."""
        step = self.ns("flat", 1) or self.facts["body_ns"]
        return step * self.least_steps[workers] / self.facts["tasks"]


class Results:
    def __init__(self, raw, host, all_engines_right=True):
        self.host = host
        self.all_engines_right = all_engines_right
        context = raw["context"]
        self.workers = int(context["workers"])
        self.compiler = context["compiler"]
        self.kinds = {key[5:]: value for key, value in context.items() if key.startswith("kind ")}
        self.versions = {key[8:]: value for key, value in context.items()
                         if key.startswith("version ")}
        cells = {}
        for run in raw["benchmarks"]:
            if run["run_type"] != "iteration":
                continue
            graph, size, body, engine, workers = run["run_name"].split("/")[:5]
            key = (GRAPHS.index(graph), int(size), BODIES.index(body))
            cell = cells.setdefault(key, Cell(graph, int(size), body))
            contender = (engine, int(workers))
            if run.get("error_occurred"):
                cell.errors[contender] = run.get("error_message", "")
                continue
            cell.facts = {fact: run[fact] for fact in Cell.FACTS}
            cell.least_steps[contender[1]] = int(run["least_steps"])
            cell.rounds.setdefault(contender, []).append(run["ns_per_task"])
            cell.build[contender] = run["build_ns_per_task"]
        self.cells = [cells[key] for key in sorted(cells)]

    def engines(self):
        """(engine, workers) that were measured anywhere: the floor, heddle, then the peers."""
        seen = {contender for cell in self.cells for contender in cell.rounds}
        order = list(self.kinds)
        kind = ["floor", "heddle", "peer"]
        return sorted(seen, key=lambda c: (kind.index(self.kinds[c[0]]), order.index(c[0]), c[1]))

    def best_peer(self, cell, workers):
        """((engine, workers), ns per task) of the fastest peer with as many workers, or None."""
        peers = [(contender, cell.ns(*contender)) for contender in cell.rounds
                 if self.kinds[contender[0]] == "peer" and contender[1] == workers]
        peers = [p for p in peers if p[1] is not None]
        return min(peers, key=lambda p: p[1]) if peers else None

    def to_best_peer(self, cell, engine="heddle"):
        """The ratio of that engine's time to the best peer's, or None."""
        best, own = self.best_peer(cell, self.workers), cell.ns(engine, self.workers)
        return own / best[1] if best and own else None

    def mean_to_best_peer(self, body, engine="heddle"):
        ratios = [self.to_best_peer(c, engine) for c in self.cells if c.body == body]
        ratios = [r for r in ratios if r is not None]
        return geometric_mean(ratios) if ratios else None

    def mean_ideal_to_best_peer(self, body):
        """What that mean would be if work were shared perfectly, at no cost."""
        ratios = []
        for cell in self.cells:
            best = self.best_peer(cell, self.workers)
            if cell.body == body and best:
                ratios.append(cell.ideal_ns(self.workers) / best[1])
        return geometric_mean(ratios) if ratios else None

    def own_engines(self):
        return [name for name, kind in self.kinds.items() if kind == "heddle"]

    def verdicts(self):
        """One entry for each required ratio; what was not measured does not hold."""
        found = [{"what": "every engine keeps the order and loses no task", "ratio": None,
                  "limit": None, "holds": self.all_engines_right and
                  not any(cell.errors for cell in self.cells)}]

        def add(what, own, other, limit):
            ratio = own / other if own and other else None
            found.append({"what": what, "ratio": ratio, "limit": limit,
                          "holds": ratio is not None and ratio <= limit})

        for engine in ["heddle"]:  # the bare scheduler; through a program it is for knowledge
            for cell in self.cells:
                one, many = cell.ns(engine, 1), cell.ns(engine, self.workers)
                best = self.best_peer(cell, self.workers)
                add(f"{cell.name}: {engine} on one worker ÷ flat loop", one, cell.ns("flat", 1),
                    ONE_WORKER_TO_FLAT)
                add(f"{cell.name}: {engine} ÷ best peer", many, best and best[1],
                    CELL_TO_BEST_PEER)
                add(f"{cell.name}: {engine} on {self.workers} workers ÷ on one", many, one,
                    MANY_WORKERS_TO_ONE)
            for body in BODIES:
                if any(cell.body == body for cell in self.cells):
                    add(f"{body}: {engine} ÷ best peer, geometric mean",
                        self.mean_to_best_peer(body, engine), 1, MEAN_TO_BEST_PEER[body])
        return found

    def to_json(self, verdicts):
        """One line for each cell, so that differences between two results can be read."""
        head = {"host": {**self.host, "compiler": self.compiler}, "workers": self.workers,
                "versions": self.versions, "kinds": self.kinds,
                "not_held": [v for v in verdicts if not v["holds"]]}
        lines = []
        for cell in self.cells:
            row = {"cell": cell.name, **cell.facts, "least_steps": cell.least_steps,
                   "ns_per_task": {}, "build_ns_per_task": {}}
            for (engine, workers), rounds in sorted(cell.rounds.items()):
                key = f"{engine}/{workers}"
                row["ns_per_task"][key] = [float(f"{ns:.4g}") for ns in rounds]
                row["build_ns_per_task"][key] = float(f"{cell.build[engine, workers]:.3g}")
            if cell.errors:
                row["errors"] = {f"{e}/{w}": text for (e, w), text in cell.errors.items()}
            lines.append("  " + json.dumps(row))
        cells = ",\n".join(lines)
        return json.dumps(head, indent=1)[:-2] + ',\n "cells": [\n' + cells + "\n ]\n}\n"
