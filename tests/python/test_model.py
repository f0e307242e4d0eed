"""heddle.load and Model: arrays in, arrays out."""

import gc
import os
import threading
import weakref
from xml.etree import ElementTree

import numpy as np
import onnx_model as om
import pytest

import heddle
from heddle.build import Builder


@pytest.fixture(scope="module")
def model(digits):
    return heddle.load(digits[0], threads=2)


def test_answers_of_all_ways_to_run(model, digits):
    x = digits[1]
    want = [8, 5, 5, 1]
    assert model.run({"x": x})[0].argmax(-1).tolist() == want
    assert model(x).argmax(-1).tolist() == want
    assert model(x=x).argmax(-1).tolist() == want
    assert model.run_async({"x": x}).result()[0].argmax(-1).tolist() == want
    assert model(x.tolist()).argmax(-1).tolist() == want


def test_outputs_by_name(model, digits):
    out = model.run({"x": digits[1]})
    name = model.outputs[0].name
    assert out[name] is out[0]
    assert dict(out.items()).keys() == {name}
    with pytest.raises(KeyError, match="no output 'z'"):
        out["z"]


def test_declarations(model):
    (x,), (y,) = model.inputs, model.outputs
    assert (x.name, x.dtype, x.shape) == ("x", "float32", (-1, 1, 8, 8))
    assert (y.dtype, y.shape) == ("float32", (-1, 10))
    assert "float32" in repr(model) and "float32" in model._repr_html_()


def test_outputs_own_their_memory(model, digits):
    first = model(digits[1])
    kept = first.copy()
    model(digits[1] * 0)
    assert np.array_equal(first, kept)
    first[:] = 0  # writable: nobody else has it
    assert np.array_equal(model(digits[1]), kept)


def test_tensor_shares_memory_both_ways(digits):
    x = digits[1]
    tensor = heddle.Tensor(x)
    assert np.shares_memory(tensor.numpy(), x)
    assert tensor.address == x.ctypes.data
    assert np.shares_memory(np.from_dlpack(tensor), x)
    assert np.array_equal(np.asarray(memoryview(tensor)), x)


class _OnlyDlpack:
    """An array as another framework's, seen through __dlpack__ alone."""

    def __init__(self, array):
        self._array = array
        self.asked = 0

    def __dlpack__(self, **options):
        self.asked += 1
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_dlpack_in(model, digits):
    foreign = _OnlyDlpack(digits[1])
    assert np.array_equal(model(foreign), model(digits[1]))
    assert foreign.asked == 1
    tensor = heddle.Tensor(foreign)
    assert tensor.address == digits[1].ctypes.data


@pytest.mark.parametrize("view", [
    lambda x: np.asfortranarray(x),
    lambda x: np.repeat(x, 2, axis=0)[::2],
    lambda x: x[:, :, ::-1][:, :, ::-1],
    lambda x: x.astype(">f4"),
    lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view("f4").reshape(x.shape),
])
def test_any_layout(model, digits, view):
    assert np.array_equal(model(view(digits[1])), model(digits[1]))


def test_memory_is_given_back(model):
    x = np.zeros([1, 1, 8, 8], "float32")
    import sys
    before = sys.getrefcount(x)
    for _ in range(3):
        model(x)
    model(np.zeros([1, 1, 8, 8], "float32"))
    assert sys.getrefcount(x) == before


@pytest.mark.parametrize("feeds, kind, message", [
    ({"y": np.zeros(1)}, heddle.InvalidArgument, "no input 'y'; the inputs are 'x'"),
    ({}, heddle.InvalidArgument, "input 'x' is not fed"),
    ({"x": np.zeros([1, 1, 8, 8])}, heddle.InvalidArgument, "float64; float32 is expected"),
    ({"x": np.zeros([1, 1, 8, 9], "f4")}, heddle.InvalidArgument, "dimension 3 is 9"),
    ({"x": np.zeros([8, 8], "f4")}, ValueError, "rank 2"),
    ({"x": "text"}, TypeError, "'x'"),
    ({"x": np.zeros([1, 1, 8, 8], "u4")}, TypeError, "uint32"),
    ({"x": [[1, 2], [3]]}, TypeError, "'x'"),
    ({"x": np.zeros([1] * 12, "f4")}, ValueError, "rank 12"),
    ({1: np.zeros(1)}, TypeError, "names of feeds"),
])
def test_wrong_feeds(model, feeds, kind, message):
    with pytest.raises(kind, match=message):
        model.run(feeds)


def test_errors_tell_the_operator(tmp_path, digits):
    model = heddle.load(digits[0])
    with pytest.raises(heddle.Error) as caught:
        model.run({"x": np.full([1, 1, 8, 8], np.nan, "float32")}, check_nan_inf=True)
    error = caught.value
    assert error.code == "OUT_OF_RANGE" and isinstance(error, IndexError)
    assert error.op_type and error.op_index >= 0 and error.block == 0 and len(error.variables) == 1
    assert error.variables[0] in str(error) and error.op_type in str(error)
    with pytest.raises(heddle.NotFound, match="absent"):
        heddle.load(tmp_path / "absent")
    with pytest.raises(heddle.NotFound, match="cannot fetch 'nothing'"):
        heddle.load(digits[0], fetch=["nothing"])
    with pytest.raises(TypeError, match="no option 'thread'"):
        heddle.load(digits[0], thread=1)
    with pytest.raises(ValueError, match="schedule 'fast'"):
        heddle.load(digits[0], schedule="fast")
    (tmp_path / "cut.pdmodel").write_bytes((digits[0] / "model.pdmodel").read_bytes()[:100])
    with pytest.raises(heddle.DataLoss):
        heddle.load(tmp_path / "cut.pdmodel")


def test_timeout(model, digits):
    with pytest.raises(heddle.DeadlineExceeded):
        model.run({"x": digits[1]}, timeout=0)
    assert model.run({"x": digits[1]}, timeout=60)[0].shape == (4, 10)


def test_memory_limit(digits):
    with pytest.raises(heddle.ResourceExhausted) as error:
        heddle.load(digits[0], memory_limit=16)(digits[1])
    assert error.value.op_type, "the operator that wants the memory is named"


def test_options(digits):
    want = heddle.load(digits[0], threads=1)(digits[1])
    for options in ({"opt_level": 0}, {"deterministic": True}, {"schedule": "lanes", "threads": 2},
                    {"schedule": "parallel", "threads": 2}, {"memory_limit": 1 << 26},
                    {"lean": True}, {"outline": True}, {"threads": 1, "runs_at_once": 2},
                    {"schedule": "lanes", "threads": 2, "reuse": "edges"},
                    {"max_shapes": {"x": (8, 1, 8, 8)}}):
        assert np.allclose(heddle.load(digits[0], **options)(digits[1]), want, 1e-5, 1e-6)
    with pytest.raises(ValueError, match="reuse 'all'"):
        heddle.load(digits[0], reuse="all")
    with pytest.raises(ValueError, match="rank 11"):
        heddle.load(digits[0], max_shapes={"x": [1] * 11})
    with pytest.raises(heddle.InvalidArgument, match="no input 'y'"):
        heddle.load(digits[0], max_shapes={"y": [1]})
    inner = heddle.load(digits[0], fetch=["conv2d_0.tmp_0"])
    assert inner(digits[1]).shape[:2] == (4, want.shape[0] * 0 + inner.outputs[0].shape[1])


def test_packed_weights(digits, tmp_path):
    want = heddle.load(digits[0])(digits[1])
    sizes = []
    for _ in range(2):  # makes the file, then uses it
        assert np.array_equal(heddle.load(digits[0], packed_weights=tmp_path / "packed")(digits[1]),
                              want)
        sizes.append((tmp_path / "packed").stat().st_size)
    assert sizes[0] == sizes[1]


def test_unknown_precision(digits):
    with pytest.raises(ValueError, match="f32, bf16, int8 or int8-products"):
        heddle.load(digits[0], precision="int4")


def test_parameters(digits):
    model = heddle.load(digits[0])
    want = model(digits[1])
    name = next(iter(model.parameters))
    weight = model.parameters[name]
    assert len(model.parameters) == 10 and weight.dtype == np.float32
    weight[:] = 7  # a copy
    assert np.array_equal(model(digits[1]), want)
    for key, value in model.parameters.items():
        model.parameters[key] = np.zeros_like(value)
    assert np.allclose(model(digits[1]), 0.1)
    with pytest.raises(ValueError, match="shape"):
        model.parameters[name] = np.zeros([1, 2, 3], "float32")
    with pytest.raises(ValueError, match="dtype float32, not float64"):
        model.parameters[name] = np.zeros_like(weight, "float64")
    with pytest.raises(KeyError, match="no parameter 'w'"):
        model.parameters["w"]


def test_parameters_are_set_during_runs():
    """Each run has one value of the parameter, which it adds twenty times."""
    b = Builder()
    size, times = 1 << 18, 20
    y = b.feed("x", "float32", [size])
    w = b.parameter("w", np.zeros(size, "float32"))
    for _ in range(times):
        y = b.op("elementwise_add", X=y, Y=w)
    b.fetch(y)
    model = b.finish(threads=2, opt_level=0)
    feed = {"x": np.zeros(size, "float32")}
    values, running = [], [True]

    def run():
        out = model.run(feed)[0]
        return float(out[0]) / times if out.min() == out.max() else None

    def runs():
        values.extend(run() for _ in range(30))
        running.clear()

    thread = threading.Thread(target=runs)
    thread.start()
    k = 0
    while running:
        k = (k + 1) % 50
        model.parameters["w"] = np.full(size, k, "float32")
    thread.join()
    assert len(values) == 30 and all(value in range(50) for value in values)
    assert run() == k


def test_parameters_to_a_file_and_back(digits, tmp_path):
    model = heddle.load(digits[0])
    want = model(digits[1])
    model.save_parameters(tmp_path / "p.pdiparams")
    assert (tmp_path / "p.pdiparams").read_bytes() == (digits[0] / "model.pdiparams").read_bytes()
    for name, value in model.parameters.items():
        model.parameters[name] = value * 0
    model.load_parameters(tmp_path / "p.pdiparams")
    assert np.array_equal(model(digits[1]), want)


def test_plan_and_profile(model, digits):
    text = model.plan(shapes={"x": (2, 1, 8, 8)})
    assert "float32[2, 1, 8, 8]" in text and "conv2d" in text
    assert model.plan_stats({"x": digits[1]})["static_shapes"] is True
    profile = model.profile({"x": digits[1]})
    assert len(profile.events) == model.plan_stats({"x": digits[1]})["instructions"]
    assert profile.report["run_us"] > 0 and "conv2d" in str(profile)


def test_notebook_display(model, digits):
    def parsed(text):
        return ElementTree.fromstring(f"<div>{text}</div>")

    summary = parsed(model._repr_html_())
    assert {"conv2d", "x", "float32"} <= {cell.text for cell in summary.iter("td")}
    plan = model.plan({"x": digits[1]})
    stats = model.plan_stats({"x": digits[1]})
    assert len(plan.steps) == stats["instructions"] and isinstance(plan, str)
    svg = "{http://www.w3.org/2000/svg}"
    picture = parsed(plan._repr_html_())
    boxes = list(picture.iter(svg + "rect"))
    assert len(boxes) == len(plan.steps)
    places = {(float(box.get("x")), float(box.get("y"))) for box in boxes}
    assert len(places) == len(boxes)  # none upon another
    # Lines go down, from results to who reads them; every instruction of a chain has one.
    lines = list(picture.iter(svg + "path"))
    assert len(lines) >= len(boxes) - 1
    profile = model.profile({"x": digits[1]})
    chart = parsed(profile._repr_html_())
    bars = [float(bar.get("width")) for bar in chart.iter(svg + "rect")]
    spent = [us for _, _, us in profile.by_op()]
    assert len(bars) == len(spent)
    assert all(abs(bar - max(1, 360 * us / spent[0])) < 0.1 for bar, us in zip(bars, spent))


def test_trace_file(model, digits, tmp_path):
    import json
    model.profile({"x": digits[1]}).save_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())


def test_four_threads_on_one_model(model, digits):
    x, wrong = digits[1], []
    want = {n: model(x[:n].copy()) for n in (1, 2, 3, 4)}

    def work(n):
        for _ in range(50):
            if not np.allclose(model(x[:n].copy()), want[n], 1e-5, 1e-6):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_operators_are_described():
    assert "softmax" in heddle.supported_ops()
    assert "axis" in heddle.describe_op("softmax")
    with pytest.raises(heddle.NotFound):
        heddle.describe_op("no_such_op")


def test_half_precision_arrays():
    half = heddle.Tensor(np.array([1.5, -2], "float16"))
    assert half.dtype == "float16" and half.numpy().tolist() == [1.5, -2]
    bits = np.array([0x3FC0, 0xC000], "uint16")  # 1.5 and -2 as bfloat16
    brain = heddle.Tensor(bits)
    assert brain.dtype == "bfloat16" and brain.numpy().view("uint16").tolist() == bits.tolist()
    assert heddle.Tensor([1.5, -2], "bfloat16").numpy().view("uint16").tolist() == bits.tolist()
    with pytest.raises(heddle.Error):
        heddle.describe_op("")


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    brain = heddle.Tensor(np.array([1.5, -2], ml_dtypes.bfloat16))
    assert brain.dtype == "bfloat16" and brain.numpy().dtype == ml_dtypes.bfloat16
    assert brain.numpy().astype("f4").tolist() == [1.5, -2]


@pytest.mark.parametrize("array", [np.zeros([0, 3], "f4"), np.array(3.0), np.array(True),
                                   np.arange(4, dtype="c8"), np.arange(6).reshape(2, 3).T])
def test_arrays_of_all_kinds(array):
    back = heddle.Tensor(array).numpy()
    assert back.shape == array.shape and back.dtype == array.dtype and np.array_equal(back, array)


def test_sequence_offsets():
    tensor = heddle.Tensor(np.zeros([5, 2]), lod=[[0, 2, 5]])
    assert tensor.lod == [[0, 2, 5]]
    assert heddle.Tensor((np.zeros([5, 2]), [[0, 5]])).lod == [[0, 5]]


@pytest.mark.parametrize("option", ["opt_level", "threads", "plan_cache", "runs_at_once"])
def test_options_out_of_range_are_refused(digits, option):
    for number in (-1, -2**31, *([3, 7] if option == "opt_level" else [])):
        said = f"^INVALID_ARGUMENT: {option} is {number};"
        with pytest.raises(heddle.InvalidArgument, match=said):
            heddle.load(digits[0], **{option: number})


def test_arrays_beyond_the_inputs_are_refused(model, digits):
    x = digits[1]
    for call in (lambda: model(x, x), lambda: model(x, x, x=x)):
        with pytest.raises(TypeError, match="the model takes 1 inputs"):
            call()


def test_options_hold_for_runs_with_offsets(model, digits):
    with pytest.raises(heddle.DeadlineExceeded):
        model.run({"x": digits[1]}, timeout=0, lod=True)
    with pytest.raises(heddle.OutOfRange):
        model.run({"x": digits[1] * np.nan}, check_nan_inf=True, lod=True)


class _Array(np.ndarray):
    """An array that can be referred to weakly."""


@pytest.mark.parametrize("run", [lambda m, x: m.run({"x": x}), lambda m, x: m(x),
                                 lambda m, x: m.run({"x": x}, lod=True)])
def test_feeds_are_let_go_of_after_a_run(model, digits, run):
    array = digits[1].copy().view(_Array)
    alive = weakref.ref(array)
    run(model, array)
    del array
    gc.collect()
    assert alive() is None
    memory = bytearray(digits[1].tobytes())
    run(model, np.frombuffer(memory, "float32").reshape(digits[1].shape))
    memory.append(0)  # nobody looks at it any more


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, "u1"),
                                  lambda b: memoryview(b[::-1])[::-1]])
def test_files_in_memory_are_any_buffers(digits, kind):
    folder, x = digits
    program, params = ((folder / f"model.{end}").read_bytes() for end in ("pdmodel", "pdiparams"))
    expected = heddle.load(folder)(x)
    assert np.array_equal(heddle.parse(kind(program), kind(params))(x), expected)
    assert heddle.Program.parse(kind(program)).num_ops == heddle.Program.parse(program).num_ops


@pytest.mark.parametrize("wrong", [None, 5, "model.pdmodel", [1, 2]])
def test_what_is_no_file_in_memory_is_one_type_error(digits, wrong):
    program = (digits[0] / "model.pdmodel").read_bytes()
    said = f"^the program is of {type(wrong).__name__}, not bytes, a bytearray or a memoryview$"
    for call in (heddle.parse, heddle.Program.parse):
        with pytest.raises(TypeError, match=said):
            call(wrong)
    with pytest.raises(TypeError, match="^what holds the parameters is of"):
        heddle.parse(program, wrong)


@pytest.mark.parametrize("op_type", ["MatMul", "Add"])
@pytest.mark.parametrize("options", [{}, {"lean": True}, {"opt_level": 0}])
def test_a_file_written_to_before_the_first_run_is_data_loss(tmp_path, op_type, options):
    weight = np.ones((300, 200), np.float32)
    x = np.ones((300, 300) if op_type == "MatMul" else (300, 200), np.float32)
    path = tmp_path / "m.onnx"
    path.write_bytes(om.model([om.node(op_type, ["x", "W"], ["y"])],
                              [om.value("x", "float32", list(x.shape))],
                              [om.value("y", "float32", [300, 200])], [om.tensor("W", weight)]))
    model = heddle.load(path, **options)
    os.utime(path, (1, 1))
    said = "'W'.*was written to"
    for _ in range(2):
        with pytest.raises(heddle.DataLoss, match=said):
            model(x)
    with pytest.raises(heddle.DataLoss, match=said):
        model.parameters["W"]
    with pytest.raises(heddle.DataLoss, match=said):
        model.save_parameters(tmp_path / "saved")
