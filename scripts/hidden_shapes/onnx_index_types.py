"""ONNX cases with indices, sizes and axes of every integer type that their operators allow.

An operator's schema says which types an input may have. Where these hold integers, and no output
has the same type, the input is an index, a size, an axis or the like: all inputs of that type go
through a Cast to each other integer type that holds their values. Nothing else changes.
"""

import functools
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hidden_shapes import onnx_cases
from hidden_shapes.cases import PLAIN, Case

WAYS = ("cast",)
INTEGERS = {"tensor(int8)": TensorProto.INT8, "tensor(uint8)": TensorProto.UINT8,
            "tensor(int16)": TensorProto.INT16, "tensor(uint16)": TensorProto.UINT16,
            "tensor(int32)": TensorProto.INT32, "tensor(uint32)": TensorProto.UINT32,
            "tensor(int64)": TensorProto.INT64, "tensor(uint64)": TensorProto.UINT64}
# Operators whose outputs have the elements of their inputs, in another type or in a sequence.
ELEMENTS = {"BitCast", "SequenceConstruct", "SequenceInsert"}


def known_values(model, feeds):
    """Arrays of inputs, initializers and constants, by name."""
    values = {v.name: f for v, f in zip(onnx_cases.fed_inputs(model), feeds)
              if isinstance(f, np.ndarray)}
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            continue
        values[tensor.name] = numpy_helper.to_array(tensor)
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            values[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return values


def variants(model, feeds):
    """(place of a node, places of its inputs, another type)"""
    opset = onnx_cases.default_opset(model)
    values = known_values(model, feeds)
    for at, node in enumerate(model.graph.node):
        if node.domain not in ("", "ai.onnx") or node.op_type in ELEMENTS:
            continue
        try:
            schema = onnx.defs.get_schema(node.op_type, opset, "")
        except onnx.defs.SchemaError:
            continue
        made = {o.type_str for o in schema.outputs}
        allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
        for kind in {i.type_str for i in schema.inputs} - made:
            integers = allowed.get(kind, set()) & set(INTEGERS)
            places = [i for i, name in enumerate(node.input)
                      if name and schema.inputs[min(i, len(schema.inputs) - 1)].type_str == kind]
            arrays = [values.get(node.input[i]) for i in places]
            if len(integers) < 2 or not places or any(a is None for a in arrays):
                continue
            if any(a.dtype.kind not in "iu" for a in arrays):
                continue
            for name in sorted(integers):
                limits = np.iinfo(name[len("tensor("):-1])
                if all(not a.size or (limits.min <= a.min() and a.max() <= limits.max)
                       for a in arrays) and any(a.dtype.name not in name for a in arrays):
                    yield at, places, INTEGERS[name]


def changed(model, at, places, number):
    made = onnx.ModelProto()
    made.CopyFrom(model)
    nodes = []
    for i in places:
        name = f"index_type__{i}"
        nodes.append(helper.make_node("Cast", [made.graph.node[at].input[i]], [name], to=number))
        made.graph.node[at].input[i] = name
    rest = [onnx.NodeProto.FromString(n.SerializeToString()) for n in made.graph.node]
    del made.graph.node[:]
    made.graph.node.extend(rest[:at] + nodes + rest[at:])
    return made


def cases(options, scratch):
    check_onnx, onnxio = onnx_cases.load_checks(options.shared)
    every = max(1, round(1 / options.share))
    for root in options.onnx:
        for checked in check_onnx.load(str(root.resolve()), options.only)[::every]:
            if onnx_cases.bytes_of(checked.dir) > options.largest * 1e6:
                continue
            recorded = onnx_cases.Recorded(checked, onnxio)
            found = list(variants(recorded.model, recorded.feeds))
            if not found:
                continue
            name = f"{root.name}/{checked.id}"
            judge = functools.partial(onnx_cases.judge_case, checked)
            yield Case(name, PLAIN, Path(checked.dir), judge)
            for k, (at, places, number) in enumerate(found):
                label = f"{recorded.model.graph.node[at].op_type}.{k}.{number}"
                folder = scratch / f"{checked.name}@{label}"
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                model = changed(recorded.model, at, places, number)
                (folder / "model.onnx").write_bytes(model.SerializeToString())
                for other in Path(checked.dir).iterdir():
                    if other.name != "model.onnx":
                        (folder / other.name).symlink_to(other)
                yield Case(name, WAYS[0], folder, judge)
