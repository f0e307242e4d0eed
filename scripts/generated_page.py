"""A page of docs/ that is written from what the tool says, or checked against it."""

import argparse
import difflib
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(description, name, words, make):
    """The command line of such a script: docs/<name>.md is make(what `heddle <words>` says). With
    --check nothing is written, and the result is 1 when the page is another one."""
    page, script = ROOT / "docs" / f"{name}.md", f"scripts/{name}_doc.py"
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", type=Path, default=ROOT / "build" / "release" / "heddle")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    new = make(subprocess.run([str(args.heddle), *words], check=True, capture_output=True,
                              text=True).stdout)
    if not args.check:
        page.write_text(new, encoding="utf-8")
        return 0
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    if old == new:
        return 0
    changes = list(difflib.unified_diff(old.splitlines(), new.splitlines(), f"docs/{name}.md",
                                        "heddle " + " ".join(words), lineterm=""))
    print("\n".join(changes[:40]))
    print(f"docs/{name}.md is not up to date: run {script}")
    return 1
