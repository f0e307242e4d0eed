"""Models: a program, its parameters, and how to run it."""

from __future__ import annotations

import concurrent.futures
import os
from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from heddle import _display, _heddle, _place
from heddle._heddle import Program, Scope, TensorInfo
from heddle._outputs import Outputs


class Parameters(MutableMapping):
    """The persistable variables of a model, by name.

    Reading one gives a copy. Setting one copies the array in, which must have the variable's shape
    and dtype; the next run uses it. A run that is under way on another thread goes on with what
    it began with; where it writes the parameter, setting waits for it.
    """

    def __init__(self, program: Program, scope: Scope) -> None:
        self._infos = {info.name: info for info in program.persistables}
        self._scope = scope

    def _info(self, name: str) -> TensorInfo:
        try:
            return self._infos[name]
        except KeyError:
            raise KeyError(f"the program has no parameter '{name}'") from None

    def __getitem__(self, name: str) -> np.ndarray:
        self._info(name)
        value = self._scope.get(name)
        if value is None:
            raise KeyError(f"parameter '{name}' has no value yet")
        return value.numpy() if isinstance(value, _heddle.Tensor) else value

    def __setitem__(self, name: str, array: Any) -> None:
        info = self._info(name)
        array = np.asarray(array)
        if info.shape is not None and (len(info.shape) != array.ndim or any(
                want not in (-1, got) for want, got in zip(info.shape, array.shape))):
            raise ValueError(f"parameter '{name}' has shape {list(info.shape)}, not "
                             f"{list(array.shape)}")
        given = "bfloat16" if array.dtype.name == "uint16" else array.dtype.name
        if given != info.dtype:
            raise ValueError(f"parameter '{name}' has dtype {info.dtype}, not {given}")
        self._scope.set(name, array)

    def __delitem__(self, name: str) -> None:
        raise TypeError("the parameters of a program cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)


class Profile:
    """What happened in a run: totals in `report`, one `events` entry per instruction, `spans` of
    what threads did beside them, and `memory`: (microseconds, place, bytes alive from then on)."""

    def __init__(self, report: dict[str, Any], events: list[tuple], trace: str,
                 spans: Sequence[tuple] = (), memory: Sequence[tuple] = ()) -> None:
        self.report = report
        names = ("op", "output", "block", "index", "lane", "begin_us", "end_us",
                 "self_us", "times", "thread", "stream")
        self.events = [dict(zip(names, event)) for event in events]
        names = ("kind", "of", "thread", "stream", "begin_us", "end_us")
        self.spans = [dict(zip(names, span)) for span in spans]
        self.memory = list(memory)
        self._trace = trace

    def by_op(self) -> list[tuple[str, int, float]]:
        """(operator, calls, microseconds) of all operators, the most expensive first."""
        calls: Counter[str] = Counter()
        spent: Counter[str] = Counter()
        for event in self.events:
            calls[event["op"]] += event["times"]
            spent[event["op"]] += event["self_us"]
        return [(op, calls[op], us) for op, us in spent.most_common()]

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events as a trace for ui.perfetto.dev or chrome://tracing."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._trace)

    def _repr_html_(self) -> str:
        """A chart for notebooks: the operators that take longest."""
        spent, run = self.by_op(), self.report["run_us"]
        rows = [(op, us, f"{us:.1f} us, {n} call{'s' * (n != 1)}") for op, n, us in spent[:15]]
        rest = sum(us for _, _, us in spent[15:])
        if rest:
            rows.append((f"{len(spent) - 15} others", rest, f"{rest:.1f} us"))
        return f"<p>run: {run:.1f} us ({self.report['dispatch']})</p>" + _display.bars(rows)

    def __str__(self) -> str:
        lines = [f"{'operator':<32}{'calls':>6}{'us':>12}"]
        lines += [f"{op:<32}{n:>6}{us:>12.1f}" for op, n, us in self.by_op()]
        total = f"run: {self.report['run_us']:.1f} us ({self.report['dispatch']})"
        return "\n".join([*lines, total])


class Model:
    """A program that is ready to run, with its parameters. See `heddle.load`.

    Any number of threads may run one model at the same time.
    """

    def __init__(self, program: Program, scope: Scope, *, executor: _heddle.Executor | None = None,
                 fetch: Sequence[str] = (), threads: int = 0, opt_level: int = 2,
                 schedule: str = "auto", deterministic: bool = False, memory_limit: int = 0,
                 plan_cache: int = 32, runs_at_once: int = 0, seed: int = 0, precision: str = "f32",
                 lean: bool = False, reuse: str = "ordered",
                 max_shapes: Mapping[str, Sequence[int]] | None = None,
                 packed_weights: str | os.PathLike[str] = "", force: str = "",
                 place: Any = "cpu", in_place: bool = True,
                 outline: bool = False) -> None:
        self._program = program
        self._scope = scope
        self._executor = executor or _heddle.Executor(threads, plan_cache, memory_limit,
                                                     runs_at_once, place=_place.name_of(place))
        self._options = {"opt_level": opt_level,
                         "schedule": "serial" if deterministic else schedule, "seed": seed,
                         "precision": precision, "lean": lean, "reuse": reuse,
                         "max_shapes": {k: list(v) for k, v in (max_shapes or {}).items()},
                         "packed_weights": os.fspath(packed_weights), "force": force,
                         "in_place": in_place, "outline": outline}
        self._session = self._executor.compile(program, scope, list(fetch), **self._options)
        self._names = tuple(info.name for info in self._session.outputs)
        self._run = self._session.run
        self._source: str | None = None  # the file or directory that it was loaded from
        # By process: a child that was forked has none of its parent's threads.
        self._pools: dict[int, concurrent.futures.ThreadPoolExecutor] = {}

    @property
    def inputs(self) -> list[TensorInfo]:
        """Name, dtype and shape of each input; -1 is a dimension that may be anything."""
        return self._session.declared_inputs

    @property
    def outputs(self) -> list[TensorInfo]:
        """Name, dtype and shape of each output."""
        return self._session.declared_outputs

    @property
    def program(self) -> Program:
        return self._program

    @property
    def scope(self) -> Scope:
        return self._scope

    @property
    def threads(self) -> int:
        return self._executor.threads

    @property
    def parameters(self) -> Parameters:
        """The parameters by name, to be read and set."""
        return Parameters(self._program, self._scope)

    def run(self, feeds: Mapping[str, Any], *, timeout: float | None = None,
            check_nan_inf: bool = False, lod: bool = False) -> Outputs:
        """Runs once. `feeds`: an array per input, by name.

        Arrays are used where they lie and must not change meanwhile; those returned own their
        memory. Both have the dtypes that `inputs` and `outputs` say. A feed may be a pair
        (array, offsets) of packed sequences; with `lod` the outputs are `heddle.Tensor`s, which
        know their offsets, and have heddle's own dtypes. `timeout` in seconds; `check_nan_inf`
        ends the run at the first NaN or infinity.
        """
        if not isinstance(feeds, dict):
            feeds = dict(feeds)
        if lod:
            out = Outputs(self._session.run_tensors(feeds, timeout, check_nan_inf))
        elif timeout is None and not check_nan_inf:
            out = Outputs(self._run(feeds))
        else:
            out = Outputs(self._run(feeds, timeout, check_nan_inf))
        out.names = self._names
        return out

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """`model(x)` or `model(x=x)`: the output, or the list of outputs if there are several."""
        if named:
            if len(arrays) > len(self.inputs):
                raise TypeError(f"the model takes {len(self.inputs)} inputs, not {len(arrays)}")
            if arrays:
                named.update(zip((info.name for info in self.inputs), arrays))
            out = self._run(named)
        else:
            out = self._session.run_in_order(*arrays)
        return out[0] if len(out) == 1 else out

    def run_async(self, feeds: Mapping[str, Any], **options: Any) -> concurrent.futures.Future:
        """Like `run`, on another thread; the arrays must not change until the future is done."""
        pool = self._pools.get(os.getpid())
        if pool is None:  # one that is not used has no threads
            pool = self._pools.setdefault(os.getpid(), concurrent.futures.ThreadPoolExecutor(
                max(1, self.threads), thread_name_prefix="heddle"))
        return pool.submit(self.run, feeds, **options)

    def _examples(self, feeds: Mapping[str, Any] | None,
                  shapes: Mapping[str, Sequence[int]] | None) -> dict[str, Any]:
        """Zeros for the inputs that are not given; open dimensions are 1."""
        feeds, shapes = dict(feeds or {}), shapes or {}
        for info in self.inputs:
            if info.name not in feeds:
                shape = shapes.get(info.name) or [1 if d < 0 else d for d in info.shape or ()]
                dtype = "uint16" if info.dtype == "bfloat16" else info.dtype
                feeds[info.name] = np.zeros(shape, dtype)
        return feeds

    def plan(self, feeds: Mapping[str, Any] | None = None, *,
             shapes: Mapping[str, Sequence[int]] | None = None) -> _display.Plan:
        """What a run will do, a line per instruction, for these feeds, or for inputs of these
        shapes (open dimensions that are not given are taken as 1). In a notebook: its graph."""
        examples = self._examples(feeds, shapes)
        plan = _display.Plan(self._session.plan(examples))
        plan._parts = self._session.describe(examples)
        return plan

    def plan_stats(self, feeds: Mapping[str, Any] | None = None, *,
                   shapes: Mapping[str, Sequence[int]] | None = None) -> dict[str, Any]:
        """Figures of that plan: instructions, memory, time to make it."""
        return self._session.prepare(self._examples(feeds, shapes))

    def profile(self, feeds: Mapping[str, Any], *, warmup: int = 3) -> Profile:
        """Runs, and tells how long each instruction took."""
        for _ in range(warmup):
            self._run(feeds)
        _, report, events, trace, spans, memory = self._session.trace(feeds)
        return Profile(report, events, trace, spans, memory)

    def memory_use(self) -> dict[str, dict[str, int]]:
        """By place ("cpu", "emulated:0"), the bytes that runs have: `allocated` and not given back,
        `reserved` with what is kept for later ones, and the `peak` of what was allocated."""
        return self._executor.memory_use()

    def reset_memory_peaks(self) -> None:
        """From here on `peak` is the most since now."""
        self._executor.reset_memory_peaks()

    def save(self, directory: str | os.PathLike[str], format: str = "") -> str:
        """Writes program and parameters to a directory, under the names that `heddle.load` looks
        for; returns the program's path. `format`: "paddle" or "pir"; "" for the one it came in."""
        return _heddle.save_model(self._program, self._scope, os.fspath(directory), format)

    def save_parameters(self, path: str | os.PathLike[str]) -> None:
        """Writes all parameters to a combined file, `.pdiparams` as Paddle lays it out."""
        _heddle.save_parameters(self._program, self._scope, os.fspath(path))

    def load_parameters(self, path: str | os.PathLike[str]) -> None:
        """Reads parameters from a combined file, a directory of single files, or a `.pdparams`."""
        _heddle.load_parameters(self._program, os.fspath(path), self._scope)

    def __repr__(self) -> str:
        say = lambda infos: "; ".join(repr(info) for info in infos)  # noqa: E731
        return f"heddle.Model({say(self.inputs)} -> {say(self.outputs)})"

    def _repr_html_(self) -> str:
        """A summary for notebooks."""
        rows = [(kind, info.name, info.dtype, str(["?" if d < 0 else d for d in info.shape or ()]))
                for kind, infos in (("input", self.inputs), ("output", self.outputs))
                for info in infos]
        size = sum(int(np.prod(p.shape or (0,))) for p in self._program.persistables)
        counts = sorted(self._program.op_counts.items(), key=lambda pair: -pair[1])
        return (_display.table(("", "name", "dtype", "shape"), rows)
                + f"<p>{self._program.num_ops} operators, {size:,} parameters, "
                f"{self.threads} thread{'s' * (self.threads != 1)}</p>"
                + _display.table(("operator", "count"), counts[:12])
                + (f"<p>and {len(counts) - 12} more</p>" if len(counts) > 12 else ""))


_OPTIONS = frozenset({"threads", "fetch", "opt_level", "schedule", "deterministic", "memory_limit",
                      "plan_cache", "runs_at_once", "seed", "precision", "lean", "reuse",
                      "max_shapes", "packed_weights", "force", "place", "in_place",
                      "outline"})
_PARTS = frozenset({"signature", "feed"})  # of a file that holds several programs


def _check_options(function: str, options: Mapping[str, Any]) -> None:
    for name in options:
        if name not in _OPTIONS | _PARTS:
            raise TypeError(f"heddle.{function}() has no option '{name}'; there are "
                            + ", ".join(sorted(_OPTIONS | _PARTS)))


def _take_part(options: dict[str, Any]) -> dict[str, Any]:
    """What says which program of a file is meant; `fetch` is also an option of its compilation."""
    return {"signature": options.pop("signature", ""), "feeds": list(options.pop("feed", ())),
            "fetches": list(options.get("fetch", ()))}


def parse(program: Any, params: Any = b"", *, name: str = "program", **options: Any) -> Model:
    """A model whose files are in memory: the bytes of a program of any format, and those of its
    combined parameters, as `bytes` or anything else with the buffer protocol. Options as for
    `load`; `name` stands before messages."""
    _check_options("parse", options)
    program, scope = _heddle.parse_model(program, params, name, **_take_part(options))
    return Model(program, scope, **options)


def load(path: str | os.PathLike[str], params: str | os.PathLike[str] | None = None,
         **options: Any) -> Model:
    """Loads a model: a `.pdmodel`, Paddle 3's `.json`, an `.onnx`, a TensorFlow `.pb`, `.pbtxt`
    or `.meta`, or a directory with one of them.

    `params`: a file or directory of parameters, if they are not beside the program. Options:

    * `threads`: how many to use; 0 for as many as the process may
    * `fetch`: names of variables to return instead of the program's outputs
    * `opt_level`: 0 runs the program as it is, 1 cleans up, 2 also fuses and chooses layouts
    * `schedule`: "auto", "serial", "parallel" or "lanes"
    * `deterministic`: always the same way of running (results are the same bits in any case, for
      one number of threads)
    * `memory_limit`: bytes of temporaries and outputs at once; 0 for no limit
    * `plan_cache`: how many plans, one per set of input shapes, are kept
    * `runs_at_once`: with one thread, how many runs may be under way when several threads ask; 0
      for any number
    * `seed`: of operators that draw random numbers
    * `precision`: "bf16" lets products and convolutions with constant weights round what they
      multiply to bfloat16, where the processor is faster that way; "int8" holds constant
      matrices as integers of 8 bits, a quarter of the memory; "int8-products" is "bf16", and two
      pointwise convolutions in sequence multiply integers of 8 bits; "f32" does none of it
    * `lean`: prefer little memory to speed: no copies of parameters larger than these, little
      generated code
    * `reuse`: "edges" lets instructions in lanes wait for each other so that temporaries share
      memory, while the longest path grows by 5 % at most; "ordered" does not; "none" gives each
      memory of its own to the end of a run
    * `in_place`: operators may compute an output in the memory of an input that is not needed any
      more
    * `outline`: equal layers are planned once and called, with the same bits: planning takes less
      time and memory
    * `max_shapes`: the largest shape of each input, by name: runs up to it have their temporaries
      in blocks of one size, which are used again whatever the shape
    * `packed_weights`: a file that keeps weights as kernels want them, made when absent: a quicker
      start
    * `force`: implementations that kernels must have, as in "conv=direct,gemm=panels"
    * `place`: the device that operators run on where it has a kernel: "emulated", "cuda:0", several
      with commas between, for operators that name theirs; an error where there is none
    * `signature`: of a TensorFlow SavedModel, "serving_default" if not said
    * `feed`: names of the tensors of a TensorFlow graph that runs are given; `fetch` names those
      that they return
    """
    _check_options("load", options)
    program, scope = _heddle.load_model(os.fspath(path), os.fspath(params) if params else "",
                                        **_take_part(options))
    model = Model(program, scope, **options)
    model._source = os.fspath(path)
    return model
