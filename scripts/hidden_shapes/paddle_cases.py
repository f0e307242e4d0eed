"""Recorded cases of ProgramDesc files with their shapes hidden, for sweep_hidden_shapes.py.

What a VarDesc declares must change nothing. The ways:

  undeclared  inputs have open dimensions, variables that operators make have none at all
  open        all variables but parameters have open dimensions
  reshaped    what is fed goes through a reshape2 to a shape that is fed, too

Needs the Python package paddle for its protocol buffers' module alone, which is not run.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np

from hidden_shapes import paddle_values as values
from hidden_shapes.paddle_values import Unfit

WAYS = ("undeclared", "open", "reshaped")
DENSE = 7  # VarType.LOD_TENSOR
INT64 = 3


def framework():
    for folder in map(Path, sys.path):
        path = folder / "paddle" / "base" / "proto" / "framework_pb2.py"
        if path.exists():
            spec = importlib.util.spec_from_file_location("framework_pb2", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise ImportError("no paddle/base/proto/framework_pb2.py in sys.path")


def hide_dims(program, meta, keep_rank):
    kept = {e["name"] for e in meta["inputs"] if e["role"] == "param"}
    fed = {e["name"] for e in meta["inputs"]}
    for block in program.blocks:
        for var in block.vars:
            if var.name in kept or var.persistable or not var.type.HasField("lod_tensor"):
                continue
            dims = var.type.lod_tensor.tensor.dims
            count = len(dims) if keep_rank or var.name in fed else 0
            del dims[:]
            dims.extend([-1] * count)


def hide_reshaped(program, meta, arrays):
    """Operators read another variable, of no declared dimensions, in place of each input."""
    written = {name for block in program.blocks for op in block.ops for slot in op.outputs
               for name in slot.arguments} | {e["name"] for e in meta["outputs"]}
    # The gradient of a region finds its own by the names of what the region reads.
    if any(op.type.endswith("_grad") and any(a.name == "sub_block" for a in op.attrs)
           for each in program.blocks for op in each.ops):
        raise Unfit("has gradients of regions")
    block = program.blocks[0]
    renamed, before = {}, []
    for entry in list(meta["inputs"]):
        name = entry["name"]
        if not values.can_reshape(entry) or name in written:
            continue
        number = len(renamed)
        var = next((v for v in block.vars if v.name == name), None)
        if var is None:
            continue
        hidden, shape = name + "/hidden", name + "/hidden_shape"
        copy = block.vars.add()
        copy.CopyFrom(var)
        copy.name = hidden
        del copy.type.lod_tensor.tensor.dims[:]
        sized = block.vars.add(name=shape)
        sized.type.type = DENSE
        sized.type.lod_tensor.tensor.data_type = INT64
        sized.type.lod_tensor.tensor.dims.append(len(entry["shape"]))
        rest = block.vars.add(name=hidden + "/x")
        rest.CopyFrom(copy)
        rest.name = hidden + "/x"
        op = type(block.ops.add())(type="reshape2")
        del block.ops[-1]
        op.inputs.add(parameter="X", arguments=[name])
        op.inputs.add(parameter="Shape", arguments=[shape])
        op.outputs.add(parameter="Out", arguments=[hidden])
        op.outputs.add(parameter="XShape", arguments=[hidden + "/x"])
        before.append(op)
        renamed[name] = hidden
        arrays[f"shape_{number}.npy"] = np.array(entry["shape"], np.int64)
        meta["inputs"].append(values.fed_shape(shape, entry["shape"], number))
        meta["feeds"].append(shape)
    if not renamed:
        raise Unfit("nothing can be reshaped")
    for each in program.blocks:
        for op in each.ops:
            for slot in op.inputs:
                for i, name in enumerate(slot.arguments):
                    slot.arguments[i] = renamed.get(name, name)
    ops = before + [type(op).FromString(op.SerializeToString()) for op in block.ops]
    del block.ops[:]
    block.ops.extend(ops)


def rewritten(proto, data, meta, way):
    program = proto.ProgramDesc.FromString(data)
    arrays = {}
    hide_dims(program, meta, way == "open")
    if way == "reshaped":
        hide_reshaped(program, meta, arrays)
    return program.SerializePartialToString(), arrays


def cases(options, scratch):
    """The recorded cases as they are and in each way that `options.ways` names."""
    import copy

    from hidden_shapes.cases import Case, PLAIN

    proto = framework()
    scratch.mkdir(parents=True, exist_ok=True)
    archives = sorted((options.shared / "opcases").glob("*.tar.xz"))
    for root in values.unpacked(archives, scratch):
        for folder, meta in values.recorded(root, options):
            data = (folder / "program.pb").read_bytes()
            name = f"{root.name}.{folder.name}"
            for way in options.ways:
                if way == PLAIN:
                    yield Case(name, way, folder, values.judged_by(folder, meta))
                    continue
                fed = copy.deepcopy(meta)
                try:
                    program, arrays = rewritten(proto, data, fed, way)
                except Unfit:
                    continue
                target = scratch / way / f"{name}.{way}"
                values.write(folder, target, "program.pb", program, fed, arrays)
                yield Case(name, way, target, values.judged_by(folder, meta))
