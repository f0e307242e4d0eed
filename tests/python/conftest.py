"""What the tests of the Python package share."""

import os
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("HEDDLE_SHARED_DIR", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def digits():
    """The embedded example model, and its input."""
    return ROOT / "examples" / "digits", np.load(ROOT / "examples" / "digits" / "input.npy")


@pytest.fixture(scope="session")
def training():
    """A startup and a main program as bytes, and their data."""
    folder = ROOT / "examples" / "digits" / "train"
    data = np.load(folder / "train.npz")
    return ((folder / "startup.pdmodel").read_bytes(), (folder / "main.pdmodel").read_bytes(),
            {name: data[name] for name in data.files})


@pytest.fixture(scope="session")
def shared_models():
    if not (SHARED / "models").is_dir():
        pytest.skip(f"no recorded models in {SHARED}")
    return SHARED / "models"
