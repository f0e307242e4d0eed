"""Files and lines of operators' examples, read and written (docs/examples.md has the format)."""
import json
import pathlib
import re

CASES = pathlib.Path(__file__).resolve().parent.parent / 'tests' / 'ops' / 'cases'
WIDTH = 100
DTYPES = ['bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32',
          'float64', 'complex64', 'complex128']


class BadExample(Exception):
    pass


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

    def text_with(self, lines_of):
        """Its text, where statements whose id lines_of knows have the lines given there."""
        lines = ['example ' + self.title]
        for s in self.statements:
            lines += lines_of.get(id(s)) or [wrap(s.text)] + [wrap(i.text) for i in s.items]
        return '\n'.join(lines) + '\n'


def case_files(files=()):
    """The files named, or all. Each holds examples of the operator that it is called after."""
    if files:
        return [pathlib.Path(f).resolve() for f in files]
    return sorted(CASES.glob('*/*.txt'))


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


def head_of(text):
    """The comment lines before the first example, with the empty ones between."""
    return re.match(r'(?:(?:#.*)?\n)*', text)[0]


def file_text(head, examples):
    """The text of a file from that of its examples, each of which ends with a newline."""
    return head + '\n'.join(examples)


def parse_block(op, text):
    """The examples of one file's text, in order."""
    joined = []
    for line in text[len(head_of(text)):].split('\n'):
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
            array.items.append(s)
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
