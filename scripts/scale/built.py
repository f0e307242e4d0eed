"""A program made by hand, compiled and run: python -m scale.built KIND N LEVEL."""

import struct
import sys
import time

import heddle
import numpy as np

from . import kinds


def real(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


class Maker:
    def __init__(self, program):
        self.program, self.b, self.known = program, heddle.build.Builder(), {}

    def filled(self, dtype, value):
        return self.b.op("fill_constant", shape=[1], dtype=dtype, value=float(value))

    def empty(self):
        length = self.program.length
        return self.b.op("fill_constant", shape=[length], dtype="float32", value=0.0)

    def nodes(self, g):
        for n in g.nodes:
            ins = [self.known[i] for i in n.ins]
            self.known.update(zip(n.outs, self.add(n, ins)))

    def add(self, n, ins):
        b = self.b
        if n.op == "leaky":
            return [b.op("leaky_relu", X=ins[0], alpha=real(n.attrs["alpha"]))]
        if n.op in ("sum", "concat"):
            return [b.op(n.op, X=ins)]
        if n.op == "split":
            return b.op("split", X=ins[0], axis=0, num=len(n.outs), out=len(n.outs))
        if n.op == "mul":
            return [b.op("elementwise_mul", X=ins[0], Y=ins[1])]
        if n.op == "some":
            mask = b.op("cast", X=ins[0], in_dtype="float32", out_dtype="bool")
            return [b.op("masked_select", X=ins[0], Mask=mask)]
        if n.op == "reshape":
            return [b.op("reshape2", X=ins[0], shape=[-1])]
        if n.op == "total":
            return [b.op("reduce_sum", X=ins[0], reduce_all=True, keep_dim=True)]
        if n.op == "positive":
            total = b.op("reduce_sum", X=ins[0], reduce_all=True, keep_dim=True)
            return [b.op("greater_than", X=total, Y=self.filled("float32", 0))]
        if n.op == "if":
            outs = [self.empty() for _ in n.outs]
            for yes, g in ((ins[0], "then"), (b.op("logical_not", X=ins[0]), "orelse")):
                with b.when(yes):
                    self.nodes(n.attrs[g])
                    for source, out in zip(n.attrs[g].outputs, outs):
                        b.assign(self.known[source], to=out)
            return outs
        if n.op == "loop":
            body, outs = n.attrs["body"], [b.op("assign", X=i) for i in ins]
            turn = self.filled("int64", 0)
            end = self.filled("int64", n.attrs.get("turns", 2))
            goes = b.op("less_than", X=turn, Y=end)
            with b.loop(goes):
                self.known.update((name, b.op("assign", X=o)) for name, o in zip(body.inputs, outs))
                self.nodes(body)
                for source, out in zip(body.outputs, outs):
                    b.assign(self.known[source], to=out)
                b.op("increment", X=turn, out=turn)
                b.op("less_than", X=turn, Y=end, out=goes)
            return outs
        return [b.op(n.op, X=ins[0])]

    def make(self, level):
        length = [self.program.length]
        for f in self.program.feeds:
            self.known[f] = self.b.feed(f, "float32", length)
        for name, bits in self.program.weights.items():
            self.known[name] = self.b.parameter(name, np.array([real(bits)], "float32"))
        self.nodes(self.program.graph)
        self.b.fetch(*[self.known[o] for o in self.program.graph.outputs])
        return self.b.finish(threads=1, optimize=level)


def main():
    program = kinds.KINDS[sys.argv[1]](int(sys.argv[2]))
    if program.functions or program.rewrites:
        print("loaded in 0 ms, ran in 0 ms: no functions are made by hand, nor variables")
        return 0
    begin = time.monotonic()
    try:
        model = Maker(program).make(int(sys.argv[3]))
    except heddle.Error as error:
        print(error)
        return 1
    made = time.monotonic()
    x = np.ones([program.length], "float32")
    model(*[x] * len(program.feeds))
    print(f"loaded in {made - begin:.3f} s, ran in {time.monotonic() - made:.3f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
