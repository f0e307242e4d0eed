"""Matrix products, recurrent networks, quantised products."""

import numpy as np

from .form import Form, axis_of, data, form, pick, shape


@form
def gemm(r):
    op = pick(r, 7, 9, 11, 13)
    t = "float32" if op < 9 or r.random() < 0.7 else pick(r, "float64", "int32", "float16")
    m, n, k = (int(v) for v in r.integers(1, 5, 3))
    ta, tb = int(r.integers(2)), int(r.integers(2))
    f = (
        Form(r, "Gemm", op)
        .add(data(r, (k, m) if ta else (m, k), t), False)
        .add(data(r, (n, k) if tb else (k, n), t))
    )
    c = pick(r, (), (1,), (n,), (m, 1), (1, n), (m, n), (1, 1))
    f.add(data(r, c, t) if op < 11 or r.random() < 0.7 else None)
    if t != "int32":
        f.attr(alpha=pick(r, None, 0.5, 0.0), beta=pick(r, None, 2.0, 0.0))
    return f.attr(
        transA=ta if ta or r.random() < 0.3 else None, transB=tb if tb or r.random() < 0.3 else None
    )


@form
def matmul(r):
    t = pick(r, "float32", "float32", "float64", "int32", "int64", "uint32")
    k = int(r.integers(0 if r.random() < 0.1 else 1, 4))
    b = shape(r, 0, 3, 0, 3)
    x = data(r, pick(r, (k,), (2, k), (*b, 3, k), (1, 3, k)), t)
    y = data(r, pick(r, (k,), (k, 2), (*b, k, 2)), t)
    return Form(r, "MatMul", pick(r, 9, 13)).add(x, False).add(y)


@form
def rnn(r):
    kind = pick(r, "LSTM", "GRU", "RNN")
    g = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    direction = pick(r, "forward", "reverse", "bidirectional")
    d = 2 if direction == "bidirectional" else 1
    t, b, i, h = 3, 2, 2, 3
    op = pick(r, 7, 14)
    f = Form(r, kind, op, pick(r, 1, 2, 3) if kind == "LSTM" else pick(r, 1, 2))
    if len(f.outputs) > 1 and r.random() < 0.4:
        f.outputs[0] = ""
    f.add(data(r, (t, b, i)), False).add(data(r, (d, g * h, i)) * np.float32(0.3), True).add(
        data(r, (d, g * h, h)) * np.float32(0.3), True
    )
    f.add(data(r, (d, 2 * g * h)) if r.random() < 0.5 else None, True)
    f.add(np.array([3, 2] if r.random() < 0.5 else [1, 3], "int32") if r.random() < 0.4 else None)
    f.add(data(r, (d, b, h)) if r.random() < 0.4 else None)
    if kind == "LSTM":
        f.add(data(r, (d, b, h)) if r.random() < 0.4 else None)
        f.add(data(r, (d, 3 * h)) if r.random() < 0.3 else None, True)
    if direction != "forward" or r.random() < 0.3:
        f.attr(direction=direction)
    f.attr(hidden_size=h)
    if kind == "GRU" and r.random() < 0.6:
        f.attr(linear_before_reset=int(r.integers(2)))
    if r.random() < 0.2:
        f.attr(clip=1.5)
    if kind == "LSTM" and r.random() < 0.2:
        f.attr(input_forget=1)
    if r.random() < 0.3:
        names = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}[
            kind
        ]
        names = [pick(r, n, "Relu", "HardSigmoid", "Softsign", "Elu") for n in names]
        f.attr(activations=names * d)
        if (
            "HardSigmoid" in names
            and r.random() < 0.5
            and all(n in ("HardSigmoid", "Sigmoid", "Tanh", "Softsign", "Relu") for n in names)
        ):
            f.attr(
                activation_alpha=[0.3] * (names.count("HardSigmoid") * d),
                activation_beta=[0.4] * (names.count("HardSigmoid") * d),
            )
    return f


@form
def quantize(r):
    kind = pick(
        r,
        "QuantizeLinear",
        "DequantizeLinear",
        "DynamicQuantizeLinear",
        "QLinearMatMul",
        "MatMulInteger",
        "ConvInteger",
    )
    q = pick(r, "uint8", "int8")
    if kind == "DynamicQuantizeLinear":
        return Form(r, kind, 11, 3).add(data(r, shape(r, 0, 4, 0)), False)
    if kind == "MatMulInteger":
        f = (
            Form(r, kind, 10)
            .add(data(r, (3, 4), q), False)
            .add(data(r, (4, 2), pick(r, "uint8", "int8")))
        )
        f.add(data(r, pick(r, (), (1,)), q) if r.random() < 0.6 else None)
        return f.add(
            data(
                r,
                pick(r, (), (1,), (2,)),
                (
                    f.inits[0][1].dtype
                    if f.inits and f.inits[0][0] == "x1"
                    else dict(f.inputs)["x1"].dtype
                ),
            )
            if r.random() < 0.6
            else None
        )
    if kind == "ConvInteger":
        f = (
            Form(r, kind, 10)
            .add(data(r, (1, 2, 5, 4), "uint8"), False)
            .add(data(r, (3, 2, 2, 3), "uint8"))
        )
        f.add(np.asarray(np.uint8(3)) if r.random() < 0.6 else None)
        f.add(np.asarray(np.uint8(2)) if r.random() < 0.5 else None)
        return f.attr(pads=pick(r, None, [1, 0, 1, 1]), auto_pad=None)
    if kind == "QLinearMatMul":
        one = lambda v, t: np.asarray(v).astype(t).reshape(pick(r, (), (1,)))
        return (
            Form(r, kind, 10)
            .add(data(r, (3, 4), q), False)
            .add(one(0.1, "float32"))
            .add(one(3, q))
            .add(data(r, (4, 2), q))
            .add(one(0.05, "float32"))
            .add(one(1, q))
            .add(one(0.2, "float32"))
            .add(one(4, q))
        )
    op = pick(r, 10, 13, 19)
    x = data(r, shape(r, 1, 4, 0), "float32" if kind == "QuantizeLinear" else q)
    a = axis_of(r, x.ndim, 11)
    per = op >= 13 and r.random() < 0.5
    n = (x.shape[a],) if per else pick(r, (), (1,) if op >= 13 else ())
    f = Form(r, kind, op).add(x, False).add(np.abs(data(r, n)) + np.float32(0.1))
    f.add(data(r, n, q) if q == "int8" and kind == "QuantizeLinear" or r.random() < 0.6 else None)
    return f.attr(axis=a) if per else f
