"""Gradients added to variables of the script; applied every third step."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(103)

x = static.data("x", [None, 4])
out = static.nn.fc(x, 3, weight_attr=paddle.ParamAttr(name="w"), bias_attr=False)
loss = paddle.mean(paddle.square(out))
(w, grad), = static.append_backward(loss)
total = static.create_global_var([4, 3], 0.0, "float32", persistable=True, name="total")
paddle.assign(total + grad, total)
apply = static.Program()
with static.program_guard(apply, static.Program()):
    block = apply.global_block()
    p = block.create_parameter(name="w", shape=[4, 3], dtype="float32")
    t = block.create_var(name="total", shape=[4, 3], dtype="float32", persistable=True)
    paddle.assign(p - 0.1 * t, p)
    paddle.assign(paddle.zeros([4, 3]), t)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(7):
    results += exe.run(feed={"x": random.rand(2, 4).astype("float32")}, fetch_list=[loss, total])
    if step % 3 == 2:
        exe.run(apply)
        results += exe.run(apply, fetch_list=["w"])
