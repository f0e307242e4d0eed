"""Nesterov momentum with weight decay, parameters with attributes of their own."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(2)

x = static.data("x", [None, 6])
target = static.data("target", [None, 2])
weight = paddle.ParamAttr(initializer=paddle.nn.initializer.Uniform(-0.3, 0.3), learning_rate=0.5)
hidden = static.nn.fc(x, 10, weight_attr=weight, activation="tanh")
loss = paddle.nn.functional.mse_loss(static.nn.fc(hidden, 2), target)
paddle.optimizer.Momentum(0.05, 0.9, use_nesterov=True, weight_decay=0.01).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(6):
    batch = {"x": random.randn(8, 6).astype("float32"),
             "target": random.randn(8, 2).astype("float32")}
    results += exe.run(static.default_main_program(), feed=batch, fetch_list=[loss.name])
