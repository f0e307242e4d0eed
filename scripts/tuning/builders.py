#!/usr/bin/env python3
"""Writes a network of twin.py as a model: builders.py FORMAT SPEC.json WEIGHTS.npz DIR.

`paddle` needs Paddle 2.6, `tf` TensorFlow 2; `onnx` needs NumPy alone. The model's input is called
x and its output y, where the format has names. With "batch" in the specification, the file fixes
that number of samples, and says it again in its reshapes."""

import json
import struct
import sys
from pathlib import Path

import numpy as np
from twin import MOMENTUM

ROOT = Path(__file__).resolve().parent.parent.parent


def onnx(spec, weights, directory):
    sys.path.insert(0, str(ROOT / "tests/python"))
    import onnx_model as o

    batch = spec.get("batch")
    rows = batch or "N"
    nodes, count, extra, shape = [], 0, [], list(spec["shape"])

    def add(op, inputs, attributes=b"", out=None):
        nonlocal count
        count += 1
        name = out or f"v{count}"
        nodes.append(o.node(op, inputs, [name], attributes))
        return name

    def attr_int(name, value):
        return o.text(5, o.text(1, name) + o.number(3, value) + o.number(20, 2))

    def attr_float(name, value):
        field = bytes([2 << 3 | 5]) + struct.pack("<f", value)
        return o.text(5, o.text(1, name) + field + o.number(20, 1))

    def attr_ints(name, values):
        return o.text(5, o.text(1, name) + b"".join(o.number(8, v) for v in values)
                      + o.number(20, 7))

    value = "x"
    for layer in spec["layers"]:
        kind = layer["kind"]
        if kind == "conv":
            k, b = layer["k"], [layer["b"]] if layer["b"] else []
            value = add("Conv", [value, layer["w"]] + b,
                        attr_ints("kernel_shape", [k, k]) + attr_ints("pads", [k // 2] * 4))
            shape[0] = weights[layer["w"]].shape[0]
        elif kind == "norm":
            value = add("BatchNormalization", [value] + layer["names"],
                        attr_float("momentum", MOMENTUM))
        elif kind == "fc":
            if layer["b"]:
                value = add("Gemm", [value, layer["w"], layer["b"]],
                            attr_int("transB", 1) if layer["turned"] else b"")
            else:
                w = layer["w"]
                if layer["turned"]:
                    w = add("Transpose", [w], attr_ints("perm", [1, 0]))
                value = add("MatMul", [value, w])
            shape = [shape[0]]
        elif kind == "pool":
            value = add("GlobalAveragePool", [value])
            value, shape = reshaped(add, o, extra, value, batch, [shape[0]], spec), [shape[0]]
        elif kind == "flatten":
            shape = [int(np.prod(shape))]
            value = reshaped(add, o, extra, value, batch, shape, spec)
        else:
            value = add({"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}[kind], [value])
    final = {"softmax": "Softmax", "log_softmax": "LogSoftmax", "sigmoid": "Sigmoid",
             "": "Identity"}[spec["final"]]
    add(final, [value], attr_int("axis", 1) if "softmax" in spec["final"] else b"", out="y")
    classes = spec["classes"]
    bytes_ = o.model(nodes, [o.value("x", "float32", [rows] + list(spec["shape"]))],
                     [o.value("y", "float32", [rows, classes])],
                     [o.tensor(name, w) for name, w in weights.items()] + extra)
    (directory / "model.onnx").write_bytes(bytes_)


def reshaped(add, o, extra, value, batch, shape, spec):
    if batch is None:
        return add("Flatten", [value])
    dims = [batch, -1] if spec.get("minus_one") else [batch] + shape
    name = f"dims{len(extra)}"
    extra.append(o.tensor(name, np.array(dims, "i8")))
    return add("Reshape", [value, name])


def paddle(spec, weights, directory):
    import paddle as p
    from paddle import static

    p.enable_static()
    main, startup = static.Program(), static.Program()
    batch = spec.get("batch")

    def made(name):
        initial = p.nn.initializer.Assign(weights[name])
        return p.ParamAttr(name=name, initializer=initial)

    with static.program_guard(main, startup):
        x = static.data("x", [batch or -1] + list(spec["shape"]), "float32")
        value = x
        for layer in spec["layers"]:
            kind = layer["kind"]
            if kind == "conv":
                w = weights[layer["w"]]
                value = static.nn.conv2d(value, w.shape[0], layer["k"], padding=layer["k"] // 2,
                                         param_attr=made(layer["w"]),
                                         bias_attr=made(layer["b"]) if layer["b"] else False)
            elif kind == "norm":
                names = layer["names"]
                value = static.nn.batch_norm(value, epsilon=1e-5, momentum=MOMENTUM, is_test=True,
                                             param_attr=made(names[0]), bias_attr=made(names[1]),
                                             moving_mean_name=names[2],
                                             moving_variance_name=names[3])
            elif kind == "fc":
                w = weights[layer["w"]]
                parameter = static.create_parameter(w.shape, "float32", attr=made(layer["w"]))
                value = p.matmul(value, parameter, transpose_y=layer["turned"])
                if layer["b"]:
                    b = weights[layer["b"]]
                    value = value + static.create_parameter(b.shape, "float32",
                                                            attr=made(layer["b"]), is_bias=True)
            elif kind == "pool":
                value = p.mean(value, [2, 3])
            elif kind == "flatten":
                size = int(np.prod(value.shape[1:]))
                value = p.reshape(value, [batch or -1, -1 if batch and spec.get("minus_one")
                                          else size])
            else:
                value = getattr(p.nn.functional, kind)(value)
        if spec["final"]:
            value = getattr(p.nn.functional, spec["final"])(value)
        else:
            value = p.assign(value)
    exe = static.Executor(p.CPUPlace())
    exe.run(startup)
    for layer in spec["layers"]:
        for name in layer.get("names", [])[2:]:
            static.global_scope().var(name).get_tensor().set(weights[name], p.CPUPlace())
    static.save_inference_model(str(directory / "model"), [x], [value], exe, program=main)


def tf(spec, weights, directory):
    import tensorflow as t

    class Net(t.Module):
        def __init__(self):
            super().__init__()
            self.w = {n: t.Variable(v, name=n, trainable=not n.startswith(("mean", "variance")))
                      for n, v in weights.items()}

        @t.function(input_signature=[t.TensorSpec([spec.get("batch")] + list(spec["shape"]),
                                                  t.float32, name="x")])
        def __call__(self, value):
            for layer in spec["layers"]:
                kind = layer["kind"]
                if kind == "fc":
                    value = t.matmul(value, self.w[layer["w"]], transpose_b=layer["turned"])
                    if layer["b"]:
                        value = t.nn.bias_add(value, self.w[layer["b"]])
                else:
                    value = getattr(t.nn, kind)(value)
            if spec["final"]:
                value = getattr(t.nn, spec["final"])(value)
            return {"y": t.identity(value)}

    net = Net()
    t.saved_model.save(net, str(directory), signatures=net.__call__)


if __name__ == "__main__":
    kind_, spec_, weights_, directory_ = sys.argv[1:]
    with np.load(weights_) as arrays:
        loaded = dict(arrays)
    {"onnx": onnx, "paddle": paddle, "tf": tf}[kind_](
        json.loads(Path(spec_).read_text(encoding="utf-8")), loaded, Path(directory_))
