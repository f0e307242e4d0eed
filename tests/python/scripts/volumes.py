"""conv3d, pool3d, conv3d_transpose; bilinear tensor product; row conv."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(115)

volume = static.data("volume", [None, 2, 4, 6, 6])
net = static.nn.conv3d(volume, 3, 3, padding=1, act="relu")
net = paddle.nn.functional.max_pool3d(net, 2, 2)
net = static.nn.conv3d_transpose(net, 2, filter_size=2, stride=2)
a = paddle.mean(net, [2, 3, 4])
b = static.data("b", [None, 3])
out = static.nn.bilinear_tensor_product(a, b, 4, act="sigmoid")
loss = paddle.mean(paddle.nn.functional.binary_cross_entropy(out, paddle.full_like(out, 0.3)))
paddle.optimizer.Adamax(0.05).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(3):
    batch = {"volume": random.rand(2, 2, 4, 6, 6).astype("float32"),
             "b": random.rand(2, 3).astype("float32")}
    results += exe.run(feed=batch, fetch_list=[loss])
