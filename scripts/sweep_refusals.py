#!/usr/bin/env python3
"""Damages valid ONNX models in one place and compares what ONNX Runtime and heddle refuse.

  sweep_refusals.py CASES… --heddle build/release/heddle [--seed N] [--count N] [--keep DIR]

CASES are folders with cases below them, as ONNX's own backend tests lay them out (model.onnx,
test_data_set_0/input_<k>.pb). Of a model of at most a few nodes one thing is changed: an operand's
element type, rank or a dimension; the elements of an integer operand; an attribute's value; an
operand is left out. A model is wrong if ONNX's shape inference refuses it, or if ONNX Runtime
refuses to load or to run it; right if ONNX Runtime runs it. One that lacks a kernel there
counts as neither, and so does one that heddle and ONNX's reference evaluator refuse and ONNX
Runtime runs. heddle is to refuse what is wrong, and to run what is right.

Prints how often both agree, by sort of change, and a line for each disagreement. Needs numpy, onnx
and onnxruntime (pip install onnx==1.23.2 onnxruntime==1.32.0). Exit status: 0, or 1 below --least.
"""
import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, numpy_helper

from refusals import sides

TYPES = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32,
         TensorProto.INT64, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16,
         TensorProto.BOOL, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64]
# What ONNX Runtime says where it lacks a kernel, or its Python interface an element type.
LACKING = ("NOT_IMPLEMENTED", "can't be converted to MLDataType", "No corresponding Numpy type",
           "is not a registered function/op")
MOST_NODES, MOST_BYTES = 3, 100_000


class NoChange(Exception):
    """The model has nothing to change in this way."""


class Case:
    """A model and its feeds, by name."""

    def __init__(self, folder):
        self.name = folder.name
        self.model = onnx.load_from_string((folder / "model.onnx").read_bytes())
        held = {t.name for t in self.model.graph.initializer}
        names = [v.name for v in self.model.graph.input if v.name not in held]
        self.feeds = {}
        for k, name in enumerate(names):
            tensor = TensorProto.FromString(
                (folder / "test_data_set_0" / f"input_{k}.pb").read_bytes())
            tensor.name = name
            self.feeds[name] = tensor

    def operand(self, name):
        """The tensor of an operand, fed or in the model."""
        if name in self.feeds:
            return self.feeds[name]
        for tensor in self.model.graph.initializer:
            if tensor.name == name:
                return tensor
        raise NoChange

    def give(self, name, array):
        """Replaces an operand, and what the model declares of it."""
        self.operand(name).CopyFrom(numpy_helper.from_array(np.array(array, order="C"), name))
        tensor = self.operand(name)
        for value in self.model.graph.input:
            if value.name == name:
                value.type.Clear()
                value.type.tensor_type.elem_type = tensor.data_type
                value.type.tensor_type.shape.SetInParent()
                for size in array.shape:
                    value.type.tensor_type.shape.dim.add().dim_value = size

    def some_operand(self, rng):
        node = self.model.graph.node[int(rng.integers(len(self.model.graph.node)))]
        names = [n for n in node.input if n]
        if not names:
            raise NoChange
        name = names[int(rng.integers(len(names)))]
        tensor = self.operand(name)
        if tensor.data_type not in TYPES or tensor.external_data:
            raise NoChange
        return name, numpy_helper.to_array(tensor)


def with_type(case, rng):
    name, array = case.some_operand(rng)
    to = onnx.helper.tensor_dtype_to_np_dtype(TYPES[int(rng.integers(len(TYPES)))])
    if to == array.dtype:
        raise NoChange
    with np.errstate(all="ignore"):
        case.give(name, array.astype(to))


def with_rank(case, rng):
    name, array = case.some_operand(rng)
    if array.ndim and rng.random() < 0.5:
        case.give(name, np.take(array, 0, int(rng.integers(array.ndim)))
                  if array.size else array.reshape(array.shape[1:] if array.shape[0] == 0 else -1))
    else:
        case.give(name, np.expand_dims(array, int(rng.integers(array.ndim + 1))))


def with_dimension(case, rng):
    name, array = case.some_operand(rng)
    if not array.ndim:
        raise NoChange
    shape = list(array.shape)
    at = int(rng.integers(array.ndim))
    shape[at] = max(0, shape[at] + int(rng.choice([-1, 1, 2])))
    if shape[at] == array.shape[at] or not array.size:
        raise NoChange
    case.give(name, np.resize(array, shape))


def with_elements(case, rng):
    name, array = case.some_operand(rng)
    if array.dtype.kind not in "i" or not array.size or array.size > 64:
        raise NoChange
    array = array.copy()
    array.ravel()[int(rng.integers(array.size))] = rng.choice([-100, -9, -2, 0, 3, 9, 100])
    case.give(name, array)


def with_attribute(case, rng):
    node = case.model.graph.node[int(rng.integers(len(case.model.graph.node)))]
    kinds = onnx.AttributeProto
    able = [a for a in node.attribute
            if a.type in (kinds.INT, kinds.STRING, kinds.INTS, kinds.FLOAT)
            and a.name not in ("to", "dtype", "output_dtype")]
    if not able:
        raise NoChange
    a = able[int(rng.integers(len(able)))]
    far = [-100, -7, -2, -1, 0, 2, 5, 100]
    if a.type == kinds.INT:
        a.i = int(rng.choice(far))
    elif a.type == kinds.STRING:
        a.s = b"no_such_word"
    elif a.type == kinds.FLOAT:
        a.type, a.i = kinds.INT, 1
        a.ClearField("f")
    elif a.ints and rng.random() < 0.6:
        a.ints[int(rng.integers(len(a.ints)))] = int(rng.choice(far))
    elif a.ints and rng.random() < 0.5:
        del a.ints[-1]
    else:
        a.ints.append(1)


def without_operand(case, rng):
    node = case.model.graph.node[int(rng.integers(len(case.model.graph.node)))]
    if not node.input:
        raise NoChange
    at = int(rng.integers(len(node.input)))
    if at == len(node.input) - 1 and rng.random() < 0.7:
        del node.input[at]
    else:
        node.input[at] = ""


def without_attribute(case, rng):
    node = case.model.graph.node[int(rng.integers(len(case.model.graph.node)))]
    if not node.attribute:
        raise NoChange
    at = int(rng.integers(len(node.attribute)))
    if rng.random() < 0.5:
        del node.attribute[at]
    else:
        node.attribute[at].name = "no_such_attribute"


CHANGES = {f.__name__: f for f in (with_type, with_rank, with_dimension, with_elements,
                                   with_attribute, without_operand, without_attribute)}


def drop_declared(model):
    """Without types of results, which the change may contradict."""
    for value in model.graph.output:
        value.ClearField("type")
    del model.graph.value_info[:]


def is_small(folder):
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    return len(graph.node) <= MOST_NODES and not any(t.external_data for t in graph.initializer)


def changed(folder, seed, number):
    """(sort of change, case); None: nothing to change."""
    rng = np.random.default_rng([seed, number])
    sort = list(CHANGES)[int(rng.integers(len(CHANGES)))]
    try:
        case = Case(folder)
        drop_declared(case.model)
        CHANGES[sort](case, rng)
        for tensor in case.feeds.values():
            numpy_helper.to_array(tensor)
    except (NoChange, FileNotFoundError, ValueError, TypeError, DecodeError):
        return None
    return sort, case


def verdict(folder):
    """("wrong", why), ("right", "") or ("neither", why) of the model in a folder."""
    import onnxruntime as ort

    model = onnx.load_from_string((folder / "model.onnx").read_bytes())
    feeds = {}
    for path in (folder / "test_data_set_0").iterdir():
        tensor = TensorProto.FromString(path.read_bytes())
        feeds[tensor.name] = numpy_helper.to_array(tensor)
    try:
        context = onnx.checker.C.CheckerContext()
        context.ir_version = model.ir_version
        context.opset_imports = {o.domain: o.version for o in model.opset_import}
        for node in model.graph.node:
            if not node.domain and not any(a.HasField("g") for a in node.attribute):
                onnx.checker.check_node(node, context)
    except onnx.checker.ValidationError as error:
        return "wrong", str(error)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(model.SerializeToString(), options,
                                       providers=["CPUExecutionProvider"])
        session.run(None, feeds)
        return "right", ""
    except Exception as error:
        said = str(error)
    if not any(s in said for s in LACKING):
        return "wrong", said
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:
        return "wrong", str(error)
    return "neither", said


def reference_refuses(folder):
    """Whether ONNX's reference evaluator refuses the model in a folder."""
    from onnx.reference import ReferenceEvaluator

    model = onnx.load_from_string((folder / "model.onnx").read_bytes())
    feeds = {}
    for path in (folder / "test_data_set_0").iterdir():
        tensor = TensorProto.FromString(path.read_bytes())
        feeds[tensor.name] = numpy_helper.to_array(tensor)
    try:
        with np.errstate(all="ignore"):
            ReferenceEvaluator(model).run(None, feeds)
    except Exception:
        return True
    return False


def write(case, folder):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "out").mkdir()
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for k, tensor in enumerate(case.feeds.values()):
        (data / f"input_{k}.pb").write_bytes(tensor.SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", type=Path)
    sides.arguments(parser)
    options = parser.parse_args()
    found = sorted(p.parent for c in options.cases for p in c.rglob("model.onnx")
                   if p.stat().st_size < MOST_BYTES)
    found = [f for f in found if is_small(f)]
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as held:
        work, sorts, origin, number = Path(held), {}, {}, 0
        while len(sorts) < options.count:
            number += 1
            source = found[int(rng.integers(len(found)))]
            if made := changed(source, options.seed, number):
                folder = work / str(number)
                write(made[1], folder)
                sorts[folder] = made[0]
                origin[folder] = f"{source.name} {made[1].model.graph.node[0].op_type}"
        return sides.judge(options, sorts, origin, verdict, work, reference_refuses)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
