"""A CompiledProgram with a build strategy."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(32)

x = static.data("x", [None, 4])
loss = paddle.mean(paddle.square(static.nn.fc(static.nn.fc(x, 6, activation="relu"), 2)))
paddle.optimizer.Adam(0.05).minimize(loss)
strategy = static.BuildStrategy()
strategy.memory_optimize = True
compiled = static.CompiledProgram(static.default_main_program(), build_strategy=strategy)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    results += exe.run(compiled, feed={"x": random.rand(5, 4).astype("float32")}, fetch_list=[loss])
