"""heddle.onnx: the calls of ONNX Runtime's session, checked against what onnxruntime 1.32 does."""

import json
import threading
import warnings

import numpy as np
import pytest

import heddle
import heddle.onnx as ort
from heddle.onnx import _file
from onnx_model import model, node, number, tensor, text, value

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
Y = np.array([[1, 0, -1]], np.float32)
W = np.array([2, 3, 4], np.float32)


def contents() -> bytes:
    """z = (x + y) * w, r = relu(z)."""
    return model(
        [node("Add", ["x", "y"], ["s"]), node("Mul", ["s", "w"], ["z:0"]),
         node("Relu", ["z:0"], ["r"])],
        [value("x", "float32", ["N", 3]), value("y", "float32", [1, 3])],
        [value("r", "float32", ["N", 3]), value("z:0", "float32", ["N", 3])],
        [tensor("w", W)], metadata={"k": "v"})


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "m.onnx"
    file.write_bytes(contents())
    return file


@pytest.fixture
def session(path):
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"])


Z = (X + Y) * W


def test_run_gives_the_outputs_asked_for(session):
    r, z = session.run(None, {"x": X, "y": Y})
    np.testing.assert_array_equal(z, Z)
    np.testing.assert_array_equal(r, np.maximum(Z, 0))
    (z,) = session.run(["z:0"], {"x": X, "y": Y})
    np.testing.assert_array_equal(z, Z)
    z, r, again = session.run(["z:0", "r", "z:0"], {"x": X, "y": Y})
    np.testing.assert_array_equal(z, again)
    np.testing.assert_array_equal(r, np.maximum(Z, 0))
    assert len(session.run([], {"x": X, "y": Y})) == 2
    (z,) = session.run(["z:0"], {"x": [[1.0, 2.0, 3.0]], "y": Y})
    np.testing.assert_array_equal(z, (np.array([[1, 2, 3]], np.float32) + Y) * W)
    (z,) = session.run(["z:0"], {"x": np.asfortranarray(X), "y": Y})
    np.testing.assert_array_equal(z, Z)


def _zip_map(keys: bytes) -> bytes:
    """A model whose output is a sequence of maps."""
    zip_map = node("ZipMap", ["x"], ["y"], keys + text(7, "ai.onnx.ml"))
    key = number(1, 8 if b"classlabels_strings" in keys else 7)
    of_float = text(2, text(1, number(1, 1)))
    maps = text(1, "y") + text(2, text(4, text(1, text(5, key + of_float))))
    return (model([zip_map], [value("x", "float32", ["n", 2])], [maps])
            + text(8, text(1, "ai.onnx.ml") + number(2, 1)))


def test_sequences_of_maps_are_lists_of_dicts():
    numbers = text(5, text(1, "classlabels_int64s") + number(8, 4) + number(8, 9) + number(20, 7))
    texts = text(5, text(1, "classlabels_strings") + text(9, "cat") + text(9, "dog")
                 + number(20, 8))
    x = np.array([[0.25, 0.75], [1, 0]], np.float32)
    for keys, first, second in ((numbers, 4, 9), (texts, "cat", "dog")):
        session = ort.InferenceSession(_zip_map(keys))
        assert session.run(None, {"x": x}) == [[{first: 0.25, second: 0.75}, {first: 1, second: 0}]]
        assert session.run(["y"], {"x": x[:0]}) == [[]]


def test_a_session_from_bytes(session):
    (z,) = ort.InferenceSession(contents()).run(["z:0"], {"x": X, "y": Y})
    np.testing.assert_array_equal(z, session.run(["z:0"], {"x": X, "y": Y})[0])


def test_inputs_outputs_and_metadata(session):
    assert [(i.name, i.type, i.shape) for i in session.get_inputs()] == [
        ("x", "tensor(float)", ["N", 3]), ("y", "tensor(float)", [1, 3])]
    assert [o.name for o in session.get_outputs()] == ["r", "z:0"]
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.graph_name, meta.description) == (
        "by hand", "tested", "a model")
    assert meta.custom_metadata_map == {"k": "v"}
    assert session.get_providers() == ["CPUExecutionProvider"]


@pytest.mark.parametrize("feeds, outputs, kind, says", [
    ({"x": X}, None, ValueError, r"Required inputs \(\['y'\]\)"),
    ({"x": X, "y": Y, "q": Y}, None, ort.InvalidArgument, "Invalid input name: q"),
    ({"x": X, "y": Y}, ["nope"], ort.InvalidArgument, "Invalid output name:nope"),
    ({"x": X.astype(np.float64), "y": Y}, None, ort.InvalidArgument, r"tensor\(double\)"),
    ({"x": X[0], "y": Y}, None, ort.InvalidArgument, "Invalid rank for input: x Got: 1"),
    ({"x": X[:, :2], "y": Y}, None, ort.InvalidArgument, "index: 1 Got: 2 Expected: 3"),
])
def test_wrong_feeds(session, feeds, outputs, kind, says):
    with pytest.raises(kind, match=says):
        session.run(outputs, feeds)
    np.testing.assert_array_equal(session.run(["z:0"], {"x": X, "y": Y})[0], Z)


def test_wrong_files(tmp_path):
    with pytest.raises(ort.NoSuchFile):
        ort.InferenceSession(tmp_path / "absent.onnx")
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(contents()[:60])
    for source in (cut, contents()[:60]):
        with pytest.raises(ort.InvalidProtobuf):
            ort.InferenceSession(source)
    with pytest.raises(heddle.Error, match="Foo"):
        ort.InferenceSession(model([node("Foo", ["x"], ["z"])], [value("x", "float32", [3])],
                                   [value("z", "float32", [3])]))


def test_a_number_where_a_message_belongs_is_damage():
    for field in (11, 12, 15):
        with pytest.raises(_file.Damaged):
            _file.read(text(7, number(field, 5)))


def test_io_binding(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_input("y", ort.OrtValue.ortvalue_from_numpy(Y))
    place = np.empty((2, 3), np.float32)
    binding.bind_output("z:0", "cpu", 0, np.float32, [2, 3], place.ctypes.data)
    binding.bind_output("r")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(place, Z)
    z, r = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(z, Z)
    np.testing.assert_array_equal(r, np.maximum(Z, 0))
    assert binding.get_outputs()[1].shape() == [2, 3]
    with pytest.raises(ort.InvalidArgument):
        binding.bind_output("nope")


def test_ort_values(session):
    value = ort.OrtValue.ortvalue_from_numpy(X)
    assert (value.data_type(), value.shape(), value.device_name()) == ("tensor(float)", [2, 3],
                                                                      "cpu")
    (z,) = session.run_with_ort_values(
        ["z:0"], {"x": value, "y": ort.OrtValue.ortvalue_from_numpy(Y)})
    np.testing.assert_array_equal(z.numpy(), Z)


def test_run_options_and_asynchronous_runs(session):
    options = ort.RunOptions()
    options.terminate = True
    with pytest.raises(ort.Fail, match="terminate"):
        session.run(None, {"x": X, "y": Y}, options)
    done, told = threading.Event(), []

    def callback(results, user_data, error):
        told.append((results, user_data, error))
        done.set()

    session.run_async(["z:0"], {"x": X, "y": Y}, callback, "mine")
    assert done.wait(30)
    (results, user_data, error), = told
    assert (user_data, error) == ("mine", "")
    np.testing.assert_array_equal(results[0], Z)
    done.clear()
    session.run_async(["z:0"], {"x": X[0], "y": Y}, callback, "again")
    assert done.wait(30)
    assert told[1][0] == [] and "Invalid rank" in told[1][2]


def test_free_dimensions_can_be_fixed(path):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("N", 2)
    session = ort.InferenceSession(path, options)
    assert session.get_inputs()[0].shape == [2, 3]
    with pytest.raises(ort.InvalidArgument, match="Got: 1 Expected: 2"):
        session.run(None, {"x": X[:1], "y": Y})


def test_levels_and_threads_give_the_same_numbers(path):
    for level in ort.GraphOptimizationLevel:
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.intra_op_num_threads = 2
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        (z,) = ort.InferenceSession(path, options).run(["z:0"], {"x": X, "y": Y})
        np.testing.assert_array_equal(z, Z)


def test_many_threads_run_one_session(session):
    wrong = []

    def work(k):
        x = X * k
        for _ in range(50):
            (z,) = session.run(["z:0"], {"x": x, "y": Y})
            if not np.array_equal(z, (x + Y) * W):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_profiling_writes_a_trace(path, tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(path, options)
    session.run(None, {"x": X, "y": Y})
    session.run(None, {"x": X, "y": Y})
    events = json.loads(open(session.end_profiling(), encoding="utf-8").read())
    assert sum(event.get("ph") == "X" for event in events) >= 2


def test_other_providers_are_passed_over_with_one_warning(path):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(2):
            ort.InferenceSession(path, providers=["NoSuchProvider", "CPUExecutionProvider"])
    assert ["NoSuchProvider" in str(w.message) for w in told] == [True]
    assert told[0].filename == __file__
