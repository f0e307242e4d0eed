// Shapes of triangular systems: coefficients [.., n, n], right sides [.., n, k], broadcast batches.
#pragma once

#include "core/memory/watched_bytes.h"
#include "kernels/linalg/linalg_factor.h"

namespace heddle {

// Sets the shape of Out for a system with coefficients `a` [.., n, n] and right sides `b` [.., n,
// k].
inline Status InferSolve(ShapeContext& ctx, Key a, Key b) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, a, true));
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, b, false));
  const Shape &sa = ctx.InShape(a), &sb = ctx.InShape(b);
  if (!sa.known_rank() || !sb.known_rank()) return ctx.Defer();
  if (sa.dim(-1) >= 0 && sb.dim(-2) >= 0 && sa.dim(-1) != sb.dim(-2))
    return InvalidArgument(a.name, " ", sa.ToString(), " and ", b.name, " ", sb.ToString(),
                           " do not fit each other");
  if (ctx.InDType(a) != ctx.InDType(b))
    return InvalidArgument(a.name, " and ", b.name, " must have the same dtype");
  HEDDLE_ASSIGN_OR_RETURN(Shape out, BroadcastShape(LeadingAxes(sa, 2), LeadingAxes(sb, 2), -1));
  out.push_back(sb.dim(-2));
  out.push_back(sb.dim(-1));
  ctx.SetOut("Out", out, ctx.InDType(a));
  return Status::Ok();
}

// Solves T z = z in place, T being a triangle of `m`, transposed if asked for.
template <typename T>
void SolveTriangleInPlace(const Matrix<T>& m, bool upper, bool transpose, bool unit, Matrix<T>& z) {
  if (!transpose) return SolveTriangle<T>(m, upper, unit, z);
  SolveTriangle<T>(Matrix<T>(m.transpose()), !upper, unit, z);
}

inline Status InferSolveGrad(ShapeContext& ctx, Key a, Key b) {
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, a, true));
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(ctx, b, false));
  HEDDLE_RETURN_IF_ERROR(CheckSameDims(ctx, "Out", "Out@GRAD"));
  const Shape &sa = ctx.InShape(a), &sb = ctx.InShape(b), &out = ctx.InShape("Out");
  if (sa.is_static() && sb.is_static() && out.is_static()) {
    HEDDLE_ASSIGN_OR_RETURN(Shape want, BroadcastShape(LeadingAxes(sa, 2), LeadingAxes(sb, 2), -1));
    want.push_back(sb.dim(-2));
    want.push_back(sb.dim(-1));
    if (!(want == out) || sa.dim(-1) != sb.dim(-2))
      return InvalidArgument("Out ", out.ToString(), " does not fit ", a.name, " ", sa.ToString(),
                             " and ", b.name, " ", sb.ToString());
  }
  SetOutsLike(ctx, {{"X", "X@GRAD"}, {"Y", "Y@GRAD"}});
  return Status::Ok();
}

inline void ZeroIfPresent(Tensor* t) {
  if (t != nullptr && t->numel() > 0) WatchedMemset(t->mutable_raw(), 0, t->bytes());
}

}  // namespace heddle
