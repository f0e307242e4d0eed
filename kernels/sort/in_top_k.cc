// Whether a target is among the greatest predictions of its row.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status InTopKShape(ShapeContext& ctx) {
  const Shape &p = ctx.InShape("predictions"), &t = ctx.InShape("targets");
  if (!p.known_rank() || !t.known_rank()) return ctx.Defer();
  if (p.rank() != 2 || t.rank() != 1 || (p[0] >= 0 && t[0] >= 0 && p[0] != t[0]))
    return InvalidArgument("predictions has shape ", p.ToString(), " and targets ", t.ToString());
  ctx.SetOut("precision", t, DType::kBool);
  return Status::Ok();
}

// Whether fewer than k predictions are greater than the target's.
Status InTopK(KernelContext& ctx) {
  const Tensor &p = ctx.In("predictions"), &targets = ctx.In("targets");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(targets.dtype(), "targets"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t k, IntIn(ctx, "k", 1));
  const int64_t n = p.dim(1);
  bool* to = ctx.Out("precision").mutable_data<bool>();
  for (const int64_t r : Watched(p.dim(0))) {
    const float* row = p.data<float>() + r * n;
    const int64_t target = IntAt(targets, r);
    bool bad = target < 0 || target >= n || !std::isfinite(row[target]);
    int64_t above = 0;
    for (int64_t i = 0; !bad && i < n; ++i) {
      bad = !std::isfinite(row[i]);
      above += row[i] > row[target] ? 1 : 0;
    }
    to[r] = !bad && above < k;
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(in_top_k) {
  op.Doc("whether a row's target is among its k greatest predictions, all of them finite");
  op.Input("predictions").Input("targets").Input("k").Output("precision");
  op.InferShape(InTopKShape).KernelKey("predictions").Kernel(DType::kF32, InTopK);
}
