"""Losses with sampling and structure: nce, hsigmoid, margin, triplet, kl."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(133)

F = paddle.nn.functional
x = static.data("x", [None, 6])
label = static.data("label", [None, 1], "int64")
net = static.nn.fc(x, 6)
h = F.hsigmoid_loss(net, label, 9, static.create_parameter([8, 6], "float32", name="hw"),
                    static.create_parameter([8], "float32", name="hb", is_bias=True))
logits = static.nn.fc(net, 9)
losses = [paddle.mean(h), F.kl_div(F.log_softmax(logits), F.softmax(logits * 0.5)),
          paddle.mean(F.margin_ranking_loss(net, x, paddle.ones_like(x))),
          F.nll_loss(F.log_softmax(logits), paddle.flatten(label)), F.l1_loss(net, x),
          F.triplet_margin_loss(net, x, paddle.roll(x, 1, 0)),
          paddle.mean(F.sigmoid_focal_loss(logits, F.one_hot(paddle.flatten(label), 9))),
          F.cosine_embedding_loss(net, x, paddle.sign(paddle.sum(x, 1) - 2.9)),
          F.dice_loss(F.softmax(logits), label),
          paddle.mean(F.label_smooth(F.one_hot(label, 9)) * 2),
          F.multi_label_soft_margin_loss(net, paddle.cast(x > 0.5, "float32")),
          F.soft_margin_loss(net, paddle.sign(x - 0.5))]
loss = paddle.add_n([paddle.reshape(one, [1]) for one in losses])
paddle.optimizer.Adam(0.02, epsilon=1e-6).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for k in range(4):
    batch = {"x": random.rand(5, 6).astype("float32"), "label": random.randint(0, 9, (5, 1))}
    results += exe.run(feed=batch, fetch_list=losses + [loss])
