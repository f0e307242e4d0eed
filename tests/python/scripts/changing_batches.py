"""Batches of changing size in one loop."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(26)

x = static.data("x", [None, 4])
y = static.data("y", [None, 1])
loss = paddle.mean(paddle.square(static.nn.fc(x, 1) - y))
paddle.optimizer.SGD(0.1).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for size in (4, 1, 9, 4, 2, 9):
    batch = {"x": random.rand(size, 4).astype("float32"),
             "y": random.rand(size, 1).astype("float32")}
    results += exe.run(feed=batch, fetch_list=[loss])
