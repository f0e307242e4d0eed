"""Mixed precision with bfloat16."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(123)

x = static.data("x", [None, 8])
label = static.data("label", [None, 1], "int64")
net = static.nn.fc(x, 16, activation="relu")
loss = paddle.mean(paddle.nn.functional.cross_entropy(static.nn.fc(net, 4), label))
optimizer = static.amp.bf16.decorate_bf16(
    paddle.optimizer.SGD(0.1),
    amp_lists=static.amp.bf16.AutoMixedPrecisionListsBF16(custom_fp32_list={"elementwise_add"}))
optimizer.minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(3):
    batch = {"x": random.rand(6, 8).astype("float32"), "label": random.randint(0, 4, (6, 1))}
    value, = exe.run(feed=batch, fetch_list=[loss])
    results.append(np.round(np.float32(value), 1))
