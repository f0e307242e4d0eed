#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/check.h"
#include "kernels/reduce/scan.h"

namespace heddle {
namespace {

template <typename T>
T LogAddExp(T a, T b) {
  const T high = std::max(a, b), low = std::min(a, b);
  return low == -std::numeric_limits<T>::infinity() ? high
                                                    : high + std::log1p(std::exp(low - high));
}

// An exclusive scan starts with the lowest finite number. As in Paddle, a tensor of one element is
// its own scan.
bool IsExclusive(const OpContext& ctx, const Tensor& x) {
  return ctx.Bool("exclusive") && x.numel() != 1;
}

template <typename T>
struct Logcumsumexp {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, ScanLines(ctx, ctx.In("X").shape()));
    const T* x = ctx.In("X").data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    const bool exclusive = IsExclusive(ctx, ctx.In("X")), reverse = ctx.Bool("reverse");
    lines.ForEach(ctx, 16, [&](int64_t line) {
      const ScanOrder at(lines, line, reverse);
      T total = std::numeric_limits<T>::lowest();
      for (const int64_t i : Watched(lines.n)) {
        const T next = i == 0 ? x[at[i]] : LogAddExp(total, x[at[i]]);
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
  op.InferShape(&InferScan).Kernels<Logcumsumexp, float, double>();
}

HEDDLE_OP(logcumsumexp_grad) {
  op.Doc("gradient of logcumsumexp").Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  DefineScanAttrs(op);
  op.InferShape(&GradLikeInputs).Kernels<LogcumsumexpGrad, float, double>();
}

HEDDLE_EXAMPLES(logcumsumexp, R"(
example float64 4x4, axis 0, exclusive, flatten, reverse
attr axis INT 0
attr exclusive BOOLEAN true
attr flatten BOOLEAN true
attr reverse BOOLEAN true
in X float64 [4, 4] 7 18 53 87 14 25 56 71 2 46 49 89 40 50 81 84
out Out float64 [16] 89.13313893520507 89.13313893520507 89.13313893520507 89.00704852553407*4
  89.00704851041107*4 84.04858735157374 84.04858735157374 84.04858735157374 84
  -1.7976931348623157e+308

example float32 5, reverse
attr reverse BOOLEAN true
in X float32 [5] 0.24 0.388 0.684 0.536 0.092
out Out float32 [5] 2.019239 1.8343942 1.5659688 1.0315894 0.092

example float64 4x4, axis 1
attr axis INT 1
in X float64 [4, 4] 17 33 33 65 5 7 13 24 69 71 72 84 19 34 68 83
out Out float64 [4, 4] 17 33.00000011253517 33.69314723682753 65.00000000000003 5 7.126928011042972
  13.002810262315784 24.000016748562707 69 71.12692801104298 72.34901221676819 84.00000871040615 19
  34.000000305902276 68 83.00000030590228

example float32 5x4, flatten
attr flatten BOOLEAN true
in X float32 [5, 4] 0.933 0.297 0.615 0.751 0.343 0.796 0.887 0.116 0.252 0.524 0.706 0.206 0.07
  0.66 0.479 0.57 0.161 0.433 0.842 0.388
out Out float32 [20] 0.933 1.3578793 1.7470403 2.0613685 2.226339 2.4408276 2.6326349 2.7102723
  2.7923892 2.8908567 2.9974608 3.0569851 3.1061935 3.1892679 3.2536678 3.3197477 3.361349 3.413453
  3.487098 3.531201

example float32, exclusive, one element
attr exclusive BOOLEAN true
in X float32 [1, 1] 0.7
out Out float32 [1, 1] 0.7
)")

HEDDLE_EXAMPLES(logcumsumexp_grad, R"(
example float64 5, reverse
attr reverse BOOLEAN true
in Out float64 [5] 2.01923885474022 1.8014720774651387 1.565968755152077 1.30588268532159 0.536
in Out@GRAD float64 [5] -0.5 -0.9 0.2 -0.7 0.4
in X float64 [5] 0.388 0.24 0.092 0.684 0.536
out X@GRAD float64 [5] -0.09784349806786248 -0.27322754310647723 -0.1898369795102307
  -0.7190021518498411 -0.2200898274655883

example float64 16, axis 0, exclusive, flatten, reverse
attr axis INT 0
attr exclusive BOOLEAN true
attr flatten BOOLEAN true
attr reverse BOOLEAN true
in Out float64 [16] 81.12692801104913 81.12692801104913 81.12692801104913 81.12692801104463*4
  81.12692801104298*4 79*4 -1.7976931348623157e+308
in Out@GRAD float64 [16] 0.8 0 -0.9 -0.2 0.4 -0.7 -0.9 0.4 0.8 -0.7 -1 0.2 0.6 -0.6 -0 -0.3
in X float64 [4, 4] 10 13 21 55 9 21 45 54 9 10 45 81 3 4 40 79
out X@GRAD float64 [4, 4] 0 2.0698605284729947e-30 6.170167274413987e-27 -4.5000706870194854e-13
  -1.4216556746126595e-32 7.712709093086288e-28 -1.2258173587060143e-16 -2.4832252343694766e-12
  -5.212737473582337e-32 -3.864460786600274e-32 -2.043028931175673e-16 -1.7615941559532269
  -3.7845712805917896e-35 1.504306863679441e-33 -4.43519296572634e-19 -0.03840584404388214

example float32 5, reverse
attr reverse BOOLEAN true
in Out float32 [5] 2.019239 1.8014721 1.5659688 1.3058827 0.536
in Out@GRAD float32 [5] -0.5 -0.9 0.2 -0.7 0.4
in X float32 [5] 0.388 0.24 0.092 0.684 0.536
out X@GRAD float32 [5] -0.09784349 -0.27322754 -0.189837 -0.7190022 -0.22008991

example float32, exclusive, one element
attr exclusive BOOLEAN true
in X float32 [1] 0.7
in Out float32 [1] 0.7
in Out@GRAD float32 [1] 0.3
out X@GRAD float32 [1] 0.29999998
)")
