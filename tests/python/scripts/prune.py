"""use_prune: what a fetch does not need is left out, its feeds too."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(27)

x = static.data("x", [None, 4])
y = static.data("y", [None, 2])
out = static.nn.fc(x, 2)
loss = paddle.mean(paddle.square(out - y))
test = static.default_main_program().clone(for_test=True)
paddle.optimizer.SGD(0.1).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(3):
    batch = {"x": random.rand(5, 4).astype("float32"), "y": random.rand(5, 2).astype("float32")}
    results += exe.run(feed=batch, fetch_list=[loss], use_prune=True)
    results += exe.run(test, feed={"x": batch["x"]}, fetch_list=[out], use_prune=True)
