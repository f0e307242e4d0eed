"""static.nn.case and switch_case under training."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(110)

x = static.data("x", [None, 3])
k = static.data("k", [1], "int32")
out = static.nn.switch_case(k, {0: lambda: static.nn.fc(x, 2), 3: lambda: static.nn.fc(x, 2) * 2},
                            default=lambda: static.nn.fc(x, 2) - 1)
other = static.nn.case([(paddle.mean(out) > 1.0, lambda: out * 0.1),
                        (paddle.mean(out) > 0.0, lambda: out * 0.5)], default=lambda: out * 1.5)
loss = paddle.mean(paddle.square(other))
paddle.optimizer.SGD(0.2).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(6):
    batch = {"x": random.rand(4, 3).astype("float32"),
             "k": np.array([[0, 3, 7][step % 3]], "int32")}
    results += exe.run(feed=batch, fetch_list=[loss, other])
