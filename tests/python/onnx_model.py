"""Writes small ONNX models: the fields of onnx.proto that the tests need."""

from __future__ import annotations

import numpy as np

_NUMBERS = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
            "string": 8, "bool": 9, "float64": 11, "uint32": 12, "uint64": 13, "uint4": 21,
            "int4": 22, "uint2": 25, "int2": 26}


def _varint(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def text(field: int, value: str | bytes) -> bytes:
    data = value if isinstance(value, bytes) else value.encode()
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def value(name: str, dtype: str, shape: list[int | str] | None) -> bytes:
    tensor = number(1, _NUMBERS[dtype])
    if shape is not None:
        dims = b"".join(text(1, text(2, d) if isinstance(d, str) else number(1, d)) for d in shape)
        tensor += text(2, dims)
    return text(1, name) + text(2, text(1, tensor))


def tensor(name: str, array: np.ndarray) -> bytes:
    dims = b"".join(number(1, d) for d in array.shape)
    return dims + number(2, _NUMBERS[array.dtype.name]) + text(8, name) + text(9, array.tobytes())


def node(op: str, inputs: list[str], outputs: list[str], attributes: bytes = b"") -> bytes:
    return (b"".join(text(1, i) for i in inputs) + b"".join(text(2, o) for o in outputs)
            + text(4, op) + attributes)


def model(nodes: list[bytes], inputs: list[bytes], outputs: list[bytes],
          initializers: list[bytes] = (), opset: int = 13, metadata: dict[str, str] | None = None
          ) -> bytes:
    graph = (b"".join(text(1, n) for n in nodes) + text(2, "tested")
             + b"".join(text(5, t) for t in initializers)
             + b"".join(text(11, i) for i in inputs) + b"".join(text(12, o) for o in outputs))
    entries = b"".join(text(14, text(1, k) + text(2, v)) for k, v in (metadata or {}).items())
    return (number(1, 8) + text(2, "by hand") + text(6, "a model") + text(7, graph)
            + text(8, text(1, "") + number(2, opset)) + entries)
