"""CTC loss over a convolutional recogniser, greedy decoding."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(118)

image = static.data("image", [None, 1, 8, 24])
label = static.data("label", [None, 4], "int32")
length = static.data("length", [None], "int64")
net = static.nn.conv2d(image, 6, 3, stride=(8, 2), padding=1, act="relu")
net = paddle.transpose(paddle.squeeze(net, 2), [2, 0, 1])
logits = static.nn.fc(net, 7, num_flatten_dims=2)
steps = paddle.full_like(length, 12)
loss = paddle.nn.functional.ctc_loss(logits, label, steps, length)
best = paddle.argmax(logits, 2)
paddle.optimizer.Adam(0.02).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    batch = {"image": random.rand(3, 1, 8, 24).astype("float32"),
             "label": random.randint(1, 7, (3, 4)).astype("int32"),
             "length": np.array([4, 2, 3], "int64")}
    results += exe.run(feed=batch, fetch_list=[loss, best])
