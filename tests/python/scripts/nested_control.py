"""cond within while within cond, with a fed trip count."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(108)

x = static.data("x", [2, 3])
n = static.data("n", [1], "int64")
def body(i, acc):
    def odd():
        return acc * 0.5 + x
    def even():
        return acc - paddle.mean(x)
    return [i + 1, static.nn.cond(paddle.equal(i % 2, paddle.full([1], 1, "int64")), odd, even)]
def loop():
    i = paddle.full([1], 0, "int64")
    return static.nn.while_loop(lambda i, acc: i < n, body, [i, paddle.zeros([2, 3])])[1]
out = static.nn.cond(paddle.sum(x) > 0, loop, lambda: -x)
exe = static.Executor()
for trips, sign in ((5, 1), (0, 1), (2, -1), (1, 1)):
    batch = {"x": sign * random.rand(2, 3).astype("float32"), "n": np.array([trips], "int64")}
    results += exe.run(feed=batch, fetch_list=[out])
