"""heddle.train: goes on training the model of a file."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from heddle import _heddle
from heddle._errors import InvalidArgument
from heddle._model import Model

_Arrays = Mapping[str, Any]


class Training:
    """What `heddle.train` made.

    * `losses`: the loss of each step, float64 [steps]; of several losses, and of a loss of several
      elements, the sum. Step s is what the parameters were before update s + 1.
    * `validation`: a pair (steps done, mean loss) for each time that validation data were looked at
    * `fetched`: for each name of `fetch` a list with an array for each step of this call
    * `steps`: how many were done, those before a checkpoint included
    * `stopped`: why it ended before the length asked for: "interrupted" (Ctrl-C), "callback" or
      "end of data"; "" if it did not
    * `said`: what was found and changed in the model, a sentence each
    * `gradients`: the variable of the gradient of each trained parameter, by the parameter's name
    """

    def __init__(self, tuner: _heddle.Tuner, source: str | None) -> None:
        self._tuner = tuner
        self._source = source
        self.validation: list[tuple[int, float]] = []
        self.fetched: dict[str, list[np.ndarray]] = {}
        self.stopped = ""

    @property
    def steps(self) -> int:
        return self._tuner.done

    @property
    def losses(self) -> np.ndarray:
        return np.array(self._tuner.losses, np.float64)

    @property
    def said(self) -> list[str]:
        return self._tuner.said

    @property
    def gradients(self) -> dict[str, str]:
        return dict(self._tuner.gradients)

    def arrays(self) -> dict[str, np.ndarray]:
        """Copies of all parameters and of the optimizer's state, by name."""
        return self._tuner.arrays()

    def adapters(self) -> dict[str, np.ndarray]:
        """The adapters, as `numpy.savez` keeps them for `adapter`: for each weight W the arrays
        W.lora_left [rows, rank], W.lora_right [rank, columns] and W.lora_scale. Empty without
        `lora` or `adapter`."""
        return self._tuner.adapters()

    def model(self, **options: Any) -> Model:
        """The tuned model, to be run; adapters are added to their weights. Options as for
        `heddle.load`. It shares parameters with this object."""
        program, scope = self._tuner.tuned()
        return Model(program, scope, **options)

    def export(self, directory: str | os.PathLike[str]) -> None:
        """Writes the tuned model to a directory, in the format of the file that it came from: with
        its names, dtypes and version, and the adapters added to their weights.

        heddle.InvalidArgument: it came from no file. heddle.Unimplemented: a file of that format
        cannot be written."""
        if self._source is None:
            raise InvalidArgument("the model was not loaded from a file, whose form the exported "
                                  "one would have; model().save(directory) writes it as a program "
                                  "of Paddle")
        self._tuner.export(self._source, os.fspath(directory))

    def __repr__(self) -> str:
        losses = self.losses
        text = f"heddle.Training({self.steps} steps"
        if len(losses):
            text += f", loss {losses[0]:.6g} -> {losses[-1]:.6g}"
        return text + (f", {self.stopped})" if self.stopped else ")")


@dataclasses.dataclass
class _Feeds:
    """The batches of the steps: arrays in memory, or whatever gives one dict after another."""

    arrays: _heddle.Batches | None
    source: Iterable[_Arrays] = ()
    ahead: list[_Arrays] = dataclasses.field(default_factory=list)  # taken to be looked at
    it: Iterator[_Arrays] | None = None

    @property
    def once(self) -> bool:
        return self.it is not None and iter(self.source) is self.source

    def describe(self) -> str:
        return self.arrays.describe() if self.arrays else "an iterable"

    def look(self) -> None:
        """Takes the first batch, to know what batches look like."""
        if self.arrays is None:
            self.it = iter(self.source)
            first = next(self.it, None)
            if first is None:
                raise InvalidArgument("the data give no batch")
            self.ahead = [_checked(first)]

    def next(self) -> tuple[_Arrays | None, bool]:
        """The next batch and whether a pass begins with it; None after the last one of a pass."""
        if self.ahead:
            return self.ahead.pop(), False
        batch = next(self.it, None)
        if batch is not None:
            return _checked(batch), False
        if self.once:
            return None, True
        self.it = iter(self.source)
        batch = next(self.it, None)
        return (None if batch is None else _checked(batch)), True


def _checked(batch: Any) -> _Arrays:
    if not isinstance(batch, Mapping):
        raise TypeError(f"a batch is a dict of arrays by the inputs' names, not "
                        f"{type(batch).__name__}")
    return dict(batch)


class _Interrupt:
    """Notes Ctrl-C, so that a step is finished; a second one raises KeyboardInterrupt. Where a
    script has a handler of its own, and on other threads than the main one, nothing is done."""

    def __enter__(self) -> _Interrupt:
        self.noted = False
        self.before = None
        if (threading.current_thread() is threading.main_thread()
                and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
            self.before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: Any) -> None:
        if self.noted:
            signal.default_int_handler(number, frame)
        self.noted = True

    def __exit__(self, *error: Any) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)


def _names(what: str, given: str | Sequence[str]) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what}: names are texts, not {type(name).__name__}")
    return names


def _rate_of(lr: Any, steps: int | None) -> Callable[[int], float]:
    if callable(lr):
        return lambda step: float(lr(step))
    if np.ndim(lr) == 0:
        rate = float(lr)
        if not rate >= 0:
            raise InvalidArgument(f"lr is {rate}; it must not be negative")
        return lambda step: rate
    rates = np.asarray(lr, np.float64)
    if rates.ndim != 1 or (steps is not None and len(rates) < steps):
        raise InvalidArgument(f"lr has shape {list(rates.shape)}; {steps} steps need one each")

    def rate_of(step: int) -> float:
        if step >= len(rates):
            raise InvalidArgument(f"lr has {len(rates)} elements; step {step} has none")
        return float(rates[step])

    return rate_of


def _options(seed: int, loss: Any, labels: str | None, loss_op: str | None,
             output: str | None, optimizer: str, rule: Mapping[str, Any], wrt: Any, freeze: Any,
             no_decay: Any, head: int | None, lora: Any, lora_on: Any, adapter: Any, norms: str,
             fetch: Any) -> _heddle.FineTuneOptions:
    if (loss is None) == (loss_op is None):
        raise InvalidArgument("give either loss, a value of the model, or labels with loss_op")
    if (labels is None) != (loss_op is None):
        raise InvalidArgument("labels and loss_op belong together")
    for what, given, known in (("loss_op", loss_op, _heddle.loss_kinds()),
                               ("optimizer", optimizer, _heddle.optimizer_kinds()),
                               ("norms", norms, ["keep", "train"])):
        if given is not None and given not in known:
            raise InvalidArgument(f"{what} '{given}' is not known; it is " + ", ".join(known))
    if head is not None and head < 1:
        raise InvalidArgument(f"head is {head}; a head has at least one output")
    if output is not None and loss_op is None and head is None:
        raise InvalidArgument("output is for loss_op and head")
    if lora is not None and adapter is not None:
        raise InvalidArgument("give either lora, for new adapters, or adapter")
    rank, alpha = lora if isinstance(lora, Sequence) else (lora or 0, -1.0)
    if lora is not None and (rank < 1 or (isinstance(lora, Sequence) and not alpha > 0)):
        raise InvalidArgument(f"lora is {lora}; it is a rank, or a pair of rank and alpha, above 0")
    if lora_on and lora is None:
        raise InvalidArgument("lora_on is for lora")
    if sum(rule.get(f"clip_{of}", 0) > 0 for of in ("value", "norm", "global_norm")) > 1:
        raise InvalidArgument("of clip_value, clip_norm and clip_global_norm one may be given")
    if isinstance(adapter, (str, os.PathLike)):
        with np.load(adapter) as arrays:
            adapter = {name: arrays[name] for name in arrays}
    options = _heddle.FineTuneOptions()
    options.losses = _names("loss", loss or ())
    options.wrt = _names("wrt", wrt or ())
    options.freeze = _names("freeze", freeze)
    options.no_decay = _names("no_decay", no_decay)
    options.fetches = _names("fetch", fetch)
    options.seed = seed
    kind = _heddle.OptimizerRule()
    kind.kind = optimizer
    for name, number in rule.items():
        setattr(kind, name, number)
    options.rule = kind
    options.prepare(labels or "", loss_op or "", output or "", head or 0, rank, alpha,
                    _names("lora_on", lora_on), dict(adapter or {}), norms == "train")
    return options


_RULE = frozenset({"momentum", "nesterov", "beta1", "beta2", "epsilon", "rho", "centered",
                   "initial_accumulator", "lazy", "weight_decay", "clip_value", "clip_norm",
                   "clip_global_norm"})


def train(model: str | os.PathLike[str] | Model, data: _Arrays | Iterable[_Arrays], *,
          optimizer: str, lr: float | Sequence[float] | Callable[[int], float],
          loss: str | Sequence[str] | None = None, labels: str | None = None,
          loss_op: str | None = None, output: str | None = None, steps: int | None = None,
          epochs: int | None = None, batch_size: int = 0, shuffle: bool = False,
          drop_last: bool = False, seed: int = 0, wrt: str | Sequence[str] | None = None,
          freeze: str | Sequence[str] = (), no_decay: str | Sequence[str] = (),
          head: int | None = None, lora: int | tuple[int, float] | None = None,
          lora_on: str | Sequence[str] = (),
          adapter: str | os.PathLike[str] | _Arrays | None = None, norms: str = "keep",
          validation: _Arrays | Iterable[_Arrays] | None = None, validate_every: int | None = None,
          checkpoint: str | os.PathLike[str] | None = None, every: int = 100, keep: int = 3,
          resume: bool = False, fetch: str | Sequence[str] = (),
          on_step: Callable[[int, float], Any] | None = None, check_nan_inf: bool = False,
          signature: str = "", threads: int = 0, opt_level: int = 2, deterministic: bool = False,
          memory_limit: int = 0, **rule: Any) -> Training:
    """Goes on training a model that was written for inference, as `heddle train --forward` does.

    `model` is the path of a model of any format, or a `heddle.Model`, which stays as it is.

    `data` is a dict with an array for each input, and for `labels`, by name; the first axis of all
    counts samples, which `batch_size` of them make a batch (the last one may be smaller, or left
    out with `drop_last`), or, without `batch_size`, whole batches. With `shuffle`, each epoch takes
    them in another order, which `seed` decides. Or `data` is an iterable of batches, each a dict of
    arrays: a list, a loader, a generator. One that can be passed through once only ends the
    training with its last batch. Batches may be of any size, also where the file says 1.

    The length is `steps`, or `epochs`: passes through the data [one pass].

    What is minimised: `loss`, the name of a value of the model, or several, whose elements are
    added up; or the mean of `loss_op` ("softmax_with_cross_entropy", "cross_entropy", "mse", "bce",
    "bce_with_logits") of the model's `output` [the only one] and `labels`, a new input: class
    numbers [N] or [N, 1] as int64, probabilities [N, C] as the output, or for "mse" and "bce" the
    output's own shape and dtype.

    How: `optimizer` is "sgd", "momentum", "adam", "adamw", "adagrad", "rmsprop", "adamax",
    "adadelta" or "lamb", with its numbers `momentum`, `nesterov`, `beta1`, `beta2`, `epsilon`,
    `rho`, `centered`, `initial_accumulator`, `lazy`, `weight_decay` [those of docs/training.md],
    and one of `clip_value`, `clip_norm`, `clip_global_norm`. `lr` is the learning rate, a sequence
    with that of each step, or a function that is given the step, 0 first. `no_decay`: globs of
    parameters without `weight_decay`.

    What is trained: all trainable parameters that the loss depends on, or those named by `wrt`;
    not those that the globs `freeze` match. `head`: the last product gets new weights for so many
    outputs, drawn from `seed`. `lora`: adapters of this rank, or (rank, alpha), beside the weights
    of products, or those that the globs `lora_on` match; the weights stay. `adapter`: goes on with
    adapters, `Training.adapters()` or a file of them. `norms="train"`: batch norms use the batch's
    statistics and update the running ones.

    `validation`: data of the same form, whose mean loss is computed every `validate_every` steps
    [an epoch] and at the end, without learning from them. `checkpoint`: a directory that gets all
    that is needed to go on, `every` so many steps and at the end, of which the newest `keep` stay;
    with `resume` training goes on from the newest one with the bits of one that was not
    interrupted (an iterable must give the same batches again). `fetch`: more values to be kept of
    each step. `on_step` is called with the number of steps done and the loss after each step; if
    it returns False, training ends. `check_nan_inf` ends it with an error that names the first
    operator that wrote a NaN or an infinity. `signature`: of a SavedModel.

    `threads`, `opt_level`, `deterministic` as for `heddle.load`. `memory_limit`: bytes that
    parameters, the optimizer's state and what a step computes may take together. Where they would
    take more, values are computed again for the gradients instead of being kept, with the same
    bits, as few as that takes (docs/fine-tuning.md). heddle.ResourceExhausted: it does not do; the
    message has the least that would.

    Ctrl-C ends the training when its step is done, and the result is returned; a second one raises
    KeyboardInterrupt.

    heddle.InvalidArgument: something does not fit, with the operator and the variables;
    heddle.NotFound: no such file or variable; heddle.Unimplemented: operators without a gradient
    are in the way, all of which are named, with the path from the loss.
    """
    for name in rule:
        if name not in _RULE:
            raise TypeError(f"heddle.train() has no option '{name}'")
    if steps is not None and epochs is not None:
        raise InvalidArgument("give either steps or epochs")
    for what, number, least in (("steps", steps, 0), ("epochs", epochs, 0), ("every", every, 1),
                                ("keep", keep, 1), ("batch_size", batch_size, 0),
                                ("validate_every", validate_every, 1)):
        if number is not None and number < least:
            raise InvalidArgument(f"{what} is {number}; at least {least} is possible")
    options = _options(seed, loss, labels, loss_op, output, optimizer, rule, wrt, freeze, no_decay,
                       head, lora, lora_on, adapter, norms, fetch)
    options.opt_level = opt_level
    options.memory_limit = memory_limit
    options.serial = deterministic
    if isinstance(model, Model):
        program, name, source = model.program, "model", model._source
        scope = _heddle.copied_scope(program, model.scope)
    else:
        source = name = os.fspath(model)
        program, scope = _heddle.load_model(source, "", signature=signature)

    def feeds_of(given: Any, *, learning: bool) -> _Feeds:
        if isinstance(given, Mapping):
            return _Feeds(_heddle.batches_of(dict(given), program, batch_size,
                                             learning and shuffle, learning and drop_last, seed))
        if not isinstance(given, Iterable):
            raise TypeError("data are a dict of arrays or an iterable of such dicts, not "
                            f"{type(given).__name__}")
        if batch_size or shuffle or drop_last:
            raise InvalidArgument("batch_size, shuffle and drop_last are for a dict of arrays; an "
                                  "iterable gives whole batches")
        return _Feeds(None, given)

    feeds = feeds_of(data, learning=True)
    feeds.look()
    if validation is not None:
        validation = (feeds_of(validation, learning=False).arrays if isinstance(validation, Mapping)
                      else [_checked(batch) for batch in validation])
    if feeds.arrays is not None:
        per_epoch = feeds.arrays.steps_per_epoch
        steps = per_epoch * (1 if epochs is None else epochs) if steps is None else steps
    elif steps is None and epochs is None:
        epochs = 1
    rate = _rate_of(lr, steps)
    executor = _heddle.Executor(threads, memory_limit=memory_limit)
    tuner = _heddle.Tuner(executor, program, scope, name, options, feeds.ahead, feeds.arrays)
    result = Training(tuner, source)
    if checkpoint is not None:
        for line in tuner.open_checkpoints(os.fspath(checkpoint), keep, resume, feeds.describe(),
                                           steps if steps is not None else 2**62):
            warnings.warn(line, stacklevel=2)
    elif resume:
        raise InvalidArgument("resume needs checkpoint, the directory of the checkpoints")
    extra = [name for name in tuner.fetches if name not in tuner.loss_names]
    result.fetched = {name: [] for name in extra}
    try:
        _Loop(tuner, result, feeds, steps, epochs, rate, validation, validate_every, every,
              checkpoint is not None, on_step, check_nan_inf, extra).run()
    finally:
        tuner.close_checkpoints()
    return result


@dataclasses.dataclass
class _Loop:
    tuner: _heddle.Tuner
    result: Training
    feeds: _Feeds
    steps: int | None
    epochs: int | None
    rate: Callable[[int], float]
    validation: Any
    validate_every: int | None
    every: int
    checkpoints: bool
    on_step: Callable[[int, float], Any] | None
    check_nan_inf: bool
    extra: list[str]
    passes: int = 0  # of an iterable, that are over
    validated: int = -1

    def run(self) -> None:
        with _Interrupt() as interrupt:
            self._skip()
            while self.steps is None or self.tuner.done < self.steps:
                if interrupt.noted:
                    self.result.stopped = "interrupted"
                    break
                if not self._step():
                    break
        if self.validation is not None and self.tuner.done > 0 and not self.result.stopped:
            self._validate()
        if self.checkpoints:
            self.tuner.checkpoint()

    def _skip(self) -> None:
        """Passes over the batches of the steps before a checkpoint."""
        if self.feeds.arrays is None:
            for _ in range(self.tuner.done):
                if self._next() is None:
                    raise InvalidArgument(f"the data end before step {self.tuner.done}, from which "
                                          "training would go on")

    def _next(self) -> _Arrays | None:
        batch, begins = self.feeds.next()
        if begins:
            self.passes += 1
            if self.epochs is not None and self.passes >= self.epochs:
                return None
        return batch

    def _step(self) -> bool:
        """False: training is over."""
        done = self.tuner.done
        passes = self.passes
        if self.feeds.arrays is not None:
            loss, rest = self.tuner.step_of(self.feeds.arrays, done, self.rate(done),
                                            self.check_nan_inf)
        else:
            batch = self._next()
            if self.passes > passes and self.validate_every is None and done > 0:
                self._validate()
            if batch is None:
                if self.epochs is None or self.passes < self.epochs:
                    self.result.stopped = "end of data"
                return False
            loss, rest = self.tuner.step(batch, self.rate(done), self.check_nan_inf)
        for name, value in zip(self.extra, rest):
            self.result.fetched[name].append(value)
        done = self.tuner.done
        if self.checkpoints and done % self.every == 0:
            self.tuner.checkpoint()
        every = self.validate_every or (self.feeds.arrays.steps_per_epoch if self.feeds.arrays
                                        else 0)
        if every and done % every == 0:
            self._validate()
        if self.on_step is not None and self.on_step(done, loss) is False:
            self.result.stopped = "callback"
            return False
        return True

    def _validate(self) -> None:
        if self.validation is None or self.validated == self.tuner.done:
            return
        self.validated = self.tuner.done
        listed = isinstance(self.validation, list)
        loss = self.tuner.evaluate(self.validation if listed else [],
                                   None if listed else self.validation)
        self.result.validation.append((self.tuner.done, loss))
