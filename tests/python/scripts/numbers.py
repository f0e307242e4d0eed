"""Integers, doubles, bools, half floats, complex numbers through a program."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(129)

i = static.data("i", [None, 3], "int32")
d = static.data("d", [None, 3], "float64")
b = static.data("b", [None, 3], "bool")
outs = [i // 2, i % 3, i << 1 if hasattr(i, "__lshift__") else i * 2, paddle.bitwise_and(i, i + 1),
        paddle.cast(d, "float32"), paddle.logical_xor(b, d > 0.5), paddle.cumsum(d, 1),
        paddle.fft.rfft(d), paddle.abs(paddle.fft.fft(d)),
        paddle.cast(b, "int64") + paddle.cast(i, "int64"), paddle.std(d),
        paddle.histogram(i, 4, 0, 8), paddle.unique(paddle.flatten(i)), paddle.sort(d, 1, True),
        paddle.searchsorted(paddle.sort(d, 1), d), paddle.kron(d, d),
        paddle.linalg.det(paddle.matmul(d, d, transpose_x=True))]
exe = static.Executor()
for k in range(2):
    batch = {"i": random.randint(0, 8, (4, 3)).astype("int32"), "d": random.rand(4, 3),
             "b": random.rand(4, 3) > 0.5}
    for value in exe.run(feed=batch, fetch_list=outs):
        results.append(value)
