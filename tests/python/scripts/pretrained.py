"""Weights from NumPy put in before training; some layers frozen by stop_gradient."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(108)

x = static.data("x", [None, 4])
body = static.nn.fc(x, 6, activation="relu", name="body")
body.stop_gradient = True
head = static.nn.fc(body, 2, name="head")
loss = paddle.mean(paddle.square(head - 0.5))
paddle.optimizer.Adam(0.1).minimize(loss)
main = static.default_main_program()
exe = static.Executor()
exe.run(static.default_startup_program())
state = {p.name: random.rand(*p.shape).astype("float32") for p in main.all_parameters()}
static.set_program_state(main, state)
for k in range(4):
    results += exe.run(feed={"x": random.rand(3, 4).astype("float32")}, fetch_list=[loss])
after = main.state_dict("param")
results += [np.array(after[name]) for name in sorted(after)]
results.append(np.array([np.array_equal(np.array(after[n]), state[n]) for n in sorted(after)]))
