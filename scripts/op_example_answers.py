"""Expected values of operators' examples, written anew or compared with another system's answers.
onnx_examples.py and tf_examples.py each give the system, an oracle: its run(example) returns arrays
in the order of the example's `out` lines."""
import argparse
import re

from op_example_text import (case_files, file_text, head_of, parse_block, statement_lines,
                             tensor_text, to_bfloat16)

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
                fresh[id(s)] = statement_lines('out ' + s.name, tensor_text(record(a)))
    return example.text_with(fresh)


def write(files, oracle, prefix):
    failed = 0
    for path in files:
        text, out = path.read_text(), []
        for e in parse_block(path.stem, text):
            if not path.stem.startswith(prefix) and not node_of(e):
                out.append(e.text_with({}))
                continue
            try:
                out.append(anew(e, oracle))
            except Exception as error:
                failed += 1
                print('%s: %s: %s' % (path.name, e.title, str(error)[:300]))
                out.append(e.text_with({}))
        new = file_text(head_of(text), out)
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


def check(files, oracle, prefix):
    passed = failed = 0
    for path in files:
        for e in parse_block(path.stem, path.read_text()):
            if is_given(e) or not path.stem.startswith(prefix) and not node_of(e):
                continue
            try:
                problems = ['%s %s' % (s.name, said) for s, a in zip(e.of('out'), oracle.run(e))
                            if (said := differs(s, e, a))]
            except Exception as error:
                problems = [str(error)]
            passed += not problems
            failed += bool(problems)
            for p in problems:
                print('%s: %s: %s' % (path.name, e.title, p[:300]))
    print('%d passed, %d failed' % (passed, failed))
    return failed


def main(doc, prefix, make_oracle):
    """For the operators whose name begins with prefix and an underscore, and, asking ONNX Runtime,
    for examples with a node of their own."""
    parser = argparse.ArgumentParser(description=doc.split('\n')[0])
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--ops', default='')
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    if not args.write and not args.check:
        parser.error('--write or --check')
    prefix += '_'
    nodes = hasattr(make_oracle, 'run_node')
    wanted = re.compile(args.ops)
    files = [path for path in case_files(args.files)
             if wanted.search(path.stem) and (nodes or path.stem.startswith(prefix))]
    oracle, failed = make_oracle(), 0
    if args.write:
        failed += write(files, oracle, prefix)
    if args.check:
        failed += check(files, oracle, prefix)
    return failed > 0
