"""Operators that move elements or change their shape."""

import numpy as np

from .form import Form, axis_of, data, form, pick, shape


@form
def flatten(r):
    op = pick(r, 7, 9, 11, 13)
    x = data(
        r, shape(r, 0, 5), "float32" if op < 9 else pick(r, "float32", "int32", "bool", "uint8")
    )
    f = Form(r, "Flatten", op).add(x, False)
    if r.random() < 0.8:
        a = int(r.integers(x.ndim + 1))
        f.attr(axis=a - x.ndim if op >= 11 and r.random() < 0.5 and a < x.ndim else a)
    return f


@form
def pad(r):
    op = pick(r, 7, 11, 13, 18, 19, 21)
    rank = int(r.integers(1, 5))
    s = tuple(int(v) for v in r.integers(2, 6, rank))
    mode = pick(r, "constant", "constant", "reflect", "edge", *(["wrap"] if op >= 19 else []))
    t = (
        "float32"
        if op < 11 or (r.random() < 0.5)
        else pick(
            r,
            *(
                [
                    "float64",
                    "int32",
                    "int64",
                    "uint8",
                    "int8",
                    "uint32",
                    "uint64",
                    "bool",
                    "float16",
                ]
                if op >= 13
                else ["float64", "int32", "int64"]
            )
        )
    )
    if t == "float16" and mode == "wrap":
        t = "float32"
    f = Form(r, "Pad", op).add(data(r, s, t), False)
    if r.random() < 0.85 or mode != "constant":
        f.attr(mode=mode)
    lo, hi = (-1, 2)
    pads = [int(v) for v in r.integers(lo, hi + 1, 2 * rank)]
    if op < 11:
        return f.attr(pads=pads, value=float(np.float32(r.random())) if r.random() < 0.5 else None)
    axes = None
    if op >= 18 and r.random() < 0.4:
        axes = sorted(set(int(a) for a in r.integers(0, rank, 2)))
        pads = [int(v) for v in r.integers(lo, hi + 1, 2 * len(axes))]
    f.add(np.array(pads, "int64"))
    value = r.random()
    f.add(data(r, (), t) if value < 0.4 or (mode == "constant" and value < 0.6) else None)
    if axes is not None:
        f.add(
            np.array([a - rank if r.random() < 0.4 else a for a in axes], pick(r, "int64", "int32"))
        )
    return f


@form
def squeeze(r):
    op = pick(r, 7, 11, 13)
    s = tuple(pick(r, 1, 1, 2, 3) for _ in range(int(r.integers(1, 5))))
    x = data(r, s, pick(r, "float32", "int64", "bool"))
    ones = [i for i, d in enumerate(s) if d == 1]
    f = Form(r, "Squeeze", op).add(x, False)
    if not ones or r.random() < 0.3:
        return f
    axes = [
        a - len(s) if op >= 11 and r.random() < 0.5 else a for a in ones if r.random() < 0.7
    ] or [ones[0]]
    return f.attr(axes=axes) if op < 13 else f.add(np.array(axes, "int64"))


@form
def unsqueeze(r):
    op = pick(r, 7, 11, 13)
    x = data(r, shape(r, 0, 4), pick(r, "float32", "int64", "bool"))
    n = int(r.integers(1, 3))
    axes = [int(a) for a in r.permutation(x.ndim + n)[:n]]
    axes = [a - x.ndim - n if op >= 11 and r.random() < 0.5 else a for a in axes]
    f = Form(r, "Unsqueeze", op).add(x, False)
    return f.attr(axes=axes) if op < 13 else f.add(np.array(axes, "int64"))


@form
def slices(r):
    op = pick(r, 7, 10, 11, 13)
    x = data(
        r,
        shape(r, 1, 5, 0.05, 6),
        pick(r, "float32", "int32", "bool", "uint8") if op >= 10 else "float32",
    )
    n = int(r.integers(1, x.ndim + 1))
    axes = [int(a) for a in r.permutation(x.ndim)[:n]]
    starts = [int(v) for v in r.integers(-8, 8, n)]
    ends = [
        pick(r, *[int(v) for v in r.integers(-8, 8, 3)], 2**31 - 1, -(2**31), 2**63 - 1)
        for _ in range(n)
    ]
    if op < 10:
        f = Form(r, "Slice", op).add(x, False).attr(starts=starts, ends=ends)
        return f.attr(axes=axes) if r.random() < 0.7 else f.attr(starts=starts[:n], ends=ends[:n])
    t = pick(r, "int64", "int64", "int32")
    ends = [max(-(2**31), min(e, 2**31 - 1)) for e in ends] if t == "int32" else ends
    f = Form(r, "Slice", op).add(x, False).add(np.array(starts, t)).add(np.array(ends, t))
    with_axes = r.random() < 0.7
    f.add(
        np.array([a - x.ndim if op >= 11 and r.random() < 0.4 else a for a in axes], t)
        if with_axes
        else None
    )
    steps = [pick(r, 1, 1, 2, -1, -2, 3) for _ in ends]
    return f.add(np.array(steps, t) if r.random() < 0.7 else None)


@form
def split(r):
    op = pick(r, 7, 11, 13, 18)
    x = data(r, shape(r, 1, 4, 0, 7))
    a = axis_of(r, x.ndim, op)
    d, n = x.shape[a], int(r.integers(1, 4))
    f = Form(r, "Split", op, n).add(x, False)
    if r.random() < 0.8 or a % x.ndim:
        f.attr(axis=a)
    d = x.shape[f.attrs.get("axis", 0)]
    if r.random() < 0.5:
        cuts = sorted(int(v) for v in r.integers(0, d + 1, n - 1))
        parts = [int(v) for v in np.diff([0, *cuts, d])]
        return f.attr(split=parts) if op < 13 else f.add(np.array(parts, "int64"))
    return f.attr(num_outputs=n) if op >= 18 else f


@form
def shapes(r):
    kind = pick(
        r,
        "Reshape",
        "Transpose",
        "Concat",
        "DepthToSpace",
        "SpaceToDepth",
        "Compress",
        "ReverseSequence",
    )
    if kind == "Reshape":
        op = pick(r, 7, 13, 14)
        x = data(r, shape(r, 0, 4, 0.2))
        az = int(r.integers(2)) if op >= 14 else 0
        to = pick(
            r,
            [-1],
            [0, -1] if x.ndim > 1 else [-1],
            [1, -1],
            [x.size],
            list(x.shape),
            [0] * min(x.ndim, 1) + [-1] if x.ndim else [1],
        )
        f = Form(r, kind, op).add(x, False).add(np.array(to, "int64"))
        return f.attr(allowzero=az) if op >= 14 and r.random() < 0.5 else f
    if kind == "Transpose":
        x = data(r, shape(r, 0, 5), pick(r, "float32", "int8", "bool", "int64"))
        f = Form(r, kind, pick(r, 7, 13)).add(x, False)
        return (
            f.attr(perm=[int(v) for v in r.permutation(x.ndim)])
            if x.ndim and r.random() < 0.6
            else f
        )
    if kind == "Concat":
        s = shape(r, 1, 4)
        op = pick(r, 7, 11, 13)
        a = axis_of(r, len(s), op)
        f = Form(r, kind, op).attr(axis=a)
        t = pick(r, "float32", "int64", "bool", "uint8")
        for k in range(int(r.integers(1, 4))):
            p = list(s)
            p[a] = int(r.integers(0, 4))
            f.add(data(r, p, t), None if k else False)
        return f
    if kind == "DepthToSpace":
        op = pick(r, 7, 11, 13)
        f = Form(r, kind, op).add(data(r, (pick(r, 1, 2), 8, 2, 3)), False).attr(blocksize=2)
        return f.attr(mode=pick(r, "DCR", "CRD")) if op >= 11 and r.random() < 0.7 else f
    if kind == "SpaceToDepth":
        return Form(r, kind, pick(r, 7, 13)).add(data(r, (1, 3, 4, 6)), False).attr(blocksize=2)
    if kind == "Compress":
        x = data(r, shape(r, 1, 4, 0), pick(r, "float32", "int64"))
        op = pick(r, 9, 11)
        if r.random() < 0.6:
            a = axis_of(r, x.ndim, 11)
            return (
                Form(r, kind, 11)
                .add(x, False)
                .add(data(r, (int(r.integers(1, x.shape[a] + 1)),), "bool"))
                .attr(axis=a)
            )
        return (
            Form(r, kind, op).add(x, False).add(data(r, (int(r.integers(1, x.size + 1)),), "bool"))
        )
    f = Form(r, kind, 10).add(data(r, (4, 3, 2)), False)
    if r.random() < 0.5:
        return f.add(np.array([1, 4, 2], "int64")).attr(
            batch_axis=pick(r, None, 1), time_axis=pick(r, None, 0)
        )
    return f.add(np.array([1, 3, 2, 1], "int64")).attr(batch_axis=0, time_axis=1)
