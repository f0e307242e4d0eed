"""What PaddlePaddle 2.6.2 answers to an operator's example."""
import os
import re
import sys

from op_example_text import to_bfloat16


class Paddle:
    """Runs examples under Paddle. A record is a dict: t (dense, rows, array), a, dtype, lod, …"""

    def __init__(self):
        os.environ.setdefault('OMP_NUM_THREADS', '1')
        os.environ.setdefault('GLOG_minloglevel', '3')
        os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
        import numpy
        import paddle
        from paddle.base import core, executor
        from paddle.base.proto import framework_pb2
        if paddle.__version__ != '2.6.2':
            sys.exit('Paddle 2.6.2 is needed, not ' + paddle.__version__)
        paddle.enable_static()
        self.np, self.paddle, self.core, self.pb = numpy, paddle, core, framework_pb2
        self.place = core.CPUPlace()
        self.executor = executor.Executor(self.place)
        V = framework_pb2.VarType
        self.vt = {'bool': V.BOOL, 'uint8': V.UINT8, 'int8': V.INT8, 'int16': V.INT16,
                   'int32': V.INT32, 'int64': V.INT64, 'float16': V.FP16, 'bfloat16': V.BF16,
                   'float32': V.FP32, 'float64': V.FP64, 'complex64': V.COMPLEX64,
                   'complex128': V.COMPLEX128}
        self.name_of = {v: k for k, v in self.vt.items()}
        self.kind = {'dense': V.LOD_TENSOR, 'selected_rows': V.SELECTED_ROWS,
                     'tensor_array': V.LOD_TENSOR_ARRAY, 'step_scopes': V.STEP_SCOPES,
                     'rank_table': V.LOD_RANK_TABLE, 'raw': V.RAW, 'strings': V.STRINGS,
                     'sparse_coo': V.SPARSE_COO}
        self.defaults_of, self.programs = {}, []

    def array(self, t, twin):
        np, dtype = self.np, t.dtype
        if t.none:
            return np.zeros(t.shape, 'uint16' if dtype == 'bfloat16' else dtype)
        if dtype == 'bfloat16':
            return np.array([to_bfloat16(v) for v in t.values], 'uint16').reshape(t.shape)
        a = np.array(t.values, dtype).reshape(t.shape)
        if twin and dtype == 'float32':
            a = a.astype('float64')
        return a

    def put(self, tensor, t, twin):
        if t.none:
            tensor._set_dims(list(t.shape))
            return
        tensor.set(self.array(t, twin), self.place)
        if t.lod:
            tensor.set_lod(t.lod)

    def get(self, tensor):
        np = self.np
        if not tensor._is_initialized():
            shape = list(tensor.shape())
            return {'t': 'dense', 'a': np.zeros([max(d, 0) for d in shape], 'float32'),
                    'dtype': 'float32', 'none': True, 'lod': []}
        dtype = self.name_of[int(tensor._dtype())]
        a = np.array(tensor)
        if dtype == 'bfloat16' and a.dtype != np.uint16:
            a = a.view(np.uint16)
        return {'t': 'dense', 'a': np.ascontiguousarray(a).reshape(a.shape), 'dtype': dtype,
                'lod': [[int(x) for x in level] for level in tensor.lod()]}

    def defaults(self, op):
        """{name: (type, value)} of Paddle's default attributes; a gradient's are those of its
        forward operator, since Paddle declares none for gradients."""
        if op not in self.defaults_of:
            values, base = {}, op
            while True:
                for name, (atype, value) in self.declared_defaults(base).items():
                    values.setdefault(name, (atype, value))
                if not base.endswith('_grad'):
                    break
                base = base[:-5]
            self.defaults_of[op] = values
        return self.defaults_of[op]

    def declared_defaults(self, op):
        program = self.paddle.static.Program()
        self.programs.append(program)  # owns desc
        desc = program.desc.block(0).append_op()
        desc.set_type(op)
        required = set()
        while True:
            try:
                desc.check_attrs()
                break
            except Exception as error:  # a required attribute: any value serves to see the others
                m = re.search(r'Attribute \((\w+)\) is not set', str(error))
                if not m or m[1] in required:
                    break
                required.add(m[1])
                self.set_any(desc, op, m[1])
        return {n: (self.pb.AttrType.Name(int(desc.attr_type(n))), desc.attr(n))
                for n in desc.attr_names() if n not in required}

    def set_any(self, desc, op, name):
        from paddle.base.framework import OpProtoHolder
        for a in OpProtoHolder.instance().get_op_proto(op).attrs:
            if a.name == name:
                kind = self.pb.AttrType.Name(a.type)
                value = {'INT': 1, 'FLOAT': 1.0, 'STRING': 'NCHW', 'BOOLEAN': False, 'INTS': [1],
                         'FLOATS': [1.0], 'STRINGS': ['a'], 'LONG': 1, 'LONGS': [1]}.get(kind, 1)
                desc._set_attr(name, value)

    def set_attr(self, desc, name, atype, value, twin):
        pb, a = self.pb, desc.attrs.add()
        a.name, a.type = name, pb.AttrType.Value(atype)
        if twin and atype == 'INT' and name in ('dtype', 'in_dtype', 'out_dtype') and value == 5:
            value = 6
        field = {'INT': 'i', 'FLOAT': 'f', 'STRING': 's', 'BOOLEAN': 'b', 'LONG': 'l',
                 'FLOAT64': 'float64', 'BLOCK': 'block_idx', 'VAR': 'var_name'}.get(atype)
        if field:
            setattr(a, field, value)
            return
        field = {'INTS': 'ints', 'FLOATS': 'floats', 'STRINGS': 'strings', 'BOOLEANS': 'bools',
                 'LONGS': 'longs', 'FLOAT64S': 'float64s', 'BLOCKS': 'blocks_idx',
                 'VARS': 'vars_name'}.get(atype)
        if field:
            getattr(a, field).extend(value)
            return
        for v in value if atype == 'SCALARS' else [value]:
            s = a.scalars.add() if atype == 'SCALARS' else a.scalar
            if isinstance(v, bool):
                s.type, s.b = pb.Scalar.BOOLEAN, v
            elif isinstance(v, int):
                s.type, s.i = pb.Scalar.LONG, v
            else:
                s.type, s.r = pb.Scalar.FLOAT64, v

    def add_op(self, block, op, ins, outs, attrs, twin):
        desc = block.ops.add()
        desc.type = op
        for side, slots in ((desc.inputs, ins), (desc.outputs, outs)):
            for slot, names in slots:
                v = side.add()
                v.parameter = slot
                v.arguments.extend(names)
        given = {a.name for a in attrs}
        for a in attrs:
            self.set_attr(desc, a.name, a.type, a.value, twin)
        if op.endswith('_grad'):
            for name, (atype, value) in self.defaults(op).items():
                if name not in given:
                    try:
                        self.set_attr(desc, name, atype, value, twin)
                    except (TypeError, ValueError):
                        pass

    def add_var(self, block, name, kind, dtype, shape, persistable):
        for v in block.vars:
            if v.name == name:
                v.persistable = v.persistable or persistable
                return
        v = block.vars.add()
        v.name, v.persistable, v.type.type = name, persistable, self.kind[kind]
        t = None
        if kind == 'dense':
            t = v.type.lod_tensor.tensor
        elif kind == 'selected_rows':
            t = v.type.selected_rows
        elif kind == 'tensor_array':
            t = v.type.tensor_array.tensor
        if t is not None:
            t.data_type = self.vt[dtype or 'float32']
            t.dims.extend(shape if shape is not None else [])

    @staticmethod
    def variables(example, kind):
        """[(variable, slot, statement)] of the in or out lines."""
        statements = example.of(kind)
        if example.has('op'):
            return [(s.name, s.name, s) for s in statements]
        count, result = {}, []
        for s in statements:
            count.setdefault(s.name, []).append(s)
        for s in statements:
            if s.alias:
                result.append((s.alias, s.name, s))
            elif len(count[s.name]) == 1:
                result.append((s.name, s.name, s))
            else:
                result.append(('%s.%d' % (s.name, count[s.name].index(s)), s.name, s))
        # an output that is called as an input is, and is not that variable
        if kind == 'out' and not example.has('from'):
            ins = {s.name for s in example.of('in')}
            result = [(n if s.alias or s.name not in ins else n + '@out', slot, s)
                      for n, slot, s in result]
        return result

    def program(self, example, twin=False):
        desc = self.pb.ProgramDesc()
        blocks = []

        def block(i, parent):
            b = desc.blocks.add()
            b.idx, b.parent_idx = i, parent
            blocks.append(b)
            return b
        ins, outs = self.variables(example, 'in'), self.variables(example, 'out')
        main = block(0, -1)
        for name, _, s in ins + outs:
            t = s.tensor
            kind, dtype, shape = 'dense', None, None
            if t is not None:
                kind = 'tensor_array' if t.items is not None else (
                    'selected_rows' if t.rows is not None else 'dense')
                dtype, shape = t.dtype, t.shape
                if t.items:
                    dtype = t.items[0].dtype
            if twin and dtype == 'float32':
                dtype = 'float64'
            self.add_var(main, name, kind, dtype, shape, True)
        if not example.has('op') and not example.has('from'):
            slots = {}
            sides = []
            for side in (ins, outs):
                slots = {}
                for name, slot, _ in side:
                    slots.setdefault(slot, []).append(name)
                sides.append(list(slots.items()))
            self.add_op(main, example.op, sides[0], sides[1], example.of('attr'), twin)
            return desc
        current, pending = main, None
        programs = []
        mine = 'from' if example.has('from') else 'op'
        for s in example.statements:
            if s.kind in ('op', 'from') and s.kind != mine:
                pending = (current, s, [])  # heddle's; Paddle runs the `from` lines
            elif s.kind == 'block' and mine == 'from':
                continue
            elif s.kind == 'block':
                current = block(s.index, s.parent)
                current.forward_block_idx = s.forward[0] if s.forward else -1
            elif s.kind == 'var':
                dtype = 'float64' if twin and s.dtype == 'float32' else s.dtype
                self.add_var(current, s.name, s.type, dtype, s.shape, False)
            elif s.kind in ('op', 'from'):
                pending = (current, s, [])
                programs.append(pending)
            elif s.kind == 'attr' and pending:
                pending[2].append(s)
        homes = {}
        for b, s, _ in programs:
            for _, names in s.ins + s.outs:
                for n in names:
                    homes.setdefault(n, []).append(b)
        declared = {v.name for b in blocks for v in b.vars}
        for n, where in homes.items():
            if n not in declared:
                home = where[0] if all(b is where[0] for b in where) else main
                self.add_var(home, n, 'dense', 'float64' if twin else 'float32', None, False)
        for b, s, attrs in programs:
            self.add_op(b, s.name, s.ins, s.outs, attrs, twin)
        return desc

    def run(self, example, twin=False):
        """Records of the out lines, in order. twin: float32 operands become float64."""
        seed = example.of('seed')
        self.paddle.seed(seed[0].value if seed else 991)
        desc = self.program(example, twin)
        scope = self.core.Scope()
        for name, _, s in self.variables(example, 'in'):
            t, v = s.tensor, scope.var(name)
            if t.items is not None:
                a = v.get_lod_tensor_array()
                for i in t.items:
                    tensor = self.core.LoDTensor()
                    self.put(tensor, i, twin)
                    a.append(tensor)
            elif t.rows is not None:
                rows = v.get_selected_rows()
                rows.set_height(t.height)
                rows.set_rows(t.rows)
                self.put(rows.get_tensor(), t, twin)
            else:
                self.put(v.get_tensor(), t, twin)
        program = self.paddle.static.Program.parse_from_string(desc.SerializeToString())
        self.programs.append(program)  # Paddle keeps pointers into it
        self.executor.run(program, scope=scope)
        result = []
        for name, _, s in self.variables(example, 'out'):
            v = scope.find_var(name)
            if s.tensor is not None and s.tensor.items is not None:
                result.append({'t': 'array', 'items': [
                    self.get(i) for i in v.get_lod_tensor_array()]})
            elif s.tensor is not None and s.tensor.rows is not None:
                rows = v.get_selected_rows()
                r = self.get(rows.get_tensor())
                r.update(t='rows', rows=[int(x) for x in rows.rows()], height=int(rows.height()))
                result.append(r)
            else:
                result.append(self.get(v.get_tensor()))
        return result
