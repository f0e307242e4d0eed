"""Variants of operators' examples, and cases of `heddle run-cases` made of them."""
import copy
import json

import numpy as np

from op_example_text import DTYPES, Statement

FLOATS = ['float16', 'bfloat16', 'float32', 'float64', 'complex64', 'complex128']
CODES = {'bool': 0, 'int16': 1, 'int32': 2, 'int64': 3, 'float16': 4, 'float32': 5, 'float64': 6,
         'uint8': 20, 'int8': 21, 'bfloat16': 22, 'complex64': 23, 'complex128': 24}
# Attributes that say nothing about the result.
SILENT = {'op_role', 'op_role_var', 'op_namescope', 'op_callstack', 'op_device', 'with_quant_attr',
          'op_debug_info', 'ring_id', 'seed', 'use_cudnn', 'use_quantizer'}
WORDS = {'data_format': ['NCHW', 'NHWC'], 'data_layout': ['NCHW', 'NHWC'],
         'padding_algorithm': ['EXPLICIT', 'SAME', 'VALID'], 'pooling_type': ['max', 'avg'],
         'pooltype': ['MAX', 'AVERAGE', 'SUM', 'SQRT', 'LAST', 'FIRST'],
         'padding_mode': ['zeros', 'border', 'reflection'],
         'reduction': ['mean', 'sum', 'none', 'batchmean'],
         'reduce_op': ['SUM', 'MEAN', 'MAX', 'MIN'], 'pool_type': ['SUM', 'MEAN', 'MAX', 'MIN'],
         'code_type': ['encode_center_size', 'decode_center_size'],
         'ap_type': ['integral', '11point'], 'activation': ['tanh', 'relu', 'sigmoid', 'identity'],
         'gate_activation': ['sigmoid', 'relu'], 'Reduce': ['add', 'multiply', 'assign'],
         'norm': ['ortho', 'forward', 'backward'],
         'normalization': ['backward', 'ortho', 'forward']}


def converted(value, dtype):
    if dtype.startswith('complex'):
        return complex(value)
    value = value.real
    if dtype == 'bool':
        return int(value != 0)
    if dtype in FLOATS:
        return float(value)
    whole = int(value) if abs(value) < 2**62 else 0  # not for NaN and infinity
    return abs(whole) % 256 if dtype == 'uint8' else whole


def main_dtype(example):
    """That of the first floating operand; of the first one where none is."""
    dtypes = [s.tensor.dtype for s in example.of('in') if s.tensor.dtype]
    return next((d for d in dtypes if d in FLOATS), dtypes[0] if dtypes else None)


def in_dtype(example, dtype):
    main, variant = main_dtype(example), copy.deepcopy(example)

    def convert(t):
        for item in t.items or []:
            convert(item)
        if t.dtype == main:
            t.dtype, t.values = dtype, [converted(v, dtype) for v in t.values or []]
    for s in variant.of('in'):
        convert(s.tensor)
    for s in variant.of('out'):
        if s.tensor is not None and s.tensor.dtype == main:
            s.tensor.dtype = dtype
    for s in variant.of('attr'):
        if s.name in ('dtype', 'in_dtype', 'out_dtype') and s.value == CODES[main]:
            s.value = CODES[dtype]
    return variant


def with_output(example, name):
    variant, s = copy.deepcopy(example), Statement('out', 'out ' + name)
    s.name, s.alias = name, ''
    variant.statements.append(s)
    return variant


def without_operand(example, name):
    variant = copy.deepcopy(example)
    variant.statements = [s for s in variant.statements
                          if not (s.kind == 'in' and s.name == name)]
    return variant


def with_attribute(example, name, kind, value):
    variant = copy.deepcopy(example)
    variant.statements = [s for s in variant.statements
                          if not (s.kind == 'attr' and s.name == name)]
    s = Statement('attr', 'attr %s %s %s' % (name, kind, json.dumps(value)))
    s.name, s.type, s.value = name, kind, value
    at = next((i for i, x in enumerate(variant.statements) if x.kind in ('in', 'out')), 0)
    variant.statements.insert(at, s)
    return variant


def other_values(name, kind, now):
    """Values of an attribute besides the present one."""
    if kind == 'BOOLEAN':
        return [not now]
    if kind == 'STRING':
        values = WORDS.get(name, [])
    elif kind in ('INT', 'LONG') and isinstance(now, int):
        values = (list(CODES.values()) if name in ('dtype', 'in_dtype', 'out_dtype')
                  else range(-2, 4))
    elif kind == 'FLOAT' and isinstance(now, float):
        values = [0.0, 0.5, -1.0, 2.0]
    elif kind in ('INTS', 'LONGS') and isinstance(now, list):
        values = ([[v + 1 for v in now], [-1] * len(now), now[::-1], now[:1], []] if now
                  else [[0], [1], [-1], [0, 1], [1, 1], [2, 2]])
    else:
        values = [[0.5] * len(now)] if kind == 'FLOATS' and now else []
    return [v for v in values if v != now]


def variants(example, kinds, paddle, proto):
    """(label, variant): one thing is another than in the example."""
    if example.has('op') or example.has('from'):
        return
    main = main_dtype(example)
    if 'dtype' in kinds and main:
        for dtype in DTYPES:
            if dtype != main:
                yield 'dtype=' + dtype, in_dtype(example, dtype)
    present = {s.name for s in example.of('in')}
    if 'out' in kinds and proto:
        for o in proto.outputs:
            if o.name not in {s.name for s in example.of('out')}:
                yield 'out+' + o.name, with_output(example, o.name)
    if 'in' in kinds and proto:
        rewritten = {s.alias.split('.')[0] for s in example.of('out') if s.alias}
        for i in proto.inputs:
            if i.dispensable and i.name in present and i.name not in rewritten:
                yield 'in-' + i.name, without_operand(example, i.name)
    if 'attr' in kinds and proto:
        given, defaults = {s.name: s.value for s in example.of('attr')}, paddle.defaults(example.op)
        for a in proto.attrs:
            if a.name in SILENT or 'mkldnn' in a.name:
                continue
            kind = paddle.pb.AttrType.Name(a.type)
            now = given.get(a.name, defaults.get(a.name, (None, None))[1])
            for value in other_values(a.name, kind, now):
                yield ('%s=%s' % (a.name, json.dumps(value)),
                       with_attribute(example, a.name, kind, value))


def shape_text(shape):
    return ','.join(map(str, shape)) if len(shape) else '-'


def lod_text(lod):
    return '|'.join(','.join(map(str, level)) for level in lod) if lod else '-'


class CaseWriter:
    """The files of one case. Inputs are parameters, so that they may be absent or rewritten."""

    def __init__(self, folder):
        self.folder, self.lines, self.count = folder, ['opcase 1'], {'in': 0, 'out': 0}

    def save(self, name, array):
        np.save(self.folder / (name + '.npy'), array)
        return name + '.npy'

    def tensor(self, name, r):
        a = r['a']
        return [self.save(name, a), r['dtype'], shape_text(a.shape), lod_text(r.get('lod'))]

    def add(self, side, role, name, r):
        stem = '%s_%d' % (side, self.count[side])
        self.count[side] += 1
        kind = {'dense': 'dense', 'rows': 'selected_rows', 'array': 'tensor_array'}[r['t']]
        words = [side, role, kind] + (['close', '1e-4', '1e-4'] if side == 'out' else [])
        if r['t'] == 'array':
            words.append(str(len(r['items'])))
        else:
            words += self.tensor(stem, r)
        if r['t'] == 'rows':
            rows = np.array(r['rows'], 'int64')
            words += [self.save(stem + '_rows', rows), str(r['height'])]
        self.lines.append('\t'.join(words + [name]))
        for j, item in enumerate(r['items'] if r['t'] == 'array' else []):
            self.lines.append('\t'.join(['item'] + self.tensor('%s_%d' % (stem, j), item)))


def operand(t, paddle):
    if t.items is not None:
        return {'t': 'array', 'items': [operand(i, paddle) for i in t.items]}
    r = {'t': 'dense' if t.rows is None else 'rows', 'a': paddle.array(t, False),
         'dtype': t.dtype, 'lod': t.lod, 'rows': t.rows, 'height': t.height}
    return r


def write_case(folder, example, records, paddle):
    """False where the case would say nothing."""
    case, desc, inputs = CaseWriter(folder), paddle.program(example), set()
    for name, _, s in paddle.variables(example, 'in'):
        if s.tensor.none:
            return False
        inputs.add(name)
        case.add('in', 'param', name, operand(s.tensor, paddle))
    seen = set()
    for (name, _, _), r in zip(paddle.variables(example, 'out'), records):
        if name in seen or r.get('none'):
            continue
        seen.add(name)
        case.add('out', 'scope' if name in inputs else 'fetch', name, r)
    for v in desc.blocks[0].vars:
        v.persistable = v.persistable and (v.name in inputs or v.name not in seen)
    (folder / 'io.txt').write_text('\n'.join(case.lines) + '\n')
    (folder / 'program.pb').write_bytes(desc.SerializeToString())
    return case.count['out'] > 0
