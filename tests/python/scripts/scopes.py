"""Two scopes with parameters of their own; one's parameters put into the other."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(35)

x = static.data("x", [None, 4])
out = static.nn.fc(x, 2, name="net")
loss = paddle.mean(paddle.square(out))
paddle.optimizer.SGD(0.3).minimize(loss)

exe = static.Executor(paddle.CPUPlace())
scopes = [static.Scope(), static.Scope()]
batch = {"x": random.rand(5, 4).astype("float32")}
for scope in scopes:
    with static.scope_guard(scope):
        exe.run(static.default_startup_program())
for step in range(3):
    results += exe.run(feed=batch, fetch_list=[loss], scope=scopes[0])
with static.scope_guard(scopes[1]):
    results += exe.run(feed=batch, fetch_list=[loss])
for name in ("net.w_0", "net.b_0"):
    value = np.array(scopes[0].find_var(name).get_tensor())
    scopes[1].find_var(name).get_tensor().set(value, paddle.CPUPlace())
results += exe.run(feed=batch, fetch_list=[loss], scope=scopes[1])
results.append(np.array(scopes[1].find_var("net.w_0").get_tensor()))

# A tree: parameters are made in its root, whichever scope runs the program.
root = static.Scope()
kid = root.new_scope().new_scope()
exe.run(static.default_startup_program(), scope=kid)
for scope in (kid, root, root.new_scope()):
    results += exe.run(feed=batch, fetch_list=[loss], scope=scope)
results.append(np.array(root.find_var("net.w_0").get_tensor()))
