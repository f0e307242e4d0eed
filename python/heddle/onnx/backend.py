"""heddle as a backend of the package onnx: `onnx.backend.base`, with its test suite.

    import heddle.onnx.backend as backend
    backend.prepare(model).run([x])

Needs the package onnx; nothing else of heddle does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from heddle.onnx._options import SessionOptions
from heddle.onnx._session import InferenceSession


class HeddleRep(BackendRep):
    """A prepared model. Any number of threads may run it."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """`inputs`: arrays in the order of the model's inputs, a dict, or a single array."""
        names = [arg.name for arg in self._session.get_inputs()]
        if isinstance(inputs, dict):
            feeds = inputs
        elif isinstance(inputs, (list, tuple)):
            feeds = dict(zip(names, inputs, strict=True))
        else:
            feeds = dict(zip(names, [inputs], strict=True))
        outputs = [arg.name for arg in self._session.get_outputs()]
        return namedtupledict("Outputs", outputs)(*self._session.run(None, feeds))


class HeddleBackend(Backend):
    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", *,
                sess_options: SessionOptions | None = None, **kwargs: Any) -> HeddleRep:
        """`model`: a ModelProto, its bytes, or a file's path."""
        if not cls.supports_device(device):
            raise RuntimeError(f"heddle runs ONNX models on the CPU, not on '{device}'")
        if isinstance(model, onnx.ModelProto):
            model = model.SerializeToString()
        return HeddleRep(InferenceSession(model, sess_options))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU",
                  **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str = "CPU",
                 outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
                 **kwargs: Any) -> tuple[Any, ...]:
        """Runs one node. `kwargs` may have `opset_version`, as onnx.backend.base says."""
        arrays = [np.asarray(x) for x in inputs]
        names = [name for name in node.input if name]
        infos = [helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "node", infos, outputs)
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])
        return cls.prepare(model, device).run(arrays)


prepare = HeddleBackend.prepare
run_node = HeddleBackend.run_node
run_model = HeddleBackend.run_model
supports_device = HeddleBackend.supports_device
