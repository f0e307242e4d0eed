#!/usr/bin/env python3
"""Makes formats/tensorflow/types/op_types.inc: types that TensorFlow's operators take and give.

  tf_op_types.py > formats/tensorflow/types/op_types.inc

One line for each operator that formats/tensorflow/ has a handler for, or whose outputs may be fed,
from the definitions of the TensorFlow that runs this. Its outputs: a DataType's number, or the
attribute that names it with the default number behind "=". "N*T" is a list of as many as attribute
N says, "*T" one for each type of attribute T. Then the places of the inputs that hold indices,
sizes or axes and may do so in integers of less than 32 bits: their type is an attribute of its own
that allows such integers and no floats. Of operators with a handler also its inputs, written as its
outputs are, and the numbers of the types that its attributes may have, by the definition and by the
kernels that there are: "T:1,2 Index:3,9". Then the ranks that inputs may have, which TensorFlow's
shape functions tell: each is asked about graphs with one input of known rank; "-": any rank. Last,
what other attributes may be: "mode=REFLECT|SYMMETRIC", "N>1" (at least 1).
"""
import itertools
import os
import pathlib
import re
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "formats" / "tensorflow"
HEAD = "// Made by scripts/tf_op_types.py of TensorFlow {}'s operator definitions; do not edit."


def handled():
    """Names that begin a line of a table; those that name no operator are left out later."""
    names = set()
    for path in FOLDER.rglob("*.cc"):
        names |= set(re.findall(r'^ +\{"([A-Z]\w+)",(?: |$)', path.read_text(), re.M))
    return sorted(names)


def argument_text(arg, definition):
    defaults = {a.name: a.default_value.type for a in definition.attr
                if a.type == "type" and a.HasField("default_value")}
    if arg.type_list_attr:
        return "*" + arg.type_list_attr
    text = str(arg.type)
    if arg.type_attr:
        text = arg.type_attr
        if defaults.get(arg.type_attr):
            text += f"={defaults[arg.type_attr]}"
    return f"{arg.number_attr}*{text}" if arg.number_attr else text


def is_tensor(arg):
    from tensorflow.core.framework import types_pb2 as types

    return arg.type not in (types.DT_RESOURCE, types.DT_VARIANT, types.DT_STRING)


def narrow_inputs(definition):
    """Places of inputs with indices of any integer type."""
    from tensorflow.core.framework import types_pb2 as types

    narrow = {types.DT_INT8, types.DT_UINT8, types.DT_INT16}
    integers = narrow | {types.DT_UINT16, types.DT_INT32, types.DT_UINT32, types.DT_INT64,
                         types.DT_UINT64}
    allowed = {a.name: set(a.allowed_values.list.type) for a in definition.attr}
    if any(a.number_attr or a.type_list_attr for a in definition.input_arg):
        return []
    return [i for i, a in enumerate(definition.input_arg)
            if a.type_attr not in ("", "T") and allowed[a.type_attr] <= integers
            and allowed[a.type_attr] & narrow]


def kernel_types(name):
    """By attribute, the types of the kernels for processors; None: there are no such kernels."""
    from tensorflow.python.framework import kernels

    found = [k for k in kernels.get_registered_kernels_for_op(name).kernel
             if k.device_type in ("CPU", "DEFAULT")]
    types = {}
    for kernel in found:
        for c in kernel.constraint:
            types.setdefault(c.name, set()).update(c.allowed_values.list.type)
    everywhere = {n for n in types if all(any(c.name == n for c in k.constraint) for k in found)}
    return {n: types[n] for n in everywhere} if found else None


def allowed_types(definition):
    """Floats that a definition allows are taken without a kernel, too: others than CPUs have it."""
    from tensorflow.core.framework import types_pb2 as types

    floats = {types.DT_HALF, types.DT_BFLOAT16, types.DT_FLOAT, types.DT_DOUBLE}
    every = set(types.DataType.values()) - {types.DT_INVALID}
    every = {t for t in every if t < 100}
    kernels = kernel_types(definition.name) or {}
    allowed = []
    for a in definition.attr:
        if a.type not in ("type", "list(type)"):
            continue
        defined = set(a.allowed_values.list.type) or every
        have = kernels.get(a.name)
        taken = defined if have is None else defined & (have | floats)
        if taken != every:
            allowed.append(a.name + ":" + ",".join(map(str, sorted(taken))))
    return " ".join(allowed)


def value_texts(definition):
    """What attributes that are no types may be."""
    texts = []
    for a in definition.attr:
        if a.type == "string" and a.HasField("allowed_values"):
            words = [w.decode() for w in a.allowed_values.list.s]
            if all(re.fullmatch(r"\w+", w) for w in words):
                texts.append(f"{a.name}={'|'.join(words)}")
        elif a.has_minimum and a.type in ("int", "list(int)"):
            texts.append(f"{a.name}>{a.minimum}" if a.type == "int"
                         else f"{a.name}#{a.minimum}")
    return " ".join(texts)


MOST_RANK = 7
LISTS = ([1, 1, 1, 1], [1, 1, 1, 1, 1], [], [1, 1])


def attribute_choices(a):
    """Values to try for an attribute; None: nothing is known that may be tried."""
    from tensorflow.core.framework import types_pb2 as types

    if a.type == "type":
        listed = list(a.allowed_values.list.type)
        if a.HasField("default_value"):
            return [a.default_value.type]
        return [types.DT_FLOAT if not listed or types.DT_FLOAT in listed else listed[0]]
    if a.type == "string" and a.HasField("allowed_values"):
        return [w.decode() for w in a.allowed_values.list.s]
    if a.HasField("default_value"):
        return [None]
    if a.type == "int":
        return [a.minimum] if a.has_minimum else [0, 1, 2]
    return {"list(int)": LISTS, "float": [1.0], "bool": [False], "string": ["a"],
            "list(type)": [[types.DT_FLOAT, types.DT_FLOAT]]}.get(a.type)


def set_attribute(place, a, value):
    if a.type == "type":
        place.type = value
    elif a.type == "string":
        place.s = value.encode()
    elif a.type == "list(int)":
        place.list.i.extend(value)
    elif a.type == "list(type)":
        place.list.type.extend(value)
    else:
        setattr(place, {"int": "i", "float": "f", "bool": "b"}[a.type], value)


def takes(definition, values, which, rank, constant=None):
    """Whether TensorFlow takes a node with these attributes if input `which` has this rank, or is
    this constant."""
    import tensorflow as tf
    from tensorflow.core.framework import graph_pb2

    graph = graph_pb2.GraphDef()
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    node = graph.node.add(name="op", op=definition.name)
    every = {}
    for a in definition.attr:
        if values[a.name] is not None:
            set_attribute(node.attr[a.name], a, values[a.name])
            every[a.name] = values[a.name]
        elif a.type in ("int", "type"):
            every[a.name] = a.default_value.i if a.type == "int" else a.default_value.type
    for i, arg in enumerate(definition.input_arg):
        one = every[arg.type_attr] if arg.type_attr else arg.type
        listed = every.get(arg.type_list_attr, []) if arg.type_list_attr else (
            [one] * (every[arg.number_attr] if arg.number_attr else 1))
        for k, dtype in enumerate(listed):
            fed = graph.node.add(name=f"p{i}_{k}", op="VariableV2" if arg.is_ref else "Placeholder")
            fed.attr["dtype"].type = dtype
            if i == which and constant is not None:
                fed.op = "Const"
                fed.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(constant, dtype))
                node.input.append(fed.name)
                continue
            shape = fed.attr["shape"].shape
            shape.unknown_rank = i != which
            for _ in range(rank if i == which else 0):
                shape.dim.add().size = -1
            node.input.append(fed.name)
    try:
        with tf.Graph().as_default():
            tf.import_graph_def(graph, name="")
        return True
    except (ValueError, TypeError, tf.errors.OpError):
        return False


# Inputs that kernels, which the shape functions leave it to, want to be scalars.
SCALARS = {"CumulativeLogsumexp": [1], "Cumprod": [1], "Cumsum": [1], "PadV2": [2], "Split": [0],
           "SplitV": [2], "TopKV2": [1]}


def rank_texts(definition):
    """The ranks of inputs that some choice of attributes allows; empty: nothing is known."""
    choices = [attribute_choices(a) for a in definition.attr]
    if None in choices or not definition.input_arg:
        return ""
    inputs = range(len(definition.input_arg))
    allowed = [set() for _ in inputs]
    for chosen in itertools.product(*choices):
        values = dict(zip((a.name for a in definition.attr), chosen))
        if not takes(definition, values, -1, 0):
            continue
        for i in inputs:
            allowed[i] |= {r for r in range(MOST_RANK) if takes(definition, values, i, r)}
            try:  # a shape may be the scalar -1
                allowed[i] |= {0} if takes(definition, values, i, 0, -1) else set()
            except (ValueError, TypeError):
                pass

    def text(ranks):
        if not ranks or len(ranks) == MOST_RANK:
            return "-"
        least, most = min(ranks), max(ranks)
        if len(ranks) != most - least + 1:
            return "-"
        return f"{least}-99" if most == MOST_RANK - 1 else f"{least}-{most}"

    texts = [text(ranks) for ranks in allowed]
    for i in SCALARS.get(definition.name, ()):
        texts[i] = "0-0"
    lists = any(a.number_attr or a.type_list_attr for a in definition.input_arg)
    return "" if lists or set(texts) == {"-"} else " ".join(texts)


def main():
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry

    print(HEAD.format(tf.__version__))
    names = set(handled())
    for name in sorted(names | {n for n in dir(tf.raw_ops) if n[0].isupper()}):
        definition = op_def_registry.get(name)
        if definition is None:
            continue
        if name not in names and not any(is_tensor(a) for a in definition.output_arg):
            continue
        outputs = " ".join(argument_text(a, definition) for a in definition.output_arg)
        indices = " ".join(map(str, narrow_inputs(definition)))
        inputs = allowed = ranks = values = ""
        if name in names:
            inputs = " ".join(argument_text(a, definition) for a in definition.input_arg)
            allowed = allowed_types(definition)
            ranks, values = rank_texts(definition), value_texts(definition)
        if outputs or indices or inputs:
            cells = (name, outputs, indices, inputs, allowed, ranks, values)
            print("{" + ", ".join(f'"{cell}"' for cell in cells) + "},")
    return 0


if __name__ == "__main__":
    sys.exit(main())
