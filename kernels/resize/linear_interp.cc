#include "kernels/resize/interp.h"

HEDDLE_OP(linear_interp) {
  op.Doc("resizes along one dimension, linear");
  DefineInterp<InterpKind::kLinear, true, 1>(op);
}
HEDDLE_OP(linear_interp_grad) { DefineInterpGrad<InterpKind::kLinear, true, 1>(op); }
HEDDLE_OP(linear_interp_v2) {
  op.Doc("resizes along one dimension, linear");
  DefineInterp<InterpKind::kLinear, false, 1>(op);
}
HEDDLE_OP(linear_interp_v2_grad) { DefineInterpGrad<InterpKind::kLinear, false, 1>(op); }

HEDDLE_EXAMPLES(linear_interp, R"(
example align_corners 1
attr align_corners BOOLEAN true
attr out_w INT 5
attr interp_method STRING "linear"
in X float32 [2, 2, 3] -0.63 -0.64 -0.51 0.4 0.05 -0.9 0.44 -0.01 0.71 -0.01 -0.21 -0.74
out Out float32 [2, 2, 5] -0.63 -0.635 -0.64 -0.575 -0.51 0.4 0.22500001 0.05 -0.42499998 -0.9 0.44
  0.215 -0.01 0.35 0.71 -0.01 -0.11 -0.21 -0.475 -0.74

example align_corners 0 align_mode 0
attr align_corners BOOLEAN false
attr align_mode INT 0
attr out_w INT 5
attr interp_method STRING "linear"
in X float32 [2, 2, 3] -0.46 -0.13 0.2 0.26 0.93 0.58 -0.63 0.2 0.64 0.5 0.72 -0.51
out Out float32 [2, 2, 5] -0.46 -0.328 -0.13 0.06800005 0.2 0.26 0.528 0.93 0.7199999 0.58 -0.63
  -0.29799995 0.2 0.46400008 0.64 0.5 0.58800006 0.72 -0.018000156 -0.51

example align_corners 0 align_mode 1
attr align_corners BOOLEAN false
attr align_mode INT 1
attr out_w INT 5
attr interp_method STRING "linear"
in X float32 [2, 2, 3] -0.73 -0.04 0.25 -0.14 0.03 0.57 0.07 0.17 -0.56 -0.78 -0.73 -0.94
out Out float32 [2, 2, 5] -0.73 -0.31599998 0.018000014 0.19200002 0.25 -0.14 -0.037999995
  0.13800003 0.46200004 0.57 0.07 0.13000001 0.023999967 -0.41400006 -0.56 -0.78 -0.75 -0.772
  -0.89800006 -0.93999994
)")

HEDDLE_EXAMPLES(linear_interp_grad, R"(
example align_corners 1
attr interp_method STRING "linear"
attr out_w INT 5
in Out@GRAD float64 [2, 2, 5] 0.4 0.2 0.4 -0.2 -0.1 -0.2 0 -0.8 0.9 -0 0.9 -0.4 0.5 -0.4 -0.4 0.5
  -0.3 1 -0.9 0
in X float64 [2, 2, 3] 0.02 -0.27 -0.97 0.48 0.96 0.8 0.27 -0.11 0.11 0.73 -0.33 0.57
out X@GRAD float64 [2, 2, 3] 0.5 0.4 -0.2 -0.2 -0.35000000000000003 0.45 0.7 0.09999999999999998
  -0.6000000000000001 0.35 0.39999999999999997 -0.45

example align_corners 0 align_mode 0
attr interp_method STRING "linear"
attr align_corners BOOLEAN false
attr align_mode INT 0
attr out_w INT 5
in Out@GRAD float64 [2, 2, 5] 0.4 0.2 0.4 -0.2 -0.1 -0.2 0 -0.8 0.9 -0 0.9 -0.4 0.5 -0.4 -0.4 0.5
  -0.3 1 -0.9 0
in X float64 [2, 2, 3] 0.48 0.55 -0.26 -0.42 0.15 -0.73 0.69 0.22 0.35 0.61 0.77 0.53
out X@GRAD float64 [2, 2, 3] 0.5199999928474427 0.4000000357627869 -0.22000002861022952 -0.2
  -0.4400001287460327 0.5400001287460328 0.6600000143051148 0.1800000429153442 -0.640000057220459
  0.3200000107288361 0.5200001180171967 -0.5400001287460328

example align_corners 0 align_mode 1
attr interp_method STRING "linear"
attr align_corners BOOLEAN false
attr out_w INT 5
in Out@GRAD float64 [2, 2, 5] 0.4 0.2 0.4 -0.2 -0.1 -0.2 0 -0.8 0.9 -0 0.9 -0.4 0.5 -0.4 -0.4 0.5
  -0.3 1 -0.9 0
in X float64 [2, 2, 3] -0.82 0.65 0.8 0.88 0.31 -0.17 0.94 0.53 -0.01 0.9 0.74 -0.27
out X@GRAD float64 [2, 2, 3] 0.47999999523162845 0.4 -0.1799999952316284 -0.2 -0.46000002622604375
  0.5600000262260436 0.7400000095367432 0.07999999523162842 -0.6200000047683716 0.3800000071525574
  0.4400000095367431 -0.5200000166893005

example align_corners 0 align_mode 0, no. 2
attr interp_method STRING "linear"
attr align_corners BOOLEAN false
attr align_mode INT 0
attr out_w INT 5
in Out@GRAD float64 [2, 2, 5] 0.4 0.2 0.4 -0.2 -0.1 -0.2 0 -0.8 0.9 -0 0.9 -0.4 0.5 -0.4 -0.4 0.5
  -0.3 1 -0.9 0
in X float64 [2, 2, 3] -0.02 -0.01 0.04 0.53 0.8 0.54 0.87 0.06 0.07 0.9 0.85 0.9
out X@GRAD float64 [2, 2, 3] 0.5199999928474427 0.4000000357627869 -0.22000002861022952 -0.2
  -0.4400001287460327 0.5400001287460328 0.6600000143051148 0.1800000429153442 -0.640000057220459
  0.3200000107288361 0.5200001180171967 -0.5400001287460328

example align_corners 0 align_mode 1, no. 2
attr interp_method STRING "linear"
attr align_corners BOOLEAN false
attr out_w INT 5
in Out@GRAD float64 [2, 2, 5] 0.4 0.2 0.4 -0.2 -0.1 -0.2 0 -0.8 0.9 -0 0.9 -0.4 0.5 -0.4 -0.4 0.5
  -0.3 1 -0.9 0
in X float64 [2, 2, 3] 0.02 0.19 0.88 -0.14 0.3 -0.74 0.2 0.18 -0.98 0.62 0.65 -0.19
out X@GRAD float64 [2, 2, 3] 0.47999999523162845 0.4 -0.1799999952316284 -0.2 -0.46000002622604375
  0.5600000262260436 0.7400000095367432 0.07999999523162842 -0.6200000047683716 0.3800000071525574
  0.4400000095367431 -0.5200000166893005
)")

HEDDLE_EXAMPLES(linear_interp_v2, R"(
example align_corners 1
attr align_corners BOOLEAN true
attr out_w INT 5
attr interp_method STRING "linear"
in X float32 [1, 2, 3] -0.31 0.26 -0.67 0.47 -0.28 -0.26
out Out float32 [1, 2, 5] -0.31 -0.025000006 0.26 -0.20500001 -0.67 0.47 0.095 -0.28 -0.26999998
  -0.26

example align_corners 0 align_mode 0
attr align_corners BOOLEAN false
attr align_mode INT 0
attr out_w INT 5
attr interp_method STRING "linear"
in X float32 [1, 2, 3] 0.72 0.35 -0.42 0.2 0.84 0.85
out Out float32 [1, 2, 5] 0.72 0.572 0.35 -0.11200012 -0.42 0.2 0.45600003 0.84 0.84599996 0.85

example align_corners 0 align_mode 1
attr align_corners BOOLEAN false
attr align_mode INT 1
attr out_w INT 5
attr interp_method STRING "linear"
in X float32 [1, 2, 3] -0.64 0.77 -0.05 0.39 0.87 0.58
out Out float32 [1, 2, 5] -0.64 0.20600003 0.60599995 0.11399993 -0.05 0.39 0.678 0.81200004
  0.63799995 0.58

example align_corners 1, float16
attr align_corners BOOLEAN true
attr out_w INT 5
attr interp_method STRING "linear"
in X float16 [1, 2, 3] -0.31 0.26 -0.67 0.47 -0.28 -0.26
out Out float16 [1, 2, 5] -0.31 -0.02502 0.26 -0.205 -0.67 0.47 0.095 -0.28 -0.27 -0.26

example align_corners 1, bfloat16
attr align_corners BOOLEAN true
attr out_w INT 5
attr interp_method STRING "linear"
in X bfloat16 [1, 2, 3] -0.31 0.26 -0.67 0.47 -0.28 -0.26
out Out bfloat16 [1, 2, 5] -0.31 -0.0254 0.26 -0.206 -0.67 0.47 0.0957 -0.28 -0.27 -0.26
)")

HEDDLE_EXAMPLES(linear_interp_v2_grad, R"(
example align_corners 1
attr interp_method STRING "linear"
attr out_w INT 5
in Out@GRAD float64 [1, 2, 5] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5 -0.9 -0
in X float64 [1, 2, 3] -0.31 0.26 -0.67 0.47 -0.28 -0.26
out X@GRAD float64 [1, 2, 3] -0.7 1.1 1.2 0.24999999999999997 -0.6000000000000001 -0.45

example align_corners 0 align_mode 0
attr interp_method STRING "linear"
attr align_corners BOOLEAN false
attr align_mode INT 0
attr out_w INT 5
in Out@GRAD float64 [1, 2, 5] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5 -0.9 -0
in X float64 [1, 2, 3] 0.72 0.35 -0.42 0.2 0.84 0.85
out X@GRAD float64 [1, 2, 3] -0.6600000143051148 0.9999999284744263 1.2600000858306886
  0.31999997496604915 -0.5799998462200165 -0.5400001287460328

example align_corners 0 align_mode 1
attr interp_method STRING "linear"
attr align_corners BOOLEAN false
attr out_w INT 5
in Out@GRAD float64 [1, 2, 5] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5 -0.9 -0
in X float64 [1, 2, 3] -0.64 0.77 -0.05 0.39 0.87 0.58
out X@GRAD float64 [1, 2, 3] -0.7400000095367432 0.8399999380111693 1.5000000715255737
  0.1799999833106994 -0.1599998950958252 -0.8200000882148742

example align_corners 1, float16
attr interp_method STRING "linear"
attr out_w INT 5
in Out@GRAD float16 [1, 2, 5] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5 -0.9 -0
in X float16 [1, 2, 3] -0.31 0.26 -0.67 0.47 -0.28 -0.26
out X@GRAD float16 [1, 2, 3] -0.6997 1.1 1.199 0.25 -0.5996 -0.45

example align_corners 1, bfloat16
attr interp_method STRING "linear"
attr out_w INT 5
in Out@GRAD bfloat16 [1, 2, 5] -0.9 0.4 0.6 0.6 0.9 -0.1 0.7 -0.5 -0.9 -0
in X bfloat16 [1, 2, 3] -0.31 0.26 -0.67 0.47 -0.28 -0.26
out X@GRAD bfloat16 [1, 2, 3] -0.695 1.1 1.195 0.249 -0.598 -0.45
)")
