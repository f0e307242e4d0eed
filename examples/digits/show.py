#!/usr/bin/env python3
"""Draws the digits of input.npy and says what the model takes them for.

usage: show.py DIR    DIR holds out_0.npy, as `heddle run … --out DIR` writes it
"""

import sys
from pathlib import Path

import numpy as np

SHADES = " .:-=+*%@"  # by the grey value, 0 to 16


def draw(image):
    return ["".join(2 * SHADES[int(v) // 2] for v in row) for row in image]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    here = Path(__file__).resolve().parent
    images = np.load(here / "input.npy")[:, 0]
    probabilities = np.load(Path(sys.argv[1]) / "out_0.npy")
    labels = (here / "labels.txt").read_text().split()
    print()
    for line in zip(*(draw(image) for image in images)):
        print("  " + "   ".join(line))
    says = [f"{labels[p.argmax()]} ({p.max():.1%})" for p in probabilities]
    print("  " + "   ".join(f"{text:^16}" for text in says))


if __name__ == "__main__":
    main()
