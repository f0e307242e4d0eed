"""Deployment scripts of `paddle.inference`, run by heddle: change the import.

    from heddle import inference                # instead of: from paddle import inference
    config = inference.Config("model.pdmodel", "model.pdiparams")
    predictor = inference.create_predictor(config)
    handle = predictor.get_input_handle(predictor.get_input_names()[0])
    handle.copy_from_cpu(image)
    predictor.run()
    result = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()

Settings without an effect here (another device, TensorRT, ...) give one warning each, by name;
those that ask for what heddle does anyway are accepted. Threads: heddle uses as many as the process
may, unless `set_cpu_math_library_num_threads` says otherwise.
"""

from __future__ import annotations

import enum
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from heddle import _convert, _heddle, _place
from heddle._errors import Error, InvalidArgument
from heddle._heddle import TensorInfo, __version__

__all__ = ["Config", "DataType", "PlaceType", "PrecisionType", "Predictor", "PredictorPool",
           "Tensor", "create_predictor", "get_num_bytes_of_data_type", "get_version"]


class PlaceType(enum.Enum):
    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 3


class PrecisionType(enum.Enum):
    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3


class DataType(enum.Enum):
    FLOAT32 = 0
    INT64 = 1
    INT32 = 2
    UINT8 = 3
    INT8 = 4
    FLOAT16 = 5
    BOOL = 6
    FLOAT64 = 7
    BFLOAT16 = 8


_DATA_TYPES = {"float32": DataType.FLOAT32, "int64": DataType.INT64, "int32": DataType.INT32,
               "uint8": DataType.UINT8, "int8": DataType.INT8, "float16": DataType.FLOAT16,
               "bool": DataType.BOOL, "float64": DataType.FLOAT64, "bfloat16": DataType.BFLOAT16}

# Settings that ask for what is so anyway, and what they must not be given for that.
_MET = {"enable_onednn": (), "disable_glog_info": (), "enable_new_executor": (False,),
        "switch_specify_input_names": (False,), "switch_use_feed_fetch_ops": ()}
# Paddle's passes, and those of heddle's that do the same.
_PASSES = {
    "constant_folding_pass": ("fold_constants",),
    "common_subexpression_elimination_pass": ("cse",),
    "identity_op_clean_pass": ("identity",), "identity_scale_op_clean_pass": ("identity",),
    "delete_dropout_op_pass": ("dropout_inference",),
    "delete_dropout_op_x_pass": ("dropout_inference",),
    "conv_bn_fuse_pass": ("fuse_conv",), "conv_eltwiseadd_bn_fuse_pass": ("fuse_conv",),
    "conv_transpose_bn_fuse_pass": ("fuse_conv",), "depthwise_conv_bn_fuse_pass": ("fuse_conv",),
    "conv_activation_mkldnn_fuse_pass": ("fuse_conv",),
    "conv_elementwise_add_mkldnn_fuse_pass": ("fuse_conv",),
    "fc_fuse_pass": ("fuse_matmul",), "fc_act_mkldnn_fuse_pass": ("fuse_matmul",),
    "matmul_v2_scale_fuse_pass": ("fuse_matmul",),
    "multihead_matmul_fuse_pass_v2": ("fuse_attention",),
    "self_attention_fuse_pass": ("fuse_attention",),
}
# What the names of settings begin with.
_PREFIXES = ("enable_", "disable_", "set_", "switch_", "exp_", "collect_", "delete_", "tensorrt_",
             "update_", "nnadapter", "lite_", "use_", "pass_", "partially_")


class _PassBuilder:
    """heddle's passes: they can be looked at and left out. The rest of what Paddle's builder does
    has no effect, which is told once."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def all_passes(self) -> list[str]:
        return [name for name in _heddle.passes() if name not in self._config._disabled]

    def delete_pass(self, name: str) -> None:
        self._config.delete_pass(name)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self._config._warn("pass_builder()." + name)


class Config:
    """Which model, and how it is run: `Config(model_file, params_file)` or `Config(model_dir)`."""

    def __init__(self, *files: Any) -> None:
        if len(files) > 2:
            raise TypeError("Config: a directory, or the files of a model and its parameters")
        self._model = ""
        self._params = ""
        self._buffers: tuple[bytes, bytes] | None = None
        self._threads = 0
        self._ir_optim = True
        self._mkldnn = True
        self._memory_optim = False
        self._reuse = "ordered"
        self._bfloat16 = False
        self._level = 2
        self._place = "cpu"
        self._profile = False
        self._cache_dir = ""
        self._disabled: list[str] = []
        self._warned: set[tuple[str, str]] = set()
        if files:
            self.set_model(*files)

    def set_model(self, model: Any, params: Any = "") -> None:
        self._model, self._params, self._buffers = os.fspath(model), os.fspath(params), None

    def set_model_buffer(self, program: bytes, program_size: int, params: bytes,
                         params_size: int) -> None:
        self._buffers = bytes(program[:program_size]), bytes(params[:params_size])

    def model_from_memory(self) -> bool:
        return self._buffers is not None

    def set_prog_file(self, path: Any) -> None:
        self._model = os.fspath(path)

    def set_params_file(self, path: Any) -> None:
        self._params = os.fspath(path)

    def model_dir(self) -> str:
        return self._model if os.path.isdir(self._model) else ""

    def prog_file(self) -> str:
        return "" if os.path.isdir(self._model) else self._model

    def params_file(self) -> str:
        return self._params

    def set_cpu_math_library_num_threads(self, threads: int) -> None:
        self._threads = int(threads)

    def cpu_math_library_num_threads(self) -> int:
        return self._threads

    def switch_ir_optim(self, on: bool = True) -> None:
        """`False` runs the program as it is, without heddle's passes."""
        self._ir_optim = bool(on)

    def ir_optim(self) -> bool:
        return self._ir_optim

    def set_optimization_level(self, level: int) -> None:
        """0: the program as it is; 1: clean-ups; 2 and more: fusion and layouts, too."""
        self._level = max(0, min(int(level), 2))

    def delete_pass(self, name: str) -> None:
        """Leaves out a pass of heddle's, named as here or as Paddle's pass that does the same."""
        ours = (name,) if name in _heddle.passes() else _PASSES.get(name, ())
        if not ours:
            self._warn("delete_pass", f"heddle has no pass like '{name}'", name)
        self._disabled += [one for one in ours if one not in self._disabled]

    def enable_profile(self) -> None:
        """Runs are traced; `Predictor.profile_report` tells how long each kind of operator took,
        and is printed when the predictor goes."""
        self._profile = True

    def profile_enabled(self) -> bool:
        return self._profile

    def set_optim_cache_dir(self, directory: Any) -> None:
        """Keeps weights there as kernels want them, for a quicker start the next time."""
        self._cache_dir = os.fspath(directory)

    def enable_mkldnn(self, *_: Any) -> None:
        self._mkldnn = True

    def disable_mkldnn(self) -> None:
        self._mkldnn = False
        self._warn("disable_mkldnn", "heddle chooses among its kernels and oneDNN's by itself")

    def mkldnn_enabled(self) -> bool:
        return self._mkldnn

    def enable_mkldnn_bfloat16(self) -> None:
        """Products and convolutions with constant weights round what they multiply to bfloat16,
        where the processor is faster that way."""
        self._bfloat16 = True

    def mkldnn_bfloat16_enabled(self) -> bool:
        return self._bfloat16

    def enable_memory_optim(self, on: bool = True) -> None:
        """`False`: no temporaries share memory."""
        self._memory_optim = bool(on)
        self._reuse = "ordered" if on else "none"

    def memory_optim_enabled(self) -> bool:
        return self._memory_optim

    def enable_custom_device(self, device_type: str, device_id: int = 0,
                             precision: Any = PrecisionType.Float32) -> None:
        """Operators run on a device where it has kernels: "emulated". An error where there is
        none, when the predictor is made."""
        self._place = f"{_place.name_of(device_type)}:{int(device_id)}"
        self._check_precision("enable_custom_device", precision)

    def _check_precision(self, name: str, precision: Any) -> None:
        if getattr(precision, "name", precision) != "Float32":
            self._warn(f"{name}(precision={getattr(precision, 'name', precision)})",
                       "models run in the precision that they have")

    def use_custom_device(self) -> bool:
        return self._place != "cpu"

    def use_gpu(self) -> bool:
        return self._place.startswith("cuda")

    def enable_use_gpu(self, memory_pool_init_size_mb: int = 100, device_id: int = 0,
                       precision_mode: Any = PrecisionType.Float32) -> None:
        """Where heddle was built with CUDA; elsewhere it has no effect, as in Paddle."""
        place = f"cuda:{int(device_id)}"
        try:
            _heddle.Executor(1, place=place)
        except Error as error:
            return self._warn("enable_use_gpu", error.message)
        self._place = place
        self._check_precision("enable_use_gpu", precision_mode)

    def disable_gpu(self) -> None:
        if self.use_gpu():
            self._place = "cpu"

    def _never(self) -> bool:
        return False

    use_xpu = tensorrt_engine_enabled = lite_engine_enabled = use_feed_fetch_ops_enabled = _never

    def gpu_device_id(self) -> int:
        return int(self._place.partition(":")[2] or 0)

    def specify_input_name(self) -> bool:
        return True

    def glog_info_disabled(self) -> bool:
        return True

    def pass_builder(self) -> _PassBuilder:
        return _PassBuilder(self)

    def summary(self) -> str:
        rows = {"model_file": self.prog_file() or self.model_dir(), "params_file": self._params,
                "device": self._place, "cpu_math_thread": self._threads or "all",
                "ir_optim": self._ir_optim}
        width = max(map(len, rows))
        return "\n".join(f"{key:<{width}}  {value}" for key, value in rows.items())

    def __getattr__(self, name: str) -> Any:
        if name in _MET:
            return lambda *args, **kwargs: self._met(name, (*args, *kwargs.values()))
        if name.startswith(_PREFIXES) and not name.endswith("_enabled"):
            return lambda *args, **kwargs: self._warn(name)
        raise AttributeError(f"Config has no '{name}'")

    def _met(self, name: str, values: tuple[Any, ...]) -> None:
        if values and values[0] in _MET[name]:
            self._warn(f"{name}({values[0]})", "it is the other way in any case")

    def _warn(self, name: str, why: str = "heddle runs the model on the CPU, in its own way",
              key: str = "") -> None:
        if (name, key) not in self._warned:
            self._warned.add((name, key))
            warnings.warn(f"Config.{name} has no effect: {why}", stacklevel=3)


class Tensor:
    """An input or output of a predictor."""

    def __init__(self, held: TensorInfo, declared: TensorInfo) -> None:
        self._name = held.name
        self._dtype = held.dtype
        self._declared = declared.dtype
        self._shape: list[int] | None = None
        self._value: _heddle.Tensor | None = None

    def name(self) -> str:
        return self._name

    def type(self) -> DataType:
        """The dtype that heddle holds the value in: Paddle has none for uint16, uint32, uint64."""
        dtype = self._value.dtype if self._value is not None else self._dtype
        return _DATA_TYPES.get(dtype, DataType.FLOAT32)

    def place(self) -> PlaceType:
        return PlaceType.CPU

    def reshape(self, shape: Sequence[int]) -> None:
        self._shape = [int(d) for d in shape]

    def shape(self) -> list[int]:
        if self._value is not None:
            return list(self._value.shape)
        return self._shape or []

    def copy_from_cpu(self, array: np.ndarray) -> None:
        """The input's value: a copy of `array`, which gives the shape as well."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"input '{self._name}': a numpy.ndarray is expected, not "
                            f"{type(array).__name__}")
        self._take(np.array(array, order="C"))

    def share_external_data(self, array: Any) -> None:
        """`copy_from_cpu` without the copy: the memory must stay as it is until `run` is over."""
        self._take(array)

    def _take(self, array: Any) -> None:
        lod = self.lod()
        if self._declared != self._dtype:
            array = _convert.to_held(array, self._declared, self._name)
        self._value = _heddle.Tensor(array, self._dtype, lod or None)

    def copy_to_cpu(self) -> np.ndarray:
        """The value, in the dtype that the file declares; an output's is the caller's own."""
        if self._value is None:
            raise Error(f"'{self._name}' has no value yet: call run() first")
        return _convert.from_held(self._value.numpy(), self._declared)

    to_numpy = copy_to_cpu

    def lod(self) -> list[list[int]]:
        return self._value.lod if self._value is not None else []

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        if self._value is None:
            raise Error(f"'{self._name}' has no value yet: copy_from_cpu() comes first")
        self._value = _heddle.Tensor(self._value, "", lod)


class Predictor:
    """Runs a model; made by `create_predictor`. A predictor serves one thread; `clone` it for
    others, which share the parameters and the threads."""

    def __init__(self, config: Config, other: Predictor | None = None) -> None:
        self._config = config
        if other is not None:
            self._executor, self._session = other._executor, other._session
        else:
            program, scope = _load(config)
            self._executor = _heddle.Executor(config.cpu_math_library_num_threads(),
                                              place=config._place)
            packed = config._cache_dir and os.path.join(config._cache_dir, "packed_weights")
            self._session = self._executor.compile(
                program, scope, opt_level=config._level if config.ir_optim() else 0,
                precision="bf16" if config.mkldnn_bfloat16_enabled() else "f32",
                packed_weights=packed, disable_passes=config._disabled, reuse=config._reuse)
        self._times: dict[str, tuple[int, float]] = {}  # per operator: calls, microseconds
        session = self._session
        self._inputs = {i.name: Tensor(i, d)
                        for i, d in zip(session.inputs, session.declared_inputs)}
        self._outputs = {o.name: Tensor(o, d)
                         for o, d in zip(session.outputs, session.declared_outputs)}

    def get_input_names(self) -> list[str]:
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Tensor:
        return self._handle(self._inputs, name, "input")

    def get_output_handle(self, name: str) -> Tensor:
        return self._handle(self._outputs, name, "output")

    get_input_tensor, get_output_tensor = get_input_handle, get_output_handle

    @staticmethod
    def _handle(handles: dict[str, Tensor], name: str, kind: str) -> Tensor:
        if name not in handles:
            raise InvalidArgument(f"there is no {kind} '{name}'; there are " + ", ".join(handles))
        return handles[name]

    def get_input_tensor_shape(self) -> dict[str, list[int]]:
        return {info.name: list(info.shape or ()) for info in self._session.inputs}

    def get_input_types(self) -> dict[str, DataType]:
        return {i.name: _DATA_TYPES.get(i.dtype, DataType.FLOAT32) for i in self._session.inputs}

    def get_output_tensor_shape(self) -> dict[str, list[int]]:
        return {info.name: list(info.shape or ()) for info in self._session.outputs}

    def get_output_types(self) -> dict[str, DataType]:
        return {o.name: _DATA_TYPES.get(o.dtype, DataType.FLOAT32) for o in self._session.outputs}

    def run(self, inputs: Sequence[Any] | None = None) -> Any:
        """Runs on what the input handles were given, for the output handles; or on a list of
        arrays, and returns a list."""
        if inputs is not None:
            return self._run_list(inputs)
        feeds = {name: tensor._value for name, tensor in self._inputs.items()
                 if tensor._value is not None}
        self._keep(self._run_feeds(feeds))
        return True

    zero_copy_run = run

    def _run_list(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        if len(inputs) != len(self._inputs):
            raise InvalidArgument(f"{len(self._inputs)} inputs are expected "
                                  f"({', '.join(self._inputs)}), not {len(inputs)}")
        self._keep(self._run_feeds(dict(zip(self._inputs, inputs))))
        return [tensor.copy_to_cpu() for tensor in self._outputs.values()]

    def _run_feeds(self, feeds: dict[str, Any]) -> list[Any]:
        if not self._config._profile:
            return self._session.run_tensors(feeds)
        values, _, events, *_ = self._session.trace(feeds)
        for op, *_, self_us, times, _thread, _stream in events:
            calls, us = self._times.get(op, (0, 0.0))
            self._times[op] = calls + times, us + self_us
        return [_heddle.Tensor(value) if isinstance(value, np.ndarray) else value
                for value in values]

    def profile_report(self) -> str:
        """A line for each kind of operator, the slowest first; empty without `enable_profile`."""
        total = sum(us for _, us in self._times.values()) or 1.0
        rows = sorted(self._times.items(), key=lambda item: -item[1][1])
        return "".join(f"{op:<32} {calls:>8} calls {us / 1000:>12.3f} ms {us / total:>7.1%}\n"
                       for op, (calls, us) in rows)

    def __del__(self) -> None:
        if getattr(self, "_times", None):
            print(self.profile_report(), end="")

    def _keep(self, values: list[Any]) -> None:
        for tensor, value in zip(self._outputs.values(), values):
            tensor._value = value

    def clone(self, stream: Any = None) -> Predictor:
        if stream is not None:
            self._config._warn("clone(stream)", "runs choose their streams by themselves")
        return Predictor(self._config, self)

    def try_shrink_memory(self) -> int:
        self._executor.trim()
        return 0

    def clear_intermediate_tensor(self) -> None:
        self._executor.trim()


def _load(config: Config) -> tuple[_heddle.Program, _heddle.Scope]:
    if config._buffers is None:
        if not config._model:
            raise InvalidArgument("Config: no model was given")
        return _heddle.load_model(config._model, config._params)
    return _heddle.parse_model(*map(bytes, config._buffers))


def create_predictor(config: Config) -> Predictor:
    """Loads the model of a Config."""
    return Predictor(config)


class PredictorPool:
    """`size` predictors of one model, which share its parameters."""

    def __init__(self, config: Config, size: int = 1) -> None:
        first = Predictor(config)
        self._predictors = [first] + [first.clone() for _ in range(size - 1)]

    def retrieve(self, index: int) -> Predictor:
        return self._predictors[index]


def get_version() -> str:
    return f"version: {__version__} (heddle)"


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    name = next(name for name, kind in _DATA_TYPES.items() if kind is dtype)
    return 2 if name == "bfloat16" else np.dtype(name).itemsize
