"""Reads the inputs, outputs and texts of an ONNX file, which a session tells.

Only the outer parts of a `ModelProto` are read here; nodes and tensors are passed over. The C++
library reads the program itself. Field numbers are those of onnx.proto.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

_ELEMENTS = {1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
             8: "string", 9: "bool", 10: "float16", 11: "double", 12: "uint32", 13: "uint64",
             14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8e4m3fn",
             18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
             23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2"}


class Damaged(ValueError):
    """The bytes are not a protobuf message."""


@dataclasses.dataclass
class ValueInfo:
    """An input or output as the file declares it.

    `shape`: a number or the name of each dimension, None for one without either; None when the file
    gives no shape. `type`: ONNX Runtime's text, such as "tensor(float)".
    """

    name: str
    type: str
    shape: list[int | str | None] | None


@dataclasses.dataclass
class ModelFile:
    ir_version: int = 0
    producer_name: str = ""
    producer_version: str = ""
    domain: str = ""
    version: int = 0
    description: str = ""
    graph_name: str = ""
    graph_description: str = ""
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    inputs: list[ValueInfo] = dataclasses.field(default_factory=list)
    outputs: list[ValueInfo] = dataclasses.field(default_factory=list)
    initializers: set[str] = dataclasses.field(default_factory=set)
    has_graph: bool = False


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Damaged
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field: an int for varints, else the bytes."""
    if isinstance(data, int):  # a varint where a message belongs
        raise Damaged
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise Damaged
        if at + size > len(data):
            raise Damaged
        yield key >> 3, data[at:at + size]
        at += size


def _text(value: Any) -> str:
    if isinstance(value, int):
        raise Damaged
    return bytes(value).decode("utf-8", "surrogateescape")


def _signed(value: Any) -> int:
    if not isinstance(value, int):
        raise Damaged
    return value - (1 << 64) if value >> 63 else value


def _first(data: memoryview, number: int) -> Any:
    return next((value for n, value in _fields(data) if n == number), None)


def _dimension(data: memoryview) -> int | str | None:
    for number, value in _fields(data):
        if number == 1:
            size = _signed(value)
            return size if size >= 0 else None
        if number == 2:
            return _text(value) or None
    return None


def _type(data: memoryview) -> tuple[str, list[int | str | None] | None]:
    """The type's text and the shape of a tensor type."""
    for number, value in _fields(data):
        if number in (1, 8):  # tensor, sparse tensor
            element, shape = 0, None
            for n, v in _fields(value):
                if n == 1:
                    element = v
                elif n == 2:
                    shape = [_dimension(d) for m, d in _fields(v) if m == 1]
            kind = "tensor" if number == 1 else "sparse_tensor"
            return f"{kind}({_ELEMENTS.get(element, element)})", shape
        if number in (4, 9):  # sequence, optional
            inner = _first(value, 1)
            kind = "seq" if number == 4 else "optional"
            return f"{kind}({_type(inner)[0] if inner is not None else ''})", None
        if number == 5:  # map
            key, inner = _first(value, 1), _first(value, 2)
            text = _type(inner)[0] if inner is not None else ""
            return f"map({_ELEMENTS.get(key, key)},{text})", None
    return "", None


def _value_info(data: memoryview) -> ValueInfo:
    name, text, shape = "", "", None
    for number, value in _fields(data):
        if number == 1:
            name = _text(value)
        elif number == 2:
            text, shape = _type(value)
    return ValueInfo(name, text, shape)


def _read_graph(data: memoryview, model: ModelFile) -> None:
    model.has_graph = True
    for number, value in _fields(data):
        if number == 2:
            model.graph_name = _text(value)
        elif number == 10:
            model.graph_description = _text(value)
        elif number == 5:
            model.initializers.add(_text(_first(value, 8) or b""))
        elif number == 15:
            values = _first(value, 1)
            if values is not None:
                model.initializers.add(_text(_first(values, 8) or b""))
        elif number == 11:
            model.inputs.append(_value_info(value))
        elif number == 12:
            model.outputs.append(_value_info(value))


def read(data: Any) -> ModelFile:
    """Reads a serialized `ModelProto` from anything with the buffer protocol.

    Raises `Damaged` where the bytes are not a protobuf message.
    """
    model = ModelFile()
    texts = {2: "producer_name", 3: "producer_version", 4: "domain", 6: "description"}
    for number, value in _fields(memoryview(data)):
        if number in texts:
            setattr(model, texts[number], _text(value))
        elif number == 1:
            model.ir_version = _signed(value)
        elif number == 5:
            model.version = _signed(value)
        elif number == 7:
            if isinstance(value, int):
                raise Damaged
            _read_graph(value, model)
        elif number == 14:
            entry = dict(_fields(value))
            model.metadata[_text(entry.get(1, b""))] = _text(entry.get(2, b""))
    return model
