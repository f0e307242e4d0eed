#!/usr/bin/env python3
"""Lists the dtypes that PaddlePaddle 2.6.2 registers for an operator on a CPU and heddle does not.

  op_dtypes.py --heddle build/release/heddle

Needs paddlepaddle 2.6.2. Paddle registers some dtypes that its kernel then refuses, or for which it
computes nothing useful: scripts/conformance_refused.tsv has those. op_variants.py runs the others.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

NAMES = {'float': 'float32', 'double': 'float64', 'int': 'int32', 'int8_t': 'int8',
         'uint8_t': 'uint8', 'int16_t': 'int16', 'int64_t': 'int64', 'bool': 'bool',
         'float16': 'float16', 'bfloat16': 'bfloat16', 'complex<float>': 'complex64',
         'complex<double>': 'complex128'}
KERNEL = re.compile(r'data_type\[(?:::paddle::platform::)?(.*?)\].*'
                    r'place\[Place\(cpu\)\].*\[PLAIN\]')


def of_paddle():
    """{operator: dtypes} of Paddle's kernels for the CPU."""
    os.environ.setdefault('GLOG_minloglevel', '3')
    from paddle.base import core
    found = {}
    for op, kernels in core._get_all_register_op_kernels('all').items():
        for m in filter(None, map(KERNEL.search, kernels)):
            if m[1] in NAMES:
                found.setdefault(op, set()).add(NAMES[m[1]])
    return found


def of_heddle(tool):
    said = json.loads(subprocess.run([str(tool), 'ops', '--all', '--json'], check=True,
                                     capture_output=True, text=True).stdout)
    return {o['op']: set(re.search(r'^  dtypes (.*)$', o['description'], re.M)[1].split(', '))
            for o in said['operators']}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--heddle', type=pathlib.Path, required=True)
    theirs, ours = of_paddle(), of_heddle(parser.parse_args().heddle)
    pairs = taken = 0
    for op in sorted(theirs.keys() & ours.keys()):
        lacking = theirs[op] - ours[op]
        pairs += len(theirs[op])
        taken += len(theirs[op]) - len(lacking)
        if lacking:
            print('%s\t%s' % (op, ', '.join(sorted(lacking))))
    print('%d of %d pairs of operator and dtype' % (taken, pairs))
    return 0


if __name__ == '__main__':
    sys.exit(main())
