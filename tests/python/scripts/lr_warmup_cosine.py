"""Warm-up, then a cosine; the rate itself is fetched."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(16)

x = static.data("x", [None, 4])
loss = paddle.mean(paddle.square(static.nn.fc(x, 3)))
cosine = paddle.optimizer.lr.CosineAnnealingDecay(0.2, 6)
scheduler = paddle.optimizer.lr.LinearWarmup(cosine, 3, 0.0, 0.2)
paddle.optimizer.Adam(scheduler).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(8):
    results += exe.run(feed={"x": random.rand(5, 4).astype("float32")},
                       fetch_list=[loss, scheduler._var_name])
    scheduler.step()
