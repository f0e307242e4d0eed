"""CompiledProgram with build strategies, feeds of several kinds."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(130)

x = static.data("x", [None, 4])
loss = paddle.mean(static.nn.fc(x, 3, activation="gelu"))
paddle.optimizer.Adam(0.1).minimize(loss)
strategy = static.BuildStrategy()
strategy.fuse_elewise_add_act_ops = True
strategy.memory_optimize = True
compiled = static.CompiledProgram(static.default_main_program(), build_strategy=strategy)
exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
for k in range(3):
    array = random.rand(5, 4).astype("float32")
    tensor = paddle.base.core.LoDTensor()
    tensor.set(array, paddle.CPUPlace())
    results += exe.run(compiled, feed={"x": array}, fetch_list=[loss.name])
    results += exe.run(compiled, feed={"x": tensor}, fetch_list=[loss], use_program_cache=True)
    value, = exe.run(compiled, feed=[{"x": array}], fetch_list=loss, return_numpy=False)
    results.append(np.array(value))
