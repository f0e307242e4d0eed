#include "kernels/operands/narrow.h"

#include "kernels/base/convert.h"
#include "kernels/operands/operands.h"

namespace heddle {

Status RunInFloatAlloc(KernelContext& ctx) {
  DType narrow = DType::kUnknown;
  for (const uint32_t slot : ctx.op().in) {
    const Value* v = slot == kNoSlot ? nullptr : ctx.frame()[slot];
    if (v == nullptr || !v->is_tensor() || !v->tensor().initialized()) continue;
    const DType dtype = v->tensor().dtype();
    if (dtype == DType::kF16 || dtype == DType::kBF16) narrow = dtype;
  }
  for (const uint32_t slot : ctx.op().out)  // may hold a tensor of an earlier run
    if (slot != kNoSlot && ctx.frame()[slot] != nullptr) *ctx.frame()[slot] = Value();
  HEDDLE_RETURN_IF_ERROR(RunInFloat(ctx));
  for (const uint32_t slot : ctx.op().out) {
    if (slot == kNoSlot || !ctx.frame()[slot]->is_tensor()) continue;
    Tensor& t = ctx.frame()[slot]->tensor();
    if (t.dtype() != DType::kF32 || narrow == DType::kUnknown) continue;
    Tensor made = ctx.Scratch(narrow, t.shape());
    ConvertElements(ctx, t.raw(), DType::kF32, made.mutable_raw(), narrow, t.numel());
    t = std::move(made);
  }
  return Status::Ok();
}

Tensor InFloat(const KernelContext& ctx, const Tensor& t) {
  if (t.dtype() == DType::kF32) return t;
  Tensor wide = ctx.Scratch(DType::kF32, t.shape());
  ConvertElements(ctx, t.raw(), t.dtype(), wide.mutable_raw(), DType::kF32, t.numel());
  return wide;
}

Status OpenShape(ShapeContext& ctx, Key dims, Key out, DType dtype) {
  const Shape& list = ctx.InShape(dims);
  if (!list.is_static() || list.numel() > Shape::kMaxRank) return ctx.Defer();
  Shape open;
  for (int64_t i = 0; i < list.numel(); ++i) open.push_back(-1);
  ctx.SetOut(out, open, dtype);
  return Status::Ok();
}

}  // namespace heddle
