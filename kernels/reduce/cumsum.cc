#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/reduce/scan.h"

namespace heddle {
namespace {

template <typename T>
Status RunCumsum(const KernelContext& ctx, const Tensor& from, Tensor& to, bool reverse) {
  using C = ComputeType<T>;
  HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, ScanLines(ctx, ctx.In("X").shape()));
  HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&to}));
  if (from.numel() != to.numel())
    return InvalidArgument("got ", from.numel(), " elements for ", to.numel());
  const T* x = from.data<T>();
  T* out = to.mutable_data<T>();
  // Paddle copies a single element, whatever its rank.
  const bool exclusive = ctx.Bool("exclusive") && from.numel() != 1;
  lines.ForEach(ctx, 4, [&](int64_t line) {
    const ScanOrder at(lines, line, reverse);
    C total{};
    for (const int64_t i : Watched(lines.n)) {
      const C next = AddFn::Apply(total, static_cast<C>(x[at[i]]));
      out[at[i]] = static_cast<T>(exclusive ? total : next);
      total = next;
    }
  });
  return Status::Ok();
}

template <typename T>
struct Cumsum {
  static Status Run(KernelContext& ctx) {
    return RunCumsum<T>(ctx, ctx.In("X"), ctx.Out("Out"), ctx.Bool("reverse"));
  }
};

// The sum the other way round.
template <typename T>
struct CumsumGrad {
  static Status Run(KernelContext& ctx) {
    return RunCumsum<T>(ctx, ctx.In("Out@GRAD"), ctx.Out("X@GRAD"), !ctx.Bool("reverse"));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(cumsum) {
  op.Doc("running sum along an axis").Input("X").Output("Out").Inplace("X", "Out");
  DefineScanAttrs(op);
  op.InferShape(&InferScan);
  op.Kernels<Cumsum, float, double, int32_t, int64_t, float16, bfloat16, int16_t, int8_t,
             uint8_t>();
}

HEDDLE_OP(cumsum_grad) {
  op.Doc("gradient of cumsum").Input("X", kNoBuffer).Input("Out@GRAD").Output("X@GRAD");
  op.KernelKey("Out@GRAD").Inplace("Out@GRAD", "X@GRAD");
  DefineScanAttrs(op);
  op.InferShape(&GradLikeInputs);
  op.Kernels<CumsumGrad, float, double, int32_t, int64_t, float16, bfloat16, int16_t>();
}

HEDDLE_EXAMPLES(cumsum, R"(
example float64 1x1x4, axis 2, exclusive
attr axis INT 2
attr exclusive BOOLEAN true
in X float64 [1, 1, 4] 0.2 0.791 0.594 0.397
out Out float64 [1, 1, 4] 0 0.2 0.9910000000000001 1.585

example int64 3x1, axis 0
attr axis INT 0
in X int64 [3, 1] 2 -1 -2
out Out int64 [3, 1] 2 1 -1

example float32 4x4, axis -2
attr axis INT -2
in X float32 [4, 4] 0.66 0.45 -0.52 -0.63 0.55 -0.41 -0.2 0.34 0.77 -0.74 -0.84 -0.31 0.23 0.12
  -0.09 0.02
out Out float32 [4, 4] 0.66 0.45 -0.52 -0.63 1.21 0.03999999 -0.71999997 -0.29 1.98 -0.70000005
  -1.56 -0.6 2.21 -0.58000004 -1.65 -0.58000004

example float64 4x3
in X float64 [4, 3] 0.533 0.685 0.306 0.382 0.913 0.079 0.154 0.458 0.761 0.609 0.23 0.837
out Out float64 [4, 3] 0.533 1.218 1.524 0.382 1.295 1.3739999999999999 0.154 0.612 1.373 0.609
  0.839 1.676

example int32 4x3
in X int32 [4, 3] 1 1 0 0 1 1 0 1 0 1 1 1
out Out int32 [4, 3] 1 2 2 0 1 2 0 1 1 1 2 3
)")

HEDDLE_EXAMPLES(cumsum_grad, R"(
example float64 6
in Out@GRAD float64 [6] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float64 [6] -0.67 -0.4 0.13 0.66 -0.14 0.39
out X@GRAD float64 [6] 0.4999999999999999 1.0999999999999999 0.49999999999999994 -0.2
  0.09999999999999998 0.6

example float64 scalar, axis 0
attr axis INT 0
in Out@GRAD float64 [] -0.2
in X float64 [] 0.696
out X@GRAD float64 [] -0.2

example float64 3x2x1
in Out@GRAD float64 [3, 2, 1] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float64 [3, 2, 1] -0.42 -0.68 0.64 0.11 0.37 -0.15
out X@GRAD float64 [3, 2, 1] -0.6 0.6 0.7 -0.3 -0.5 0.6

example float32 6
in Out@GRAD float32 [6] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float32 [6] -0.67 -0.4 0.13 0.66 -0.14 0.39
out X@GRAD float32 [6] 0.5 1.1 0.5 -0.19999999 0.100000024 0.6

example int16 6
in Out@GRAD int16 [6] -4 4 4 -2 -3 4
in X int16 [6] -4 -2 1 4 1 2
out X@GRAD int16 [6] 3 7 3 -1 1 4
)")
