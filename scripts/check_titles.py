#!/usr/bin/env python3
"""Checks the messages of commits: a short title, and the why in the body of a large change.

A title has at most 72 characters; a commit that changes more than 250 lines has a body. Merges and
commits up to BASE, before the rule, are left alone. Exits with 1 where a message breaks a rule;
with 77 where there is no history that reaches back to BASE: in an archive or a shallow clone.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE = "e3a9810"
TITLE_CHARACTERS, LINES_WITHOUT_BODY = 72, 250


def git(*arguments):
    """What git prints; None where it fails or is not here."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True,
                              check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def commits():
    """(hash, title, body, changed lines) of each commit since BASE; None without such a history."""
    if git("merge-base", "--is-ancestor", BASE, "HEAD") is None:
        return None
    said = git("log", "--no-merges", "-M", "--numstat", "--format=%x01%h%x02%s%x02%b%x02",
               f"{BASE}..HEAD")
    found = []
    for entry in said.split("\x01")[1:]:
        commit, title, body, numbers = entry.split("\x02")
        changed = sum(int(count) for line in numbers.strip().splitlines()
                      for count in line.split("\t")[:2] if count != "-")  # "-": a binary file
        found.append((commit, title, body.strip(), changed))
    return found


def faults(title, body, changed):
    if len(title) > TITLE_CHARACTERS:
        yield f"{len(title)} characters, at most {TITLE_CHARACTERS}"
    if changed > LINES_WITHOUT_BODY and not body:
        yield f"{changed} changed lines and no body that says why"


def main():
    found = commits()
    if found is None:
        print(f"skipped: no history back to {BASE} here")
        return 77
    breaches = [f"{commit} {title}: {fault}" for commit, title, body, changed in found
                for fault in faults(title, body, changed)]
    print("\n".join(breaches + [f"{len(found)} commits, {len(breaches)} breaches"]))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
