"""A persistable counter, and an area under the curve over all batches."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(37)

x = static.data("x", [None, 4])
label = static.data("label", [None, 1], "int64")
score = paddle.nn.functional.softmax(static.nn.fc(x, 2))
auc, batch_auc, states = static.auc(score, label, num_thresholds=100)
counter = static.create_global_var([1], 0.0, "float32", persistable=True, name="counter")
paddle.increment(counter)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    batch = {"x": random.rand(9, 4).astype("float32"), "label": random.randint(0, 2, (9, 1))}
    results += exe.run(feed=batch, fetch_list=[auc, counter])
