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
