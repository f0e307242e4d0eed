#!/usr/bin/env python3
"""Examples of operators: reads them from the sources and asks PaddlePaddle 2.6.2 for the answers.

docs/examples.md describes the format.

  op_examples.py --write [FILE...]   writes the expected values of the `out` lines anew
  op_examples.py --check [FILE...]   compares what stands there with Paddle's answers
  op_examples.py --missing           lists the operators that have no example

Without FILE: all sources below kernels/. --ops REGEX takes the operators whose name matches.
--write and --check need `pip install paddlepaddle==2.6.2 "numpy<2"` in the Python that runs this.
"""
import argparse
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH = 100
BLOCK = re.compile(r'^HEDDLE_EXAMPLES\((\w+), R"\(\n(.*?)^\)"\)$', re.S | re.M)
NOT_OF_PADDLE = 'onnx_'  # scripts/onnx_examples.py asks ONNX's runtimes about these
OPERATOR = re.compile(r'^HEDDLE_OP\((\w+)\)', re.M)
TOLERANCE = {  # (rtol, atol)
    'float16': (2e-3, 1e-3), 'bfloat16': (2e-2, 1e-2), 'float32': (1e-5, 1e-6),
    'complex64': (1e-5, 1e-6), 'float64': (1e-9, 1e-11), 'complex128': (1e-9, 1e-11)}
DTYPES = ['bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32',
          'float64', 'complex64', 'complex128']


class BadExample(Exception):
    pass


# ---------------------------------------------------------------- text
class Tensor:
    """A value: dense, SelectedRows (rows is set) or a tensor array (items is set)."""

    def __init__(self, dtype=None, shape=None, values=None):
        self.dtype, self.shape, self.values = dtype, shape, values
        self.lod, self.rows, self.height, self.items = [], None, None, None
        self.param = False      # persistable in heddle's program
        self.none = False       # no memory was ever allocated
        self.any = False        # values are not compared
        self.any_type = False   # nothing is compared
        self.stats = {}         # of random outputs


class Statement:
    """One line with its continuation; `items` are the item lines of a tensor array."""

    def __init__(self, kind, text):
        self.kind, self.text = kind, text
        self.name = self.alias = self.tensor = None
        self.items = []


class Example:
    def __init__(self, op, title):
        self.op, self.title = op, title
        self.statements = []

    def of(self, *kinds):
        return [s for s in self.statements if s.kind in kinds]

    def has(self, kind):
        return bool(self.of(kind))


def json_prefix(text):
    value, end = json.JSONDecoder().raw_decode(text)
    return value, text[end:].strip()


def number(word, dtype):
    if dtype.startswith('complex'):
        return complex(word)
    if dtype.startswith('float') or dtype == 'bfloat16':
        return float(word)
    return int(word)


def parse_tensor(text):
    t = Tensor()
    if text.strip() == '?':
        t.any = t.any_type = True
        return t
    words = text.split(None, 1)
    if not words:
        return None  # an `out` line to be written
    if words[0] in ('rows', 'array') and (len(words) == 1 or words[0] == 'array'):
        if words[0] == 'array':
            t.items = []
        else:
            t.rows = []
        return t
    t.dtype = words[0]
    if t.dtype not in DTYPES:
        raise BadExample('unknown dtype ' + t.dtype)
    t.shape, rest = json_prefix(words[1].strip())
    while rest:
        word, _, behind = rest.partition(' ')
        if word == 'lod':
            t.lod, rest = json_prefix(behind.strip())
        elif word == 'rows':
            t.rows, rest = json_prefix(behind.strip())
        elif word == 'height':
            t.height, rest = json_prefix(behind.strip())
        elif word == 'param':
            t.param, rest = True, behind.strip()
        elif word == 'none':
            t.none, rest = True, behind.strip()
        elif word == '?':
            t.any, rest = True, behind.strip()
        elif word in ('mean', 'var', 'range', 'count'):
            w = rest.split()
            n = 1 if word == 'count' else 2
            t.stats[word] = [float(x) for x in w[1:1 + n]]
            rest = ' '.join(w[1 + n:])
        else:
            break
    t.values = []
    for word in rest.split():
        v, star, n = word.partition('*')
        t.values += [number(v, t.dtype)] * (int(n) if star else 1)
    count = 1
    for d in t.shape:
        count *= d
    if not (t.none or t.any or t.stats) and len(t.values) != count:
        raise BadExample('%d values for shape %s' % (len(t.values), t.shape))
    return t


def parse_slots(text):
    slots = []
    for word in text.split():
        slot, eq, names = word.partition('=')
        if not eq:
            raise BadExample('SLOT=v expected, not ' + word)
        slots.append((slot, [n for n in names.split(',') if n]))
    return slots


def parse_statement(text):
    kind, _, rest = text.partition(' ')
    s = Statement(kind, text)
    rest = rest.strip()
    if kind in ('in', 'out'):
        name, _, rest = rest.partition(' ')
        s.name, _, s.alias = name.partition('=')
        s.tensor = parse_tensor(rest.strip())
    elif kind == 'item':
        s.tensor = parse_tensor(rest)
    elif kind == 'attr':
        name, atype, value = rest.split(None, 2)
        s.name, s.type, s.value = name, atype, json_prefix(value)[0]
    elif kind in ('op', 'from'):
        head, _, outs = rest.partition('->')
        s.name, _, ins = head.strip().partition(' ')
        s.ins, s.outs = parse_slots(ins), parse_slots(outs)
    elif kind == 'block':
        s.index, s.parent, *s.forward = [int(x) for x in rest.split()]
    elif kind == 'var':
        words = rest.split(None, 3)
        s.name, s.type = words[0], words[1]
        s.dtype = words[2] if len(words) > 2 else 'float32'
        s.shape = json.loads(words[3]) if len(words) > 3 else None
    elif kind == 'close':
        s.rtol, s.atol = [float(x) for x in rest.split()]
    elif kind == 'seed':
        s.value = int(rest)
    elif kind not in ('example', 'random', 'gradient', 'dtypes'):
        raise BadExample('unknown line: ' + text)
    return s


def parse_block(op, text):
    """The examples of one HEDDLE_EXAMPLES block, in order."""
    joined = []
    for line in text.split('\n'):
        if line.startswith(' ') and joined:
            joined[-1] += ' ' + line.strip()
        elif line.strip():
            joined.append(line.rstrip())
    examples, array = [], None
    for line in joined:
        if line.startswith('#'):
            s = Statement('#', line)
        else:
            s = parse_statement(line)
        if s.kind == 'example':
            examples.append(Example(op, line.partition(' ')[2]))
            continue
        if not examples:
            raise BadExample('%s: a line before the first example' % op)
        if s.kind == 'item':
            array.tensor.items.append(s.tensor)
            continue
        array = s
        examples[-1].statements.append(s)
    return examples


def wrap(text):
    lines, line = [], ''
    for word in text.split(' '):
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = '  ' + word
        else:
            line = line + ' ' + word if line else word
    return '\n'.join(lines + [line])


def shortest(value, dtype):
    import numpy as np
    if dtype.startswith('complex'):
        part = 'float32' if dtype == 'complex64' else 'float64'
        re_, im = shortest(value.real, part), shortest(value.imag, part)
        return re_ + ('' if im[0] == '-' else '+') + im + 'j'
    if dtype == 'bfloat16':
        bits = int(np.uint16(value))
        f = float(np.array([bits << 16], np.uint32).view(np.float32)[0])
        for p in range(1, 10):
            text = '%.*g' % (p, f)
            if f != f or to_bfloat16(float(text)) == bits:
                return text
    if dtype.startswith('float'):
        text = str(getattr(np, dtype)(value))
        text = re.sub(r'\.0$', '', text)
        if 'e' in text and '.' in text:
            text = re.sub(r'\.?0*e([+-]?)0*(\d)', r'e\1\2', text)
        return text
    return str(int(value))


def to_bfloat16(f):
    import numpy as np
    if f != f:
        return 0x7fc0
    bits = int(np.array([f], np.float32).view(np.uint32)[0])
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) & 0xffff


def values_text(a, dtype):
    words, out = [shortest(v, dtype) for v in a.reshape(-1)], []
    i = 0
    while i < len(words):
        n = 1
        while i + n < len(words) and words[i + n] == words[i]:
            n += 1
        out += ['%s*%d' % (words[i], n)] if n > 3 else [words[i]] * n
        i += n
    return ' '.join(out)


def tensor_text(r, unchecked=False, param=False):
    """The text of a record (see `run`); a list, of lines, for an array."""
    if r['t'] == 'array':
        return ['array %d' % len(r['items'])] + [
            'item ' + tensor_text(i, unchecked) for i in r['items']]
    a = r['a']
    text = '%s %s' % (r['dtype'], json.dumps(list(a.shape)))
    if r.get('lod'):
        text += ' lod ' + json.dumps(r['lod'])
    if r['t'] == 'rows':
        text += ' rows %s height %d' % (json.dumps(r['rows']), r['height'])
    if param:
        text += ' param'
    if r.get('none'):
        return text + ' none'
    return text + ' ' + ('?' if unchecked else values_text(a, r['dtype']))


def statement_lines(head, text):
    if isinstance(text, list):
        return [head + ' ' + text[0]] + [wrap(t) for t in text[1:]]
    return [wrap((head + ' ' + text).rstrip())]


def sources(files):
    if files:
        return [pathlib.Path(f).resolve() for f in files]
    return sorted((ROOT / 'kernels').rglob('*.cc'))


# ---------------------------------------------------------------- Paddle
class Paddle:
    """Runs examples under Paddle. A record is a dict: t (dense, rows, array), a, dtype, lod, …"""

    def __init__(self):
        os.environ.setdefault('OMP_NUM_THREADS', '1')
        os.environ.setdefault('GLOG_minloglevel', '3')
        os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
        import numpy
        import paddle
        from paddle.base import core, executor
        from paddle.base.proto import framework_pb2
        if paddle.__version__ != '2.6.2':
            sys.exit('Paddle 2.6.2 is needed, not ' + paddle.__version__)
        paddle.enable_static()
        self.np, self.paddle, self.core, self.pb = numpy, paddle, core, framework_pb2
        self.place = core.CPUPlace()
        self.executor = executor.Executor(self.place)
        V = framework_pb2.VarType
        self.vt = {'bool': V.BOOL, 'uint8': V.UINT8, 'int8': V.INT8, 'int16': V.INT16,
                   'int32': V.INT32, 'int64': V.INT64, 'float16': V.FP16, 'bfloat16': V.BF16,
                   'float32': V.FP32, 'float64': V.FP64, 'complex64': V.COMPLEX64,
                   'complex128': V.COMPLEX128}
        self.name_of = {v: k for k, v in self.vt.items()}
        self.kind = {'dense': V.LOD_TENSOR, 'selected_rows': V.SELECTED_ROWS,
                     'tensor_array': V.LOD_TENSOR_ARRAY, 'step_scopes': V.STEP_SCOPES,
                     'rank_table': V.LOD_RANK_TABLE, 'raw': V.RAW, 'strings': V.STRINGS,
                     'sparse_coo': V.SPARSE_COO}
        self.defaults_of, self.programs = {}, []

    def array(self, t, twin):
        np, dtype = self.np, t.dtype
        if t.none:
            return np.zeros(t.shape, 'uint16' if dtype == 'bfloat16' else dtype)
        if dtype == 'bfloat16':
            return np.array([to_bfloat16(v) for v in t.values], 'uint16').reshape(t.shape)
        a = np.array(t.values, dtype).reshape(t.shape)
        if twin and dtype == 'float32':
            a = a.astype('float64')
        return a

    def put(self, tensor, t, twin):
        if t.none:
            tensor._set_dims(list(t.shape))
            return
        tensor.set(self.array(t, twin), self.place)
        if t.lod:
            tensor.set_lod(t.lod)

    def get(self, tensor):
        np = self.np
        if not tensor._is_initialized():
            shape = list(tensor.shape())
            return {'t': 'dense', 'a': np.zeros([max(d, 0) for d in shape], 'float32'),
                    'dtype': 'float32', 'none': True, 'lod': []}
        dtype = self.name_of[int(tensor._dtype())]
        a = np.array(tensor)
        if dtype == 'bfloat16' and a.dtype != np.uint16:
            a = a.view(np.uint16)
        return {'t': 'dense', 'a': np.ascontiguousarray(a).reshape(a.shape), 'dtype': dtype,
                'lod': [[int(x) for x in level] for level in tensor.lod()]}

    def defaults(self, op):
        """{name: (type, value)} of Paddle's default attributes; a gradient's are those of its
        forward operator, since Paddle declares none for gradients."""
        if op not in self.defaults_of:
            values, base = {}, op
            while True:
                for name, (atype, value) in self.declared_defaults(base).items():
                    values.setdefault(name, (atype, value))
                if not base.endswith('_grad'):
                    break
                base = base[:-5]
            self.defaults_of[op] = values
        return self.defaults_of[op]

    def declared_defaults(self, op):
        program = self.paddle.static.Program()
        self.programs.append(program)  # owns desc
        desc = program.desc.block(0).append_op()
        desc.set_type(op)
        required = set()
        while True:
            try:
                desc.check_attrs()
                break
            except Exception as error:  # a required attribute: any value serves to see the others
                m = re.search(r'Attribute \((\w+)\) is not set', str(error))
                if not m or m[1] in required:
                    break
                required.add(m[1])
                self.set_any(desc, op, m[1])
        return {n: (self.pb.AttrType.Name(int(desc.attr_type(n))), desc.attr(n))
                for n in desc.attr_names() if n not in required}

    def set_any(self, desc, op, name):
        from paddle.base.framework import OpProtoHolder
        for a in OpProtoHolder.instance().get_op_proto(op).attrs:
            if a.name == name:
                kind = self.pb.AttrType.Name(a.type)
                value = {'INT': 1, 'FLOAT': 1.0, 'STRING': 'NCHW', 'BOOLEAN': False, 'INTS': [1],
                         'FLOATS': [1.0], 'STRINGS': ['a'], 'LONG': 1, 'LONGS': [1]}.get(kind, 1)
                desc._set_attr(name, value)

    def set_attr(self, desc, name, atype, value, twin):
        pb, a = self.pb, desc.attrs.add()
        a.name, a.type = name, pb.AttrType.Value(atype)
        if twin and atype == 'INT' and name in ('dtype', 'in_dtype', 'out_dtype') and value == 5:
            value = 6
        field = {'INT': 'i', 'FLOAT': 'f', 'STRING': 's', 'BOOLEAN': 'b', 'LONG': 'l',
                 'FLOAT64': 'float64', 'BLOCK': 'block_idx', 'VAR': 'var_name'}.get(atype)
        if field:
            setattr(a, field, value)
            return
        field = {'INTS': 'ints', 'FLOATS': 'floats', 'STRINGS': 'strings', 'BOOLEANS': 'bools',
                 'LONGS': 'longs', 'FLOAT64S': 'float64s', 'BLOCKS': 'blocks_idx',
                 'VARS': 'vars_name'}.get(atype)
        if field:
            getattr(a, field).extend(value)
            return
        for v in value if atype == 'SCALARS' else [value]:
            s = a.scalars.add() if atype == 'SCALARS' else a.scalar
            if isinstance(v, bool):
                s.type, s.b = pb.Scalar.BOOLEAN, v
            elif isinstance(v, int):
                s.type, s.i = pb.Scalar.LONG, v
            else:
                s.type, s.r = pb.Scalar.FLOAT64, v

    def add_op(self, block, op, ins, outs, attrs, twin):
        desc = block.ops.add()
        desc.type = op
        for side, slots in ((desc.inputs, ins), (desc.outputs, outs)):
            for slot, names in slots:
                v = side.add()
                v.parameter = slot
                v.arguments.extend(names)
        given = {a.name for a in attrs}
        for a in attrs:
            self.set_attr(desc, a.name, a.type, a.value, twin)
        if op.endswith('_grad'):
            for name, (atype, value) in self.defaults(op).items():
                if name not in given:
                    try:
                        self.set_attr(desc, name, atype, value, twin)
                    except (TypeError, ValueError):
                        pass

    def add_var(self, block, name, kind, dtype, shape, persistable):
        for v in block.vars:
            if v.name == name:
                v.persistable = v.persistable or persistable
                return
        v = block.vars.add()
        v.name, v.persistable, v.type.type = name, persistable, self.kind[kind]
        t = None
        if kind == 'dense':
            t = v.type.lod_tensor.tensor
        elif kind == 'selected_rows':
            t = v.type.selected_rows
        elif kind == 'tensor_array':
            t = v.type.tensor_array.tensor
        if t is not None:
            t.data_type = self.vt[dtype or 'float32']
            t.dims.extend(shape if shape is not None else [])

    @staticmethod
    def variables(example, kind):
        """[(variable, slot, statement)] of the in or out lines."""
        statements = example.of(kind)
        if example.has('op'):
            return [(s.name, s.name, s) for s in statements]
        count, result = {}, []
        for s in statements:
            count.setdefault(s.name, []).append(s)
        for s in statements:
            if s.alias:
                result.append((s.alias, s.name, s))
            elif len(count[s.name]) == 1:
                result.append((s.name, s.name, s))
            else:
                result.append(('%s.%d' % (s.name, count[s.name].index(s)), s.name, s))
        # an output that is called as an input is, and is not that variable
        if kind == 'out' and not example.has('from'):
            ins = {s.name for s in example.of('in')}
            result = [(n if s.alias or s.name not in ins else n + '@out', slot, s)
                      for n, slot, s in result]
        return result

    def program(self, example, twin=False):
        pb, desc = self.pb, self.pb.ProgramDesc()
        blocks = []

        def block(i, parent):
            b = desc.blocks.add()
            b.idx, b.parent_idx = i, parent
            blocks.append(b)
            return b
        ins, outs = self.variables(example, 'in'), self.variables(example, 'out')
        main = block(0, -1)
        for name, _, s in ins + outs:
            t = s.tensor
            kind, dtype, shape = 'dense', None, None
            if t is not None:
                kind = 'tensor_array' if t.items is not None else (
                    'selected_rows' if t.rows is not None else 'dense')
                dtype, shape = t.dtype, t.shape
                if t.items:
                    dtype = t.items[0].dtype
            if twin and dtype == 'float32':
                dtype = 'float64'
            self.add_var(main, name, kind, dtype, shape, True)
        if not example.has('op') and not example.has('from'):
            slots = {}
            sides = []
            for side in (ins, outs):
                slots = {}
                for name, slot, _ in side:
                    slots.setdefault(slot, []).append(name)
                sides.append(list(slots.items()))
            self.add_op(main, example.op, sides[0], sides[1], example.of('attr'), twin)
            return desc
        current, pending = main, None
        programs = []
        mine = 'from' if example.has('from') else 'op'
        for s in example.statements:
            if s.kind in ('op', 'from') and s.kind != mine:
                pending = (current, s, [])  # heddle's; Paddle runs the `from` lines
            elif s.kind == 'block' and mine == 'from':
                continue
            elif s.kind == 'block':
                current = block(s.index, s.parent)
                current.forward_block_idx = s.forward[0] if s.forward else -1
            elif s.kind == 'var':
                dtype = 'float64' if twin and s.dtype == 'float32' else s.dtype
                self.add_var(current, s.name, s.type, dtype, s.shape, False)
            elif s.kind in ('op', 'from'):
                pending = (current, s, [])
                programs.append(pending)
            elif s.kind == 'attr' and pending:
                pending[2].append(s)
        homes = {}
        for b, s, _ in programs:
            for _, names in s.ins + s.outs:
                for n in names:
                    homes.setdefault(n, []).append(b)
        declared = {v.name for b in blocks for v in b.vars}
        for n, where in homes.items():
            if n not in declared:
                home = where[0] if all(b is where[0] for b in where) else main
                self.add_var(home, n, 'dense', 'float64' if twin else 'float32', None, False)
        for b, s, attrs in programs:
            self.add_op(b, s.name, s.ins, s.outs, attrs, twin)
        return desc

    def run(self, example, twin=False):
        """Records of the out lines, in order. twin: float32 operands become float64."""
        seed = example.of('seed')
        self.paddle.seed(seed[0].value if seed else 991)
        desc = self.program(example, twin)
        scope = self.core.Scope()
        for name, _, s in self.variables(example, 'in'):
            t, v = s.tensor, scope.var(name)
            if t.items is not None:
                a = v.get_lod_tensor_array()
                for i in t.items:
                    tensor = self.core.LoDTensor()
                    self.put(tensor, i, twin)
                    a.append(tensor)
            elif t.rows is not None:
                rows = v.get_selected_rows()
                rows.set_height(t.height)
                rows.set_rows(t.rows)
                self.put(rows.get_tensor(), t, twin)
            else:
                self.put(v.get_tensor(), t, twin)
        program = self.paddle.static.Program.parse_from_string(desc.SerializeToString())
        self.programs.append(program)  # Paddle keeps pointers into it
        self.executor.run(program, scope=scope)
        result = []
        for name, _, s in self.variables(example, 'out'):
            v = scope.find_var(name)
            if s.tensor is not None and s.tensor.items is not None:
                result.append({'t': 'array', 'items': [
                    self.get(i) for i in v.get_lod_tensor_array()]})
            elif s.tensor is not None and s.tensor.rows is not None:
                rows = v.get_selected_rows()
                r = self.get(rows.get_tensor())
                r.update(t='rows', rows=[int(x) for x in rows.rows()], height=int(rows.height()))
                result.append(r)
            else:
                result.append(self.get(v.get_tensor()))
        return result


# ---------------------------------------------------------------- comparison
def wide(a, dtype):
    import numpy as np
    if dtype == 'bfloat16':
        bits = np.atleast_1d(a).astype(np.uint32) << 16
        return bits.view(np.float32).astype(np.float64)
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


# ---------------------------------------------------------------- commands
def example_text(example, paddle, write):
    """The example's lines, with Paddle's answers in its out lines."""
    lines = ['example ' + example.title]
    fresh, close = {}, None
    if write:
        records = paddle.run(example)
        close = tolerance_line(example, records, paddle)
        for (_, _, s), r in zip(paddle.variables(example, 'out'), records):
            t = s.tensor
            if t is not None and (t.any_type or t.stats):
                continue
            if t is not None and t.shape is not None and not t.lod:
                r['lod'] = []  # the line does not ask for it
            if s.name == 'XShape' or (t is None and r.get('none')):
                fresh[id(s)] = '?'
            else:
                fresh[id(s)] = tensor_text(r, t is not None and t.any)
    for s in example.statements:
        if s.kind == 'out' and close:
            lines.append(close)
            close = None
        if id(s) in fresh:
            head = 'out %s%s' % (s.name, '=' + s.alias if s.alias else '')
            lines += statement_lines(head, fresh[id(s)])
        else:
            lines.append(wrap(s.text))
            if s.tensor is not None and s.tensor.items:
                lines += item_lines(s)
    return '\n'.join(lines) + '\n'


def item_lines(statement):
    lines = []
    for i in statement.tensor.items:
        import numpy as np
        dtype = i.dtype
        a = (np.array([to_bfloat16(v) for v in i.values], 'uint16') if dtype == 'bfloat16'
             else np.array(i.values, dtype))
        r = {'t': 'dense', 'a': a.reshape(i.shape), 'dtype': dtype, 'lod': i.lod}
        lines.append(wrap('item ' + tensor_text(r, i.any)))
    return lines


def write(files, wanted, paddle):
    failed = 0
    for path in sources(files):
        text = path.read_text()

        def anew(m):
            nonlocal failed
            if m[1].startswith(NOT_OF_PADDLE):
                return m[0]
            out = []
            for e in parse_block(m[1], m[2]):
                try:
                    out.append(example_text(e, paddle, bool(wanted.search(e.op))))
                except Exception as error:
                    failed += 1
                    print('%s: %s, %s: %s' % (path.name, e.op, e.title, said(error)))
                    out.append(example_text(e, paddle, False))
            return 'HEDDLE_EXAMPLES(%s, R"(\n%s)")' % (m[1], '\n'.join(out))
        new = BLOCK.sub(anew, text)
        if new != text:
            path.write_text(new)
    return failed


def said(error):
    lines = [l for l in str(error).strip().split('\n') if l.strip()]
    return ' '.join(l.strip() for l in lines[-3:])[-300:] or type(error).__name__


def check(files, wanted, paddle):
    passed = failed = 0
    for path in sources(files):
        for m in BLOCK.finditer(path.read_text()):
            if not wanted.search(m[1]) or m[1].startswith(NOT_OF_PADDLE):
                continue
            for e in parse_block(m[1], m[2]):
                try:
                    records = paddle.run(e)
                    problems = [
                        '%s %s' % (s.name, p) for (_, _, s), r in zip(
                            paddle.variables(e, 'out'), records)
                        for p in [compare(e, s, r, paddle)] if p]
                except Exception as error:
                    problems = [said(error)]
                passed += not problems
                failed += bool(problems)
                for p in problems:
                    print('%s: %s, %s: %s' % (path.name, e.op, e.title, p[:400]))
    print('%d passed, %d failed' % (passed, failed))
    return failed


def missing():
    defined, shown = {}, set()
    for path in sources([]):
        text = path.read_text()
        for op in OPERATOR.findall(text):
            defined[op] = path
        for m in BLOCK.finditer(text):
            if parse_block(m[1], m[2]):
                shown.add(m[1])
    lacking = sorted(set(defined) - shown)
    for op in lacking:
        print('%s\t%s' % (op, defined[op].relative_to(ROOT)))
    for op in sorted(shown - set(defined)):
        print('%s has examples but is no operator' % op)
    print('%d of %d operators have examples' % (len(defined) - len(lacking), len(defined)))
    return len(lacking) + len(shown - set(defined))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--missing', action='store_true')
    parser.add_argument('--ops', default='')
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    if args.missing:
        return missing() > 0
    if not args.write and not args.check:
        parser.error('--write, --check or --missing')
    wanted, paddle, failed = re.compile(args.ops), Paddle(), 0
    if args.write:
        failed += write(args.files, wanted, paddle)
    if args.check:
        failed += check(args.files, wanted, paddle)
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
