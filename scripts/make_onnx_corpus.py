#!/usr/bin/env python3
"""Writes tests/fuzz/onnx, the corpus of the ONNX reader's fuzz target: small models that together
hold what ModelProto can say.

  make_onnx_corpus.py [FOLDER]

For each operator of the onnx package's test cases (1.23) the smallest model, where it has at most
700 bytes and the kinds of its fields are not all in a model taken before; and models made here for
what those cases lack. Needs the package onnx.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

MOST_BYTES = 700


def fields(message, path=""):
    """Paths of the fields that are set, with attribute kinds and element types as part of them."""
    for field, value in message.ListFields():
        name = f"{path}/{field.name}"
        yield name
        if field.name in ("type", "data_type", "elem_type", "data_location") and isinstance(
                value, int):
            yield f"{name}={value}"
        if field.type == field.TYPE_MESSAGE:
            for item in value if hasattr(value, "append") else [value]:
                # A graph in a graph says nothing new.
                yield from fields(item, f"/{field.message_type.name}")


def value(name, element=TensorProto.FLOAT, shape=("N", 3)):
    return helper.make_tensor_value_info(name, element, shape)


def model(nodes, inputs, outputs, initializers=(), opset=17, more=(), **kwargs):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    imports = [helper.make_opsetid("", opset), *more]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **kwargs)


def own_models():
    x, y = value("x"), value("y")
    relu = helper.make_node("Relu", ["x"], ["y"])
    leak = helper.make_node("LeakyRelu", ["a"], ["b"])
    leak.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope",
                                              type=onnx.AttributeProto.FLOAT))
    function = helper.make_function(
        "mine", "Leak", ["a"], ["b"], [leak], [helper.make_opsetid("", 17)], ["slope"])
    yield "function", model([helper.make_node("Leak", ["x"], ["y"], domain="mine", slope=0.25)],
                            [x], [y], more=[helper.make_opsetid("mine", 1)], functions=[function])
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("w", TensorProto.FLOAT, [2], [1.5, -2]),
        helper.make_tensor("i", TensorProto.INT64, [2], [0, 2]), [3])
    made = model([helper.make_node("Add", ["x", "w"], ["y"])], [x], [y])
    made.graph.sparse_initializer.append(sparse)
    yield "sparse_initializer", made
    outside = helper.make_tensor("w", TensorProto.FLOAT, [3], [0, 0, 0])
    del outside.float_data[:]
    outside.data_location = TensorProto.EXTERNAL
    for key, text in (("location", "w.bin"), ("offset", "8"), ("length", "12")):
        outside.external_data.add(key=key, value=text)
    yield "external", model([helper.make_node("Add", ["x", "w"], ["y"])], [x], [y], [outside])
    for name in ("FLOAT16", "BFLOAT16", "INT4", "UINT4", "FLOAT8E4M3FN", "FLOAT4E2M1", "COMPLEX64",
                 "UINT16", "UINT64", "INT8", "BOOL", "STRING", "DOUBLE"):
        element = getattr(TensorProto, name)
        values = [b"a", b"", b"\xff\x00"] if name == "STRING" else [1, 0, 1]
        tensor = helper.make_tensor("w", element, [3], values)
        yield f"tensor_{name.lower()}", model(
            [helper.make_node("Identity", ["w"], ["y"])], [], [value("y", element, [3])], [tensor],
            opset=25)
    raw = numpy_helper.from_array(np.arange(3, dtype="float32"), "w")
    old = model([helper.make_node("Add", ["x", "w"], ["s"], broadcast=1, axis=1),
                 helper.make_node("Dropout", ["s"], ["y"], is_test=1, ratio=0.5)],
                [x, value("w", shape=[3])], [y], [raw], opset=6)
    old.metadata_props.add(key="who", value="nobody")
    yield "opset_6", old
    shape = helper.make_node("Shape", ["x"], ["s"])
    yield "shape_chain", model(
        [shape, helper.make_node("Gather", ["s", "k"], ["n"], axis=0),
         helper.make_node("Equal", ["n", "k"], ["c"]),
         helper.make_node("If", ["c"], ["y"],
                          then_branch=helper.make_graph(
                              [helper.make_node("Relu", ["x"], ["t"])], "t", [], [value("t")]),
                          else_branch=helper.make_graph(
                              [helper.make_node("Squeeze", ["x"], ["e"])], "e", [],
                              [value("e", shape=None)]))],
        [x], [y], [helper.make_tensor("k", TensorProto.INT64, [], [1])])
    yield "unknown_operator", model([helper.make_node("Frobnicate", ["x"], ["y"])], [x], [y])
    yield "relu", model([relu], [x], [y], doc_string="a model", producer_name="hand")


def main():
    default = Path(__file__).resolve().parents[1] / "tests" / "fuzz" / "onnx"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    smallest = {}
    for case in load_model_tests(kind="node"):
        data = case.model.SerializeToString(deterministic=True)
        for node in case.model.graph.node:
            best = smallest.get((node.domain, node.op_type))
            if len(data) <= MOST_BYTES and (best is None or len(data) < len(best)):
                smallest[node.domain, node.op_type] = data
    files = {name: made.SerializeToString(deterministic=True) for name, made in own_models()}
    known = set()
    for data in files.values():
        known.update(fields(onnx.ModelProto.FromString(data)))
    for (domain, op), data in sorted(smallest.items(), key=lambda item: (len(item[1]), item[0])):
        new = set(fields(onnx.ModelProto.FromString(data)))
        attributes = {a.name for n in onnx.ModelProto.FromString(data).graph.node
                      for a in n.attribute}
        new.update(f"attribute {name}" for name in attributes)
        if new <= known:
            continue
        known |= new
        files[f"{domain}_{op}".strip("_").lower()] = data
    for name, data in files.items():
        (folder / f"{name}.onnx").write_bytes(data)
    print(f"{len(files)} models, {sum(map(len, files.values()))} bytes, in {folder}")


if __name__ == "__main__":
    main()
