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
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, CheckedDType(ctx.Int("dtype")));
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

template <bool kLog>
Status RunSpace(KernelContext& ctx) {
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
  op.Doc("Num equally spaced values from Start to Stop.").Input("Start").Input("Stop");
  op.Input("Num", kShapeValue).Output("Out").Attr("dtype", 5);
  op.InferShape(SpaceShape<false>).AnyKernel(RunSpace<false>);
}
HEDDLE_OP(logspace) {
  op.Doc("Base to the powers of linspace.").Input("Start").Input("Stop");
  op.Input("Num", kShapeValue).Input("Base").Output("Out").Attr("dtype", 5);
  op.InferShape(SpaceShape<true>).AnyKernel(RunSpace<true>);
}
