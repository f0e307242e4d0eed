#!/usr/bin/env python3
"""How load and plan grow with the size of a program: of N operators in a chain, N readers of one
value, one operator of N operands, N functions, N branches, N constants, for N of 1e3, 1e4, 1e5.

  sweep_scale.py --heddle BIN [--kinds chain,readers] [--formats onnx] [--levels 0,2]

Prints a line for each: seconds until the program was loaded and until the first run was over, and
the resident memory. `x10` is how many times as long as for a tenth of N: about 10 where the time is
linear. Exit status 1 where a load or a first run of the largest N takes longer than --limit.

With --deadlines K the largest program is also loaded and run with K deadlines, evenly between none
and the time that it takes: the error must be told within --late ms of each."""

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def num(field, n):
    return varint(field << 3) + varint(n)


def msg(field, *parts):
    body = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


class Onnx:
    """Programs as ONNX models; `x` is the input."""
    name = "onnx"
    file = "model.onnx"

    @staticmethod
    def value(field, name):
        shape = msg(2, msg(1, num(1, 2)))
        return msg(field, msg(1, name), msg(2, msg(1, num(1, 1), shape)))

    @staticmethod
    def node(op, ins, outs, *more, field=1):
        return msg(field, *[msg(1, i) for i in ins], *[msg(2, o) for o in outs], msg(4, op), *more)

    def model(self, nodes, outputs, *more, constants=b""):
        graph = msg(7, *nodes, msg(2, "g"), constants, self.value(11, "x"),
                    *[self.value(12, o) for o in outputs])
        return num(1, 8) + graph + msg(8, num(2, 17)) + b"".join(more)

    def chain(self, n):
        names = ["x"] + [f"v{i}" for i in range(n)]
        return self.model([self.node("Relu", [a], [b]) for a, b in zip(names, names[1:])],
                          names[-1:])

    def readers(self, n):
        """Different ones, which are not one operator."""
        nodes, outs = [], [f"y{i}" for i in range(n)]
        for i, out in enumerate(outs):
            nodes.append(self.node("LeakyRelu", ["x"], [out], msg(
                5, msg(1, "alpha"), varint(2 << 3 | 5) + (0x3c000000 + i).to_bytes(4, "little"),
                num(20, 1))))
        return self.model(nodes + [self.node("Sum", outs, ["y"])], ["y"])

    def equal_readers(self, n):
        outs = [f"y{i}" for i in range(n)]
        return self.model([self.node("Abs", ["x"], [o]) for o in outs], outs)

    def outputs(self, n):
        outs = [f"v{i}" for i in range(n)]
        return self.model([self.node("Relu", [a], [b]) for a, b in zip(["x"] + outs, outs)], outs)

    def operands(self, n):
        return self.model([self.node("Sum", ["x"] * n, ["y"])], ["y"])

    def concat(self, n):
        axis = msg(5, msg(1, "axis"), num(3, 0), num(20, 2))
        return self.model([self.node("Concat", ["x"] * n, ["y"], axis)], ["y"])

    def functions(self, n):
        def function(i):
            return msg(25, msg(1, f"F{i}"), msg(4, "a"), msg(5, "b"),
                       self.node("Relu", ["a"], ["b"], field=7), msg(9, num(2, 17)),
                       msg(10, "own"))
        names = ["x"] + [f"v{i}" for i in range(n)]
        nodes = [self.node(f"F{i}", [names[i]], [names[i + 1]], msg(7, "own")) for i in range(n)]
        return self.model(nodes, names[-1:], *[function(i) for i in range(n)],
                          msg(8, msg(1, "own"), num(2, 1)))

    def branches(self, n):
        """Of a condition that is fed with the numbers."""
        nodes = [self.node("ReduceMax", ["x"], ["m"],
                           msg(5, msg(1, "keepdims"), num(3, 0), num(20, 2))),
                 self.node("Cast", ["m"], ["c"], msg(5, msg(1, "to"), num(3, 9), num(20, 2)))]
        names = ["x"] + [f"v{i}" for i in range(n)]
        for i in range(n):
            def branch(name, op):
                return msg(5, msg(1, name), num(20, 5), msg(
                    6, self.node(op, [names[i]], [f"{name}{i}"]), msg(2, "b"),
                    self.value(12, f"{name}{i}")))
            nodes.append(self.node("If", ["c"], [names[i + 1]], branch("then_branch", "Relu"),
                                   branch("else_branch", "Abs")))
        return self.model(nodes, names[-1:])

    def constants(self, n):
        def tensor(i):
            return msg(5, num(1, 1), num(2, 1), msg(8, f"w{i}"),
                       msg(9, (0x3c000000 + i).to_bytes(4, "little")))
        names = ["x"] + [f"v{i}" for i in range(n)]
        return self.model([self.node("Mul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(n)],
                          names[-1:], constants=b"".join(tensor(i) for i in range(n)))


class Tensorflow:
    name = "tensorflow"
    file = "graph.pb"
    TYPE = num(6, 1)

    def attr(self, name, *value):
        return msg(5, msg(1, name), msg(2, *value))

    def node(self, name, op, ins, *attrs, field=1):
        return msg(field, msg(1, name), msg(2, op), *[msg(3, i) for i in ins],
                   self.attr("T", self.TYPE), *attrs)

    def graph(self, *nodes):
        x = msg(1, msg(1, "x"), msg(2, "Placeholder"), self.attr("dtype", self.TYPE),
                self.attr("shape", msg(7, msg(2, num(1, 2)))))
        return x + b"".join(nodes)

    def chain(self, n):
        names = ["x"] + [f"v{i}" for i in range(n)]
        return self.graph(*[self.node(b, "Relu", [a]) for a, b in zip(names, names[1:])])

    def readers(self, n):
        outs = [f"y{i}" for i in range(n)]
        nodes = [self.node(o, "LeakyRelu", ["x"], self.attr(
            "alpha", varint(4 << 3 | 5) + (0x3c000000 + i).to_bytes(4, "little")))
            for i, o in enumerate(outs)]
        return self.graph(*nodes, self.node("y", "AddN", outs, self.attr("N", num(3, n))))

    def equal_readers(self, n):
        return self.graph(*[self.node(f"y{i}", "Abs", ["x"]) for i in range(n)])

    def operands(self, n):
        return self.graph(self.node("y", "AddN", ["x"] * n, self.attr("N", num(3, n))))

    def functions(self, n):
        names = ["x"] + [f"v{i}" for i in range(n)]
        types = self.attr("Tin", msg(1, num(6, 1))), self.attr("Tout", msg(1, num(6, 1)))
        nodes = [msg(1, msg(1, names[i + 1]), msg(2, "PartitionedCall"), msg(3, names[i]), *types,
                     self.attr("f", msg(10, msg(1, f"F{i}")))) for i in range(n)]
        library = []
        for i in range(n):
            argument = msg(2, msg(1, "a"), num(3, 1))
            result = msg(3, msg(1, "b"), num(3, 1))
            library.append(msg(1, msg(1, msg(1, f"F{i}"), argument, result),
                               self.node("r", "Relu", ["a"], field=3),
                               msg(4, msg(1, "b"), msg(2, "r:activations:0"))))
        return self.graph(*nodes, msg(2, *library))


KINDS = ("chain", "readers", "equal_readers", "outputs", "operands", "concat", "functions",
         "branches", "constants")


def command_of(heddle, model, level):
    return [heddle, "run", model, "--random-feed", "--shape", "x=2", "--out",
            str(Path(model).parent / "out"), "--opt", str(level), "--threads", "1"]


def told_late(heddle, model, level, seconds):
    """Ms from a deadline until the error is told, or None: it was done before."""
    begin = time.monotonic()
    told = None
    with subprocess.Popen([*command_of(heddle, model, level), "--deadline-ms",
                           str(1000 * seconds)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "DEADLINE_EXCEEDED" in line and told is None:
                told = time.monotonic()
                process.kill()  # what it holds is given back in its own time
    return None if told is None else 1000 * (told - begin - seconds)


def run(heddle, model, level, limit):
    """(seconds of load and of the first run, MB), or what went wrong."""
    command = command_of(heddle, model, level)
    try:
        made = subprocess.run(["/usr/bin/env", "time", "-f", "RSS %M", *command], text=True,
                              capture_output=True, timeout=8 * limit, check=False)
    except subprocess.TimeoutExpired:
        return "takes longer than %g s" % (8 * limit)
    text = made.stdout + made.stderr
    found = re.search(r"loaded in ([\d.]+) (ms|s), ran in ([\d.]+) (ms|s)", text)
    if made.returncode or not found:
        return text.strip().split("\n")[0][:150]
    seconds = [float(found[i]) / (1000 if found[i + 1] == "ms" else 1) for i in (1, 3)]
    memory = re.search(r"RSS (\d+)", text)
    return seconds[0], seconds[1], int(memory[1]) / 1024 if memory else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--formats", default="onnx,tensorflow,paddle,pir")
    parser.add_argument("--levels", default="0,2")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--limit", type=float, default=5, help="seconds")
    parser.add_argument("--deadlines", type=int, default=0)
    parser.add_argument("--late", type=float, default=50, help="ms")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    slow = 0
    with tempfile.TemporaryDirectory() as temp:
        for kind in options.kinds.split(","):
            for form in options.formats.split(","):
                maker = {"tensorflow": Tensorflow}.get(form, Onnx)()
                if not hasattr(maker, kind):
                    continue
                for level in options.levels.split(","):
                    last = None
                    for n in sizes:
                        folder = Path(temp) / f"{kind}_{form}_{n}"
                        folder.mkdir(exist_ok=True)
                        model = folder / maker.file
                        if not model.exists():
                            model.write_bytes(getattr(maker, kind)(n))
                        if form in ("paddle", "pir"):
                            made = subprocess.run(
                                [options.heddle, "convert", str(model), "--to", form, "-o",
                                 str(folder / form)], capture_output=True, text=True, check=False,
                                timeout=20 * options.limit)
                            if made.returncode:
                                print(f"{kind:14}{form:11}{n:>7}  {made.stderr.strip()[:120]}")
                                break
                            model = folder / form
                        found = run(options.heddle, str(model), level, options.limit)
                        if isinstance(found, str):
                            print(f"{kind:14}{form:11}level {level} {n:>7}  {found}", flush=True)
                            slow += 1
                            break
                        load, first, memory = found
                        growth = ""
                        if last:
                            growth = "x%.0f, x%.0f" % (load / max(last[0], 1e-3),
                                                       first / max(last[1], 1e-3))
                        late = max(load, first) > options.limit
                        slow += late
                        print(f"{kind:14}{form:11}level {level} {n:>7}  load {load:8.3f} s  "
                              f"first run {first:8.3f} s  {memory:6.0f} MB  {growth}"
                              f"{'  SLOW' * late}", flush=True)
                        last = found
                        if n == sizes[-1] and options.deadlines:
                            late = [told_late(options.heddle, str(model), level,
                                              (load + first) * (k + 0.5) / options.deadlines)
                                    for k in range(options.deadlines)]
                            late = [ms for ms in late if ms is not None]
                            worst = max(late, default=0)
                            slow += worst > options.late
                            print(f"{'':34}{len(late)} of {options.deadlines} deadlines passed, "
                                  f"told {worst:.0f} ms later at most"
                                  f"{'  LATE' * (worst > options.late)}", flush=True)
                        if load + first > 4 * options.limit:
                            break
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
