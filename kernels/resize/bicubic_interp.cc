#include "kernels/resize/interp.h"

HEDDLE_OP(bicubic_interp) {
  op.Doc("resizes images, cubic");
  DefineInterp<InterpKind::kCubic, true, 2>(op);
}
HEDDLE_OP(bicubic_interp_grad) { DefineInterpGrad<InterpKind::kCubic, true, 2>(op); }
HEDDLE_OP(bicubic_interp_v2) {
  op.Doc("resizes images, cubic");
  DefineInterp<InterpKind::kCubic, false, 2>(op);
}
HEDDLE_OP(bicubic_interp_v2_grad) { DefineInterpGrad<InterpKind::kCubic, false, 2>(op); }

HEDDLE_EXAMPLES(bicubic_interp, R"(
example float64 1x1x4x3, no align_corners, out_h 3, out_w 4
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
in OutSize int32 [2] 3 4
in X float64 [1, 1, 4, 3] 0.922 0.077 0.538 0.846 0.769 0.231 0.384 0.461 0.692 0.308 0.154 0.615
out Out float64 [1, 1, 3, 4] 0.922 0.28825 0.3075 0.538 0.6919999816417695 0.6727499862313272
  0.5255000030398369 0.3846666849851608 0.333333327293396 0.27558331352472304 0.4484999847412109
  0.6406666605472564

example float64 4x1x3x2, out_h 1, out_w 1
attr out_h INT 1
attr out_w INT 1
in X float64 [4, 1, 3, 2] 0.241 0.914 0.162 0.281 0.953 0.835 0.122 0.716 0.756 0.676 0.597 0.439
  0.637 0.201 0.478 0.518 0.399 0.36 0.558 0.874 0.083 0.043 0.32 0.795
out Out float64 [4, 1, 1, 1] 0.241 0.122 0.637 0.558

example float32 1x1x4x3, no align_corners, out_h 3, out_w 4
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
in OutSize int32 [2] 3 4
in X float32 [1, 1, 4, 3] 0.922 0.077 0.538 0.846 0.769 0.231 0.384 0.461 0.692 0.308 0.154 0.615
out Out float32 [1, 1, 3, 4] 0.922 0.28825 0.3075 0.538 0.692 0.67275 0.5255 0.38466668 0.3333333
  0.27558333 0.44849998 0.64066666
)")

HEDDLE_EXAMPLES(bicubic_interp_grad, R"(
example float64 1x1x3x4, no align_corners, out_h 3, out_w 4
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
in Out@GRAD float64 [1, 1, 3, 4] 0.7 -0 -0.6 0.5 0.3 -0.9 -0.9 -0.2 1 -0.8 -0.8 0.1
in OutSize int32 [2] 3 4
in X float64 [1, 1, 4, 3] 0.923 0.077 0.538 0.846 0.769 0.231 0.385 0.461 0.692 0.308 0.154 0.615
out X@GRAD float64 [1, 1, 4, 3] 0.7 -0.3 0.2 0.04999999701976776 -0.7499999552965164
  -0.43333330750465393 0.29166660606861117 -0.7083332985639572 -0.3166666686534882
  0.5333333969116211 -0.6666667461395264 -0.20000002384185792

example float64 4x1x3x2, out_h 1, out_w 1
attr out_h INT 1
attr out_w INT 1
in Out@GRAD float64 [4, 1, 1, 1] -0.7 -0.7 1 0.8
in X float64 [4, 1, 3, 2] 0.718 0.678 0.638 0.281 0.48 0.758 0.599 0.241 0.321 0.122 0.519 0.042
  0.162 0.36 0.201 0.082 0.797 0.917 0.837 0.4 0.956 0.559 0.44 0.877
out X@GRAD float64 [4, 1, 3, 2] -0.7 0*5 -0.7 0*5 1 0*5 0.8 0*5

example float32 1x1x3x4, no align_corners, out_h 3, out_w 4
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
in Out@GRAD float32 [1, 1, 3, 4] 0.7 -0 -0.6 0.5 0.3 -0.9 -0.9 -0.2 1 -0.8 -0.8 0.1
in OutSize int32 [2] 3 4
in X float32 [1, 1, 4, 3] 0.923 0.077 0.538 0.846 0.769 0.231 0.385 0.461 0.692 0.308 0.154 0.615
out X@GRAD float32 [1, 1, 4, 3] 0.7 -0.3 0.19999999 0.050000012 -0.75 -0.4333333 0.2916666
  -0.7083334 -0.3166667 0.5333334 -0.66666675 -0.20000003
)")

HEDDLE_EXAMPLES(bicubic_interp_v2, R"(
example float32 1x1x4x4, no align_corners, out_d -1, out_h -1, out_w -1
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in SizeTensor int32 [1] 3
in SizeTensor int32 [1] 2
in X float32 [1, 1, 4, 4] 0.33 0.12 -0.42 -0.21 0.66 0.77 -0.86 -0.53 -0.1 0.23 -0.75 -0.64 0.44
  0.01 -0.32 0.55
out Out float32 [1, 1, 3, 2] 0.33 -0.42 0.40666667 -0.8233334 0.26000005 -0.4633333

example float64 1x1x4x3, no align_corners, out_h 3, out_w 4
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
in OutSize int32 [2] 3 4
in X float64 [1, 1, 4, 3] 0.231 0.308 0.692 0.769 0.922 0.538 0.461 0.077 0.154 0.384 0.615 0.846
out Out float64 [1, 1, 3, 4] 0.231 0.28875 0.5 0.692 0.666333321094513 0.6468333050906658
  0.5251666422486305 0.40999998474121097 0.4096666605472565 0.42916669720411305 0.5255000488758087
  0.6153333883285522

example float32 2x3x2x1, no align_corners, data_layout NHWC, out_d -1, out_h 4, out_w 3
attr align_corners BOOLEAN false
attr data_layout STRING "NHWC"
attr out_d INT -1
attr out_h INT 4
attr out_w INT 3
in X float32 [2, 3, 2, 1] 0 -0.22 -0.11 -0.43 0.33 0.43 -0.54 0.54 0.22 -0.32 -0.65 0.11
out Out float32 [2, 4, 3, 1] 0 -0.14666668 -0.22 -0.082499996 -0.27916667 -0.3775 0.11000001
  0.03666667 0 0.33 0.39666665 0.42999998 -0.54 0.18000002 0.54 0.029999986 -0.060000002 -0.10499999
  -0.21499999 -0.14166665 -0.105 -0.65 -0.1433333 0.10999999

example float64 4x1x3x2, out_h 1, out_w 1
attr out_h INT 1
attr out_w INT 1
in OutSize int32 [2] 2 2
in X float64 [4, 1, 3, 2] 0.835 0.241 0.597 0.518 0.439 0.478 0.756 0.281 0.953 0.043 0.914 0.558
  0.874 0.637 0.083 0.201 0.399 0.162 0.676 0.122 0.36 0.795 0.716 0.32
out Out float64 [4, 1, 2, 2] 0.835 0.241 0.439 0.478 0.756 0.281 0.914 0.558 0.874 0.637 0.399 0.162
  0.676 0.122 0.716 0.32
)")

HEDDLE_EXAMPLES(bicubic_interp_v2_grad, R"(
example float64 1x1x4x4, no align_corners, out_d -1, out_h -1, out_w -1
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in Out@GRAD float64 [1, 1, 3, 2] 0.2 -0.7 -0.7 -0.9 0.2 0.2
in SizeTensor int32 [1] 3
in SizeTensor int32 [1] 2
in X float64 [1, 1, 4, 4] 0.01 -0.42 -0.53 -0.75 0.33 -0.21 0.66 -0.86 0.77 0.12 0.44 -0.32 0.55
  -0.1 -0.64 0.23
out X@GRAD float64 [1, 1, 4, 4] 0.2 0 -0.7 0 -0.4666666388511657 0 -0.5999999642372131 0
  -0.16666671037673947 0 -0.23333338499069217 0 0.13333334922790527 0 0.13333334922790527 0

example float64 4x1x3x2, out_h 1, out_w 1
attr out_h INT 1
attr out_w INT 1
in Out@GRAD float64 [4, 1, 2, 2] 0.3 -0.3 -0.6 0.7 0.6 -0.7 0 0.9 -0.9 0.9 -0.3 -0.7 -0.2 -0.7 -0.9
  0.2
in OutSize int32 [2] 2 2
in X float64 [4, 1, 3, 2] 0.599 0.917 0.241 0.4 0.48 0.956 0.877 0.559 0.321 0.718 0.638 0.042 0.44
  0.082 0.162 0.36 0.519 0.678 0.122 0.837 0.797 0.201 0.758 0.281
out X@GRAD float64 [4, 1, 3, 2] 0.3 -0.3 0 0 -0.6 0.7 0.6 -0.7 0 0 0 0.9 -0.9 0.9 0 0 -0.3 -0.7 -0.2
  -0.7 0 0 -0.9 0.2

example float64 2x4x3x1, no align_corners, data_layout NHWC, out_d -1, out_h 4, out_w 3
attr align_corners BOOLEAN false
attr data_layout STRING "NHWC"
attr out_d INT -1
attr out_h INT 4
attr out_w INT 3
in Out@GRAD float64 [2, 4, 3, 1] 0.5 0.1 -0.4 0.6 -0 -0.8 -0.2 -0.2 -0.3 -0.8 -0.3 -0.2 0.9 -0.4 0.7
  1 -0.2 0.4 0.9 -0.1 0.4 -0.4 1 0.4
in X float64 [2, 3, 2, 1] -0.43 0.33 0.22 -0.11 -0.54 -0.22 0 0.54 -0.65 0.43 0.11 -0.32
out X@GRAD float64 [2, 3, 2, 1] 0.6833333313465119 -0.5333333313465118 0.31666666865348814
  -0.8166666686534882 -1.0333333253860475 -0.6166666746139527 1.0000000089406966 0.4999999910593032
  1.1333333373069763 0.3666666626930237 0.3666666477918624 1.2333333522081378

example float32 1x1x4x4, no align_corners, out_d -1, out_h -1, out_w -1
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in Out@GRAD float32 [1, 1, 3, 2] 0.2 -0.7 -0.7 -0.9 0.2 0.2
in SizeTensor int32 [1] 3
in SizeTensor int32 [1] 2
in X float32 [1, 1, 4, 4] 0.01 -0.42 -0.53 -0.75 0.33 -0.21 0.66 -0.86 0.77 0.12 0.44 -0.32 0.55
  -0.1 -0.64 0.23
out X@GRAD float32 [1, 1, 4, 4] 0.2 0 -0.7 0 -0.46666664 0 -0.59999996 0 -0.16666672 0 -0.23333338 0
  0.13333336 0 0.13333336 0
)")
