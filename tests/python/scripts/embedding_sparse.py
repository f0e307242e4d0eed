"""Sparse gradients of embeddings: SGD on one table, lazy Adam on another."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(5)

exe = static.Executor()
for optimizer in (paddle.optimizer.SGD(0.3), paddle.optimizer.Adam(0.05, lazy_mode=True)):
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        words = static.data("words", [None, 4], "int64")
        label = static.data("label", [None, 1], "int64")
        table = static.nn.embedding(words, [20, 6], is_sparse=True)
        logits = static.nn.fc(paddle.mean(table, axis=1), 3)
        loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
        optimizer.minimize(loss)
    exe.run(startup)
    for step in range(5):
        batch = {"words": random.randint(0, 20, (6, 4)), "label": random.randint(0, 3, (6, 1))}
        results += exe.run(main, feed=batch, fetch_list=[loss])
