#include "kernels/conv/conv_ops.h"

HEDDLE_OP(conv2d_transpose) {
  op.Doc("2-D transposed convolution: the gradient of a convolution");
  DefineConvTranspose(op, 2);
}
HEDDLE_OP(conv2d_transpose_grad) { DefineConvTransposeGrad(op, 2); }
HEDDLE_OP(conv2d_transpose_grad_grad) { DefineConvTransposeDoubleGrad(op, 2); }

HEDDLE_EXAMPLES(conv2d_transpose, R"(
example float32 1x3x2x2, paddings 1 1
attr paddings INTS [1, 1]
in Filter float32 [1, 3, 2, 2] -0.12 -0.27 -0.7 0.03 -0.56 0.46 0.61 -0.41 0.17 0.32 -0.85 0.75
in Input float32 [2, 1, 3, 2] 0.53 0.81 -0.71 -0.16 0.12 0.25 -0.3 0.67 -0.57 -0.44 0.39 -0.02
out Output float32 [2, 3, 2, 1] -0.34019998 0.028299998 0.039800033 0.10869999 -0.5454001
  -0.31559998 -0.27130002 0.188 0.5159 0.15589997 -1.0517 0.0679

example float32 1x2x3x2, dilations 2 2
attr dilations INTS [2, 2]
in Filter float32 [2, 4, 1, 1] -0.12 0.11 -0.46 -0.35 0.22 -0.01 -0.58 -0.23
in Input float32 [1, 2, 3, 2] 0.48 0.35 -0.03 0.23 0.1 -0.78 -0.28 0.6 -0.53 -0.4 -0.66 -0.15
out Output float32 [1, 4, 3, 2] -0.1192 0.09 -0.11299999 -0.1156 -0.1572 0.060599998 0.0556 0.0325
  0.0019999994 0.0293 0.0176 -0.0843 -0.058400005 -0.509 0.32119998 0.12619999 0.3368 0.4458
  -0.103599995 -0.2605 0.13239999 0.011500001 0.11680001 0.30749997

example float64 1x3x2x2, paddings 1 1
attr paddings INTS [1, 1]
in Filter float64 [1, 3, 2, 2] -0.12 -0.27 -0.7 0.03 -0.56 0.46 0.61 -0.41 0.17 0.32 -0.85 0.75
in Input float64 [2, 1, 3, 2] 0.53 0.81 -0.71 -0.16 0.12 0.25 -0.3 0.67 -0.57 -0.44 0.39 -0.02
out Output float64 [2, 3, 2, 1] -0.34019999999999995 0.028299999999999992 0.03980000000000006
  0.10869999999999996 -0.5453999999999999 -0.3156 -0.2713 0.188 0.5159 0.15589999999999998
  -1.0516999999999999 0.06790000000000002
)")

HEDDLE_EXAMPLES(conv2d_transpose_grad, R"(
example float64 1x3x2x2, paddings 1 1
attr paddings INTS [1, 1]
in Filter float64 [1, 3, 2, 2] -0.12 0.17 -0.41 0.03 -0.85 -0.7 -0.56 0.75 0.61 -0.27 0.46 0.32
in Input float64 [2, 1, 3, 2] -0.44 0.53 0.39 -0.02 -0.57 -0.16 0.12 0.81 -0.71 0.67 0.25 -0.3
in Output@GRAD float64 [2, 3, 2, 1] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out Filter@GRAD float64 [1, 3, 2, 2] 0.854 -0.44400000000000006 0.1750000000000001
  0.42499999999999993 -0.11200000000000004 0.852 -1.196 0.2139999999999999 0.6839999999999999
  -0.3249999999999999 0.293 0.3859999999999999
out Input@GRAD float64 [2, 1, 3, 2] 0.44100000000000006 0.261 -0.9810000000000001 1.02
  0.4749999999999999 0.74 -0.38400000000000006 0.3960000000000001 -0.56 1.3780000000000001 0.834
  0.33599999999999997

example float64 1x4x3x2, dilations 2 2
attr dilations INTS [2, 2]
in Filter float64 [2, 4, 1, 1] -0.23 -0.01 0.22 -0.58 -0.12 0.11 -0.46 -0.35
in Input float64 [1, 2, 3, 2] -0.03 0.23 -0.4 -0.28 0.6 -0.78 -0.66 -0.15 0.35 0.1 -0.53 0.48
in Output@GRAD float64 [1, 4, 3, 2] 0.9 -0.8 0.4 0.4 -0 0 0.8 -0.8 0.7 -0.3 1 0.5 0.5 0.4 0.5 -1 0.7
  0 -0.8 0.3 0.8 0.7 0.8 0.1
out Filter@GRAD float64 [2, 4, 1, 1] -0.4830000000000001 -0.19400000000000006 0.577
  -0.021000000000000074 -0.29400000000000004 -0.4830000000000001 -0.686 0.457
out Input@GRAD float64 [1, 2, 3, 2] 0.35899999999999993 0.10600000000000004 -0.45299999999999996
  -0.715 -0.31999999999999995 -0.063 0.02999999999999997 -0.281 -0.481 0.13400000000000004 -0.492
  0.020000000000000004

example float32 1x3x2x2, paddings 1 1
attr paddings INTS [1, 1]
in Filter float32 [1, 3, 2, 2] -0.12 0.17 -0.41 0.03 -0.85 -0.7 -0.56 0.75 0.61 -0.27 0.46 0.32
in Input float32 [2, 1, 3, 2] -0.44 0.53 0.39 -0.02 -0.57 -0.16 0.12 0.81 -0.71 0.67 0.25 -0.3
in Output@GRAD float32 [2, 3, 2, 1] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out Filter@GRAD float32 [1, 3, 2, 2] 0.85400003 -0.444 0.17499998 0.42500004 -0.111999996 0.852
  -1.1960001 0.21399996 0.684 -0.32500002 0.29299998 0.386
out Input@GRAD float32 [2, 1, 3, 2] 0.44099998 0.261 -0.98100007 1.02 0.475 0.74 -0.38400003
  0.39600003 -0.56 1.378 0.834 0.33600003
)")

HEDDLE_EXAMPLES(conv2d_transpose_grad_grad, R"(
example float32
attr strides INTS [2, 2]
in Input float32 [1, 2, 2, 2] -0.37 -0.93 0.88 0.07 -0.65 -0.79 0.22 -0.64
in Filter float32 [2, 1, 2, 2] -0.31 0.28 -0.11 0.62 0.39 0.15 -0.56 -0.66
in grad_out float32 [1, 1, 4, 4] -0.86 0.7 -0.34 0.42 0.48 0.89 -0.02 0.5 -0.64 -0.47 0.84 -0.29
  0.76 -0.25 -0.35 0.94
in grad_input@GRAD float32 [1, 2, 2, 2] -0.53 0.94 0.46 -0.45 -0.49 -0.55 0.83 -0.05
in grad_filter@GRAD float32 [2, 1, 2, 2] -0.18 0.69 -0.06 -0.36 0.18 0.79 -0.72 -0.62
from conv2d_transpose Input=Input Filter=grad_filter@GRAD -> Output=o1
attr strides INTS [2, 2]
from conv2d_transpose Input=grad_input@GRAD Filter=Filter -> Output=o2
attr strides INTS [2, 2]
from elementwise_add X=o1 Y=o2 -> Out=grad_out@GRAD
from conv2d_transpose_grad Input=Input Filter=grad_filter@GRAD Output@GRAD=grad_out ->
  Input@GRAD=Input@GRAD
attr strides INTS [2, 2]
from conv2d_transpose_grad Input=grad_input@GRAD Filter=Filter Output@GRAD=grad_out ->
  Filter@GRAD=Filter@GRAD
attr strides INTS [2, 2]
out Input@GRAD float32 [1, 2, 2, 2] 0.28859997 0.17219996 -0.16469997 -0.6687 -0.4992 -0.025000006
  -0.8787 -0.40870005
out Filter@GRAD float32 [2, 1, 2, 2] -0.53620005 -0.06190002 0.2339 -0.5396999 0.03520003 -0.9496
  0.4241 -0.9656
out grad_out@GRAD float32 [1, 1, 4, 4] -0.0772 -0.9907 -0.48070002 -1.0850999 0.82289994 0.531
  0.8292 1.7704 0.06229998 1.0343 -0.007800013 -0.5908 -0.7266 -0.7158 0.5341 0.1256

example float64
attr strides INTS [2, 2]
in Input float64 [1, 2, 2, 2] 0.68 -0.13 -0.24 -0.88 -0.63 0.27 0.24 0.53
in Filter float64 [2, 1, 2, 2] -0.23 -0.96 0.03 -0.47 -0.07 0.08 -0.18 -0.48
in grad_out float64 [1, 1, 4, 4] 0.29 -0.99 -0.56 -0.71 0.9 0.17 -0.84 0.97 0.46 0.32 -0.72 -0.02
  0.62 0.48 0.44 0.91
in grad_input@GRAD float64 [1, 2, 2, 2] 0.22 0.59 -0.21 0.5 -0.77 -0.75 -0.95 0.43
in grad_filter@GRAD float64 [2, 1, 2, 2] 0.75 0.17 -0.32 0.8 -0.1 0.23 -0.04 0.63
from conv2d_transpose Input=Input Filter=grad_filter@GRAD -> Output=o1
attr strides INTS [2, 2]
from conv2d_transpose Input=grad_input@GRAD Filter=Filter -> Output=o2
attr strides INTS [2, 2]
from elementwise_add X=o1 Y=o2 -> Out=grad_out@GRAD
from conv2d_transpose_grad Input=Input Filter=grad_filter@GRAD Output@GRAD=grad_out ->
  Input@GRAD=Input@GRAD
attr strides INTS [2, 2]
from conv2d_transpose_grad Input=grad_input@GRAD Filter=Filter Output@GRAD=grad_out ->
  Filter@GRAD=Filter@GRAD
attr strides INTS [2, 2]
out Input@GRAD float64 [1, 2, 2, 2] -0.10280000000000006 0.5041 0.5850000000000001
  0.04380000000000006 -0.18560000000000004 0.5374 0.30519999999999997 0.6231
out Filter@GRAD float64 [2, 1, 2, 2] -0.7232000000000001 -0.7139 -0.20779999999999993
  0.9638999999999999 -0.5498999999999999 0.9822 -0.4628 -0.9231
out grad_out@GRAD float64 [1, 1, 4, 4] 0.5762999999999999 -0.3021 -0.2077 -0.5863999999999998
  -0.04720000000000002 0.4133 0.1835 0.1488 -0.08919999999999997 0.13999999999999999
  -0.8581000000000001 -0.4733 0.2319 0.5139 0.198 -0.8115000000000001
)")
