"""Model folders: a program, recorded inputs and the outputs that Paddle computed from them."""

import importlib.util
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass
class Case:
    """One program with one set of inputs."""

    model: str
    name: str
    program: Path
    params: Path | None
    feeds: dict  # name -> .npy file
    expected: list  # .npy files, in the order of the fetches
    ops: int
    param_bytes: int
    rtol: float
    atol: float

    @property
    def title(self):
        return f"{self.model} {self.name}"


@dataclass
class Comparison:
    ok: bool
    worst: float = 0.0  # largest |difference| of a float output
    why: list = field(default_factory=list)


def _rebuild(models, folder, build):
    """Parameters that are not kept in the folder are made from their specification."""
    target = build / folder.name / "model.pdiparams"
    if not target.exists():
        spec = importlib.util.spec_from_file_location("regen_params",
                                                      models / "tools" / "regen_params.py")
        regen = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(regen)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(f".{os.getpid()}")
        part.write_bytes(regen.rebuild(str(folder)))
        part.rename(target)
    return target


def _meta(folder):
    return json.loads((folder / "meta.json").read_text())


def inference_models(models):
    return [f.parent.name for f in sorted(models.glob("*/meta.json"))
            if _meta(f.parent)["kind"] == "inference"]


def load_cases(models, name, build):
    """All cases of one model folder."""
    folder = models / name
    meta = _meta(folder)
    params = folder / "model.pdiparams"
    if not params.exists():
        params = _rebuild(models, folder, build) if (folder / "params_spec.json").exists() else None
    return [
        Case(model=name, name=case["name"], program=folder / "model.pdmodel", params=params,
             feeds={k: folder / v["file"] for k, v in case["inputs"].items()},
             expected=[folder / o["file"] for o in case["outputs"]],
             ops=sum(n for op, n in meta["ops"].items() if op not in ("feed", "fetch")),
             param_bytes=meta.get("param_bytes", 0),
             rtol=meta.get("rtol", 1e-4), atol=meta.get("atol", 1e-4))
        for case in meta["cases"]
    ]


def compare(case, folder):
    """The outputs in `folder` (out_<k>.npy) against the recorded ones."""
    result = Comparison(ok=True)
    for k, file in enumerate(case.expected):
        expected = np.load(file)
        try:
            got = np.load(folder / f"out_{k}.npy")
        except (OSError, ValueError) as error:
            result.ok = False
            result.why.append(f"out_{k}: {error}")
            continue
        if got.shape != expected.shape or got.dtype != expected.dtype:
            result.ok = False
            result.why.append(f"out_{k}: {got.dtype}{list(got.shape)}, recorded "
                              f"{expected.dtype}{list(expected.shape)}")
        elif expected.dtype.kind in "biu":
            unequal = int((got != expected).sum())
            if unequal:
                result.ok = False
                result.why.append(f"out_{k}: {unequal} elements differ")
        else:
            g, e = got.astype("f8"), expected.astype("f8")
            same = (g == e) | (np.isnan(g) & np.isnan(e))
            off = np.where(same, 0, np.abs(g - e))
            bad = ~same & ~(off <= case.atol + case.rtol * np.abs(e))
            result.worst = max(result.worst, float(np.nanmax(off)) if off.size else 0.0)
            if bad.any():
                result.ok = False
                result.why.append(f"out_{k}: {int(bad.sum())} of {bad.size} elements beyond the "
                                  f"tolerance, worst by {np.nanmax(off):.2g}")
    return result
