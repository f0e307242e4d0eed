"""Expected values of operators' examples, written anew or compared with another system's answers.
onnx_examples.py and tf_examples.py each give the system, an oracle: its run(example) returns arrays
in the order of the example's `out` lines."""
import argparse
import copy
import json
import re

from op_example_text import (Example, Statement, case_files, file_text, head_of, parse_block,
                             statement_lines, tensor_text, to_bfloat16)

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
    """Nobody is asked: the example says so, is a program that is no one's node or call, or is about
    lists of tensors."""
    asked = node_of(example) is not None or call_of(example) is not None
    return bool(example.of('op')) and not asked or any(
        s.kind == '#' and s.text[1:].split() == ['given'] or
        s.tensor is not None and s.tensor.items is not None for s in example.statements)


def words_behind(example, first):
    for s in example.statements:
        words = s.text[1:].split() if s.kind == '#' else []
        if words[:1] == [first]:
            return words[1:]
    return None


def system_of(example):
    """The words behind `# of` in an example: the system that answers, the system's operator, what
    that calls our slots and attributes (theirs=ours), and attributes that it alone has
    (theirs:=JSON). None: there is no such line."""
    for s in example.statements:
        words = s.text[1:].split() if s.kind == '#' else []
        if words[:1] == ['of']:
            return words[1:]
    return None


def as_theirs(example, key):
    """The example in the words of the system that `# of` names; key(operator) is what the oracle
    calls the operator. An attribute whose name is theirs as -=ours is left out."""
    words = system_of(example)
    if words is None:
        return example
    ours = [tuple(w.split('=')[::-1]) for w in words[2:] if ':=' not in w]
    names, out = dict(ours), Example(key(words[1]), example.title)
    for s in example.statements:
        if s.kind in ('in', 'out', 'attr') and s.name in names:
            s = copy.copy(s)
            s.name = names[s.name]
            if s.name == '-':
                continue
        out.statements.append(s)
    for name, value in (w.split(':=', 1) for w in words[2:] if ':=' in w):
        s = Statement('attr', 'attr %s - %s' % (name, value))
        s.name, s.type, s.value = name, '-', json.loads(value)
        out.statements.append(s)
    return out


def node_of(example):
    """The words behind `# node` in an example of an operator that is not named after ONNX's: ONNX's
    operator, its operands, `->` and its results. None: there is no such line."""
    return words_behind(example, 'node')


def call_of(example):
    """The words behind `# call`: as of node_of, of a function of tf.raw_ops."""
    return words_behind(example, 'call')


def is_of_another(example):
    """Of an operator of Paddle's name: the answer is another system's."""
    asked = (node_of(example), call_of(example), system_of(example))
    return any(a is not None for a in asked) or any(
        s.kind == '#' and s.text[1:].split() == ['given'] for s in example.statements)


def is_asked(example, oracle, prefix):
    """The system is the one that answers this example."""
    words = system_of(example)
    if words is not None:
        return words[0] == oracle.system
    return (example.op.startswith(prefix)
            or hasattr(oracle, 'run_node') and node_of(example) is not None
            or hasattr(oracle, 'run_call') and call_of(example) is not None)


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
            if not is_asked(e, oracle, prefix):
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
            if is_given(e) or not is_asked(e, oracle, prefix):
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
    """For the operators whose name begins with prefix and an underscore, and for examples that say
    what this oracle is asked."""
    parser = argparse.ArgumentParser(description=doc.split('\n')[0])
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--ops', default='')
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    if not args.write and not args.check:
        parser.error('--write or --check')
    prefix += '_'
    wanted = re.compile(args.ops)
    files = [path for path in case_files(args.files) if wanted.search(path.stem)]
    oracle, failed = make_oracle(), 0
    if args.write:
        failed += write(files, oracle, prefix)
    if args.check:
        failed += check(files, oracle, prefix)
    return failed > 0
