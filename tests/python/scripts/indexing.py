"""Slices, gathers, scatters, masks and assignment to parts."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(128)

x = static.data("x", [4, 5, 6])
index = static.data("index", [3], "int64")
x.stop_gradient = False
y = x[:, 1:4:2, ::-1]
z = x[index]
s = paddle.scatter(paddle.zeros([4, 30]), index, paddle.reshape(z, [3, 30]), overwrite=True)
g = paddle.gather_nd(x, paddle.stack([index, index], 1))
masked = paddle.masked_select(x, x > 0.5)
w = paddle.where(x > 0.3, x, x * 2)
t = paddle.index_sample(paddle.reshape(x, [20, 6])[:1], paddle.reshape(index, [1, 3]))
top, at = paddle.topk(x, 2, axis=1)
p = paddle.index_add(paddle.reshape(x, [20, 6]), index, 0, paddle.ones([3, 6]))
part = paddle.static.setitem(x, (slice(0, 2), 0), 3.0) if hasattr(static, "setitem") else x + 0
loss = paddle.mean(y) + paddle.sum(z) + paddle.mean(s) + paddle.sum(g) + paddle.mean(
    w) + paddle.sum(top)
grad, = static.gradients([loss], [x])
exe = static.Executor()
for k in range(3):
    batch = {"x": random.rand(4, 5, 6).astype("float32"),
             "index": random.permutation(4)[:3].astype("int64")}
    results += exe.run(feed=batch, fetch_list=[y, z, s, g, masked, w, t, at, p, part, loss, grad])
