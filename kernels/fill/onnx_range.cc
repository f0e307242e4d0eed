#include <cmath>

#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

constexpr double kMostElements = 1e15;

// The number of steps from start to limit.
Result<int64_t> CountOf(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  for (const Tensor* t : {&start, &limit, &delta})
    if (t->numel() != 1 || t->dtype() != start.dtype())
      return InvalidArgument("start, limit and delta must each be one element of one dtype");
  double count = 0;
  if (start.dtype() == DType::kI64) {
    const int64_t a = *start.data<int64_t>(), b = *limit.data<int64_t>();
    const int64_t d = *delta.data<int64_t>();
    int64_t span = 0;
    if (d == 0 || __builtin_sub_overflow(b, a, &span))
      return InvalidArgument("no range from ", a, " to ", b, " by ", d);
    if (span == 0 || (span > 0) != (d > 0)) return int64_t{0};
    count = static_cast<double>((span - (d > 0 ? 1 : -1)) / d) + 1;
    if (count <= kMostElements) return (span - (d > 0 ? 1 : -1)) / d + 1;
  } else {
    const double a = ScalarOf(start), b = ScalarOf(limit), d = ScalarOf(delta);
    count = start.dtype() == DType::kF64 || IsInteger(start.dtype())
                ? std::ceil((b - a) / d)
                : static_cast<double>(std::ceil((static_cast<float>(b) - static_cast<float>(a)) /
                                                static_cast<float>(d)));
  }
  if (!(count <= kMostElements))
    return InvalidArgument("no range from ", ScalarOf(start), " to ", ScalarOf(limit), " by ",
                           ScalarOf(delta));
  return static_cast<int64_t>(std::max(0.0, count));
}

Status OnnxRangeShape(ShapeContext& ctx) {
  const Tensor *start = ctx.InValue("start"), *limit = ctx.InValue("limit"),
               *delta = ctx.InValue("delta");
  if (start == nullptr || limit == nullptr || delta == nullptr) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t n, CountOf(*start, *limit, *delta));
  ctx.SetOut("output", {n}, start->dtype());
  return Status::Ok();
}

template <typename T>
struct OnnxRange {
  static Status Run(KernelContext& ctx) {
    const T start = *ctx.In("start").data<T>(), delta = *ctx.In("delta").data<T>();
    Tensor& out = ctx.Out("output");
    T* to = out.mutable_data<T>();
    for (const auto part : Stretches(out.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = static_cast<T>(start + static_cast<T>(i) * delta);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_range) {
  op.Doc("start, start + delta, … before limit").Input("start", kShapeValue);
  op.Input("limit", kShapeValue).Input("delta", kShapeValue).Output("output");
  op.Attr("stash_type", 1).InferShape(OnnxRangeShape);
  op.Kernels<OnnxRange, float, double, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
