#!/usr/bin/env python3
"""Writes tests/executor/reader: a small training program that reads its batches itself.

startup.pdmodel gives the parameters their first values; main.pdmodel is a step, which begins with
create_py_reader, create_double_buffer_reader and read, as a DataLoader puts them there. losses.txt
has what Paddle computes in two epochs, a line a step.

Needs paddlepaddle==2.6.2 and numpy<2 in the Python that runs it."""

import sys
from pathlib import Path

import numpy as np
import paddle
from paddle import static

OUT = Path(__file__).resolve().parent.parent / "tests" / "executor" / "reader"
EPOCHS, BATCHES, ROWS, WIDTH, CLASSES = 2, 6, 4, 4, 3


def numbers(count, first):
    """Numbers in [-0.5, 0.5) that tests/executor/readers_test.cc makes again."""
    i = np.arange(first, first + count, dtype=np.uint64)
    bits = (i * np.uint64(2654435761) % np.uint64(1 << 32)) >> np.uint64(8)
    return (bits.astype(np.float64) / (1 << 24) - 0.5).astype(np.float32)


def batches():
    for k in range(BATCHES):
        x = numbers(ROWS * WIDTH, k * ROWS * WIDTH).reshape(ROWS, WIDTH)
        yield x, x[:, :CLASSES].argmax(axis=1).astype(np.int64).reshape(ROWS, 1)


def main():
    paddle.enable_static()
    program, startup = static.Program(), static.Program()
    with static.program_guard(program, startup), paddle.utils.unique_name.guard():
        x, label = static.data("x", [-1, WIDTH]), static.data("label", [-1, 1], "int64")
        loader = paddle.base.reader.DataLoader.from_generator(
            feed_list=[x, label], capacity=2, iterable=False, use_double_buffer=True)
        weights = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.25))
        logits = static.nn.fc(x, CLASSES, weight_attr=weights)
        loss = paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(logits, label))
        paddle.optimizer.SGD(0.5).minimize(loss)
    for op in [op for p in (startup, program) for block in p.blocks for op in block.ops]:
        op._remove_attr("op_callstack")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "startup.pdmodel").write_bytes(startup.desc.serialize_to_string())
    (OUT / "main.pdmodel").write_bytes(program.desc.serialize_to_string())
    loader.set_batch_generator(batches)
    executor = static.Executor(paddle.CPUPlace())
    executor.run(startup)
    losses = []
    for _ in range(EPOCHS):
        loader.start()
        try:
            while True:
                losses.append(float(executor.run(program, fetch_list=[loss])[0]))
        except paddle.base.core.EOFException:
            loader.reset()
    (OUT / "losses.txt").write_text("".join(f"{value:.9g}\n" for value in losses))
    return 0


if __name__ == "__main__":
    sys.exit(main())
