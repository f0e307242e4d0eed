// One value over and over, numbers in equal steps, and indices as unit vectors.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/narrow.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status ValueFillShape(ShapeContext& ctx) {
  if (!Known(ctx, "dims")) return OpenShape(ctx, "dims", "output", ctx.InDType("value"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "dims"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "dims"));
  if (ctx.InShape("value").is_static() && ctx.InShape("value").numel() != 1)
    return InvalidArgument("value has shape ", ctx.InShape("value").ToString(),
                           ", expected a scalar");
  ctx.SetOut("output", shape, ctx.InDType("value"));
  return Status::Ok();
}

Status Fill(KernelContext& ctx) {
  const Tensor& value = ctx.In("value");
  if (value.numel() != 1)
    return InvalidArgument("value has shape ", value.shape().ToString(), ", expected a scalar");
  Tensor& out = ctx.Out("output");
  VisitElementSize(value.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T v = *static_cast<const T*>(value.raw());
    T* to = static_cast<T*>(out.mutable_raw());
    ctx.ParallelFor(out.numel(), 1 << 16,
                    [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, v); });
  });
  return Status::Ok();
}

template <typename T>
struct StepRange {
  static Status Run(KernelContext& ctx) {
    const Tensor &start = ctx.In("start"), &limit = ctx.In("limit"), &delta = ctx.In("delta");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t n, Count(start, limit, delta));
    const T from = *start.data<T>(), step = *delta.data<T>();
    T* to = ctx.Out("output").template mutable_data<T>();
    T value = from;
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) {
        to[i] = value;
        if constexpr (std::is_integral_v<T>)
          value = static_cast<T>(static_cast<uint64_t>(value) + static_cast<uint64_t>(step));
        else
          value += step;
      }
    return Status::Ok();
  }

  static Result<int64_t> Count(const Tensor& start, const Tensor& limit, const Tensor& delta) {
    for (const Tensor* t : {&start, &limit, &delta})
      if (t->numel() != 1 || t->dtype() != kDTypeOf<T>)
        return InvalidArgument("start, limit and delta are not scalars of one dtype");
    const T from = *start.data<T>(), to = *limit.data<T>(), step = *delta.data<T>();
    if (step == T(0)) return InvalidArgument("delta is 0, expected another number");
    if (step > T(0) ? from > to : from < to)
      return InvalidArgument("limit lies before start for this delta: ", +from, " to ", +to, " by ",
                             +step);
    if constexpr (std::is_integral_v<T>) {
      const auto span = step > 0 ? static_cast<uint64_t>(to) - static_cast<uint64_t>(from)
                                 : static_cast<uint64_t>(from) - static_cast<uint64_t>(to);
      const auto size = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
      const uint64_t n = span / size + (span % size != 0 ? 1 : 0);
      if (n > uint64_t{1} << 40) return InvalidArgument("the range has ", n, " elements");
      return static_cast<int64_t>(n);
    } else {
      const double n = std::ceil(std::abs((static_cast<double>(to) - static_cast<double>(from)) /
                                          static_cast<double>(step)));
      if (!(n <= 1e12)) return InvalidArgument("the range has ", n, " elements");
      return static_cast<int64_t>(n);
    }
  }
};

Status StepRangeShape(ShapeContext& ctx) {
  for (const Key operand : {Key("start"), Key("limit"), Key("delta")}) {
    if (ctx.InValue(operand) != nullptr) continue;
    ctx.SetOut("output", Shape{-1}, ctx.InDType("start"));
    return Status::Ok();
  }
  Result<int64_t> count = int64_t{0};
  const bool known =
      VisitDType<float, double, int32_t, int64_t>(ctx.InDType("start"), [&](auto tag) {
        count = StepRange<typename decltype(tag)::type>::Count(
            *ctx.InValue("start"), *ctx.InValue("limit"), *ctx.InValue("delta"));
      });
  if (!known)
    return InvalidArgument("start is ", Name(ctx.InDType("start")),
                           ", expected integers or floats");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t n, count);
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape({n}, "output"));
  ctx.SetOut("output", shape, ctx.InDType("start"));
  return Status::Ok();
}

Status LinSpaceShape(ShapeContext& ctx) {
  if (!Known(ctx, "num")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t n, IntIn(ctx, "num", 1));
  if (n <= 0) return InvalidArgument("num is ", n, ", expected at least 1");
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape({n}, "output"));
  ctx.SetOut("output", shape, ctx.InDType("start"));
  return Status::Ok();
}

template <typename T>
struct LinSpace {
  static Status Run(KernelContext& ctx) {
    const Tensor &start = ctx.In("start"), &stop = ctx.In("stop");
    if (start.numel() != 1 || stop.numel() != 1 || stop.dtype() != start.dtype())
      return InvalidArgument("start and stop are not scalars of one dtype");
    const T from = *start.data<T>(), last = *stop.data<T>();
    Tensor& out = ctx.Out("output");
    T* to = out.template mutable_data<T>();
    const int64_t n = out.numel();
    to[0] = from;
    if (n == 1) return Status::Ok();
    const T step = (last - from) / static_cast<T>(n - 1);
    for (const auto part : Stretches(Stretches::Range{1, n - 1}))
      for (int64_t i = part.begin; i < part.end; ++i) to[i] = from + step * static_cast<T>(i);
    to[n - 1] = last;
    return Status::Ok();
  }
};

Status OneHotShape(ShapeContext& ctx) {
  const Shape& indices = ctx.InShape("indices");
  if (!indices.known_rank() || !Known(ctx, "depth")) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t depth, IntIn(ctx, "depth", 0));
  if (depth < 0) return InvalidArgument("depth is ", depth, ", expected 0 or more");
  if (indices.rank() + 1 > Shape::kMaxRank)
    return InvalidArgument("indices ", indices.ToString(), " has too many dimensions");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), indices.rank() + 1));
  Shape out = indices;
  out.insert(axis, depth);
  ctx.SetOut("output", out, ctx.InDType("on_value"));
  return Status::Ok();
}

Status OneHot(KernelContext& ctx) {
  const Tensor &indices = ctx.In("indices"), &on = ctx.In("on_value"), &off = ctx.In("off_value");
  if (on.numel() != 1 || off.numel() != 1 || on.dtype() != off.dtype())
    return InvalidArgument("on_value and off_value are not scalars of one dtype");
  Tensor& out = ctx.Out("output");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), out.rank()));
  const int64_t depth = out.shape()[axis];
  const int64_t inner = out.shape().Product(axis + 1, out.rank());
  Tensor wide = indices;
  if (indices.dtype() == DType::kU8 || indices.dtype() == DType::kI8) {
    wide = ctx.Scratch(DType::kI64, indices.shape());
    ConvertElements(ctx, indices.raw(), indices.dtype(), wide.mutable_raw(), DType::kI64,
                    indices.numel());
  }
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(wide.dtype(), "indices"));
  VisitElementSize(on.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T yes = *static_cast<const T*>(on.raw()), no = *static_cast<const T*>(off.raw());
    T* to = static_cast<T*>(out.mutable_raw());
    WatchedFill(to, out.numel(), no);
    for (const int64_t i : Watched(wide.numel())) {
      const int64_t v = IntAt(wide, i);
      if (v >= 0 && v < depth) to[(i / inner * depth + v) * inner + i % inner] = yes;
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_fill) {
  op.Doc("value over and over, in the shape dims").Input("dims", kShapeValue).Input("value");
  op.Output("output").InferShape(ValueFillShape).KernelKey("value").AnyKernel(Fill);
}
HEDDLE_OP(tf_range) {
  op.Doc("start, start + delta, … before limit").Input("start", kShapeValue);
  op.Input("limit", kShapeValue).Input("delta", kShapeValue).Output("output");
  op.InferShape(StepRangeShape).Kernels<StepRange, float, double, int32_t, int64_t>();
}
HEDDLE_OP(tf_lin_space) {
  op.Doc("num numbers in equal steps from start to stop");
  op.Input("start").Input("stop").Input("num", kShapeValue).Output("output");
  op.InferShape(LinSpaceShape).Kernels<LinSpace, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(tf_one_hot) {
  op.Doc("on_value at each index along a new axis, off_value elsewhere");
  op.Input("indices").Input("depth", kShapeValue).Input("on_value").Input("off_value");
  op.Output("output").Attr("axis", -1).InferShape(OneHotShape).AnyKernel(OneHot);
}
