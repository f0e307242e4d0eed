"""Scripts of ONNX Runtime, run by heddle: change the import.

    import heddle.onnx as ort                   # instead of: import onnxruntime as ort
    session = ort.InferenceSession("model.onnx")
    (y,) = session.run(None, {session.get_inputs()[0].name: x})

`run` may be called from many threads. Errors have ONNX Runtime's names and kinds, and are
`heddle.Error`s as well. Other providers than the CPU's and settings without a counterpart give one
warning.
"""

from __future__ import annotations

from heddle._heddle import __version__
from heddle.onnx._errors import (Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NoModel,
                                 NoSuchFile, NotImplemented, RuntimeException)
from heddle.onnx._options import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel,
                                  RunOptions, SessionOptions)
from heddle.onnx._session import (InferenceSession, get_available_providers, get_device,
                                  set_default_logger_severity, set_default_logger_verbosity)
from heddle.onnx._values import IOBinding, ModelMetadata, NodeArg, OrtValue

__all__ = [
    "ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel", "IOBinding",
    "InferenceSession", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelMetadata",
    "NoModel", "NoSuchFile", "NodeArg", "NotImplemented", "OrtValue", "RunOptions",
    "RuntimeException", "SessionOptions", "__version__", "get_available_providers", "get_device",
    "set_default_logger_severity", "set_default_logger_verbosity",
]
