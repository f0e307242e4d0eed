"""Parameters and state of the optimizer saved, spoilt, and loaded again."""
import os
import tempfile

import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(21)

x = static.data("x", [None, 4])
loss = paddle.mean(paddle.square(static.nn.fc(x, 3) - 1.0))
main = static.default_main_program()
paddle.optimizer.Adam(0.1).minimize(loss)

exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
batches = [{"x": random.rand(5, 4).astype("float32")} for _ in range(4)]
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model")
    for batch in batches:
        results += exe.run(main, feed=batch, fetch_list=[loss])
    static.save(main, path)
    for batch in batches:
        results += exe.run(main, feed=batch, fetch_list=[loss])
    static.load(main, path, exe)
    for batch in batches:
        results += exe.run(main, feed=batch, fetch_list=[loss])
    state = static.load_program_state(path)
    static.set_program_state(main, {name: np.zeros_like(value) for name, value in state.items()})
    results += exe.run(main, feed=batches[0], fetch_list=[loss])
