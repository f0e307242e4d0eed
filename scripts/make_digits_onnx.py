#!/usr/bin/env python3
"""Writes examples/digits/onnx/model.onnx: the digits network, parameters from the Paddle model.

Needs the packages onnx 1.23 and heddle (for the parameters). onnx.reference checks that both models
give the same numbers for examples/digits/input.npy.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import heddle

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "digits"


def main() -> None:
    paddle = heddle.load(FOLDER)
    initializers = [numpy_helper.from_array(np.float32(0.0625), "to_unit")]
    initializers += [numpy_helper.from_array(array.reshape(-1) if name.endswith(".b_0") else array,
                                             name) for name, array in paddle.parameters.items()]
    convolution = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [("Mul", ["x", "to_unit"], {})]
    for k in range(3):
        nodes += [("Conv", ["", f"conv2d_{k}.w_0", f"conv2d_{k}.b_0"], convolution),
                  ("Relu", [""], {})]
        if k > 0:
            nodes.append(("MaxPool", [""], pool))
    nodes += [("Flatten", [""], {}), ("Gemm", ["", "fc_0.w_0", "fc_0.b_0"], {}),
              ("Relu", [""], {}), ("Gemm", ["", "fc_1.w_0", "fc_1.b_0"], {}),
              ("Softmax", [""], {"axis": -1})]
    made, last = [], ""
    for k, (op, inputs, attributes) in enumerate(nodes):
        output = "probabilities" if k + 1 == len(nodes) else f"{op.lower()}_{k}"
        made.append(helper.make_node(op, [name or last for name in inputs], [output], **attributes))
        last = output
    graph = helper.make_graph(
        made, "digits", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])],
        initializers)
    model = helper.make_model(graph, producer_name="make_digits_onnx.py", ir_version=8,
                              opset_imports=[helper.make_opsetid("", 13)])
    onnx.checker.check_model(model, full_check=True)
    x = np.load(FOLDER / "input.npy")
    (y,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(y, paddle(x), rtol=1e-4, atol=1e-5)
    (FOLDER / "onnx").mkdir(exist_ok=True)
    onnx.save(model, FOLDER / "onnx" / "model.onnx")


if __name__ == "__main__":
    main()
