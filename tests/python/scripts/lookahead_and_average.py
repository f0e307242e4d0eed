"""LookAhead and ModelAverage around an optimizer."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(122)

x = static.data("x", [None, 4])
out = static.nn.fc(x, 2)
loss = paddle.mean(paddle.square(out - 1))
test = static.default_main_program().clone(for_test=True)
inner = paddle.optimizer.SGD(0.2)
inner.minimize(loss)
average = paddle.incubate.ModelAverage(0.5, min_average_window=2, max_average_window=4)
exe = static.Executor()
exe.run(static.default_startup_program())
batch = {"x": random.rand(5, 4).astype("float32")}
for step in range(6):
    results += exe.run(feed={"x": random.rand(5, 4).astype("float32")}, fetch_list=[loss])
with average.apply(exe):
    results += exe.run(test, feed=batch, fetch_list=[out])
results += exe.run(test, feed=batch, fetch_list=[out])
