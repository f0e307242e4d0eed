"""ONNX operators in forms at the border of what their versions allow: old opsets, attributes that
became inputs, operands left out, limits in the wrong order, empty tensors, odd padding.

`onnx_forms.npz` holds such models with what ONNX Runtime answered;
`scripts/sweep_onnx_forms.py --record` draws them from a seed and writes it."""

import json
import pathlib

import numpy as np
import pytest

import heddle.onnx as ort

FORMS = np.load(pathlib.Path(__file__).parent / "onnx_forms.npz")
NAMES = json.loads(str(FORMS["names"]))


def arrays(form, kind):
    found = {}
    while (key := f"{form}/{kind}{len(found)}") in FORMS:
        array = FORMS[key]
        found[key] = array.astype(object) if array.dtype.kind == "U" else array
    return list(found.values())


# Of outputs whose type a file does not say, heddle.onnx shows what they are held in.
HELD = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}


def close(got, want):
    assert got.shape == want.shape
    if got.dtype.name == HELD.get(want.dtype.name):
        got = got.astype(want.dtype)
    if want.dtype.kind == "O":
        return got.tolist() == want.tolist()
    assert got.dtype == want.dtype
    if want.dtype.kind != "f":
        return (got == want).all()
    tolerance = 3e-3 if want.dtype.itemsize == 2 else 2e-5
    return np.allclose(got.astype("f8"), want.astype("f8"), tolerance, tolerance, equal_nan=True)


@pytest.mark.parametrize("kind", sorted(NAMES))
@pytest.mark.parametrize("level", ["DISABLE", "ENABLE"])
def test_forms_give_what_onnx_runtime_gave(kind, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_{level}_ALL")
    options.intra_op_num_threads = 1
    for form in NAMES[kind]:
        session = ort.InferenceSession(FORMS[f"{form}/model"].tobytes(), options)
        names = [i.name for i in session.get_inputs()]
        got = session.run(None, dict(zip(names, arrays(form, "in"))))
        expected = arrays(form, "out")
        assert len(got) == len(expected) > 0, form
        for g, w in zip(got, expected):
            assert close(np.asarray(g), w), (form, g, w)
