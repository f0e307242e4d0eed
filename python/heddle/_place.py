"""Names of places: heddle's own, and those of Paddle and ONNX Runtime."""

from __future__ import annotations

import re
from typing import Any


def name_of(place: Any) -> str:
    """heddle's name of a place: "cpu", "cuda:0", "emulated:1". `place`: None for the host, a name
    ("gpu:0" is "cuda:0"), names with commas between, or a place of Paddle's, which shows itself as
    `Place(gpu:0)`."""
    if place is None:
        return "cpu"
    text = str(place).strip()
    found = re.fullmatch(r"Place\((.*)\)", text)
    text = (found.group(1) if found else text).lower()
    return ",".join(_one(name.strip()) for name in text.split(","))


def _one(text: str) -> str:
    kind, _, number = text.partition(":")
    kind = {"gpu": "cuda", "undefined": "cpu", "gpu_pinned": "cpu"}.get(kind, kind)
    return kind if kind == "cpu" or not number else f"{kind}:{number}"
