"""Programs of many of a kind (scripts/scale) are loaded, planned and computed, in every format:
counts that are larger than any list that is searched and any table that is small at first. How long
they take, scripts/sweep_scale.py measures. HEDDLE_SCALE_PROGRAMS=<n> draws n programs of several
kinds instead of 500, and HEDDLE_SCALE_GROWN=<n> lets n of them grow instead of 10;
HEDDLE_TEST_SEED=<n>: others than usual."""

import os
import random
import sys
import time

import numpy as np
import pytest

import heddle

from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from scale import drawn, evaluate, kinds, to_onnx, to_paddle, to_pir, to_tensorflow  # noqa: E402

FORMATS = {"onnx": to_onnx, "tensorflow": to_tensorflow, "paddle": to_paddle, "pir": to_pir}
MANY, SOME, DEEP = 2000, 300, 60
PROGRAMS = int(os.environ.get("HEDDLE_SCALE_PROGRAMS", "500"))
GROWN = int(os.environ.get("HEDDLE_SCALE_GROWN", "10"))
SEED = int(os.environ.get("HEDDLE_TEST_SEED", "1"))


def parsed(program, files, form, level, threads=1):
    rest = b"".join(v for k, v in files.items() if k != FORMATS[form].FILE)
    fetch = [program.refs[o] for o in program.graph.outputs] if form == "tensorflow" else []
    return heddle.parse(files[FORMATS[form].FILE], rest, opt_level=level, threads=threads,
                        fetch=fetch)


def check(program, form, level, threads=1):
    files = FORMATS[form].write(program)
    if files is None:  # the format has no such program
        return
    model = parsed(program, files, form, level, threads)
    # Ascending, since some formats choose elements in order.
    feeds = {f: np.linspace(0.5, 1.5, program.length, dtype="float32") + np.float32(k % 7)
             for k, f in enumerate(program.feeds)}
    made = model.run(feeds)
    expected = evaluate.outputs(program, feeds)
    assert len(made) == len(expected)
    for got, want in zip(made, expected):
        np.testing.assert_allclose(np.asarray(got).reshape(-1), want.reshape(-1), rtol=2e-4,
                                   atol=1e-6)


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_many_of_a_kind(kind):
    rng = random.Random(kind)
    many = rng.choice([f for f in FORMATS if FORMATS[f].write(kinds.KINDS[kind](40)) is not None])
    for form in FORMATS:
        n = MANY if form == many else SOME
        check(kinds.KINDS[kind](DEEP if kind in kinds.DEEP else n), form, rng.choice([0, 2, 2]),
              rng.choice([1, 2]))


@pytest.mark.parametrize("form", FORMATS)
def test_programs_of_several_kinds(form):
    for number in range(PROGRAMS // len(FORMATS)):
        rng = random.Random(f"{SEED} {form} {number}")
        seed, n = rng.randrange(1 << 32), int(10 * 30 ** rng.random())
        level, threads = rng.choice([0, 1, 2, 2]), rng.choice([1, 2])
        try:
            check(drawn.program(seed, n, form), form, level, threads)
        except BaseException:
            print(f"drawn.program({seed}, {n}, {form!r}), level {level}, threads {threads}")
            raise


def test_times_grow_with_the_size():
    """Eight times as much of everything takes less than 28 times (8 to the power of 1.6) as long to
    load, to plan and to run first, in the processor's time of this thread."""
    def took(seed, n, form, level):
        program = drawn.program(seed, n, form)
        files, best = FORMATS[form].write(program), []
        for _ in range(2):
            begin = time.thread_time()
            model = parsed(program, files, form, level)
            model.run({"x": np.array([0.75, -0.5], "float32")})
            best.append(time.thread_time() - begin)
        return min(best)

    for number in range(GROWN):
        rng = random.Random(f"{SEED} grown {number}")
        seed, form = rng.randrange(1 << 32), rng.choice(list(FORMATS))
        for level in (0, 2):
            small, large = took(seed, 600, form, level), took(seed, 4800, form, level)
            assert large < 28 * small, \
                f"drawn.program({seed}, n, {form!r}), level {level}: {small:.3f} s, {large:.3f} s"


def test_what_is_deeper_than_the_bound_is_refused():
    for kind in kinds.DEEP:
        for form in ("onnx", "paddle", "pir"):
            files = FORMATS[form].write(kinds.KINDS[kind](230))
            if files is None:
                continue
            with pytest.raises(heddle.Error, match="more than|levels"):
                heddle.parse(files[FORMATS[form].FILE])
