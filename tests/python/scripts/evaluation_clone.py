"""clone(for_test=True): dropout and batch norm as in inference."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(24)

x = static.data("x", [None, 6])
net = static.nn.batch_norm(static.nn.fc(x, 8), act="relu")
net = paddle.nn.functional.dropout(net, 0.5)
loss = paddle.mean(static.nn.fc(net, 1))
test = static.default_main_program().clone(for_test=True)
paddle.optimizer.SGD(0.1).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
held_out = {"x": random.rand(7, 6).astype("float32")}
for step in range(4):
    results += exe.run(feed={"x": random.rand(9, 6).astype("float32")}, fetch_list=[loss])
    results += exe.run(test, feed=held_out, fetch_list=[loss.name])
