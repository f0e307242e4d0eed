"""Program.random_seed: every run of the program draws the same."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(34)

main, startup = static.Program(), static.Program()
main.random_seed = startup.random_seed = 11
with static.program_guard(main, startup):
    x = static.data("x", [None, 6])
    net = paddle.nn.functional.dropout(static.nn.fc(x, 8), 0.5)
    loss = paddle.mean(paddle.square(net))
    paddle.optimizer.SGD(0.1).minimize(loss)
exe = static.Executor()
exe.run(startup)
for step in range(3):
    results += exe.run(main, feed={"x": random.rand(4, 6).astype("float32")},
                       fetch_list=[loss, net])
