#include "kernels/resize/interp.h"

HEDDLE_OP(trilinear_interp) {
  op.Doc("resizes volumes, linear in three dimensions");
  DefineInterp<InterpKind::kLinear, true, 3>(op);
}
HEDDLE_OP(trilinear_interp_grad) { DefineInterpGrad<InterpKind::kLinear, true, 3>(op); }
HEDDLE_OP(trilinear_interp_v2) {
  op.Doc("resizes volumes, linear in three dimensions");
  DefineInterp<InterpKind::kLinear, false, 3>(op);
}
HEDDLE_OP(trilinear_interp_v2_grad) { DefineInterpGrad<InterpKind::kLinear, false, 3>(op); }

HEDDLE_EXAMPLES(trilinear_interp_grad, R"(
example float64 1x1x2x3x4, out_d 2, out_h 3, out_w 4
attr interp_method STRING "trilinear"
attr out_d INT 2
attr out_h INT 3
attr out_w INT 4
in Out@GRAD float64 [1, 1, 2, 3, 4] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2
  -0 -1 0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
in X float64 [1, 1, 2, 3, 4] 0.719 0.679 0.639 0.28 0.48 0.759 0.599 0.24 0.32 0.12 0.519 0.04 0.16
  0.36 0.2 0.08 0.799 0.919 0.839 0.4 0.959 0.559 0.44 0.879
out X@GRAD float64 [1, 1, 2, 3, 4] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2
  -0 -1 0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2

example float32 1x1x2x3x4, out_d 2, out_h 3, out_w 4
attr interp_method STRING "trilinear"
attr out_d INT 2
attr out_h INT 3
attr out_w INT 4
in Out@GRAD float32 [1, 1, 2, 3, 4] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2
  -0 -1 0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
in X float32 [1, 1, 2, 3, 4] 0.719 0.679 0.639 0.28 0.48 0.759 0.599 0.24 0.32 0.12 0.519 0.04 0.16
  0.36 0.2 0.08 0.799 0.919 0.839 0.4 0.959 0.559 0.44 0.879
out X@GRAD float32 [1, 1, 2, 3, 4] -0.8 0.3 -0.2 0.2 0.4 0.4 0.9 0.3 0 -0.8 -0.2 -0.4 -0.7 -1 -0.2
  -0 -1 0.1 -0.8 -0.2 -0.4 0.5 0.2 -0.2
)")

HEDDLE_EXAMPLES(trilinear_interp, R"(
example float32, align_corners 1, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN true
attr align_mode INT 1
in X float32 [1, 1, 2, 2, 2] 0.44 -0.38 -0.22 0.25 -0.36 0.47 0.14 -0.47
out Out float32 [1, 1, 3, 2, 3] 0.44 0.030000001 -0.38 -0.22 0.015000001 0.25 0.03999999 0.042499997
  0.045 -0.04 -0.075 -0.11 -0.36 0.054999992 0.47 0.14 -0.16499999 -0.47

example float32, align_corners 0, align_mode 0
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN false
attr align_mode INT 0
in X float32 [1, 1, 2, 2, 2] -0.19 0.42 -0.5 -0.57 -0.5 -0.85 0.72 0.22
out Out float32 [1, 1, 3, 2, 3] -0.19 0.114999995 0.42 -0.5 -0.53499997 -0.57 -0.345 -0.28
  -0.21500003 0.110000014 -0.032499976 -0.175 -0.5 -0.6750001 -0.8500001 0.72 0.47000003 0.21999998

example float32, align_corners 0, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN false
attr align_mode INT 1
in X float32 [1, 1, 2, 2, 2] -0.68 -0.02 0.86 0.98 0.37 -0.99 0.45 -0.3
out Out float32 [1, 1, 3, 2, 3] -0.68 -0.24 -0.02 0.86 0.94000006 0.98 0.02000001 -0.43777782
  -0.6666667 0.5866667 0.27999997 0.12666664 0.37 -0.5366667 -0.99 0.45 -0.050000027 -0.3

example float64, align_corners 1, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN true
attr align_mode INT 1
in X float64 [1, 1, 2, 2, 2] 0.97 0.2 -0.09 -0.29 -0.43 -0.13 -0.38 -0.14
out Out float64 [1, 1, 3, 2, 3] 0.97 0.585 0.2 -0.09 -0.19 -0.29 0.27 0.1525 0.035 -0.235 -0.225
  -0.215 -0.43 -0.28 -0.13 -0.38 -0.26 -0.14
)")

HEDDLE_EXAMPLES(trilinear_interp_v2, R"(
example float32, align_corners 1, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN true
attr align_mode INT 1
in X float32 [1, 1, 2, 2, 2] -0.36 0.16 0.64 -0.6 -0.2 0.5 0.05 -0.35
out Out float32 [1, 1, 3, 2, 3] -0.36 -0.10000001 0.16 0.64 0.01999998 -0.6 -0.28 0.024999991
  0.32999998 0.345 -0.06500001 -0.47500002 -0.2 0.15 0.5 0.05 -0.14999999 -0.35

example float32, align_corners 0, align_mode 0
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN false
attr align_mode INT 0
in X float32 [1, 1, 2, 2, 2] -0.02 -0.69 0.13 -0.1 0.12 0.72 0.46 0.1
out Out float32 [1, 1, 3, 2, 3] -0.02 -0.355 -0.69 0.13 0.014999997 -0.1 0.049999997 0.032500014
  0.0150000155 0.29500002 0.14750001 9.313226e-10 0.12 0.42 0.72 0.46 0.28 0.1

example float32, align_corners 0, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN false
attr align_mode INT 1
in X float32 [1, 1, 2, 2, 2] -0.58 0.32 -0.46 0.26 0.39 -0.62 0.01 -0.12
out Out float32 [1, 1, 3, 2, 3] -0.58 0.020000026 0.32 -0.46 0.02000001 0.26 0.06666668 -0.18222225
  -0.3066667 -0.14666666 -0.044444446 0.006666662 0.39 -0.28333336 -0.62 0.01 -0.07666666
  -0.11999999

example float64, align_corners 1, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN true
attr align_mode INT 1
in X float64 [1, 1, 2, 2, 2] -0.27 -0.91 0.7 0.83 -0.87 -0.64 0.69 -0.67
out Out float64 [1, 1, 3, 2, 3] -0.27 -0.5900000000000001 -0.91 0.7 0.7649999999999999 0.83
  -0.5700000000000001 -0.6725000000000001 -0.775 0.695 0.38749999999999996 0.07999999999999996 -0.87
  -0.755 -0.64 0.69 0.009999999999999953 -0.67

example float16, align_corners 1, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN true
attr align_mode INT 1
in X float16 [1, 1, 2, 2, 2] -0.36 0.16 0.64 -0.6 -0.2 0.5 0.05 -0.35
out Out float16 [1, 1, 3, 2, 3] -0.36 -0.10004 0.16 0.64 0.02002 -0.6 -0.28 0.025 0.3298 0.345
  -0.065 -0.475 -0.2 0.15 0.5 0.05 -0.15 -0.35

example bfloat16, align_corners 1, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN true
attr align_mode INT 1
in X bfloat16 [1, 1, 2, 2, 2] -0.36 0.16 0.64 -0.6 -0.2 0.5 0.05 -0.35
out Out bfloat16 [1, 1, 3, 2, 3] -0.36 -0.0996 0.16 0.64 0.0195 -0.6 -0.28 0.0251 0.33 0.344 -0.065
  -0.475 -0.2 0.149 0.5 0.05 -0.149 -0.35
)")

HEDDLE_EXAMPLES(trilinear_interp_v2_grad, R"(
example float32, align_corners 1, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN true
attr align_mode INT 1
in X float32 [1, 1, 2, 2, 2] -0.76 -0.66 0 0.96 -0.8 0.34 0.37 -0.6
in Out@GRAD float32 [1, 1, 3, 2, 3] -0.91 0.05 -0.24 0.91 -0.53 0.03 -0.25 0.24 0.63 0.61 -0.13
  -0.63 -0.11 -0.88 0.02 0.04 -0 -0.46
out X@GRAD float32 [1, 1, 2, 2, 2] -0.95 0.16000001 0.9175 -0.5825 -0.615 -0.044999998 0.3125
  -0.8075

example float32, align_corners 0, align_mode 0
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN false
attr align_mode INT 0
in X float32 [1, 1, 2, 2, 2] 0.92 0.05 -0.5 0.47 0.03 -0.44 -0.97 0.19
in Out@GRAD float32 [1, 1, 3, 2, 3] 0.58 -0.31 0.22 0.53 -0.18 0.25 0.38 -0.13 -0.92 -0.29 -0.07
  0.72 0.67 -0.75 0.59 -0.7 -0.37 -0.54
out X@GRAD float32 [1, 1, 2, 2, 2] 0.5825 -0.4275 0.27749994 0.50250006 0.45250008 -0.2775 -1.0475
  -0.38250002

example float32, align_corners 0, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN false
attr align_mode INT 1
in X float32 [1, 1, 2, 2, 2] -0.93 0.73 0.84 -0.51 -0.81 0.51 -0.75 -0.54
in Out@GRAD float32 [1, 1, 3, 2, 3] 0.6 0.13 0.27 0.59 0.52 0.33 -0.65 -0.85 -0.48 -0.05 0.94 0.2
  0.19 -0.14 0.53 0.04 0.64 -0.34
out X@GRAD float32 [1, 1, 2, 2, 2] 0.33222228 0.0077777803 0.8511111 0.9522222 -0.47888893
  -0.2611112 0.42888883 0.6377778

example float64, align_corners 1, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN true
attr align_mode INT 1
in X float64 [1, 1, 2, 2, 2] -0.36 0.91 -0.41 -0.74 -0.69 -0.26 0.93 -0.75
in Out@GRAD float64 [1, 1, 3, 2, 3] -0.89 -0.81 -0.4 -0.46 0.16 -0.25 0.69 0.32 -0.37 0.47 0.88
  -0.67 -0.05 -0.53 0.53 -0.07 -0.17 0.57
out X@GRAD float64 [1, 1, 2, 2, 2] -0.87 -0.9100000000000001 0.07499999999999998
  -0.28500000000000003 0.10999999999999999 0.16000000000000003 0.29999999999999993
  0.36999999999999994

example float64, align_corners 0, align_mode 0
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN false
attr align_mode INT 0
in X float64 [1, 1, 2, 2, 2] -0.48 -0.44 -0.39 0.5 0.14 0.47 0.79 -0.9
in Out@GRAD float64 [1, 1, 3, 2, 3] 0.1 0.68 0.73 0.49 -0.06 0 0.91 -0.18 -0.68 0.82 0.02 0.88 -0.91
  -0.3 0.91 0.82 0.06 -0.55
out X@GRAD float64 [1, 1, 2, 2, 2] 0.85 0.6849999999999999 0.8749999999999999 0.415 -0.65
  0.37499999999999994 1.2650000000000001 -0.075

example float64, align_corners 0, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN false
attr align_mode INT 1
in X float64 [1, 1, 2, 2, 2] -0.92 -0.48 1 -0.81 -0.11 0.07 -0.26 0.52
in Out@GRAD float64 [1, 1, 3, 2, 3] 0.82 0.48 -0.47 0.01 -0.45 0.64 -0.72 0.06 -0.97 0.9 -0.6 -0.15
  -0.81 -0.18 -0.66 -0.99 -0.54 -0.94
out X@GRAD float64 [1, 1, 2, 2, 2] 0.7466666706403097 -0.45999997158845257 0.09333333233992236
  0.1566666646798454 -1.336666677792867 -1.40000002125899 -0.7033333007494607 -1.666666696270307

example float16, align_corners 1, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN true
attr align_mode INT 1
in X float16 [1, 1, 2, 2, 2] -0.76 -0.66 0 0.96 -0.8 0.34 0.37 -0.6
in Out@GRAD float16 [1, 1, 3, 2, 3] -0.91 0.05 -0.24 0.91 -0.53 0.03 -0.25 0.24 0.63 0.61 -0.13
  -0.63 -0.11 -0.88 0.02 0.04 -0 -0.46
out X@GRAD float16 [1, 1, 2, 2, 2] -0.9497 0.16 0.917 -0.582 -0.6147 -0.04517 0.312 -0.807

example bfloat16, align_corners 1, align_mode 1
attr interp_method STRING "trilinear"
attr out_d INT 3
attr out_h INT 2
attr out_w INT 3
attr align_corners BOOLEAN true
attr align_mode INT 1
in X bfloat16 [1, 1, 2, 2, 2] -0.76 -0.66 0 0.96 -0.8 0.34 0.37 -0.6
in Out@GRAD bfloat16 [1, 1, 3, 2, 3] -0.91 0.05 -0.24 0.91 -0.53 0.03 -0.25 0.24 0.63 0.61 -0.13
  -0.63 -0.11 -0.88 0.02 0.04 -0 -0.46
out X@GRAD bfloat16 [1, 1, 2, 2, 2] -0.945 0.16 0.914 -0.582 -0.613 -0.0464 0.31 -0.805
)")
