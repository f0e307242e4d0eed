"""Operators of each element, and casts."""

import numpy as np
from onnx import TensorProto

from .form import NUMBERS, TYPES, Form, data, form, pick, shape


@form
def clip(r):
    op = pick(r, 7, 9, 11, 12, 13)
    t = (
        "float32"
        if op < 12
        else pick(r, "float32", "int32", "uint8", "int8", "int64", "float64", "uint64", "float16")
    )
    lo, hi = data(r, (), t), data(r, (), t)
    if op < 11:
        f = Form(r, "Clip", op).add(data(r, shape(r)), False)
        return f.attr(
            min=float(lo) if r.random() < 0.8 else None, max=float(hi) if r.random() < 0.8 else None
        )
    f = Form(r, "Clip", op).add(data(r, shape(r), t), False)
    f.add(lo if r.random() < 0.8 else None)
    return f.add(hi if r.random() < 0.8 else None)


def to_be_text(r):
    """A number of any size, and of any number of digits."""
    sign, kind = pick(r, 1, -1), r.integers(4)
    if kind == 0:
        return pick(r, 0, -0.0, np.nan, np.inf, -np.inf, 0.1, 1e-4, 1e-5, 99999999.5)
    if kind == 1:
        return sign * int(r.integers(1 << int(r.integers(1, 40))))
    if kind == 2:
        return sign * int(r.integers(1000)) / 2 ** int(r.integers(9))
    return sign * float(f"{r.integers(10 ** int(r.integers(1, 17)))}e{r.integers(-30, 20)}")


@form
def cast(r):
    op = pick(r, 7, 9, 13, 19)
    src, dst = pick(r, *NUMBERS, "str", "str"), pick(r, *NUMBERS, "str", "str")
    if op < 9 and "str" in (src, dst):
        op = 9
    if src == "str":
        words = ["1", "-2", "3.5", "NaN", "INF", "-INF", "1e3", "0", "+7", "1.25e-2", "12345678"]
        if np.dtype(dst if dst != "str" else "int8").kind in "iub" and dst != "str":
            words = (
                ["1", "-2", "0", "17", "42"]
                if np.dtype(dst).kind != "u"
                else ["1", "0", "17", "42"]
            )
        s = shape(r, 0, 3)
        x = np.array([pick(r, *words) for _ in range(int(np.prod(s)))], object).reshape(s)
    elif dst == "str" and np.dtype(src).kind == "f":
        s = shape(r, 0, 3)
        numbers = [to_be_text(r) for _ in range(int(np.prod(s)))]
        with np.errstate(over="ignore"):
            x = np.array(numbers, "float64").reshape(s).astype(src)
    else:
        x = data(r, shape(r, 0, 4), src)
        if np.dtype(src).kind == "f" and dst != "str" and np.dtype(dst).kind == "u":
            x = np.abs(x)
    to = TensorProto.STRING if dst == "str" else TYPES[np.dtype(dst)]
    return Form(r, "Cast", op).add(x, False).attr(to=to)


@form
def elementwise(r):
    s = shape(r, 0, 4)
    kind = pick(
        r,
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Pow",
        "Mod",
        "Min",
        "Max",
        "Sum",
        "Mean",
        "PRelu",
        "BitShift",
        "Equal",
        "Less",
        "Greater",
        "LessOrEqual",
        "And",
        "Xor",
        "BitwiseAnd",
        "BitwiseNot",
    )
    other = tuple(pick(r, 1, d) for d in s)[int(r.integers(0, len(s) + 1)) :]
    if kind == "PRelu":
        return Form(r, kind, pick(r, 7, 9, 16)).add(data(r, s), False).add(data(r, other))
    if kind == "Pow":
        op = pick(r, 7, 12, 13, 15)
        t = "float32" if op < 12 else pick(r, "float32", "int32", "int64", "float64")
        return (
            Form(r, kind, op)
            .add(np.abs(data(r, s, t)) + np.asarray(1).astype(t), False)
            .add(
                np.asarray(r.integers(0, 4, other)).astype(
                    "float32" if op < 12 else pick(r, "float32", "int32", "int64", "float64")
                )
            )
        )
    if kind == "Mod":
        t = pick(r, "int32", "int64", "int8", "uint8", "float32", "int16", "uint32")
        d = data(r, other, t)
        d = np.where(np.abs(d) < 1, 3, d).astype(t)
        return (
            Form(r, kind, pick(r, 10, 13))
            .add(data(r, s, t), False)
            .add(d)
            .attr(fmod=1 if t == "float32" else pick(r, None, 0, 1))
        )
    if kind in ("Min", "Max", "Sum", "Mean"):
        op = pick(r, 8, 12, 13)
        t = (
            "float32"
            if kind in ("Sum", "Mean") or op < 12
            else pick(r, "float32", "int32", "uint32", "int64", "uint64", "float64")
        )
        f = Form(r, kind, op).add(data(r, s, t), False)
        for _ in range(int(r.integers(0, 3))):
            f.add(data(r, tuple(pick(r, 1, d) for d in s)[int(r.integers(0, len(s) + 1)) :], t))
        return f
    if kind == "BitShift":
        t = pick(r, "uint8", "uint32", "uint64")
        return (
            Form(r, kind, 11)
            .add(data(r, s, t), False)
            .add(np.asarray(r.integers(0, 8, other)).astype(t))
            .attr(direction=pick(r, "LEFT", "RIGHT"))
        )
    if kind in ("And", "Xor"):
        return Form(r, kind, 7).add(data(r, s, "bool"), False).add(data(r, other, "bool"))
    if kind.startswith("Bitwise"):
        t = pick(r, "int32", "uint8", "int8", "uint16", "int64", "uint64")
        f = Form(r, kind, 18).add(data(r, s, t), False)
        return f if kind == "BitwiseNot" else f.add(data(r, other, t))
    t = pick(
        r,
        "float32",
        "int32",
        "int64",
        "float64",
        *(["uint8", "int8", "uint32", "uint64"] if kind in ("Add", "Sub", "Mul", "Div") else [])
    )
    op = (
        pick(r, 7, 13)
        if kind in ("Add", "Sub", "Mul", "Div")
        else (
            pick(r, 11, 13)
            if kind == "Equal"
            else pick(r, 9, 13) if kind in ("Less", "Greater") else 12
        )
    )
    if t in ("uint8", "int8"):
        op = 14
    y = data(r, other, t)
    if kind == "Div" and np.dtype(t).kind != "f":
        y = np.where(y == 0, 3, y).astype(t)
    return Form(r, kind, op).add(data(r, s, t), False).add(y)


@form
def activations(r):
    kind, attrs, op = pick(
        r,
        ("Elu", {"alpha": 0.5}, 7),
        ("Selu", {"alpha": 1.2, "gamma": 0.9}, 7),
        ("LeakyRelu", {"alpha": 0.2}, 7),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, 7),
        ("ThresholdedRelu", {"alpha": 0.7}, 10),
        ("Celu", {"alpha": 0.8}, 12),
        ("Shrink", {"bias": 0.5, "lambd": 1.5}, 9),
        ("Gelu", {"approximate": "tanh"}, 20),
        ("IsInf", {"detect_negative": 0}, 10),
        ("IsInf", {"detect_positive": 0}, 10),
        ("HardSwish", {}, 14),
        ("Mish", {}, 18),
        ("Softplus", {}, 7),
        ("Softsign", {}, 7),
        ("Sign", {}, 9),
        ("Round", {}, 11),
        ("Erf", {}, 9),
        ("IsNaN", {}, 9),
        ("Ceil", {}, 7),
        ("Neg", {}, 7),
        ("Abs", {}, 7),
        ("Reciprocal", {}, 7),
        ("Not", {}, 7),
        ("Identity", {}, 7),
    )
    x = data(r, shape(r, 0, 4), "bool" if kind == "Not" else "float32")
    if kind.startswith("Is") and x.size:
        x = np.asarray(x).copy()
        x.ravel()[0] = pick(r, np.nan, np.inf, -np.inf)
    return (
        Form(r, kind, max(op, pick(r, 7, 13, 17, 21)))
        .add(x, False)
        .attr(**{k: v for k, v in attrs.items() if r.random() < 0.6})
    )
