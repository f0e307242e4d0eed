"""heddle: runs static graphs of Paddle, ONNX and TensorFlow, many times, fast.

    import heddle
    model = heddle.load("model_dir", threads=2)    # or a .onnx, .pdmodel, .json or .pb file
    (y,) = model.run({"x": x})

`heddle.static.Executor` takes the place of `paddle.static.Executor`, `heddle.inference` that of
`paddle.inference`, `heddle.onnx` that of `onnxruntime`, `heddle.saved_model` that of
`tf.saved_model`; `heddle.build` makes programs by hand; `heddle.train` goes on training the model
of a file.
"""

from __future__ import annotations as _annotations

import importlib as _importlib
import typing as _typing

from heddle._errors import (Cancelled, DataLoss, DeadlineExceeded, EndOfData, Error,
                            InvalidArgument, NotFound, OutOfRange, ResourceExhausted,
                            Unimplemented)

_MODULES = ("build", "inference", "onnx", "saved_model", "static")

__all__ = [
    "Cancelled", "DataLoss", "DeadlineExceeded", "EndOfData", "Error", "InvalidArgument", "Model",
    "NotFound", "OutOfRange", "Outputs", "Parameters", "ResourceExhausted", "TensorInfo",
    "Unimplemented", "__version__", "load", "parse",
]

try:
    _importlib.import_module("heddle._heddle")
except ModuleNotFoundError as _error:
    if _error.name != "heddle._heddle":
        raise
    # A package for every Python has the C interface alone.
    from heddle._outputs import Outputs
    from heddle._plain import Model, Parameters, TensorInfo, __version__, load, parse
    _whole = False
else:
    from heddle._heddle import (Generator, Program, Rank, ReaderQueue, Scope, Tensor, TensorInfo,
                                __version__, describe_op, new_ranks, supported_ops)
    from heddle._model import Model, Outputs, Parameters, Profile, load, parse
    from heddle._train import Training, train
    _whole = True
    __all__ += ["Generator", "Profile", "Program", "Rank", "ReaderQueue", "Scope", "Tensor",
                "Training", "describe_op", "new_ranks", "supported_ops", "train", *_MODULES]
    __all__.sort()


def __getattr__(name: str) -> _typing.Any:
    # Loaded where they are used.
    if name in (*_MODULES, "train"):
        if not _whole:
            raise ImportError(f"heddle.{name} needs the compiled extension, which this package "
                              "does not have for this Python; heddle.load and heddle.parse do not")
        return _importlib.import_module(f"heddle.{name}")
    raise AttributeError(f"heddle has no '{name}'")


def __dir__() -> list[str]:
    return list(__all__)
