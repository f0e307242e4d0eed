"""Pools, convolutions and products with what passes fuse behind them, chains, normalisations."""
import numpy as np

from .case import FLOATS, Case, edges

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
                c = Case('pool/%s/%s/%s' % (op, dtype, 'x'.join(map(str, shape))))
                x = draw(c).some(shape, dtype, 0.08)
                if dtype in FLOATS:
                    x[0, 0] = -np.inf
                    x[0, 1].flat[: x[0, 1].size // 2] = np.nan
                used = {} if op.startswith('Global') else attrs
                yield c.out(c.node(op, c.feed(x), **used), dtype)


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
        'hard_swish_first': lambda c, x, k: c.node('Mul', x, c.node('Div', c.node(
            'Clip', c.node('Add', x, k(3.0)), k(0.0), k(6.0)), k(6.0))),
        'hard_swish_gate': lambda c, x, k: c.node('Mul', c.node(
            'HardSigmoid', x, alpha=1 / 6, beta=0.5), x),
        'hard_swish_node': lambda c, x, k: c.node('HardSwish', x),
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


def norm_cases(draw):
    """Normalisations whose statistics or operands are at the edge."""
    for kind in ('plain', 'zero_variance', 'inf_scale', 'nan_mean', 'zero_scale', 'huge'):
        for conv in (0, 1):
            c = Case('norm/batch/%s/%d' % (kind, conv), sums=1e-4)
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
        c = Case('norm/%s' % op, sums=1e-4)
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


FAMILIES = [pool_cases, fused_cases, chain_cases, norm_cases]
