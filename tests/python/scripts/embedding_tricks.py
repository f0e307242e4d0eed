"""Padding index, sparse Adam lazily, two lookups, word vectors summed."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(107)

ids = static.data("ids", [None, 5], "int64")
wide = static.data("wide", [None, 1], "int64")
deep = static.nn.embedding(ids, [40, 6], is_sparse=True, padding_idx=0,
                           param_attr=paddle.ParamAttr(name="deep"))
bias = static.nn.embedding(wide, [10, 1], is_sparse=True)
logits = static.nn.fc(paddle.sum(deep, 1), 1) + paddle.squeeze(bias, 1)
label = static.data("label", [None, 1])
loss = paddle.mean(paddle.nn.functional.binary_cross_entropy_with_logits(logits, label))
paddle.optimizer.Adam(0.05, lazy_mode=True).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for k in range(5):
    batch = {"ids": random.randint(0, 40, (6, 5)), "wide": random.randint(0, 10, (6, 1)),
             "label": random.randint(0, 2, (6, 1)).astype("float32")}
    results += exe.run(feed=batch, fetch_list=[loss])
results += exe.run(feed=batch, fetch_list=["deep"])
