"""A two-layer LSTM over padded sequences."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(6)

x = static.data("x", [None, 7, 5])
label = static.data("label", [None, 1], "int64")
lstm = paddle.nn.LSTM(5, 6, num_layers=2)
out, (hidden, cell) = lstm(x)
loss = paddle.mean(paddle.nn.functional.cross_entropy(static.nn.fc(out[:, -1], 3), label))
paddle.optimizer.Adam(0.02).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    batch = {"x": random.rand(4, 7, 5).astype("float32"), "label": random.randint(0, 3, (4, 1))}
    results += exe.run(feed=batch, fetch_list=[loss, hidden])
