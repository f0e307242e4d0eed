"""How long things of the package live, who may write to them, and who is called back meanwhile:
drawn from a seed.

    misuse_lives.py SEED TURNS SCRIPTS.npz [ACT]     runs them in this process; `ok` at the end

Each turn ends with the right answer, or with an ordinary exception where none is right.
test_misuse.py runs it.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import io
import os
import pickle
import random
import signal
import sys
import threading
import traceback
import zipfile
from pathlib import Path

import numpy as np

import heddle
import heddle.onnx as ort
import onnx_model
from heddle import _heddle
from odd_values import ORDINARY, Odd, TensorWithoutInit
from side_by_side import side_by_side

DTYPES = ["u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]

SIMPLE, WRITABLE, FORMAT, ND, STRIDES = 0, 1, 4, 8, 0x18
C_ORDER, F_ORDER, ANY_ORDER = 0x38, 0x58, 0x98


class PyBuffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
                ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
                ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)), ("internal", ctypes.c_void_p)]


GET_BUFFER, RELEASE_BUFFER = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
GET_BUFFER.argtypes = [ctypes.py_object, ctypes.POINTER(PyBuffer), ctypes.c_int]
RELEASE_BUFFER.argtypes, RELEASE_BUFFER.restype = [ctypes.POINTER(PyBuffer)], None


class DlTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DlFirst(ctypes.Structure):
    _fields_ = [("tensor", DlTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class DlVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", DELETER), ("flags", ctypes.c_uint64),
                ("tensor", DlTensor)]


NEW_CAPSULE = ctypes.pythonapi.PyCapsule_New
NEW_CAPSULE.restype = ctypes.py_object
NEW_CAPSULE.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def model_of(level=2, threads=1):
    b = heddle.build.Builder()
    x = b.feed("x", "float32", [-1, 4])
    w = b.parameter("w", np.eye(4, dtype="f4"))
    b.fetch(b.op("matmul_v2", X=b.op("relu", X=x), Y=w))
    return b.finish(threads=threads, opt_level=level)


def laid_out(rng, array):
    """The same numbers, laid out otherwise."""
    way = rng.randrange(8)
    if way == 0:
        return np.asfortranarray(array)
    if way == 1 and array.ndim:  # with gaps
        wide = np.zeros([2 * d for d in array.shape], array.dtype)
        part = wide[tuple(slice(None, None, 2) for _ in array.shape)]
        part[...] = array
        return part
    if way == 2 and array.ndim:  # backwards
        turn = tuple(slice(None, None, rng.choice([1, -1])) for _ in array.shape)
        return np.ascontiguousarray(array[turn])[turn]
    if way == 3 and array.ndim > 1:
        axes = rng.sample(range(array.ndim), array.ndim)
        return np.ascontiguousarray(array.transpose(axes)).transpose(np.argsort(axes))
    if way == 4:  # an end of something larger
        raw = np.zeros(array.size + 3, array.dtype)
        part = raw[3:].reshape(array.shape)
        part[...] = array
        return part
    if way == 5 and array.ndim:
        one = np.lib.stride_tricks.as_strided(  # a dimension of one has any stride
            array[:1], array[:1].shape, (rng.choice([1, -7, 1 << 40]), *array.strides[1:]))
        return one
    return array


def drawn(rng, most=4):
    shape = [rng.choice([0, 1, 1, 2, 3, 5]) for _ in range(rng.randrange(most + 1))]
    dtype = rng.choice(DTYPES)
    return (np.arange(int(np.prod(shape))).reshape(shape) % 100).astype(dtype)


class Shaped(tuple):
    """A pair that says it is an array."""

    shape = (2, 4)


class Lives:
    def __init__(self, seed, scripts):
        self.rng = random.Random(seed)
        self.model = model_of(self.rng.choice([0, 2]), self.rng.choice([1, 2]))
        self.kept = []
        archive = zipfile.ZipFile(scripts)
        startup, main = (archive.read(f"while_loop/p{k}.pdmodel") for k in (0, 1))
        self.exe, self.scope = heddle.static.Executor(threads=1), heddle.static.Scope()
        self.exe.run(startup, scope=self.scope)
        self.main = main

    def check(self):
        x = np.arange(8, dtype="f4").reshape(2, 4) - 4
        assert np.array_equal(self.model(x), np.maximum(x, 0))

    def turn(self):
        names = sys.argv[4:] or [name for name in dir(self) if name.startswith("do_")]
        return getattr(self, self.rng.choice(names))

    def loop(self, trips, timeout=None):
        """A run that takes trips, and writes its scope."""
        program = heddle.Program.parse(self.main)
        session = self.exe_session(program)
        return session.run({"x": np.ones((2, 3), "f4"), "limit": np.array([trips], "i8")}, timeout)

    def exe_session(self, program):
        return _heddle.Executor(1).compile(program, self.scope._scope, ["mean_0.tmp_0"])

    def do_pairs_in_pairs(self):
        rng, x = self.rng, np.ones([2, 4], "f4")
        pair = Shaped((x, []))
        for _ in range(rng.choice([0, 1, 2, 3000, 100000])):
            pair = Shaped((pair, []))
        take = rng.choice([heddle.Tensor, self.model, lambda p: self.model.run({"x": p}),
                           lambda p: _heddle.Value.of_arrays([p]),
                           lambda p: heddle.Scope().set("x", p)])
        try:
            take(pair)
        finally:
            while isinstance(pair, Shaped):  # not within each other
                pair = pair[0]

    def do_buffers(self):
        rng = self.rng
        array = drawn(rng)
        tensor = heddle.Tensor(array)
        flags = (rng.choice([SIMPLE, ND, STRIDES, C_ORDER, F_ORDER, ANY_ORDER])
                 | rng.choice([0, FORMAT]) | rng.choice([0, WRITABLE]))
        view = PyBuffer()
        GET_BUFFER(tensor, ctypes.byref(view), flags)
        try:
            assert view.ndim == array.ndim and view.len == array.nbytes
            assert bool(view.shape) == (flags & ND == ND and array.ndim > 0)
            assert flags & FORMAT or not view.format
            if flags & F_ORDER == F_ORDER:
                assert array.flags.f_contiguous, "row-major memory was lent as column-major"
            if view.shape:
                assert tuple(view.shape[:array.ndim]) == array.shape
            if view.strides and array.size:
                steps = np.array(array.strides)[np.array(array.shape) > 1]
                lent = np.array(view.strides[:array.ndim])[np.array(array.shape) > 1]
                assert np.array_equal(steps, lent)
        finally:
            RELEASE_BUFFER(ctypes.byref(view))

    def do_layouts(self):
        rng = self.rng
        array = drawn(rng)
        other = laid_out(rng, array)
        other.flags.writeable = rng.randrange(2) == 1
        before = other.copy()
        tensor = rng.choice([heddle.Tensor, lambda a: heddle.Tensor(memoryview(a)), self.borrowed])(
            other)
        assert np.array_equal(tensor.numpy(), before), (other.shape, other.strides)
        del tensor
        x = laid_out(rng, np.arange(8, dtype="f4").reshape(2, 4) - 4)
        assert np.array_equal(self.model.run({"x": x})[0], np.maximum(x, 0))
        assert np.array_equal(other, before)

    def borrowed(self, array):
        return heddle.Tensor(array.__dlpack__(max_version=(1, 0))) if array.flags.aligned \
            else heddle.Tensor(array)

    def do_capsules(self):
        """Capsules made by hand: what they say is what NumPy sees, and they are given back once."""
        rng = self.rng
        array = laid_out(rng, drawn(rng))
        versioned, read_only = rng.randrange(2) == 1, rng.randrange(2) == 1
        m = (DlVersioned if versioned else DlFirst)()
        if versioned:
            m.major, m.minor, m.flags = 1, rng.randrange(5), int(read_only)
        size, given = array.dtype.itemsize, []
        m.deleter = DELETER(given.append)
        t = m.tensor
        t.byte_offset = rng.choice([0, 0, size, 64])
        t.data = array.ctypes.data - t.byte_offset if array.size else rng.choice([0, 64])
        t.device, t.ndim, t.lanes, t.bits = 1, array.ndim, 1, 8 * size
        t.code = {"i": 0, "u": 1, "f": 2, "c": 5}[array.dtype.kind]
        shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        steps = [s // size for s in array.strides]
        for k, d in enumerate(array.shape):  # one that no step is taken along, says anything
            if (d <= 1 or not array.size) and rng.randrange(2):
                steps[k] = rng.choice([0, -1, 7, (1 << 63) - 1, -(1 << 63), 1 << 61])
        strides = (ctypes.c_int64 * max(1, array.ndim))(*steps)
        t.shape = shape
        if not array.flags.c_contiguous or rng.randrange(2):
            t.strides = strides
        kind = rng.randrange(6)
        if kind == 0 and array.ndim and array.size > 1:  # beyond all memory
            k = max(range(array.ndim), key=lambda a: array.shape[a])
            strides[k] = rng.choice([(1 << 63) - 1, -(1 << 63), 1 << 61])
            t.strides = strides
        self.kept.append((m, shape, strides, array))  # while the capsule lives
        capsule = NEW_CAPSULE(ctypes.addressof(m), b"dltensor_versioned" if versioned
                              else b"dltensor", None)
        tensor = None
        try:
            tensor = heddle.Tensor(capsule)
            assert kind != 0 or array.size <= 1 or not array.ndim
            assert tensor.shape == array.shape and np.array_equal(tensor.numpy(), array)
            assert np.array_equal(heddle.Tensor(tensor).numpy(), array)
            try:
                heddle.Tensor(capsule)
                raise AssertionError("a capsule was taken twice")
            except ValueError:
                pass
            try:
                assert memoryview(tensor).readonly == (read_only or not versioned)
            except BufferError:
                pass  # with gaps
        finally:
            taken = tensor is not None
            del tensor, capsule
            heddle.Tensor(0.0)  # settles what was borrowed
            assert len(given) == int(taken), "a capsule was given back twice, or not at all"

    def do_mirrors(self):
        """The scope behind a mirror loses variables and gets others, in any order."""
        rng = self.rng
        scope = _heddle.Scope()
        names = [f"v{k}" for k in range(rng.randrange(1, 5))]
        mirror = _heddle.Mirror(scope)
        view = _heddle.MirrorView(mirror, names)
        if rng.randrange(2):
            del mirror
        arrays = {}
        for _ in range(rng.randrange(1, 12)):
            k, way = rng.randrange(len(names)), rng.randrange(8)
            if way == 0:
                array = np.arange(rng.choice([0, 1, 8, 1000]), dtype="f4")
                view.adopt(k, array.ctypes.data, "float32", list(array.shape), array)
                arrays[k] = array
            elif way == 1:
                scope.erase(names[k])
                arrays.pop(k, None)
            elif way == 2:
                scope.set(names[k], np.full(3, k, "f4"))
                arrays[k] = np.full(3, k, "f4")
            elif way == 3:
                view.before()
            elif way == 4:
                assert all(0 <= i < len(names) for i in view.after())
            elif way == 5:
                got = view.array(k)
                assert np.array_equal(got, arrays[k]) if k in arrays else got is None
            elif way == 6:
                at = rng.choice([-1, len(names), 1 << 40, 1 << 62])
                try:
                    rng.choice([view.array, view.name,
                                lambda i: view.adopt(i, 64, "float32", [0], None)])(at)
                    raise AssertionError(f"variable {at} of {len(names)}")
                except (IndexError, TypeError):
                    pass
            else:
                try:
                    view.adopt(k, rng.choice([0, 64]), rng.choice(["float32", "nothing"]),
                               rng.choice([[-1], [1 << 62, 4], [1] * 11, [1 << 32] * 3]), None)
                    raise AssertionError("memory that is none")
                except ValueError:
                    pass

    def do_scopes_in_scopes(self):
        rng = self.rng
        depth = rng.choice([1, 3, 1000, 100000])
        root = _heddle.Scope()
        root.set("a", np.ones(3, "f4"))
        held = [root]
        last = root
        for k in range(depth):
            last = last.new_scope()
            if rng.randrange(1 + depth // 3) == 0:
                held.append(last)
        assert last.has("a") and np.array_equal(last.get("a").numpy(), np.ones(3))
        last.set("b", np.zeros(1))
        assert last.version > 0 and not root.has("b")
        rng.shuffle(held)
        if rng.randrange(2):
            held.clear()
            del root
            assert last.has("a")
        else:
            del last
            while held:
                one = held.pop()
                assert one.has("a")

    def do_one_generator_in_threads(self):
        rng = self.rng
        b = heddle.build.Builder()
        b.fetch(b.op("gaussian_random", shape=[64], mean=0.0, std=1.0, seed=0, dtype=5))
        model = b.finish(threads=1)
        generator = heddle.Generator(7)

        def work(r):
            for _ in range(20):
                way = r.randrange(4)
                if way == 0:
                    generator.seed(r.randrange(9))
                elif way == 1:
                    generator.state = generator.state  # is one that was
                else:
                    out = model._session.run({}, None, False, generator)[0]
                    assert np.isfinite(out).all() and abs(out).max() < 10

        side_by_side(rng, 3, work)

    def do_overrides_that_raise(self):
        rng = self.rng
        raised = rng.choice([Odd, ValueError, KeyError, MemoryError, RecursionError, StopIteration])

        def fails(*_arguments, **_words):
            raise raised("by design")

        base = rng.choice([dict, list, np.ndarray, heddle.Tensor, int, str, tuple, bytearray])
        names = ["__iter__", "__len__", "__getitem__", "__array__", "__dlpack__", "items", "keys",
                 "shape", "lod", "__index__", "__float__", "__hash__", "__eq__", "__bool__",
                 "__array_finalize__", "__del__", "numpy", "dtype", "__getattribute__"]
        body = {name: rng.choice([fails, property(fails)]) for name in rng.sample(names, 2)}
        kind = type("Fails", (base,), body)
        x = np.arange(8, dtype="f4").reshape(2, 4)
        thing = x.view(kind) if base is np.ndarray else kind(x) if base in (heddle.Tensor, list) \
            else kind({"x": x}) if base is dict else kind()
        rng.choice([lambda: self.model.run(thing), lambda: self.model.run({"x": thing}),
                    lambda: self.model(thing), lambda: heddle.Tensor(thing),
                    lambda: heddle.Tensor((x, thing)), lambda: heddle.Tensor(x, "", thing),
                    lambda: _heddle.Value.of_arrays([thing]),
                    lambda: heddle.Scope().set("x", thing),
                    lambda: heddle.Scope().set(thing, x), lambda: self.model.plan({"x": thing}),
                    lambda: _heddle.MirrorView(_heddle.Mirror(_heddle.Scope()), thing)])()

    def do_runs_in_conversions(self):
        """A feed that runs the very model while it is converted."""
        model, rng = self.model, self.rng
        x = np.arange(8, dtype="f4").reshape(2, 4)
        depth = rng.choice([1, 3, 30])

        class Runs:
            def __init__(self, left):
                self.left = left

            def __array__(self, *_arguments, **_words):
                return model(Runs(self.left - 1)) if self.left else x

        assert np.array_equal(model(Runs(depth)), x)

    def do_scope_in_a_handler(self):
        """A handler of a signal wants what the run under way holds."""
        rng, scope = self.rng, self.scope._scope
        name = rng.choice(scope.names())
        wish = rng.choice([lambda: scope.get(name), lambda: scope.set(name, np.ones(1, "f4")),
                           lambda: scope.erase("nothing"), lambda: scope.has(name),
                           lambda: self.exe_session(heddle.Program.parse(self.main)),
                           lambda: self.loop(3), lambda: scope.new_scope().get(name),
                           lambda: heddle.Tensor([[1.0] * 1000] * 100), gc.collect,
                           lambda: heddle.ReaderQueue(1).put_into(scope, "queue"),
                           lambda: self.model(np.ones([2, 4], "f4"))])
        seen = []

        def handler(_number, _frame):
            try:
                wish()
                seen.append(None)
            except heddle.Error as error:
                seen.append(error)

        before = signal.signal(signal.SIGUSR1, handler)
        timer = threading.Timer(0.08, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        try:
            self.loop(10 ** 9, 0.25)
            raise AssertionError("it ended")
        except heddle.DeadlineExceeded:
            pass
        finally:
            timer.join()
            signal.signal(signal.SIGUSR1, before)
        assert len(seen) == 1, "the handler was not called"
        assert seen[0] is None or "the host makes" in str(seen[0]), seen
        assert np.isfinite(self.loop(3)[0])

    def do_queue_in_a_handler(self):
        """A handler of a signal uses the queue that the run under way waits for."""
        rng, folder = self.rng, Path(__file__).resolve().parent.parent / "executor" / "reader"
        scope = _heddle.Scope()
        startup = heddle.Program.load(str(folder / "startup.pdmodel"))
        _heddle.Executor(1).compile(startup, scope).run({})
        queue = heddle.ReaderQueue(2)
        queue.put_into(scope, "lod_tensor_blocking_queue_0")
        program = heddle.Program.load(str(folder / "main.pdmodel"))
        step = _heddle.Executor(1).compile(program, scope, [program.loss])
        batch = [np.ones([4, 4], "f4"), np.zeros([4, 1], "i8")]
        wish = rng.choice([lambda: queue.push(batch), queue.close, queue.reset, lambda: len(queue),
                           lambda: queue.closed, lambda: scope.has("nothing")])
        seen = []

        def handler(_number, _frame):
            wish()
            seen.append(1)

        def later():
            queue.push(batch)
            queue.close()

        before = signal.signal(signal.SIGUSR1, handler)
        timers = [threading.Timer(0.08, os.kill, (os.getpid(), signal.SIGUSR1)),
                  threading.Timer(0.2, later)]
        for timer in timers:
            timer.start()
        try:
            assert np.isfinite(step.run({})[0])
        except heddle.EndOfData:
            pass
        finally:
            for timer in timers:
                timer.join()
            signal.signal(signal.SIGUSR1, before)
        assert seen, "the handler was not called"

    def do_pickles(self):
        rng = self.rng
        thing = rng.choice([heddle.Tensor(np.ones(3)), self.model, self.model.program, self.scope,
                            heddle.Scope(), heddle.Generator(1), self.model._session,
                            self.model._executor, heddle.ReaderQueue(1), TensorWithoutInit(),
                            self.model.inputs[0], _heddle.Value.of_arrays([np.ones(2)]),
                            self.model.parameters, self.model.run({"x": np.ones([1, 4], "f4")})])
        way = rng.randrange(3)
        if way == 0:
            other = pickle.loads(pickle.dumps(thing, rng.randrange(6)))
        elif way == 1:
            other = copy.copy(thing)
        else:
            other = copy.deepcopy(thing)
        repr(other)
        rng.choice([lambda: memoryview(other), lambda: other.numpy(), lambda: other.names(),
                    lambda: other.state, lambda: list(other), lambda: other.inputs,
                    lambda: other(np.ones([1, 4], "f4")), lambda: heddle.Tensor(other)])()

    def do_bindings(self):
        rng = self.rng
        nodes = [onnx_model.node("Relu", ["x"], ["y"]), onnx_model.node("Neg", ["x"], ["z"])]
        data = onnx_model.model(nodes, [onnx_model.value("x", "float32", [2, 4])],
                                [onnx_model.value(n, "float32", [2, 4]) for n in "yz"])
        session = ort.InferenceSession(data)
        binding, x = session.io_binding(), np.arange(8, dtype="f4").reshape(2, 4) - 4
        binding.bind_cpu_input("x", x)
        bound = []
        for name in rng.sample(["y", "z"], rng.randrange(3)):
            way = rng.randrange(4)
            place = np.empty([2, 4], "f4")
            if way == 0:
                binding.bind_output(name)
            elif way == 1:
                binding.bind_output(name, "cpu", 0, np.float32, [2, 4], place.ctypes.data)
            elif way == 2:
                try:
                    binding.bind_output(name, "cpu", 0, rng.choice(["f4", "f8"]),
                                        rng.choice([[2, 4], [1 << 40, 1 << 40], [-2, -4], [1]]), 0)
                    raise AssertionError("address 0 was bound")
                except (RuntimeError, ValueError):
                    continue
            else:
                place.flags.writeable = False
                binding.bind_ortvalue_output(name, ort.OrtValue.ortvalue_from_numpy(place))
            bound.append(name)
        if rng.randrange(4) == 0:
            binding.clear_binding_outputs()
            bound.clear()
        try:
            session.run_with_iobinding(binding)
        except RuntimeError as error:
            assert not bound and "At least one output" in str(error)
            return
        assert bound, "no output was bound"
        for name, value in zip(bound, binding.copy_outputs_to_cpu()):
            assert np.array_equal(value, np.maximum(x, 0) if name == "y" else -x)

    def do_last_references(self):
        """What is shared goes in any order."""
        rng = self.rng
        model = model_of(2, rng.choice([1, 2]))
        x = np.arange(8, dtype="f4").reshape(2, 4)
        held = [model, model._session, model._executor, model.program, model.scope,
                model.run({"x": x}), model.run({"x": x}, lod=True), model.parameters,
                model.run_async({"x": x}), heddle.Tensor(x).__dlpack__(max_version=(1, 0))]
        del model
        rng.shuffle(held)
        while held:
            one = held.pop()
            if isinstance(one, _heddle.Session):
                assert np.array_equal(one.run({"x": x})[0], x)
            elif isinstance(one, list):
                assert np.array_equal(np.asarray(one[0]), x)
            del one
            if rng.randrange(3) == 0:
                gc.collect()


def main():
    seed, turns, scripts = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    lives = Lives(seed, scripts)
    for k in range(turns):
        act = lives.turn()
        print(k, act.__name__, file=sys.stderr, flush=True)
        signal.alarm(30)  # a turn that waits for itself
        try:
            act()
        except AssertionError:
            raise
        except (*ORDINARY, Odd, RecursionError, StopIteration, pickle.PicklingError) as error:
            text = io.StringIO()
            traceback.print_exception(type(error), error, None, file=text)
            assert "could not be translated" not in text.getvalue(), text.getvalue()
        lives.check()
        if k % 16 == 0:
            lives.kept.clear()
    signal.alarm(0)
    print("ok")


main()
