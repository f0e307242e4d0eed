"""A layer traced by paddle.jit, saved, and run as a static program."""
import os
import tempfile

import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(131)

paddle.disable_static()
class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = paddle.nn.Conv2D(1, 4, 3, padding=1)
        self.norm = paddle.nn.BatchNorm2D(4)
        self.fc = paddle.nn.Linear(16, 3)
    def forward(self, v):
        v = paddle.nn.functional.relu(self.norm(self.conv(v)))
        if v.shape[0] > 2:
            v = v * 2
        v = paddle.nn.functional.adaptive_max_pool2d(v, 2)
        return self.fc(paddle.flatten(v, 1))
net = Net()
net.eval()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "net")
    paddle.jit.save(net, path, [static.InputSpec([None, 1, 8, 8], "float32", "v")])
    paddle.enable_static()
    exe = static.Executor()
    program, names, targets = static.load_inference_model(path, exe)
    for n in (1, 3):
        results += exe.run(program, feed={names[0]: random.rand(n, 1, 8, 8).astype("float32")},
                           fetch_list=targets)
