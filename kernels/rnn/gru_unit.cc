#include "core/interrupts.h"
#include "kernels/sequence/sequence_batch.h"

namespace heddle {
namespace {

Status CheckGruUnitOperands(const ShapeContext& ctx) {
  const Shape &x = ctx.InShape("Input"), &h = ctx.InShape("HiddenPrev"), &w = ctx.InShape("Weight");
  if (!x.is_static() || !h.is_static() || !w.is_static()) return Status::Ok();
  const int64_t d = h.rank() == 2 ? h[1] : -1;
  if (x.rank() != 2 || d < 0 || x[0] != h[0] || x[1] != 3 * d || w.numel() != 3 * d * d)
    return InvalidArgument("Input ", x.ToString(), ", HiddenPrev ", h.ToString(), " and Weight ",
                           w.ToString(), " do not fit each other");
  if (ctx.HasIn("Bias") && ctx.InShape("Bias").is_static() && ctx.InShape("Bias").numel() != 3 * d)
    return InvalidArgument("Bias must have ", 3 * d, " elements");
  return Status::Ok();
}

Status InferGruUnit(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckGruUnitOperands(ctx));
  SetOutsLike(ctx,
              {{"Input", "Gate"}, {"HiddenPrev", "ResetHiddenPrev"}, {"HiddenPrev", "Hidden"}});
  return Status::Ok();
}

constexpr GateActivation kActivations[] = {GateActivation::kIdentity, GateActivation::kSigmoid,
                                           GateActivation::kTanh, GateActivation::kRelu};

template <typename T>
Result<GruStep<T>> GruUnitStepOf(KernelContext& ctx) {
  const int64_t act = ctx.Int("activation"), gate = ctx.Int("gate_activation");
  if (act < 0 || act > 3 || gate < 0 || gate > 3)
    return InvalidArgument("activations must be 0 to 3, not ", act, " and ", gate);
  return GruStep<T>{ctx.In("HiddenPrev").dim(1), kActivations[act], kActivations[gate],
                    ctx.Bool("origin_mode"), ctx.In("Weight").template data<T>()};
}

template <typename T>
struct GruUnit {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("Input"), &h = ctx.In("HiddenPrev");
    HEDDLE_ASSIGN_OR_RETURN(const GruStep<T> step, GruUnitStepOf<T>(ctx));
    const Tensor* bias = ctx.InOpt("Bias");
    const int64_t n = h.dim(0), width = 3 * step.size;
    T* gate = ctx.Out("Gate").template mutable_data<T>();
    for (const auto part : Stretches(n * width))
      for (int64_t i = part.begin; i < part.end; ++i)
        gate[i] = x.data<T>()[i] + (bias ? bias->data<T>()[i % width] : T(0));
    step.Forward(n, gate, h.data<T>(), ctx.Out("ResetHiddenPrev").template mutable_data<T>(),
                 ctx.Out("Hidden").template mutable_data<T>());
    return Status::Ok();
  }
};

Status InferGruUnitGrad(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckGruUnitOperands(ctx));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "Input", "Gate"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "HiddenPrev", "ResetHiddenPrev"));
  HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "HiddenPrev", "Hidden@GRAD"));
  SetOutsLike(ctx, {{"Input", "Input@GRAD"},
                    {"HiddenPrev", "HiddenPrev@GRAD"},
                    {"Weight", "Weight@GRAD"},
                    {"Bias", "Bias@GRAD"}});
  return Status::Ok();
}

template <typename T>
struct GruUnitGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& h = ctx.In("HiddenPrev");
    HEDDLE_ASSIGN_OR_RETURN(const GruStep<T> step, GruUnitStepOf<T>(ctx));
    const int64_t n = h.dim(0), width = 3 * step.size;
    Tensor *dh = ctx.OutOpt("HiddenPrev@GRAD"), *dw = ctx.OutOpt("Weight@GRAD"),
           *dx = ctx.OutOpt("Input@GRAD"), *db = ctx.OutOpt("Bias@GRAD");
    if (dh) ZeroAll(*dh);
    if (dw) ZeroAll(*dw);
    Tensor spare;
    if (!dx) dx = &(spare = ctx.Scratch(h.dtype(), Shape{n, width}));
    step.Backward(n, ctx.In("Gate").template data<T>(), h.data<T>(),
                  ctx.In("ResetHiddenPrev").template data<T>(),
                  ctx.In("Hidden@GRAD").template data<T>(), dx->template mutable_data<T>(),
                  dh ? dh->template mutable_data<T>() : nullptr,
                  dw ? dw->template mutable_data<T>() : nullptr);
    if (db)
      MatrixMap<T>(db->template mutable_data<T>(), 1, width) =
          ConstMatrixMap<T>(dx->template data<T>(), n, width).colwise().sum();
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(gru_unit) {
  op.Doc("one step of a gated recurrent unit")
      .Input("Input")
      .Input("HiddenPrev")
      .Input("Weight")
      .Input("Bias", kOptional)
      .Output("Gate")
      .Output("ResetHiddenPrev")
      .Output("Hidden")
      .Attr("activation", 2)
      .Attr("gate_activation", 1)
      .Attr("origin_mode", false)
      .InferShape(InferGruUnit)
      .Kernels<GruUnit, float, double>();
}

HEDDLE_OP(gru_unit_grad) {
  op.Input("Input", kNoBuffer)
      .Input("HiddenPrev")
      .Input("Weight")
      .Input("Bias", kOptional | kNoBuffer)
      .Input("Gate")
      .Input("ResetHiddenPrev")
      .Input("Hidden@GRAD")
      .Output("Input@GRAD", kOptional)
      .Output("HiddenPrev@GRAD", kOptional)
      .Output("Weight@GRAD", kOptional)
      .Output("Bias@GRAD", kOptional)
      .Attr("activation", 2)
      .Attr("gate_activation", 1)
      .Attr("origin_mode", false)
      .InferShape(InferGruUnitGrad)
      .Kernels<GruUnitGrad, float, double>();
}
