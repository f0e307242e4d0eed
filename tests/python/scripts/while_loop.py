"""A loop whose trip count is fed, with gradients through it."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(10)

x = static.data("x", [2, 3])
x.stop_gradient = False
limit = static.data("limit", [1], "int64")
weight = static.create_parameter([3, 3], "float32")


def body(i, state):
    return i + 1, paddle.tanh(paddle.matmul(state, weight))


start = paddle.zeros([1], "int64")
_, out = static.nn.while_loop(lambda i, state: paddle.less_than(i, limit), body, [start, x])
loss = paddle.mean(paddle.square(out))
paddle.optimizer.SGD(0.5).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for trips in (3, 1, 5):
    batch = {"x": random.rand(2, 3).astype("float32"), "limit": np.array([trips], "int64")}
    results += exe.run(feed=batch, fetch_list=[loss, out])
