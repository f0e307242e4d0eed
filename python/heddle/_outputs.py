"""What a run gives back."""

from __future__ import annotations

from typing import Any


class Outputs(list):
    """The outputs of a run: a list in the model's order whose items can also be had by name."""

    __slots__ = ("names",)
    names: tuple[str, ...]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            try:
                return list.__getitem__(self, self.names.index(key))
            except ValueError:
                raise KeyError(f"there is no output '{key}'; the outputs are "
                               + ", ".join(self.names)) from None
        return list.__getitem__(self, key)

    def keys(self) -> tuple[str, ...]:
        return self.names

    def items(self) -> list[tuple[str, Any]]:
        return list(zip(self.names, self))
