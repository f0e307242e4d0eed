"""What tests/python/scripts asked Paddle's executor, and what it answered, asked of heddle's.

scripts/paddle_frontend.py --record tests/python/scripts.npz writes the recording.
"""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from heddle import static

RECORDING = Path(__file__).parent / "scripts.npz"
ARCHIVE = zipfile.ZipFile(RECORDING)
SCRIPTS = sorted({name.split("/")[0] for name in ARCHIVE.namelist()})


def test_most_scripts_are_recorded():
    written = {path.stem for path in (Path(__file__).parent / "scripts").glob("*.py")}
    assert set(SCRIPTS) <= written and len(SCRIPTS) >= 25


@pytest.mark.parametrize("script", SCRIPTS)
def test_replay(script):
    steps = json.loads(ARCHIVE.read(f"{script}/steps.json"))
    arrays = np.load(io.BytesIO(ARCHIVE.read(f"{script}/arrays.npz")))
    exe, scopes, seed = static.Executor(), {}, None
    compared = 0
    for number, step in enumerate(steps):
        if step["seed"] != seed:
            seed = step["seed"]
            static.seed(seed)
        scope = scopes.setdefault(step["scope"], static.Scope())
        for name, key in step.get("set", {}).items():
            scope[name] = arrays[key]
        feed = {name: (arrays[key], lod) if lod else arrays[key]
                for name, (key, lod) in step["feed"].items()}
        out = exe.run(ARCHIVE.read(f"{script}/{step['program']}.pdmodel"), feed=feed,
                      fetch_list=step["fetch"], scope=scope, return_numpy=False)
        for name, got, (key, lod) in zip(step["fetch"], out, step["out"]):
            got_array, want = np.array(got), arrays[key]
            assert got_array.shape == want.shape and got_array.dtype == want.dtype, (number, name)
            assert np.allclose(got_array, want, 1e-4, 1e-5, equal_nan=True), (number, name)
            assert not lod or got.lod() == lod
            compared += 1
    assert compared > 0
