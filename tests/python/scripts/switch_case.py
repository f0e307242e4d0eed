"""One of several branches by an index."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(12)

index = static.data("index", [1], "int32")
x = static.data("x", [None, 3])
out = static.nn.switch_case(index, {0: lambda: x * 2, 1: lambda: paddle.exp(x), 4: lambda: x - 1},
                            default=lambda: paddle.zeros_like(x))
exe = static.Executor()
for i in (0, 1, 4, 7):
    batch = {"x": random.rand(2, 3).astype("float32"), "index": np.array([i], "int32")}
    results += exe.run(feed=batch, fetch_list=[out])
