"""A learning rate that a scheduler lowers in steps."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(15)

x = static.data("x", [None, 4])
loss = paddle.mean(paddle.square(static.nn.fc(x, 3)))
scheduler = paddle.optimizer.lr.PiecewiseDecay([2, 4], [0.5, 0.1, 0.02])
paddle.optimizer.Momentum(scheduler).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(7):
    results += exe.run(feed={"x": random.rand(5, 4).astype("float32")}, fetch_list=[loss])
    scheduler.step()
