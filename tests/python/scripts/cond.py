"""Two branches with parameters of their own."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(11)

x = static.data("x", [None, 4])
left, right = paddle.nn.Linear(4, 2), paddle.nn.Linear(4, 2)
out = static.nn.cond(paddle.mean(x) > 0.5, lambda: left(x), lambda: paddle.tanh(right(x)))
loss = paddle.mean(paddle.square(out - 1.0))
paddle.optimizer.SGD(0.3).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for scale in (0.2, 1.6, 0.1, 1.8, 0.3):
    batch = {"x": (random.rand(3, 4) * scale).astype("float32")}
    results += exe.run(feed=batch, fetch_list=[loss, out])
