"""heddle.saved_model: TensorFlow SavedModels, called by their signatures.

    import heddle
    served = heddle.saved_model.load("model_dir").signatures["serving_default"]
    y = served(x=x)["y"]

As in TensorFlow, a signature takes its inputs by name and returns a dict of its outputs, which are
NumPy arrays. A signature is read when it is asked for, with the variables that it reaches.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from heddle import _heddle
from heddle._model import Model, _check_options, load as _load

__all__ = ["SavedModel", "Signature", "load"]


class Signature:
    """A function of a SavedModel. `model` is the `heddle.Model` behind it."""

    def __init__(self, key: str, model: Model) -> None:
        self.key = key
        self.model = model

    @property
    def structured_outputs(self) -> dict[str, Any]:
        """What is known of the outputs: a `heddle.TensorInfo` each."""
        return {info.name: info for info in self.model.outputs}

    @property
    def structured_input_signature(self) -> tuple[tuple[()], dict[str, Any]]:
        """No positional arguments, and what is known of those by name."""
        return (), {info.name: info for info in self.model.inputs}

    def __call__(self, **inputs: Any) -> dict[str, np.ndarray]:
        names = [info.name for info in self.model.inputs]
        for name in inputs:
            if name not in names:
                raise TypeError(f"signature '{self.key}' has no input '{name}'; there are "
                                + ", ".join(names))
        for name in names:
            if name not in inputs:
                raise TypeError(f"signature '{self.key}' needs its input '{name}'")
        values = self.model.run({name: np.asarray(value) for name, value in inputs.items()})
        return {info.name: value for info, value in zip(self.model.outputs, values)}

    def __repr__(self) -> str:
        return f"heddle.saved_model.Signature('{self.key}': {self.model!r})"


class _Signatures(Mapping[str, Signature]):
    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self._path = path
        self._options = options
        self._keys = _heddle.signatures_of(path)
        self._loaded: dict[str, Signature] = {}

    def __getitem__(self, key: str) -> Signature:
        if key not in self._keys:
            raise KeyError(f"there is no signature '{key}'; there are " + ", ".join(self._keys))
        if key not in self._loaded:
            self._loaded[key] = Signature(key, _load(self._path, signature=key, **self._options))
        return self._loaded[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class SavedModel:
    """A SavedModel: its `signatures` by their keys."""

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self.signatures: Mapping[str, Signature] = _Signatures(path, options)


def load(export_dir: str | os.PathLike[str], **options: Any) -> SavedModel:
    """Reads a SavedModel's directory. Options as for `heddle.load`, but for those of a part."""
    for name in ("signature", "feed", "fetch"):
        if name in options:
            raise TypeError(f"heddle.saved_model.load() has no option '{name}'")
    _check_options("saved_model.load", options)
    return SavedModel(os.fspath(export_dir), options)
