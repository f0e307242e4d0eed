"""Models through the C interface, as Pythons have them that the extension was not made for."""

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import heddle

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(heddle.__file__).parents[2] / "libheddle_c.so"

SCRIPT = """
import sys, threading, numpy as np, heddle
digits = sys.argv[1]
x = np.load(digits + "/input.npy")
model = heddle.load(digits, threads=2)
y = model(x)
assert y.argmax(-1).tolist() == [8, 5, 5, 1] and y.dtype == "float32"
outputs = model.run({"x": x})
assert (outputs[0] == y).all() and (outputs[model.outputs[0].name] == y).all()
assert model.inputs[0].shape == (-1, 1, 8, 8) and model.inputs[0].dtype == "float32"
for path in "/onnx/model.onnx", "/tensorflow":
    assert heddle.load(digits + path, opt_level=0)(x).argmax(-1).tolist() == [8, 5, 5, 1]
files = [open(digits + "/model" + end, "rb").read() for end in (".pdmodel", ".pdiparams")]
assert (heddle.parse(*files, threads=1)(x) == y).all()
assert (heddle.parse(bytearray(files[0]), memoryview(files[1]))(x) == y).all()
name, *_ = model.parameters
held = model.parameters[name]
model.parameters[name] = held * 0
assert not (model(x) == y).all()
model.parameters[name] = held
assert (model(x) == y).all()
assert "conv" in model.plan({"x": x})

def fails(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(kind)

fails(heddle.NotFound, lambda: heddle.load("/nowhere"))
fails(heddle.InvalidArgument, lambda: model.run({"x": x[:, :, :7]}))
fails(heddle.InvalidArgument, lambda: model.run({"y": x}))
for timeout in 1e-9, 0, -1:
    fails(heddle.DeadlineExceeded, lambda: model.run({"x": x}, timeout=timeout))
for option, wrong in (("precision", "f16"), ("schedule", "fast"), ("reuse", "all"),
                      ("opt_level", 7), ("opt_level", -1), ("threads", -1), ("runs_at_once", -1),
                      ("plan_cache", -1)):
    fails(ValueError, lambda: heddle.load(digits, **{option: wrong}))
fails(TypeError, lambda: heddle.load(digits, thread=1))
fails(TypeError, lambda: model(x, x))
assert (model.run({"x": x.astype(">f4")})[0] == y).all()
fails(TypeError, lambda: model.run({"x": ["text"]}))
fails(TypeError, lambda: heddle.parse(None))
fails(TypeError, lambda: heddle.parse(files[0], None))
fails(KeyError, lambda: model.parameters["nothing"])
fails(ImportError, lambda: heddle.static)
fails(AttributeError, lambda: heddle.nothing)
assert sorted(heddle.__all__) == heddle.__all__ == dir(heddle)
threads = [threading.Thread(target=lambda: [model(x) for _ in range(20)]) for _ in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built")
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "python/heddle", folder / "heddle")
    (folder / "heddle/lib").mkdir()
    (folder / "heddle/lib/libheddle_c.so").symlink_to(LIBRARY)
    return folder


@pytest.mark.parametrize("name", ["here", "python3.9", "python3.10", "python3.12", "python3.13"])
def test_models_run_without_the_extension(package, name):
    python = sys.executable if name == "here" else shutil.which(name)
    if python is None or subprocess.run([python, "-c", "import numpy"], check=False,
                                        capture_output=True).returncode:
        pytest.skip(f"there is no {name} with NumPy")
    run = subprocess.run([python, "-c", SCRIPT, ROOT / "examples/digits"], cwd=package,
                         env={"PYTHONPATH": str(package)}, capture_output=True, text=True,
                         check=False)
    assert run.returncode == 0, run.stderr


def test_the_modules_are_python_of_the_oldest_version():
    import ast
    for path in (ROOT / "python/heddle").rglob("*.py"):
        ast.parse(path.read_text(), str(path), feature_version=(3, 9))


def test_structures_are_those_of_the_header(package, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _, plain=ctypes.CDLL: plain(str(LIBRARY)))
    from heddle import _plain
    header = re.sub(r"/\*.*?\*/", "", (ROOT / "include/heddle.h").read_text(), flags=re.S)
    for name, own in (("executor_options", _plain._ExecutorOptions),
                      ("model_options", _plain._ModelOptions), ("program_part", _plain._Part),
                      ("run_options", _plain._RunOptions), ("info", _plain._Info)):
        body = re.search(r"struct heddle_%s {(.*?)}" % name, header, re.S).group(1)
        fields = [re.search(r"(\w+)\s*$", line).group(1) for line in body.split(";")
                  if line.strip()]
        assert fields == [field[0] for field in own._fields_], name


LEAKS = """
import sys, gc, numpy as np, heddle
from heddle import _plain
digits = sys.argv[1]
x = np.load(digits + "/input.npy")
alive = {"executor": 0, "model": 0, "tensor": 0}

def counted(name, kind, made):
    plain = getattr(_plain._lib, "heddle_" + name)
    def call(*arguments):
        result = plain(*arguments)
        alive[kind] += made(result, arguments)
        return result
    setattr(_plain._lib, "heddle_" + name, call)

for kind, name in (("executor", "executor_new"), ("model", "model_load_part"),
                   ("tensor", "tensor_wrap"), ("tensor", "model_parameter")):
    counted(name, kind, lambda error, _: not error)
counted("model_run", "tensor", lambda error, arguments: 0 if error else arguments[-1])
for kind in alive:
    counted(kind + "_free", kind, lambda *_: -1)

def fails(call):
    try:
        call()
    except Exception:
        return
    raise AssertionError("it did not fail")

for wrong in ({"precision": "f16"}, {"schedule": "fast"}, {"reuse": "all"}, {"opt_level": 7},
              {"threads": -1}, {"force": "nothing"}, {"fetch": ["nothing"]}):
    fails(lambda: heddle.load(digits, **wrong))
model = heddle.load(digits)
assert alive["model"] == 1
for feeds in ({"x": x, "y": ["text"]}, {"x": x, "y": x}, {"x": x[0]}):
    fails(lambda: model.run(feeds))
    fails(lambda: model.plan(feeds))
name, *_ = model.parameters
fails(lambda: model.parameters.__setitem__(name, x))
model(x), model.parameters[name], model.plan({"x": x})
_plain.np.empty = None  # copies of results cannot be made
fails(lambda: model(x))
fails(lambda: model.parameters[name])
del model
gc.collect()
assert alive == {"executor": 0, "model": 0, "tensor": 0}, alive
"""


def test_nothing_leaks_where_a_call_fails(package):
    run = subprocess.run([sys.executable, "-c", LEAKS, ROOT / "examples/digits"], cwd=package,
                         env={"PYTHONPATH": str(package)}, capture_output=True, text=True,
                         check=False)
    assert run.returncode == 0, run.stderr
