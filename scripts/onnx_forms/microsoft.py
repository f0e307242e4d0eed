"""Operators of com.microsoft that heddle says in operators of ONNX itself."""

import numpy as np

from .form import Form, data, form, pick, shape


def one(r, op, outputs=1):
    return Form(r, op, 17, outputs=outputs, domain="com.microsoft")


@form
def ms_shapes(r):
    op = pick(r, "ExpandDims", "GatherND", "Pad", "Range", "Trilu", "Unique")
    f = one(r, op, outputs=3 if op == "Unique" else 1)
    x = data(r, shape(r, 1, 4, zero=0))
    if op == "ExpandDims":
        f.add(x).add(np.array(r.integers(-x.ndim - 1, x.ndim + 1), "int32"), const=True)
    elif op == "GatherND":
        x = data(r, [3, 4, 2][:int(r.integers(2, 4))])
        width = int(r.integers(1, x.ndim + 1))
        f.add(x).add(r.integers(0, 2, [int(r.integers(1, 4)), width]).astype("int64"))
    elif op == "Pad":
        f.attr(mode=pick(r, "constant", "edge"))
        f.add(x).add(r.integers(0, 3, [2 * x.ndim]).astype("int64"))
        if r.random() < 0.5:
            f.add(np.array(1.5, "float32"))
    elif op == "Range":
        t = pick(r, "float32", "int32", "int64")
        f.add(np.array(r.integers(-4, 3), t)).add(np.array(r.integers(3, 9), t))
        if r.random() < 0.5:
            f.add(np.array(r.integers(1, 3), t))
    elif op == "Trilu":
        f.attr(upper=int(r.integers(2))).add(data(r, shape(r, 2, 4, zero=0), "float32"))
        if r.random() < 0.6:
            f.add(np.array(r.integers(-2, 3), "int64"))
    else:
        f.add(r.integers(0, 4, [int(r.integers(1, 9))]).astype("float32"))
    return f


@form
def ms_products(r):
    op = pick(r, "CDist", "FusedGemm", "Inverse", "MatMulNBits", "MatMulNBits", "TransposeMatMul")
    f = one(r, op)
    m, k, n = (int(d) for d in r.integers(1, 6, 3))
    if op == "CDist":
        f.attr(metric=pick(r, "euclidean", "sqeuclidean"))
        t = pick(r, "float32", "float64")
        f.add(data(r, [m, k], t)).add(data(r, [n, k], t))
    elif op == "FusedGemm":
        f.attr(activation=pick(r, "Relu", "Sigmoid", "Tanh", "LeakyRelu"))
        f.attr(alpha=pick(r, None, 0.5), beta=pick(r, None, 2.0), transB=int(r.integers(2)))
        if f.attrs["activation"] == "LeakyRelu":
            f.attr(activation_alpha=0.25)
        f.add(data(r, [m, k])).add(data(r, [n, k] if f.attrs["transB"] else [k, n]))
        if r.random() < 0.6:
            f.add(data(r, [n]))
    elif op == "TransposeMatMul":
        f.attr(alpha=pick(r, None, 0.5), transA=int(r.integers(2)), transB=int(r.integers(2)))
        f.add(data(r, [k, m] if f.attrs["transA"] else [m, k]))
        f.add(data(r, [n, k] if f.attrs["transB"] else [k, n]))
    elif op == "Inverse":
        side = int(r.integers(1, 5))
        f.add(data(r, [*shape(r, 0, 2, zero=0), side, side]) / 10 + 3 * np.eye(side, dtype="f4"))
    else:
        bits, block = pick(r, 2, 4, 4, 8), pick(r, 16, 32, 64)
        k, n = int(r.integers(1, 7)) * 32 - pick(r, 0, 0, 5), int(r.integers(1, 70))
        m, blocks = pick(r, 1, 1, m, 18), -(-k // block)
        f.attr(K=k, N=n, bits=bits, block_size=block)
        f.add(data(r, [*shape(r, 0, 2, zero=0), m, k]) / 64, const=False)
        f.add(r.integers(0, 256, [n, blocks, block * bits // 8]).astype("uint8"), const=True)
        f.add(np.round(r.random([n, blocks]).astype("f4"), 3) / 8, const=True)
        zero, bias = r.random() < 0.5, r.random() < 0.3
        width = -(-blocks * bits // 8)
        f.add(r.integers(0, 256, [n, width]).astype("uint8") if zero else None, const=True)
        if bias:
            f.add(None).add(data(r, [n]) / 64, const=True)
    return f


@form
def ms_rows(r):
    f = one(r, "GatherBlockQuantized")
    bits, block, rows = pick(r, 4, 8), pick(r, 16, 32), int(r.integers(1, 9))
    width = block * int(r.integers(1, 4))
    f.attr(bits=bits, block_size=block, gather_axis=0, quantize_axis=pick(r, 1, -1))
    f.add(r.integers(0, 256, [rows, width * bits // 8]).astype("uint8"), const=True)
    f.add(r.integers(0, rows, shape(r, 1, 2, zero=0)).astype(pick(r, "int32", "int64")),
          const=False)
    f.add(np.round(r.random([rows, width // block]).astype("f4"), 3) / 8, const=True)
    if r.random() < 0.5:
        zeros = -(-(width // block) * bits // 8)
        f.add(r.integers(0, 256, [rows, zeros]).astype("uint8"), const=True)
    return f


@form
def ms_images(r):
    op = pick(r, "GridSample", "NhwcMaxPool", "QLinearWhere")
    f = one(r, op)
    h, w = (int(d) for d in r.integers(3, 6, 2))
    if op == "GridSample":
        f.attr(mode=pick(r, "bilinear", "nearest", "bicubic"), align_corners=int(r.integers(2)))
        f.attr(padding_mode=pick(r, "zeros", "border", "reflection"))
        f.add(data(r, [2, 2, h, w])).add((r.random([2, 3, 2, 2]) * 2.4 - 1.2).astype("f4"))
    elif op == "NhwcMaxPool":
        f.attr(kernel_shape=[2, 2], strides=pick(r, None, [1, 1]), pads=pick(r, None, [1, 0, 0, 1]))
        f.add(data(r, [2, h, w, 3], pick(r, "uint8", "int8")), const=False)
    else:
        t = pick(r, "uint8", "int8")
        f.add(r.random([h, w]) < 0.5, const=False)
        for scale in (0.25, 0.5):
            f.add(data(r, [h, w], t), const=False).add(np.float32(scale), const=True)
            f.add(np.array(3, t), const=True)
        f.add(np.float32(0.375), const=True).add(np.array(1, t), const=True)
    return f


@form
def ms_norms(r):
    batch, words, width = (int(d) for d in r.integers(1, 5, 3))
    if r.random() < 0.5:
        f = one(r, "SkipSimplifiedLayerNormalization", outputs=4)
        f.outputs[1] = f.outputs[2] = ""
        if r.random() < 0.5:
            f.attr(epsilon=1e-5)
        size = pick(r, np.float32(1), np.float32(1e-3))  # of small numbers epsilon shows
        for _ in range(2):
            f.add(size * data(r, [batch, words, width]), const=False)
        f.add(data(r, [width]))
        if r.random() < 0.5:
            f.add(data(r, [width]))
        return f
    f = one(r, "EmbedLayerNormalization", outputs=2)
    f.add(r.integers(0, 5, [batch, words]).astype("int32"), const=False)
    segments = r.random() < 0.6
    f.add(r.integers(0, 2, [batch, words]).astype("int32") if segments else None, const=False)
    f.add(data(r, [5, width]), const=True).add(data(r, [6, width]), const=True)
    f.add(data(r, [2, width]) if segments else None, const=True)
    f.add(data(r, [width]), const=True).add(data(r, [width]), const=True)
    if r.random() < 0.6:
        f.add(r.integers(0, 2, [batch, words]).astype("int32"), const=False)
    return f
