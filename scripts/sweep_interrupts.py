#!/usr/bin/env python3
"""How long operators go on after a timeout and after Ctrl-C, in Python.

  PYTHONPATH=build/release/python python scripts/sweep_interrupts.py
      --tests build/release/heddle_ops_tests --heddle build/release/heddle
      [--ms 150] [--mib 256] [--limit 50] [--only GLOB] [--every 1] [--jobs 1] [--threads 1,2]

The operators' own examples grow until a run takes --ms (tests/ops/grown_files.h), and run as a
script would run them: once to the end, once with a timeout, and once with a SIGINT that another
thread sends, both in the middle. What counts is the time by the clock until Python goes on; of
three tries the shortest, so that what else the machine does is left out. After both, the whole run
gives what it gave before. Prints the ten longest; exit status 1 when one is above --limit. Examples
of which an operand is no array, or no run takes --ms, are passed over.
"""
import concurrent.futures
import fnmatch
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from sweep_deadlines import operators, sweep_arguments

TRIES = 3


def read(folder):
    import numpy as np
    feeds, fetches = {}, []
    with open(os.path.join(folder, 'feeds.txt'), encoding='utf-8') as lines:
        for line in lines:
            name, file, *offsets = line.split()
            if name == 'fetch':
                fetches.append(file)
                continue
            array = np.load(os.path.join(folder, file))
            levels = [[int(v) for v in level.split(',') if v]
                      for level in (offsets[0] if offsets else '').split(';') if level]
            feeds[name] = (array, levels) if levels else array
    return feeds, fetches


def ended(folder, threads):
    """Runs what is in the folder; prints its time, and what it took after a timeout and Ctrl-C."""
    import heddle
    from heddle import static
    feeds, fetches = read(folder)
    with open(os.path.join(folder, 'program.pdmodel'), 'rb') as file:
        program = file.read()

    def runner(timeout=None):
        exe, scope = static.Executor(threads=threads, timeout=timeout), static.Scope()
        return lambda: exe.run(program, feed=dict(feeds), fetch_list=fetches, scope=scope,
                               return_numpy=False)

    run = runner()
    run()
    begin = time.perf_counter()
    whole = run()
    took = time.perf_counter() - begin
    after_timeout = after_signal = float('inf')
    for _ in range(TRIES):
        timed = runner(took / 3)
        begin = time.perf_counter()
        try:
            timed()
        except heddle.DeadlineExceeded:
            pass
        after_timeout = min(after_timeout, time.perf_counter() - begin - took / 3)
        sent = []

        def interrupt():
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(took / 3, interrupt)
        try:
            timer.start()
            run()
            timer.join()
            time.sleep(1)  # the signal comes at last
        except KeyboardInterrupt:
            after_signal = min(after_signal, time.perf_counter() - sent[0])
    again = run()
    same = all(a.numpy().tobytes() == b.numpy().tobytes() for a, b in zip(whole, again))
    print(json.dumps([took * 1e3, after_timeout * 1e3, after_signal * 1e3, same]))


def measure(args, op):
    """(operator, threads, ms of a run, ms after a timeout, after Ctrl-C, what is wrong)"""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = subprocess.run([args.tests, '--write-grown=' + op, str(args.ms), str(args.mib),
                                   folder], capture_output=True, timeout=args.timeout)
            if made.returncode != 0:
                return rows
            for threads in args.threads.split(','):
                done = subprocess.run([sys.executable, __file__, '--run', folder, threads],
                                      capture_output=True, text=True, timeout=args.timeout)
                if done.returncode != 0:
                    rows.append((op, threads, 0., 0., 0., done.stderr.strip().split('\n')[-1]))
                    continue
                took, timeout, sigint, same = json.loads(done.stdout)
                rows.append((op, threads, took, timeout, sigint,
                             '' if same else 'the next run gives something else'))
        except subprocess.TimeoutExpired:
            rows.append((op, '', 0., 0., 0., 'takes longer than %g s' % args.timeout))
    return rows


def main():
    if sys.argv[1:2] == ['--run']:
        return ended(sys.argv[2], int(sys.argv[3]))
    parser = sweep_arguments(__doc__, mib=256)
    parser.add_argument('--threads', default='1,2')
    args = parser.parse_args()
    ops = [op for op in operators(args.heddle) if fnmatch.fnmatch(op, args.only)][::args.every]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for found in pool.map(lambda op: measure(args, op), ops):
            rows += found
    rows.sort(key=lambda row: -max(row[3], row[4]))
    print('%-32s %7s %9s %9s %9s' % ('operator', 'threads', 'run ms', 'timeout', 'Ctrl-C'))
    for row in [row for row in rows if not row[5]][:10]:
        print('%-32s %7s %9.1f %9.1f %9.1f' % row[:5])
    late = [row for row in rows if max(row[3], row[4]) > args.limit]
    wrong = [row for row in rows if row[5]]
    for row in wrong:
        print('%s, %s threads: %s' % (row[0], row[1], row[5]))
    print('%d runs of %d operators; %d went on for more than %g ms'
          % (len(rows), len({row[0] for row in rows}), len(late), args.limit))
    return 1 if late or wrong else 0


if __name__ == '__main__':
    sys.exit(main())
