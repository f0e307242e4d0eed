#!/usr/bin/env python3
"""Makes examples/digits: a small classifier of handwritten digits, trained and written by Paddle.

Needs paddlepaddle==2.6.2, "numpy<2" and scikit-learn (Python 3.8 to 3.12), for example:

  python3 -m venv .venv && .venv/bin/pip install paddlepaddle==2.6.2 "numpy<2" scikit-learn
  .venv/bin/python scripts/make_digits_model.py

Everything is seeded: a second run on the same machine writes the same files. Takes less than a
minute.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import paddle
from paddle import static
from paddle.base.proto import framework_pb2
from sklearn.datasets import load_digits

SEED, EPOCHS, BATCH, HELD_OUT, SAMPLES = 20, 40, 32, 360, 4
LEARNING_RATE = 0.003
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
README = """# Handwritten digits

A convolutional network for 8x8 images of handwritten digits, small enough to lie in the repository.

| file | what |
|---|---|
| `model.pdmodel`, `model.pdiparams` | the program and its parameters, as Paddle 2.6.2 writes them |
| `input.npy` | the first {samples} images of the held-out part: float32 [{samples}, 1, 8, 8], \
grey values 0 to 16 |
| `labels.txt` | the names of the classes |
| `show.py` | draws the images with what the model says |
| `onnx/model.onnx` | the same model as ONNX; `scripts/make_digits_onnx.py` writes it |
| `tensorflow/` | the same as a SavedModel; `scripts/make_digits_saved_model.py` writes it |
| `train/` | the same network to train from scratch with heddle |

```
heddle run examples/digits --feed x=examples/digits/input.npy --labels examples/digits/labels.txt
```

Accuracy on {held_out} held-out images: {accuracy:.4f}. The images are scikit-learn's `load_digits`
(UCI, Optical Recognition of Handwritten Digits). `scripts/make_digits_model.py` makes all of this,
but for `onnx/`, `tensorflow/`, `show.py` and `train/accuracy.py`.
"""


def data():
    """Images [n, 1, 8, 8] and classes [n, 1], shuffled: the training part, then the held-out
    part."""
    digits = load_digits()
    order = np.random.RandomState(SEED).permutation(len(digits.target))
    images = digits.images.astype("float32")[order][:, None]
    classes = digits.target.astype("int64")[order][:, None]
    return (images[:-HELD_OUT], classes[:-HELD_OUT]), (images[-HELD_OUT:], classes[-HELD_OUT:])


def network(x, dropout=0.0):
    h = paddle.scale(x, 1.0 / 16)
    h = static.nn.conv2d(h, 8, 3, padding=1, act="relu")
    h = static.nn.conv2d(h, 16, 3, padding=1, act="relu")
    h = paddle.nn.functional.max_pool2d(h, 2, 2)
    h = static.nn.conv2d(h, 32, 3, padding=1, act="relu")
    h = paddle.nn.functional.max_pool2d(h, 2, 2)
    h = static.nn.fc(h, 48, activation="relu")
    if dropout:
        h = paddle.nn.functional.dropout(h, dropout)
    return static.nn.fc(h, 10)


def build(seed, dropout=0.0):
    """Programs of the network; with seed 0 their operators draw from the runtime's generator."""
    main, startup = static.Program(), static.Program()
    main.random_seed = startup.random_seed = seed
    # Names that do not depend on what was built before.
    with static.program_guard(main, startup), paddle.utils.unique_name.guard():
        x = static.data("x", [-1, 1, 8, 8], "float32")
        label = static.data("label", [-1, 1], "int64")
        logits = network(x, dropout)
        prediction = paddle.nn.functional.softmax(logits)
        inference = main.clone(for_test=True)
        loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
        paddle.optimizer.Adam(LEARNING_RATE, weight_decay=1e-4).minimize(loss)
    return main, startup, inference, x, prediction, loss


def train(executor, main, loss, images, classes):
    order = np.random.RandomState(SEED)
    for epoch in range(EPOCHS):
        losses = []
        permutation = order.permutation(len(images))
        for at in range(0, len(images) - BATCH + 1, BATCH):
            pick = permutation[at:at + BATCH]
            losses += executor.run(main, {"x": images[pick], "label": classes[pick]}, [loss])
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")


def without_call_stacks(path):
    """Removes the Python stacks of the operators: they name files of the machine that made them."""
    program = framework_pb2.ProgramDesc()
    program.ParseFromString(path.read_bytes())
    for block in program.blocks:
        for op in block.ops:
            kept = [a for a in op.attrs if a.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
    path.write_bytes(program.SerializeToString(deterministic=True))


def write_training(out):
    """The programs that `heddle train` begins with, and the images in two parts."""
    (images, classes), (test_images, test_classes) = data()
    program, startup, *_ = build(seed=0, dropout=0.25)
    for name, made in (("startup", startup), ("main", program)):
        path = out / f"{name}.pdmodel"
        path.write_bytes(made.desc.serialize_to_string())
        without_call_stacks(path)
    np.savez_compressed(out / "train.npz", x=images, label=classes)
    np.savez_compressed(out / "test.npz", x=test_images)
    np.save(out / "test_labels.npy", test_classes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("--out", type=Path, default=root / "examples" / "digits")
    parser.add_argument("--training-only", action="store_true",
                        help="write what `heddle train` needs and leave the trained model alone")
    options = parser.parse_args()
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    paddle.enable_static()
    (out / "train").mkdir(exist_ok=True)
    write_training(out / "train")
    if not options.training_only:
        write_model(out)


def write_model(out):
    """The inference model, trained by Paddle, with a sample of its input."""
    paddle.seed(SEED)
    (images, classes), (test_images, test_classes) = data()
    program, startup, inference, x, prediction, loss = build(SEED)
    executor = static.Executor(paddle.CPUPlace())
    executor.run(startup)
    train(executor, program, loss, images, classes)
    static.save_inference_model(str(out / "model"), [x], [prediction], executor, program=inference)
    without_call_stacks(out / "model.pdmodel")

    # What the written files say, not the network in memory.
    loaded, _, fetches = static.load_inference_model(str(out / "model"), executor)
    probabilities = executor.run(loaded, {"x": test_images}, fetches)[0]
    accuracy = float(np.mean(probabilities.argmax(1) == test_classes[:, 0]))
    print(f"accuracy on {HELD_OUT} held-out images: {accuracy:.4f}")
    np.save(out / "input.npy", test_images[:SAMPLES])
    (out / "labels.txt").write_text("\n".join(NAMES) + "\n")
    (out / "README.md").write_text(
        README.format(samples=SAMPLES, held_out=HELD_OUT, accuracy=accuracy))


if __name__ == "__main__":
    main()
