"""static.save, static.load, load_program_state into a fresh scope."""
import os
import tempfile

import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(105)

x = static.data("x", [None, 4])
loss = paddle.mean(paddle.square(static.nn.fc(x, 3, activation="tanh")))
paddle.optimizer.RMSProp(0.05, momentum=0.5, centered=True).minimize(loss)
main, startup = static.default_main_program(), static.default_startup_program()
exe = static.Executor()
exe.run(startup)
batches = [{"x": random.rand(6, 4).astype("float32")} for _ in range(3)]
for batch in batches:
    results += exe.run(feed=batch, fetch_list=[loss])
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "state")
    static.save(main, path)
    for batch in batches:
        results += exe.run(feed=batch, fetch_list=[loss])
    with static.scope_guard(static.Scope()):
        exe.run(startup)
        static.load(main, path, exe)
        for batch in batches:
            results += exe.run(main, feed=batch, fetch_list=[loss])
    state = static.load_program_state(path)
    results += [state[name] for name in sorted(state)]
    static.set_program_state(main, state)
    results += exe.run(main, feed=batches[0], fetch_list=[loss])
