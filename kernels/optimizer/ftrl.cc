#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferFtrl(ShapeContext& ctx) {
  return InferUpdate(ctx, {{"Param", "ParamOut"},
                           {"SquaredAccumulator", "SquaredAccumOut"},
                           {"LinearAccumulator", "LinearAccumOut"}});
}

template <typename T>
struct Ftrl {
  static Status Run(KernelContext& ctx) {
    const Tensor &param = ctx.In("Param"), &square = ctx.In("SquaredAccumulator"),
                 &linear = ctx.In("LinearAccumulator");
    HEDDLE_ASSIGN_OR_RETURN(const double rate, ScalarOf(ctx, "LearningRate"));
    HEDDLE_ASSIGN_OR_RETURN(const auto grad, Gradient<T>::Of(ctx, ctx.InVar("Grad"), param, true));
    Tensor &p_to = ctx.Out("ParamOut"), &sq_to = ctx.Out("SquaredAccumOut"),
           &lin_to = ctx.Out("LinearAccumOut");
    if (!grad.dense()) {
      CopyWhenApart(param, p_to);
      CopyWhenApart(square, sq_to);
      CopyWhenApart(linear, lin_to);
    }
    const T *p = param.data<T>(), *sq = square.data<T>(), *lin = linear.data<T>();
    T *p_out = p_to.mutable_data<T>(), *sq_out = sq_to.mutable_data<T>(),
      *lin_out = lin_to.mutable_data<T>();
    const T lr = static_cast<T>(rate);
    // The reference keeps both penalties away from zero by this much.
    const T l1 = static_cast<T>(ctx.Float("l1") + 1e-10),
            l2 = static_cast<T>(ctx.Float("l2") + 1e-10);
    const T power = -static_cast<T>(ctx.Float("lr_power"));
    const bool root = power == T(0.5);
    grad.ForEach(ctx, [=](int64_t at, int64_t n, const T* g) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t k = at + i;
        const T sum = sq[k] + g[i] * g[i];
        const T now = root ? std::sqrt(sum) : std::pow(sum, power);
        const T old = root ? std::sqrt(sq[k]) : std::pow(sq[k], power);
        const T l = lin[k] + g[i] - (now - old) / lr * p[k];
        const T pull = (l >= T(0) ? l1 : -l1) - l;
        p_out[k] = std::abs(l) > l1 ? pull / (now / lr + T(2) * l2) : T(0);
        sq_out[k] = sum;
        lin_out[k] = l;
      }
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(ftrl) {
  op.Doc("follow the regularised leader")
      .Input("Param")
      .Input("SquaredAccumulator")
      .Input("LinearAccumulator")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("LearningRate")
      .Output("ParamOut")
      .Output("SquaredAccumOut")
      .Output("LinearAccumOut")
      .Attr("l1", 0.0)
      .Attr("l2", 0.0)
      .Attr("lr_power", -0.5)
      .Inplace("Param", "ParamOut")
      .Inplace("SquaredAccumulator", "SquaredAccumOut")
      .Inplace("LinearAccumulator", "LinearAccumOut")
      .InferShape(InferFtrl)
      .Kernels<Ftrl, float, double>();
}

HEDDLE_EXAMPLES(ftrl, R"(
example float32 3, l1 0.1, l2 0.2
attr l1 FLOAT 0.1
attr l2 FLOAT 0.2
in Grad float32 [3] 0.258 0.439 0.133
in LearningRate float32 [1] 0.088
in LinearAccumulator float32 [3] 0.801 0.24 0.713
in Param float32 [3] 0.546 0.343 0.658
in SquaredAccumulator float32 [3] 0.269 0.523 0.406
out LinearAccumOut float32 [3] 0.6828386 0.20029852 0.74331707
out ParamOut float32 [3] -0.08346877 -0.01001616 -0.082510926
out SquaredAccumOut float32 [3] 0.335564 0.715721 0.42368898

example float32 2x3, l1 0.1, l2 0.2
attr l1 FLOAT 0.1
attr l2 FLOAT 0.2
in Grad float32 [2, 3] 0.72 0.44 0.17 -0.11 -0.67 -0.39
in LearningRate float32 [1] 0.0903
in LinearAccumulator float32 [2, 3] 0.752 0.579 0.406 0.492 0.319 0.666
in Param float32 [2, 3] -0.64 0.38 -0.39 0.12 0.64 -0.13
in SquaredAccumulator float32 [2, 3] 0.203 0.67 0.554 0.32 0.787 0.437
out LinearAccumOut float32 [2, 3] 4.298472 0.55287695 0.6587818 0.36791924 -1.9427092 0.42927727
out ParamOut float32 [2, 3] -0.4281578 -0.04235955 -0.06310414 -0.039505325 0.14496623 -0.03699844
out SquaredAccumOut float32 [2, 3] 0.7214 0.8636 0.58290005 0.3321 1.2359 0.5891
)")
