"""layer, group, instance, spectral, data norms and prelu in one net."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(114)

image = static.data("image", [None, 4, 6, 6])
net = static.nn.conv2d(image, 8, 3, padding=1, param_attr=paddle.ParamAttr(
    regularizer=paddle.regularizer.L1Decay(1e-3)))
net = static.nn.group_norm(net, 4)
net = static.nn.prelu(net, "channel")
net = static.nn.instance_norm(net)
net = static.nn.conv2d_transpose(net, 4, filter_size=2, stride=2)
net = static.nn.layer_norm(net, begin_norm_axis=1)
w = static.create_parameter([6, 8], "float32", name="sn_w")
out = paddle.matmul(paddle.mean(static.nn.conv2d(net, 6, 1), [2, 3]),
                    static.nn.spectral_norm(w, 0, 2))
loss = paddle.mean(paddle.square(out - 1))
paddle.optimizer.SGD(0.05).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    results += exe.run(feed={"image": random.rand(2, 4, 6, 6).astype("float32")}, fetch_list=[loss])
