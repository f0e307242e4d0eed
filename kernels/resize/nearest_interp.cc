#include "kernels/resize/interp.h"

HEDDLE_OP(nearest_interp) {
  op.Doc("resizes images by repeating the nearest pixel");
  DefineInterp<InterpKind::kNearest, true, 0>(op);
}
HEDDLE_OP(nearest_interp_grad) { DefineInterpGrad<InterpKind::kNearest, true, 0>(op); }
HEDDLE_OP(nearest_interp_v2) {
  op.Doc("resizes images by repeating the nearest pixel");
  DefineInterp<InterpKind::kNearest, false, 0>(op);
}
HEDDLE_OP(nearest_interp_v2_grad) { DefineInterpGrad<InterpKind::kNearest, false, 0>(op); }

HEDDLE_EXAMPLES(nearest_interp, R"(
example float64 4x1x3x2, out_h 1, out_w 1
attr interp_method STRING "nearest"
attr out_h INT 1
attr out_w INT 1
in OutSize int32 [2] 2 2
in X float64 [4, 1, 3, 2] 0.597 0.914 0.241 0.399 0.478 0.953 0.874 0.558 0.32 0.716 0.637 0.043
  0.439 0.083 0.162 0.36 0.518 0.676 0.122 0.835 0.795 0.201 0.756 0.281
out Out float64 [4, 1, 2, 2] 0.597 0.914 0.478 0.953 0.874 0.558 0.637 0.043 0.439 0.083 0.518 0.676
  0.122 0.835 0.756 0.281

example float64 1x1x4x3, out_h 3, out_w 4
attr interp_method STRING "nearest"
attr out_h INT 3
attr out_w INT 4
in X float64 [1, 1, 4, 3] 0.769 0.922 0.077 0.384 0.538 0.615 0.308 0.846 0.154 0.231 0.692 0.461
out Out float64 [1, 1, 3, 4] 0.769 0.922 0.922 0.077 0.308 0.846 0.846 0.154 0.231 0.692 0.692 0.461

example float32 1x1x4x3, out_h 3, out_w 4
attr interp_method STRING "nearest"
attr out_h INT 3
attr out_w INT 4
in X float32 [1, 1, 4, 3] 0.769 0.922 0.077 0.384 0.538 0.615 0.308 0.846 0.154 0.231 0.692 0.461
out Out float32 [1, 1, 3, 4] 0.769 0.922 0.922 0.077 0.308 0.846 0.846 0.154 0.231 0.692 0.692 0.461
)")

HEDDLE_EXAMPLES(nearest_interp_grad, R"(
example float64 4x1x3x2, out_h 1, out_w 1
attr interp_method STRING "nearest"
attr out_h INT 1
attr out_w INT 1
in Out@GRAD float64 [4, 1, 2, 2] 0.3 -0.3 -0.6 0.7 0.6 -0.7 0 0.9 -0.9 0.9 -0.3 -0.7 -0.2 -0.7 -0.9
  0.2
in OutSize int32 [2] 2 2
in X float64 [4, 1, 3, 2] 0.48 0.4 0.042 0.837 0.44 0.559 0.678 0.956 0.281 0.162 0.519 0.241 0.082
  0.718 0.36 0.201 0.638 0.122 0.797 0.599 0.917 0.877 0.321 0.758
out X@GRAD float64 [4, 1, 3, 2] 0.3 -0.3 0 0 -0.6 0.7 0.6 -0.7 0 0 0 0.9 -0.9 0.9 0 0 -0.3 -0.7 -0.2
  -0.7 0 0 -0.9 0.2

example float32 4x1x3x2, out_h 1, out_w 1
attr interp_method STRING "nearest"
attr out_h INT 1
attr out_w INT 1
in Out@GRAD float32 [4, 1, 2, 2] 0.3 -0.3 -0.6 0.7 0.6 -0.7 0 0.9 -0.9 0.9 -0.3 -0.7 -0.2 -0.7 -0.9
  0.2
in OutSize int32 [2] 2 2
in X float32 [4, 1, 3, 2] 0.48 0.4 0.042 0.837 0.44 0.559 0.678 0.956 0.281 0.162 0.519 0.241 0.082
  0.718 0.36 0.201 0.638 0.122 0.797 0.599 0.917 0.877 0.321 0.758
out X@GRAD float32 [4, 1, 3, 2] 0.3 -0.3 0 0 -0.6 0.7 0.6 -0.7 0 0 0 0.9 -0.9 0.9 0 0 -0.3 -0.7 -0.2
  -0.7 0 0 -0.9 0.2
)")

HEDDLE_EXAMPLES(nearest_interp_v2, R"(
example float32 1x4x3x1, no align_corners, data_layout NHWC, out_d -1, out_h -1
attr interp_method STRING "nearest"
attr align_corners BOOLEAN false
attr data_layout STRING "NHWC"
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in SizeTensor int32 [1] 4
in SizeTensor int32 [1] 3
in X float32 [1, 4, 3, 1] -0.26 -0.8 -0.39 0.56 -0.53 -0.66 0.29 0.42 0.02 0.69 0.15 -0.12
out Out float32 [1, 4, 3, 1] -0.26 -0.8 -0.39 0.56 -0.53 -0.66 0.29 0.42 0.02 0.69 0.15 -0.12

example float64 4x1x3x2, out_h 1, out_w 1
attr interp_method STRING "nearest"
attr out_h INT 1
attr out_w INT 1
in OutSize int32 [2] 2 2
in X float64 [4, 1, 3, 2] 0.874 0.914 0.478 0.597 0.795 0.676 0.043 0.399 0.439 0.835 0.241 0.281
  0.122 0.083 0.162 0.953 0.756 0.558 0.36 0.716 0.201 0.32 0.637 0.518
out Out float64 [4, 1, 2, 2] 0.874 0.914 0.795 0.676 0.043 0.399 0.241 0.281 0.122 0.083 0.756 0.558
  0.36 0.716 0.637 0.518

example float32 1x3x3x2, no align_corners, out_d -1, out_h 2, out_w 4
attr interp_method STRING "nearest"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT 2
attr out_w INT 4
in X float32 [1, 3, 3, 2] 0.67 0.26 -0.66 0.36 -0.87 0.56 0.46 0.05 -0.56 0.87 0.15 -0.46 -0.36
  -0.15 -0.05 -0.77 0.77 -0.26
out Out float32 [1, 3, 2, 4] 0.67 0.67 0.26 0.26 -0.66 -0.66 0.36 0.36 0.46 0.46 0.05 0.05 -0.56
  -0.56 0.87 0.87 -0.36 -0.36 -0.15 -0.15 -0.05 -0.05 -0.77 -0.77

example float32 2x1x4x4, no align_corners, out_d -1, out_h 3, out_w 2
attr interp_method STRING "nearest"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT 3
attr out_w INT 2
in X float32 [2, 1, 4, 4] -0.09 -0.39 0.03 0.76 0.09 -0.81 0.7 0.58 0.46 -0.69 0.94 0.88 0.27 -0.03
  -0.15 -0.33 -0.27 -0.63 -0.93 0.64 -0.21 0.21 -0.51 0.4 -0.45 0.52 -0.57 0.15 -0.75 0.82 -0.87
  0.34
out Out float32 [2, 1, 3, 2] -0.09 0.03 0.09 0.7 0.46 0.94 -0.27 -0.93 -0.21 -0.51 -0.45 -0.57

example int64 1x4x3x1, no align_corners, data_layout NHWC, out_d -1, out_h -1, out_w -1
attr interp_method STRING "nearest"
attr align_corners BOOLEAN false
attr data_layout STRING "NHWC"
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in SizeTensor int32 [1] 4
in SizeTensor int32 [1] 3
in X int64 [1, 4, 3, 1] 0*12
out Out int64 [1, 4, 3, 1] 0*12

example float16 1x4x3x1, no align_corners, data_layout NHWC, out_d -1, out_h -1
attr interp_method STRING "nearest"
attr align_corners BOOLEAN false
attr data_layout STRING "NHWC"
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in SizeTensor int32 [1] 4
in SizeTensor int32 [1] 3
in X float16 [1, 4, 3, 1] -0.26 -0.8 -0.39 0.56 -0.53 -0.66 0.29 0.42 0.02 0.69 0.15 -0.12
out Out float16 [1, 4, 3, 1] -0.26 -0.8 -0.39 0.56 -0.53 -0.66 0.29 0.42 0.02 0.69 0.15 -0.12

example bfloat16 1x4x3x1, no align_corners, data_layout NHWC, out_d -1, out_h -1
attr interp_method STRING "nearest"
attr align_corners BOOLEAN false
attr data_layout STRING "NHWC"
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in SizeTensor int32 [1] 4
in SizeTensor int32 [1] 3
in X bfloat16 [1, 4, 3, 1] -0.26 -0.8 -0.39 0.56 -0.53 -0.66 0.29 0.42 0.02 0.69 0.15 -0.12
out Out bfloat16 [1, 4, 3, 1] -0.26 -0.8 -0.39 0.56 -0.53 -0.66 0.29 0.42 0.02 0.69 0.15 -0.12
)")

HEDDLE_EXAMPLES(nearest_interp_v2_grad, R"(
example float64 1x3x2x4, no align_corners, out_d -1, out_h 2, out_w 4
attr interp_method STRING "nearest"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT 2
attr out_w INT 4
in Out@GRAD float64 [1, 3, 2, 4] -0.7 -0.5 0.6 -0.4 -0.6 0.5 -0.2 1 -0 0.3 0.2 -1 -0.3 0.6 -0.1 -0.5
  -0.2 0.9 -0.7 0.5 -0.8 0.3 0.4 0.3
in X float64 [1, 3, 3, 2] 0.26 -0.87 0.77 -0.56 -0.26 -0.36 0.56 0.36 0.67 -0.46 -0.77 0.05 0.46
  -0.66 0.15 -0.05 0.87 -0.15
out X@GRAD float64 [1, 3, 3, 2] -1.2 0.19999999999999996 -0.09999999999999998 0.8 0 0 0.3 -0.8 0.3
  -0.6 0 0 0.7 -0.19999999999999996 -0.5 0.7 0 0

example float64 4x1x1x3x2, out_d 1, out_h 1, out_w 1
attr interp_method STRING "nearest"
attr out_d INT 1
attr out_h INT 1
attr out_w INT 1
in Out@GRAD float64 [4, 1, 1, 1, 1] -0.7 -0.7 1 0.8
in X float64 [4, 1, 1, 3, 2] 0.599 0.917 0.241 0.4 0.48 0.956 0.877 0.559 0.321 0.718 0.638 0.042
  0.44 0.082 0.162 0.36 0.519 0.678 0.122 0.837 0.797 0.201 0.758 0.281
out X@GRAD float64 [4, 1, 1, 3, 2] -0.7 0*5 -0.7 0*5 1 0*5 0.8 0*5

example float32 4x1x1x3x2, out_d 1, out_h 1, out_w 1
attr interp_method STRING "nearest"
attr out_d INT 1
attr out_h INT 1
attr out_w INT 1
in Out@GRAD float32 [4, 1, 1, 1, 1] -0.7 -0.7 1 0.8
in X float32 [4, 1, 1, 3, 2] 0.599 0.917 0.241 0.4 0.48 0.956 0.877 0.559 0.321 0.718 0.638 0.042
  0.44 0.082 0.162 0.36 0.519 0.678 0.122 0.837 0.797 0.201 0.758 0.281
out X@GRAD float32 [4, 1, 1, 3, 2] -0.7 0*5 -0.7 0*5 1 0*5 0.8 0*5

example float16 1x3x2x4, no align_corners, out_d -1, out_h 2, out_w 4
attr interp_method STRING "nearest"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT 2
attr out_w INT 4
in Out@GRAD float16 [1, 3, 2, 4] -0.7 -0.5 0.6 -0.4 -0.6 0.5 -0.2 1 -0 0.3 0.2 -1 -0.3 0.6 -0.1 -0.5
  -0.2 0.9 -0.7 0.5 -0.8 0.3 0.4 0.3
in X float16 [1, 3, 3, 2] 0.26 -0.87 0.77 -0.56 -0.26 -0.36 0.56 0.36 0.67 -0.46 -0.77 0.05 0.46
  -0.66 0.15 -0.05 0.87 -0.15
out X@GRAD float16 [1, 3, 3, 2] -1.2 0.2002 -0.1001 0.8 0 0 0.3 -0.8 0.3 -0.5996 0 0 0.6997 -0.2002
  -0.4998 0.6997 0 0

example bfloat16 1x3x2x4, no align_corners, out_d -1, out_h 2, out_w 4
attr interp_method STRING "nearest"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT 2
attr out_w INT 4
in Out@GRAD bfloat16 [1, 3, 2, 4] -0.7 -0.5 0.6 -0.4 -0.6 0.5 -0.2 1 -0 0.3 0.2 -1 -0.3 0.6 -0.1
  -0.5 -0.2 0.9 -0.7 0.5 -0.8 0.3 0.4 0.3
in X bfloat16 [1, 3, 3, 2] 0.26 -0.87 0.77 -0.56 -0.26 -0.36 0.56 0.36 0.67 -0.46 -0.77 0.05 0.46
  -0.66 0.15 -0.05 0.87 -0.15
out X@GRAD bfloat16 [1, 3, 3, 2] -1.195 0.201 -0.1016 0.797 0 0 0.3 -0.797 0.3 -0.598 0 0 0.695
  -0.199 -0.5 0.7 0 0
)")
