"""The package itself: stubs, version, what importing it brings."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import heddle
from heddle import _heddle

ROOT = Path(__file__).resolve().parents[2]


def names_in_stub():
    tree = ast.parse((ROOT / "python/heddle/_heddle.pyi").read_text())
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {inner.name for inner in node.body
                                if isinstance(inner, ast.FunctionDef)}
            found[node.name] |= {inner.target.id for inner in node.body
                                 if isinstance(inner, ast.AnnAssign)}
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = None
    return found


def test_stub_and_module_agree():
    stub = names_in_stub()
    there = {name for name in vars(_heddle) if not name.startswith("__")}
    assert there == set(stub)
    for name, members in stub.items():
        if members is not None:
            own = {m for m in vars(getattr(_heddle, name))
                   if not m.startswith("__")
                   or m in ("__dlpack__", "__dlpack_device__", "__len__")}
            assert own == {m for m in members if m not in ("__init__", "__repr__")}, name


def test_version_is_the_projects():
    text = (ROOT / "CMakeLists.txt").read_text()
    assert heddle.__version__ == re.search(r"project\(heddle VERSION ([0-9.]+)", text).group(1)


def test_public_names():
    """Every name that heddle shows is in __all__, modules of its own included, and nothing else."""
    code = """if True:
        import pathlib, heddle
        from heddle import *
        folder = pathlib.Path(heddle.__file__).parent
        modules = {p.stem for p in folder.iterdir()
                   if (p.suffix == ".py" or (p / "__init__.py").exists())
                   and not p.name.startswith("_")}
        names = {n for n in vars(heddle) if not n.startswith("_")} | modules | {"__version__"}
        assert set(heddle.__all__) == names, set(heddle.__all__) ^ names
        assert sorted(heddle.__all__) == heddle.__all__ == dir(heddle)
        assert all(n in globals() for n in heddle.__all__)"""
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    for name in heddle.__all__:
        assert getattr(heddle, name) is not None
        if name[0].isupper():
            assert getattr(heddle, name).__doc__, name


def test_paddle_is_never_imported():
    code = ("import sys, heddle, heddle.static, heddle.inference; heddle.static.Executor(); "
            "sys.exit('paddle' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_modules_come_with_the_package():
    code = "import heddle; heddle.static.Executor(); heddle.inference.Config(); heddle.nothing"
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert run.stderr.splitlines()[-1] == "AttributeError: heddle has no 'nothing'"
