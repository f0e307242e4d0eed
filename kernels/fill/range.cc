#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"
#include "kernels/elementwise/arithmetic.h"

namespace heddle {
namespace {

// The rules that differ between systems.
struct RangeRules {
  bool empty = false;       // a step that leads away from the end makes no items; else an error
  bool wide_count = false;  // floats are counted in double
};
Result<RangeRules> RulesOf(const OpContext& ctx) {
  const std::string& away = ctx.Str("wrong_way");
  if (away != "error" && away != "empty")
    return InvalidArgument("wrong_way is '", away, "', expected error or empty");
  return RangeRules{away == "empty", ctx.Bool("wide_count")};
}

// Number of items of [start, end) by step, where all three are known.
template <typename T>
Result<int64_t> Count(const RangeRules& rules, T a, T b, T s) {
  if (s == T(0)) return InvalidArgument("Step must not be 0");
  if (!(a < b) && !(b < a)) {
    if (a == b) return int64_t{0};
    return InvalidArgument("Start and End must be numbers");
  }
  if ((a < b) != (s > T(0))) {
    if (rules.empty && s == s) return int64_t{0};
    return InvalidArgument("Step ", +s, " does not lead from Start ", +a, " to End ", +b);
  }
  if constexpr (std::is_integral_v<T>) {
    const auto distance = a < b ? static_cast<uint64_t>(b) - static_cast<uint64_t>(a)
                                : static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
    const uint64_t by = s > 0 ? static_cast<uint64_t>(s) : uint64_t{0} - static_cast<uint64_t>(s);
    const uint64_t n = distance / by + (distance % by != 0);
    if (n > (uint64_t{1} << 48)) return ResourceExhausted("the range has ", n, " items");
    return static_cast<int64_t>(n);
  } else {
    const double steps = rules.wide_count ? (static_cast<double>(b) - static_cast<double>(a)) /
                                                static_cast<double>(s)
                                          : static_cast<double>((b - a) / s);
    const double n = std::ceil(std::fabs(steps));
    if (!(n < 281474976710656.0)) return ResourceExhausted("the range has ", n, " items");
    return static_cast<int64_t>(n);
  }
}

Result<int64_t> CountOf(const RangeRules& rules, const Tensor& start, const Tensor& end,
                        const Tensor& step) {
  Result<int64_t> n = int64_t{0};
  const bool known = VisitDType<float, double, int16_t, int32_t, int64_t, float16, bfloat16>(
      start.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        using C = ComputeType<T>;
        n = Count<C>(rules, static_cast<C>(*start.data<T>()), static_cast<C>(*end.data<T>()),
                     static_cast<C>(*step.data<T>()));
      });
  if (!known) return Unimplemented("ranges of ", Name(start.dtype()), " are not supported");
  return n;
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
  HEDDLE_ASSIGN_OR_RETURN(const RangeRules rules, RulesOf(ctx));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t n, CountOf(rules, *start, *end, *step));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({n}, "the range"));
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

template <typename T>
struct Range {
  static Status Run(KernelContext& ctx) {
    const T start = ctx.In("Start").data<T>()[0], step = ctx.In("Step").data<T>()[0];
    Tensor& out = ctx.Out("Out");
    T* y = out.mutable_data<T>();
    if (ctx.Bool("by_product")) {
      for (const auto part : Stretches(out.numel()))
        for (int64_t i = part.begin; i < part.end; ++i)
          y[i] = AddFn::Apply(start, MulFn::Apply(static_cast<T>(i), step));
      return Status::Ok();
    }
    T value = start;
    for (const auto part : Stretches(out.numel()))
      for (int64_t i = part.begin; i < part.end; ++i, value = AddFn::Apply(value, step))
        y[i] = value;
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(range) {
  op.Doc(
      "Start, Start + Step, … before End, added up or with by_product multiplied; a Step away from "
      "End is an error or makes nothing.");
  op.Input("Start", kShapeValue).Input("End", kShapeValue).Input("Step", kShapeValue).Output("Out");
  op.Attr("wrong_way", "error").Attr("wide_count", false).Attr("by_product", false);
  op.InferShape(RangeShape).Kernels<Range, float, double, int16_t, int32_t, int64_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
