"""Dropout with a seed of its own, and without."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(13)

x = static.data("x", [None, 20])
fixed = paddle.nn.functional.dropout(x, 0.4)
free = paddle.nn.functional.dropout(x, 0.4, mode="downscale_in_infer")
axis = paddle.nn.functional.dropout(x, 0.5, axis=0)
exe = static.Executor()
batch = {"x": np.ones([5, 20], "float32")}
for step in range(3):
    results += exe.run(feed=batch, fetch_list=[fixed, free, axis])
paddle.seed(77)
results += exe.run(feed=batch, fetch_list=[free])
paddle.seed(77)
results += exe.run(feed=batch, fetch_list=[free])
