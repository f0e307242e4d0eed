"""What a Program computes, by numpy."""

import struct

import numpy as np


def real(bits):
    return np.float32(struct.unpack("<f", struct.pack("<I", bits))[0])


def outputs(program, feeds):
    """Its outputs for these feeds, by name."""
    known = {name: np.array([real(bits)], "float32") for name, bits in program.weights.items()}
    known.update(feeds)
    _graph(program, program.graph, known)
    return [known[o] for o in program.graph.outputs]


def _graph(program, graph, known):
    for n in graph.nodes:
        ins = [known[i] for i in n.ins]
        known.update(zip(n.outs, _node(program, n, ins, known)))


def _node(program, n, ins, known):
    simple = {"relu": lambda x: np.maximum(x, 0), "abs": np.abs,
              "reshape": lambda x: x.reshape(-1), "some": lambda x: x[x != 0],
              "total": lambda x: x.sum(keepdims=True), "positive": lambda x: x.sum() > 0}
    if n.op in simple:
        return [simple[n.op](ins[0])]
    if n.op == "leaky":
        return [np.where(ins[0] > 0, ins[0], ins[0] * real(n.attrs["alpha"]))]
    if n.op == "sum":
        total = np.zeros_like(ins[0], "float64")
        for x in ins:
            total = total + x
        return [total.astype("float32")]
    if n.op == "concat":
        return [np.concatenate(ins)]
    if n.op == "split":
        return np.split(ins[0], len(n.outs))
    if n.op == "mul":
        return [ins[0] * ins[1]]
    if n.op == "sgd":
        return [ins[0] - ins[2] * ins[1]]
    if n.op == "momentum":
        k = len(n.outs) // 2
        speeds = [real(0x3F000000) * v + g for g, v in zip(ins[k:2 * k], ins[2 * k:3 * k])]
        return [w - ins[-1] * v for w, v in zip(ins[:k], speeds)] + speeds
    if n.op == "call":
        return _inside(program, program.functions[n.attrs["function"]], ins, {})
    if n.op == "if":
        return _inside(program, n.attrs["then" if ins[0] else "orelse"], [], known)
    for _ in range(n.attrs.get("turns", 2)):  # of a loop
        ins = _inside(program, n.attrs["body"], ins, known)
    return ins


def _inside(program, graph, ins, known):
    # Names of a graph inside hide none that are read behind it.
    known.update(zip(graph.inputs, ins))
    _graph(program, graph, known)
    return [known[o] for o in graph.outputs]
