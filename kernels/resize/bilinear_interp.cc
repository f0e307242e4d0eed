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
