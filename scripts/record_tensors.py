#!/usr/bin/env python3
"""Writes tensors as messages of ONNX or TensorFlow hold them, and what the format's own package
reads from them: tests/formats/onnx/tensors.txt, tests/formats/tensorflow/tensors.txt.

  record_tensors.py onnx       needs the package onnx
  record_tensors.py tensorflow needs the package tensorflow

A line has the type, the encoding, the message and the elements as heddle stores them, both in
hexadecimal. Each type stands in each encoding that the format has for it, with 0 to 8 elements.
"""

import argparse
import random
from pathlib import Path

import numpy as np

COUNTS = (0, 1, 3, 5, 8)


def varint(v):
    v &= (1 << 64) - 1
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def integer(number, v):
    return varint(number << 3) + varint(v)


def single(number, value, width):
    """One value that is not packed; width 0: a varint."""
    wire = {0: 0, 4: 5, 8: 1}[width]
    return varint(number << 3 | wire) + (varint(value) if width == 0 else value)


def patterns(bits, count, rng, is_bool):
    if is_bool:
        return [rng.choice((0, 1, 2, 0x80, 0xFF)) for _ in range(count)]
    edges = (0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1)
    return [rng.choice(edges) if rng.random() < 0.5 else rng.getrandbits(bits)
            for _ in range(count)]


def quiet(value, bits, width):
    """The pattern of floats with NaNs that conversions leave as they are."""
    exponent, mantissa = {4: (0xFF << 23, (1 << 23) - 1),
                          8: (0x7FF << 52, (1 << 52) - 1)}[width]
    for at in range(0, bits, width * 8):
        part = value >> at
        if part & exponent == exponent and part & mantissa:
            value |= (mantissa + 1) >> 1 << at
    return value


def raw(values, bits):
    if bits >= 8:
        return b"".join(v.to_bytes(bits // 8, "little") for v in values)
    per = 8 // bits
    out = bytearray((len(values) + per - 1) // per)
    for i, v in enumerate(values):
        out[i // per] |= v << (i % per * bits)
    return bytes(out)


def wire_values(values, bits, is_signed, is_bool, width, rng):
    """The values of the type's own field, as payloads of single values."""
    if width:
        data = raw(values, bits)
        return [data[i:i + width] for i in range(0, len(data), width)]
    if bits < 8:
        return list(raw(values, bits))
    if is_bool:
        return [rng.choice((1, 2, 256, -1, 1 << 20)) if v else 0 for v in values]
    return [v - (1 << bits) if is_signed and v >> (bits - 1) else v for v in values]


def typed(number, values, width, form, rng):
    packed = b"".join(v if width else varint(v) for v in values)
    if form == "packed":
        return field(number, packed) if values else b""
    singles = [single(number, v, width) for v in values]
    if form == "single":
        return b"".join(singles)
    cut = rng.randrange(len(values) + 1)  # one after another, in both forms
    head = b"".join(v if width else varint(v) for v in values[:cut])
    return (field(number, head) if cut else b"") + b"".join(singles[cut:])


def stored(array, storage):
    """An array's elements as heddle stores them."""
    name = str(array.dtype)
    if name == "bool":
        array = array.view(np.uint8) != 0
    elif name in ("int2", "int4"):
        array = array.astype(np.int8)
    elif name in ("uint2", "uint4"):
        array = array.astype(np.uint8)
    elif name.startswith("float") and array.dtype.itemsize == 1:
        array = array.view(np.uint8)
    elif name == "bfloat16":
        array = array.view(np.uint16)
    if storage is not None:
        array = array.astype(storage)
    return np.ascontiguousarray(array).tobytes()


def write(path, lines):
    header = "# Written by scripts/record_tensors.py: type, encoding, message, elements.\n"
    path.write_text(header + "".join(f"{line}\n" for line in lines))
    print(f"{path}: {len(lines)} tensors")


def onnx_lines(rng):
    from onnx import TensorProto, numpy_helper

    float_data, int32_data, int64_data, double_data, uint64_data = 4, 5, 7, 10, 11
    # type: bits, field, width of its values, signed, storage where it is another dtype
    types = {
        1: (32, float_data, 4, False, None), 2: (8, int32_data, 0, False, None),
        3: (8, int32_data, 0, True, None), 4: (16, int32_data, 0, False, np.int32),
        5: (16, int32_data, 0, True, None), 6: (32, int32_data, 0, True, None),
        7: (64, int64_data, 0, True, None), 9: (8, int32_data, 0, False, None),
        10: (16, int32_data, 0, False, None), 11: (64, double_data, 8, False, None),
        12: (32, uint64_data, 0, False, np.int64), 13: (64, uint64_data, 0, False, np.uint64),
        14: (64, float_data, 4, False, None), 15: (128, double_data, 8, False, None),
        16: (16, int32_data, 0, False, None), 17: (8, int32_data, 0, False, None),
        18: (8, int32_data, 0, False, None), 19: (8, int32_data, 0, False, None),
        20: (8, int32_data, 0, False, None), 21: (4, int32_data, 0, False, None),
        22: (4, int32_data, 0, True, None), 23: (4, int32_data, 0, False, None),
        24: (8, int32_data, 0, False, None), 25: (2, int32_data, 0, False, None),
        26: (2, int32_data, 0, True, None)}
    for number, (bits, at, width, is_signed, storage) in types.items():
        for count in COUNTS:
            for form in ("raw", "packed", "single", "mixed"):
                values = patterns(bits, count, rng, number == 9)
                if form == "raw":
                    data = field(9, raw(values, bits))
                else:
                    data = typed(at, wire_values(values, bits, is_signed, number == 9, width, rng),
                                 width, form, rng)
                message = integer(1, count) + integer(2, number) + data
                tensor = TensorProto.FromString(message)
                want = stored(numpy_helper.to_array(tensor), storage)
                if number == 9 and form != "raw":
                    # The package keeps 8 of the 32 bits; ONNX Runtime asks for 0.
                    want = (np.array(tensor.int32_data, np.int32) != 0).tobytes()
                if number == 23:  # the bits of each element in a byte
                    want = bytes(values)
                yield f"{number} {form}{count} {message.hex()} {want.hex() or '-'}"


def tensorflow_lines(rng):
    import tensorflow as tf
    from tensorflow.core.framework import tensor_pb2

    # type: bits, field, width of its values, signed, storage where it is another dtype
    types = {
        1: (32, 5, 4, False, None), 2: (64, 6, 8, False, None), 3: (32, 7, 0, True, None),
        4: (8, 7, 0, False, None), 5: (16, 7, 0, True, None), 6: (8, 7, 0, True, None),
        8: (64, 9, 4, False, None), 9: (64, 10, 0, True, None), 10: (8, 11, 0, False, None),
        11: (8, 7, 0, True, None), 12: (8, 7, 0, False, None), 13: (32, 7, 0, True, None),
        14: (16, 13, 0, False, None), 15: (16, 7, 0, True, None), 16: (16, 7, 0, False, np.int32),
        17: (16, 7, 0, False, np.int32), 18: (128, 12, 8, False, None),
        19: (16, 13, 0, False, None), 22: (32, 16, 0, False, np.int64),
        23: (64, 17, 0, False, np.uint64)}
    for number, (bits, at, width, is_signed, storage) in types.items():
        per = max(bits // 8 // width, 1) if width else 1  # payloads of an element
        for count in COUNTS:
            for form in ("raw", "packed", "single", "mixed", "splat"):
                # The last of fewer values stands for those that are left out.
                given = rng.randrange(count + 1) if form == "splat" else count
                values = patterns(bits, given, rng, number == 10)
                if width:
                    values = [quiet(v, bits, width) for v in values]
                if form == "raw":
                    data = field(4, raw(values, bits)) if values else b""
                else:
                    payloads = wire_values(values, bits, is_signed, number == 10, width, rng)
                    assert len(payloads) == given * per
                    data = typed(at, payloads, width, "mixed" if form == "splat" else form, rng)
                shape = field(2, field(2, integer(1, count)))
                message = integer(1, number) + shape + data
                proto = tensor_pb2.TensorProto.FromString(message)
                array = tf.make_ndarray(proto)
                if array.dtype.names:  # of one quantised number
                    array = array[array.dtype.names[0]]
                yield (f"{number} {form}{count} {message.hex()} "
                       f"{stored(array, storage).hex() or '-'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", choices=("onnx", "tensorflow"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="another file than that of the tests")
    args = parser.parse_args()
    lines = {"onnx": onnx_lines, "tensorflow": tensorflow_lines}[args.format]
    usual = Path(__file__).parent.parent / "tests" / "formats" / args.format / "tensors.txt"
    write(args.out or usual, list(lines(random.Random(args.seed))))


if __name__ == "__main__":
    main()
