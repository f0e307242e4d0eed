"""Parameters read and written through scope, find_var, get_tensor."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(126)

x = static.data("x", [None, 3])
out = static.nn.fc(x, 2, weight_attr=paddle.ParamAttr(name="w"),
                   bias_attr=paddle.ParamAttr(name="b"))
loss = paddle.mean(out)
paddle.optimizer.SGD(1.0).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
scope = static.global_scope()
batch = {"x": random.rand(2, 3).astype("float32")}
for step in range(4):
    results += exe.run(feed=batch, fetch_list=[loss])
    w = np.array(scope.find_var("w").get_tensor())
    results.append(w)
    scope.find_var("w").get_tensor().set(w * 0.5, paddle.CPUPlace())
    for p in static.default_main_program().all_parameters():
        results.append(np.array(scope.find_var(p.name).get_tensor()))
results.append(np.array(scope.var("b").get_tensor().shape()))
