#include "kernels/base/shape_checks.h"

#include "core/interrupts.h"

namespace heddle {

Labels::Labels(KernelContext& ctx, const Tensor& t) {
  if (t.dtype() == DType::kI64) {
    data_ = t.data<int64_t>();
    return;
  }
  copy_ = ctx.Scratch(DType::kI64, t.shape());
  int64_t* to = copy_.mutable_data<int64_t>();
  const int64_t n = t.numel();
  const bool known =
      VisitDType<int32_t, int16_t, int8_t, uint8_t, bool, float, double>(t.dtype(), [&](auto tag) {
        const auto* from = t.data<typename decltype(tag)::type>();
        for (const auto part : Stretches(n))
          for (int64_t i = part.begin; i < part.end; ++i) to[i] = static_cast<int64_t>(from[i]);
      });
  if (!known)
    throw std::invalid_argument(
        StrCat("labels or indices ", t.shape().ToString(), " are ", Name(t.dtype())));
  data_ = to;
}

Status Labels::Check(int64_t n, int64_t classes, int64_t ignore) const {
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i)
      if (data_[i] != ignore && (data_[i] < 0 || data_[i] >= classes)) [[unlikely]]
        return OutOfRange("label ", data_[i], " at position ", i, " is not in [0, ", classes, ")");
  return Status::Ok();
}

Status CheckSameCount(const ShapeContext& ctx, Key a, Key b) {
  const Shape &x = ctx.InShape(a), &y = ctx.InShape(b);
  if (x.is_static() && y.is_static() && x.numel() != y.numel())
    return InvalidArgument(a.name, " ", x.ToString(), " and ", b.name, " ", y.ToString(),
                           " must have equally many elements");
  return Status::Ok();
}

Status CheckSameDims(const ShapeContext& ctx, Key a, Key b) {
  const Shape &x = ctx.InShape(a), &y = ctx.InShape(b);
  bool same = !x.known_rank() || !y.known_rank() || x.rank() == y.rank();
  if (same && x.known_rank() && y.known_rank())
    for (int i = 0; i < x.rank(); ++i) same = same && (x[i] < 0 || y[i] < 0 || x[i] == y[i]);
  if (!same)
    return InvalidArgument(a.name, " ", x.ToString(), " and ", b.name, " ", y.ToString(),
                           " must have the same shape");
  return Status::Ok();
}

void SetOutsLike(ShapeContext& ctx, std::initializer_list<KeyPair> pairs) {
  for (const KeyPair& p : pairs)
    if (ctx.HasOut(p.out) && ctx.HasIn(p.in))
      ctx.SetOut(p.out, ctx.InShape(p.in), ctx.InDType(p.in));
}

Result<LossReduction> LossReductionOf(const std::string& name) {
  if (name == "none") return LossReduction::kNone;
  if (name == "mean") return LossReduction::kMean;
  if (name == "sum") return LossReduction::kSum;
  if (name == "batchmean") return LossReduction::kBatchMean;
  return InvalidArgument("reduction must be none, mean, sum or batchmean, not '", name, "'");
}

}  // namespace heddle
