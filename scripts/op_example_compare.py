"""Compares what an operator's example says with what Paddle answers."""
from op_example_text import Statement, values_text

TOLERANCE = {  # (rtol, atol)
    'float16': (2e-3, 1e-3), 'bfloat16': (2e-2, 1e-2), 'float32': (1e-5, 1e-6),
    'complex64': (1e-5, 1e-6), 'float64': (1e-9, 1e-11), 'complex128': (1e-9, 1e-11)}


def wide(a, dtype):
    import numpy as np
    if dtype == 'bfloat16':
        # Flat: a shifted array without dimensions would be a wider integer.
        return (a.reshape(-1).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return a.astype(np.complex128 if a.dtype.kind == 'c' else np.float64)


def excess(got, want, dtype, rtol, atol):
    """The largest |got - want| in units of the tolerance; inf where NaN or infinity differ."""
    import numpy as np
    g, w = wide(got, dtype).reshape(-1), wide(want, dtype).reshape(-1)
    worst = 0.0
    for x, y in zip(g, w):
        if x == y or (np.isnan(x) and np.isnan(y)):
            continue
        if not (np.isfinite(x) and np.isfinite(y)):
            return float('inf')
        worst = max(worst, abs(x - y) / (atol + rtol * abs(y)))
    return worst


def compare(example, statement, r, paddle):
    """None, or what differs between the record and the line."""
    t = statement.tensor
    if t is None:
        return 'no expected value'
    if t.any_type:
        return None
    if t.items is not None:
        if len(t.items) != len(r['items']):
            return '%d items, not %d' % (len(r['items']), len(t.items))
        for i, item in enumerate(t.items):
            s = Statement('out', '')
            s.tensor = item
            said = compare(example, s, r['items'][i], paddle)
            if said:
                return 'item %d: %s' % (i, said)
        return None
    if t.none or r.get('none'):
        if t.any:
            return None
        return None if t.none and r.get('none') else 'memory, or none'
    if t.dtype != r['dtype'] or list(t.shape) != list(r['a'].shape):
        return 'is %s %s' % (r['dtype'], list(r['a'].shape))
    if t.any:
        return None
    if t.stats:
        return compare_stats(t.stats, wide(r['a'], r['dtype']).reshape(-1))
    if t.rows is not None and (t.rows != r['rows'] or t.height != r['height']):
        return 'rows are %s of %d' % (r['rows'], r['height'])
    if t.lod and t.lod != r['lod']:
        return 'lod is %s' % r['lod']
    want = paddle.array(t, False)
    if t.dtype not in TOLERANCE:
        return None if (want == r['a']).all() else 'is ' + values_text(r['a'], t.dtype)
    close = example.of('close')
    rtol, atol = (close[0].rtol, close[0].atol) if close else TOLERANCE[t.dtype]
    if excess(r['a'], want, t.dtype, rtol, atol) > 1:
        return 'is ' + values_text(r['a'], t.dtype)
    return None


def compare_stats(stats, a):
    import numpy as np
    for name, measured in (('mean', a.mean()), ('var', a.var())):
        if name in stats and not abs(measured - stats[name][0]) <= stats[name][1]:
            return '%s is %g' % (name, measured)
    if 'range' in stats and not (a.min() >= stats['range'][0] and a.max() <= stats['range'][1]):
        return 'range is %g to %g' % (a.min(), a.max())
    if 'count' in stats and len(np.unique(a)) != stats['count'][0]:
        return 'there are %d different values' % len(np.unique(a))
    return None


def tolerance_line(example, records, paddle):
    """A `close` line where float32 is further from float64 than the default tolerance covers."""
    if example.has('close') or example.has('random'):
        return None
    flat = []
    for k, r in enumerate(records):
        for j, i in enumerate(r['items'] if r['t'] == 'array' else [r]):
            flat.append((k, j, i))
    if not any(i['dtype'] == 'float32' and not i.get('none') for _, _, i in flat):
        return None
    try:
        twins = paddle.run(example, twin=True)
    except Exception:
        return None  # no double-precision kernel
    worst = 0.0
    outs = [s for _, _, s in paddle.variables(example, 'out')]
    for k, j, i in flat:
        t = outs[k].tensor
        if i['dtype'] != 'float32' or i.get('none') or (t is not None and t.any):
            continue
        w = twins[k]['items'][j] if twins[k]['t'] == 'array' else twins[k]
        if w['a'].shape != i['a'].shape or w['dtype'] not in ('float32', 'float64'):
            return None
        worst = max(worst, excess(i['a'], w['a'], 'float64', *TOLERANCE['float32']))
    if worst * 4 <= 1:
        return None
    for scale in (2, 5, 10, 20, 50, 100, 200, 500, 1000):
        if worst * 4 <= scale:
            return 'close %g %g' % (scale * 1e-5, scale * 1e-6)
    print('%s, %s: float32 and float64 differ by %g tolerances' % (
        example.op, example.title, worst))
    return None
