"""A Program as a TensorFlow GraphDef. Graphs inside become functions with captures as arguments."""

from .wire import fixed32, msg, num

FILE = "graph.pb"
FLOAT, BOOL, INT = 1, 10, 3
OPS = {"relu": ("Relu", "activations"), "abs": ("Abs", "y"), "mul": ("Mul", "z"),
       "leaky": ("LeakyRelu", "activations"), "sum": ("AddN", "sum"),
       "concat": ("ConcatV2", "output"), "split": ("Split", "output"),
       "call": ("PartitionedCall", "output"),
       "if": ("StatelessIf", "output"), "loop": ("StatelessWhile", "output")}


def attr(name, *value):
    return msg(5, msg(1, name), msg(2, *value))


def typed(name, t):
    return attr(name, num(6, t))


def types(name, list_of):
    return attr(name, msg(1, msg(6, bytes(list_of))))


def called(name, function):
    return attr(name, msg(10, msg(1, function)))


def tensor(dtype, *content, dims=()):
    shape = msg(2, *[msg(2, num(1, d)) for d in dims])
    return attr("value", msg(8, num(1, dtype), shape, *content))


class Scope:
    """One graph or function body: how its values are named as inputs."""

    def __init__(self, writer, field, plain):
        self.writer, self.field, self.plain = writer, field, plain
        self.refs, self.parts, self.count = {}, [], 0

    def emit(self, name, op, ins, *attrs):
        self.parts.append(msg(self.field, msg(1, name), msg(2, op), *[msg(3, i) for i in ins],
                              *attrs))

    def ref(self, node, arg, k):
        if self.plain:
            return node if k == 0 else f"{node}:{k}"
        return f"{node}:{arg}:{k}"

    def constant(self, dtype, content, dims=()):
        self.count += 1
        name = f"const_{self.count}"
        self.emit(name, "Const", [], typed("dtype", dtype), tensor(dtype, content, dims=dims))
        return self.ref(name, "output", 0)

    def add(self, n):
        op, arg = OPS.get(n.op, (None, None))
        name = n.outs[0]
        ins = [self.refs[i] for i in n.ins]
        t = typed("T", FLOAT)
        if n.op == "leaky":
            self.emit(name, op, ins, t, attr("alpha", fixed32(4, n.attrs["alpha"])))
        elif n.op == "sum":
            self.emit(name, op, ins, t, attr("N", num(3, len(ins))))
        elif n.op == "concat" and len(ins) == 1:
            self.emit(name, "Identity", ins, t)
        elif n.op == "concat":
            axis = self.constant(INT, num(7, 0))
            self.emit(name, op, ins + [axis], t, attr("N", num(3, len(ins))), typed("Tidx", INT))
        elif n.op == "split":
            axis = self.constant(INT, num(7, 0))
            self.emit(name, op, [axis] + ins, t, attr("num_split", num(3, len(n.outs))))
        elif n.op == "some":
            self.emit(name, "Unique", ins, t, typed("out_idx", INT))
            arg = "y"
        elif n.op == "reshape":
            self.emit(name, "Reshape", ins + [self.constant(INT, num(7, -1), (1,))], t,
                      typed("Tshape", INT))
            arg = "output"
        elif n.op == "total":
            axes = self.constant(INT, num(7, 0), (1,))
            keep = attr("keep_dims", num(5, 1))
            self.emit(name, "Sum", ins + [axes], t, typed("Tidx", INT), keep)
            arg = "output"
        elif n.op == "positive":
            axes, zero = self.constant(INT, num(7, 0), (1,)), self.constant(FLOAT, fixed32(5, 0))
            self.emit(name + "_sum", "Sum", ins + [axes], t, typed("Tidx", INT))
            self.emit(name, "Greater", [self.ref(name + "_sum", "output", 0), zero], t)
            arg = "z"
        elif n.op == "call":
            self.emit(name, op, ins, types("Tin", [FLOAT]), types("Tout", [FLOAT]),
                      called("f", n.attrs["function"]))
        elif n.op == "if":
            then, orelse = n.attrs["then"], n.attrs["orelse"]
            free = list(dict.fromkeys(then.free + orelse.free))
            kinds = [BOOL if f == "c" else FLOAT for f in free]
            made = [self.writer.function(g, free, kinds, g.outputs, []) for g in (then, orelse)]
            self.emit(name, op, ins + [self.refs[f] for f in free], typed("Tcond", BOOL),
                      types("Tin", kinds), types("Tout", [FLOAT] * len(n.outs)),
                      called("then_branch", made[0]), called("else_branch", made[1]))
        elif n.op == "loop":
            body = n.attrs["body"]
            free = list(body.free)
            kinds = [INT] + [FLOAT] * len(body.inputs) + [BOOL if f == "c" else FLOAT for f in free]
            cond, turn = self.writer.loop(body, free, kinds, n.attrs.get("turns", 2))
            start = self.constant(INT, num(7, 0))
            self.emit(name, op, [start] + ins + [self.refs[f] for f in free], types("T", kinds),
                      called("cond", cond), called("body", turn))
        else:
            self.emit(name, op, ins, t)
        shift = 1 if n.op == "loop" else 0
        for k, out in enumerate(n.outs):
            self.refs[out] = self.ref(name, arg, k + shift)

    def identity(self, source, name):
        self.emit(name, "Identity", [source], typed("T", FLOAT))


class Writer:
    def __init__(self):
        self.library, self.count = [], 0

    def name(self):
        self.count += 1
        return f"made_{self.count}"

    def define(self, name, args, results, scope):
        """`args`: (name, type), `results`: (reference, type)."""
        ins = [msg(2, msg(1, a), num(3, t)) for a, t in args]
        outs = [msg(3, msg(1, f"r{k}"), num(3, t)) for k, (_, t) in enumerate(results)]
        rets = [msg(4, msg(1, f"r{k}"), msg(2, ref)) for k, (ref, _) in enumerate(results)]
        self.library.append(msg(1, msg(1, msg(1, name), *ins, *outs), *scope.parts, *rets))
        return name

    def function(self, g, args, kinds, results, _, name=None):
        scope = Scope(self, 3, False)
        scope.refs = {a: a for a in args}
        for n in g.nodes:
            scope.add(n)
        return self.define(name or self.name(), zip(args, kinds),
                           [(scope.refs[r], FLOAT) for r in results], scope)

    def loop(self, body, free, kinds, turns):
        args = list(zip(["turn"] + body.inputs + free, kinds))
        cond = Scope(self, 3, False)
        end = cond.constant(INT, num(7, turns))
        cond.emit("goes", "Less", ["turn", end], typed("T", INT))
        made = self.define(self.name(), args, [("goes:z:0", BOOL)], cond)
        turn = Scope(self, 3, False)
        turn.refs = {a: a for a, _ in args}
        for n in body.nodes:
            turn.add(n)
        one = turn.constant(INT, num(7, 1))
        turn.emit("next_turn", "AddV2", ["turn", one], typed("T", INT))
        results = [("next_turn:z:0", INT)] + [(turn.refs[o], FLOAT) for o in body.outputs]
        results += [(f, k) for f, k in zip(free, kinds[1 + len(body.inputs):])]
        return made, self.define(self.name(), args, results, turn)


def write(program):
    if program.rewrites:
        return None
    program.graph.bind()
    w = Writer()
    g = Scope(w, 1, True)
    for f in program.feeds:
        shape = attr("shape", msg(7, msg(2, num(1, program.length))))
        g.emit(f, "Placeholder", [], typed("dtype", FLOAT), shape)
        g.refs[f] = f
    for name, bits in program.weights.items():
        g.emit(name, "Const", [], typed("dtype", FLOAT),
               tensor(FLOAT, msg(4, bits.to_bytes(4, "little")), dims=(1,)))
        g.refs[name] = name
    for n in program.graph.nodes:
        g.add(n)
    program.refs = {o: g.refs[o] for o in program.graph.outputs}
    for name, f in program.functions.items():
        w.function(f.bind(), f.inputs, [FLOAT], f.outputs, [], name)
    return {FILE: b"".join(g.parts) + (msg(2, *w.library) if w.library else b"")}

