// linspace and logspace.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/convert.h"
#include "kernels/base/index_args.h"
#include "kernels/base/shape_arg.h"

namespace heddle {
namespace {

Status CheckOne(const ShapeContext& ctx, Key slot) {
  const Shape& s = ctx.InShape(slot);
  if (s.is_static() && s.numel() != 1)
    return InvalidArgument(slot.name, " must hold one element, but has shape ", s.ToString());
  return Status::Ok();
}

template <bool kLog>
Status SpaceShape(ShapeContext& ctx) {
  DType dtype = ctx.InDType("Start");
  if (kLog || ctx.Int("dtype") != -1) {
    HEDDLE_ASSIGN_OR_RETURN(dtype, CheckedDType(ctx.Int("dtype")));
  }
  HEDDLE_RETURN_IF_ERROR(CheckOne(ctx, "Start"));
  HEDDLE_RETURN_IF_ERROR(CheckOne(ctx, "Stop"));
  HEDDLE_RETURN_IF_ERROR(CheckOne(ctx, "Num"));
  if constexpr (kLog) HEDDLE_RETURN_IF_ERROR(CheckOne(ctx, "Base"));
  const Tensor* num = ctx.InValue("Num");
  if (num == nullptr) {
    ctx.SetOut("Out", {-1}, dtype);
    return ctx.Defer();
  }
  HEDDLE_RETURN_IF_ERROR(CheckInts(*num, "Num"));
  const int64_t n = IntAt(*num, 0);
  if (n <= 0) return InvalidArgument("Num must be positive, but is ", n);
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({n}, "Num"));
  ctx.SetOut("Out", shape, dtype);
  return Status::Ok();
}

// Counts from both ends, so that the middle is symmetric and the last item exact.
template <typename T, typename Fn>
void FillSpace(T start, T stop, Tensor& out, Fn&& at) {
  T* y = out.mutable_data<T>();
  const int64_t n = out.numel();
  const double step =
      n > 1 ? (static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(n - 1)
            : 0;
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i)
      y[i] = at(i < n / 2 || n == 1
                    ? static_cast<double>(start) + step * static_cast<double>(i)
                    : static_cast<double>(stop) - step * static_cast<double>(n - i - 1));
}

// Counts from the start alone, in the dtype of the numbers.
template <typename T>
void FillFromStart(T start, T stop, Tensor& out) {
  T* y = out.mutable_data<T>();
  const int64_t n = out.numel();
  y[0] = start;
  if (n == 1) return;
  const T step = (stop - start) / static_cast<T>(n - 1);
  for (const auto part : Stretches(Stretches::Range{1, n - 1}))
    for (int64_t i = part.begin; i < part.end; ++i) y[i] = start + step * static_cast<T>(i);
  y[n - 1] = stop;
}

Status RunFromStart(KernelContext& ctx) {
  const Tensor &start = ctx.In("Start"), &stop = ctx.In("Stop");
  Tensor& out = ctx.Out("Out");
  if (start.numel() != 1 || stop.numel() != 1 || stop.dtype() != start.dtype() ||
      out.dtype() != start.dtype())
    return InvalidArgument("Start and Stop are not numbers of the dtype ", Name(out.dtype()));
  if (out.dtype() == DType::kF16 || out.dtype() == DType::kBF16) return RunInFloat(ctx);
  const bool known = VisitDType<float, double>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    FillFromStart<T>(*start.data<T>(), *stop.data<T>(), out);
  });
  return known ? Status::Ok() : Unimplemented("not supported for ", Name(out.dtype()));
}

template <bool kLog>
Status RunSpace(KernelContext& ctx) {
  if constexpr (!kLog)
    if (ctx.Bool("from_start")) return RunFromStart(ctx);
  Tensor& out = ctx.Out("Out");
  const bool known = VisitDType<float, double, int32_t, int64_t>(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T start = ConvertTo<T>(ScalarOf(ctx.In("Start")));
    const T stop = ConvertTo<T>(ScalarOf(ctx.In("Stop")));
    if constexpr (kLog) {
      const T base = ConvertTo<T>(ScalarOf(ctx.In("Base")));
      FillSpace<T>(start, stop, out, [&](double e) {
        return static_cast<T>(std::pow(static_cast<double>(base), e));
      });
    } else {
      FillSpace<T>(start, stop, out, [](double v) { return static_cast<T>(v); });
    }
  });
  if (!known) return Unimplemented("not supported for ", Name(out.dtype()));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(linspace) {
  op.Doc(
      "Num equally spaced values from Start to Stop, counted from both or with from_start from the "
      "first alone; a dtype of -1 is that of Start.");
  op.Input("Start").Input("Stop");
  op.Input("Num", kShapeValue).Output("Out").Attr("dtype", 5).Attr("from_start", false);
  op.InferShape(SpaceShape<false>).AnyKernel(RunSpace<false>);
}
HEDDLE_OP(logspace) {
  op.Doc("Base to the powers of linspace.").Input("Start").Input("Stop");
  op.Input("Num", kShapeValue).Input("Base").Output("Out").Attr("dtype", 5);
  op.InferShape(SpaceShape<true>).AnyKernel(RunSpace<true>);
}
