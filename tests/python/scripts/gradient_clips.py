"""Clipping by global norm, by norm and by value."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(18)

exe = static.Executor()
for clip in (paddle.nn.ClipGradByGlobalNorm(0.1), paddle.nn.ClipGradByNorm(0.05),
             paddle.nn.ClipGradByValue(0.01)):
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        loss = paddle.mean(paddle.square(static.nn.fc(static.nn.fc(x, 6, activation="relu"),
                                                      2) - 3.0))
        paddle.optimizer.SGD(1.0, grad_clip=clip).minimize(loss)
    exe.run(startup)
    for step in range(4):
        results += exe.run(main, feed={"x": random.rand(5, 4).astype("float32")}, fetch_list=[loss])
