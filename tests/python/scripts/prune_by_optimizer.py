"""What minimize() returns, in a fetch list."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(28)

x = static.data("x", [None, 4])
shared = static.nn.fc(x, 3, activation="tanh")
first = paddle.mean(paddle.square(static.nn.fc(shared, 2)))
second = paddle.mean(static.nn.fc(shared, 1))
minimized_first = paddle.optimizer.SGD(0.2).minimize(first)
minimized_second = paddle.optimizer.SGD(0.1).minimize(second)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    batch = {"x": random.rand(5, 4).astype("float32")}
    turn = (minimized_first, first) if step % 2 == 0 else (minimized_second, second)
    results += exe.run(feed=batch, fetch_list=list(turn))
results += exe.run(feed=batch, fetch_list=[first, second])
