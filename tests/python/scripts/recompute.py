"""Recompute: checkpoints of activations in the backward pass."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(132)

x = static.data("x", [None, 4])
a = static.nn.fc(x, 8, activation="tanh")
b = static.nn.fc(a, 8, activation="tanh")
c = static.nn.fc(b, 8, activation="tanh")
loss = paddle.mean(paddle.square(c))
optimizer = paddle.incubate.optimizer.RecomputeOptimizer(paddle.optimizer.SGD(0.3))
optimizer._set_checkpoints([a, b])
optimizer.minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for k in range(4):
    results += exe.run(feed={"x": random.rand(3, 4).astype("float32")}, fetch_list=[loss])
