#!/usr/bin/env python3
"""Generated TensorFlow graphs with texts in lists, TensorArrays and sparse tensors, run under
TensorFlow and heddle.

  sweep_text_lists_tf.py --heddle build/release/heddle [--seed N] [--count N] [--only NAME] [-v]
  sweep_text_lists_tf.py --record tests/python/text_lists_tf.npz [--seed N] [--count N]

A case of a list is a chain of operators on one list of texts (or numbers), in a function, in a loop
or in a branch; its texts are fed or constant. Results must be equal; what TensorFlow refuses heddle
must refuse. Needs tensorflow and numpy in the Python that runs this.
"""

import argparse
import json
import os
import pathlib
import pickle
import random
import sys
import tempfile

import numpy as np
from sweep_strings_tf import KINDS, raw, run, same, shape, splits, texts, tf  # noqa: F401

KINDS.clear()
SCALAR = np.zeros(0, 'int32')


def case(function):
    KINDS[function.__name__] = function
    return function


def items(r, n, s, strings):
    if strings:
        return texts(r, (n,) + s)
    return np.array([r.randrange(100) for _ in range(n * int(np.prod(s)))], 'int64').reshape(
        (n,) + s
    )


class Chain:
    """A list of items of one shape, and operators on it, drawn from `r`."""

    def __init__(self, r, n, s, t):
        self.r, self.n, self.s, self.t, self.outs = r, n, s, t, []

    def begin(self, x):
        r, s = self.r, np.array(self.s, 'int32')
        how = r.randrange(4)
        if how == 0:
            return raw.TensorListFromTensor(tensor=x, element_shape=s)
        if how == 1:
            made = raw.EmptyTensorList(
                element_shape=s, max_num_elements=-1, element_dtype=self.t
            )
            for k in range(r.randrange(1, 4)):
                made = raw.TensorListPushBack(input_handle=made, tensor=x[k % self.n])
            return made
        if how == 2:
            made = raw.TensorListReserve(
                element_shape=s, num_elements=r.randrange(1, 4), element_dtype=self.t
            )
            return raw.TensorListSetItem(
                input_handle=made, index=0, item=x[0], resize_if_index_out_of_bounds=False
            )
        at = [r.randrange(4) for _ in range(self.n)]
        return raw.TensorListScatterV2(
            tensor=x, indices=at, element_shape=s, num_elements=r.choice([-1, 4, 5])
        )

    def step(self, made, x):
        r, s = self.r, np.array(self.s, 'int32')
        how = r.randrange(8)
        if how == 0:
            return raw.TensorListPushBack(input_handle=made, tensor=x[r.randrange(self.n)])
        if how == 1:
            made, item = raw.TensorListPopBack(
                input_handle=made, element_shape=s, element_dtype=self.t
            )
            self.outs.append(item)
            return made
        if how == 2:
            return raw.TensorListSetItem(
                input_handle=made,
                index=r.choice([0, 0, 1, 3]),
                item=x[-1],
                resize_if_index_out_of_bounds=r.random() < 0.7,
            )
        if how == 3:
            self.outs.append(
                raw.TensorListGetItem(
                    input_handle=made, index=0, element_shape=s, element_dtype=self.t
                )
            )
        if how == 4:
            self.outs.append(raw.TensorListLength(input_handle=made))
        if how == 5:
            self.outs.append(
                raw.TensorListGather(
                    input_handle=made,
                    indices=np.zeros(r.randrange(3), 'int32'),
                    element_shape=s,
                    element_dtype=self.t,
                )
            )
        if how == 6:
            return raw.TensorListResize(input_handle=made, size=r.randrange(1, 5))
        if how == 7:
            return raw.TensorListScatterIntoExistingList(
                input_handle=made, tensor=x, indices=r.sample(range(6), self.n)
            )
        return made

    def end(self, made):
        s = np.array(self.s, 'int32')
        self.outs.append(
            raw.TensorListStack(input_handle=made, element_shape=s, element_dtype=self.t)
        )
        if len(s) and self.r.random() < 0.5:
            self.outs += list(
                raw.TensorListConcatV2(
                    input_handle=made,
                    element_shape=s,
                    element_dtype=self.t,
                    leading_dims=np.zeros(0, 'int64'),
                )
            )
        return tuple(self.outs)


@case
def chain(r):
    strings = r.random() < 0.8
    s = tuple(r.randrange(1, 3) for _ in range(r.randrange(3)))
    x = items(r, r.randrange(1, 4), s, strings)
    c = Chain(r, x.shape[0], s, tf.string if strings else tf.int64)
    steps = r.randrange(6)

    def function(x):
        made = c.begin(x)
        for _ in range(steps):
            made = c.step(made, x)
        return c.end(made)

    return [x], function


@case
def split(r):
    lengths = [r.randrange(3) for _ in range(r.randrange(1, 4))]
    x = texts(r, (sum(lengths), 2))
    return [x, np.array(lengths, 'int64')], lambda x, n: tuple(
        raw.TensorListConcatV2(
            input_handle=raw.TensorListSplit(tensor=x, element_shape=[-1, 2], lengths=n),
            element_shape=[-1, 2],
            element_dtype=tf.string,
            leading_dims=np.zeros(0, 'int64'),
        )
    )


@case
def array(r):
    """A TensorArray, of TensorFlow 1 (with its loops) or 2."""
    second, dynamic = r.random() < 0.6, r.random() < 0.5
    s = tuple(r.randrange(1, 3) for _ in range(r.randrange(2)))
    x = texts(r, (r.randrange(1, 5),) + s)
    n, joins, last = x.shape[0], r.random() < 0.5, r.randrange(4)

    def function(x):
        v1 = tf.compat.v1
        (v1.enable_control_flow_v2 if second else v1.disable_control_flow_v2)()
        made = tf.TensorArray(tf.string, size=0 if dynamic else n, dynamic_size=dynamic,
                              element_shape=s, clear_after_read=False)

        def body(i, made):
            item = x[i]
            if joins:
                item = tf.strings.join([item, '+', tf.as_string(i)])
            return i + 1, made.write(i, item)

        _, made = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), made])
        if last == 0:
            return made.stack(), made.size()
        if last == 1:
            return made.gather([n - 1, 0])
        if last == 2:
            return made.read(0), made.stack()
        if not second:  # whose items are written once
            return made.stack()
        return made.scatter([0], x[:1]).stack()

    return [x], function


@case
def carried(r):
    """A loop that carries a list of texts, and a branch that changes it."""
    n, limit = r.randrange(1, 5), r.randrange(3)
    x = texts(r, (n,))

    def function(x):
        tf.compat.v1.enable_control_flow_v2()
        made = raw.EmptyTensorList(
            element_shape=SCALAR, max_num_elements=-1, element_dtype=tf.string
        )

        def body(i, made):
            longer = tf.strings.length(x[i]) > limit
            item = tf.cond(longer, lambda: tf.strings.upper(x[i]),
                           lambda: tf.strings.join([x[i], '!']))
            return i + 1, raw.TensorListPushBack(input_handle=made, tensor=item)

        _, made = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), made],
                                shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)])
        return raw.TensorListLength(input_handle=made), raw.TensorListStack(
            input_handle=made, element_shape=SCALAR, element_dtype=tf.string
        )

    return [x], function


# --- sparse tensors


def matrix(r, rows, strings, columns=3):
    """Indices, values and shape of a sparse matrix."""
    places = sorted(r.sample(range(rows * columns), r.randrange(rows * columns + 1)))
    at = np.array([[p // columns, p % columns] for p in places], 'int64').reshape(-1, 2)
    v = texts(r, (len(at),)) if strings else np.array(
        [r.randrange(-(2**40), 2**40) for _ in at], 'int64')
    return [at, v, np.array([rows, columns], 'int64')]


def columns_of(r, kinds):
    rows = r.randrange(1, 4)
    sparse, dense = r.randrange(3), r.randrange(3)
    if sparse + dense == 0:
        dense = 1
    parts = [matrix(r, rows, r.choice(kinds)) for _ in range(sparse)]
    # now and then a batch of another size
    wide = [items(r, rows + (r.random() < 0.05), (r.randrange(3),), r.choice(kinds))
            for _ in range(dense)]
    flat = [p[k] for k in range(3) for p in parts] + wide
    return flat, sparse


def cut(operands, sparse):
    return (list(operands[:sparse]), list(operands[sparse:2 * sparse]),
            list(operands[2 * sparse:3 * sparse]), list(operands[3 * sparse:]))


@case
def cross(r):
    hashed = r.random() < 0.6
    internal = r.choice([tf.string, tf.int64])
    flat, sparse = columns_of(r, [True] if internal == tf.string else [True, False])
    buckets, key = r.choice([0, 1, 7, 1000]), r.choice([0, 956888297470, -5])

    def function(*x):
        i, v, s, d = cut(x, sparse)
        return tuple(raw.SparseCross(
            indices=i, values=v, shapes=s, dense_inputs=d, hashed_output=hashed,
            num_buckets=buckets, hash_key=key, out_type=tf.int64 if hashed else tf.string,
            internal_type=internal))

    return flat, function


@case
def cross_texts(r):
    flat, sparse = columns_of(r, [True, False])
    sep = r.choice(['_X_', '', ' x '])

    def function(*x):
        i, v, s, d = cut(x, sparse)
        return tuple(raw.SparseCrossV2(indices=i, values=v, shapes=s, dense_inputs=d, sep=sep))

    return flat, function


@case
def cross_hashed(r):
    flat, sparse = columns_of(r, [True, False])
    buckets, strong = r.choice([0, 1, 7, 1000]), r.random() < 0.5
    salt = [r.randrange(2**62), r.randrange(2**62)]

    def function(*x):
        i, v, s, d = cut(x, sparse)
        return tuple(raw.SparseCrossHashed(
            indices=i, values=v, shapes=s, dense_inputs=d, num_buckets=buckets,
            strong_hash=strong, salt=salt))

    return flat, function


@case
def reorder(r):
    at, v, s = matrix(r, r.randrange(1, 4), r.random() < 0.7)
    order = list(range(len(at)))
    r.shuffle(order)
    return [at[order], v[order], s], lambda i, v, s: tuple(
        raw.SparseReorder(input_indices=i, input_values=v, input_shape=s))


@case
def concat(r):
    axis, strings = r.choice([0, 1, -1, -2]), r.random() < 0.7
    rows, columns = r.randrange(1, 4), r.randrange(1, 4)
    parts = []
    for _ in range(r.randrange(2, 4)):
        along = r.randrange(1, 4)
        parts.append(matrix(r, along if axis in (0, -2) else rows, strings,
                            columns if axis in (0, -2) else along))
    n = len(parts)
    flat = [p[k] for k in range(3) for p in parts]
    return flat, lambda *x: tuple(raw.SparseConcat(
        indices=x[:n], values=x[n:2 * n], shapes=x[2 * n:], concat_dim=axis))


@case
def box(r):
    at, v, s = matrix(r, r.randrange(1, 5), r.random() < 0.7)
    start = np.array([r.randrange(3) for _ in range(2)], 'int64')
    size = np.array([r.randrange(5) for _ in range(2)], 'int64')
    return [at, v, s, start, size], lambda i, v, s, b, n: tuple(
        raw.SparseSlice(indices=i, values=v, shape=s, start=b, size=n))


@case
def empty_rows(r):
    at, v, s = matrix(r, r.randrange(1, 5), r.random() < 0.7)
    other = np.array(b'?', object) if v.dtype == object else np.array(-1, v.dtype)
    return [at, v, s, other], lambda i, v, s, d: tuple(
        raw.SparseFillEmptyRows(indices=i, values=v, dense_shape=s, default_value=d))


@case
def ragged(r):
    n, parts = r.randrange(1, 4), []
    for _ in range(r.randrange(1, 3)):
        total = r.randrange(7)
        parts.append(splits(r, total, n) if n else np.array([0], 'int64'))
        n = int(parts[-1][-1])
    parts = [p.astype('int32') for p in parts] if r.random() < 0.3 else parts
    v = items(r, n, r.choice([(), (), (2,), (2, 2)]), r.random() < 0.6)
    return parts + [v], lambda *x: tuple(raw.RaggedTensorToSparse(
        rt_nested_splits=x[:-1], rt_dense_values=x[-1]))


def run_apart(kind, seed, heddle, folder):
    """run() in a process of its own, since some graphs end TensorFlow's; None: this one did."""
    file = folder / 'result'
    file.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        try:
            file.write_bytes(pickle.dumps(run(kind, seed, heddle, folder)))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return pickle.loads(file.read_bytes()) if file.exists() else None


def record(path, seed, count):
    """Graphs with feeds and what TensorFlow answered, for tests/python/test_text_lists.py."""
    found, names = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for kind in KINDS:
            for k in range(count):
                made = run_apart(kind, '%s %d %d' % (kind, seed, k), None, folder)
                if not isinstance(made, tuple):
                    continue
                name = '%s%d' % (kind, k)
                graph, feeds, expected = made
                found[name + '/graph'] = np.frombuffer(graph, np.uint8)
                for key, x in feeds.items():
                    found['%s/in/%s' % (name, key)] = packed(x)
                for i, x in enumerate(expected):
                    found['%s/out/%d' % (name, i)] = packed(x)
                names.setdefault(kind, []).append(name)
    np.savez_compressed(path, names=json.dumps(names), **found)
    print('%d cases' % sum(map(len, names.values())))


def packed(x):
    """Arrays of texts as arrays of fixed width with a mark at the end of each text."""
    x = np.asarray(x, object) if isinstance(x, bytes) else np.asarray(x)
    if x.dtype != object:
        return x
    flat = [t + b'|' for t in x.ravel().tolist()]
    return np.array(flat, 'S%d' % max([1] + [len(t) for t in flat])).reshape(x.shape)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--heddle')
    parser.add_argument('--record')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=40, help='of each kind')
    parser.add_argument('--only', default='')
    parser.add_argument('-v', action='store_true')
    args = parser.parse_args()
    if args.record:
        return record(args.record, args.seed, args.count)
    wrong = done = 0
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / 'out').mkdir()
        for name in KINDS:
            if args.only and name != args.only:
                continue
            bad = 0
            for k in range(args.count):
                seed = '%s %d %d' % (name, args.seed, k)
                result = run_apart(name, seed, str(pathlib.Path(args.heddle).resolve()),
                                   pathlib.Path(folder))
                done += result is not None
                if result:
                    bad += 1
                    if args.v or bad <= 3:
                        print('%s: %s' % (seed, result))
            wrong += bad
    print('%d cases, %d wrong' % (done, wrong))
    return wrong != 0


if __name__ == '__main__':
    sys.exit(main())
