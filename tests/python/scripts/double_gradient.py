"""A penalty on the gradient: gradients of gradients."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(111)

x = static.data("x", [4, 3])
x.stop_gradient = False
net = static.nn.fc(x, 6, activation="tanh")
out = static.nn.fc(net, 1)
slope, = static.gradients([out], [x])
penalty = paddle.mean(paddle.square(paddle.sqrt(paddle.sum(slope * slope, 1) + 1e-6) - 1))
loss = paddle.mean(out) + 10 * penalty
paddle.optimizer.Adam(0.02).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    results += exe.run(feed={"x": random.rand(4, 3).astype("float32")},
                       fetch_list=[loss, penalty, slope])
