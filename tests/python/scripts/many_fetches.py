"""Losses, intermediates, parameters and gradients by name; one of them twice."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(23)

x = static.data("x", [None, 4])
hidden = static.nn.fc(x, 5, activation="relu", name="hidden")
loss = paddle.mean(paddle.square(static.nn.fc(hidden, 2, name="out")))
_, gradients = paddle.optimizer.SGD(0.1).minimize(loss)
names = [loss.name, "hidden.w_0", hidden, "x"] + [gradient for _, gradient in gradients]

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(3):
    batch = {"x": random.rand(5, 4).astype("float32")}
    results += exe.run(feed=batch, fetch_list=names + [loss, hidden.name + "@GRAD"])
