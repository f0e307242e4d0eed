"""Calls of the package that no sensible program makes, drawn from a seed.

    misuse.py SEED TURNS     runs them in this process; a line for each on stderr, `ok` at the end

Each turn ends with an ordinary exception, or with the right answer where NumPy has one; a model
that was there before gives its answers afterwards. test_misuse.py runs it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pathlib
import random
import sys
import tempfile
import threading
import traceback

import numpy as np

import heddle
from heddle import _heddle
from odd_values import (ODD_NAMES, ODD_NUMBERS, ODD_TIMES, ORDINARY, Odd, TensorWithoutInit,
                        odd_array, plain)
from side_by_side import side_by_side


def feeds_of(names):
    b = heddle.build.Builder()
    xs = [b.feed(name, "float32", [-1, 4]) for name in names]
    total = xs[0]
    for x in xs[1:]:
        total = b.op("elementwise_add", X=total, Y=x)
    w = b.parameter("w", np.eye(4, dtype="f4"))
    b.fetch(b.op("matmul_v2", X=b.op("relu", X=total), Y=w))
    return b


class Mischief:
    """The turns of one seed."""

    def __init__(self, seed, folder):
        self.rng = random.Random(seed)
        self.folder = pathlib.Path(folder)
        self.builder = feeds_of(["x"])
        self.model = self.builder.finish(threads=2)
        self.two = feeds_of(["x", "y"]).finish(threads=1)
        self.program = self.model.program
        self.kept = []  # things that outlive their turn

    def check(self):
        x = plain(self.rng)
        assert np.array_equal(self.model(x), np.maximum(x, 0)), "the model gives something else"

    # Each turn: what is done, for the log, and a call of it.

    def turn(self):
        names = [name for name in dir(self) if name.startswith("do_")]
        return getattr(self, self.rng.choice(names))

    def right(self, out, want):
        if want is not None:
            assert out.shape == want.shape and np.array_equal(out, np.maximum(want, 0)), (out, want)

    def do_run(self):
        thing, want = odd_array(self.rng, self.folder)
        before = None if want is None else np.array(want)
        way = self.rng.randrange(7)
        try:
            if way == 0:
                self.right(self.model.run({"x": thing})[0], want)
            elif way == 1:
                self.right(self.model(thing), want)
            elif way == 2:
                self.right(self.model.run({"x": thing}, lod=True)[0].numpy(), want)
            elif way == 3:
                self.right(self.model.run_async({"x": thing}).result(60)[0], want)
            elif way == 4:
                self.right(self.model.run({"x": thing}, timeout=50, check_nan_inf=True)[0], want)
            elif way == 5:
                self.model.plan({"x": thing})
            else:
                self.model.profile({"x": thing}, warmup=1)
        finally:
            if before is not None:
                assert np.array_equal(before, want), "the feed was changed"

    def do_run_with_names(self):
        rng = self.rng
        feeds = {rng.choice(ODD_NAMES): odd_array(rng, self.folder)[0]
                 for _ in range(rng.randrange(4))}
        rng.choice([self.model, self.two]).run(rng.choice([feeds, list(feeds.items()), feeds.keys(),
                                                           feeds]))

    def do_run_with_options(self):
        rng = self.rng
        self.model.run({"x": plain(rng)}, timeout=rng.choice(ODD_TIMES),
                       check_nan_inf=rng.choice([True, False, None, "no"]),
                       lod=rng.choice([True, False, 2]))

    def do_call(self):
        rng = self.rng
        things = [odd_array(rng, self.folder)[0] for _ in range(rng.randrange(4))]
        words = {str(rng.choice(ODD_NAMES)).replace("\0", "_"): 1 for _ in range(rng.randrange(2))}
        self.two(*things, **words)

    def do_change_feeds_while_they_are_read(self):
        rng, x = self.rng, plain(self.rng)
        how = rng.randrange(4)
        feeds: dict = {}

        class Changes:
            def __array__(self, *_arguments, **_words):
                if how == 0:
                    feeds.clear()
                elif how == 1:
                    feeds.update({f"k{k}": np.zeros([2, 4], "f4") for k in range(100)})
                elif how == 2:
                    feeds["y"] = None
                else:
                    del feeds["y"]
                gc.collect()
                return np.zeros([2, 4], "f4")

        feeds.update(x=Changes(), y=x)
        del x
        self.two.run(feeds)

    def do_change_lists_while_they_are_read(self):
        rng = self.rng
        items: list = []

        class Changes:
            def __array__(self, *_arguments, **_words):
                items.clear()
                items.extend(rng.choice([[], [None] * 1000]))
                gc.collect()
                return np.zeros([2, 4], "f4")

        items.extend([Changes()] + [plain(rng) for _ in range(3)])
        if rng.randrange(2):
            _heddle.Value.of_arrays(items)
        else:
            queue = heddle.ReaderQueue(9)
            queue.push(items)

    def do_tensor(self):
        rng = self.rng
        thing, want = odd_array(rng, self.folder)
        dtype = rng.choice(["", "float32", "int8", "bfloat16", "no"])
        if isinstance(thing, list) and dtype not in ("", "float32"):
            want = None  # is rounded
        tensor = heddle.Tensor(thing, dtype)
        for _ in range(rng.randrange(4)):
            self.use_tensor(tensor)
        if want is not None:
            assert np.array_equal(tensor.numpy(), want)
        if rng.randrange(4) == 0:
            self.kept.append(tensor)

    def use_tensor(self, tensor):
        rng = self.rng
        way = rng.randrange(9)
        if way == 0:
            self.kept.append(tensor.numpy())
        elif way == 1:
            self.kept.append(memoryview(tensor))
        elif way == 2:
            self.kept.append(tensor.__dlpack__(**rng.choice(
                [{}, {"stream": 5}, {"stream": None}, {"max_version": (1, 0)},
                 {"max_version": (0, 5)}, {"max_version": "1"}, {"max_version": (1,)},
                 {"max_version": (1 << 70, 0)}, {"max_version": ("1", 0)}, {"dl_device": (2, 0)},
                 {"copy": True}, {"nonsense": 1}])))
        elif way == 3:
            tensor.lod = rng.choice([[[0, 1, 2]], [[0, 9]], [[-1]], [], None, 5, [[1 << 70]],
                                     ["ab"]])
        elif way == 4:
            tensor.__init__(plain(rng))
        elif way == 5:
            self.kept.append(np.frombuffer(tensor, "u1"))
        elif way == 6:
            bytes(tensor), repr(tensor), tensor.shape, tensor.dtype, tensor.nbytes, tensor.address
        elif way == 7:
            self.model(tensor)
        else:
            (ctypes.c_char * rng.choice([0, 1, 32, 33])).from_buffer(tensor)

    def do_methods_of_other_things(self):
        """Functions of a class, called with what is no object of it."""
        rng = self.rng
        owner = rng.choice([heddle.Tensor, heddle.Program, heddle.Scope, heddle.ReaderQueue,
                            heddle.Generator, heddle.Rank, _heddle.Executor, _heddle.Session,
                            _heddle.Value, heddle.TensorInfo, _heddle.Builder])
        self_ = rng.choice([None, 5, "x", owner, object(), plain(rng),
                            owner.__new__(owner) if owner is not heddle.Rank else 7,
                            TensorWithoutInit(), heddle.Scope()])
        names = [n for n in dir(owner) if n not in dir(object)] + ["__init__", "__repr__"]
        name = rng.choice(names)
        thing = getattr(owner, name)
        if name == "push":  # waits where there is room for one
            return
        if isinstance(thing, property):
            thing.__get__(self_, owner)
        elif callable(thing):
            thing(self_, *[rng.choice([None, 1, "x", {}, plain(rng)])
                           for _ in range(rng.randrange(3))])
        with contextlib.suppress(*ORDINARY):
            memoryview(self_)

    def do_uninitialised(self):
        rng = self.rng
        tensor = rng.choice([heddle.Tensor.__new__(heddle.Tensor), TensorWithoutInit()])
        rng.choice([memoryview, np.asarray, bytes, heddle.Tensor, np.from_dlpack, repr,
                    lambda t: t.numpy(), lambda t: t.__dlpack__(), lambda t: t.lod,
                    lambda t: self.model(t), lambda t: np.frombuffer(t, "u1"),
                    lambda t: (ctypes.c_char * 0).from_buffer(t)])(tensor)

    def do_scope(self):
        rng, scope = self.rng, heddle.Scope()
        name = rng.choice(ODD_NAMES)
        scope.set(name, odd_array(rng, self.folder)[0], rng.choice(["", "float32", "nothing"]))
        value = scope.get(name)
        assert scope.has(name) and name in scope.names()
        scope.erase(rng.choice(ODD_NAMES))
        child = scope.new_scope()
        del scope
        assert value is None or child.get(name) is None or value.shape == child.get(name).shape

    def do_scope_in_threads(self):
        """Variables are set, read and erased by several threads at once."""
        rng, scope = self.rng, heddle.Scope()

        def work(r):
            for _ in range(30):
                name = r.choice("ab")
                way = r.randrange(4)
                if way == 0:
                    scope.set(name, np.full(r.choice([4, 100000]), r.randrange(9), "f4"))
                elif way == 1:
                    scope.erase(name)
                elif way == 2:
                    value = scope.get(name)
                    if value is not None:
                        found = value.numpy()
                        assert (found == found[0]).all()
                else:
                    scope.has(name), scope.names(), scope.version

        side_by_side(rng, 3, work)

    def do_parameters(self):
        rng = self.rng
        model = feeds_of(["x"]).finish(threads=1)
        name = rng.choice(["w", "w", *ODD_NAMES])
        if rng.randrange(3):
            model.parameters[name] = odd_array(rng, self.folder)[0]
            assert model(plain(rng)).shape == (2, 4)
        elif rng.randrange(2):
            del model.parameters[name]
        else:
            model.load_parameters(rng.choice([self.folder, "", "\0", "/dev/null", None, 5, "/",
                                              "a" * 5000, b"x", "/proc/self/mem"]))

    def do_load(self):
        rng = self.rng
        path = rng.choice(["", "\0", ".", "/", "/dev/null", "/dev/full", None, 5, b"x", "a" * 5000,
                           self.folder, "\ud800", pathlib.Path("/nowhere")])
        heddle.load(path, rng.choice([None, "", "/nowhere", 5, self.folder]))

    def do_parse(self):
        rng = self.rng
        whole = self.program.serialize()
        cut = bytearray(whole[:rng.randrange(len(whole) + 1)])
        for _ in range(rng.randrange(4)):
            if cut:
                cut[rng.randrange(len(cut))] = rng.randrange(256)
        given = rng.choice([bytes(cut), cut, memoryview(cut), np.frombuffer(bytes(cut), "u1"), None,
                            "text", 5, [1], memoryview(cut)[::2]])
        model = heddle.parse(given, rng.choice([b"", None, "x", b"1234", memoryview(b"")]))
        model.run({"x": plain(rng)})

    def do_options(self):
        rng = self.rng
        words = {name: rng.choice(values) for name, values in {
            "threads": ODD_NUMBERS, "opt_level": ODD_NUMBERS, "memory_limit": ODD_NUMBERS,
            "plan_cache": ODD_NUMBERS, "runs_at_once": ODD_NUMBERS, "seed": ODD_NUMBERS,
            "schedule": ["auto", "serial", "", "x", None, 1],
            "fetch": [[], ["x"], ["nothing"], [5], "x"],
            "precision": ["f32", "", None], "reuse": ["ordered", "x"], "lean": [True, 5, "x"],
            "max_shapes": [{}, {"x": [2, 4]}, {"x": [-1]}, {"x": [1 << 62] * 3}, {"x": [1] * 20},
                           {"x": "ab"}, {"y": []}, 5],
            "packed_weights": ["", "/dev/full", "/nowhere/x", 5],
            "force": ["", "conv", "=", "a=b", 5],
            "place": ["cpu", "", "cuda:99", "emulated:x", 5, "emulated:" * 1000],
            "in_place": [True, None]}.items() if rng.randrange(6) == 0}
        model = heddle.parse(self.program.serialize(), b"", **words)
        model.parameters["w"] = np.eye(4, dtype="f4")
        model.run({"x": plain(rng)})

    def do_queue(self):
        rng = self.rng
        queue = heddle.ReaderQueue(rng.choice([1, 2, 9, *ODD_NUMBERS]))
        queue.push([odd_array(rng, self.folder)[0] for _ in range(rng.randrange(3))])
        len(queue), queue.closed, queue.capacity
        queue.put_into(heddle.Scope(), rng.choice(ODD_NAMES))
        queue.close()
        queue.push([plain(rng)])
        queue.reset()

    def do_ranks(self):
        rng = self.rng
        heddle.new_ranks(rng.choice([1, 2, *ODD_NUMBERS]),
                         rng.choice([{}, {0: [0]}, {0: [5]}, {0: [0, 0]}, {-1: []}, {0: None}, 5,
                                     {1 << 70: []}, {0: [1 << 40]}]))

    def do_generator(self):
        rng = self.rng
        generator = heddle.Generator(rng.choice(ODD_NUMBERS))
        state = generator.state
        generator.state = rng.choice([state, "", "x", state[:-1], state + " 1", "9 " * 700, None, 5,
                                      "-1", state.replace("1", "99999999999999999999")])
        generator.seed(rng.choice(ODD_NUMBERS))

    def do_builder(self):
        rng = self.rng
        b, other = heddle.build.Builder(rng.choice(["", "x", "\0"])), feeds_of(["x"])
        x = b.feed(rng.choice(["x", "", "\0"]), rng.choice(["float32", "nothing", "", "object"]),
                   rng.choice([[-1, 4], [], [-2], [1 << 62] * 3, [0], [1] * 11, [2.5], "ab", 5]))
        foreign = other.feed("z", "float32", [4])
        y = b.op(rng.choice(["relu", "matmul_v2", "concat", "", "nothing", "while", "feed"]),
                 X=rng.choice([x, [x, x], foreign, [], None, 5, "x"]),
                 **rng.choice([{}, {"axis": 1 << 40}, {"axis": "x"}, {"Y": foreign}, {"out": x},
                               {"out": 5}, {"axis": [float("nan")]}]))
        b.fetch(rng.choice([y, foreign, None, "x", 5]))
        b.finish(threads=1).run({"x": plain(rng)})

    def do_parameter_of_builder(self):
        rng = self.rng
        b = heddle.build.Builder()
        thing, want = odd_array(rng, self.folder)
        p = b.parameter(rng.choice(["p", "", "\0"]), thing, dtype=rng.choice(["", "", "int8", "x"]))
        b.fetch(b.op("relu", X=p))
        (out,) = b.finish(threads=1).run({})
        if want is not None and out.dtype == want.dtype:
            self.right(out, want)

    def do_write(self):
        rng = self.rng
        path = rng.choice([self.folder / "w.pdiparams", "/nowhere/x", "/dev/full", "", "\0"])
        if rng.randrange(2):
            _heddle.write_tensors(str(path), [(rng.choice(["a", "", "\0"]),
                                               odd_array(rng, self.folder)[0])])
        elif rng.randrange(2):
            self.model.save_parameters(path)
        else:
            self.model.save(path, rng.choice(["", "paddle", "pir", "x", None]))

    def do_lose_what_is_in_use(self):
        """Arrays, models and views go while others use what they lent or made."""
        rng = self.rng
        model = feeds_of(["x"]).finish(threads=rng.choice([1, 2]))
        x = plain(rng, [rng.choice([2, 5000]), 4])
        want = np.maximum(x, 0)
        futures = [model.run_async({"x": x}) for _ in range(rng.randrange(1, 6))]
        way = rng.randrange(4)
        if way == 0:
            del x
        elif way == 1:
            del model
        elif way == 2:
            futures.pop()
            del x, model
        gc.collect()
        outs = [future.result(60)[0] for future in futures]
        futures.clear()
        model = None
        gc.collect()
        for out in outs:
            assert np.array_equal(out, want)
        view = heddle.Tensor(outs[0]) if outs else None
        outs.clear()
        gc.collect()
        assert view is None or np.array_equal(view.numpy(), want)

    def do_resize_what_is_lent(self):
        rng = self.rng
        raw = bytearray(32)
        tensor = heddle.Tensor(raw)
        for _ in range(2):
            with contextlib.suppress(BufferError):
                raw.extend(b"more")
                raise AssertionError("memory that a tensor uses was resized")
        view = memoryview(raw)
        lent = heddle.Tensor(view)
        with contextlib.suppress(BufferError):
            view.release()
            raise AssertionError("a view that a tensor uses was released")
        del tensor, lent
        heddle.Tensor(plain(rng))  # settles what was lent
        view.release()
        raw.extend(b"more")

    def do_threads(self):
        """Models are made, run, dropped and cut short by threads at once."""
        rng, failures = self.rng, []
        shared = feeds_of(["x"]).finish(threads=2, runs_at_once=rng.choice([0, 1, 2]))

        def work(seed):
            r = random.Random(seed)
            try:
                mine = shared
                for _ in range(8):
                    x = plain(r, [r.choice([1, 2, 300]), 4])
                    timeout = r.choice([None, None, 1e-9, 1e-4, 50])
                    try:
                        out = mine.run({"x": x}, timeout=timeout)[0]
                        assert np.array_equal(out, np.maximum(x, 0))
                    except heddle.DeadlineExceeded:
                        assert timeout is not None and timeout < 1
                    if r.randrange(4) == 0:
                        mine = feeds_of(["x"]).finish(threads=r.choice([1, 2]))
                    if r.randrange(6) == 0:
                        mine._executor.trim(), mine.memory_use(), mine.reset_memory_peaks()
            except BaseException as error:  # pylint: disable=broad-exception-caught
                failures.append(error)

        threads = [threading.Thread(target=work, args=(rng.getrandbits(32),))
                   for _ in range(rng.choice([2, 8]))]
        for thread in threads:
            thread.start()
        del shared
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]


def is_clear(error):
    return "INTERNAL" not in str(error) and "bad_cast" not in str(error) and (
        str(error) != "" or isinstance(error, (MemoryError, LookupError)))


def main(seed, turns):
    with tempfile.TemporaryDirectory() as folder:
        mischief = Mischief(seed, folder)
        ended = {"answered": 0, "refused": 0}
        failed = []
        for turn in range(turns):
            # Begun anew, so that one turn can be run by itself.
            mischief.rng = random.Random(seed * 1000003 + turn)
            todo = mischief.turn()
            print(f"turn {turn}: {todo.__name__}", file=sys.stderr, flush=True)
            try:
                todo()
                ended["answered"] += 1
            except BaseException as error:  # pylint: disable=broad-exception-caught
                if isinstance(error, Odd) or (isinstance(error, ORDINARY)
                                              and is_clear(error)):
                    ended["refused"] += 1
                else:
                    failed.append(turn)
                    traceback.print_exc()
                traceback.clear_frames(error.__traceback__)
            if len(mischief.kept) > 20:
                mischief.rng.shuffle(mischief.kept)
                del mischief.kept[:15]
            mischief.check()
        mischief.kept.clear()
        print(ended, "failed:", failed, file=sys.stderr)
    assert not failed, failed
    assert min(ended.values()) > turns // 20 or turns < 100, ended
    print("ok")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    main(int(sys.argv[1]), int(sys.argv[2]))
