"""Shared parameters, parameters that are not trained, rates and decays of single ones."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(124)

x = static.data("x", [None, 4])
a = static.nn.fc(x, 5, weight_attr=paddle.ParamAttr(name="wn",
                                                    regularizer=paddle.regularizer.L2Decay(0.01)))
shared = paddle.ParamAttr(name="shared", initializer=paddle.nn.initializer.Orthogonal())
b = static.nn.fc(a, 5, weight_attr=shared, bias_attr=False)
c = static.nn.fc(b, 5, weight_attr=shared, bias_attr=False)
frozen = static.nn.fc(c, 3, weight_attr=paddle.ParamAttr(trainable=False, name="frozen"),
                      bias_attr=paddle.ParamAttr(learning_rate=0.1, name="slow"))
loss = paddle.mean(paddle.square(frozen))
paddle.optimizer.Momentum(0.1, 0.9, use_nesterov=True, weight_decay=1e-3).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    results += exe.run(feed={"x": random.rand(3, 4).astype("float32")}, fetch_list=[loss])
results += exe.run(feed={"x": random.rand(3, 4).astype("float32")},
                   fetch_list=["frozen", "slow", "shared"])
