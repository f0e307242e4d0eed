"""heddle.static without Paddle: programs as bytes."""

import sys

import numpy as np
import pytest

import heddle
from heddle import static


def batches(data, count, size=32):
    for i in range(count):
        yield {name: array[i * size:(i + 1) * size] for name, array in data.items()}


def loss_of(program):
    return heddle.Program.parse(program).loss


def train(exe, training, scope, steps=20):
    startup, main, data = training
    exe.run(startup, scope=scope)
    return [float(exe.run(main, feed=feed, fetch_list=[loss_of(main)], scope=scope)[0])
            for feed in batches(data, steps)]


def test_training_lowers_the_loss_and_repeats(training):
    static.seed(3)
    first = train(static.Executor(), training, static.Scope())
    static.seed(3)
    assert train(static.Executor(threads=1), training, static.Scope()) == pytest.approx(first, 1e-4)
    static.seed(4)
    assert train(static.Executor(), training, static.Scope(), 1) != pytest.approx(first[:1], 1e-6)
    assert np.mean(first[-5:]) < 0.8 * np.mean(first[:5])


def test_a_training_loop_prepares_once(training):
    startup, main, data = training
    exe, scope = static.Executor(), static.Scope()
    exe.run(startup, scope=scope)
    feed = next(batches(data, 1))
    exe.run(main, feed=feed, fetch_list=[loss_of(main)], scope=scope)
    plans = exe._executor.plans_built
    for _ in range(5):
        # Equal bytes are the same program, whichever object holds them.
        exe.run(bytes(bytearray(main)), feed=feed, fetch_list=[loss_of(main)], scope=scope)
    assert exe._executor.plans_built == plans


def test_scopes_are_independent(training):
    static.seed(1)
    exe, one, two = static.Executor(), static.Scope(), static.Scope()
    train(exe, training, one, 3)
    exe.run(training[0], scope=two)
    name = next(info.name for info in heddle.Program.parse(training[1]).persistables
                if info.name.endswith("w_0"))
    assert not np.array_equal(one[name], two[name])
    two[name] = one[name]
    assert np.array_equal(two.find_var(name).get_tensor(), one[name])
    with static.scope_guard(one):
        assert static.global_scope() is one
        exe.run(training[0])
    assert not np.array_equal(one[name], two[name])  # `two` did not follow
    assert static.global_scope() is not one


def test_kids_find_what_their_ancestors_have(training):
    startup, main, data = training
    feed = next(batches(data, 1))
    exe, root = static.Executor(), static.Scope()
    kid = root.new_scope().new_scope()
    exe.run(startup, scope=kid)
    names = [info.name for info in heddle.Program.parse(startup).persistables]
    assert set(names) <= set(root.local_var_names()) and kid.local_var_names() == []
    assert all(kid.find_var(name) is not None and name in kid for name in names)
    before = {name: root[name] for name in names}
    exe.run(main, feed=feed, fetch_list=[loss_of(main)], scope=kid)
    assert any(not np.array_equal(before[name], root[name]) for name in names)
    # What a kid has hides what its parent has; what is set through find_var is where it was found.
    name = next(n for n in names if n.endswith("w_0"))
    kid.find_var(name).get_tensor().set(before[name])
    assert np.array_equal(root[name], before[name])
    kid[name] = before[name] + 1
    assert np.array_equal(root[name], before[name]) and not np.array_equal(kid[name], root[name])


class _Desc:
    def __init__(self, data):
        self.serialize_to_string = lambda: data


class _CompiledProgram:
    """As paddle.static.CompiledProgram, as far as heddle looks at it."""

    def __init__(self, data, **strategies):
        self._program = type("Program", (), {"desc": _Desc(data)})()
        for name, strategy in strategies.items():
            setattr(self, name, strategy)


def _strategy(name, **fields):
    """An object of a class with these fields, each of which is None unless it is set."""
    return type(name, (), dict.fromkeys(fields))(), fields


def test_strategies_work_or_warn_once(training, recwarn):
    startup, main, data = training
    feed = next(batches(data, 1))
    exe, scope = static.Executor(threads=2), static.Scope()
    exe.run(startup, scope=scope)

    def run(name, attribute, **fields):
        strategy, fields = _strategy(name, **fields)
        for field, value in fields.items():
            setattr(strategy, field, value)
        program = _CompiledProgram(main, **{attribute: strategy})
        exe.run(program, feed=feed, fetch_list=[loss_of(main)], scope=scope)
        return [str(w.message) for w in recwarn.list]

    assert run("BuildStrategy", "_build_strategy", fuse_elewise_add_act_ops=True,
               memory_optimize=True, enable_addto=True) == []
    assert run("BuildStrategy", "_build_strategy", sequential_run=True) == []
    assert {key[2] for key in exe._compiled[scope]} == {"auto", "serial"}
    for _ in range(2):
        told = run("BuildStrategy", "_build_strategy", enable_inplace=False, reduce_strategy=1,
                   memory_optimize=False)
    assert [text.split(" has")[0] for text in told] == ["BuildStrategy.reduce_strategy = 1"]
    assert {key[3:5] for key in exe._compiled[scope]} == {("ordered", True), ("none", False)}
    assert len(run("ExecutionStrategy", "_exec_strategy", num_iteration_per_run=3)) == 2
    exe.run(main, feed=feed, feed_var_name="batch", scope=scope)
    exe.run(main, feed=feed, feed_var_name="batch", scope=scope)
    assert len(recwarn.list) == 3 and "feed_var_name" in str(recwarn.list[-1].message)


def test_flags_of_paddle(training, monkeypatch):
    if "paddle" in sys.modules:
        pytest.skip("where Paddle is used, its own flags count")
    startup, main, data = training
    feed = next(batches(data, 1))
    for flag in ("FLAGS_benchmark", "FLAGS_new_executor_serial_run"):
        monkeypatch.setenv(flag, "1")
        exe, scope = static.Executor(threads=2), static.Scope()
        exe.run(startup, scope=scope)
        exe.run(main, feed=feed, scope=scope)
        assert {key[2] for key in exe._compiled[scope]} == {"serial"}
        monkeypatch.delenv(flag)
    name = next(iter(feed))
    broken = {**feed, name: np.full_like(feed[name], np.nan)}
    exe.run(main, feed=broken, fetch_list=[loss_of(main)], scope=scope)
    monkeypatch.setenv("FLAGS_check_nan_inf", "true")
    exe = static.Executor(threads=2)
    with pytest.raises(heddle.OutOfRange, match="nan"):
        exe.run(main, feed=broken, fetch_list=[loss_of(main)], scope=scope)


def test_limits_of_memory_and_time(training):
    startup, main, data = training
    scope = static.Scope()
    static.Executor().run(startup, scope=scope)
    with pytest.raises(heddle.ResourceExhausted):
        static.Executor(memory_limit=1000).run(main, feed=next(batches(data, 1)), scope=scope,
                                               fetch_list=[loss_of(main)])
    b = heddle.build.Builder()
    limit, value = b.feed("limit", "float32", [1]), b.op("fill_constant", shape=[1],
                                                         dtype="float32", value=1.0)
    more = b.op("less_than", X=value, Y=limit)
    with b.loop(more):
        b.assign(b.op("scale", X=value, scale=-1.0), to=value)
        b.op("less_than", X=value, Y=limit, out=more)
    b.fetch(value)
    name, endless = value.name, b.finish().program.serialize()
    feed = {"limit": np.array([2], "float32")}
    with pytest.raises(heddle.DeadlineExceeded, match="(while|block 1)"):
        static.Executor(timeout=0.05).run(endless, feed=feed, fetch_list=[name],
                                          scope=static.Scope())


def test_scope_calls_of_paddle():
    scope = static.Scope()
    assert scope.find_var("x") is None
    tensor = scope.var("x").get_tensor()
    assert not tensor._is_initialized()
    tensor.set(np.arange(6, dtype="float32").reshape(2, 3), None)
    assert tensor.shape() == [2, 3] and np.array(scope.find_var("x").get_tensor()).sum() == 15
    assert "x" in scope and scope.local_var_names() == ["x"]
    kid = scope.new_scope()
    assert kid.find_var("x") is not None
    scope.erase(["x"])
    assert scope.find_var("x") is None and "x" not in scope


def test_fetches(training):
    startup, main, data = training
    exe, scope = static.Executor(), static.Scope()
    exe.run(startup, scope=scope)
    loss, feed = loss_of(main), next(batches(data, 1))
    parameter = heddle.Program.parse(main).persistables[0].name
    first, weight, same, gradient = exe.run(main, feed=feed, scope=scope, fetch_list=[
        loss, parameter, [loss], loss + "@GRAD"])
    assert first == same and weight.shape == scope[parameter].shape and gradient == 1
    assert exe.run(main, feed=feed, scope=scope) == []
    tensor, = exe.run(main, feed=feed, fetch_list=loss, scope=scope, return_numpy=False)
    assert tensor.lod() == [] and np.array(tensor).dtype == np.float32


def test_feeds_are_converted_and_checked(training):
    startup, main, data = training
    exe, scope = static.Executor(), static.Scope()
    exe.run(startup, scope=scope)
    feed, loss = next(batches(data, 1)), [loss_of(main)]
    as_lists = {name: array.tolist() for name, array in feed.items()}
    lists = exe.run(main, feed=as_lists, fetch_list=loss, scope=scope)
    exe.run(startup, scope=scope)
    assert np.isfinite(lists[0])
    name = next(name for name, array in feed.items() if array.dtype == np.float32)
    with pytest.raises(ValueError, match=f"feed '{name}' has dtype float64"):
        exe.run(main, feed={**feed, name: feed[name].astype("f8")}, fetch_list=loss, scope=scope)
    with pytest.raises(ValueError, match=f"feed '{name}' has shape"):
        exe.run(main, feed={**feed, name: feed[name][0]}, fetch_list=loss, scope=scope)
    with pytest.warns(UserWarning, match="no variable 'other'"):
        exe.run(main, feed={**feed, "other": 1}, fetch_list=loss, scope=scope)
    with pytest.raises(TypeError, match="a dict"):
        exe.run(main, feed="x", scope=scope)
    with pytest.raises(heddle.NotFound, match="nothing"):
        exe.run(main, feed=feed, fetch_list=["nothing"], scope=scope)
    with pytest.raises(TypeError, match="program"):
        exe.run(3, scope=scope)
    with pytest.raises(TypeError, match="scope"):
        exe.run(main, feed=feed, scope={})
    exe.close()
    with pytest.raises(RuntimeError, match="closed"):
        exe.run(main)


def test_lod_tensors():
    tensor = static.create_lod_tensor(np.arange(10).reshape(5, 2), [[2, 3]])
    assert tensor.lod() == [[0, 2, 5]] and tensor.recursive_sequence_lengths() == [[2, 3]]
    assert tensor.has_valid_recursive_sequence_lengths()
    with pytest.raises(ValueError, match="do not fit"):
        static.create_lod_tensor(np.zeros([5, 2]), [[2, 2]])


def test_names_of_paddle_need_paddle():
    with pytest.raises(AttributeError, match="no 'nn'"):
        static.nn  # noqa: B018
    import sys
    assert "paddle" not in sys.modules


class _Desc:
    def __init__(self, data):
        self._data = data

    def serialize_to_string(self):
        return self._data


class _Program:
    """What heddle needs to see of a program object."""

    def __init__(self, data):
        self.desc = _Desc(data)


def test_program_objects(training):
    exe, scope = static.Executor(), static.Scope()
    startup, main = _Program(training[0]), _Program(training[1])
    exe.run(startup, scope=scope)
    feed = next(batches(training[2], 1))
    before, = exe.run(main, feed=feed, fetch_list=[loss_of(training[1])], scope=scope)
    assert np.isfinite(before)
    main.desc = _Desc(training[0])  # changed in between: another program under the same object
    assert exe.run(main, scope=scope) == []
