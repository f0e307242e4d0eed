#!/usr/bin/env python3
"""Reads the text in pictures, with the PP-OCR models: where text is, which way up, what it says.

  examples/ocr/get_models.sh models               # once: the three models and their characters
  examples/ocr/ocr.py --models models picture.png

Needs heddle's Python package and Pillow. ONNX models (get_models.sh --onnx) are run through
`heddle.onnx`, whose calls are those of `onnxruntime`, Paddle's through `heddle.inference`, whose
calls are those of `paddle.inference`; --engine runs the same lines on these instead.
"""

import argparse
import importlib
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image


class OnnxNetwork:
    """One model, fed with one array and read of one."""

    def __init__(self, engine, file, threads, precision):
        ort = importlib.import_module("heddle.onnx" if engine == "heddle" else engine)
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("heddle.precision", precision)
        self.session = ort.InferenceSession(str(file), options, ["CPUExecutionProvider"])
        self.input = self.session.get_inputs()[0].name

    def __call__(self, array):
        return self.session.run(None, {self.input: array})[0]


class PaddleNetwork:
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
        self.input.copy_from_cpu(array)
        self.predictor.run()
        return self.output.copy_to_cpu()


def network(engine, models, part, threads, precision):
    file = models / (part + ".onnx")
    if file.exists():
        return OnnxNetwork(engine, file, threads, precision)
    return PaddleNetwork(engine, models / part, threads)


def scaled(picture, width, height):
    """The picture in another size, as a 3 × height × width array of numbers in [-1, 1], blue first,
    which all three models want."""
    resized = picture.resize((width, height), Image.Resampling.BILINEAR)
    planes = np.asarray(resized).transpose(2, 0, 1)[::-1]
    return np.ascontiguousarray(planes, "float32") / np.float32(127.5) - np.float32(1)


# ---- where text is -------------------------------------------------------------------------------


def regions(probability, threshold):
    """Of each connected region above the threshold: the (x, y) of its ends in each row, and its
    mean. Runs of each row are joined with those they touch in the row above, also at a corner."""
    height, width = probability.shape
    mask = np.zeros((height, width + 2), "int8")
    mask[:, 1:-1] = probability > threshold
    edges = np.flatnonzero(np.diff(mask.ravel())).reshape(-1, 2)
    rows, columns = edges[:, 0] // (width + 2), edges % (width + 2)  # from, and up to
    ends = rows[:, None] * width + columns
    sums = np.add.reduceat(np.append(probability.ravel(), np.float32(0)), ends.ravel())[::2]
    parent = list(range(len(rows)))

    def root(k):
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    above = 0
    runs = list(zip(rows.tolist(), *columns.T.tolist()))
    for k, (y, begin, end) in enumerate(runs):
        while runs[above][0] < y - 1 or (runs[above][0] == y - 1 and runs[above][2] < begin):
            above += 1
        j = above
        while runs[j][0] == y - 1 and runs[j][1] <= end:
            parent[root(k)] = root(j)
            j += 1
    found = {}
    for k in range(len(runs)):
        found.setdefault(root(k), []).append(k)
    for members in found.values():
        begin, end = columns[members].T
        y = rows[members]
        yield (np.concatenate([np.stack([begin, y], 1), np.stack([end - 1, y], 1)]),
               sums[members].sum() / (end - begin).sum())


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
    along = sides[lengths > 0] / lengths[lengths > 0, None]
    if not len(along):
        return points.mean(0), np.array([1.0, 0]), np.array([0, 1.0]), 0.0, 0.0
    across = np.stack([-along[:, 1], along[:, 0]], 1)
    u, v = corners @ along.T, corners @ across.T
    best = np.argmin(np.ptp(u, 0) * np.ptp(v, 0))
    (u0, u1), (v0, v1) = ((side[:, best].min(), side[:, best].max()) for side in (u, v))
    along, across = along[best], across[best]
    return along * (u0 + u1) / 2 + across * (v0 + v1) / 2, along, across, u1 - u0, v1 - v0


def detect(network, picture, threshold=0.3, sure=0.5, grow=1.6, shortest_side=736):
    """Corners (x, y) of each stretch of text, upper left first and clockwise, in reading order."""
    width, height = picture.size
    ratio = max(1.0, shortest_side / min(height, width))
    rows, columns = (max(32, round(n * ratio / 32) * 32) for n in (height, width))
    probability = network(scaled(picture, columns, rows)[None])[0, 0]
    boxes = []
    for points, mean in regions(probability, threshold):
        centre, along, across, length, breadth = smallest_rectangle(points)
        if min(length, breadth) < 3 or mean < sure:
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


def cut_out(picture, corners):
    """The picture's part between four corners, upright: bilinear samples. A tall part is taken for
    text that runs downwards and turned."""
    a, b, c, d = corners
    width = max(1, round(max(np.hypot(*(b - a)), np.hypot(*(c - d)))))
    height = max(1, round(max(np.hypot(*(d - a)), np.hypot(*(c - b)))))
    part = picture.transform((width, height), Image.Transform.QUAD,
                             np.concatenate([a, d, c, b]).tolist(), Image.Resampling.BILINEAR)
    return part.transpose(Image.Transpose.ROTATE_90) if height >= 1.5 * width else part


def batch(parts, width, height=48):
    """Each part scaled to `height`, its sides kept in proportion, zeros to its right up to
    `width`."""
    array = np.zeros((len(parts), 3, height, width), "float32")
    for row, part in zip(array, parts):
        wide = min(width, max(1, int(np.ceil(height * part.width / part.height))))
        row[:, :, :wide] = scaled(part, wide, height)
    return array


def upright(network, parts, sure=0.9):
    upside_down = network(batch(parts, 192))[:, 1] > sure
    return [part.transpose(Image.Transpose.ROTATE_180) if turn else part
            for part, turn in zip(parts, upside_down)]


def likeliest(line):
    """The likeliest character of each position. The numbers are probabilities: none is likelier
    than one above a half, which character 0 has at most positions."""
    best = np.zeros(len(line), "int64")
    open_ones = np.flatnonzero(line[:, 0] <= 0.5)
    best[open_ones] = [line[k].argmax() for k in open_ones]
    return best


def read(network, parts, characters):
    """Text and how sure the model is of it, of each part. Of each position the likeliest character;
    the same one twice in a row is one, character 0 stands for none (CTC)."""
    # Few different widths: each has a plan of its own.
    widest = max(part.width / part.height for part in parts)
    scores = network(batch(parts, max(320, int(np.ceil(48 * widest / 32)) * 32)))
    found = []
    for line in scores:
        best = likeliest(line)
        kept = np.flatnonzero((best != 0) & (best != np.concatenate([[0], best[:-1]])))
        found.append(("".join(characters[k] for k in best[kept]),
                      float(line[kept, best[kept]].mean()) if len(kept) else 0.0))
    return found


class Reader:
    def __init__(self, models, engine="heddle", threads=2, precision="f32"):
        models = Path(models)
        self.where, self.way, self.what = (network(engine, models, part, threads, precision)
                                           for part in ("det", "cls", "rec"))
        # Runs of Paddle's predictor must not meet.
        self.threads = threads if isinstance(self.what, OnnxNetwork) else 1
        keys = (models / "characters.txt").read_text(encoding="utf-8").split("\n")
        self.characters = [""] + [k for k in keys if k] + [" "]

    def __call__(self, picture, sure=0.5, together=6, threads=None):
        """(corners, text, certainty) of each stretch of text. Lines of about one width are read
        together, and such batches side by side."""
        boxes = detect(self.where, picture)
        parts = [cut_out(picture, corners) for corners in boxes]
        order = sorted(range(len(parts)), key=lambda k: -parts[k].width / parts[k].height)
        batches = [order[k:k + together] for k in range(0, len(order), together)]

        def work(members):
            ready = upright(self.way, [parts[k] for k in members])
            return read(self.what, ready, self.characters)

        texts = {}
        with ThreadPoolExecutor(threads or self.threads) as pool:
            for members, found in zip(batches, pool.map(work, batches)):
                texts.update(zip(members, found))
        return [(corners, *texts[k]) for k, corners in enumerate(boxes) if texts[k][1] >= sure]

    def pages(self, pictures):
        """Several pictures side by side."""
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(lambda picture: self(picture, threads=1), pictures))


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("picture", type=Path, nargs="+")
    p.add_argument("--models", type=Path, required=True, help="what get_models.sh made")
    p.add_argument("--engine", choices=["heddle", "paddle", "onnxruntime"], default="heddle")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--precision", choices=["f32", "bf16", "int8-products"], default="f32",
                   help="bf16: ONNX models in heddle multiply in bfloat16 where that is faster; "
                        "int8-products: pairs of convolutions besides in 8-bit integers")
    p.add_argument("--repeat", type=int, default=0,
                   help="read it so many times more, and say how long it took")
    options = p.parse_args()
    reader = Reader(options.models, options.engine, options.threads, options.precision)
    pictures = [Image.open(path).convert("RGB") for path in options.picture]
    several = len(pictures) > 1

    def work():
        return reader.pages(pictures) if several else [reader(pictures[0])]

    for k, (path, found) in enumerate(zip(options.picture, work())):
        if several:
            print(f"{path}:" if k == 0 else f"\n{path}:")
        for corners, text, certainty in found:
            at = " ".join(f"{x:.0f},{y:.0f}" for x, y in corners)
            print(f"{certainty:.2f}  {text}    ({at})")
    times = []
    for _ in range(options.repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    if times:
        print(f"{len(pictures) / sorted(times)[len(times) // 2]:.2f} pages a second",
              file=sys.stderr)


if __name__ == "__main__":
    main()
