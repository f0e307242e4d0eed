"""Pools and convolutions."""

from .form import Form, data, form, pick, shape


def window(r, f, spatial, dims, op, dilated, ceil=True, out=None):
    k = [int(r.integers(1, min(4, d + 1))) for d in dims]
    f.attr(kernel_shape=k)
    if r.random() < 0.7:
        f.attr(strides=[int(v) for v in r.integers(1, 4, spatial)])
    auto = pick(r, None, None, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    # The SAME of ONNX Runtime's pools does not count dilations, so that the result is smaller than
    # ONNX's text has it, the input's size over the stride. That of its convolutions does.
    if dilated and r.random() < 0.4 and not ("Pool" in f.op and auto and "SAME" in auto):
        f.attr(
            dilations=[
                int(v) if (w - 1) * v < d else 1
                for v, w, d in zip(r.integers(1, 3, spatial), k, dims)
            ]
        )
    f.attr(auto_pad=auto)
    # SAME of windows that leave gaps would pad less than nothing. ONNX Runtime refuses that or cuts
    # half of it off at the beginning, by operator, rank and mode; heddle pads nothing, as
    # TensorFlow does. Of a transposed convolution it makes a smaller result than ONNX's text has,
    # the input's size times the stride.
    if auto and "SAME" in auto and any(a < b for a, b in zip(k, f.attrs.get("strides", k))):
        del f.attrs["strides"]
    if auto in (None, "NOTSET") and r.random() < 0.7:
        f.attr(pads=[int(r.integers(0, k[i % spatial])) for i in range(2 * spatial)])
    if ceil and op >= 10 and r.random() < 0.5:
        f.attr(ceil_mode=1)
    return k


@form
def pools(r):
    kind = pick(r, "MaxPool", "AveragePool", "LpPool")
    op = pick(
        r,
        *{
            "MaxPool": (7, 8, 10, 11, 12, 22),
            "AveragePool": (7, 10, 11, 19, 22),
            "LpPool": (7, 11, 18, 22),
        }[kind]
    )
    spatial = pick(r, 1, 2, 2, 3)
    dims = [int(v) for v in r.integers(3, 9, spatial)]
    outs = 2 if kind == "MaxPool" and op >= 8 and r.random() < 0.3 else 1
    t = (
        "float32"
        if kind != "MaxPool" or op < 12 or r.random() < 0.7
        else pick(r, "uint8", "int8", "float64")
    )
    f = Form(r, kind, op, outs).add(data(r, (pick(r, 1, 2), pick(r, 1, 3), *dims), t), False)
    dilated = (kind == "MaxPool" and op >= 10) or (kind != "MaxPool" and op >= 18)
    window(r, f, spatial, dims, op if kind != "LpPool" else (10 if op >= 18 else 7), dilated)
    if kind == "AveragePool" and r.random() < 0.5:
        f.attr(count_include_pad=1)
    if kind == "LpPool" and r.random() < 0.6:
        f.attr(p=int(r.integers(1, 4)))
    if outs == 2 and r.random() < 0.5:
        f.attr(storage_order=1)
    return f


@form
def global_pools(r):
    kind = pick(r, "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
    f = Form(r, kind, pick(r, 7, 11, 22)).add(data(r, shape(r, 3, 6, 0)), False)
    return f.attr(p=int(r.integers(1, 4))) if kind == "GlobalLpPool" and r.random() < 0.5 else f


@form
def conv(r):
    op, spatial = pick(r, 7, 11, 22), pick(r, 1, 2, 2, 3)
    group = pick(r, 1, 1, 2)
    cin, cout = group * pick(r, 1, 2), group * pick(r, 1, 3)
    dims = [int(v) for v in r.integers(3, 8, spatial)]
    f = Form(r, "Conv", op).add(data(r, (pick(r, 1, 2), cin, *dims)), False)
    k = window(r, f, spatial, dims, op, True, ceil=False)
    f.add(data(r, (cout, cin // group, *k)))
    f.add(data(r, (cout,)) if r.random() < 0.5 else None)
    if group > 1:
        f.attr(group=group)
    if r.random() < 0.3:
        del f.attrs["kernel_shape"]
    return f


@form
def conv_transpose(r):
    op, spatial = pick(r, 7, 11, 22), pick(r, 1, 2, 2)
    group = pick(r, 1, 1, 2)
    cin, cout = group * pick(r, 1, 2), group * pick(r, 1, 3)
    dims = [int(v) for v in r.integers(2, 6, spatial)]
    f = Form(r, "ConvTranspose", op).add(data(r, (pick(r, 1, 2), cin, *dims)), False)
    k = window(r, f, spatial, dims, op, True, ceil=False)
    f.add(data(r, (cin, cout // group, *k)))
    f.add(data(r, (cout,)) if r.random() < 0.5 else None)
    if group > 1:
        f.attr(group=group)
    st = f.attrs.get("strides", [1] * spatial)
    if r.random() < 0.4:
        f.attr(output_padding=[int(r.integers(0, s)) for s in st])
    elif r.random() < 0.3 and "SAME" not in f.attrs.get("auto_pad", ""):
        f.attr(output_shape=[d * s + int(r.integers(0, 2)) for d, s in zip(dims, st)])
    if r.random() < 0.3:
        del f.attrs["kernel_shape"]
    return f
