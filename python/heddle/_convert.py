"""Conversions that need NumPy's help; the extension calls these where memory alone will not do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray  # noqa: F401  (the extension looks it up here)

from heddle import _errors

_NATIVE = frozenset(("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "float16",
                     "float32", "float64", "complex64", "complex128"))

# Elements that heddle holds in another dtype, by the names that a program's file has for them: each
# with the dtype, and with the least and the largest number where the dtype has others besides.
_HELD = {"uint16": ("int32", (0, 2**16 - 1)), "uint32": ("int64", (0, 2**32 - 1)),
         "uint64": ("int64", (0, 2**64 - 1)), "uint4": ("uint8", (0, 15)),
         "int4": ("int8", (-8, 7)), "uint2": ("uint8", (0, 3)), "int2": ("int8", (-2, 1))}
# Floats that are held by their bits, as uint8, with the names that ml_dtypes has for them.
_BITS = {"float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz",
         "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz",
         "float8e8m0": "float8_e8m0fnu", "float4e2m1": "float4_e2m1fn"}


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


def declared_dtype(held: str, declared: str) -> str:
    """The dtype in which outputs come that a file calls `declared` and heddle holds as `held`."""
    return declared if declared in ("uint16", "uint32", "uint64") else held


def _invalid(message: str) -> Exception:
    return _errors.InvalidArgument(f"INVALID_ARGUMENT: {message}", message=message)


def _not_held(number: Any, declared: str, name: str) -> Exception:
    return _invalid(f"feed '{name}' holds {number}, which {declared} cannot hold")


def _no_numbers(value: Any, name: str) -> Exception:
    return TypeError(f"'{name}': {type(value).__name__} is no array of numbers (nested lists have "
                     "one length; packed sequences go in as (array, offsets))")


def _of_numbers(value: Any, declared: str, bounds: tuple[int, int], name: str) -> np.ndarray:
    """A number or nested lists as integers, in an array of int64, or of uint64 where `declared` is.

    By way of objects: NumPy makes floats of lists with numbers below and above 2**63.
    """
    try:
        objects = np.asarray(value, object)
    except ValueError:
        raise _no_numbers(value, name) from None
    whole = []
    for number in objects.flat:
        if not isinstance(number, (int, float, np.bool_, np.integer, np.floating)):
            raise _no_numbers(value, name)
        if not bounds[0] <= number <= bounds[1] or int(number) != number:
            raise _not_held(number, declared, name)
        whole.append(int(number))
    wide = np.uint64 if declared == "uint64" else np.int64
    return np.array(whole, wide).reshape(objects.shape)


def _array_of(value: Any) -> np.ndarray | None:
    """`value` as an array of native byte order; None for what is no array."""
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__array__"):
            value = np.asarray(value)
        elif hasattr(value, "__dlpack__"):
            value = np.from_dlpack(value)
        else:
            try:
                value = np.asarray(memoryview(value))
            except TypeError:
                return None
    return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))


def to_held(value: Any, declared: str, name: str) -> Any:
    """A feed for an input that the program's file calls `declared`, as heddle holds it.

    Taken are arrays of that type, of the dtype in which heddle holds it while the numbers are in
    range, of ml_dtypes' type, and numbers and lists. Nothing is copied where the bits are the same.
    A pair (array, offsets of sequences) stays one. Raises `InvalidArgument`, or TypeError for what
    is neither an array nor numbers.
    """
    if (isinstance(value, tuple) and len(value) == 2 and hasattr(value[0], "shape")
            and isinstance(value[1], (list, tuple))):
        return to_held(value[0], declared, name), value[1]
    array, lod = _array_of(value), getattr(value, "lod", None)
    held, bounds = _HELD.get(declared, ("uint8", (0, 255)))
    if array is None:
        array = _of_numbers(value, declared, bounds, name)
    elif declared in _BITS:
        if array.dtype.name not in ("uint8", _BITS[declared]):
            raise _invalid(f"feed '{name}' has dtype {array.dtype}; the bits of {declared}, as "
                           "uint8, are expected")
        array = array.view(np.uint8)
    elif array.dtype.name != declared:
        others = (held,) if declared_dtype(held, declared) == declared else ("int8", "uint8")
        if array.dtype.name not in others:
            raise _invalid(f"feed '{name}' has dtype {array.dtype}; {declared}, or numbers of it "
                           f"as {' or '.join(others)}, is expected")
        for number in (array.min(), array.max()) if array.size else ():
            if not bounds[0] <= int(number) <= bounds[1]:
                raise _not_held(number, declared, name)
    array = array.view(held) if array.dtype.name == "uint64" else array.astype(held, copy=False)
    if lod is None:
        return array
    return array, lod() if callable(lod) else lod


def from_held(value: Any, declared: str) -> Any:
    """An output, or the list of arrays of a sequence, in the dtype that the file declares."""
    if isinstance(value, list):
        return [from_held(item, declared) for item in value]
    held = _HELD.get(declared, ("",))[0]
    if declared_dtype(held, declared) == held or not isinstance(value, np.ndarray):
        return value
    if value.dtype.name != held:
        return value
    return value.view(declared) if declared == "uint64" else value.astype(declared)


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
