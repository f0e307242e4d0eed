"""heddle.train beside twins in NumPy, over networks drawn at random, and beside the tool."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import heddle

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "tuning"))
import builders  # noqa: E402
import sweep  # noqa: E402
import twin  # noqa: E402

DIGITS = ROOT / "examples" / "digits"
FORMS = {"onnx": DIGITS / "onnx" / "model.onnx", "paddle": DIGITS / "model.pdmodel",
         "tensorflow": DIGITS / "tensorflow"}
WAYS = ["loss", "head", "adapters", "head and adapters", "norms", "batch"]
# A Python with TensorFlow, for networks as SavedModels.
TENSORFLOW = os.environ.get("HEDDLE_TENSORFLOW_PYTHON")


def build(form, case, folder):
    """The network as a file; the path to load."""
    if form == "tf":
        import json
        (folder / "spec.json").write_text(json.dumps(case.spec), encoding="utf-8")
        np.savez(folder / "weights.npz", **case.weights)
        (folder / "tf").mkdir()
        subprocess.run([TENSORFLOW, ROOT / "scripts/tuning/builders.py", "tf", folder / "spec.json",
                        folder / "weights.npz", folder / "tf"], check=True, capture_output=True)
        return folder / "tf"
    builders.onnx(case.spec, case.weights, folder)
    if form == "onnx":
        return folder / "model.onnx"
    return heddle.load(folder / "model.onnx").save(folder / form, form)


def options_of(case):
    options = {"labels": "label", "loss_op": case.op, "optimizer": case.rule}
    if case.heads:
        options.update(head=case.heads, seed=5)
    if "adapters" in case.way:
        options["lora"] = (case.rank, case.alpha)
    if case.way == "norms":
        options["norms"] = "train"
    if case.freeze is not None and "adapters" not in case.way:
        options["freeze"] = case.freeze
    return options


def tuned_like_its_twin(form, case, folder):
    model = build(form, case, folder)
    data = {"x": case.x, "label": case.labels}
    options = options_of(case)
    first = heddle.train(model, data, lr=0, steps=1, **options)
    begin = first.arrays()
    start = {name: begin.get(name, w) for name, w in case.weights.items()}
    if case.way == "norms":
        for layer in case.layers:
            for name in layer.get("names", [])[2:]:
                start[name] = case.weights[name]
    adapters = {}
    if "adapters" in case.way:
        for name in case.weights:
            if name + "@LORA_LEFT" in begin:
                adapters[name] = (begin[name + "@LORA_LEFT"], begin[name + "@LORA_RIGHT"],
                                  case.alpha / case.rank)
        assert adapters or case.heads
    result = heddle.train(model, data, lr=case.rate, steps=case.steps, **options)
    losses, net = sweep.run_twin(case, start, adapters)
    sweep.close("losses", result.losses, losses)
    last = result.arrays()
    for name in case.weights:
        if name in last and name not in net.adapters:
            sweep.close(f"'{name}'", last[name], net.w[name], 1e-2, 1e-4)
    wanted = twin.ending(
        twin.Twin(case.layers, {n: net.weight(n) for n in net.w}).forward(case.x[0]), case.final)
    parts = case.x[0][:, None] if case.spec.get("batch") else [case.x[0]]
    result.export(folder / "exported")
    for tuned in (result.model(), heddle.load(folder / "exported")):
        sweep.close("the tuned model", np.concatenate([tuned(part) for part in parts]), wanted,
                    5e-3, 5e-4)


@pytest.mark.parametrize("form", ["onnx", "paddle", "tf"])
@pytest.mark.parametrize("way", WAYS)
def test_networks_learn_as_their_twins(way, form, tmp_path):
    if form == "tf" and not TENSORFLOW:
        pytest.skip("HEDDLE_TENSORFLOW_PYTHON names no Python with TensorFlow")
    if form == "tf" and way == "norms":
        pytest.skip("the builder of SavedModels makes no batch norms")
    for number in range(3):
        random = np.random.default_rng([13, WAYS.index(way), number])
        case = sweep.Case(random, form, [way])
        folder = tmp_path / str(number)
        folder.mkdir()
        tuned_like_its_twin(form, case, folder)


@pytest.fixture(scope="module")
def digits():
    with np.load(DIGITS / "train" / "train.npz") as arrays:
        return {name: arrays[name][:100] for name in arrays}


COMMON = {"labels": "label", "loss_op": "softmax_with_cross_entropy", "optimizer": "adam",
          "lr": 0.002}


@pytest.mark.parametrize("form", FORMS)
def test_bits_are_those_of_the_tool(form, digits, tmp_path):
    tool = os.environ.get("HEDDLE_TOOL")
    if not tool:
        pytest.skip("HEDDLE_TOOL does not name the tool")
    np.savez(tmp_path / "train.npz", **digits)
    subprocess.run(
        [tool, "train", "--forward", FORMS[form], "--labels", "label", "--loss-op",
         COMMON["loss_op"], "--optimizer", "adam", "--lr", "0.002", "--data",
         tmp_path / "train.npz", "--batch-size", "32", "--shuffle", "--seed", "3", "--epochs", "2",
         "--validate", tmp_path / "train.npz", "--quiet", "--serial", "--threads", "1", "--out",
         tmp_path / "out", "--export", tmp_path / "tool"], check=True)
    result = heddle.train(FORMS[form], digits, batch_size=32, shuffle=True, seed=3, epochs=2,
                          validation=digits, threads=1, deterministic=True, **COMMON)
    assert result.steps == 8 and result.stopped == ""
    told = np.load(tmp_path / "out" / "out_0.npy").reshape(-1).astype("f8")
    assert np.array_equal(result.losses, told)
    assert [step for step, _ in result.validation] == [4, 8]
    result.export(tmp_path / "python")
    files = sorted(p.relative_to(tmp_path / "tool") for p in (tmp_path / "tool").rglob("*")
                   if p.is_file())
    assert files
    for file in files:
        assert (tmp_path / "python" / file).read_bytes() == (tmp_path / "tool" / file).read_bytes()


def test_the_three_formats_learn_alike(digits):
    losses = [heddle.train(path, digits, batch_size=25, **COMMON).losses
              for path in FORMS.values()]
    for other in losses[1:]:
        assert np.allclose(losses[0], other, 1e-3, 1e-4)


def batches_of(data, size):
    return [{name: array[at:at + size] for name, array in data.items()}
            for at in range(0, len(data["label"]), size)]


def test_iterables_give_batches(digits):
    batches = batches_of(digits, 32)
    wanted = heddle.train(FORMS["onnx"], digits, batch_size=32, epochs=2, **COMMON).losses
    assert np.array_equal(
        heddle.train(FORMS["onnx"], batches, epochs=2, **COMMON).losses, wanted)
    made = heddle.train(FORMS["onnx"], (b for b in batches), **COMMON)
    assert np.array_equal(made.losses, wanted[:4]) and made.stopped == ""
    made = heddle.train(FORMS["onnx"], iter(batches), steps=6, **COMMON)
    assert np.array_equal(made.losses, wanted[:4]) and made.stopped == "end of data"
    made = heddle.train(FORMS["onnx"], batches, steps=6, **COMMON)
    assert np.array_equal(made.losses, wanted[:6])
    rates = heddle.train(FORMS["onnx"], batches, epochs=2, **{**COMMON, "lr": [0.002] * 8}).losses
    assert np.array_equal(rates, wanted)
    rates = heddle.train(FORMS["onnx"], batches, epochs=2,
                         **{**COMMON, "lr": lambda step: 0.002}).losses
    assert np.array_equal(rates, wanted)


def test_the_given_model_stays_as_it_is(digits):
    model = heddle.load(FORMS["onnx"])
    before = {name: model.parameters[name] for name in model.parameters}
    x = digits[model.inputs[0].name][:3]
    y = model(x)
    result = heddle.train(model, digits, batch_size=32, **COMMON)
    for name, array in before.items():
        assert np.array_equal(model.parameters[name], array), name
    assert np.array_equal(model(x), y)
    assert not np.array_equal(result.model()(x), y)
    assert np.array_equal(
        result.losses, heddle.train(FORMS["onnx"], digits, batch_size=32, **COMMON).losses)


def test_validation_is_the_mean_loss_of_the_samples(digits):
    # The loss of a batch is the mean over its samples, so that batches do not matter.
    result = heddle.train(FORMS["onnx"], digits, batch_size=32, steps=5, validate_every=2,
                          validation=batches_of(digits, 7), **COMMON)
    assert [step for step, _ in result.validation] == [2, 4, 5]
    model = result.model()
    p = np.asarray(model(digits[model.inputs[0].name]), "f8")
    label = digits["label"].reshape(-1).astype(int)
    wanted = -np.log(p[np.arange(len(label)), label]).mean()
    assert result.validation[-1][1] == pytest.approx(wanted, rel=1e-4)
    # Nothing is learnt from validation.
    assert np.array_equal(
        result.losses, heddle.train(FORMS["onnx"], digits, batch_size=32, steps=5, **COMMON).losses)


def test_fetched_values_are_those_before_the_update(digits):
    name = "fc_1.w_0"
    start = heddle.load(FORMS["onnx"]).parameters[name]
    result = heddle.train(FORMS["onnx"], digits, batch_size=32, optimizer="sgd", lr=0.1,
                          labels="label", loss_op="softmax_with_cross_entropy",
                          fetch=[name, name + "@GRAD"])
    weights, gradients = result.fetched[name], result.fetched[name + "@GRAD"]
    assert len(weights) == result.steps == 4 and np.array_equal(weights[0], start)
    assert result.gradients[name] == name + "@GRAD"
    for before, gradient, after in zip(weights, gradients, weights[1:]):
        assert np.allclose(before - np.float32(0.1) * gradient, after, 1e-6, 1e-7)


def test_adapters_go_on(digits, tmp_path):
    options = {"batch_size": 32, "optimizer": "sgd", "labels": "label",
               "loss_op": "softmax_with_cross_entropy", "lr": 0.01}
    whole = heddle.train(FORMS["onnx"], digits, lora=2, epochs=2, **options)
    half = heddle.train(FORMS["onnx"], digits, lora=2, **options)
    np.savez(tmp_path / "half.npz", **half.adapters())
    for adapter in (half.adapters(), tmp_path / "half.npz"):
        rest = heddle.train(FORMS["onnx"], digits, adapter=adapter, **options)
        assert np.array_equal(np.concatenate([half.losses, rest.losses]), whole.losses)


def test_resumed_training_has_the_same_bits(digits, tmp_path):
    options = {"batch_size": 16, "shuffle": True, "epochs": 2, **COMMON}
    whole = heddle.train(FORMS["onnx"], digits, **options)
    options["checkpoint"] = tmp_path / "run"
    part = heddle.train(FORMS["onnx"], digits, every=2, on_step=lambda step, loss: step < 5,
                        **options)
    assert part.stopped == "callback" and part.steps == 5
    with pytest.raises(heddle.InvalidArgument, match="holds checkpoints"):
        heddle.train(FORMS["onnx"], digits, **options)
    with pytest.raises(heddle.InvalidArgument, match="other batches"):
        heddle.train(FORMS["onnx"], digits, resume=True, **{**options, "batch_size": 20})
    with pytest.raises(heddle.InvalidArgument, match="another main program"):
        heddle.train(FORMS["onnx"], digits, resume=True, **{**options, "optimizer": "sgd"})
    rest = heddle.train(FORMS["onnx"], digits, resume=True, **options)
    assert rest.steps == whole.steps and np.array_equal(rest.losses, whole.losses)
    for name, array in whole.arrays().items():
        assert np.array_equal(rest.arrays()[name], array), name
    # Of an iterable, the batches before are passed over.
    batches = batches_of(digits, 16)
    plain = {**COMMON, "epochs": 2}
    whole = heddle.train(FORMS["onnx"], batches, **plain)
    plain["checkpoint"] = tmp_path / "iterable"
    heddle.train(FORMS["onnx"], batches, on_step=lambda step, loss: step < 9, **plain)
    rest = heddle.train(FORMS["onnx"], batches, resume=True, **plain)
    assert np.array_equal(rest.losses, whole.losses)


STOPPED = """
import os, signal, sys
import numpy as np
import heddle
with np.load(sys.argv[2]) as arrays:
    data = {name: arrays[name] for name in arrays}
def on_step(step, loss):
    if step == 3:
        os.kill(os.getpid(), signal.SIGINT)
result = heddle.train(sys.argv[1], data, batch_size=32, epochs=1000, labels="label",
                      loss_op="softmax_with_cross_entropy", optimizer="sgd", lr=0.01,
                      on_step=on_step)
assert result.stopped == "interrupted" and result.steps == len(result.losses) == 3, result
result.export(sys.argv[3])
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_ctrl_c_ends_it_after_its_step(tmp_path):
    subprocess.run([sys.executable, "-c", STOPPED, FORMS["onnx"], DIGITS / "train" / "train.npz",
                    tmp_path / "tuned"], check=True, timeout=120)
    assert (tmp_path / "tuned" / "model.onnx").is_file()


def test_other_threads_leave_signals_alone(digits):
    made = []
    thread = threading.Thread(target=lambda: made.append(
        heddle.train(FORMS["onnx"], digits, batch_size=32, **COMMON)))
    thread.start()
    thread.join()
    assert made[0].steps == 4
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_exceptions_of_the_caller_come_through(digits):
    def fails(step, loss):
        raise LookupError("of the caller")

    with pytest.raises(LookupError, match="of the caller"):
        heddle.train(FORMS["onnx"], digits, batch_size=32, on_step=fails, **COMMON)


@pytest.mark.parametrize("options, error, text", [
    ({"loss_op": None}, heddle.InvalidArgument, "labels"),
    ({"loss_op": "hinge"}, heddle.InvalidArgument, "it is softmax_with_cross_entropy"),
    ({"optimizer": "adamant"}, heddle.InvalidArgument, "adamw"),
    ({"labels": "target"}, heddle.InvalidArgument, "'target'"),
    ({"wrt": "nowhere"}, heddle.NotFound, "'nowhere'"),
    ({"lr": -1}, heddle.InvalidArgument, "lr"),
    ({"lr": [0.1]}, heddle.InvalidArgument, "4 steps need one each"),
    ({"steps": 2, "epochs": 2}, heddle.InvalidArgument, "steps or epochs"),
    ({"lora": 0}, heddle.InvalidArgument, "lora"),
    ({"lora": 2, "adapter": {}}, heddle.InvalidArgument, "adapter"),
    ({"head": 0}, heddle.InvalidArgument, "head"),
    ({"norms": "maybe"}, heddle.InvalidArgument, "keep, train"),
    ({"resume": True}, heddle.InvalidArgument, "checkpoint"),
    ({"clip_norm": 1, "clip_value": 1}, heddle.InvalidArgument, "clip_norm"),
    ({"warmup": 3}, TypeError, "no option 'warmup'"),
])
def test_what_does_not_fit_is_said(options, error, text, digits):
    with pytest.raises(error, match=text):
        heddle.train(FORMS["onnx"], digits, batch_size=32, **{**COMMON, **options})


def test_data_that_do_not_fit_are_said(digits):
    with pytest.raises(TypeError, match="dict of arrays"):
        heddle.train(FORMS["onnx"], 3, **COMMON)
    with pytest.raises(TypeError, match="a batch is a dict"):
        heddle.train(FORMS["onnx"], [[1, 2]], **COMMON)
    with pytest.raises(heddle.InvalidArgument, match="no batch"):
        heddle.train(FORMS["onnx"], [], **COMMON)
    with pytest.raises(heddle.InvalidArgument, match="an iterable"):
        heddle.train(FORMS["onnx"], batches_of(digits, 8), batch_size=4, **COMMON)
    short = {**digits, "label": digits["label"][:5]}
    with pytest.raises(heddle.InvalidArgument, match="5"):
        heddle.train(FORMS["onnx"], short, batch_size=4, **COMMON)
    model = heddle.parse(FORMS["onnx"].read_bytes())
    made = heddle.train(model, digits, batch_size=32, **COMMON)
    with pytest.raises(heddle.InvalidArgument, match="not loaded from a file"):
        made.export("nowhere")


def test_a_limit_of_memory_changes_no_bits(digits):
    plain = heddle.train(FORMS["onnx"], digits, batch_size=50, threads=1, **COMMON)
    with pytest.raises(heddle.ResourceExhausted, match="at least") as error:
        heddle.train(FORMS["onnx"], digits, batch_size=50, threads=1, memory_limit=1000, **COMMON)
    least = int(str(error.value).split("at least ")[1].split()[0])
    limited = heddle.train(FORMS["onnx"], digits, batch_size=50, threads=1, memory_limit=least,
                           **COMMON)
    assert any("computed again" in line for line in limited.said)
    assert np.array_equal(limited.losses, plain.losses)
    for name, array in plain.arrays().items():
        assert np.array_equal(limited.arrays()[name], array), name
