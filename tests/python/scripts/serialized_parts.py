"""serialize_program, serialize_persistables and back."""
import os
import tempfile

import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(106)

x = static.data("x", [None, 6])
hidden = static.nn.fc(x, 4, activation="relu")
out = static.nn.fc(hidden, 2)
loss = paddle.mean(out)
paddle.optimizer.SGD(0.1).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
batch = {"x": random.rand(3, 6).astype("float32")}
results += exe.run(feed=batch, fetch_list=[loss])
program = static.serialize_program([x], [out])
weights = static.serialize_persistables([x], [out], exe)
normal = static.normalize_program(static.default_main_program(), [x], [out])
results += exe.run(normal, feed=batch, fetch_list=[out])
with static.scope_guard(static.Scope()):
    loaded = static.deserialize_program(program)
    static.deserialize_persistables(loaded, weights, exe)
    results += exe.run(loaded, feed=batch, fetch_list=[out.name])
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "net")
    static.save_inference_model(path, [x], [out, hidden], exe)
    with static.scope_guard(static.Scope()):
        loaded, names, targets = static.load_inference_model(path, exe)
        results += exe.run(loaded, feed={names[0]: batch["x"]}, fetch_list=targets)
