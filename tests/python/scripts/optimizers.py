"""Every optimizer on the same task."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(20)

exe = static.Executor()
makers = [lambda: paddle.optimizer.SGD(0.1), lambda: paddle.optimizer.Momentum(0.1, 0.8),
          lambda: paddle.optimizer.Adam(0.05), lambda: paddle.optimizer.AdamW(0.05),
          lambda: paddle.optimizer.Adamax(0.05), lambda: paddle.optimizer.Adadelta(0.5),
          lambda: paddle.optimizer.Adagrad(0.1), lambda: paddle.optimizer.RMSProp(0.02),
          lambda: paddle.optimizer.Lamb(0.05)]
for make in makers:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        hidden = static.nn.fc(x, 6, activation="sigmoid")
        loss = paddle.mean(paddle.square(static.nn.fc(hidden, 2) - 0.5))
        make().minimize(loss)
    exe.run(startup)
    for step in range(4):
        results += exe.run(main, feed={"x": random.rand(5, 4).astype("float32")}, fetch_list=[loss])
