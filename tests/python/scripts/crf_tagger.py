"""A linear chain CRF and its decoding, over sequences."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []
random = np.random.RandomState(110)

words = static.data("words", [None], "int64", lod_level=1)
tags = static.data("tags", [None, 1], "int64", lod_level=1)
emission = static.nn.fc(static.nn.embedding(words, [20, 5]), 4)
block = static.default_main_program().global_block()
helper = paddle.base.layer_helper.LayerHelper("crf")
transition = static.create_parameter([6, 4], "float32", name="transition")
outs = {n: helper.create_variable_for_type_inference("float32") for n in
        ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")}
helper.append_op(type="linear_chain_crf",
                 inputs={"Emission": [emission], "Transition": transition, "Label": [tags]},
                 outputs=outs)
loss = paddle.mean(outs["LogLikelihood"])
path = helper.create_variable_for_type_inference("int64")
decode = static.default_main_program().clone(for_test=True)
paddle.optimizer.SGD(0.1).minimize(loss)
exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
for lengths in ([3, 2], [1, 4, 2]):
    n = sum(lengths)
    batch = {k: paddle.base.create_lod_tensor(random.randint(0, 4, (n, 1) if k == "tags"
                                                             else (n,)).astype("int64"),
                                              [lengths], paddle.CPUPlace())
             for k in ("words", "tags")}
    results += exe.run(feed=batch, fetch_list=[loss])
