"""Convolutions with batch norm; a test program beside the training one."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(3)

image = static.data("image", [None, 3, 10, 10])
label = static.data("label", [None, 1], "int64")
net = static.nn.conv2d(image, 6, 3, padding=1, bias_attr=False)
net = static.nn.batch_norm(net, act="relu")
net = paddle.nn.functional.max_pool2d(net, 2, 2)
net = static.nn.conv2d(net, 8, 3, act="relu")
logits = static.nn.fc(paddle.flatten(net, 1), 5)
loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
accuracy = static.accuracy(paddle.nn.functional.softmax(logits), label)
test = static.default_main_program().clone(for_test=True)
paddle.optimizer.Adam(0.01).minimize(loss)

exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
for step in range(5):
    batch = {"image": random.rand(6, 3, 10, 10).astype("float32"),
             "label": random.randint(0, 5, (6, 1)).astype("int64")}
    results += exe.run(feed=batch, fetch_list=[loss, accuracy])
    results += exe.run(test, feed=batch, fetch_list=[loss, accuracy])
