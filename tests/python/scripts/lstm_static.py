"""Language model: stacked LSTM with states carried between batches."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(103)

words = static.data("words", [4, 6], "int64")
target = static.data("target", [4, 6], "int64")
h0 = static.data("h0", [2, 4, 8])
c0 = static.data("c0", [2, 4, 8])
table = paddle.nn.Embedding(30, 8)
lstm = paddle.nn.LSTM(8, 8, num_layers=2)
out, (h, c) = lstm(table(words), (h0, c0))
logits = paddle.matmul(out, table.weight, transpose_y=True)
loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, target, reduction="none"))
perplexity = paddle.exp(loss)
paddle.optimizer.SGD(1.0, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0)).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
hv, cv = np.zeros((2, 4, 8), "float32"), np.zeros((2, 4, 8), "float32")
for k in range(5):
    batch = {"words": random.randint(0, 30, (4, 6)), "target": random.randint(0, 30, (4, 6)),
             "h0": hv, "c0": cv}
    value, ppl, hv, cv = exe.run(feed=batch, fetch_list=[loss, perplexity, h, c])
    results += [value, ppl, hv, cv]
