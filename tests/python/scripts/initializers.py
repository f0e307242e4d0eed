"""Startup programs: the numbers that initialisers draw."""
import numpy as np
import paddle
from paddle import static

paddle.enable_static()
results = []

init = paddle.nn.initializer
kinds = [init.Constant(0.3), init.Uniform(-1, 2), init.Normal(1, 0.5), init.TruncatedNormal(0, 2),
         init.XavierUniform(), init.XavierNormal(), init.KaimingUniform(), init.KaimingNormal(),
         init.Assign(np.arange(12, dtype="float32").reshape(3, 4)), init.Orthogonal()]
names = []
for number, kind in enumerate(kinds):
    attr = paddle.ParamAttr(name=f"p{number}", initializer=kind)
    static.create_parameter([3, 4], "float32", attr=attr)
    names.append(f"p{number}")
exe = static.Executor()
exe.run(static.default_startup_program())
scope = static.global_scope()
results += [np.array(scope.find_var(name).get_tensor()) for name in names]
