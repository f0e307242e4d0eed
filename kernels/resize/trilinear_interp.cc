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
