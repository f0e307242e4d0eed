"""A generated ONNX model with operands at the edges of their types."""
import zlib

import numpy as np

FLOATS = ['float32', 'float64', 'float16']
INTS = ['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64']
# Unsigned types that are fed as a signed one.
FED_AS = {'uint16': 'int32', 'uint32': 'int64', 'uint64': 'int64'}


def edges(dtype):
    """The values at the edges of `dtype`, and some between them."""
    if dtype == 'bool':
        return np.array([True, False])
    if np.issubdtype(np.dtype(dtype), np.floating):
        info = np.finfo(dtype)
        values = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 0.4, -0.4, 0.5, -0.5, 1.5,
                  -1.5, 2.5, 3, -3, 6, 7, 20, -20, 90, -90, info.tiny, -info.tiny,
                  float(info.tiny) / 4, -float(info.tiny) / 4, info.max, -float(info.max)]
        if dtype != 'float16':
            values += [2.0**31, -2.0**31, 2.0**32, 2.0**63, -2.0**63, 2.0**64, 1e10]
        with np.errstate(over='ignore'):
            return np.array(values, 'float64').astype(dtype)
    info = np.iinfo(dtype)
    values = {0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.max // 2, info.max // 2 + 1,
              info.max // 2 + 2, info.min, info.min + 1}
    if info.min < 0:
        values |= {-1, -2, -3, -7, -100}
    return np.array(sorted(v for v in values if info.min <= v <= info.max), dtype)


class Draw:
    """Operands of one case, by a generator that the case's name seeds."""

    def __init__(self, seed, name):
        self.rng = np.random.default_rng([seed, zlib.crc32(name.encode())])

    def edge(self, shape, dtype):
        return self.rng.choice(edges(dtype), shape)

    def some(self, shape, dtype, share=0.15):
        """Ordinary values with edges here and there."""
        plain = self.rng.integers(1, 9, shape) * self.rng.choice([-1, 1], shape)
        if np.issubdtype(np.dtype(dtype), np.floating):
            plain = plain / 4
        elif np.iinfo(dtype).min == 0:
            plain = abs(plain)
        special = edges(dtype)
        if np.issubdtype(np.dtype(dtype), np.floating):
            special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)
        return np.where(self.rng.random(shape) < share, self.rng.choice(special, shape),
                        plain.astype(dtype)).astype(dtype)

    def plain(self, shape, dtype='float32'):
        return (self.rng.integers(-8, 9, shape) / 4).astype(dtype)


class Case:
    """A model: operands by name, constants, nodes. Without `zeros` the sign of zeros is not asked;
    `sums` is an error in relation to the greatest of all numbers, for sums in another order."""

    def __init__(self, name, zeros=True, rtol=None, sums=None, opset=21):
        self.name, self.zeros, self.rtol, self.sums = name, zeros, rtol, sums
        self.opset, self.fails = opset, False
        self.feeds, self.constants, self.nodes, self.outputs = {}, {}, [], []

    def feed(self, value):
        name = 'x%d' % len(self.feeds)
        self.feeds[name] = np.asarray(value)
        return name

    def const(self, value):
        name = 'c%d' % len(self.constants)
        self.constants[name] = np.asarray(value)
        return name

    def node(self, op, *ins, outs=1, domain='', **attrs):
        names = ['v%d_%d' % (len(self.nodes), i) for i in range(outs)]
        self.nodes.append((op, list(ins), names, domain, attrs))
        return names[0] if outs == 1 else names

    def out(self, name, dtype):
        self.outputs.append((name, dtype))
        return self

    def model(self):
        from onnx import TensorProto, helper, numpy_helper
        kind = {d: helper.np_dtype_to_tensor_dtype(np.dtype(d)) for d in FLOATS + INTS + ['bool']}
        kind['string'] = TensorProto.STRING
        nodes, inputs = [], []
        for name, value in self.feeds.items():
            dtype = str(value.dtype)
            if dtype in FED_AS:
                nodes.append(helper.make_node('Cast', [name + '_fed'], [name], to=kind[dtype]))
                inputs.append(helper.make_tensor_value_info(name + '_fed', kind[FED_AS[dtype]],
                                                            value.shape))
            else:
                inputs.append(helper.make_tensor_value_info(name, kind[dtype], value.shape))
        for op, ins, outs, domain, attrs in self.nodes:
            if 'to' in attrs and isinstance(attrs['to'], str):
                attrs = dict(attrs, to=kind[attrs['to']])
            if isinstance(attrs.get('value'), np.ndarray):
                attrs = dict(attrs, value=numpy_helper.from_array(attrs['value']))
            nodes.append(helper.make_node(op, ins, outs, domain=domain, **attrs))
        outputs = []
        for k, (name, dtype) in enumerate(self.outputs):
            if dtype in FED_AS:
                nodes.append(helper.make_node('Cast', [name], ['y%d' % k],
                                              to=kind[FED_AS[dtype]]))
                name, dtype = 'y%d' % k, FED_AS[dtype]
            outputs.append(helper.make_tensor_value_info(name, kind[dtype], None))
        graph = helper.make_graph(nodes, 'edges', inputs, outputs,
                                  [numpy_helper.from_array(v, k) for k, v in
                                   self.constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', self.opset)],
                                 ir_version=10)

    def fed(self):
        values = {}
        for name, v in self.feeds.items():
            as_type = FED_AS.get(str(v.dtype))
            values[name + '_fed' if as_type else name] = v.astype(as_type) if as_type else v
        return values
