"""InferenceSession: ONNX Runtime's calls over heddle's executor."""

from __future__ import annotations

import contextlib
import datetime
import json
import mmap
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import heddle
from heddle import _heddle
from heddle.onnx import _errors, _file
from heddle.onnx._options import (ExecutionMode, GraphOptimizationLevel, RunOptions,
                                  SessionOptions, warn_once)
from heddle.onnx._values import (IOBinding, ModelMetadata, NodeArg, OrtValue, dtype_of,
                                 element_named, element_of, from_heddle, to_heddle)

_PROVIDER = "CPUExecutionProvider"
# Providers besides the CPU's, with heddle's name of the place.
_DEVICES = {"CUDAExecutionProvider": "cuda", "EmulatedExecutionProvider": "emulated"}


def get_available_providers() -> list[str]:
    names = []
    for name, place in _DEVICES.items():
        with contextlib.suppress(heddle.Error):
            _heddle.Executor(1, place=place)
            names.append(name)
    return [*names, _PROVIDER]


def _place_of(providers: Sequence[Any] | None,
              provider_options: Sequence[Mapping[Any, Any]] | None) -> tuple[str, str]:
    """The first provider that there is, and its place; the CPU's is behind all of them."""
    for k, provider in enumerate(providers or ()):
        name, options = (provider, {}) if isinstance(provider, str) else provider
        if provider_options is not None and k < len(provider_options):
            options = provider_options[k]
        if name == _PROVIDER:
            break
        if name not in get_available_providers():
            warn_once(f"there is no provider '{name}'; available: "
                      + ", ".join(get_available_providers()), calls=2)
            continue
        return name, f"{_DEVICES[name]}:{int(options.get('device_id', 0))}"
    return _PROVIDER, "cpu"


def get_device() -> str:
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Accepted: heddle writes no log."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted: heddle writes no log."""


def _read(contents: Any) -> _file.ModelFile:
    """The outer parts of a file; empty where it is no protobuf (the library says so better)."""
    try:
        return _file.read(contents)
    except (_file.Damaged, RecursionError):
        return _file.ModelFile()


def _describe(path_or_bytes: str | bytes) -> _file.ModelFile:
    try:
        if isinstance(path_or_bytes, bytes):
            return _read(path_or_bytes)
        with open(path_or_bytes, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return _file.ModelFile()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content, \
                    memoryview(content) as view:
                return _read(view)
    except IsADirectoryError:
        return _file.ModelFile()
    except FileNotFoundError as e:
        raise _errors.NoSuchFile(f"Load model from {path_or_bytes} failed: {e.strerror}") from None


class InferenceSession:
    """A model that is ready to run.

    `path_or_bytes`: a file's path, or its contents (which cannot have tensors in other files).
    `providers`: the first that there is, of the CPU's, "EmulatedExecutionProvider" and, where
    heddle was built with CUDA, "CUDAExecutionProvider"; others are passed over with a warning. Any
    number of threads may call `run` at once.
    """

    def __init__(self, path_or_bytes: str | bytes | os.PathLike[str],
                 sess_options: SessionOptions | None = None,
                 providers: Sequence[Any] | None = None,
                 provider_options: Sequence[Mapping[Any, Any]] | None = None,
                 **kwargs: Any) -> None:
        self._options = sess_options or SessionOptions()
        self._provider, place = _place_of(providers, provider_options)
        if isinstance(path_or_bytes, (bytearray, memoryview)):
            path_or_bytes = bytes(path_or_bytes)
        elif not isinstance(path_or_bytes, bytes):
            path_or_bytes = os.fspath(path_or_bytes)
        file = _describe(path_or_bytes)
        try:
            if isinstance(path_or_bytes, bytes):
                program, scope = _heddle.parse_model(path_or_bytes, b"", "model")
            else:
                program, scope = _heddle.load_model(path_or_bytes, "")
        except heddle.Error as e:
            raise _errors.at_load(e) from None
        self._program, self._scope = program, scope
        try:
            self._executor = _heddle.Executor(self._options.intra_op_num_threads, place=place)
        except heddle.Error as e:
            raise _errors.at_load(e) from None
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, ...], Any] = {}
        self._traces: list[str] = []
        self._began_ns = time.time_ns()
        if self._options.optimized_model_filepath:
            warn_once("optimized_model_filepath: no file is written (see `heddle opt`)")
        try:
            all_outputs = self._compiled(())
        except heddle.Error as e:
            raise _errors.at_load(e) from None
        self._meta = ModelMetadata(file)
        self._inputs = self._args(file.inputs, program.inputs)
        self._outputs = self._args(file.outputs, all_outputs.declared_outputs)
        self._overridable = [a for a in self._inputs if a.name in file.initializers]
        self._inputs = [a for a in self._inputs if a.name not in file.initializers]
        self._output_names = [a.name for a in self._outputs]
        self._types = {a.name: a.type for a in self._outputs}
        self._map_keys = _heddle.onnx_map_keys(program)
        self._by_name = {a.name: a for a in self._inputs + self._overridable}

    def _args(self, declared: list[_file.ValueInfo], known: Sequence[Any]) -> list[NodeArg]:
        """The inputs or outputs of the file; types that it does not say are those of `known`."""
        sizes = self._options._free_dimensions
        types = {i.name: f"tensor({element_named(i.dtype)})"
                 for i in known if i.dtype != "unknown"}
        if not declared:
            return [NodeArg(i.name, types.get(i.name, ""),
                            [None if d < 0 else d for d in i.shape or ()]) for i in known]
        return [NodeArg(v.name, v.type or types.get(v.name, ""),
                        [sizes.get(d, d) if isinstance(d, str) else d for d in v.shape or ()])
                for v in declared]

    def _compiled(self, names: tuple[str, ...]) -> Any:
        """The compiled program with these outputs; (): those of the model."""
        with self._lock:
            session = self._sessions.get(names)
            if session is None:
                level = {GraphOptimizationLevel.ORT_DISABLE_ALL: 0,
                         GraphOptimizationLevel.ORT_ENABLE_BASIC: 1}
                parallel = self._options.execution_mode == ExecutionMode.ORT_PARALLEL
                session = self._executor.compile(
                    self._program, self._scope, list(names),
                    opt_level=level.get(self._options.graph_optimization_level, 2),
                    schedule="parallel" if parallel else "auto",
                    precision=self._options._entries.get("heddle.precision", "f32"))
                self._sessions[names] = session
            return session

    # ---- running

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
            run_options: RunOptions | None = None) -> list[Any]:
        """The outputs named (None or empty: all of the model's), in that order."""
        feeds = self._feeds(input_feed)
        wanted = list(output_names) if output_names else self._output_names
        for name in wanted:
            if name not in self._output_names:
                raise _errors.InvalidArgument(f"Invalid output name:{name}; there are "
                                              + ", ".join(self._output_names))
        if run_options is not None and run_options.terminate:
            raise _errors.Fail("Exiting due to terminate flag being set to true.")
        asked = set(wanted)
        distinct = tuple(name for name in self._types if name in asked)  # in the model's order
        if len(distinct) == len(self._types):
            distinct = ()
        try:
            session = self._compiled(distinct)
            if self._options.enable_profiling:
                values, _, _, trace, *_ = session.trace(feeds)
                with self._lock:
                    self._traces.append(trace)
            else:
                values = session.run(feeds)
        except heddle.Error as e:
            raise _errors.at_run(e) from None
        names = distinct or self._output_names
        by_name = dict(zip(names, values))
        return [from_heddle(by_name[name], self._types[name], self._map_keys.get(name))
                for name in wanted]

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
                  callback: Callable[[list[Any], Any, str], None], user_data: Any,
                  run_options: RunOptions | None = None) -> None:
        """Runs on another thread and calls `callback(results, user_data, error)` there."""
        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as e:  # the callback is told of any
                results, error = [], str(e)
            callback(results, user_data, error)

        threading.Thread(target=work, name="heddle-onnx").start()

    def run_with_ort_values(self, output_names: Sequence[str] | None,
                            input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        feeds = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(v) for v in self.run(output_names, feeds, run_options)]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding,
                           run_options: RunOptions | None = None) -> None:
        iobinding._run(run_options)

    def _feeds(self, given: Mapping[str, Any]) -> dict[str, Any]:
        missing = [a.name for a in self._inputs if a.name not in given.keys()]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed "
                             f"({list(given.keys())}).")
        feeds = {}
        for name, value in given.items():
            arg = self._by_name.get(name)
            if arg is None:
                raise _errors.InvalidArgument(f"Invalid input name: {name}")
            feeds[name] = self._checked(arg, value)
        return feeds

    def _checked(self, arg: NodeArg, value: Any) -> Any:
        """The array for a tensor input, refused where its dtype or shape is not the model's."""
        dtype = dtype_of(arg.type)
        if isinstance(value, OrtValue):
            value = value.numpy()
        if dtype is None:
            return to_heddle(value, arg.type)
        if value is None:
            raise _errors.InvalidArgument(f"input {arg.name} has no value; {arg.type} expected")
        if dtype == object:
            value = np.asarray(value)
            if value.dtype.kind not in "OSU":
                raise _errors.InvalidArgument(
                    f"Unexpected input data type for {arg.name}. Actual: "
                    f"(tensor({element_of(value)})) , expected: ({arg.type})")
            return to_heddle(value, arg.type)
        if isinstance(value, (list, tuple)):
            value = np.asarray(value, dtype)
        array = np.asarray(value)
        if array.dtype != dtype:
            raise _errors.InvalidArgument(
                f"Unexpected input data type for {arg.name}. Actual: (tensor({element_of(array)}))"
                f" , expected: ({arg.type})")
        if arg.shape and len(arg.shape) != array.ndim:
            raise _errors.InvalidArgument(
                f"Invalid rank for input: {arg.name} Got: {array.ndim} Expected: {len(arg.shape)} "
                "Please fix either the inputs/outputs or the model.")
        wrong = [(k, got, want) for k, (got, want) in enumerate(zip(array.shape, arg.shape))
                 if isinstance(want, int) and got != want]
        if wrong:
            raise _errors.InvalidArgument(
                f"Got invalid dimensions for input: {arg.name} for the following indices\n"
                + "".join(f" index: {k} Got: {got} Expected: {want}\n" for k, got, want in wrong)
                + " Please fix either the inputs/outputs or the model.")
        return to_heddle(array, arg.type)

    # ---- what the session is

    def get_inputs(self) -> list[NodeArg]:
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        return list(self._overridable)

    def get_modelmeta(self) -> ModelMetadata:
        return self._meta

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> list[str]:
        return list(dict.fromkeys((self._provider, _PROVIDER)))

    def get_provider_options(self) -> dict[str, dict[str, Any]]:
        return {name: {} for name in self.get_providers()}

    def set_providers(self, providers: Sequence[Any] | None = None,
                      provider_options: Sequence[Mapping[Any, Any]] | None = None) -> None:
        """Changes nothing: the providers are those that the session was made with."""
        name, _ = _place_of(providers, provider_options)
        if name != self._provider:
            warn_once(f"set_providers: the session goes on with {self._provider}")

    def enable_fallback(self) -> None:
        """Accepted: there is one provider."""

    def disable_fallback(self) -> None:
        """Accepted: there is one provider."""

    def get_profiling_start_time_ns(self) -> int:
        return self._began_ns

    def end_profiling(self) -> str:
        """Writes the events of all runs so far as a Chrome trace and returns the file's name."""
        if not self._options.enable_profiling:
            return ""
        with self._lock:
            traces, self._traces = self._traces, []
        events: list[Any] = []
        for text in traces:
            content = json.loads(text)
            events += content["traceEvents"] if isinstance(content, dict) else content
        stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S_%f")
        name = f"{self._options.profile_file_prefix}_{stamp}.json"
        with open(name, "w", encoding="utf-8") as file:
            json.dump(events, file)
        return name
