"""heddle: runs static graphs of Paddle, ONNX and TensorFlow, many times, fast.

    import heddle
    model = heddle.load("model_dir", threads=2)    # or a .onnx, .pdmodel, .json or .pb file
    (y,) = model.run({"x": x})

`heddle.static.Executor` takes the place of `paddle.static.Executor`, `heddle.inference` that of
`paddle.inference`, `heddle.onnx` that of `onnxruntime`, `heddle.saved_model` that of
`tf.saved_model`; `heddle.build` makes programs by hand.
"""

from __future__ import annotations as _annotations

import importlib as _importlib
import typing as _typing

from heddle._errors import (Cancelled, DataLoss, DeadlineExceeded, EndOfData, Error,
                            InvalidArgument, NotFound, OutOfRange, ResourceExhausted,
                            Unimplemented)
from heddle._heddle import Generator, Program, Rank, ReaderQueue, Scope, Tensor, TensorInfo
from heddle._heddle import __version__, describe_op, new_ranks, supported_ops
from heddle._model import Model, Outputs, Parameters, Profile, load, parse

__all__ = [
    "Cancelled", "DataLoss", "DeadlineExceeded", "EndOfData", "Error", "Generator",
    "InvalidArgument", "Model", "NotFound", "OutOfRange", "Outputs", "Parameters", "Profile",
    "Program", "Rank", "ReaderQueue", "ResourceExhausted", "Scope", "Tensor", "TensorInfo",
    "Unimplemented", "__version__", "build", "describe_op", "inference", "load", "new_ranks",
    "onnx", "parse", "saved_model", "static", "supported_ops",
]


def __getattr__(name: str) -> _typing.Any:
    # Loaded where they are used.
    if name in ("build", "inference", "onnx", "saved_model", "static"):
        return _importlib.import_module(f"heddle.{name}")
    raise AttributeError(f"heddle has no '{name}'")


def __dir__() -> list[str]:
    return list(__all__)
