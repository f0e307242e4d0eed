"""Programs made by hand, operator by operator.

    import heddle, numpy as np
    b = heddle.build.Builder("classifier")
    x = b.feed("x", "float32", [-1, 64])
    w = b.parameter("w", np.zeros([64, 10], "float32"))
    y = b.op("softmax", X=b.op("matmul_v2", X=x, Y=w), axis=-1, out="probabilities")
    b.fetch(y)
    model = b.finish()

Operators, with their slots and attributes, are those of `heddle.describe_op`. Shapes are known at
once, and what is wrong with a call is said where it stands, as a `heddle.Error`.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heddle import _heddle
from heddle._errors import Error, InvalidArgument
from heddle._model import Model

__all__ = ["Builder", "Results", "Variable"]


class Variable:
    """A variable of a program that is being built."""

    __slots__ = ("_builder", "_handle")

    def __init__(self, builder: Builder, handle: _heddle.Variable) -> None:
        self._builder = builder
        self._handle = handle

    @property
    def name(self) -> str:
        return self._builder._core.info(self._handle).name

    @property
    def dtype(self) -> str:
        """"unknown" where no rule says."""
        return self._builder._core.info(self._handle).dtype

    @property
    def shape(self) -> tuple[int, ...] | None:
        """-1 for dimensions that the inputs decide; None where no rule says."""
        return self._builder._core.info(self._handle).shape

    def __repr__(self) -> str:
        return f"<{self._builder._core.info(self._handle)!r}>"


class Results(dict):
    """The results of an operator that writes several slots: by slot, a variable or a list."""

    def __getattr__(self, slot: str) -> Any:
        try:
            return self[slot]
        except KeyError:
            raise AttributeError(f"the operator wrote no '{slot}'; it wrote "
                                 + ", ".join(self)) from None


@functools.lru_cache(maxsize=None)
def _input_slots(op: str) -> frozenset[str]:
    try:
        text = _heddle.describe_op(op)
    except Error:
        return frozenset()  # the call says what is wrong with the name
    return frozenset(re.findall(r"^  in   (\S+)", text, re.MULTILINE))


def _handle(value: Any) -> Any:
    """Variables as the core knows them, in lists and tuples too; NumPy's numbers as Python's."""
    if isinstance(value, Variable):
        return value._handle
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_handle(item) for item in value]
    return value


def _place() -> str:
    """File and line of the caller of this module."""
    frame = sys._getframe(1)
    while frame.f_globals is globals() and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _is_operand(value: Any) -> bool:
    return value is None or any(isinstance(item, Variable) for item in _many(value))


class Builder:
    """A program under construction. One thread at a time."""

    def __init__(self, name: str = "program") -> None:
        self._core = _heddle.Builder(name)

    def feed(self, name: str, dtype: str, shape: Sequence[int], lod_level: int = 0) -> Variable:
        """An input of the program; -1 is a dimension that may be anything."""
        return Variable(self, self._core.feed(name, dtype, list(shape), lod_level))

    def parameter(self, name: str, value: Any = None, *, dtype: str = "",
                  shape: Sequence[int] | None = None) -> Variable:
        """A persistable variable: with a copy of an array as its value, or with dtype and shape,
        when its value comes later (from `Model.load_parameters`, or `Model.parameters`)."""
        if value is not None:
            return Variable(self, self._core.parameter(name, value, dtype))
        if shape is None:
            raise InvalidArgument(f"parameter '{name}' has neither value nor shape")
        return Variable(self, self._core.declare_parameter(name, dtype, list(shape)))

    def array(self, name: str, dtype: str) -> Variable:
        """An empty tensor array."""
        return Variable(self, self._core.array(name, dtype))

    def op(self, type: str, /, *, inputs: Mapping[str, Any] | None = None,
           attributes: Mapping[str, Any] | None = None, out: Any = None, **words: Any) -> Any:
        """Adds an operator; returns the variable it writes, or `Results` where there are several.

        Words are input slots (a variable, a list, or None for none) and attributes; names that are
        no Python words go into the dictionaries `inputs` and `attributes`. `out` says where the
        results go: a name, a variable that is there already, a number of variables, or a list of
        names or variables for the first slot; a dictionary of these by slot for all slots.
        """
        operands, values = dict(inputs or {}), dict(attributes or {})
        for word, value in words.items():
            takes = word in _input_slots(type) or (_is_operand(value) and not _input_slots(type))
            (operands if takes else values)[word] = value
        if out is None:
            targets = {}
        elif isinstance(out, Mapping):
            targets = dict(out)
        else:
            targets = {_first_output(type): out}
        results = self._core.add(
            type, [(slot, _handle(_many(v))) for slot, v in operands.items() if v is not None],
            [(name, _handle(v)) for name, v in values.items() if v is not None],
            [(slot, _handle(v if isinstance(v, int) else _many(v)))
             for slot, v in targets.items()],
            _place())
        return self._results(type, results)

    def _results(self, type: str, results: list[tuple[str, list[_heddle.Variable]]]) -> Any:
        lists = _list_outputs(type)
        made = Results()
        for slot, handles in results:
            variables = [Variable(self, handle) for handle in handles]
            made[slot] = variables if slot in lists else variables[0]
        return next(iter(made.values())) if len(made) == 1 else made

    def assign(self, value: Variable, to: Variable) -> None:
        """`to`, a variable that is there already, gets this value."""
        self.op("assign", X=value, out=to)

    @contextlib.contextmanager
    def loop(self, condition: Variable) -> Iterator[None]:
        """`with b.loop(more):` its operators run again and again while `more`, one bool that they
        assign to, is true."""
        self._core.begin_while(condition._handle)
        yield
        self._core.end_block()

    @contextlib.contextmanager
    def when(self, condition: Variable) -> Iterator[None]:
        """`with b.when(yes):` its operators run if `yes`, one bool, is true. What they assign to
        outer variables stays."""
        self._core.begin_if(condition._handle)
        yield
        self._core.end_block()

    def declare(self, variable: Variable, dtype: str, shape: Sequence[int]) -> None:
        """Says what no rule of shapes knows: those of items of arrays, for example."""
        self._core.declare(variable._handle, dtype, list(shape))

    def fetch(self, *variables: Variable) -> None:
        """The next outputs of the program."""
        for variable in variables:
            self._core.fetch(variable._handle)

    def finish(self, **options: Any) -> Model:
        """The program with the values of its parameters, ready to run; options as for
        `heddle.load`. The builder begins anew."""
        program, scope = self._core.finish()
        return Model(program, scope, **options)


@functools.lru_cache(maxsize=None)
def _outputs(op: str) -> tuple[tuple[str, bool], ...]:
    try:
        text = _heddle.describe_op(op)
    except Error:
        return ()
    return tuple((slot, flags.startswith(" (list"))
                 for slot, flags in re.findall(r"^  out  (\S+)(.*)$", text, re.MULTILINE))


def _first_output(op: str) -> str:
    outputs = _outputs(op)
    return outputs[0][0] if outputs else "Out"


def _list_outputs(op: str) -> frozenset[str]:
    return frozenset(slot for slot, is_list in _outputs(op) if is_list)
