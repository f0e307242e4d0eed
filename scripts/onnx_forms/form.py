"""A model of one ONNX operator, and how its operands are drawn."""

import numpy as np
import onnx
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


class Form:
    """One node, its operands and attributes."""

    def __init__(self, rng, op, opset, outputs=1, domain=""):
        self.rng, self.op, self.opset, self.domain = rng, op, opset, domain
        self.inputs, self.names, self.inits = [], [], []
        self.outputs = ["y%d" % k for k in range(outputs)]
        self.attrs, self.types = {}, {}  # types: of outputs that ONNX Runtime does not infer

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
        outs = [helper.make_tensor_value_info(n, self.types[n], None) if n in self.types else
                onnx.ValueInfoProto(name=n) for n in self.outputs if n]
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
