#include "kernels/conv/conv_ops.h"

HEDDLE_OP(depthwise_conv2d) {
  op.Doc("2-D convolution with one filter per channel");
  DefineConv(op, 2);
}
HEDDLE_OP(depthwise_conv2d_grad) { DefineConvGrad(op, 2); }
HEDDLE_OP(depthwise_conv2d_grad_grad) { DefineConvDoubleGrad(op, 2); }

HEDDLE_EXAMPLES(depthwise_conv2d, R"(
example float32 1x1x4x4, padding_algorithm SAME
attr padding_algorithm STRING "SAME"
in Filter float32 [1, 1, 4, 4] 0.33 0.88 -0.65 0.22 0.55 0.12 0.44 0.77 -0.21 -0.76 -0.1 0.66 -0.43
  -0.32 0.01 -0.54
in Input float32 [2, 1, 3, 2] -0.51 0.39 -0.21 -0.36 0.09 -0.06 -0.81 0.24 0.54 0.69 0.85 -0.66
out Output float32 [2, 1, 3, 2] 0.27659997 0.06450002 -0.9483 0.042899996 0.0336 -0.3438 -0.74960005
  -1.2088 -1.0804001 0.64680004 -0.16169995 1.1737
)")

HEDDLE_EXAMPLES(depthwise_conv2d_grad, R"(
example float64 1x1x4x4, padding_algorithm SAME
attr padding_algorithm STRING "SAME"
in Filter float64 [1, 1, 4, 4] 0.44 -0.76 -0.1 0.01 0.33 0.55 -0.43 0.77 -0.21 0.66 0.88 0.12 -0.32
  -0.65 0.22 -0.54
in Input float64 [2, 1, 3, 2] 0.09 0.39 -0.36 -0.21 0.85 -0.81 -0.66 -0.06 0.54 0.24 -0.51 0.69
in Output@GRAD float64 [2, 1, 3, 2] -0.2 -0.7 -0.8 -0.7 -0.1 0.5 -0.6 -0.4 0.1 0.8 -0.3 0.9
out Filter@GRAD float64 [1, 1, 4, 4] -0.285 -0.474 -0.36900000000000005 0 0.8510000000000002
  1.0939999999999999 0.02400000000000002 0 -0.9670000000000001 0.18699999999999978
  0.6150000000000002 0 -0.39099999999999996 0.42699999999999994 -0.25199999999999995 0
out Input@GRAD float64 [2, 1, 3, 2] -0.0409999999999999 0.3129999999999999 -0.36 -1.049
  0.08299999999999996 -0.4370000000000001 -0.186 -0.5800000000000001 0.6310000000000001 -1.049 0.548
  1.3680000000000003

example float32 1x1x4x4, padding_algorithm SAME
attr padding_algorithm STRING "SAME"
in Filter float32 [1, 1, 4, 4] 0.44 -0.76 -0.1 0.01 0.33 0.55 -0.43 0.77 -0.21 0.66 0.88 0.12 -0.32
  -0.65 0.22 -0.54
in Input float32 [2, 1, 3, 2] 0.09 0.39 -0.36 -0.21 0.85 -0.81 -0.66 -0.06 0.54 0.24 -0.51 0.69
in Output@GRAD float32 [2, 1, 3, 2] -0.2 -0.7 -0.8 -0.7 -0.1 0.5 -0.6 -0.4 0.1 0.8 -0.3 0.9
out Filter@GRAD float32 [1, 1, 4, 4] -0.28500006 -0.474 -0.36900002 0 0.8510001 1.094 0.024000004 0
  -0.967 0.18699995 0.615 0 -0.39100003 0.42699996 -0.252 0
out Input@GRAD float32 [2, 1, 3, 2] -0.04100003 0.313 -0.36000004 -1.049 0.08299993 -0.437
  -0.18600003 -0.58 0.63100004 -1.0489999 0.548 1.368
)")

HEDDLE_EXAMPLES(depthwise_conv2d_grad_grad, R"(
example float32
attr paddings INTS [1, 1]
attr groups INT 2
in Input float32 [1, 2, 3, 3] -0.19 -0.22 0.69 0.7 -0.67 0.81 0.67 -0.87 0.78 -0.14 -0.99 -0.32 0.2
  0.65 0.61 0.74 0.83 -0.75
in Filter float32 [2, 1, 3, 3] -0.16 -0.49 -0.52 0.72 0.09 -0.87 0.81 0.74 -0.83 -0.6 0.81 0.3 0.81
  -0.64 0.93 -0.26 0.38 0.85
in grad_out float32 [1, 2, 3, 3] -0.63 -0.21 0.98 -0.4 0.27 -0.02 -0.13 0.31 -0.59 -0.85 0.47 -0.78
  -0.74 0.39 0.42 0.92 0.49 0.69
in grad_input@GRAD float32 [1, 2, 3, 3] 0.93 -0.34 -0.42 -0.2 0.28 -0.13 0.23 -0.82 0.2 -0.04 0.13
  0.91 -0.85 0.14 -0.75 0.93 0.38 0.3
in grad_filter@GRAD float32 [2, 1, 3, 3] -0.24 -0.65 -0.4 -0.4 -0.05 0.41 0.91 0.72 -0.14 -0.11
  -0.41 -0.64 0.74 -0.18 0.11 -0.8 0.98 0.71
from depthwise_conv2d Input=Input Filter=grad_filter@GRAD -> Output=o1
attr paddings INTS [1, 1]
attr groups INT 2
from depthwise_conv2d Input=grad_input@GRAD Filter=Filter -> Output=o2
attr paddings INTS [1, 1]
attr groups INT 2
from elementwise_add X=o1 Y=o2 -> Out=grad_out@GRAD
from depthwise_conv2d_grad Input=Input Filter=grad_filter@GRAD Output@GRAD=grad_out ->
  Input@GRAD=Input@GRAD
attr paddings INTS [1, 1]
attr groups INT 2
from depthwise_conv2d_grad Input=grad_input@GRAD Filter=Filter Output@GRAD=grad_out ->
  Filter@GRAD=Filter@GRAD
attr paddings INTS [1, 1]
attr groups INT 2
out Input@GRAD float32 [1, 2, 3, 3] 0.3107 -0.6505 -0.2301 -0.7226 0.6514001 1.1062 -0.15980001
  0.3994 0.104399994 0.7613 -0.4878 -0.22969997 -1.2183001 -0.22530001 -1.0599 -0.8402 0.044400036
  0.6182
out Filter@GRAD float32 [2, 1, 3, 3] 0.030700006 -0.26590002 -0.054099992 -0.033000037 -1.1700001
  0.32389998 0.3949 -0.3776 0.23290001 -0.28090003 -0.7684001 0.02000001 0.32500002 1.0027
  0.41770002 0.013599962 0.9593 -0.6357
out grad_out@GRAD float32 [1, 2, 3, 3] 0.51619995 1.5686 -0.125 0.8162999 -0.48370004 -0.46439993
  0.10930002 -0.08100002 -0.61020005 0.51629996 1.3168998 -1.3957 3.3982 -0.50259995 0.47999996
  -1.4282 0.82430005 -0.14810008

example float64
attr paddings INTS [1, 1]
attr groups INT 2
in Input float64 [1, 2, 3, 3] -0.04 -0.76 0.63 0.03 0.88 -0.63 -0.75 0.97 0.34 -0.86 -0.85 -0.79
  -0.6 -0.56 0.97 0.92 -0.11 0.5
in Filter float64 [2, 1, 3, 3] 0.48 -0.86 -0.86 -0.17 0.6 0.87 0.09 -0.84 0.32 0.59 0.84 0.77 -0.32
  0.15 -0.64 0.14 0.18 0.98
in grad_out float64 [1, 2, 3, 3] 0.82 -0.68 -0.88 0.99 0.44 -0.37 0.76 0.16 0.27 -0.6 -0.13 -0.09
  0.36 -0.39 -0 -0.64 -0.23 0.98
in grad_input@GRAD float64 [1, 2, 3, 3] -0.6 0.36 0.34 -0.97 0.62 0.97 0.31 -0.11 0.9 -0.58 -0.23
  0.19 -0.74 0.96 -0.91 0.6 -0.56 0.22
in grad_filter@GRAD float64 [2, 1, 3, 3] 0.47 -0.25 -0.33 0.41 0.1 0.58 -0.98 -0.06 0.67 -0.37 0.92
  -0.32 0.41 0.63 0.81 0.24 -0.69 -0.72
from depthwise_conv2d Input=Input Filter=grad_filter@GRAD -> Output=o1
attr paddings INTS [1, 1]
attr groups INT 2
from depthwise_conv2d Input=grad_input@GRAD Filter=Filter -> Output=o2
attr paddings INTS [1, 1]
attr groups INT 2
from elementwise_add X=o1 Y=o2 -> Out=grad_out@GRAD
from depthwise_conv2d_grad Input=Input Filter=grad_filter@GRAD Output@GRAD=grad_out ->
  Input@GRAD=Input@GRAD
attr paddings INTS [1, 1]
attr groups INT 2
from depthwise_conv2d_grad Input=grad_input@GRAD Filter=Filter Output@GRAD=grad_out ->
  Filter@GRAD=Filter@GRAD
attr paddings INTS [1, 1]
attr groups INT 2
out Input@GRAD float64 [1, 2, 3, 3] -0.2375 -0.5638000000000002 -0.5351 0.7817999999999999
  1.7551999999999999 -0.3049000000000001 -0.349 1.567 0.43679999999999997 0.04420000000000002
  -1.0788 -0.0372 -0.05399999999999999 0.17659999999999992 0.8150000000000001 -0.8394999999999999
  -0.25160000000000005 0.7119
out Filter@GRAD float64 [2, 1, 3, 3] -0.385 -0.9375 1.1324 -0.5450999999999999 -1.6214 1.165 0.2911
  -2.1451 0.1358999999999999 1.3372000000000002 -0.7581 -0.5619999999999998 -0.30210000000000004
  -0.31960000000000005 1.1216 -0.22419999999999995 0.8355 -0.7451
out grad_out@GRAD float64 [1, 2, 3, 3] 1.1094 0.08480000000000004 -1.6894 1.3373000000000002
  1.5019000000000002 -1.5968 0.581 -1.1799999999999997 1.0249000000000001 0.4547 -2.7771
  -1.5772000000000002 -3.7369 0.6855 -0.8608000000000001 0.6837 -0.6384000000000003 1.3837
)")
