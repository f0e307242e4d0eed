"""Ranks of a group, and programs that read their batches from a queue."""

import threading
from pathlib import Path

import numpy as np
import pytest

import heddle
from heddle import _heddle

TESTS = Path(__file__).resolve().parent.parent
STEPS, BATCH = 12, 8


def started(startup):
    scope = _heddle.Scope()
    _heddle.Executor(1).compile(heddle.Program.load(str(startup)), scope).run({})
    return scope


def test_two_ranks_train_as_paddles_processes_do():
    folder = TESTS / "ranks" / "data_parallel"
    data = np.load(folder / "shards.npz")
    expected = np.loadtxt(folder / "losses_2.txt")
    losses = np.zeros_like(expected)
    failures = []

    def train(number, rank):
        try:
            program = heddle.Program.load(str(folder / "main_2.pdmodel"))
            step = _heddle.Executor(1, rank=rank).compile(
                program, started(folder / "startup.pdmodel"), [program.loss])
            rows = 2 * BATCH
            for s in range(STEPS):
                at = slice((2 * s + number) * rows, (2 * s + number + 1) * rows)
                losses[s, number] = step.run({"x": data["x"][at], "label": data["label"][at]})[0]
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=train, args=pair)
               for pair in enumerate(heddle.new_ranks(2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-7)


def test_a_collective_without_a_group_says_so():
    folder = TESTS / "ranks" / "data_parallel"
    data = np.load(folder / "shards.npz")
    program = heddle.Program.load(str(folder / "main_2.pdmodel"))
    step = _heddle.Executor(1).compile(program, started(folder / "startup.pdmodel"), [program.loss])
    with pytest.raises(heddle.InvalidArgument, match="none of a group's"):
        step.run({"x": data["x"][:8], "label": data["label"][:8]})
    with pytest.raises(ValueError):
        heddle.new_ranks(0)


def test_a_program_reads_its_queue_until_the_end():
    folder = TESTS / "executor" / "reader"
    expected = np.loadtxt(folder / "losses.txt")
    bits = np.arange(96, dtype=np.uint64) * np.uint64(2654435761) % np.uint64(1 << 32)
    bits >>= np.uint64(8)
    x = (bits.astype(np.float64) / (1 << 24) - 0.5).astype(np.float32).reshape(6, 4, 4)
    label = x[:, :, :3].argmax(axis=2).astype(np.int64).reshape(6, 4, 1)
    scope = started(folder / "startup.pdmodel")
    queue = heddle.ReaderQueue(2)
    queue.put_into(scope, "lod_tensor_blocking_queue_0")
    program = heddle.Program.load(str(folder / "main.pdmodel"))
    step = _heddle.Executor(1).compile(program, scope, [program.loss])

    def feed():
        for k in range(6):
            assert queue.push([x[k], label[k]])
        queue.close()

    losses = []
    for _ in range(2):
        feeder = threading.Thread(target=feed)
        feeder.start()
        with pytest.raises(heddle.EndOfData):
            while True:
                losses.append(float(step.run({})[0]))
        feeder.join()
        assert queue.closed and not queue.push([x[0], label[0]])
        queue.reset()
    np.testing.assert_allclose(losses, expected, atol=1e-6)
