"""Random straight ONNX graphs of operators whose meaning depends on the rank.

Graph collects nodes and runs them with ONNX Runtime, grow() adds operators behind a value, and
straight() makes a whole graph.
"""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from hidden_shapes import onnx_cases

OPSETS = (9, 11, 12, 13, 15, 17, 18, 20, 21)
ELEMENT = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE,
           np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32,
           np.dtype(np.bool_): TensorProto.BOOL, np.dtype(np.int8): TensorProto.INT8,
           np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.float16): TensorProto.FLOAT16}


class Graph:
    """A graph while it grows: its nodes, constants, and the values that are there with examples."""

    def __init__(self, rng, opset):
        self.rng, self.opset = rng, opset
        self.nodes, self.constants, self.values = [], [], {}
        self.inputs = []
        self.count = 0

    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def constant(self, value, stem="c"):
        name = self.name(stem)
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def input(self, value):
        name = self.name("x")
        self.values[name] = value
        self.inputs.append(name)
        return name

    def node(self, op, inputs, outputs=1, **attributes):
        names = [self.name("v") for _ in range(outputs)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    # Operands that were attributes in old versions.
    def reduce(self, op, x, axes, since, keepdims=1):
        if self.opset < since:
            return self.node(op, [x], axes=axes, keepdims=keepdims)
        return self.node(op, [x, self.constant(np.array(axes, np.int64))], keepdims=keepdims)

    def unsqueeze(self, x, axes, op="Unsqueeze"):
        if self.opset < 13:
            return self.node(op, [x], axes=axes)
        return self.node(op, [x, self.constant(np.array(axes, np.int64))])

    def model(self, outputs):
        inputs = [helper.make_tensor_value_info(n, ELEMENT[self.values[n].dtype],
                                                self.values[n].shape) for n in self.inputs]
        outs = [onnx_cases.untyped(n, ELEMENT[self.values[n].dtype]) if n in self.values
                else onnx.ValueInfoProto(name=n) for n in outputs]
        graph = helper.make_graph(self.nodes, "graph", inputs, outs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                 ir_version=8)

    def run(self, outputs):
        """The values of `outputs`; None: ONNX Runtime takes no such graph."""
        model = self.model(outputs)
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            session = ort.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
            return session.run(None, {n: self.values[n] for n in self.inputs})
        except Exception:  # pylint: disable=broad-except
            return None


def numbers(rng, shape, dtype=np.float32):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return np.asarray(rng.uniform(-2, 2, shape)).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    return np.asarray(rng.integers(0 if dtype.kind == "u" else -4, 5, shape)).astype(dtype)


def some_axis(g, rank, negative=0.6):
    axis = int(g.rng.integers(rank))
    return axis - rank if g.rng.random() < negative else axis


# --- operators: (graph, operand, its example) -> name or names; None: not for such an operand

FLOAT = (np.float32, np.float64)


def softmax(g, x, v):
    if v.ndim == 0 or v.dtype not in FLOAT:
        return None
    op = g.rng.choice(["Softmax", "LogSoftmax", "Hardmax"])
    axis = None if g.rng.random() < 0.3 else some_axis(g, v.ndim)
    if g.opset < 11 and axis is not None and axis < 0:
        axis += v.ndim
    return g.node(op, [x], axis=axis)


def flatten(g, x, v):
    axis = int(g.rng.integers(0, v.ndim + 1))
    if g.opset >= 11 and v.ndim > 0 and g.rng.random() < 0.6:
        axis = some_axis(g, v.ndim, 1)
    return g.node("Flatten", [x], axis=axis)


def global_pool(g, x, v):
    if v.ndim < 3 or v.dtype != np.float32:
        return None
    return g.node(str(g.rng.choice(["GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"])), [x])


def reduction(g, x, v):
    if v.dtype not in FLOAT or v.ndim == 0:
        return None
    op = str(g.rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
                           "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"]))
    count = int(g.rng.integers(1, v.ndim + 1))
    axes = [int(a) for a in g.rng.permutation(v.ndim)[:count]]
    if g.opset >= 11 and g.rng.random() < 0.7:
        axes = [a - v.ndim for a in axes]
    if g.rng.random() < 0.15:
        return g.node(op, [x], keepdims=int(g.rng.integers(2)))
    return g.reduce(op, x, axes, 13 if op == "ReduceSum" else 18, int(g.rng.integers(2)))


def arg(g, x, v):
    if v.ndim == 0 or v.dtype not in FLOAT:
        return None
    axis = some_axis(g, v.ndim, 0.6 if g.opset >= 11 else 0)
    return g.node(str(g.rng.choice(["ArgMax", "ArgMin"])), [x], axis=axis,
                  keepdims=int(g.rng.integers(2)))


def top_k(g, x, v):
    if v.ndim == 0 or v.dtype not in FLOAT or g.opset < 10:
        return None
    axis = some_axis(g, v.ndim, 0.6 if g.opset >= 11 else 0)
    k = int(g.rng.integers(1, v.shape[axis] + 1))
    return g.node("TopK", [x, g.constant(np.array([k], np.int64))], 2, axis=axis)


def cum_sum(g, x, v):
    if v.ndim == 0 or v.dtype not in FLOAT or g.opset < 11:
        return None
    axis = g.constant(np.array(some_axis(g, v.ndim), np.int64))
    return g.node("CumSum", [x, axis], reverse=int(g.rng.integers(2)),
                  exclusive=int(g.rng.integers(2)))


def concat(g, x, v):
    if v.ndim == 0:
        return None
    return g.node("Concat", [x, x], axis=some_axis(g, v.ndim, 0.6 if g.opset >= 4 else 0))


def split(g, x, v):
    axis = some_axis(g, v.ndim) if v.ndim else 0
    if v.ndim == 0 or v.shape[axis] < 2 or (g.opset < 11 and axis < 0):
        return None
    if v.shape[axis] % 2 == 0 and g.rng.random() < 0.6:
        return g.node("Split", [x], 2, axis=axis, num_outputs=2 if g.opset >= 18 else None)
    parts = [1, v.shape[axis] - 1]
    if g.opset < 13:
        return g.node("Split", [x], 2, axis=axis, split=parts)
    return g.node("Split", [x, g.constant(np.array(parts, np.int64))], 2, axis=axis)


def squeeze(g, x, v):
    ones = [i for i, d in enumerate(v.shape) if d == 1]
    if not ones:
        return None
    axis = int(g.rng.choice(ones))
    if g.opset >= 11 and g.rng.random() < 0.6:
        axis -= v.ndim
    return g.node("Squeeze", [x]) if g.rng.random() < 0.2 else g.unsqueeze(x, [axis], "Squeeze")


def unsqueeze(g, x, v):
    if v.ndim > 4:
        return None
    if v.ndim < 4 and g.rng.random() < 0.4:
        axes = [int(a) for a in g.rng.permutation(v.ndim + 2)[:2]]
        rank = v.ndim + 2
    else:
        axes, rank = [int(g.rng.integers(v.ndim + 1))], v.ndim + 1
    if g.opset >= 11:
        axes = [a - rank if g.rng.random() < 0.6 else a for a in axes]
    else:
        axes.sort()
    return g.unsqueeze(x, axes)


def slices(g, x, v):
    if v.ndim == 0 or g.opset < 10:
        return None
    axis = some_axis(g, v.ndim)
    start = int(g.rng.integers(0, v.shape[axis]))
    ints = [np.array([i], np.int64) for i in (start, 1 << 40, axis, 1)]
    if g.rng.random() < 0.3:
        ints = [np.array([i], np.int64) for i in (-1, -(1 << 40), axis, -1)]
    return g.node("Slice", [x] + [g.constant(i) for i in ints])


def gather(g, x, v):
    if v.ndim == 0:
        return None
    axis = some_axis(g, v.ndim)
    size = v.shape[axis]
    low = -size if g.opset >= 11 else 0
    kind = g.rng.integers(3)
    if kind == 0:
        at = g.constant(np.array(int(g.rng.integers(low, size)), np.int64))
        return g.node("Gather", [x, at], axis=axis)
    if kind == 1:
        at = g.constant(g.rng.integers(low, size, (2, 2)).astype(np.int64))
        return g.node("Gather", [x, at], axis=axis)
    if g.opset < 11:
        return None
    at = g.constant(g.rng.integers(low, size, v.shape).astype(np.int64))
    return g.node("GatherElements", [x, at], axis=axis)


def transpose(g, x, v):
    if v.ndim == 0 or g.rng.random() < 0.6:
        return g.node("Transpose", [x])
    return g.node("Transpose", [x], perm=[int(a) for a in g.rng.permutation(v.ndim)])


def norms(g, x, v):
    if v.ndim < 3 or v.dtype != np.float32:
        return None
    c = v.shape[1]
    scale, bias = g.constant(numbers(g.rng, [c])), g.constant(numbers(g.rng, [c]))
    kind = g.rng.integers(5)
    if kind == 0:
        return g.node("InstanceNormalization", [x, scale, bias])
    if kind == 1 and g.opset >= 15:
        mean, variance = g.constant(numbers(g.rng, [c])), g.constant(numbers(g.rng, [c]) ** 2)
        return g.node("BatchNormalization", [x, scale, bias, mean, variance])
    if kind == 2 and g.opset == 21:
        return g.node("GroupNormalization", [x, scale, bias], num_groups=c)
    if kind == 3 and v.ndim == 4:
        return g.node("LRN", [x], size=3)
    if kind == 4 and g.opset >= 17:
        axis = some_axis(g, v.ndim)
        shape = v.shape[axis:]
        return g.node("LayerNormalization", [x, g.constant(numbers(g.rng, shape)),
                                             g.constant(numbers(g.rng, shape))], axis=axis)
    return g.node("LpNormalization", [x], axis=some_axis(g, v.ndim, 0.5), p=2)


def written_norm(g, x, v):
    """(x - mean) / sqrt(variance + e) * scale + bias along the last axis, by its parts."""
    if v.ndim < 1 or v.dtype != np.float32:
        return None
    last = [-1 if g.opset >= 11 else v.ndim - 1]
    d = g.node("Sub", [x, g.reduce("ReduceMean", x, last, 18)])
    two = g.constant(np.float32(2) if g.rng.random() < 0.5 else np.array([2], np.float32))
    square = g.node("Mul", [d, d]) if g.rng.random() < 0.5 else g.node("Pow", [d, two])
    eps = np.float32(1e-3) if g.rng.random() < 0.5 else np.array([1e-3], np.float32)
    variance = g.node("Add", [g.reduce("ReduceMean", square, last, 18), g.constant(eps)])
    y = g.node("Div", [d, g.node("Sqrt", [variance])])
    # A last axis of 1 is broadcast.
    width = v.shape[-1] if v.shape[-1] > 1 else int(g.rng.choice([1, 3]))
    y = g.node("Mul", [y, g.constant(numbers(g.rng, [width]))])
    return g.node("Add", [y, g.constant(numbers(g.rng, [width]))])


def written_activation(g, x, v):
    """Forms with a number: as a scalar, or as a vector that makes a vector of a scalar."""
    if v.dtype != np.float32:
        return None

    def number(n):
        n = np.float32(n)
        return g.constant(n if g.rng.random() < 0.5 else n.reshape(1))

    kind = g.rng.integers(3)
    if kind == 0:
        erf = g.node("Erf", [g.node("Div", [x, number(np.sqrt(2))])])
        return g.node("Mul", [g.node("Mul", [x, g.node("Add", [erf, number(1)])]), number(0.5)])
    if kind == 1:
        return g.node("Mul", [x, g.node("Sigmoid", [g.node("Mul", [x, number(1.7)])])])
    if g.opset < 11:
        return None
    ramp = g.node("Clip", [g.node("Add", [x, number(3)]), g.constant(np.float32(0)),
                           g.constant(np.float32(6))])
    return g.node("Div", [g.node("Mul", [x, ramp]), number(6)])


def mat_mul(g, x, v):
    if v.ndim < 1 or v.dtype != np.float32:
        return None
    kind = g.rng.integers(4)
    if kind == 0 and v.ndim == 2:
        w = g.constant(numbers(g.rng, [3, v.shape[1]]))
        return g.node("Gemm", [x, w, g.constant(numbers(g.rng, [3]))], transB=1, alpha=0.5)
    if kind == 1:
        return g.node("MatMul", [x, g.constant(numbers(g.rng, [v.shape[-1]]))])
    if kind == 2 and g.opset >= 11:
        q, s, z = g.node("DynamicQuantizeLinear", [x], 3)
        w = g.constant(numbers(g.rng, [v.shape[-1], 3], np.int8))
        m = g.node("Cast", [g.node("MatMulInteger", [q, w, z])], to=TensorProto.FLOAT)
        return g.node("Mul", [m, s])
    return g.node("MatMul", [x, g.constant(numbers(g.rng, [v.shape[-1], 3]))])


def window(g, x, v):
    if not 3 <= v.ndim <= 5 or v.dtype != np.float32 or min(v.shape) < 1:
        return None
    dims = v.ndim - 2
    kernel = [int(min(2, d)) for d in v.shape[2:]]
    kind = g.rng.integers(4)
    if kind == 0:
        w = numbers(g.rng, [2, v.shape[1]] + kernel)
        pad = str(g.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]))
        return g.node("Conv", [x, g.constant(w), g.constant(numbers(g.rng, [2]))], auto_pad=pad,
                      strides=[int(g.rng.integers(1, 3))] * dims,
                      kernel_shape=kernel if g.rng.random() < 0.5 else None)
    if kind == 1:
        return g.node("MaxPool", [x], kernel_shape=kernel, strides=[1] * dims,
                      auto_pad=str(g.rng.choice(["SAME_UPPER", "VALID"])))
    if kind == 2:
        return g.node("AveragePool", [x], kernel_shape=kernel, count_include_pad=1,
                      pads=[0] * dims + [int(k > 1) for k in kernel])
    w = numbers(g.rng, [v.shape[1], 2] + kernel)
    return g.node("ConvTranspose", [x, g.constant(w)], strides=[2] * dims)


def pad(g, x, v):
    if v.ndim == 0 or v.dtype not in FLOAT or g.opset < 11:
        return None
    pads = g.rng.integers(0, 2, 2 * v.ndim).astype(np.int64)
    value = g.constant(np.array(1.5, v.dtype))
    mode = str(g.rng.choice(["constant", "edge"]))
    return g.node("Pad", [x, g.constant(pads)] + [value] * (mode == "constant"), mode=mode)


def resize(g, x, v):
    if v.ndim < 3 or v.dtype != np.float32 or g.opset < 11:
        return None
    scales = np.ones(v.ndim, np.float32)
    scales[-1] = 2
    roi = g.constant(np.zeros(0, np.float32))
    return g.node("Resize", [x, roi, g.constant(scales)], mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def depth(g, x, v):
    if v.ndim != 4 or v.dtype != np.float32:
        return None
    if v.shape[1] % 4 == 0:
        return g.node("DepthToSpace", [x], blocksize=2)
    if v.shape[2] % 2 == 0 and v.shape[3] % 2 == 0:
        return g.node("SpaceToDepth", [x], blocksize=2)
    return None


def einsum(g, x, v):
    if v.ndim < 2 or v.dtype != np.float32 or g.opset < 12:
        return None
    w = g.constant(numbers(g.rng, [v.shape[-1], 2]))
    return g.node("Einsum", [x, w], equation="...i,ij->...j")


def one_hot(g, x, v):
    if v.ndim > 4 or v.dtype not in (np.int64, np.int32):
        return None
    values = g.constant(np.array([0, 1.5], np.float32))
    return g.node("OneHot", [x, g.constant(np.array(5, np.int64)), values],
                  axis=int(g.rng.choice([-1, v.ndim])))


def expand(g, x, v):
    if v.ndim > 4:
        return None
    kind = g.rng.integers(3)
    if kind == 0:
        return g.node("Expand", [x, g.constant(np.array([2] + [1] * v.ndim, np.int64))])
    if kind == 1:
        return g.node("Tile", [x, g.constant(g.rng.integers(1, 3, v.ndim).astype(np.int64))])
    if v.dtype not in FLOAT:
        return None
    # Back to the shape that it has: what Shape says is not known either.
    return g.node("Expand", [g.constant(np.array(1, v.dtype)), g.node("Shape", [x])])


def reshape(g, x, v):
    kind = g.rng.integers(3)
    if kind == 0:
        return g.node("Reshape", [x, g.constant(np.array([-1], np.int64))])
    if kind == 1 and v.ndim > 0:
        last = np.array([0] * (v.ndim - 1) + [-1], np.int64)
        return g.node("Reshape", [x, g.constant(last)])
    if v.ndim < 1 or g.opset < 10:
        return None
    # All dimensions but the last, then everything that is left.
    shape = g.node("Shape", [x])
    ints = [g.constant(np.array([i], np.int64)) for i in (0, -1)]
    front = g.node("Slice", [shape] + ints)
    minus = g.constant(np.array([-1], np.int64))
    return g.node("Reshape", [x, g.node("Concat", [front, minus], axis=0)])


def where(g, x, v):
    if v.dtype != np.float32:
        return None
    zero = g.constant(np.float32(0.25))
    less = g.node("Less", [x, zero])
    return g.node("Where", [less, x, g.node("Neg", [x])])


def casts(g, x, v):
    if v.dtype.kind == "b":
        return g.node("Cast", [x], to=int(g.rng.choice([TensorProto.FLOAT, TensorProto.INT64])))
    if v.dtype.kind == "i":
        return g.node("Cast", [x], to=int(g.rng.choice([TensorProto.FLOAT, TensorProto.INT32])))
    kind = g.rng.integers(4)
    if kind == 0 and v.dtype == np.float32 and g.opset >= 10:
        scale, zero = g.constant(np.float32(0.05)), g.constant(np.uint8(100))
        q = g.node("QuantizeLinear", [x, scale, zero])
        return g.node("DequantizeLinear", [q, scale, zero])
    if kind == 1:
        return g.node("Cast", [g.node("Cast", [x], to=TensorProto.INT32)], to=ELEMENT[v.dtype])
    if kind == 2:
        return g.node("Not", [g.node("Less", [x, g.constant(np.array(0, v.dtype))])])
    return g.node("Shape", [x])


def recurrent(g, x, v):
    if v.ndim != 3 or v.dtype != np.float32:
        return None
    kind = str(g.rng.choice(["LSTM", "GRU", "RNN"]))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    w = g.constant(numbers(g.rng, [1, gates * 2, v.shape[2]]))
    r = g.constant(numbers(g.rng, [1, gates * 2, 2]))
    return g.node(kind, [x, w, r], 2, hidden_size=2)


def p_relu(g, x, v):
    if v.ndim < 2 or v.dtype != np.float32:
        return None
    shape = [v.shape[1]] + [1] * (v.ndim - 2) if g.rng.random() < 0.7 else [1]
    return g.node("PRelu", [x, g.constant(numbers(g.rng, shape))])


def pairs(g, x, v):
    """With a value of the same shape, or of one that broadcasts."""
    if v.dtype not in FLOAT:
        return None
    other = g.constant(numbers(g.rng, v.shape[int(g.rng.integers(0, v.ndim + 1)):], v.dtype))
    return g.node(str(g.rng.choice(["Add", "Mul", "Sub", "Max"])), [x, other])


OPERATORS = (softmax, softmax, flatten, global_pool, reduction, reduction, arg, top_k, cum_sum,
             concat, split, squeeze, unsqueeze, slices, gather, transpose, norms, written_norm,
             written_activation, mat_mul, mat_mul, window, window, pad, resize, depth, einsum,
             one_hot, expand, reshape, where, casts, casts, recurrent, p_relu, pairs)


def grow(g, x, nodes):
    """Adds operators behind x and behind what they make; the names of what nobody reads."""
    v = g.values[x]
    ends, tries = {x}, 0
    while nodes and tries < 60:
        tries += 1
        last = sorted(ends)[int(g.rng.integers(len(ends)))]
        v = g.values[last]
        kept = len(g.nodes), len(g.constants)
        made = OPERATORS[int(g.rng.integers(len(OPERATORS)))](g, last, v)
        names = [made] if isinstance(made, str) else made
        got = names and g.run(names)
        if not got or any(a.size > 4000 or a.ndim > 5 or a.size == 0 for a in got):
            del g.nodes[kept[0]:], g.constants[kept[1]:]
            continue
        if any(a.dtype.kind == "f" and not np.all(np.abs(a) < 1e4) for a in got):
            del g.nodes[kept[0]:], g.constants[kept[1]:]
            continue
        g.values.update(zip(names, got))
        ends = (ends - {last}) | set(names) if g.rng.random() < 0.8 else ends | set(names)
        nodes -= 1
    return sorted(ends - {x})


def straight(rng):
    g = Graph(rng, int(rng.choice(OPSETS)))
    dtype = rng.choice([np.float32] * 8 + [np.float64, np.int64])
    rank = int(rng.choice([0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5]))
    x = g.input(numbers(rng, [int(d) for d in rng.integers(1, 5, rank)], dtype))
    outputs = grow(g, x, int(rng.integers(1, 6)))
    return (g, outputs) if outputs else None
