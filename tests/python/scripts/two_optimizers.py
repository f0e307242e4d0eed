"""A generator and a discriminator, each with its optimizer and parameters."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(125)

noise = static.data("noise", [None, 3])
real = static.data("real", [None, 4])
def discriminator(v):
    v = static.nn.fc(v, 6, activation="relu", weight_attr=paddle.ParamAttr(name="d_w0"),
                     bias_attr=paddle.ParamAttr(name="d_b0"))
    return static.nn.fc(v, 1, weight_attr=paddle.ParamAttr(name="d_w1"),
                        bias_attr=paddle.ParamAttr(name="d_b1"))
bce = paddle.nn.functional.binary_cross_entropy_with_logits
fake = static.nn.fc(noise, 4, weight_attr=paddle.ParamAttr(name="g_w"),
                    bias_attr=paddle.ParamAttr(name="g_b"))
d_fake, d_real = discriminator(fake), discriminator(real)
g_main = static.default_main_program().clone()
d_loss = bce(d_fake, paddle.zeros_like(d_fake)) + bce(d_real, paddle.ones_like(d_real))
paddle.optimizer.Adam(0.05).minimize(d_loss, parameters=["d_w0", "d_b0", "d_w1", "d_b1"])
with static.program_guard(g_main, static.default_startup_program()):
    value = g_main.global_block().var(d_fake.name)
    g_loss = bce(value, paddle.ones_like(value))
    paddle.optimizer.Adam(0.05, beta1=0.5).minimize(g_loss, parameters=["g_w", "g_b"])
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(5):
    batch = {"noise": random.randn(6, 3).astype("float32"),
             "real": random.rand(6, 4).astype("float32")}
    results += exe.run(feed=batch, fetch_list=[d_loss])
    results += exe.run(g_main, feed=batch, fetch_list=[g_loss])
