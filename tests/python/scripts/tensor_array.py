"""Arrays of tensors: written, read, fetched."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(41)

x = static.data("x", [3])
zero = paddle.zeros([1], "int64")
array = paddle.tensor.array_write(x, zero)
array = paddle.tensor.array_write(x * 2, zero + 1, array)
length = paddle.tensor.array_length(array)
second = paddle.tensor.array_read(array, zero + 1)
exe = static.Executor()
values = exe.run(feed={"x": random.rand(3).astype("float32")}, fetch_list=[second, length, array])
results += values[:2] + list(values[2])
