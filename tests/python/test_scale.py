"""Programs of many of a kind (scripts/scale) are loaded, planned and computed, in every format:
counts that are larger than any list that is searched and any table that is small at first. How long
they take, scripts/sweep_scale.py measures."""

import random
import sys

import numpy as np
import pytest

import heddle

from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from scale import evaluate, kinds, to_onnx, to_paddle, to_pir, to_tensorflow  # noqa: E402

FORMATS = {"onnx": to_onnx, "tensorflow": to_tensorflow, "paddle": to_paddle, "pir": to_pir}
MANY, SOME, DEEP = 2000, 300, 60


def check(kind, form, n, level, threads=1):
    program = kinds.KINDS[kind](n)
    files = FORMATS[form].write(program)
    if files is None:
        return
    rest = b"".join(v for k, v in files.items() if k != FORMATS[form].FILE)
    fetch = [program.refs[o] for o in program.graph.outputs] if form == "tensorflow" else []
    model = heddle.parse(files[FORMATS[form].FILE], rest, opt_level=level, threads=threads,
                         fetch=fetch)
    # Ascending, since some formats choose elements in order.
    feeds = {f: np.linspace(0.5, 1.5, program.length, dtype="float32") + np.float32(k % 7)
             for k, f in enumerate(program.feeds)}
    made = model.run(feeds)
    expected = evaluate.outputs(program, feeds)
    assert len(made) == len(expected)
    for got, want in zip(made, expected):
        np.testing.assert_allclose(np.asarray(got).reshape(-1), want.reshape(-1), rtol=2e-4)


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_many_of_a_kind(kind):
    rng = random.Random(kind)
    many = rng.choice([f for f in FORMATS if FORMATS[f].write(kinds.KINDS[kind](40)) is not None])
    for form in FORMATS:
        n = MANY if form == many else SOME
        check(kind, form, DEEP if kind in kinds.DEEP else n, rng.choice([0, 2, 2]),
              rng.choice([1, 2]))


def test_what_is_deeper_than_the_bound_is_refused():
    for kind in kinds.DEEP:
        for form in ("onnx", "paddle", "pir"):
            files = FORMATS[form].write(kinds.KINDS[kind](230))
            if files is None:
                continue
            with pytest.raises(heddle.Error, match="more than|levels"):
                heddle.parse(files[FORMATS[form].FILE])
