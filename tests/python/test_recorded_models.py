"""The recorded models (see conftest.SHARED) through the Python package."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import heddle
from heddle import static

# One of each kind; the tool's test runs them all.
INFERENCE = ["cf_while", "cf_cond", "cf_array", "lstm_cls", "bert_tiny", "gpt_step_tiny",
             "vit_micro", "tiny_mix2000_s1", "ppocrv2_cls", "ppocrv4_rec"]
TRAINING = ["train_fc_sgd", "train_mlp_momentum", "train_embedding_sparse", "train_while_grad",
            "train_cnn_bn_adam"]


def whole(shared_models, name, tmp_path):
    """The model's folder; where the parameters have to be made first, a copy of it."""
    folder = shared_models / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    if not (folder / "params_spec.json").exists() or (folder / "model.pdiparams").exists():
        return folder
    copy = shutil.copytree(folder, tmp_path / name)
    make = shared_models / "tools" / "regen_params.py"
    subprocess.run([sys.executable, make, copy], check=True, stdout=subprocess.DEVNULL)
    return copy


def close(got, want, spec):
    rtol, atol = spec.get("rtol", 1e-4), spec.get("atol", 1e-4)
    if want.dtype.kind in "biu":
        return np.array_equal(got, want)
    return got.shape == want.shape and np.allclose(got, want, rtol, atol)


@pytest.mark.parametrize("name", INFERENCE)
def test_inference(shared_models, name, tmp_path):
    folder = whole(shared_models, name, tmp_path)
    meta = json.loads((folder / "meta.json").read_text())
    model = heddle.load(folder)
    assert [i.name for i in model.inputs] == [f["name"] for f in meta["feeds"]]
    for case in meta.get("cases") or [{"dir": "."}]:
        at = folder / case.get("dir", ".")
        feeds = {f["name"]: np.load(at / f"in_{f['name'].replace('/', '_')}.npy")
                 for f in meta["feeds"]}
        out = model.run(feeds)
        for k, got in enumerate(out):
            assert close(got, np.load(at / f"out_{k}.npy"), meta.get("tolerance") or {}), (at, k)


@pytest.mark.parametrize("name", TRAINING)
def test_training(shared_models, name):
    folder = shared_models / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    meta = json.loads((folder / "meta.json").read_text())
    exe, scope = static.Executor(), static.Scope()
    main = (folder / "main.pdmodel").read_bytes()
    exe.run((folder / "startup.pdmodel").read_bytes(), scope=scope)
    heddle._heddle.load_parameters(heddle.Program.parse(main), str(folder / "init.pdiparams"),
                                   scope._scope)
    data = {f["name"]: np.load(folder / f"in_{f['name']}.npy") for f in meta["feeds"]}
    fetches = [f["fetch"] for f in meta["fetches"]]
    want = [np.load(folder / f["file"]) for f in meta["fetches"]]
    for step in range(5):
        feed = {f["name"]: data[f["name"]][step % len(data[f["name"]])] for f in meta["feeds"]}
        out = exe.run(main, feed=feed, fetch_list=fetches, scope=scope)
        for got, stacked in zip(out, want):
            assert np.allclose(np.squeeze(got), np.squeeze(stacked[step]), 1e-3, 1e-4), step


def test_matrices_of_eight_bits(shared_models, tmp_path):
    folder = whole(shared_models, "bert_tiny", tmp_path)
    ids = np.arange(16).reshape(1, 16)
    exact, near = (heddle.load(folder, threads=1, precision=p)(ids, ids * 0)[0]
                   for p in ("f32", "int8"))
    assert 0 < np.abs(near - exact).max() < 0.1 * np.abs(exact).max()
