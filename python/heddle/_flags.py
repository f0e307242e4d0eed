"""Paddle's flags that mean something to heddle's executor."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from heddle import _paddle

# Flags that heddle looks at, with their values when nobody sets them.
_SERIAL = {"FLAGS_benchmark": False, "FLAGS_new_executor_serial_run": False,
           "FLAGS_new_executor_sequential_run": False}
_USED = {**_SERIAL, "FLAGS_check_nan_inf": False, "FLAGS_new_executor_use_local_scope": True}
# Flags of which heddle ignores Paddle's value: Paddle has them off unless somebody asks for them.
_OWN = {"FLAGS_new_executor_use_inplace": True}
# Flags about the release of memory. Either each value's memory is released as soon as its last
# reader is done, or none before the run ends: thresholds and fractions in between, and modes of
# release, have no counterpart.
_MEMORY = {"FLAGS_eager_delete_tensor_gb": 0.0, "FLAGS_fast_eager_deletion_mode": True,
           "FLAGS_memory_fraction_of_eager_deletion": 1.0}
_ALL = {**_USED, **_OWN, **_MEMORY}
_set: dict[str, Any] = {}
_unknown_to_paddle: set[str] = set()


def set_flags(flags: Mapping[str, Any]) -> None:
    """`paddle.set_flags` for those that heddle knows: `FLAGS_benchmark` (one operator after
    another; each is waited for and checked before the next), `FLAGS_new_executor_serial_run` (one
    after another), `FLAGS_check_nan_inf` (a run that makes a NaN or an infinity fails),
    `FLAGS_new_executor_use_inplace` (False: no output in the memory of an input; heddle's own value
    counts, not Paddle's), `FLAGS_new_executor_use_local_scope` (False: runs leave what operators
    write in the scope),
    `FLAGS_eager_delete_tensor_gb` (below 0: every value stays to the end of the run; else each ends
    with its last reader) and `FLAGS_memory_fraction_of_eager_deletion` (0: likewise; else as if it
    were 1). `FLAGS_fast_eager_deletion_mode` is taken and is so in any case. What is set holds for
    programs that are prepared from then on. Others are refused by name."""
    for name, value in flags.items():
        if name not in _ALL:
            raise ValueError(f"heddle knows no flag '{name}'; it knows " + ", ".join(sorted(_ALL)))
        _set[name] = value


def get_flags(names: str | Iterable[str]) -> dict[str, Any]:
    """The values of flags that heddle knows, as `paddle.get_flags` tells them."""
    names = [names] if isinstance(names, str) else names
    return {name: _value(name) for name in names}


def _value(name: str) -> Any:
    """What was set here; else what Paddle says, where it is imported and knows the flag; else the
    environment."""
    if name not in _ALL:
        raise ValueError(f"heddle knows no flag '{name}'")
    if name in _set:
        return _set[name]
    paddle = _paddle.module()
    if paddle is not None and name not in _OWN and name not in _unknown_to_paddle:
        try:
            return paddle.get_flags([name])[name]
        except ValueError:
            _unknown_to_paddle.add(name)
    text = os.environ.get(name)
    if text is None:
        return _ALL[name]
    if isinstance(_ALL[name], bool):
        return text.lower() in ("1", "true", "yes", "on")
    return float(text)


def benchmark() -> bool:
    """After each operator a run waits for it and looks for its failure."""
    return bool(_value("FLAGS_benchmark"))


def sequential() -> bool:
    """One operator after another."""
    return any(_value(name) for name in _SERIAL)


def in_place() -> bool:
    """Operators may compute an output in the memory of an input."""
    return bool(_value("FLAGS_new_executor_use_inplace"))


def local_scope() -> bool:
    """Runs leave only persistable variables in the scope."""
    return bool(_value("FLAGS_new_executor_use_local_scope"))


def keeps_all() -> bool:
    """Every value stays to the end of a run."""
    return (float(_value("FLAGS_eager_delete_tensor_gb")) < 0
            or float(_value("FLAGS_memory_fraction_of_eager_deletion")) == 0)


def check_nan_inf() -> bool:
    """A run that makes a NaN or an infinity fails."""
    return bool(_value("FLAGS_check_nan_inf"))
