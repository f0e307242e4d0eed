"""Memory that belongs to somebody else: the right to write to it, how often it is taken, how long
it lives."""

import ctypes
import gc
import mmap
import os
import random
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import heddle

DTYPES = ["bool", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]
TURNS = int(os.environ.get("HEDDLE_FOREIGN_TURNS", "600"))


class Producer:
    """An array as another framework's; `form` is that of its capsule."""

    def __init__(self, array, form):
        self.array, self.form = array, form

    def __dlpack__(self, **options):
        if self.form == "first":
            if options:
                raise TypeError("no such argument")
            return self.array.__dlpack__()
        return self.array.__dlpack__(max_version=(1, 0))

    def __dlpack_device__(self):
        return (1, 0)


def sources(rng, path):
    """(what lends, whether it may be written to, what keeps its bytes)"""
    dtype = np.dtype(rng.choice(DTYPES))
    shape = [rng.randrange(0, 5) for _ in range(rng.randrange(0, 4))]
    count = int(np.prod(shape))
    raw = bytes(rng.getrandbits(1) for _ in range(count * dtype.itemsize))
    array = np.frombuffer(bytearray(raw), dtype, count).reshape(shape) if count else \
        np.zeros(shape, dtype)
    kind = rng.randrange(9)
    if kind == 0:
        return array, True
    if kind == 1:
        array.flags.writeable = False
        return array, False
    if kind == 2:
        view = array.view()
        view.flags.writeable = False
        return view, False
    if kind == 3:
        return (np.frombuffer(raw, dtype, count).reshape(shape), False) if count else (array, True)
    if kind == 4:
        path.write_bytes(raw + b"end")
        return (np.memmap(path, dtype, "r", 0, tuple(shape)), False) if count else (array, True)
    if kind == 5:
        return memoryview(array).toreadonly(), False
    if kind == 6:
        return bytes(raw), False
    if kind == 7:
        return bytearray(raw), True
    if dtype.kind == "b":
        return array, True
    if rng.randrange(2):
        return Producer(array, "versioned"), True
    return Producer(array, "first"), False  # which does not say


def is_writable_by(view):
    return not memoryview(view).readonly


def test_rights_stay_with_the_memory(tmp_path):
    rng = random.Random(1)
    refused = 0
    for turn in range(TURNS):
        source, writable = sources(rng, tmp_path / "bytes")
        tensor = heddle.Tensor(source)
        assert is_writable_by(tensor) == writable, (turn, source)
        array = tensor.numpy()
        assert array.flags.writeable == writable or array.size == 0, (turn, source)
        for again in map(heddle.Tensor, (tensor, array, memoryview(tensor))):
            assert is_writable_by(again) == writable, (turn, source)
        if array.dtype.kind != "b":
            through = np.from_dlpack(tensor)
            assert through.flags.writeable == writable or array.size == 0, (turn, source)
            if not writable:
                refused += 1
                for options in ({}, {"max_version": None}, {"max_version": (0, 8)}):
                    with pytest.raises(BufferError, match="read-only"):
                        tensor.__dlpack__(**options)
        if not writable:
            with pytest.raises((BufferError, TypeError)):
                (ctypes.c_char * tensor.nbytes).from_buffer(tensor)
            if array.size:
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 1
                with pytest.raises(ValueError):
                    array.flags.writeable = True
    assert refused > TURNS // 10


def hands_on(level):
    """A program whose outputs may lie in its input's memory."""
    b = heddle.build.Builder()
    x = b.feed("x", "float32", [-1, 4])
    y = b.op("assign", X=x)
    z = b.op("reshape2", X=x, shape=[-1, 2, 2])
    w = b.op("slice", Input=x, axes=[0], starts=[1], ends=[2])
    b.fetch(x, y, z["Out"] if isinstance(z, dict) else z, w)
    return b.finish(threads=1, opt_level=level)


def test_outputs_over_foreign_memory_have_its_rights():
    for level in (0, 1, 2):
        model = hands_on(level)
        for writable in (True, False):
            for x in (np.arange(8, dtype="f4").reshape(2, 4),
                      np.asfortranarray(np.arange(8, dtype="f4").reshape(2, 4))):
                before = x.copy()
                x.flags.writeable = writable
                for out in model.run({"x": x}):
                    if np.shares_memory(out, x):
                        assert out.flags.writeable == writable
                    else:
                        out[...] = 7
                assert np.array_equal(x, before)


def test_a_capsule_is_taken_once():
    x = np.arange(24, dtype="f4").reshape(2, 3, 4)
    for form in ("first", "versioned"):
        for lend in (lambda c: c, Kept):
            gc.collect()
            references = sys.getrefcount(x)
            capsule = Producer(x, form).__dlpack__()
            tensor = heddle.Tensor(lend(capsule))
            assert np.array_equal(tensor.numpy(), x)
            for _ in range(3):
                with pytest.raises(ValueError, match="was taken before"):
                    heddle.Tensor(lend(capsule))
            del tensor, capsule
            heddle.Tensor(np.zeros(1))  # settles what was borrowed
            gc.collect()
            assert sys.getrefcount(x) == references


class Kept:
    """Gives the same capsule each time."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("damage", ["ndim", "shape", "dtype", "device", "null", "version"])
def test_capsules_that_lie_are_refused(damage):
    """Each field of a capsule set to what no array has; the capsule keeps what was not taken."""
    class Managed(ctypes.Structure):
        _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                    ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                    ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
                    ("device", ctypes.c_int32), ("device_id", ctypes.c_int32),
                    ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                    ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                    ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    x = np.arange(6, dtype="f4").reshape(2, 3)
    references = sys.getrefcount(x)
    capsule = x.__dlpack__(max_version=(1, 0))
    m = Managed.from_address(pointer(capsule, b"dltensor_versioned"))
    kept = {name: getattr(m, name) for name in ("ndim", "bits", "device", "data", "major")}
    dim = m.shape[0]
    for value in {"ndim": (-1, 11, 1 << 30), "shape": (-1, 1 << 62), "dtype": (7, 128),
                  "device": (2, 13), "null": (None,), "version": (2, 9)}[damage]:
        if damage == "shape":
            m.shape[0] = value
        else:
            setattr(m, {"dtype": "bits", "null": "data", "version": "major"}.get(damage, damage),
                    value)
        with pytest.raises((ValueError, TypeError)):
            heddle.Tensor(capsule)
        m.shape[0] = dim
        for name, was in kept.items():
            setattr(m, name, was)
    assert np.array_equal(heddle.Tensor(capsule).numpy(), x)
    del capsule
    heddle.Tensor(np.zeros(1))
    assert sys.getrefcount(x) == references


def test_lenders_live_as_long_as_what_they_lent():
    """Tensors, arrays, views and capsules are dropped in any order, by several threads."""
    def turn(seed):
        rng = random.Random(seed)
        x = np.full(64, seed, "f4")
        gone = weakref.ref(x)
        held = [x]
        del x
        for _ in range(12):
            last = rng.choice(held)
            held.append(rng.choice([heddle.Tensor, lambda a: memoryview(a), np.asarray,
                                    np.from_dlpack])(
                last if not isinstance(last, memoryview) else np.asarray(last)))
            if len(held) > 2 and rng.randrange(2):
                held.pop(rng.randrange(len(held)))
            assert np.all(np.asarray(rng.choice(held)) == seed)
        held.clear()
        last = None
        return gone

    gone, failures = [], []

    def work(first):
        try:
            gone.extend(turn(seed) for seed in range(first, first + 40))
        except BaseException as error:  # pylint: disable=broad-exception-caught
            failures.append(error)

    threads = [threading.Thread(target=work, args=(40 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    heddle.Tensor(np.zeros(1))
    gc.collect()
    assert not any(reference() is not None for reference in gone)


SCRIPT = """
import os, sys, threading
import numpy as np
import heddle
b = heddle.build.Builder()
x = b.feed("x", "float32", [-1, 4])
b.fetch(b.op("relu", X=x))
model = b.finish(threads=2)
a = np.ones([2, 4], "f4")
a.flags.writeable = False
kept = [heddle.Tensor(a), heddle.Tensor(bytes(64)), heddle.Tensor(a).__dlpack__(max_version=(1, 0)),
        memoryview(heddle.Tensor(a))]
outputs = model.run({"x": a})  # whose memory goes back to a pool that other threads use, too
stop = False
def work():
    while not stop:
        model.run({"x": np.ones([2, 4], "f4")}); heddle.Tensor(bytes(64)).numpy()
threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
for t in threads: t.start()
if sys.argv[1] == "fork":
    for _ in range(20):
        child = os.fork()
        if child == 0:
            for k in range(50): heddle.Tensor(bytes(64)).numpy(); kept.append(heddle.Tensor(a))
            kept.clear()
            os._exit(0 if heddle.Tensor(bytes(8)).nbytes == 8 else 1)
        assert os.waitpid(child, 0)[1] == 0
if sys.argv[1] == "cycle":
    class Cycle: pass
    c = Cycle(); c.me = c; c.kept = kept, outputs
if sys.argv[1] != "daemons":
    stop = True
    for t in threads: t.join()
print("ok")
"""


@pytest.mark.parametrize("way", ["plain", "fork", "cycle", "daemons"])
def test_interpreters_end_and_fork_with_loans(way):
    made = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT, way], text=True,
                          capture_output=True, timeout=120, check=False)
    assert made.returncode == 0 and made.stdout.strip() == "ok", made.stderr


def test_maps_that_are_read_only_end_no_process(tmp_path):
    """The first attack on it: a write through a view ended the process."""
    np.save(tmp_path / "x.npy", np.zeros(1024, "f4"))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    for view in (heddle.Tensor(x).numpy(), np.asarray(memoryview(heddle.Tensor(x)))):
        with pytest.raises(ValueError):
            view[0] = 1
    with open(tmp_path / "x.npy", "rb") as file, \
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as area:
        tensor = heddle.Tensor(area)
        assert memoryview(tensor).readonly
        del tensor
        heddle.Tensor(np.zeros(1))
