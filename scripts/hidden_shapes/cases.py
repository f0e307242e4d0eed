"""A case with hidden shapes, and how many of them are run by one process.

A module of a format offers WAYS, a tuple of the names of its ways to hide shapes, and
cases(options, scratch), which writes rewritten cases below the folder `scratch` and yields Case
objects. A case that the format cannot hide in some way is not yielded for it.
"""

import dataclasses
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Callable, Optional

PLAIN = "plain"  # the way of a case whose shapes are not hidden
BATCH = 400


@dataclasses.dataclass
class Case:
    """One recorded case, hidden in one way."""

    name: str  # of the recorded case: the same in all ways
    way: str
    directory: Path  # for `heddle run-cases`; no other case's directory is called the same
    # Compares the outputs in a folder with the recorded ones: None, or what is wrong.
    judge: Callable[[Path], Optional[str]]
    out: Optional[Path] = None
    verdict: str = ""  # right, wrong, refused, crashed
    why: str = ""


def run_batch(command, cases):
    """Runs the cases in one call of the command and fills in their verdicts.

    {list} in the command is a file with a case's directory, a tab and the directory for its outputs
    in each line; the command says "case DIRECTORY: why" of those that it refuses.
    """
    with tempfile.TemporaryDirectory(prefix="hidden_shapes_") as folder:
        lines = []
        for k, case in enumerate(cases):
            case.out = Path(folder) / str(k)
            case.out.mkdir()
            lines.append(f"{case.directory}\t{case.out}\n")
        listed = Path(folder) / "cases.list"
        listed.write_text("".join(lines))
        done = subprocess.run([part.replace("{list}", str(listed)) for part in command],
                              capture_output=True, text=True, errors="replace", check=False)
        reported = {}
        for line in done.stderr.splitlines():
            if match := re.match(r"case (\S+): (.*)", line):
                reported[match[1]] = match[2]
        for case in cases:
            said = reported.get(case.directory.name)
            if said is not None:
                ended = said.startswith(("crashed", "not finished", "ended the process"))
                case.verdict, case.why = "crashed" if ended else "refused", said
                continue
            if done.returncode != 0:
                case.verdict, case.why = "crashed", f"the command ended with {done.returncode}"
                continue
            wrong = case.judge(case.out)
            case.verdict, case.why = ("wrong", wrong) if wrong else ("right", "")
