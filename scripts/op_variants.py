#!/usr/bin/env python3
"""Runs variants of the operators' examples under PaddlePaddle 2.6.2 and heddle, and lists where
heddle refuses what Paddle takes, or answers otherwise.

  op_variants.py --heddle build/release/heddle                all operators (some ten minutes)
  op_variants.py --heddle … --ops '^adam' --kinds attr,dtype  some of them

A variant is an example in which one thing is another: the dtype of its operands (dtype), a further
output (out), an optional operand left out (in), the value of an attribute (attr). Those that Paddle
refuses say nothing. Of what is left, much is no fault of heddle's: values that mean nothing, memory
that Paddle never wrote, choices between equal elements. scripts/conformance_refused.tsv lists what
has been looked at.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import numpy as np

from op_example_compare import wide
from op_example_paddle import Paddle
from op_example_text import case_files, parse_block
from op_examples import NOT_OF_PADDLE
from op_variant_cases import variants, write_case

TOLERANCE = {'float16': 5e-3, 'bfloat16': 3e-2}


def write_some(todo, first, folder, paddle, progress):
    """In a child process: writes the cases from number `first` on, telling each number."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    for number in range(first, len(todo)):
        os.write(progress, b'%d\n' % number)
        signal.alarm(10)
        name, variant = todo[number]
        case = folder / name
        case.mkdir()
        try:
            if write_case(case, variant, paddle.run(variant), paddle):
                (case / 'complete').touch()
        except Exception:  # Paddle refuses it
            pass


def write_all(todo, folder, paddle):
    """Some variants crash Paddle or hang it: what follows them goes on in another process."""
    first = 0
    while first < len(todo):
        told, progress = os.pipe()
        child = os.fork()
        if child == 0:
            write_some(todo, first, folder, paddle, progress)
            os._exit(0)
        os.close(progress)
        with os.fdopen(told) as lines:
            numbers = lines.read().split()
        if os.waitpid(child, 0)[1] == 0:
            return
        first = int(numbers[-1]) + 1 if numbers else first + 1


def make_cases(args, folder):
    from paddle.base.framework import OpProtoHolder
    paddle, wanted = Paddle(), re.compile(args.ops)
    protos = OpProtoHolder.instance()
    for path in case_files(args.files):
        op = path.stem
        if not wanted.search(op) or op.startswith(NOT_OF_PADDLE):
            continue
        try:
            proto = protos.get_op_proto(op)
        except ValueError:
            proto = None
        for k, example in enumerate(parse_block(op, path.read_text())):
            if example.has('random'):
                continue
            todo = [(re.sub(r'[^A-Za-z0-9_.=+-]', '_', '%s.%d.%s' % (op, k, label))[:150], v)
                    for label, v in variants(example, args.kinds.split(','), paddle, proto)]
            write_all(list(dict(todo).items()), folder, paddle)


def run_heddle(args, cases, results):
    """{case: error} of those that have no result."""
    todo, errors = list(cases), {}
    while todo:
        listed = results / 'list.txt'
        listed.write_text(''.join('%s\t%s\n' % (c, results / c.name) for c in todo))
        done = subprocess.run([str(args.heddle), 'run-cases', '--list', str(listed)],
                              capture_output=True, text=True, errors='replace')
        for line in done.stderr.splitlines():
            m = re.match(r'case (\S+): (.*)', line)
            if m:
                errors[m[1]] = m[2].replace(str(results.parent) + '/', '')
        if done.returncode == 0:
            break
        ran = [i for i, c in enumerate(todo) if any((results / c.name).iterdir())
               or c.name in errors]
        crashed = ran[-1] + 1 if ran else 0
        if crashed < len(todo):
            errors[todo[crashed].name] = 'heddle ends with status %d' % done.returncode
        todo = todo[crashed + 1:]
    return errors


def difference(case, result, error):
    for line in (case / 'io.txt').read_text().splitlines():
        words = line.split('\t')
        if words[0] == 'out' and words[2] != 'tensor_array':
            file, dtype = words[6:8]
        elif words[0] == 'item' and words[1].startswith('out'):
            file, dtype = words[1:3]
        else:
            continue
        if not (result / file).exists():
            return 'refused', error
        got, want = np.load(result / file), np.load(case / file)
        if got.shape != want.shape or got.dtype != want.dtype:
            return 'shape', '%s is %s %s, Paddle says %s %s' % (
                words[-1], got.dtype, list(got.shape), want.dtype, list(want.shape))
        a, b = wide(got, dtype).reshape(-1), wide(want, dtype).reshape(-1)
        tolerance = TOLERANCE.get(dtype, 2e-4)
        with np.errstate(all='ignore'):
            close = (a == b) | (np.isnan(a) & np.isnan(b)) | (
                np.abs(a - b) <= tolerance * (1 + np.abs(b)))
        if not close.all():
            return 'values', '%s is %s, Paddle says %s' % (
                words[-1], got.reshape(-1)[:6], want.reshape(-1)[:6])
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--heddle', type=pathlib.Path, required=True)
    parser.add_argument('--ops', default='')
    parser.add_argument('--kinds', default='dtype,out,in,attr')
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder, results = pathlib.Path(work, 'cases'), pathlib.Path(work, 'results')
        folder.mkdir()
        make_cases(args, folder)
        cases = sorted(c.parent for c in folder.glob('*/complete'))
        for case in cases:
            (results / case.name).mkdir(parents=True)
        errors = run_heddle(args, cases, results)
        found = [(c.name, difference(c, results / c.name, errors.get(c.name, 'no output')))
                 for c in cases]
    for name, said in found:
        if said:
            print('%s\t%s\t%s' % (said[0], name, ' '.join(said[1].split())))
    print('%d of %d variants agree' % (sum(not said for _, said in found), len(found)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
