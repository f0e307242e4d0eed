"""TensorFlow graphs with texts in lists, TensorArrays and sparse tensors, and what TensorFlow
answered; ONNX sequences of texts that go in and come out.

scripts/sweep_text_lists_tf.py --record tests/python/text_lists_tf.npz --count 6 writes the
recording.
"""

import json
import pathlib

import numpy as np
import onnx_model as om
import pytest

import heddle
import heddle.onnx as ort

FILE = np.load(pathlib.Path(__file__).parent / "text_lists_tf.npz")
CASES = json.loads(str(FILE["names"]))


def array(key):
    """Texts end with a mark, since NumPy drops zeros at the end of bytes."""
    x = FILE[key]
    if x.dtype.kind != "S":
        return x
    made = np.empty(x.size, object)
    made[:] = [text[:-1] for text in x.ravel().tolist()]
    return made.reshape(x.shape)


def held(x):
    return [t if isinstance(t, bytes) else t.encode() for t in x.ravel().tolist()]


@pytest.mark.parametrize("kind", sorted(CASES))
@pytest.mark.parametrize("level,threads", [(0, 1), (2, 1), (2, 2)])
def test_graphs_give_what_tensorflow_gave(kind, level, threads):
    for name in CASES[kind]:
        keys = [k for k in FILE.files if k.startswith(name + "/")]
        wanted = [array(f"{name}/out/{k}") for k in range(sum("/out/" in k for k in keys))]
        feeds = {k.rsplit("/", 1)[1]: array(k) for k in keys if "/in/" in k}
        model = heddle.parse(FILE[name + "/graph"].tobytes(), opt_level=level, threads=threads,
                             fetch=[f"out{k}" for k in range(len(wanted))])
        for got, want in zip(model.run(feeds), wanted, strict=True):
            assert got.shape == want.shape, name
            if want.dtype == object:
                assert held(got) == want.ravel().tolist(), name
            else:
                assert got.dtype == want.dtype and np.array_equal(got, want), name


def _sequence(name):
    of_texts = om.text(1, om.number(1, 8))
    return om.text(1, name) + om.text(2, om.text(4, om.text(1, of_texts)))


def test_sequences_of_texts_go_in_and_come_out():
    nodes = [om.node("SequenceInsert", ["s", "t"], ["longer"]),
             om.node("SequenceLength", ["longer"], ["count"])]
    session = ort.InferenceSession(om.model(
        nodes, [_sequence("s"), om.value("t", "string", None)],
        [_sequence("longer"), om.value("count", "int64", []), _sequence("s")]))
    assert [i.type for i in session.get_inputs()] == ["seq(tensor(string))", "tensor(string)"]
    first, then = np.array([["a", ""], ["bc", "a"]], object), np.array("Σ", object)
    for given in ([first], [], [first, then]):
        longer, count, same = session.run(None, {"s": given, "t": then})
        assert [x.tolist() for x in longer] == [x.tolist() for x in (*given, then)]
        assert [x.shape for x in longer] == [x.shape for x in (*given, then)]
        assert [x.tolist() for x in same] == [x.tolist() for x in given]
        assert count == len(given) + 1
