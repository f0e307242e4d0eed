#!/usr/bin/env python3
"""A decoder like GPT-2 whose weights are integers of 4 or 8 bits: memory, and the time of a step.

  python3 -m venv .venv && .venv/bin/pip install numpy onnx onnxruntime
  .venv/bin/python benchmarks/small_weights.py --heddle build/release/heddle

Makes models with made-up weights, 0.1 billion of them unless told otherwise:

  nbits    MatMulNBits and GatherBlockQuantized of com.microsoft, 4 bits in blocks of 32
  blocks   DequantizeLinear of int4 in blocks of 32, then MatMul
  columns  DequantizeLinear of int8 with a scale for each column, then MatMul
  cast     int8, Cast, Mul and MatMul

A step decodes one token behind --past others whose keys and values are fed; a prompt has 64 tokens.
heddle and ONNX Runtime hold the model in a process each and run in turns; their outputs are
compared first. "of the file" is the memory of the process while it waits, less its inputs and less
that of the same process with a network of a few numbers, relative to the file.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
from onnx import TensorProto, helper

from peers.sides import Failed, Heddle, HeddleProcess, Process, note

WORKER = Path(__file__).with_name("peers") / "inference_worker.py"
BLOCK = 32


class Decoder:
    """The graph of one kind of weights."""

    def __init__(self, kind, options, seed=1):
        self.kind, self.o, self.random = kind, options, np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def constant(self, array, dtype=None):
        name = f"c{len(self.constants)}"
        if dtype == TensorProto.INT4:
            packed = (array.reshape(-1, 2)[:, 0] & 15) | (array.reshape(-1, 2)[:, 1] & 15) << 4
            tensor = helper.make_tensor(name, dtype, array.shape,
                                        packed.astype(np.uint8).tobytes(), raw=True)
        else:
            tensor = onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        self.constants.append(tensor)
        return name

    def add(self, op, inputs, outputs=1, domain="", **attributes):
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def integers(self, least, most, *shape):
        return self.random.integers(least, most + 1, shape, dtype=np.int64)

    def scales(self, *shape, size=1.0):
        return (self.random.uniform(0.5, 1.5, shape) * size).astype(np.float32)

    def table(self, rows, width):
        """Rows of a matrix, picked by the input `ids`."""
        if self.kind == "nbits":
            data = self.constant(self.integers(0, 255, rows, width // 2).astype(np.uint8))
            scale = self.constant(self.scales(rows, width // BLOCK, size=0.02))
            return self.add("GatherBlockQuantized", [data, "ids", scale], domain="com.microsoft",
                            bits=4, block_size=BLOCK, gather_axis=0, quantize_axis=1)
        data = self.constant(self.integers(-127, 127, rows, width).astype(np.int8))
        scale = self.constant(self.scales(rows, size=1e-3))
        return self.add("Gather", [self.add("DequantizeLinear", [data, scale], axis=0), "ids"])

    def product(self, x, terms, columns, bias=True):
        size = 0.5 / np.sqrt(terms)
        if self.kind == "nbits":
            blocks = terms // BLOCK
            weights = self.integers(0, 255, columns, blocks, BLOCK // 2).astype(np.uint8)
            zeros = (self.integers(6, 9, columns, blocks // 2) * 17).astype(np.uint8)
            operands = [x, self.constant(weights),
                        self.constant(self.scales(columns * blocks, size=size / 4)),
                        self.constant(zeros.reshape(-1))]
            y = self.add("MatMulNBits", operands, domain="com.microsoft", K=terms, N=columns,
                         bits=4, block_size=BLOCK)
        else:
            if self.kind == "blocks":
                weights = self.constant(self.integers(-8, 7, terms, columns), TensorProto.INT4)
                scale = self.constant(self.scales(terms // BLOCK, columns, size=size / 4))
                w = self.add("DequantizeLinear", [weights, scale], axis=0, block_size=BLOCK)
            else:
                weights = self.constant(self.integers(-127, 127, terms, columns).astype(np.int8))
                scale = self.constant(self.scales(columns, size=size / 70))
                if self.kind == "columns":
                    w = self.add("DequantizeLinear", [weights, scale], axis=1)
                else:
                    floats = self.add("Cast", [weights], to=TensorProto.FLOAT)
                    w = self.add("Mul", [floats, scale])
            y = self.add("MatMul", [x, w])
        if not bias:
            return y
        return self.add("Add", [y, self.constant(self.scales(columns, size=0.02))])

    def normal(self, x):
        ones, zeros = np.ones(self.o.width, np.float32), np.zeros(self.o.width, np.float32)
        return self.add("LayerNormalization", [x, self.constant(ones), self.constant(zeros)])

    def heads(self, x):
        width = self.o.width // self.o.heads
        shape = self.constant(np.array([0, 0, self.o.heads, width], np.int64))
        return self.add("Transpose", [self.add("Reshape", [x, shape])], perm=[0, 2, 1, 3])

    def attention(self, x, layer, past):
        width = self.o.width
        sizes = self.constant(np.array([width] * 3, np.int64))
        query, key, value = self.add("Split", [self.product(x, width, 3 * width), sizes], 3,
                                     axis=-1)
        query, key, value = self.heads(query), self.heads(key), self.heads(value)
        if past:
            shape = [1, self.o.heads, past, width // self.o.heads]
            for what in ("key", "value"):
                self.inputs.append(helper.make_tensor_value_info(f"{what}_{layer}",
                                                                 TensorProto.FLOAT, shape))
            key = self.add("Concat", [f"key_{layer}", key], axis=2)
            value = self.add("Concat", [f"value_{layer}", value], axis=2)
        scores = self.add("MatMul", [query, self.add("Transpose", [key], perm=[0, 1, 3, 2])])
        scores = self.add("Mul", [scores, self.constant(
            np.float32((width // self.o.heads) ** -0.5))])
        mixed = self.add("MatMul", [self.add("Softmax", [scores], axis=-1), value])
        joined = self.add("Reshape", [self.add("Transpose", [mixed], perm=[0, 2, 1, 3]),
                                      self.constant(np.array([0, 0, width], np.int64))])
        return self.product(joined, width, width)

    def save(self, tokens, past, path):
        width = self.o.width
        self.inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, tokens])]
        x = self.table(self.o.words, width)
        for layer in range(self.o.layers):
            x = self.add("Add", [x, self.attention(self.normal(x), layer, past)])
            wide = self.product(self.normal(x), width, 4 * width)
            wide = self.add("Gelu", [wide], approximate="tanh")
            x = self.add("Add", [x, self.product(wide, 4 * width, width)])
        y = self.product(self.normal(x), width, self.o.words, bias=False)
        graph = helper.make_graph(
            self.nodes, "decoder", self.inputs,
            [helper.make_tensor_value_info(y, TensorProto.FLOAT, [1, tokens, self.o.words])],
            self.constants)
        imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)


def feeds_of(path, folder, words):
    random, feeds = np.random.default_rng(2), {}
    for value in onnx.load(path, load_external_data=False).graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        array = (random.integers(0, words, shape) if value.name == "ids"
                 else random.standard_normal(shape).astype(np.float32))
        feeds[value.name] = Path(folder) / f"{path.stem}_{value.name}.npy"
        np.save(feeds[value.name], array)
    return feeds


def resident(process):
    for line in Path(f"/proc/{process.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise Failed("no VmRSS")


def sides_of(case, threads, options):
    spec = {"engine": "onnxruntime", "model": str(case.program), "params": None,
            "threads": threads, "feeds": {k: str(v) for k, v in case.feeds.items()},
            "setting": {}}
    return {"heddle": HeddleProcess(Heddle(options.heddle, threads), case),
            "onnxruntime": Process([sys.executable, WORKER, json.dumps(spec)], dict(os.environ))}


def difference(case, options):
    """The largest difference of the outputs, relative to the largest output."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        command = Heddle(options.heddle, 2).command("run", case) + ["--out", folder, "--no-lean"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(done.stderr.strip())
        got = np.load(Path(folder) / "out_0.npy")
    session = onnxruntime.InferenceSession(str(case.program), providers=["CPUExecutionProvider"])
    want = session.run(None, {k: np.load(v) for k, v in case.feeds.items()})[0]
    return float(np.abs(got - want).max() / np.abs(want).max())


def waiting(case, threads, options, seconds=0.0):
    """Sides with their models loaded and run, and their memory."""
    sides = sides_of(case, threads, options)
    for process in sides.values():
        process.slice(seconds)
    return sides, {name: resident(process) for name, process in sides.items()}


def close(sides):
    for process in sides.values():
        process.close()


def tiny(folder):
    path = Path(folder) / "tiny.onnx"
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "tiny", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=8), path)
    np.save(Path(folder) / "x.npy", np.ones(2, np.float32))
    return SimpleNamespace(program=path, params=None, feeds={"x": Path(folder) / "x.npy"})


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--heddle", type=Path, required=True, help="the tool to measure")
    p.add_argument("--kinds", default="nbits,blocks,columns,cast")
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--width", type=int, default=768)
    p.add_argument("--heads", type=int, default=12)
    p.add_argument("--words", type=int, default=16384)
    p.add_argument("--past", type=int, default=128)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.5, help="of a slice")
    p.add_argument("--json", type=Path, help="write all figures there")
    options = p.parse_args()
    rows = []
    for kind in options.kinds.split(","):
        with tempfile.TemporaryDirectory() as folder:
            small = tiny(folder)
            for name, tokens, past in (("step", 1, options.past), ("prompt", 64, 0)):
                path = Path(folder) / f"{kind}_{name}.onnx"
                Decoder(kind, options).save(tokens, past, path)
                case = SimpleNamespace(program=path, params=None,
                                       feeds=feeds_of(path, folder, options.words))
                file = path.stat().st_size
                apart = difference(case, options)
                for threads in map(int, options.threads.split(",")):
                    sides, empty = waiting(small, threads, options)
                    close(sides)
                    sides, full = waiting(case, threads, options)
                    times = {side: [] for side in sides}
                    for _ in range(options.rounds):
                        for side, process in sides.items():
                            times[side].append(process.slice(options.seconds)["median_ms"])
                    close(sides)
                    fed = sum(path.stat().st_size for path in case.feeds.values())
                    row = {"kind": kind, "case": name, "threads": threads, "file_mb": file / 1e6,
                           "difference": apart,
                           "ms": {side: statistics.median(t) for side, t in times.items()},
                           "resident_of_file": {side: (full[side] - empty[side] - fed) / file
                                                for side in full}}
                    rows.append(row)
                    ms, of_file = row["ms"], row["resident_of_file"]
                    print(f"{kind:8s} {name:7s} {threads} threads, file {file / 1e6:6.1f} MB, "
                          f"difference {apart:.1e}: heddle {ms['heddle']:8.2f} ms, "
                          f"{of_file['heddle']:.2f} of the file; ONNX Runtime "
                          f"{ms['onnxruntime']:8.2f} ms, {of_file['onnxruntime']:.2f}; "
                          f"ratio {ms['heddle'] / ms['onnxruntime']:.2f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        note(str(e))
        sys.exit(1)
