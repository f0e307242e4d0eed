"""TensorFlow's recorded cases with indices, sizes and axes of all integer types they may have.

An operator's definition says of an attribute which types it allows. Where they are integers, each
is tried: inputs of that type are converted to it, outputs are expected in it. In the way
`constant`, constants are converted, and other inputs by a Cast; in the way `cast`, all are.

  tensorflow_index_types.py CASES    asks TensorFlow which of them it runs, with the same answers
"""

import fnmatch
import os
import shutil
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from hidden_shapes import tensorflow_cases as tf_cases  # noqa

WAYS = ("constant", "cast")
INTEGERS = {"int8": 6, "uint8": 4, "int16": 5, "uint16": 17, "int32": 3, "int64": 9,
            "uint32": 22, "uint64": 23}


def variants(graph):
    """(node, attribute, its present type, another allowed one)"""
    from tensorflow.python.framework import op_def_registry

    for node in graph.proto.node:
        definition = op_def_registry.get(node.op)
        # Variables are references of their type; random numbers of another type are others.
        if definition is None or "Random" in node.op or any(
                a.is_ref for a in [*definition.input_arg, *definition.output_arg]):
            continue
        for attr in definition.attr:
            allowed = set(attr.allowed_values.list.type)
            if attr.type != "type" or len(allowed) < 2 or not allowed <= set(INTEGERS.values()):
                continue
            # "T" is the type of elements, whose values wrap, but where it allows no narrow ones.
            if attr.name == "T" and allowed != {INTEGERS["int32"], INTEGERS["int64"]}:
                continue
            now = node.attr[attr.name].type if attr.name in node.attr else attr.default_value.type
            for name, number in INTEGERS.items():
                if number in allowed and number != now and now:
                    yield node, definition, attr.name, name


def ports(args, node, attribute):
    """Places of the inputs or outputs whose type the attribute names."""
    at, found = 0, []
    for arg in args:
        count = 1
        if arg.number_attr:
            count = node.attr[arg.number_attr].i
        elif arg.type_list_attr:
            count = len(node.attr[arg.type_list_attr].list.type)
        if arg.type_attr == attribute:
            found += range(at, at + count)
        at += count
    return found


def with_type(folder, k, way):
    """The k-th variant of the case; None where there are fewer; Unfit."""
    from tensorflow.python.framework import tensor_util

    graph = tf_cases.Graph(folder)
    chosen = next((v for i, v in enumerate(variants(graph)) if i == k), None)
    if chosen is None:
        return None
    node, definition, attribute, name = chosen
    number = INTEGERS[name]
    before = node.attr[attribute].type if attribute in node.attr else 0
    before = before or next(a for a in definition.attr if a.name == attribute).default_value.type
    graph.label = f"{node.op}.{attribute}.{name}"
    for i in ports(definition.input_arg, node, attribute):
        reference = node.input[i]
        source = graph.nodes[tf_cases.source_of(reference)[0]]
        if way == "constant" and source.op == "Const":
            value = tensor_util.MakeNdarray(source.attr["value"].tensor)
            limits = np.iinfo(name)
            if value.size and (value.max() > limits.max or value.min() < limits.min):
                raise tf_cases.Unfit("does not fit")
            copy = graph.add("Const", f"{source.name}/as_{name}_{i}", dtype=(number,))
            copy.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(value.astype(name)))
        else:
            copy = graph.add("Cast", f"{node.name}/input_{i}_as_{name}", [reference],
                             SrcT=(before,), DstT=(number,))
        node.input[i] = copy.name
    node.attr[attribute].type = number
    outputs = ports(definition.output_arg, node, attribute)
    # Whoever reads these outputs wants the old type.
    for port in outputs:
        reader = f"{node.name}/output_{port}_back"
        used = False
        for other in list(graph.proto.node):
            if other.name == reader:
                continue
            for i, reference in enumerate(other.input):
                if not reference.startswith("^") and tf_cases.source_of(reference) == (node.name,
                                                                                       port):
                    other.input[i] = reader
                    used = True
        if used:
            graph.add("Cast", reader, [f"{node.name}:{port}" if port else node.name],
                      SrcT=(number,), DstT=(before,))
    for row in graph.fetches:
        if tf_cases.source_of(row.name) in [(node.name, p) for p in outputs]:
            graph.arrays[row.file] = np.load(folder / row.file).astype(name)
            row.dtype = row.fields[3] = name
    graph.out_lines = [r.renamed(r.name) for r in graph.fetches]
    return graph


def each(folder, way):
    k = 0
    while True:
        try:
            graph = with_type(folder, k, way)
        except tf_cases.Unfit:
            k += 1
            continue
        if graph is None:
            return
        yield k, graph
        k += 1


def judged_by(folder, graph):
    def judge(out):
        for row in graph.fetches:
            _, name, file, dtype, _, check, rtol, atol = row.fields
            if not (out / file).exists():
                return f"{name} was not written"
            want = graph.arrays[file] if file in graph.arrays else np.load(folder / file)
            why = tf_cases.difference(np.load(out / file), want, dtype, check, float(rtol),
                                      float(atol))
            if why:
                return f"{name}: {why}"
        return None

    return judge


def cases(options, scratch):
    """The recorded cases, and each with its integer types changed, in both ways."""
    from hidden_shapes.cases import Case, PLAIN

    scratch.mkdir(parents=True, exist_ok=True)
    folders = list(tf_cases.case_folders(tf_cases.unpacked(options.shared, scratch)))
    if options.share < 1:
        folders = folders[::max(1, round(1 / options.share))]
    for folder in folders:
        if options.only and not any(fnmatch.fnmatch(folder.name, g) for g in options.only):
            continue
        changed = [(w, k, g) for w in options.ways if w != PLAIN for k, g in each(folder, w)]
        if not changed:
            continue
        yield Case(folder.name, PLAIN, folder, tf_cases.judged_by(folder))
        for way, k, graph in changed:
            target = scratch / way / f"{folder.name}.{way}.{k}.{graph.label}"
            shutil.rmtree(target, ignore_errors=True)
            graph.write(target)
            yield Case(folder.name, way, target, judged_by(folder, graph))


def asked_apart(graph, out):
    """Asks TensorFlow in a process of its own, since some types end it; its exit status."""
    child = os.fork()
    if child == 0:
        try:
            tf_cases.ask_tensorflow(graph, out)
            os._exit(0)
        except Exception:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def main():
    import argparse
    import collections
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--share", type=float, default=1)
    options = parser.parse_args()
    import tensorflow  # noqa: F401  once, for all processes that ask it
    right = wrong = 0
    refused = collections.Counter()
    every = max(1, round(1 / options.share))
    for folder in list(tf_cases.case_folders(options.cases))[::every]:
        for way in WAYS:
            for _, graph in each(folder, way):
                with tempfile.TemporaryDirectory() as out:
                    verdict = asked_apart(graph, Path(out))
                    if verdict:  # TensorFlow has no kernel for this type
                        refused[graph.label] += 1
                        continue
                    why = judged_by(folder, graph)(Path(out))
                    right, wrong = (right, wrong + 1) if why else (right + 1, wrong)
                    if why:
                        print(f"{way} {folder.name} {graph.label}: {why}", flush=True)
    print(f"{right} right, {wrong} wrong, {sum(refused.values())} refused by TensorFlow:")
    print("\n".join(f"{n:6} {label}" for label, n in sorted(refused.items())))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
