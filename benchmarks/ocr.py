#!/usr/bin/env python3
"""The deployment script of examples/ocr with `paddle.inference`, and with the import changed:

    PYTHONPATH=build/release/python python3 benchmarks/ocr.py --models MODELS PICTURE [--rounds N]

Needs Paddle, Pillow and what examples/ocr/get_models.sh makes. Both read the picture in turns, in
one process; the texts must be equal. Printed are medians of the models' runs (copying in and out
included) and of the whole reading, once with each engine's default settings, once with two threads
for both.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "ocr"))
import ocr  # noqa: E402


class Timed:
    """A network that adds up the time it takes."""

    def __init__(self, network):
        self.network, self.spent = network, 0.0

    def __call__(self, array):
        start = time.perf_counter()
        out = self.network(array)
        self.spent += time.perf_counter() - start
        return out


def reader(engine, models, threads):
    made = ocr.Reader(models, engine, threads)
    made.where, made.way, made.what = map(Timed, (made.where, made.way, made.what))
    return made


def read(made, image):
    """Texts, and ms: of each network, and all in all."""
    networks = (made.where, made.way, made.what)
    for network in networks:
        network.spent = 0.0
    start = time.perf_counter()
    texts = [text for _, text, _ in made(image)]
    whole = time.perf_counter() - start
    return texts, [n.spent * 1e3 for n in networks] + [whole * 1e3]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    image = np.asarray(Image.open(options.picture).convert("RGB"))[:, :, ::-1]
    different = 0
    for threads, what in ((0, "default settings"), (2, "two threads each")):
        engines = {name: reader(name, options.models, threads) for name in ("paddle", "heddle")}
        # This also warms both engines up.
        texts = {name: read(made, image)[0] for name, made in engines.items()}
        for made in engines.values():
            read(made, image)
        times = {name: [] for name in engines}
        for _ in range(options.rounds):
            for name, made in engines.items():
                times[name].append(read(made, image)[1])
        same = texts["paddle"] == texts["heddle"]
        different += not same
        print(f"{what}: {len(texts['heddle'])} lines of text, "
              + ("the same" if same else f"{texts}"))
        medians = {name: [statistics.median(column) for column in zip(*rows)]
                   for name, rows in times.items()}
        for k, part in enumerate(("detection", "angle", "recognition", "all in all")):
            ours, theirs = medians["heddle"][k], medians["paddle"][k]
            print(f"  {part:12} paddle {theirs:9.2f} ms   heddle {ours:9.2f} ms   "
                  f"{theirs / ours:5.2f} times as fast")
        ours, theirs = (sum(medians[name][:3]) for name in ("heddle", "paddle"))
        print(f"  {'the models':12} paddle {theirs:9.2f} ms   heddle {ours:9.2f} ms   "
              f"{theirs / ours:5.2f} times as fast", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
