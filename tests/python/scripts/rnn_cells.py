"""RNN over cells of the script's own, SimpleRNN, BiRNN."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(121)

x = static.data("x", [None, 5, 4])
class Cell(paddle.nn.RNNCellBase):
    def __init__(self):
        super().__init__()
        self.inner = paddle.nn.Linear(10, 6)
    @property
    def state_shape(self):
        return (6,)
    def forward(self, inputs, states=None):
        h = paddle.tanh(self.inner(paddle.concat([inputs, states], 1)))
        return h * 0.5, h
rnn = paddle.nn.RNN(Cell())
bi = paddle.nn.BiRNN(paddle.nn.GRUCell(6, 3), paddle.nn.GRUCell(6, 3))
simple = paddle.nn.SimpleRNN(6, 5, activation="relu")
out, _ = rnn(x)
both, _ = bi(out)
last, state = simple(both)
loss = paddle.mean(last * last) + paddle.mean(state)
paddle.optimizer.Adadelta(1.0).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    results += exe.run(feed={"x": random.rand(2, 5, 4).astype("float32")}, fetch_list=[loss])
