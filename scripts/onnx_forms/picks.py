"""Operators that read or write elements by index."""

import numpy as np

from .form import Form, axis_of, data, form, pick, shape


@form
def gathers(r):
    kind = pick(r, "Gather", "GatherElements", "GatherND")
    x = data(r, shape(r, 1, 4, 0, 5), pick(r, "float32", "int64", "bool"))
    t = pick(r, "int64", "int32") if kind != "GatherND" else "int64"
    if kind == "GatherND":
        op, b = pick(r, 11, 12, 13), 0
        b = int(r.integers(0, x.ndim)) if op >= 12 and r.random() < 0.5 else 0
        k = int(r.integers(1, x.ndim - b + 1))
        s = (*x.shape[:b], *shape(r, 0, 3, 0), k)
        i = np.stack(
            [r.integers(-x.shape[b + j], x.shape[b + j], s[:-1]) for j in range(k)], -1
        ).astype("int64")
        f = Form(r, kind, op).add(x, False).add(i)
        return f.attr(batch_dims=b) if b else f
    op = pick(r, 11, 13) if kind != "Gather" else pick(r, 7, 11, 13)
    a = axis_of(r, x.ndim, 11)
    s = (
        shape(r, 0, 3)
        if kind == "Gather"
        else tuple(
            int(r.integers(1, d + 1)) if j != a % x.ndim else 3 for j, d in enumerate(x.shape)
        )
    )
    lo = -x.shape[a] if op >= 11 else 0
    f = Form(r, kind, op).add(x, False).add(r.integers(lo, x.shape[a], s).astype(t))
    return f.attr(axis=a if op >= 11 else a % x.ndim)


@form
def scatters(r):
    kind = pick(r, "Scatter", "ScatterElements", "ScatterND")
    x = data(r, shape(r, 1, 4, 0, 5), pick(r, "float32", "int64"))
    if kind == "ScatterND":
        op = pick(r, 11, 13, 16, 18)
        k = int(r.integers(1, x.ndim + 1))
        n = int(r.integers(1, 3))
        i = np.stack(
            [
                (
                    r.permutation(x.shape[0])[:1].repeat(n)
                    if n == 1
                    else r.integers(-x.shape[j], x.shape[j], n)
                )
                for j in range(k)
            ],
            -1,
        )
        if n > 1:
            i = np.unique(i % np.array(x.shape[:k]), axis=0)
        f = (
            Form(r, kind, op)
            .add(x, False)
            .add(i.astype("int64"))
            .add(data(r, (len(i), *x.shape[k:]), x.dtype))
        )
        return (
            f.attr(reduction=pick(r, "none", "add", "mul", *(["max", "min"] if op >= 18 else [])))
            if op >= 16
            else f
        )
    op = 9 if kind == "Scatter" else pick(r, 11, 13, 16, 18)
    a = axis_of(r, x.ndim, 11 if kind != "Scatter" else 9)
    d = x.shape[a]
    n = int(r.integers(1, d + 1))
    s = list(x.shape)
    s[a % x.ndim] = n
    base = r.permutation(d)[:n]
    i = np.moveaxis(
        np.broadcast_to(base, [*s[: a % x.ndim], *s[a % x.ndim + 1 :], n]), -1, a % x.ndim
    ).astype(pick(r, "int64", "int32"))
    f = (
        Form(r, kind, op)
        .add(x, False)
        .add(np.ascontiguousarray(i))
        .add(data(r, s, x.dtype))
        .attr(axis=a)
    )
    return (
        f.attr(reduction=pick(r, "none", "add", "mul", *(["max", "min"] if op >= 18 else [])))
        if op >= 16
        else f
    )


@form
def one_hot(r):
    op = pick(r, 9, 11)
    t = pick(r, "int64", "int32", "float32")
    i = np.asarray(r.integers(-5 if op >= 11 else 0, 6, shape(r, 0, 3)))
    depth = data(r, (), "float32") * 0 + 5
    depth = np.asarray(depth).astype(pick(r, "int64", "int32", "float32"))
    f = Form(r, "OneHot", op).add(i.astype(t), False).add(depth.reshape(pick(r, (), (1,))))
    f.add(np.array([0, 3] if r.random() < 0.5 else [-1, 2], pick(r, "float32", "int64", "int32")))
    return f.attr(axis=int(r.integers(-i.ndim - 1, i.ndim + 1))) if r.random() < 0.6 else f
