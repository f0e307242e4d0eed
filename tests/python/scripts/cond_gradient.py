"""Gradients through both branches; parameters of one branch only."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(109)

x = static.data("x", [None, 4])
label = static.data("label", [None, 1], "int64")
hidden = static.nn.fc(x, 6, activation="relu")
def deep():
    return static.nn.fc(static.nn.fc(hidden, 5, activation="tanh"), 3)
def shallow():
    return static.nn.fc(hidden, 3)
logits = static.nn.cond(paddle.mean(x) > 0.5, deep, shallow)
loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
paddle.optimizer.Momentum(0.2, 0.9).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(6):
    batch = {"x": (random.rand(5, 4) + (step % 2) * 0.4 - 0.2).astype("float32"),
             "label": random.randint(0, 3, (5, 1))}
    results += exe.run(feed=batch, fetch_list=[loss])
