"""Down and up again: transposed convolution, resizing, group norm."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(36)

image = static.data("image", [None, 2, 8, 8])
label = static.data("label", [None, 8, 8, 1], "int64")
down = static.nn.conv2d(image, 4, 3, stride=2, padding=1)
down = static.nn.group_norm(down, 2, act="relu")
up = static.nn.conv2d_transpose(down, 4, filter_size=2, stride=2, act="relu")
wide = paddle.nn.functional.interpolate(down, scale_factor=2, mode="bilinear")
logits = static.nn.conv2d(paddle.concat([up, wide], axis=1), 3, 1)
logits = paddle.transpose(logits, [0, 2, 3, 1])
loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
paddle.optimizer.Adam(0.01).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(3):
    batch = {"image": random.rand(2, 2, 8, 8).astype("float32"),
             "label": random.randint(0, 3, (2, 8, 8, 1))}
    results += exe.run(feed=batch, fetch_list=[loss])
