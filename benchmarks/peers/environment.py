"""What a measurement needs: a Python environment with the peers, and a heddle to measure."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
PEERS = ["paddlepaddle==2.6.2", "numpy<2", "protobuf<=3.20.3", "setuptools<81"]
ONNX_PEERS = ["onnxruntime==1.17.3", "paddle2onnx==1.2.11", "onnx==1.16.2"]
INFERENCE_PEERS = ["paddlepaddle==2.6.2", "numpy<2", "setuptools<81",
                   "onnxruntime==1.31.1", "openvino==2026.4.1", "paddle2onnx==1.2.11",
                   "onnx==1.17.0"]
# Paddle 2.6.2 has no wheels for other versions.
PYTHONS = [(3, minor) for minor in range(8, 13)]


def _run(command, **kwargs):
    print("+", " ".join(map(str, command)), file=sys.stderr, flush=True)
    subprocess.run(list(map(str, command)), check=True, **kwargs)


def _install(place, packages):
    """Once for each list of packages."""
    stamp = place / ("packages-" + hashlib.sha256("\n".join(packages).encode()).hexdigest()[:16])
    if not stamp.exists():
        _run([place / "bin" / "python", "-m", "pip", "install", "--quiet",
              "--disable-pip-version-check", *packages], stdout=sys.stderr)
        stamp.touch()


def make_environment(with_onnx=False):
    """The virtual environment with the peers; made on the first call. Returns its Python."""
    return _environment("peers-env", PEERS, ONNX_PEERS if with_onnx else [])


def make_inference_environment():
    """The same with the engines of benchmarks/inference.py."""
    return _environment("peers-inference", INFERENCE_PEERS, [])


def _environment(name, packages, further):
    place = BUILD / name
    python = place / "bin" / "python"
    if not python.exists():
        if sys.version_info[:2] not in PYTHONS:
            raise SystemExit(
                f"Paddle 2.6.2 needs Python 3.8 to 3.12; this is {sys.version.split()[0]}. Run "
                "this script with another one, or give --python a Python that has "
                "paddlepaddle==2.6.2 and numpy<2.")
        try:
            _run([sys.executable, "-m", "venv", "--clear", place], stdout=sys.stderr)
        except subprocess.CalledProcessError:
            raise SystemExit("cannot make a virtual environment; on Debian: apt install "
                             "python3-venv")
    _install(place, packages)
    if further:
        _install(place, further)
    return python


def find_heddle(given):
    """The binary to measure: the given one, or the release build, built when absent."""
    if given:
        path = Path(given).resolve()
        if not os.access(path, os.X_OK):
            raise SystemExit(f"{given}: no such program")
        return path
    path = BUILD / "release" / "heddle"
    if not path.exists():
        _run(["cmake", "--preset", "release"], cwd=ROOT, stdout=sys.stderr)
        _run(["cmake", "--build", BUILD / "release", "--target", "heddle_cli"], cwd=ROOT,
             stdout=sys.stderr)
    return path
