// The gradient of operators whose result does not depend on the values of X: zero.
#pragma once

#include "core/shapes.h"
#include "kernels/base/convert.h"

namespace heddle {

inline Status RunZeroGrad(KernelContext& ctx) {
  FillElements(ctx, ctx.Out("X@GRAD"), 0);
  return Status::Ok();
}

inline void DefineZeroGrad(OpDef& op) {
  op.Input("Out@GRAD", kNoBuffer).Output("X@GRAD").InferShape(SameShape).AnyKernel(RunZeroGrad);
}

}  // namespace heddle
