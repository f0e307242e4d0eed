#include "core/interrupts.h"
#include "core/operands/slot_kinds.h"
#include "kernels/optimizer/optimizer.h"

namespace heddle {
namespace {

Status InferSgd(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(InferUpdate(ctx, {{"Param", "ParamOut"}}));
  SetOutsLike(ctx, {{"MasterParam", "MasterParamOut"}});
  return Status::Ok();
}

// Rows may repeat: each is subtracted on its own, in order.
template <typename T>
Status UpdateRows(const SelectedRows& g, const Tensor& param, double lr, Tensor& out) {
  using C = ComputeType<T>;
  const auto count = static_cast<int64_t>(g.rows.size());
  if (param.rank() < 1 || g.height != param.dim(0) || g.value.dtype() != param.dtype())
    return InvalidArgument("Grad (height ", g.height, ") does not fit Param ",
                           param.shape().ToString());
  const int64_t width = g.height == 0 ? 0 : param.numel() / g.height;
  if (g.value.numel() != count * width)
    return InvalidArgument("Grad's rows ", g.value.shape().ToString(), " must have ", width,
                           " elements each");
  for (int64_t r : g.rows)
    if (r < 0 || r >= g.height) return OutOfRange("row ", r, " is not in [0, ", g.height, ")");
  CopyWhenApart(param, out);
  T* p = out.mutable_data<T>();
  const T* from = g.value.data<T>();
  const C rate = static_cast<C>(lr);
  for (const int64_t i : Watched(count)) {
    T* row = p + g.rows[static_cast<size_t>(i)] * width;
#pragma GCC ivdep
    for (int64_t k = 0; k < width; ++k)
      row[k] = static_cast<T>(static_cast<C>(row[k]) - rate * static_cast<C>(from[i * width + k]));
  }
  return Status::Ok();
}

template <typename T>
struct Sgd {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const Tensor& param = ctx.In("Param");
    Tensor& out = ctx.Out("ParamOut");
    HEDDLE_ASSIGN_OR_RETURN(const double lr, ScalarOf(ctx, "LearningRate"));
    const Value* grad = ctx.InVar("Grad");
    if (grad == nullptr || !grad->initialized()) return InvalidArgument("Grad holds nothing");
    if (HasGradRows(ctx)) {
      HEDDLE_ASSIGN_OR_RETURN(const SelectedRows rows, GivenRows(ctx, param));
      return UpdateRows<T>(rows, param, lr, out);
    }
    if (grad->is_rows()) return UpdateRows<T>(grad->rows(), param, lr, out);
    const Tensor& g_in = ctx.In("Grad");
    if (g_in.numel() != param.numel() || g_in.dtype() != param.dtype())
      return InvalidArgument("Grad ", g_in.shape().ToString(), " does not fit Param ",
                             param.shape().ToString());
    const T *p = param.data<T>(), *g = g_in.data<T>();
    T* to = out.mutable_data<T>();
    const C rate = static_cast<C>(lr);
    ctx.ParallelFor(param.numel(), 32768, [=](int64_t b, int64_t e) {
#pragma GCC ivdep
      for (int64_t i = b; i < e; ++i)
        to[i] = static_cast<T>(static_cast<C>(p[i]) - rate * static_cast<C>(g[i]));
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sgd) {
  op.Doc("param -= lr * grad")
      .Input("Param")
      .Input("LearningRate")
      .Input("Grad", kAnyKind | kTakesRows)
      .Input("MasterParam", kOptional)
      .Input("GradRows", kOptional)
      .Output("ParamOut")
      .Output("MasterParamOut", kOptional)
      .Attr("multi_precision", false)
      .Inplace("Param", "ParamOut")
      .InferShape(InferSgd)
      .Kernels<KeepsMaster<Sgd>::Kernel, float, double, bfloat16, float16>();
}
