"""ONNX cases with hidden shapes.

A folder of cases holds index.tsv and <set>/<name>/ with model.onnx and test_data_set_0, as the
official backend suite does. The ways:

  undeclared  no input, output or value has a declared shape
  open        every dimension is a name of its own
  reshaped    every input is what a Reshape makes of a fed vector and a fed shape
  loop        the nodes are the body of a loop of one trip; inputs are carried into it, outputs are
              carried out of it or stacked
  grown       every input is what a loop makes of a vector: the carried value gets its shape inside
  function    the nodes are a function of the model that is called with undeclared inputs
  sequence    every input of numbers is what a sequence holds
  branch      every input is what one of two branches makes; the other makes a vector

What a rewritten model computes is what the model computes, so that its recorded outputs stand.
"""

import functools
import importlib
import os
import shutil
import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hidden_shapes.cases import PLAIN, Case

WAYS = ("undeclared", "open", "reshaped", "loop", "grown", "function", "sequence",
        "branch")
NUMBERS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64,
           TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT8,
           TensorProto.INT16, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}


class CannotHide(Exception):
    """The case has no such form."""


def default_opset(model):
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)


def is_tensor(value):
    return value.type.WhichOneof("value") == "tensor_type"


def is_scalar(value):
    tensor = value.type.tensor_type
    return is_tensor(value) and tensor.HasField("shape") and not tensor.shape.dim


def fed_inputs(model):
    filled = {t.name for t in model.graph.initializer}
    filled |= {t.values.name for t in model.graph.sparse_initializer}
    return [v for v in model.graph.input if v.name not in filled]


def each_graph(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from each_graph(attribute.g)
            for inner in attribute.graphs:
                yield from each_graph(inner)


def forget_type(type_proto):
    """Removes the shapes of a type."""
    kind = type_proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        getattr(type_proto, kind).ClearField("shape")
    elif kind in ("sequence_type", "optional_type"):
        forget_type(getattr(type_proto, kind).elem_type)


def forget_shapes(model):
    """Removes all shapes that the model declares, those of inputs included.

    Scalars that graphs inside are given stay: ONNX Runtime's loops ask for those they count with.
    """
    for graph in each_graph(model.graph):
        del graph.value_info[:]
        for value in (*graph.input, *graph.output):
            if graph is model.graph or not is_scalar(value):
                forget_type(value.type)


def untyped(name, element):
    value = onnx.ValueInfoProto(name=name)
    value.type.tensor_type.elem_type = element
    return value


def vector(name, element):
    return helper.make_tensor_value_info(name, element, [f"{name}_n"])


def require(condition, why):
    if not condition:
        raise CannotHide(why)


def hide_undeclared(model, feeds):
    forget_shapes(model)
    return feeds


def hide_open(model, feeds):
    count = 0
    for graph in each_graph(model.graph):
        del graph.value_info[:]
        for value in (*graph.input, *graph.output):
            if not is_tensor(value):
                forget_type(value.type)
                continue
            for dim in value.type.tensor_type.shape.dim:
                count += 1
                dim.dim_param = f"d{count}"
    return feeds


def flat_feeds(model, feeds):
    """Per fed input, its value info and what to feed: [value] or, of a tensor, [vector, shape]."""
    made = []
    for value, fed in zip(fed_inputs(model), feeds):
        if not is_tensor(value) or not isinstance(fed, np.ndarray):
            made.append((value, [fed]))
            continue
        zeros = [k for k, d in enumerate(fed.shape) if d == 0]
        require(not zeros or default_opset(model) >= 14, "an empty input needs allowzero")
        made.append((value, [fed.reshape(-1), np.array(fed.shape, np.int64)]))
    require(len(made) == len(fed_inputs(model)), "inputs without values")
    return made


def reshape_of(name, source, shape, model, empty):
    attributes = {"allowzero": 1} if empty else {}
    return helper.make_node("Reshape", [source, shape], [name], **attributes)


def with_flat_inputs(model, feeds, nodes_of):
    """The inputs are vectors and shapes of which `nodes_of` makes the former inputs."""
    require(default_opset(model) >= 5, "Reshape has no shape operand before opset 5")
    flat = flat_feeds(model, feeds)
    inputs, nodes, fed = [], [], []
    for value, values in flat:
        fed += values
        if len(values) == 1:
            inputs.append(value)
            continue
        element, name = value.type.tensor_type.elem_type, value.name
        inputs += [vector(name + "__flat", element), vector(name + "__shape", TensorProto.INT64)]
        nodes += nodes_of(name, element, any(d == 0 for d in values[1]))
    rest = [v for v in model.graph.input if v.name not in {value.name for value, _ in flat}]
    forget_shapes(model)
    old_nodes = list(model.graph.node)
    del model.graph.input[:], model.graph.node[:]
    model.graph.input.extend(inputs + rest)
    model.graph.node.extend(nodes + old_nodes)
    return fed


def hide_reshaped(model, feeds):
    return with_flat_inputs(model, feeds, lambda name, element, empty: [
        reshape_of(name, name + "__flat", name + "__shape", model, empty)])


def hide_grown(model, feeds):
    trips = numpy_helper.from_array(np.array(1, np.int64), "grown__trips")

    def nodes_of(name, element, empty):
        body = helper.make_graph(
            [reshape_of(name + "__next", name + "__carried", name + "__shape", model, empty),
             helper.make_node("Identity", [name + "__go"], [name + "__on"])], "grow",
            [helper.make_tensor_value_info(name + "__trip", TensorProto.INT64, []),
             helper.make_tensor_value_info(name + "__go", TensorProto.BOOL, []),
             untyped(name + "__carried", element)],
            [helper.make_tensor_value_info(name + "__on", TensorProto.BOOL, []),
             untyped(name + "__next", element)])
        return [helper.make_node("Loop", ["grown__trips", "", name + "__flat"], [name], body=body)]

    fed = with_flat_inputs(model, feeds, nodes_of)
    model.graph.initializer.append(trips)
    return fed


def first_of(value, name, opset):
    """Nodes and initializers of a value that a loop carries out: of another shape than the last."""
    kind = value.type.WhichOneof("value")
    if kind == "tensor_type":
        element = value.type.tensor_type.elem_type
        first = TensorProto(name=name, data_type=element, dims=[0])
        return [], [first]
    require(kind == "sequence_type" and opset >= 13, "an output that loops do not carry")
    inner = value.type.sequence_type.elem_type
    require(inner.WhichOneof("value") == "tensor_type", "a sequence of no tensors")
    return [helper.make_node("SequenceEmpty", [], [name], dtype=inner.tensor_type.elem_type)], []


def hide_loop(model, feeds):
    opset, graph = default_opset(model), model.graph
    require(opset >= 1 and not graph.sparse_initializer, "no loop")
    fed = fed_inputs(model)
    forget_shapes(model)
    for value in fed:
        kind = value.type.WhichOneof("value")
        require(kind == "tensor_type" or (kind == "sequence_type" and opset >= 13),
                "an input that loops do not carry")
    body, outer = onnx.GraphProto(name="body"), onnx.GraphProto(name=graph.name or "hidden")
    go = helper.make_tensor_value_info("loop__go", TensorProto.BOOL, [])
    on = helper.make_tensor_value_info("loop__on", TensorProto.BOOL, [])
    body.input.extend([helper.make_tensor_value_info("loop__trip", TensorProto.INT64, []), go])
    body.initializer.extend(graph.initializer)
    body.node.extend(graph.node)
    body.node.append(helper.make_node("Identity", ["loop__go"], ["loop__on"]))
    body.output.append(on)
    outer.initializer.append(numpy_helper.from_array(np.array(1, np.int64), "loop__trips"))
    operands, results = ["loop__trips", ""], []

    def passed_on(value):
        """The body's output with the value: under a name of its own, where Identity takes it."""
        if not is_tensor(value):
            return value
        out = onnx.ValueInfoProto()
        out.CopyFrom(value)
        out.name = value.name + "__out"
        body.node.append(helper.make_node("Identity", [value.name], [out.name]))
        return out

    for value in fed:
        given = onnx.ValueInfoProto()
        given.CopyFrom(value)
        given.name = value.name + "__given"
        outer.input.append(given)
        body.input.append(value)
        body.output.append(passed_on(value))
        operands.append(given.name)
        results.append(value.name + "__kept")
    stacked = []
    for k, value in enumerate(graph.output):
        final = onnx.ValueInfoProto()
        final.CopyFrom(value)
        final.name = value.name + "__final"
        outer.output.append(final)
        can_stack = is_tensor(value) and value.type.tensor_type.elem_type in NUMBERS
        if can_stack and zlib.crc32(value.name.encode()) % 2 == 0:
            stacked.append(value)
            continue
        nodes, constants = first_of(value, value.name + "__first", opset)
        outer.node.extend(nodes)
        outer.initializer.extend(constants)
        ignored = onnx.ValueInfoProto()
        ignored.CopyFrom(value)
        ignored.name = value.name + "__before"
        body.input.append(ignored)
        body.output.append(passed_on(value))
        operands.append(value.name + "__first")
        results.append(final.name)
    for value in stacked:
        body.output.append(passed_on(value))
        results.append(value.name + "__stack")
    outer.node.append(helper.make_node("Loop", operands, results, body=body))
    for value in stacked:
        names = [value.name + "__stack"]
        attributes = {"axes": [0]}
        if opset >= 13:
            outer.initializer.append(
                numpy_helper.from_array(np.array([0], np.int64), value.name + "__axis"))
            names.append(value.name + "__axis")
            attributes = {}
        outer.node.append(helper.make_node("Squeeze", names, [value.name + "__final"],
                                           **attributes))
    model.graph.CopyFrom(outer)
    return feeds


def hide_function(model, feeds):
    forget_shapes(model)
    graph = model.graph
    fed = fed_inputs(model)
    function = onnx.FunctionProto(name="Hidden", domain="hidden")
    function.opset_import.extend(model.opset_import)
    for value in fed:
        function.input.append(value.name)
    for tensor in graph.initializer:
        function.node.append(helper.make_node("Constant", [], [tensor.name], value=tensor))
    for tensor in graph.sparse_initializer:
        function.node.append(
            helper.make_node("Constant", [], [tensor.values.name], sparse_value=tensor))
    function.node.extend(graph.node)
    own = {name for node in function.node for name in node.output}
    for value in graph.output:
        # An input that is an output as it is.
        require(value.name in own, "an output that no node makes")
        function.output.append(value.name)
    call = helper.make_node("Hidden", [v.name for v in fed], [v.name for v in graph.output],
                            domain="hidden")
    outputs = list(graph.output)
    made = onnx.GraphProto(name=graph.name or "hidden")
    made.node.append(call)
    made.input.extend(fed)
    made.output.extend(outputs)
    model.graph.CopyFrom(made)
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("hidden", 1))
    model.ir_version = max(model.ir_version, 8)
    return feeds


def hidden_inputs(model, nodes_of, texts=True):
    """Gives the tensors that are fed other names; `nodes_of` makes the former inputs of them."""
    forget_shapes(model)
    nodes = []
    for value in fed_inputs(model):
        element = value.type.tensor_type.elem_type
        if is_tensor(value) and (texts or element != TensorProto.STRING):
            name, value.name = value.name, value.name + "__given"
            nodes += nodes_of(value.name, name, element)
    old_nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(nodes + old_nodes)


# What ONNX lets sequences hold.
HELD = {getattr(TensorProto, name) for name in (
    "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL", "FLOAT16",
    "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128")}


def hide_sequence(model, feeds):
    require(default_opset(model) >= 11, "no sequences before opset 11")
    require(all(value.type.tensor_type.elem_type in HELD
                for value in fed_inputs(model) if is_tensor(value)),
            "no sequences of such elements")
    model.graph.initializer.append(numpy_helper.from_array(np.array(0, np.int64), "hidden__first"))
    hidden_inputs(model, lambda given, name, element: [
        helper.make_node("SequenceConstruct", [given], [name + "__items"]),
        helper.make_node("SequenceAt", [name + "__items", "hidden__first"], [name])], texts=False)
    return feeds


def hide_branch(model, feeds):
    require(default_opset(model) >= 5, "Reshape has no shape operand before opset 5")
    model.graph.initializer.append(
        numpy_helper.from_array(np.array([-1], np.int64), "hidden__vector"))

    def nodes_of(given, name, element):
        stays = helper.make_graph([helper.make_node("Identity", [given], [name + "__stays"])],
                                  "then", [], [untyped(name + "__stays", element)])
        flat = helper.make_graph(
            [helper.make_node("Reshape", [given, "hidden__vector"], [name + "__flat"])],
            "else", [], [untyped(name + "__flat", element)])
        return [helper.make_node("If", ["hidden__which"], [name], then_branch=stays,
                                 else_branch=flat)]

    hidden_inputs(model, nodes_of)
    inputs = list(model.graph.input)
    del model.graph.input[:]
    model.graph.input.extend(
        [helper.make_tensor_value_info("hidden__which", TensorProto.BOOL, [])] + inputs)
    return [np.array(True)] + list(feeds)


HIDE = {"undeclared": hide_undeclared, "open": hide_open, "reshaped": hide_reshaped,
        "loop": hide_loop, "grown": hide_grown, "function": hide_function,
        "sequence": hide_sequence, "branch": hide_branch}


class Recorded:
    """One recorded case: its model, what is fed and what is expected."""

    def __init__(self, checked, onnxio):
        self.checked, self.onnxio = checked, onnxio
        self.folder = Path(checked.dir)
        self.model = onnx.load(self.folder / "model.onnx", load_external_data=False)
        self.feeds = [v for _, v in onnxio.load_feeds(checked.dir, self.model)]

    def write(self, way, folder):
        """The folder of the case hidden in this way. CannotHide: it has no such form."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        types = [v.type for v in fed_inputs(model)]
        feeds = HIDE[way](model, list(self.feeds))
        data = folder / "test_data_set_0"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        for other in self.folder.iterdir():
            if other.is_file() and other.name != "model.onnx":
                shutil.copy(other, folder / other.name)
        if way not in ("reshaped", "grown", "branch"):
            data.symlink_to(self.folder / "test_data_set_0")
            return
        data.mkdir()
        new = len(feeds) != len(types)  # other inputs
        inputs = fed_inputs(model)
        for k, value in enumerate(feeds):
            proto = self.onnxio.to_proto(value, inputs[k].type if new else types[k],
                                         inputs[k].name)
            (data / f"input_{k}.pb").write_bytes(proto.SerializeToString())


def bytes_of(folder):
    return sum(f.stat().st_size for f in Path(folder).iterdir() if f.is_file())


def load_checks(shared):
    """The comparison that lies beside the recorded cases."""
    folder = str(shared / "onnx")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("check_onnx"), importlib.import_module("onnxio")


def cases(options, scratch):
    check_onnx, onnxio = load_checks(options.shared)
    every = max(1, round(1 / options.share))
    for root in options.onnx:
        listed = check_onnx.load(str(root.resolve()), options.only)
        for checked in listed[::every]:
            if bytes_of(checked.dir) > options.largest * 1e6:
                continue
            name = f"{root.name}/{checked.id}"
            judge = functools.partial(judge_case, checked)
            yield Case(name, PLAIN, Path(checked.dir), judge)
            recorded = Recorded(checked, onnxio)
            for way in options.ways:
                if way == PLAIN:
                    continue
                folder = scratch / way / f"{checked.name}@{way}"
                shutil.rmtree(folder, ignore_errors=True)
                try:
                    recorded.write(way, folder)
                except CannotHide:
                    continue
                yield Case(name, way, folder, judge)


def judge_case(checked, out):
    return checked.judge(os.fspath(out))
