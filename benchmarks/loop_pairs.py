#!/usr/bin/env python3
"""Pairs of models, a loop and the same work unrolled, for benchmarks/loops.py --pairs.

  python3 -m venv .venv && .venv/bin/pip install onnx numpy
  .venv/bin/python benchmarks/loop_pairs.py pairs
  python3 benchmarks/loops.py --heddle build/release/heddle --pairs pairs

Writes <name>_loop.onnx and <name>_flat.onnx for each pair.
"""

import argparse
from pathlib import Path

import numpy as np

TURNS, BATCH, WIDTH = 64, 2, 64


class Onnx:
    """A graph while it is made; values are names."""

    def __init__(self, prefix=""):
        self.prefix, self.nodes, self.constants, self.count = prefix, [], [], 0

    def name(self):
        self.count += 1
        return f"{self.prefix}v{self.count}"

    def op(self, kind, *inputs, out=None, outputs=1, **attributes):
        from onnx import helper

        names = [out] if out else [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if len(names) == 1 else names

    def constant(self, value, dtype="float32"):
        from onnx import numpy_helper

        name = self.name()
        self.constants.append(numpy_helper.from_array(np.array(value, dtype=dtype), name))
        return name


def value_info(name, shape, dtype="float32"):
    from onnx import TensorProto, helper

    kinds = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32,
             "bool": TensorProto.BOOL}
    return helper.make_tensor_value_info(name, kinds[dtype], shape)


def graph_of(g, name, inputs, outputs):
    from onnx import helper

    return helper.make_graph(g.nodes, name, inputs, outputs, g.constants)


def loop(g, turns, states, body, infos, scans=()):
    """A Loop: `body(b, i, values)` gives the next values, and then what is stacked.

    `infos`: shape and dtype of each state; `scans`: those of what is stacked."""
    b = Onnx(g.name() + "_")
    names = [b.prefix + f"s{k}" for k in range(len(states))]
    index, go = b.prefix + "i", b.prefix + "go"
    made = body(b, index, names)
    ends = [b.op("Identity", m) for m in made]
    on = b.op("Identity", go)
    inputs = [value_info(index, [], "int64"), value_info(go, [], "bool")]
    inputs += [value_info(n, s, d) for n, (s, d) in zip(names, infos)]
    outputs = [value_info(on, [], "bool")]
    outputs += [value_info(n, s, d) for n, (s, d) in zip(ends, list(infos) + list(scans))]
    graph = graph_of(b, "body", inputs, outputs)
    return g.op("Loop", g.constant(turns, "int64"), g.constant(True, "bool"), *states,
                outputs=len(ends), body=graph)


def unrolled(g, turns, states, body, scans=0):
    values, stacked = list(states), [[] for _ in range(scans)]
    for t in range(turns):
        made = body(g, g.constant(t, "int64"), values)
        values = made[:len(states)]
        for s, item in zip(stacked, made[len(states):]):
            s.append(g.op("Unsqueeze", item, g.constant([0], "int64")))
    made = values + [g.op("Concat", *s, axis=0) for s in stacked]
    return made[0] if len(made) == 1 else made


def turns_of(g, flat, turns, states, body, infos, scans=()):
    made = (unrolled(g, turns, states, body, len(scans)) if flat
            else loop(g, turns, states, body, infos, scans))
    return [made] if isinstance(made, str) else made


class Weights:
    def __init__(self, seed=3):
        self.random = np.random.RandomState(seed)

    def __call__(self, *shape):
        return (self.random.uniform(-1, 1, shape) / np.sqrt(shape[-1])).astype("float32")


def gru_step(width):
    w = Weights()
    values = [w(width, 3 * width), w(width, 3 * width), w(3 * width)]

    def step(g, x, h, weights):
        gates = g.op("Add", g.op("MatMul", x, weights[0]), weights[2])
        rest = g.op("MatMul", h, weights[1])
        xs = g.op("Split", gates, g.constant([width] * 3, "int64"), outputs=3, axis=-1)
        hs = g.op("Split", rest, g.constant([width] * 3, "int64"), outputs=3, axis=-1)
        r = g.op("Sigmoid", g.op("Add", xs[0], hs[0]))
        z = g.op("Sigmoid", g.op("Add", xs[1], hs[1]))
        n = g.op("Tanh", g.op("Add", xs[2], g.op("Mul", r, hs[2])))
        return g.op("Add", g.op("Mul", g.op("Sub", g.constant(1.0), z), n), g.op("Mul", z, h))

    return values, step


def make_gru(flat, carries=False, axis=0, turns=TURNS, batch=BATCH, width=WIDTH):
    g = Onnx()
    values, step = gru_step(width)
    weights = [g.constant(v) for v in values]
    shape = [turns, batch, width] if axis == 0 else [batch, turns, width]

    def body(b, i, states):
        x = b.op("Gather", "x", i, axis=axis)
        h = step(b, x, states[0], states[1:] if carries else weights)
        return [h] + (list(states[1:]) if carries else []) + [h]

    states = ["h"] + (weights if carries else [])
    infos = [([batch, width], "float32")]
    infos += [(list(v.shape), "float32") for v in values] if carries else []
    made = turns_of(g, flat, turns, states, body, infos, [([batch, width], "float32")])
    return g, [("x", shape), ("h", [batch, width])], [made[0], made[-1]]


def make_gru_scan(flat, turns=TURNS, batch=BATCH, width=WIDTH):
    if flat:
        return make_gru(True, turns=turns, batch=batch, width=width)
    g = Onnx()
    values, step = gru_step(width)
    weights = [g.constant(v) for v in values]
    b = Onnx("scan_")
    h = step(b, "scan_x", "scan_h", weights)
    last, each = b.op("Identity", h), b.op("Identity", h)
    item = [batch, width]
    graph = graph_of(b, "body", [value_info("scan_h", item), value_info("scan_x", item)],
                     [value_info(last, item), value_info(each, item)])
    made = g.op("Scan", "h", "x", outputs=2, num_scan_inputs=1, body=graph)
    return g, [("x", [turns, batch, width]), ("h", item)], made


def make_lstm(flat, turns=TURNS, batch=BATCH, width=WIDTH):
    g, w = Onnx(), Weights(5)
    wx, wh = g.constant(w(width, 4 * width)), g.constant(w(width, 4 * width))
    bias = g.constant(w(4 * width))

    def body(b, i, states):
        h, c = states
        x = b.op("Gather", "x", i, axis=1)
        gates = b.op("Add", b.op("Add", b.op("MatMul", x, wx), b.op("MatMul", h, wh)), bias)
        i, f, o, n = b.op("Split", gates, b.constant([width] * 4, "int64"), outputs=4, axis=-1)
        c = b.op("Add", b.op("Mul", b.op("Sigmoid", f), c),
                 b.op("Mul", b.op("Sigmoid", i), b.op("Tanh", n)))
        return [b.op("Mul", b.op("Sigmoid", o), b.op("Tanh", c)), c]

    item = [batch, width]
    made = turns_of(g, flat, turns, ["h", "c"], body, [(item, "float32")] * 2)
    return g, [("x", [batch, turns, width]), ("h", item), ("c", item)], made


def make_decoder(flat, turns=32, width=WIDTH):
    """One head of attention over keys and values that grow by a row a turn."""
    g, w = Onnx(), Weights(7)
    wq, wk, wv, wo = (g.constant(w(width, width)) for _ in range(4))

    def body(b, i, states):
        h, keys, values = states
        keys = b.op("Concat", keys, b.op("MatMul", h, wk), axis=0)
        values = b.op("Concat", values, b.op("MatMul", h, wv), axis=0)
        scores = b.op("MatMul", b.op("MatMul", h, wq), b.op("Transpose", keys, perm=[1, 0]))
        mixed = b.op("MatMul", b.op("Softmax", scores, axis=-1), values)
        return [b.op("Tanh", b.op("Add", h, b.op("MatMul", mixed, wo))), keys, values]

    infos = [([1, width], "float32"), (["t", width], "float32"), (["t", width], "float32")]
    made = turns_of(g, flat, turns, ["h", "k", "v"], body, infos)
    return g, [("h", [1, width]), ("k", [1, width]), ("v", [1, width])], made


def make_heads(flat, turns=32, width=WIDTH, heads=4):
    """Attention of several heads: what grows is no longer one run of memory."""
    g, w = Onnx(), Weights(11)
    wq, wk, wv, wo = (g.constant(w(width, width)) for _ in range(4))
    size = width // heads

    def body(b, i, states):
        h, keys, values = states

        def split(x):
            x = b.op("Reshape", x, b.constant([1, 1, heads, size], "int64"))
            return b.op("Transpose", x, perm=[0, 2, 1, 3])

        keys = b.op("Concat", keys, split(b.op("MatMul", h, wk)), axis=2)
        values = b.op("Concat", values, split(b.op("MatMul", h, wv)), axis=2)
        turned = b.op("Transpose", keys, perm=[0, 1, 3, 2])
        scores = b.op("Mul", b.op("MatMul", split(b.op("MatMul", h, wq)), turned),
                      b.constant(0.25))
        mixed = b.op("MatMul", b.op("Softmax", scores, axis=-1), values)
        mixed = b.op("Reshape", b.op("Transpose", mixed, perm=[0, 2, 1, 3]),
                     b.constant([1, 1, width], "int64"))
        return [b.op("Tanh", b.op("Add", h, b.op("MatMul", mixed, wo))), keys, values]

    grows = ([1, heads, "t", size], "float32")
    infos = [([1, 1, width], "float32"), grows, grows]
    made = turns_of(g, flat, turns, ["h", "k", "v"], body, infos)
    first = [1, heads, 1, size]
    return g, [("h", [1, 1, width]), ("k", first), ("v", first)], made


def make_carried(flat, turns=TURNS, width=128):
    """A loop that carries a matrix as it is; its twin reads it."""
    g, w = Onnx(), Weights(9)
    matrix = g.constant(w(width, width))

    def body(b, i, states):
        h = b.op("Tanh", b.op("MatMul", states[0], matrix if flat else states[1]))
        return [h] if flat else [h, b.op("Identity", states[1])]

    states, infos = ["h"], [([1, width], "float32")]
    if not flat:
        states, infos = states + [matrix], infos + [([width, width], "float32")]
    made = loop(g, turns, states, body, infos)
    return g, [("h", [1, width])], [made if flat else made[0]]


def make_tiny(flat, turns=256):
    g = Onnx()
    three, five = (g.constant([k] * 4, "int32") for k in (3, 5))

    def body(b, i, states):
        x = states[0]
        x = b.op("Sub", b.op("Mul", b.op("Add", x, three), five), x)
        return [b.op("Min", b.op("Max", x, three), b.constant([1000] * 4, "int32"))]

    made = turns_of(g, flat, turns, ["a"], body, [([4], "int32")])
    return g, [("a", [4], "int32")], made[:1]


def make_nested(flat, turns=8):
    g = Onnx()

    def inner(b, i, states):
        return [b.op("Tanh", b.op("Mul", states[0], b.constant(0.9)))]

    def outer(b, i, states):
        return turns_of(b, flat, turns, states, inner, [([16], "float32")])

    made = turns_of(g, flat, turns, ["a"], outer, [([16], "float32")])
    return g, [("a", [16])], made[:1]


ONNX = {
    "gru": make_gru,
    "gru_scan": make_gru_scan,
    "gru_weights": lambda flat: make_gru(flat, carries=True),
    "gru_small": lambda flat: make_gru(flat, axis=1, width=16, batch=1),
    "lstm": make_lstm,
    "decoder": make_decoder,
    "heads": make_heads,
    "carried": make_carried,
    "tiny": make_tiny,
    "nested": make_nested,
}


def write_onnx(folder, names):
    import onnx
    from onnx import helper

    for name in names or ONNX:
        for flat in (False, True):
            g, inputs, outputs = ONNX[name](flat)
            infos = [value_info(*i) for i in inputs]
            outs = [helper.make_empty_tensor_value_info(o) for o in outputs]
            graph = graph_of(g, name, infos, outs)
            model = helper.make_model(graph, ir_version=8,
                                      opset_imports=[helper.make_opsetid("", 17)])
            onnx.save(model, folder / f"{name}_{'flat' if flat else 'loop'}.onnx")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", help="names of pairs")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    write_onnx(options.folder, options.only)


if __name__ == "__main__":
    main()
