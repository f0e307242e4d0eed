#!/usr/bin/env python3
"""Feeds generated ONNX models with values at the edges and compares heddle with ONNX Runtime.

  sweep_edges.py --heddle build/release/heddle [--seed N] [--only GLOB] [--every N] [-v]
  sweep_edges.py --record FILE [--only GLOB] [--every N]    packs cases and their answers
  sweep_edges.py --replay FILE --heddle build/release/heddle    runs what was packed

Edges are NaN of both signs, infinities, zeros of both signs, denormal numbers, and the least and
greatest numbers of a type; of unsigned types also what is negative in a signed one. Each model is
one operator, or a chain that passes fuse. It runs at levels 0, 1 and 2 and on one and two threads.
An element is right when it is NaN, infinite or a zero of a sign where ONNX Runtime's is, and else
near it. Where ONNX Runtime's plain graph, its optimised one and ONNX's reference evaluator differ,
each of them is right: the place of an element, not its value, then decides in ONNX Runtime.

Unsigned 16, 32 and 64-bit operands are fed as signed ones and cast in the model, and results are
cast back, so that files of values hold what every numpy reads.

Needs onnx, onnxruntime and numpy in the Python that runs this; --replay needs numpy alone.
"""
import argparse
import concurrent.futures
import fnmatch
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile
import zlib

import numpy as np

RUNS = [(0, 1), (1, 1), (2, 1), (2, 2)]
FLOATS = ['float32', 'float64', 'float16']
INTS = ['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64']
# Unsigned types that are fed as a signed one.
FED_AS = {'uint16': 'int32', 'uint32': 'int64', 'uint64': 'int64'}


def edges(dtype):
    """The values at the edges of `dtype`, and some between them."""
    if dtype == 'bool':
        return np.array([True, False])
    if np.issubdtype(np.dtype(dtype), np.floating):
        info = np.finfo(dtype)
        values = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 0.4, -0.4, 0.5, -0.5, 1.5,
                  -1.5, 2.5, 3, -3, 6, 7, 20, -20, 90, -90, info.tiny, -info.tiny,
                  float(info.tiny) / 4, -float(info.tiny) / 4, info.max, -float(info.max)]
        if dtype != 'float16':
            values += [2.0**31, -2.0**31, 2.0**32, 2.0**63, -2.0**63, 2.0**64, 1e10]
        with np.errstate(over='ignore'):
            return np.array(values, 'float64').astype(dtype)
    info = np.iinfo(dtype)
    values = {0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.max // 2, info.max // 2 + 1,
              info.max // 2 + 2, info.min, info.min + 1}
    if info.min < 0:
        values |= {-1, -2, -3, -7, -100}
    return np.array(sorted(v for v in values if info.min <= v <= info.max), dtype)


class Draw:
    """Operands of one case, by a generator that the case's name seeds."""

    def __init__(self, seed, name):
        self.rng = np.random.default_rng([seed, zlib.crc32(name.encode())])

    def edge(self, shape, dtype):
        return self.rng.choice(edges(dtype), shape)

    def some(self, shape, dtype, share=0.15):
        """Ordinary values with edges here and there."""
        plain = self.rng.integers(1, 9, shape) * self.rng.choice([-1, 1], shape)
        if np.issubdtype(np.dtype(dtype), np.floating):
            plain = plain / 4
        elif np.iinfo(dtype).min == 0:
            plain = abs(plain)
        special = edges(dtype)
        if np.issubdtype(np.dtype(dtype), np.floating):
            special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)
        return np.where(self.rng.random(shape) < share, self.rng.choice(special, shape),
                        plain.astype(dtype)).astype(dtype)

    def plain(self, shape, dtype='float32'):
        return (self.rng.integers(-8, 9, shape) / 4).astype(dtype)


class Case:
    """A model: operands by name, constants, nodes. Without `zeros` the sign of zeros is not asked;
    `sums` is an error in relation to the greatest of all numbers, for sums in another order."""

    def __init__(self, name, zeros=True, rtol=None, sums=None, opset=21):
        self.name, self.zeros, self.rtol, self.sums = name, zeros, rtol, sums
        self.opset, self.fails = opset, False
        self.feeds, self.constants, self.nodes, self.outputs = {}, {}, [], []

    def feed(self, value):
        name = 'x%d' % len(self.feeds)
        self.feeds[name] = np.asarray(value)
        return name

    def const(self, value):
        name = 'c%d' % len(self.constants)
        self.constants[name] = np.asarray(value)
        return name

    def node(self, op, *ins, outs=1, domain='', **attrs):
        names = ['v%d_%d' % (len(self.nodes), i) for i in range(outs)]
        self.nodes.append((op, list(ins), names, domain, attrs))
        return names[0] if outs == 1 else names

    def out(self, name, dtype):
        self.outputs.append((name, dtype))
        return self

    def model(self):
        from onnx import TensorProto, helper, numpy_helper
        kind = {d: helper.np_dtype_to_tensor_dtype(np.dtype(d)) for d in FLOATS + INTS + ['bool']}
        kind['string'] = TensorProto.STRING
        nodes, inputs = [], []
        for name, value in self.feeds.items():
            dtype = str(value.dtype)
            if dtype in FED_AS:
                nodes.append(helper.make_node('Cast', [name + '_fed'], [name], to=kind[dtype]))
                inputs.append(helper.make_tensor_value_info(name + '_fed', kind[FED_AS[dtype]],
                                                            value.shape))
            else:
                inputs.append(helper.make_tensor_value_info(name, kind[dtype], value.shape))
        for op, ins, outs, domain, attrs in self.nodes:
            if 'to' in attrs and isinstance(attrs['to'], str):
                attrs = dict(attrs, to=kind[attrs['to']])
            if isinstance(attrs.get('value'), np.ndarray):
                attrs = dict(attrs, value=numpy_helper.from_array(attrs['value']))
            nodes.append(helper.make_node(op, ins, outs, domain=domain, **attrs))
        outputs = []
        for k, (name, dtype) in enumerate(self.outputs):
            if dtype in FED_AS:
                nodes.append(helper.make_node('Cast', [name], ['y%d' % k],
                                              to=kind[FED_AS[dtype]]))
                name, dtype = 'y%d' % k, FED_AS[dtype]
            outputs.append(helper.make_tensor_value_info(name, kind[dtype], None))
        graph = helper.make_graph(nodes, 'edges', inputs, outputs,
                                  [numpy_helper.from_array(v, k) for k, v in
                                   self.constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', self.opset)],
                                 ir_version=10)

    def fed(self):
        values = {}
        for name, v in self.feeds.items():
            as_type = FED_AS.get(str(v.dtype))
            values[name + '_fed' if as_type else name] = v.astype(as_type) if as_type else v
        return values


# ---- the cases -----------------------------------------------------------------------------------

UNARY = {
    'Abs': FLOATS + INTS, 'Neg': FLOATS + ['int8', 'int16', 'int32', 'int64'],
    'Sign': FLOATS + INTS, 'Ceil': FLOATS, 'Floor': FLOATS, 'Round': FLOATS, 'Sqrt': FLOATS,
    'Reciprocal': FLOATS, 'Exp': FLOATS, 'Log': FLOATS, 'Erf': FLOATS[:1], 'Sin': FLOATS[:2],
    'Cos': FLOATS[:2], 'Tan': FLOATS[:1], 'Asin': FLOATS[:1], 'Acos': FLOATS[:1],
    'Atan': FLOATS[:1], 'Sinh': FLOATS[:1], 'Cosh': FLOATS[:1], 'Asinh': FLOATS[:1],
    'Acosh': FLOATS[:1], 'Atanh': FLOATS[:1], 'Sigmoid': FLOATS, 'Tanh': FLOATS, 'Relu':
    FLOATS + ['int8', 'int32'], 'LeakyRelu': FLOATS, 'Elu': FLOATS, 'Selu': FLOATS, 'Celu':
    FLOATS[:1], 'ThresholdedRelu': FLOATS, 'HardSigmoid': FLOATS, 'HardSwish': FLOATS, 'Softplus':
    FLOATS, 'Softsign': FLOATS, 'Mish': FLOATS[:1], 'Gelu': FLOATS[:1], 'Shrink': FLOATS,
    'IsNaN': FLOATS, 'IsInf': FLOATS[:2], 'Identity': FLOATS + INTS,
    'BitwiseNot': INTS, 'Softmax': FLOATS, 'LogSoftmax': FLOATS, 'Hardmax': FLOATS,
    'NonZero': ['float32', 'int32', 'int64'],
}
TESTS = ('IsNaN', 'IsInf')
LOOSE = {'Tan': 1e-3, 'Sin': 1e-2, 'Cos': 1e-2, 'HardSwish': 1e-6, 'Gelu': 1e-4}
# The sign of a zero depends on the type in ONNX Runtime, or heddle rounds another way to zero.
ANY_ZERO = ('Selu', 'Celu', 'Gelu')


def unary_cases(draw):
    for op, dtypes in UNARY.items():
        for dtype in dtypes:
            c = Case('unary/%s/%s' % (op, dtype), rtol=LOOSE.get(op), zeros=op not in ANY_ZERO)
            if op in ('Softmax', 'LogSoftmax', 'Hardmax'):
                x = draw(c).some((24, 5), dtype, 0.3)
                x[0], x[1], x[2, :] = -np.inf, np.inf, np.nan
            else:
                x = edges(dtype)
                if op in ('Sin', 'Cos', 'Tan'):
                    x = x[~(abs(x.astype('float64')) > 1e5) | ~np.isfinite(x)]
                x = draw(c).rng.permutation(np.concatenate([x] * 3))
            if op == 'Softmax' and dtype == 'float32':
                for axis in (0, 1):
                    other = Case(c.name + '/axis%d' % axis)
                    yield other.out(other.node(op, other.feed(x), axis=axis), dtype)
            result = 'bool' if op in TESTS else 'int64' if op == 'NonZero' else dtype
            yield c.out(c.node(op, c.feed(x)), result)


BINARY = {
    'Add': FLOATS + INTS, 'Sub': FLOATS + INTS, 'Mul': FLOATS + INTS, 'Div': FLOATS + INTS,
    'Mod': INTS, 'Fmod': FLOATS + INTS, 'Pow': FLOATS + ['int32', 'int64'], 'PRelu': FLOATS,
    'Max': FLOATS + INTS, 'Min': FLOATS + INTS, 'Sum': FLOATS, 'Mean': FLOATS,
    'Less': FLOATS + INTS, 'LessOrEqual': FLOATS + INTS, 'Greater': FLOATS + INTS,
    'GreaterOrEqual': FLOATS + INTS, 'Equal': FLOATS + INTS, 'BitwiseAnd': INTS,
    'BitwiseOr': INTS, 'BitwiseXor': INTS, 'BitShiftLeft': INTS[4:], 'BitShiftRight': INTS[4:],
}
COMPARE = ('Less', 'LessOrEqual', 'Greater', 'GreaterOrEqual', 'Equal')


def pairs(dtype):
    a, b = np.meshgrid(edges(dtype), edges(dtype))
    return a.ravel(), b.ravel()


def defined(op, a, b):
    """The pairs on which the operator is defined: ONNX Runtime divides by zero with a signal."""
    if a.dtype.kind in 'iu' and op in ('Div', 'Mod', 'Fmod'):
        fine = b != 0
        if a.dtype.kind == 'i':
            fine &= ~((a == np.iinfo(a.dtype).min) & (b == -1))
        return a[fine], b[fine]
    if op.startswith('BitShift'):
        fine = b < a.dtype.itemsize * 8
        return a[fine], b[fine]
    if op == 'Pow' and a.dtype.kind == 'i':
        with np.errstate(all='ignore'):
            fine = (b >= 0) & (b < 64) & (
                abs(a.astype('float64')) ** b.astype('float64') < 2**31)
        return a[fine], b[fine]
    return a, b


def attributes(op):
    return {'Fmod': ('Mod', {'fmod': 1}), 'BitShiftLeft': ('BitShift', {'direction': 'LEFT'}),
            'BitShiftRight': ('BitShift', {'direction': 'RIGHT'})}.get(op, (op, {}))


def binary_cases(draw):
    for op, dtypes in BINARY.items():
        for dtype in dtypes:
            a, b = defined(op, *pairs(dtype))
            real, attrs = attributes(op)
            result = 'bool' if op in COMPARE else dtype
            chance = op in ('Max', 'Min', 'PRelu')  # of the sign of zeros
            c = Case('binary/%s/%s' % (op, dtype), zeros=not chance)
            if op == 'PRelu':  # slopes are finite: ONNX Runtime multiplies them with zeros, too
                a, b = a[np.isfinite(b)], b[np.isfinite(b)]
            order = draw(c).rng.permutation(len(a))
            a, b = a[order], b[order]
            yield c.out(c.node(real, c.feed(a), c.feed(b), **attrs), result)
            # A constant on either side: folded, fused, or turned into another operator.
            for side in ('left', 'right'):
                if op == 'PRelu' and side == 'left':  # the slope does not widen the operand
                    continue
                c = Case('binary/%s/%s/constant_%s' % (op, dtype, side), zeros=not chance)
                d = draw(c)
                special = d.rng.choice(edges(dtype), 6, replace=False)
                special = np.concatenate([special, np.array([0, 1], dtype)])
                if np.issubdtype(np.dtype(dtype), np.floating):
                    special = np.concatenate([special, np.array([-0.0, -1, 2, 0.5, 3], dtype)])
                for value in special:
                    if op == 'PRelu' and not np.isfinite(value):
                        continue
                    x = edges(dtype)
                    full = np.full(x.shape, value, dtype)
                    left, right = (full, x) if side == 'left' else (x, full)
                    moving = defined(op, left, right)[1 if side == 'left' else 0]
                    if not len(moving):
                        continue
                    k = c.const(np.array(value, dtype))
                    x = c.feed(moving)
                    ins = (k, x) if side == 'left' else (x, k)
                    c.out(c.node(real, *ins, **attrs), result)
                if c.outputs:
                    yield c


def variadic_cases(draw):
    for op in ('Max', 'Min', 'Sum', 'Mean'):
        for dtype in FLOATS[:2] + (INTS if op in ('Max', 'Min') else []):
            for count in (1, 3, 5):
                c = Case('variadic/%s/%s/%d' % (op, dtype, count), zeros=False)
                d = draw(c)
                ins = [c.feed(d.edge((7, 9), dtype)) for _ in range(count)]
                yield c.out(c.node(op, *ins), dtype)


REDUCE = ['ReduceMax', 'ReduceMin', 'ReduceSum', 'ReduceMean', 'ReduceProd', 'ReduceL1',
          'ReduceL2', 'ReduceSumSquare', 'ReduceLogSum', 'ReduceLogSumExp']


def reduce_cases(draw):
    for op in REDUCE:
        dtypes = FLOATS[:2] + ([] if op.startswith('ReduceLog') else ['int32', 'int64'])
        if op not in ('ReduceMean', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp'):
            dtypes += ['uint32', 'uint64']  # of others the evaluator's steps overflow
        if op in ('ReduceMax', 'ReduceMin'):
            dtypes += ['int8', 'uint8', 'float16']
        for dtype in dtypes:
            for axes, shape in (([1], (12, 7)), ([0], (7, 12)), (None, (5, 3)), ([0, 2], (3, 4, 5)),
                                ([-1], (6, 40))):
                c = Case('reduce/%s/%s/%s' % (op, dtype, 'x'.join(map(str, shape))), zeros=False)
                x = draw(c).some(shape, dtype, 0.08)
                if x.ndim == 2 and dtype in FLOATS:
                    x[0] = -np.inf
                    x[1] = np.nan
                    x[2] = np.inf
                    x[3] = -0.0
                ins = [c.feed(x)] + ([] if axes is None else [c.const(np.array(axes))])
                yield c.out(c.node(op, *ins, keepdims=0), dtype)
        for dtype in ('float32',) if op.startswith('ReduceLog') else ('float32', 'int64'):
            c = Case('reduce/%s/%s/empty' % (op, dtype))
            x = c.feed(np.zeros((3, 0), dtype))
            yield c.out(c.node(op, x, c.const(np.array([1])), keepdims=0), dtype)


def order_cases(draw):
    for dtype in FLOATS + INTS:
        for op in ('ArgMax', 'ArgMin'):
            for axis, last in ((0, 0), (1, 0), (1, 1)):
                c = Case('order/%s/%s/%d%d' % (op, dtype, axis, last))
                x = draw(c).some((9, 11), dtype, 0.2)
                yield c.out(c.node(op, c.feed(x), axis=axis, select_last_index=last), 'int64')
        for largest in (0, 1):
            for k in (1, 4, 11):
                c = Case('order/TopK/%s/%d_%d' % (dtype, largest, k))
                x = draw(c).some((9, 11), dtype, 0.2)
                values, at = c.node('TopK', c.feed(x), c.const(np.array([k])), outs=2,
                                    largest=largest)
                yield c.out(values, dtype).out(at, 'int64')
        c = Case('order/Unique/%s' % dtype)
        x = draw(c).rng.choice(edges(dtype)[2:], 30)
        values, first, inverse, counts = c.node('Unique', c.feed(x), outs=4, sorted=1)
        c.out(values, dtype).out(first, 'int64').out(inverse, 'int64').out(counts, 'int64')
        yield c
        for reverse in (0, 1):
            if dtype in ('float32', 'float64', 'int32', 'int64', 'uint32', 'uint64'):
                c = Case('order/CumSum/%s/%d' % (dtype, reverse))
                x = draw(c).some((5, 9), dtype, 0.05)
                y = c.node('CumSum', c.feed(x), c.const(np.array(1)), reverse=reverse)
                yield c.out(y, dtype)


def clip_cases(draw):
    for dtype in FLOATS + INTS:
        for bounds in ('both', 'least', 'most', 'crossed', 'fed', 'nan', 'none'):
            c = Case('clip/%s/%s' % (dtype, bounds))
            d = draw(c)
            values = edges(dtype)
            if bounds == 'nan' and dtype not in FLOATS:
                continue
            finite = np.sort(values[np.isfinite(values.astype('float64'))])
            low, high = finite[len(finite) // 3], finite[2 * len(finite) // 3]
            if bounds == 'crossed':
                low, high = high, low
            if bounds == 'nan':
                low = np.array(np.nan, dtype)
            make = c.feed if bounds == 'fed' else c.const
            ins = [c.feed(d.rng.permutation(np.concatenate([values] * 2)))]
            if bounds != 'none':
                ins.append('' if bounds == 'most' else make(np.array(low, dtype)))
            if bounds not in ('least', 'none'):
                ins.append(make(np.array(high, dtype)))
            yield c.out(c.node('Clip', *ins), dtype)


def cast_cases(draw):
    for source in FLOATS + INTS + ['bool']:
        for to in FLOATS + INTS + ['bool']:
            if source == to:
                continue
            c = Case('cast/%s/%s' % (source, to))
            x = edges(source)
            if source in FLOATS and to in INTS:  # beyond the range the answer is the processor's
                wide = x.astype('float64')
                fits = np.isfinite(wide) & (wide > np.iinfo(to).min - 1.0)
                x = x[fits & (wide < float(np.iinfo(to).max))]
            yield c.out(c.node('Cast', c.feed(x), to=to), to)


def pool_cases(draw):
    for dtype in FLOATS + ['int8', 'uint8']:
        for shape, attrs in (((1, 2, 9, 9), dict(kernel_shape=[2, 2], strides=[2, 2])),
                             ((1, 8, 9, 9), dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])),
                             ((2, 3, 7, 6), dict(kernel_shape=[3, 2], ceil_mode=1,
                                                 strides=[2, 2])),
                             ((2, 3, 20), dict(kernel_shape=[3], dilations=[2])),
                             ((1, 2, 4, 5, 6), dict(kernel_shape=[2, 2, 2]))):
            for op in ('MaxPool', 'AveragePool', 'LpPool', 'GlobalMaxPool', 'GlobalAveragePool'):
                if op != 'MaxPool' and dtype != 'float32':
                    continue
                if op == 'LpPool' and (len(shape) != 4 or 'ceil_mode' in attrs):
                    continue
                c = Case('pool/%s/%s/%s' % (op, dtype, 'x'.join(map(str, shape))))
                x = draw(c).some(shape, dtype, 0.08)
                if dtype in FLOATS:
                    x[0, 0] = -np.inf
                    x[0, 1].flat[: x[0, 1].size // 2] = np.nan
                used = {} if op.startswith('Global') else attrs
                if op == 'AveragePool' and dtype == 'float32' and 'dilations' in used:
                    used = {k: v for k, v in used.items() if k != 'dilations'}
                yield c.out(c.node(op, c.feed(x), **used), dtype)


def select_cases(draw):
    for dtype in FLOATS + INTS:
        c = Case('select/Where/%s' % dtype)
        d = draw(c)
        y = c.node('Where', c.feed(d.edge((6, 7), 'bool')), c.feed(d.edge((6, 7), dtype)),
                   c.feed(d.edge((7,), dtype)))
        yield c.out(y, dtype)
        for mode in ('none', 'add', 'mul', 'max', 'min'):
            c = Case('select/ScatterElements/%s/%s' % (mode, dtype))
            d = draw(c)
            at = c.feed(d.rng.permuted(np.tile(np.arange(6), (4, 1)).T, axis=0)[:4])
            y = c.node('ScatterElements', c.feed(d.edge((6, 4), dtype)), at,
                       c.feed(d.edge((4, 4), dtype)), axis=0, reduction=mode)
            yield c.out(y, dtype)
            c = Case('select/ScatterND/%s/%s' % (mode, dtype))
            d = draw(c)
            y = c.node('ScatterND', c.feed(d.edge((6, 4), dtype)),
                       c.feed(d.rng.permutation(6)[:3].reshape(3, 1)),
                       c.feed(d.edge((3, 4), dtype)), reduction=mode)
            yield c.out(y, dtype)
        if dtype in ('float32', 'float64', 'int16', 'int32', 'int64'):
            c = Case('select/Range/%s' % dtype)
            top = 9.0 if dtype in FLOATS else np.iinfo(dtype).max
            a = (np.array(v, dtype) for v in (top - 7, top, 2))
            yield c.out(c.node('Range', *(c.feed(v) for v in a)), dtype)
    for dtype in ('float32', 'float64', 'int32', 'uint32', 'int64', 'uint64'):
        for op in ('MatMul', 'Gemm'):
            if op == 'Gemm' and dtype.endswith('int64'):  # ONNX Runtime adds up in double
                continue
            c = Case('select/%s/%s' % (op, dtype))
            d = draw(c)
            ins = [c.feed(d.some((5, 6), dtype, 0.05)), c.feed(d.some((6, 7), dtype, 0.05))]
            if op == 'Gemm':
                ins.append(c.feed(d.some((7,), dtype, 0.1)))
            yield c.out(c.node(op, *ins), dtype)


ACTIVATIONS = [
    ('Relu', {}), ('LeakyRelu', {'alpha': 0.1}), ('Clip', (0, 6)), ('Clip', (-1, 1)),
    ('HardSigmoid', {}), ('HardSwish', {}), ('Sigmoid', {}), ('Tanh', {}), ('Elu', {}),
    ('Selu', {}), ('Softplus', {}), ('Mish', {}), ('Gelu', {}), ('PRelu', 0.25), ('Neg', {}),
    ('Abs', {}), ('MaxZero', {}), ('MinSix', {}), ('MulSigmoid', {}), ('AddScale', {}),
]


def activate(c, op, attrs, x, dtype='float32'):
    def number(v):
        return c.const(np.array(v, dtype))
    if op == 'Clip':
        return c.node('Clip', x, number(attrs[0]), number(attrs[1]))
    if op == 'PRelu':
        return c.node('PRelu', x, c.const(np.full((1,), attrs, dtype)))
    if op == 'MaxZero':
        return c.node('Max', x, number(0))
    if op == 'MinSix':
        return c.node('Min', c.node('Max', number(0), x), number(6))
    if op == 'MulSigmoid':
        return c.node('Mul', x, c.node('Sigmoid', x))
    if op == 'AddScale':
        return c.node('Mul', c.node('Add', x, number(3)), number(0.5))
    return c.node(op, x, **attrs)


CONVOLUTIONS = [
    ('3x3', (1, 16, 10, 10), (16, 16, 3, 3), dict(pads=[1, 1, 1, 1])),
    ('1x1', (1, 16, 9, 9), (32, 16, 1, 1), {}),
    ('depthwise', (1, 16, 12, 12), (16, 1, 3, 3), dict(group=16, pads=[1, 1, 1, 1])),
    ('stride', (2, 3, 15, 15), (8, 3, 3, 3), dict(strides=[2, 2])),
    ('5x5', (1, 4, 24, 40), (4, 4, 5, 5), dict(pads=[2, 2, 2, 2])),
    ('grouped', (1, 8, 9, 9), (16, 4, 3, 3), dict(group=2)),
    ('line', (1, 4, 30), (8, 4, 3), {}),
    ('volume', (1, 3, 6, 7, 8), (4, 3, 3, 3, 3), {}),
]


def fused_cases(draw):
    for kind, shape, filter_shape, attrs in CONVOLUTIONS:
        for op, values in ACTIVATIONS:
            for extra in ('', 'bias', 'residual', 'norm'):
                if extra and op not in ('Relu', 'Clip', 'HardSwish', 'MaxZero', 'AddScale'):
                    continue
                if extra == 'norm' and len(shape) != 4:
                    continue
                c = Case('conv/%s/%s%s/%s' % (kind, op, values if op == 'Clip' else '',
                                              extra or 'plain'), zeros=False, sums=1e-4)
                d = draw(c)
                x = d.some(shape, 'float32', 0.01)
                ins = [c.feed(x), c.const(d.plain(filter_shape))]
                channels = filter_shape[0]
                if extra == 'bias':
                    ins.append(c.const(d.plain((channels,))))
                y = c.node('Conv', *ins, **attrs)
                if extra == 'norm':
                    stats = [c.const(d.plain((channels,))) for _ in range(3)]
                    stats.append(c.const(abs(d.plain((channels,))) + np.float32(0.5)))
                    y = c.node('BatchNormalization', y, *stats)
                if extra == 'residual':
                    y = c.node('Add', y, c.node('Conv', *ins, **attrs))
                yield c.out(activate(c, op, values, y), 'float32')
    for kind, shape, filter_shape, attrs in (
            ('plain', (1, 8, 5, 5), (8, 16, 3, 3), {}), ('1x1', (1, 3, 6, 6), (3, 5, 1, 1), {}),
            ('stride', (1, 4, 5, 5), (4, 8, 2, 2), dict(strides=[2, 2])),
            ('grouped', (2, 8, 4, 4), (8, 2, 3, 3), dict(group=4))):
        for op, values in ACTIVATIONS:
            c = Case('conv/transposed/%s/%s%s' % (kind, op, values if op == 'Clip' else ''),
                     zeros=False, sums=1e-4)
            d = draw(c)
            channels = filter_shape[1] * attrs.get('group', 1)
            y = c.node('ConvTranspose', c.feed(d.some(shape, 'float32', 0.01)),
                       c.const(d.plain(filter_shape)),
                       c.const(d.some((channels,), 'float32', 0.3)), **attrs)
            yield c.out(activate(c, op, values, y), 'float32')
    for kind, m, k, n, constant in (('small', 5, 7, 9, 1), ('wide', 40, 64, 96, 1),
                                    ('row', 1, 64, 50, 1), ('free', 12, 16, 20, 0)):
        for op, values in ACTIVATIONS:
            for form in ('MatMul', 'bias', 'Gemm', 'residual'):
                c = Case('matmul/%s/%s%s/%s' % (kind, op, values if op == 'Clip' else '', form),
                         zeros=False, sums=1e-4)
                d = draw(c)
                x = c.feed(d.some((m, k), 'float32', 0.01))
                w = (c.const if constant else c.feed)(d.plain((k, n)))
                b = c.const(d.plain((n,)))
                if form == 'Gemm':
                    y = c.node('Gemm', x, w, b)
                else:
                    y = c.node('MatMul', x, w)
                    if form == 'bias':
                        y = c.node('Add', y, b)
                    if form == 'residual':
                        y = c.node('Add', y, c.feed(d.some((m, n), 'float32', 0.02)))
                yield c.out(activate(c, op, values, y), 'float32')


def chain_cases(draw):
    """Element-wise chains as exporters write them: identities, and what fused loops join."""
    identities = {
        'add_zero': lambda c, x, k: c.node('Add', x, k(0.0)),
        'add_minus_zero': lambda c, x, k: c.node('Add', x, k(-0.0)),
        'sub_zero': lambda c, x, k: c.node('Sub', x, k(0.0)),
        'zero_minus': lambda c, x, k: c.node('Sub', k(0.0), x),
        'mul_one': lambda c, x, k: c.node('Mul', x, k(1.0)),
        'mul_minus_one': lambda c, x, k: c.node('Mul', x, k(-1.0)),
        'mul_zero': lambda c, x, k: c.node('Mul', x, k(0.0)),
        'div_one': lambda c, x, k: c.node('Div', x, k(1.0)),
        'div_three': lambda c, x, k: c.node('Div', x, k(3.0)),
        'div_tiny': lambda c, x, k: c.node('Div', x, k(1e-40)),
        'one_over': lambda c, x, k: c.node('Div', k(1.0), x),
        'neg_neg': lambda c, x, k: c.node('Neg', c.node('Neg', x)),
        'neg': lambda c, x, k: c.node('Neg', x),
        'minus_itself': lambda c, x, k: c.node('Sub', x, x),
        'over_itself': lambda c, x, k: c.node('Div', x, x),
        'pow_one': lambda c, x, k: c.node('Pow', x, k(1.0)),
        'pow_two': lambda c, x, k: c.node('Pow', x, k(2.0)),
        'pow_half': lambda c, x, k: c.node('Pow', x, k(0.5)),
        'pow_minus_half': lambda c, x, k: c.node('Pow', x, k(-0.5)),
        'pow_minus_one': lambda c, x, k: c.node('Pow', x, k(-1.0)),
        'pow_three': lambda c, x, k: c.node('Pow', x, k(3.0)),
        'pow_zero': lambda c, x, k: c.node('Pow', x, k(0.0)),
        'round': lambda c, x, k: c.node('Round', x),
        'ceil': lambda c, x, k: c.node('Ceil', x),
        'floor': lambda c, x, k: c.node('Floor', x),
        'relu_relu': lambda c, x, k: c.node('Relu', c.node('Relu', x)),
        'abs_neg': lambda c, x, k: c.node('Neg', c.node('Abs', x)),
        'scale_chain': lambda c, x, k: c.node('Mul', c.node('Mul', x, k(1e30)), k(1e-30)),
        'shift_chain': lambda c, x, k: c.node('Sub', c.node('Add', x, k(1e30)), k(1e30)),
        'max_min': lambda c, x, k: c.node('Min', c.node('Max', x, k(-1.0)), k(1.0)),
        'where_nan': lambda c, x, k: c.node('Where', c.node('IsNaN', x), k(0.0), x),
        'sqrt_mul': lambda c, x, k: c.node('Mul', c.node('Sqrt', x), c.node('Sqrt', x)),
        'softsign': lambda c, x, k: c.node('Div', x, c.node('Add', c.node('Abs', x), k(1.0))),
        'sigmoid': lambda c, x, k: c.node('Reciprocal', c.node(
            'Add', c.node('Exp', c.node('Neg', x)), k(1.0))),
        'hard_swish': lambda c, x, k: c.node('Div', c.node('Mul', x, c.node(
            'Clip', c.node('Add', x, k(3.0)), k(0.0), k(6.0))), k(6.0)),
        'gelu': lambda c, x, k: c.node('Mul', c.node('Mul', x, c.node('Add', c.node(
            'Erf', c.node('Div', x, k(1.41421356))), k(1.0))), k(0.5)),
        'cast_back': lambda c, x, k: c.node('Cast', c.node('Cast', x, to='float64'),
                                            to='float32'),
        'min_self': lambda c, x, k: c.node('Min', x, x),
        'sum_one': lambda c, x, k: c.node('Sum', x),
        'mean_one': lambda c, x, k: c.node('Mean', x),
        'expand': lambda c, x, k: c.node('Expand', x, c.const(np.array([1]))),
        'prelu': lambda c, x, k: c.node('PRelu', x, k(0.0)),
        'leaky_zero': lambda c, x, k: c.node('LeakyRelu', x, alpha=0.0),
        'hard_sigmoid_flat': lambda c, x, k: c.node('HardSigmoid', x, alpha=0.0),
    }
    tails = {
        'plain': lambda c, x, k: x,
        'over': lambda c, x, k: c.node('Div', k(1.0), x),
        'abs': lambda c, x, k: c.node('Add', c.node('Exp', x), x),
        'relu': lambda c, x, k: c.node('Relu', x),
        'pair': lambda c, x, k: c.node('Mul', c.node('Tanh', x), c.node('Sigmoid', x)),
    }
    values = edges('float32')
    for name, head in identities.items():
        for tail_name, tail in tails.items():
            c = Case('chain/%s/%s' % (name, tail_name), zeros=name != 'gelu',
                     rtol=1e-4 if name == 'gelu' else None)
            if name == 'gelu' and tail_name == 'over':  # shows that sign
                continue
            x = draw(c).rng.permutation(np.concatenate([values] * 2))

            def number(v, c=c):
                return c.const(np.array(v, 'float32'))
            yield c.out(tail(c, head(c, c.feed(x), number), number), 'float32')
    yield from norm_cases(draw)


def norm_cases(draw):
    """Normalisations whose statistics or operands are at the edge."""
    for kind in ('plain', 'zero_variance', 'inf_scale', 'nan_mean', 'zero_scale', 'huge'):
        for conv in (0, 1):
            c = Case('norm/batch/%s/%d' % (kind, conv), zeros=False, sums=1e-4)
            d = draw(c)
            x = c.feed(d.some((2, 4, 5, 5), 'float32', 0.03))
            if conv:
                x = c.node('Conv', x, c.const(d.plain((4, 4, 3, 3))))
            stats = [d.plain(4), d.plain(4), d.plain(4), abs(d.plain(4)) + np.float32(0.5)]
            if kind == 'zero_variance':
                stats[3][1] = 0
            if kind == 'inf_scale':
                stats[0][1] = np.inf
            if kind == 'nan_mean':
                stats[2][1] = np.nan
            if kind == 'zero_scale':
                stats[0][1] = 0
            if kind == 'huge':
                stats[3][1] = np.inf
            y = c.node('BatchNormalization', x, *map(c.const, stats),
                       epsilon=0.0 if kind == 'zero_variance' else 1e-5)
            yield c.out(y, 'float32')
    for op in ('LayerNormalization', 'InstanceNormalization', 'LpNormalization',
               'MeanVarianceNormalization', 'LRN'):
        c = Case('norm/%s' % op, zeros=False, sums=1e-4)
        d = draw(c)
        x = d.some((2, 4, 5, 5), 'float32', 0.01)
        x[0, 0] = 2
        if op == 'LRN':  # ONNX Runtime's running sums keep a NaN that leaves them
            x = np.nan_to_num(x, nan=3, posinf=4, neginf=-4)
        ins = [c.feed(x)]
        if op == 'LayerNormalization':
            ins += [c.const(d.plain(5)), c.const(d.plain(5))]
        if op == 'InstanceNormalization':
            ins += [c.const(d.plain(4)), c.const(d.plain(4))]
        yield c.out(c.node(op, *ins, **({'size': 3} if op == 'LRN' else {})), 'float32')


def fill_cases(draw):
    """Constants that a double does not hold, alone and behind operators that passes fold."""
    for dtype in INTS:
        for value in edges(dtype):
            for form in ('given', 'fed', 'sum'):
                c = Case('fill/%s/%s/%s' % (dtype, value, form), opset=20)
                shape = np.array([2, 3])
                fill = ('ConstantOfShape', c.feed(shape) if form == 'fed' else c.const(shape))
                y = c.node(*fill, value=np.array([value], dtype))
                if form != 'fed':
                    y = c.node('Add' if form == 'sum' else 'Max', y, c.feed(np.array(1, dtype)))
                yield c.out(y, dtype)


RESIZED = ('nearest', 'nearest', 'nearest', 'linear', 'cubic')
PLACES = ('half_pixel', 'align_corners', 'asymmetric', 'pytorch_half_pixel',
          'half_pixel_symmetric')
ROUNDINGS = ('floor', 'ceil', 'round_prefer_floor', 'round_prefer_ceil')


def resize_cases(draw):
    """Sizes and positions that float rounds to another element than double does."""
    for k in range(600):
        c = Case('resize/%d' % k, zeros=False, sums=1e-5, opset=(9, 10, 11, 13, 18, 19)[k % 6])
        rng = draw(c).rng
        mode = str(rng.choice(RESIZED if c.opset > 10 else RESIZED[:4]))
        rank = int(rng.choice([2, 4] if mode == 'cubic' else [1, 2, 3, 4]))
        moves = min(rank, 2)
        shape = [1] * (rank - moves) + rng.integers(1, 14, moves).tolist()
        still = np.ones(rank - moves)
        scales = np.append(still, rng.integers(2 if c.opset > 9 else 10, 30, moves) / 10)
        x = c.feed(np.arange(np.prod(shape), dtype='float32').reshape(shape))
        if c.opset <= 10:
            op = 'Upsample' if c.opset == 9 else 'Resize'
            yield c.out(c.node(op, x, c.const(scales.astype('float32')), mode=mode), 'float32')
            continue
        attrs = dict(mode=mode, nearest_mode=str(rng.choice(ROUNDINGS)),
                     coordinate_transformation_mode=str(rng.choice(PLACES)))
        place = attrs['coordinate_transformation_mode']
        # Interpolated by scales, heddle's corners are those of ONNX's definition.
        if (c.opset < 19 and place == PLACES[4]) or (place == 'align_corners' and
                                                     mode != 'nearest'):
            attrs['coordinate_transformation_mode'] = PLACES[0]
        by_size, nothing = rng.random() < 0.5, c.const(np.zeros(0, 'float32'))
        ins = [x, nothing, nothing if by_size else c.const(scales.astype('float32'))]
        if by_size:
            ins.append(c.const(np.append(still, rng.integers(1, 15, moves)).astype('int64')))
            if c.opset >= 18:
                policies = ('stretch', 'not_larger', 'not_smaller')
                attrs['keep_aspect_ratio_policy'] = str(rng.choice(policies))
        if c.opset >= 18 and mode != 'nearest':
            attrs['antialias'] = int(rng.integers(0, 2))
        yield c.out(c.node('Resize', *ins, **attrs), 'float32')


def rank_cases(draw):
    """Operands of unusual ranks, which the model does not tell."""
    for rank in range(6):
        shape = (3, 4, 2, 3, 2)[:rank]
        channels = shape[1] if rank > 1 else 1
        for k, (op, more) in enumerate((
                ('NonZero', []), ('MeanVarianceNormalization', []), ('Compress', []),
                ('BatchNormalization', [(channels,)] * 4), ('PRelu', [()]), ('PRelu', [(1,)]),
                ('PRelu', [(1, 1)]), ('PRelu', [shape[-1:]]))):
            c = Case('rank/%d/%s/%d' % (rank, op, k), zeros=False, sums=1e-5)
            d = draw(c)
            ins = [c.node('Reshape', c.feed(d.plain((int(np.prod(shape)),))),
                          c.feed(np.array(shape, 'int64')))]
            ins += [c.const(abs(d.plain(s)) + np.float32(0.5)) for s in more]
            if op == 'Compress':
                ins.append(c.const(np.array([True])))
            yield c.out(c.node(op, *ins), 'int64' if op == 'NonZero' else 'float32')


def failing_cases(draw):
    """Integers divided by zero, alone, fused and with a constant on either side: one error."""
    for op in ('Div', 'Mod'):
        for dtype in INTS:
            for form in ('fed', 'constant', 'scalar', 'chain'):
                c = Case('zero/%s/%s/%s' % (op, dtype, form))
                c.fails = True
                x = draw(c).some((4, 5), dtype, 0.1)
                y = np.array(0, dtype) if form == 'scalar' else (x * 0 + 3).astype(dtype)
                y.flat[-1] = 0
                a = c.feed(x)
                b = c.const(y) if form in ('constant', 'scalar') else c.feed(y)
                if form == 'chain':
                    a, b = c.node('Add', a, a), c.node('Mul', b, b)
                yield c.out(c.node(op, a, b), dtype)


FAMILIES = [unary_cases, binary_cases, variadic_cases, reduce_cases, order_cases, clip_cases,
            cast_cases, pool_cases, select_cases, fused_cases, chain_cases, norm_cases, fill_cases,
            resize_cases, rank_cases, failing_cases]


def all_cases(seed):
    for family in FAMILIES:
        yield from family(lambda c: Draw(seed, c.name))


# ---- answers and comparison ----------------------------------------------------------------------


def answers(case):
    """Lists of outputs that are right, or the reason why ONNX Runtime has none."""
    import onnxruntime as ort
    ort.set_default_logger_severity(4)
    found, model, feeds = [], case.model().SerializeToString(), case.fed()
    levels = ort.GraphOptimizationLevel
    for level in (levels.ORT_DISABLE_ALL, levels.ORT_ENABLE_ALL):
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.intra_op_num_threads = 1
        try:
            session = ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])
            found.append(session.run(None, feeds))
        except Exception as e:  # noqa: the classes have no common base
            if level == levels.ORT_DISABLE_ALL:
                if 'NOT_IMPLEMENTED' not in str(e):
                    return None, str(e)
                why = str(e)
    if 'MaxPool' in case.name and case.feeds['x0'].dtype.kind == 'f' and found:
        found += least_is_infinite(nan_wins(case, found[0])) + least_is_infinite(found[0])
    # ONNX's evaluator is too slow there, or wrong.
    if case.name.split('/')[0] in ('conv', 'matmul', 'norm', 'pool', 'resize', 'rank'):
        return (found, None) if found else (None, why)
    from onnx.reference import ReferenceEvaluator
    try:
        with np.errstate(all='ignore'):
            more = [np.asarray(v) for v in ReferenceEvaluator(case.model()).run(None, feeds)]
        found.append(more)
    except Exception as e:  # noqa
        return (found, None) if found else (None, '%s; %s' % (why, e))
    return found, None


def least_is_infinite(wants):
    """Some of ONNX Runtime's kernels begin with the least finite number, others with -infinity."""
    return [wants, [np.where(w == np.finfo(w.dtype).min, np.array(-np.inf, w.dtype), w)
                    for w in wants]]


def nan_wins(case, wants):
    """The answers, with NaN where a window has one."""
    import copy
    import onnxruntime as ort
    flags = copy.copy(case)
    flags.feeds = {k: np.isnan(v).astype('float32') for k, v in case.feeds.items()}
    flags.outputs = [(name, 'float32') for name, _ in case.outputs]
    session = ort.InferenceSession(flags.model().SerializeToString(),
                                   providers=['CPUExecutionProvider'])
    found = session.run(None, flags.fed())
    return [np.where(f > 0, np.array(np.nan, w.dtype), w) for f, w in zip(found, wants)]


def differences(got, wants, case):
    """What is different, in words; None when one of `wants` has the class at every element."""
    first = wants[0]
    wants = [w for w in wants if w.shape == first.shape]
    if got.shape != first.shape:
        return 'shape %s, not %s' % (got.shape, first.shape)
    if first.dtype.kind in 'OSU':
        bad = [(str(g), str(w)) for g, w in zip(got.ravel(), first.ravel()) if str(g) != str(w)]
        return 'strings %s' % bad[:3] if bad else None
    if got.dtype != first.dtype:
        return 'type %s, not %s' % (got.dtype, first.dtype)
    fine = np.zeros(got.shape, bool)
    for want in wants:
        if want.dtype.kind != 'f':
            fine |= got == want
            if want.dtype.itemsize == 8 and '/ReduceMean/' in case.name:  # added up in double
                fine |= abs(got - want.astype('float64')) <= 1e-12 * abs(want.astype('float64'))
            continue
        rtol = case.rtol or {'float16': 4e-3, 'float32': 2e-5, 'float64': 1e-9}[want.dtype.name]
        g, w = got.astype('float64'), want.astype('float64')
        tiny = float(np.finfo(want.dtype).tiny)
        with np.errstate(all='ignore'):
            same = (np.isnan(g) & np.isnan(w)) | (g == w)
            size = np.abs(w)
            near = np.abs(g - w) <= rtol * size + 2 * tiny
            if case.sums:
                most = np.max(np.where(np.isfinite(w), size, 0), initial=0)
                near |= np.abs(g - w) <= case.sums * most
            near &= np.isfinite(g) & np.isfinite(w)
            if case.zeros:
                near &= ~((g == 0) & (w == 0) & (np.signbit(g) != np.signbit(w)))
                same &= ~((g == 0) & (w == 0) & (np.signbit(g) != np.signbit(w)))
        fine |= same | near
    if fine.all():
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.argmin(fine.reshape(-1))), fine.shape))
    return '%d of %d elements, first at %s: %s, not %s' % (
        (~fine).sum(), fine.size, list(at), got[at], ' or '.join(str(w[at]) for w in wants))


def run_heddle(heddle, folder, model, feeds, level, threads, more=()):
    out = os.path.join(folder, 'out')
    for name in os.listdir(out) if os.path.isdir(out) else []:
        os.remove(os.path.join(out, name))
    os.makedirs(out, exist_ok=True)
    done = subprocess.run([heddle, 'run', model, '--opt', str(level), '--threads', str(threads),
                           '--out', out, '--feed-npz', feeds, *more], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)
    if done.returncode:
        return None, 'exit status %d: %s' % (done.returncode, done.stderr.strip()[-300:])
    values = []
    while os.path.exists(os.path.join(out, 'out_%d.npy' % len(values))):
        values.append(np.load(os.path.join(out, 'out_%d.npy' % len(values)), allow_pickle=True))
    return values, None


class Recorded:
    """A case of a file that record() wrote; `rtol`, `sums` and `zeros` as Case has them."""

    def __init__(self, name, parts):
        self.name, self.bytes = name, parts['model'].tobytes()
        self.zeros, self.rtol, self.sums, self.fails = (float(v) for v in parts['how'])
        self.feeds = {k[5:]: v for k, v in parts.items() if k.startswith('feed|')}
        kinds = sorted({k.split('|')[1] for k in parts if k.startswith('want|')})
        first = [parts['want|0|%d' % k] for k in range(len(parts))
                 if 'want|0|%d' % k in parts]
        self.wants = [[parts.get('want|%s|%d' % (kind, k), v) for k, v in enumerate(first)]
                      for kind in kinds]


def compare(name, model, feeds, wants, case, heddle):
    """What is wrong, for each way to run it."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        path, fed = os.path.join(folder, 'm.onnx'), os.path.join(folder, 'f.npz')
        pathlib.Path(path).write_bytes(model)
        np.savez(fed, **feeds)
        for level, threads in RUNS:
            values, error = run_heddle(heddle, folder, path, fed, level, threads)
            if case.fails:
                if error is None or not error.startswith('exit status 1: '):
                    wrong.append('level %d, %d threads: no error, or a crash: %s' % (
                        level, threads, error))
                continue
            if error:
                wrong.append('level %d, %d threads: %s' % (level, threads, error))
                continue
            for k, value in enumerate(values):
                what = differences(value, [w[k] for w in wants], case)
                if what:
                    wrong.append('level %d, %d threads, output %d: %s' % (level, threads, k, what))
                    break
    return wrong


def check(case, heddle):
    """(name, what is wrong or None, why it was not asked or None)"""
    if isinstance(case, Recorded):
        return (case.name, compare(case.name, case.bytes, case.feeds, case.wants, case, heddle),
                None)
    wants, why = ([], None) if case.fails else answers(case)
    if wants is None:
        return case.name, None, why
    model = case.model().SerializeToString()
    return case.name, compare(case.name, model, case.fed(), wants, case, heddle), None


def record(cases, path):
    """An .npz with model, feeds and answers of each case, for replay() without ONNX Runtime."""
    packed = {}
    for case in cases:
        wants, _ = ([], None) if case.fails else answers(case)
        if wants is None:
            continue
        part = {'model': np.frombuffer(case.model().SerializeToString(), 'uint8'),
                'how': np.array([case.zeros, case.rtol or 0, case.sums or 0, case.fails])}
        part.update(('feed|' + k, v) for k, v in case.fed().items())
        for kind, want in enumerate(wants):
            for k, v in enumerate(want):
                if kind == 0 or v.tobytes() != wants[0][k].tobytes():
                    part['want|%d|%d' % (kind, k)] = v
        packed.update(('%s|%s' % (case.name, k), v) for k, v in part.items())
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as z:
        for name in sorted(packed):
            buffer = io.BytesIO()
            np.save(buffer, packed[name])
            entry = zipfile.ZipInfo(name + '.npy', (1980, 1, 1, 0, 0, 0))  # the same bytes again
            z.writestr(entry, buffer.getvalue(), zipfile.ZIP_DEFLATED)


def replay(path):
    """The cases of a file that record() wrote."""
    parts = {}
    with np.load(path) as data:
        for name in data.files:
            case, part = name.split('|', 1)
            parts.setdefault(case, {})[part] = data[name]
    return [Recorded(name, each) for name, each in parts.items()]


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--heddle', default='build/release/heddle')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--only', default='*')
    p.add_argument('--every', type=int, default=1, help='take each N-th case alone')
    p.add_argument('--jobs', type=int, default=2)
    p.add_argument('--record', metavar='FILE')
    p.add_argument('--replay', metavar='FILE')
    p.add_argument('-v', action='store_true', help='also say which cases were not asked')
    a = p.parse_args()
    cases = replay(a.replay) if a.replay else all_cases(a.seed)
    cases = [c for c in cases if fnmatch.fnmatch(c.name, a.only)][::a.every]
    if a.record:
        record(cases, a.record)
        return 0
    passed = failed = unasked = 0
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for name, wrong, why in pool.map(lambda c: check(c, os.path.abspath(a.heddle)), cases):
            if wrong:
                failed += 1
                print('%s\n  %s' % (name, '\n  '.join(wrong)), flush=True)
            elif why:
                unasked += 1
                if a.v:
                    print('%s: not asked: %s' % (name, why.splitlines()[0][:160]))
            else:
                passed += 1
    print('%d passed, %d failed, %d not asked' % (passed, failed, unasked))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
