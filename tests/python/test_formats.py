"""Models of either format, as files and in memory."""

import pathlib
import sys
import threading

import numpy as np
import onnx_model
import pytest

import heddle

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
X = np.load(DIGITS / "input.npy")


@pytest.fixture(params=["paddle", "pir"])
def folder(request, tmp_path):
    path = heddle.load(DIGITS).save(tmp_path, format=request.param)
    ending = {"paddle": "model.pdmodel", "pir": "inference.json"}[request.param]
    assert path == str(tmp_path / ending)
    return tmp_path


def files(folder):
    program = next(p for p in folder.iterdir() if p.suffix in (".json", ".pdmodel"))
    return program, program.with_suffix(".pdiparams")


def test_saved_loaded_and_parsed(folder):
    expected = heddle.load(DIGITS)(X)
    program, params = files(folder)
    assert (heddle.load(folder)(X) == expected).all()
    model = heddle.parse(program.read_bytes(), params.read_bytes(), threads=1)
    assert (model(X) == expected).all()
    assert [i.name for i in model.inputs] == ["x"]
    with pytest.raises(heddle.DataLoss, match="the parameters in memory: cut short"):
        heddle.parse(program.read_bytes(), params.read_bytes()[:-4])
    with pytest.raises(heddle.Error, match="that.json"):
        heddle.parse(program.read_bytes()[:300], name="that.json")
    with pytest.raises(TypeError, match="has no option 'thread'"):
        heddle.parse(program.read_bytes(), thread=1)


def test_other_threads_run_while_a_model_is_parsed():
    """A thread that waits for the interpreter gets it from the call that parses, and from no other:
    none is made to give it up meanwhile."""
    nodes = [onnx_model.node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(8000)]
    contents = onnx_model.model(nodes, [onnx_model.value("v0", "float32", [2])],
                                [onnx_model.value("v8000", "float32", [2])])
    interval = sys.getswitchinterval()
    calls = [lambda: heddle.parse(contents, opt_level=0), lambda: heddle.Program.parse(contents)]
    parsed = heddle.Program.parse(contents)
    calls.append(lambda: parsed.serialize("paddle"))
    for call in calls:
        go, ran = threading.Event(), []
        other = threading.Thread(target=lambda: (go.wait(), ran.append(1)))
        other.start()
        try:
            sys.setswitchinterval(1000)
            go.set()
            call()
            during = list(ran)
        finally:
            sys.setswitchinterval(interval)
        other.join()
        assert during == [1]


def test_where_paddles_scripts_look(folder):
    expected = heddle.load(DIGITS)(X)
    program, params = files(folder)
    predictor = heddle.inference.create_predictor(
        heddle.inference.Config(str(program), str(params)))
    config = heddle.inference.Config()
    config.set_model_buffer(program.read_bytes(), len(program.read_bytes()), params.read_bytes(),
                            len(params.read_bytes()))
    for p in (predictor, heddle.inference.create_predictor(config)):
        p.get_input_handle("x").copy_from_cpu(X)
        p.run()
        name = p.get_output_names()[0]
        assert (p.get_output_handle(name).copy_to_cpu() == expected).all()
    exe = heddle.static.Executor()
    with heddle.static.scope_guard(heddle.static.Scope()):
        for prefix in (program.with_suffix(""), folder):
            loaded, feeds, fetches = heddle.static.load_inference_model(prefix, exe)
            assert feeds == ["x"]
            assert (exe.run(loaded, feed={"x": X}, fetch_list=fetches)[0] == expected).all()


def test_what_a_format_cannot_say(tmp_path):
    b = heddle.build.Builder()
    x = b.feed("x", "float32", [2])
    b.fetch(b.op("minus", X=x, Y=x))
    model = b.finish()
    with pytest.raises(heddle.Unimplemented, match=r"minus \(1 time, first: block 0, op 0\)"):
        model.save(tmp_path, format="pir")
    assert not list(tmp_path.iterdir())
    with pytest.raises(heddle.InvalidArgument, match="there is no format 'onyx'"):
        model.program.serialize("onyx")
