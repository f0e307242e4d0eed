"""Arrays, objects and numbers that no sensible program hands to the package, drawn from a seed."""

from __future__ import annotations

import array
import contextlib
import ctypes
import mmap

import numpy as np

import heddle
from heddle import _heddle

# What a wrong call may raise. RuntimeError and SystemError are those of broken bindings.
ORDINARY = (heddle.Error, TypeError, ValueError, BufferError, OverflowError, LookupError,
            MemoryError, AttributeError, OSError, EOFError)


class Odd(Exception):
    """What objects of this module raise from their methods."""


RNG_DTYPES = ["?", "u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "g", "c8",
              "c16", "G", ">f4", ">i8", "M8[s]", "m8[s]", "S3", "U2", "O", "V4"]


def odd_shape(rng):
    return [rng.choice([0, 1, 1, 2, 3, 4, 4, 4]) for _ in range(rng.choice([0, 1, 2, 2, 2, 3, 9]))]


def plain(rng, shape=None):
    x = np.random.default_rng(rng.getrandbits(32)).standard_normal(shape or [2, 4]).astype("f4")
    return x


class Raises:
    """An object whose methods misbehave."""

    def __init__(self, rng):
        self.how = rng.randrange(6)
        self.method = rng.choice(["__array__", "__dlpack__", "__len__", "__iter__", "__float__",
                                  "shape", "lod", "__array_interface__"])

    def __getattr__(self, name):
        if name != self.method and not (name == "lod" and self.how == 5):
            raise AttributeError(name)
        return self._odd if name not in ("shape", "lod", "__array_interface__") else self._value()

    def _value(self):
        return [None, -1, "shape", [[-1]], [[0, 1 << 70]], {}][self.how]

    def _odd(self, *_arguments, **_words):
        if self.how == 0:
            raise Odd("as asked")
        if self.how == 1:
            raise BufferError("as asked")
        return [None, None, 5, "text", self, np.zeros([2, 4], "f4")][self.how]


class WithMethods(Raises):
    """The same by methods of its type, where protocols look for them."""

    def __array__(self, *arguments, **words):
        if self.method == "__array__":
            return self._odd()
        return np.zeros([2, 4], "f4")

    def __dlpack__(self, **options):
        if self.method == "__dlpack__":
            return self._odd()
        return np.zeros([2, 4], "f4").__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


class Subclass(np.ndarray):
    pass


class TensorWithoutInit(heddle.Tensor):
    def __init__(self):  # pylint: disable=super-init-not-called
        pass


def odd_array(rng, folder):
    """(an object, the array of float32 that it stands for or None)"""
    kind = rng.randrange(34)
    x = plain(rng)
    if kind == 0:
        return x, x
    if kind == 1:
        x.flags.writeable = False
        return x, x
    if kind == 2:
        return np.asfortranarray(x), x
    if kind == 3:
        y = plain(rng, [5, 9])[::-2, ::-2]
        y = y[:, :4]
        return y, y
    if kind == 4:
        y = np.broadcast_to(x[:1], (rng.choice([1, 3]), 4))
        return y, y
    if kind == 5:
        y = np.lib.stride_tricks.as_strided(x, (1 << 40, 4), (0, 4))
        return y, None
    if kind == 6:
        y = plain(rng, [0, 4])
        return y, y
    if kind == 7:
        return np.asarray(plain(rng, [1, 1])[0, 0]), None
    if kind == 8:
        y = x.astype(">f4")
        return y, x
    if kind == 9:
        try:
            y = np.zeros(odd_shape(rng), rng.choice(RNG_DTYPES))
        except (TypeError, ValueError):
            y = np.zeros([2, 4], "f8")
        return y, y if y.dtype == "f4" and y.ndim == 2 and y.shape[1] == 4 else None
    if kind == 10:  # not at a multiple of its element's size
        raw = bytearray(33)
        y = np.frombuffer(raw, "f4", 8, 1).reshape(2, 4)
        return y, y
    if kind == 11:
        path = folder / f"map{rng.randrange(4)}"
        path.write_bytes(x.tobytes())
        y = np.memmap(path, "f4", rng.choice(["r", "r+", "c"]), 0, (2, 4))
        return y, y
    if kind == 12:
        return np.ma.masked_array(x, x > 0), None
    if kind == 13:
        return x.view(Subclass), x
    if kind == 14:
        return x.tolist(), x
    if kind == 15:
        return rng.choice([[[1.0], [1.0, 2.0]], [[1, "a"]], [None], [[]], [[[]]], []]), None
    if kind == 16:
        return rng.choice([0, -1, 1 << 70, 1.5, float("nan"), float("inf"), 1j, None, True, "text",
                           b"", b"1234", bytearray(16), "\ud800", ..., NotImplemented, type, {},
                           set(), range(4), iter([1]), (), (1,), (1, 2), (1, 2, 3)]), None
    if kind == 17:
        view = memoryview(x)
        if rng.randrange(2):
            view.release()
            return view, None
        return view, x
    if kind == 18:
        return memoryview(bytearray(x.tobytes())).cast("B").cast("f", (2, 4)), x
    if kind == 19:
        return array.array(rng.choice("bBhHiIlLqQfd"), [1] * 8), None
    if kind == 20:
        y = (ctypes.c_float * 4 * 2)()
        return y, np.zeros([2, 4], "f4")
    if kind == 21:
        c = rng.choice([ctypes.c_double, ctypes.c_bool, ctypes.c_char, ctypes.c_longlong,
                        ctypes.c_ushort, ctypes.c_void_p])
        return (c * 4 * 2)(), None
    if kind == 22:
        class Record(ctypes.Structure):
            _fields_ = [("a", ctypes.c_float), ("b", ctypes.c_int)]
        return (Record * 4)(), None
    if kind in (23, 24):
        return (Raises if rng.randrange(2) else WithMethods)(rng), None
    if kind == 25:
        offsets = rng.choice([[], [[]], [[0, 2]], [[0, 1, 2]], [[2, 0]], [[0, -1]], [[0, 99]],
                              [[0, 1 << 70]], [["a"]], [None], [[0.5]], [[0, 2]] * 20, "ab", [[0]]])
        return (x, rng.choice([tuple, list])(offsets)), None
    if kind == 26:
        return heddle.Tensor(x, "", rng.choice([None, [[0, 1, 2]], [[0, 99]]])), None
    if kind == 27:
        return rng.choice([heddle.Tensor.__new__(heddle.Tensor), TensorWithoutInit(),
                           _heddle.Value.__new__(_heddle.Value)]), None
    if kind == 28:
        capsule = x.__dlpack__() if rng.randrange(2) else x.__dlpack__(max_version=(1, 0))
        if rng.randrange(2):
            with contextlib.suppress(*ORDINARY):
                heddle.Tensor(capsule)
            return capsule, None
        return capsule, x
    if kind == 29:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p,
                                                       ctypes.c_void_p]
        name = rng.choice([b"other", b"used_dltensor", b"used_dltensor_versioned", b""])
        NAMES.append(name)  # capsules keep no copy
        return new(id(NAMES), name, None), None
    if kind == 30:
        return np.zeros([2, 4], [("a", "f4"), ("b", "i4")])["a"], np.zeros([2, 4], "f4")
    if kind == 31:
        return np.zeros([2, 8], "f4").view("c8"), None
    if kind == 32:
        return np.asarray(x, object), None
    with mmap.mmap(-1, 32) as area:
        if rng.randrange(2):
            return area, None  # closed
    return heddle.Tensor(heddle.Tensor(x).numpy()).numpy(), x


NAMES: list[bytes] = []

ODD_NAMES = ["x", "x", "x", "y", "", "X", "x\0", "\ud800", "a" * 100000, "w", None, 5, b"x", ("x",),
             "save_infer_model/scale_0.tmp_0"]
ODD_TIMES = [None, 0, -1, 1e-9, 1e300, float("inf"), float("-inf"), float("nan"), "1", [], 1 << 70,
             True]
ODD_NUMBERS = [0, 1, -1, 2, 1 << 31, -(1 << 31), (1 << 63) - 1, 1 << 63, 1 << 64, -(1 << 63), 1.5,
               float("nan"), None, "1", [], 1000000]
