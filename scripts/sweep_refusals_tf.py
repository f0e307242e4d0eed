#!/usr/bin/env python3
"""Damages valid TensorFlow graphs in one place and compares what TensorFlow and heddle refuse.

  sweep_refusals_tf.py CASES… --heddle build/release/heddle [--seed N] [--count N] [--keep DIR]

As sweep_refusals.py does with ONNX models. CASES are folders with cases below them: graph.pb,
io.txt with a line for each fed and each wanted tensor (in|out, name, file, dtype, shape, check,
tolerances), and the files of those that are fed. Changed is the element type of a fed or constant
operand, in its node alone or wherever the graph's attributes name it; a rank or a dimension;
elements of integers; an attribute; or an operand is left out. A graph is wrong if TensorFlow
refuses to import or to run it; one that lacks only a kernel counts as neither. Needs tensorflow.
"""
import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from refusals import sides  # noqa: E402

TYPES = ["float32", "float64", "int32", "int64", "float16", "int8", "uint8", "int16", "bool",
         "complex64", "uint16"]


class NoChange(Exception):
    """The graph has nothing to change in this way."""


class Case:
    """A graph, its feeds by tensor name, and the names of what is fetched."""

    def __init__(self, folder):
        from tensorflow.core.framework import graph_pb2

        self.graph = graph_pb2.GraphDef.FromString((folder / "graph.pb").read_bytes())
        for node in self.graph.node:
            node.device = ""  # there may be no such device here
        self.feeds, self.outs = {}, []
        for line in (folder / "io.txt").read_text().splitlines():
            way, name, file, dtype = line.split("\t")[:4]
            if way == "out":
                self.outs.append((line.split("\t")))
                continue
            if dtype not in TYPES:
                raise NoChange
            self.feeds[name] = np.load(folder / file)

    def node_of(self, tensor):
        for node in self.graph.node:
            if node.name == tensor.split(":")[0].lstrip("^"):
                return node
        raise NoChange

    def some_operand(self, rng):
        """(node of an operand, its value, a function that replaces it)"""
        import tensorflow as tf

        able = [n for n in self.graph.node if n.op == "Const" or n.op.startswith("Placeholder")]
        if not able:
            raise NoChange
        node = able[int(rng.integers(len(able)))]
        if node.op == "Const":
            value = tf.make_ndarray(node.attr["value"].tensor)

            def give(array):
                node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
                node.attr["dtype"].type = node.attr["value"].tensor.dtype
        else:
            fed = [n for n in self.feeds if n.split(":")[0] == node.name]
            if not fed:
                raise NoChange
            value = self.feeds[fed[0]]

            def give(array):
                self.feeds[fed[0]] = array
                node.attr["dtype"].type = tf.as_dtype(array.dtype).as_datatype_enum
                if "shape" in node.attr:
                    node.attr["shape"].shape.Clear()
                    node.attr["shape"].shape.unknown_rank = True
        if value.dtype.name not in TYPES:
            raise NoChange
        return node, np.asarray(value), give


def with_type(case, rng):
    node, array, give = case.some_operand(rng)
    to = np.dtype(TYPES[int(rng.integers(len(TYPES)))])
    if to == array.dtype:
        raise NoChange
    before = node.attr["dtype"].type
    with np.errstate(all="ignore"):
        give(array.astype(to))
    if rng.random() < 0.3:
        return
    for other in case.graph.node:  # wherever the type is named
        for name in other.attr:
            if other.op in ("Const", "Cast") or other.op.startswith("Placeholder"):
                continue
            if other.attr[name].type == before:
                other.attr[name].type = node.attr["dtype"].type


def with_rank(case, rng):
    _, array, give = case.some_operand(rng)
    if array.ndim and array.size and rng.random() < 0.5:
        give(np.take(array, 0, int(rng.integers(array.ndim))))
    else:
        give(np.expand_dims(array, int(rng.integers(array.ndim + 1))))


def with_dimension(case, rng):
    _, array, give = case.some_operand(rng)
    if not array.ndim or not array.size:
        raise NoChange
    shape = list(array.shape)
    at = int(rng.integers(array.ndim))
    shape[at] = max(0, shape[at] + int(rng.choice([-1, 1, 2])))
    give(np.resize(array, shape))


def with_elements(case, rng):
    _, array, give = case.some_operand(rng)
    if array.dtype.kind != "i" or not array.size or array.size > 64:
        raise NoChange
    array = array.copy()
    array.reshape(-1)[int(rng.integers(array.size))] = rng.choice([-100, -9, -2, 0, 3, 9, 100])
    give(array)


def with_attribute(case, rng):
    able = [(n, k) for n in case.graph.node for k in n.attr if n.op != "Const"
            and not n.op.startswith("Placeholder") and k[0] != "_"
            and k not in ("container", "shared_name")
            and n.attr[k].WhichOneof("value") in ("i", "s", "list")]
    if not able:
        raise NoChange
    node, name = able[int(rng.integers(len(able)))]
    value, far = node.attr[name], [-100, -7, -2, -1, 0, 2, 5, 100]
    if value.WhichOneof("value") == "i":
        value.i = int(rng.choice(far))
    elif value.WhichOneof("value") == "s":
        value.s = b"no_such_word"
    elif value.list.i and rng.random() < 0.7:
        value.list.i[int(rng.integers(len(value.list.i)))] = int(rng.choice(far))
    elif value.list.i:
        del value.list.i[-1]
    else:
        raise NoChange


def without_operand(case, rng):
    able = [n for n in case.graph.node if n.input]
    if not able:
        raise NoChange
    node = able[int(rng.integers(len(able)))]
    del node.input[int(rng.integers(len(node.input)))]


CHANGES = {f.__name__: f for f in (with_type, with_rank, with_dimension, with_elements,
                                   with_attribute, without_operand)}


def changed(folder, seed, number):
    """(sort of change, case); None: nothing to change."""
    rng = np.random.default_rng([seed, number])
    sort = list(CHANGES)[int(rng.integers(len(CHANGES)))]
    try:
        case = Case(folder)
        CHANGES[sort](case, rng)
    except NoChange:
        return None
    return sort, case


def write(case, folder):
    folder.mkdir()
    (folder / "out").mkdir()
    (folder / "graph.pb").write_bytes(case.graph.SerializeToString())
    lines = []
    for k, (name, array) in enumerate(case.feeds.items()):
        np.save(folder / f"in_{k}.npy", array)
        shape = ",".join(map(str, array.shape)) or "-"
        lines.append("\t".join(["in", name, f"in_{k}.npy", array.dtype.name, shape, "-", "-", "-"]))
    lines += ["\t".join(out) for out in case.outs]
    (folder / "io.txt").write_text("\n".join(lines) + "\n")


def verdict(folder):
    """("wrong", why), ("right", "") or ("neither", why) of the graph in a folder."""
    import tensorflow as tf

    case = Case(folder)
    graph = tf.Graph()
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1,
                                      inter_op_parallelism_threads=1)
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    try:
        with graph.as_default():
            tf.import_graph_def(case.graph, name="")
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            session.run([out[1] for out in case.outs], case.feeds)
        return "right", ""
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    lacks = any(s in said for s in ("No OpKernel was registered", "UnimplementedError",
                                    "only supports NHWC on device type CPU"))
    return ("neither" if lacks else "wrong"), said[:600]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", type=Path)
    sides.arguments(parser)
    options = parser.parse_args()
    found = sorted(p.parent for c in options.cases for p in c.rglob("graph.pb"))
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as held:
        work, sorts, origin, number = Path(held), {}, {}, 0
        while len(sorts) < options.count:
            number += 1
            source = found[int(rng.integers(len(found)))]
            if made := changed(source, options.seed, number):
                folder = work / str(number)
                write(made[1], folder)
                sorts[folder], origin[folder] = made[0], source.name
        return sides.judge(options, sorts, origin, verdict, work)


if __name__ == "__main__":
    sys.exit(main())
