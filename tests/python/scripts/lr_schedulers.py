"""Every kind of scheduler, stepped by the script."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(100)

lr = paddle.optimizer.lr
for make in (lambda: lr.NoamDecay(64, 3, 0.5), lambda: lr.NaturalExpDecay(0.3, 0.2),
             lambda: lr.InverseTimeDecay(0.3, 0.4), lambda: lr.PolynomialDecay(0.3, 5, 0.01, 2.0),
             lambda: lr.ExponentialDecay(0.3, 0.7), lambda: lr.MultiStepDecay(0.3, [2, 4], 0.3),
             lambda: lr.StepDecay(0.3, 2, 0.5), lambda: lr.LambdaDecay(0.3, lambda e: 0.9 ** e),
             lambda: lr.CosineAnnealingDecay(0.3, 4),
             lambda: lr.MultiplicativeDecay(0.3, lambda e: 0.8),
             lambda: lr.OneCycleLR(0.4, 6), lambda: lr.CyclicLR(0.1, 0.4, 2),
             lambda: lr.LinearWarmup(lr.PiecewiseDecay([3], [0.3, 0.1]), 2, 0.0, 0.3)):
    scheduler = make()
    main, startup = static.Program(), static.Program()
    main.random_seed = startup.random_seed = 5
    with static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        loss = paddle.mean(paddle.square(static.nn.fc(x, 2)))
        optimizer = paddle.optimizer.SGD(scheduler)
        optimizer.minimize(loss)
    exe = static.Executor()
    exe.run(startup)
    for step in range(6):
        results += exe.run(main, feed={"x": random.rand(3, 4).astype("float32")}, fetch_list=[loss])
        results.append(np.float32(optimizer.get_lr()))
        scheduler.step()
