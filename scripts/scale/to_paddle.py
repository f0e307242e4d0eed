"""A Program as Paddle's ProgramDesc, with a file of parameters."""

import struct

from .wire import fixed32, msg, num

FILE = "model.pdmodel"
FLOAT, BOOL, INT = 5, 0, 3
LOD_TENSOR, FEED, FETCH, SCOPES = 7, 9, 10, 11
OPS = {"relu": "relu", "abs": "abs"}


def slot(field, name, values):
    return msg(field, msg(1, name), *[msg(2, v) for v in values])


def op(kind, ins, outs, *attrs):
    return msg(4, *[slot(1, k, v) for k, v in ins.items()],
               *[slot(2, k, v) for k, v in outs.items()], msg(3, kind), *attrs)


def integer(name, value):
    return msg(4, msg(1, name), num(2, 0), num(3, value))


def real(name, bits):
    return msg(4, msg(1, name), num(2, 1), fixed32(4, bits))


def flag(name, value):
    return msg(4, msg(1, name), num(2, 6), num(10, value))


def integers(name, values):
    return msg(4, msg(1, name), num(2, 3), *[num(6, v) for v in values])


def block_of(name, index):
    return msg(4, msg(1, name), num(2, 8), num(12, index))


def var(name, dtype=FLOAT, dims=(-1,), persistable=False):
    tensor = msg(1, num(1, dtype), *[num(2, d) for d in dims])
    return msg(3, msg(1, name), msg(2, num(1, LOD_TENSOR), msg(3, tensor)),
               num(3, int(persistable)))


def special(name, kind):
    return msg(3, msg(1, name), msg(2, num(1, kind)), num(3, 1 if kind != SCOPES else 0))


class Writer:
    def __init__(self, program):
        self.program, self.blocks, self.count, self.declared = program, [], 0, set()

    def fresh(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def block(self, parent):
        self.blocks.append([parent, [], []])
        return len(self.blocks) - 1

    def declare(self, at, name, dtype=FLOAT, dims=None):
        dims = (self.program.length,) if dims is None else dims
        self.blocks[at][1].append(var(name, dtype, dims))
        return name

    def emit(self, at, *args):
        self.blocks[at][2].append(op(*args))

    def fill(self, at, name, value, dtype=INT):
        self.declare(at, name, dtype, (1,))
        self.emit(at, "fill_constant", {}, {"Out": [name]}, integers("shape", [1]),
                  integer("dtype", dtype),
                  real("value", struct.unpack("<I", struct.pack("<f", value))[0]))
        return name

    def nodes(self, at, g):
        for n in g.nodes:
            self.add(at, n)

    def add(self, at, n):
        concat = n.op == "concat"
        for out in n.outs:
            if (at, out) in self.declared or out in self.program.weights:
                continue  # written again
            self.declared.add((at, out))
            dims = (len(n.ins) * self.program.length,) if concat else \
                (1,) if n.op in ("total", "positive") else \
                (1,) if n.op == "split" and self.program.length == len(n.outs) else \
                (-1,) if n.op in ("some", "split") else None
            self.declare(at, out, BOOL if n.op == "positive" else FLOAT, dims)
        if n.op == "leaky":
            self.emit(at, "leaky_relu", {"X": n.ins}, {"Out": n.outs},
                      real("alpha", n.attrs["alpha"]))
        elif n.op == "sum":
            self.emit(at, "sum", {"X": n.ins}, {"Out": n.outs})
        elif concat:
            self.emit(at, "concat", {"X": n.ins}, {"Out": n.outs}, integer("axis", 0))
        elif n.op == "split":
            self.emit(at, "split", {"X": n.ins}, {"Out": n.outs}, integer("axis", 0),
                      integer("num", len(n.outs)))
        elif n.op == "mul":
            self.emit(at, "elementwise_mul", {"X": n.ins[:1], "Y": n.ins[1:]}, {"Out": n.outs},
                      integer("axis", -1))
        elif n.op == "reshape":
            self.emit(at, "reshape2", {"X": n.ins}, {"Out": n.outs}, integers("shape", [-1]))
        elif n.op == "total":
            self.emit(at, "reduce_sum", {"X": n.ins}, {"Out": n.outs}, flag("reduce_all", 1),
                      flag("keep_dim", 1), integers("dim", [0]))
        elif n.op == "some":
            mask = self.declare(at, self.fresh("mask"), BOOL)
            self.emit(at, "cast", {"X": n.ins}, {"Out": [mask]}, integer("in_dtype", FLOAT),
                      integer("out_dtype", BOOL))
            self.emit(at, "masked_select", {"X": n.ins, "Mask": [mask]}, {"Y": n.outs})
        elif n.op == "momentum":
            k = len(n.outs) // 2
            self.emit(at, "merged_momentum",
                      {"Param": n.ins[:k], "Grad": n.ins[k:2 * k], "Velocity": n.ins[2 * k:3 * k],
                       "LearningRate": n.ins[3 * k:]},
                      {"ParamOut": n.outs[:k], "VelocityOut": n.outs[k:]}, real("mu", 0x3F000000))
        elif n.op == "sgd":
            weight, grad, rate = n.ins
            self.emit(at, "sgd", {"Param": [weight], "Grad": [grad], "LearningRate": [rate]},
                      {"ParamOut": n.outs})
        elif n.op == "positive":
            total, zero = self.declare(at, self.fresh("total"), FLOAT, (1,)), self.fresh("zero")
            self.fill(at, zero, 0, FLOAT)
            self.emit(at, "reduce_sum", {"X": n.ins}, {"Out": [total]}, flag("reduce_all", 1),
                      flag("keep_dim", 1), integers("dim", [0]))
            self.emit(at, "greater_than", {"X": [total], "Y": [zero]}, {"Out": n.outs},
                      integer("axis", -1))
        elif n.op == "if":
            self.branches(at, n)
        elif n.op == "loop":
            self.loop(at, n)
        else:
            self.emit(at, OPS[n.op], {"X": n.ins}, {"Out": n.outs})

    def scopes(self, at):
        name = self.fresh("scopes")
        self.blocks[at][1].append(special(name, SCOPES))
        return name

    def branches(self, at, n):
        cond = n.ins[0]
        other = self.declare(at, self.fresh("not"), BOOL, (1,))
        self.emit(at, "logical_not", {"X": [cond]}, {"Out": [other]})
        results = []
        for c, g in ((cond, n.attrs["then"]), (other, n.attrs["orelse"])):
            outs = [self.declare(at, self.fresh("branch")) for _ in n.outs]
            inside = self.block(at)
            self.nodes(inside, g)
            for source, out in zip(g.outputs, outs):
                self.emit(inside, "assign", {"X": [source]}, {"Out": [out]})
            self.emit(at, "conditional_block", {"Cond": [c], "Input": g.free},
                      {"Out": outs, "Scope": [self.scopes(at)]}, block_of("sub_block", inside),
                      flag("is_scalar_condition", 1))
            results.append(outs)
        mask = self.declare(at, self.fresh("mask"), INT, (1,))
        self.emit(at, "cast", {"X": [cond]}, {"Out": [mask]}, integer("in_dtype", BOOL),
                  integer("out_dtype", INT))
        for out, then, orelse in zip(n.outs, *results):
            self.emit(at, "select_input", {"X": [orelse, then], "Mask": [mask]}, {"Out": [out]})

    def loop(self, at, n):
        body = n.attrs["body"]
        turn = self.fill(at, self.fresh("turn"), 0)
        end = self.fill(at, self.fresh("end"), n.attrs.get("turns", 2))
        goes = self.declare(at, self.fresh("goes"), BOOL, (1,))
        less = ("less_than", {"X": [turn], "Y": [end]}, {"Out": [goes]}, integer("axis", -1))
        self.emit(at, *less)
        for source, out in zip(n.ins, n.outs):
            self.emit(at, "assign", {"X": [source]}, {"Out": [out]})
        inside = self.block(at)
        for arg, out in zip(body.inputs, n.outs):
            self.declare(inside, arg)
            self.emit(inside, "assign", {"X": [out]}, {"Out": [arg]})
        self.nodes(inside, body)
        for source, out in zip(body.outputs, n.outs):
            self.emit(inside, "assign", {"X": [source]}, {"Out": [out]})
        self.emit(inside, "increment", {"X": [turn]}, {"Out": [turn]}, real("step", 0x3F800000))
        self.emit(inside, *less)
        self.emit(at, "while", {"Condition": [goes], "X": [*body.free, *n.outs, turn, end]},
                  {"Out": [*n.outs, turn, goes], "StepScopes": [self.scopes(at)]},
                  block_of("sub_block", inside))


def write(program):
    if program.functions:
        return None
    program.graph.bind()
    w = Writer(program)
    top = w.block(-1)
    w.blocks[top][1] += [special("feed", FEED), special("fetch", FETCH)]
    for k, f in enumerate(program.feeds):
        w.declare(top, f)
        w.emit(top, "feed", {"X": ["feed"]}, {"Out": [f]}, integer("col", k))
    for name in program.weights:
        w.blocks[top][1].append(var(name, FLOAT, (1,), True))
    w.nodes(top, program.graph)
    for k, o in enumerate(program.graph.outputs):
        w.emit(top, "fetch", {"X": [o]}, {"Out": ["fetch"]}, integer("col", k))
    blocks = [msg(1, num(1, i), num(2, parent), *variables, *ops)
              for i, (parent, variables, ops) in enumerate(w.blocks)]
    files = {FILE: b"".join(blocks)}
    if program.weights:
        desc = num(1, FLOAT) + num(2, 1)
        head = struct.pack("<IQII", 0, 0, 0, len(desc)) + desc
        files["model.pdiparams"] = b"".join(
            head + program.weights[name].to_bytes(4, "little") for name in sorted(program.weights))
    return files
