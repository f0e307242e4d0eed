#!/usr/bin/env python3
"""Fine-tunes networks drawn at random with `heddle train --forward` and compares every loss, the
trained values and the exported model with a twin in NumPy (twin.py).

  sweep.py --heddle build/release/heddle [--formats onnx,paddle,pir,tf] [--count 24] [--seed 1]
           [--paddle PYTHON] [--tf PYTHON] [--onnxruntime PYTHON] [--keep DIR]

Each network is trained in one way: with a loss that is added (--labels), often with a new head,
with adapters, with batch norms in training mode, or in batches that its file does not have. `pir`
models are Paddle's, converted by heddle. With --onnxruntime, exported ONNX models also run there,
with --tf and --paddle those of the other formats in their frameworks.

Exit status 0 when all agree."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import builders  # noqa: E402
import twin as t  # noqa: E402

LOSSES = {"": ["softmax_with_cross_entropy", "mse", "bce_with_logits"],
          "softmax": ["softmax_with_cross_entropy", "cross_entropy", "mse"],
          "log_softmax": ["softmax_with_cross_entropy", "cross_entropy"],
          "sigmoid": ["bce", "bce_with_logits", "mse"]}
RATES = {"sgd": 0.2, "momentum": 0.05, "adam": 0.02}


class Mismatch(Exception):
    pass


def heddle(options, *words):
    done = subprocess.run([options.heddle, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Mismatch(f"heddle {words[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done


def build(options, kind, spec, weights, directory):
    directory.mkdir(parents=True)
    if kind == "onnx":
        return builders.onnx(spec, weights, directory)
    (directory.parent / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    np.savez(directory.parent / "weights.npz", **weights)
    env = {"tf": options.tf}.get(kind, options.paddle)
    target = directory if kind != "pir" else directory.parent / "paddle"
    target.mkdir(exist_ok=True)
    subprocess.run([env, HERE / "builders.py", "paddle" if kind == "pir" else kind,
                    directory.parent / "spec.json", directory.parent / "weights.npz", target],
                   check=True, capture_output=True)
    if kind == "pir":
        heddle(options, "convert", target, "-o", directory, "--to", "pir")


def close(what, got, wanted, rtol=2e-3, atol=2e-5):
    got, wanted = np.asarray(got, "f8"), np.asarray(wanted, "f8")
    if got.shape != wanted.shape:
        raise Mismatch(f"{what}: shape {got.shape}, expected {wanted.shape}")
    far = np.abs(got - wanted) - (atol + rtol * np.abs(wanted))
    if not (far <= 0).all():
        at = np.unravel_index(np.argmax(far), far.shape) if far.ndim else ()
        raise Mismatch(f"{what}: {got[at]} at {at}, expected {wanted[at]}")


class Case:
    """One network and how it is trained."""

    def __init__(self, random, kind, ways):
        self.kind = kind
        self.way = str(random.choice(ways))
        fc_only = kind == "tf"
        while True:
            layers, weights, shape, classes = t.draw(random, ["fc"] if fc_only else ["fc", "conv"])
            kinds = [layer["kind"] for layer in layers]
            if self.way == "norms" and "norm" not in kinds:
                continue
            if self.way == "head and adapters" and kinds.count("fc") + kinds.count("conv") < 2:
                continue
            break
        # A bias before a norm of batches has a gradient of zero; Adam makes steps of its noise.
        for layer, behind in zip(layers, layers[1:]):
            if self.way == "norms" and layer["kind"] == "conv" and behind["kind"] == "norm":
                weights.pop(layer["b"], None)
                layer["b"] = None
        self.final = str(random.choice(list(LOSSES)))
        self.op = str(random.choice(LOSSES[self.final]))
        self.layers, self.weights, self.classes = layers, weights, classes
        self.spec = {"layers": layers, "shape": list(shape), "classes": classes,
                     "final": self.final}
        self.samples, self.steps = int(random.integers(2, 7)), int(random.integers(8, 25))
        if self.way == "batch":
            self.spec["batch"] = 1
            self.spec["minus_one"] = bool(random.random() < 0.5)
        self.rule = str(random.choice(list(RATES)))
        self.rate = RATES[self.rule] / (8 if "adapters" in self.way else 1)
        self.heads = int(random.integers(2, 7)) if self.way in ("head", "head and adapters") else 0
        if self.heads:
            self.spec["head"] = self.heads
        outputs = self.heads or classes
        batches = int(random.integers(1, 4))
        self.x = random.normal(0, 1, (batches, self.samples) + tuple(shape)).astype("f4")
        self.labels = self._labels(random, batches, outputs)
        self.rank = int(random.integers(1, 3))
        self.alpha = float(random.choice([self.rank, 1, 4]))
        self.freeze = layers[0]["w"] if "w" in layers[0] and random.random() < 0.3 else None
        if self.freeze is not None and layers[0] is t.head_of(layers):
            self.freeze = None

    def _labels(self, random, batches, outputs):
        shape = (batches, self.samples)
        if "cross_entropy" in self.op:
            form = random.integers(0, 3)
            if form == 2:
                soft = random.random(shape + (outputs,)).astype("f4") + 0.1
                return soft / soft.sum(-1, keepdims=True)
            made = random.integers(0, outputs, shape).astype(str(random.choice(["i8", "i4"])))
            return made[..., None] if form == 1 else made
        if self.op == "mse":
            return random.normal(0, 1, shape + (outputs,)).astype("f4")
        return random.integers(0, 2, shape + (outputs,)).astype("f4")

    def __str__(self):
        return (f"{self.kind}, {self.way}, {self.op} on '{self.final}', {self.rule}, "
                + " ".join(layer["kind"] for layer in self.layers))


def options_of(case):
    words = ["--labels", "label", "--loss-op", case.op, "--optimizer", case.rule]
    if case.heads:
        words += ["--head", case.heads, "--seed", 5]
    if "adapters" in case.way:
        words += ["--lora", f"{case.rank},{case.alpha}"]
    if case.way == "norms":
        words += ["--norms", "train"]
    if case.freeze is not None and case.way != "adapters" and case.way != "head and adapters":
        words += ["--freeze", case.freeze]
    return words


def run_twin(case, start, adapters):
    """(losses, twin) of the same steps from the same values."""
    net = t.Twin(case.layers, start, case.way == "norms")
    rule = t.Rule(case.rule, case.rate)
    net.adapters = {name: [left.astype("f8"), right.astype("f8"), float(scale)]
                    for name, (left, right, scale) in adapters.items()}
    losses = []
    fixed = {n for layer in case.layers for n in layer.get("names", [])[2:]}
    head = t.head_of(case.layers)
    for step in range(case.steps):
        x = case.x[step % len(case.x)]
        labels = case.labels[step % len(case.labels)]
        logits = net.forward(x)
        loss, g = t.loss_of(logits, labels, case.op, case.final)
        losses.append(loss)
        grads = net.backward(g)
        values = {}
        for name in list(grads):
            if "adapters" in case.way:
                kept = name.endswith((".left", ".right")) or (
                    case.heads and name in (head["w"], head["b"]))
            else:
                kept = name not in fixed and name != case.freeze
            if not kept:
                del grads[name]
        for name, (left, right, _) in net.adapters.items():
            values[name + ".left"], values[name + ".right"] = left, right
        values.update(net.w)
        rule.step(values, grads)
    return losses, net


def adapters_in(path):
    with np.load(path) as arrays:
        names = {name.rsplit(".", 1)[0] for name in arrays}
        return {n: tuple(arrays[f"{n}.lora_{part}"] for part in ("left", "right", "scale"))
                for n in names}


def check(options, case, folder):
    model, other = folder / "model", folder / "out"
    build(options, case.kind, case.spec, case.weights, model)
    np.save(folder / "x.npy", case.x)
    np.save(folder / "label.npy", case.labels)
    base = ["train", "--forward", model, *options_of(case), "--feed", f"x={folder / 'x.npy'}",
            "--feed", f"label={folder / 'label.npy'}", "--quiet"]
    adapted = "adapters" in case.way and (not case.heads)
    keep = ["--save-adapter", folder / "first.npz"] if adapted else []
    heddle(options, *base, "--lr", 0, "--steps", 1, "--save", folder / "first_all.npz", *keep)
    with np.load(folder / "first_all.npz") as arrays:
        first = {name: arrays[name] for name in arrays}
    start = {name: first[name] if name in first else w for name, w in case.weights.items()}
    if case.way == "norms":  # which that step has changed
        for layer in case.layers:
            for name in layer.get("names", [])[2:]:
                start[name] = case.weights[name]
    for name, w in start.items():
        if not case.heads and not np.array_equal(w, case.weights[name]):
            raise Mismatch(f"'{name}' changed with a learning rate of 0")
    adapters = {}
    if "adapters" in case.way:
        for name in case.weights:
            if name + "@LORA_LEFT" in first:
                adapters[name] = (first[name + "@LORA_LEFT"], first[name + "@LORA_RIGHT"],
                                  case.alpha / case.rank)
        if not adapters and not case.heads:
            raise Mismatch("there are no adapters")
    keep = ["--save-adapter", folder / "last.npz"] if adapted else []
    heddle(options, *base, "--lr", case.rate, "--steps", case.steps, "--out", other,
           "--save", folder / "last_all.npz", "--export", folder / "exported", *keep)
    losses, net = run_twin(case, start, adapters)
    close("losses", np.load(other / "out_0.npy").reshape(-1), losses)
    with np.load(folder / "last_all.npz") as arrays:
        for name in case.weights:
            if name in arrays and name not in net.adapters:
                close(f"'{name}'", arrays[name], net.w[name], 1e-2, 1e-4)
    wanted = t.ending(t.Twin(case.layers, {n: net.weight(n) for n in net.w}).forward(case.x[0]),
                      case.final)
    run_exported(options, case, folder, folder / "exported", wanted)
    if adapted:
        for name, (left, right, scale) in adapters_in(folder / "last.npz").items():
            close(f"left of '{name}'", left, net.adapters[name][0], 1e-2, 1e-4)
            close(f"right of '{name}'", right, net.adapters[name][1], 1e-2, 1e-4)
        got = outputs(options, case, folder, model, ["--adapter", folder / "last.npz"])
        close("the model with --adapter", got, wanted, 5e-3, 5e-4)


def outputs(options, case, folder, model, more=()):
    """What `heddle run` gives for the first batch; where the file fixes 1 sample, one by one."""
    parts = case.x[0][:, None] if case.spec.get("batch") else [case.x[0]]
    made = []
    for part in parts:
        np.save(folder / "one.npy", part)
        heddle(options, "run", model, "--feed", f"x={folder / 'one.npy'}", "--out", folder / "run",
               *more)
        made.append(np.load(folder / "run/out_0.npy"))
    return np.concatenate(made)


ORACLES = {
    "onnx": "import onnxruntime as o; s = o.InferenceSession(sys.argv[1] + '/model.onnx'); "
            "y = s.run(None, {'x': x})[0]; "
            "d = s.get_outputs()[0].shape; assert d[-1] == y.shape[-1], d",
    "tf": "import tensorflow as t; m = t.saved_model.load(sys.argv[1]); "
          "f = m.signatures['serving_default']; y = f(x=t.constant(x))['y'].numpy(); "
          "d = f.structured_outputs['y'].shape; "
          "assert m(t.constant(x))['y'].shape == y.shape",
    "paddle": "import paddle as p; p.enable_static(); e = p.static.Executor(p.CPUPlace()); "
              "g, f, o = p.static.load_inference_model(sys.argv[1] + '/model', e); "
              "assert o[0].shape[-1] in (-1, e.run(g, {'x': x}, o)[0].shape[-1]), o[0].shape; "
              "y = e.run(g, {'x': x}, o)[0]",
}


def run_exported(options, case, folder, exported, wanted):
    told = json.loads(heddle(options, "inspect", exported, "--json").stdout)
    declared = told["outputs"][0]["shape"]
    if declared is not None and declared[-1] not in (-1, wanted.shape[-1]):
        raise Mismatch(f"the exported model declares {declared} for an output of {wanted.shape}")
    close("the exported model", outputs(options, case, folder, exported), wanted, 5e-3, 5e-4)
    env = {"onnx": options.onnxruntime, "tf": options.tf, "paddle": options.paddle}.get(case.kind)
    if env is None or (case.kind == "onnx" and not options.onnxruntime):
        return
    parts = case.x[0][:, None] if case.spec.get("batch") else [case.x[0]]
    made = []
    for part in parts:
        np.save(folder / "one.npy", part)
        code = ("import sys, numpy as n; x = n.load(sys.argv[2]); " + ORACLES[case.kind]
                + "; n.save(sys.argv[3], y)")
        done = subprocess.run([env, "-c", code, exported, folder / "one.npy", folder / "two.npy"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise Mismatch(f"the exported model elsewhere: {done.stderr.strip()[-600:]}")
        made.append(np.load(folder / "two.npy"))
    close("the exported model elsewhere", np.concatenate(made), wanted, 5e-3, 5e-4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--formats", default="onnx")
    parser.add_argument("--ways", default="loss,head,adapters,head and adapters,norms,batch")
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--paddle")
    parser.add_argument("--tf")
    parser.add_argument("--onnxruntime")
    parser.add_argument("--keep", help="the folder of a case that fails is left there")
    options = parser.parse_args()
    failed = done = 0
    for number in range(options.count):
        for kind in options.formats.split(","):
            random = np.random.default_rng([options.seed, number])
            ways = options.ways.split(",")
            if kind == "tf":
                ways = [way for way in ways if way != "norms"]
            if not ways:
                continue
            case = Case(random, kind, ways)
            with tempfile.TemporaryDirectory() as folder:
                done += 1
                try:
                    check(options, case, Path(folder))
                except (Mismatch, subprocess.CalledProcessError) as error:
                    failed += 1
                    if isinstance(error, subprocess.CalledProcessError):
                        error = (error.stderr or b"").decode()[-800:]
                    print(f"case {number} ({case}): {error}", flush=True)
                    if options.keep:
                        to = Path(options.keep) / f"{kind}_{options.seed}_{number}"
                        subprocess.run(["cp", "-r", folder, to], check=False)
    print(f"{done - failed} networks agree, {failed} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
