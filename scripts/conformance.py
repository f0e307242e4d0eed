#!/usr/bin/env python3
"""Writes docs/conformance.md: which recorded operator cases pass, and why the others do not.

  scripts/conformance.py --heddle build/release/heddle
  scripts/conformance.py --seeds build/cases_2 --seeds build/cases_3   and cases of other seeds

Cases of other seeds are made with `gen_op_cases.py --out build/cases_2 --seed 2` (see the folder
given with --shared). The reasons stand in scripts/conformance_reasons.tsv: a regular expression for
the names of cases, a tab, the reason. A failing case without a reason makes the exit status 1.
What heddle refuses stands in scripts/conformance_refused.tsv.
"""

import argparse
import collections
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTS = {"main": "floats, integers and bools", "half": "float16 and bfloat16",
         "complex": "complex numbers", "random": "random numbers (shapes compared)",
         "onednn": "use_mkldnn set", "sparse": "COO and CSR tensors"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--heddle", type=Path, default=ROOT / "build" / "release" / "heddle")
    add("--shared", type=Path, default=ROOT.parent / "shared")
    add("--unpacked", type=Path, default=ROOT / "build" / "opcases")
    add("--seeds", type=Path, action="append", default=[], help="an unpacked corpus of a seed")
    add("--out", type=Path, default=ROOT / "docs" / "conformance.md")
    return parser.parse_args()


def run(args, report, *more):
    """[(corpus, case, passed, reason)]"""
    command = [sys.executable, str(ROOT / "scripts" / "opcase_table.py"), "--heddle",
               str(args.heddle), "--shared", str(args.shared), "--unpacked", str(args.unpacked),
               "--report", str(report), *map(str, more)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    rows = [line.split("\t") for line in report.read_text(encoding="utf-8").splitlines()]
    return [(corpus, case, verdict == "pass", reason) for corpus, case, verdict, reason in rows]


def read_reasons():
    reasons = []
    for line in (ROOT / "scripts" / "conformance_reasons.tsv").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern, reason = line.split("\t")
            reasons.append((re.compile(pattern), reason))
    return reasons


def reason_of(case, said, reasons):
    for pattern, reason in reasons:
        if pattern.fullmatch(case):
            return reason
    if said.startswith("UNIMPLEMENTED"):
        return "heddle does not have the operator."
    return None


def refused():
    """What Paddle takes and heddle does not, as a table."""
    lines = ["## What heddle refuses", "",
             "Paddle's CPU kernels take these cases; heddle returns UNIMPLEMENTED, or does what "
             "the table says.", "",
             "| operators | case | reason |", "|---|---|---|"]
    for line in (ROOT / "scripts" / "conformance_refused.tsv").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            operators, what, reason = line.split("\t")
            names = ", ".join(f"`{name}`" for name in operators.split(", "))
            lines.append(f"| {names} | {what} | {reason} |")
    return lines + [""]


def rate(rows):
    passed = sum(1 for row in rows if row[2])
    return f"{passed} | {len(rows)} | {100 * passed / max(1, len(rows)):.2f} %"


def table(title, groups):
    lines = [f"| {title} | passed | of | rate |", "|---|---:|---:|---:|"]
    return lines + [f"| {name} | {rate(rows)} |" for name, rows in groups] + [""]


def failures(rows, reasons, unexplained):
    """Failing cases under their reasons."""
    by_reason = collections.OrderedDict()
    for _, case, passed, said in rows:
        if passed:
            continue
        reason = reason_of(case, said, reasons)
        if reason is None:
            unexplained.append(case)
            reason = "Not explained: " + said[:160]
        by_reason.setdefault(reason, []).append(case)
    lines = []
    for reason, cases in by_reason.items():
        lines.append(f"- {reason}  \n  " + ", ".join(f"`{case}`" for case in sorted(cases)))
    return lines + [""]


def kinds(args, rows):
    """Rows by kind; the archives' cases only."""
    groups = collections.defaultdict(list)
    for row in rows:
        meta = json.loads((args.unpacked / row[0] / "cases" / row[1] / "meta.json").read_text())
        groups[meta["kind"]].append(row)
    return sorted(groups.items())


def main():
    args = parse_arguments()
    reasons, unexplained = read_reasons(), []
    lists, seeds = {}, {}
    with tempfile.TemporaryDirectory() as work:
        for name in LISTS:
            lists[name] = run(args, Path(work, name), "--list", f"{name}.txt")
        for folder in args.seeds:
            seeds[folder.name] = run(args, Path(work, "seed"), "--folder", folder)
    recorded = [row for rows in lists.values() for row in rows]
    lines = ["# Conformance", "",
             "Operator cases recorded under PaddlePaddle 2.6.2 on a CPU, and how many of them pass "
             "in heddle. A case passes if every output has the recorded shape and dtype, and the "
             "recorded values within the tolerance stored with the case. `captured` cases come "
             "from Paddle's own operator tests, `generated` cases from a table of recipes. Written "
             "by `scripts/conformance.py`.", ""]
    groups = [(f"{name}: {text}", lists[name]) for name, text in LISTS.items()]
    for corpus in ("captured", "generated"):
        groups.append((corpus, [row for row in recorded if row[0] == corpus]))
    lines += table("list", groups + [("all", recorded)])
    lines += table("kind", kinds(args, recorded))
    lines += ["## Cases that fail", ""] + failures(recorded, reasons, unexplained)
    if seeds:
        rows = [row for one in seeds.values() for row in one]
        lines += ["## Generated cases of other seeds", ""]
        lines += table("seed", list(seeds.items()) + [("all", rows)])
        lines += failures(rows, reasons, unexplained)
    lines += refused()
    args.out.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    for case in unexplained:
        print(f"no reason for {case}")
    print(f"{sum(row[2] for row in recorded)} of {len(recorded)} recorded cases pass")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
