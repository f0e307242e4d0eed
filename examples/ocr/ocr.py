#!/usr/bin/env python3
"""Reads the text in a picture, with the PP-OCR models: where text is, which way up, what it says.

  examples/ocr/get_models.sh models               # once: the three models and their characters
  examples/ocr/ocr.py --models models picture.png

Needs heddle's Python package and Pillow. The models are run through `heddle.inference`, whose calls
are those of `paddle.inference`; --engine paddle runs the same lines on Paddle instead.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image


class Network:
    """One model, fed with one array and read of one."""

    def __init__(self, engine, folder, threads):
        inference = importlib.import_module(engine + ".inference")
        config = inference.Config(str(folder / "inference.pdmodel"),
                                  str(folder / "inference.pdiparams"))
        config.disable_glog_info()
        if threads:
            config.set_cpu_math_library_num_threads(threads)
        self.predictor = inference.create_predictor(config)
        self.input = self.predictor.get_input_handle(self.predictor.get_input_names()[0])
        self.output = self.predictor.get_output_handle(self.predictor.get_output_names()[0])

    def __call__(self, array):
        self.input.reshape(array.shape)
        self.input.copy_from_cpu(np.ascontiguousarray(array, "float32"))
        self.predictor.run()
        return self.output.copy_to_cpu()


def scaled(image, width, height):
    """The picture (height × width × 3, as bytes) in another size, as a 3 × height × width array of
    numbers in [-1, 1], which all three models want."""
    resized = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
    return (np.asarray(resized, "float32") / 127.5 - 1).transpose(2, 0, 1)


# ---- where text is -------------------------------------------------------------------------------


def regions(mask):
    """The (row, column) pairs of each connected region of a mask: runs of each row joined with
    those they touch in the row above."""
    parent, runs = [], []

    def root(k):
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    above = []
    padded = np.pad(mask.astype("int8"), ((0, 0), (1, 1)))
    for y, row in enumerate(np.diff(padded, axis=1)):
        here = []
        for begin, end in zip(np.flatnonzero(row == 1), np.flatnonzero(row == -1)):
            k = len(parent)
            parent.append(k)
            runs.append((y, begin, end))
            here.append((begin, end, k))
            for b, e, other in above:
                if b <= end and begin <= e:  # also touching at a corner
                    parent[root(k)] = root(other)
        above = here
    found = {}
    for k, (y, begin, end) in enumerate(runs):
        columns = np.arange(begin, end)
        found.setdefault(root(k), []).append(np.stack([np.full(len(columns), y), columns], 1))
    return [np.concatenate(parts) for parts in found.values()]


def hull(points):
    """Convex hull by Andrew's monotone chain, counter-clockwise."""
    points = np.unique(points, axis=0)  # sorted by x, then y
    # Of each x only the ends can be corners.
    first = np.flatnonzero(np.diff(points[:, 0], prepend=points[0, 0] - 1))
    last = np.append(first[1:], len(points)) - 1
    ends = [tuple(p) for p in points[np.unique(np.concatenate([first, last]))].tolist()]

    def half(ordered):
        chain = []
        for x, y in ordered:
            while len(chain) > 1:
                (x0, y0), (x1, y1) = chain[-2:]
                if (x1 - x0) * (y - y0) > (y1 - y0) * (x - x0):
                    break
                chain.pop()
            chain.append((x, y))
        return chain[:-1]

    return np.array(half(ends) + half(ends[::-1]) if len(ends) > 2 else ends, "float64")


def smallest_rectangle(points):
    """Centre, unit vector along, unit vector across, length and breadth of the smallest rectangle
    around the points. One of its sides lies on a side of their hull."""
    corners = hull(points)
    sides = np.roll(corners, -1, 0) - corners
    lengths = np.hypot(*sides.T)
    best = None
    for along in (sides[lengths > 0] / lengths[lengths > 0, None]):
        across = np.array([-along[1], along[0]])
        u, v = corners @ along, corners @ across
        size = (np.ptp(u), np.ptp(v))
        if best is None or size[0] * size[1] < best[0]:
            centre = along * (u.min() + u.max()) / 2 + across * (v.min() + v.max()) / 2
            best = (size[0] * size[1], centre, along, across, *size)
    return best[1:] if best else (points.mean(0), np.array([1.0, 0]), np.array([0, 1.0]), 0.0, 0.0)


def detect(network, image, threshold=0.3, sure=0.5, grow=1.6, shortest_side=736):
    """Corners (x, y) of each stretch of text, upper left first and clockwise, in reading order."""
    height, width = image.shape[:2]
    ratio = max(1.0, shortest_side / min(height, width))
    rows, columns = (max(32, round(n * ratio / 32) * 32) for n in (height, width))
    probability = network(scaled(image, columns, rows)[None])[0, 0]
    boxes = []
    for region in regions(probability > threshold):
        centre, along, across, length, breadth = smallest_rectangle(region[:, ::-1])
        if min(length, breadth) < 3 or probability[tuple(region.T)].mean() < sure:
            continue
        # The model is trained on shrunken text: each side goes out by area · grow / perimeter.
        out = length * breadth * grow / (2 * (length + breadth))
        a, b = along * (length / 2 + out), across * (breadth / 2 + out)
        corners = np.array([centre - a - b, centre + a - b, centre + a + b, centre - a + b])
        corners = (corners + 0.5) * [width / columns, height / rows]
        boxes.append(clockwise(np.clip(corners, 0, [width, height])))
    return reading_order(boxes)


def clockwise(corners):
    left = corners[np.argsort(corners[:, 0], kind="stable")]
    (a, d), (b, c) = (sorted(side, key=lambda p: p[1]) for side in (left[:2], left[2:]))
    return np.array([a, b, c, d])


def reading_order(boxes):
    """Line by line: what begins within half a line's height of the line before is in the same
    line."""
    lines = []
    for box in sorted(boxes, key=lambda b: b[0][1]):
        tall = np.hypot(*(box[3] - box[0]))
        if lines and abs(lines[-1][0][0][1] - box[0][1]) < tall / 2:
            lines[-1].append(box)
        else:
            lines.append([box])
    return [box for line in lines for box in sorted(line, key=lambda b: b[0][0])]


# ---- which way up, and what it says --------------------------------------------------------------


def cut_out(image, corners):
    """The picture's part between four corners, upright: bilinear samples. A tall part is taken for
    text that runs downwards and turned."""
    width = max(1, round(max(np.hypot(*(corners[1] - corners[0])),
                             np.hypot(*(corners[2] - corners[3])))))
    height = max(1, round(max(np.hypot(*(corners[3] - corners[0])),
                              np.hypot(*(corners[2] - corners[1])))))
    u = ((np.arange(width) + 0.5) / width)[None, :, None]
    v = ((np.arange(height) + 0.5) / height)[:, None, None]
    a, b, c, d = corners
    at = (1 - v) * ((1 - u) * a + u * b) + v * ((1 - u) * d + u * c) - 0.5
    x, y = (np.clip(at[..., k], 0, image.shape[1 - k] - 1) for k in (0, 1))
    x0, y0 = x.astype(int), y.astype(int)
    x1, y1 = np.minimum(x0 + 1, image.shape[1] - 1), np.minimum(y0 + 1, image.shape[0] - 1)
    fx, fy = (x - x0)[..., None], (y - y0)[..., None]
    upper = image[y0, x0] * (1 - fx) + image[y0, x1] * fx
    lower = image[y1, x0] * (1 - fx) + image[y1, x1] * fx
    part = (upper * (1 - fy) + lower * fy + 0.5).astype("uint8")
    return np.rot90(part) if height >= 1.5 * width else part


def padded(part, height, width):
    """Scaled to `height`, its sides kept in proportion, and zeros to its right up to `width`."""
    wide = min(width, max(1, int(np.ceil(height * part.shape[1] / part.shape[0]))))
    array = np.zeros((3, height, width), "float32")
    array[:, :, :wide] = scaled(part, wide, height)
    return array


def upright(network, part, sure=0.9):
    upside_down = network(padded(part, 48, 192)[None])[0, 1]
    return np.ascontiguousarray(part[::-1, ::-1]) if upside_down > sure else part


def read(network, part, characters):
    """Text and how sure the model is of it. Of each position the likeliest character; the same one
    twice in a row is one, character 0 stands for none (CTC)."""
    height, width = part.shape[:2]
    scores = network(padded(part, 48, max(320, int(np.ceil(48 * width / height))))[None])[0]
    best = scores.argmax(1)
    kept = (best != 0) & (best != np.concatenate([[0], best[:-1]]))
    if not kept.any():
        return "", 0.0
    return "".join(characters[k] for k in best[kept]), float(scores.max(1)[kept].mean())


class Reader:
    def __init__(self, models, engine="heddle", threads=2):
        models = Path(models)
        self.where, self.way, self.what = (Network(engine, models / part, threads)
                                           for part in ("det", "cls", "rec"))
        keys = (models / "characters.txt").read_text(encoding="utf-8").split("\n")
        self.characters = [""] + [k for k in keys if k] + [" "]

    def __call__(self, image, sure=0.5):
        """(corners, text, certainty) of each stretch of text."""
        found = []
        for corners in detect(self.where, image):
            part = upright(self.way, cut_out(image, corners))
            text, certainty = read(self.what, part, self.characters)
            if certainty >= sure:
                found.append((corners, text, certainty))
        return found


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("picture", type=Path)
    p.add_argument("--models", type=Path, required=True, help="what get_models.sh made")
    p.add_argument("--engine", choices=["heddle", "paddle"], default="heddle")
    p.add_argument("--threads", type=int, default=2, help="0: the engine's default")
    p.add_argument("--repeat", type=int, default=0,
                   help="read it so many times more, and say how long it took")
    options = p.parse_args()
    reader = Reader(options.models, options.engine, options.threads)
    # The models were trained on pictures with blue first.
    image = np.asarray(Image.open(options.picture).convert("RGB"))[:, :, ::-1]
    for corners, text, certainty in reader(image):
        at = " ".join(f"{x:.0f},{y:.0f}" for x, y in corners)
        print(f"{certainty:.2f}  {text}    ({at})")
    times = []
    for _ in range(options.repeat):
        start = time.perf_counter()
        reader(image)
        times.append(time.perf_counter() - start)
    if times:
        print(f"{sorted(times)[len(times) // 2] * 1e3:.1f} ms", file=sys.stderr)


if __name__ == "__main__":
    main()
