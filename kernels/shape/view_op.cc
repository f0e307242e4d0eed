#include "kernels/shape/view_op.h"

namespace heddle {

void SetXShape(ShapeContext& ctx) {
  if (!ctx.HasOut("XShape")) return;
  const Shape& x = ctx.InShape("X");
  if (x.known_rank()) {
    Shape kept{0};
    for (int64_t d : x.dims()) kept.push_back(d);
    ctx.SetOut("XShape", kept, ctx.InDType("X"));
  } else {
    ctx.SetOut("XShape", Shape::Unknown(), ctx.InDType("X"));
  }
  ctx.ShareLoD("X", "XShape");
}

Status GradFromXShape(ShapeContext& ctx) {
  const Shape& kept = ctx.InShape("XShape");
  const Shape& grad = ctx.InShape("Out@GRAD");
  if (!kept.known_rank()) {
    ctx.SetOut("X@GRAD", Shape::Unknown(), ctx.InDType("Out@GRAD"));
    return Status::Ok();
  }
  if (kept.rank() == 0) return InvalidArgument("'XShape' must have at least one dimension");
  const Shape x(kept.dims().subspan(1));
  if (x.is_static() && grad.is_static() && x.numel() != grad.numel())
    return InvalidArgument("'Out@GRAD' of shape ", grad.ToString(), " does not fit X's shape ",
                           x.ToString(), " kept in 'XShape'");
  ctx.SetOut("X@GRAD", x, ctx.InDType("Out@GRAD"));
  ctx.ShareLoD("XShape", "X@GRAD");
  return Status::Ok();
}

Status SetViewOut(ShapeContext& ctx, const Shape& out) {
  const Shape& x = ctx.InShape("X");
  ctx.SetOut("Out", out, ctx.InDType("X"));
  if (x.rank() > 0 && out.rank() > 0 && x[0] == out[0]) ctx.ShareLoD("X", "Out");
  SetXShape(ctx);
  return Status::Ok();
}

}  // namespace heddle
