"""static.gradients with respect to an input, and of a gradient."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(30)

x = static.data("x", [None, 3])
x.stop_gradient = False
y = paddle.sum(paddle.square(paddle.tanh(static.nn.fc(x, 4))))
first, = static.gradients([y], [x])
penalty = paddle.mean(paddle.square(first))
second, = static.gradients([penalty], [x])

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(2):
    results += exe.run(feed={"x": random.rand(4, 3).astype("float32")},
                       fetch_list=[y, first, penalty, second])
