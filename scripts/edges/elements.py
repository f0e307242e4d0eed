"""Operators that compute each element by itself."""
import numpy as np

from .case import FLOATS, INTS, Case, edges

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
# ONNX Runtime's slope of hard swish, a sixth, is a float; of GELU's tail little is left.
LOOSE = {'HardSwish/float64': 1e-6, 'Gelu/float32': 1e-4}
# The sign of a zero depends on the type in ONNX Runtime, or heddle rounds another way to zero.
ANY_ZERO = ('Selu', 'Celu', 'Gelu')


def unary_cases(draw):
    for op, dtypes in UNARY.items():
        for dtype in dtypes:
            c = Case('unary/%s/%s' % (op, dtype), rtol=LOOSE.get(op + '/' + dtype),
                     zeros=op not in ANY_ZERO)
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
            # Which zero is greater depends on the vectors' length; PRelu adds two products.
            chance = op in ('Max', 'Min', 'PRelu')
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
                c = Case('variadic/%s/%s/%d' % (op, dtype, count))
                d = draw(c)
                ins = [c.feed(d.edge((7, 9), dtype)) for _ in range(count)]
                yield c.out(c.node(op, *ins), dtype)


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


FAMILIES = [unary_cases, binary_cases, variadic_cases, clip_cases, cast_cases, fill_cases,
            failing_cases]
