"""Every optimizer of the package, a few steps each."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(102)

o = paddle.optimizer
for make in (lambda: o.SGD(0.1), lambda: o.Momentum(0.1, 0.8, use_nesterov=True),
             lambda: o.Adagrad(0.1, initial_accumulator_value=0.2),
             lambda: o.Adadelta(0.5, rho=0.9), lambda: o.RMSProp(0.05, rho=0.9, centered=False),
             lambda: o.Adam(0.05, beta1=0.8, beta2=0.95),
             lambda: o.AdamW(0.05, weight_decay=0.2), lambda: o.Adamax(0.05),
             lambda: o.Lamb(0.05, lamb_weight_decay=0.02),
             lambda: paddle.incubate.optimizer.LarsMomentumOptimizer(0.1, 0.9)
             if hasattr(paddle.incubate.optimizer, "LarsMomentumOptimizer") else o.SGD(0.2),
             lambda: o.Rprop(0.01) if hasattr(o, "Rprop") else o.SGD(0.3)):
    main, startup = static.Program(), static.Program()
    main.random_seed = startup.random_seed = 3
    with static.program_guard(main, startup):
        x = static.data("x", [None, 5])
        y = static.data("y", [None, 1])
        loss = paddle.mean(paddle.nn.functional.square_error_cost(
            static.nn.fc(static.nn.fc(x, 7, activation="tanh"), 1), y))
        make().minimize(loss)
    exe = static.Executor()
    exe.run(startup)
    for step in range(4):
        batch = {"x": random.rand(8, 5).astype("float32"), "y": random.rand(8, 1).astype("float32")}
        results += exe.run(main, feed=batch, fetch_list=[loss])
