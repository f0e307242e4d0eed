#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"

namespace heddle {
namespace {

// Number of items of [start, end) by step, where all three are known.
template <typename T>
Result<int64_t> Count(const Tensor& start, const Tensor& end, const Tensor& step) {
  const T a = start.data<T>()[0], b = end.data<T>()[0], s = step.data<T>()[0];
  if (s == T(0)) return InvalidArgument("Step must not be 0");
  if (!(a < b) && !(b < a)) {
    if (a == b) return int64_t{0};
    return InvalidArgument("Start and End must be numbers");
  }
  if ((a < b) != (s > T(0)))
    return InvalidArgument("Step ", s, " does not lead from Start ", a, " to End ", b);
  if constexpr (std::is_integral_v<T>) {
    const auto distance = a < b ? static_cast<uint64_t>(b) - static_cast<uint64_t>(a)
                                : static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
    const uint64_t by = s > 0 ? static_cast<uint64_t>(s) : uint64_t{0} - static_cast<uint64_t>(s);
    const uint64_t n = distance / by + (distance % by != 0);
    if (n > (uint64_t{1} << 48)) return ResourceExhausted("the range has ", n, " items");
    return static_cast<int64_t>(n);
  } else {
    const double n = std::ceil(std::fabs(static_cast<double>((b - a) / s)));
    if (!(n < 281474976710656.0)) return ResourceExhausted("the range has ", n, " items");
    return static_cast<int64_t>(n);
  }
}

Status RangeShape(ShapeContext& ctx) {
  const DType dtype = ctx.InDType("Start");
  for (const Key& slot : {Key("Start"), Key("End"), Key("Step")}) {
    const Shape& s = ctx.InShape(slot);
    if (s.is_static() && s.numel() != 1)
      return InvalidArgument(slot.name, " must hold one element, but has shape ", s.ToString());
    if (ctx.InDType(slot) != dtype)
      return InvalidArgument(slot.name, " must have the dtype of Start, ", Name(dtype),
                             ", but has ", Name(ctx.InDType(slot)));
  }
  const Tensor* start = ctx.InValue("Start");
  const Tensor* end = ctx.InValue("End");
  const Tensor* step = ctx.InValue("Step");
  if (start == nullptr || end == nullptr || step == nullptr) return ctx.Defer();
  Result<int64_t> n = int64_t{0};
  if (!VisitDType<float, double, int32_t, int64_t>(
          dtype, [&](auto tag) { n = Count<typename decltype(tag)::type>(*start, *end, *step); }))
    return Unimplemented("ranges of ", Name(dtype), " are not supported");
  if (!n.ok()) return n.status();
  ctx.SetOut("Out", {*n}, dtype);
  return Status::Ok();
}

template <typename T>
struct Range {
  static Status Run(KernelContext& ctx) {
    const T start = ctx.In("Start").data<T>()[0], step = ctx.In("Step").data<T>()[0];
    Tensor& out = ctx.Out("Out");
    T* y = out.mutable_data<T>();
    T value = start;
    for (const auto part : Stretches(out.numel()))
      for (int64_t i = part.begin; i < part.end; ++i, value += step) y[i] = value;
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(range) {
  op.Doc("Start, Start + Step, … before End.");
  op.Input("Start", kShapeValue).Input("End", kShapeValue).Input("Step", kShapeValue).Output("Out");
  op.InferShape(RangeShape).Kernels<Range, float, double, int32_t, int64_t>();
}
