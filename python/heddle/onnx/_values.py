"""Values of ONNX Runtime's interface: OrtValue, IOBinding and the descriptions of inputs."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from heddle import _convert, _heddle
from heddle.onnx import _errors

# NumPy's names of the elements that it has.
_DTYPES = {"float": "float32", "double": "float64", "bool": "bool", "string": "object",
           "bfloat16": "uint16", "complex64": "complex64", "complex128": "complex128"}
_ELEMENTS = {v: k for k, v in _DTYPES.items() if k != "bfloat16"}
_NUMBERS = {"float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
            "string": 8, "bool": 9, "float16": 10, "double": 11, "uint32": 12, "uint64": 13,
            "complex64": 14, "complex128": 15, "bfloat16": 16}


def element_named(dtype: str) -> str:
    """ONNX's name of the elements that NumPy and heddle call `dtype`."""
    return _ELEMENTS.get(dtype, dtype)


def element_of(array: np.ndarray) -> str:
    """ONNX's name of an array's elements."""
    return "string" if array.dtype.kind in "USO" else element_named(array.dtype.name)


def dtype_of(type_text: str) -> np.dtype | None:
    """NumPy's dtype of a "tensor(…)"; None for other types."""
    if not type_text.startswith("tensor("):
        return None
    element = type_text[len("tensor("):-1]
    try:
        return np.dtype(_DTYPES.get(element, element))
    except TypeError:
        return None


# heddle's tensors have no unsigned integers of 16 bits and more: theirs are held by the next larger
# signed ones, of 64 bits by their bits.
_HELD = {np.dtype(np.uint16): np.int32, np.dtype(np.uint32): np.int64,
         np.dtype(np.uint64): np.int64}


def to_heddle(array: Any, type_text: str) -> Any:
    """The array, or the list of arrays of a sequence, as heddle takes it."""
    if type_text.startswith("optional("):
        inner = type_text[len("optional("):-1]
        if not inner.startswith("seq("):  # a list of one array, or of none
            return to_heddle([] if array is None else [array], f"seq({inner})")
        return to_heddle(array, inner)
    if type_text.startswith("seq("):
        inner = type_text[len("seq("):-1]
        if inner == "tensor(string)":
            return _heddle.Value.of_string_arrays([np.asarray(a) for a in array])
        return _heddle.Value.of_arrays([to_heddle(np.asarray(a), inner) for a in array])
    if type_text == "tensor(string)":
        return _heddle.Value.of_strings(*_convert.of_strings(array))
    if type_text == "tensor(bfloat16)":  # uint16 stands for its bits, here and there
        return array
    held = _HELD.get(getattr(array, "dtype", None))
    if held is None:
        return array
    as_held = array.view(held) if array.dtype.itemsize == 8 else array.astype(held)
    return _heddle.Tensor(as_held)  # not to be taken for numbers of that type


def from_heddle(value: Any, type_text: str, keys: Sequence[Any] | None = None) -> Any:
    """An output of heddle as an array, or a list of arrays, of that type.

    `keys`: of the maps, where it is a list of such; heddle gives a matrix of their values.
    """
    if keys is not None:
        return [dict(zip(keys, row)) for row in value.tolist()]
    if type_text.startswith("optional("):
        inner = type_text[len("optional("):-1]
        if inner.startswith("seq("):
            return from_heddle(value, inner)
        return from_heddle(value[0], inner) if value else None
    if type_text.startswith("seq(") and isinstance(value, list):
        return [from_heddle(v, type_text[len("seq("):-1]) for v in value]
    if isinstance(value, np.ndarray) and type_text != "tensor(bfloat16)":
        dtype = dtype_of(type_text)
        if dtype in _HELD and value.dtype == _HELD[dtype]:
            return value.view(dtype) if dtype.itemsize == 8 else value.astype(dtype)
    return value


class NodeArg:
    """Name, type and shape of an input or output. A free dimension is its name, or None."""

    def __init__(self, name: str, type_text: str, shape: list[int | str | None]) -> None:
        self.name = name
        self.type = type_text
        self.shape = shape

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """The texts of a file about itself."""

    def __init__(self, model: Any) -> None:
        self.custom_metadata_map = dict(model.metadata)
        self.description = model.description
        self.domain = model.domain
        self.graph_description = model.graph_description
        self.graph_name = model.graph_name
        self.producer_name = model.producer_name
        self.version = model.version


class OrtValue:
    """An array of the host."""

    def __init__(self, array: Any, type_text: str = "") -> None:
        self._value = array
        self._type = type_text

    @staticmethod
    def ortvalue_from_numpy(array: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Holds the array itself, not a copy."""
        _only_cpu(device_type)
        return OrtValue(np.asarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any,
                                     device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        _only_cpu(device_type)
        return OrtValue(np.zeros(shape, element_type))

    def numpy(self) -> Any:
        return self._value

    def shape(self) -> list[int]:
        return list(np.shape(self._value))

    def data_type(self) -> str:
        return self._type or f"tensor({element_of(self._value)})"

    def element_type(self) -> int:
        return _NUMBERS[element_of(self._value)]

    def device_name(self) -> str:
        return "cpu"

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        return False

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def tensor_size_in_bytes(self) -> int:
        return self._value.nbytes

    def data_ptr(self) -> int:
        return self._value.ctypes.data

    def update_inplace(self, array: np.ndarray) -> None:
        np.copyto(self._value, array, casting="no")


def _only_cpu(device_type: str) -> None:
    if device_type.lower() != "cpu":
        raise RuntimeError(f"heddle's sessions have values of the CPU, not of '{device_type}'")


class IOBinding:
    """Inputs and outputs that stay bound from run to run."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, np.ndarray | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        self._require(name, self._session.get_inputs(), "input")
        self._inputs[name] = np.asarray(array)

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        self._require(name, self._session.get_inputs(), "input")
        self._inputs[name] = value.numpy()

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any,
                   shape: Sequence[int], buffer_ptr: int) -> None:
        """Binds memory of the host that the caller keeps while it is bound."""
        _only_cpu(device_type)
        self._require(name, self._session.get_inputs(), "input")
        self._inputs[name] = _array_at(buffer_ptr, shape, element_type)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0,
                    element_type: Any = None, shape: Sequence[int] | None = None,
                    buffer_ptr: int | None = None) -> None:
        """Binds an output; with `buffer_ptr` its elements are copied there after a run."""
        _only_cpu(device_type)
        self._require(name, self._session.get_outputs(), "output")
        given = None if buffer_ptr is None else _array_at(buffer_ptr, shape or (), element_type)
        self._outputs[name] = given

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        self._require(name, self._session.get_outputs(), "output")
        self._outputs[name] = value.numpy()

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: runs end before they return."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: runs end before they return."""

    def get_outputs(self) -> list[OrtValue]:
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [np.array(v.numpy()) if v.is_tensor() else v.numpy() for v in self._results]

    def _require(self, name: str, known: list[NodeArg], what: str) -> None:
        if all(name != arg.name for arg in known):
            raise _errors.InvalidArgument(f"Invalid {what} name: {name}; there are "
                                          + ", ".join(arg.name for arg in known))

    def _run(self, options: Any) -> None:
        names = list(self._outputs)
        if not names:  # which for a session's run means all of them
            raise RuntimeError("Error in execution: At least one output should be requested.")
        values = self._session.run(names, self._inputs, options)
        self._results = []
        for name, value in zip(names, values):
            place = self._outputs.get(name)  # what a run calls may have unbound it
            if place is not None:
                if not isinstance(value, np.ndarray):
                    raise _errors.InvalidArgument(f"output {name} is no tensor: no array can be "
                                                  "bound to it")
                if place.shape != value.shape or place.dtype != value.dtype:
                    raise _errors.InvalidArgument(
                        f"output {name} has shape {list(value.shape)} and dtype {value.dtype}; "
                        f"what is bound has {list(place.shape)} and {place.dtype}")
                np.copyto(place, value)
                value = place
            self._results.append(OrtValue(value))


def _array_at(pointer: int, shape: Sequence[int], element_type: Any) -> np.ndarray:
    """The memory at `pointer` as an array; the caller keeps it."""
    import ctypes
    dtype = np.dtype(element_type)
    if dtype.hasobject:
        raise _errors.InvalidArgument("memory at an address holds numbers, not objects")
    sizes = [operator.index(d) for d in shape]
    count = math.prod(sizes)
    if min(sizes, default=0) < 0 or count * dtype.itemsize > sys.maxsize:
        raise _errors.InvalidArgument(f"no memory has the shape {sizes}")
    if count and not pointer:
        raise RuntimeError("Pointer to data memory is not valid")
    if not count:
        return np.empty(sizes, dtype)
    room = (ctypes.c_byte * (count * dtype.itemsize)).from_address(pointer)
    return np.frombuffer(room, dtype, count).reshape(tuple(shape))
