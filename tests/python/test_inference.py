"""heddle.inference: a deployment script as it is written for paddle.inference."""

import warnings

import numpy as np
import pytest

import heddle
from heddle import inference


def make(folder, *settings):
    config = inference.Config(str(folder / "model.pdmodel"), str(folder / "model.pdiparams"))
    for name, *arguments in settings:
        getattr(config, name)(*arguments)
    return inference.create_predictor(config)


def run(predictor, x):
    handle = predictor.get_input_handle(predictor.get_input_names()[0])
    handle.reshape(x.shape)
    handle.copy_from_cpu(x)
    predictor.run()
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()


def test_a_deployment_script(digits):
    folder, x = digits
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predictor = make(folder, ("disable_gpu",), ("enable_mkldnn",), ("switch_ir_optim", True),
                         ("enable_memory_optim",), ("disable_glog_info",),
                         ("switch_use_feed_fetch_ops", False), ("switch_specify_input_names", True),
                         ("set_cpu_math_library_num_threads", 2))
    assert predictor.get_input_names() == ["x"]
    assert run(predictor, x).argmax(-1).tolist() == [8, 5, 5, 1]
    out = predictor.get_output_handle(predictor.get_output_names()[0])
    assert out.shape() == [4, 10] and out.type() is inference.DataType.FLOAT32 and out.lod() == []


def test_bfloat16_is_asked_for_by_its_name(digits):
    folder, x = digits
    x = np.repeat(x, 32, axis=0)
    wanted = heddle.load(folder, precision="bf16")(x)
    predictor = make(folder, ("enable_mkldnn_bfloat16",))
    assert np.array_equal(run(predictor, x), wanted)
    config = inference.Config()
    assert not config.mkldnn_bfloat16_enabled()
    config.enable_mkldnn_bfloat16()
    assert config.mkldnn_bfloat16_enabled()


def test_inputs_are_copied(digits):
    folder, x = digits
    predictor, x = make(folder), x.copy()
    predictor.get_input_handle("x").copy_from_cpu(x)
    x[:] = 0
    predictor.run()
    out = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
    assert out.argmax(-1).tolist() == [8, 5, 5, 1]


def test_results_stay(digits):
    predictor = make(digits[0])
    first = run(predictor, digits[1])
    kept = first.copy()
    run(predictor, digits[1] * 0)
    assert np.array_equal(first, kept)


def test_other_ways_to_name_a_model(digits):
    folder, x = digits
    want = run(make(folder), x)
    assert np.array_equal(run(inference.create_predictor(inference.Config(str(folder))), x), want)
    config = inference.Config()
    program, params = ((folder / f"model.{end}").read_bytes() for end in ("pdmodel", "pdiparams"))
    config.set_model_buffer(program, len(program), params, len(params))
    assert config.model_from_memory()
    assert np.array_equal(run(inference.create_predictor(config), x), want)
    config = inference.Config()
    config.set_prog_file(str(folder / "model.pdmodel"))
    config.set_params_file(str(folder / "model.pdiparams"))
    config.switch_ir_optim(False)
    assert np.allclose(run(inference.create_predictor(config), x), want, 1e-4, 1e-5)


def test_lists_in_lists_out(digits):
    out, = make(digits[0]).run([digits[1]])
    assert out.argmax(-1).tolist() == [8, 5, 5, 1]


def test_clones_share_the_model(digits):
    predictor = make(digits[0])
    clone = predictor.clone()
    run(predictor, digits[1] * 0)
    assert run(clone, digits[1]).argmax(-1).tolist() == [8, 5, 5, 1]
    pool = inference.PredictorPool(inference.Config(str(digits[0])), 3)
    assert run(pool.retrieve(2), digits[1]).argmax(-1).tolist() == [8, 5, 5, 1]
    assert predictor.try_shrink_memory() == 0


def test_settings_without_effect_warn_once(digits):
    config = inference.Config(str(digits[0]))
    with pytest.warns(UserWarning, match="enable_use_gpu has no effect") as warned:
        config.enable_use_gpu(100, 0)
        config.enable_use_gpu(100, 0)
        config.enable_tensorrt_engine(workspace_size=1, precision_mode=inference.PrecisionType.Half)
    assert len(warned) == 2
    assert not config.use_gpu() and not config.tensorrt_engine_enabled()
    with pytest.raises(AttributeError, match="no 'nonsense'"):
        config.nonsense()


@pytest.mark.parametrize("call, name", [
    (("disable_mkldnn",), "disable_mkldnn"),
    (("enable_new_executor", False), r"enable_new_executor\(False\)"),
    (("switch_specify_input_names", False), r"switch_specify_input_names\(False\)"),
    (("enable_custom_device", "emulated", 0, inference.PrecisionType.Half),
     r"enable_custom_device\(precision=Half\)")])
def test_what_cannot_be_otherwise_warns_when_it_is_to_be(digits, call, name):
    config = inference.Config(str(digits[0]))
    with pytest.warns(UserWarning, match=name + " has no effect") as warned:
        for _ in range(2):
            getattr(config, call[0])(*call[1:])
    assert len(warned) == 1


def test_clones_have_no_streams_of_the_callers(digits):
    predictor = make(digits[0])
    with pytest.warns(UserWarning, match="stream"):
        assert run(predictor.clone(1), digits[1]).argmax(-1).tolist() == [8, 5, 5, 1]


def test_memory_that_temporaries_do_not_share(digits):
    def arena(*calls):
        return make(digits[0], *calls)._session.prepare({"x": digits[1]})["arena_bytes"]
    assert arena(("enable_memory_optim",)) == arena() < arena(("enable_memory_optim", False))


def test_passes_can_be_left_out(digits):
    config = inference.Config(str(digits[0]))
    names = config.pass_builder().all_passes()
    assert {"cse", "fuse_conv"} <= set(names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.delete_pass("conv_bn_fuse_pass")
        config.pass_builder().delete_pass("cse")
    assert set(names) - set(config.pass_builder().all_passes()) == {"cse", "fuse_conv"}
    with pytest.warns(UserWarning, match="heddle has no pass like 'some_pass'") as warned:
        config.delete_pass("some_pass")
        config.delete_pass("some_pass")
    assert len(warned) == 1
    plan = inference.create_predictor(config)._session.plan({"x": digits[1]})
    assert "fused_conv2d" not in plan and "conv2d" in plan
    full = make(digits[0])._session.plan({"x": digits[1]})
    assert "fused_conv2d" in full
    low = make(digits[0], ("set_optimization_level", 0))._session.plan({"x": digits[1]})
    assert "fused" not in low


def test_profiles(digits, capsys):
    predictor = make(digits[0], ("enable_profile",))
    assert run(predictor, digits[1]).argmax(-1).tolist() == [8, 5, 5, 1]
    assert "softmax" in predictor.profile_report()
    del predictor
    assert "softmax" in capsys.readouterr().out
    assert make(digits[0]).profile_report() == ""


def test_weights_are_kept_in_the_cache_directory(digits, tmp_path):
    run(make(digits[0], ("set_optim_cache_dir", str(tmp_path))), digits[1])
    assert (tmp_path / "packed_weights").is_file()


def test_errors(digits, tmp_path):
    predictor = make(digits[0])
    with pytest.raises(heddle.Error, match="no input 'y'; there are x"):
        predictor.get_input_handle("y")
    with pytest.raises(heddle.Error, match="call run"):
        predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
    with pytest.raises(heddle.Error, match="input 'x' is not fed"):
        predictor.run()
    with pytest.raises(heddle.NotFound):
        inference.create_predictor(inference.Config(str(tmp_path / "none.pdmodel"), ""))
    with pytest.raises(heddle.Error, match="no model"):
        inference.create_predictor(inference.Config())
