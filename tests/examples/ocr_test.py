"""The OCR example on rendered pictures, in both languages:
ocr_test.py --package FOLDER --program OCR --models FOLDER

Small ONNX models read a script of colours (ocr_toy.py), from several pages at once. With PP-OCR's
models, lines of text are rendered, one upside down and one slanted, and read; where these cannot be
fetched, that part is left out. Status 77 when Pillow is not there."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError:
    print("no Pillow")
    sys.exit(77)

import ocr_toy  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ocr"
LINES = ["The loom is ready", "heddle 2026", "upside down line", "slanted text"]


def words(text, size, colour="black"):
    """On transparent ground, as large as the text."""
    font = ImageFont.load_default(size)
    left, top, right, bottom = font.getbbox(text)
    picture = Image.new("RGBA", (right - left + 10, bottom - top + 10), (255, 255, 255, 0))
    ImageDraw.Draw(picture).text((5 - left, 5 - top), text, fill=colour, font=font)
    return picture


def render(path):
    page = Image.new("RGB", (720, 420), "white")
    turned = [words(LINES[0], 44), words(LINES[1], 36, (30, 60, 160)),
              words(LINES[2], 36).rotate(180),
              words(LINES[3], 34).rotate(12, expand=True, resample=Image.Resampling.BICUBIC)]
    for k, part in enumerate(turned):
        page.paste(part, (40, 30 + 95 * k), part)
    page.save(path)


def run(command, **kwargs):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=100, **kwargs)
    assert done.returncode == 0, f"{command} ended with {done.returncode}"
    return done.stdout


def texts(output):
    return [line.split("  ", 1)[1].rsplit("    (", 1)[0] for line in output.splitlines()]


def texts_of_pages(output):
    return [texts(part) for part in output.split("\n\n")]


def read_colours(options):
    pages = [["rgbrgb", "rrggbbrr", "brgbrgbrgg"], ["gbgbgbgbgbgb", "rrrrr"],
             ["bgrbgr", "ggggggggggggggg", "rbrbrb", "grgrgrgrgr"]]
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder) / "models"
        ocr_toy.make(models)
        files = [Path(folder) / f"{k}.png" for k in range(len(pages))]
        for file, lines in zip(files, pages):
            ocr_toy.render(file, lines, upside_down={1})
        command = [sys.executable, EXAMPLE / "ocr.py", "--models", models]
        environment = {"PYTHONPATH": options.package, "PYTHONIOENCODING": "utf-8"}
        python = run([*command, *files], env=environment)
        print(python)
        read = [[line for line in page if not line.endswith(".png:")]
                for page in texts_of_pages(python.replace(".png:\n", ".png:  .png:    (\n"))]
        assert read == pages, read
        for file, lines in zip(files, pages):
            assert texts(run([*command, file], env=environment)) == lines
            if options.program:
                assert texts(run([options.program, models, file])) == lines
        if options.program:
            assert run([options.program, models, *files, "--threads", "2"]).count("(") == 9


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--package", required=True)
    p.add_argument("--program")
    p.add_argument("--models", required=True)
    options = p.parse_args()
    read_colours(options)
    if subprocess.run([EXAMPLE / "get_models.sh", options.models]).returncode != 0:
        print("the models cannot be fetched")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.png"
        render(page)
        python = run([sys.executable, EXAMPLE / "ocr.py", "--models", options.models, page],
                     env={"PYTHONPATH": options.package, "PYTHONIOENCODING": "utf-8"})
        print(python)
        # The recognition model is sparing with spaces.
        assert [t.replace(" ", "") for t in texts(python)] == [t.replace(" ", "") for t in LINES]
        if options.program:
            program = run([options.program, options.models, page])
            assert texts(program) == texts(python), program
    return 0


if __name__ == "__main__":
    sys.exit(main())
