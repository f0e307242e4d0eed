"""program.state_dict and set_state_dict between training steps."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(104)

x = static.data("x", [None, 4])
net = static.nn.batch_norm(static.nn.fc(x, 5, activation="relu", bias_attr=False))
loss = paddle.mean(paddle.square(static.nn.fc(net, 1) - 1))
paddle.optimizer.Momentum(0.05, 0.9).minimize(loss)
main = static.default_main_program()
exe = static.Executor()
exe.run(static.default_startup_program())
batches = [{"x": random.rand(6, 4).astype("float32")} for _ in range(4)]
for batch in batches:
    results += exe.run(feed=batch, fetch_list=[loss])
state = {name: np.array(value) for name, value in main.state_dict().items()}
results += [state[name] for name in sorted(state)]
for batch in batches:
    results += exe.run(feed=batch, fetch_list=[loss])
main.set_state_dict(state)
for batch in batches:
    results += exe.run(feed=batch, fetch_list=[loss])
weights = main.state_dict("param")
results += [np.array(weights[name]) for name in sorted(weights)]
