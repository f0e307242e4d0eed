#include "kernels/sequence/sequence.h"

namespace heddle {

Result<const Offsets*> OffsetsOf(const Tensor& t, const char* slot, int level) {
  const LoD& lod = t.lod();
  const int levels = static_cast<int>(lod.size());
  const int at = level < 0 ? level + levels : level;
  if (at < 0 || at >= levels)
    return InvalidArgument(slot, " must have sequence offsets (level ", level, "), it has ", levels,
                           " levels");
  const Offsets& o = lod[static_cast<size_t>(at)];
  if (o.empty() || o.front() != 0)
    return InvalidArgument(slot, "'s sequence offsets must start with 0");
  for (size_t i = 1; i < o.size(); ++i)
    if (o[i] < o[i - 1]) return InvalidArgument(slot, "'s sequence offsets must not fall");
  if (t.rank() < 1) return InvalidArgument(slot, " must have at least one axis");
  const int64_t want = at + 1 == levels
                           ? t.dim(0)
                           : static_cast<int64_t>(lod[static_cast<size_t>(at) + 1].size()) - 1;
  if (static_cast<int64_t>(o.back()) != want)
    return InvalidArgument(slot, "'s sequence offsets end with ", o.back(), ", expected ", want);
  return &o;
}

Status SequenceGradLikeX(ShapeContext& ctx) {
  // Kernels for any dtype copy rows.
  const DType dtype = ctx.InDType("X"), grad = ctx.InDType("Out@GRAD");
  if (grad != dtype && grad != DType::kUnknown && dtype != DType::kUnknown)
    return InvalidArgument("Out@GRAD has dtype ", Name(grad), ", expected ", Name(dtype), " as X");
  ctx.SetOut("X@GRAD", ctx.InShape("X"), dtype);
  ctx.ShareLoD("X", "X@GRAD");
  return Status::Ok();
}

}  // namespace heddle
