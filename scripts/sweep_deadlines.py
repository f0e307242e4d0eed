#!/usr/bin/env python3
"""How long each operator computes without a look at its run's deadline.

  sweep_deadlines.py --tests build/release/heddle_ops_tests --heddle build/release/heddle
                     [--ms 150] [--mib 512] [--limit 50] [--only GLOB] [--every 1] [--jobs 1]
                     [--out FILE]

The operators' own examples grow, size by size, until a run takes --ms on one thread or its operands
take --mib MiB (tests/ops/looks.h). A run is asked at each look; the longest time between two of
them, in the thread's processor time, is what a deadline, a stop or Ctrl-C would have to wait. Then
it runs with a deadline and with a stop, of 100 ms or a third of --ms, and the time by the clock
that it goes on after them is taken. Prints the ten longest, and those above --limit; exit status 1
when there are some. Operators of all formats have examples. One process each: one that takes all
memory, or for ever, ends alone.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import resource
import subprocess
import sys

GIB = 6


def operators(heddle):
    told = json.loads(subprocess.run([heddle, 'ops', '--json'], capture_output=True, text=True,
                                     check=True).stdout)
    ops = told['operators']
    return sorted(op['op'] for op in ops)


def sweep_arguments(text, mib):
    """What sweeps over grown operators are told."""
    parser = argparse.ArgumentParser(description=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--tests', required=True)
    parser.add_argument('--heddle', required=True)
    parser.add_argument('--ms', type=float, default=150)
    parser.add_argument('--mib', type=int, default=mib)
    parser.add_argument('--limit', type=float, default=50)
    parser.add_argument('--timeout', type=float, default=60)
    parser.add_argument('--only', default='*')
    parser.add_argument('--every', type=int, default=1)
    parser.add_argument('--jobs', type=int, default=1)
    return parser


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (GIB << 30,) * 2)


def looks(args, op):
    """(operator, example, ms of a run, longest ms without a look, looks, status and operands, ms
    that it went on after a deadline, after a stop)"""
    try:
        done = subprocess.run([args.tests, '--looks=' + op, str(args.ms), str(args.mib)],
                              capture_output=True, text=True, timeout=args.timeout,
                              preexec_fn=limits)
    except subprocess.TimeoutExpired:
        return (op, '', args.timeout * 1e3, args.timeout * 1e3, 0, 'takes longer than the limit',
                0.0, 0.0)
    rows = [line.split('\t') for line in done.stdout.splitlines() if line.count('\t') >= 5]
    if done.returncode != 0 or not rows:
        return (op, '', 0.0, 0.0, 0, 'exit status %d' % done.returncode if rows or
                done.returncode else 'no example', 0.0, 0.0)
    best = max(rows, key=lambda row: float(row[3]))
    return (op, best[1], float(best[2]), float(best[3]), int(best[4]), best[5] + best[6],
            float(best[7]), float(best[8]))


def main():
    parser = sweep_arguments(__doc__, mib=512)
    parser.add_argument('--out')
    args = parser.parse_args()
    ops = [op for op in operators(args.heddle) if fnmatch.fnmatch(op, args.only)][::args.every]
    found = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        out = open(args.out, 'w', buffering=1) if args.out else None
        for row in pool.map(lambda op: looks(args, op), ops):
            found.append(row)
            if out:
                print(*row, sep='\t', file=out)
    found.sort(key=lambda row: -row[3])
    print('%-32s %9s %9s %7s %9s %9s' % ('operator', 'run ms', 'no look', 'looks', 'deadline',
                                         'stop'))
    for row in found[:10]:
        print('%-32s %9.1f %9.1f %7d %9.1f %9.1f  %s' % (row[0], row[2], row[3], row[4], row[6],
                                                         row[7], row[5][:60]))
    late = [row for row in found if row[3] > args.limit]
    grown = sum(row[2] >= args.ms for row in found)
    print('%d operators, %d of them took %g ms; %d computed longer than %g ms without a look'
          % (len(found), grown, args.ms, len(late), args.limit))
    return 1 if late else 0


if __name__ == '__main__':
    sys.exit(main())
