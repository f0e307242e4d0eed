#!/usr/bin/env python3
"""Feeds generated ONNX models with values at the edges and compares heddle with ONNX Runtime.

  sweep_edges.py --heddle build/release/heddle [--seed N] [--only GLOB] [--every N] [-v]
  sweep_edges.py --record FILE [--only GLOB] [--every N] [--also GLOB]    packs cases and answers
  sweep_edges.py --replay FILE --heddle build/release/heddle    runs what was packed

Edges are NaN of both signs, infinities, zeros of both signs, denormal numbers, and the least and
greatest numbers of a type; of unsigned types also what is negative in a signed one. Each model is
one operator, or a chain that passes fuse. It runs at levels 0, 1 and 2 and on one and two threads.
An element is right when it is NaN, infinite or a zero of a sign where ONNX Runtime's is, and else
near it. Where ONNX Runtime's plain graph and its optimised one differ, each of them is right, and
where its answer depends on an element's place, so is the definition: edges/answers.py lists those
cases. What a case allows beyond that stands where it is made, with the reason.

Unsigned 16, 32 and 64-bit operands are fed as signed ones and cast in the model, and results are
cast back, so that files of values hold what every numpy reads.

Needs onnx, onnxruntime and numpy in the Python that runs this; --replay needs numpy alone.
"""
import argparse
import concurrent.futures
import fnmatch
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from edges import axes, elements, networks  # noqa: E402
from edges.answers import answers, differences  # noqa: E402
from edges.case import Draw  # noqa: E402

RUNS = [(0, 1), (1, 1), (2, 1), (2, 2)]


def all_cases(seed):
    for family in elements.FAMILIES + axes.FAMILIES + networks.FAMILIES:
        yield from family(lambda c: Draw(seed, c.name))


def run_heddle(heddle, folder, model, feeds, level, threads, more=()):
    out = os.path.join(folder, 'out')
    for name in os.listdir(out) if os.path.isdir(out) else []:
        os.remove(os.path.join(out, name))
    os.makedirs(out, exist_ok=True)
    done = subprocess.run([heddle, 'run', model, '--opt', str(level), '--threads', str(threads),
                           '--out', out, '--feed-npz', feeds, *more], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)
    if done.returncode:
        return None, 'exit status %d: %s' % (done.returncode, done.stderr.strip()[-300:])
    values = []
    while os.path.exists(os.path.join(out, 'out_%d.npy' % len(values))):
        values.append(np.load(os.path.join(out, 'out_%d.npy' % len(values)), allow_pickle=True))
    return values, None


class Recorded:
    """A case of a file that record() wrote; `rtol`, `sums` and `zeros` as Case has them."""

    def __init__(self, name, parts):
        self.name, self.bytes = name, parts['model'].tobytes()
        self.zeros, self.rtol, self.sums, self.fails = (float(v) for v in parts['how'])
        self.feeds = {k[5:]: v for k, v in parts.items() if k.startswith('feed|')}
        kinds = sorted({k.split('|')[1] for k in parts if k.startswith('want|')})
        first = [parts['want|0|%d' % k] for k in range(len(parts))
                 if 'want|0|%d' % k in parts]
        self.wants = [[parts.get('want|%s|%d' % (kind, k), v) for k, v in enumerate(first)]
                      for kind in kinds]


def compare(name, model, feeds, wants, case, heddle):
    """What is wrong, for each way to run it."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        path, fed = os.path.join(folder, 'm.onnx'), os.path.join(folder, 'f.npz')
        pathlib.Path(path).write_bytes(model)
        np.savez(fed, **feeds)
        for level, threads in RUNS:
            values, error = run_heddle(heddle, folder, path, fed, level, threads)
            if case.fails:
                if error is None or not error.startswith('exit status 1: '):
                    wrong.append('level %d, %d threads: no error, or a crash: %s' % (
                        level, threads, error))
                continue
            if error:
                wrong.append('level %d, %d threads: %s' % (level, threads, error))
                continue
            for k, value in enumerate(values):
                what = differences(value, [w[k] for w in wants], case)
                if what:
                    wrong.append('level %d, %d threads, output %d: %s' % (level, threads, k, what))
                    break
    return wrong


def check(case, heddle):
    """(name, what is wrong or None, why it was not asked or None)"""
    if isinstance(case, Recorded):
        return (case.name, compare(case.name, case.bytes, case.feeds, case.wants, case, heddle),
                None)
    wants, why = ([], None) if case.fails else answers(case)
    if wants is None:
        return case.name, None, why
    model = case.model().SerializeToString()
    return case.name, compare(case.name, model, case.fed(), wants, case, heddle), None


def record(cases, path):
    """An .npz with model, feeds and answers of each case, for replay() without ONNX Runtime."""
    packed = {}
    for case in cases:
        wants, _ = ([], None) if case.fails else answers(case)
        if wants is None:
            continue
        part = {'model': np.frombuffer(case.model().SerializeToString(), 'uint8'),
                'how': np.array([case.zeros, case.rtol or 0, case.sums or 0, case.fails])}
        part.update(('feed|' + k, v) for k, v in case.fed().items())
        for kind, want in enumerate(wants):
            for k, v in enumerate(want):
                if kind == 0 or v.tobytes() != wants[0][k].tobytes():
                    part['want|%d|%d' % (kind, k)] = v
        packed.update(('%s|%s' % (case.name, k), v) for k, v in part.items())
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as z:
        for name in sorted(packed):
            buffer = io.BytesIO()
            np.save(buffer, packed[name])
            entry = zipfile.ZipInfo(name + '.npy', (1980, 1, 1, 0, 0, 0))  # the same bytes again
            z.writestr(entry, buffer.getvalue(), zipfile.ZIP_DEFLATED)


def replay(path):
    """The cases of a file that record() wrote."""
    parts = {}
    with np.load(path) as data:
        for name in data.files:
            case, part = name.split('|', 1)
            parts.setdefault(case, {})[part] = data[name]
    return [Recorded(name, each) for name, each in parts.items()]


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--heddle', default='build/release/heddle')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--only', default='*')
    p.add_argument('--every', type=int, default=1, help='take each N-th case alone')
    p.add_argument('--also', metavar='GLOB', default='', help='and each of these')
    p.add_argument('--jobs', type=int, default=2)
    p.add_argument('--record', metavar='FILE')
    p.add_argument('--replay', metavar='FILE')
    p.add_argument('-v', action='store_true', help='also say which cases were not asked')
    a = p.parse_args()
    cases = replay(a.replay) if a.replay else all_cases(a.seed)
    cases = [c for c in cases if fnmatch.fnmatch(c.name, a.only)]
    cases = [c for k, c in enumerate(cases)
             if k % a.every == 0 or fnmatch.fnmatch(c.name, a.also)]
    if a.record:
        record(cases, a.record)
        return 0
    passed = failed = unasked = 0
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for name, wrong, why in pool.map(lambda c: check(c, os.path.abspath(a.heddle)), cases):
            if wrong:
                failed += 1
                print('%s\n  %s' % (name, '\n  '.join(wrong)), flush=True)
            elif why:
                unasked += 1
                if a.v:
                    print('%s: not asked: %s' % (name, why.splitlines()[0][:160]))
            else:
                passed += 1
    print('%d passed, %d failed, %d not asked' % (passed, failed, unasked))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
