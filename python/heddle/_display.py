"""What models, plans and profiles look like in a notebook: HTML and SVG, without scripts."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

_WIDTH, _HEIGHT, _ACROSS, _DOWN = 140, 32, 156, 54  # a box of the graph, and from one to the next
_MOST = 400  # boxes of a graph that is drawn whole


def _hue(text: str) -> int:
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value % 360


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """An HTML table; texts to the left, numbers to the right."""
    def cell(value: Any) -> str:
        side = "left" if isinstance(value, str) else "right"
        text = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(
            value, int) else str(value)
        return f'<td style="text-align:{side}">{html.escape(text)}</td>'

    lines = ["".join(map(cell, row)) for row in rows]
    return ("<table><thead><tr>" + "".join(f"<th>{html.escape(h)}</th>" for h in head)
            + "</tr></thead><tbody>" + "".join(f"<tr>{line}</tr>" for line in lines)
            + "</tbody></table>")


def bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """A chart as SVG: (name, length, what stands behind the bar)."""
    longest = max([length for _, length, _ in rows] + [1e-9])
    parts = []
    for k, (name, length, note) in enumerate(rows):
        y, wide = 20 * k, max(1.0, 360 * length / longest)
        parts.append(
            f'<text x="196" y="{y + 14}" text-anchor="end">{html.escape(name)}</text>'
            f'<rect x="202" y="{y + 2}" width="{wide:.1f}" height="15" '
            f'fill="hsl({_hue(name)},55%,62%)"/>'
            f'<text x="{208 + wide:.1f}" y="{y + 14}">{html.escape(note)}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{20 * len(rows) + 4}" '
            f'font-family="sans-serif" font-size="12">{"".join(parts)}</svg>')


def _uses(plan: dict[str, Any]) -> list[tuple[int, int]]:
    """(writer, reader) of every result; a view is the memory of what it looks at."""
    slots, steps = plan["slots"], plan["steps"]
    writer = {slot: i for i, step in enumerate(steps) for slot in step["outputs"] if slot >= 0}
    found = set()
    for i, step in enumerate(steps):
        for slot in step["inputs"]:
            hops = 0
            while slot >= 0 and slot not in writer and hops < 1000:
                slot, hops = slots[slot][2], hops + 1
            if slot >= 0 and writer[slot] != i:
                found.add((writer[slot], i))
    return sorted(found)


def _places(count: int, edges: list[tuple[int, int]]) -> list[tuple[float, int]]:
    """Where each box stands: rows by the longest path, in a row by where the neighbours are."""
    into: list[list[int]] = [[] for _ in range(count)]
    out: list[list[int]] = [[] for _ in range(count)]
    for u, v in edges:
        into[v].append(u)
        out[u].append(v)
    rank, left = [0] * count, [len(sources) for sources in into]
    ready = [i for i in range(count) if not left[i]]
    for u in ready:
        for v in out[u]:
            rank[v] = max(rank[v], rank[u] + 1)
            left[v] -= 1
            if not left[v]:
                ready.append(v)
    rows: dict[int, list[int]] = {}
    for i in range(count):
        rows.setdefault(rank[i], []).append(i)
    x = [0.0] * count

    def spread(row: list[int]) -> None:
        for k, i in enumerate(row):
            x[i] = k - (len(row) - 1) / 2

    for row in rows.values():
        spread(row)
    for sweep in range(4):
        near = out if sweep % 2 else into
        for r in sorted(rows, reverse=bool(sweep % 2)):
            wish = {i: sum(x[j] for j in near[i]) / len(near[i]) if near[i] else x[i]
                    for i in rows[r]}
            rows[r].sort(key=wish.__getitem__)
            spread(rows[r])
    return [(x[i], rank[i]) for i in range(count)]


def graph(plan: dict[str, Any]) -> str:
    """The plan as SVG, an instruction a box, coloured by lane, task or operator."""
    steps, slots = plan["steps"], plan["slots"]
    shown = min(len(steps), _MOST)
    edges = [(u, v) for u, v in _uses(plan) if u < shown and v < shown]
    places = _places(shown, edges)
    reach = max([abs(x) for x, _ in places] + [0.0])
    width = (2 * reach + 1) * _ACROSS + 20
    height = (max([r for _, r in places] + [0]) + 1) * _DOWN + 20

    def corner(i: int) -> tuple[float, float]:
        x, r = places[i]
        return (x + reach) * _ACROSS + 10, r * _DOWN + 10

    parts = []
    for u, v in edges:
        (x0, y0), (x1, y1) = corner(u), corner(v)
        x0, x1, y0 = x0 + _WIDTH / 2, x1 + _WIDTH / 2, y0 + _HEIGHT
        middle = (y0 + y1) / 2
        parts.append(f'<path d="M{x0:.0f} {y0:.0f}C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} '
                     f'{x1:.0f} {y1:.0f}" fill="none" stroke="#999"/>')
    for i in range(shown):
        step, (x, y) = steps[i], corner(i)
        unit = step["lane"] if step["lane"] >= 0 else step["task"]
        hue = unit * 67 % 360 if unit >= 0 else _hue(step["op"])
        names = [slots[s][0] for s in step["outputs"] if s >= 0]
        output = names[0] if names else ""
        title = html.escape(f"{i}: {step['op']} -> {', '.join(names)} ({step['mode']}"
                            + (f", lane {step['lane']}" if step["lane"] >= 0 else "") + ")")
        parts.append(
            f'<g><title>{title}</title><rect x="{x:.0f}" y="{y:.0f}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" rx="3" fill="hsl({hue},60%,82%)" stroke="#666"/>'
            f'<text x="{x + 5:.0f}" y="{y + 13:.0f}" fill="#111">{html.escape(step["op"][:22])}'
            f'</text><text x="{x + 5:.0f}" y="{y + 26:.0f}" fill="#555">'
            f'{html.escape(output[:22])}</text></g>')
    note = (f'<text x="10" y="{height + 12:.0f}">… {len(steps) - shown} more</text>'
            if shown < len(steps) else "")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
            f'height="{height + 20:.0f}" font-family="sans-serif" font-size="11">'
            f'{"".join(parts)}{note}</svg>')


class Plan(str):
    """The plan as text, a line per instruction; in a notebook, its graph."""

    _parts: dict[str, Any]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The instructions: operator, mode, block, slots read and written, cost, lane, task."""
        return self._parts["steps"]

    @property
    def slots(self) -> list[tuple[str, str, int]]:
        """(variable, where it is kept, the slot it is a view of or -1)."""
        return self._parts["slots"]

    def svg(self) -> str:
        """The graph: a box per instruction, lines from where a result is made to where it is
        read."""
        return graph(self._parts)

    def _repr_html_(self) -> str:
        n = len(self.steps)
        return (f"<p>{n} instruction{'s' * (n != 1)}, {html.escape(self._parts['dispatch'])}</p>"
                f'<div style="max-height:560px;overflow:auto">{self.svg()}</div>')
