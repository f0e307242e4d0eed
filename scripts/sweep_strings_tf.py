#!/usr/bin/env python3
"""Runs generated TensorFlow graphs of operators on strings and compares heddle with TensorFlow.

  sweep_strings_tf.py --heddle build/release/heddle [--seed N] [--count N] [--only NAME] [-v]

Each case is one operator with random texts (ASCII, letters of other scripts, blanks, bytes that are
no UTF-8), fed or constant, and random attributes. Results must be equal; what TensorFlow refuses
heddle must refuse. Needs tensorflow and numpy in the Python that runs this.
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

raw = tf.raw_ops
PIECES = [
    'a',
    'b',
    'Z',
    'e1',
    '-',
    '.',
    ',',
    ' ',
    '  ',
    '\t',
    'the',
    'Cat',
    '0',
    '12',
    '\u00e9',
    '\u00c9',
    '\u00df',
    '\u03a3',
    '\u03c3',
    '\u0416',
    '\u4e2d',
    '\U0001f600',
    '!',
    '/',
    '\n',
    'aa',
    'ab',
]


def text(r, most=8, broken=0.05):
    made = ''.join(r.choice(PIECES) for _ in range(r.randrange(most))).encode()
    if r.random() < broken:
        at = r.randrange(len(made) + 1)
        made = made[:at] + r.choice([b'\xff', b'\xe4\xb8', b'\xc3', b'\xf0\x9f\x98']) + made[at:]
    return made


def texts(r, shape, **kw):
    n = int(np.prod(shape))
    made = np.empty(n, object)
    made[:] = [text(r, **kw) for _ in range(n)]
    return made.reshape(shape)


def shape(r, least=0, most=3):
    return tuple(r.choice([0, 1, 2, 3, 4]) for _ in range(r.randrange(least, most + 1)))


def splits(r, n, rows=None):
    rows = r.randrange(1, 5) if rows is None else rows
    return np.array([0] + sorted(r.randrange(n + 1) for _ in range(rows - 1)) + [n], 'int64')


def number(r):
    return r.choice(
        [
            '1',
            '-2',
            '+3',
            ' 4 ',
            '5.5',
            '-.5',
            '1e3',
            '1e400',
            '1e-400',
            'inf',
            '-INF',
            'nan',
            'x',
            '',
            '0x10',
            '99999999999',
            '--1',
            '+-1',
            '1_0',
            '1.',
            '.',
            '1e',
            '9223372036854775807',
            '9223372036854775808',
            '007',
            '3.4e38',
            '1e39',
            '2147483648',
            ' ',
        ]
    ).encode()


PATTERNS = [
    (r'a', r'X'),
    (r'a*', r'-'),
    (r'(a)(b)?', r'<\2\1>'),
    (r'[^a-z]', r'_'),
    (r'\s+', r' '),
    (r'', r'.'),
    (r'^', r'>'),
    (r'$', r'<'),
    (r'(?i)CAT|the', r'\0\0'),
    (r'\b', r'|'),
    (r'.', r'\\'),
    (r'a+?', r'1'),
    (r'(a|ab)(e1|.)', r'[\1][\2]'),
    (r'(?s).*', r'all'),
    (r'(x*)*', r'y'),
    (r'[!"#$%&()*+,-./:;<=>?@\[\]^_`{|}~]', ''),
    (r'(?U)a+', r'u'),
    (r'(', r'x'),
    (r'\d{2,}', r'#'),
    (r'(\w)(\w)', r'\2\1'),
    (r'a|', r'!'),
    (r'(?:a|b|Z)*?e', r'#'),
    (r'\x{4e2d}', 'mid'),
    ('\u4e2d', 'mid'),
]


# Each makes (operands, function of tensors).
def case_lower(r):
    op = r.choice([raw.StringLower, raw.StringUpper])
    encoding = r.choice(['', 'utf-8'])
    return [texts(r, shape(r), broken=0 if encoding else 0.1)], lambda x: op(
        input=x, encoding=encoding
    )


def case_strip(r):
    return [texts(r, shape(r))], lambda x: raw.StringStrip(input=x)


def case_length(r):
    unit = r.choice(['BYTE', 'UTF8_CHAR'])
    return [texts(r, shape(r))], lambda x: raw.StringLength(input=x, unit=unit)


def case_substr(r):
    unit = r.choice(['BYTE', 'UTF8_CHAR'])
    s = shape(r)
    t = r.choice([(), s])
    dtype = r.choice(['int32', 'int64'])
    pos = np.array([r.randrange(-3, 4) for _ in range(int(np.prod(t)))], dtype).reshape(t)
    size = np.array([r.randrange(0, 5) for _ in range(int(np.prod(t)))], dtype).reshape(t)
    return [texts(r, s, broken=0), pos, size], lambda x, p, n: raw.Substr(
        input=x, pos=p, len=n, unit=unit
    )


def case_join(r):
    s = shape(r)
    n = r.randrange(1, 4)
    sep = text(r, 3, 0).decode()
    return [texts(r, r.choice([(), s])) for _ in range(n)], lambda *x: raw.StringJoin(
        inputs=x, separator=sep
    )


def case_reduce_join(r):
    s = shape(r, 0, 3)
    axes = r.sample(range(len(s)), r.randrange(len(s) + 1))
    axes = np.array([a - len(s) if r.random() < 0.5 else a for a in axes], 'int32')
    keep = r.random() < 0.5
    return [texts(r, s), axes], lambda x, a: raw.ReduceJoin(
        inputs=x, reduction_indices=a, keep_dims=keep, separator=','
    )


def case_segment_join(r):
    s = shape(r, 1, 3)
    count = r.randrange(1, 4)
    of = s[:r.randrange(1, len(s) + 1)]
    segments = np.random.default_rng(r.randrange(2**32)).integers(0, count, of)
    segments = segments.astype(r.choice(['int32', 'int64']))
    return [texts(r, s), segments, np.array(count, 'int32')], lambda x, g, n: (
        raw.UnsortedSegmentJoin(inputs=x, segment_ids=g, num_segments=n, separator=',')
    )


def case_to_base64(r):
    pad = r.random() < 0.5
    return [texts(r, shape(r))], lambda x: raw.EncodeBase64(input=x, pad=pad)


def case_from_base64(r):
    letters = b'AbZz09-_'
    x = np.empty(r.randrange(4), object)
    for k in range(len(x)):
        x[k] = bytes(r.choice(letters) for _ in range(r.randrange(9)))
        if r.random() < 0.4:
            x[k] += r.choice([b'=', b'==', b'+', b' '])
    return [x], lambda x: raw.DecodeBase64(input=x)


def case_raw(r):
    t = r.choice([tf.uint8, tf.int8, tf.int16, tf.int32, tf.int64, tf.float32, tf.float64])
    n, little = r.choice([0, 2, 8, 16, 16]), r.random() < 0.6
    s = shape(r)
    x = np.empty(int(np.prod(s)), object)
    x[:] = [bytes(r.choice(b'abcXYZ01') for _ in range(n)) for _ in range(len(x))]
    return [x.reshape(s)], lambda x: raw.DecodeRaw(bytes=x, out_type=t, little_endian=little)


def case_split(r):
    sep = np.array(r.choice([b'', b' ', b'a', b' ,', b'aa', b'-.']), object)
    skip = r.random() < 0.5
    return [texts(r, (r.randrange(4),)), sep], lambda x, d: raw.StringSplit(
        input=x, delimiter=d, skip_empty=skip
    )


def case_split2(r):
    sep = np.array(r.choice([b'', b' ', b'a', b' ,', b'aa', b'-.']), object)
    most = r.choice([-1, -1, 1, 2])
    return [texts(r, (r.randrange(4),)), sep], lambda x, d: raw.StringSplitV2(
        input=x, sep=d, maxsplit=most
    )


def case_ngrams(r):
    n = r.randrange(8)
    at = splits(r, n).astype(r.choice(['int32', 'int64']))
    widths = [r.randrange(1, 5) for _ in range(r.randrange(1, 3))]
    pad, short = r.choice([-1, 0, 0, 1, 2, 5]), r.random() < 0.5
    return [texts(r, (n,)), at], lambda x, s: raw.StringNGrams(
        data=x,
        data_splits=s,
        separator='|',
        ngram_widths=widths,
        left_pad='LP',
        right_pad='RP',
        pad_width=pad,
        preserve_short_sequences=short,
    )


def case_replace(r):
    pattern, rewrite = r.choice(PATTERNS)
    every = r.random() < 0.6
    x = texts(r, shape(r), broken=0.1)
    if r.random() < 0.5:
        return [x], lambda x: raw.StaticRegexReplace(
            input=x, pattern=pattern, rewrite=rewrite, replace_global=every
        )
    return [
        x,
        np.array(pattern.encode(), object),
        np.array(rewrite.encode(), object),
    ], lambda x, p, w: raw.RegexReplace(input=x, pattern=p, rewrite=w, replace_global=every)


def case_match(r):
    pattern = r.choice(PATTERNS)[0] + r.choice(['', '.*'])
    x = texts(r, shape(r), most=4, broken=0.1)
    if r.random() < 0.5:
        return [x], lambda x: raw.StaticRegexFullMatch(input=x, pattern=pattern)
    return [x, np.array(pattern.encode(), object)], lambda x, p: raw.RegexFullMatch(
        input=x, pattern=p
    )


def case_hash(r):
    n = r.choice([1, 7, 1000, 2**62])
    key = [r.randrange(-(2**62), 2**62) for _ in range(2)]
    op = r.choice(
        [
            lambda x: raw.StringToHashBucketFast(input=x, num_buckets=n),
            lambda x: raw.StringToHashBucket(string_tensor=x, num_buckets=n),
            lambda x: raw.StringToHashBucketStrong(input=x, num_buckets=n, key=key),
        ]
    )
    return [texts(r, shape(r), most=40)], op


def case_number(r):
    dtype = r.choice([tf.float32, tf.float64, tf.int32, tf.int64])
    x = np.array([number(r) for _ in range(r.randrange(1, 3))], object)
    return [x], lambda x: raw.StringToNumber(string_tensor=x, out_type=dtype)


def case_as_string(r):
    dtype = r.choice(['float32', 'float64', 'int32', 'int64', 'int8', 'uint8', 'int16', 'bool'])
    s = shape(r)
    x = (
        np.array(
            [
                (
                    r.choice([0, -0.0, 1, -1.5, 1e10, 1e-10, 3.14159, np.inf, np.nan, 255, 100])
                    if dtype[0] == 'f'
                    else r.randrange(0, 127)
                )
                for _ in range(int(np.prod(s)))
            ]
        )
        .astype(dtype)
        .reshape(s)
    )
    kw = {}
    if dtype[0] == 'f':
        kw['precision'] = r.choice([-1, -1, 0, 3, 12])
        kw[r.choice(['scientific', 'shortest', 'scientific'])] = r.random() < 0.5
    kw['width'] = r.choice([-1, 0, 5, 12])
    kw['fill'] = r.choice(['', '', '0', '-', ' ', '+'])
    if kw['width'] <= 0 and kw['fill'] in '-0':
        kw['fill'] = ''
    return [x], lambda x: raw.AsString(input=x, **kw)


def case_decode(r):
    op = r.choice([raw.UnicodeDecode, raw.UnicodeDecodeWithOffsets])
    errors, control = r.choice(['replace', 'ignore', 'strict']), r.random() < 0.3
    # TensorFlow ends the process where it is to give offsets and splits of 32 bits.
    kind = r.choice([tf.int32, tf.int64]) if op == raw.UnicodeDecode else tf.int64
    return [texts(r, (r.randrange(4),), broken=0.3)], lambda x: tuple(
        op(
            input=x,
            input_encoding='UTF-8',
            errors=errors,
            replace_control_characters=control,
            Tsplits=kind,
        )
    )


def case_encode(r):
    n = r.randrange(6)
    codes = np.array(
        [r.choice([65, 0xE9, 0x4E2D, 0x1F600, 0x110000, 0xD800, -1, 10]) for _ in range(n)], 'int32'
    )
    errors = r.choice(['replace', 'ignore', 'strict'])
    return [codes, splits(r, n)], lambda c, s: raw.UnicodeEncode(
        input_values=c, input_splits=s, errors=errors, output_encoding='UTF-8'
    )


def case_ragged(r):
    levels = r.randrange(1, 3)
    rows = r.randrange(1, 4)
    parts, n = [], rows
    for _ in range(levels):
        total = r.randrange(7)
        parts.append(splits(r, total, n) if n else np.array([0], 'int64'))
        n = int(parts[-1][-1])
    inner = r.choice([(), (), (2,)])
    strings = r.random() < 0.3
    values = (
        texts(r, (n,) + inner)
        if strings
        else np.arange(int(np.prod((n,) + inner))).astype('float32').reshape((n,) + inner)
    )
    fill = np.array(b'?', object) if strings else np.array(-1, 'float32')
    rank = 1 + levels + len(inner)
    asked = (
        np.array(-1, 'int64')
        if r.random() < 0.4
        else np.array(
            [r.choice([-1, -1, r.randrange(5)]) for _ in range(1 + levels)] + [-1] * len(inner),
            'int64',
        )
    )
    assert asked.ndim == 0 or len(asked) == rank
    kinds = ['ROW_SPLITS'] * levels
    if r.random() < 0.5:
        kinds = ['FIRST_DIM_SIZE'] + ['VALUE_ROWIDS'] * levels
        parts = [np.array(rows, 'int64')] + [
            np.repeat(np.arange(len(p) - 1), np.diff(p)).astype('int64') for p in parts
        ]
    return [asked, values, fill] + parts, lambda s, v, f, *p: raw.RaggedTensorToTensor(
        shape=s, values=v, default_value=f, row_partition_tensors=p, row_partition_types=kinds
    )


def case_bincount(r):
    n = r.randrange(8)
    dtype = r.choice(['float32', 'float64', 'int32', 'int64'])
    binary = r.random() < 0.4
    weights = np.zeros(0, dtype) if binary or r.random() < 0.5 else np.arange(n).astype(dtype)
    values = np.array([r.randrange(6) for _ in range(n)], 'int32')
    return [
        splits(r, n),
        values,
        np.array(r.randrange(6), 'int32'),
        weights,
    ], lambda s, v, n, w: raw.RaggedBincount(
        splits=s, values=v, size=n, weights=w, binary_output=binary
    )


def case_moves(r):
    s = (r.randrange(1, 4), r.randrange(1, 4))
    x, y = texts(r, s), texts(r, s)
    i = np.array([r.randrange(s[0]) for _ in range(3)], 'int32')
    f = r.choice(
        [
            lambda x, y, i: tf.concat([x, y], r.choice([0, 1, -1])),
            lambda x, y, i: tf.gather(x, i),
            lambda x, y, i: tf.reshape(x, [-1]),
            lambda x, y, i: tf.stack([x, y], 1),
            lambda x, y, i: tf.transpose(x),
            lambda x, y, i: tf.where(tf.equal(x, y), x, y),
            lambda x, y, i: x[1:, ::-1],
            lambda x, y, i: tf.tile(x, [2, 1]),
            lambda x, y, i: tf.split(y, s[0])[0],
            lambda x, y, i: tf.unstack(x)[0],
            lambda x, y, i: tf.shape(x),
            lambda x, y, i: tf.unique(tf.reshape(tf.concat([x, y], 0), [-1])),
            lambda x, y, i: tf.expand_dims(x, 0),
            lambda x, y, i: tf.fill([2, 2], x[0, 0]),
            lambda x, y, i: tf.size(x),
            lambda x, y, i: tf.reverse(x, [1]),
            lambda x, y, i: tf.squeeze(x[:1]),
            lambda x, y, i: tf.broadcast_to(x[:1], s),
            lambda x, y, i: tf.identity(y),
            lambda x, y, i: tf.gather_nd(x, tf.stack([i, tf.zeros_like(i)], 1)),
            lambda x, y, i: tf.roll(x, 1, 0),
            lambda x, y, i: tf.dynamic_partition(x, tf.range(s[0]) % 2, 2),
            lambda x, y, i: tf.not_equal(x, y[:1]),
        ]
    )
    return [x, y, i], f


KINDS = {k[5:]: v for k, v in list(globals().items()) if k.startswith('case_')}


def same(a, b):
    if a.dtype == object:
        as_bytes = [x if isinstance(x, bytes) else str(x).encode() for x in b.ravel().tolist()]
        return a.shape == b.shape and a.ravel().tolist() == as_bytes
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and np.array_equal(a, b, equal_nan=a.dtype.kind == 'f')
    )


def run(name, seed, heddle, folder):
    """'' or what differs; None: TensorFlow's graph cannot be made.

    Without heddle: the graph, its feeds and TensorFlow's results, or None.
    """
    r = random.Random(seed)
    operands, function = KINDS[name](r)
    fed = [r.random() < 0.6 for _ in operands]
    open_shapes = r.random() < 0.5
    graph = tf.Graph()
    feeds, outs = {}, []
    try:
        with graph.as_default():
            tensors = []
            for k, v in enumerate(operands):
                kind = tf.string if v.dtype == object else v.dtype
                if not fed[k]:
                    tensors.append(tf.constant(v.tolist(), kind, shape=v.shape))
                    continue
                x = tf.compat.v1.placeholder(
                    kind, [None] * v.ndim if open_shapes else v.shape, 'x%d' % k
                )
                feeds['x%d' % k] = v
                tensors.append(x)
            made = function(*tensors)
            made = list(made) if isinstance(made, (tuple, list)) else [made]
            outs = [tf.identity(m, 'out%d' % k) for k, m in enumerate(made)]
    except Exception as e:
        return None if isinstance(e, (ValueError, tf.errors.OpError)) else str(e)
    (folder / 'g.pb').write_bytes(graph.as_graph_def().SerializeToString())
    expected, refused = None, ''
    try:
        with tf.compat.v1.Session(graph=graph) as session:
            expected = session.run(outs, {k + ':0': v for k, v in feeds.items()})
    except tf.errors.OpError as e:
        refused = str(e.message)[:120]
    if heddle is None:  # to be recorded
        return (graph.as_graph_def().SerializeToString(), feeds, expected) if expected else None
    for f in folder.glob('*.npy'):
        f.unlink()
    args = [heddle, 'run', folder / 'g.pb', '--out', folder / 'out']
    for k in range(len(outs)):
        args += ['--fetch', 'out%d' % k]
    for k, v in feeds.items():
        widest = max([1] + [len(t) for t in v.ravel().tolist()]) if v.dtype == object else 0
        if v.dtype == object and any(t.endswith(b'\0') for t in v.ravel().tolist()):
            return None
        np.save(folder / (k + '.npy'), v.astype('S%d' % widest) if v.dtype == object else v)
        args += ['--feed', '%s=%s' % (k, folder / (k + '.npy'))]
    done = subprocess.run(
        [str(a) for a in args], capture_output=True, text=True, errors='replace', timeout=60
    )
    if done.returncode not in (0, 1):
        return 'exit %d %s' % (done.returncode, done.stderr[-200:])
    if expected is None:
        return '' if done.returncode else 'TensorFlow refuses: ' + refused
    if done.returncode:
        return 'refused: ' + done.stderr.strip()[-300:]
    for k, e in enumerate(expected):
        got = np.load(folder / 'out' / ('out_%d.npy' % k), allow_pickle=True)
        e = np.asarray(e, object) if isinstance(e, bytes) else np.asarray(e)
        if not same(e, got):
            return 'output %d: expected %r, got %r' % (k, e, got)
    return ''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--heddle', required=True)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=40, help='of each kind')
    parser.add_argument('--only', default='')
    parser.add_argument('-v', action='store_true')
    args = parser.parse_args()
    wrong = done = 0
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / 'out').mkdir()
        for name in KINDS:
            if args.only and name != args.only:
                continue
            bad = 0
            for k in range(args.count):
                seed = '%s %d %d' % (name, args.seed, k)
                result = run(name, seed, os.path.abspath(args.heddle), pathlib.Path(folder))
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
