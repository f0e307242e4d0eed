"""Print and Assert in a program, set_global_initializer, name scopes, device guard."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(134)

paddle.nn.initializer.set_global_initializer(paddle.nn.initializer.Uniform(-0.3, 0.3),
                                             paddle.nn.initializer.Constant(0.1))
x = static.data("x", [None, 4])
with static.name_scope("net"), static.device_guard("cpu"):
    net = static.nn.fc(x, 3)
paddle.nn.initializer.set_global_initializer(None)
net = static.Print(net, message="net", summarize=2)
static.nn.control_flow.Assert(paddle.all(paddle.isfinite(net)), [net])
loss = paddle.mean(net)
paddle.optimizer.SGD(0.1).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for k in range(2):
    results += exe.run(feed={"x": random.rand(2, 4).astype("float32")}, fetch_list=[loss])
