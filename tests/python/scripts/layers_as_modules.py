"""paddle.nn Layers in a static program: Transformer, LSTM with states."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(120)

words = static.data("words", [None, 7], "int64")
embedding = paddle.nn.Embedding(20, 16)
layer = paddle.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, normalize_before=True)
decoder = paddle.nn.TransformerDecoderLayer(16, 4, 24, dropout=0.0)
lstm = paddle.nn.LSTM(16, 10, num_layers=2, direction="bidirect")
memory = layer(embedding(words))
mask = paddle.tensor.triu(paddle.full([7, 7], -1e9), 1)
net = decoder(embedding(words), memory, tgt_mask=mask)
out, (h, c) = lstm(net)
loss = paddle.mean(paddle.square(out)) + paddle.mean(h) - paddle.mean(c)
clip = paddle.nn.ClipGradByNorm(0.5)
paddle.optimizer.AdamW(0.01, weight_decay=0.1, grad_clip=clip,
                       apply_decay_param_fun=lambda n: "w" in n).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    results += exe.run(feed={"words": random.randint(0, 20, (3, 7))}, fetch_list=[loss])
