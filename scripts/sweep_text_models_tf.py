#!/usr/bin/env python3
"""SavedModels of Keras' TextVectorization and StringLookup, run under TensorFlow and heddle.

  sweep_text_models_tf.py --heddle build/release/heddle [--seed N] [--count N]

Each model is a layer with drawn options (output mode, n-grams, split, case, length, unknown words)
that has adapted to drawn texts; some hand their words on to an Embedding. Results must be equal.
Needs tensorflow with keras, and numpy.
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

WORDS = ['the', 'Cat', 'sat', 'on', 'a', 'mat,', 'mat', 'dog!', 'Éa', 'σ', '12', "don't", 'x-y']


def sentence(r):
    return (r.choice(['', ' ']) + r.choice([' ', '  ']).join(
        r.choice(WORDS) for _ in range(r.randrange(9)))).encode()


def layer_of(r):
    """A layer, and whether its words are numbers of a sequence."""
    if r.random() < 0.3:
        mode = r.choice(['int', 'one_hot', 'multi_hot', 'count'])
        words = r.sample([w.strip(',!') for w in WORDS], 6)
        words = list(dict.fromkeys(words))
        return tf.keras.layers.StringLookup(
            vocabulary=words, output_mode=mode, num_oov_indices=r.choice([1, 1, 2]),
            mask_token=r.choice([None, ''])), False
    mode = r.choice(['int', 'int', 'multi_hot', 'count', 'tf_idf'])
    layer = tf.keras.layers.TextVectorization(
        max_tokens=r.choice([None, 12]),
        standardize=r.choice(['lower_and_strip_punctuation', 'lower', 'strip_punctuation', None]),
        split=r.choice(['whitespace', 'whitespace', 'character']),
        ngrams=r.choice([None, None, 2, (1, 3)]),
        output_mode=mode,
        output_sequence_length=r.choice([None, 5]) if mode == 'int' else None)
    layer.adapt([sentence(r).decode() for _ in range(12)])
    return layer, mode == 'int'


def run(r, heddle, folder):
    tf.keras.backend.clear_session()
    layer, sequence = layer_of(r)
    lookup = isinstance(layer, tf.keras.layers.StringLookup)
    width = 3 if lookup and layer.output_mode == 'int' else 1
    embed = tf.keras.layers.Embedding(64, 4) if sequence and r.random() < 0.4 else None

    @tf.function(input_signature=[tf.TensorSpec([None, width], tf.string, name='x')])
    def serve(x):
        y = layer(x)
        return {'y': embed(y) if embed is not None else y}

    module = tf.Module()
    module.parts = [layer, embed] if embed is not None else [layer]
    module.serve = serve
    rows = r.randrange(1, 5)
    if lookup:
        x = [[r.choice(WORDS).strip(',!').encode() for _ in range(width)] for _ in range(rows)]
    else:
        x = [[sentence(r)] for _ in range(rows)]
    x = np.array(x, object)
    expected = serve(tf.constant(x.tolist()))['y'].numpy()
    tf.saved_model.save(module, str(folder / 'model'), signatures=serve)
    widest = max(1, max(len(t) for t in x.ravel()))
    np.save(folder / 'x.npy', x.astype('S%d' % widest))
    done = subprocess.run(
        [heddle, 'run', folder / 'model', '--feed', 'x=%s' % (folder / 'x.npy'), '--out',
         folder / 'out'], capture_output=True, text=True, errors='replace', timeout=120)
    if done.returncode:
        return 'refused: ' + done.stderr.strip()[-300:]
    got = np.load(folder / 'out' / 'out_0.npy', allow_pickle=True)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f'{got.dtype} {got.shape}, expected {expected.dtype} {expected.shape}'
    if not np.allclose(got, expected, 1e-5, 1e-6):
        return f'expected {expected!r}, got {got!r}'
    return ''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--heddle', required=True)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=30)
    args = parser.parse_args()
    wrong = 0
    for k in range(args.count):
        r = random.Random('%d %d' % (args.seed, k))
        tf.random.set_seed(k)
        with tempfile.TemporaryDirectory() as folder:
            result = run(r, os.path.abspath(args.heddle), pathlib.Path(folder))
        if result:
            wrong += 1
            print('%d: %s' % (k, result))
    print('%d models, %d wrong' % (args.count, wrong))
    return wrong != 0


if __name__ == '__main__':
    sys.exit(main())
