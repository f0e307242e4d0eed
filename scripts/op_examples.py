#!/usr/bin/env python3
"""Examples of operators: asks PaddlePaddle 2.6.2 for the answers in tests/ops/cases.

docs/examples.md describes the format.

  op_examples.py --write [FILE...]   writes the expected values of the `out` lines anew
  op_examples.py --check [FILE...]   compares what stands there with Paddle's answers
  op_examples.py --missing           lists the operators that have no example

Without FILE: all of them. --ops REGEX takes the operators whose name matches.
--write and --check need `pip install paddlepaddle==2.6.2 "numpy<2"` in the Python that runs this.
"""
import argparse
import pathlib
import re
import sys

from op_example_answers import is_of_another
from op_example_compare import compare, tolerance_line
from op_example_paddle import Paddle
from op_example_text import (case_files, file_text, head_of, parse_block, statement_lines,
                             tensor_text, wrap)

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOT_OF_PADDLE = ('onnx_', 'tf_')  # onnx_examples.py and tf_examples.py ask others about these
OPERATOR = re.compile(r'^HEDDLE_OP\((\w+)\)', re.M)


def example_text(example, paddle):
    """The example's text, with Paddle's answers in its out lines."""
    if is_of_another(example):
        return example.text_with({})
    fresh, records = {}, paddle.run(example)
    close = tolerance_line(example, records, paddle)
    for (_, _, s), r in zip(paddle.variables(example, 'out'), records):
        t = s.tensor
        lines = [close] if close else []
        close = None
        if t is not None and (t.any_type or t.stats):
            fresh[id(s)] = lines + [wrap(s.text)]
            continue
        if t is not None and t.shape is not None and not t.lod:
            r['lod'] = []  # the line does not ask for it
        unknown = s.name == 'XShape' or (t is None and r.get('none'))
        text = '?' if unknown else tensor_text(r, t is not None and t.any)
        head = 'out %s%s' % (s.name, '=' + s.alias if s.alias else '')
        fresh[id(s)] = lines + statement_lines(head, text)
    return example.text_with(fresh)


def write(files, wanted, paddle):
    failed = 0
    for path in case_files(files):
        if path.stem.startswith(NOT_OF_PADDLE) or not wanted.search(path.stem):
            continue
        text, out = path.read_text(), []
        for e in parse_block(path.stem, text):
            try:
                out.append(example_text(e, paddle))
            except Exception as error:
                failed += 1
                print('%s: %s: %s' % (path.name, e.title, said(error)))
                out.append(e.text_with({}))
        new = file_text(head_of(text), out)
        if new != text:
            path.write_text(new)
    return failed


def said(error):
    lines = [l for l in str(error).strip().split('\n') if l.strip()]
    return ' '.join(l.strip() for l in lines[-3:])[-300:] or type(error).__name__


def check(files, wanted, paddle):
    passed = failed = 0
    for path in case_files(files):
        if path.stem.startswith(NOT_OF_PADDLE) or not wanted.search(path.stem):
            continue
        for e in parse_block(path.stem, path.read_text()):
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
                print('%s: %s: %s' % (path.name, e.title, p[:400]))
    print('%d passed, %d failed' % (passed, failed))
    return failed


def missing():
    defined = {op: path for path in sorted((ROOT / 'kernels').rglob('*.cc'))
               for op in OPERATOR.findall(path.read_text())}
    shown = {path.stem for path in case_files() if parse_block(path.stem, path.read_text())}
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
