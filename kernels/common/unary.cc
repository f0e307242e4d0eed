#include "kernels/common/unary.h"

namespace heddle::unary_internal {
namespace {

bool Compatible(const Shape& a, const Shape& b) {
  if (!a.known_rank() || !b.known_rank()) return true;
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (a[i] >= 0 && b[i] >= 0 && a[i] != b[i]) return false;
  return true;
}

}  // namespace

Status MapShape(ShapeContext& ctx) {
  const auto& ins = ctx.def().inputs();
  const auto& outs = ctx.def().outputs();
  int first = -1;
  for (size_t i = 0; i < ins.size(); ++i) {
    const Key key = RuntimeKey(ins[i]);
    if (!ctx.HasIn(key)) continue;
    if (first < 0) {
      first = static_cast<int>(i);
      continue;
    }
    const Key head = RuntimeKey(ins[first]);
    if (!Compatible(ctx.InShape(head), ctx.InShape(key)))
      return InvalidArgument("input ", ins[i].name, " must have the shape of ", ins[first].name, ", ",
                             ctx.InShape(head).ToString(), ", but has ", ctx.InShape(key).ToString());
    if (ctx.InDType(head) != ctx.InDType(key))
      return InvalidArgument("input ", ins[i].name, " must have the dtype of ", ins[first].name, ", ",
                             Name(ctx.InDType(head)), ", but has ", Name(ctx.InDType(key)));
  }
  if (first < 0) return InvalidArgument("has no input");
  const Key head = RuntimeKey(ins[first]);
  for (const SlotDef& out : outs) {
    const Key key = RuntimeKey(out);
    if (!ctx.HasOut(key)) continue;
    ctx.SetOut(key, ctx.InShape(head), ctx.InDType(head));
    ctx.ShareLoD(head, key);
  }
  return Status::Ok();
}

}  // namespace heddle::unary_internal
