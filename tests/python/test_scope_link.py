"""Variables that a scope of Paddle's keeps: heddle and Paddle see the same ones. (Paddle's side is
played by NumPy.)"""

import types

import numpy as np
import pytest

from heddle import _heddle, _paddle


class _Tensor:
    """What heddle uses of Paddle's tensors: memory that `set` goes on using where it is enough."""

    def __init__(self):
        self._memory, self._shape = None, []

    def set(self, array, place=None):
        array = np.asarray(array, "float32")
        if self._memory is None or self._memory.size < array.size:
            self._memory = np.empty(array.size, "float32")
        self._memory[:array.size] = array.ravel()
        self._shape = list(array.shape)

    def value(self):
        return self._memory[:int(np.prod(self._shape))].reshape(self._shape)

    def get_tensor(self):
        return self

    def _is_initialized(self):
        return self._memory is not None

    def _share_data_with(self, other):
        self._memory, self._shape = other._memory, other._shape

    def _ptr(self):
        return self._memory.ctypes.data

    def _dtype(self):
        return 5  # float32

    def shape(self):
        return list(self._shape)


class _Scope(dict):
    __hash__ = object.__hash__
    parent = None

    def find_var(self, name):
        if name in self or self.parent is None:
            return self.get(name)
        return self.parent.find_var(name)

    def var(self, name):
        return self.setdefault(name, _Tensor())


class _Program:
    """A program of Paddle's, of one variable."""

    def block(self, index):
        return self

    def var(self, name):
        self.name = name.decode()
        return types.SimpleNamespace(set_type=lambda kind: None, set_persistable=lambda on: None)


class _Executor:
    def __init__(self, place):
        pass

    def create_variables(self, program, scope, block):
        while scope.parent is not None:
            scope = scope.parent
        scope.var(program.name)


@pytest.fixture(params=[0, 2])
def view(request, monkeypatch):
    """A view of variable "x" and the scope that it is in; with a parameter, so deep in a tree."""
    kinds = types.SimpleNamespace(VarType=types.SimpleNamespace(LOD_TENSOR=7))
    core = types.SimpleNamespace(
        CPUPlace=lambda: None, ProgramDesc=_Program, Executor=_Executor, VarDesc=kinds,
        Place=lambda: types.SimpleNamespace(set_place=lambda place: None))
    monkeypatch.setattr(_paddle, "new_tensor", _Tensor)
    monkeypatch.setattr(_paddle, "core", lambda: core)
    scope = _Scope()
    for _ in range(request.param):
        kid = _Scope()
        kid.parent = scope
        scope = kid
    link = _paddle.ScopeLink(scope)
    return link.view(["x"]), link, scope


def test_another_shape_in_the_same_memory_is_seen(view):
    view, link, scope = view
    for rows, value in ((3, 1), (2, 5), (8, 2), (3, 4)):
        scope.var("x").set(np.full((rows, 4), value))
        view.before()
        seen = link.mirror.scope.get("x").numpy()
        assert seen.shape == (rows, 4) and (seen == value).all()


def _field(number, value):
    """A field of a protobuf message: a number, or bytes."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n % 128 + 128]) + varint(n // 128)

    if isinstance(value, int):
        return varint(number * 8) + varint(value % 2**64)
    return varint(number * 8 + 2) + varint(len(value)) + value


def _program():
    """x = y + 0, where x outlives the run."""
    open_shape = _field(1, 5) + _field(2, -1) + _field(2, 4)
    kind = _field(2, _field(1, 7) + _field(3, _field(1, open_shape)))
    slot = lambda number, key, name: _field(number, _field(1, key) + _field(2, name))  # noqa: E731
    block = (_field(1, 0) + _field(2, -1) + _field(3, _field(1, b"x") + kind + _field(3, 1))
             + _field(3, _field(1, b"y") + kind)
             + _field(4, slot(1, b"X", b"y") + slot(2, b"Out", b"x") + _field(3, b"scale")))
    return _field(1, block)


def test_what_heddle_makes_shorter_is_shorter_there(view):
    view, link, scope = view
    session = _heddle.Executor(1).compile(_heddle.Program.parse(_program()), link.mirror.scope)
    for rows in (3, 2, 5, 1, 4):
        view.before()
        session.run({"y": np.full((rows, 4), rows, "float32")})
        view.after()
        there = scope.find_var("x").value()
        assert there.shape == (rows, 4) and (there == rows).all()
    root = scope
    while root.parent is not None:
        root = root.parent
    assert list(root) == ["x"]
