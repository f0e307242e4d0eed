"""Encoder and decoder with masks, beam-free greedy steps in a while loop."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(100)

src = static.data("src", [None, 6], "int64")
steps = static.data("steps", [1], "int64")
table = paddle.nn.Embedding(15, 8)
proj = paddle.nn.Linear(8, 15)
memory = paddle.mean(table(src), 1)
i = paddle.full([1], 0, "int64")
token = paddle.full_like(src[:, 0:1], 1)
out = paddle.full_like(src[:, 0:1], 1)
def body(i, token, out):
    h = paddle.tanh(table(token)[:, 0] + memory)
    token = paddle.argmax(proj(h), 1, keepdim=True)
    return [i + 1, token, paddle.concat([out, token], 1)]
i.stop_gradient = True
_, token, out = static.nn.while_loop(lambda i, t, o: i < steps, body, [i, token, out])
exe = static.Executor()
exe.run(static.default_startup_program())
for n in (4, 1, 7):
    batch = {"src": random.randint(0, 15, (3, 6)), "steps": np.array([n], "int64")}
    results += exe.run(feed=batch, fetch_list=[out, token])
