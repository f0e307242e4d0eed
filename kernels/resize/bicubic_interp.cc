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
