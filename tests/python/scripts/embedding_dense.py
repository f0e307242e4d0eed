"""An embedding with dense gradients, Adagrad."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(4)

words = static.data("words", [None, 5], "int64")
label = static.data("label", [None, 1])
table = static.nn.embedding(words, [30, 8], padding_idx=0)
logit = static.nn.fc(paddle.sum(table, axis=1), 1)
loss = paddle.mean(paddle.nn.functional.binary_cross_entropy_with_logits(logit, label))
paddle.optimizer.Adagrad(0.1).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(5):
    batch = {"words": random.randint(0, 30, (7, 5)).astype("int64"),
             "label": random.randint(0, 2, (7, 1)).astype("float32")}
    results += exe.run(feed=batch, fetch_list=[loss])
