"""Packed sequences: convolution, softmax, pooling over them."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(25)

words = static.data("words", [None], "int64", lod_level=1)
label = static.data("label", [None, 1], "int64")
table = static.nn.embedding(words, [25, 6])
net = static.nn.sequence_conv(table, 5, 3, act="tanh")
pooled = static.nn.sequence_pool(net, "max")
last = static.nn.sequence_last_step(table)
logits = static.nn.fc(paddle.concat([pooled, last], axis=1), 3)
loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
paddle.optimizer.Adam(0.05).minimize(loss)

exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
for lengths in ([3, 1, 4], [2, 2, 5], [6, 1, 1]):
    ids = random.randint(0, 25, (sum(lengths),)).astype("int64")
    batch = {"words": paddle.base.create_lod_tensor(ids, [lengths], paddle.CPUPlace()),
             "label": random.randint(0, 3, (3, 1))}
    results += exe.run(feed=batch, fetch_list=[loss])
    out, = exe.run(feed=batch, fetch_list=[net], return_numpy=False)
    results += [np.array(out), np.array(out.recursive_sequence_lengths())]
