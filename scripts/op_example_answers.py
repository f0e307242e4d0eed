"""Expected values of operators' examples, written anew or compared with another system's answers.
onnx_examples.py and tf_examples.py each give the system, an oracle: its run(example) returns arrays
in the order of the example's `out` lines."""
import argparse
import pathlib
import re

from op_example_text import parse_block, statement_lines, tensor_text, to_bfloat16, wrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = {'float16': (2e-3, 1e-3), 'bfloat16': (2e-2, 1e-2), 'float32': (1e-5, 1e-6),
             'float64': (1e-9, 1e-11), 'complex64': (1e-5, 1e-6), 'complex128': (1e-9, 1e-11)}


def record(a):
    """The record of an array that tensor_text takes, in the dtype that heddle stores it in."""
    import numpy as np
    a = np.asarray(a)
    name = a.dtype.name
    stored = {'uint16': 'int32', 'uint32': 'int64', 'uint64': 'int64', 'int4': 'int8',
              'int2': 'int8', 'uint4': 'uint8', 'uint2': 'uint8'}.get(name, name)
    if name == 'bfloat16':
        a = a.view('uint16')
    elif name.startswith('float8') or name.startswith('float4'):
        a, stored = a.view('uint8'), 'uint8'
    elif stored != name:
        a = a.astype(stored)
    return {'t': 'dense', 'a': a, 'dtype': stored}


def is_given(example):
    """Nobody is asked: the example says so, is a program, or is about lists of tensors."""
    return bool(example.of('op')) or any(
        s.kind == '#' and s.text[1:].split() == ['given'] or
        s.tensor is not None and s.tensor.items is not None for s in example.statements)


def node_of(example):
    """The words behind `# node` in an example of an operator of Paddle's name whose attribute
    stands for ONNX's rule: ONNX's operator, its operands, `->` and its results. None: there is no
    such line."""
    for s in example.statements:
        words = s.text[1:].split() if s.kind == '#' else []
        if words[:1] == ['node']:
            return words[1:]
    return None


def is_of_another(example):
    """Of an operator of Paddle's name: the answer is another system's."""
    return node_of(example) is not None or any(
        s.kind == '#' and s.text[1:].split() == ['given'] for s in example.statements)


def anew(example, oracle):
    fresh = {}
    if not is_given(example):
        for s, a in zip(example.of('out'), oracle.run(example)):
            if s.tensor is None or not (s.tensor.any_type or s.tensor.any):
                fresh[id(s)] = tensor_text(record(a))
    lines = ['example ' + example.title]
    for s in example.statements:
        if id(s) in fresh:
            lines += statement_lines('out ' + s.name, fresh[id(s)])
        else:
            lines.append(wrap(s.text))
    return '\n'.join(lines) + '\n'


def write(files, blocks, oracle, wanted, prefix):
    failed = 0
    for path in files:
        text = path.read_text()

        def block(m):
            nonlocal failed
            if not wanted.search(m[1]):
                return m[0]
            out = []
            for e in parse_block(m[1], m[2]):
                if not m[1].startswith(prefix) and not node_of(e):
                    out.append('\n'.join(['example ' + e.title] + [
                        wrap(s.text) for s in e.statements]) + '\n')
                    continue
                try:
                    out.append(anew(e, oracle))
                except Exception as error:
                    failed += 1
                    print('%s: %s, %s: %s' % (path.name, e.op, e.title, str(error)[:300]))
                    out.append('\n'.join(['example ' + e.title] + [
                        wrap(s.text) for s in e.statements]) + '\n')
            return 'HEDDLE_EXAMPLES(%s, R"(\n%s)")' % (m[1], '\n'.join(out))
        new = blocks.sub(block, text)
        if new != text:
            path.write_text(new)
    return failed


def differs(statement, example, a):
    import numpy as np
    t, r = statement.tensor, record(a)
    if t is None:
        return 'no expected value'
    if t.any_type:
        return None
    if t.dtype != r['dtype'] or list(t.shape) != list(r['a'].shape):
        return 'is %s %s' % (r['dtype'], list(r['a'].shape))
    if t.any:
        return None
    want = np.array([to_bfloat16(v) for v in t.values] if t.dtype == 'bfloat16' else t.values)
    got = r['a'].reshape(-1)
    if t.dtype not in TOLERANCE or t.dtype == 'bfloat16':
        return None if (want == got).all() else 'is ' + tensor_text(r)
    close = example.of('close')
    rtol, atol = (close[0].rtol, close[0].atol) if close else TOLERANCE[t.dtype]
    wide = 'complex128' if t.dtype.startswith('complex') else 'float64'
    if np.allclose(got.astype(wide), want.astype(wide), rtol, atol, equal_nan=True):
        return None
    return 'is ' + tensor_text(r)


def check(files, blocks, oracle, wanted, prefix):
    passed = failed = 0
    for path in files:
        for m in blocks.finditer(path.read_text()):
            for e in parse_block(m[1], m[2]) if wanted.search(m[1]) else []:
                if is_given(e) or not m[1].startswith(prefix) and not node_of(e):
                    continue
                try:
                    problems = ['%s %s' % (s.name, said) for s, a in zip(e.of('out'), oracle.run(e))
                                if (said := differs(s, e, a))]
                except Exception as error:
                    problems = [str(error)]
                passed += not problems
                failed += bool(problems)
                for p in problems:
                    print('%s: %s, %s: %s' % (path.name, e.op, e.title, p[:300]))
    print('%d passed, %d failed' % (passed, failed))
    return failed


def main(doc, prefix, make_oracle):
    """For the operators whose name begins with prefix and an underscore, and, asking ONNX Runtime,
    for examples with a node of their own."""
    parser = argparse.ArgumentParser(description=doc.split('\n')[0])
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--ops', default='')
    parser.add_argument('files', nargs='*', type=pathlib.Path)
    args = parser.parse_args()
    if not args.write and not args.check:
        parser.error('--write or --check')
    prefix += '_'
    nodes = hasattr(make_oracle, 'run_node')
    folders = '*' if nodes else prefix[:-1] + '*'
    files = args.files or sorted((ROOT / 'kernels').glob(folders + '/*.cc'))
    blocks = re.compile(
        r'^HEDDLE_EXAMPLES\((%s\w+), R"\(\n(.*?)^\)"\)$' % ('' if nodes else prefix),
        re.S | re.M)
    oracle, failed, wanted = make_oracle(), 0, re.compile(args.ops)
    if args.write:
        failed += write(files, blocks, oracle, wanted, prefix)
    if args.check:
        failed += check(files, blocks, oracle, wanted, prefix)
    return failed > 0
