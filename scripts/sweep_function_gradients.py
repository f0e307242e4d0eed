#!/usr/bin/env python3
"""TensorFlow's SymbolicGradient of functions drawn at random, under TensorFlow and under heddle.

  sweep_function_gradients.py --heddle build/release/heddle [--seed S] [--count N]

Functions have several arguments of several shapes, results of which some arguments are no part,
attributes, and calls of each other. Needs numpy and tensorflow in the Python that runs this. What
TensorFlow itself refuses is left out and counted. Exit status 0 when all agree."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import graph_pb2, types_pb2  # noqa: E402

ROWS, COLUMNS = 3, 4
# operator: (inputs, output's name); of matrices of ROWS x COLUMNS, and of a row of COLUMNS.
UNARY = {"Tanh": "y", "Sigmoid": "y", "Square": "y", "Exp": "y", "Sin": "y", "Cos": "y",
         "Neg": "y", "Abs": "y", "Relu": "activations", "Log1p": "y", "Erf": "y",
         "Softplus": "activations"}
BINARY = {"Mul": "z", "AddV2": "z", "Sub": "z", "Maximum": "z", "Minimum": "z", "Div": "z",
          "RealDiv": "z", "SquaredDifference": "z"}


class Drawn:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.graph = graph_pb2.GraphDef()
        self.graph.versions.producer = 1882
        arguments = int(self.random.integers(1, 4))
        results = int(self.random.integers(1, 3))
        rows = [bool(self.random.random() < 0.3) for _ in range(arguments)]
        values, shapes = self.function("f", rows, results, call=None)
        if self.random.random() < 0.4:  # another function calls it
            _, shapes = self.function("outer", rows, results, call=("f", shapes))
            name = "outer"
        else:
            name = "f"
        del values
        self.feeds = {}
        operands = []
        for k, is_row in enumerate(rows + shapes):
            operand = f"a{k}" if k < arguments else f"g{k - arguments}"
            node = self.graph.node.add(name=operand, op="Placeholder")
            node.attr["dtype"].type = types_pb2.DT_FLOAT
            shape = [COLUMNS] if is_row else [ROWS, COLUMNS]
            for d in shape:
                node.attr["shape"].shape.dim.add(size=d)
            self.feeds[operand] = self.random.uniform(0.2, 1.5, shape).astype("float32")
            operands.append(operand)
        node = self.graph.node.add(name="gradient", op="SymbolicGradient", input=operands)
        node.attr["f"].func.name = name
        node.attr["Tin"].list.type.extend([types_pb2.DT_FLOAT] * len(operands))
        node.attr["Tout"].list.type.extend([types_pb2.DT_FLOAT] * arguments)
        self.fetches = [f"gradient:{k}" if k else "gradient" for k in range(arguments)]

    def function(self, name, rows, results, call):
        proto = self.graph.library.function.add()
        proto.signature.name = name
        values, shapes = [], []
        for k, is_row in enumerate(rows):
            proto.signature.input_arg.add(name=f"x{k}", type=types_pb2.DT_FLOAT)
            values.append(f"x{k}")
            shapes.append(is_row)
        if call is not None:
            callee, made = call
            node = proto.node_def.add(name="call", op="PartitionedCall", input=values[:len(rows)])
            node.attr["f"].func.name = callee
            node.attr["Tin"].list.type.extend([types_pb2.DT_FLOAT] * len(rows))
            node.attr["Tout"].list.type.extend([types_pb2.DT_FLOAT] * len(made))
            for k, is_row in enumerate(made):
                values.append(f"call:output:{k}")
                shapes.append(is_row)
        for k in range(int(self.random.integers(1, 7))):
            at = int(self.random.integers(len(values)))
            draw = self.random.random()
            if draw < 0.5:
                op = str(self.random.choice(list(UNARY)))
                node = proto.node_def.add(name=f"n{k}", op=op, input=[values[at]])
                values.append(f"n{k}:{UNARY[op]}:0")
                shapes.append(shapes[at])
            else:
                op = str(self.random.choice(list(BINARY)))
                other = int(self.random.integers(len(values)))
                node = proto.node_def.add(name=f"n{k}", op=op, input=[values[at], values[other]])
                values.append(f"n{k}:{BINARY[op]}:0")
                shapes.append(shapes[at] and shapes[other])
            node.attr["T"].type = types_pb2.DT_FLOAT
        made = []
        for k in range(results):
            at = max(len(values) - 1 - k, 0)
            proto.signature.output_arg.add(name=f"y{k}", type=types_pb2.DT_FLOAT)
            proto.ret[f"y{k}"] = values[at]
            made.append(shapes[at])
        return values, made

    def wanted(self):
        """What TensorFlow makes of it; None: it refuses."""
        with tf.Graph().as_default() as graph:
            try:
                tf.graph_util.import_graph_def(self.graph, name="")
                with tf.compat.v1.Session(graph=graph) as session:
                    return session.run([f if ":" in f else f + ":0" for f in self.fetches],
                                       {k + ":0": v for k, v in self.feeds.items()})
            except (tf.errors.OpError, ValueError, TypeError) as error:
                self.refusal = str(error)
                return None


def check(drawn, heddle, folder):
    wanted = drawn.wanted()
    if wanted is None:
        return None
    (folder / "graph.pb").write_bytes(drawn.graph.SerializeToString())
    words = [heddle, "run", folder / "graph.pb", "--out", folder / "out"]
    for name, array in drawn.feeds.items():
        np.save(folder / f"{name}.npy", array)
        words += ["--feed", f"{name}={folder / name}.npy"]
    for name in drawn.fetches:
        words += ["--fetch", name]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    for k, right in enumerate(wanted):
        got = np.load(folder / "out" / f"out_{k}.npy")
        if got.shape != right.shape:
            return f"{drawn.fetches[k]} has shape {got.shape}, not {right.shape}"
        if not np.allclose(got, right, 1e-4, 1e-4, equal_nan=True):
            return f"{drawn.fetches[k]} differs by {np.abs(got - right).max()}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    agree = failed = refused = 0
    refusal = ""
    for number in range(options.count):
        drawn = Drawn([options.seed, number])
        with tempfile.TemporaryDirectory() as folder:
            why = check(drawn, options.heddle, Path(folder))
        if why is None:
            refused += 1
            refusal = drawn.refusal
        elif why:
            failed += 1
            print(f"{options.seed},{number}: {why}", flush=True)
        else:
            agree += 1
    print(f"{agree} agree, {failed} do not, TensorFlow refuses {refused}")
    if refused:
        print("the last refusal:", refusal.splitlines()[0])
    return 1 if failed or not agree else 0


if __name__ == "__main__":
    sys.exit(main())
