"""Devices and memory counters from Python, and Paddle's flags."""

import numpy as np
import pytest

import heddle
from heddle import _flags, inference, static
from heddle._place import name_of


@pytest.mark.parametrize("place, name", [
    (None, "cpu"), ("cpu", "cpu"), ("gpu:1", "cuda:1"), ("GPU", "cuda"), ("emulated", "emulated"),
    ("Place(gpu:0)", "cuda:0"), ("Place(cpu)", "cpu"), ("Place(emulated:1)", "emulated:1"),
    ("gpu:0, gpu:1", "cuda:0,cuda:1")])
def test_names_of_places(place, name):
    assert name_of(place) == name


def test_a_model_runs_on_the_emulated_device(digits):
    folder, x = digits
    want = heddle.load(folder, opt_level=0)(x)
    model = heddle.load(folder, opt_level=0, place="emulated")
    assert np.array_equal(model(x), want)
    profile = model.profile({"x": x})
    assert any(event["stream"].startswith("compute") for event in profile.events)
    assert any(span["kind"] == "dispatch" for span in profile.spans)
    assert {place for _, place, _ in profile.memory} == {"cpu", "emulated:0"}
    use = model.memory_use()
    assert list(use) == ["cpu", "emulated:0"]
    assert use["emulated:0"]["peak"] >= max(b for _, p, b in profile.memory if p == "emulated:0")


def test_a_model_with_several_devices(digits):
    folder, x = digits
    model = heddle.load(folder, opt_level=0, place="emulated:0,emulated:1")
    assert np.array_equal(model(x), heddle.load(folder, opt_level=0)(x))
    assert list(model.memory_use()) == ["cpu", "emulated:0", "emulated:1"]


def test_where_there_is_no_such_device(digits):
    with pytest.raises(heddle.InvalidArgument, match="there is no device 'tpu:0'"):
        heddle.load(digits[0], place="tpu:0")
    with pytest.raises(heddle.Error, match="cuda|CUDA"):
        static.Executor("gpu:7")


def test_memory_use(digits):
    model = heddle.load(digits[0], threads=1)
    assert model.memory_use()["cpu"]["peak"] == 0
    out = model(digits[1])
    use = model.memory_use()["cpu"]
    assert out.nbytes <= use["allocated"] <= use["reserved"] and use["allocated"] <= use["peak"]
    model.reset_memory_peaks()
    use = model.memory_use()["cpu"]
    assert use["peak"] == use["allocated"]


def test_profiles_tell_the_memory_alive(digits):
    profile = heddle.load(digits[0], threads=1).profile({"x": digits[1]})
    assert profile.memory == sorted(profile.memory, key=lambda sample: sample[0])
    assert max(size for _, _, size in profile.memory) > 0
    assert {"thread", "begin_us", "end_us", "kind", "of"} <= set(profile.spans[0])


def test_the_predictor_takes_a_device(digits):
    config = inference.Config(str(digits[0]))
    config.enable_custom_device("emulated", 0)
    assert config.use_custom_device() and "emulated:0" in config.summary()
    predictor = inference.create_predictor(config)
    out, = predictor.run([digits[1]])
    assert out.argmax(-1).tolist() == [8, 5, 5, 1]
    assert "emulated:0" in predictor._executor.memory_use()


@pytest.fixture(autouse=True)
def no_flags_are_left(monkeypatch):
    """Flags that a test sets are not set for those of other files."""
    monkeypatch.setattr(_flags, "_set", {})


def test_flags_are_known_by_name():
    assert static.get_flags("FLAGS_benchmark") == {"FLAGS_benchmark": False}
    static.set_flags({"FLAGS_benchmark": True})
    try:
        assert static.get_flags(["FLAGS_benchmark"]) == {"FLAGS_benchmark": True}
    finally:
        static.set_flags({"FLAGS_benchmark": False})
    with pytest.raises(ValueError, match="knows no flag 'FLAGS_nonsense'"):
        static.set_flags({"FLAGS_nonsense": 1})


@pytest.mark.parametrize("flag, value, reuse, in_place", [
    ("FLAGS_eager_delete_tensor_gb", -1.0, "none", True),
    ("FLAGS_eager_delete_tensor_gb", 0.5, "ordered", True),
    ("FLAGS_memory_fraction_of_eager_deletion", 0.0, "none", True),
    ("FLAGS_memory_fraction_of_eager_deletion", 0.5, "ordered", True),
    ("FLAGS_fast_eager_deletion_mode", False, "ordered", True),
    ("FLAGS_new_executor_use_inplace", False, "ordered", False)])
def test_flags_of_memory(digits, flag, value, reuse, in_place):
    program, names, outputs = static.load_inference_model(str(digits[0]), None)
    feed = {names[0]: digits[1]}
    usual = static.Executor(threads=1)
    want, = usual.run(program, feed, outputs)
    static.set_flags({flag: value})
    assert static.get_flags(flag) == {flag: value}
    executor = static.Executor(threads=1)
    got, = executor.run(program, feed, outputs)
    assert np.array_equal(got, want)
    (key,), = executor._compiled.values()
    assert key[3:5] == (reuse, in_place)
    peak = lambda exe: exe.memory_use()["cpu"]["peak"]  # noqa: E731
    if reuse == "none":
        assert peak(executor) > peak(usual)
    else:
        assert peak(executor) >= peak(usual) if not in_place else peak(executor) == peak(usual)


def test_a_flag_leaves_variables_in_the_scope(digits):
    with static.scope_guard(static.Scope()):
        program, names, outputs = static.load_inference_model(str(digits[0]), None)
        temporary = next(name for name in program.written if name not in outputs)
        executor = static.Executor()
        executor.run(program, {names[0]: digits[1]}, outputs)
        assert temporary not in static.global_scope()
        static.set_flags({"FLAGS_new_executor_use_local_scope": False})
        executor.run(program, {names[0]: digits[1]}, outputs)
        assert temporary in static.global_scope()


@pytest.mark.parametrize("place", ["cpu", "emulated"])
def test_benchmark_runs_one_operator_after_another(digits, place):
    program, names, outputs = static.load_inference_model(str(digits[0]), None)
    run = lambda: static.Executor(place, threads=2).run(  # noqa: E731
        program, {names[0]: digits[1]}, outputs)[0]
    want = run()
    static.set_flags({"FLAGS_benchmark": True})
    try:
        assert np.array_equal(run(), want)
    finally:
        static.set_flags({"FLAGS_benchmark": False})


def test_variables_that_stay_in_the_scope(digits, monkeypatch):
    program, names, outputs = static.load_inference_model(str(digits[0]), None)
    scope = static.global_scope()
    written = program.written
    temporary = next(name for name in written if name not in outputs)
    want, = static.Executor().run(program, {names[0]: digits[1]}, [temporary])
    assert temporary not in scope
    executor = static.Executor(force_root_scope_vars=[temporary])
    executor.run(program, {names[0]: digits[1]}, outputs)
    assert np.array_equal(scope[temporary], want)
    executor = static.Executor(create_local_scope=False)
    parsed = []
    monkeypatch.setattr(static, "_parse", lambda given: parsed.append(given) or given)
    for _ in range(3):
        executor.run(program, {names[0]: digits[1]}, outputs)
    assert all(name in scope for name in written)
    assert len(parsed) == 1, "a program is read once, not in each run"
