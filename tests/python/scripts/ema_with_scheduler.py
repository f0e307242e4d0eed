"""EMA with thres_steps, a scheduler, clip and batch norm, eval at the end."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(104)

image = static.data("image", [None, 1, 8, 8])
label = static.data("label", [None, 1], "int64")
net = static.nn.conv2d(image, 4, 3, bias_attr=False)
net = static.nn.batch_norm(net, act="relu", momentum=0.8)
net = static.nn.conv2d(net, 4, 3, groups=2)
net = paddle.nn.functional.max_pool2d(net, 2)
logits = static.nn.fc(net, 3)
loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
test = static.default_main_program().clone(for_test=True)
scheduler = paddle.optimizer.lr.CosineAnnealingDecay(0.2, 6)
paddle.optimizer.Momentum(scheduler, 0.9,
                          grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0)).minimize(loss)
steps = static.create_global_var([1], 0, "int64", persistable=True, name="steps")
paddle.increment(steps)
ema = static.ExponentialMovingAverage(0.95)
ema.update()
exe = static.Executor()
exe.run(static.default_startup_program())
for k in range(6):
    batch = {"image": random.rand(6, 1, 8, 8).astype("float32"),
             "label": random.randint(0, 3, (6, 1))}
    results += exe.run(feed=batch, fetch_list=[loss])
    scheduler.step()
with ema.apply(exe):
    results += exe.run(test, feed=batch, fetch_list=[loss, logits])
results += exe.run(test, feed=batch, fetch_list=[loss, logits])
