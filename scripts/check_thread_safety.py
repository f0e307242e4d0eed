#!/usr/bin/env python3
"""Lets Clang check the thread-safety annotations (core/thread_annotations.h), but for kernels/.

Takes the commands of a configured build folder, whose generated headers must be there, and only
parses: nothing is built. Exits with 0 where every file keeps its annotations, 1 where one does not,
77 where there is no Clang.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"capi", "core", "device", "executor", "formats", "memory", "passes", "python",
           "ranks", "scheduler", "tools"}
COMPILERS = ("clang++-14", "clang++")
ANALYSIS = ["-fsyntax-only", "-Wthread-safety", "-Werror=thread-safety"]
PRECOMPILED = "core/precompiled.h"
WORTH_PRECOMPILING = 8  # sources of equal flags
# A field that is touched without its mutex: the analysis must find it.
BREACH = """#include "core/thread_annotations.h"
struct Counter {
  void Add() { ++count; }
  heddle::Mutex mutex;
  int count HEDDLE_GUARDED_BY(mutex) = 0;
};
"""


def kept(command):
    """The flags that decide how a file is read: not warnings, output, GCC's precompiled header."""
    words = iter(shlex.split(command)[1:])
    for word in words:
        if word in ("-o", "-c", "-include"):
            next(words)
        elif word != "-Winvalid-pch" and not word.startswith(("-W", "-O")):
            yield word


def sources(path):
    """The file of a command, or what a group of sources consists of (HEDDLE_UNITY)."""
    if path.parent.name != "Unity":
        return [path]
    return [Path(line.split('"')[1]).resolve()
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.startswith("#include")]


def commands(folder):
    """source -> flags, for each source of FOLDERS once."""
    found = {}
    for entry in json.loads((folder / "compile_commands.json").read_text(encoding="utf-8")):
        for path in sources(Path(entry["directory"], entry["file"]).resolve()):
            if ROOT not in path.parents or path.suffix != ".cc":
                continue
            name = path.relative_to(ROOT)
            if name.parts[0] in FOLDERS:
                found.setdefault(path, tuple(kept(entry["command"])))
    return found


def precompile(compiler, flags, folder):
    """Reads the headers that most sources include once: the flags that bring them in, or none."""
    header = Path(folder, f"{abs(hash(flags))}.pch")
    words = [compiler, *flags, "-x", "c++-header", PRECOMPILED, "-o", str(header)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    return () if done.returncode else ("-include-pch", str(header))


def analyse(compiler, arguments, text=None):
    """What the analysis says; empty where the file keeps its annotations."""
    done = subprocess.run([compiler, *ANALYSIS, *arguments], input=text, text=True, cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout or "failed without a word\n" if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release",
                        help="the configured build folder (build/release)")
    parser.add_argument("files", nargs="*", type=Path, help="only these sources")
    options = parser.parse_args()
    compiler = next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        print("skipped: no clang++ here (scripts/setup.sh --with-clang installs it)")
        return 77
    trial = ["-std=c++20", "-x", "c++", "-I.", "-"]
    if "requires holding mutex" not in analyse(compiler, trial, BREACH):
        print(f"{compiler} finds no fault in a field that is touched without its mutex")
        return 1
    wanted = commands(options.build.resolve())
    if options.files:
        only = {path.resolve() for path in options.files}
        wanted = {path: flags for path, flags in wanted.items() if path in only}
    failed = 0
    with (tempfile.TemporaryDirectory() as folder,
          concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool):
        common = [flags for flags, count in collections.Counter(wanted.values()).items()
                  if count >= WORTH_PRECOMPILING]
        headers = dict(zip(common, pool.map(lambda flags: precompile(compiler, flags, folder),
                                            common)))
        words = [[*headers.get(flags, ()), *flags, str(path)] for path, flags in wanted.items()]
        for said in pool.map(lambda arguments: analyse(compiler, arguments), words):
            if said:
                failed += 1
                print(said, end="")
    print(f"{len(wanted)} files, {failed} of them against their thread-safety annotations")
    return 1 if failed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
