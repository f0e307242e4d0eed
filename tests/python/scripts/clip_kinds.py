"""Global norm over two groups, by value, need_clip off; weight decay per parameter."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(101)

x = static.data("x", [None, 5])
a = static.nn.fc(x, 6, weight_attr=paddle.ParamAttr(name="a", need_clip=False))
b = static.nn.fc(a, 6, weight_attr=paddle.ParamAttr(name="b",
                                                    regularizer=paddle.regularizer.L1Decay(0.01)))
loss = paddle.mean(paddle.exp(b))
for k, clip in enumerate((paddle.nn.ClipGradByGlobalNorm(0.3), paddle.nn.ClipGradByValue(0.05),
                          paddle.nn.ClipGradByNorm(0.2),
                          paddle.nn.ClipGradByGlobalNorm(0.3, auto_skip_clip=True))):
    main = static.default_main_program().clone()
    with static.program_guard(main, static.default_startup_program()):
        paddle.optimizer.Momentum(0.1, 0.9, grad_clip=clip,
                                  weight_decay=paddle.regularizer.L2Decay(0.1)).minimize(
            main.global_block().var(loss.name))
    exe = static.Executor()
    exe.run(static.default_startup_program())
    for step in range(3):
        results += exe.run(main, feed={"x": random.rand(4, 5).astype("float32")},
                           fetch_list=[loss.name])
