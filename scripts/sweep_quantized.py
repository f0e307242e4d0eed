#!/usr/bin/env python3
"""Compares quantised networks with ONNX Runtime.

  scripts/sweep_quantized.py --heddle build/release/heddle [--count N] [--seed N] [--keep DIR]

Draws small networks (convolutions of all kinds, pools, sums, joins, functions, products),
quantises each with ONNX Runtime's quantiser in a drawn way (QDQ or operators on integers, signed
or not, per tensor or per channel; or dynamic), and runs them at levels 0 and 2. Outputs may differ
from ONNX Runtime's without optimisation by a few steps of the last quantisation, in few elements;
those of half of the dynamic networks, which consist of operators that round in one way only, in no
bit. Images have one to three dimensions.
Prints each network that does not comply, and fails if there is one. Needs numpy, onnx==1.23.2 and
onnxruntime==1.32.0.
"""

import argparse
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType,
                                      quantize_dynamic, quantize_static)

F32 = np.float32


class Net:
    """A network of one input, [2, channels, 9, …], made step by step. `exact`: its results do not
    depend on the order of sums of floats."""

    def __init__(self, seed, exact=False):
        self.random, self.exact = np.random.default_rng(seed), exact
        self.nodes, self.constants = [], []
        self.channels = self.pick(1, 3, 4, 8)
        self.rank = int(self.pick(1, 2, 2, 2, 3))
        self.shape = [2, self.channels] + [9] * self.rank
        value = self.convolution('x')
        for _ in range(self.random.integers(1, 5)):
            value = self.step(value)
        if self.coin():
            value = self.product(value)
        self.output = value

    def pick(self, *of):
        return of[self.random.integers(len(of))]

    def coin(self):
        return bool(self.random.integers(2))

    def constant(self, array):
        name = f'c{len(self.constants)}'
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, *shape):
        size = np.sqrt(np.prod(shape[1:]))
        array = self.random.standard_normal(shape) / size
        return self.constant((array + self.pick(0, 0, 0.3) / size).astype(F32))

    def add(self, op, inputs, **attributes):
        name = f'v{len(self.nodes)}'
        self.nodes.append(helper.make_node(op, inputs, [name], name=f'n{len(self.nodes)}',
                                           **attributes))
        return name

    def activated(self, value):
        kind = self.random.integers(2 if self.exact else 5)
        if kind == 0:
            return self.add('Relu', [value])
        if kind == 1:
            return self.add('Clip', [value, self.constant(F32(-0.5)), self.constant(F32(1.5))])
        if kind == 2:
            return self.add(self.pick('Sigmoid', 'Tanh', 'LeakyRelu', 'HardSwish'), [value])
        return value

    def convolution(self, value):
        kernel = [int(self.pick(1, 2, 3)) for _ in range(self.rank)]
        dilation = [int(self.pick(1, 1, 2)) for _ in range(self.rank)]
        groups = self.channels if self.coin() else 1
        to = self.channels * int(self.pick(1, 2)) if groups > 1 else int(self.pick(1, 5, 16, 19))
        pads = [int(self.random.integers(d * (k - 1) + 1)) for k, d in zip(kernel, dilation)] * 2
        operands = [value, self.weights(to, self.channels // groups, *kernel)]
        if self.coin():
            operands.append(self.constant(self.random.standard_normal(to).astype(F32) / 3))
        self.channels = to
        return self.activated(self.add(
            'Conv', operands, group=groups, kernel_shape=kernel, dilations=dilation, pads=pads,
            strides=[int(self.pick(1, 1, 1, 2)) for _ in range(self.rank)]))

    def step(self, value):
        kind = self.random.integers(7)
        if kind == 0:
            return self.activated(self.add('Add', [value, self.activated(value)]))
        if kind == 1:
            self.channels *= 2
            other = self.add('Relu' if self.exact else 'Sigmoid', [value])
            return self.add('Concat', [value, other], axis=1)
        if kind == 2 or (kind == 3 and self.exact):
            pads = [1] + [0] * (2 * self.rank - 2) + [1]
            return self.add('MaxPool', [value], kernel_shape=[2] * self.rank, pads=pads)
        if kind == 3:
            pads = [0] + [1] * (2 * self.rank - 2) + [0]
            return self.add('AveragePool', [value], kernel_shape=[2] * self.rank, pads=pads,
                            count_include_pad=1)
        if kind == 4:
            return self.add('Mul', [value, self.activated(value)])
        return self.convolution(value)

    def product(self, value):
        mean = self.add('GlobalMaxPool' if self.exact else 'GlobalAveragePool', [value])
        rows = self.add('Flatten', [mean])
        wide = self.weights(self.channels, 12)
        rows = self.add('MatMul', [rows, wide])
        rows = self.activated(self.add('Add', [rows, self.constant(
            self.random.standard_normal(12).astype(F32))]))
        return self.add('Gemm', [rows, self.weights(7, 12), self.constant(
            self.random.standard_normal(7).astype(F32))], transB=1)

    def save(self, path):
        graph = helper.make_graph(
            self.nodes, 'net', [helper.make_tensor_value_info('x', TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(self.output, TensorProto.FLOAT, None)], self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)],
                                    ir_version=8), path)


class Data(CalibrationDataReader):
    def __init__(self, shape, seed):
        random = np.random.default_rng(seed)
        self.left = [{'x': random.standard_normal(shape).astype(F32)} for _ in range(3)]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantise(net, seed, plain, path):
    """Writes the network, quantised; returns how."""
    way = 'dynamic' if net.exact else net.pick('QDQ', 'QDQ', 'QOperator', 'dynamic')
    activation = net.pick(QuantType.QUInt8, QuantType.QInt8)
    weight = net.pick(QuantType.QUInt8, QuantType.QInt8)
    per_channel = net.coin()
    if way == 'dynamic':
        quantize_dynamic(plain, path, weight_type=weight, per_channel=per_channel)
    else:
        if way == 'QOperator' or weight == QuantType.QUInt8:
            activation = QuantType.QUInt8  # the quantiser refuses others, or there are no kernels
        quantize_static(plain, path, Data(net.shape, seed), quant_format=QuantFormat[way],
                        activation_type=activation, weight_type=weight, per_channel=per_channel)
    return f'{way}, {activation.name}, {weight.name}' + (', per channel' if per_channel else '')


def reference(path, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    return session.run(None, {'x': x})[0]


def heddle(args, path, feed, level, folder):
    run = subprocess.run([args.heddle, 'run', path, '--feed', f'x={feed}', '--opt', str(level),
                          '--threads', '2', '--out', folder], capture_output=True, text=True)
    if run.returncode != 0:
        return None, run.stderr.strip()
    return np.load(Path(folder) / 'out_0.npy'), ''


def check(args, seed, folder):
    """Returns what is wrong with one network; None: nothing."""
    net = Net(seed, exact=seed % 4 == 0)
    plain, path, feed = (str(Path(folder) / name) for name in ('plain.onnx', 'net.onnx', 'x.npy'))
    net.save(plain)
    x = np.random.default_rng(seed + 1).standard_normal(net.shape).astype(F32)
    np.save(feed, x)
    try:
        how = quantise(net, seed, plain, path)
        want = reference(path, x)
    except Exception:  # too small for its windows, or without a kernel for what was quantised
        return None
    step = max(np.ptp(want) / 255, 1e-6)
    for level in (0, 2):
        got, error = heddle(args, path, feed, level, folder)
        if got is None:
            return f'{how}, level {level}: {error}'
        if got.shape != want.shape:
            return f'{how}, level {level}: {got.shape} instead of {want.shape}'
        if net.exact and not np.array_equal(got, want):
            return (f'{how}, level {level}: {np.mean(got != want):.0%} of the elements have other '
                    f'bits, up to {np.abs(got - want).max() / step:.1e} steps')
        apart = np.abs(got - want)
        many = np.mean(apart > 0.5 * step) > 0.25
        if apart.max() > (2.5 if many else 12) * step:
            return (f'{how}, level {level}: up to {apart.max() / step:.1f} steps, '
                    f'{np.mean(apart > 0.5 * step):.0%} of the elements')
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--heddle', required=True)
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--keep', help='folder for networks that do not comply')
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    bad = 0
    for seed in range(args.seed, args.seed + args.count):
        with tempfile.TemporaryDirectory() as folder:
            wrong = check(args, seed, folder)
            if wrong is None:
                continue
            bad += 1
            print(f'seed {seed}: {wrong}', flush=True)
            if args.keep:
                Path(args.keep).mkdir(parents=True, exist_ok=True)
                (Path(folder) / 'net.onnx').rename(Path(args.keep) / f'{seed}.onnx')
                (Path(folder) / 'x.npy').rename(Path(args.keep) / f'{seed}.npy')
    print(f'{args.count} networks, {bad} that differ')
    return bad > 0


if __name__ == '__main__':
    sys.exit(main())
