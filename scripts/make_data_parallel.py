#!/usr/bin/env python3
"""Writes tests/ranks/data_parallel: a small training program for one, two and four ranks.

startup.pdmodel gives the parameters their first values, main_<n>.pdmodel is a step for n ranks:
behind each gradient stand c_allreduce_sum and scale by 1 / n. losses_<n>.txt has what Paddle
computes, a line a step with each rank's loss: n processes that communicate by gloo.
shards.npz has the data, eight samples a shard and four shards a step.

Needs paddlepaddle==2.6.2 and numpy<2 in the Python that runs it."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "ranks" / "data_parallel"
STEPS, BATCH, WIDTH, CLASSES = 12, 8, 16, 4
RANKS = (1, 2, 4)


def numbers(count, first):
    """Numbers in [-0.5, 0.5) that tests/ranks/data_parallel_test.cc makes again."""
    import numpy as np

    i = np.arange(first, first + count, dtype=np.uint64)
    bits = (i * np.uint64(2654435761) % np.uint64(1 << 32)) >> np.uint64(8)
    return (bits.astype(np.float64) / (1 << 24) - 0.5).astype(np.float32)


def shard(step, shard_of_step):
    """The operands of one of the four shards of a step."""
    import numpy as np

    at = (step * 4 + shard_of_step) * BATCH * WIDTH
    x = numbers(BATCH * WIDTH, at).reshape(BATCH, WIDTH)
    label = (x[:, :CLASSES].argmax(axis=1)).astype(np.int64).reshape(BATCH, 1)
    return x, label


def batch(step, rank, ranks):
    """What a rank gets: all ranks together have the four shards."""
    import numpy as np

    each = 4 // ranks
    parts = [shard(step, rank * each + k) for k in range(each)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def uniform():
    import paddle

    return paddle.ParamAttr(initializer=paddle.nn.initializer.XavierUniform())


def build(ranks):
    """The startup and the main program, and the loss."""
    import paddle
    from paddle import static

    paddle.enable_static()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup), paddle.utils.unique_name.guard():
        x = static.data("x", [-1, WIDTH])
        label = static.data("label", [-1, 1], "int64")
        hidden = static.nn.fc(x, 16, activation="tanh", weight_attr=uniform())
        logits = static.nn.fc(hidden, CLASSES, weight_attr=uniform())
        loss = paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(logits, label))
        pairs = static.append_backward(loss)
        block = main.global_block()
        for _, gradient in pairs if ranks > 1 else []:
            block.append_op(type="c_allreduce_sum", inputs={"X": [gradient]},
                            outputs={"Out": [gradient]},
                            attrs={"ring_id": 0, "use_calc_stream": True})
            block.append_op(type="scale", inputs={"X": [gradient]}, outputs={"Out": [gradient]},
                            attrs={"scale": 1.0 / ranks})
        paddle.optimizer.Momentum(0.5, 0.9).apply_gradients(pairs)
    for op in [op for p in (startup, main) for block in p.blocks for op in block.ops]:
        op._remove_attr("op_callstack")
    seed = 11
    for op in startup.global_block().ops:
        if op.type == "uniform_random":
            op._set_attr("seed", seed)
            seed += 1
    return startup, main, loss


def run_rank(rank, ranks, port):
    """One process of a group; prints a loss a step."""
    import paddle
    from paddle import static

    startup, main, loss = build(ranks)
    if ranks > 1:
        paddle.distributed.gloo_init_parallel_env(rank, ranks, f"127.0.0.1:{port}")
    executor = static.Executor(paddle.CPUPlace())
    executor.run(startup)
    for step in range(STEPS):
        x, label = batch(step, rank, ranks)
        value = executor.run(main, feed={"x": x, "label": label}, fetch_list=[loss])[0]
        print(f"loss {float(value):.9g}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--port", type=int, default=17890)
    arguments = parser.parse_args()
    if arguments.rank is not None:
        return run_rank(arguments.rank, arguments.ranks, arguments.port)
    import numpy as np

    OUT.mkdir(parents=True, exist_ok=True)
    shards = [shard(step, k) for step in range(STEPS) for k in range(4)]
    np.savez(OUT / "shards.npz", x=np.concatenate([x for x, _ in shards]),
             label=np.concatenate([label for _, label in shards]))
    for ranks in RANKS:
        startup, program, _ = build(ranks)
        (OUT / f"main_{ranks}.pdmodel").write_bytes(program.desc.serialize_to_string())
        (OUT / "startup.pdmodel").write_bytes(startup.desc.serialize_to_string())
        with tempfile.TemporaryDirectory() as folder:
            logs = [open(Path(folder) / str(r), "w+") for r in range(ranks)]
            command = [sys.executable, str(Path(__file__).resolve()), "--ranks", str(ranks),
                       "--port", str(arguments.port + ranks), "--rank"]
            # Paddle logs into the working directory.
            group = [subprocess.Popen(command + [str(r)], stdout=logs[r], cwd=folder)
                     for r in range(ranks)]
            if any(process.wait() for process in group):
                sys.exit(f"{ranks} ranks: a process failed")
            columns = []
            for log in logs:
                log.seek(0)
                columns.append([line.split()[1] for line in log if line.startswith("loss ")])
        rows = "".join(" ".join(row) + "\n" for row in zip(*columns))
        (OUT / f"losses_{ranks}.txt").write_text(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
