#!/usr/bin/env python3
"""Makes tests/formats/paddle/pickles: what paddle.save and paddle.static.save write.

Protocols 2 to 4. Needs paddlepaddle==2.6.2 and "numpy<2". The values are those that
tests/formats/paddle/pickle_test.cc expects.
"""

import argparse
import collections
from pathlib import Path

import numpy as np
import paddle
from paddle import static

ROOT = Path(__file__).resolve().parent.parent


def layers(out, protocol):
    paddle.disable_static()
    with paddle.utils.unique_name.guard():
        linear = paddle.nn.Linear(3, 2)
        linear.weight.set_value(np.arange(6, dtype="float32").reshape(3, 2) / 4)
        linear.bias.set_value(np.array([1, -1], "float32"))
        schedule = paddle.optimizer.lr.StepDecay(0.1, 3)
        optimizer = paddle.optimizer.Adam(schedule, parameters=linear.parameters())
        linear(paddle.ones([1, 3])).sum().backward()
        paddle.save(linear.state_dict(), str(out / f"linear{protocol}.pdparams"), protocol=protocol)
        optimizer.step()
        paddle.save(optimizer.state_dict(), str(out / f"linear{protocol}.pdopt"), protocol=protocol)


def mixed(out, protocol):
    paddle.disable_static()
    tensor = paddle.to_tensor
    state = {
        "f32": tensor([1.5, 2]), "f16": tensor([1.0, -2], dtype="float16"),
        "bf16": tensor([1.0, -2], dtype="bfloat16"), "i64": tensor([[1, -2]], dtype="int64"),
        "bool": tensor([True, False]), "scalar": tensor(3.0), "empty": paddle.zeros([0, 3]),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "number": np.float32(4.5),
        "u8": np.array([200], "uint8"), "notes": [1, (2, 3), None, True, 2.5, 1 << 40, -1, "é"],
        "ordered": collections.OrderedDict(a=1),
    }
    paddle.save(state, str(out / f"mixed{protocol}.pdparams"), protocol=protocol)


def program(out, protocol):
    paddle.enable_static()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup), paddle.utils.unique_name.guard(), \
            static.scope_guard(static.Scope()):
        x = static.data("x", [-1, 2], "float32")
        weight = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.5))
        loss = paddle.mean(static.nn.fc(x, 3, weight_attr=weight))
        paddle.optimizer.Momentum(0.25, 0.9).minimize(loss)
        executor = static.Executor(paddle.CPUPlace())
        executor.run(startup)
        weight = main.state_dict()["fc_0.w_0"]
        paddle.save({"fc_0.w_0": weight}, str(out / f"dense{protocol}.pdparams"), protocol=protocol)
        static.save(main, str(out / "program"), protocol=protocol)
        (out / "program.pdmodel").unlink()
        for end in ("pdparams", "pdopt"):
            (out / f"program.{end}").rename(out / f"program{protocol}.{end}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path,
                        default=ROOT / "tests" / "formats" / "paddle" / "pickles")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for protocol in (2, 3, 4):
        layers(out, protocol)
        mixed(out, protocol)
        program(out, protocol)


if __name__ == "__main__":
    main()
