"""Conversions that need NumPy's help; the extension calls these where memory alone will not do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray  # noqa: F401  (the extension looks it up here)

_NATIVE = frozenset(("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "float16",
                     "float32", "float64", "complex64", "complex128"))


def _bfloat16() -> np.dtype:
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype("uint16")
    return np.dtype(ml_dtypes.bfloat16)


def to_strings(shape: tuple[int, ...], elements: list[str | bytes]) -> np.ndarray:
    """An array of objects with these elements, row-major."""
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(shape)


def of_strings(array: Any) -> tuple[list[int], list[str | bytes]]:
    """Shape and elements of an array of strings."""
    array = np.asarray(array)
    if array.dtype.kind not in "OSU":
        raise TypeError(f"an array of {array.dtype} is no array of strings")
    return list(array.shape), array.astype(object).ravel().tolist()


def dtype_named(name: str) -> np.dtype:
    """NumPy's type for a name of heddle's; for bfloat16 that of ml_dtypes, or uint16 without it."""
    return _bfloat16() if name == "bfloat16" else np.dtype(name)


def _to_bfloat16(array: np.ndarray) -> np.ndarray:
    """The bits of the nearest bfloat16 numbers (ties to even), as uint16."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded)


def to_array(value: Any, wanted: str, name: str) -> np.ndarray:
    """`value` as a contiguous array of a type that heddle knows.

    Arrays keep their type; numbers and lists become `wanted` where that is not empty.
    """
    is_array = hasattr(value, "__array__")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise TypeError(f"'{name}': {type(value).__name__} is no array: {error}") from None
    if array.dtype.kind in "OSUMm":
        raise TypeError(f"'{name}': {type(value).__name__} is no array of numbers (nested lists "
                        "have one length; packed sequences go in as (array, offsets))")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.name == "bfloat16":  # ml_dtypes'
        array = array.view(np.uint16)
    elif not is_array and wanted:
        array = _to_bfloat16(array) if wanted == "bfloat16" else array.astype(wanted)
    if array.dtype.name not in _NATIVE:
        raise TypeError(f"'{name}': dtype {array.dtype} is not supported; heddle knows bool, "
                        "uint8, int8 to int64, float16, bfloat16, float32, float64, complex64 and "
                        "complex128")
    # Not ascontiguousarray, which makes a 0-D array 1-D. A copy is aligned.
    return np.array(array, order="C", copy=True)
