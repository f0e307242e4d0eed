"""A perceptron, SGD."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(1)

x = static.data("x", [None, 8])
y = static.data("y", [None, 1], "int64")
hidden = static.nn.fc(x, 16, activation="relu")
loss = paddle.mean(paddle.nn.functional.cross_entropy(static.nn.fc(hidden, 4), y))
paddle.optimizer.SGD(0.2).minimize(loss)

exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
for step in range(6):
    batch = {"x": random.rand(12, 8).astype("float32"), "y": random.randint(0, 4, (12, 1))}
    results += exe.run(feed=batch, fetch_list=[loss])
