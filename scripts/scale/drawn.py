"""Programs of many of several kinds at once, drawn from a seed: chains, values with many readers,
operators with many operands, values read in the opposite order, pieces, branches and loops in each
other, calls, variables that are written again. A program twice as large has the same parts, which
are twice as large, or twice as many."""

import random
import struct

from .graph import Graph, Program


def bits(number):
    return struct.unpack("<I", struct.pack("<f", number))[0]


class Drawn:
    """Makes a Program of about `n` operators. One or two of its parts are most of it."""

    def __init__(self, seed, n, rewrites, functions):
        """`rewrites`: names may be written again; `functions`: there may be some."""
        self.rng, self.key = random.Random(seed), str(seed)  # of the present part
        self.may = rewrites, functions
        self.again = []           # those that are: of the outermost graph
        self.count, self.weights, self.functions = 0, {}, {}
        self.graph = Graph()
        self.graph.add("positive", ["x"], "c")
        shares = [self.rng.random() ** 4 + 0.01 for _ in range(self.rng.randrange(2, 8))]
        values = ["x"]
        for k, share in enumerate(shares):
            size = max(2, int(n * share / sum(shares)))
            values.append(self.part(self.graph, values, size, 0, k))
        more = self.rng.sample(values[1:-1], self.rng.randrange(len(values) - 1))
        self.graph.outputs = [*dict.fromkeys([values[-1], *more])]

    def program(self):
        return Program(self.graph, weights=self.weights, functions=self.functions,
                       rewrites=bool(self.again))

    def name(self, stem="v"):
        self.count += 1
        return f"{stem}{self.count}"

    def different(self, g, source):
        return g.add("leaky", [source], self.name(), alpha=bits(self.rng.uniform(-0.9, 0.9)))

    def scaled(self, g, value, number):
        """So that no sum grows beyond what floats hold."""
        weight = self.name("w")
        self.weights[weight] = bits(number)
        return g.add("mul", [value, weight], self.name())

    def mean(self, g, values):
        return self.scaled(g, g.add("sum", values, self.name()), 1 / len(values))

    def chain(self, g, value, size):
        for _ in range(size):
            value = g.add(self.rng.choice(["relu", "abs"]), [value], self.name()) \
                if self.rng.randrange(4) else self.different(g, value)
        return self.scaled(g, value, self.rng.choice([-0.75, 0.5, 1.25]))

    def part(self, g, values, size, depth, number):
        """Adds some `size` operators that read `values`; the value that they make. `number`: among
        the parts inside the present one, each of which draws for itself."""
        outer = self.rng, self.key
        self.key = f"{self.key} {number}"
        self.rng = random.Random(self.key)
        ways = [self.long, self.readers, self.operands, self.crossed, self.pieces, self.towers]
        rewrites, functions = self.may
        if rewrites and depth == 0:
            ways.append(self.written_again)
        if depth < 3:
            ways += [self.branches, self.branches, self.loops, self.loops]
            ways += [self.calls] * functions
        made = self.rng.choice(ways)(g, values, size, depth)
        self.rng, self.key = outer
        return made

    def long(self, g, values, size, _):
        return self.chain(g, self.rng.choice(values), size)

    def readers(self, g, values, size, _):
        source = self.rng.choice(values)
        return self.mean(g, [self.different(g, source) for _ in range(size)])

    def operands(self, g, values, size, _):
        few = [self.different(g, self.rng.choice(values)) for _ in range(self.rng.randrange(1, 4))]
        return self.mean(g, [self.rng.choice(few) for _ in range(size)])

    def crossed(self, g, values, size, _):
        made, last = [self.rng.choice(values)], self.rng.choice(values)
        for _ in range(size // 3 + 1):
            made.append(self.different(g, made[-1]))
        for value in reversed(made):
            last = self.scaled(g, g.add("sum", [last, value], self.name()), 0.5)
        return last

    def pieces(self, g, values, size, _):
        count = max(2, size // 2)
        joined = g.add("concat", [self.rng.choice(values) for _ in range(count)], self.name())
        outs = [self.name("p") for _ in range(count)]
        g.add("split", [joined], outs)
        return self.mean(g, [self.different(g, o) for o in self.rng.sample(outs, (count + 1) // 2)])

    def towers(self, g, values, size, _):
        high = self.rng.randrange(2, 12)
        return self.mean(g, [self.chain(g, self.different(g, self.rng.choice(values)), high)
                             for _ in range(size // high + 1)])

    def written_again(self, g, values, size, _):
        name = self.name("again")
        self.again.append(name)
        g.add("abs", [self.rng.choice(values)], name)
        read = []
        for _ in range(size // 3 + 1):
            read += [self.different(g, name) for _ in range(self.rng.randrange(3))]
            g.add("leaky", [name], name, alpha=bits(self.rng.uniform(0.1, 0.9)))
        return self.mean(g, [*read, g.add("abs", [name], self.name())])

    def inner(self, values, size, depth, number):
        g = Graph()
        g.outputs = [self.part(g, values, max(1, size), depth + 1, number)]
        return g

    def branches(self, g, values, size, depth):
        many = self.rng.choice([1, 2, max(1, size // 6)])
        value = self.rng.choice(values)
        for k in range(many):
            share = max(1, size // (2 * many))
            then, orelse = (self.inner([value, *values], share, depth, 2 * k + j) for j in (0, 1))
            value = g.add("if", ["c"], self.name(), then=then, orelse=orelse)
        return value

    def loops(self, g, values, size, depth):
        many = self.rng.choice([1, 2, max(1, size // 8)])
        value = self.rng.choice(values)
        for k in range(many):
            carried = self.name("a")
            body = self.inner([carried, *values], size // many, depth, k)
            body.inputs = [carried]
            value = g.add("loop", [value], self.name(), body=body, turns=self.rng.choice([1, 2]))
        return value

    def calls(self, g, values, size, _):
        """Of functions of one input, of which some are called often."""
        many = self.rng.choice([1, 2, max(1, size // 4)])
        value, known = self.rng.choice(values), []
        for _ in range(many):
            if not known or self.rng.randrange(2):
                f, name = Graph(), self.name("F")
                f.inputs = [self.name("a")]
                last = f.inputs[0]
                for _ in range(max(1, size // (2 * many))):
                    last = self.different(f, last)
                f.outputs = [last]
                self.functions[name] = f
                known.append(name)
            value = g.add("call", [value], self.name(), function=self.rng.choice(known))
        return value


def program(seed, n, form):
    """As the format takes it."""
    return Drawn(seed, n, form == "paddle", form in ("onnx", "tensorflow")).program()
