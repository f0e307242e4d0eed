"""Scans of both kinds, and optional values: operators with graphs inside, and graphs of a few."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from .form import Form, data, form, type_of

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def body(states, scans, outer_rank, nested):
    """A graph that adds each item's sum to every state, and gives each item plus that."""
    node, values = helper.make_node, helper.make_tensor_value_info
    nodes = [node("Constant", [], ["half"], value=helper.make_tensor("h", FLOAT, [], [0.5]))]
    sums = []
    for k in range(scans):
        item = f"x{k}"
        if nested and k == 0:
            # The item is scanned in turn; its state is captured from the graph around it.
            inner = helper.make_graph(
                [node("Add", ["si", "xi"], ["so"]), node("Mul", ["so", "half"], ["yo"])], "inner",
                [values("si", FLOAT, None), values("xi", FLOAT, None)],
                [values("so", FLOAT, None), values("yo", FLOAT, None)])
            nodes += [node("ReduceSum", [item], ["first"], keepdims=0),
                      node("Scan", ["first", item], ["last", "scanned"], num_scan_inputs=1,
                           body=inner)]
            item = "scanned"
        nodes.append(node("ReduceSum", [item], [f"sum{k}"], keepdims=0))
        sums.append(f"sum{k}")
    nodes.append(node("Sum", sums, ["sum"]))
    for k in range(states):
        nodes += [node("Mul", [f"s{k}", "half"], [f"m{k}"]), node("Add", [f"m{k}", "sum"],
                                                                  [f"t{k}"])]
    for k in range(scans):
        nodes.append(node("Add", [f"x{k}", f"t{k % states}" if states and not outer_rank else
                                  "sum"], [f"y{k}"]))
    return helper.make_graph(
        nodes, "body", [values(f"s{k}", FLOAT, None) for k in range(states)] +
        [values(f"x{k}", FLOAT, None) for k in range(scans)],
        [values(f"t{k}", FLOAT, None) for k in range(states)] +
        [values(f"y{k}", FLOAT, None) for k in range(scans)])


@form
def scan_of_batches(r):
    states, scans = int(r.integers(0, 3)), int(r.integers(1, 3))
    f = Form(r, "Scan", 8, outputs=states + scans)
    batch, turns = int(r.integers(1, 12)), int(r.integers(1, 5))
    if r.random() < 0.6:
        f.add(r.integers(1, turns + 1, [batch]).astype("int64"), const=False)
    else:
        f.add(None)
    for _ in range(states):
        f.add(data(r, [batch, 2]), const=False)
    for _ in range(scans):
        f.add(data(r, [batch, turns] + [3] * int(r.integers(1, 3))), const=False)
    f.attr(num_scan_inputs=scans, body=body(states, scans, True, False))
    if r.random() < 0.6:
        f.attr(directions=[int(d) for d in r.integers(0, 2, scans)])
    return f


@form
def scan(r):
    states, scans = int(r.integers(0, 3)), int(r.integers(1, 4))
    f = Form(r, "Scan", int(r.integers(9, 22)), outputs=states + scans)
    turns = int(r.integers(1, 5))  # ONNX Runtime 1.32 divides by zero where there are none
    for _ in range(states):
        f.add(data(r, [2]), const=False)
    axes, ranks = [], []
    for k in range(scans):
        shape = [int(d) for d in r.integers(1, 4, int(r.integers(2, 4)))]
        axis = int(r.integers(len(shape)))
        shape[axis] = turns
        f.add(data(r, shape), const=False)
        axes.append(axis - len(shape) if f.opset >= 11 and r.random() < 0.3 else axis)
        ranks.append(len(shape))
    nested = r.random() < 0.3
    f.attr(num_scan_inputs=scans, body=body(states, scans, True, nested))
    if r.random() < 0.7 or any(a != 0 for a in axes):
        f.attr(scan_input_axes=axes)
    if r.random() < 0.6:
        f.attr(scan_input_directions=[int(d) for d in r.integers(0, 2, scans)])
    if r.random() < 0.6:
        f.attr(scan_output_directions=[int(d) for d in r.integers(0, 2, scans)])
    if r.random() < 0.6:
        outs = [int(r.integers(rank)) for rank in ranks]
        f.attr(scan_output_axes=[o - rank if f.opset >= 11 and r.random() < 0.3 else o
                                 for o, rank in zip(outs, ranks)])
    return f


class Several(Form):
    """A graph of several nodes. Its operands are `x0`, `x1`, …"""

    def __init__(self, rng, opset):
        super().__init__(rng, "several nodes", opset, outputs=0)
        self.nodes = []

    def node(self, op, inputs, output, **attrs):
        self.nodes.append(helper.make_node(op, inputs, [output], **attrs))
        return output

    def model(self):
        ins = [helper.make_tensor_value_info(n, type_of(a), [None] * a.ndim)
               for n, a in self.inputs]
        outs = [onnx.ValueInfoProto(name=n) for n in self.outputs]
        graph = helper.make_graph(self.nodes, "g", ins, outs)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                 ir_version=8)


def branch(name, result, nodes, value_type):
    value = onnx.ValueInfoProto(name=result)
    value.type.CopyFrom(value_type)
    return helper.make_graph(nodes, name, [], [value])


@form
def optional_values(r):
    f = Several(r, int(r.integers(15, 22)))
    f.add(data(r, [int(d) for d in r.integers(0, 4, int(r.integers(0, 3)))]), const=False)
    f.add(np.array(r.random() < 0.5), const=False)
    tensor = helper.make_tensor_type_proto(FLOAT, None)
    if r.random() < 0.5:
        made, inner = "x0", tensor
    else:
        made = f.node("SequenceConstruct", ["x0"] * int(r.integers(1, 3)), "seq")
        inner = helper.make_sequence_type_proto(tensor)
    optional = helper.make_optional_type_proto(inner)
    if r.random() < 0.7:
        yes = branch("yes", "full", [helper.make_node("Optional", [made], ["full"])], optional)
        no = branch("no", "none", [helper.make_node("Optional", [], ["none"], type=inner)],
                    optional)
        value = f.node("If", ["x1"], "value", then_branch=yes, else_branch=no)
    else:
        value = f.node("Optional", [made], "value")
    has = f.node("OptionalHasElement", [value], "has")
    element = [helper.make_node("OptionalGetElement", [value], ["got"])]
    if inner is not tensor:
        element += [helper.make_node("Constant", [], ["zero"],
                                     value=helper.make_tensor("z", INT64, [], [0])),
                    helper.make_node("SequenceAt", ["got", "zero"], ["item"])]
    result = element[-1].output[0]
    there = branch("there", "a", element + [helper.make_node("Neg", [result], ["a"])], tensor)
    absent = branch("absent", "b", [helper.make_node("Abs", ["x0"], ["b"])], tensor)
    f.node("If", [has], "y", then_branch=there, else_branch=absent)
    f.outputs = ["has", "y"]
    return f
