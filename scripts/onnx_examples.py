#!/usr/bin/env python3
"""Examples of the operators that heddle has for ONNX: asks ONNX Runtime or ONNX's reference
evaluator for the answers. docs/examples.md describes the format.

  onnx_examples.py --write FILE...   writes the expected values of the `out` lines anew
  onnx_examples.py --check [FILE...] compares what stands there with the answers

An operator's slots and attributes are those of the ONNX operator it is named after, so that an
example is one node. A comment line in an example changes how that node is made:

  # oracle reference          ONNX's reference evaluator answers; without it ONNX Runtime does, and
                              the reference where that has no kernel
  # opset N                   of the node's domain; without it the newest that the oracle knows
  # type SLOT ELEMENT_TYPE    ONNX's name of the type of a slot that heddle stores as another one
  # given                     the values stand as the operator's text has them; nobody is asked

In an example of another operator, a line says which node that is, with its operands and results by
their slots here, and its attributes as JSON. `-` is an operand or a result that is absent, a slot
that is a list is named once for each of its lines:

  # node HardSwish X -> Out
  # node MaxPool X -> Out kernel_shape=[2,2]
  # node com.microsoft:FastGelu X -> Out

or, where slots and attributes are those of the ONNX operator but for some that ONNX calls otherwise
(theirs=ours; an attribute that it lacks is called -):

  # of onnx Det X=Input Y=Out

or, where slots and attributes are those of the ONNX operator but for some that ONNX calls otherwise
(theirs=ours; an attribute that it lacks is called -):

  # of onnx Det X=Input Y=Out

Needs onnx, onnxruntime, numpy and ml_dtypes in the Python that runs this.
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from op_example_answers import as_theirs, main, node_of  # noqa

DOMAINS = [('onnx_ms_', 'com.microsoft'), ('onnx_ml_', 'ai.onnx.ml'),
           ('onnx_training_', 'ai.onnx.preview.training'), ('onnx_', '')]
# Attributes that are heddle's own, and what of ONNX they stand for.
OWN = {'has_axis', 'elem_type', 'from', 'flatten', 'per_group', 'has_ignore_index'}
# Attributes whose value 0 stands for an absent one.
ABSENT_AT_ZERO = {'dtype', 'hidden_size', 'num_outputs', 'clip'}
MICROSOFT = {
    'dynamic_quantize_lstm': 'DynamicQuantizeLSTM', 'q_linear_add': 'QLinearAdd',
    'q_linear_mul': 'QLinearMul', 'q_linear_sigmoid': 'QLinearSigmoid',
    'q_linear_leaky_relu': 'QLinearLeakyRelu', 'q_gemm': 'QGemm',
    'q_linear_global_average_pool': 'QLinearGlobalAveragePool',
    'q_linear_average_pool': 'QLinearAveragePool', 'q_linear_concat': 'QLinearConcat',
    'q_linear_softmax': 'QLinearSoftmax', 'skip_layer_normalization': 'SkipLayerNormalization',
    'dynamic_quantize_mat_mul': 'DynamicQuantizeMatMul',
    'mat_mul_integer_to_float': 'MatMulIntegerToFloat', 'bias_gelu': 'BiasGelu',
    'fast_gelu': 'FastGelu'}
LSTM = ['X', 'W', 'R', 'B', 'sequence_lens', 'initial_h', 'initial_c', 'P', 'W_scale',
        'W_zero_point', 'R_scale', 'R_zero_point']
MICROSOFT_IN = {'DynamicQuantizeLSTM': LSTM}
MICROSOFT_OUT = {
    'SkipLayerNormalization': ['output', 'mean', 'inv_std_var', 'input_skip_bias_sum']}


def snake(name):
    name = re.sub(r'([A-Z]+)([A-Z][a-z])', r'\1_\2', name)
    return re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name).lower()


class Oracle:
    system = 'onnx'

    def __init__(self):
        import onnx
        from onnx import defs
        self.onnx, self.schemas, self.first = onnx, {}, {}
        for schema in defs.get_all_schemas_with_history():
            if schema.deprecated:
                continue
            key = schema.domain, self.heddle_name(schema.name)
            self.first[key] = min(schema.since_version, self.first.get(key, 99))
            old = self.schemas.get(key)
            if old is None or old.since_version < schema.since_version:
                self.schemas[key] = schema

    @staticmethod
    def heddle_name(name):
        return {'Col2Im': 'col2im', 'PRelu': 'p_relu'}.get(name, snake(name).replace('2_d', '2d'))

    def element_type(self, dtype):
        names = {'float32': 'FLOAT', 'float64': 'DOUBLE'}
        return getattr(self.onnx.TensorProto, names.get(dtype, dtype.upper()))

    def array(self, tensor, type_name):
        import ml_dtypes
        import numpy as np
        if tensor.dtype == 'bfloat16':
            a = np.array(tensor.values, 'float32').astype(ml_dtypes.bfloat16)
        else:
            a = np.array(tensor.values, tensor.dtype)
        a = a.reshape(tensor.shape)
        if type_name:
            onnx_type = getattr(self.onnx.TensorProto, type_name)
            np_type = self.onnx.helper.tensor_dtype_to_np_dtype(onnx_type)
            bits = type_name.startswith('FLOAT')
            a = a.view(np_type) if bits and a.dtype.itemsize == np_type.itemsize else a.astype(
                np_type)
        return a

    def run(self, example):
        """The answers as arrays, in the order of the `out` lines."""
        if node := node_of(example):
            return self.run_node(example, node)
        example = as_theirs(example, lambda name: 'onnx_' + self.heddle_name(name))
        domain, short = next((d, example.op[len(p):]) for p, d in DOMAINS
                             if example.op.startswith(p))
        words = [s.text[1:].split() for s in example.statements if s.kind == '#']
        notes = {w[0]: w[1:] for w in words if w and w[0] in ('oracle', 'opset')}
        types = {w[1]: w[2] for w in words if w and w[0] == 'type'}
        helper = self.onnx.helper
        schema = self.schemas.get((domain, short))
        op_type = schema.name if schema else MICROSOFT[short]
        feeds, lists = {}, {}
        for s in example.of('in'):
            lists.setdefault(s.name, []).append(s)
        slots = [(f.name, f.option.name == 'Variadic') for f in schema.inputs] if schema else [
            (k, False) for k in MICROSOFT_IN.get(op_type, lists)]
        if schema is None and any(len(v) > 1 for v in lists.values()):
            slots = [(k, len(v) > 1) for k, v in lists.items()]
        inputs, infos = [], []
        for slot, _ in slots:
            if slot not in lists:
                inputs.append('')
            for k, s in enumerate(lists.get(slot, [])):
                name = '%s_%d' % (slot, k)
                feeds[name] = self.array(s.tensor, types.get(slot))
                inputs.append(name)
                infos.append(helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(feeds[name].dtype), s.tensor.shape))
        while inputs and not inputs[-1]:
            inputs.pop()
        wanted = []
        for s in example.of('out'):
            if s.name not in wanted:
                wanted.append(s.name)
        counts = {n: sum(s.name == n for s in example.of('out')) for n in wanted}
        out_slots = [f.name for f in schema.outputs] if schema else MICROSOFT_OUT.get(
            op_type, wanted)
        outputs = []
        for slot in out_slots:
            outputs += ['out_%s_%d' % (slot, k) for k in range(counts.get(slot, 0))] or ['']
        while outputs and not outputs[-1]:
            outputs.pop()
        attributes = self.attributes(example, schema)
        node = helper.make_node(op_type, inputs, outputs, domain=domain, **attributes)
        names = ['out_%s_%d' % (n, k) for n in wanted for k in range(counts[n])]
        graph = helper.make_graph([node], 'example', infos, [
            self.onnx.ValueInfoProto(name=n) for n in names])
        main = 26 if domain else max(26, self.first[domain, short])
        if not domain and 'opset' in notes:
            main = int(notes['opset'][0])
        version = int(notes['opset'][0]) if 'opset' in notes else (
            schema.since_version if schema else 1)

        def model(opset):
            imports = [helper.make_opsetid('', opset)]
            if domain:
                imports.append(helper.make_opsetid(domain, version))
            return helper.make_model(graph, opset_imports=imports,
                                     ir_version=10 if opset < 24 else 13)
        older = [] if domain or 'opset' in notes else [
            v for v in (21, 18, 13, 11) if v >= self.first[domain, short]]
        answers = self.answer([model(v) for v in [main] + older], names, feeds, notes)
        if domain == 'ai.onnx.preview.training':  # the reference widens what it multiplies
            answers = [a.astype(feeds['inputs_0'].dtype) for a in answers]
        by_name, counts, ordered = dict(zip(names, answers)), {}, []
        for s in example.of('out'):
            k = counts[s.name] = counts.get(s.name, -1) + 1
            ordered.append(by_name['out_%s_%d' % (s.name, k)])
        return ordered

    @staticmethod
    def is_asked(example):
        return node_of(example) is not None

    def run_node(self, example, words):
        helper, arrow = self.onnx.helper, words.index('->')
        domain, _, op_type = words[0].rpartition(':')
        attributes = dict(w.split('=', 1) for w in words[arrow:] if '=' in w)
        slots = [w for w in words[arrow + 1:] if '=' not in w]
        notes = [s.text[1:].split() for s in example.statements if s.kind == '#']
        types = {w[1]: w[2] for w in notes if w[:1] == ['type']}
        notes = {w[0]: w[1:] for w in notes if w and w[0] in ('oracle', 'opset')}
        feeds, seen = {}, {}

        def names(slots, prefix, kind):
            made, seen = [], {}
            for slot in slots:
                k = seen[slot] = seen.get(slot, -1) + 1
                made.append('' if slot == '-' else '%s_%s_%d' % (prefix, slot, k))
            return made
        ins, outs = names(words[1:arrow], 'in', 'in'), names(slots, 'out', 'out')
        for s in example.of('in'):
            k = seen[s.name] = seen.get(s.name, -1) + 1
            name = 'in_%s_%d' % (s.name, k)
            if name in ins:
                feeds[name] = self.array(s.tensor, types.get(s.name))
        values = {}
        for k, v in attributes.items():
            v = json.loads(v)
            values[k] = v
        schema = next((d for d in self.schemas.values()
                       if d.name == op_type and d.domain == domain), None)
        for k in values:  # whole numbers may be floats
            kind = schema.attributes[k].type.name if schema else ''
            if kind == 'FLOAT':
                values[k] = float(values[k])
            elif kind == 'FLOATS':
                values[k] = [float(v) for v in values[k]]
        node = helper.make_node(op_type, ins, outs, domain=domain, **values)
        graph = helper.make_graph(
            [node], 'example', [helper.make_tensor_value_info(
                k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()],
            [self.onnx.ValueInfoProto(name=n) for n in outs if n])

        def model(opset):
            imports = [helper.make_opsetid('', opset)]
            if domain:
                imports.append(helper.make_opsetid(domain, 1))
            return helper.make_model(graph, opset_imports=imports,
                                     ir_version=10 if opset < 24 else 13)
        opsets = [int(notes['opset'][0])] if 'opset' in notes else [22, 26, 21, 18, 13, 11]
        wanted, seen = [], {}
        for s in example.of('out'):
            k = seen[s.name] = seen.get(s.name, -1) + 1
            wanted.append('out_%s_%d' % (s.name, k))
        return self.answer([model(v) for v in opsets], wanted, feeds, notes)

    def attributes(self, example, schema):
        values = {}
        for s in example.of('attr'):
            if s.name in OWN or (s.name in ABSENT_AT_ZERO and not s.value):
                continue
            if s.name == 'axis' and any(
                    t.name == 'has_axis' and not t.value for t in example.of('attr')):
                continue
            value = s.value
            if s.type in ('FLOAT', 'FLOAT64'):
                value = float(value)
            elif s.type in ('FLOATS', 'FLOAT64S'):
                value = [float(v) for v in value]
            elif s.type == 'BOOLEAN':
                value = int(value)
            name = s.name
            if schema is not None and name not in schema.attributes:
                raise ValueError('%s has no attribute %s' % (schema.name, name))
            if schema is not None and schema.attributes[name].type.name == 'TENSOR':
                import numpy as np
                kind = 'uint8' if name == 'nodes_modes' else 'float32'
                value = self.onnx.numpy_helper.from_array(np.array(value, kind))
            values[name] = value
        return values

    def answer(self, models, names, feeds, notes):
        """ONNX Runtime's answer to the first of the models that it has a kernel for."""
        refused = 'not asked'
        for model in models if notes.get('oracle') != ['reference'] else []:
            try:
                import onnxruntime
                onnxruntime.set_default_logger_severity(4)
                session = onnxruntime.InferenceSession(
                    model.SerializeToString(), providers=['CPUExecutionProvider'])
                return session.run(names, feeds)
            except Exception as error:  # no kernel, or an operator that it does not know
                refused = error if refused == 'not asked' else refused
        from onnx.reference import ReferenceEvaluator
        try:
            return ReferenceEvaluator(models[0]).run(names, feeds)
        except Exception as error:
            raise ValueError('%s; ONNX Runtime: %s' % (
                str(error)[:200], str(refused)[:200])) from error


if __name__ == '__main__':
    sys.exit(main(__doc__, 'onnx', Oracle))
