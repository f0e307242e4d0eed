#!/usr/bin/env python3
"""Says how many of the held-out digits a model recognises.

usage: accuracy.py DIR    DIR holds out_0.npy, as `heddle run … --out DIR` writes it
"""

import sys
from pathlib import Path

import numpy as np


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    labels = np.load(Path(__file__).resolve().parent / "test_labels.npy")[:, 0]
    predicted = np.load(Path(sys.argv[1]) / "out_0.npy").argmax(axis=1)
    right = int((predicted == labels).sum())
    print(f"{right} of {len(labels)} digits are recognised: {right / len(labels):.1%}")


if __name__ == "__main__":
    main()
