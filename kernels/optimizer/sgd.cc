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

HEDDLE_EXAMPLES(sgd, R"(
example rows as tensors
in Param float32 [4, 2] -0.34 -0.94 -0.99 0.5 0.97 -0.33 0.62 0.46
in LearningRate float32 [1] 0.5
in Grad float32 [2, 2] -0.88 0.5 0.91 0.48
in GradRows int64 [2] 3 1
out ParamOut=Param float32 [4, 2] -0.34 -0.94 -1.445 0.26 0.97 -0.33 1.06 0.21000001

example rows
in Param float32 [4, 2] -0.34 -0.94 -0.99 0.5 0.97 -0.33 0.62 0.46
in LearningRate float32 [1] 0.5
in Grad float32 [2, 2] rows [3, 1] height 4 -0.88 0.5 0.91 0.48
out ParamOut=Param float32 [4, 2] -0.34 -0.94 -1.445 0.26 0.97 -0.33 1.06 0.21000001

example float32 4
in Grad float32 [4] 0.25000003*4
in LearningRate float32 [] 0
in Param float32 [4] 0.44 0.2 0.75 0.87
out ParamOut float32 [4] 0.44 0.2 0.75 0.87

example float32 3x1
in Grad float32 [3, 1] 0 -0.42710316 0.62218434
in LearningRate float32 [] 0.001
in Param float32 [3, 1] 0.68 0.25 0.5
out ParamOut float32 [3, 1] 0.68 0.2504271 0.49937782

example float32 3x2x2
in Grad float32 [3, 2, 2] 0.18 0.44 -0.61 0.04 -0.22 -0.09 -0.48 0.7 0.57 -0.74 -0.35 0.31
in LearningRate float32 [1] 0.0663
in Param float32 [3, 2, 2] -0.34 -0.86 -0.47 0.45 -0.6 -0.73 0.19 0.32 -0.08 0.58 0.06 -0.21
out ParamOut float32 [3, 2, 2] -0.35193402 -0.889172 -0.429557 0.447348 -0.58541405 -0.724033
  0.22182399 0.27359 -0.117791 0.629062 0.083205 -0.23055299

example bfloat16 4x3
in Grad bfloat16 [4, 3] 0.2 0.2 0.2 0.6 0.2 0.1 0.7 0.7 0.4 0.5 0.8 0.5
in LearningRate bfloat16 [1] 0.1
in Param bfloat16 [4, 3] 0.3 0.1 0.8 0.2 0.9 0.3 0.2 0.7 0.2 1 1 0.3
out ParamOut bfloat16 [4, 3] 0.28 0.08 0.777 0.14 0.875 0.29 0.13 0.63 0.16 0.95 0.918 0.25

example float64 4
in Grad float64 [4] 0.25000003*4
in LearningRate float64 [] 0
in Param float64 [4] 0.44 0.2 0.75 0.87
out ParamOut float64 [4] 0.44 0.2 0.75 0.87
)")
