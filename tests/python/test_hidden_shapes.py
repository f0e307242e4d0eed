"""Random ONNX graphs whose shapes a reader cannot know, and what ONNX Runtime answered.

scripts/make_hidden_shape_graphs.py --seed 8 --count 96 --record tests/python/hidden_shapes.npz
writes the recording.
"""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import heddle

ARCHIVE = zipfile.ZipFile(Path(__file__).parent / "hidden_shapes.npz")
CASES = sorted({name.split("/")[0] for name in ARCHIVE.namelist()})


def test_each_way_to_hide_shapes_is_recorded():
    assert len(CASES) >= 80
    assert {case.split("_")[1] for case in CASES} == {"undeclared", "open", "reshaped", "loop",
                                                      "grown", "function", "sequence",
                                                      "branch"}


@pytest.mark.parametrize("case", CASES)
def test_answers(case):
    contents = ARCHIVE.read(f"{case}/model.onnx")
    arrays = np.load(io.BytesIO(ARCHIVE.read(f"{case}/arrays.npz")))
    feeds = [arrays[name] for name in arrays if name.startswith("in_")]
    answers = [arrays[name] for name in arrays if name.startswith("out_")]
    assert answers
    for level, threads in ((0, 1), (1, 1), (2, 1), (2, 2)):
        model = heddle.parse(contents, name=case, opt_level=level, threads=threads)
        names = [info.name for info in model.inputs]
        out = list(model.run(dict(zip(names, feeds))))
        assert len(out) == len(answers)
        for number, (got, want) in enumerate(zip(out, answers)):
            where = (level, threads, number)
            assert got.shape == want.shape and got.dtype == want.dtype, where
            if want.dtype.kind == "f":
                assert np.allclose(got, want, 2e-3, 2e-4, equal_nan=True), where
            else:
                assert np.array_equal(got, want), where
