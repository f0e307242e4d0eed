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
