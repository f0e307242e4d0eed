"""A layer of self-attention, AdamW."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(8)

x = static.data("x", [None, 5, 8])
label = static.data("label", [None, 1], "int64")
attended = paddle.nn.MultiHeadAttention(8, 2)(x)
attended = paddle.nn.LayerNorm(8)(attended + x)
logits = static.nn.fc(paddle.mean(attended, axis=1), 4)
loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
paddle.optimizer.AdamW(0.01, weight_decay=0.1).minimize(loss)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(5):
    batch = {"x": random.rand(4, 5, 8).astype("float32"), "label": random.randint(0, 4, (4, 1))}
    results += exe.run(feed=batch, fetch_list=[loss, attended])
