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
attr reduce_op STRING "MIN"
in Dst_index int64 [3] 1 1 1
in Out float64 [4, 2] 0 0 0.113 0.444 0*4
in Out@GRAD float64 [4, 2] -0.7 0 -0.2 0.3 -0.4 -0.6 0.3 0.8
in Src_index int64 [3] 1 0 0
in X float64 [4, 2] 0.113 0.444 0.775 0.554 0.223 0.885 0.334 0.664
out X@GRAD float64 [4, 2] -0.4 0.6 0*6

example float32 4x2, reduce_op MIN
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
)")
