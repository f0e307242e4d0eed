"""Operators along axes: reductions, order, selection, resizing, and operands of unusual ranks."""
import numpy as np

from .case import FLOATS, INTS, Case, edges

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
                # Sums of -0 alone are -0 along some axes, and 0 along others.
                c = Case('reduce/%s/%s/%s' % (op, dtype, 'x'.join(map(str, shape))),
                         zeros=op not in ('ReduceSum', 'ReduceMean'))
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
            if op == 'Gemm' and dtype.endswith('int64'):  # of the evaluator alone, in double
                continue
            c = Case('select/%s/%s' % (op, dtype))
            d = draw(c)
            ins = [c.feed(d.some((5, 6), dtype, 0.05)), c.feed(d.some((6, 7), dtype, 0.05))]
            if op == 'Gemm':
                ins.append(c.feed(d.some((7,), dtype, 0.1)))
            yield c.out(c.node(op, *ins), dtype)


RESIZED = ('nearest', 'nearest', 'nearest', 'linear', 'cubic')
PLACES = ('half_pixel', 'align_corners', 'asymmetric', 'pytorch_half_pixel',
          'half_pixel_symmetric')
ROUNDINGS = ('floor', 'ceil', 'round_prefer_floor', 'round_prefer_ceil')


def resize_cases(draw):
    """Sizes and positions that float rounds to another element than double does."""
    for k in range(600):
        c = Case('resize/%d' % k, opset=(9, 10, 11, 13, 18, 19)[k % 6])
        rng = draw(c).rng
        mode = str(rng.choice(RESIZED if c.opset > 10 else RESIZED[:4]))
        if mode != 'nearest':  # ONNX Runtime weighs in float, heddle in double
            c.sums = 1e-5
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
        # half_pixel_symmetric came with opset 19. Interpolated by scales, heddle's corners are
        # those of ONNX's own tests, which ONNX Runtime fails.
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


def crop_cases(draw):
    """Resizing of a region, part of which may lie outside."""
    for k in range(200):
        c = Case('crop/%d' % k, opset=(11, 13, 18)[k % 3])
        rng = draw(c).rng
        mode = str(rng.choice(('nearest', 'linear')))
        if mode != 'nearest':
            c.sums = 1e-5
        shape = rng.integers(2, 12, 2)
        region = np.sort(rng.integers(-2, 13, (2, 2)) / 10, axis=0).astype('float32').ravel()
        x = c.feed(np.arange(np.prod(shape), dtype='float32').reshape(shape))
        nothing, sizes = c.const(np.zeros(0, 'float32')), rng.integers(1, 15, 2)
        # Axes that keep their sizes stay as they are in ONNX Runtime, and move in ONNX's text.
        sizes += sizes == shape
        y = c.node('Resize', x, c.const(region), nothing, c.const(sizes), mode=mode,
                   nearest_mode=str(rng.choice(ROUNDINGS)), extrapolation_value=7.5,
                   coordinate_transformation_mode='tf_crop_and_resize')
        yield c.out(y, 'float32')


def rank_cases(draw):
    """Operands of unusual ranks, which the model does not tell."""
    for rank in range(6):
        shape = (3, 4, 2, 3, 2)[:rank]
        channels = shape[1] if rank > 1 else 1
        for k, (op, more) in enumerate((
                ('NonZero', []), ('MeanVarianceNormalization', []), ('Compress', []),
                ('BatchNormalization', [(channels,)] * 4), ('PRelu', [()]), ('PRelu', [(1,)]),
                ('PRelu', [(1, 1)]), ('PRelu', [shape[-1:]]))):
            c = Case('rank/%d/%s/%d' % (rank, op, k), sums=1e-5)
            d = draw(c)
            ins = [c.node('Reshape', c.feed(d.plain((int(np.prod(shape)),))),
                          c.feed(np.array(shape, 'int64')))]
            ins += [c.const(abs(d.plain(s)) + np.float32(0.5)) for s in more]
            if op == 'Compress':
                ins.append(c.const(np.array([True])))
            yield c.out(c.node(op, *ins), 'int64' if op == 'NonZero' else 'float32')


FAMILIES = [reduce_cases, order_cases, select_cases, resize_cases, crop_cases, rank_cases]
