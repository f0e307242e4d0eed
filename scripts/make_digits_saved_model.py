#!/usr/bin/env python3
"""Writes examples/digits/tensorflow: the digits network as a TensorFlow SavedModel, parameters from
the Paddle model. The files are made byte by byte, by the format's description.

Needs the package heddle (for the parameters), which also checks that both models give the same
numbers for examples/digits/input.npy.
"""

import struct
from pathlib import Path

import numpy as np

import heddle

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "digits"
FLOAT, INT32, STRING = 1, 3, 7
MAGIC = bytes.fromhex("57fb808b247547db")


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A field of a message: an integer, a text or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def shape(dims):
    return b"".join(field(2, field(1, d if d >= 0 else 2**64 + d)) for d in dims)


def dtype(number):
    return field(6, number)


def integers(values):
    return field(1, field(3, b"".join(varint(v) for v in values)))


def node(op, name, inputs=(), **attributes):
    return field(1, field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs)
                 + b"".join(field(5, field(1, k) + field(2, v))
                            for k, v in sorted(attributes.items())))


def constant(name, number, dims, content):
    tensor = field(1, number) + field(2, shape(dims)) + content
    return node("Const", name, dtype=dtype(number), value=field(8, tensor))


def ints(name, values):
    return constant(name, INT32, [len(values)],
                    field(4, struct.pack(f"<{len(values)}i", *values)))


def texts(name, values):
    return constant(name, STRING, [len(values)], b"".join(field(8, v) for v in values))


def layers(weights):
    """Images as Paddle's model takes them; convolutions with channels last."""
    graph = node("Placeholder", "serving_default_x", dtype=dtype(FLOAT),
                 shape=field(7, shape([-1, 1, 8, 8])))
    graph += constant("to_unit", FLOAT, [], field(4, struct.pack("<f", 0.0625)))
    graph += ints("to_last", [0, 2, 3, 1]) + ints("to_first", [0, 3, 1, 2])
    graph += node("Mul", "unit", ["serving_default_x", "to_unit"])
    graph += node("Transpose", "last", ["unit", "to_last"])
    for name in weights:
        graph += node("VarHandleOp", name, dtype=dtype(FLOAT), shared_name=field(2, name),
                      shape=field(7, shape(weights[name].shape)))
        graph += node("ReadVariableOp", f"{name}/read", [name], dtype=dtype(FLOAT))
    now = "last"
    for k in range(3):
        graph += node("Conv2D", f"conv_{k}", [now, f"conv2d_{k}.w_0/read"],
                      padding=field(2, "SAME"), strides=integers([1, 1, 1, 1]), T=dtype(FLOAT))
        graph += node("BiasAdd", f"bias_{k}", [f"conv_{k}", f"conv2d_{k}.b_0/read"])
        graph += node("Relu", f"relu_{k}", [f"bias_{k}"])
        now = f"relu_{k}"
        if k > 0:
            graph += node("MaxPool", f"pool_{k}", [now], padding=field(2, "VALID"),
                          ksize=integers([1, 2, 2, 1]), strides=integers([1, 2, 2, 1]))
            now = f"pool_{k}"
    graph += node("Transpose", "first", [now, "to_first"])
    graph += ints("flat", [-1, weights["fc_0.w_0"].shape[0]])
    graph += node("Reshape", "features", ["first", "flat"])
    graph += node("MatMul", "matmul_0", ["features", "fc_0.w_0/read"])
    graph += node("BiasAdd", "dense_0", ["matmul_0", "fc_0.b_0/read"])
    graph += node("Relu", "hidden", ["dense_0"])
    graph += node("MatMul", "matmul_1", ["hidden", "fc_1.w_0/read"])
    graph += node("BiasAdd", "logits", ["matmul_1", "fc_1.b_0/read"])
    return graph + node("Softmax", "probabilities", ["logits"])


def restoring(names):
    graph = texts("save/names", names) + texts("save/slices", [""] * len(names))
    graph += node("Placeholder", "save/prefix", dtype=dtype(STRING))
    graph += node("RestoreV2", "save/restore", ["save/prefix", "save/names", "save/slices"])
    for k, name in enumerate(names):
        graph += node("AssignVariableOp", f"save/assign_{k}", [name, f"save/restore:{k}"])
    return graph + node("NoOp", "save/restore_all",
                        [f"^save/assign_{k}" for k in range(len(names))])


def signature(key, inputs, outputs):
    def entries(number, values):
        return b"".join(field(number, field(1, k) + field(2, field(1, v) + field(2, FLOAT)))
                        for k, v in values.items())
    return field(5, field(1, key) + field(2, entries(1, inputs) + entries(2, outputs)))


def block(entries):
    out, last = b"", b""
    for key, value in sorted(entries.items()):
        shared = 0
        while shared < min(len(last), len(key)) and last[shared] == key[shared]:
            shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value))
        out += key[shared:] + value
        last = key
    return out + struct.pack("<II", 0, 1)


def checksum(content):
    """Castagnoli's CRC-32, turned and shifted as the bundle's files have it."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def write_bundle(prefix, weights):
    entries, data = {b"": field(1, 1) + field(3, field(1, 1))}, b""
    for name, array in sorted(weights.items()):
        content = array.astype("<f4").tobytes()
        entries[name.encode()] = (field(1, FLOAT) + field(2, shape(array.shape))
                                  + field(4, len(data)) + field(5, len(content))
                                  + varint(6 << 3 | 5) + checksum(content))
        data += content
    table = block(entries)
    index = block({max(entries) + b"\xff": varint(0) + varint(len(table))})
    footer = varint(0) + varint(0) + varint(len(table) + 5) + varint(len(index))
    # Behind a block: not compressed, and the checksum of block and mark.
    parts = b"".join(part + b"\0" + checksum(part + b"\0") for part in (table, index))
    prefix.with_suffix(".index").write_bytes(parts + footer.ljust(40, b"\0") + MAGIC)
    prefix.with_suffix(".data-00000-of-00001").write_bytes(data)


def main():
    paddle = heddle.load(FOLDER)
    weights = {}
    for name, array in paddle.parameters.items():
        array = np.asarray(array)
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)
        weights[name] = array.reshape(-1) if name.endswith(".b_0") else array
    graph = layers(weights) + restoring(sorted(weights)) + field(4, field(1, 2474))
    meta = field(1, field(4, "serve")) + field(2, graph)
    meta += field(3, field(1, "save/prefix:0") + field(3, "save/restore_all"))
    meta += signature("serving_default", {"x": "serving_default_x:0"},
                      {"probabilities": "probabilities:0"})
    meta += signature("features", {"x": "serving_default_x:0"}, {"hidden": "hidden:0"})
    to = FOLDER / "tensorflow"
    (to / "variables").mkdir(parents=True, exist_ok=True)
    (to / "saved_model.pb").write_bytes(field(1, 1) + field(2, meta))
    write_bundle(to / "variables" / "variables", weights)
    x = np.load(FOLDER / "input.npy")
    y = heddle.saved_model.load(to).signatures["serving_default"](x=x)["probabilities"]
    np.testing.assert_allclose(y, paddle(x), rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    main()
