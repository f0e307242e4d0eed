#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/base/convert.h"
#include "kernels/scan/scan.h"

namespace heddle {
namespace {

template <typename T>
T LogAddExp(T a, T b) {
  const T high = std::max(a, b), low = std::min(a, b);
  return low == -std::numeric_limits<T>::infinity() ? high
                                                    : high + std::log1p(std::exp(low - high));
}

// A scan starts with the lowest finite number, or with -infinity.
template <typename T>
struct Logcumsumexp {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, ScanLines(ctx, ctx.In("X").shape()));
    const T* x = ctx.In("X").data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    const bool exclusive = IsExclusive(ctx, ctx.In("X")), reverse = ctx.Bool("reverse");
    const bool from_infinity = ctx.Bool("from_infinity");
    lines.ForEach(ctx, 16, [&](int64_t line) {
      const ScanOrder at(lines, line, reverse);
      T total =
          from_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
      for (const int64_t i : Watched(lines.n)) {
        const T next = i == 0 && !from_infinity ? x[at[i]] : LogAddExp(total, x[at[i]]);
        out[at[i]] = exclusive ? total : next;
        total = next;
      }
    });
    return Status::Ok();
  }
};

// Going backwards, s = sum over i >= j of dout[i] * exp(out[j] - out[i]); out never falls, so that
// no exponent is above 0.
template <typename T>
struct LogcumsumexpGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& xt = ctx.In("X");
    const Tensor& ot = ctx.In("Out");
    const Tensor& dt = ctx.In("Out@GRAD");
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, ScanLines(ctx, xt.shape()));
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&ot, &dt}));
    if (ot.numel() != xt.numel() || dt.numel() != xt.numel())
      return InvalidArgument("Out and Out@GRAD must have ", xt.numel(), " elements");
    const T* x = xt.data<T>();
    const T* out = ot.data<T>();
    const T* dout = dt.data<T>();
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    const bool exclusive = IsExclusive(ctx, xt), reverse = ctx.Bool("reverse");
    lines.ForEach(ctx, 16, [&](int64_t line) {
      const ScanOrder at(lines, line, reverse);
      T sum = 0, later = 0;  // `later`: the out that `sum` is relative to
      for (const int64_t back : Watched(lines.n)) {
        const int64_t j = lines.n - 1 - back;
        const int64_t p = at[j];
        if (exclusive) dx[p] = j == lines.n - 1 ? T(0) : sum * std::exp(x[p] - later);
        sum = j == lines.n - 1 ? dout[p] : dout[p] + sum * std::exp(out[p] - later);
        later = out[p];
        if (!exclusive) dx[p] = sum * std::exp(x[p] - later);
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(logcumsumexp) {
  op.Doc("running logsumexp along an axis").Input("X").Output("Out");
  DefineScanAttrs(op);
  op.Attr("from_infinity", false).KernelKey("X");
  op.InferShape(&InferScan).Kernels<Logcumsumexp, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_OP(logcumsumexp_grad) {
  op.Doc("gradient of logcumsumexp").Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  DefineScanAttrs(op);
  op.KernelKey("X").InferShape(&GradLikeInputs).Kernels<LogcumsumexpGrad, float, double>();
}
