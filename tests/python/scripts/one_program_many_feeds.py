"""Feeds left out by pruning, fetches of all kinds, shapes that change."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(109)

a = static.data("a", [None, 3])
b = static.data("b", [None, 3])
s = a + b
p = paddle.matmul(a, b, transpose_y=True)
only_a = paddle.nn.functional.gelu(a)
exe = static.Executor()
av, bv = random.rand(2, 3).astype("float32"), random.rand(2, 3).astype("float32")
results += exe.run(feed={"a": av, "b": bv}, fetch_list=[s, p, only_a, a])
results += exe.run(feed={"a": av}, fetch_list=[only_a], use_prune=True)
for n in (1, 5, 2):
    results += exe.run(feed={"a": random.rand(n, 3).astype("float32"),
                             "b": random.rand(n, 3).astype("float32")},
                       fetch_list=[p.name, s, "a"])
