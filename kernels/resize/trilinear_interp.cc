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
