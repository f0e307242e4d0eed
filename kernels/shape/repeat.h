// Shape and kernels of repeated tensors, shared by tile and expand.
#pragma once

#include <algorithm>

#include "kernels/base/index_args.h"
#include "kernels/strided/index_expand.h"

namespace heddle {

// Ranks are aligned at the end: missing repeats and missing dimensions are 1.
inline Status RepeatShape(ShapeContext& ctx, const IntArgs& times, bool same_rank) {
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank() || times.n < 0) return ctx.Defer();
  const int rank = std::max(x.rank(), times.n);
  if (rank > Shape::kMaxRank || (same_rank && times.n != x.rank()))
    return InvalidArgument("X of shape ", x.ToString(), " cannot be repeated by ", times.n,
                           " factors");
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int xi = i - (rank - x.rank()), ti = i - (rank - times.n);
    const int64_t d = xi < 0 ? 1 : x[xi], t = ti < 0 ? 1 : times[ti];
    int64_t size = -1;
    if (times.known && t < 0)
      return InvalidArgument("the repeat of dimension ", i, " is ", t, "; expected 0 or more");
    if (d >= 0 && t >= 0 && __builtin_mul_overflow(d, t, &size))
      return InvalidArgument("the repeat of dimension ", i, " is ", t,
                             ", too large for X of shape ", x.ToString());
    out.push_back(size);
  }
  ctx.SetOut("Out", out, ctx.InDType("X"));
  if (x.rank() > 0 && out[0] == x[0]) ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

inline Result<std::unique_ptr<KernelState>> PrepareTile(PrepareContext& ctx) {
  return PrepareRepeat(ctx.InVar("X")->tensor(), ctx.OutShape("Out"));
}

inline Status RunTile(KernelContext& ctx) {
  const Tensor& x = ctx.In("X");
  Tensor& out = ctx.Out("Out");
  if (out.numel() == 0) return Status::Ok();
  if (!ctx.has_state()) return RunRepeat(ctx, x, out);
  ctx.State<CopyState>().copy.Run(ctx, x.raw(), out.mutable_raw());
  return Status::Ok();
}

inline Status RunTileGrad(KernelContext& ctx) {
  return RunRepeatSum(ctx, ctx.In("Out@GRAD"), ctx.Out("X@GRAD"));
}

}  // namespace heddle
