#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

bool Compatible(const Shape& a, const Shape& b) {
  if (!a.known_rank() || !b.known_rank()) return true;
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (a[i] >= 0 && b[i] >= 0 && a[i] != b[i]) return false;
  return true;
}

}  // namespace

Status SameShapes(ShapeContext& ctx, int operands) {
  const BoundOp& op = ctx.op();
  const auto& slots = ctx.def().inputs();
  const Tensor* first = nullptr;
  std::string first_name;
  for (int s = 0; s < operands; ++s) {
    if (op.in_begin[s] == op.in_begin[s + 1] || op.in[op.in_begin[s]] == kNoSlot) continue;
    const Value& v = *ctx.frame()[op.in[op.in_begin[s]]];
    if (!v.is_tensor()) return InvalidArgument("input ", slots[s].name, " must be a tensor");
    const Tensor& t = v.tensor();
    if (t.dtype() == DType::kUnknown) continue;  // holds nothing
    if (first == nullptr) {
      first = &t;
      first_name = slots[s].name;
    } else if (!Compatible(first->shape(), t.shape())) {
      return InvalidArgument("input ", slots[s].name, " must have the shape of ", first_name, ", ",
                             first->shape().ToString(), ", but has ", t.shape().ToString());
    } else if (first->dtype() != t.dtype()) {
      return InvalidArgument("input ", slots[s].name, " must have the dtype of ", first_name, ", ",
                             Name(first->dtype()), ", but has ", Name(t.dtype()));
    }
  }
  if (first == nullptr) return ctx.Defer();
  for (size_t o = 0; o < op.out.size(); ++o) {
    if (op.out[o] == kNoSlot) continue;
    ctx.SetOutAt(o, first->shape(), first->dtype());
    if (first->has_lod()) ctx.SetOutLoDAt(o, first->lod());
  }
  return Status::Ok();
}

Status FloatShape(ShapeContext& ctx) {
  const DType in = ctx.InDType("X");
  ctx.SetOut("Out", ctx.InShape("X"), IsInteger(in) ? DType::kF32 : in);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

double SlowMapCost(const ShapeContext& ctx) {
  constexpr double kNsPerElement = 8;
  for (const uint32_t slot : ctx.op().in) {
    if (slot == kNoSlot || !ctx.frame()[slot]->is_tensor()) continue;
    const Shape& shape = ctx.frame()[slot]->tensor().shape();
    return shape.is_static() ? kNsPerElement * static_cast<double>(shape.numel()) : 0;
  }
  return 0;
}

}  // namespace heddle
