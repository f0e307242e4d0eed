"""Loss functions side by side."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(40)

x = static.data("x", [None, 5])
label = static.data("label", [None, 1], "int64")
logits = static.nn.fc(x, 5)
functional = paddle.nn.functional
smooth = functional.label_smooth(functional.one_hot(paddle.flatten(label), 5), epsilon=0.1)
losses = [functional.cross_entropy(logits, smooth, soft_label=True),
          functional.smooth_l1_loss(logits, x), functional.l1_loss(logits, x),
          functional.kl_div(functional.log_softmax(logits), smooth),
          functional.nll_loss(functional.log_softmax(logits), paddle.flatten(label)),
          functional.square_error_cost(logits, x), functional.sigmoid_focal_loss(logits, smooth)]
total = paddle.add_n([paddle.mean(loss) for loss in losses])
paddle.optimizer.Adam(0.05).minimize(total)

exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(3):
    batch = {"x": random.rand(6, 5).astype("float32"), "label": random.randint(0, 5, (6, 1))}
    results += exe.run(feed=batch, fetch_list=[total] + losses)
