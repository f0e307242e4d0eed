"""append_backward, and updates written by hand."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(31)

x = static.data("x", [None, 3])
loss = paddle.mean(paddle.square(static.nn.fc(x, 2)))
pairs = static.append_backward(loss)
for parameter, gradient in pairs:
    paddle.assign(parameter - 0.2 * gradient, parameter)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    results += exe.run(feed={"x": random.rand(4, 3).astype("float32")},
                       fetch_list=[loss] + [gradient for _, gradient in pairs])
