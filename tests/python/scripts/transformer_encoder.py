"""An encoder layer with dropout, and a mask."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(9)

x = static.data("x", [None, 6, 8])
mask = static.data("mask", [None, 1, 1, 6])
label = static.data("label", [None, 6, 1], "int64")
layer = paddle.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, activation="gelu")
out = paddle.nn.TransformerEncoder(layer, 2)(x, mask)
loss = paddle.mean(paddle.nn.functional.cross_entropy(static.nn.fc(out, 7, 2), label, axis=-1))
paddle.optimizer.Adam(0.005).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    batch = {"x": random.rand(2, 6, 8).astype("float32"),
             "mask": np.where(random.rand(2, 1, 1, 6) < 0.2, -1e4, 0).astype("float32"),
             "label": random.randint(0, 7, (2, 6, 1))}
    results += exe.run(feed=batch, fetch_list=[loss])
