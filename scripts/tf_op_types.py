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
kernels that there are: "T:1,2 Index:3,9".
"""
import os
import pathlib
import re
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "formats" / "tensorflow"
HEAD = "// Made by scripts/tf_op_types.py of TensorFlow {}'s operator definitions; do not edit."


def handled():
    """Names of operators in the tables of handlers."""
    names = set()
    for path in [*FOLDER.glob("ops_*.cc"), *FOLDER.glob("lower_*.cc"),
                 *FOLDER.glob("tables/ops_*.cc")]:
        names |= set(re.findall(r'^ +\{"(\w+)", (?:&|")', path.read_text(), re.M))
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
        inputs = allowed = ""
        if name in names:
            inputs = " ".join(argument_text(a, definition) for a in definition.input_arg)
            allowed = allowed_types(definition)
        if outputs or indices or inputs:
            print(f'{{"{name}", "{outputs}", "{indices}", "{inputs}", "{allowed}"}},')
    return 0


if __name__ == "__main__":
    sys.exit(main())
