"""Sequences and optional values of texts (and of numbers): chains of operators on one sequence,
in the graph, in a loop that carries it, or in the branches of an If; and scans of texts."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from .form import Form, data, form, tensor_of, type_of
from .texts import texts


class Chain(Form):
    """A graph of several nodes; `add` names operands as elsewhere."""

    def __init__(self, rng, opset=17):
        super().__init__(rng, "", opset, outputs=0)
        self.nodes, self.count = [], 0

    def node(self, op, operands, outputs=1, **attrs):
        made = []
        for _ in range(outputs):
            made.append(f"v{self.count}")
            self.count += 1
        self.nodes.append(helper.make_node(op, operands, made, **attrs))
        return made[0] if outputs == 1 else made

    def give(self, value):
        self.outputs.append(value)

    def constant(self, array):
        return self.node("Constant", [], value=tensor_of(np.asarray(array)))

    def fed(self, array, const=None):
        self.add(array, const)
        return self.names[-1]

    def model(self):
        known = self.rng.random() < 0.5
        ins = [helper.make_tensor_value_info(n, type_of(a),
                                             list(a.shape) if known else [None] * a.ndim)
               for n, a in self.inputs]
        inits = [tensor_of(a, n) for n, a in self.inits]
        self.op = " ".join(n.op_type for n in self.nodes)
        graph = helper.make_graph(self.nodes, "g", ins,
                                  [onnx.ValueInfoProto(name=n) for n in self.outputs], inits)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                 ir_version=8)


def items(r, f, strings, count, shape):
    return [f.fed(texts(r, shape) if strings else data(r, shape), const=bool(r.random() < 0.3))
            for _ in range(count)]


def begin(r, f, strings, shape):
    how = int(r.integers(3))
    if how == 0:
        made = f.node("SequenceConstruct", items(r, f, strings, int(r.integers(1, 4)), shape))
        return made
    if how == 1:
        made = f.node("SequenceEmpty", [], dtype=TensorProto.STRING if strings else 1)
        for x in items(r, f, strings, int(r.integers(1, 3)), shape):
            made = f.node("SequenceInsert", [made, x])
        return made
    n = int(r.integers(1, 4))
    x = f.fed(texts(r, [n, *shape]) if strings else data(r, [n, *shape]), const=False)
    return f.node("SplitToSequence", [x], axis=0, keepdims=0)


def step(r, f, made, strings, shape):
    at = f.constant(np.array(r.integers(-1, 2), "int64"))
    how = int(r.integers(6))
    if how == 0:
        return f.node("SequenceInsert", [made, items(r, f, strings, 1, shape)[0], at])
    if how == 1:
        return f.node("SequenceInsert", [made, items(r, f, strings, 1, shape)[0]])
    if how == 2:
        return f.node("SequenceErase", [made] + ([at] if r.random() < 0.6 else []))
    if how == 3:
        f.give(f.node("SequenceAt", [made, at]))
    if how == 4:
        f.give(f.node("SequenceLength", [made]))
    if how == 5:
        return f.node("Identity", [made])
    return made


def end(r, f, made, shape):
    new = int(r.random() < 0.5 or not shape)
    f.give(f.node("ConcatFromSequence", [made], axis=int(r.integers(len(shape) + new)),
                  new_axis=new))


@form
def sequence_of_texts(r):
    f, strings = Chain(r, int(r.integers(11, 20))), r.random() < 0.8
    shape = [int(d) for d in r.integers(1, 4, int(r.integers(0, 3)))]
    made = begin(r, f, strings, shape)
    for _ in range(int(r.integers(0, 6))):
        made = step(r, f, made, strings, shape)
    end(r, f, made, shape)
    return f


def sequence_info(name, strings):
    return helper.make_tensor_sequence_value_info(name, TensorProto.STRING if strings else 1, None)


@form
def loop_over_texts(r):
    """A loop that carries a sequence, and stacks a text of each turn."""
    f, strings = Chain(r, int(r.integers(13, 20))), r.random() < 0.8
    shape = [int(d) for d in r.integers(1, 3, int(r.integers(0, 2)))]
    x = f.fed(texts(r, shape) if strings else data(r, shape), const=False)
    first = f.node("SequenceEmpty", [], dtype=TensorProto.STRING if strings else 1)
    if r.random() < 0.5:
        first = f.node("SequenceInsert", [first, x])
    node, scans = helper.make_node, bool(r.random() < 0.6)
    nodes = [node("Identity", ["go"], ["goes"]), node("SequenceInsert", ["list", x], ["longer"])]
    outs = [helper.make_tensor_value_info("goes", TensorProto.BOOL, []),
            sequence_info("longer", strings)]
    if scans:
        nodes.append(node("SequenceAt", ["longer", "i"], ["item"]))
        outs.append(helper.make_tensor_value_info(
            "item", TensorProto.STRING if strings else 1, shape))
    body = helper.make_graph(
        nodes, "body", [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                        sequence_info("list", strings)], outs)
    turns = f.constant(np.array(r.integers(1, 4), "int64"))
    made = f.node("Loop", [turns, "", first], outputs=2 if scans else 1, body=body)
    if scans:
        f.give(made[1])
        made = made[0]
    f.give(f.node("SequenceLength", [made]))
    end(r, f, made, shape)
    return f


@form
def branch_of_texts(r):
    f, strings = Chain(r, int(r.integers(13, 20))), r.random() < 0.8
    shape = [int(d) for d in r.integers(1, 4, int(r.integers(0, 3)))]
    made = begin(r, f, strings, shape)
    x = items(r, f, strings, 1, shape)[0]
    node = helper.make_node
    condition = f.fed(np.array(bool(r.integers(2))), const=False)
    sides = {}
    for name, op in (("then_branch", "SequenceInsert"), ("else_branch", "SequenceErase")):
        operands = [made, x] if op == "SequenceInsert" else [made]
        sides[name] = helper.make_graph([node(op, operands, [name])], name, [],
                                        [sequence_info(name, strings)])
    made = f.node("If", [condition], **sides)
    f.give(f.node("SequenceLength", [made]))
    if r.random() < 0.5:
        made = f.node("SequenceInsert", [made, x])
    end(r, f, made, shape)
    return f


@form
def optional_of_texts(r):
    f, strings = Chain(r, int(r.integers(15, 20))), r.random() < 0.8
    shape = [int(d) for d in r.integers(1, 4, int(r.integers(0, 3)))]
    element = TensorProto.STRING if strings else 1
    of = helper.make_tensor_type_proto(element, None)
    if r.random() < 0.4:
        made = f.node("Optional", [], type=of)
        f.give(f.node("OptionalHasElement", [made]))
        return f
    if r.random() < 0.4:
        made = f.node("Optional", [begin(r, f, strings, shape)])
        f.give(f.node("OptionalHasElement", [made]))
        end(r, f, f.node("OptionalGetElement", [made]), shape)
        return f
    made = f.node("Optional", items(r, f, strings, 1, shape))
    f.give(f.node("OptionalHasElement", [made]))
    f.give(f.node("OptionalGetElement", [made]))
    return f


@form
def map_of_texts(r):
    """SequenceMap, with a body that joins its item and a text."""
    f = Chain(r, int(r.integers(20, 22)))
    shape = [int(d) for d in r.integers(1, 4, int(r.integers(0, 2)))]
    made = begin(r, f, True, shape)
    one = items(r, f, True, 1, shape)[0]
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("StringConcat", ["item", "more"], ["joined"])], "body",
        [info("item", TensorProto.STRING, None), info("more", TensorProto.STRING, None)],
        [info("joined", TensorProto.STRING, None)])
    end(r, f, f.node("SequenceMap", [made, one], body=body), shape)
    return f


# At the fourth turn ONNX Runtime's StringConcat appends to what the state's memory held before.
@form
def scan_of_texts(r):
    f = Chain(r, int(r.integers(20, 22)))
    turns, wide = int(r.integers(1, 4)), int(r.integers(1, 4))
    x = f.fed(texts(r, [turns, wide]), const=False)
    s = f.fed(texts(r, [wide]), const=False)
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("StringConcat", ["s", "x"], ["t"]),
         helper.make_node("Identity", ["t"], ["y"])], "body",
        [info("s", TensorProto.STRING, [wide]), info("x", TensorProto.STRING, [wide])],
        [info("t", TensorProto.STRING, [wide]), info("y", TensorProto.STRING, [wide])])
    back = int(r.integers(2))
    for y in f.node("Scan", [s, x], outputs=2, num_scan_inputs=1, body=body,
                    scan_input_directions=[back], scan_output_directions=[int(r.integers(2))]):
        f.give(y)
    return f
