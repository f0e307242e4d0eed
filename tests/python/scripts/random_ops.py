"""Operators that draw random numbers."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []

uniform = paddle.uniform([3, 4], min=-2.0, max=1.0)
normal = paddle.normal(1.0, 2.0, [3, 4])
gauss = paddle.randn([2, 5])
whole = paddle.randint(0, 10, [6])
order = paddle.randperm(9)
coin = paddle.bernoulli(paddle.full([3, 3], 0.4))
exe = static.Executor()
for step in range(2):
    results += exe.run(fetch_list=[uniform, normal, gauss, whole, order, coin])
