"""Feeds and outputs have the element types that the model's file declares, whatever heddle holds
them in: drawn models, arrays and layouts."""

import importlib
import sys
import types

import numpy as np
import onnx_model as om
import pytest

import heddle

HELD = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}
SMALL = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
SAME = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")


def drawn_shape(rng):
    sizes = rng.choice([0, 1, 2, 3, 5], rng.integers(0, 5), p=[.1, .2, .3, .2, .2])
    return tuple(int(n) for n in sizes)


def drawn(rng, dtype, shape):
    """Numbers of the whole range, with the ends."""
    dtype = np.dtype(dtype)
    if dtype.kind in "fb":
        return np.asarray(rng.standard_normal(shape)).astype(dtype)
    info = np.iinfo(dtype)
    array = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    ends = rng.random(shape)
    return np.where(ends < .2, info.max, np.where(ends < .4, info.min, array)).astype(dtype)


def laid_out(rng, array):
    """The same numbers in another memory order."""
    way = rng.integers(6)
    if way == 1:
        return np.array(array, order="F")
    if way == 2 and array.ndim:
        wide = np.zeros([2 * n for n in array.shape], array.dtype)
        wide[tuple(slice(None, None, 2) for _ in array.shape)] = array
        return wide[tuple(slice(None, None, 2) for _ in array.shape)]
    if way == 3 and array.ndim:
        return array[::-1].copy()[::-1]
    if way == 4:
        return array.astype(array.dtype.newbyteorder(">"))
    if way == 5:
        array = array.copy()
        array.flags.writeable = False
    return array


def identity(dtype, shape):
    """A model of two inputs, one of them float32, that gives both back, the second one first."""
    nodes = [om.node("Identity", ["x"], ["y"]), om.node("Identity", ["f"], ["g"])]
    return om.model(nodes, [om.value("x", dtype, shape), om.value("f", "float32", [1])],
                    [om.value("g", "float32", [1]), om.value("y", dtype, shape)], opset=25)


@pytest.fixture(scope="module", params=["extension", "C interface"])
def package(request):
    """What parses models: the package itself, and what Pythons without the extension have."""
    if request.param == "extension":
        return heddle
    from pathlib import Path
    library = Path(heddle.__file__).parents[2] / "libheddle_c.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    import ctypes
    plain = ctypes.CDLL
    ctypes.CDLL = lambda _: plain(str(library))
    try:
        sys.modules.pop("heddle._plain", None)
        return importlib.import_module("heddle._plain")
    finally:
        ctypes.CDLL = plain


def same(got, want):
    return got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", [*HELD, *SAME])
def test_arrays_come_and_go_in_the_declared_type(package, dtype):
    rng = np.random.default_rng(sum(dtype.encode()))
    f = np.array([1.5], np.float32)
    for k in range(24):
        shape = drawn_shape(rng)
        x = drawn(rng, dtype, shape)
        model = package.parse(identity(dtype, [f"n{i}" for i in range(len(shape))]), threads=1,
                              opt_level=k % 3)
        assert [i.dtype for i in model.inputs] == [dtype, "float32"]
        assert [o.dtype for o in model.outputs] == ["float32", dtype]
        if package is heddle:
            assert [i.dtype for i in model.program.inputs] == [dtype, "float32"]
            assert [o.dtype for o in model.program.outputs] == ["float32", dtype]
        fed = laid_out(rng, x)
        before = fed.tobytes()
        for out in (model(fed, f), model(x=fed, f=f), model.run({"f": f, "x": fed})):
            assert same(out[1], x) and same(out[0], f), (dtype, shape)
        assert fed.tobytes() == before
        if package is heddle:
            assert same(model.run_async({"x": fed, "f": f}).result()["y"], x)
            assert not x.size or same(model(x.tolist(), f)[1], x)
            assert same(model.run({"x": fed, "f": f}, timeout=60)[1], x)
            only = package.parse(identity(dtype, list(shape)), fetch=["y"])
            assert same(only.run({"x": fed, "f": f})[0], x)
            assert dtype in repr(model)
            model.plan(shapes={"x": shape})


@pytest.mark.parametrize("dtype", HELD)
def test_numbers_in_the_held_type_are_in_range(package, dtype):
    rng = np.random.default_rng(3)
    f = np.zeros(1, np.float32)
    held = np.iinfo(HELD[dtype])
    top = min(np.iinfo(dtype).max, held.max)
    for _ in range(20):
        shape = drawn_shape(rng)
        model = package.parse(identity(dtype, [f"n{i}" for i in range(len(shape))]), threads=1)
        x = np.asarray(rng.integers(0, top, shape, np.int64, endpoint=True)).astype(HELD[dtype])
        assert same(model(x, f)[1], x.astype(dtype))
        bad = [-1] if dtype == "uint64" else [-1, top + 1, held.min]
        if x.size:
            x = x.copy()
            x.flat[rng.integers(x.size)] = bad[rng.integers(len(bad))]
            said = rf"feed 'x' holds -?\d+, which {dtype} "
            with pytest.raises(heddle.InvalidArgument, match=said):
                model(x, f)
        with pytest.raises(heddle.InvalidArgument, match=f"feed 'x' has dtype float32; {dtype}"):
            model(np.zeros(shape, np.float32), f)
    for number in (-1, 2**64, 1.5, float("nan"), float("inf")):
        with pytest.raises(heddle.InvalidArgument, match="which uint"):
            package.parse(identity(dtype, []))(number, f)
    with pytest.raises(TypeError, match="'x'"):
        package.parse(identity(dtype, [2]))(["text", None], f)


@pytest.mark.parametrize("dtype", SMALL)
def test_small_integers_come_in_bytes_of_either_sign(package, dtype):
    rng = np.random.default_rng(4)
    low, high = SMALL[dtype]
    held = "uint8" if dtype.startswith("u") else "int8"
    for _ in range(20):
        shape = drawn_shape(rng)
        names = [f"n{i}" for i in range(len(shape))]
        model = package.parse(identity(dtype, names), threads=1)
        f = np.zeros(1, np.float32)
        x = rng.integers(low, high, shape, np.int8, endpoint=True)
        assert same(model(np.asarray(x).astype(held), f)[1], np.asarray(x).astype(held))
        x = np.abs(np.asarray(x)) % (high + 1)
        for given in ("int8", "uint8"):
            assert same(model(x.astype(given), f)[1], x.astype(held))
        for given, number in (("int8", low - 1), ("int8", high + 1), ("uint8", high + 1)):
            if x.size:
                bad = np.array(x, given)
                bad.flat[0] = np.array(number).astype(given)
                with pytest.raises(heddle.InvalidArgument, match=f"which {dtype} cannot hold"):
                    model(bad, f)


@pytest.mark.parametrize("dtype", [*HELD, *SAME])
def test_predictors_take_and_give_the_declared_type(dtype, tmp_path):
    from heddle import inference
    rng = np.random.default_rng(5)
    f = np.zeros(1, np.float32)
    for _ in range(6):
        shape = drawn_shape(rng)
        x = drawn(rng, dtype, shape)
        (tmp_path / "m.onnx").write_bytes(identity(dtype, [f"n{i}" for i in range(len(shape))]))
        predictor = inference.create_predictor(inference.Config(str(tmp_path / "m.onnx")))
        predictor.get_input_handle("x").copy_from_cpu(laid_out(rng, x))
        predictor.get_input_handle("f").copy_from_cpu(f)
        predictor.run()
        assert same(predictor.get_output_handle("y").copy_to_cpu(), x), (dtype, shape)
        assert same(predictor.run([x, f])[1], x), (dtype, shape)


def test_unsigned_64_bits_are_fed_where_they_lie():
    x = np.array([2**63, 2**64 - 1, 5], np.uint64)
    from heddle import _convert
    for array in (x, x[::2], x[::-1], np.asfortranarray(x.reshape(3, 1))):
        held = _convert.to_held(array, "uint64", "x")
        assert np.shares_memory(held, array) and held.dtype == np.int64
        assert np.shares_memory(_convert.from_held(held, "uint64"), array)


def test_pairs_and_other_arrays_are_taken():
    import array as plain_array
    x = np.array([7, 2**32 - 1], np.uint32)
    f = np.zeros(1, np.float32)
    model = heddle.parse(identity("uint32", ["n"]))
    wrapped = types.SimpleNamespace(__dlpack__=x.__dlpack__, __dlpack_device__=x.__dlpack_device__)
    for given in (memoryview(x), plain_array.array("I", x), (x, [[0, 1, 2]]), wrapped,
                  heddle.Tensor(x.astype(np.int64))):
        assert same(model(given, f)[1], x)
    outputs = model.run({"x": (x, [[0, 1, 2]]), "f": f}, lod=True)
    assert outputs["y"].lod == [[0, 1, 2]] and outputs["y"].numpy().tolist() == x.tolist()


def test_texts_are_fed_as_arrays_of_texts():
    model = heddle.parse(identity("string", ["n"]))
    out = model(np.array(["a", "", "日本"]), np.zeros(1, np.float32))[1]
    assert out.tolist() == ["a", "", "日本"]
    with pytest.raises(TypeError, match="no array of strings"):
        model(np.zeros(2), np.zeros(1, np.float32))
