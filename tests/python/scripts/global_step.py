"""Counters, autoincreased step, a decay computed by the program."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(127)

x = static.data("x", [None, 3])
step = static.create_global_var([1], 0.0, "float32", persistable=True, name="step")
paddle.increment(step, 1.0)
rate = static.create_global_var([1], 0.1, "float32", persistable=True, name="rate")
paddle.assign(0.1 / (1.0 + 0.5 * step), rate)
loss = paddle.mean(paddle.square(static.nn.fc(x, 2)))
optimizer = paddle.optimizer.SGD(0.1)
grads = optimizer.backward(loss)
optimizer.apply_gradients([(p, g * rate) for p, g in grads])
exe = static.Executor()
exe.run(static.default_startup_program())
for k in range(5):
    results += exe.run(feed={"x": random.rand(4, 3).astype("float32")},
                       fetch_list=[loss, step, rate])
