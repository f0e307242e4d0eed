"""Operators that make values: ranges, copies, masks; dropout."""

import numpy as np
from onnx import numpy_helper

from .form import NUMBERS, Form, axis_of, data, form, pick, shape


@form
def makers(r):
    kind = pick(
        r,
        "Range",
        "Expand",
        "Tile",
        "ConstantOfShape",
        "EyeLike",
        "NonZero",
        "CumSum",
        "Trilu",
        "Where",
        "Shape",
        "Size",
    )
    if kind == "Range":
        t = pick(r, "float32", "int64", "int32", "float64", "int16")
        v = [
            np.asarray(x).astype(t)
            for x in (r.integers(-5, 5), r.integers(-5, 10), pick(r, 1, 2, -1, 3))
        ]
        f = Form(r, kind, 11)
        for x in v:
            f.add(x.reshape(pick(r, (), (), (1,))))
        return f
    if kind == "Expand":
        x = data(
            r,
            tuple(pick(r, 1, 1, 2) for _ in range(int(r.integers(0, 3)))),
            pick(r, "float32", "int64", "bool"),
        )
        s = [pick(r, 1, d if d > 1 else 3) for d in x.shape]
        return (
            Form(r, kind, pick(r, 8, 13))
            .add(x, False)
            .add(
                np.array(
                    (
                        [2] * int(r.integers(0, 2)) + s[len(s) - int(r.integers(0, len(s) + 1)) :]
                        if r.random() < 0.3
                        else [2, *s]
                    ),
                    "int64",
                )
            )
        )
    if kind == "Tile":
        x = data(r, shape(r, 0, 4), pick(r, "float32", "int32", "bool"))
        return (
            Form(r, kind, pick(r, 7, 13))
            .add(x, False)
            .add(np.asarray(r.integers(0, 3, x.ndim)).astype("int64"))
        )
    if kind == "ConstantOfShape":
        f = Form(r, kind, 9).add(np.array(shape(r, 0, 4), "int64"))
        return (
            f.attr(value=numpy_helper.from_array(data(r, (1,), pick(r, *NUMBERS))))
            if r.random() < 0.7
            else f
        )
    if kind == "EyeLike":
        f = Form(r, kind, 9).add(
            data(r, shape(r, 2, 3, 0, 5), pick(r, "float32", "int32", "int64")), False
        )
        f.attr(k=int(r.integers(-3, 4))) if r.random() < 0.6 else None
        return f.attr(dtype=pick(r, 1, 7, 11, 6)) if r.random() < 0.5 else f
    if kind == "NonZero":
        x = data(r, shape(r, 1, 4), pick(r, "float32", "int64", "bool", "int32"))
        return Form(r, kind, pick(r, 9, 13)).add(np.asarray(x * (data(r, x.shape, "bool"))), False)
    if kind == "CumSum":
        x = data(r, shape(r, 1, 4), pick(r, "float32", "int64", "int32", "float64"))
        f = Form(r, kind, pick(r, 11, 14)).add(x, False)
        f.add(
            np.asarray(axis_of(r, x.ndim, 11))
            .astype(pick(r, "int64", "int32"))
            .reshape(pick(r, (), (1,)))
        )
        return f.attr(exclusive=int(r.integers(2)), reverse=int(r.integers(2)))
    if kind == "Trilu":
        f = Form(r, kind, 14).add(
            data(r, shape(r, 2, 5), pick(r, "float32", "int64", "bool")), False
        )
        f.add(
            np.asarray(r.integers(-4, 5)).reshape(pick(r, (), (1,))) if r.random() < 0.7 else None
        )
        return f.attr(upper=int(r.integers(2))) if r.random() < 0.6 else f
    if kind == "Where":
        s = shape(r, 0, 4, 0)
        t = pick(r, "float32", "int64", "uint8", "int32")
        return (
            Form(r, kind, pick(r, 9, 16))
            .add(data(r, tuple(pick(r, 1, d) for d in s), "bool"))
            .add(data(r, s[int(r.integers(0, len(s) + 1)) :], t))
            .add(data(r, s, t), False)
        )
    if kind == "Shape":
        op = pick(r, 7, 13, 15)
        f = Form(r, kind, op).add(data(r, shape(r, 0, 5)), False)
        if op >= 15 and r.random() < 0.7:
            f.attr(start=int(r.integers(-6, 7)))
            f.attr(end=int(r.integers(-6, 7))) if r.random() < 0.5 else None
        return f
    return Form(r, kind, pick(r, 7, 13)).add(data(r, shape(r, 0, 5)), False)


@form
def dropout(r):
    op = pick(r, 7, 10, 12, 13)
    f = Form(r, "Dropout", op, pick(r, 1, 2)).add(data(r, shape(r, 0, 4)), False)
    if op < 12:
        return f.attr(ratio=0.3) if r.random() < 0.6 else f
    f.attr(seed=3) if r.random() < 0.3 else None
    f.add(np.float32(0.4) if r.random() < 0.5 else None)
    return f.add(np.array(False) if r.random() < 0.4 else None)
