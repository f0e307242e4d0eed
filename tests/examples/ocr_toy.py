"""Three small ONNX models in the places of PP-OCR's, for a script in which letters are colours:
blocks of red, green and blue with black between them, and a longer black block in front."""

import struct
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from onnx_model import model, node, number, tensor, text, value  # noqa: E402

LETTERS = {"r": (255, 0, 0), "g": (0, 255, 0), "b": (0, 0, 255)}


def ints(name, values):
    items = b"".join(number(8, v) for v in values)
    return text(5, text(1, name) + items + number(20, 7))


def integer(name, i):
    return text(5, text(1, name) + number(3, i) + number(20, 2))


def save(path, nodes, weights, shape, output):
    arrays = {name: np.asarray(array, "int64" if name.endswith("shape") else "float32")
              for name, array in weights.items()}
    path.write_bytes(model(nodes, [value("x", "float32", shape)],
                           [value("y", "float32", output)],
                           [tensor(name, array) for name, array in arrays.items()]))


def make(folder):
    """det.onnx, cls.onnx, rec.onnx and characters.txt. Channels are blue, green, red."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "characters.txt").write_text("\n".join(LETTERS) + "\n", "utf-8")
    # Dark places, less 12 pixels on each side: it is so that text is marked.
    save(folder / "det.onnx",
         [node("Conv", ["x", "w", "c"], ["lit"]),
          node("MaxPool", ["lit"], ["less"],
               ints("kernel_shape", [25, 25]) + ints("pads", [12] * 4)),
          node("Mul", ["less", "factor"], ["dark"]), node("Clip", ["dark", "zero", "one"], ["y"])],
         {"w": np.ones((1, 3, 1, 1)), "c": [-3], "factor": -0.5, "zero": 0, "one": 1},
         [1, 3, "h", "w"], [1, 1, "h", "w"])
    # Upside down where the last quarter is blacker than the first.
    save(folder / "cls.onnx",
         [node("Conv", ["x", "w", "c"], ["b"]), node("Relu", ["b"], ["black"]),
          node("Conv", ["black", "mean"], ["quarters"], ints("strides", [48, 48])),
          node("Reshape", ["quarters", "shape"], ["q"]), node("MatMul", ["q", "m"], ["logits"]),
          node("Softmax", ["logits"], ["y"], integer("axis", 1))],
         {"w": -np.ones((1, 3, 1, 1)), "c": [-1.5], "mean": np.full((1, 1, 48, 48), 48.0**-2),
          "shape": [0, 4], "m": [[0, -40], [0, 0], [0, 0], [0, 40]]},
         ["n", 3, 48, "w"], ["n", 2])
    # Of each eight columns how near their colour is to each letter's; none: far from all.
    colours = 2 * np.array([c[::-1] for c in LETTERS.values()]) / 255 - 1
    letters = np.zeros((3, len(LETTERS) + 2))
    letters[:, 1:-1] = 6 * colours.T
    save(folder / "rec.onnx",
         [node("AveragePool", ["x"], ["means"],
               ints("kernel_shape", [48, 8]) + ints("strides", [48, 8])),
          node("Squeeze", ["means", "axis_shape"], ["line"]),
          node("Transpose", ["line"], ["steps"], ints("perm", [0, 2, 1])),
          node("MatMul", ["steps", "letters"], ["near"]), node("Add", ["near", "far"], ["logits"]),
          node("Softmax", ["logits"], ["y"], integer("axis", 2))],
         {"letters": letters, "far": [0] + [-9] * len(LETTERS) + [-50], "axis_shape": [2]},
         ["n", 3, 48, "w"], ["n", "t", len(LETTERS) + 2])


def words(line):
    picture = Image.new("RGBA", (60 + 40 * len(line), 48), (0, 0, 0, 255))
    pen = ImageDraw.Draw(picture)
    for k, letter in enumerate(line):
        pen.rectangle((60 + 40 * k, 0, 60 + 40 * k + 23, 47), LETTERS[letter])
    return picture


def render(path, lines, upside_down=()):
    page = Image.new("RGB", (1024, 768), "white")
    for k, line in enumerate(lines):
        part = words(line)
        part = part.rotate(180) if k in upside_down else part
        page.paste(part, (60, 40 + 100 * k), part)
    page.save(path)
