"""Scopes with the calls of Paddle's: variables by name, each holding a tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from heddle import _heddle, _paddle


def offsets_of(lengths: Iterable[Iterable[int]]) -> list[list[int]]:
    """[[2, 3]] -> [[0, 2, 5]]: lengths of sequences as offsets."""
    return [[0, *np.cumsum(list(level)).tolist()] for level in lengths]


def lengths_of(lod: Iterable[Iterable[int]]) -> list[list[int]]:
    return [np.diff(list(level)).tolist() for level in lod]


class LoDTensor:
    """An array with the offsets of its sequences, with the calls of `paddle.static`'s tensors."""

    def __init__(self, tensor: _heddle.Tensor | None = None) -> None:
        self._tensor = tensor

    def set(self, array: Any, place: Any = None, zero_copy: bool = False) -> None:
        lod = self.lod()
        self._put(_heddle.Tensor(np.array(array) if not zero_copy else array, "", lod or None))

    def _put(self, tensor: _heddle.Tensor) -> None:
        self._tensor = tensor

    def _is_initialized(self) -> bool:
        return self._tensor is not None

    def _required(self) -> _heddle.Tensor:
        if self._tensor is None:
            raise ValueError("the tensor holds nothing yet")
        return self._tensor

    def shape(self) -> list[int]:
        return list(self._tensor.shape) if self._tensor is not None else []

    def lod(self) -> list[list[int]]:
        return self._tensor.lod if self._tensor is not None else []

    def set_lod(self, lod: list[list[int]]) -> None:
        tensor = self._required()
        self._put(_heddle.Tensor(tensor, "", lod))

    def recursive_sequence_lengths(self) -> list[list[int]]:
        return lengths_of(self.lod())

    def set_recursive_sequence_lengths(self, lengths: list[list[int]]) -> None:
        self.set_lod(offsets_of(lengths))

    def has_valid_recursive_sequence_lengths(self) -> bool:
        lod = self.lod()
        counts = [len(level) - 1 for level in lod[1:]] + [self.shape()[0] if self.shape() else 0]
        return all(level[0] == 0 and level == sorted(level) and level[-1] == count
                   for level, count in zip(lod, counts))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self._required().numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def numpy(self) -> np.ndarray:
        return np.array(self)

    def __repr__(self) -> str:
        if self._tensor is None:
            return "LoDTensor(holds nothing)"
        return f"LoDTensor(shape={self.shape()}, dtype={self._tensor.dtype}, lod={self.lod()})"


class _ScopeTensor(LoDTensor):
    """The tensor of a variable: what is set goes into the scope."""

    def __init__(self, scope: _heddle.Scope, name: str) -> None:
        value = scope.get(name)
        super().__init__(value if isinstance(value, _heddle.Tensor) else None)
        self._scope, self._name = scope, name

    def _put(self, tensor: _heddle.Tensor) -> None:
        self._scope.set(self._name, tensor)
        self._tensor = self._scope.get(self._name)


class Variable:
    """A named place in a Scope."""

    def __init__(self, scope: _heddle.Scope, name: str) -> None:
        self._scope, self.name = scope, name

    def get_tensor(self) -> LoDTensor:
        """The value: a copy, while `set` writes to the variable itself."""
        return _ScopeTensor(self._scope, self.name)


class Scope:
    """Variables that outlive runs: parameters and the state of optimizers.

    `var`, `find_var`, `erase`, `new_scope` and `drop_kids` are as in `paddle.static.Scope`;
    `scope[name]` reads and sets arrays. Where Paddle is imported the variables are those of a scope
    of Paddle's.
    """

    def __new__(cls, *_: Any) -> Scope:
        shared = cls is Scope and _paddle.module() is not None
        return object.__new__(SharedScope if shared else cls)

    def __init__(self, scope: _heddle.Scope | None = None) -> None:
        self._scope = _heddle.Scope() if scope is None else scope
        self._made: set[str] = set()
        self._kids: list[Scope] = []
        self._parent: Scope | None = None

    def var(self, name: str) -> Variable:
        self._made.add(name)
        return Variable(self._scope, name)

    def find_var(self, name: str) -> Variable | None:
        if name in self._made or name in self.local_var_names():
            return Variable(self._scope, name)
        return self._parent.find_var(name) if self._parent is not None else None

    def erase(self, names: Iterable[str]) -> None:
        for name in names:
            self._made.discard(name)
            self._scope.erase(name)

    def local_var_names(self) -> list[str]:
        return sorted(self._made | {n for n in self._scope.names() if self._scope.has(n)})

    def new_scope(self) -> Scope:
        kid = object.__new__(Scope)  # of this scope's kind, also where Paddle was imported since
        Scope.__init__(kid, self._scope.new_scope())
        kid._parent = self
        self._kids.append(kid)
        return kid

    def drop_kids(self) -> None:
        self._kids.clear()

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._scope.has(name)

    def __getitem__(self, name: str) -> np.ndarray:
        value = self._scope.get(name)
        if value is None:
            raise KeyError(name)
        return value.numpy() if isinstance(value, _heddle.Tensor) else value

    def __setitem__(self, name: str, array: Any) -> None:
        self._made.add(name)
        self._scope.set(name, array)


class SharedScope(Scope):
    """The same calls on a scope of Paddle's, where Paddle is imported: what Paddle's functions
    write into the current scope (`paddle.static.load`, …) is there, and they find what is in it."""

    def __init__(self, theirs: Any = None) -> None:
        super().__init__()
        self.theirs = _paddle.module().static.Scope() if theirs is None else theirs

    def var(self, name: str) -> Any:
        return self.theirs.var(name)

    def find_var(self, name: str) -> Any:
        return self.theirs.find_var(name)

    def erase(self, names: Iterable[str]) -> None:
        self.theirs.erase(list(names))

    def local_var_names(self) -> list[str]:
        return self.theirs.local_var_names()

    def new_scope(self) -> Scope:
        kid = SharedScope(self.theirs.new_scope())
        kid._parent = self  # who owns it
        return kid

    def drop_kids(self) -> None:
        self.theirs.drop_kids()

    def _tensor(self, name: str) -> Any:
        variable = self.theirs.find_var(name)
        tensor = variable.get_tensor() if variable is not None else None
        return tensor if tensor is not None and tensor._is_initialized() else None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._tensor(name) is not None

    def __getitem__(self, name: str) -> np.ndarray:
        tensor = self._tensor(name)
        if tensor is None:
            raise KeyError(name)
        return np.array(tensor)

    def __setitem__(self, name: str, array: Any) -> None:
        array = np.asarray(array)
        if array.dtype.name == "bfloat16":
            array = array.view("uint16")  # as Paddle writes it
        self.var(name).get_tensor().set(array, _paddle.core().CPUPlace())
