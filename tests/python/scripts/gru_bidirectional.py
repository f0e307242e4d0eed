"""A GRU in both directions with sequence lengths, RMSProp."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(7)

x = static.data("x", [None, 6, 4])
length = static.data("length", [None], "int64")
target = static.data("target", [None, 1])
gru = paddle.nn.GRU(4, 5, direction="bidirect")
out, last = gru(x, sequence_length=length)
loss = paddle.mean(paddle.square(static.nn.fc(paddle.mean(out, axis=1), 1) - target))
paddle.optimizer.RMSProp(0.01, momentum=0.5, centered=True).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    batch = {"x": random.rand(3, 6, 4).astype("float32"), "length": np.array([6, 4, 2], "int64"),
             "target": random.rand(3, 1).astype("float32")}
    results += exe.run(feed=batch, fetch_list=[loss])
