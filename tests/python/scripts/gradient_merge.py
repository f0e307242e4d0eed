"""Gradients collected over four steps, then one update."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(102)

x = static.data("x", [None, 5])
y = static.data("y", [None, 1])
loss = paddle.mean(paddle.nn.functional.square_error_cost(static.nn.fc(x, 1), y))
optimizer = paddle.incubate.optimizer.GradientMergeOptimizer(
    paddle.optimizer.Adam(0.05), k_steps=4, avg=True)
optimizer.minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(10):
    batch = {"x": random.rand(6, 5).astype("float32"), "y": random.rand(6, 1).astype("float32")}
    results += exe.run(feed=batch, fetch_list=[loss])
