"""ExponentialMovingAverage: averaged weights for a test, then the others again."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(38)

x = static.data("x", [None, 4])
out = static.nn.fc(x, 2)
loss = paddle.mean(paddle.square(out))
test = static.default_main_program().clone(for_test=True)
paddle.optimizer.SGD(0.3).minimize(loss)
average = static.ExponentialMovingAverage(0.9)
average.update()

exe = static.Executor()
exe.run(static.default_startup_program())
held_out = {"x": random.rand(3, 4).astype("float32")}
for step in range(3):
    results += exe.run(feed={"x": random.rand(5, 4).astype("float32")}, fetch_list=[loss])
with average.apply(exe):
    results += exe.run(test, feed=held_out, fetch_list=[out])
results += exe.run(test, feed=held_out, fetch_list=[out])
