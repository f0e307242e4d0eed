"""Trained, exported, loaded, and run with other shapes."""
import os
import tempfile

import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(22)

image = static.data("image", [None, 1, None, None])
net = static.nn.conv2d(image, 4, 3, padding=1, act="relu")
net = paddle.nn.functional.adaptive_avg_pool2d(net, 2)
out = paddle.nn.functional.softmax(static.nn.fc(paddle.flatten(net, 1), 3))
loss = paddle.mean(out[:, 0])
paddle.optimizer.SGD(0.5).minimize(loss)

exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
for step in range(3):
    results += exe.run(feed={"image": random.rand(2, 1, 6, 6).astype("float32")}, fetch_list=[loss])
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "net")
    static.save_inference_model(path, [image], [out], exe)
    program, names, targets = static.load_inference_model(path, exe)
    for shape in ((1, 1, 6, 6), (3, 1, 8, 5), (1, 1, 4, 4)):
        batch = {names[0]: random.rand(*shape).astype("float32")}
        results += exe.run(program, feed=batch, fetch_list=targets)
