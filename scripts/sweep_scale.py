#!/usr/bin/env python3
"""How load, plan and memory grow with the size of a program: N operators in a chain, N readers of
one value, one operator of N operands, N functions, N branches, graphs in graphs N deep ... (the
kinds of scale/kinds.py), in every format, and made by hand in Python.

  sweep_scale.py --heddle BIN [--python P --pythonpath DIR] [--kinds chain,readers]
                 [--formats onnx,tensorflow,paddle,pir,built] [--levels 0,2] [--ways ""]

Prints a line for each size: seconds until the program was loaded (or made) and until the first run
was over, seconds of the processor for all of it, and the most resident memory. `x`: how many times
as long and as much as for the size before. At the end, of kinds with three sizes of one ratio
(--sizes 5000,10000,20000), the power of the size with which the processor's seconds grow, the
highest first; it follows from the differences, in which the start of a process does not count.
Exit status 1 where a load or a first run takes longer than --limit, by the clock and by the
processor, where it ends otherwise than well (or, for kinds of a depth, with an error that names the
bound), or where memory grows more than 1.5 times as fast as the size. Kinds that end early for one
size are not tried with larger ones."""

import argparse
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from scale import kinds, to_onnx, to_paddle, to_pir, to_tensorflow

FORMATS = {"onnx": to_onnx, "tensorflow": to_tensorflow, "paddle": to_paddle, "pir": to_pir}


class Measured:
    """What a process did: its status (None: ended after so many seconds of the processor), output,
    seconds of the processor, MB."""

    def __init__(self, command, limit, env=None):
        with tempfile.TemporaryFile() as out:
            most = (int(limit) + 1, int(limit) + 2)
            child = subprocess.Popen(command, stdout=out, stderr=out, env=env, preexec_fn=lambda:
                                     resource.setrlimit(resource.RLIMIT_CPU, most))
            ended, self.mb = (0, 0, None), 0.0
            while not ended[0]:
                # What getrusage says of memory has that of the process before exec in it.
                try:
                    status = Path(f"/proc/{child.pid}/status").read_text()
                    peak = re.search(r"VmHWM:\s+(\d+)", status)
                    if peak and (env or "Name:\tpython" not in status):
                        self.mb = max(self.mb, int(peak[1]) / 1024)
                except OSError:
                    pass
                time.sleep(0.02)
                ended = os.wait4(child.pid, os.WNOHANG)
            child.returncode = os.waitstatus_to_exitcode(ended[1])
            self.status = None if child.returncode == -signal.SIGXCPU else child.returncode
            self.user = ended[2].ru_utime + ended[2].ru_stime
            # The end, behind a line for each output.
            out.seek(max(0, out.seek(0, os.SEEK_END) - (1 << 20)))
            self.text = out.read().decode(errors="replace")


def seconds(number, unit):
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def power(sizes, values, least):
    """With which the values grow with the sizes, the last three; None where they do not grow by
    `least` or the sizes have no common ratio."""
    if len(sizes) < 3 or sizes[-1] * sizes[-3] != sizes[-2] ** 2:
        return None
    low, high = values[-2] - values[-3], values[-1] - values[-2]
    if high < least or low <= 0:
        return None
    return math.log(high / low) / math.log(sizes[-1] / sizes[-2])


class Sweep:
    def __init__(self, options, folder):
        self.options, self.folder, self.failed = options, folder, 0
        self.powers = []  # (power of seconds, power of memory, kind, format, level, seconds)

    def note_powers(self, kind, form, level, done):
        sizes, made = [n for n, _ in done], [m for _, m in done]
        if len(made) > 2:
            self.powers.append((power(sizes, [m.user for m in made], 0.03),
                                power(sizes, [m.mb for m in made], 3),
                                kind, form, level, made[-1].user))

    def print_powers(self):
        show = lambda p: "      " if p is None else f"n^{p:4.2f}"
        for time_power, memory_power, kind, form, level, used in sorted(
                self.powers, key=lambda p: -(p[0] or 0)):
            print(f"{kind:23}{form:11}level {level}  seconds {show(time_power)}  "
                  f"memory {show(memory_power)}  {used:7.2f} s")

    def measure(self, kind, form, level, n):
        o = self.options
        if form == "built":
            command = [o.python, "-m", "scale.built", kind, str(n), str(level)]
            path = os.pathsep.join([str(Path(__file__).parent), o.pythonpath or ""])
            return Measured(command, 4 * o.limit, {**os.environ, "PYTHONPATH": path})
        model = self.folder / f"{kind}_{form}_{n}"
        program = kinds.KINDS[kind](n)
        if not model.exists():
            files = FORMATS[form].write(program)
            if files is None:
                return None
            model.mkdir()
            for name, content in files.items():
                (model / name).write_bytes(content)
        shape = ["--shape", f"x={program.length}"] if program.feeds == ["x"] else []
        return Measured([o.heddle, "run", str(model / FORMATS[form].FILE), "--random-feed", *shape,
                         "--out", str(self.folder / "out"), "--opt", str(level), *o.ways.split()],
                        4 * o.limit)

    def series(self, kind, form, level):
        last, done = None, []
        for n in self.options.depths if kind in kinds.DEEP else self.options.sizes:
            made = self.measure(kind, form, level, n)
            if made is None:
                return
            head = f"{kind:23}{form:11}level {level} {n:>7}  "
            found = re.search(r"loaded in ([\d.]+) (us|ms|s), ran in ([\d.]+) (us|ms|s)", made.text)
            if made.status != 0 or not found:
                refused = kind in kinds.DEEP and made.status == 1 and "more than" in made.text
                self.failed += not refused
                text = made.text.strip().split("\n")[-1][:200]
                print(f"{head}{'refused' if refused else 'FAILS'} ({made.status}) after "
                      f"{made.user:.1f} s, {made.mb:.0f} MB: {text}", flush=True)
                if not refused:
                    return
                continue
            load, first = seconds(found[1], found[2]), seconds(found[3], found[4])
            late = min(load, made.user) > self.options.limit or \
                min(first, made.user) > self.options.limit
            growth = ""
            if last:
                times, memory = made.user / max(last.user, 0.02), made.mb / max(last.mb, 1)
                growth = f"x{times:.1f}, x{memory:.1f}"
                late = late or memory > 1.5 * max(1, n / last_n)
            self.failed += late
            print(f"{head}load {load:8.3f} s  first run {first:8.3f} s  cpu {made.user:7.2f} s  "
                  f"{made.mb:6.0f} MB  {growth}{'  SLOW' * late}", flush=True)
            last, last_n = made, n
            done.append((n, made))
            if load + first > 4 * self.options.limit:
                break
        self.note_powers(kind, form, level, done)


def main():
    numbers = lambda text: [int(part) for part in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--python", default=sys.executable, help="for programs made by hand")
    parser.add_argument("--pythonpath", help="where the package heddle is")
    parser.add_argument("--kinds", default=",".join(kinds.KINDS))
    parser.add_argument("--formats", default="onnx,tensorflow,paddle,pir")
    parser.add_argument("--levels", type=numbers, default=[0, 2])
    parser.add_argument("--sizes", type=numbers, default=[1000, 10000, 100000])
    parser.add_argument("--depths", type=numbers, default=[10, 30, 60, 101, 199, 1000, 10000])
    parser.add_argument("--ways", default="--threads 1", help="further options of heddle run")
    parser.add_argument("--limit", type=float, default=5, help="seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temp:
        sweep = Sweep(options, Path(temp))

        def all_of_them():
            for kind in options.kinds.split(","):
                for form in options.formats.split(","):
                    for level in options.levels:
                        sweep.series(kind, form, level)
            sweep.print_powers()
        # Graphs in graphs are written by recursion.
        sys.setrecursionlimit(1 << 20)
        threading.stack_size(1 << 30)
        thread = threading.Thread(target=all_of_them)
        thread.start()
        thread.join()
    return 1 if sweep.failed else 0


if __name__ == "__main__":
    sys.exit(main())
