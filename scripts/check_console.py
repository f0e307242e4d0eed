#!/usr/bin/env python3
"""Executes the console examples of a document and compares what they print with what stands there:
check_console.py --heddle TOOL DOCUMENT...

In a ```console block, `$ command` is followed by its output (stdout and stderr) and, unless it is
0, its exit status as [status]. All blocks of a document run in one scratch directory that holds
`digits`, a copy of examples/digits. Besides the shell's, three commands are there: `make-array FILE
DTYPE DIMS [VALUE]` writes an array of zeros or of that value, `as-nobody COMMAND` runs without the
rights of root (such examples are passed over where the tool itself could then not be read),
`ctrl-c-when PATTERN COMMAND` sends COMMAND a SIGINT once there is a file like PATTERN."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOBODY = 65534

MAKE_ARRAY = f"""#!{sys.executable}
import sys, numpy
dims, value = [int(d) for d in sys.argv[3].split(",")], float(sys.argv[4]) if sys.argv[4:] else 0
numpy.save(sys.argv[1], numpy.full(dims, value, sys.argv[2]))
"""
AS_NOBODY = f"""#!{sys.executable}
import os, sys
if os.getuid() == 0:
    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
os.execvp(sys.argv[1], sys.argv[1:])
"""
CTRL_C_WHEN = f"""#!{sys.executable}
import glob, signal, subprocess, sys, time
running = subprocess.Popen(sys.argv[2:])
while not glob.glob(sys.argv[1]) and running.poll() is None:
    time.sleep(0.02)
running.send_signal(signal.SIGINT)
status = running.wait()
sys.exit(status if status >= 0 else 128 - status)
"""


def examples(text):
    """(line number, command, expected output) of every example."""
    for block in re.finditer(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        line = text[:block.start(1)].count("\n") + 1
        command = None
        for part in block.group(1).splitlines(keepends=True):
            if part.startswith("$ "):
                if command:
                    yield command
                command = (line, part[2:].rstrip("\n"), "")
            else:
                command = (command[0], command[1], command[2] + part)
            line += 1
        if command:
            yield command


def scratch(heddle):
    folder = Path(tempfile.mkdtemp(prefix="heddle_console_"))
    folder.chmod(0o777)
    shutil.copytree(ROOT / "examples" / "digits", folder / "digits")
    commands = folder / ".bin"
    commands.mkdir()
    (commands / "heddle").symlink_to(heddle)
    for name, text in (("make-array", MAKE_ARRAY), ("as-nobody", AS_NOBODY),
                       ("ctrl-c-when", CTRL_C_WHEN)):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    return folder


def run(command, folder):
    env = dict(os.environ, PATH=f"{folder / '.bin'}:{os.environ['PATH']}")
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout + (f"[{done.returncode}]\n" if done.returncode else "")


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--heddle", type=Path, required=True)
    p.add_argument("documents", nargs="+", type=Path)
    options = p.parse_args()
    count = wrong = 0
    for document in options.documents:
        folder = scratch(options.heddle.resolve())
        try:
            nobody_can = run("as-nobody heddle --version", folder).startswith("heddle ")
            for line, command, expected in examples(document.read_text()):
                if command.startswith("as-nobody") and not nobody_can:
                    print(f"{document}:{line}: passed over: nobody may not read the tool")
                    continue
                got = run(command, folder)
                count += 1
                if got != expected:
                    wrong += 1
                    print(f"{document}:{line}: $ {command}\n"
                          f"--- expected\n{expected}--- got\n{got}---")
        finally:
            shutil.rmtree(folder)
    print(f"{count} examples, {wrong} wrong")
    return 0 if count and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
