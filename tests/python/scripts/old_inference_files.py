"""Inference model as files of one parameter each, and with names of its own."""
import os
import tempfile

import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(106)

x = static.data("x", [None, 4])
out = static.nn.fc(x, 3, activation="softmax")
exe = static.Executor()
exe.run(static.default_startup_program())
batch = random.rand(2, 4).astype("float32")
results += exe.run(feed={"x": batch}, fetch_list=[out])
with tempfile.TemporaryDirectory() as folder:
    static.io.save_inference_model(os.path.join(folder, "a"), x, out, exe,
                                   program=static.default_main_program(), clip_extra=False)
    with open(os.path.join(folder, "a.pdmodel"), "rb") as file:
        results.append(np.array(len(file.read()) > 100))
    with static.scope_guard(static.Scope()):
        program, names, targets = static.load_inference_model(os.path.join(folder, "a"), exe)
        results += exe.run(program, {names[0]: batch}, targets)
    static.save_vars(exe, folder, static.default_main_program(),
                     vars=static.default_main_program().all_parameters()) if hasattr(
                         static, "save_vars") else None
