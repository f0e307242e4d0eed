#!/usr/bin/env python3
"""One small static program per public function of Paddle, recorded under Paddle and run by heddle.

  scripts/api_sweep.py OUT [--only REGEX] [--modes fwd,grad,dyn] [--heddle build/release/heddle]

Needs paddlepaddle 2.6.2 and the shared folder's opcases/*.py. The tables scripts/api_sweep/*.txt
have a Python expression per line, after "NAME | " where the function's own name would not do; of
"a; b; c" the last part is the value. The variables it gives are fetched. Letters make inputs: f(2,
3) is a float feed of that shape, i(0, 5, 3) an int64 one of numbers in [0, 5), and so on below.
What stands in a table between "#py" and "#table" is executed first.

Modes: fwd; grad (append_backward from the sum of squares of the outputs; the inputs' and
parameters' gradients are fetched); startup (the startup program alone); and, added to these, dyn
(first axis -1), Dyn (all axes -1), f64, and other dtypes of the float feeds: i64, b1, f16, c64
(idx: int32 in place of int64 and the other way round). A program that Paddle refuses is noted in
OUT/refused.log. Cases that are there already are not recorded again. With --heddle the cases are
run and compared at the end.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import zlib
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("GLOG_minloglevel", "3")
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TABLES = sorted((ROOT / "scripts" / "api_sweep").glob("*.txt"))
LIMIT_S = 60


class Refused(Exception):
    """There is no such program: nothing to differentiate, nothing to start up."""


DTYPES_OF = {"f64": {"float32": "float64", "complex64": "complex128"}, "i64": {"float32": "int64"},
             "b1": {"float32": "bool"}, "f16": {"float32": "float16"},
             "c64": {"float32": "complex64"}, "idx": {"int64": "int32", "int32": "int64"}}


def converted(array, dtype):
    if dtype is None:
        return array
    if array.dtype == np.float32 and dtype == "int64":
        array = np.round(array * 4)
    elif array.dtype == np.float32 and dtype == "bool":
        array = array > 0
    elif dtype == "complex64":
        array = array + 1j * (array[::-1] if array.ndim else .5)
    return array.astype(dtype)


class Inputs:
    """The feeds of the program that is being built."""

    def __init__(self, seed, mode):
        self.random = np.random.RandomState(seed)
        self.mode = mode
        self.records = []

    def add(self, array, lod=None, grad=True):
        array = np.asarray(array)
        for kind, dtypes in DTYPES_OF.items():
            if kind in self.mode:
                array = converted(array, dtypes.get(str(array.dtype)))
        name = f"x{len(self.records)}"
        shape = list(array.shape)
        if "Dyn" in self.mode:
            shape = [-1] * len(shape)
        elif "dyn" in self.mode and shape:
            shape[0] = -1
        var = paddle.static.data(name, shape, str(array.dtype), lod_level=len(lod or []))
        var.stop_gradient = not (array.dtype.kind in "fc" and grad)
        self.records.append((name, "feed", cf.rec_from_np(array, str(array.dtype), lod or [])))
        return var


def helpers(inputs):
    """What the tables' expressions may use besides Paddle's modules."""
    draw = inputs.random

    def uniform(low, high, shape, dtype="float32", **keywords):
        return inputs.add(draw.uniform(low, high, shape).astype(dtype), **keywords)

    def integers(dtype, low, high, shape, **keywords):
        return inputs.add(draw.randint(low, high, shape).astype(dtype), **keywords)

    def distinct(*shape):
        count = int(np.prod(shape))
        values = draw.permutation(np.linspace(-2, 2, count + 2)[1:-1])
        return inputs.add(values.reshape(shape).astype("float32"))

    def complex_numbers(*shape):
        values = draw.uniform(-1, 1, shape) + 1j * draw.uniform(-1, 1, shape)
        return inputs.add(values.astype("complex64"))

    def square(n, batch, positive):
        a = draw.uniform(-1, 1, batch + (n, n))
        a = a @ np.swapaxes(a, -1, -2) if positive else a
        return inputs.add((a + n * np.eye(n)).astype("float32"))

    return {
        "f": lambda *s: uniform(-1, 1, s),
        "fn": lambda *s: uniform(-1, 1, s, grad=False),
        "p": lambda *s: uniform(.2, 2, s),
        "u": lambda *s: uniform(.05, .95, s),
        "rg": lambda low, high, *s: uniform(low, high, s),
        "sep": distinct,
        "i": lambda low, high, *s: integers("int64", low, high, s),
        "i32": lambda low, high, *s: integers("int32", low, high, s),
        "iu": lambda dtype, low, high, *s: integers(dtype, low, high, s),
        "b": lambda *s: inputs.add(draw.rand(*s) < .5),
        "c": complex_numbers,
        "v": lambda x, dtype="float32", **keywords: inputs.add(np.array(x, dtype), **keywords),
        "fl": lambda lod, *s: uniform(-1, 1, (lod[-1][-1],) + s, lod=lod),
        "il": lambda lod, high, *s: integers("int64", 0, high, (lod[-1][-1],) + s, lod=lod),
        "spd": lambda n, *batch: square(n, batch, True),
        "well": lambda n, *batch: square(n, batch, False),
        "P": lambda *s: paddle.create_parameter(list(s), paddle.get_default_dtype()),
        "E": inputs,
    }


def flat(value):
    if isinstance(value, paddle.static.Variable):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    return [v for item in items for v in flat(item)] if isinstance(items, (list, tuple)) else []


def differentiate(inputs, outputs):
    """append_backward; the names of the gradients."""
    real = [o for o in outputs if not o.stop_gradient
            and o.dtype in (paddle.float32, paddle.float64)]
    real += [paddle.as_real(o) for o in outputs if not o.stop_gradient and
             o.dtype in (paddle.complex64, paddle.complex128)]
    if not real:
        raise Refused
    sums = [paddle.sum(paddle.square(o)) for o in real]
    parameters = paddle.static.append_backward(paddle.add_n(sums) if len(sums) > 1 else sums[0])
    block = paddle.static.default_main_program().global_block()
    names = [n for n, _, _ in inputs.records] + [p.name for p, _ in parameters]
    names = [n + "@GRAD" for n in names if block.has_var(n + "@GRAD")]
    if not names:
        raise Refused
    return names


def build(expression, mode, seed, scope):
    main, start = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, start), paddle.base.unique_name.guard():
        main.random_seed = start.random_seed = 7
        paddle.seed(7)
        paddle.set_default_dtype("float64" if "f64" in mode else "float32")
        inputs = Inputs(seed, mode)
        scope.update(helpers(inputs))
        *body, last = [part.strip() for part in expression.split(";")]
        exec("\n".join(body), scope)
        outputs = flat(eval(last, scope))
        fetched = [o.name for o in outputs]
        if "grad" in mode:
            fetched += differentiate(inputs, outputs)
    return main, start, inputs, list(dict.fromkeys(fetched))


def variables(desc, used, values):
    """The persistable variables among `used`, with their values. Biases become other than zero."""
    random = np.random.RandomState(3)
    for var in desc.blocks[0].vars:
        held = values.find_var(var.name) if var.persistable and var.name in used else None
        if held is None or not held.get_tensor()._is_initialized():
            continue
        record = cf.rec_dense(held.get_tensor())
        if ".b_0" in var.name and var.name.endswith(".b_0") and not record["a"].any():
            record["a"] = random.uniform(-.2, .2, record["a"].shape).astype(record["a"].dtype)
        yield var.name, "param", record


def record(name, expression, mode, folder, scope):
    seed = zlib.crc32(name.encode()) & 0x7fffffff
    main, start, inputs, fetched = build(expression, mode, seed, scope)
    values = paddle.base.core.Scope()
    records = inputs.records
    if mode == "startup":
        main, records, fetched = start, [], []
        if not main.global_block().ops:
            raise Refused
    else:
        paddle.static.Executor(paddle.CPUPlace()).run(start, scope=values)
    program, desc = cf.clean_program(main.desc.serialize_to_string())
    ops = [op for block in desc.blocks for op in block.ops]
    written = {n for op in ops for slot in op.outputs for n in slot.arguments}
    used = written | {n for op in ops for slot in op.inputs for n in slot.arguments}
    for attr in (a for op in ops for a in op.attrs):
        used.update([attr.var_name] if attr.type == cf.fp.VAR else
                    attr.vars_name if attr.type == cf.fp.VARS else [])
    ins = [r for r in records if r[0] in used or r[0] in fetched]
    ins += variables(desc, used, values)
    shown = [(n, "fetch") for n in fetched]
    shown += [(v.name, "scope") for v in desc.blocks[0].vars
              if v.persistable and v.name in written and v.name not in fetched]
    results = rp.run_case(program, ins, shown)
    again = rp.run_case(program, ins, shown, seed=5)
    types = sorted({op.type for op in ops})
    outs = [(n, role, r) for (n, role), r in zip(shown, results)]
    tolerances = rp.tolerances(program, types, ins, outs)
    for tolerance, one, two in zip(tolerances, results, again):
        tolerance.pop("f64_err", None)
        if rp.max_err(one, two) != 0.0:
            tolerance.update(check="shape", rtol=0.0, atol=0.0, basis="random")
    cf.write_case(str(folder), program, ins, [o + (t,) for o, t in zip(outs, tolerances)], dict(
        id="0", name=name, op=name, kind=mode, group="main", ops=types, source=expression,
        feeds=[n for n, role, _ in ins if role == "feed"], fetches=fetched,
        scope_inputs=[n for n, role, _ in ins if role == "param"],
        scope_outputs=[n for n, role in shown if role == "scope"]))


def lines_of(table, scope):
    """(name, expression) of each line; names that repeat get numbers."""
    text = table.read_text()
    if text.startswith("#py\n"):
        code, text = text[len("#py\n"):].split("#table\n")
        exec(code, scope)
    seen = {}
    for line in text.splitlines():
        line = line.split(" #")[0].strip()
        if not line or line.startswith("#"):
            continue
        given = re.match(r"([\w.]+) \| (.*)", line)
        name, expression = given.groups() if given else ("", line)
        name = name or re.search(r"[A-Za-z_]\w*(?:\.\w+)+", line).group(0).replace("paddle.", "")
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name}.{seen[name]}", expression


def in_a_process(work, log):
    """Runs it in a process of its own, which may crash or hang; true when it ended well."""
    log.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT_S)
        try:
            work()
        except Refused:
            pass
        except BaseException as error:
            text = re.sub(r"\s+", " ", str(error))
            told = re.search(r"\w*Error: .{0,200}", text)
            log.write(f"{type(error).__name__} {told.group(0) if told else text[-300:]}\n")
            log.flush()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        log.write(f"ended by signal {os.WTERMSIG(status)}\n")
    return status == 0


def modules():
    """Names that the tables use for Paddle's modules."""
    import paddle.geometric, paddle.incubate, paddle.signal, paddle.sparse, paddle.vision.ops
    import paddle.incubate.nn.functional as fused
    return {"paddle": paddle, "np": np, "re": re, "flat": flat, "F": paddle.nn.functional,
            "nn": paddle.nn, "static": paddle.static, "snn": paddle.static.nn,
            "vops": paddle.vision.ops, "incF": fused}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="names of cases")
    parser.add_argument("--modes", default="fwd,grad,dyn")
    parser.add_argument("--heddle", type=Path)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    options = parser.parse_args()
    global paddle, cf, rp
    sys.path.insert(0, str(options.shared / "opcases"))
    import casefmt as cf
    import paddle
    import replay as rp
    paddle.enable_static()
    cases = options.out / "cases"
    cases.mkdir(parents=True, exist_ok=True)
    with open(options.out / "refused.log", "a") as log:
        for table in TABLES:
            scope = modules()
            for name, expression in lines_of(table, scope):
                for mode in options.modes.split(",") if re.search(options.only, name) else []:
                    full = f"{name}.{mode}"
                    if (cases / full / "io.txt").exists():
                        continue
                    log.write(f"{full}: ")
                    if in_a_process(lambda: record(full, expression, mode, cases / full, scope),
                                    log):
                        log.write("ok\n")
    made = sorted(p.parent.name for p in cases.glob("*/io.txt"))
    (options.out / "main.txt").write_text("".join(f"cases/{n}\n" for n in made))
    print(f"{len(made)} cases")
    if options.heddle:
        sys.exit(subprocess.run(
            [sys.executable, options.shared / "opcases" / "check_cases.py", options.out, "--batch",
             f"{options.heddle.resolve()} run-cases --list {{list}}", "--report",
             options.out / "verdicts.tsv"], check=False).returncode)


if __name__ == "__main__":
    main()
