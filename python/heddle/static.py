"""Training and inference with Paddle's static programs, run by heddle.

    import heddle
    exe = heddle.static.Executor()              # instead of paddle.static.Executor()
    exe.run(startup_program)
    loss, = exe.run(main_program, feed={"x": x}, fetch_list=[loss])

Programs are Paddle's (`Program`, `CompiledProgram`) or their serialized bytes. Paddle is used only
where the script has imported it; then its scopes, `paddle.seed` and schedulers of learning rates go
on to mean what they did, and names that are not here are those of `paddle.static`.
"""

from __future__ import annotations

import contextlib
import os
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from heddle import _flags, _heddle, _paddle, _place
from heddle._errors import InvalidArgument, Unimplemented
from heddle._flags import get_flags, set_flags
from heddle._scope import LoDTensor, Scope, Variable, offsets_of

__all__ = ["Executor", "LoDTensor", "Scope", "Variable", "create_lod_tensor", "export_scope",
           "get_flags", "global_scope", "import_scope", "left_to_paddle", "load_inference_model",
           "scope_guard", "seed", "set_flags"]

# Programs that only read or write files; Paddle runs its own.
_FILE_OPS = frozenset(("save", "save_combine", "load", "load_combine"))
_PORTS = frozenset(("feed", "fetch", "fetch_v2"))


class _State:
    """What paddle.static keeps per process: the current scope and the random numbers."""

    def __init__(self) -> None:
        self.default = Scope()
        self.guarded: list[Any] = []
        self.left_to_paddle = 0  # programs with operators that heddle lacks
        self.generator = _heddle.Generator(0)
        self.generator_link = _paddle.GeneratorLink(self.generator)


_state = _State()


def global_scope() -> Any:
    """The scope that runs use when they are given none: the innermost `scope_guard`'s, else that of
    `paddle.static` where Paddle is imported, else heddle's own."""
    if _state.guarded:
        return _state.guarded[-1]
    paddle = _paddle.module()
    return paddle.static.global_scope() if paddle is not None else _state.default


@contextlib.contextmanager
def scope_guard(scope: Any) -> Iterator[None]:
    """Makes `scope`, heddle's or Paddle's, the global one within a `with` block."""
    _state.guarded.append(scope)
    theirs = getattr(scope, "theirs", scope)
    try:
        if _paddle.is_scope(theirs):
            with _paddle.module().static.scope_guard(theirs):
                yield
        else:
            yield
    finally:
        _state.guarded.pop()


def seed(value: int) -> None:
    """Seeds the random numbers of programs; where Paddle is used, `paddle.seed` does as well."""
    paddle = _paddle.module()
    if paddle is not None:
        paddle.seed(value)
    else:
        _state.generator.seed(value)


def create_lod_tensor(data: Any, recursive_seq_lens: Sequence[Sequence[int]],
                      place: Any = None) -> LoDTensor:
    """Packed sequences: an array and the lengths of the sequences in it."""
    tensor = LoDTensor(_heddle.Tensor(np.asarray(data), "", offsets_of(recursive_seq_lens)))
    if not tensor.has_valid_recursive_sequence_lengths():
        raise InvalidArgument(f"lengths {list(map(list, recursive_seq_lens))} do not fit an array "
                              f"of shape {tensor.shape()}")
    return tensor


def _names_in(program: Any) -> list[str]:
    return [info.name for info in _parse(program).persistables]


def _parse(program: Any) -> _heddle.Program:
    if isinstance(program, _heddle.Program):
        return program
    return _heddle.Program.parse(_bytes_of(program))


def _bytes_of(program: Any) -> bytes:
    if isinstance(program, (bytes, bytearray, memoryview)):
        return bytes(program)
    inner = getattr(program, "_program", None) or program
    try:
        return inner.desc.serialize_to_string()
    except AttributeError:
        raise TypeError("a program is a paddle.static.Program, a CompiledProgram or bytes, not "
                        f"{type(program).__name__}") from None


def import_scope(program: Any, source: Any, target: Scope | None = None) -> Scope:
    """Copies the program's persistable variables from a scope of Paddle's into one of heddle's."""
    target = target if target is not None else Scope()
    for name in _names_in(program):
        variable = source.find_var(name)
        tensor = variable.get_tensor() if variable is not None else None
        if tensor is not None and tensor._is_initialized():
            target[name] = np.array(tensor)
    return target


def export_scope(program: Any, source: Scope, target: Any) -> None:
    """Copies the program's persistable variables from a scope of heddle's into one of Paddle's."""
    place = _paddle.core().CPUPlace() if _paddle.core() is not None else None
    for name in _names_in(program):
        if name in source:
            target.var(name).get_tensor().set(source[name], place)


def load_inference_model(path_prefix: str | os.PathLike[str], executor: Any = None,
                         model_filename: str | None = None,
                         params_filename: str | None = None) -> list[Any]:
    """`[program, names of inputs, names of outputs]` of a saved model, `.json` or `.pdmodel`, for
    `Executor.run`; its parameters go to the global scope."""
    path, params = os.fspath(path_prefix), ""
    if model_filename is not None:
        params = os.path.join(path, params_filename) if params_filename else ""
        path = os.path.join(path, model_filename)
    elif not os.path.isdir(path):
        path = next((path + end for end in (".json", ".pdmodel") if os.path.exists(path + end)),
                    path)
    program, loaded = _heddle.load_model(path, params)
    scope = global_scope()
    place = _paddle.core().CPUPlace() if _paddle.core() is not None else None
    for info in program.persistables:
        value = loaded.get(info.name)
        if value is not None:
            scope.var(info.name).get_tensor().set(value.numpy(), place)
    return [program, [i.name for i in program.inputs], [i.name for i in program.outputs]]


def left_to_paddle() -> int:
    """The number of programs, in this process, that Paddle runs for heddle's executor, since heddle
    lacks an operator of theirs."""
    return _state.left_to_paddle


# Wishes of strategies that are met whatever they say, since heddle's passes, plans and runs are so.
_MET = frozenset((
    "fuse_elewise_add_act_ops", "fuse_bn_act_ops", "fuse_gemm_epilogue", "fused_attention",
    "fuse_relu_depthwise_conv", "fix_op_run_order", "cache_runtime_context",
    "enable_addto", "remove_unnecessary_lock", "use_experimental_executor",
    "num_iteration_per_drop_scope"))
# Strategies that ask for one operator after another.
_SERIAL = frozenset(("sequential_run", "enable_sequential_execution"))


class _Strategies:
    """The BuildStrategy and ExecutionStrategy of a CompiledProgram: heddle does what it can of them
    and warns once of each other setting."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def options(self, program: Any, threads: int) -> dict[str, Any]:
        """For `Executor.compile`."""
        schedule = "serial" if _flags.sequential() else "auto"
        reuse = "none" if _flags.keeps_all() else "ordered"
        in_place = _flags.in_place()
        for attribute in ("_build_strategy", "_exec_strategy"):
            strategy = getattr(program, attribute, None)
            if strategy is None:
                continue
            usual = type(strategy)()
            for name in dir(strategy):
                value = getattr(strategy, name)
                if name.startswith("_") or callable(value) or value == getattr(usual, name):
                    continue
                if name in _SERIAL:
                    schedule = "serial"
                elif name == "num_threads" and value in (1, threads):
                    schedule = "serial" if value == 1 else schedule
                elif name == "enable_inplace":
                    in_place = bool(value)
                elif name == "memory_optimize":
                    reuse = reuse if value else "none"
                elif name not in _MET:
                    self.tell(f"{type(strategy).__name__}.{name} = {value!r}")
        return {"schedule": schedule, "reuse": reuse, "in_place": in_place}

    def tell(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            warnings.warn(f"{what} has no effect: heddle plans and runs programs in its own way",
                          stacklevel=6)


class _Compiled:
    """A program made ready for one set of fetches and one scope."""

    def __init__(self, executor: _heddle.Executor, program: _heddle.Program, scope: _heddle.Scope,
                 fetches: Sequence[str], view: _paddle.ProgramView | None, desc: Any,
                 opt_level: int, options: Mapping[str, Any], kept: Sequence[str]) -> None:
        unique = list(dict.fromkeys(fetches))
        self.program = program
        self.session = executor.compile(program, scope, unique, opt_level=opt_level,
                                        keep=list(kept), **options)
        self.order = [unique.index(name) for name in fetches]
        self.view = view
        self.draws: bool | None = None  # random numbers; None: not yet known
        self._desc = desc
        self._feeds: dict[str, tuple[np.dtype | None, str, tuple[int, ...] | None] | None] = {}

    def declared(self, name: str) -> tuple[np.dtype | None, str, tuple[int, ...] | None] | None:
        """NumPy's dtype, heddle's name of it and the shape that a feed must have (None: any), or
        None for a name that the program does not know."""
        if name not in self._feeds:
            self._feeds[name] = self._look_up(name)
        return self._feeds[name]

    def _look_up(self, name: str) -> tuple[np.dtype | None, str, tuple[int, ...] | None] | None:
        info = self.program.variable(name)
        if info is None:
            return None
        checked = True
        if hasattr(self._desc, "block"):  # Paddle looks only at what paddle.static.data declared
            variable = self._desc.block(0).find_var(name.encode())
            checked = variable is not None and variable.need_check_feed()
        known = info.dtype != "unknown"
        plain = known and info.dtype != "bfloat16"
        return (np.dtype(info.dtype) if plain and checked else None,
                info.dtype if known else "", info.shape if checked else None)


def _check_feed(name: str, dtype: np.dtype | None, shape: tuple[int, ...] | None,
                got_dtype: Any, got_shape: tuple[int, ...]) -> None:
    if dtype is not None and got_dtype != dtype:
        raise InvalidArgument(f"feed '{name}' has dtype {got_dtype}; {dtype} is expected")
    if shape is None:
        return
    if len(shape) != len(got_shape) or any(w >= 0 and w != g for w, g in zip(shape, got_shape)):
        raise InvalidArgument(f"feed '{name}' has shape {list(got_shape)}; "
                              f"{['?' if d < 0 else d for d in shape]} is expected")


class Executor:
    """Runs programs like `paddle.static.Executor`.

    A program is prepared once for each set of fetches and scope; changing the program makes it
    anew. `place`: None or a CPUPlace for the host, else a place of Paddle's or a name, "gpu:0" or
    "emulated", whose device runs the operators that it has kernels for; an error where there is
    none. `threads`: how many to use, 0 for as many as the process may. `rank`: the one of a group
    (`heddle.new_ranks`) that programs communicate as. `force_root_scope_vars`: names of variables
    whose values a run leaves in the scope, beside the persistable ones; with
    `create_local_scope=False` it leaves all that the program's operators write there.
    `memory_limit`: bytes of temporaries and outputs at once, 0 for no limit; `timeout`: seconds
    that a run may take. Threads: one run at a time.
    """

    _CACHE = 64  # prepared programs per scope

    def __init__(self, place: Any = None, *, threads: int = 0, opt_level: int = 2,
                 rank: Any = None, force_root_scope_vars: Sequence[str] = (),
                 create_local_scope: bool = True, memory_limit: int = 0,
                 timeout: float | None = None) -> None:
        self.place = place
        paddle = _paddle.module()
        if place is None and paddle is not None:
            self.place = paddle.CPUPlace()
        self._executor = _heddle.Executor(threads, memory_limit=memory_limit, rank=rank,
                                          place=_place.name_of(place))
        self._timeout = timeout
        self._in_scope = tuple(force_root_scope_vars)
        self._local = create_local_scope
        self._opt_level = opt_level
        self._links: weakref.WeakKeyDictionary[Any, _paddle.ScopeLink] = weakref.WeakKeyDictionary()
        self._compiled: weakref.WeakKeyDictionary[Any, dict] = weakref.WeakKeyDictionary()
        self._pruned: dict[Any, Any] = {}
        self._strategies = _Strategies()
        self._theirs: Any = None
        self._closed = False

    def run(self, program: Any = None, feed: Any = None, fetch_list: Any = None,
            feed_var_name: str = "feed", fetch_var_name: str = "fetch", scope: Any = None,
            return_numpy: bool = True, use_program_cache: bool = False,
            use_prune: bool = False) -> list[Any]:
        """Runs a program once and returns what `fetch_list` names.

        `feed`: a dict from names to arrays, lists, tensors of Paddle's, or pairs (array, offsets of
        sequences). With `return_numpy=False` the result is tensors, which know their offsets.
        """
        if self._closed:
            raise RuntimeError("the executor was closed")
        if program is None:
            program = self._default_program()
        if isinstance(feed, (list, tuple)):
            if len(feed) != 1:
                raise InvalidArgument("feed: one dict is expected; heddle does not split batches")
            feed = feed[0]
        if (feed_var_name, fetch_var_name) != ("feed", "fetch"):
            self._strategies.tell("feed_var_name, fetch_var_name")
        if feed is not None and not isinstance(feed, Mapping):
            raise TypeError(f"feed: a dict is expected, not {type(feed).__name__}")
        feed = dict(feed or {})
        fetches, optimizers = self._split_fetches(fetch_list)
        if use_prune or optimizers:
            program = self._prune(program, feed, fetches, optimizers)
        if scope is None:
            scope = global_scope()
        scope = getattr(scope, "theirs", scope)
        if not isinstance(scope, Scope) and not _paddle.is_scope(scope):
            raise TypeError("scope: heddle.static.Scope or paddle.static.Scope is expected, not "
                            + type(scope).__name__)
        names = tuple(item if isinstance(item, str) else item.name for item in fetches)
        compiled = self._prepare(program, names, scope)
        if compiled is None:
            return self._run_by_paddle(program, feed, fetches, scope, return_numpy)
        return self._run(compiled, program, feed, names, scope, return_numpy)

    def memory_use(self) -> dict[str, dict[str, int]]:
        """As `heddle.Model.memory_use`."""
        return self._executor.memory_use()

    def _kept(self, program: _heddle.Program) -> tuple[str, ...]:
        """Variables whose values a run leaves in the scope."""
        if self._local and _flags.local_scope():
            return self._in_scope
        return tuple(dict.fromkeys((*self._in_scope, *program.written)))

    def _run(self, compiled: _Compiled, program: Any, feed: dict[str, Any], names: tuple[str, ...],
             scope: Any, return_numpy: bool) -> list[Any]:
        feeds = self._feeds(compiled, feed)
        self._set_learning_rate(program, scope)
        if compiled.view is not None:
            compiled.view.before()
        generator = _state.generator
        if compiled.draws is not False and _paddle.core() is not None:
            _state.generator_link.take_over()
        before = generator.state if compiled.draws is None else ""
        tensors, kept = compiled.session.run_kept(feeds, generator, _flags.benchmark(),
                                                  _flags.check_nan_inf(), self._timeout)
        for name, value in kept.items():
            if value is not None:
                self._leave(scope, name, value)
        if compiled.draws is None:
            compiled.draws = generator.state != before
        if compiled.view is not None:
            compiled.view.after()
        if not names:
            return []
        fetched = [tensors[i] for i in compiled.order]
        return [self._fetched(value, name, return_numpy) for value, name in zip(fetched, names)]

    @staticmethod
    def _leave(scope: Any, name: str, value: Any) -> None:
        if isinstance(scope, Scope):
            scope._scope.set(name, value)
        elif isinstance(value, _heddle.Tensor):
            scope.var(name).get_tensor().set(value.numpy(), _paddle.core().CPUPlace())

    @staticmethod
    def _fetched(value: Any, name: str, return_numpy: bool) -> Any:
        if not isinstance(value, _heddle.Tensor):  # an array of tensors, or selected rows
            return value
        if not return_numpy:
            return _paddle.lod_tensor(value) if _paddle.core() is not None else LoDTensor(value)
        if value.lod:
            raise InvalidArgument(f"'{name}' holds sequences (offsets {value.lod}), which an array "
                                  "cannot tell: give return_numpy=False")
        return value.numpy()

    @staticmethod
    def _feeds(compiled: _Compiled, feed: dict[str, Any]) -> dict[str, Any]:
        feeds = {}
        for name, value in feed.items():
            declared = compiled.declared(name)
            if declared is None:
                warnings.warn(f"the program has no variable '{name}' to feed", stacklevel=4)
                continue
            dtype, dtype_name, shape = declared
            if not isinstance(value, np.ndarray):
                value = _heddle.Tensor(value, dtype_name)
                if value.dtype == "bfloat16":
                    dtype = None
                _check_feed(name, dtype, shape, value.dtype, value.shape)
            else:
                _check_feed(name, dtype, shape, value.dtype, value.shape)
            feeds[name] = value
        return feeds

    def _default_program(self) -> Any:
        paddle = _paddle.module()
        if paddle is None:
            raise InvalidArgument("no program was given, and there is no paddle with a default one")
        return paddle.static.default_main_program()

    @staticmethod
    def _set_learning_rate(program: Any, scope: Any) -> None:
        scheduler = getattr(getattr(program, "_program", None) or program, "lr_scheduler", None)
        if scheduler is None:
            return
        inner = getattr(program, "_program", None) or program
        variable = inner.global_block().vars[scheduler._var_name]
        shape = [max(d, 1) for d in variable.shape]
        value = np.full(shape, scheduler(), _paddle._DTYPES[int(variable.dtype)])
        place = _paddle.core().CPUPlace() if _paddle.core() is not None else None
        scope.var(scheduler._var_name).get_tensor().set(value, place)

    @staticmethod
    def _split_fetches(fetch_list: Any) -> tuple[list[Any], list[Any]]:
        """Variables (or names) to fetch, and operators of optimizers, which ask for pruning."""
        if fetch_list is None:
            return [], []
        if isinstance(fetch_list, str) or hasattr(fetch_list, "desc"):
            fetch_list = [fetch_list]
        fetches: list[Any] = []
        optimizers: list[Any] = []

        def take(item: Any) -> None:
            if isinstance(item, tuple) and item and isinstance(item[0], (list, tuple)):
                item = item[0]  # what minimize() returns: (operators, parameters with gradients)
            if isinstance(item, (list, tuple)):
                for inner in item:
                    take(inner)
            elif isinstance(item, str) or not hasattr(item, "_is_optimize_op"):
                if not isinstance(item, str) and not hasattr(item, "name"):
                    raise TypeError("fetch_list: names or variables are expected, not "
                                    + type(item).__name__)
                fetches.append(item)
            elif item._is_optimize_op():
                optimizers.append(item)
            else:
                raise TypeError(f"fetch_list: operator '{item.type}' is no optimizer's")

        for item in fetch_list:
            take(item)
        return fetches, optimizers

    def _prune(self, program: Any, feed: dict[str, Any], fetches: list[Any],
               optimizers: list[Any]) -> Any:
        """The program without what fetches and optimizers do not need, made by Paddle itself."""
        inner = getattr(program, "_program", None) or program
        if not hasattr(inner, "_prune_with_input"):
            raise InvalidArgument("use_prune needs a program of Paddle's")
        names = tuple(item if isinstance(item, str) else item.name for item in fetches)
        key = (inner.desc.cached_hash_str(), tuple(feed), names,
               tuple(id(op) for op in optimizers))
        if key not in self._pruned:
            targets = list(fetches)
            targets += optimizers or [op for block in inner.blocks for op in block.ops
                                      if op._is_optimize_op()]
            pruned = inner._prune_with_input(list(feed), targets)
            if hasattr(inner, "lr_scheduler"):
                pruned.lr_scheduler = inner.lr_scheduler
            self._pruned[key] = (pruned, optimizers)
        pruned = self._pruned[key][0]
        for name in [n for n in feed if not pruned.global_block().has_var(n)]:
            del feed[name]
        return pruned

    def _prepare(self, program: Any, names: tuple[str, ...], scope: Any) -> _Compiled | None:
        inner = getattr(program, "_program", None) or program
        desc = getattr(inner, "desc", None)
        if hasattr(desc, "cached_hash_str"):
            identity = desc.cached_hash_str()
        elif isinstance(program, _heddle.Program):
            identity = program.hash
        else:
            identity = _bytes_of(program)
        ready = self._compiled.setdefault(scope, {})
        options = self._strategies.options(program, self._executor.threads)
        key = (identity, names, *options.values(), _flags.local_scope())
        compiled = ready.get(key)
        if compiled is None and key not in ready:
            compiled = self._compile(program, names, scope, desc, options)
            if len(ready) >= self._CACHE:
                ready.pop(next(iter(ready)))
            ready[key] = compiled
        return compiled

    def _compile(self, program: Any, names: tuple[str, ...], scope: Any, desc: Any,
                 options: Mapping[str, Any]) -> _Compiled | None:
        inner = getattr(program, "_program", None) or program
        if (_paddle.is_scope(scope) and hasattr(inner, "global_block")
                and {op.type for op in inner.global_block().ops} & _FILE_OPS
                and {op.type for op in inner.global_block().ops} <= _FILE_OPS | _PORTS):
            return None
        try:
            parsed = _parse(program)
        except Unimplemented as error:
            if not _paddle.is_scope(scope) or not hasattr(inner, "global_block"):
                raise
            _state.left_to_paddle += 1
            warnings.warn(f"Paddle runs this program, not heddle: {error.message}", stacklevel=5)
            return None
        kept = self._kept(parsed)
        if isinstance(scope, Scope):
            return _Compiled(self._executor, parsed, scope._scope, names, None, desc,
                             self._opt_level, options, kept)
        link = self._links.get(scope)
        if link is None:
            link = self._links[scope] = _paddle.ScopeLink(scope)
        view = link.view([info.name for info in parsed.persistables])
        view.before()
        return _Compiled(self._executor, parsed, link.mirror.scope, names, view, desc,
                         self._opt_level, options, kept)

    def _paddles(self) -> Any:
        """Paddle's executor, for what belongs to Paddle alone."""
        if self._theirs is None:
            self._theirs = _paddle.module().static.Executor(self.place)
        return self._theirs

    @property
    def _default_executor(self) -> Any:
        return self._paddles()._default_executor

    @property
    def __class__(self) -> type:
        """`paddle.static.load` and others insist on an instance of Paddle's Executor."""
        paddle = _paddle.module()
        return Executor if paddle is None else paddle.static.Executor

    def _run_by_paddle(self, program: Any, feed: Any, fetches: Any, scope: Any,
                       return_numpy: bool) -> Any:
        return self._paddles().run(program, feed, fetches, scope=scope, return_numpy=return_numpy)

    def close(self) -> None:
        self._closed = True
        self._compiled.clear()

    def flush(self) -> None:
        """Does nothing: there are no trainers whose parameters would be collected."""


def __getattr__(name: str) -> Any:
    paddle = _paddle.module()
    if paddle is not None and not name.startswith("__"):
        return getattr(paddle.static, name)
    raise AttributeError(f"heddle.static has no '{name}'"
                         + ("" if paddle else "; with paddle imported, it has its names"))
