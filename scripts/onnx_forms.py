#!/usr/bin/env python3
"""Models of one ONNX operator in forms at the border of what its versions allow, run under ONNX
Runtime and heddle.

  onnx_forms.py --heddle build/release/heddle [--seed S] [--count N] [--only KIND] [--keep DIR]
  onnx_forms.py --record tests/python/onnx_forms.npz [--seed S] [--count N]

Old opsets, attributes that became inputs, optional operands left out or empty, negative axes, empty
tensors, limits in the wrong order, odd padding. Each form is drawn from the seed and its number.
ONNX Runtime decides what is right; a form that it refuses is left out, and so are those where it
does not do what ONNX's text says, as the comments tell. Needs numpy, onnx and onnxruntime
(pip install onnx==1.23.2 onnxruntime==1.32.0)."""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

TYPES = {
    np.dtype(t): v
    for t, v in [
        ("float32", 1),
        ("uint8", 2),
        ("int8", 3),
        ("uint16", 4),
        ("int16", 5),
        ("int32", 6),
        ("int64", 7),
        ("bool", 9),
        ("float16", 10),
        ("float64", 11),
        ("uint32", 12),
        ("uint64", 13),
    ]
}


class Form:
    """One node, its operands and attributes."""

    def __init__(self, rng, op, opset, outputs=1, domain=""):
        self.rng, self.op, self.opset, self.domain = rng, op, opset, domain
        self.inputs, self.names, self.inits = [], [], []
        self.outputs = ["y%d" % k for k in range(outputs)]
        self.attrs = {}

    def add(self, array, const=None):
        """An operand: fed, or an initializer. None: left out."""
        if array is None:
            self.names.append("")
            return self
        name = "x%d" % len(self.names)
        self.names.append(name)
        if const is None:
            const = self.rng.random() < 0.4
        (self.inits if const else self.inputs).append((name, np.asarray(array)))
        return self

    def attr(self, **attrs):
        self.attrs.update({k: v for k, v in attrs.items() if v is not None})
        return self

    def model(self):
        names = list(self.names)
        if self.rng.random() < 0.6:
            while names and names[-1] == "":
                names.pop()
        node = helper.make_node(self.op, names, self.outputs, domain=self.domain, **self.attrs)
        ins = [
            helper.make_tensor_value_info(
                n, type_of(a), list(a.shape) if self.rng.random() < 0.7 else [None] * a.ndim
            )
            for n, a in self.inputs
        ]
        inits = [tensor_of(a, n) for n, a in self.inits]
        outs = [onnx.ValueInfoProto(name=n) for n in self.outputs if n]
        graph = helper.make_graph([node], "g", ins, outs, inits)
        sets = [helper.make_opsetid("", self.opset)]
        if self.domain:
            sets.append(helper.make_opsetid(self.domain, 1))
        return helper.make_model(graph, opset_imports=sets, ir_version=8)


def type_of(a):
    return TensorProto.STRING if a.dtype.kind in "OU" else TYPES[a.dtype]


def tensor_of(a, name=""):
    if a.dtype.kind in "OU":
        return helper.make_tensor(
            name, TensorProto.STRING, a.shape, [str(x).encode() for x in a.ravel()]
        )
    return numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape), name)


def shape(r, lo=0, hi=5, zero=0.1, most=4):
    return tuple(
        0 if r.random() < zero / 2 else int(r.integers(1, most + 1))
        for _ in range(int(r.integers(lo, hi)))
    )


def data(r, s, t="float32"):
    t = np.dtype(t)
    if t.kind == "f":
        a = (r.standard_normal(s) * 3).astype(t)
        return np.asarray(a)
    if t.kind == "b":
        return np.asarray(r.random(s) < 0.5)
    if t.kind == "u":
        return np.asarray(r.integers(0, 100, s)).astype(t)
    return np.asarray(r.integers(-50, 50, s)).astype(t)


def pick(r, *xs):
    return xs[int(r.integers(len(xs)))]


def axis_of(r, rank, opset, since=11):
    a = int(r.integers(rank)) if rank else 0
    return a - rank if opset >= since and r.random() < 0.5 else a


FORMS = {}


def form(f):
    FORMS[f.__name__] = f
    return f


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


@form
def softmaxes(r):
    op = pick(r, 7, 9, 11, 12, 13, 17)
    x = data(r, shape(r, 1, 6))
    f = Form(r, pick(r, "Softmax", "LogSoftmax", "Hardmax"), op).add(x, False)
    if r.random() < 0.75:
        f.attr(axis=axis_of(r, x.ndim, op))
    return f


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
def resize(r):
    op = pick(r, 10, 11, 11, 13, 18, 19)
    rank = int(r.integers(1, 6))
    mode = pick(r, "nearest", "nearest", "linear", "cubic")
    if mode == "cubic":
        rank = 4
    if mode == "linear":
        rank = pick(r, 2, 4, 4, 3, 5)
    # ONNX Runtime cuts linear results of integers after rounding in float32.
    t = "float32" if mode != "nearest" or r.random() < 0.6 else pick(r, "uint8", "int8", "int32")
    s = tuple(int(v) for v in r.integers(1, 6, rank))
    free = [i for i in range(rank) if r.random() < 0.7 and (i >= 2 or rank < 4)]
    if mode != "nearest":
        free = [i for i in free if i >= rank - 2]
    scales = [
        float(np.float32(pick(r, 0.5, 2, 1.5, 0.6, 3, 0.8, 2.5))) if i in free else 1.0
        for i in range(rank)
    ]
    x = data(r, s, t)
    if op == 10:
        return (
            Form(r, "Resize", 10)
            .add(x, False)
            .add(np.array(scales, "float32"), True)
            .attr(mode=mode if mode != "cubic" else "linear")
        )
    coord = pick(
        r,
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
        *(["tf_half_pixel_for_nn"] * 2 if op < 13 else ["tf_half_pixel_for_nn"]),
        *(["half_pixel_symmetric"] if op >= 19 else [])
    )
    f = Form(r, "Resize", op).add(x, False)
    f.attr(mode=mode, coordinate_transformation_mode=coord)
    if mode == "nearest" and r.random() < 0.8:
        f.attr(nearest_mode=pick(r, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        f.attr(exclude_outside=int(r.integers(2)), cubic_coeff_a=pick(r, -0.75, -0.5))
    if coord == "align_corners":  # of fractional scales, ONNX Runtime rounds the length first
        scales = [2.0 if v != 1 else 1.0 for v in scales]
    if coord == "tf_crop_and_resize" and any(
        s[i] == int(s[i] * scales[i]) for i in free
    ):  # not cropped there
        f.attrs["coordinate_transformation_mode"] = coord = "half_pixel"
    if coord == "tf_crop_and_resize":
        lo, hi = r.random(rank) * 0.4, 0.5 + r.random(rank) * 0.7
        lo, hi = np.where([i in free for i in range(rank)], lo, 0), np.where(
            [i in free for i in range(rank)], hi, 1
        )
        f.add(np.concatenate([lo, hi]).astype("float32"), True).attr(
            extrapolation_value=float(np.float32(r.random()))
        )
    else:
        f.add(np.zeros(0, "float32") if op == 11 or r.random() < 0.3 else None, True)
    use_sizes = r.random() < 0.4
    axes = None
    if op >= 18 and r.random() < 0.3 and free and coord != "tf_crop_and_resize":
        axes = free
        f.attr(
            axes=[a - rank if r.random() < 0.3 else a for a in axes] if r.random() < 0.5 else axes
        )
    if op >= 18 and mode != "nearest" and r.random() < 0.3:
        f.attr(antialias=1)
    if use_sizes:
        sizes = [max(1, int(round(s[i] * scales[i]))) for i in range(rank)]
        if op >= 18 and r.random() < 0.3 and all(a >= 0 for a in f.attrs.get("axes", [])):
            f.attr(keep_aspect_ratio_policy=pick(r, "stretch", "not_larger", "not_smaller"))
        f.add(np.zeros(0, "float32") if op == 11 else None, True)
        return f.add(np.array([sizes[a] for a in axes] if axes else sizes, "int64"), True)
    return f.add(np.array([scales[a] for a in axes] if axes else scales, "float32"), True)


@form
def upsample(r):
    op = pick(r, 7, 9)
    mode = pick(r, "nearest", "linear")
    rank = int(r.integers(1, 5)) if mode == "nearest" else pick(r, 2, 4)
    s = tuple(int(v) for v in r.integers(1, 5, rank))
    scales = [
        float(np.float32(pick(r, 1, 2, 1.5, 3))) if rank < 3 or i >= 2 else 1.0 for i in range(rank)
    ]
    t = "float32" if mode == "linear" else pick(r, "float32", "float32", "uint8", "int32")
    f = Form(r, "Upsample", op).add(data(r, s, t), False)
    f.attr(mode=mode if r.random() < 0.8 or mode != "nearest" else None)
    return f.attr(scales=scales) if op < 9 else f.add(np.array(scales, "float32"), True)


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


def window(r, f, spatial, dims, op, dilated, ceil=True, out=None):
    k = [int(r.integers(1, min(4, d + 1))) for d in dims]
    f.attr(kernel_shape=k)
    if r.random() < 0.7:
        f.attr(strides=[int(v) for v in r.integers(1, 4, spatial)])
    auto = pick(r, None, None, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    # ONNX Runtime's SAME does not count dilations.
    if dilated and r.random() < 0.4 and auto not in ("SAME_UPPER", "SAME_LOWER"):
        f.attr(
            dilations=[
                int(v) if (w - 1) * v < d else 1
                for v, w, d in zip(r.integers(1, 3, spatial), k, dims)
            ]
        )
    f.attr(auto_pad=auto)
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
    if "SAME" in f.attrs.get("auto_pad", "") and any(
        a < b for a, b in zip(f.attrs["kernel_shape"], f.attrs.get("strides", [1] * spatial))
    ):
        del f.attrs["strides"]  # negative padding, which ONNX Runtime cuts off at both ends
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
    if "SAME" in f.attrs.get("auto_pad", "") and any(
        a < b for a, b in zip(k, f.attrs.get("strides", [1] * spatial))
    ):
        f.attrs["strides"] = [
            1
        ] * spatial  # windows smaller than their stride: the text has another size
    st = f.attrs.get("strides", [1] * spatial)
    if r.random() < 0.4:
        f.attr(output_padding=[int(r.integers(0, s)) for s in st])
    elif r.random() < 0.3 and "SAME" not in f.attrs.get("auto_pad", ""):
        f.attr(output_shape=[d * s + int(r.integers(0, 2)) for d, s in zip(dims, st)])
    if r.random() < 0.3:
        del f.attrs["kernel_shape"]
    return f


NUMBERS = [
    "float32",
    "float64",
    "int32",
    "int64",
    "uint8",
    "int8",
    "bool",
    "float16",
    "int16",
    "uint16",
    "uint32",
    "uint64",
]


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
        x = (
            np.array(
                [
                    pick(
                        r,
                        0,
                        -0.0,
                        1,
                        1.5,
                        -2.25,
                        np.nan,
                        np.inf,
                        -np.inf,
                        1e10,
                        1e-7,
                        123456789,
                        0.1,
                    )
                    for _ in range(int(np.prod(s)))
                ]
            )
            .reshape(s)
            .astype(src)
        )
    else:
        x = data(r, shape(r, 0, 4), src)
        if np.dtype(src).kind == "f" and dst != "str" and np.dtype(dst).kind == "u":
            x = np.abs(x)
    to = TensorProto.STRING if dst == "str" else TYPES[np.dtype(dst)]
    return Form(r, "Cast", op).add(x, False).attr(to=to)


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
    # ONNX Runtime takes the greatest end of a negative step for the beginning; the text does not.
    most = {2**31 - 1, 2**63 - 1}
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
    steps = [pick(r, 1, 1, 2, 3) if e in most else pick(r, 1, 1, 2, -1, -2, 3) for e in ends]
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
def dropout(r):
    op = pick(r, 7, 10, 12, 13)
    f = Form(r, "Dropout", op, pick(r, 1, 2)).add(data(r, shape(r, 0, 4)), False)
    if op < 12:
        return f.attr(ratio=0.3) if r.random() < 0.6 else f
    f.attr(seed=3) if r.random() < 0.3 else None
    f.add(np.float32(0.4) if r.random() < 0.5 else None)
    return f.add(np.array(False) if r.random() < 0.4 else None)


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
        s = (2, 3, *shape(r, 1, 4, 0), 2)  # of one element, rounding alone would be compared
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


@form
def detection(r):
    kind = pick(r, "NonMaxSuppression", "RoiAlign", "MaxRoiPool", "GridSample")
    if kind == "NonMaxSuppression":
        lo = r.random((1, 6, 2))
        boxes = np.concatenate([lo, lo + 0.2 + r.random((1, 6, 2)) * 0.5], -1).astype("float32")
        f = (
            Form(r, kind, pick(r, 10, 11))
            .add(boxes, False)
            .add(r.random((1, 2, 6)).astype("float32"))
        )
        f.add(np.array([3], "int64").reshape(pick(r, (), (1,))) if r.random() < 0.8 else None)
        f.add(np.array([0.4], "float32").reshape(pick(r, (), (1,))) if r.random() < 0.6 else None)
        f.add(np.array([0.2], "float32").reshape(pick(r, (), (1,))) if r.random() < 0.5 else None)
        return f.attr(center_point_box=1) if r.random() < 0.3 else f
    if kind == "RoiAlign":
        op = pick(r, 10, 16)
        rois = np.array([[0, 0, 3, 4], [1.5, 1, 4, 4.5], [2, 2, 2.2, 2.1]], "float32")
        f = (
            Form(r, kind, op)
            .add(data(r, (2, 2, 6, 6)), False)
            .add(rois)
            .add(np.array([0, 1, 1], "int64"))
        )
        f.attr(
            mode=pick(r, None, "avg", "max"),
            output_height=pick(r, None, 2, 3),
            output_width=pick(r, None, 2),
            sampling_ratio=pick(r, None, 0, 2),
            spatial_scale=pick(r, None, 0.5),
        )
        return (
            f.attr(coordinate_transformation_mode=pick(r, "half_pixel", "output_half_pixel"))
            if op >= 16 and r.random() < 0.6
            else f
        )
    if kind == "MaxRoiPool":
        rois = np.array([[0, 0, 0, 3, 4], [0, 1, 1, 4, 4]], "float32")
        return (
            Form(r, kind, 7)
            .add(data(r, (1, 2, 6, 6)), False)
            .add(rois)
            .attr(pooled_shape=[2, 2], spatial_scale=pick(r, None, 0.5))
        )
    op = pick(r, 16, 20)
    g = (r.random((2, 3, 4, 2)) * 2.6 - 1.3).astype("float32")
    mode = (
        pick(r, None, "bilinear", "nearest", "bicubic")
        if op < 20
        else pick(r, None, "linear", "nearest", "cubic")
    )
    return (
        Form(r, kind, op)
        .add(data(r, (2, 2, 4, 5)), False)
        .add(g)
        .attr(
            mode=mode,
            padding_mode=pick(r, None, "zeros", "border", "reflection"),
            align_corners=pick(r, None, 0, 1),
        )
    )


def same(got, want):
    """None, or what differs."""
    if got.shape != want.shape:
        return "shape %s, not %s" % (got.shape, want.shape)
    if want.dtype.kind in "OU":
        bad = [(str(a), str(b)) for a, b in zip(got.ravel(), want.ravel()) if str(a) != str(b)]
        return "texts %s" % bad[:2] if bad else None
    if got.dtype != want.dtype:
        return "type %s, not %s" % (got.dtype, want.dtype)
    if want.dtype.kind == "f":
        half = want.dtype.itemsize == 2
        with np.errstate(all="ignore"):
            g, w = got.astype("f8"), want.astype("f8")
            ok = (
                (g == w)
                | (np.isnan(g) & np.isnan(w))
                | (np.isfinite(w) & (np.abs(g - w) <= (3e-3 if half else 2e-5) * (1 + np.abs(w))))
            )
    else:
        ok = got == want
    if np.all(ok):
        return None
    at = np.unravel_index(int(np.argmin(ok.reshape(-1))), ok.shape) if ok.ndim else ()
    return "%d of %d elements, first at %s: %s, not %s" % (
        (~ok).sum() if ok.ndim else 1,
        ok.size,
        tuple(map(int, at)),
        got[at],
        want[at],
    )


def make(name, seed, number):
    return FORMS[name](np.random.default_rng([seed, number, sorted(FORMS).index(name)]))


def expected(f, model):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(
        None, {n: a.astype(object) if a.dtype.kind == "U" else a for n, a in f.inputs}
    )


def record(path, kinds, seed, count):
    """Writes forms with ONNX Runtime's answers as tests/python/test_onnx_forms.py reads them."""
    names, arrays = {}, {}
    for kind in kinds:
        number = 0
        while len(names.setdefault(kind, [])) < count:
            f = make(kind, seed, number)
            number += 1
            try:
                model = f.model()
                want = expected(f, model)
            except Exception:  # of ONNX Runtime, which refuses the form
                continue
            form = "%s_%d" % (kind, number - 1)
            names[kind].append(form)
            arrays[form + "/model"] = np.frombuffer(model.SerializeToString(), "u1")
            for where, values in (("in", [x for _, x in f.inputs]), ("out", want)):
                for k, x in enumerate(values):
                    x = np.asarray(x)
                    arrays["%s/%s%d" % (form, where, k)] = (
                        x.astype("U") if x.dtype.kind == "O" else x
                    )
    np.savez_compressed(path, names=json.dumps(names), **arrays)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--heddle")
    p.add_argument("--record", help="write forms and answers to this file, and run nothing else")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=20, help="forms of each kind")
    p.add_argument("--only", default="")
    p.add_argument("--keep", help="folder for the cases that differ")
    a = p.parse_args()
    refused, wrong, right, skipped = [], [], 0, 0
    kinds = [k for k in sorted(FORMS) if a.only in ("", k)]
    if a.record:
        return record(a.record, kinds, a.seed, a.count)
    with tempfile.TemporaryDirectory() as tmp:
        cases = []
        for kind in kinds:
            for number in range(a.count):
                f = make(kind, a.seed, number)
                model = f.model()
                try:
                    want = expected(f, model)
                except Exception as e:
                    skipped += 1
                    if os.environ.get("SHOW_SKIPPED"):
                        print("skip", kind, number, f.op, f.opset, str(e)[:150])
                    continue
                folder = Path(tmp) / ("%s_%d" % (kind, number))
                (folder / "test_data_set_0").mkdir(parents=True)
                (folder / "out").mkdir()
                (folder / "model.onnx").write_bytes(model.SerializeToString())
                for k, (n, x) in enumerate(f.inputs):
                    (folder / "test_data_set_0" / ("input_%d.pb" % k)).write_bytes(
                        tensor_of(x, n).SerializeToString()
                    )
                cases.append((folder, f, want))
        listing = Path(tmp) / "list"
        listing.write_text("".join("%s\t%s\n" % (c[0], c[0] / "out") for c in cases))
        problems = collections.defaultdict(str)
        for extra in ([], ["--opt", "0"]):
            for c in cases:
                for old in (c[0] / "out").iterdir():
                    old.unlink()
            run = subprocess.run(
                [a.heddle, "run-cases", "--list", listing, "--threads", "1", *extra],
                capture_output=True,
                text=True,
            )
            text = run.stdout + run.stderr
            for folder, f, want in cases:
                key = folder.name
                if key in problems:
                    continue
                got = []
                for k in range(len(want)):
                    path = folder / "out" / ("output_%d.pb" % k)
                    if path.exists():
                        t = onnx.TensorProto.FromString(path.read_bytes())
                        got.append(
                            np.array(
                                [s.decode("utf-8", "replace") for s in t.string_data], object
                            ).reshape(tuple(t.dims))
                            if t.data_type == 8
                            else numpy_helper.to_array(t)
                        )
                if len(got) != len(want):
                    line = next((l for l in text.splitlines() if str(folder) in l), "no output")
                    problems[key] = "refused: " + line.replace(str(folder), "").strip()[:300]
                    continue
                for k, (g, w) in enumerate(zip(got, want)):
                    why = same(g, np.asarray(w))
                    if why:
                        problems[key] = "wrong%s: output %d: %s" % (
                            " at level 0" if extra else "",
                            k,
                            why,
                        )
                        break
        for folder, f, want in cases:
            why = problems.get(folder.name, "")
            if not why:
                right += 1
                continue
            (refused if why.startswith("refused") else wrong).append(folder.name)
            print(
                "%s %s opset %d %s inputs %s inits %s\n    %s"
                % (
                    folder.name,
                    f.op,
                    f.opset,
                    f.attrs,
                    [(n, str(x.dtype), x.shape) for n, x in f.inputs],
                    [(n, str(x.dtype), x.shape, x.ravel()[:8].tolist()) for n, x in f.inits],
                    why,
                )
            )
            if a.keep:
                shutil.copytree(folder, Path(a.keep) / folder.name, dirs_exist_ok=True)
    print(
        "%d right, %d wrong, %d refused, %d left out" % (right, len(wrong), len(refused), skipped)
    )
    return 1 if wrong or refused else 0


if __name__ == "__main__":
    sys.exit(main())
