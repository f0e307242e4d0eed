"""ONNX operators in forms at the border of what their versions allow: old opsets, attributes that
became inputs, operands left out, limits in the wrong order, empty tensors, odd padding.

`onnx_forms.npz` holds such models with what ONNX Runtime answered, and `onnx_bodies.npz` those
with graphs inside, of texts, and of com.microsoft; `scripts/sweep_onnx_forms.py --record` draws
them from a seed and writes both."""

import json
import pathlib

import numpy as np
import onnx_model as om
import pytest

import heddle
import heddle.onnx as ort

FORMS, NAMES = {}, {}
for name in ["onnx_forms", "onnx_bodies"]:
    file = np.load(pathlib.Path(__file__).parent / f"{name}.npz")
    FORMS.update((key, file[key]) for key in file.files if key != "names")
    NAMES.update(json.loads(str(file["names"])))


def arrays(form, kind):
    found = {}
    while (key := f"{form}/{kind}{len(found)}") in FORMS:
        array = FORMS[key]
        found[key] = array.astype(object) if array.dtype.kind == "U" else array
    return list(found.values())


# Of outputs whose type a file does not say, heddle.onnx shows what they are held in.
TYPES = {"float32": "float", "float64": "double", "object": "string"}
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
        # The file says no types of outputs; empty ones are known when a run has fed shapes.
        for output, array in zip(session.get_outputs(), map(np.asarray, got)):
            element = TYPES.get(array.dtype.name, array.dtype.name)
            assert output.type in (f"tensor({element})", ""), form
        for g, w in zip(got, expected):
            assert close(np.asarray(g), w), (form, g, w)


# ONNX Runtime's texts.
TEXTS = {
    "float64": [(100000, "100000"), (1e-4, "0.0001"), (1e-5, "1e-05"), (99999999, "99999999"),
                (1e8, "1e+08"), (1.25e8, "1.25e+08"), (1e15, "1e+15"), (0.1 + 0.2, "0.3"),
                (-2.25, "-2.25"), (-0.0, "-0"), (1e-300, "1e-300"), (1 / 3, "0.33333333")],
    "float32": [(123456789, "1.2345679e+08"), (16777216, "16777216"), (100000, "100000"),
                (1e10, "1e+10"), (0.3, "0.30000001"), (0.0078125, "0.0078125"), (np.nan, "NaN"),
                (-np.inf, "-INF")],
}


@pytest.mark.parametrize("dtype", TEXTS)
def test_numbers_become_the_texts_of_onnx_runtime(dtype):
    to_text = om.text(1, "to") + om.number(3, 8) + om.number(20, 2)
    model = heddle.parse(om.model([om.node("Cast", ["x"], ["y"], om.text(5, to_text))],
                                  [om.value("x", dtype, ["n"])], [om.value("y", "string", ["n"])]))
    numbers, texts = zip(*TEXTS[dtype])
    assert model(np.array(numbers, dtype)).tolist() == list(texts)
