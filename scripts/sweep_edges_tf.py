#!/usr/bin/env python3
"""Feeds generated TensorFlow graphs with values at the edges and compares heddle with TensorFlow.

  sweep_edges_tf.py --heddle build/release/heddle [--seed N] [--only GLOB] [-v]

As sweep_edges.py, which has the values and the comparison, does with ONNX models. Needs tensorflow
and numpy in the Python that runs this.
"""
import argparse
import fnmatch
import os
import pathlib
import sys
import tempfile

os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import sweep_edges as sweep  # noqa: E402
from edges import case as edge  # noqa: E402
from edges.answers import differences  # noqa: E402
from edges.case import FED_AS, FLOATS, INTS  # noqa: E402



def edges(dtype):
    """Without denormal numbers, which TensorFlow's threads take for zero."""
    x = edge.edges(dtype)
    if dtype not in FLOATS:
        return x
    return x[(x == 0) | ~(abs(x.astype('float64')) < np.finfo(dtype).tiny)]


def pairs(dtype):
    a, b = np.meshgrid(edges(dtype), edges(dtype))
    return a.ravel(), b.ravel()


class Case:
    """`make` takes tensors, fed or constant, and gives tensors."""

    def __init__(self, name, make, fed, constants=(), zeros=True, rtol=None, sums=None):
        self.name, self.make, self.fed, self.constants = name, make, fed, constants
        self.zeros, self.rtol, self.sums = zeros, rtol, sums

    def graph(self):
        graph = tf.Graph()
        with graph.as_default():
            operands = []
            for k, v in enumerate(self.fed):
                dtype = v.dtype.name
                x = tf.compat.v1.placeholder(FED_AS.get(dtype, dtype), v.shape, 'x%d' % k)
                operands.append(tf.cast(x, dtype) if dtype in FED_AS else x)
            operands += [tf.constant(c) for c in self.constants]
            made = self.make(*operands)
            outs = []
            for k, y in enumerate(made if isinstance(made, (tuple, list)) else [made]):
                y = tf.cast(y, FED_AS[y.dtype.name]) if y.dtype.name in FED_AS else y
                outs.append(tf.identity(y, 'out%d' % k))
        return graph, outs

    def feeds(self):
        return {'x%d' % k: v.astype(FED_AS.get(v.dtype.name, v.dtype))
                for k, v in enumerate(self.fed)}


UNARY = {
    'abs': (tf.abs, FLOATS + INTS[:4]), 'negative': (tf.negative, FLOATS + INTS[:4]),
    'sign': (tf.sign, FLOATS + ['int32', 'int64']), 'ceil': (tf.math.ceil, FLOATS),
    'floor': (tf.floor, FLOATS), 'round': (tf.round, FLOATS), 'rint': (tf.math.rint, FLOATS),
    'sqrt': (tf.sqrt, FLOATS), 'rsqrt': (tf.math.rsqrt, FLOATS[:2]),
    'reciprocal': (tf.math.reciprocal, FLOATS), 'exp': (tf.exp, FLOATS), 'log': (tf.math.log,
                                                                                FLOATS),
    'log1p': (tf.math.log1p, FLOATS[:2]), 'tanh': (tf.tanh, FLOATS), 'erf': (tf.math.erf,
                                                                          FLOATS[:1]),
    'sigmoid': (tf.sigmoid, FLOATS), 'relu': (tf.nn.relu, FLOATS + INTS), 'relu6':
    (tf.nn.relu6, FLOATS + INTS), 'leaky_relu': (tf.nn.leaky_relu, FLOATS), 'elu':
    (tf.nn.elu, FLOATS), 'selu': (tf.nn.selu, FLOATS), 'softplus': (tf.nn.softplus, FLOATS[:2]),
    'softsign': (tf.nn.softsign, FLOATS[:2]), 'is_nan': (tf.math.is_nan, FLOATS),
    'is_inf': (tf.math.is_inf, FLOATS), 'is_finite': (tf.math.is_finite, FLOATS),
    'square': (tf.square, FLOATS + INTS), 'invert': (tf.bitwise.invert, INTS),
    'clip': (lambda x: tf.clip_by_value(x, tf.cast(2, x.dtype), tf.cast(100, x.dtype)),
             FLOATS + INTS), 'population_count': (
                 lambda x: tf.raw_ops.PopulationCount(x=x), INTS),
}
CHANCE = ('relu', 'relu6', 'clip', 'maximum', 'minimum', 'selu')  # of the sign of zeros


def floor_defined(a, b):
    return b != 0


def any_pair(a, b):
    return np.ones(a.shape, bool)


def narrow_shift(a, b):
    return (b >= 0) & (b < a.dtype.itemsize * 8)


BINARY = {
    'add': (tf.add, FLOATS + INTS, any_pair), 'subtract': (tf.subtract, FLOATS + INTS, any_pair),
    'multiply': (tf.multiply, FLOATS + INTS, any_pair),
    'realdiv': (tf.realdiv, FLOATS, any_pair),
    'truncatediv': (tf.truncatediv, INTS, floor_defined),
    'floordiv': (tf.math.floordiv, FLOATS + INTS, floor_defined),
    'floormod': (tf.math.floormod, FLOATS[:2] + INTS, floor_defined),
    'maximum': (tf.maximum, FLOATS + INTS, any_pair),
    'minimum': (tf.minimum, FLOATS + INTS, any_pair), 'pow': (tf.pow, FLOATS, any_pair),
    'less': (tf.less, FLOATS + INTS, any_pair),
    'less_equal': (tf.less_equal, FLOATS + INTS, any_pair),
    'greater': (tf.greater, FLOATS + INTS, any_pair),
    'greater_equal': (tf.greater_equal, FLOATS + INTS, any_pair),
    'equal': (tf.equal, FLOATS + INTS, any_pair),
    'not_equal': (tf.not_equal, FLOATS + INTS, any_pair),
    'left_shift': (tf.bitwise.left_shift, INTS, narrow_shift),
    'right_shift': (tf.bitwise.right_shift, INTS, narrow_shift),
    'squared_difference': (tf.math.squared_difference, FLOATS[:2] + ['int32', 'int64'], any_pair),
}
REDUCE = {
    'max': tf.reduce_max, 'min': tf.reduce_min, 'sum': tf.reduce_sum, 'mean': tf.reduce_mean,
    'prod': tf.reduce_prod, 'argmax': tf.argmax, 'argmin': tf.argmin, 'cumsum': tf.cumsum,
}
SEGMENT = {
    'segment_max': tf.math.segment_max, 'segment_min': tf.math.segment_min,
    'segment_sum': tf.math.segment_sum,
    'unsorted_segment_max': lambda x, i: tf.math.unsorted_segment_max(x, i, 4),
    'unsorted_segment_min': lambda x, i: tf.math.unsorted_segment_min(x, i, 4),
    'unsorted_segment_sum': lambda x, i: tf.math.unsorted_segment_sum(x, i, 4),
}


def element_cases(draw):
    for op, (fn, dtypes) in UNARY.items():
        for dtype in dtypes:
            name = 'unary/%s/%s' % (op, dtype)
            x = draw(name).rng.permutation(np.concatenate([edges(dtype)] * 2))
            yield Case(name, fn, [x], zeros=op not in CHANCE)
    for op, (fn, dtypes, fine) in BINARY.items():
        for dtype in dtypes:
            a, b = pairs(dtype)
            with np.errstate(all='ignore'):
                keep = fine(a, b) if dtype in INTS else any_pair(a, b)
            name = 'binary/%s/%s' % (op, dtype)
            order = draw(name).rng.permutation(np.flatnonzero(keep))
            yield Case(name, fn, [a[order], b[order]], zeros=op not in CHANCE)
            for value in (0, 1, 2) + ((-1, -0.0, 0.5, np.nan, np.inf) if dtype in FLOATS else ()):
                k, x = np.array(value, dtype), edges(dtype)
                right = x[fine(x, np.full(x.shape, k))] if dtype in INTS else x
                if len(right):
                    yield Case('%s/right_%s' % (name, value), fn, [right], [k],
                               zeros=op not in CHANCE)
                left = x[fine(np.full(x.shape, k), x)] if dtype in INTS else x
                yield Case('%s/left_%s' % (name, value), lambda x, k, fn=fn: fn(k, x), [left], [k],
                           zeros=op not in CHANCE)


def group_cases(draw):
    for dtype in FLOATS[:2] + INTS:
        for op, fn in REDUCE.items():
            for axis in (0, 1):
                name = 'reduce/%s/%s/%d' % (op, dtype, axis)
                x = draw(name).some((9, 11), dtype, 0.05 if op in ('sum', 'mean') else 0.1)
                if dtype in FLOATS:
                    x[0], x[1], x[2] = -np.inf, np.inf, np.nan
                yield Case(name, lambda x, fn=fn, axis=axis: fn(x, axis=axis), [x], zeros=False)
        for op, fn in SEGMENT.items():
            name = 'segment/%s/%s' % (op, dtype)
            x = draw(name).some((6, 5), dtype, 0.0 if dtype in FLOATS else 0.2)
            yield Case(name, fn, [x], [np.array([0, 0, 1, 1, 1, 3], 'int32')], zeros=False)
        name = 'order/top_k/%s' % dtype
        x = draw(name).some((5, 9), dtype, 0.0 if dtype in FLOATS else 0.3)
        yield Case(name, lambda x: tuple(tf.math.top_k(x, 4)), [x], zeros=False)
        for to in FLOATS + INTS:
            x = edges(dtype)
            if dtype in FLOATS and to in INTS:
                wide = x.astype('float64')
                x = x[np.isfinite(wide) & (wide > np.iinfo(to).min - 1.0) &
                      (wide < float(np.iinfo(to).max))]
            if to != dtype:
                yield Case('cast/%s/%s' % (dtype, to), lambda x, to=to: tf.cast(x, to), [x])


def network_cases(draw):
    last = {
        'relu': tf.nn.relu, 'relu6': tf.nn.relu6, 'leaky_relu': tf.nn.leaky_relu,
        'sigmoid': tf.sigmoid, 'tanh': tf.tanh, 'elu': tf.nn.elu, 'swish': tf.nn.silu,
        'maximum': lambda x: tf.maximum(x, 0.0), 'minimum': lambda x: tf.minimum(x, 6.0),
        'clip': lambda x: tf.clip_by_value(x, -1.0, 1.0), 'negative': tf.negative,
        'hard_swish': lambda x: x * tf.nn.relu6(x + 3) / 6,
    }
    for op, fn in last.items():
        for kind, shape, filters, stride in (('3x3', (1, 9, 9, 8), (3, 3, 8, 12), 1),
                                             ('1x1', (1, 9, 9, 16), (1, 1, 16, 24), 1),
                                             ('stride', (1, 15, 15, 3), (3, 3, 3, 8), 2)):
            for bias in (0, 1):
                name = 'conv/%s/%s/%d' % (kind, op, bias)
                d = draw(name)

                def conv(x, w, b, fn=fn, stride=stride, bias=bias):
                    y = tf.nn.conv2d(x, w, stride, 'SAME')
                    return fn(tf.nn.bias_add(y, b) if bias else y)
                yield Case(name, conv, [d.some(shape, 'float32', 0.01)],
                           [d.plain(filters), d.plain(filters[-1:])], zeros=False, sums=1e-4)
        for rows in (1, 5, 40):
            name = 'matmul/%d/%s' % (rows, op)
            d = draw(name)
            yield Case(name, lambda x, w, b, fn=fn: fn(tf.matmul(x, w) + b),
                       [d.some((rows, 32), 'float32', 0.01)],
                       [d.plain((32, 20)), d.plain((20,))], zeros=False, sums=1e-4)
    for rank, window in ((2, 2), (2, 3), (3, 2)):
        for share in (0.0, 0.1):
            name = 'pool/max/%d_%d_%g' % (rank, window, share)
            x = draw(name).some((1,) + (6,) * rank + (4,), 'float32', share)
            x[..., 0] = -np.inf
            x[..., 1] = np.nan
            fn = tf.nn.max_pool2d if rank == 2 else tf.nn.max_pool3d
            yield Case(name, lambda x, fn=fn, window=window: fn(x, window, 2, 'SAME'), [x])
    for op, fn in (('softmax', tf.nn.softmax), ('log_softmax', tf.nn.log_softmax),
                   ('logsumexp', lambda x: tf.reduce_logsumexp(x, axis=1))):
        x = draw('rows/' + op).some((12, 5), 'float32', 0.2)
        x[0], x[1], x[2] = -np.inf, np.inf, np.nan
        yield Case('rows/' + op, fn, [x])


def all_cases(seed):
    for family in (element_cases, group_cases, network_cases):
        yield from family(lambda name: edge.Draw(seed, name))


def check(case, heddle):
    graph, outs = case.graph()
    try:
        plain = tf.compat.v1.ConfigProto()
        plain.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.compat.v1.Session(graph=graph, config=plain) as session:
            wants = session.run(outs, {k + ':0': v for k, v in case.feeds().items()})
    except tf.errors.OpError as e:
        return None, e.message
    with tempfile.TemporaryDirectory() as folder:
        model, feeds = os.path.join(folder, 'graph.pb'), os.path.join(folder, 'f.npz')
        pathlib.Path(model).write_bytes(graph.as_graph_def().SerializeToString())
        np.savez(feeds, **case.feeds())
        fetches = [a for k in range(len(outs)) for a in ('--fetch', 'out%d' % k)]
        wrong = []
        for level, threads in sweep.RUNS:
            values, error = sweep.run_heddle(heddle, folder, model, feeds, level, threads, fetches)
            what = error
            for k, value in enumerate(values or []):
                what = what or differences(value, [wants[k]], case)
            if what:
                wrong.append('level %d, %d threads: %s' % (level, threads, what))
        return wrong, None


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--heddle', default='build/release/heddle')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--only', default='*')
    p.add_argument('--every', type=int, default=1, help='take each N-th case alone')
    p.add_argument('-v', action='store_true', help='also say which cases were not asked')
    a = p.parse_args()
    passed = failed = unasked = 0
    for case in [c for c in all_cases(a.seed) if fnmatch.fnmatch(c.name, a.only)][::a.every]:
        try:
            wrong, why = check(case, os.path.abspath(a.heddle))
        except (TypeError, ValueError) as e:  # TensorFlow has no such form
            wrong, why = None, str(e)
        if wrong:
            failed += 1
            print('%s\n  %s' % (case.name, '\n  '.join(wrong)), flush=True)
        elif why:
            unasked += 1
            if a.v:
                print('%s: not asked: %s' % (case.name, why.splitlines()[0][:160]))
        else:
            passed += 1
    print('%d passed, %d failed, %d not asked' % (passed, failed, unasked))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
