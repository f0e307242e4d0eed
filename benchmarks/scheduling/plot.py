"""The results as a picture: for each graph and body, time per task against the number of tasks."""

import math
from xml.sax.saxutils import escape

from scheduling.report import label
from scheduling.results import BODIES, GRAPHS

WIDTH, HEIGHT, GAP, LEFT, TOP = 250, 150, 46, 70, 70
COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#997700",
           "#774411", "#44bb99"]


def style(results, contender):
    engine, workers = contender
    kind = results.kinds[engine]
    if kind == "floor":
        return 'stroke="#888" stroke-dasharray="4 3" stroke-width="1.5"'
    if kind == "heddle":
        dash = "" if workers == results.workers else ' stroke-dasharray="2 3"'
        return f'stroke="#000" stroke-width="2.5"{dash}'
    peers = sorted(name for name, k in results.kinds.items() if k == "peer")
    dash = "" if workers == results.workers else ' stroke-dasharray="2 3"'
    return f'stroke="{COLOURS[peers.index(engine) % len(COLOURS)]}" stroke-width="1.5"{dash}'


def ticks(low, high):
    return [10.0**e for e in range(math.ceil(math.log10(low) - 1e-9),
                                   math.floor(math.log10(high) + 1e-9) + 1)]


class Panel:
    """One pair of logarithmic axes."""

    def __init__(self, x, y, sizes, low, high):
        self.x0, self.y0 = x, y
        self.sizes = (math.log10(min(sizes)), math.log10(max(sizes)))
        self.times = (math.log10(low), math.log10(high))

    def x(self, size):
        low, high = self.sizes
        return self.x0 + WIDTH * ((math.log10(size) - low) / (high - low) if high > low else 0.5)

    def y(self, time):
        low, high = self.times
        return self.y0 + HEIGHT * (high - math.log10(time)) / (high - low)

    def frame(self, title):
        low, high = (10**t for t in self.times)
        parts = [f'<rect x="{self.x0}" y="{self.y0}" width="{WIDTH}" height="{HEIGHT}" fill="none" '
                 'stroke="#bbb"/>',
                 f'<text x="{self.x0}" y="{self.y0 - 6}" font-weight="bold">{escape(title)}</text>']
        for t in ticks(low, high):
            y = self.y(t)
            parts.append(f'<path d="M{self.x0} {y:.1f}h{WIDTH}" stroke="#eee"/>'
                         f'<text x="{self.x0 - 4}" y="{y + 4:.1f}" text-anchor="end">{t:g}</text>')
        for size in ticks(*(10**s for s in self.sizes)):
            parts.append(f'<text x="{self.x(size):.1f}" y="{self.y0 + HEIGHT + 13}" '
                         f'text-anchor="middle">{size:g}</text>')
        return parts

    def line(self, points, look):
        points = [(self.x(s), self.y(t)) for s, t in points if t]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1"/>' for x, y in points)
        return f'<g fill="none" {look}><polyline points="{path}"/>{dots}</g>'


def legend(results, contenders):
    parts, x, y = [], LEFT, 22
    for contender in contenders + [None]:
        text = label(contender, results.workers) if contender else "ideal"
        look = style(results, contender) if contender else 'stroke="#bbb" stroke-width="4"'
        parts.append(f'<path d="M{x} {y - 4}h24" fill="none" {look}/>'
                     f'<text x="{x + 30}" y="{y}">{escape(text)}</text>')
        x += 140
        if x > LEFT + 7 * 140:
            x, y = LEFT, y + 18
    return parts


def svg(results):
    contenders = results.engines()
    graphs = [g for g in GRAPHS if any(c.graph == g for c in results.cells)]
    bodies = [b for b in BODIES if any(c.body == b for c in results.cells)]
    sizes = [c.size for c in results.cells]
    parts = legend(results, contenders)
    for column, body in enumerate(bodies):
        # One scale for each body, so that graphs can be compared.
        column_cells = [c for c in results.cells if c.body == body]
        times = [t for c in column_cells for t in
                 [c.ideal_ns(results.workers), *(c.ns(*e) for e in contenders)] if t]
        for row, graph in enumerate(graphs):
            cells = [c for c in column_cells if c.graph == graph]
            panel = Panel(LEFT + column * (WIDTH + LEFT), TOP + row * (HEIGHT + GAP), sizes,
                          min(times) / 1.3, max(times) * 1.3)
            parts += panel.frame(f"{graph}, {body}")
            parts.append(panel.line([(c.size, c.ideal_ns(results.workers)) for c in cells],
                                    'stroke="#bbb" stroke-width="4"'))
            parts += [panel.line([(c.size, c.ns(*e)) for c in cells], style(results, e))
                      for e in reversed(contenders)]
    width = LEFT + len(bodies) * (WIDTH + LEFT)
    height = TOP + len(graphs) * (HEIGHT + GAP)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">\n'
            f'<title>Nanoseconds per task against the number of tasks, {results.workers} workers'
            f'</title>\n<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) +
            "\n</svg>\n")
