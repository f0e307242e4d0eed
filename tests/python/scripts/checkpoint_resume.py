"""Training stopped and resumed: parameters, optimizer, scheduler state."""
import os
import tempfile

import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(105)

x = static.data("x", [None, 4])
loss = paddle.mean(paddle.square(static.nn.fc(static.nn.fc(x, 6, activation="tanh"), 1) - 1))
scheduler = paddle.optimizer.lr.StepDecay(0.1, 2)
optimizer = paddle.optimizer.Adam(scheduler)
optimizer.minimize(loss)
main, startup = static.default_main_program(), static.default_startup_program()
exe = static.Executor()
exe.run(startup)
batches = [{"x": random.rand(5, 4).astype("float32")} for _ in range(6)]
with tempfile.TemporaryDirectory() as folder:
    for k in range(3):
        results += exe.run(main, feed=batches[k], fetch_list=[loss])
        scheduler.step()
    paddle.save(main.state_dict(), os.path.join(folder, "m.pdparams"))
    paddle.save({"LR_Scheduler": scheduler.state_dict()}, os.path.join(folder, "m.pdopt"))
    for k in range(3, 6):
        results += exe.run(main, feed=batches[k], fetch_list=[loss])
        scheduler.step()
    with static.scope_guard(static.Scope()):
        exe2 = static.Executor()
        exe2.run(startup)
        main.set_state_dict(paddle.load(os.path.join(folder, "m.pdparams")))
        scheduler.set_state_dict(paddle.load(os.path.join(folder, "m.pdopt"))["LR_Scheduler"])
        for k in range(3, 6):
            results += exe2.run(main, feed=batches[k], fetch_list=[loss])
            scheduler.step()
