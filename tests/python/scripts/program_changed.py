"""Operators added to a program between runs."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(39)

x = static.data("x", [None, 3])
out = paddle.exp(x)
exe = static.Executor()
batch = {"x": random.rand(2, 3).astype("float32")}
results += exe.run(feed=batch, fetch_list=[out])
out = paddle.sum(out, axis=1)
results += exe.run(feed=batch, fetch_list=[out])
static.default_main_program().global_block().ops[0]._set_attr("op_role", 1)
more = out * 2
results += exe.run(feed=batch, fetch_list=[more, out])
