"""A tagger over sequences: embedding, GRU over padded steps, mask."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(117)

words = static.data("words", [None], "int64", lod_level=1)
tags = static.data("tags", [None, 1], "int64", lod_level=1)
table = static.nn.embedding(words, [30, 8], is_sparse=True)
padded, length = static.nn.sequence_pad(table, paddle.full([1], 0.0))
cell = paddle.nn.GRU(8, 6)
out, last = cell(padded, sequence_length=paddle.reshape(length, [-1]))
packed = static.nn.sequence_unpad(out, paddle.reshape(length, [-1]))
logits = static.nn.fc(packed, 5)
loss = paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(logits, tags))
paddle.optimizer.Adam(0.05, lazy_mode=True).minimize(loss)
exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
def lod(array, lengths):
    return paddle.base.create_lod_tensor(array, [lengths], paddle.CPUPlace())
for lengths in ([3, 5, 1], [2, 2], [4, 1, 1, 3]):
    n = sum(lengths)
    batch = {"words": lod(random.randint(0, 30, (n,)).astype("int64"), lengths),
             "tags": lod(random.randint(0, 5, (n, 1)).astype("int64"), lengths)}
    results += exe.run(feed=batch, fetch_list=[loss])
