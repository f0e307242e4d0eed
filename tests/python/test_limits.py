"""Bounds of what callers count: each error names the option and its bound."""

import random

import pytest

import heddle
from heddle import _heddle


def test_threads_and_runs_have_bounds(digits):
    rng = random.Random(1)
    for _ in range(100):
        many = rng.choice([1025, 5000, 100_000, 2 ** 31 - 1, rng.randrange(1025, 2 ** 31)])
        few = -rng.randrange(1, 2 ** 31)
        for value in (many, few):
            for option in ("threads", "runs_at_once"):
                with pytest.raises(heddle.InvalidArgument, match=f"{option} is {value}; 0 to 1024"):
                    heddle.load(digits[0], **{option: value})


def test_ranks_have_a_bound():
    assert len(_heddle.new_ranks(1024)) == 1024
    for size in (1025, 1 << 20, 2 ** 31 - 1):
        with pytest.raises(ValueError, match=f"{size} ranks: it has at most 1024"):
            _heddle.new_ranks(size)
    with pytest.raises(ValueError, match="at most 4096"):
        _heddle.new_ranks(2, {k: [0] for k in range(5000)})
