#!/usr/bin/env python3
"""Runs the recorded operator cases through `heddle run-cases` and prints what passes, per operator.

The cases and the comparison (check_cases.py) lie outside the repository, in a folder given with
--shared. Without them, or without numpy, says so and exits with status 77, which ctest takes for
"skipped".

  scripts/opcase_table.py                                  every case of main.txt
  scripts/opcase_table.py --list core.txt --corpus captured
  scripts/opcase_table.py --ops 'conv2d.*' --kind grad --show 50
  scripts/opcase_table.py --folder build/cases_2          cases made with gen_op_cases.py
  scripts/opcase_table.py --min-pass-rate 0.6              status 1 when fewer pass

Exit status: 0, or 1 when the pass rate is below --min-pass-rate.
"""

import argparse
import collections
import concurrent.futures
import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
BATCH = 250


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--heddle", type=Path, default=ROOT / "build" / "release" / "heddle", help="the tool")
    add("--shared", type=Path, default=ROOT.parent / "shared", help="folder that holds opcases/")
    add("--unpacked", type=Path, default=ROOT / "build" / "opcases",
        help="where the archives are unpacked to")
    add("--corpus", action="append", default=[], help="archive stem [captured and generated]")
    add("--folder", type=Path, action="append", default=[],
        help="an unpacked corpus, such as gen_op_cases.py makes; instead of the archives")
    add("--list", action="append", default=[], help="list file of the corpora [main.txt]")
    add("--ops", default="", help="only cases whose operator matches this regular expression")
    add("--kind", default="", help="only this kind: forward, grad, control_flow, …")
    add("--threads", type=int, default=1, help="threads of each run [1]")
    add("--opt", type=int, default=0, help="optimisation level [0]")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="runs at the same time [all CPUs]")
    add("--limit", type=float, default=20, help="seconds for one case [20]")
    add("--lod", action="store_true", help="compare sequence offsets too")
    add("--show", type=int, default=0, help="print this many failures")
    add("--reasons", type=int, default=15, help="print this many most frequent reasons [15]")
    add("--report", type=Path, help="write corpus, case, verdict and reason, separated by tabs")
    add("--min-pass-rate", type=float, default=0.0, help="fail below this share of passed cases")
    return parser.parse_args()


def load_checker(path):
    spec = importlib.util.spec_from_file_location("check_cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unpack(archive, target):
    """The corpus of an archive, unpacked once into target/<stem>."""
    corpus = target / archive.name.split(".")[0]
    stamp = target / f"{corpus.name}.stamp"
    facts = f"{archive.stat().st_size} {int(archive.stat().st_mtime)}"
    if not stamp.exists() or stamp.read_text() != facts:
        print(f"unpacking {archive.name}", file=sys.stderr)
        shutil.rmtree(corpus, ignore_errors=True)
        target.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as tar:
            tar.extractall(target)
        stamp.write_text(facts)
    return corpus


def select(checker, corpora, args):
    """{case directory: its meta.json}, in the order of the list files."""
    metas = {}
    for corpus in corpora:
        lists = [name for name in args.list or ["main.txt"] if (corpus / name).exists()]
        for case in checker.read_list(str(corpus), lists) if lists else []:
            meta = json.loads(Path(case, "meta.json").read_text())
            if args.ops and not re.fullmatch(args.ops, meta["op"]):
                continue
            if args.kind and meta["kind"] != args.kind:
                continue
            metas[case] = meta
    return metas


def groups_of(metas):
    """Lists of at most BATCH cases of one corpus, within which names are unique."""
    by_corpus = collections.defaultdict(list)
    for case in metas:
        by_corpus[os.path.dirname(case)].append(case)
    for cases in by_corpus.values():
        for at in range(0, len(cases), BATCH):
            yield cases[at:at + BATCH]


def run_group(checker, cases, metas, args, work):
    """Runs some cases; {case: reason} of those that fail."""
    work.mkdir()
    log = work / "stderr.txt"
    command = shlex.join([str(args.heddle), "run-cases", "--threads", str(args.threads), "--opt",
                          str(args.opt), "--limit", str(args.limit)])
    checker_args = argparse.Namespace(
        batch=f"{command} --list {{list}} 2>>{shlex.quote(str(log))}",
        timeout=args.limit, tolerance=1.0, lod=args.lod)
    pairs = [(case, str(work / os.path.basename(case))) for case in cases]
    for _, out in pairs:
        os.mkdir(out)
    failed = checker.run_batch(pairs, checker_args, str(work), metas)
    said = spoken_reasons(log)
    for case, out in pairs:
        if case in failed:
            failed[case] = said.get(os.path.basename(case), failed[case])
        else:
            reason = checker.judge(case, out, metas[case], checker_args)
            if reason:
                failed[case] = reason
    shutil.rmtree(work, ignore_errors=True)
    return failed


def run(checker, metas, args, work):
    """Runs all cases; {case: reason} of those that fail."""
    failed, done = {}, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(run_group, checker, cases, metas, args, work / str(number))
                for number, cases in enumerate(groups_of(metas))]
        for job in concurrent.futures.as_completed(jobs):
            failed.update(job.result())
            done += 1
            if sys.stderr.isatty():
                print(f"\r{done} of {len(jobs)} batches", end="", file=sys.stderr, flush=True)
    return {case: failed[case] for case in metas if case in failed}


def spoken_reasons(log):
    """What the tool said of each case: the lines `case NAME: reason`."""
    said = {}
    for line in log.read_text(errors="replace").splitlines() if log.exists() else []:
        match = re.match(r"case (\S+): (.*)", line)
        if match:
            said[match.group(1)] = match.group(2)
    return said


def generalise(reason):
    """The reason without names and numbers, so that alike ones count as one."""
    reason = re.sub(r"out_\d+(_\d+)?\.npy \([^)]*\): ", "", reason)
    reason = re.sub(r"/\S*/program\.pb: ", "", reason)
    reason = re.sub(r"block \d+, op \d+ \((\w+)[^)]*\)", r"\1", reason)
    reason = re.sub(r"'[^']*'", "'…'", reason)
    if "differ, first at" in reason:
        return "values differ"
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", reason)[:110]


def print_table(metas, failed):
    by_op = collections.defaultdict(lambda: [0, 0])
    by_kind = collections.defaultdict(lambda: [0, 0])
    for case, meta in metas.items():
        for table, key in ((by_op, meta["op"]), (by_kind, meta["kind"])):
            table[key][case in failed] += 1
    for title, table in (("operator", by_op), ("kind", by_kind)):
        print(f"{title:<44} passed failed")
        for key, (good, bad) in sorted(table.items()):
            print(f"{key:<44} {good:6d} {bad:6d}{'  <--' if bad else ''}")
        print()
    whole = sum(1 for good, bad in by_op.values() if not bad)
    print(f"operators with all cases passed: {whole} of {len(by_op)}")


def print_failures(failed, args):
    if not failed:
        return
    print("\nmost frequent reasons")
    for reason, count in collections.Counter(map(generalise, failed.values())).most_common(
            args.reasons):
        print(f"{count:6d}  {reason}")
    for case, reason in list(failed.items())[:args.show]:
        print(f"FAIL {os.path.basename(case)}: {reason}")


def write_report(path, metas, failed):
    with open(path, "w", encoding="utf-8") as file:
        for case in metas:
            corpus = Path(case).parent.parent.name
            verdict = "fail" if case in failed else "pass"
            file.write("\t".join((corpus, os.path.basename(case), verdict,
                                  failed.get(case, "").replace("\n", " "))) + "\n")


def main():
    args = parse_arguments()
    folder = args.shared / "opcases"
    archives = sorted(a for a in folder.glob("*.tar.xz")
                      if not args.corpus or a.name.split(".")[0] in args.corpus)
    if not (archives or args.folder) or not (folder / "check_cases.py").exists():
        print(f"skipped: no operator cases in {folder}")
        return SKIPPED
    if importlib.util.find_spec("numpy") is None:
        print("skipped: this Python has no numpy")
        return SKIPPED
    if not args.heddle.exists():
        sys.exit(f"{args.heddle} does not exist: build it, or name it with --heddle")
    checker = load_checker(folder / "check_cases.py")
    corpora = args.folder or [unpack(archive, args.unpacked) for archive in archives]
    metas = select(checker, corpora, args)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="opcases_") as work:
        failed = run(checker, metas, args, Path(work))
    print_table(metas, failed)
    print_failures(failed, args)
    if args.report:
        write_report(args.report, metas, failed)
    passed = len(metas) - len(failed)
    print(f"\n{time.monotonic() - start:.0f} s")
    print(f"{passed} passed, {len(failed)} failed")
    return 0 if metas and passed >= args.min_pass_rate * len(metas) else 1


if __name__ == "__main__":
    sys.exit(main())
