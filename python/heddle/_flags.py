"""Paddle's flags that mean something to heddle's executor."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from heddle import _paddle

# Those that are looked at, with what they are when nobody sets them.
_SERIAL = {"FLAGS_benchmark": False, "FLAGS_new_executor_serial_run": False,
           "FLAGS_new_executor_sequential_run": False}
_USED = {**_SERIAL, "FLAGS_check_nan_inf": False}
# When memory is given back: heddle's plans decide that, and peak at what their report says.
_MEMORY = {"FLAGS_eager_delete_tensor_gb": 0.0, "FLAGS_fast_eager_deletion_mode": True,
           "FLAGS_memory_fraction_of_eager_deletion": 1.0}
_set: dict[str, Any] = {}
_unknown_to_paddle: set[str] = set()


def set_flags(flags: Mapping[str, Any]) -> None:
    """`paddle.set_flags` for those that heddle knows: `FLAGS_benchmark` (one operator after
    another; each is waited for and checked before the next), `FLAGS_new_executor_serial_run` (one
    after another), `FLAGS_check_nan_inf` (a run that makes a NaN or an infinity fails).
    Those about giving memory back early are taken: heddle always does. Others are refused by
    name."""
    for name, value in flags.items():
        if name not in _USED and name not in _MEMORY:
            raise ValueError(f"heddle knows no flag '{name}'; it knows "
                             + ", ".join(sorted((*_USED, *_MEMORY))))
        if name == "FLAGS_eager_delete_tensor_gb" and float(value) < 0:
            warnings.warn(f"{name} = {value} has no effect: plans give memory back",
                          stacklevel=2)
        _set[name] = value


def get_flags(names: str | Iterable[str]) -> dict[str, Any]:
    """The values of flags that heddle knows, as `paddle.get_flags` tells them."""
    names = [names] if isinstance(names, str) else names
    return {name: _value(name) for name in names}


def _value(name: str) -> Any:
    """What was set here; else what Paddle says, where it is imported and knows the flag; else the
    environment."""
    usual = {**_USED, **_MEMORY}
    if name not in usual:
        raise ValueError(f"heddle knows no flag '{name}'")
    if name in _set:
        return _set[name]
    paddle = _paddle.module()
    if paddle is not None and name not in _unknown_to_paddle:
        try:
            return paddle.get_flags([name])[name]
        except ValueError:
            _unknown_to_paddle.add(name)
    text = os.environ.get(name)
    if text is None:
        return usual[name]
    if isinstance(usual[name], bool):
        return text.lower() in ("1", "true", "yes", "on")
    return float(text)


def benchmark() -> bool:
    """After each operator a run waits for it and looks for its failure."""
    return bool(_value("FLAGS_benchmark"))


def sequential() -> bool:
    """One operator after another."""
    return any(_value(name) for name in _SERIAL)


def check_nan_inf() -> bool:
    """A run that makes a NaN or an infinity fails."""
    return bool(_value("FLAGS_check_nan_inf"))
