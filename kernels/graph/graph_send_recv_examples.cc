// Examples of the operators in graph_send_recv.cc.
#include "core/op_def.h"

HEDDLE_EXAMPLES(graph_send_recv, R"(
example float64 4x2, reduce_op MIN
attr reduce_op STRING "MIN"
in Dst_index int64 [3] 1 0 1
in Src_index int64 [3] 1 1 1
in X float64 [4, 2] 0.333 0.555 0.112 0.444 0.666 0.776 0.887 0.222
out Dst_count ?
out Out float64 [4, 2] 0.112 0.444 0.112 0.444 0*4

example float32 3x3, reduce_op MAX
attr reduce_op STRING "MAX"
in Dst_index int32 [4] 1 2 1 0
in Src_index int32 [4] 0 1 2 0
in X float32 [3, 3] 3 7 7 0 3 6 1 4 5
out Dst_count ?
out Out float32 [3, 3] 3 7 7 3 7 7 0 3 6

example float64 4x2, reduce_op MEAN
attr reduce_op STRING "MEAN"
in Dst_index int64 [3] 1 1 1
in Src_index int64 [3] 1 0 0
in X float64 [4, 2] 0.112 0.444 0.776 0.555 0.222 0.887 0.333 0.666
out Dst_count int32 [4] 0 3 0 0
out Out float64 [4, 2] 0 0 0.3333333333333333 0.48100000000000004 0*4
)")

HEDDLE_EXAMPLES(graph_send_recv_grad, R"(
example float64 4x2, reduce_op MEAN
attr reduce_op STRING "MEAN"
in Dst_count int32 [4] 1 2 0 0
in Dst_index int64 [3] 0 1 1
in Out float64 [4, 2] 0.554 0.775 0.554 0.775 0*4
in Out@GRAD float64 [4, 2] -0.3 -0.3 0.3 -0.5 -0.3 0.4 -0.4 0.9
in Src_index int64 [3] 0 0 0
in X float64 [4, 2] 0.554 0.775 0.113 0.444 0.223 0.664 0.885 0.334
out X@GRAD float64 [4, 2] 0 -0.8 0*6

example float64 4x2, reduce_op MIN
gradient none: two edges bring the same row, and Paddle counts the gradient for each of them
attr reduce_op STRING "MIN"
in Dst_index int64 [3] 1 1 1
in Out float64 [4, 2] 0 0 0.113 0.444 0*4
in Out@GRAD float64 [4, 2] -0.7 0 -0.2 0.3 -0.4 -0.6 0.3 0.8
in Src_index int64 [3] 1 0 0
in X float64 [4, 2] 0.113 0.444 0.775 0.554 0.223 0.885 0.334 0.664
out X@GRAD float64 [4, 2] -0.4 0.6 0*6

example float32 4x2, reduce_op MIN
gradient none: two edges bring the same row, and Paddle counts the gradient for each of them
attr reduce_op STRING "MIN"
in Dst_index int64 [3] 1 1 1
in Out float32 [4, 2] 0 0 0.113 0.444 0*4
in Out@GRAD float32 [4, 2] -0.7 0 -0.2 0.3 -0.4 -0.6 0.3 0.8
in Src_index int64 [3] 1 0 0
in X float32 [4, 2] 0.113 0.444 0.775 0.554 0.223 0.885 0.334 0.664
out X@GRAD float32 [4, 2] -0.4 0.6 0*6
)")

HEDDLE_EXAMPLES(graph_send_ue_recv, R"(
example float64 2x3x4, reduce_op MAX
attr reduce_op STRING "MAX"
in Dst_index int64 [5] 0 0 1 0 1
in Src_index int64 [5] 1 0 1 0 0
in X float64 [2, 3, 4] 0.879 0.919 0.481 0.6 0.8 0.68 0.043 0.401 0.441 0.839 0.242 0.282 0.123
  0.083 0.162 0.959 0.76 0.561 0.362 0.72 0.202 0.322 0.64 0.521
in Y float64 [5, 3, 1] 0.312 0.375 0.874 0.437 0.687 0.749 0.624 0.5 0.562 0.125 0.936 0.25 0.811
  0.188 0.063
out Dst_count ?
out Out float64 [2, 3, 4] 1.316 1.356 0.9179999999999999 1.271 1.7360000000000002 1.616
  0.9790000000000001 1.3370000000000002 1.19 1.588 1.514 1.395 1.69 1.73 1.292 1.583 1.26 1.061
  0.862 1.22 0.764 0.9019999999999999 1.202 1.0830000000000002

example float64 4x3, message_op MUL, reduce_op MEAN
attr message_op STRING "MUL"
attr reduce_op STRING "MEAN"
in Dst_index int64 [2] 1 0
in Src_index int64 [2] 1 0
in X float64 [4, 3] 0.769 0.922 0.08 0.386 0.539 0.616 0.309 0.846 0.156 0.233 0.692 0.463
in Y float64 [2, 1] 0.767 0.039
out Dst_count int32 [4] 1 1 0 0
out Out float64 [4, 3] 0.029991 0.035958000000000004 0.00312 0.296062 0.41341300000000003 0.472472
  0*6

example float32 ADD SUM
attr message_op STRING "ADD"
attr reduce_op STRING "SUM"
in X float32 [3, 2] 0.12 -0.66 -0.98 -0.18 -0.79 0.05
in Y float32 [3, 2] -0.08 -0.18 0.52 -0.96 0.23 0.3
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float32 [3, 2] 0 0 -0.52 -0.49 -0.46000004 -1.14
out Dst_count ?

example float32 ADD MEAN
attr message_op STRING "ADD"
attr reduce_op STRING "MEAN"
in X float32 [3, 2] 0.44 0.15 0.99 0.22 0 -0.29
in Y float32 [3, 2] -0.71 0.53 0.73 -0.07 0.88 0.39
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float32 [3, 2] 0 0 0.305 0.39 1.72 0.15
out Dst_count ?

example float32 ADD MAX
attr message_op STRING "ADD"
attr reduce_op STRING "MAX"
in X float32 [3, 2] 0.44 0.21 0.75 0.76 0.83 -0.92
in Y float32 [3, 2] 0.6 0.98 -0.75 -0.71 -0.87 -0.32
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float32 [3, 2] 0 0 1.04 1.19 0 0.050000012
out Dst_count ?

example float32 ADD MIN
attr message_op STRING "ADD"
attr reduce_op STRING "MIN"
in X float32 [3, 2] 0.59 0.13 0.48 -0.49 0.22 0.88
in Y float32 [3, 2] 0.48 -0.27 -0.3 -0.73 0.69 -0.14
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float32 [3, 2] 0 0 0.90999997 -0.14000002 0.17999998 -1.22
out Dst_count ?

example float32 MUL SUM
attr message_op STRING "MUL"
attr reduce_op STRING "SUM"
in X float32 [3, 2] 0.87 -0.92 -0.34 0.75 -0.13 0.43
in Y float32 [3, 2] -0.02 -0.38 0.42 0.21 -0.1 -0.19
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float32 [3, 2] 0 0 -0.004400001 0.2679 -0.1428 0.1575
out Dst_count ?

example float32 MUL MEAN
attr message_op STRING "MUL"
attr reduce_op STRING "MEAN"
in X float32 [3, 2] -0.09 0.22 0.11 0.88 0.5 0.73
in Y float32 [3, 2] -0.62 -0.94 -0.8 0.69 -0.29 -0.04
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float32 [3, 2] 0 0 -0.044599995 -0.118 -0.088 0.60719997
out Dst_count ?

example float32 MUL MAX
attr message_op STRING "MUL"
attr reduce_op STRING "MAX"
in X float32 [3, 2] 0.01 -0.65 0.34 -0.37 0.33 -0.51
in Y float32 [3, 2] 0.83 -0.49 -0.25 -0.2 -0.56 0.35
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float32 [3, 2] 0 0 0.0083 0.31849998 -0.085 0.074
out Dst_count ?

example float32 MUL MIN
attr message_op STRING "MUL"
attr reduce_op STRING "MIN"
in X float32 [3, 2] -0.12 0.87 -0.22 -0.42 -0.44 0.32
in Y float32 [3, 2] -0.78 -0.67 -0.4 -0.42 -0.95 -0.76
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float32 [3, 2] 0 0 0.0936 -0.58290005 0.088 0.17639999
out Dst_count ?

example float64 ADD SUM
attr message_op STRING "ADD"
attr reduce_op STRING "SUM"
in X float64 [3, 2] -0.69 -0.25 0.84 -0.1 0.23 -0.99
in Y float64 [3, 2] 0.64 -0.44 0.87 -0.68 0.64 0.48
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float64 [3, 2] 0 0 0.8200000000000001 -1.2 1.71 -0.78
out Dst_count ?

example float64 ADD MEAN
attr message_op STRING "ADD"
attr reduce_op STRING "MEAN"
in X float64 [3, 2] 0.55 -0.26 -0.42 0.15 -0.73 0.69
in Y float64 [3, 2] 0.22 0.35 0.61 0.77 0.53 -0.3
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float64 [3, 2] 0 0 0.28500000000000003 0.23999999999999996 0.19 0.92
out Dst_count ?

example float64 ADD MAX
attr message_op STRING "ADD"
attr reduce_op STRING "MAX"
in X float64 [3, 2] 0.3 -0.52 -0.21 0.01 0.09 -0.38
in Y float64 [3, 2] -0.11 -0.24 -0.62 -0.92 -0.62 0.25
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float64 [3, 2] 0 0 0.19 -0.13 -0.83 -0.91
out Dst_count ?

example float64 ADD MIN
attr message_op STRING "ADD"
attr reduce_op STRING "MIN"
in X float64 [3, 2] 0.23 -0.08 0.66 -0.9 -0.71 -0.48
in Y float64 [3, 2] 0.95 -0.82 0.65 0.8 0.88 0.31
in Src_index int64 [3] 0 1 2
in Dst_index int64 [3] 1 2 1
out Out float64 [3, 2] 0 0 0.17000000000000004 -0.8999999999999999 1.31 -0.09999999999999998
out Dst_count ?
)")

HEDDLE_EXAMPLES(graph_send_ue_recv_grad, R"(
example float64 4x2, message_op MUL, reduce_op MEAN
attr message_op STRING "MUL"
attr reduce_op STRING "MEAN"
in Dst_count int32 [4] 2 1 0 0
in Dst_index int64 [3] 0 1 0
in Out float64 [4, 2] 0.0322615 0.1591105 0.032205 0.159222 0*4
in Out@GRAD float64 [4, 2] 0.9 0.6 0.3 0.5 0.5 -0.7 -0.4 -0.5
in Src_index int64 [3] 1 1 1
in X float64 [4, 2] 0.775 0.444 0.113 0.223 0.885 0.664 0.334 0.554
in Y float64 [3, 2] 0.428 0.571 0.285 0.714 0.143 0.856
out X@GRAD float64 [4, 2] 0 0 0.34245000000000003 0.7850999999999999 0*4
out Y@GRAD float64 [3, 2] 0.05085 0.0669 0.0339 0.1115 0.05085 0.0669

example float64 4x2, message_op MUL, reduce_op MIN
dtypes none: a message that equals Out is the one that was taken, and a cast ends the equality
attr message_op STRING "MUL"
attr reduce_op STRING "MIN"
in Dst_index int64 [3] 1 1 1
in Out float64 [4, 2] 0 0 0.316334 0.11082499999999999 0*4
in Out@GRAD float64 [4, 2] 0.1 0.4 0.7 0.3 -0.9 -0.6 0.5 -0.6
in Src_index int64 [3] 1 1 1
in X float64 [4, 2] 0.664 0.334 0.554 0.775 0.113 0.444 0.223 0.885
in Y float64 [3, 2] 0.856 0.143 0.714 0.285 0.571 0.428
out X@GRAD float64 [4, 2] 0 0 0.39969999999999994 0.042899999999999994 0*4
out Y@GRAD float64 [3, 2] 0 0.23249999999999998 0 0 0.38780000000000003 0
)")

HEDDLE_EXAMPLES(graph_send_uv, R"(
example float32 3x3
in dst_index int32 [4] 1 2 1 0
in src_index int32 [4] 0 1 2 0
in x float32 [3, 3] 0 3 4 0 6 7 1 4 4
in y float32 [3, 3] 1 3 4 1 3 4 5 5 5
out out float32 [4, 3] 1 6 8 5 11 12 2 7 8 1 6 8

example float32 ADD
attr message_op STRING "ADD"
in x float32 [3, 2] -0.24 0.41 0.02 0.27 0.87 -0.58
in y float32 [3, 2] -0.33 0.32 -0.17 -0.49 0.75 -0.2
in src_index int64 [3] 0 1 2
in dst_index int64 [3] 1 2 0
out out float32 [3, 2] -0.41 -0.08000001 0.77 0.07000001 0.53999996 -0.26

example float32 MUL
attr message_op STRING "MUL"
in x float32 [3, 2] -0.13 -0.81 0.5 0.61 -0.32 -0.68
in y float32 [3, 2] 0.73 -0.42 -0.7 -0.78 -0.59 0.42
in src_index int64 [3] 0 1 2
in dst_index int64 [3] 1 2 0
out out float32 [3, 2] 0.091 0.6318 -0.295 0.2562 -0.2336 0.2856

example float64 ADD
attr message_op STRING "ADD"
in x float64 [3, 2] 0.73 -0.33 0.57 -0.03 -0.12 -0.39
in y float64 [3, 2] 0.07 0.87 -0.14 -0.8 -0.78 0.08
in src_index int64 [3] 0 1 2
in dst_index int64 [3] 1 2 0
out out float64 [3, 2] 0.59 -1.1300000000000001 -0.21000000000000008 0.05 -0.04999999999999999 0.48

example float64 MUL
attr message_op STRING "MUL"
in x float64 [3, 2] -0.22 0.25 -0.36 0.47 0.14 -0.47
in y float64 [3, 2] -0.19 0.42 -0.5 -0.57 -0.5 -0.85
in src_index int64 [3] 0 1 2
in dst_index int64 [3] 1 2 0
out out float64 [3, 2] 0.11 -0.1425 0.18 -0.39949999999999997 -0.026600000000000002 -0.1974
)")

HEDDLE_EXAMPLES(graph_send_uv_grad, R"(
example float32 ADD
attr message_op STRING "ADD"
in x float32 [3, 2] 0.69 0.22 -0.31 -0.54 0.89 -0.42
in y float32 [3, 2] -0.18 -0.32 0.9 -0.54 -0.66 -0.02
in src_index int64 [3] 0 1 2
in dst_index int64 [3] 1 2 0
in out@GRAD float32 [3, 2] 0.81 0.77 -0.61 0.04 -0.65 0.8
out x@GRAD float32 [3, 2] 0.81 0.77 -0.61 0.04 -0.65 0.8
out y@GRAD float32 [3, 2] -0.65 0.8 0.81 0.77 -0.61 0.04

example float32 MUL
attr message_op STRING "MUL"
in x float32 [3, 2] 0.56 -0.62 -0.99 0.76 0.76 0.16
in y float32 [3, 2] -0.8 0.02 -0.02 -0.02 0.51 0.85
in src_index int64 [3] 0 1 2
in dst_index int64 [3] 1 2 0
in out@GRAD float32 [3, 2] -0.33 0.23 0.99 0.57 0.73 0.89
out x@GRAD float32 [3, 2] 0.0066 -0.0046 0.5049 0.48450002 -0.58400005 0.0178
out y@GRAD float32 [3, 2] 0.55480003 0.1424 -0.18480001 -0.1426 -0.98010004 0.4332

example float64 ADD
attr message_op STRING "ADD"
in x float64 [3, 2] -0.52 0.26 -0.08 0.83 0.13 0.63
in y float64 [3, 2] 0.02 -0.65 0.13 0.02 -0.27 -0.97
in src_index int64 [3] 0 1 2
in dst_index int64 [3] 1 2 0
in out@GRAD float64 [3, 2] 0.48 0.96 0.8 0.27 -0.11 0.11
out x@GRAD float64 [3, 2] 0.48 0.96 0.8 0.27 -0.11 0.11
out y@GRAD float64 [3, 2] -0.11 0.11 0.48 0.96 0.8 0.27

example float64 MUL
attr message_op STRING "MUL"
in x float64 [3, 2] -0.17 0.94 0.53 -0.01 0.9 0.74
in y float64 [3, 2] -0.27 -0.5 -0.57 0.53 -0.13 0.86
in src_index int64 [3] 0 1 2
in dst_index int64 [3] 1 2 0
in out@GRAD float64 [3, 2] 0.05 -0.65 0.88 -0.14 0.44 -0.38
out x@GRAD float64 [3, 2] -0.028499999999999998 -0.34450000000000003 -0.1144 -0.12040000000000001
  -0.1188 0.19
out y@GRAD float64 [3, 2] 0.396 -0.2812 -0.0085 -0.611 0.46640000000000004 0.0014000000000000002
)")
