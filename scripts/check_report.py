#!/usr/bin/env python3
"""Opens the page of `heddle profile --html` in a headless Chromium and compares it with the JSON:

  scripts/check_report.py --heddle TOOL [MODEL[,NAME=SHAPE][,--opt=0] ...] [--seconds S]
                          [--keep DIR]

Every figure of the tables must be the JSON's and be written as it should be, every picture painted,
the console without an error, the page ready within S seconds (default 2) of being opened. Without
models: examples/digits. The page itself is checked first, which needs no browser: it is whole,
holds the JSON, and names nothing outside itself. Status 77 where there is no Chromium
(scripts/setup.sh --with-browser)."""

import argparse
import html.parser
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PICTURES = ("timeline_canvas", "memory_canvas", "graph_canvas")
VOID = {"meta", "link", "input", "br"}


class Page(html.parser.HTMLParser):
    """Tables as {id: [{"v": exact, "text": shown}, …] rows}, cards, canvases, scripts, tag
    errors."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.cards, self.canvases, self.scripts = {}, {}, {}, {}
        self.root, self.wrong, self.outside = {}, [], []
        self._open, self._rows, self._cell, self._card, self._script = [], None, None, None, None
        self.feed(text)
        self.close()
        if self._open:
            self.wrong.append(f"never closed: {self._open}")

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        if tag not in VOID:
            self._open.append(tag)
        for key in ("src", "href"):
            if key in a and not a[key].startswith(("#", "data:")):
                self.outside.append(a[key])
        if tag == "html":
            self.root = a
        elif tag == "table":
            self._rows = self.tables.setdefault(a.get("id"), [])
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag == "td":
            self._cell = {"v": a.get("data-v"), "text": ""}
            self._rows[-1].append(self._cell)
        elif tag == "canvas":
            self.canvases[a["id"]] = a
        elif tag == "div" and "data-name" in a:
            self._card = self.cards[a["data-name"]] = {"v": a["data-v"], "text": ""}
        elif tag == "script":
            self._script = a.get("id", "")
            self.scripts[self._script] = ""

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")
        if tag == "td":
            self._cell = None
        elif tag == "div":
            self._card = None
        elif tag == "script":
            self._script = None

    def handle_data(self, data):
        if self._script is not None:
            self.scripts[self._script] += data
        for place in (self._cell, self._card if self._open and self._open[-1] == "b" else None):
            if place is not None:
                place["text"] += data


def shown_time(us):
    if us >= 1e6:
        return f"{us / 1e6:.3f} s"
    return f"{us / 1e3:.3f} ms" if us >= 1e3 else f"{us:.2f} us"


def near(a, b):
    """The same but for the last digit, which two languages may round differently."""
    number = lambda t: float(re.match(r"-?[\d.]+", t).group())  # noqa: E731
    unit = lambda t: re.sub(r"^-?[\d.]+", "", t)  # noqa: E731
    decimals = len(b.split(".")[1].split(" ")[0].rstrip("%")) if "." in b else 0
    return unit(a) == unit(b) and abs(number(a) - number(b)) <= 1.01 * 10 ** -decimals


def check_static(text, said):
    page = Page(text)
    wrong = list(page.wrong)
    wrong += [f"names something outside: {name}" for name in page.outside]
    if re.search(r"https?://", re.sub(r'<script type="application/json".*?</script>', "", text,
                                      flags=re.DOTALL)):
        wrong.append("an address")
    if json.loads(page.scripts["profile"]) != said:
        wrong.append("the JSON inside is not what --json printed")
    steps = sorted(line["step"] for line in said["instructions"])
    if steps[:1] == [-1] or len(set(steps)) != len(steps):
        wrong.append("instructions without a place in the plan")
    return wrong


def check_table(page, name, rows, columns, most=None):
    got = [row for row in page.tables.get(name, []) if row]
    want = rows[:most]
    if len(got) != len(want):
        return [f"{name}: {len(got)} rows, not {len(want)}"]
    wrong = []
    for cells, row in zip(got, want):
        for cell, (key, write) in zip(cells, columns):
            exact = row[key]
            same = (float(cell["v"]) == exact and near(cell["text"], write(exact))) if write else (
                cell["v"] == exact and cell["text"] == exact)
            if not same:
                wrong.append(f"{name}: {key} is {cell}, in the JSON {exact}")
    return wrong


def check_shown(text, said, seconds):
    """What stands in the page after its script has run."""
    page, wrong = Page(text), []
    percent = lambda v: f"{100 * v:.1f}%"  # noqa: E731
    fixed = lambda digits: lambda v: f"{v:.{digits}f}"  # noqa: E731
    rates = [("us", fixed(2)), ("share", percent), ("gflops", fixed(1)), ("gbs", fixed(1)),
             ("peak_share", percent)]
    wrong += check_table(page, "by_operator", said["operators"],
                         [("op", None), ("count", str), ("times", str), *rates])
    wrong += check_table(page, "by_instruction", said["instructions"],
                         [("op", None), ("output", None), ("times", str), *rates,
                          ("inputs", None), ("outputs", None)],
                         50)
    figures = {"run_us": shown_time(said["run_us"]), "kernels_us": shown_time(said["kernels_us"]),
               "outside_share": percent(said["outside_share"]),
               "instructions": str(len(said["instructions"])), "lanes": str(said["lanes"])}
    exact = dict(said, instructions=len(said["instructions"]))
    for name, want in figures.items():
        card = page.cards.get(name, {"v": "nan", "text": "0"})
        if float(card["v"]) != exact[name] or not near(card["text"], want):
            wrong.append(f"{name} is {card}, in the JSON {exact[name]}")
    drawn = {"timeline_canvas": len(said["timeline"]["events"])}
    for name in PICTURES:
        canvas = page.canvases.get(name, {})
        if int(canvas.get("data-painted", 0)) < 1000:
            wrong.append(f"{name} is empty: {canvas}")
        if name in drawn and int(canvas.get("data-drawn", 0)) != drawn[name]:
            wrong.append(f"{name} shows {canvas.get('data-drawn')} of {drawn[name]}")
    if int(page.canvases["graph_canvas"].get("data-nodes", -1)) != len(said["plan"]["steps"]):
        wrong.append("the graph lacks instructions")
    ready = float(page.root.get("data-ready", "inf")) / 1000
    if ready > seconds:
        wrong.append(f"ready after {ready:.2f} s")
    return wrong, ready


def open_page(browser, path, folder):
    done = subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", f"--user-data-dir={folder}/browser", "--enable-logging=stderr",
         "--window-size=1300,1000", "--dump-dom", f"file://{path}#check"],
        capture_output=True, text=True, timeout=120)
    errors = [line for line in done.stderr.splitlines()
              if ":CONSOLE" in line or "Uncaught" in line]
    return done.stdout, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", type=Path, required=True)
    parser.add_argument("models", nargs="*", default=[str(ROOT / "examples" / "digits")])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--keep", type=Path, help="leave the pages there")
    options = parser.parse_args()
    browser = next((b for b in map(shutil.which, BROWSERS) if b), None)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        keep = (options.keep or Path(folder)).resolve()
        keep.mkdir(exist_ok=True)
        for model in options.models:
            path, *shapes = re.split(r",(?=[A-Za-z-])", model)
            page = keep / (Path(path).name + ".html")
            words = [str(options.heddle), "profile", path, "--random-feed", "--seconds", "0.2",
                     "--json", "--html", str(page)]
            for shape in shapes:
                words += [shape] if shape.startswith("--") else ["--shape", shape]
            said = json.loads(subprocess.run(words, check=True, capture_output=True,
                                             text=True).stdout)
            text = page.read_text(encoding="utf-8")
            wrong, ready = check_static(text, said), None
            if browser:
                shown, errors = open_page(browser, page, folder)
                wrong += [f"console: {e}" for e in errors]
                more, ready = check_shown(shown, said, options.seconds)
                wrong += more
            failed += bool(wrong)
            print(f"{path}: {len(text) / 1e6:.1f} MB"
                  + (f", ready after {ready:.2f} s: " if browser else ": ")
                  + ("ok" if not wrong else "; ".join(wrong[:6])))
    if failed:
        return 1
    if not browser:
        print("no Chromium: only the page itself was checked")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
