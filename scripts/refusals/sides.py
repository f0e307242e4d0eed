"""What the sweeps of damaged models share: both sides' answers, and how often they agree."""
import collections
import re
import shutil
import subprocess
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

LIMIT_S = 20  # of one verdict


def verdicts(verdict, folders):
    """The verdict on each folder, also where one ends the process, or does not end."""
    answers, pending = {}, list(folders)
    while pending:
        pool = ProcessPoolExecutor(1)
        waiting = [(f, pool.submit(verdict, f)) for f in pending[:400]]
        for folder, answer in waiting:
            try:
                answers[folder] = answer.result(timeout=LIMIT_S)
            except BrokenProcessPool:
                answers[folder] = ("neither", "ends the process")
                break
            except TimeoutError:
                answers[folder] = ("neither", "does not end")
                break
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(cancel_futures=True)
        pending = [f for f in pending if f not in answers]
    return answers


def run(heddle, folders, work, *more):
    """What heddle says of each folder; None: it ran."""
    said = {}
    pending = list(folders)
    while pending:
        listing = work / "list"
        listing.write_text("".join(f"{f}\t{f / 'out'}\n" for f in pending))
        ran = subprocess.run([heddle, "run-cases", "--limit", "5", "--list", listing, *more],
                             check=False, capture_output=True, text=True, errors="replace")
        for line in (ran.stdout + ran.stderr).splitlines():
            if found := re.match(r"case (\d+): (.*)", line):
                said.setdefault(work / found[1], found[2])
        if ran.returncode >= 0:
            break
        done = [f for f in pending if f in said or any((f / "out").iterdir())]
        ended = next((f for f in pending if f not in done), None)
        if ended is None:
            break
        said[ended] = f"CRASH {ran.returncode}"
        pending = pending[pending.index(ended) + 1:]
    return {f: said.get(f, None if any((f / "out").iterdir()) else "said nothing")
            for f in folders}


def judge(options, sorts, origin, verdict, work, third=None):
    """Compares the answers on folders with changes of these sorts; prints, and gives the status.

    `third`: whether another implementation of the other side's system refuses a folder; what it
    refuses and the other side runs decides nothing.
    """
    answers = verdicts(verdict, sorts)
    said = run(options.heddle, sorts, work)
    counts, differ = collections.Counter(), collections.Counter()
    for folder, sort in sorts.items():
        verdict_is, why = answers[folder]
        refused = said[folder]
        crashed = refused is not None and refused.startswith("CRASH")
        if verdict_is == "right" and refused is not None and not crashed and third is not None:
            verdict_is = "neither" if third(folder) else "right"
        if verdict_is == "neither" and not crashed:
            counts["neither"] += 1
            continue
        counts[sort] += 1
        if not crashed and (verdict_is == "wrong") == (refused is not None):
            continue
        differ[sort] += 1
        print(f"{folder.name} {sort} {origin[folder]}\n"
              f"  other:  {' '.join(str(why).split())[:240] if why else 'runs'}\n"
              f"  heddle: {(refused or 'runs')[:300]}")
        if options.keep:
            shutil.copytree(folder, f"{options.keep}/{folder.name}", dirs_exist_ok=True)
    decided = sum(n for sort, n in counts.items() if sort != "neither")
    for sort in sorted(counts):
        if sort != "neither":
            print(f"{sort}: {counts[sort] - differ[sort]} of {counts[sort]} agree")
    share = 100 * (1 - sum(differ.values()) / max(1, decided))
    print(f"{decided} decided, {counts['neither']} not; {share:.2f} % agree")
    return 0 if share >= options.least else 1


def arguments(parser):
    """The options of a sweep."""
    add = parser.add_argument
    add("--heddle", required=True)
    add("--seed", type=int, default=1)
    add("--count", type=int, default=1000, help="changed models [1000]")
    add("--least", type=float, default=98.0, help="percent of agreement for exit status 0 [98]")
    add("--keep", help="folder for the models on which they disagree")
