"""heddle: runs Paddle's static programs, many times, fast.

    import heddle
    model = heddle.load("model_dir", threads=2)
    (y,) = model.run({"x": x})

`heddle.static.Executor` takes the place of `paddle.static.Executor`, `heddle.inference` that of
`paddle.inference`, `heddle.onnx` that of `onnxruntime`, `heddle.saved_model` that of
`tf.saved_model`; `heddle.build` makes programs by hand.
"""

from __future__ import annotations

import importlib
from typing import Any

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
    "Unimplemented", "__version__", "describe_op", "load", "new_ranks", "parse",
    "supported_ops",
]


def __getattr__(name: str) -> Any:
    # Loaded where they are used.
    if name in ("build", "inference", "onnx", "saved_model", "static"):
        return importlib.import_module(f"heddle.{name}")
    raise AttributeError(f"heddle has no '{name}'")
