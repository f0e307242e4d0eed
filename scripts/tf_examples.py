#!/usr/bin/env python3
"""Examples of the operators that heddle has for TensorFlow: asks TensorFlow for the answers.
docs/examples.md describes the format.

  tf_examples.py --write FILE...   writes the expected values of the `out` lines anew
  tf_examples.py --check [FILE...] compares what stands there with the answers

An operator's slots and attributes are those of the TensorFlow operator it is named after, so that
an example is one call of tf.raw_ops. Attributes that are types have heddle's numbers. Operators
that update variables are called as their Resource… form: the state is that of the variable
afterwards. A comment line `# given` says that the values stand as the operator's text has them.

An example of an operator of another name says which of TensorFlow's it shows, and what TensorFlow
calls slots and attributes that have other names here (an attribute that it lacks is called -):

  # of tensorflow ApplyMomentum var=Param accum=Velocity lr=LearningRate grad=Grad …

In an example of another operator, a line says which function of tf.raw_ops that is, with its
operands and results by their slots here in its order, and its attributes as JSON. Types have
heddle's numbers, a slot that is a list is named once for each of its lines, and `-` is a result
that is left out:

  # call ReluGrad Out@GRAD Out -> X@GRAD
  # call LeakyReluGrad Out@GRAD X -> X@GRAD alpha=0.1

Needs tensorflow, numpy and ml_dtypes in the Python that runs this.
"""
import inspect
import json
import os
import pathlib
import re
import sys

os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from op_example_answers import as_theirs, call_of, main  # noqa

DTYPES = {0: 'bool', 1: 'int16', 2: 'int32', 3: 'int64', 4: 'float16', 5: 'float32', 6: 'float64',
          20: 'uint8', 21: 'int8', 22: 'bfloat16', 23: 'complex64', 24: 'complex128'}


def snake(name):
    name = re.sub(r'V(\d)$', r'_V\1', name)
    name = re.sub(r'([A-Z]+)([A-Z][a-z])', r'\1_\2', name)
    name = re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name).lower()
    return re.sub(r'(\d)_d(?=_|$)', r'\1d', name)


class Oracle:
    system = 'tensorflow'

    def __init__(self):
        import tensorflow as tf
        from tensorflow.python.framework import op_def_registry
        self.tf, self.registry = tf, op_def_registry
        self.names = {'tf_' + snake(n): n for n in dir(tf.raw_ops) if n[0].isupper()}
        for name, op in list(self.names.items()):
            self.names.setdefault(name.replace('tf_resource_', 'tf_'), op[len('Resource'):])

    def array(self, tensor):
        import numpy as np
        dtype = self.tf.as_dtype(tensor.dtype).as_numpy_dtype
        values = np.array(tensor.values, 'float32' if tensor.dtype == 'bfloat16' else dtype)
        return values.astype(dtype).reshape(tensor.shape)

    def run_call(self, example, words):
        tf, arrow = self.tf, words.index('->')
        call, op_def = getattr(tf.raw_ops, words[0]), self.registry.get(words[0])
        slots = list(words[1:arrow])
        feeds = {}
        for s in example.of('in'):
            feeds.setdefault(s.name, []).append(tf.constant(self.array(s.tensor)))
        arguments = {}
        for arg in op_def.input_arg:
            many = arg.number_attr or arg.type_list_attr
            slot = slots.pop(0)
            if many:
                while slots and slots[0] == slot:
                    slots.pop(0)
            arguments[arg.name] = feeds[slot] if many else feeds[slot].pop(0)
        types = {a.name for a in op_def.attr if a.type == 'type'}
        for word in words[arrow:]:
            if '=' in word:
                k, v = word.split('=', 1)
                v = json.loads(v)
                arguments[k] = tf.as_dtype(DTYPES[v]) if k in types else v
        takes = inspect.signature(call).parameters
        renamed = {'reduction_indices': 'axis', 't': 'x', 'e': 'y'}
        for k in list(arguments):
            if k not in takes and renamed.get(k) in takes:
                arguments[renamed[k]] = arguments.pop(k)
        got = call(**{k: v for k, v in arguments.items() if k in takes})
        results = list(got) if hasattr(got, '_fields') else [got]
        answers = {}
        for slot, value in zip([w for w in words[arrow + 1:] if '=' not in w], results):
            values = value if isinstance(value, (list, tuple)) else [value]
            answers[slot] = [v.numpy() for v in values]
        return [answers[s.name].pop(0) for s in example.of('out')]

    def run(self, example):
        """The answers as arrays, in the order of the `out` lines."""
        if words := call_of(example):
            return self.run_call(example, words)
        example = as_theirs(example, lambda name: name)
        tf, name = self.tf, self.names.get(example.op, example.op)
        feeds = {}
        for s in example.of('in'):
            feeds.setdefault(s.name, []).append(tf.constant(self.array(s.tensor)))
        if 'num_segments' in feeds and name.startswith('Sparse'):
            name += 'WithNumSegments'
        updates = name.startswith(('Apply', 'SparseApply', 'Scatter')) and name != 'ScatterNd'
        resource = getattr(tf.raw_ops, 'Resource' + name) if updates else None
        op_def = self.registry.get('Resource' + name if resource else name)
        variables, arguments = {}, {}
        for arg in op_def.input_arg:
            slot = 'ref' if arg.name == 'resource' else arg.name
            values = feeds.get(slot, [tf.zeros([0])])
            if arg.type == 20:
                variables[slot] = tf.Variable(values[0])
                values = [variables[slot].handle]
            many = arg.number_attr or arg.type_list_attr
            arguments[arg.name] = values if many else values[0]
        types = {a.name for a in op_def.attr if a.type == 'type'}
        known = {a.name for a in op_def.attr} | {a.name for a in op_def.input_arg}
        for s in example.of('attr'):
            if s.name not in known:
                raise ValueError('%s has no attribute %s' % (name, s.name))
            arguments[s.name] = tf.as_dtype(DTYPES[s.value]) if s.name in types else s.value
        counts = {}
        for s in example.of('out'):
            counts[s.name] = counts.get(s.name, 0) + 1
        for arg in op_def.output_arg:
            if arg.number_attr and arg.number_attr not in arguments and not any(
                    a.number_attr == arg.number_attr for a in op_def.input_arg):
                arguments[arg.number_attr] = counts.get(arg.name, 1)
        call = resource or getattr(tf.raw_ops, name)
        if name == 'Select':  # Python has other names for some
            arguments = {{'t': 'x', 'e': 'y'}.get(k, k): v for k, v in arguments.items()}
        if 'reduction_indices' in arguments:
            arguments['axis'] = arguments['reduction_indices']
        takes = inspect.signature(call).parameters
        got = call(**{k: v for k, v in arguments.items() if k in takes})
        answers = {}
        if variables:
            for slot, v in variables.items():
                answers['output_ref' if slot == 'ref' else slot + '_out'] = [v.numpy()]
        else:
            results = list(got) if hasattr(got, '_fields') else [got]
            if len(op_def.output_arg) == 1 and op_def.output_arg[0].number_attr:
                results = [list(got)]
            for arg, value in zip(op_def.output_arg, results):
                values = value if isinstance(value, (list, tuple)) else [value]
                answers[arg.name] = [v.numpy() for v in values]
        seen, arrays = {}, []
        for s in example.of('out'):
            arrays.append(answers[s.name][seen.setdefault(s.name, 0)])
            seen[s.name] += 1
        return arrays


if __name__ == '__main__':
    sys.exit(main(__doc__, 'tf', Oracle))
