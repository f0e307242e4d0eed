"""A learning rate that the script writes into its variable."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(17)

x = static.data("x", [None, 4])
loss = paddle.mean(paddle.square(static.nn.fc(x, 3)))
optimizer = paddle.optimizer.SGD(0.3)
optimizer.minimize(loss)
main = static.default_main_program()

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(6):
    if step == 3:
        rate = static.global_scope().find_var(optimizer._learning_rate_map[main].name)
        rate.get_tensor().set(np.array(0.01, "float32"), paddle.CPUPlace())
    results += exe.run(feed={"x": random.rand(5, 4).astype("float32")}, fetch_list=[loss])
