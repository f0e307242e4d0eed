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
