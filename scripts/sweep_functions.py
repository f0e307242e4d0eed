#!/usr/bin/env python3
"""Random programs of functions that call each other, under their own framework and under heddle.

  scripts/sweep_functions.py tensorflow --heddle build/release/heddle [--seed S] [--count N]
  scripts/sweep_functions.py onnx --heddle build/release/heddle [--seed S] [--count N]

Functions have attributes with and without defaults, several outputs, lists as arguments, and are
called by many nodes, in branches and loops, too. What the framework refuses is left out. Needs
numpy and tensorflow, or numpy, onnx and onnxruntime, in the Python that runs this. Exit status: 0,
or 1 when heddle refuses a program or gives other values."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402

SIZE = 4  # of every tensor
FEEDS = {"x": np.array([0.5, -1.25, 2, -0.125], "float32"),
         "y": np.array([-0.75, 0.25, 1.5, -3], "float32")}


class TensorflowProgram:
    """A GraphDef. A function is of floats, of integers, or of a type that its calls say."""

    def __init__(self, seed):
        from tensorflow.core.framework import function_pb2, graph_pb2, types_pb2
        self.random = np.random.default_rng(seed)
        self.function_def = function_pb2.FunctionDef
        self.types = {"float": types_pb2.DT_FLOAT, "int32": types_pb2.DT_INT32,
                      "bool": types_pb2.DT_BOOL}
        self.functions = []
        self.graph = graph_pb2.GraphDef()
        self.graph.versions.producer = 1882
        for k in range(self.draw(3, 8)):
            self.functions.append(self.make_function(f"fn{k}"))
        self.graph.library.function.extend(f["proto"] for f in self.functions)
        self.fetches = []
        values = {"float": ["x", "y"], "int32": ["i"]}
        for name, type_ in (("x", "float"), ("y", "float"), ("i", "int32")):
            node = self.graph.node.add(name=name, op="Placeholder")
            node.attr["dtype"].type = self.types[type_]
            node.attr["shape"].shape.dim.add(size=SIZE)
        for k in range(self.draw(2, 6)):
            callee = self.pick(self.functions)
            type_ = callee["type"] or str(self.pick(["float", "int32"]))
            for value in self.call(self.graph.node, f"c{k}", callee, type_,
                                   lambda type_=type_: self.pick(values[type_])):
                values[type_].append(value)
                out = self.graph.node.add(name=f"out{len(self.fetches)}", op="Identity",
                                          input=[values[type_][-1]])
                out.attr["T"].type = self.types[type_]
                self.fetches.append(out.name)

    def draw(self, low, high):
        return int(self.random.integers(low, high))

    def chance(self, p=0.5):
        return bool(self.random.random() < p)

    def pick(self, items):
        return items[self.draw(0, len(items))]

    def give(self, attributes, callee, type_):
        """Attributes of a call."""
        # TensorFlow takes no defaults of what a signature's types name.
        if callee["type"] is None:
            attributes["T"].type = self.types[type_]
        if "n" in callee["attributes"]:
            attributes["n"].i = 2
        if "slope" in callee["attributes"] and ("slope" not in callee["defaults"] or
                                                self.chance()):
            attributes["slope"].f = 0.125 * self.draw(1, 7)

    def call(self, nodes, name, callee, type_, value):
        """The names of what it makes."""
        inputs = [value() for _ in range(sum(callee["inputs"]))]
        outputs = sum(callee["outputs"])
        kind = self.pick(["direct", "call", "if", "while"])
        if 2 in callee["inputs"] + callee["outputs"]:  # lists, which TensorFlow takes here alone
            kind = "direct"
        if kind == "direct":
            node = nodes.add(name=name, op=callee["name"], input=inputs)
            self.give(node.attr, callee, type_)
            if self.inside:
                return [f"{name}:{result.name}:{k}" for result, size in
                        zip(callee["proto"].signature.output_arg, callee["outputs"])
                        for k in range(size)]
            return [f"{name}:{k}" if k else name for k in range(outputs)]
        if kind == "while":
            return self.loop(nodes, name, callee, type_, inputs)
        if kind == "call":
            node = nodes.add(name=name, op=self.pick(["PartitionedCall",
                                                      "StatefulPartitionedCall"]), input=inputs)
            self.name_function(node.attr["f"], callee, type_)
        else:
            node = nodes.add(name=name, op=self.pick(["If", "StatelessIf"]),
                             input=[self.condition(nodes, name, value(), type_), *inputs])
            node.attr["Tcond"].type = self.types["bool"]
            for branch in ("then_branch", "else_branch"):
                self.name_function(node.attr[branch], callee, type_)
        node.attr["Tin"].list.type.extend([self.types[type_]] * len(inputs))
        node.attr["Tout"].list.type.extend([self.types[type_]] * outputs)
        return self.outputs_of(name, range(outputs))

    def outputs_of(self, name, ports):
        if self.inside:
            return [f"{name}:output:{k}" for k in ports]
        return [f"{name}:{k}" if k else name for k in ports]

    def loop(self, nodes, name, callee, type_, inputs):
        """The callee a few times, on what it gave the time before."""
        types = [self.types["int32"]] + [self.types[type_]] * len(inputs)
        cond, body = self.graph.library.function.add(), self.graph.library.function.add()
        for f, what in ((cond, "cond"), (body, "body")):
            f.signature.name = f"{what}_{len(self.graph.library.function)}_{len(self.functions)}"
            for k, t in enumerate(types):
                f.signature.input_arg.add(name=f"v{k}", type=t)
            self.set_ints(f.node_def.add(name="number", op="Const"),
                          [self.draw(0, 4) if f is cond else 1], scalar=True)
            step = f.node_def.add(name="step", op="Less" if f is cond else "AddV2",
                                  input=["v0", "number:output:0"])
            step.attr["T"].type = self.types["int32"]
        cond.signature.output_arg.add(name="goes_on", type=self.types["bool"])
        cond.ret["goes_on"] = "step:z:0"
        made = body.node_def.add(name="made", op=callee["name"],
                                 input=[f"v{k + 1}" for k in range(len(inputs))])
        self.give(made.attr, callee, type_)
        results = [f"made:{r.name}:0" for r in callee["proto"].signature.output_arg]
        for k, t in enumerate(types):
            body.signature.output_arg.add(name=f"w{k}", type=t)
            body.ret[f"w{k}"] = ("step:z:0" if k == 0 else
                                 results[k - 1] if k <= len(results) else f"v{k}")
        self.set_ints(nodes.add(name=name + "_begin", op="Const"), [0], scalar=True)
        node = nodes.add(name=name, op=self.pick(["While", "StatelessWhile"]), input=[
            name + "_begin" + (":output:0" if self.inside else ""), *inputs])
        node.attr["T"].list.type.extend(types)
        node.attr["cond"].func.name = cond.signature.name
        node.attr["body"].func.name = body.signature.name
        return self.outputs_of(name, range(1, len(types)))

    def condition(self, nodes, name, value, type_):
        """One bool, of the main graph or of a function."""
        inside = self.inside
        zero = nodes.add(name=name + "_zero", op="Const")
        zero.attr["dtype"].type = self.types[type_]
        zero.attr["value"].tensor.dtype = self.types[type_]
        zero.attr["value"].tensor.tensor_shape.SetInParent()
        (zero.attr["value"].tensor.float_val if type_ == "float" else
         zero.attr["value"].tensor.int_val).append(0)
        greater = nodes.add(name=name + "_gt", op="Greater",
                            input=[value, zero.name + (":output:0" if inside else "")])
        greater.attr["T"].type = self.types[type_]
        axis = nodes.add(name=name + "_axis", op="Const")
        self.set_ints(axis, [0])
        any_ = nodes.add(name=name + "_any", op="Any", input=[
            greater.name + (":z:0" if inside else ""), axis.name + (":output:0" if inside else "")])
        any_.attr["Tidx"].type = self.types["int32"]
        return any_.name + (":output:0" if inside else "")

    inside = False

    def set_ints(self, node, values, scalar=False):
        node.attr["dtype"].type = self.types["int32"]
        tensor = node.attr["value"].tensor
        tensor.dtype = self.types["int32"]
        tensor.tensor_shape.SetInParent()
        if not scalar:
            tensor.tensor_shape.dim.add(size=len(values))
        tensor.int_val.extend(values)

    def name_function(self, attr, callee, type_):
        attr.func.name = callee["name"]
        self.give(attr.func.attr, callee, type_)

    def make_function(self, name):
        """Its proto, and what a call must know."""
        type_ = self.pick([None, "float", "int32"])
        f = {"name": name, "type": type_, "attributes": [], "defaults": {}, "inputs": [],
             "outputs": []}
        proto = f["proto"] = self.function_def()
        sig = proto.signature
        sig.name = name
        self.inside = True

        def declare(attribute, kind, default, setter):
            f["attributes"].append(attribute)
            declared = sig.attr.add(name=attribute, type=kind)
            if self.chance():
                setter(declared.default_value, default)
                f["defaults"][attribute] = default

        if type_ is None:
            declare("T", "type", self.pick(["float", "int32"]),
                    lambda v, t: setattr(v, "type", self.types[t]))
        if self.chance():
            declare("n", "int", 2, lambda v, i: setattr(v, "i", i))
        if type_ == "float" and self.chance():
            declare("slope", "float", 0.25, lambda v, s: setattr(v, "f", s))

        def argument(args, arg_name, number):
            arg = args.add(name=arg_name)
            if type_ is None:
                arg.type_attr = "T"
            else:
                arg.type = self.types[type_]
            if number:
                arg.number_attr = "n"
            return arg

        values, lists = [], []
        for k in range(self.draw(1, 3)):
            argument(sig.input_arg, f"a{k}", False)
            f["inputs"].append(1)
            values.append(f"a{k}")
        if "n" in f["attributes"] and self.chance(0.7):
            argument(sig.input_arg, "list", True)
            f["inputs"].append(2)
            values += ["list:0", "list:1"]
            lists.append("list")

        def node(op, inputs, **types):
            made = proto.node_def.add(name=f"n{len(proto.node_def)}", op=op, input=inputs)
            for key in types:
                if type_ is None:
                    made.attr[key].placeholder = "T"
                else:
                    made.attr[key].type = self.types[type_]
            return made

        for _ in range(self.draw(2, 7)):
            self.add_step(f, proto, values, lists, node)
        for k in range(self.draw(1, 4)):
            argument(sig.output_arg, f"r{k}", False)
            f["outputs"].append(1)
            proto.ret[f"r{k}"] = self.pick(values[-5:])
        made_lists = [v for v in lists if v != "list"]  # TensorFlow hands no argument on
        if made_lists and self.chance():
            argument(sig.output_arg, "all", True)
            f["outputs"].append(2)
            proto.ret["all"] = self.pick(made_lists)
        self.inside = False
        return f

    def add_step(self, f, proto, values, lists, node):
        kind = self.draw(0, 9 if self.functions else 7)
        if kind < 2:
            made = node(self.pick(["AddV2", "Sub", "Maximum", "Minimum"]),
                        [self.pick(values), self.pick(values)], T=1)
            values.append(made.name + ":z:0")
        elif kind == 2:
            values.append(node("Neg", [self.pick(values)], T=1).name + ":y:0")
        elif kind == 3 and f["type"] == "float":
            made = node("LeakyRelu", [self.pick(values)], T=1)
            if "slope" in f["attributes"]:
                made.attr["alpha"].placeholder = "slope"
            values.append(made.name + ":activations:0")
        elif kind == 4:
            made = node("Unpack", [self.pick(values)], T=1)
            made.attr["num"].i = SIZE
            inputs = ([made.name + ":output"] if self.chance() else
                      [f"{made.name}:output:{k}" for k in (2, 0, 3, 1)])
            pack = node("Pack", inputs, T=1)
            pack.attr["N"].i = SIZE
            values.append(pack.name + ":output:0")
        elif kind == 5:
            number = proto.node_def.add(name=f"n{len(proto.node_def)}", op="Const")
            self.set_ints(number, [SIZE], scalar=True)
            made = node("TopKV2", [self.pick(values), number.name + ":output:0"], T=1)
            values.append(made.name + ":values:0")
            cast = node("Cast", [made.name + ":indices:0"], DstT=1)
            cast.attr["SrcT"].type = self.types["int32"]
            values.append(cast.name + ":y:0")
        elif kind == 6:
            if lists and self.chance(0.7):
                made = node("AddN", [self.pick(lists)], T=1)
                made.attr["N"].placeholder = "n"
            else:
                made = node("AddN", [self.pick(values), self.pick(values)], T=1)
                made.attr["N"].i = 2
            values.append(made.name + ":sum:0")
        elif kind >= 7:
            fitting = [c for c in self.functions if c["type"] in (None, f["type"])]
            if not fitting:
                return
            callee = self.pick(fitting)
            name = f"n{len(proto.node_def)}"
            if f["type"] is None:
                made = proto.node_def.add(name=name, op=callee["name"],
                                          input=[self.pick(values) for _ in
                                                 range(sum(callee["inputs"]))])
                made.attr["T"].placeholder = "T"
                for attribute in ("n", "slope"):
                    if attribute in callee["attributes"]:
                        if attribute in f["attributes"] and self.chance():
                            made.attr[attribute].placeholder = attribute
                        elif attribute == "n":
                            made.attr["n"].i = 2
                        else:
                            made.attr["slope"].f = 0.5
            else:
                values += self.call(proto.node_def, name, callee, f["type"],
                                    lambda: self.pick(values))
                return
            for result, size in zip(callee["proto"].signature.output_arg, callee["outputs"]):
                values += [f"{name}:{result.name}:{k}" for k in range(size)]
                if size == 2 and "n" in f["attributes"]:
                    lists.append(f"{name}:{result.name}")

    feeds = {**FEEDS, "i": np.array([3, -2, 7, 0], "int32")}
    ending = ".pb"

    def bytes(self):
        return self.graph.SerializeToString()

    def expected(self):
        import tensorflow as tf
        from tensorflow.python.framework import importer
        # Python's own objects for functions know no types that are attributes.
        importer.function.from_library = lambda library: []
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(self.graph, name="")
        config = tf.compat.v1.ConfigProto()
        # Its optimizer does not know names of whole lists.
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            return session.run([name + ":0" for name in self.fetches],
                               {name + ":0": value for name, value in self.feeds.items()})

    def options(self):
        named = [x for name in self.fetches for x in ("--fetch", name)]
        return named


class OnnxProgram:
    """A model whose local functions have attributes and optional inputs. No overloads: ONNX Runtime
    takes one for another."""

    feeds = FEEDS
    ending = ".onnx"

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.opset = self.pick([17, 18, 20])
        self.functions = []
        from onnx import helper
        for k in range(self.draw(3, 8)):
            self.functions.append(self.make_function(f"fn{k}"))
        nodes, values, self.fetches = [], ["x", "y"], []
        for k in range(self.draw(2, 6)):
            self.add_call(nodes, values, f"c{k}", None)
        shape = helper.make_tensor_value_info
        self.fetches = [v for v in values if v not in ("x", "y")]
        graph = helper.make_graph(
            nodes, "g", [shape(n, 1, [SIZE]) for n in FEEDS],
            [shape(n, 1, None) for n in self.fetches])
        self.model = helper.make_model(
            graph, functions=[f["proto"] for f in self.functions], ir_version=10,
            opset_imports=[helper.make_opsetid("", self.opset), helper.make_opsetid("own", 1)])

    draw = TensorflowProgram.draw
    chance = TensorflowProgram.chance
    pick = TensorflowProgram.pick

    def make_function(self, name):
        from onnx import helper
        f = {"name": name, "attributes": [], "defaults": {}}
        for attribute, default in (("alpha", 0.25), ("axis", 0)):
            if self.chance():
                f["attributes"].append(attribute)
                if self.chance():
                    f["defaults"][attribute] = default
        f["inputs"] = [f"a{k}" for k in range(self.draw(1, 3))]
        f["optional"] = self.chance(0.3)
        values, nodes = list(f["inputs"]), []
        for k in range(self.draw(2, 6)):
            self.add_step(f, nodes, values, f"v{k}")
        inputs = f["inputs"] + (["low"] if f["optional"] else [])
        if f["optional"]:
            nodes.append(helper.make_node("Clip", [values[-1], "low"], ["clipped"]))
            values.append("clipped")
        made = values[len(f["inputs"]):]
        f["outputs"] = [str(v) for v in
                        self.random.permutation(made)[:self.draw(1, min(3, len(made)) + 1)]]
        f["proto"] = helper.make_function(
            "own", f["name"], inputs, f["outputs"], nodes,
            [helper.make_opsetid("", self.opset), helper.make_opsetid("own", 1)],
            attributes=[a for a in f["attributes"] if a not in f["defaults"]],
            attribute_protos=[helper.make_attribute(a, v) for a, v in f["defaults"].items()])
        return f

    def refer(self, node, attribute, of, kind):
        from onnx import AttributeProto
        node.attribute.append(AttributeProto(name=attribute, ref_attr_name=of, type=kind))

    def add_step(self, f, nodes, values, name):
        from onnx import AttributeProto, helper
        kind = self.draw(0, 9 if self.functions else 6)
        if kind < 2:
            nodes.append(helper.make_node(self.pick(["Add", "Sub", "Max"]),
                                          [self.pick(values), self.pick(values)], [name]))
            values.append(name)
        elif kind == 2:
            nodes.append(helper.make_node("LeakyRelu", [self.pick(values)], [name]))
            if "alpha" in f["attributes"]:
                self.refer(nodes[-1], "alpha", "alpha", AttributeProto.FLOAT)
            values.append(name)
        elif kind == 3:
            parts = [name + "_0", name + "_1"]
            nodes.append(helper.make_node("Split", [self.pick(values)], parts))
            if self.opset >= 18:
                nodes[-1].attribute.append(helper.make_attribute("num_outputs", 2))
            nodes.append(helper.make_node("Concat", parts[::-1], [name]))
            if "axis" in f["defaults"]:
                self.refer(nodes[-1], "axis", "axis", AttributeProto.INT)
            else:
                nodes[-1].attribute.append(helper.make_attribute("axis", 0))
            values.append(name)
        elif kind == 4 and "alpha" in f["defaults"]:
            nodes.append(helper.make_node("Constant", [], [name + "_k"]))
            self.refer(nodes[-1], "value_float", "alpha", AttributeProto.FLOAT)
            nodes.append(helper.make_node("Mul", [self.pick(values), name + "_k"], [name]))
            values.append(name)
        elif kind == 5 or kind == 4:
            k = helper.make_node("Constant", [], [name + "_k"], value_ints=[SIZE])
            nodes.append(k)
            nodes.append(helper.make_node("TopK", [self.pick(values), name + "_k"],
                                          [name + "_v", name + "_i"]))
            nodes.append(helper.make_node("Cast", [name + "_i"], [name], to=1))
            values += [name + "_v", name]
        else:
            self.add_call(nodes, values, name, f)

    def add_call(self, nodes, values, name, caller):
        from onnx import AttributeProto, helper
        callee = self.pick(self.functions)
        inputs = [self.pick(values) for _ in callee["inputs"]]
        if callee["optional"] and self.chance():
            nodes.append(helper.make_node("Constant", [], [name + "_low"], value_float=-0.5))
            inputs.append(name + "_low")
        outputs = [f"{name}_{k}" for k in range(len(callee["outputs"]))]
        if len(outputs) > 1 and self.chance(0.3):
            outputs[0] = ""
        node = helper.make_node(callee["name"], inputs, outputs, domain="own")
        for attribute in callee["attributes"]:
            if attribute in callee["defaults"] and self.chance():
                continue
            if attribute == "alpha" and caller and "alpha" in caller["attributes"] and \
                    self.chance():
                self.refer(node, "alpha", "alpha", AttributeProto.FLOAT)
            elif attribute == "alpha":
                node.attribute.append(helper.make_attribute("alpha", 0.125 * self.draw(1, 7)))
            else:
                node.attribute.append(helper.make_attribute("axis", self.pick([0, -1])))
        made = [v for v in outputs if v]
        if caller is None and self.chance(0.3):
            self.add_branches(nodes, name, node, made)
        else:
            nodes.append(node)
        values += made

    def add_branches(self, nodes, name, node, made):
        """The call is one side of an If, whose condition the first value says."""
        from onnx import helper
        nodes.append(helper.make_node("ReduceMax", ["x"], [name + "_m"], keepdims=0))
        nodes.append(helper.make_node("Constant", [], [name + "_z"], value_float=0.0))
        nodes.append(helper.make_node("Greater", [name + "_m", name + "_z"], [name + "_c"]))
        sides = {}
        for side in ("then", "else"):
            inner = type(node)()
            inner.CopyFrom(node)
            inner.output[:] = [v and f"{v}_{side}" for v in node.output]
            sides[side + "_branch"] = helper.make_graph(
                [inner], side, [], [helper.make_tensor_value_info(f"{v}_{side}", 1, None)
                                    for v in made])
        nodes.append(helper.make_node("If", [name + "_c"], made, **sides))

    def bytes(self):
        return self.model.SerializeToString()

    def expected(self):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(self.bytes(), options,
                                       providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        return session.run(None, {n: v for n, v in self.feeds.items() if n in names})

    def options(self):
        return []


def run_heddle(heddle, program, folder, level):
    model = folder / ("model" + program.ending)
    model.write_bytes(program.bytes())
    np.savez(folder / "feeds.npz", **program.feeds)
    out = folder / "out"
    done = subprocess.run([heddle, "run", model, "--opt", str(level), "--threads", "1",
                           "--out", out, "--feed-npz", folder / "feeds.npz",
                           *program.options()],
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        return done.stderr.strip()[-400:]
    return [np.load(out / f"out_{k}.npy") for k in range(len(program.fetches))]


def problem_of(got, want):
    if isinstance(got, str):
        return got
    for k, (g, w) in enumerate(zip(got, want)):
        w = np.asarray(w)
        if g.shape != w.shape or not np.allclose(g, w, rtol=1e-5, atol=1e-5):
            return f"output {k} is {g.tolist()}, not {w.tolist()}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", choices=["tensorflow", "onnx"])
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=250)
    parser.add_argument("--keep", type=Path, help="writes the programs that fail here")
    args = parser.parse_args()
    kind = {"tensorflow": TensorflowProgram, "onnx": OnnxProgram}[args.format]
    wrong = left_out = 0
    refusals = {}
    for number in range(args.count):
        program = kind([args.seed, number])
        try:
            want = program.expected()
        except Exception as error:  # whatever the framework throws
            left_out += 1
            text = str(error).splitlines()[0][:160]
            refusals[text] = refusals.get(text, 0) + 1
            continue
        for level in (0, 2):
            with tempfile.TemporaryDirectory() as folder:
                got = run_heddle(args.heddle, program, Path(folder), level)
            if why := problem_of(got, want):
                wrong += 1
                print(f"{args.format} {number} at --opt {level}: {why}")
                if args.keep:
                    args.keep.mkdir(parents=True, exist_ok=True)
                    (args.keep / f"{number}{program.ending}").write_bytes(program.bytes())
                break
    for text, times in sorted(refusals.items(), key=lambda item: -item[1])[:5]:
        print(f"left out {times}: {text}")
    print(f"{args.count - left_out} programs, {wrong} wrong, {left_out} left out")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
