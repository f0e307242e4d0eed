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
import pathlib
import re
import sys

from op_example_answers import is_of_another
from op_example_compare import compare, tolerance_line
from op_example_paddle import Paddle
from op_example_text import parse_block, statement_lines, tensor_text, to_bfloat16, wrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r'^HEDDLE_EXAMPLES\((\w+), R"\(\n(.*?)^\)"\)$', re.S | re.M)
NOT_OF_PADDLE = ('onnx_', 'tf_')  # onnx_examples.py and tf_examples.py ask others about these
OPERATOR = re.compile(r'^HEDDLE_OP\((\w+)\)', re.M)


def sources(files):
    if files:
        return [pathlib.Path(f).resolve() for f in files]
    return sorted((ROOT / 'kernels').rglob('*.cc'))


def example_text(example, paddle, write):
    """The example's lines, with Paddle's answers in its out lines."""
    lines = ['example ' + example.title]
    fresh, close = {}, None
    if write and not is_of_another(example):
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
                if is_of_another(e):
                    continue
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
