// Gradients of operators that pick elements of lines by position: argsort, top_k, kthvalue, mode.
#pragma once

#include "kernels/base/axis_lines.h"

namespace heddle {

// dx = 0 but for dx[line, index[line, i]] = dout[line, i]. Positions are checked.
template <typename T>
Status ScatterPicked(const Tensor& index, const Tensor& dout, int64_t axis, Tensor& dx);

// The whole gradient operator: X, Indices, Out@GRAD -> X@GRAD, attribute axis (-1 without one).
template <typename T>
struct PickGrad {
  static Status Run(KernelContext& ctx) {
    const int64_t axis = ctx.def().FindAttr("axis") >= 0 ? ctx.Int("axis") : -1;
    return ScatterPicked<T>(ctx.In("Indices"), ctx.In("Out@GRAD"), axis, ctx.Out("X@GRAD"));
  }
};

inline void DefinePickGradSlots(OpDef& op) {
  op.Input("X", kNoBuffer).Input("Indices").Input("Out@GRAD").Output("X@GRAD");
  op.KernelKey("Out@GRAD");
  op.Contract("X: as Out@GRAD; Indices: index count Out@GRAD; X@GRAD: like X");
}

}  // namespace heddle
