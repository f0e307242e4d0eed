#include <complex>

#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/scan/scan.h"

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
  const bool exclusive = IsExclusive(ctx, from);
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
  op.Kernels<Cumsum, float, double, int32_t, int64_t, float16, bfloat16, int16_t, int8_t, uint8_t,
             std::complex<float>, std::complex<double>>();
  op.KernelKey("X");
}

HEDDLE_OP(cumsum_grad) {
  op.Doc("gradient of cumsum").Input("X", kNoBuffer).Input("Out@GRAD").Output("X@GRAD");
  op.KernelKey("Out@GRAD").Inplace("Out@GRAD", "X@GRAD");
  DefineScanAttrs(op);
  op.InferShape(&GradLikeInputs);
  op.Kernels<CumsumGrad, float, double, int32_t, int64_t, float16, bfloat16, int16_t>();
}
