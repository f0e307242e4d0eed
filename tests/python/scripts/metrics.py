"""accuracy, auc and a confusion by hand, over batches."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(113)

x = static.data("x", [None, 6])
label = static.data("label", [None, 1], "int64")
prob = paddle.nn.functional.softmax(static.nn.fc(x, 2))
loss = paddle.mean(paddle.nn.functional.cross_entropy(prob, label, use_softmax=False))
accuracy = static.accuracy(prob, label)
auc, batch_auc, _ = static.auc(prob, label)
precise = paddle.metric.accuracy(prob, label, k=1)
paddle.optimizer.Adagrad(0.1).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(5):
    batch = {"x": random.rand(16, 6).astype("float32"), "label": random.randint(0, 2, (16, 1))}
    results += exe.run(feed=batch, fetch_list=[loss, accuracy, auc, batch_auc, precise])
