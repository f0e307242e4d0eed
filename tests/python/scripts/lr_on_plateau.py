"""ReduceOnPlateau: the scheduler hears of the loss."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(101)

x = static.data("x", [None, 3])
loss = paddle.mean(paddle.abs(static.nn.fc(x, 1)))
scheduler = paddle.optimizer.lr.ReduceOnPlateau(0.5, factor=0.5, patience=1, threshold=0.5)
paddle.optimizer.Momentum(scheduler, 0.9).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(8):
    value, = exe.run(feed={"x": random.rand(4, 3).astype("float32")}, fetch_list=[loss])
    scheduler.step(value)
    results += [value, np.float32(scheduler())]
