"""TensorFlow's recorded operator cases with their shapes hidden, for sweep_hidden_shapes.py.

Each case is a graph, what is fed and what comes out (`io.txt`). The ways:

  undeclared  placeholders of unknown rank
  open        placeholders whose dimensions are all open
  reshaped    what is fed goes through a Reshape to a shape that is fed, too
  loop        the nodes are the body of a StatelessWhile or While of one trip; what it gives begins
              as a scalar, so that its rank grows
  old_loop    the same between Enter, Merge, Switch, NextIteration and Exit
  function    the nodes are a function that is called

Needs TensorFlow: its operators' definitions say which output has which name in a function.

  tensorflow_cases.py CASES [--way WAY] [--only GLOB]   asks TensorFlow for the rewritten cases
"""

import fnmatch
import os
import shutil
import sys
import tarfile
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

WAYS = ("undeclared", "open", "reshaped", "loop", "old_loop", "function")
CALLS = ("loop", "old_loop", "function")
FRAME = "hidden"


class Unfit(Exception):
    """The case cannot be said in this way."""


class Io:
    """A line of io.txt."""

    def __init__(self, line):
        self.fields = line.rstrip("\n").split("\t")
        self.kind, self.name, self.file, self.dtype = self.fields[:4]

    @property
    def tensor(self):
        return self.name if ":" in self.name else self.name + ":0"

    def renamed(self, name):
        return "\t".join([self.kind, name, *self.fields[2:]])


def read_io(folder):
    return [Io(line) for line in (folder / "io.txt").read_text().splitlines() if line]


# --- graphs


def source_of(reference):
    """The node of an input, and which of its outputs."""
    name, _, port = reference.partition(":")
    return name, int(port or 0)


class Graph:
    """A graph, its feeds and fetches, while it is rewritten."""

    def __init__(self, folder):
        from tensorflow.core.framework import graph_pb2, types_pb2

        self.folder = folder
        self.proto = graph_pb2.GraphDef.FromString((folder / "graph.pb").read_bytes())
        rows = read_io(folder)
        self.feeds = [r for r in rows if r.kind == "in"]
        self.fetches = [r for r in rows if r.kind == "out"]
        self.nodes = {n.name: n for n in self.proto.node}
        self.types = types_pb2
        self.arrays = {}  # files that the rewritten case has besides
        self.lines = [r.renamed(r.name) for r in self.feeds]
        self.out_lines = [r.renamed(r.name) for r in self.fetches]

    def data_type(self, row):
        return getattr(self.types, "DT_" + {"float32": "FLOAT", "float64": "DOUBLE",
                                            "float16": "HALF"}.get(row.dtype, row.dtype.upper()))

    def add(self, op, name, inputs=(), **attributes):
        return fill(self.proto.node.add(), op, name, inputs, attributes)

    def strip(self):
        """Takes away what says shapes, but for those of variables and checks."""
        for node in self.proto.node:
            for name in ("_output_shapes", "output_shapes"):
                if name in node.attr:
                    del node.attr[name]
            if node.op == "Placeholder" and "shape" in node.attr:
                del node.attr["shape"]
            if node.op == "PlaceholderWithDefault":
                node.attr["shape"].shape.Clear()
                node.attr["shape"].shape.unknown_rank = True

    def fed_nodes(self):
        for row in self.feeds:
            node = self.nodes.get(source_of(row.name)[0])
            if node is None or not node.op.startswith("Placeholder"):
                raise Unfit("feeds what is no placeholder")
            yield row, node

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "graph.pb").write_bytes(self.proto.SerializeToString())
        (folder / "io.txt").write_text("\n".join(self.lines + self.out_lines) + "\n")
        for row in [*self.feeds, *self.fetches]:
            link = folder / row.file
            if row.file not in self.arrays and not link.exists():
                link.symlink_to(self.folder / row.file)
        for name, value in self.arrays.items():
            np.save(folder / name, value)


def fill(node, op, name, inputs, attributes):
    node.op, node.name = op, name
    node.input.extend(inputs)
    for key, value in attributes.items():
        attr = node.attr[key]
        if isinstance(value, bool):
            attr.b = value
        elif isinstance(value, int):
            attr.i = value
        elif isinstance(value, str):
            attr.s = value.encode()
        elif isinstance(value, list):
            attr.list.type.extend(value)
        elif isinstance(value, tuple):  # a type
            attr.type = value[0]
        elif callable(value):
            value(attr)
    return node


def scalar(data_type, value=0):
    """The attribute of a constant scalar."""
    from tensorflow.python.framework import dtypes, tensor_util

    def set_value(attr):
        if data_type == dtypes.string.as_datatype_enum:
            attr.tensor.dtype = data_type
            attr.tensor.tensor_shape.SetInParent()
            attr.tensor.string_val.append(b"")
        else:
            like = dtypes.as_dtype(data_type).as_numpy_dtype
            attr.tensor.CopyFrom(tensor_util.make_tensor_proto(np.zeros((), like) + like(value)))

    return set_value


# --- ways without calls


def hide_undeclared(graph):
    graph.strip()


def hide_open(graph):
    for node in graph.proto.node:
        if "_output_shapes" in node.attr:
            del node.attr["_output_shapes"]
        if node.op == "Placeholder" and "shape" in node.attr:
            for dim in node.attr["shape"].shape.dim:
                dim.size = -1


def hide_reshaped(graph):
    graph.strip()
    renamed = {}
    hidden = set()
    for k, (row, node) in enumerate(graph.fed_nodes()):
        if row.dtype in ("string", "resource", "variant"):
            continue
        wide = len(graph.folder.name + row.name) % 2 == 0
        shape_type = graph.types.DT_INT64 if wide else graph.types.DT_INT32
        name = node.name + "/hidden_shape"
        graph.add("Placeholder", name, dtype=(shape_type,))
        graph.add("Reshape", node.name + "/hidden", [node.name, name],
                  T=(graph.data_type(row),), Tshape=(shape_type,))
        hidden.add(node.name + "/hidden")
        renamed[node.name] = node.name + "/hidden"
        value = np.array(np.load(graph.folder / row.file, mmap_mode="r").shape,
                         np.int64 if wide else np.int32)
        graph.arrays[f"shape_{k}.npy"] = value
        graph.lines.append("\t".join(["in", name, f"shape_{k}.npy", value.dtype.name,
                                      str(value.size), "exact", "-", "-"]))
    if not renamed:
        raise Unfit("nothing can be reshaped")
    for node in graph.proto.node:
        if node.name in hidden:
            continue
        for i, reference in enumerate(node.input):
            if not reference.startswith("^") and source_of(reference)[0] in renamed:
                node.input[i] = renamed[source_of(reference)[0]]


# --- ways with calls


def ancestors(graph):
    """The nodes that lead to what is fetched, without placeholders, in their order."""
    needed, todo = set(), [source_of(r.name)[0] for r in graph.fetches]
    while todo:
        name = todo.pop()
        if name in needed:
            continue
        needed.add(name)
        if name not in graph.nodes:
            raise Unfit("lacks a node")
        todo += [source_of(r.lstrip("^"))[0] for r in graph.nodes[name].input]
    fed = {source_of(r.name)[0] for r in graph.feeds}
    return [n for n in graph.proto.node if n.name in needed and n.name not in fed]


def op_def(node):
    from tensorflow.python.framework import op_def_registry

    found = op_def_registry.get(node.op)
    if found is None:
        raise Unfit(f"calls {node.op}")
    return found


def is_stateful(nodes):
    return any(op_def(n).is_stateful for n in nodes)


def check_no_references(nodes):
    for node in nodes:
        definition = op_def(node)
        if any(a.is_ref for a in [*definition.input_arg, *definition.output_arg]):
            raise Unfit("has reference variables")


def output_name(node, port):
    """The name of an output in a function: node:argument:number."""
    for arg in op_def(node).output_arg:
        count = 1
        if arg.number_attr:
            count = node.attr[arg.number_attr].i
        elif arg.type_list_attr:
            count = len(node.attr[arg.type_list_attr].list.type)
        if port < count:
            return f"{node.name}:{arg.name}:{port}"
        port -= count
    raise Unfit("lacks an output")


def make_function(graph, name, nodes, before=(), after=()):
    """A function of the feeds, with results for the fetches. `before` and `after`: (name, type)
    of arguments around them, which are not handed on."""
    function = graph.proto.library.function.add()
    function.signature.name = name
    function.signature.is_stateful = is_stateful(nodes)
    arguments = {}
    for k, row in enumerate(graph.feeds):
        arguments[source_of(row.name)[0]] = f"fed_{k}"
    for argument, data_type in [*before,
                                *[(f"fed_{k}", graph.data_type(r))
                                  for k, r in enumerate(graph.feeds)], *after]:
        function.signature.input_arg.add(name=argument, type=data_type)

    def said(reference):
        if reference.startswith("^"):
            return None if reference[1:] in arguments else reference
        node, port = source_of(reference)
        return arguments[node] if node in arguments else output_name(graph.nodes[node], port)

    for node in nodes:
        copy = function.node_def.add()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(r for r in map(said, node.input) if r is not None)
    for k, row in enumerate(graph.fetches):
        function.signature.output_arg.add(name=f"made_{k}", type=graph.data_type(row))
        function.ret[f"made_{k}"] = said(row.name)
    return function


def keep_only_feeds(graph):
    fed = {source_of(r.name)[0] for r in graph.feeds}
    kept = [n for n in graph.proto.node if n.name in fed]
    copies = [type(n).FromString(n.SerializeToString()) for n in kept]
    del graph.proto.node[:]
    graph.proto.node.extend(copies)


def fetch_as(graph, references):
    graph.out_lines = []
    for k, (row, reference) in enumerate(zip(graph.fetches, references)):
        graph.add("Identity", f"hidden/out_{k}", [reference], T=(graph.data_type(row),))
        graph.out_lines.append(row.renamed(f"hidden/out_{k}"))


def prepared(graph):
    graph.strip()
    list(graph.fed_nodes())
    nodes = [type(n).FromString(n.SerializeToString()) for n in ancestors(graph)]
    check_no_references(nodes)
    graph.nodes = {n.name: n for n in [*nodes, *graph.proto.node] if n.name}
    return nodes


def hide_function(graph):
    nodes = prepared(graph)
    make_function(graph, "hidden_call", nodes)
    keep_only_feeds(graph)
    feeds = [source_of(r.name)[0] for r in graph.feeds]

    def call(attr):
        attr.func.name = "hidden_call"

    graph.add("StatefulPartitionedCall" if is_stateful(nodes) else "PartitionedCall",
              "hidden/call", feeds, Tin=[graph.data_type(r) for r in graph.feeds],
              Tout=[graph.data_type(r) for r in graph.fetches], f=call)
    fetch_as(graph, [f"hidden/call:{k}" for k in range(len(graph.fetches))])


def hide_loop(graph):
    nodes = prepared(graph)
    int32 = graph.types.DT_INT32
    made = [(f"before_{k}", graph.data_type(r)) for k, r in enumerate(graph.fetches)]
    body = make_function(graph, "hidden_body", nodes, [("trip", int32)], made)
    fill(body.node_def.add(), "Const", "hidden/one", [], {"dtype": (int32,),
                                                           "value": scalar(int32, 1)})
    fill(body.node_def.add(), "AddV2", "hidden/next", ["trip", "hidden/one:output:0"],
         {"T": (int32,)})
    results = [("next_trip", int32, "hidden/next:z:0")]
    for k, row in enumerate(graph.feeds):
        results.append((f"next_{k}", graph.data_type(row), f"fed_{k}"))
    for k, row in enumerate(graph.fetches):
        results.append((f"made_{k}", graph.data_type(row), body.ret[f"made_{k}"]))
    del body.signature.output_arg[:]
    body.ret.clear()
    for name, data_type, reference in results:
        body.signature.output_arg.add(name=name, type=data_type)
        body.ret[name] = reference
    cond = graph.proto.library.function.add()
    cond.signature.name = "hidden_cond"
    for arg in body.signature.input_arg:
        cond.signature.input_arg.add(name=arg.name, type=arg.type)
    cond.signature.output_arg.add(name="goes_on", type=graph.types.DT_BOOL)
    fill(cond.node_def.add(), "Const", "hidden/one", [], {"dtype": (int32,),
                                                           "value": scalar(int32, 1)})
    fill(cond.node_def.add(), "Less", "hidden/less", ["trip", "hidden/one:output:0"],
         {"T": (int32,)})
    cond.ret["goes_on"] = "hidden/less:z:0"
    stateful = is_stateful(nodes)
    keep_only_feeds(graph)
    first = [add_first(graph, "hidden/zero", int32)]
    first += [source_of(r.name)[0] for r in graph.feeds]
    first += [add_first(graph, f"hidden/first_{k}", graph.data_type(r))
              for k, r in enumerate(graph.fetches)]

    def named(name):
        def set_function(attr):
            attr.func.name = name
        return set_function

    graph.add("While" if stateful else "StatelessWhile", "hidden/while", first,
              T=[a.type for a in body.signature.input_arg], cond=named("hidden_cond"),
              body=named("hidden_body"))
    fetch_as(graph, [f"hidden/while:{1 + len(graph.feeds) + k}"
                     for k in range(len(graph.fetches))])


def add_first(graph, name, data_type):
    graph.add("Const", name, dtype=(data_type,), value=scalar(data_type))
    return name


def hide_old_loop(graph):
    nodes = prepared(graph)
    int32 = graph.types.DT_INT32
    variables = [("trip", int32, add_first(graph, "hidden/zero", int32))]
    variables += [(f"fed_{k}", graph.data_type(r), source_of(r.name)[0])
                  for k, r in enumerate(graph.feeds)]
    variables += [(f"made_{k}", graph.data_type(r),
                   add_first(graph, f"hidden/first_{k}", graph.data_type(r)))
                  for k, r in enumerate(graph.fetches)]
    arguments = {source_of(r.name)[0]: f"hidden/switch_fed_{k}:1"
                 for k, r in enumerate(graph.feeds)}
    outs = [source_of(r.name) for r in graph.fetches]
    kept = {source_of(r.name)[0] for r in graph.feeds} | {v[2] for v in variables}
    copies = [type(n).FromString(n.SerializeToString()) for n in graph.proto.node
              if n.name in kept]
    del graph.proto.node[:]
    graph.proto.node.extend(copies)
    for name, data_type, first in variables:
        graph.add("Enter", f"hidden/enter_{name}", [first], T=(data_type,), frame_name=FRAME,
                  is_constant=False, parallel_iterations=1)
        graph.add("Merge", f"hidden/merge_{name}",
                  [f"hidden/enter_{name}", f"hidden/next_{name}"], T=(data_type,), N=2)
    graph.add("Const", "hidden/one", ["^hidden/merge_trip"], dtype=(int32,),
              value=scalar(int32, 1))
    graph.add("Less", "hidden/less", ["hidden/merge_trip", "hidden/one"], T=(int32,))
    graph.add("LoopCond", "hidden/goes_on", ["hidden/less"])
    for name, data_type, _ in variables:
        graph.add("Switch", f"hidden/switch_{name}", [f"hidden/merge_{name}", "hidden/goes_on"],
                  T=(data_type,))
        graph.add("Exit", f"hidden/exit_{name}", [f"hidden/switch_{name}"], T=(data_type,))
    graph.add("Identity", "hidden/pivot", ["hidden/switch_trip:1"], T=(int32,))
    graph.add("Const", "hidden/step", ["^hidden/pivot"], dtype=(int32,), value=scalar(int32, 1))
    graph.add("AddV2", "hidden/next", ["hidden/pivot", "hidden/step"], T=(int32,))

    def said(reference):
        if reference.startswith("^"):
            return "^hidden/pivot" if reference[1:] in arguments else reference
        return arguments.get(source_of(reference)[0], reference)

    for node in nodes:
        inputs = list(dict.fromkeys(map(said, node.input))) if any(
            r.startswith("^") for r in node.input) else [said(r) for r in node.input]
        if not inputs:
            inputs = ["^hidden/pivot"]
        copy = graph.proto.node.add()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(inputs)
    nexts = {"trip": "hidden/next"}
    for k, _ in enumerate(graph.feeds):
        nexts[f"fed_{k}"] = f"hidden/switch_fed_{k}:1"
    for k, (name, port) in enumerate(outs):
        nexts[f"made_{k}"] = arguments.get(name, f"{name}:{port}")
    for name, data_type, _ in variables:
        graph.add("NextIteration", f"hidden/next_{name}", [nexts[name]], T=(data_type,))
    fetch_as(graph, [f"hidden/exit_made_{k}" for k in range(len(graph.fetches))])


HIDE = {"undeclared": hide_undeclared, "open": hide_open, "reshaped": hide_reshaped,
        "loop": hide_loop, "old_loop": hide_old_loop, "function": hide_function}


def rewritten(folder, way):
    """The case, hidden in this way; Unfit where it cannot be."""
    graph = Graph(folder)
    if way in CALLS and any(r.dtype in ("resource", "variant") for r in graph.fetches):
        raise Unfit("fetches handles")
    HIDE[way](graph)
    return graph


# --- what comes out


def widened(array, dtype):
    if dtype == "bfloat16" and array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def difference(got, want, dtype, check, rtol, atol):
    """None where the arrays are equal enough, or what is wrong."""
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    same = (got == want) | ((got != got) & (want != want))
    if check == "close" and (want.dtype.kind in "fc" or dtype == "bfloat16"):
        with np.errstate(all="ignore"):
            g, w = widened(got, dtype), widened(want, dtype)
            same |= (g == w) | ((g != g) & (w != w))
            same |= np.isfinite(g) & np.isfinite(w) & (np.abs(g - w) <= atol + rtol * np.abs(w))
    same = np.asarray(same)
    return None if same.all() else f"{(~same).sum()} of {same.size} elements differ"


def judged_by(folder):
    rows = [r for r in read_io(folder) if r.kind == "out"]

    def judge(out):
        for row in rows:
            _, name, file, dtype, _, check, rtol, atol = row.fields
            if not (out / file).exists():
                return f"{name} was not written"
            why = difference(np.load(out / file), np.load(folder / file), dtype, check,
                             float(rtol), float(atol))
            if why:
                return f"{name}: {why}"
        return None

    return judge


def case_folders(root):
    for listed in ("main.txt", "rare.txt"):
        for name in (root / listed).read_text().split():
            yield root / "cases" / Path(name).name


def unpacked(shared, scratch):
    root = shared / "tf" / "opcases"
    if root.is_dir():
        return root
    if not (scratch / "opcases").is_dir():
        with tarfile.open(shared / "tf" / "opcases.tar.xz") as archive:
            archive.extractall(scratch, filter="data")
    return scratch / "opcases"


def cases(options, scratch):
    """The recorded cases as they are and in each way that `options.ways` names."""
    from hidden_shapes.cases import Case, PLAIN

    scratch.mkdir(parents=True, exist_ok=True)
    folders = list(case_folders(unpacked(options.shared, scratch)))
    if options.share < 1:
        folders = folders[::max(1, round(1 / options.share))]
    for folder in folders:
        if options.only and not any(fnmatch.fnmatch(folder.name, g) for g in options.only):
            continue
        judge = judged_by(folder)
        for way in options.ways:
            if way == PLAIN:
                yield Case(folder.name, way, folder, judge)
                continue
            try:
                graph = rewritten(folder, way)
            except Unfit:
                continue
            target = scratch / way / f"{folder.name}.{way}"
            shutil.rmtree(target, ignore_errors=True)
            graph.write(target)
            yield Case(folder.name, way, target, judge)


# --- whether TensorFlow itself gives the same


def ask_tensorflow(graph, out):
    import tensorflow as tf

    with tf.Graph().as_default():
        tf.import_graph_def(graph.proto, name="")
        feeds = {}
        for line in graph.lines:
            row = Io(line)
            path = graph.folder / row.file
            value = graph.arrays[row.file] if row.file in graph.arrays else np.load(path)
            if row.dtype == "bfloat16":
                value = value.view(tf.bfloat16.as_numpy_dtype)
            feeds[row.tensor] = value
        rows = [Io(line) for line in graph.out_lines]
        with tf.compat.v1.Session() as session:
            for row, made in zip(rows, session.run([r.tensor for r in rows], feeds)):
                made = np.asarray(made)
                np.save(out / row.file, made.view(np.uint16) if row.dtype == "bfloat16" else made)


def main():
    import argparse
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", type=Path, help="an unpacked opcases folder")
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--share", type=float, default=1)
    options = parser.parse_args()
    right = wrong = unfit = 0
    folders = list(case_folders(options.cases))[::max(1, round(1 / options.share))]
    for folder in folders:
        if options.only and not any(fnmatch.fnmatch(folder.name, g) for g in options.only):
            continue
        for way in options.way or WAYS:
            with tempfile.TemporaryDirectory() as out:
                try:
                    ask_tensorflow(rewritten(folder, way), Path(out))
                    why = judged_by(folder)(Path(out))
                except Unfit:
                    unfit += 1
                    continue
                except Exception as error:  # whatever TensorFlow says
                    why = str(error).splitlines()[0][:200]
            right, wrong = (right, wrong + 1) if why else (right + 1, wrong)
            if why:
                print(f"{way} {folder.name}: {why}")
    print(f"{right} right, {wrong} wrong, {unfit} cannot be said so")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
