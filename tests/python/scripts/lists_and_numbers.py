"""Feeds that are lists and numbers."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(29)

ids = static.data("ids", [3], "int64")
scale = static.data("scale", [], "float32")
x = static.data("x", [2, 2])
out = paddle.gather(paddle.arange(10, dtype="float32"), ids) * scale
exe = static.Executor()
results += exe.run(feed={"ids": [1, 5, 9], "scale": 2.5, "x": [[1, 2], [3, 4]]},
                   fetch_list=[out, x + 1])
results += exe.run(feed={"ids": (0, 0, 3), "scale": 3, "x": np.eye(2, dtype="float32")},
                   fetch_list=[out, paddle.cast(x, "int32")])
