"""heddle.saved_model, and the parts of TensorFlow graphs, with files written here byte by byte."""

import struct

import numpy as np
import pytest

import heddle


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A field of a message: an integer, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    return field(5, field(1, name) + field(2, value))


def node(op, name, *inputs, attributes=b""):
    return field(1, field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs)
                 + attributes)


def placeholder(name):
    return node("Placeholder", name, attributes=attribute("dtype", field(6, 1)))


def constant(name, values):
    tensor = field(1, 1) + field(2, field(2, field(1, len(values)))) + field(
        4, struct.pack(f"<{len(values)}f", *values))
    return node("Const", name, attributes=attribute("dtype", field(6, 1))
                + attribute("value", field(8, tensor)))


# sum = x + w, y = relu(sum)
GRAPH = (placeholder("x") + constant("w", [1, -2]) + node("AddV2", "sum", "x", "w")
         + node("Relu", "y", "sum"))


def signature(key, inputs, outputs):
    def entries(number, values):
        return b"".join(field(number, field(1, k) + field(2, field(1, t) + field(2, 1)))
                        for k, t in values.items())
    return field(5, field(1, key) + field(2, entries(1, inputs) + entries(2, outputs)))


@pytest.fixture
def folder(tmp_path):
    meta = (field(1, field(4, "serve")) + field(2, GRAPH)
            + signature("serving_default", {"image": "x:0"}, {"scores": "y:0", "sums": "sum:0"})
            + signature("tail", {"sums": "sum:0"}, {"scores": "y:0"})
            + signature("__saved_model_init_op", {}, {"none": "nothing"}))
    (tmp_path / "saved_model.pb").write_bytes(field(1, 1) + field(2, meta))
    return tmp_path


X = np.array([1, 1], np.float32)


def test_signatures_are_called_as_in_tensorflow(folder):
    served = heddle.saved_model.load(folder, threads=1)
    assert sorted(served.signatures) == ["serving_default", "tail"]
    out = served.signatures["serving_default"](image=X)
    assert sorted(out) == ["scores", "sums"]
    np.testing.assert_array_equal(out["scores"], [2, 0])
    np.testing.assert_array_equal(out["sums"], [2, -1])
    tail = served.signatures["tail"](sums=np.float32([-1, 3]))
    np.testing.assert_array_equal(tail["scores"], [0, 3])
    assert list(served.signatures["tail"].structured_outputs) == ["scores"]
    assert list(served.signatures["tail"].structured_input_signature[1]) == ["sums"]


def test_what_a_signature_does_not_have_is_said(folder):
    served = heddle.saved_model.load(folder)
    with pytest.raises(KeyError, match="no signature 'other'"):
        served.signatures["other"]
    call = served.signatures["serving_default"]
    with pytest.raises(TypeError, match="no input 'x'; there are image"):
        call(x=X)
    with pytest.raises(TypeError, match="needs its input 'image'"):
        call()
    with pytest.raises(TypeError, match="no option 'fetch'"):
        heddle.saved_model.load(folder, fetch=["y"])


def test_load_takes_a_part(folder, tmp_path):
    model = heddle.load(folder, signature="tail")
    assert [info.name for info in model.inputs] == ["sums"]
    with pytest.raises(heddle.NotFound, match="no signature 'other'"):
        heddle.load(folder, signature="other")
    path = tmp_path / "graph.pb"
    path.write_bytes(GRAPH)
    (got,) = heddle.load(path, feed=["sum:0"], fetch=["y:0"]).run({"sum:0": np.float32([-5, 6])})
    np.testing.assert_array_equal(got, [0, 6])
    (got,) = heddle.parse(GRAPH, fetch=["sum"]).run({"x": X})
    np.testing.assert_array_equal(got, [2, -1])
