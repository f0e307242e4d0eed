"""A loop with gradient through its array and state."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(107)

x = static.data("x", [None, 4])
w = static.create_parameter([4, 4], "float32", name="w")
i = paddle.full([1], 0, "int64")
n = paddle.full([1], 3, "int64")
i.stop_gradient = n.stop_gradient = True
def body(i, h):
    return [i + 1, paddle.tanh(paddle.matmul(h, w))]
i, h = static.nn.while_loop(lambda i, h: i < n, body, [i, x])
loss = paddle.mean(h * h)
paddle.optimizer.Adam(0.1).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    results += exe.run(feed={"x": random.rand(2, 4).astype("float32")},
                       fetch_list=[loss, h])
