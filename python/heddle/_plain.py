"""Models through heddle's C interface, for Pythons that the compiled extension was not made for.

What `heddle` offers there: `load`, `parse`, `Model` with `run`, `inputs`, `outputs`, `parameters`
and `plan`, and the exceptions. Arrays come and go as NumPy's, each call releases the interpreter's
lock, and any number of threads may run one model at the same time.
"""

from __future__ import annotations

import contextlib
import ctypes as c
import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heddle import _convert, _errors
from heddle._outputs import Outputs

_HANDLE, _TEXT, _SIZE = c.c_void_p, c.c_char_p, c.c_size_t
# In the order of the C interface's numbers.
_CODES = ("OK", "INVALID_ARGUMENT", "NOT_FOUND", "OUT_OF_RANGE", "DATA_LOSS", "UNIMPLEMENTED",
          "RESOURCE_EXHAUSTED", "CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL")
_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
           "float64", "complex64", "complex128")
_SCHEDULES = ("auto", "serial", "parallel", "lanes")


class _ExecutorOptions(c.Structure):
    _fields_ = [("size", _SIZE), ("threads", c.c_int), ("plan_cache_capacity", c.c_int),
                ("memory_limit", _SIZE), ("runs_at_once", c.c_int), ("place", _TEXT),
                ("ranks", _HANDLE), ("rank", c.c_int), ("kernel_creator", _HANDLE)]


class _ModelOptions(c.Structure):
    _fields_ = [("size", _SIZE), ("fetches", c.POINTER(_TEXT)), ("num_fetches", _SIZE),
                ("opt_level", c.c_int), ("schedule", c.c_int), ("seed", c.c_uint64),
                ("bf16", c.c_int), ("lean", c.c_int), ("reuse_edges", c.c_int),
                ("max_shapes", _HANDLE), ("num_max_shapes", _SIZE), ("int8_weights", c.c_int),
                ("packed_weights", _TEXT), ("force", _TEXT), ("no_reuse", c.c_int),
                ("no_in_place", c.c_int), ("outline", c.c_int)]


class _Part(c.Structure):
    _fields_ = [("size", _SIZE), ("signature", _TEXT), ("feeds", c.POINTER(_TEXT)),
                ("num_feeds", _SIZE), ("fetches", c.POINTER(_TEXT)), ("num_fetches", _SIZE)]


class _RunOptions(c.Structure):
    _fields_ = [("size", _SIZE), ("deadline_ms", c.c_double), ("stop", _HANDLE),
                ("check_nan_inf", c.c_int), ("wait_after_each", c.c_int)]


class _Info(c.Structure):
    _fields_ = [("name", _TEXT), ("dtype", c.c_int), ("rank", c.c_int),
                ("dims", c.POINTER(c.c_int64))]


def _open() -> c.CDLL:
    library = c.CDLL(str(Path(__file__).parent / "lib" / "libheddle_c.so"))
    out, texts, handles = c.POINTER(_HANDLE), c.POINTER(_TEXT), c.POINTER(_HANDLE)
    options = c.POINTER(_ModelOptions)
    for name, result, *arguments in (
            ("version", _TEXT), ("error_code", c.c_int, _HANDLE), ("error_text", _TEXT, _HANDLE),
            ("error_op_type", _TEXT, _HANDLE), ("error_output", _TEXT, _HANDLE),
            ("error_block", c.c_int, _HANDLE), ("error_op_index", c.c_int, _HANDLE),
            ("error_is_end_of_data", c.c_int, _HANDLE), ("error_free", None, _HANDLE),
            ("executor_new", _HANDLE, c.POINTER(_ExecutorOptions), out),
            ("executor_threads", c.c_int, _HANDLE), ("executor_free", None, _HANDLE),
            ("model_options_init_size", None, options, _SIZE),
            ("model_load_part", _HANDLE, _HANDLE, _TEXT, _TEXT, c.POINTER(_Part), options, out),
            ("model_parse_all", _HANDLE, _HANDLE, _TEXT, _SIZE, _TEXT, _SIZE, options, out),
            ("model_num_inputs", _SIZE, _HANDLE), ("model_num_outputs", _SIZE, _HANDLE),
            ("model_input", _Info, _HANDLE, _SIZE), ("model_output", _Info, _HANDLE, _SIZE),
            ("model_input_type", _TEXT, _HANDLE, _SIZE),
            ("model_output_type", _TEXT, _HANDLE, _SIZE),
            ("model_run", _HANDLE, _HANDLE, c.POINTER(_RunOptions), texts, handles, _SIZE, out,
             _SIZE),
            ("model_plan", _HANDLE, _HANDLE, texts, handles, _SIZE, out),
            ("model_num_parameters", _SIZE, _HANDLE),
            ("model_parameter_info", _Info, _HANDLE, _SIZE),
            ("model_parameter", _HANDLE, _HANDLE, _TEXT, out),
            ("model_set_parameter", _HANDLE, _HANDLE, _TEXT, _HANDLE),
            ("model_save_parameters", _HANDLE, _HANDLE, _TEXT), ("model_free", None, _HANDLE),
            ("tensor_wrap", _HANDLE, c.c_int, c.c_int, c.POINTER(c.c_int64), _HANDLE, _HANDLE,
             _HANDLE, out),
            ("tensor_dtype", c.c_int, _HANDLE), ("tensor_rank", c.c_int, _HANDLE),
            ("tensor_dims", c.POINTER(c.c_int64), _HANDLE), ("tensor_bytes", _SIZE, _HANDLE),
            ("tensor_const_data", _HANDLE, _HANDLE), ("tensor_free", None, _HANDLE),
            ("text_data", _TEXT, _HANDLE), ("text_free", None, _HANDLE)):
        function = getattr(library, f"heddle_{name}")
        function.restype, function.argtypes = result, arguments
    return library


_lib = _open()
__version__ = _lib.heddle_version().decode()


def _check(error: int | None) -> None:
    if not error:
        return
    code = _CODES[_lib.heddle_error_code(error)]
    if _lib.heddle_error_is_end_of_data(error):
        code = "END_OF_DATA"
    text = _lib.heddle_error_text(error).decode("utf-8", "replace")
    where = (_lib.heddle_error_block(error), _lib.heddle_error_op_index(error),
             _lib.heddle_error_op_type(error).decode(), _lib.heddle_error_output(error).decode())
    _lib.heddle_error_free(error)
    raise _errors.from_status(code, text.split(": ", 1)[-1], text, *where, "")


def _texts(words: Sequence[str]) -> Any:
    return (_TEXT * len(words))(*(os.fsencode(word) for word in words)) if words else None


def _array(tensor: int) -> np.ndarray:
    """A copy of a tensor's contents."""
    rank, name = _lib.heddle_tensor_rank(tensor), _DTYPES[_lib.heddle_tensor_dtype(tensor)]
    array = np.empty(tuple(_lib.heddle_tensor_dims(tensor)[:rank]),
                     "uint16" if name == "bfloat16" else name)
    if array.nbytes:
        c.memmove(array.ctypes.data, _lib.heddle_tensor_const_data(tensor), array.nbytes)
    return array


@contextlib.contextmanager
def _tensors(count: int) -> Iterator[Any]:
    """Room for handles of tensors, which are freed when the block ends, however it does."""
    handles = (_HANDLE * max(1, count))()
    try:
        yield handles
    finally:
        for handle in handles:
            if handle:
                _lib.heddle_tensor_free(handle)


@contextlib.contextmanager
def _wrapped(given: Sequence[Any]) -> Iterator[Any]:
    """Handles of arrays, which are used where they lie."""
    arrays = [np.asarray(array, order="C") for array in given]
    with _tensors(len(arrays)) as handles:
        for k, array in enumerate(arrays):
            if not array.dtype.isnative:
                array = arrays[k] = array.astype(array.dtype.newbyteorder("="))
            name = "bfloat16" if array.dtype.name == "uint16" else array.dtype.name
            if name not in _DTYPES:
                raise TypeError(f"arrays of {array.dtype} cannot be fed; there are "
                                + ", ".join(_DTYPES))
            handle = _HANDLE()
            dims = (c.c_int64 * max(1, array.ndim))(*array.shape)
            _check(_lib.heddle_tensor_wrap(_DTYPES.index(name), array.ndim, dims,
                                           array.ctypes.data, None, None, c.byref(handle)))
            handles[k] = handle.value
        yield handles


def _number_of(option: str, name: str, known: Sequence[str]) -> int:
    """Which of the names an option has."""
    if name not in known:
        raise ValueError(f"{option} '{name}' is not known; it is {', '.join(known[:-1])} or "
                         f"{known[-1]}")
    return known.index(name)


class TensorInfo:
    """An input, output or parameter as the program declares it: name, dtype, shape (-1: any
    length; None: any rank)."""

    def __init__(self, info: _Info, declared: str = "") -> None:
        self.name = info.name.decode("utf-8", "replace")
        held = _DTYPES[info.dtype] if info.dtype < len(_DTYPES) else "unknown"
        self.dtype = _convert.declared_dtype(held, declared)
        self._declared = declared  # what the file calls elements that are held in another dtype
        self.shape = None if info.rank < 0 else tuple(info.dims[:info.rank])

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype} {list(self.shape) if self.shape is not None else '?'}"


class Parameters(MutableMapping):
    """A model's parameters by name: reading copies, setting copies in."""

    def __init__(self, model: Model) -> None:
        self._model = model
        count = _lib.heddle_model_num_parameters(model._handle)
        infos = (TensorInfo(_lib.heddle_model_parameter_info(model._handle, k))
                 for k in range(count))
        self._infos = {info.name: info for info in infos}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._infos:
            raise KeyError(f"the model has no parameter '{name}'")
        with _tensors(1) as handles:
            _check(_lib.heddle_model_parameter(self._model._handle, name.encode(), handles))
            return _array(handles[0])

    def __setitem__(self, name: str, array: Any) -> None:
        with _wrapped([array]) as handles:
            _check(_lib.heddle_model_set_parameter(self._model._handle, name.encode(), handles[0]))

    def __delitem__(self, name: str) -> None:
        raise TypeError("the parameters of a program cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)


class Model:
    """A program that is ready to run, with its parameters. See `heddle.load`."""

    _handle: int | None = None  # also of a model that could not be made

    def __init__(self, make: Any, *, threads: int = 0, fetch: Sequence[str] = (),
                 opt_level: int = 2, schedule: str = "auto", deterministic: bool = False,
                 memory_limit: int = 0, plan_cache: int = 32, runs_at_once: int = 0, seed: int = 0,
                 precision: str = "f32", lean: bool = False, reuse: str = "ordered",
                 packed_weights: str | os.PathLike[str] = "", force: str = "", place: str = "cpu",
                 in_place: bool = True, outline: bool = False) -> None:
        options, executor, handle = _ModelOptions(), _HANDLE(), _HANDLE()
        _lib.heddle_model_options_init_size(c.byref(options), c.sizeof(options))
        options.fetches, options.num_fetches = _texts(fetch), len(fetch)
        options.opt_level, options.seed, options.lean = opt_level, seed, lean
        options.schedule = _number_of("schedule", "serial" if deterministic else schedule,
                                      _SCHEDULES)
        kind = _number_of("precision", precision, ("f32", "bf16", "int8"))
        options.bf16, options.int8_weights = kind == 1, kind == 2
        kind = _number_of("reuse", reuse, ("ordered", "edges", "none"))
        options.reuse_edges, options.no_reuse = kind == 1, kind == 2
        options.packed_weights = os.fsencode(packed_weights) or None
        options.force, options.no_in_place = force.encode() or None, not in_place
        options.outline = outline
        chosen = _ExecutorOptions(c.sizeof(_ExecutorOptions), threads, plan_cache, memory_limit,
                                  runs_at_once, place.encode(), None, 0, None)
        _check(_lib.heddle_executor_new(c.byref(chosen), c.byref(executor)))
        try:
            self.threads: int = _lib.heddle_executor_threads(executor)
            _check(make(executor, c.byref(options), c.byref(handle)))
        finally:
            _lib.heddle_executor_free(executor)  # the model holds a share
        self._handle = handle.value
        say = lambda count, info, type_of: [  # noqa: E731
            TensorInfo(info(self._handle, k), type_of(self._handle, k).decode())
            for k in range(count(self._handle))]
        self.inputs = say(_lib.heddle_model_num_inputs, _lib.heddle_model_input,
                          _lib.heddle_model_input_type)
        self.outputs = say(_lib.heddle_model_num_outputs, _lib.heddle_model_output,
                           _lib.heddle_model_output_type)
        self._declared = {info.name: info._declared for info in self.inputs if info._declared}

    def __del__(self) -> None:
        if self._handle:
            _lib.heddle_model_free(self._handle)

    @property
    def parameters(self) -> Parameters:
        """The parameters by name, to be read and set."""
        return Parameters(self)

    def _held(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The arrays of the feeds as heddle holds them."""
        declared = self._declared
        return [_convert.to_held(array, declared[name], name)
                if declared.get(name, "string") != "string" else array
                for name, array in feeds.items()]

    def run(self, feeds: Mapping[str, Any], *, timeout: float | None = None,
            check_nan_inf: bool = False) -> Outputs:
        """Runs once. `feeds`: an array per input, by name. `timeout` in seconds; `check_nan_inf`
        ends the run at the first NaN or infinity."""
        deadline_ms = 0 if timeout is None else max(timeout * 1000, 1e-6)  # 0: none
        options = _RunOptions(c.sizeof(_RunOptions), deadline_ms, None, check_nan_inf, 0)
        # Results may lie in the memory of feeds.
        with _wrapped(self._held(feeds)) as handles, _tensors(len(self.outputs)) as results:
            _check(_lib.heddle_model_run(self._handle, c.byref(options), _texts(list(feeds)),
                                         handles, len(feeds), results, len(self.outputs)))
            outputs = Outputs(_convert.from_held(_array(results[k]), info._declared)
                              for k, info in enumerate(self.outputs))
        outputs.names = tuple(info.name for info in self.outputs)
        return outputs

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """`model(x)` or `model(x=x)`: the output, or the list of outputs if there are several."""
        if len(arrays) > len(self.inputs):
            raise TypeError(f"the model takes {len(self.inputs)} inputs, not {len(arrays)}")
        named.update(zip((info.name for info in self.inputs), arrays))
        outputs = self.run(named)
        return outputs[0] if len(outputs) == 1 else outputs

    def plan(self, feeds: Mapping[str, Any]) -> str:
        """What a run will do, a line per instruction, for these feeds."""
        text = _HANDLE()
        with _wrapped(self._held(feeds)) as handles:
            _check(_lib.heddle_model_plan(self._handle, _texts(list(feeds)), handles, len(feeds),
                                          c.byref(text)))
        try:
            return _lib.heddle_text_data(text).decode("utf-8", "replace")
        finally:
            _lib.heddle_text_free(text)

    def save_parameters(self, path: str | os.PathLike[str]) -> None:
        """Writes all parameters to a combined file, `.pdiparams` as Paddle lays it out."""
        _check(_lib.heddle_model_save_parameters(self._handle, os.fsencode(path)))

    def __repr__(self) -> str:
        say = lambda infos: "; ".join(repr(info) for info in infos)  # noqa: E731
        return f"heddle.Model({say(self.inputs)} -> {say(self.outputs)})"


def _bytes_of(value: Any, what: str) -> bytes:
    """The contents of an object with the buffer protocol."""
    try:
        return value if isinstance(value, bytes) else bytes(memoryview(value))
    except TypeError:
        raise TypeError(f"{what} is of {type(value).__name__}, not bytes, a bytearray or a "
                        "memoryview") from None


def parse(program: Any, params: Any = b"", **options: Any) -> Model:
    """A model whose files are in memory: the bytes of a program of any format, and those of its
    combined parameters, as `bytes` or anything else with the buffer protocol. Options as for
    `load`, but for `signature` and `feed`."""
    program = _bytes_of(program, "the program")
    params = _bytes_of(params, "what holds the parameters")
    return Model(lambda executor, chosen, out: _lib.heddle_model_parse_all(
        executor, program, len(program), params or None, len(params), chosen, out), **options)


def load(path: str | os.PathLike[str], params: str | os.PathLike[str] | None = None, *,
         signature: str = "", feed: Sequence[str] = (), **options: Any) -> Model:
    """Loads a model: a `.pdmodel`, Paddle 3's `.json`, an `.onnx`, a TensorFlow `.pb`, `.pbtxt`
    or `.meta`, or a directory with one of them. Options: those of the compiled extension's `load`,
    but for `max_shapes`."""
    fetch = list(options.get("fetch", ()))
    part = _Part(c.sizeof(_Part), signature.encode() or None, _texts(list(feed)), len(feed),
                 _texts(fetch), len(fetch))
    return Model(lambda executor, chosen, out: _lib.heddle_model_load_part(
        executor, os.fsencode(path), os.fsencode(params) if params else None, c.byref(part),
        chosen, out), **options)
