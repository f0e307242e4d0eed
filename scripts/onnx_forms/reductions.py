"""Operators along axes: reductions, softmax, norms, losses."""

import numpy as np

from .form import Form, axis_of, data, form, pick, shape


@form
def softmaxes(r):
    op = pick(r, 7, 9, 11, 12, 13, 17)
    x = data(r, shape(r, 1, 6))
    f = Form(r, pick(r, "Softmax", "LogSoftmax", "Hardmax"), op).add(x, False)
    if r.random() < 0.75:
        f.attr(axis=axis_of(r, x.ndim, op))
    return f


@form
def reduces(r):
    op = pick(r, 7, 11, 12, 13, 18, 20)
    kind = pick(
        r, "Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"
    )
    t = (
        "float32"
        if kind in ("LogSum", "LogSumExp") or r.random() < 0.6
        else pick(r, "int32", "int64", "float64")
    )
    x = data(r, shape(r, 0, 5), t)
    if kind.startswith("Log"):
        x = np.abs(x) + np.float32(0.1)
    if t != "float32" and kind == "Prod":
        x = np.asarray(x % 3 + 1).astype(t)
    f = Form(r, "Reduce" + kind, op).add(x, False)
    if r.random() < 0.7:
        f.attr(keepdims=int(r.integers(2)))
    axes = sorted(set(axis_of(r, x.ndim, op) % max(x.ndim, 1) for _ in range(2))) if x.ndim else []
    axes = [a - x.ndim if op >= 11 and r.random() < 0.5 else a for a in axes]
    as_input = op >= 18 or (op >= 13 and kind == "Sum")
    how = r.random()
    if as_input and r.random() < 0.4:
        f.attr(noop_with_empty_axes=int(r.integers(2)))
    if how < 0.25:
        axes = None
    elif how < 0.35 and as_input:
        axes = []
    if axes is None or (not as_input and not axes):
        return f.add(None) if as_input and r.random() < 0.5 else f
    return f.add(np.array(axes, "int64")) if as_input else f.attr(axes=axes)


@form
def top_k(r):
    op = pick(r, 7, 10, 11)
    x = data(
        r, shape(r, 1, 4, 0, 6), pick(r, "float32", "int64", "int32") if op >= 11 else "float32"
    )
    a = axis_of(r, x.ndim, op)
    f = Form(r, "TopK", op, 2).add(x, False)
    default = r.random() < 0.3
    if not default:
        f.attr(axis=a)
    k = int(r.integers(1, x.shape[-1 if default else a] + 1))
    if op >= 11:
        f.attr(largest=int(r.integers(2)))
    return f.attr(k=k) if op < 10 else f.add(np.array([k], "int64"))


@form
def arg(r):
    op = pick(r, 7, 11, 12, 13)
    x = np.asarray(
        data(r, shape(r, 1, 5, 0), "float32").round()
        if r.random() < 0.6
        else data(r, shape(r, 1, 5, 0), pick(r, "int32", "int8", "uint8"))
    )
    f = Form(r, pick(r, "ArgMax", "ArgMin"), op).add(x, False)
    if r.random() < 0.7:
        f.attr(axis=axis_of(r, x.ndim, op))
    if r.random() < 0.6:
        f.attr(keepdims=int(r.integers(2)))
    return f.attr(select_last_index=int(r.integers(2))) if op >= 12 and r.random() < 0.6 else f


@form
def norms(r):
    kind = pick(
        r,
        "BatchNormalization",
        "InstanceNormalization",
        "LayerNormalization",
        "LRN",
        "LpNormalization",
        "MeanVarianceNormalization",
        "GroupNormalization",
    )
    if kind == "BatchNormalization":
        op = pick(r, 7, 9, 14, 15)
        s = (pick(r, 1, 2), 3, *shape(r, 0, 4, 0))
        c = [data(r, (3,)) for _ in range(3)] + [np.abs(data(r, (3,))) + np.float32(0.1)]
        f = Form(r, kind, op).add(data(r, s), False)
        for v in c:
            f.add(v)
        f.attr(epsilon=1e-3) if r.random() < 0.5 else None
        f.attr(momentum=0.7) if r.random() < 0.3 else None
        return f.attr(spatial=1) if op < 9 and r.random() < 0.4 else f
    if kind == "InstanceNormalization":
        # The norm of one element is the bias; ONNX Runtime's is off by its rounding times 300.
        s = (2, 3, *shape(r, 1, 4, 0), 2)
        return (
            Form(r, kind, pick(r, 7, 22))
            .add(data(r, s), False)
            .add(data(r, (3,)))
            .add(data(r, (3,)))
        )
    if kind == "LayerNormalization":
        x = data(r, shape(r, 1, 5, 0))
        a = axis_of(r, x.ndim, 17)
        f = Form(r, kind, 17, pick(r, 1, 3)).add(x, False)
        f.attr(axis=a) if r.random() < 0.7 else None
        tail = x.shape[f.attrs.get("axis", -1) % x.ndim :]
        return f.add(data(r, tail)).add(data(r, tail) if r.random() < 0.5 else None)
    if kind == "LRN":
        f = (
            Form(r, kind, pick(r, 7, 13))
            .add(data(r, (2, pick(r, 1, 3, 6), *shape(r, 2, 3, 0))), False)
            .attr(size=pick(r, 1, 3, 5))
        )
        return f.attr(alpha=0.02, beta=0.5, bias=2.0) if r.random() < 0.5 else f
    if kind == "LpNormalization":
        x = data(r, shape(r, 1, 4, 0))
        f = Form(r, kind, pick(r, 7, 22)).add(x, False)
        f.attr(axis=axis_of(r, x.ndim, 11)) if r.random() < 0.7 else None
        return f.attr(p=pick(r, 1, 2)) if r.random() < 0.6 else f
    if kind == "MeanVarianceNormalization":
        f = Form(r, kind, pick(r, 9, 13)).add(data(r, (2, 3, 4, 2)), False)
        return (
            f.attr(axes=pick(r, [0, 2, 3], [2, 3], [1], [-1], [0, 1, 2, 3]))
            if r.random() < 0.6
            else f
        )
    op = pick(r, 18, 21)
    n = 2 if op == 18 else 4
    return (
        Form(r, kind, op)
        .add(data(r, (2, 4, *shape(r, 1, 3, 0), 2)), False)
        .add(data(r, (n,)))
        .add(data(r, (n,)))
        .attr(num_groups=2)
    )


@form
def losses(r):
    kind = pick(r, "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    c, tail = 3, shape(r, 0, 3, 0)
    outs = 2 if kind[0] == "S" and r.random() < 0.4 else 1
    f = Form(r, kind, pick(r, 12, 13), outs).add(data(r, (2, c, *tail)), False)
    target = np.asarray(r.integers(0, c, (2, *tail))).astype(pick(r, "int64", "int32"))
    if r.random() < 0.4:
        f.attr(ignore_index=pick(r, 1, -100))
    f.add(target, False).add(np.abs(data(r, (c,))) if r.random() < 0.5 else None)
    return f.attr(reduction=pick(r, "none", "mean", "sum")) if r.random() < 0.8 else f
