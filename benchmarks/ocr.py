#!/usr/bin/env python3
"""examples/ocr beside what it replaces, in turns, in one process; the texts must be equal.

    PYTHONPATH=build/release/python python3 benchmarks/ocr.py --models MODELS [PICTURE...]

MODELS is what examples/ocr/get_models.sh makes. With Paddle's models the same script runs with
`paddle.inference` (printed are also medians of the models' runs, copying in and out included), once
with each engine's default settings, once with two threads for both. With ONNX models (--onnx) the
peer is the package `rapidocr`, whose own pipeline over ONNX Runtime reads the same pages with the
same models; printed are pages per second, of the pages side by side and of one after the other.
--program adds the C++ example. Without a picture, pages of text are drawn. Needs Pillow, and Paddle
or rapidocr and onnxruntime.
"""

import argparse
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples" / "ocr"))
import ocr  # noqa: E402


def draw_page(seed, width=1240, height=1754):
    """A page of paper at 150 dots an inch, in two columns, filled with words of the README."""
    words = re.findall(r"[A-Za-z]{2,}[,.]?|[0-9]+", (ROOT / "README.md").read_text("utf-8"))
    pick = random.Random(seed)
    page = Image.new("RGB", (width, height), "white")
    pen, y = ImageDraw.Draw(page), 90
    while y < height - 120:
        font = ImageFont.load_default(pick.choice([22, 24, 26, 30]))
        for left in (90, width // 2 + 30):
            line, longest = "", pick.choice([0.4, 0.7, 0.95, 1]) * (width // 2 - 120)
            while True:
                more = f"{line} {pick.choice(words)}".strip()
                if pen.textlength(more, font) > longest:
                    break
                line = more
            pen.text((left, y), line, "black", font)
        y += int(font.size * 1.7)
    return page


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


def read(made, picture):
    """Texts, and ms: of each network, and all in all."""
    networks = (made.where, made.way, made.what)
    for network in networks:
        network.spent = 0.0
    start = time.perf_counter()
    texts = [text for _, text, _ in made(picture, threads=1)]
    whole = time.perf_counter() - start
    return texts, [n.spent * 1e3 for n in networks] + [whole * 1e3]


def beside_paddle(options, picture):
    different = 0
    for threads, what in ((0, "default settings"), (2, "two threads each")):
        engines = {name: reader(name, options.models, threads) for name in ("paddle", "heddle")}
        # This also warms both engines up.
        texts = {name: read(made, picture)[0] for name, made in engines.items()}
        for made in engines.values():
            read(made, picture)
        times = {name: [] for name in engines}
        for _ in range(options.rounds):
            for name, made in engines.items():
                times[name].append(read(made, picture)[1])
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
    return different


def words_of(texts):
    return [[text.strip() for text in page] for page in texts]


def beside_rapidocr(options, pages):
    import numpy as np
    import rapidocr

    models = options.models
    theirs = rapidocr.RapidOCR(params={
        "Global.log_level": "error", "Det.model_path": str(models / "det.onnx"),
        "Cls.model_path": str(models / "cls.onnx"), "Rec.model_path": str(models / "rec.onnx")})
    arrays = [np.asarray(page)[:, :, ::-1].copy() for page in pages]
    ours = ocr.Reader(models, "heddle", options.threads, options.precision)
    ways = {
        "rapidocr": lambda: [list(theirs(array).txts or ()) for array in arrays],
        "heddle, one by one": lambda: [[t for _, t, _ in ours(page)] for page in pages],
        "heddle, side by side": lambda: [[t for _, t, _ in found] for found in ours.pages(pages)],
    }
    texts = {name: words_of(way()) for name, way in ways.items()}
    different = 0
    for name, found in texts.items():
        for page, want, got in zip(range(len(pages)), texts["rapidocr"], found):
            for line in sorted(set(want) ^ set(got)):
                print(f"page {page}: {line!r} {'only' if line in got else 'not'} by {name}")
            different += want != got
    times = {name: [] for name in ways}
    per_second = {"C++ " + name: [] for name in ("one by one", "side by side")}
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for k, page in enumerate(pages):
            files.append(f"{folder}/{k}.png")
            page.save(files[-1])
        for _ in range(options.rounds):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                times[name].append(time.perf_counter() - start)
            if not options.program:
                continue
            for name, chosen in (("C++ one by one", files[:1]), ("C++ side by side", files)):
                command = [options.program, models, *chosen, "--repeat", "3",
                           "--threads", str(options.threads)]
                command += {"bf16": ["--bf16"], "int8-products": ["--int8"]}.get(
                    options.precision, [])
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, check=True)
                per_second[name].append(float(done.stderr.split()[0]))
                if chosen == files:
                    got = [[line.split("  ", 1)[1].rsplit("    (", 1)[0].strip()
                            for line in page.splitlines() if "    (" in line]
                           for page in re.split(r"\n\n", done.stdout)]
                    different += got != texts["heddle, one by one"]
    lines = sum(map(len, texts["rapidocr"]))
    same = sum(len(set(want) & set(got))
               for want, got in zip(texts["rapidocr"], texts["heddle, one by one"]))
    print(f"{len(pages)} pages, {lines} lines of text, {same} the same"
          + ("" if same == lines or not different else "; DIFFERENT"))
    rates = {name: len(pages) / statistics.median(spent) for name, spent in times.items()}
    rates |= {name: statistics.median(found) for name, found in per_second.items() if found}
    for name, rate in rates.items():
        print(f"  {name:22} {rate:7.2f} pages a second   {rate / rates['rapidocr']:5.2f} times "
              "rapidocr's")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path, nargs="*")
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--pages", type=int, default=4, help="how many to draw")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["f32", "bf16", "int8-products"],
                        default="f32")
    parser.add_argument("--program", help="the C++ example")
    options = parser.parse_args()
    pages = [Image.open(path).convert("RGB") for path in options.picture]
    pages = pages or [draw_page(k) for k in range(options.pages)]
    if (options.models / "det.onnx").exists():
        return 1 if beside_rapidocr(options, pages) else 0
    return 1 if beside_paddle(options, pages[0]) else 0


if __name__ == "__main__":
    sys.exit(main())
