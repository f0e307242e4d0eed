"""L1 on one parameter, L2 on the others."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(19)

x = static.data("x", [None, 4])
sparse = paddle.ParamAttr(regularizer=paddle.regularizer.L1Decay(0.05))
hidden = static.nn.fc(x, 5, weight_attr=sparse)
loss = paddle.mean(paddle.square(static.nn.fc(hidden, 2)))
paddle.optimizer.SGD(0.2, weight_decay=paddle.regularizer.L2Decay(0.02)).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(6):
    results += exe.run(feed={"x": random.rand(5, 4).astype("float32")}, fetch_list=[loss])
