"""What heddle knows of Paddle: used where the caller has imported it, never imported here."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

from heddle import _heddle

# proto::VarType::Type of element types.
_DTYPES = {0: "bool", 1: "int16", 2: "int32", 3: "int64", 4: "float16", 5: "float32", 6: "float64",
           20: "uint8", 21: "int8", 22: "bfloat16", 23: "complex64", 24: "complex128"}


def module() -> Any:
    """Paddle, if somebody has imported it."""
    return sys.modules.get("paddle")


def core() -> Any:
    paddle = module()
    if paddle is None:
        return None
    base = getattr(paddle, "base", None) or getattr(paddle, "fluid", None)
    return getattr(base, "core", None)


def new_tensor() -> Any:
    """An empty tensor of Paddle's (version 3 calls the type otherwise)."""
    paddle_core = core()
    kind = getattr(paddle_core, "LoDTensor", None) or paddle_core.DenseTensor
    return kind()


def persistable(scope: Any, name: str) -> Any:
    """The variable of that name which a run in the scope of Paddle's writes: the one that is there,
    or a new one in the root of the tree of scopes, as Paddle's executor makes it."""
    found = scope.find_var(name)
    if found is not None:
        return found
    program = core().ProgramDesc()
    variable = program.block(0).var(name.encode())
    variable.set_type(core().VarDesc.VarType.LOD_TENSOR)
    variable.set_persistable(True)
    place = core().Place()
    place.set_place(core().CPUPlace())
    core().Executor(place).create_variables(program, scope, 0)
    return scope.find_var(name)


def is_scope(scope: Any) -> bool:
    """A scope of Paddle's: not one of ours, but with its calls."""
    return hasattr(scope, "find_var") and hasattr(scope, "raw_address")


def dtype_of(tensor: Any) -> str:
    return _DTYPES[int(tensor._dtype())]


def lod_tensor(tensor: _heddle.Tensor) -> Any:
    """The same as Paddle's tensor."""
    result = new_tensor()
    result.set(tensor.numpy(), core().CPUPlace())
    if tensor.lod:
        result.set_lod(tensor.lod)
    return result


class ScopeLink:
    """A scope of Paddle's as heddle uses it: the same variables, in the same memory.

    What either side writes the other one reads. heddle steps parameters where Paddle keeps them;
    what it makes anew (by a startup program, say) is copied into Paddle's variable, whose memory
    serves from then on.
    """

    def __init__(self, scope: Any) -> None:
        self._scope = weakref.ref(scope)  # whoever runs a program holds it
        self.mirror = _heddle.Mirror(_heddle.Scope())

    @property
    def scope(self) -> Any:
        return self._scope()

    def view(self, names: list[str]) -> ProgramView:
        return ProgramView(self, names)


class ProgramView:
    """The variables of one program in a ScopeLink."""

    def __init__(self, link: ScopeLink, names: list[str]) -> None:
        self._link = link
        self._names = names
        self._view = _heddle.MirrorView(link.mirror, names)
        self._tensors: list[Any] = [None] * len(names)
        self._addresses: list[int] = [0] * len(names)
        self._shapes: list[list[int]] = [[]] * len(names)
        self._ask: list[Callable[[], int]] = [lambda: 0] * len(names)
        self._ask_shape: list[Callable[[], list[int]]] = [lambda: []] * len(names)
        self._missing = set(range(len(names)))

    def before(self) -> None:
        """Before a run: takes over what Paddle's side has, where it is new or elsewhere."""
        scope = self._link.scope if self._missing else None
        for i in list(self._missing):
            variable = scope.find_var(self._names[i])
            if variable is None:
                continue
            try:
                tensor = variable.get_tensor()
            except Exception:  # noqa: BLE001  (a variable of another kind, such as a file's bytes)
                self._missing.discard(i)
                continue
            if tensor._is_initialized():
                self._adopt(i, tensor)
        if ([ask() for ask in self._ask] != self._addresses
                or [ask() for ask in self._ask_shape] != self._shapes):
            for i, ask in enumerate(self._ask):
                if ask() != self._addresses[i] or self._ask_shape[i]() != self._shapes[i]:
                    self._adopt(i, self._tensors[i])
        self._view.before()

    def _adopt(self, i: int, tensor: Any) -> None:
        keeper = new_tensor()
        keeper._share_data_with(tensor)
        address, shape = tensor._ptr(), list(tensor.shape())
        self._view.adopt(i, address, dtype_of(tensor), shape, keeper)
        self._tensors[i], self._addresses[i], self._shapes[i] = tensor, address, shape
        self._ask[i], self._ask_shape[i] = tensor._ptr, tensor.shape
        self._missing.discard(i)

    def after(self) -> None:
        """After a run: Paddle's side gets what was made anew."""
        moved = self._view.after()
        scope = self._link.scope if moved else None
        for i in moved:
            tensor = persistable(scope, self._names[i]).get_tensor()
            array = self._view.array(i)
            if self._tensors[i] is not None:
                array = array.copy()  # it may lie in the tensor's own memory
            tensor.set(array, core().CPUPlace())
            self._adopt(i, tensor)


class GeneratorLink:
    """Paddle's random numbers: what `paddle.seed` sets, and where its generator stands."""

    def __init__(self, generator: _heddle.Generator) -> None:
        self._generator = generator
        self._seen = ""

    def take_over(self) -> None:
        """Goes on from Paddle's generator where that was seeded since (or has been drawn from)."""
        theirs = core().default_cpu_generator()
        text = str(theirs.get_state())
        if text == self._seen:
            return
        # device, seed, offset, then the engine.
        self._generator.state = text.split(None, 3)[3]
        # One number drawn there marks this state as taken: seeding again, also with the same seed,
        # leads to another one.
        theirs.random()
        self._seen = str(theirs.get_state())
