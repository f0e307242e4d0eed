#!/usr/bin/env python3
"""Writes random ONNX graphs of operators whose meaning depends on the rank, with answers.

  scripts/make_hidden_shape_graphs.py --seed 1 --count 300 --out DIR
  scripts/sweep_hidden_shapes.py --format onnx --onnx DIR --refusals 0
  scripts/make_hidden_shape_graphs.py --seed 8 --count 96 --record tests/python/hidden_shapes.npz

DIR is a folder of cases as sweep_hidden_shapes.py reads it: a third of them are loops whose
carried values change their shapes from trip to trip, the others straight graphs, whose shapes the
sweep hides. --record writes hidden models and their answers into one file instead, each hidden in
one way. The answers are ONNX Runtime's. Needs onnx, onnxruntime and numpy.
"""

import argparse
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from hidden_shapes import onnx_cases
from hidden_shapes.onnx_graphs import OPSETS, Graph, grow, numbers, straight


# --- loops: (graph of the body, carried name) -> the next value, of another shape

def next_value(rng, g, acc):
    kind = int(rng.integers(7))
    if kind == 0:
        return g.node("Concat", [acc, acc], axis=int(rng.choice([-1, 0])))
    if kind == 1:
        return g.unsqueeze(acc, [int(rng.choice([0, -1]))])
    if kind == 2:
        return g.node("Transpose", [acc])
    if kind == 3:
        return g.node("Reshape", [acc, g.constant(np.array([-1], np.int64))])
    if kind == 4:
        return g.reduce("ReduceMax", acc, [-1], 18, 0)
    if kind == 5:
        ints = [np.array([i], np.int64) for i in (0, -1, -1)]
        return g.node("Slice", [acc] + [g.constant(i) for i in ints])
    return g.node("Flatten", [acc], axis=int(rng.choice([-1, 1, 0])))


def seen(rng, g, acc):
    """A value of the body that depends on the rank of what is carried: any from 1 on."""
    kind = int(rng.integers(8))
    if kind == 0:
        return g.node("Softmax", [acc], axis=-1)
    if kind == 1:
        return g.node("Flatten", [acc], axis=-1)
    if kind == 2:
        return g.node("Transpose", [acc])
    if kind == 3:
        return g.node("ArgMax", [acc], axis=-1, keepdims=0)
    if kind == 4:
        return g.node("Concat", [acc, g.node("Neg", [acc])], axis=-1)
    if kind == 5:
        return g.node("CumSum", [acc, g.constant(np.array(-1, np.int64))])
    if kind == 6:
        return g.node("Hardmax", [acc], axis=-1)
    last = [-1]
    d = g.node("Sub", [acc, g.reduce("ReduceMean", acc, last, 18)])
    variance = g.reduce("ReduceMean", g.node("Mul", [d, d]), last, 18)
    y = g.node("Div", [d, g.node("Sqrt", [g.node("Add", [variance, g.constant(np.float32(1))])])])
    return g.node("Mul", [y, g.constant(np.float32([0.5, 2]))]) if rng.random() < 0.2 else y


def loop(rng):
    """A loop that carries a value of changing shape, one that stays, and one made of the first."""
    opset = int(rng.choice([o for o in OPSETS if o >= 11]))
    g, body = Graph(rng, opset), Graph(rng, opset)
    body.count = 1000
    x = g.input(numbers(rng, [int(d) for d in rng.integers(1, 4, int(rng.integers(1, 4)))]))
    stays = g.input(numbers(rng, [2, 3]))
    acc, kept, made = "acc", "kept", "made"
    after = next_value(rng, body, acc)
    look = seen(rng, body, acc if rng.random() < 0.5 else after)
    look = body.node("Cast", [look], to=TensorProto.FLOAT)
    passed = body.node("Softmax", [kept], axis=int(rng.choice([0, 1, -1])))
    body.nodes.append(helper.make_node("Identity", ["go"], ["on"]))
    scalar = body.node("ReduceSum", [look], keepdims=0)
    info = onnx_cases.untyped
    outs = [info(after, TensorProto.FLOAT), info(passed, TensorProto.FLOAT),
            info(look, TensorProto.FLOAT), info(scalar, TensorProto.FLOAT)]
    graph = helper.make_graph(
        body.nodes, "body",
        [helper.make_tensor_value_info("trip", TensorProto.INT64, []),
         helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         info(acc, TensorProto.FLOAT), info(kept, TensorProto.FLOAT),
         info(made, TensorProto.FLOAT)],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, [])] + outs, body.constants)
    trips = g.input(np.array(int(rng.integers(0, 4)), np.int64))
    names = g.node("Loop", [trips, "", x, stays, x], 4, body=graph)
    got = g.run(names)
    if got is None or any(a.size > 4000 or a.ndim > 6 for a in got):
        return None
    if any(a.dtype.kind == "f" and not np.all(np.abs(a) < 1e4) for a in got):
        return None
    g.values.update(zip(names, got))
    outputs = list(names)
    for name in names[:3]:
        if g.values[name].size:
            outputs += grow(g, name, int(rng.integers(0, 3)))
    return g, list(dict.fromkeys(outputs))


def graphs(seed, count):
    rng = np.random.default_rng(seed)
    made = 0
    while made < count:
        g = loop(rng) if made % 3 == 2 else straight(rng)
        if g is None:
            continue
        graph, outputs = g
        answers = graph.run(outputs)
        if answers is None:
            continue
        graph.values.update(zip(outputs, answers))
        yield made, graph, outputs, answers
        made += 1


def write_case(folder, graph, outputs, answers):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(graph.model(outputs).SerializeToString())
    for stem, names, values in (("input", graph.inputs, [graph.values[n] for n in graph.inputs]),
                                ("output", outputs, answers)):
        for k, (name, value) in enumerate(zip(names, values)):
            tensor = numpy_helper.from_array(value, name)
            (data / f"{stem}_{k}.pb").write_bytes(tensor.SerializeToString())


def write_cases(options):
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "index.tsv", "w", encoding="utf-8") as index:
        index.write("name\tset\topset\toperators\trtol\tatol\n")
        for number, graph, outputs, answers in graphs(options.seed, options.count):
            name = f"s{options.seed}_{number:04}"
            write_case(options.out / name, graph, outputs, answers)
            operators = ",".join(sorted({n.op_type for n in graph.nodes}))
            index.write(f"{name}\t.\t{graph.opset}\t{operators}\t0.002\t0.0002\n")


def record(options):
    """One file of hidden models, what is fed to them and the answers."""
    with zipfile.ZipFile(options.record, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, graph, outputs, answers in graphs(options.seed, options.count):
            way = onnx_cases.WAYS[number % len(onnx_cases.WAYS)]
            model = graph.model(outputs)
            try:
                feeds = onnx_cases.HIDE[way](model, [graph.values[n] for n in graph.inputs])
            except onnx_cases.CannotHide:
                continue
            arrays = {f"in_{k}": value for k, value in enumerate(feeds)}
            arrays.update({f"out_{k}": value for k, value in enumerate(answers)})
            packed = io.BytesIO()
            np.savez_compressed(packed, **arrays)
            for name, data in (("model.onnx", model.SerializeToString()),
                               ("arrays.npz", packed.getvalue())):
                # Without the time, so that the same seed gives the same file.
                entry = zipfile.ZipInfo(f"{number:03}_{way}/{name}", (2020, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--out", type=Path, help="folder to write cases to")
    parser.add_argument("--record", type=Path, help="file to write hidden models and answers to")
    options = parser.parse_args()
    if options.out:
        write_cases(options)
    if options.record:
        record(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
