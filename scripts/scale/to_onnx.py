"""A Program as an ONNX model."""

from .wire import fixed32, msg, num

FILE = "model.onnx"
OPS = {"relu": "Relu", "abs": "Abs", "leaky": "LeakyRelu", "sum": "Sum", "concat": "Concat",
       "split": "Split", "mul": "Mul", "if": "If", "loop": "Loop"}


def integer(name, value):
    return msg(5, msg(1, name), num(3, value), num(20, 2))


def value(field, name, dtype=1, *dims):
    shape = b"".join(msg(1, num(1, d)) for d in dims)
    return msg(field, msg(1, name), msg(2, msg(1, num(1, dtype), msg(2, shape))))


def raw(op, ins, outs, *more):
    return [msg(1, i) for i in ins] + [msg(2, o) for o in outs] + [msg(4, op), *more]


class Writer:
    def __init__(self, program):
        self.program = program
        self.count = 0

    def node(self, n):
        """The parts of the nodes that it becomes."""
        if n.op == "leaky":
            alpha = msg(5, msg(1, "alpha"), fixed32(2, n.attrs["alpha"]), num(20, 1))
            return [raw("LeakyRelu", n.ins, n.outs, alpha)]
        if n.op == "concat":
            return [raw("Concat", n.ins, n.outs, integer("axis", 0))]
        if n.op == "split":
            return [raw("Split", n.ins, n.outs, integer("axis", 0),
                        integer("num_outputs", len(n.outs)))]
        if n.op == "call":
            return [raw(n.attrs["function"], n.ins, n.outs, msg(7, "own"))]
        if n.op == "some":
            return [raw("Unique", n.ins, n.outs)]
        if n.op == "reshape":
            return [raw("Reshape", [*n.ins, "vector"], n.outs)]
        if n.op == "total":
            return [raw("ReduceSum", n.ins, n.outs, integer("keepdims", 1))]
        if n.op == "positive":
            self.count += 1
            t = f"{n.outs[0]}_{self.count}"
            return [raw("ReduceSum", n.ins, [t], integer("keepdims", 0)),
                    raw("Cast", [t], n.outs, integer("to", 9))]
        if n.op == "if":
            return [raw("If", n.ins, n.outs, self.branch("then_branch", n.attrs["then"]),
                        self.branch("else_branch", n.attrs["orelse"]))]
        if n.op == "loop":
            self.count += 1
            t, c, d = (f"{k}_{self.count}" for k in ("turn", "goes", "on"))
            body = n.attrs["body"]
            head = value(11, t, 7) + value(11, c, 9) + b"".join(value(11, i) for i in body.inputs)
            graph = self.graph(body, raw("Identity", [c], [d]))
            outs = [value(12, o, 1, self.program.length) for o in body.outputs]
            inner = msg(5, msg(1, "body"), num(20, 5),
                        msg(6, graph, msg(2, "b"), head, value(12, d, 9), *outs))
            return [raw("Loop", [f"turns{n.attrs.get('turns', 2)}", "", *n.ins], n.outs, inner)]
        return [raw(OPS[n.op], n.ins, n.outs)]

    def graph(self, g, *first):
        nodes = [msg(1, *parts) for parts in first]
        for n in g.nodes:
            nodes.extend(msg(1, *parts) for parts in self.node(n))
        return b"".join(nodes)

    def branch(self, name, g):
        outs = [value(12, o, 1, self.program.length) for o in g.outputs]
        return msg(5, msg(1, name), num(20, 5), msg(6, self.graph(g), msg(2, "b"), *outs))

    def function(self, name, g):
        nodes = [msg(7, *parts) for n in g.nodes for parts in self.node(n)]
        return msg(25, msg(1, name), *[msg(4, i) for i in g.inputs],
                   *[msg(5, o) for o in g.outputs], *nodes, msg(9, num(2, 18)),
                   msg(9, msg(1, "own"), num(2, 1)), msg(10, "own"))


def write(program):
    if program.rewrites:
        return None
    w = Writer(program)
    turns = [msg(5, num(2, 7), msg(8, f"turns{k}"), msg(9, k.to_bytes(8, "little")))
             for k in (1, 2)]
    turns.append(msg(5, num(1, 1), num(2, 7), msg(8, "vector"), msg(9, b"\xff" * 8)))
    constants = [msg(5, num(1, 1), num(2, 1), msg(8, name), msg(9, bits.to_bytes(4, "little")))
                 for name, bits in program.weights.items()]
    graph = msg(7, w.graph(program.graph), msg(2, "g"), *turns, *constants,
                *[value(11, f, 1, program.length) for f in program.feeds],
                *[value(12, o) for o in program.graph.outputs])
    own = [msg(8, msg(1, "own"), num(2, 1))] if program.functions else []
    made = [w.function(name, g) for name, g in program.functions.items()]
    return {FILE: num(1, 9) + graph + msg(8, num(2, 18)) + b"".join(own + made)}
