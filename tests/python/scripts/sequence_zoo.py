"""Most operators on packed sequences."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(116)

x = static.data("x", [None, 4], lod_level=1)
y = static.data("y", [None, 4], lod_level=1)
short = static.data("short", [None, 4])
nn = static.nn
outs = [nn.sequence_softmax(static.nn.fc(x, 1)), nn.sequence_pool(x, "average"),
        nn.sequence_pool(x, "sqrt"), nn.sequence_pool(x, "sum"), nn.sequence_first_step(x),
        nn.sequence_expand_as(short, y), nn.sequence_concat([x, y]), nn.sequence_reverse(x),
        nn.sequence_pad(x, paddle.full([1], 0.5))[0], nn.sequence_reshape(x, 2),
        nn.sequence_expand(x, y, ref_level=0)]
exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
def packed(lengths):
    return paddle.base.create_lod_tensor(random.rand(sum(lengths), 4).astype("float32"), [lengths],
                                         paddle.CPUPlace())
for lengths, others in (([2, 3], [1, 2]), ([1, 4], [3, 1])):
    batch = {"x": packed(lengths), "y": packed(others),
             "short": random.rand(2, 4).astype("float32")}
    for out in exe.run(feed=batch, fetch_list=outs, return_numpy=False):
        results.append(np.array(out))
        for level in out.recursive_sequence_lengths():
            results.append(np.array(level))
