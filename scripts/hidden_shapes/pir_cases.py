"""Recorded cases of Paddle's PIR with their shapes hidden, for sweep_hidden_shapes.py.

PIR has no unknown rank; dimensions may be open, and those of results are hints. The ways:

  open      all dimensions of inputs and results are open
  reshaped  what is fed goes through a reshape to a shape that is fed, too
  loop      the operators are the body of a while of one trip; what it gives begins as a scalar
  branch    the operators are one side of an if

The cases are unpacked by the folder's own expand.py, which joins them with their values.
"""

import copy
import json
import subprocess
import sys

import numpy as np

from hidden_shapes import paddle_values as values
from hidden_shapes.paddle_values import Unfit

WAYS = ("open", "reshaped", "loop", "branch")
OUTSIDE = ("p", "1.data", "1.feed", "1.fetch", "0.set_parameter", "0.shadow_output")
KINDS = {"bool": "bool", "uint8": "ui8", "int8": "i8", "int16": "i16", "int32": "i32",
         "int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32",
         "float64": "f64", "complex64": "c64", "complex128": "c128"}


def attribute(name, kind, value):
    return {"N": name, "AT": {"#": kind, "D": value}}


PLACE = attribute("place", "1.a_place", [1, 0, ""])


def dense(kind, dims):
    return {"#": "0.t_dtensor", "D": [{"#": "0.t_" + kind}, dims, "NCHW", [], 0]}


def results(op):
    made = op.get("O", [])
    return made if isinstance(made, list) else [made]


class Program:
    """A program's outermost block while it is rewritten."""

    def __init__(self, data, meta):
        self.file = json.loads(data)
        self.block = self.file["program"]["regions"][0]["blocks"][0]
        self.ops = self.block["ops"]
        self.meta = copy.deepcopy(meta)
        self.arrays = {}
        self.last = max((r["%"] for op in self.all_ops(self.ops) for r in results(op)), default=0)

    @staticmethod
    def all_ops(ops):
        for op in ops:
            yield op
            for region in op.get("regions", []):
                for block in region["blocks"]:
                    yield from Program.all_ops(block["ops"])

    def new(self):
        self.last += 1
        return self.last

    def text(self):
        return json.dumps(self.file, sort_keys=True).encode()


def open_type(value):
    """The type with open dimensions."""
    if value.get("#") == "0.t_vec":
        return {**value, "D": [open_type(v) for v in value["D"]]}
    if value.get("#") != "0.t_dtensor":
        return value
    data = list(value["D"])
    data[1] = [-1] * len(data[1])
    return {**value, "D": data}


def name_of(op):
    return next((a["AT"]["D"] for a in op["A"] if isinstance(a, dict) and a["N"] == "name"), None)


def open_all(program):
    fed = {e["name"] for e in program.meta["inputs"] if e["role"] == "feed"}
    for op in Program.all_ops(program.ops):
        if op["#"] == "p":
            continue
        for result in results(op):
            if "TT" in result:
                result["TT"] = open_type(result["TT"])
        if op["#"] == "1.data" and name_of(op) in fed:
            for a in op["A"]:
                if a["N"] == "shape":
                    a["AT"]["D"] = [-1] * len(a["AT"]["D"])


def replace(ops, names):
    for op in Program.all_ops(ops):
        for operand in op.get("I", []):
            operand["%"] = names.get(operand["%"], operand["%"])


def make_data(program, name, kind, dtype, dims):
    made = program.new()
    return made, {"#": "1.data", "A": [attribute("name", "0.a_str", name),
                                       attribute("shape", "1.a_intarray", dims),
                                       attribute("dtype", "1.a_dtype", dtype), PLACE],
                  "I": [], "O": [{"%": made, "TT": dense(kind, dims)}]}


def hide_open(program):
    open_all(program)


def hide_reshaped(program):
    open_all(program)
    entries = {e["name"]: e for e in program.meta["inputs"] if values.can_reshape(e)}
    written = {e["name"] for e in program.meta["outputs"]}
    ops, names = [], {}
    for op in program.ops:
        if op["#"] not in ("1.data", "1.feed") or name_of(op) not in entries:
            continue
        entry = entries[name_of(op)]
        if entry["name"] in written:
            raise Unfit("writes its input")
        value = results(op)[0]
        name = entry["name"] + "/hidden_shape"
        number = len(names)
        shape, data = make_data(program, name, "i64", "int64", [len(entry["shape"])])
        made = program.new()
        ops += [op, data, {"#": "1.reshape", "A": [], "I": [{"%": value["%"]}, {"%": shape}],
                           "O": [{"%": made, "TT": value["TT"]}]}]
        names[value["%"]] = made
        program.arrays[f"shape_{number}.npy"] = np.array(entry["shape"], np.int64)
        program.meta["inputs"].append(values.fed_shape(name, entry["shape"], number))
        program.meta["feeds"].append(name)
    if not names:
        raise Unfit("nothing can be reshaped")
    kept = {id(op) for op in ops}
    rest = [op for op in program.ops if id(op) not in kept]
    replace(rest, names)
    program.block["ops"] = ops + rest


def split(program):
    """The operators before, inside and behind a region, and the values that leave it."""
    if any(e["role"] != "feed" for e in program.meta["inputs"]):
        raise Unfit("has parameters")
    before = [op for op in program.ops if op["#"] in OUTSIDE and op.get("O") and not op.get("I")]
    after = [op for op in program.ops if op["#"] in OUTSIDE and op.get("I")]
    inner = [op for op in program.ops if op not in before and op not in after]
    types = {r["%"]: r.get("TT") for op in inner for r in results(op)}
    leave = list(dict.fromkeys(i["%"] for op in after for i in op["I"] if i["%"] in types))
    if not inner or not leave:
        raise Unfit("has nothing inside")
    for value in leave:
        if types[value].get("#") != "0.t_dtensor":
            raise Unfit("gives what is no tensor")
    # What is written in place has its value seen by readers of the old one, too.
    if any(op["#"].endswith("_") for op in Program.all_ops(inner)):
        raise Unfit("writes in place")
    return before, inner, after, [(v, types[v]) for v in leave]


def full(program, kind, dtype, value):
    made = program.new()
    return made, {"#": "1.full", "A": [attribute("shape", "1.a_intarray", []),
                                       attribute("value", "0.a_f64", value),
                                       attribute("dtype", "1.a_dtype", dtype), PLACE],
                  "I": [], "O": [{"%": made, "TT": dense(kind, [])}]}


def dtype_of(kind):
    return next(name for name, short in KINDS.items() if short == kind)


def firsts(program, leave):
    ops, made = [], []
    for _, value_type in leave:
        kind = value_type["D"][0]["#"].removeprefix("0.t_")
        first, op = full(program, kind, dtype_of(kind), 0.0)
        ops.append(op)
        made.append(first)
    return ops, made


def block(label, args, ops):
    return {"#": label, "args": args, "ops": ops}


def hide_branch(program):
    open_all(program)
    before, inner, after, leave = split(program)
    truth, condition = full(program, "bool", "bool", 1.0)
    # A condition that is fed, so that no reader can know it.
    name = "hidden/condition"
    truth, condition = make_data(program, name, "bool", "bool", [])
    program.meta["inputs"].append({"name": name, "role": "feed", "type": "dense",
                                   "file": "condition.npy", "dtype": "bool", "shape": [],
                                   "lod": []})
    program.meta["feeds"].append(name)
    program.arrays["condition.npy"] = np.array(True)
    other, zeros = firsts(program, leave)
    made = [program.new() for _ in leave]
    yes = inner + [{"#": "2.yield", "A": [], "I": [{"%": v} for v, _ in leave], "O": []}]
    no = other + [{"#": "2.yield", "A": [], "I": [{"%": z} for z in zeros], "O": []}]
    branch = {"#": "1.if", "A": [], "I": [{"%": truth}],
              "O": [{"%": m, "TT": t} for m, (_, t) in zip(made, leave)],
              "regions": [{"#": "region_1", "blocks": [block("block_1", [], yes)]},
                          {"#": "region_2", "blocks": [block("block_2", [], no)]}]}
    replace(after, {v: m for m, (v, _) in zip(made, leave)})
    program.block["ops"] = before + [condition, branch] + after


def hide_loop(program):
    open_all(program)
    before, inner, after, leave = split(program)
    trip, first_trip = full(program, "i64", "int64", 0.0)
    one, limit = full(program, "i64", "int64", 1.0)
    goes_on = program.new()
    test = {"#": "1.less_than", "A": [], "I": [{"%": trip}, {"%": one}],
            "O": [{"%": goes_on, "TT": dense("bool", [])}]}
    start, zeros = firsts(program, leave)
    made = [program.new() for _ in range(1 + len(leave))]
    types = [dense("i64", []), *[t for _, t in leave]]
    arguments = [{"#": -1 - k, "TT": t} for k, t in enumerate(types)]
    step, stop = program.new(), program.new()
    ends = [{"#": "1.add", "A": [], "I": [{"%": -1}, {"%": one}],
             "O": [{"%": step, "TT": dense("i64", [])}]},
            {"#": "1.less_than", "A": [], "I": [{"%": step}, {"%": one}],
             "O": [{"%": stop, "TT": dense("bool", [])}]},
            {"#": "2.yield", "A": [], "I": [{"%": stop}, {"%": step},
                                            *[{"%": v} for v, _ in leave]], "O": []}]
    loop = {"#": "1.while", "A": [], "I": [{"%": goes_on}, {"%": trip},
                                           *[{"%": z} for z in zeros]],
            "O": [{"%": m, "TT": t} for m, t in zip(made, types)],
            "regions": [{"#": "region_1", "blocks": [block("block_1", arguments, inner + ends)]}]}
    if any("regions" in op for op in inner):
        raise Unfit("has regions of its own")
    replace(after, {v: m for m, (v, _) in zip(made[1:], leave)})
    program.block["ops"] = before + [first_trip, limit, test, *start, loop] + after


HIDE = {"open": hide_open, "reshaped": hide_reshaped, "loop": hide_loop, "branch": hide_branch}


def unpacked(options, scratch):
    if not (scratch / "corpora" / "captured" / "main.txt").exists():
        subprocess.run([sys.executable, options.shared / "pir" / "expand.py", "--out",
                        scratch / "corpora"], check=True, stdout=subprocess.DEVNULL)
    return [scratch / "corpora" / name for name in ("captured", "generated")]


def cases(options, scratch):
    """The recorded cases as they are and in each way that `options.ways` names."""
    from hidden_shapes.cases import Case, PLAIN

    scratch.mkdir(parents=True, exist_ok=True)
    for root in unpacked(options, scratch):
        for folder, meta in values.recorded(root, options):
            data = (folder / "program.json").read_bytes()
            name = f"{root.name}.{folder.name}"
            for way in options.ways:
                if way == PLAIN:
                    yield Case(name, way, folder, values.judged_by(folder, meta))
                    continue
                try:
                    program = Program(data, meta)
                    HIDE[way](program)
                except Unfit:
                    continue
                target = scratch / way / f"{name}.{way}"
                values.write(folder, target, "program.json", program.text(), program.meta,
                             program.arrays)
                yield Case(name, way, target, values.judged_by(folder, meta))
