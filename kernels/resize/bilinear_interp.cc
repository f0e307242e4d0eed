#include "kernels/resize/interp.h"

HEDDLE_OP(bilinear_interp) {
  op.Doc("resizes images, linear in both dimensions");
  DefineInterp<InterpKind::kLinear, true, 2>(op);
}
HEDDLE_OP(bilinear_interp_grad) { DefineInterpGrad<InterpKind::kLinear, true, 2>(op); }
HEDDLE_OP(bilinear_interp_v2) {
  op.Doc("resizes images, linear in both dimensions");
  DefineInterp<InterpKind::kLinear, false, 2>(op);
}
HEDDLE_OP(bilinear_interp_v2_grad) { DefineInterpGrad<InterpKind::kLinear, false, 2>(op); }

HEDDLE_EXAMPLES(bilinear_interp, R"(
example float64 4x1x3x2, out_h 1, out_w 1
attr out_h INT 1
attr out_w INT 1
in X float64 [4, 1, 3, 2] 0.797 0.162 0.877 0.241 0.44 0.281 0.201 0.48 0.758 0.638 0.519 0.956
  0.122 0.599 0.837 0.678 0.917 0.559 0.082 0.36 0.4 0.718 0.321 0.042
out Out float64 [4, 1, 1, 1] 0.797 0.201 0.122 0.082

example float32 4x1x3x2, out_h 1, out_w 1
attr out_h INT 1
attr out_w INT 1
in X float32 [4, 1, 3, 2] 0.797 0.162 0.877 0.241 0.44 0.281 0.201 0.48 0.758 0.638 0.519 0.956
  0.122 0.599 0.837 0.678 0.917 0.559 0.082 0.36 0.4 0.718 0.321 0.042
out Out float32 [4, 1, 1, 1] 0.797 0.201 0.122 0.082
)")

HEDDLE_EXAMPLES(bilinear_interp_grad, R"(
example align_corners 1
attr out_h INT 3
attr out_w INT 4
in Out@GRAD float64 [1, 1, 3, 4] 0 0.4 -0.5 0.3 0.8 0.4 -0.6 -0.4 -0.5 -0.8 1 -0.8
in X float64 [1, 1, 2, 3] 0.58 0.92 0.54 -0.86 -0.26 -0.96
out X@GRAD float64 [1, 1, 2, 3] 0.5999999880790711 -0.13333328962326046 -0.16666669845581056
  -0.299999988079071 0.06666662693023673 -0.7666666388511658

example align_corners 0 align_mode 0
attr align_corners BOOLEAN false
attr align_mode INT 0
attr out_h INT 3
attr out_w INT 4
in Out@GRAD float64 [1, 1, 3, 4] 0 0.4 -0.5 0.3 0.8 0.4 -0.6 -0.4 -0.5 -0.8 1 -0.8
in X float64 [1, 1, 2, 3] -0.68 0.67 -0.62 0.84 0.17 0.2
out X@GRAD float64 [1, 1, 2, 3] 0.625 -0.125 -0.19999999999999998 -0.325 0.0625 -0.7375000000000002

example align_corners 0 align_mode 1
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
in Out@GRAD float64 [1, 1, 3, 4] 0 0.4 -0.5 0.3 0.8 0.4 -0.6 -0.4 -0.5 -0.8 1 -0.8
in X float64 [1, 1, 2, 3] -0.23 -0.67 -0.9 -0.51 -0.16 -0.1
out X@GRAD float64 [1, 1, 2, 3] 0.39999998211860655 0.050000000000000044 -0.1833333194255829
  -0.09999998211860654 -0.09999999999999998 -0.766666680574417

example float64 4x1x3x2, out_h 1, out_w 1
attr out_h INT 1
attr out_w INT 1
in Out@GRAD float64 [4, 1, 1, 1] -0.7 -0.7 1 0.8
in X float64 [4, 1, 3, 2] 0.837 0.241 0.599 0.519 0.44 0.48 0.758 0.281 0.956 0.042 0.917 0.559
  0.877 0.638 0.082 0.201 0.4 0.162 0.678 0.122 0.36 0.797 0.718 0.321
out X@GRAD float64 [4, 1, 3, 2] -0.7 0*5 -0.7 0*5 1 0*5 0.8 0*5

example float32 4x1x3x2, out_h 1, out_w 1
attr out_h INT 1
attr out_w INT 1
in Out@GRAD float32 [4, 1, 1, 1] -0.7 -0.7 1 0.8
in X float32 [4, 1, 3, 2] 0.837 0.241 0.599 0.519 0.44 0.48 0.758 0.281 0.956 0.042 0.917 0.559
  0.877 0.638 0.082 0.201 0.4 0.162 0.678 0.122 0.36 0.797 0.718 0.321
out X@GRAD float32 [4, 1, 3, 2] -0.7 0*5 -0.7 0*5 1 0*5 0.8 0*5
)")

HEDDLE_EXAMPLES(bilinear_interp_v2, R"(
example float32 1x1x4x4, out_d -1, out_h -1, out_w -1
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in SizeTensor int32 [1] 2
in SizeTensor int32 [1] 3
in X float32 [1, 1, 4, 4] -0.23 -0.62 -0.42 -0.03 0.46 -0.13 0.55 0.16 -0.81 -0.52 0.26 0.07 -0.71
  0.65 0.36 -0.32
out Out float32 [1, 1, 2, 3] -0.23 -0.52 -0.03 -0.71 0.505 -0.32

example float64 1x1x4x3, no align_corners, out_h 3, out_w 4, scale 2.0 0.5
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
attr scale FLOATS [2.0, 0.5]
in X float64 [1, 1, 4, 3] 0.846 0.769 0.308 0.231 0.384 0.922 0.461 0.615 0.692 0.154 0.077 0.538
out Out float64 [1, 1, 8, 1] 0.846 0.5385 0.231 0.34600000000000003 0.461 0.3075 0.154 0.154

example float64 4x1x3x2, out_h 1, out_w 1
attr out_h INT 1
attr out_w INT 1
in X float64 [4, 1, 3, 2] 0.597 0.914 0.241 0.399 0.478 0.953 0.874 0.558 0.32 0.716 0.637 0.043
  0.439 0.083 0.162 0.36 0.518 0.676 0.122 0.835 0.795 0.201 0.756 0.281
out Out float64 [4, 1, 1, 1] 0.597 0.874 0.439 0.122

example float32 2x1x4x2, out_d -1, out_h -1, out_w -1
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in OutSize int32 [2] 2 3
in X float32 [2, 1, 4, 2] 0.12 0.44 0.02 0.54 0.64 -0.6 -0.81 0.23 -0.29 0.33 -0.71 -0.08 -0.5 0.75
  -0.19 -0.39
out Out float32 [2, 1, 2, 3] 0.12 0.28 0.44 -0.81 -0.29 0.23 -0.29 0.02000001 0.33 -0.19 -0.29 -0.39

example float16 1x1x4x4, out_d -1, out_h -1, out_w -1
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in SizeTensor int32 [1] 2
in SizeTensor int32 [1] 3
in X float16 [1, 1, 4, 4] -0.23 -0.62 -0.42 -0.03 0.46 -0.13 0.55 0.16 -0.81 -0.52 0.26 0.07 -0.71
  0.65 0.36 -0.32
out Out float16 [1, 1, 2, 3] -0.23 -0.52 -0.03 -0.71 0.505 -0.32

example bfloat16 1x1x4x4, out_d -1, out_h -1, out_w -1
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in SizeTensor int32 [1] 2
in SizeTensor int32 [1] 3
in X bfloat16 [1, 1, 4, 4] -0.23 -0.62 -0.42 -0.03 0.46 -0.13 0.55 0.16 -0.81 -0.52 0.26 0.07 -0.71
  0.65 0.36 -0.32
out Out bfloat16 [1, 1, 2, 3] -0.23 -0.52 -0.03 -0.71 0.504 -0.32
)")

HEDDLE_EXAMPLES(bilinear_interp_v2_grad, R"(
example float64 1x1x4x4, out_d -1, out_h -1, out_w -1
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in Out@GRAD float64 [1, 1, 2, 3] 0.2 -0.7 -0.7 -0.9 0.2 0.2
in SizeTensor int32 [1] 2
in SizeTensor int32 [1] 3
in X float64 [1, 1, 4, 4] -0.32 -0.62 0.46 0.07 -0.23 0.65 -0.42 0.16 -0.03 0.36 -0.71 0.26 -0.81
  0.55 -0.13 -0.52
out X@GRAD float64 [1, 1, 4, 4] 0.2 -0.35 -0.35 -0.7 0*8 -0.9 0.1 0.1 0.2

example float64 1x1x4x3, no align_corners, out_h 3, out_w 4, scale 2.0 0.5
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
attr scale FLOATS [2.0, 0.5]
in Out@GRAD float64 [1, 1, 8, 1] -0.4 0.3 0.2 0.6 -0 0.9 1 0.7
in X float64 [1, 1, 4, 3] 0.769 0.692 0.231 0.077 0.846 0.461 0.154 0.615 0.308 0.923 0.538 0.385
out X@GRAD float64 [1, 1, 4, 3] -0.25 0 0 0.6499999999999999 0 0 0.75 0 0 2.15 0 0

example float64 4x1x3x2, out_h 1, out_w 1
attr out_h INT 1
attr out_w INT 1
in Out@GRAD float64 [4, 1, 2, 2] 0.3 -0.3 -0.6 0.7 0.6 -0.7 0 0.9 -0.9 0.9 -0.3 -0.7 -0.2 -0.7 -0.9
  0.2
in OutSize int32 [2] 2 2
in X float64 [4, 1, 3, 2] 0.718 0.599 0.162 0.241 0.48 0.321 0.917 0.201 0.837 0.559 0.877 0.122
  0.678 0.797 0.758 0.281 0.638 0.36 0.519 0.082 0.042 0.44 0.4 0.956
out X@GRAD float64 [4, 1, 3, 2] 0.3 -0.3 0 0 -0.6 0.7 0.6 -0.7 0 0 0 0.9 -0.9 0.9 0 0 -0.3 -0.7 -0.2
  -0.7 0 0 -0.9 0.2

example float32 1x1x4x3, no align_corners, out_h 3, out_w 4, scale 2.0 0.5
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
attr scale FLOATS [2.0, 0.5]
in Out@GRAD float32 [1, 1, 8, 1] -0.4 0.3 0.2 0.6 -0 0.9 1 0.7
in X float32 [1, 1, 4, 3] 0.769 0.692 0.231 0.077 0.846 0.461 0.154 0.615 0.308 0.923 0.538 0.385
out X@GRAD float32 [1, 1, 4, 3] -0.25 0 0 0.65000004 0 0 0.75 0 0 2.15 0 0

example float16 1x1x4x4, out_d -1, out_h -1, out_w -1
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in Out@GRAD float16 [1, 1, 2, 3] 0.2 -0.7 -0.7 -0.9 0.2 0.2
in SizeTensor int32 [1] 2
in SizeTensor int32 [1] 3
in X float16 [1, 1, 4, 4] -0.32 -0.62 0.46 0.07 -0.23 0.65 -0.42 0.16 -0.03 0.36 -0.71 0.26 -0.81
  0.55 -0.13 -0.52
out X@GRAD float16 [1, 1, 4, 4] 0.2 -0.35 -0.35 -0.7 0*8 -0.9 0.1 0.1 0.2

example bfloat16 1x1x4x4, out_d -1, out_h -1, out_w -1
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in Out@GRAD bfloat16 [1, 1, 2, 3] 0.2 -0.7 -0.7 -0.9 0.2 0.2
in SizeTensor int32 [1] 2
in SizeTensor int32 [1] 3
in X bfloat16 [1, 1, 4, 4] -0.32 -0.62 0.46 0.07 -0.23 0.65 -0.42 0.16 -0.03 0.36 -0.71 0.26 -0.81
  0.55 -0.13 -0.52
out X@GRAD bfloat16 [1, 1, 4, 4] 0.2 -0.35 -0.35 -0.7 0*8 -0.9 0.1 0.1 0.2
)")
