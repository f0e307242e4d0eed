#include "core/interrupts.h"
#include "kernels/rnn/sequence_batch.h"

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

HEDDLE_EXAMPLES(gru_unit, R"(
example float32 2x6
in Bias float32 [1, 6] 0.39 -0.31 -0.14 0.56 0.04 0.21
in HiddenPrev float32 [1, 2] -0.8 0.05
in Input float32 [1, 6] 0.03 -0.78 -0.17 -0.57 -0.37 0.23
in Weight float32 [2, 6] -0.01 -0.57 0.69 0.27 0.13 -0.15 -0.43 -0.86 -0.29 -0.71 0.41 0.55
out Gate float32 [1, 6] 0.6069477 0.34490755 0.29245302 0.4331526 -0.24799123 0.54975146
out Hidden float32 [1, 2] -0.46495956 0.22236805
out ResetHiddenPrev float32 [1, 2] -0.23396242 0.021657629

example float64 2x6
in Bias float64 [1, 6] 0.39 -0.31 -0.14 0.56 0.04 0.21
in HiddenPrev float64 [1, 2] -0.8 0.05
in Input float64 [1, 6] 0.03 -0.78 -0.17 -0.57 -0.37 0.23
in Weight float64 [2, 6] -0.01 -0.57 0.69 0.27 0.13 -0.15 -0.43 -0.86 -0.29 -0.71 0.41 0.55
out Gate float64 [1, 6] 0.6069477133589637 0.3449075410993362 0.29245301829337444 0.4331526100285035
  -0.2479912332638661 0.549751430369632
out Hidden float64 [1, 2] -0.46495954127540196 0.2223680370096659
out ResetHiddenPrev float64 [1, 2] -0.23396241463469958 0.021657630501425176
)")

HEDDLE_EXAMPLES(gru_unit_grad, R"(
example float64 2x6
in Bias float64 [1, 6] 0.21 0.56 -0.14 -0.31 0.04 0.39
in Gate float64 [1, 6] 0.3791164806932851 0.5916522724839011 0.387887675703968 0.5207380959714514
  -0.6542135715058135 0.2919598733068379
in Hidden@GRAD float64 [1, 2] -0.5 0.4
in HiddenPrev float64 [1, 2] -0.43 0.23
in Input float64 [1, 6] -0.57 0.03 -0.37 0.23 -0.78 -0.17
in ResetHiddenPrev float64 [1, 2] -0.16679170055270623 0.11976976207343382
in Weight float64 [2, 6] -0.15 0.13 -0.43 -0.01 -0.86 -0.71 -0.57 0.69 0.55 -0.29 0.41 0.27
out Bias@GRAD float64 [1, 6] 0.026388499569803926 0.005987798710128398 0.012498191210685638
  0.0008033941512642016 -0.10842818598786823 0.21648779877716592
out HiddenPrev@GRAD float64 [1, 2] -0.3664879085275398 0.13711234546369802
out Input@GRAD float64 [1, 6] 0.026388499569803926 0.005987798710128398 0.012498191210685638
  0.0008033941512642016 -0.10842818598786823 0.21648779877716592
out Weight@GRAD float64 [2, 6] -0.011347054815015687 -0.002574753445355211 -0.005374222220594824
  -0.0003454594850436067 0.006069354901054903 0.0013771937033295316 0.002874583978457697
  0.00018478065479076637 0.018084921528761656 -0.03610836810695558 -0.012986418037821008
  0.02592869215134258

example float32 2x6
in Bias float32 [1, 6] 0.21 0.56 -0.14 -0.31 0.04 0.39
in Gate float32 [1, 6] 0.37911648 0.5916523 0.3878877 0.5207381 -0.65421355 0.29195988
in Hidden@GRAD float32 [1, 2] -0.5 0.4
in HiddenPrev float32 [1, 2] -0.43 0.23
in Input float32 [1, 6] -0.57 0.03 -0.37 0.23 -0.78 -0.17
in ResetHiddenPrev float32 [1, 2] -0.1667917 0.11976976
in Weight float32 [2, 6] -0.15 0.13 -0.43 -0.01 -0.86 -0.71 -0.57 0.69 0.55 -0.29 0.41 0.27
out Bias@GRAD float32 [1, 6] 0.026388496 0.0059877997 0.012498192 0.0008033942 -0.108428195
  0.2164878
out HiddenPrev@GRAD float32 [1, 2] -0.36648792 0.13711235
out Input@GRAD float32 [1, 6] 0.026388496 0.0059877997 0.012498192 0.0008033942 -0.108428195
  0.2164878
out Weight@GRAD float32 [2, 6] -0.011347054 -0.002574754 -0.0053742225 -0.0003454595 0.0060693542
  0.001377194 0.0028745842 0.00018478067 0.018084925 -0.036108367 -0.012986419 0.025928691
)")
