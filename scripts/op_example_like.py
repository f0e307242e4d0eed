#!/usr/bin/env python3
"""Adds variants of operators' examples, with the answers of PaddlePaddle 2.6.2.

  op_example_like.py [--dry] FILE...

A FILE has entries in the format of examples (docs/examples.md), each below a line that names the
example it is like:

  like swish: float32 2x2x3, beta 1      the example of that title; without, the operator's first
  example beta 2                         the new title
  attr beta FLOAT 2                      instead of that attribute's line, or besides the others
  in X float32 [2] 1 -1                  instead of the lines of that slot, or besides the others
  out Y                                  a further output
  drop attr NAME / in SLOT / out SLOT / close
                                         without those lines
  swap TEXT => OTHER                     OTHER wherever a line has TEXT, as the lines of a program
  new                                    nothing but what stands here

Instead of values, `drawn LO HI` stands for different numbers between the two, drawn from the title
and the line's place.

The answers are Paddle's, in the variant as in every example; what Paddle refuses is listed and not
added. An entry that ends Paddle's process or hangs is listed as well. --dry prints the examples
instead of adding them.
"""
import argparse
import json
import math
import os
import pathlib
import re
import signal
import sys
from random import Random

from op_example_paddle import Paddle
from op_example_text import CASES, BadExample, Example, parse_block
from op_examples import example_text, said


class Entry:
    def __init__(self, op, like):
        self.op, self.like, self.drops, self.swaps, self.lines = op, like, [], [], []
        self.title, self.new = None, False


def entries_of(text):
    """The entries of a file, in order; a line that begins with a space continues another."""
    joined, entries = [], []
    for line in text.split('\n'):
        if line.startswith(' ') and joined:
            joined[-1] += ' ' + line.strip()
        elif line.strip() and not line.startswith('##'):
            joined.append(line.rstrip())
    for line in joined:
        word, _, rest = line.partition(' ')
        if word == 'like':
            op, _, like = rest.partition(':')
            entries.append(Entry(op.strip(), like.strip()))
        elif word == 'example':
            entries[-1].title = rest
        elif word == 'drop':
            entries[-1].drops.append(tuple(rest.split()))
        elif word == 'swap':
            entries[-1].swaps.append(tuple(rest.replace('\\n', '\n').split(' => ')))
        elif word == 'new':
            entries[-1].new = True
        else:
            entries[-1].lines.append(line)
    return entries


def path_of(op):
    return next(iter(CASES.glob('*/%s.txt' % op)))


def drawn(title, place, line):
    """The line with numbers instead of `drawn LO HI`."""
    m = re.match(r'((?:in \S+|item) (\w+) (\[[^\]]*\]).*) drawn (\S+) (\S+)$', line)
    if not m:
        return line
    random, (low, high) = Random(title + m[1] + str(place)), (float(m[4]), float(m[5]))
    count = math.prod(json.loads(m[3]))
    step = 1 if 'int' in m[2] else 0.01
    every = range(math.ceil(low / step), math.floor(high / step) + 1)
    picked = random.sample(every, count) if count <= len(every) else random.choices(every, k=count)
    return '%s %s' % (m[1], ' '.join('%g' % (k * step) for k in picked))


def is_answer(s):
    """Whether the line's expected value is to be asked for."""
    t = s.tensor
    return s.kind == 'out' and t is not None and not (
        t.stats or t.any or t.items is not None or t.rows is not None)


def variant_of(entry, examples):
    given = parse_block(entry.op, 'example x\n%s\n' % '\n'.join(
        drawn(entry.title, k, line) for k, line in enumerate(entry.lines)))[0].statements
    variant = Example(entry.op, entry.title)
    if entry.new:
        variant.statements = given
        return variant
    like = next(e for e in examples if e.title == entry.like or not entry.like)
    text = '\n'.join(like.text_with({}).replace('\n  ', ' ').split('\n')[1:])
    for old, new in entry.swaps:
        if old not in text:
            raise BadExample('no line has ' + old)
        text = text.replace(old, new)
    old = parse_block(entry.op, 'example x\n' + text)[0].statements
    names = {(s.kind, s.name) for s in given if s.kind in ('in', 'attr', 'out')}
    kinds = {s.kind for s in given if s.kind in ('close', 'gradient', 'dtypes', 'seed')}
    old = [s for s in old if (s.kind, s.name) not in names and s.kind not in kinds and
           (s.kind, s.name) not in entry.drops and (s.kind,) not in entry.drops]
    for s in filter(is_answer, old):
        head = 'out %s%s' % (s.name, '=' + s.alias if s.alias else '')
        s.tensor, s.text = None, head
    order = {'attr': 1, 'in': 2, 'out': 3, 'from': 4, 'op': 4, 'block': 4, 'var': 4}
    if like.has('op') or like.has('from'):  # the order of lines is that of operators
        inputs = [s for s in given if s.kind == 'in']
        first = next(i for i, s in enumerate(old) if s.kind in ('from', 'op', 'var'))
        variant.statements = ([s for s in given if order.get(s.kind, 0) < 2] + old[:first] +
                              inputs + old[first:] + [s for s in given if s.kind == 'out'])
    else:
        variant.statements = sorted(old + given, key=lambda s: order.get(s.kind, 0))
    return variant


def answered(variant, paddle):
    """The example's text, or None and why not. In a child process, since some crash Paddle."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os.close(told)
        try:
            answer = '+' + example_text(variant, paddle)
        except Exception as error:
            answer = '-' + said(error)
        with os.fdopen(tell, 'w') as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(tell)
    with os.fdopen(told) as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    if not answer:
        return None, 'Paddle ends with status %d' % status
    return (answer[1:], None) if answer[0] == '+' else (None, answer[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--dry', action='store_true')
    parser.add_argument('files', nargs='+')
    args = parser.parse_args()
    paddle, refused = Paddle(), 0
    for file in args.files:
        for entry in entries_of(pathlib.Path(file).read_text()):
            name = '%s: %s' % (entry.op, entry.title)
            path = path_of(entry.op)
            text = path.read_text()
            examples = parse_block(entry.op, text)
            if any(e.title == entry.title for e in examples):
                print('%s: there already' % name)
                continue
            try:
                said_text, why = answered(variant_of(entry, examples), paddle)
            except StopIteration:
                said_text, why = None, 'no example is called ' + entry.like
            except BadExample as error:
                said_text, why = None, str(error)
            if said_text is None:
                refused += 1
                print('%s: %s' % (name, why))
            elif args.dry:
                print('%s\n%s' % (path.name, said_text))
            else:
                path.write_text(text.rstrip('\n') + '\n\n' + said_text)
                print('%s: added' % name)
    return refused > 0


if __name__ == '__main__':
    sys.exit(main())
